"""The privacy profile of a mechanism, bounded from above on a grid of privacy losses.

A profile is δ as a function of ε over every pair of neighboring answers, in either order:
H(t) = max Σ max(0, P - t·Q) with t = e^ε. It is convex and falls. Because the pairs come in both
orders, H(t) = 1 - t + t·H(1/t): its values from ε = 0 on decide the others (docs/design/
mathematics.md, section 2.30).

Between two losses of the grid the chord lies above the curve, so the values stand for a pair of
distributions that dominates the mechanism (Zhu, Dong and Wang 2022, Proposition 8). Any larger
values do so too, whether or not they are convex.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise
from math import ceil

from release.exact.composition.distribution import UNIT, LossDistribution
from release.exact.numbers import MAX_EPSILON, common_denominator, exp_bounds

MOST_LOSSES = 2**14
"""The most losses of a profile; δ at the last one stands for all larger ones."""

MOST_COMPARED = 3 * 10**5
"""So many distinct pairs of masses are compared at every loss of a profile."""


@dataclass(frozen=True)
class Profile:
    """Upper bounds of δ at the losses 0, ``step``, 2·``step`` and so on.

    Attributes:
        step: distance of two losses of the grid, above 0 and at most 100.
        values: bounds of δ at these losses in units of ``1/UNIT``, at least one, never rising; the
            last one holds for all larger losses.

    Raises:
        ValueError: another step, no value, a value above 1, or one that rises.
    """

    step: Fraction
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < self.step <= MAX_EPSILON:
            raise ValueError(f"the step of a profile is above 0 and at most {MAX_EPSILON}")
        if not self.values or not 0 <= self.values[-1] <= self.values[0] <= UNIT:
            raise ValueError("a profile has values between 0 and 1")
        if any(value < after for value, after in pairwise(self.values)):
            raise ValueError("the values of a profile never rise")

    def shortened(self) -> Profile:
        """The profile without values that repeat the last one, and none beyond ε = 100.

        At most :data:`MOST_LOSSES` values are left. Each profile has one such form.
        """
        most = min(MOST_LOSSES, int(MAX_EPSILON / self.step) + 2, len(self.values))
        while most > 1 and self.values[most - 2] == self.values[most - 1]:
            most -= 1
        return Profile(self.step, self.values[:most])

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """Return an upper bound of δ at ``epsilon``, at least 0: that of the grid's loss below."""
        place = min(int(epsilon / self.step), len(self.values) - 1)
        return Fraction(self.values[place], UNIT)

    def distribution(self) -> LossDistribution:
        """Return the losses of the dominating pair, from the largest of the grid to its negative.

        Each mass is the bend of the curve at its loss, rounded up; a bend the other way counts as
        none, which only adds mass.
        """
        above, last = self.values[-1], len(self.values) - 1
        if last == 0:
            return LossDistribution(self.step, Fraction(0), (UNIT - above,), above)
        low, high = exp_bounds(self.step)
        below = 1 / high, 1 / low
        falls = [value - after for value, after in pairwise(self.values)]
        # After the last loss the curve is constant.
        falls.append(0)
        upper = []
        for place in range(last, 0, -1):
            bend = falls[place - 1] - below[0] * falls[place]
            upper.append(max(0, ceil(bend / (1 - below[1]))))
        # What is taken away is rounded down: its numerator, and the share by a larger denominator.
        beside = (1 + below[0]) * self.values[0] - 2 * below[1] * self.values[1]
        middle = UNIT - beside / (1 - below[0])
        lower = []
        factor = Fraction(1)
        # The exchanged pair has e^-l times the mass of the loss l at -l.
        for mass in reversed(upper):
            factor = _up(factor * below[1])
            lower.append(ceil(mass * factor))
        masses = (*upper, max(0, ceil(middle)), *lower)
        return LossDistribution(self.step, last * self.step, masses, above)

    @classmethod
    def of_charge(cls, epsilon: Fraction, delta: Fraction) -> Profile:
        """The profile of all that is (``epsilon``, ``delta``)-private: the worst case.

        Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3.
        """
        infinite = min(UNIT, ceil(delta * UNIT))
        if epsilon == 0:
            return cls(Fraction(1), (infinite,))
        low, high = exp_bounds(epsilon)
        at_zero = delta + (1 - delta) * (high - 1) / (low + 1)
        return cls(epsilon, (min(UNIT, max(infinite, ceil(at_zero * UNIT))), infinite))


def largest(profiles: Sequence[Profile]) -> Profile:
    """Return the pointwise maximum of profiles on one grid.

    Raises:
        ValueError: none, or different steps.
    """
    if len({profile.step for profile in profiles}) != 1:
        raise ValueError("the largest of profiles needs some, all on one grid")
    length = max(len(profile.values) for profile in profiles)
    curves = []
    for profile in profiles:
        # The last value of a profile holds for all larger losses.
        curves.append(profile.values + profile.values[-1:] * (length - len(profile.values)))
    return Profile(profiles[0].step, tuple(map(max, zip(*curves, strict=True))))


