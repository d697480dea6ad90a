"""The least expected loss of pure noise on the integers, in closed form.

Neighbors are up to m apart. Of all noise that satisfies pure ε-differential privacy, one of the
staircases of :func:`expected_loss` has the least E|η|^p (docs/design/mathematics.md T2), so that
whoever knows ε, m and p can compute the bound; no solver has to be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from release.exact.numbers import exp_bounds


def expected_loss(rise: int, most: int, ratio: Fraction, power: int) -> Fraction:
    """E|η|^``power`` of the staircase with ratio E, for powers 0 to 2; 0 counts errors.

    Its masses are in proportion to E^{-max(0, ⌈(|η| - rise + 1)/most⌉)}.
    """
    fall = 1 / ratio
    # Each integer j of the first step, and all that repeat it: weight E^{-1-G} at j + G·most.
    mean = most * fall / (1 - fall)
    square = most**2 * fall * (1 + fall) / (1 - fall) ** 2
    last = rise + most - 1
    ones = Fraction(_sum(last) - _sum(rise - 1))
    squares = Fraction(_squares(last) - _squares(rise - 1))
    outside = (
        Fraction(most),
        ones + most * mean,
        squares + 2 * mean * ones + most * square,
    )[power]
    inside = (rise - 1, _sum(rise - 1), _squares(rise - 1))[power]
    weight = fall / (1 - fall)
    return 2 * (inside + weight * outside) / (2 * rise - 1 + 2 * most * weight)


def lattice(steps: Sequence[int]) -> tuple[int, int]:
    """The spacing g and the least m such that all ``steps``, ascending, are among g, 2g, …, mg."""
    spacing = 1 if isinstance(steps, range) else gcd(*steps)
    return spacing, steps[-1] // spacing


def lower_bound(steps: Sequence[int], epsilon: Fraction, power: int) -> Fraction:
    """No noise on the integers that is ε-private for ``steps`` has a smaller E|η|^``power``.

    It is 0, and says nothing, unless the steps are all multiples of their least up to the largest.
    """
    spacing, most = lattice(steps)
    if len(steps) != most:
        return Fraction(0)
    # Any rational of at least e^ε allows what e^ε allows.
    bound = least_loss(most, exp_bounds(epsilon)[1], power)[1]
    return bound * Fraction(spacing) ** power if power else bound


def least_loss(most: int, ratio: Fraction, power: int) -> tuple[int, Fraction]:
    """The best rise of 1..``most``, and its expected loss: a lower bound for all such noise."""
    # Numerator and denominator of the loss both grow with the rise, the first ever faster: once the
    # loss stops falling, it never falls again.
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        here = expected_loss(middle, most, ratio, power)
        if expected_loss(middle + 1, most, ratio, power) < here:
            low = middle + 1
        else:
            high = middle
    return low, expected_loss(low, most, ratio, power)


def _sum(last: int) -> int:
    return last * (last + 1) // 2


def _squares(last: int) -> int:
    return last * (last + 1) * (2 * last + 1) // 6
