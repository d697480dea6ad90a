"""The least ε or δ with an expected loss under a cap (Kadam et al. 2024, (15)).

The least possible loss falls as ε or δ grows, but the loss of the mechanism that is found need not:
solvers end within a gap, and ``best`` takes a simpler mechanism for a thousandth more. So bisection
looks at a bound below the least possible loss, which excludes all smaller ε or δ as well; from
there each step is tried. Every trial is a proved design, and the result is one of them, never an
interpolation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from release.errors import DesignError
from release.exact.losses import Loss
from release.exact.modular import Modular
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.noise.solve import design

MOST_BELOW = Fraction(1, 100)
"""The largest share of a loss by which its floor is taken to be below it.

A mechanism may be without a bound, or with a poor one; then each step would be tried.
"""

FIRST = 64
"""The number of steps that is tried first."""


def least_epsilon(
    sensitivity: Sensitivity,
    definition: Definition,
    delta: Fraction,
    loss: Loss,
    cap: Fraction,
    resolution: Fraction = Fraction(1, 1000),
) -> Design[Modular]:
    """The design with the least ε, a multiple of ``resolution``, whose loss is at most ``cap``.

    Raises:
        DesignError: even ε = 100 loses more.
    """

    def at(steps: int) -> Trial[Design[Modular]]:
        guarantee = Guarantee(definition, steps * resolution, delta)
        return trial_of(design(sensitivity, guarantee, loss))

    return _reached(least(at, int(100 / resolution), cap), cap, "epsilon up to 100")


def least_delta(
    sensitivity: Sensitivity,
    definition: Definition,
    epsilon: Fraction,
    loss: Loss,
    cap: Fraction,
    resolution: Fraction = Fraction(1, 10_000),
) -> Design[Modular]:
    """The design with the least δ, a multiple of ``resolution``, whose loss is at most ``cap``.

    Raises:
        DesignError: even δ near 1 loses more.
    """

    def at(steps: int) -> Trial[Design[Modular]]:
        # At δ = 0 all definitions are the pure one, and only that is defined there.
        delta = steps * resolution
        kind = definition if delta else Definition.PURE
        return trial_of(design(sensitivity, Guarantee(kind, epsilon, delta), loss))

    at_zero = at(0)
    if at_zero.loss <= cap:
        return at_zero.result
    return _reached(least(at, int(1 / resolution) - 1, cap), cap, "delta below 1")


Result = TypeVar("Result")


@dataclass(frozen=True)
class Trial(Generic[Result]):
    """A result with its expected loss; none at fewer steps loses less than ``floor``."""

    loss: Fraction
    floor: Fraction
    result: Result


def trial_of(candidate: Design[Any]) -> Trial[Design[Any]]:
    """The design with the bound below its loss, or below the least of those it was compared with.

    The floor is at most ``MOST_BELOW`` under that loss, also where less is proved.
    """
    lowest = min((loss for _, loss in candidate.compared), default=candidate.objective)
    floor = lowest * (1 - MOST_BELOW)
    # The bound of noise on the integers is one far from the ends, not one of this loss. A baseline
    # is bounded by mechanisms that are not compared here.
    if candidate.noise_loss is None and not candidate.is_named:
        floor = max(floor, min(lowest, candidate.lower_bound))
    return Trial(candidate.objective, floor, candidate)


def least(at: Callable[[int], Trial[Result]], most: int, cap: Fraction) -> Trial[Result]:
    """The trial of the fewest steps, from 1 to ``most``, with a loss of at most ``cap``.

    Where not even ``most`` steps are enough, theirs, with its larger loss.
    """
    low, enough = 0, min(most, FIRST)
    tried = {enough: at(enough)}
    # Doubling first: what is far above the answer may be far harder to solve.
    while tried[enough].loss > cap and enough < most:
        if tried[enough].floor > cap:
            low = enough
        enough = min(most, 2 * enough)
        tried[enough] = at(enough)
    # Bisection; the invariant is that a floor excludes ``low`` steps and all fewer.
    high = enough
    while low + 1 < high:
        middle = (low + high) // 2
        if middle not in tried:
            tried[middle] = at(middle)
        if tried[middle].floor > cap:
            low = middle
        else:
            high = middle
    # What no floor excludes is tried step by step: few, where floors are near to the losses.
    for steps in range(low + 1, enough):
        trial = tried.get(steps) or at(steps)
        if trial.loss <= cap:
            return trial
    return tried[enough]


def _reached(trial: Trial[Design[Modular]], cap: Fraction, searched: str) -> Design[Modular]:
    if trial.loss > cap:
        raise DesignError(f"no {searched} keeps the loss at the cap; raise the cap")
    return trial.result
