"""Noise that moves the distribution of the answers least: the programs of Qin et al. 2022.

The input x has a known pmf p_x, and what counts is the Wasserstein distance W(x, x+θ) of input and
output, Σ_k |P_x(k) - P_{x+θ}(k)|. The paper calls that objective (P1) unsolvable for its absolute
values and bounds it by (P2). It is convex in p_θ, so one more variable for each k makes it a linear
program, and :func:`solve_exact` solves it.

P2 says less than it seems: Σ_k |P_x(k) - P_x(k-i)| = |i| whatever p_x is, as a pmf moved by i has
moved all of its mass by i. So P2 minimises E|θ|, its pmf does not depend on the input, and it is
the optimal pure pmf of the absolute loss (Geng and Viswanath's staircase).

The noise has no end: a pmf that stops is ε-differentially private for no ε (their Theorem 1). Here
both programs have masses on a window and beyond it tails that fall by e^{-ε} every m integers,
which is as fast as any pmf may fall, and the programs count them to the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.numbers import exp_below_any_verifier
from release.noise.published.qin import (
    Input,
    ProgramObjective,
    Shape,
    raised_masses,
    reach_of,
    solve_window,
    wasserstein_rows,
)
from release.noise.solvers.program import Builder, Floats, Numbers
from research.published.integer_pmf import IntegerPmf, Tail, theorem_1

__all__ = [
    "Input",
    "Transport",
    "distance",
    "gaussian_input",
    "poisson_input",
    "relaxed_costs",
    "solve_exact",
    "solve_relaxed",
]


def gaussian_input(mean: float = 0.0, deviation: float = 10.0) -> Input:
    """The normal distribution integrated from k to k+1, to six deviations (their Section V-B)."""
    reach = math.ceil(6 * deviation)
    edges = np.arange(-reach, reach + 1) + math.floor(mean)
    below = np.array([math.erfc((mean - e) / deviation / math.sqrt(2)) / 2 for e in edges.tolist()])
    masses = np.diff(below)
    return Input(int(edges[0]), masses / masses.sum())


def poisson_input(rate: float = 5.0) -> Input:
    """The Poisson pmf with mean γ, to twelve deviations above it."""
    counts = range(math.ceil(rate + 12 * math.sqrt(rate) + 12))
    masses = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in counts])
    return Input(0, masses / masses.sum())


def distance(answers: Input, noise: IntegerPmf) -> float:
    """W(x, x+θ) in floats; tails are followed until they hold less than 10⁻¹⁸."""
    low, high = noise.low, noise.high
    masses = np.array([float(mass) for mass in noise.masses])
    before = after = masses[:0]
    if noise.left:
        before = _copies(masses[: noise.left.period][::-1], noise.left)[::-1]
    if noise.right:
        after = _copies(masses[-noise.right.period :], noise.right)
    low, high = low - before.size, high + after.size
    # Where only one of the two has mass they differ too.
    padding = (max(0, low), max(0, -high))
    noises = np.pad(np.concatenate([before, masses, after]), padding)
    output = np.convolve(answers.masses, noises)
    values = np.arange(answers.low + min(0, low), answers.high + max(0, high) + 1)
    return float(np.abs(answers.at_most(values) - np.cumsum(output)).sum())


def _copies(period: Floats, tail: Tail) -> Floats:
    """The tail that follows the masses ``period``, outwards, as far as it can be seen."""
    ratio = float(tail.ratio)
    times = math.ceil(math.log(1e-18) / math.log(ratio))
    return np.asarray((period[None, :] * ratio ** np.arange(1, times + 1)[:, None]).reshape(-1))


@dataclass(frozen=True)
class Transport:
    """The noise of P1 or P2: exact in its privacy, its distance a float.

    ``noise`` is ε-private exactly (:func:`theorem_1` beside this module); ``objective`` is
    the objective of the solver.
    """

    noise: IntegerPmf
    distance: float
    objective: float


def solve_exact(
    answers: Input, epsilon: Fraction, most: int, reach: int | None = None
) -> Transport:
    """P1: the least W(x, x+θ) over ε-private noise for answers up to ``most`` (m) apart.

    Args:
        answers: the pmf of the input.
        epsilon: ε, from 1/100 to 20.
        most: m, at least 1.
        reach: the half width of the window; by default a few stairs, and the width of the input.

    Raises:
        DesignError: the solver found nothing.
        ValueError: an argument out of its range, or a window narrower than the input or two stairs.
    """
    exact = _solve(answers, epsilon, most, reach, wasserstein_rows)
    # Where the least distance is as small as the solver's tolerance, P2 may come out nearer to it.
    relaxed = solve_relaxed(answers, epsilon, most, reach)
    nearest = relaxed if relaxed.distance < exact.distance else exact
    return replace(nearest, objective=exact.objective)


def solve_relaxed(
    answers: Input, epsilon: Fraction, most: int, reach: int | None = None
) -> Transport:
    """P2 as printed: the least Σ_k |p_xᵀM_k|·p_θ, which is E|θ| (see the module's docstring).

    Arguments and errors as of :func:`solve_exact`.
    """
    return _solve(answers, epsilon, most, reach, _printed_costs)


def relaxed_costs(answers: Input, noises: Numbers) -> Floats:
    """Σ_k |P_x(k) - P_x(k-i)| for each noise value i, summed as (33) has it."""
    widest = int(np.abs(noises).max())
    values = np.arange(answers.low - widest - 1, answers.high + widest + 2)
    moved = answers.at_most(values[None, :] - noises[:, None])
    return np.asarray(np.abs(answers.at_most(values)[None, :] - moved).sum(axis=1))


def _solve(
    answers: Input,
    epsilon: Fraction,
    most: int,
    reach: int | None,
    objective: ProgramObjective,
) -> Transport:
    if not (Fraction(1, 100) <= epsilon <= 20 and most >= 1):
        raise ValueError("epsilon must be from 1/100 to 20, and answers at least 1 apart")
    ratio = exp_below_any_verifier(epsilon)
    if reach is None:
        reach = reach_of(answers, epsilon, most)
    solved = solve_window(answers, ratio, most, reach, objective)
    tail = Tail(most, 1 / ratio)
    masses = list(map(Fraction, raised_masses(solved, most, ratio)))
    noise = IntegerPmf.of(-reach, masses, tail, tail)
    bound = theorem_1(noise, most)
    if bound is None or bound > ratio:
        raise DesignError("the noise found could not be made exact; widen the window")
    return Transport(noise, distance(answers, noise), solved.objective)


def _printed_costs(shape: Shape, builder: Builder) -> Numbers:
    return builder.add_columns(shape.with_tails(lambda k: relaxed_costs(shape.answers, k)))
