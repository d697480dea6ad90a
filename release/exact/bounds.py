"""How little noise on the integers can lose: lower bounds that anyone can compute again.

Pure guarantees have closed forms: of all noise, one of the staircases of :func:`expected_loss` has
the least E|η|^p (docs/design/mathematics.md T2). For approximate guarantees a solver's dual
multipliers are published as integers, and weak duality makes a bound of them (2.10): whatever the
multipliers are, the bound holds, so that no solver has to be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from release.exact.numbers import exp_bounds, squares_to, sum_to


def expected_loss(rise: int, most: int, ratio: Fraction, power: int) -> Fraction:
    """E|η|^``power`` of the staircase with ratio E, for powers 0 to 2; 0 counts errors.

    Its masses are in proportion to E^{-max(0, ⌈(|η| - rise + 1)/most⌉)}.
    """
    fall = 1 / ratio
    # Each integer j of the first step, and all that repeat it: weight E^{-1-G} at j + G·most.
    mean = most * fall / (1 - fall)
    square = most**2 * fall * (1 + fall) / (1 - fall) ** 2
    last = rise + most - 1
    ones = Fraction(sum_to(last) - sum_to(rise - 1))
    squares = Fraction(squares_to(last) - squares_to(rise - 1))
    outside = (
        Fraction(most),
        ones + most * mean,
        squares + 2 * mean * ones + most * square,
    )[power]
    inside = (rise - 1, sum_to(rise - 1), squares_to(rise - 1))[power]
    weight = fall / (1 - fall)
    return 2 * (inside + weight * outside) / (2 * rise - 1 + 2 * most * weight)


def lattice(steps: Sequence[int]) -> tuple[int, int]:
    """The spacing g and the least m such that all ``steps``, ascending, are among g, 2g, …, mg."""
    spacing = 1 if isinstance(steps, range) else gcd(*steps)
    return spacing, steps[-1] // spacing


def lower_bound(steps: Sequence[int], epsilon: Fraction, delta: Fraction, power: int) -> Fraction:
    """No noise on the integers that is (ε, δ)-private for ``steps`` has a smaller E|η|^``power``.

    It is 0, and says nothing, unless ε is above 0, the steps are all multiples of their least up to
    the largest, and δ is 0 or the power is: then the best noise is the pure one, mixed with a share
    δ of the truth (2.2).
    """
    spacing, most = lattice(steps)
    if len(steps) != most or epsilon == 0 or (delta and power):
        return Fraction(0)
    # Any rational of at least e^ε allows what e^ε allows.
    bound = least_loss(most, exp_bounds(epsilon)[1], power)[1]
    if power == 0:
        return bound * (1 - delta)
    # Noise between two multiples kg and (k + 1)g may be moved to them by lot, so that its mean
    # stays: |η| grows by nothing or less, η² by g²/4 at most. One step alone gains nothing by it.
    between = spacing**2 // 4 if power == 2 and most > 1 else 0
    return max(Fraction(0), bound * Fraction(spacing) ** power - between)


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


MULTIPLIER_BITS = 80
"""Multipliers are in units of 2^-80."""

MOST_PRICED = 10**6
"""The reach of all multipliers and their largest distance, times their number, at most."""


@dataclass(frozen=True)
class Multipliers:
    """Dual multipliers of an (ε, δ) guarantee, for symmetric noise on the integers.

    ``of[s]`` has one for each η = -reach, …, reach: the price of f(η) - e^ε·f(η + s) where that is
    above 0, in units of 2^-80. Beyond the reach it is the largest of them.

    Raises:
        ValueError: a multiplier below 0, tables of different or even length, or more prices than a
            bound is worth.
    """

    of: Mapping[int, tuple[int, ...]]

    def __post_init__(self) -> None:
        lengths = set(map(len, self.of.values()))
        if len(lengths) != 1 or min(lengths) % 2 == 0 or min(self.of) < 1:
            raise ValueError("multipliers need tables of one odd length, for steps of 1 or more")
        if min(map(min, self.of.values())) < 0:
            raise ValueError("a multiplier is below 0")
        # The bound looks at so many prices: a forged distance could be any number.
        if (self.reach + max(self.of)) * len(self.of) > MOST_PRICED:
            raise ValueError(f"multipliers of more than {MOST_PRICED:,} distances and noises")

    @property
    def reach(self) -> int:
        """The largest η of the tables."""
        return len(next(iter(self.of.values()))) // 2

    def lower_bound(self, epsilon: Fraction, delta: Fraction, power: int) -> Fraction:
        """No noise with the approximate guarantee for these steps has a smaller E|η|^``power``.

        For every symmetric pmf f, Σ_s Σ_η y_s(η)·(f(η) - e^ε·f(η + s)) ≤ δ·Σ_s max y_s. So with λ
        the least over k of |k|^p plus the mean price of k and -k, E|η|^p ≥ λ - δ·Σ_s max y_s. Noise
        that is not symmetric is no better than the mean of itself and its mirror image.
        """
        ratio = exp_bounds(epsilon)[1]
        caps = {step: max(prices) for step, prices in self.of.items()}
        cap, unit = sum(caps.values()), Fraction(1, 1 << MULTIPLIER_BITS)
        last = self.reach + max(self.of)
        # Twice the price at k, in units: that of k and that of -k.
        own, moved = [0] * (last + 1), [0] * (last + 1)
        for step, prices in self.of.items():
            for noise in range(-last - step, last + 1):
                inside = abs(noise) <= self.reach
                price = prices[noise + self.reach] if inside else caps[step]
                if abs(noise) <= last:
                    own[abs(noise)] += price
                if abs(noise + step) <= last:
                    moved[abs(noise + step)] += price
        # Beyond, every price is the largest, and the loss only grows.
        least = Fraction((last + 1) ** power) - (ratio - 1) * cap * unit
        for k in range(last + 1):
            times = 2 if k else 1
            loss = min(k, 1) if power == 0 else k**power
            least = min(least, loss + (own[k] - ratio * moved[k]) * unit / times)
        return max(Fraction(0), least - delta * cap * unit)
