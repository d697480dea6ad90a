"""The optimal (0, δ) noise on a grid: level masses beside an atom at 0.

On the real line the least E|noise|^p has a uniform density with an atom at 0 (Geng, Ding, Guo and
Kumar 2018, Theorem 3). A computer has no real line, so noise is a whole number of steps, and this
is the exact optimum on the steps among the even pmfs that fall from 0 outwards. Programs find pmfs
that do not fall and cost up to 7 % less (docs/gallery, geng-theorem-3).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.integers.noise import IntegerNoise, merged
from release.exact.mechanism import Mechanism
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import KEPT_FREE
from release.noise.published.fitted import Requirement
from release.noise.solvers.program import Floats

# Units of a step: with fewer, rounding would cost more than a thousandth.
_COARSEST = 2**10

_MOST_STEPS = 10**7


@dataclass(frozen=True)
class Levels:
    """``mode`` at 0, ``height`` on ``steps`` integers each side, ``rest`` on the next; units."""

    mode: int
    height: int
    steps: int
    rest: int


def check_zero_delta(delta: Fraction, power: Fraction) -> None:
    """Refuse what no (0, δ) noise is defined for.

    Raises:
        ValueError: δ not in (0, 1), or p not above 0.
    """
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    if not power > 0:
        raise ValueError("the power must be above 0")


def zero_delta_levels(
    sensitivity: int, delta: Fraction, power: Fraction, bits: int = DEFAULT_BITS
) -> Levels:
    """The (0, δ) noise of least E|k|^p among even pmfs on the integers that fall from 0 outwards.

    Such a pmf is (0, δ)-differentially private for answers up to ``sensitivity`` (D) steps apart
    exactly if its D middle masses add up to at most δ: shifting by D uncovers those. So beside an
    atom a no mass is above h = min(a, (δ-a)/(D-1)), and the best pmf is level at h as far as there
    is mass. Its cost is convex in a (a linear program's value), with corners where the last step
    is whole, a + 2wh = 1: the best is the uniform pmf, a = δ/D, or the best whole w ≥ that one's.

    Masses are integers over 2^``bits``; rounding takes from the steps and adds to the end, so δ is
    kept exactly.

    Raises:
        ValueError: δ not in (0, 1), p not above 0, sensitivity below 1, more than 10⁷ steps, or a δ
            that leaves the steps too few units of 2^-``bits``.
    """
    check_zero_delta(delta, power)
    if sensitivity < 1:
        raise ValueError("the sensitivity must be 1 step or more")
    # The continuous optimum takes the larger of these; the one on the grid is within a step of it.
    reach = sensitivity * max(1 / delta, (power + 1) / power) / 2
    if reach > _MOST_STEPS:
        raise ValueError("the noise would take more than 10^7 steps; use a coarser grid")
    total = 2**bits
    budget = int(delta * total)
    if sensitivity == 1:
        return _level(budget, budget, total)
    atoms = [delta / sensitivity]
    whole = int((sensitivity / delta - 1) / 2) + 1
    costs = np.cumsum(np.arange(float(int(reach) + 4)) ** float(power))
    low, high = whole, max(whole, int(reach) + 2)
    # The cost is convex in w, so its least value lies where it stops falling.
    while low < high:
        middle = (low + high) // 2
        shorter = _cost(_atom(middle, sensitivity, delta), middle, costs)
        longer = _cost(_atom(middle + 1, sensitivity, delta), middle + 1, costs)
        low, high = (low, middle) if shorter <= longer else (middle + 1, high)
    atoms.append(_atom(low, sensitivity, delta))
    best = min(atoms, key=lambda a: _cost_of(a, (delta - a) / (sensitivity - 1), costs))
    mode = int(best * total)
    return _level(mode, min(mode, (budget - mode) // (sensitivity - 1)), total)


def _atom(steps: int, sensitivity: int, delta: Fraction) -> Fraction:
    """The a with a + 2·``steps``·(δ-a)/(D-1) = 1."""
    share = Fraction(2 * steps, sensitivity - 1)
    return (share * delta - 1) / (share - 1)


def _cost(atom: Fraction, steps: int, costs: Floats) -> float:
    return float((1 - atom) / steps) * float(costs[steps])


def _cost_of(atom: Fraction, height: Fraction, costs: Floats) -> float:
    """2·Σ h·k^p over the whole steps, and what is left on the next."""
    steps = int((1 - atom) / 2 / height)
    rest = float((1 - atom) / 2 - steps * height)
    return 2 * (float(height) * float(costs[steps]) + rest * float(costs[steps + 1] - costs[steps]))


def _level(mode: int, height: int, total: int) -> Levels:
    """``mode`` at 0, ``height`` each side while there is mass, the rest next to that."""
    # Both sides are alike, so an odd unit is dropped from the mode to the two ends.
    mode -= (total - mode) % 2
    height = min(height, mode)
    if height < _COARSEST:
        raise ValueError("delta is too near 0 or 1 for this many steps and bits; use more bits")
    steps, rest = divmod((total - mode) // 2, height)
    return Levels(mode, height, steps, rest)


def law(requirement: Requirement) -> Mechanism:
    """The noise of least expected loss under the δ of the guarantee; its ε is 0.

    Raises:
        ValueError: the loss is the error rate, or the noise is wider than its integers hold.
    """
    if not requirement.power:
        raise ValueError("it is for the loss absolute or squared")
    # A verifier may take a ratio up to 10⁻³⁰ below 1; that adds at most the δ left unused.
    delta = requirement.guarantee.delta - KEPT_FREE
    levels = zero_delta_levels(requirement.farthest_on_line, delta, Fraction(requirement.power))
    outwards, reach = [], 0
    for length, weight in ((levels.steps, levels.height), (1, levels.rest)):
        # A run of no mass at an end would be no part of the noise, and one of no length is none.
        if length and weight:
            outwards.append((length, weight))
            reach += length
    runs = merged([*outwards[::-1], (1, levels.mode), *outwards])
    return requirement.clamped(IntegerNoise(-reach, runs))