def pure_profile(epsilon: Fraction, step: Fraction) -> Profile:
    """Return the profile of all that is ``epsilon``-private: randomised response, on a grid.

    The curve is (E - t)/(E + 1) up to t = E = e^ε, and 0 beyond. Where ε is not on the grid, the
    chord to the next loss of the grid lies above it.

    Args:
        epsilon: at least 0; above 100 nothing is private.
        step: the grid's.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3 (docs/design/mathematics.md, T4).
    """
    if epsilon > MAX_EPSILON:
        return Profile(step, (UNIT,))
    highest = exp_bounds(epsilon)[1]
    values = []
    for place in range(MOST_LOSSES):
        if place * step >= epsilon:
            values.append(0)
            break
        # The value grows with E, so a bound of E above makes one of the value.
        share = (highest - ratio_below(step, place)) / (highest + 1)
        values.append(min(UNIT, ceil(share * UNIT)))
    return Profile(step, tuple(values))


def profile_of_points(points: Sequence[tuple[int, Fraction]], step: Fraction) -> Profile:
    """Return the profile that is known at some losses of the grid: chords, then a constant.

    A profile is convex in t = e^ε, so that a chord of it lies above it.

    Args:
        points: places of the grid, ascending from 0, and upper bounds of δ there, never rising.
        step: the grid's.
    """
    values = [min(UNIT, ceil(points[0][1] * UNIT))]
    for (start, above), (stop, under) in pairwise(points):
        near, far = exp_bounds(start * step), exp_bounds(stop * step)
        for place in range(start + 1, stop):
            # The share of the nearer end, rounded up; at most 1 where roundings meet.
            run = max(far[0] - near[1], Fraction(1, 10**60))
            share = min(Fraction(1), (far[1] - ratio_below(step, place)) / run)
            bound = ceil((under + share * (above - under)) * UNIT)
            values.append(min(values[-1], bound))
        values.append(min(values[-1], ceil(under * UNIT)))
    return Profile(step, tuple(values))


def profile_of_pairs(
    pairs: Iterable[tuple[Fraction, Fraction]], step: Fraction, most: int
) -> Profile:
    """As :func:`profile_of_weights`, from probabilities in place of weights."""
    masses = list(pairs)
    total = common_denominator(chain.from_iterable(masses))
    weights = []
    for heavy, light in masses:
        weights.append((int(heavy * total), int(light * total)))
    return profile_of_weights(weights, total, step, most)


def profile_of_weights(
    pairs: Iterable[tuple[int, int]], total: int, step: Fraction, most: int
) -> Profile:
    """Return the profile of one pair of distributions, which have P's and Q's mass of each outcome.

    ``pairs`` may join outcomes with the same ratio. At most ``most`` + 1 losses are kept; δ at the
    last one stands for all larger ones. The profile is that of both orders, so the caller passes
    one order only where the other has the same curve.

    Args:
        pairs: (P, Q) of each outcome in units of 1/``total``; they need not add up to it.
        total: the unit, at least 1.
        step: the grid's.
        most: the largest place of the grid.
    """
    ranked = _ranked(pairs)
    totals = [(0, 0)]
    for heavy, light in ranked:
        totals.append((totals[-1][0] + heavy, totals[-1][1] + light))
    values: list[int] = []
    reached = len(ranked)
    for place in range(most + 1):
        if place * step > MAX_EPSILON:
            break
        ratio = ratio_below(step, place)
        numerator, denominator = ratio.numerator, ratio.denominator
        # The outcomes with P > ratio·Q lie first; their number falls as the ratio grows.
        while reached and (
            ranked[reached - 1][0] * denominator <= numerator * ranked[reached - 1][1]
        ):
            reached -= 1
        heavy, light = totals[reached]
        excess = (heavy * denominator - numerator * light) * UNIT
        values.append(min(UNIT, -(-excess // (denominator * total))))
        if not reached or ranked[reached - 1][1] == 0:
            break
    return Profile(step, tuple(values))


def _ranked(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs with P > 0 by falling P/Q, exactly."""
    positive = [pair for pair in pairs if pair[0] > 0]
    # Two ratios differ by at least one over the product of their denominators, so that they differ
    # by 1 or more after this shift: whole numbers compare them.
    shift = 2 * max((mass for _, mass in positive), default=0).bit_length()

    def falling(pair: tuple[int, int]) -> tuple[bool, int]:
        heavy, light = pair
        return (light == 0, heavy if light == 0 else (heavy << shift) // light)

    return sorted(positive, key=falling, reverse=True)


@lru_cache(maxsize=2**15)
def ratio_below(step: Fraction, place: int) -> Fraction:
    """The rational below e^(``step``·``place``) that stands for it in profiles."""
    return exp_bounds(step * place)[0]


def profile_of_distribution(losses: LossDistribution, step: Fraction) -> Profile:
    """Return the profile that a distribution of losses stands for, on the grid of ``step``.

    The distribution stands for both orders already. Its losses have to lie on the grid.

    Raises:
        ValueError: they do not.
    """
    if losses.step != step or (losses.highest / step).denominator != 1:
        raise ValueError("the losses do not lie on the grid")
    below = 1 / exp_bounds(step)[1]
    falling = [min(UNIT, losses.infinite)]
    total, weighted = 0, 0
    scale = 10**40
    factor = int(below * scale)
    for place in range(int(losses.highest / step)):
        mass = losses.masses[place] if place < len(losses.masses) else 0
        total += mass
        weighted = (weighted + mass) * factor // scale
        # δ one loss further down: every mass above counts with 1 - e^-(its distance).
        falling.append(min(UNIT, losses.infinite + total - weighted))
    return Profile(step, tuple(reversed(falling)))


_DIGITS = 10**45


def _up(value: Fraction) -> Fraction:
    """The value rounded up to 45 decimals, so that its digits do not grow."""
    return Fraction(ceil(value * _DIGITS), _DIGITS)
