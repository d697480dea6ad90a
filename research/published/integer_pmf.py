"""Pmfs over all integers, their exact δ, and the two theorems of Qin et al. as checks on them.

The noise of the literature (Laplace, staircase, exponential …) has no end, so an array cannot hold
it. Here a pmf is a window of exact masses and, beyond either end, nothing or a tail that repeats
itself scaled by a ratio. Every δ is then a finite sum and two geometric series, in exact rationals:
no truncation, no tolerance.

Published noise lives in a finite group (:mod:`release.exact.pmf`);
:mod:`research.published.clamping` clamps, truncates or wraps noise to bring it there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from release.exact.domain import Codes, Group
from release.exact.pmf import Pmf
from release.exact.privacy import Deltas
from release.exact.sampling import SYSTEM, RandomBytes, draw_noise


@dataclass(frozen=True)
class Tail:
    """Beyond the window masses repeat with ``period``, each time multiplied by ``ratio``.

    Raises:
        ValueError: a period below 1, or a ratio that is not in (0, 1).
    """

    period: int
    ratio: Fraction

    def __post_init__(self) -> None:
        if not (self.period >= 1 and 0 < self.ratio < 1):
            raise ValueError("a tail needs a period of 1 or more and a ratio between 0 and 1")

    @property
    def series(self) -> Fraction:
        """1 + ratio + ratio² + … to the end."""
        return 1 / (1 - self.ratio)


@dataclass(frozen=True)
class IntegerPmf:
    """An exact probability mass function over all integers.

    ``masses[i]`` is that of ``low + i``; beyond the window the masses are 0, or follow a tail that
    goes on from the last ``period`` masses of its end.

    Raises:
        ValueError: a negative mass, a window shorter than a tail's period, or a sum that is not 1.
    """

    low: int
    masses: tuple[Fraction, ...]
    left: Tail | None = None
    right: Tail | None = None

    def __post_init__(self) -> None:
        if min(self.masses, default=0) < 0:
            raise ValueError("a mass is negative")
        for tail in (self.left, self.right):
            if tail is not None and tail.period > len(self.masses):
                raise ValueError("a tail needs a window at least as long as its period")
        if _total(self.masses, self.left, self.right) != 1:
            raise ValueError("the masses do not add up to 1")

    @classmethod
    def of(
        cls,
        low: int,
        masses: Sequence[Fraction],
        left: Tail | None = None,
        right: Tail | None = None,
    ) -> IntegerPmf:
        """The pmf with masses in these proportions, scaled to 1 exactly."""
        total = _total(masses, left, right)
        return cls(low, tuple(mass / total for mass in masses), left, right)

    @property
    def high(self) -> int:
        """The last integer of the window."""
        return self.low + len(self.masses) - 1

    def mass(self, noise: int) -> Fraction:
        """The probability of one integer."""
        if self.low <= noise <= self.high:
            return self.masses[noise - self.low]
        outside = noise - self.high if noise > self.high else self.low - noise
        tail = self.right if noise > self.high else self.left
        if tail is None:
            return Fraction(0)
        times = -(-outside // tail.period)
        # ``inside`` is how far from its end of the window the mass lies that repeats here.
        inside = times * tail.period - outside
        return self.masses[-1 - inside if noise > self.high else inside] * tail.ratio**times

    def units(self, low: int, high: int, places: int) -> list[int]:
        """The masses of ``low`` to ``high`` in units of 2^-``places``, rounded down.

        Tails are followed step by step, each rounded down: a far mass may lack a unit for each
        period. Exact rationals that far out would have millions of digits.
        """
        inside = [int(mass * 2**places) for mass in self.masses]
        below, above = self.low - low, high - self.high
        for tail, missing, step in ((self.right, above, 1), (self.left, below, -1)):
            # The left end is extended in the mirror, so that both ends append.
            inside = inside[::step]
            for _ in range(missing):
                if tail is None:
                    inside.append(0)
                else:
                    before = inside[-tail.period]
                    inside.append(before * tail.ratio.numerator // tail.ratio.denominator)
            inside = inside[::step]
        return inside[max(0, -below) : len(inside) - max(0, -above)]

    def above(self, noise: int) -> Fraction:
        """The probability of all integers above ``noise``."""
        period, ratio = (self.right.period, self.right.ratio) if self.right else (1, Fraction(0))
        # From the last period of the window on all is periods, each ``ratio`` times the one before.
        start = max(noise + 1, self.high + 1 - period)
        inside = sum(map(self.mass, range(noise + 1, start)), Fraction(0))
        last = sum(map(self.mass, range(start, start + period)), Fraction(0))
        return inside + last / (1 - ratio)

    def below(self, noise: int) -> Fraction:
        """The probability of all integers below ``noise``."""
        return self._mirrored.above(-noise)

    @cached_property
    def _mirrored(self) -> IntegerPmf:
        return IntegerPmf(-self.high, self.masses[::-1], self.right, self.left)

    def to_pmf(self) -> Pmf:
        """The window as a pmf on Z_size, where element 0 stands for ``low``: to be drawn from.

        Raises:
            ValueError: the pmf has a tail, or a mass that is no multiple of a power of two.
        """
        total = max(2, math.lcm(*(mass.denominator for mass in self.masses)))
        if self.left or self.right or total & (total - 1):
            raise ValueError("a pmf to draw from has to end, with masses over a power of two")
        weights = [int(mass * total) for mass in self.masses]
        if len(weights) == 1:
            # A group has two elements or more.
            weights.append(0)
        return Pmf.of(Group((len(weights),)), weights)

    def _window(self, shift: int) -> Iterator[tuple[int, Fraction]]:
        """Every integer once up to repetition, with the weight of its repetitions beside its own.

        Beyond the window and ``shift``, p(k) and p(k + shift) are in one tail and fall together.
        """
        before = self.left.period if self.left else 1
        after = self.right.period if self.right else 1
        low, high = self.low - abs(shift), self.high + abs(shift)
        for noise in range(low - before, high + after + 1):
            tail = self.left if noise < low else self.right if noise > high else None
            yield noise, tail.series if tail is not None else Fraction(1)

    def deltas(self, most: int, ratio: Fraction) -> Deltas:
        """The exact δ of adding this noise, when neighbors differ by up to ``most`` either way.

        ``ratio`` stands for e^ε; one below it gives a δ that is too large, never too small.

        Raises:
            ValueError: ``most`` is negative.
        """
        _check_most(most)
        probabilistic = approximate = Fraction(0)
        for shift in range(-most, most + 1):
            heavy = light = Fraction(0)
            for noise, times in self._window(shift):
                here, there = self.mass(noise), self.mass(noise + shift)
                if here > ratio * there:
                    heavy += times * here
                    light += times * there
            probabilistic = max(probabilistic, heavy)
            approximate = max(approximate, heavy - ratio * light)
        return Deltas(probabilistic, approximate)


def _check_most(most: int) -> None:
    if most < 0:
        raise ValueError("answers cannot be fewer than 0 apart")


def _total(masses: Sequence[Fraction], below: Tail | None, above: Tail | None) -> Fraction:
    """The sum of the masses of a window and of the tails that follow them."""
    total = sum(masses, Fraction(0))
    # A tail repeats the period at its end ratio + ratio² + … times.
    if below is not None:
        total += (below.series - 1) * sum(masses[: below.period], Fraction(0))
    if above is not None:
        total += (above.series - 1) * sum(masses[-above.period :], Fraction(0))
    return total


def theorem_1(pmf: IntegerPmf, most: int) -> Fraction | None:
    """c_b = sup p(k - m₀)/p(k) over all k and |m₀| ≤ ``most``; None where there is none.

    The noise is ε-differentially private exactly if c_b exists, and then with ε = log c_b.

    Source: Qin et al. 2022, Theorem 1, (7) and (8); without c_b its condition (9) fails.

    Raises:
        ValueError: ``most`` is negative.
    """
    return _largest_ratio(pmf, most, None)


@dataclass(frozen=True)
class Theorem2:
    """An (ε, δ) by Theorem 2 of Qin et al.: ε = log of ``bound``, δ = the mass outside Θ₁."""

    bound: Fraction
    delta: Fraction


def theorem_2(pmf: IntegerPmf, most: int, inside: range) -> Theorem2 | None:
    """c_b over the noise ``inside`` (the set Θ₁), and the mass outside it as δ.

    Θ₁ is of the noise of x, in the numerator: p(θ) ≤ c_b·p(θ + m₀) for θ in Θ₁. The theorem's proof
    uses that in (42); with Θ₁ in the denominator, as (11) can also be read, uniform noise would
    satisfy (0, 0). None where some θ of Θ₁ can come from x only.

    Source: Qin et al. 2022, Theorem 2, (10) to (12).
    """
    bound = _largest_ratio(pmf, most, inside)
    if bound is None:
        return None
    return Theorem2(bound, 1 - sum(map(pmf.mass, inside), Fraction(0)))


def _largest_ratio(pmf: IntegerPmf, most: int, inside: range | None) -> Fraction | None:
    """The largest p(θ)/p(θ + m₀), at least 1; None where a denominator alone is 0."""
    _check_most(most)
    largest = Fraction(1)
    for shift in range(-most, most + 1):
        window = (noise for noise, _ in pmf._window(shift))
        for noise in window if inside is None else inside:
            here, there = pmf.mass(noise), pmf.mass(noise + shift)
            if here > largest * there:
                if there == 0:
                    return None
                largest = here / there
    return largest


def draw_on_line(noise: IntegerPmf, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent integers of a pmf that ends, each with exactly its probability.

    Raises:
        ValueError: the pmf has a tail, or a mass that is no multiple of a power of two.
    """
    return noise.low + draw_noise(noise.to_pmf(), count, source)
