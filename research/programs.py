"""The paper's programs and ours, by the few words that the figures need.

*Printed* is what Kadam et al. 2024 solve: one-sided sensitivity, one shared indicator, the loss of
the noise. *Ours* is the best modular noise that protects both directions, with an indicator for
each difference. *Released* is what a release takes for answers in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, Topology
from release.exact.losses import Loss, LossName, named_loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Deltas, Guarantee
from release.exact.sensitivity import Sensitivity, line_pairs
from release.noise.design import Asked, Design
from release.noise.families import AnyDesign
from release.noise.select import choose
from release.noise.solve import design
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Floats
from release.spec.mechanisms import BEST
from research.published.integer_pmf import IntegerPmf
from research.verbatim import Indicators, solve_least_delta, solve_verbatim

SECONDS = 30.0
"""Patience with a printed program; all of the figures' take well under one second."""


def exact(value: float, places: int = 6) -> Fraction:
    """The decimal that a figure's axis shows, exactly."""
    # The float 0.1 is a little more than 1/10; the paper means 1/10.
    return Fraction(round(value * 10**places), 10**places)


def sensitivity(n: int, steps: Iterable[int], *, directed: bool) -> Sensitivity:
    """The sensitivity set of the answers 0..n."""
    return Sensitivity.of(Group((n + 1,)), ((step,) for step in steps), directed=directed)


def guarantee(epsilon: float, delta: float) -> Guarantee:
    """A probabilistic guarantee, or the pure one for δ = 0."""
    kind = Definition.PROBABILISTIC if delta > 0 else Definition.PURE
    return Guarantee(kind, exact(epsilon), exact(delta))


def loss(name: LossName, n: int) -> Loss:
    """A named loss function on ordered answers 0..n."""
    return named_loss(name, Topology.ORDERED, n + 1)


def ours(
    n: int, steps: Iterable[int], epsilon: float, delta: float, name: LossName = LossName.ERROR_RATE
) -> Design[Modular]:
    """The optimal mechanism for differences of both signs."""
    both_signs = sensitivity(n, steps, directed=False)
    return design(both_signs, guarantee(epsilon, delta), loss(name, n))


def our_masses(n: int, steps: Iterable[int], epsilon: float, delta: float) -> Floats:
    """The pmf of :func:`ours` for the error rate, shape (n+1,)."""
    return ours(n, steps, epsilon, delta).mechanism.pmf.to_floats()


def printed(
    n: int, steps: Iterable[int], epsilon: float, delta: float, name: LossName = LossName.ERROR_RATE
) -> Floats:
    """The masses of program (13) as printed, shape (n+1,).

    Raises:
        DesignError: the solver found nothing in time.
    """
    one_sided = sensitivity(n, steps, directed=True)
    if delta == 0:
        # Without a δ no indicator is set, and our linear program is the printed one.
        return design(one_sided, guarantee(epsilon, 0.0), loss(name, n)).mechanism.pmf.to_floats()
    problem = Problem.of(one_sided, guarantee(epsilon, delta), loss(name, n))
    solution = solve_verbatim(problem, Indicators.SHARED, SECONDS)
    if solution is None:
        raise DesignError("the printed program has no solution in time")
    return solution.masses


def released(
    n: int,
    steps: Iterable[int],
    epsilon: float,
    delta: float,
    name: LossName = LossName.ERROR_RATE,
    mechanism: str = BEST,
) -> AnyDesign:
    """What ``mechanism: best`` takes for answers 0..n in order, with the same guarantee."""
    question = Asked(
        AnswerDomain(Topology.ORDERED, range(n + 1)),
        Sensitivity.on_line(n + 1, steps),
        guarantee(epsilon, delta),
        loss(name, n),
        name,
    )
    return choose(question, mechanism)


def least_delta(
    n: int, steps: Iterable[int], epsilon: float, cap: float, name: LossName, *, directed: bool
) -> float:
    """The least δ of modular noise whose loss is at most ``cap``: (15), to a solver's tolerance.

    Raises:
        DesignError: the solver did not finish in time.
    """
    shifts = sensitivity(n, steps, directed=directed)
    problem = Problem.of(shifts, guarantee(epsilon, 0.5), loss(name, n))
    least = solve_least_delta(problem, cap, Indicators.PER_DIFFERENCE, SECONDS)
    if least is None:
        raise DesignError("program (15) is not solved in time")
    return least


def noise_deltas(noise: IntegerPmf, epsilon: float) -> Deltas:
    """The exact δ of noise for answers 1 apart."""
    return noise.deltas(1, exp_bounds(exact(epsilon))[0])


def answer_deltas(channel: Channel, epsilon: float) -> Deltas:
    """The exact δ of a channel for answers 1 apart, without wrapping."""
    ratio = exp_bounds(exact(epsilon))[0]
    return channel.deltas_of_pairs(line_pairs(channel.answers, [1]), ratio)


def channel_delta(channel: Channel, epsilon: float) -> float:
    """The probabilistic δ of :func:`answer_deltas`."""
    return float(answer_deltas(channel, epsilon).probabilistic)


def per_difference(n: int, steps: Iterable[int], epsilon: float, delta: float) -> Floats:
    """The masses, falling, for one-sided sensitivity, an indicator a difference: (3) itself."""
    one_sided = sensitivity(n, steps, directed=True)
    optimum = design(one_sided, guarantee(epsilon, delta), loss(LossName.ERROR_RATE, n))
    return np.sort(optimum.mechanism.pmf.to_floats())[::-1]
