"""Noise on the integers: an exact pmf with a finite window and geometric tails.

The window is a list of runs of equal integer weights over a power of two. Beyond an end the pmf is
0, or a tail repeats the last ``period`` masses of that end, each time multiplied by a ratio k/2^64.
So a file of a few hundred bytes holds noise of any width, every δ is a finite sum and a geometric
series in exact rationals, and what is drawn is the pmf of the file, to the last bit.

With a tail, a weight of the last period stands for its integer and all the repetitions together:
drawing takes one integer for the weight and, independently, a geometric number of repetitions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.numbers import least_enough, squares_to, sum_to
from release.exact.privacy import Deltas
from release.exact.sampling import SYSTEM, RandomBytes, draw_geometric, random_below_power

Run: TypeAlias = tuple[int, int]
"""How many integers in a row have the same weight, and that weight."""

RATIO_BITS = 64
RATIO_ONE = 1 << RATIO_BITS
"""The ratios of tails are multiples of 1/RATIO_ONE."""

MOST_BITS = 62

_PLACES = 512

# The decimal module rounds alike everywhere; a float's power or logarithm hangs on the platform.
DIGITS = Context(prec=60)

MOST_PERIODS = 256
"""Over so many periods δ is computed exactly."""

REACH = 1 << 62
"""Noise beyond ± this is published as ± this: nothing wraps round."""


@dataclass(frozen=True)
class Tail:
    """Beyond the window masses repeat with ``period``, each time times ``ratio`` / 2^64.

    Raises:
        ValueError: a period below 1, or a ratio that is not between 0 and 1.
    """

    period: int
    ratio: int

    def __post_init__(self) -> None:
        if not (self.period >= 1 and 0 < self.ratio < RATIO_ONE):
            raise ValueError("a tail needs a period of 1 or more and a ratio between 0 and 1")

    def law(self) -> forms.Tail:
        """The tail as a release has it."""
        return forms.Tail(self.period, self.ratio)

    @property
    def fraction(self) -> Fraction:
        """The ratio."""
        return Fraction(self.ratio, RATIO_ONE)

    @property
    def rest(self) -> float:
        """1 less the ratio, rounded once: near 1 a rounded ratio has no digits left."""
        return (RATIO_ONE - self.ratio) / RATIO_ONE

    @property
    def log(self) -> float:
        """The natural logarithm of the ratio."""
        # From the side on which no digits are lost.
        is_small = 2 * self.ratio < RATIO_ONE
        return math.log(self.ratio / RATIO_ONE) if is_small else math.log1p(-self.rest)


@dataclass(frozen=True)
class IntegerNoise:
    """A pmf on the integers; ``runs`` begin at the integer ``low``.

    Raises:
        ValueError: a weight below 0, a sum that is no power of two up to 2^62, a tail longer than
            the window, or one that begins on the other side of 0.
    """

    low: int
    runs: tuple[Run, ...]
    left: Tail | None = None
    right: Tail | None = None

    def __post_init__(self) -> None:
        if not _are_runs(self.runs):
            raise ValueError("noise needs runs of 1 or more integers with weights of 0 or more")
        total = self.total
        # A uniform number below a power of two is so many random bits: drawing rejects nothing, and
        # its time and bits reveal no noise.
        if not 2 <= total <= 2**MOST_BITS or total & (total - 1):
            raise ValueError("the weights do not add up to a power of two of at most 2^62")
        before = self.left.period if self.left else 0
        after = self.right.period if self.right else 0
        if before + after > self.high - self.low + 1:
            raise ValueError("the window is shorter than the periods of its tails")
        # Moments are added up on either side of 0 by itself, so each tail has to lie on its own
        # side; 0 itself may belong to either.
        if (before and self.low + before > 1) or (after and self.high - after < -1):
            raise ValueError("a tail begins on the other side of 0")
        if max(abs(self.low), abs(self.high)) > REACH:
            raise ValueError("the window reaches beyond ±2^62")

    @classmethod
    def symmetric(cls, half: Sequence[Run], tail: Tail | None = None) -> IntegerNoise:
        """The noise whose weights at 0, 1, 2, … are the runs ``half``, and mirrored below 0."""
        (length, weight), *rest = half
        # A run of no integers is joined with the 0 beside it.
        right = [(length - 1, weight), *rest]
        runs = merged([*right[::-1], (1, weight), *right])
        return cls(1 - width_of(half), runs, tail, tail)

    @classmethod
    def of_law(cls, law: forms.Noise) -> IntegerNoise:
        """The noise that a release has.

        Raises:
            ValueError, OverflowError: the integers are no noise.
        """
        # Strict: of two lists of different lengths the longer one would be cut in silence.
        runs = tuple(zip(law.lengths, law.weights, strict=True))
        left = None if law.left is None else Tail(law.left.period, law.left.ratio)
        right = None if law.right is None else Tail(law.right.period, law.right.ratio)
        return cls(law.low, runs, left, right)

    def law(self) -> forms.Noise:
        """The noise as a release has it."""
        lengths, weights = zip(*merged(self.runs), strict=True)
        left = None if self.left is None else self.left.law()
        right = None if self.right is None else self.right.law()
        return forms.Noise(self.low, list(lengths), list(weights), left, right)

    @cached_property
    def total(self) -> int:
        """The sum of all weights, a power of two."""
        return sum(length * weight for length, weight in self.runs)

    @cached_property
    def high(self) -> int:
        """The last integer of the window."""
        return self.low + width_of(self.runs) - 1

    @property
    def right_start(self) -> int:
        """Where the period begins that the right tail repeats; without a tail, after the window."""
        stop = self.high + 1
        return stop - self.right.period if self.right else stop

    @property
    def is_symmetric(self) -> bool:
        """Whether η and -η always have the same mass."""
        return self.low == -self.high and self.runs == self.runs[::-1] and self.left == self.right

    @cached_property
    def mirrored(self) -> IntegerNoise:
        """The noise with the other sign."""
        return IntegerNoise(-self.high, self.runs[::-1], self.right, self.left)

    @cached_property
    def _pieces(self) -> tuple[tuple[int, int, Fraction], ...]:
        """First integer, length and mass of each stretch of equal masses in the window."""
        before, after = 1 - self.mirrored.right_start, self.right_start
        pieces, start = [], self.low
        for length, weight in self.runs:
            stop = start + length
            # Cut where a tail's period begins or ends, if that is inside of the run.
            bounds = {start, stop}
            for cut in (before, after):
                bounds.add(min(max(cut, start), stop))
            for first, last in pairwise(sorted(bounds)):
                mass = Fraction(weight, self.total)
                # The weight of a last period is that of all its repetitions together.
                if first < before and self.left:
                    mass *= 1 - self.left.fraction
                elif first >= after and self.right:
                    mass *= 1 - self.right.fraction
                pieces.append((first, last - first, mass))
            start = stop
        return tuple(pieces)

    @cached_property
    def _firsts(self) -> tuple[int, ...]:
        return tuple(first for first, _, _ in self._pieces)

    def mass(self, noise: int) -> Fraction:
        """The probability of one integer."""
        if noise < self.low:
            return self.mirrored.mass(-noise)
        times = 0
        if noise > self.high:
            if self.right is None:
                return Fraction(0)
            times = -(-(noise - self.high) // self.right.period)
            noise -= times * self.right.period
        mass = self._pieces[bisect_right(self._firsts, noise) - 1][2]
        return mass * self.right.fraction**times if times and self.right else mass

    def moment(self, power: int) -> Fraction:
        """E|η|^``power``, exactly, for powers 0 to 2; that of 0 is the chance of an error."""
        return self._right_moment(power) + self.mirrored._right_moment(power)

    @cached_property
    def mean(self) -> float:
        """E η; 0 of symmetric noise."""
        return float(self._right_moment(1) - self.mirrored._right_moment(1))

    def _right_moment(self, power: int) -> Fraction:
        """The part of :meth:`moment` above 0, and the repetitions of 0 itself to the right."""
        moment = Fraction(0)
        tail = self.right
        if tail is not None and self.high < tail.period:
            # The last period holds the integer 0.
            ratio, period = tail.fraction, tail.period
            square = period**2 * ratio * (1 + ratio) / (1 - ratio) ** 2
            # mass(0)/(1 - ratio) is that of 0 and all its repetitions.
            moment += (
                self.mass(0) / (1 - ratio) * (ratio, period * ratio / (1 - ratio), square)[power]
            )
        start = self.right_start
        for first, length, mass in self._pieces:
            low, high = max(first, 1), first + length - 1
            if low > high:
                continue
            count, ones = high - low + 1, sum_to(high) - sum_to(low - 1)
            squares = Fraction(squares_to(high) - squares_to(low - 1))
            sums = (Fraction(count), Fraction(ones), squares)
            if tail is None or first < start:
                moment += mass * sums[power]
                continue
            # With G repetitions an integer j becomes j + G·period, and G is geometric.
            ratio, period = tail.fraction, tail.period
            mean = period * ratio / (1 - ratio)
            square = period**2 * ratio * (1 + ratio) / (1 - ratio) ** 2
            of_sums = (count, ones + count * mean, squares + 2 * mean * ones + count * square)
            moment += mass / (1 - ratio) * of_sums[power]
        return moment

    def above(self, noise: int) -> float:
        """The probability of all integers above ``noise``, rounded."""
        if noise < self.low:
            return 1.0 - self.mirrored.above(-noise - 1)
        tail, chance = self.right, 0.0
        start = self.right_start
        # An integer j of the last period exceeds ``noise`` from its repetition t or t + 1 on.
        times, more = divmod(max(0, noise + 1 - start), tail.period) if tail else (0, 0)
        for first, length, mass in self._pieces:
            if tail and first >= start:
                ratio, rest = float(tail.fraction), tail.rest
                late = max(0, min(start + more - first, length))
                repeated = (length - late + late * ratio) * math.exp(tail.log * times)
                chance += float(mass) / rest * repeated
            else:
                chance += float(mass) * max(0, min(first + length - 1 - noise, length))
        return chance

    def above_in_digits(self, noise: int) -> Decimal:
        """As :meth:`above`, to about 60 digits, and the same on every machine."""
        if noise < self.low:
            return DIGITS.subtract(Decimal(1), self.mirrored.above_in_digits(-noise - 1))
        tail, chance = self.right, Decimal(0)
        start = self.right_start
        # As in ``above``.
        times, more = divmod(max(0, noise + 1 - start), tail.period) if tail else (0, 0)
        faded = DIGITS.power(_in_digits(tail.fraction), times) if tail else Decimal(1)
        for first, length, mass in self._pieces:
            if tail and first >= start:
                late = max(0, min(start + more - first, length))
                repeated = (length - late + late * tail.fraction) * mass / (1 - tail.fraction)
                part = DIGITS.multiply(_in_digits(repeated), faded)
            else:
                part = _in_digits(mass * max(0, min(first + length - 1 - noise, length)))
            chance = DIGITS.add(chance, part)
        return chance

    def radius(self, level: float) -> int:
        """The least r for which the noise is within ±r with chance ``level`` or more, rounded."""
        return least_enough(lambda r: self.above(r) + self.mirrored.above(r) <= 1 - level)

    def is_unimodal(self) -> bool:
        """Whether masses rise up to some integer and fall from there, tails included."""
        before = self.left.period if self.left else 0
        after = self.right.period if self.right else 0
        # Beyond a whole period each mass repeats one of them, smaller in one proportion.
        masses = [mass for _, mass in self._stretches(self.low - before, self.high + after)]
        peak = masses.index(max(masses))
        rising, falling = masses[: peak + 1], masses[peak:]
        return rising == sorted(rising) and falling == sorted(falling, reverse=True)

    def deltas(self, steps: Iterable[int], ratio: Fraction) -> Deltas:
        """The exact δ where neighbors differ by one of ``steps``, each at least 1, either way.

        ``ratio`` stands for e^ε; one below it gives a δ that is too large, never too small. Of
        unimodal noise the largest step has the largest δ (docs/design/mathematics.md 1.5).
        """
        largest = max(steps, default=0)
        tried = [largest] if self.is_unimodal() else sorted(set(steps))
        if self._is_pure_by_groups(largest, ratio):
            return Deltas(Fraction(0), Fraction(0))
        for tail in (self.left, self.right):
            # Masses so many periods out have very many digits; 1 is never too small.
            if tail and largest > MOST_PERIODS * tail.period:
                return Deltas(Fraction(1), Fraction(1))
        probabilistic = approximate = Fraction(0)
        for step in tried:
            for noise in (self,) if self.is_symmetric else (self, self.mirrored):
                heavy, light = noise._violated(step, ratio)
                probabilistic = max(probabilistic, heavy)
                approximate = max(approximate, heavy - ratio * light)
        return Deltas(probabilistic, approximate)

    def _is_pure_by_groups(self, largest: int, ratio: Fraction) -> bool:
        """Whether one period after the other leads ``largest`` far within ``ratio`` in all.

        A short cut: over many periods the exact masses would have very many digits.
        """
        tail = self.right
        if tail is None or tail != self.left or largest <= tail.period or not self.is_unimodal():
            return False
        least = self._least_share(tail.period)
        # Rounded down after every factor, so that the product is never overstated.
        unit = 1 << _PLACES
        share = int(least * unit)
        product = unit
        # The power by repeated squaring, from the leading binary digit of the number of periods.
        for digit in bin(-(-largest // tail.period))[2:]:
            product = product * product >> _PLACES
            product = product * share >> _PLACES if digit == "1" else product
        return product * ratio.numerator >= unit * ratio.denominator

    def _least_share(self, step: int) -> Fraction:
        """The least f(η ± ``step``)/f(η) of all integers η with a mass."""
        least = Fraction(1)
        for noise in (self,) if self.is_symmetric else (self, self.mirrored):
            for _, here, there, _ in noise._beside(step):
                if here:
                    least = min(least, there / here)
        return least

    def loss_by_groups(self, largest: int) -> Fraction | None:
        """An upper bound of the privacy loss at distances up to ``largest``; None without one.

        One period of the tails after the other: exact where the noise is geometric. Between two
        integers a period apart unimodal noise is never below both.
        """
        tail = self.right
        if tail is None or tail != self.left or not self.is_unimodal():
            return None
        least = self._least_share(tail.period)
        if not least:
            return None
        quotient = Context(prec=100, rounding=ROUND_CEILING).divide(
            Decimal(least.denominator), Decimal(least.numerator)
        )
        context = Context(prec=50)
        # ``ln`` rounds correctly, so that the next number of 50 digits is no less.
        loss = Fraction(context.next_plus(context.ln(quotient)))
        return -(-largest // tail.period) * loss

    def pairs(self, step: int) -> list[tuple[Fraction, Fraction]]:
        """Σ f(η) and Σ f(η + ``step``) over the η of each stretch; together all integers."""
        joined = []
        for length, here, there, times in self._beside(step):
            joined.append((length * times * here, length * times * there))
        return joined

    def _violated(self, step: int, ratio: Fraction) -> tuple[Fraction, Fraction]:
        """Σ f(η) and Σ f(η + ``step``) over the η with f(η) > ``ratio``·f(η + ``step``)."""
        heavy = light = Fraction(0)
        for length, here, there, times in self._beside(step):
            if here > ratio * there:
                heavy += length * times * here
                light += length * times * there
        return heavy, light

    def _beside(self, step: int) -> Iterator[tuple[int, Fraction, Fraction, Fraction]]:
        """Stretches where f(η) and f(η + ``step``) are constant: length, both, repetitions.

        Together they stand for all integers; beyond the window both fall by the same ratio.
        """
        left, right = self.left, self.right
        before, after = left.period if left else 1, right.period if right else 1
        # Below ``low - step`` and above ``high`` both integers lie in one tail.
        low, high = self.low - step - before, self.high + after
        pieces = self._stretches(low, high + step)
        bounds, masses = zip(*pieces, strict=True)
        cuts = {high + 1}
        for bound in bounds:
            # f(η) changes at the bound, and f(η + step) a step before it.
            for cut in (bound, bound - step):
                if low <= cut <= high:
                    cuts.add(cut)
        here = there = 0
        for first, following in pairwise(sorted(cuts)):
            while here + 1 < len(bounds) and bounds[here + 1] <= first:
                here += 1
            while there + 1 < len(bounds) and bounds[there + 1] <= first + step:
                there += 1
            times = Fraction(1)
            if first < low + before and left:
                times = 1 / (1 - left.fraction)
            elif first > self.high and right:
                times = 1 / (1 - right.fraction)
            yield following - first, masses[here], masses[there], times

    def _stretches(self, low: int, high: int) -> list[tuple[int, Fraction]]:
        """Where each stretch of equal masses from ``low`` to ``high`` begins, with its mass."""
        stretches = []
        for first, length, mass in reversed(list(_beyond(self.mirrored, -low))):
            # Mirrored, a stretch begins where its last integer was.
            stretches.append((1 - first - length, mass))
        for first, _, mass in chain(self._pieces, _beyond(self, high)):
            stretches.append((first, mass))
        return stretches

    def probabilities(self, count: int) -> NDArray[np.float64]:
        """The masses of 0, 1, …, ``count`` - 1, rounded; those below 0 are of :attr:`mirrored`."""
        masses = np.zeros(count)
        for first, length, mass in self._pieces:
            # To round a mass takes longer than to see that it is outside.
            if first < count and first + length > 0:
                masses[max(first, 0) : first + length] = float(mass)
        if self.right is None or count <= self.high + 1:
            return masses
        period, log = self.right.period, self.right.log
        base = np.zeros(period)
        for first, length, mass in self._pieces:
            place = first - self.right_start
            if place >= 0:
                base[place : place + length] = float(mass)
        # A right tail begins at 0 or later, so that the window reaches 0.
        outside = self.high + 1
        beyond = np.arange(count - outside)
        masses[outside:] = base[beyond % period] * np.exp(log * (beyond // period + 1))
        return masses

    @cached_property
    def _bounds(self) -> NDArray[np.uint64]:
        masses = [length * weight for length, weight in self.runs]
        return np.array(list(accumulate(masses)), dtype=np.uint64)

    def draw(self, count: int, source: RandomBytes = SYSTEM) -> Codes:
        """``count`` independent integers, each with exactly its probability, within ±2^62.

        Each takes as many bits as any other, so that their number reveals no noise.
        """
        uniform = random_below_power(self.total.bit_length() - 1, count, source)
        run = np.searchsorted(self._bounds, uniform, side="right")
        lengths, weights = zip(*self.runs, strict=True)
        # A run of weight 0 is never drawn: 1 in its place only keeps the division defined.
        divisors = np.maximum(np.array(weights, dtype=np.uint64), np.uint64(1))
        # In integers of any length: a run of zeros may be longer than 64 bits hold.
        stops = accumulate(lengths[:-1], initial=self.low)
        firsts = np.array(list(stops), dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.uint64), self._bounds[:-1]])
        within = (uniform - starts[run]) // divisors[run]
        noise = firsts[run] + within.astype(np.int64)
        # The periods of the two tails have no integer in common, so nothing is lengthened twice.
        if self.right is not None:
            noise = _lengthened(noise, self.right_start, self.right, source)
        if self.left is not None:
            noise = -_lengthened(-noise, self.mirrored.right_start, self.left, source)
        return np.asarray(noise, dtype=np.int64)


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs with neighbors of one weight joined: each noise has one form only."""
    joined: list[Run] = []
    for length, weight in runs:
        if joined and joined[-1][1] == weight:
            joined[-1] = (joined[-1][0] + length, weight)
        else:
            joined.append((length, weight))
    return tuple(joined)


