"""The composition of charges that are known by their ε and δ only.

A charge stands for any mechanism with its guarantee, so it counts as the worst of them. The result
holds for charges fixed in advance. What the mechanisms answer may depend on earlier answers; how
large the charges are may not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd, isqrt, lcm

from release.exact.composition.distribution import LossDistribution, of_charge
from release.exact.composition.together import together

LONGEST = 2**14
"""About how many losses a grid has at most: it bounds time and memory, not what is proved."""

_REACH = 102
"""The square of a window in units of Σ(2ε)²: 2·ln(10²²), rounded up. Masses outside are folded."""


def compose(
    charges: Iterable[tuple[Fraction, Fraction]], step: Fraction | None = None
) -> LossDistribution:
    """Return a distribution whose profile is at least that of all ``charges`` together.

    Args:
        charges: (ε, δ) of each, ε at least 0 and δ at least 0; their order does not matter.
        step: the distance of the grid's losses; by default :func:`common_step`.
    """
    repetitions = Counter(charges) or Counter({(Fraction(0), Fraction(0)): 1})
    grid = step or common_step(repetitions)
    return together(
        (of_charge(epsilon, delta, grid), times)
        for (epsilon, delta), times in sorted(repetitions.items())
    )


def common_step(repetitions: Mapping[tuple[Fraction, Fraction], int]) -> Fraction:
    """Return a step that places every loss on the grid, or the finest with a short grid.

    The first is the greatest common divisor of the distances 2ε of the losses of each charge.
    With it no atom is split, so the composition is exact but for the rounding of masses.
    """
    distances: Counter[Fraction] = Counter()
    for (epsilon, _), times in repetitions.items():
        if epsilon > 0:
            distances[2 * epsilon] += times
    if not distances:
        return Fraction(1)
    common = lcm(*(distance.denominator for distance in distances))
    shared = Fraction(gcd(*(int(distance * common) for distance in distances)), common)
    # By Hoeffding's inequality the losses outside this window have less mass than is folded.
    squares = sum(times * distance**2 for distance, times in distances.items())
    span = sum(times * distance for distance, times in distances.items())
    window = min(_REACH * squares, span**2)
    if window <= (LONGEST * shared) ** 2:
        return shared
    return Fraction(isqrt(int(window * 10**40) // LONGEST**2) + 1, 10**20)
