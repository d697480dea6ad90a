"""Privacy losses: profiles on a grid, their composition, and moments.

A profile has upper bounds of δ at the losses 0, h, 2h, … (Zhu, Dong and Wang 2022). All is in
integers in units of 10^-28, rounded up, so that no float decides what is proved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import ceil, isqrt
from typing import TypeAlias

from dp_release_verify.canonical import SCALE, above_e, below_e

PARTS = 10**28
LONGEST = 2**14
LARGEST_LOSS = 100
SHORTEST_STEP = Fraction(1, 10**30)
"""Shorter steps are below what the bounds of e^ε can tell apart."""

_SMALL = 10**6
MOST_COMPOSED = 2**16

Profile: TypeAlias = list[int]
"""Upper bounds of δ at the losses 0, h, 2h, …; the last repeats for ever."""


class Pairs:
    """How often each pair of masses (p, q) occurs among the outcomes of two laws P and Q."""

    def __init__(self, of: Mapping[tuple[int, int], int], total: int) -> None:
        self.total = total
        self._of = of
        self._pairs = [pair for pair in of if pair[0] > 0]
        # Floats would tie ratios that differ; a ratio to more bits than two masses have does not.
        width = max((max(pair).bit_length() for pair in self._pairs), default=1) * 2 + 2
        infinite = 1 << (2 * width)
        ratios = {(p, q): (p << width) // q if q else infinite for p, q in self._pairs}
        self._pairs.sort(key=lambda pair: ratios[pair], reverse=True)
        self._above = [0, *accumulate(p * of[p, q] for p, q in self._pairs)]
        self._below = [0, *accumulate(q * of[p, q] for p, q in self._pairs)]

    @cached_property
    def key(self) -> frozenset[tuple[tuple[int, int], int]]:
        """What its profile depends on, beside the total."""
        return frozenset(self._of.items())

    def _count(self, ratio: int) -> int:
        """How many of the pairs have p > ratio · q, with the ratio over 10^40."""
        return bisect_left(self._pairs, True, key=lambda pair: pair[0] * SCALE <= ratio * pair[1])

    def excess(self, ratio: int) -> int:
        """Σ max(0, p − ratio·q), times 10^40 · total: the δ of ``approximate``."""
        place = self._count(ratio)
        return self._above[place] * SCALE - ratio * self._below[place]

    def mass_above(self, ratio: int) -> int:
        """Σ p where p > ratio·q, times total: the δ of ``probabilistic``."""
        return self._above[self._count(ratio)]

    @property
    def has_infinite(self) -> bool:
        """Whether some outcome of P is impossible under Q."""
        return bool(self._pairs) and self._pairs[0][1] == 0

    @cached_property
    def largest(self) -> tuple[int, int]:
        """The pair with the largest finite ratio."""
        return next((pair for pair in self._pairs if pair[1]), (0, 1))

    def profile(self, step: Fraction) -> Profile:
        """The δ at each loss, up to the first from which it does not change."""
        most = min(LONGEST, int(LARGEST_LOSS / step) + 1)
        values: Profile = []
        ratio = -1
        p, q = self.largest
        while len(values) < most and p * SCALE > ratio * q:
            ratio = below_e(len(values) * step)
            delta = -(-PARTS * self.excess(ratio) // (SCALE * self.total))
            values.append(min(PARTS, delta))
        return values or [0]


def worst_case(
    epsilon: Fraction, delta: Fraction, step: Fraction, *, in_range: bool = False
) -> Profile:
    """The profile of any mechanism with this ε and δ (Kairouz, Oh and Viswanath 2017).

    ``in_range`` is of one whose losses lie within an interval of length ε (Dong, Durfee and Rogers
    2020, the exponential mechanism).
    """
    if epsilon > LARGEST_LOSS:
        return [PARTS]
    top, under = above_e(epsilon), below_e(epsilon)
    values: Profile = []
    while len(values) < LONGEST and len(values) * step < epsilon:
        loss = len(values) * step
        share = Fraction(top - below_e(loss), top + SCALE)
        if in_range and under > SCALE:
            root = 1 - Fraction(SCALE, above_e((epsilon - loss) / 2))
            share = min(share, root**2 / (1 - Fraction(SCALE, under)))
        values.append(min(PARTS, ceil(PARTS * (delta + (1 - delta) * share))))
    values.append(ceil(PARTS * delta))
    return largest([values], step)


def largest(profiles: list[Profile], step: Fraction) -> Profile:
    """The largest value at each loss, without repetitions at the end."""
    length = max(len(values) for values in profiles)
    most = min(LONGEST, int(LARGEST_LOSS / step) + 2, length)
    values = []
    for place in range(most):
        values.append(max(each[min(place, len(each) - 1)] for each in profiles))
    while len(values) > 1 and values[-1] == values[-2]:
        values.pop()
    return values


def rough_profile(delta: Callable[[Fraction], Fraction], step: Fraction) -> Profile:
    """The profile of a law whose δ is known at any ε, from few of these, joined by chords.

    δ is convex in e^loss, so a chord between two losses lies above it.
    """
    places, found = [0, 1], [delta(Fraction(0)), delta(step)]
    most = min(LONGEST - 1, int(LARGEST_LOSS / step))
    while found[-1] > 0 and 4 * places[-1] <= most:
        places.append(4 * places[-1])
        found.append(delta(places[-1] * step))
    values: Profile = []
    for (a, x), (b, y) in pairwise(zip(places, found, strict=True)):
        for place in range(a, b):
            share = Fraction(1)
            spread = below_e(b * step) - above_e(a * step)
            if spread > 0:
                share = Fraction(above_e(b * step) - below_e(place * step), spread)
            value = ceil(PARTS * (y + min(Fraction(1), share) * (x - y)))
            # Where bounds of e^ε lie on the wrong sides, the value before is one too.
            values.append(min([PARTS, value, *values[-1:]]))
    values.append(min(PARTS, ceil(PARTS * found[-1])))
    return largest([values], step)


@dataclass(frozen=True)
class Losses:
    """A law of privacy losses: masses at low·h, (low + 1)·h, …, and at an infinite loss."""

    step: Fraction
    low: int
    masses: list[int]
    infinite: int

    @classmethod
    def of(cls, values: Profile, step: Fraction) -> Losses:
        """The law whose profile joins the values by chords."""
        if len(values) == 1:
            return cls(step, 0, [PARTS - values[0]], values[0])
        b, c = Fraction(SCALE, above_e(step)), Fraction(SCALE, below_e(step))
        falls = [before - after for before, after in pairwise(values)]
        upper, lower, fallen = [], [], Fraction(1)
        for fall, after in pairwise([*falls, 0]):
            mass = max(0, ceil((fall - b * after) / (1 - c)))
            fallen = Fraction(ceil(10**45 * fallen * c), 10**45)
            upper.append(mass)
            lower.append(ceil(mass * fallen))
        middle = ceil(PARTS - ((1 + b) * values[0] - 2 * c * values[1]) / (1 - b))
        masses = [*reversed(lower), max(0, middle), *upper]
        return cls(step, 1 - len(values), masses, values[-1])

    def with_another(self, other: Losses) -> Losses:
        """Both together; small masses at the ends go to the infinite loss, and to the least."""
        masses = _products(self.masses, other.masses)
        whole = sum(other.masses) + other.infinite
        lost = self.infinite * whole + other.infinite * sum(self.masses)
        top = bottom = first = 0
        while len(masses) > 1 and top + masses[-1] <= _SMALL:
            top += masses.pop()
        while first < len(masses) - 1 and bottom + masses[first] <= _SMALL:
            bottom += masses[first]
            first += 1
        masses[first] += bottom
        infinite = -(-lost // PARTS) + top
        return Losses(self.step, self.low + other.low + first, masses[first:], infinite)

    def coarser(self, factor: int) -> Losses:
        """The same on a grid whose steps are so many times as long.

        A mass between two losses of the new grid is divided among both, so that neither the whole
        nor the mean of e^loss is less.
        """
        wide = factor * self.step
        above, under = above_e(wide) - SCALE, below_e(wide) - SCALE
        masses: Counter[int] = Counter()
        for place, mass in enumerate(self.masses, self.low):
            upper = -(-place // factor)
            gap = (upper * factor - place) * self.step
            stays = 1 - Fraction(below_e(gap) - SCALE, above)
            falls = min(Fraction(1), Fraction(above_e(gap) - SCALE, under))
            masses[upper] += ceil(mass * stays)
            if gap:
                masses[upper - 1] += ceil(mass * falls)
        low = min(masses)
        filled = [masses[place] for place in range(low, max(masses) + 1)]
        return Losses(wide, low, filled, self.infinite)

    def repeated(self, times: int) -> Losses:
        """So many of these together."""
        if times == 1:
            return self
        half = self.repeated(times // 2)
        both = half.with_another(half)
        return both.with_another(self) if times % 2 else both

    def profile(self) -> Profile:
        """The δ at the losses 0, h, 2h, …."""
        top = self.low + len(self.masses) - 1
        values = [self.infinite]
        above = fallen = 0
        falls = SCALE * SCALE // above_e(self.step)
        for place in range(top, 0, -1):
            mass = self.masses[place - self.low] if place >= self.low else 0
            above += mass
            fallen = (fallen + mass) * falls // SCALE
            values.append(min(PARTS, self.infinite + above - fallen))
        return largest([values[::-1]], self.step)

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """A bound of δ at one ε."""
        first = max(self.low, int(epsilon // self.step) + 1)
        delta = Fraction(self.infinite + sum(self.masses[first - self.low :]))
        nearest = first * self.step - epsilon
        if nearest > LARGEST_LOSS:
            return delta / PARTS
        # Of losses up to 100 above ε a part falls away: their sum by Horner, in units of 10^-40.
        end = int((epsilon + LARGEST_LOSS) // self.step) + 1
        falls = SCALE * SCALE // above_e(self.step)
        fallen = 0
        for mass in reversed(self.masses[first - self.low : max(0, end - self.low)]):
            fallen = fallen * falls // SCALE + mass * SCALE
        return (delta - Fraction(fallen, above_e(nearest))) / PARTS

    def moment(self, order: int) -> tuple[Fraction, Fraction]:
        """Upper bounds of E exp((order − 1)·loss), and of the probability that it leaves out."""
        moment = 0
        cut = self.infinite + max(0, self.infinite + sum(self.masses) - PARTS)
        for place, mass in enumerate(self.masses, self.low):
            loss = place * self.step
            if loss > LARGEST_LOSS:
                cut += mass
                continue
            far = (order - 1) * abs(loss)
            above, under = (above_e(far), SCALE) if loss > 0 else (SCALE, below_e(far))
            moment += -(-mass * SCALE * above // under)
        return Fraction(moment, SCALE * PARTS), min(Fraction(1), Fraction(cut, PARTS))


def _products(first: list[int], second: list[int]) -> list[int]:
    """The coefficients of the product of two polynomials, in units of 10^-28, rounded up."""
    # One multiplication of two long decimal numbers, each coefficient in digits of its own.
    count = len(first) + len(second)
    width = len(str(max(first))) + len(str(max(second))) + len(str(count))
    texts = []
    for masses in (first, second):
        texts.append("".join(str(mass).rjust(width, "0") for mass in reversed(masses)))
    work = Context(prec=count * width, Emax=MAX_EMAX)
    text = format(work.multiply(Decimal(texts[0]), Decimal(texts[1])), "f")
    text = text.rjust(count * width, "0")
    ends = range(len(text), len(text) - (count - 1) * width, -width)
    return [-(-int(text[end - width : end]) // PARTS) for end in ends]


def composed(counted: Iterable[tuple[Losses, int]]) -> Losses:
    """Several laws together, each so often."""
    waiting = [losses.repeated(times) for losses, times in counted]
    while len(waiting) > 1:
        waiting.sort(key=lambda losses: len(losses.masses))
        waiting = [*waiting[2:], waiting[0].with_another(waiting[1])]
    return waiting[0]


CellProfile: TypeAlias = Callable[[int, Fraction], Profile]
"""The profile of a cell that moves by so much, on a grid."""


def profile_of_patterns(
    cell: CellProfile, patterns: list[tuple[int, ...]], step: Fraction
) -> Profile:
    """The largest profile of all that one unit can do."""
    cells = {}
    for far in {far for pattern in patterns for far in pattern}:
        cells[far] = cell(far, step)
    profiles = []
    for pattern in patterns:
        if len(pattern) == 1:
            profiles.append(cells[pattern[0]])
            continue
        longest = max(len(cells[far]) for far in pattern)
        factor = 1
        while longest * (isqrt(len(pattern)) + 1) > MOST_COMPOSED * factor:
            factor *= 2
        counted = []
        for far, times in sorted(Counter(pattern).items()):
            losses = Losses.of(cells[far], step)
            counted.append((losses if factor == 1 else losses.coarser(factor), times))
        profiles.append(_refined(composed(counted).profile(), step, factor))
    return largest(profiles, step)


def _refined(values: Profile, step: Fraction, factor: int) -> Profile:
    """A profile on a coarser grid, at the losses of the finer one, joined by chords."""
    if factor == 1:
        return values

    def at(place: int) -> int:
        whole, rest = divmod(place, factor)
        x = values[min(whole, len(values) - 1)]
        y = values[min(whole + 1, len(values) - 1)]
        if not rest or x == y:
            return x
        a, b = whole * factor * step, (whole + 1) * factor * step
        spread = below_e(b) - above_e(a)
        if spread <= 0:
            return x
        share = min(Fraction(1), Fraction(above_e(b) - below_e(place * step), spread))
        return min(x, ceil(y + share * (x - y)))

    most = min(LONGEST, int(LARGEST_LOSS / step) + 2, len(values) * factor)
    return largest([[at(place) for place in range(most)]], step)