def _in_digits(number: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))


def _are_runs(runs: Sequence[Run]) -> bool:
    """Whether there are runs, each of 1 or more integers and of a weight of 0 or more."""
    for length, weight in runs:
        if length < 1 or weight < 0:
            return False
    return bool(runs)


def width_of(runs: Sequence[Run]) -> int:
    """The number of integers in all runs."""
    return sum(length for length, _ in runs)


def _beyond(noise: IntegerNoise, high: int) -> Iterator[tuple[int, int, Fraction]]:
    """First integer, length and mass of the stretches above the window, as far as ``high``."""
    first = noise.high + 1
    if noise.right is None:
        if first <= high:
            yield first, high - first + 1, Fraction(0)
        return
    start, ratio = noise.right_start, noise.right.fraction
    block = [piece for piece in noise._pieces if piece[0] >= start]
    times, scale = 1, ratio
    while start + times * noise.right.period <= high:
        for place, length, mass in block:
            yield place + times * noise.right.period, length, mass * scale
        times, scale = times + 1, scale * ratio


def _lengthened(noise: Codes, start: int, tail: Tail, source: RandomBytes) -> Codes:
    """``noise`` with a geometric number of periods added from ``start`` on, at most 2^62."""
    times = draw_geometric(tail.ratio, noise.size, source)
    # NumPy's integers wrap round silently: the periods are bounded before they are multiplied, and
    # a number below 0 counts as 0, because 2^62 less the least one is 2^63.
    most = (REACH - np.maximum(noise, 0)) // tail.period
    far = np.where(times > most, REACH, noise + np.minimum(times, most) * tail.period)
    return np.where(noise >= start, far, noise)
