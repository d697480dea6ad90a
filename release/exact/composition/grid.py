"""The step of the grid on which loss distributions meet: exact where it can be, always short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt, lcm

LONGEST = 2**14
"""About how many losses a grid has at most: it bounds time and memory, not what is proved."""

_REACH = 102
"""The square of a window in units of Σ range²: 2·ln(10²²), rounded up. The rest is folded."""


@dataclass(frozen=True)
class Spread:
    """How the losses of one distribution lie, which occurs ``times`` over.

    Attributes:
        distance: every two of its finite losses differ by a multiple of it; above 0.
        range: the largest of its finite losses less the least; above 0.
        times: at least 1.
    """

    distance: Fraction
    range: Fraction
    times: int


def short_step(spreads: Sequence[Spread]) -> Fraction:
    """Return a step that places every loss on the grid, or the finest with a short grid.

    The first is the greatest common divisor of all distances. With it no atom is split, so the
    composition is exact but for the rounding of masses. Without any spread it is 1.
    """
    if not spreads:
        return Fraction(1)
    shared, squares, span = Fraction(0), Fraction(0), Fraction(0)
    for spread in spreads:
        shared = _common_divisor(shared, spread.distance)
        squares += spread.times * spread.range**2
        span += spread.times * spread.range
    # By Hoeffding's inequality the losses outside this window have less mass than is folded.
    window = min(_REACH * squares, span**2)
    # Compared by squares, without a root that would have to be rounded.
    if window <= (LONGEST * shared) ** 2:
        return shared
    # In units of 10^-20; rounded up, because a longer step needs fewer losses.
    return Fraction(isqrt(int(window * 10**40) // LONGEST**2) + 1, 10**20)


def _common_divisor(first: Fraction, second: Fraction) -> Fraction:
    """The greatest rational of which both are multiples; of 0 and another number, that number."""
    common = lcm(first.denominator, second.denominator)
    return Fraction(gcd(int(first * common), int(second * common)), common)
