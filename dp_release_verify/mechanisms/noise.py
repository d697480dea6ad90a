"""A law on the integers: runs of equal weight in a window, and tails that repeat their ends.

A weight of the last ``period`` integers of an end stands for its integer and for all repetitions of
it together, each of which is less by the factor ρ = ratio/2^64.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from dp_release_verify import forms
from dp_release_verify.canonical import SCALE, below_e
from dp_release_verify.errors import refuse_unless
from dp_release_verify.losses import Pairs, Profile, largest, worst_case

UNIT = 2**64
FAR = 256
"""Periods of a tail that are followed one by one; beyond, one step is taken so often."""

MOST_WORK = 10**6
MOST_WORK_IN_PROFILE = 3 * 10**5


class NoiseLaw:
    """The probabilities of all integers.

    Raises:
        Refused: they are none.
    """

    def __init__(self, file: str, noise: forms.Noise) -> None:
        self.file = file
        self.low = noise.low
        self.lengths = noise.lengths
        self.weights = noise.weights
        self._need(len(self.lengths) == len(self.weights), "lengths", len(self.lengths), "as many")
        self._need(min(self.lengths) >= 1, "lengths", min(self.lengths), "1 or more")
        self.high = self.low + sum(self.lengths) - 1
        window = sum(n * w for n, w in zip(self.lengths, self.weights, strict=True))
        self.total = window
        self.left = (0, 0) if noise.left is None else (noise.left.period, noise.left.ratio)
        self.right = (0, 0) if noise.right is None else (noise.right.period, noise.right.ratio)
        for tail in (noise.left, noise.right):
            if tail is not None:
                self._need(1 <= tail.ratio < UNIT, "ratio", tail.ratio, "from 1 to 2^64 - 1")
        p, q = self.periods
        self._need(p + q <= self.high - self.low + 1, "period", (p, q), "within the window")

    def check(self) -> None:
        """Check that it can be drawn exactly.

        Raises:
            Refused: it cannot.
        """
        window = self.total
        is_total = window >= 2 and window & (window - 1) == 0 and window <= 2**62
        self._need(is_total, "total", window, "a power of two to 2^62")
        self._need(max(-self.low, self.high) <= 2**62, "window", self.high, "within ±2^62")
        apart = all(a != b for a, b in pairwise(self.weights))
        self._need(apart, "weights", "equal runs side by side", "runs of different weights")
        # Each tail begins on its own side of 0.
        p, q = self.periods
        sides = (not q or self.high - q >= -1) and (not p or self.low + p <= 1)
        self._need(sides, "period", (p, q), "tails on their sides of 0")

    def _need(self, holds: bool, place: str, found: object, needed: object) -> None:
        refuse_unless(holds, self.file, f"noise.{place}", found, needed)

    @property
    def periods(self) -> tuple[int, int]:
        """The periods of the two tails; 0 without one."""
        return self.left[0], self.right[0]

    @property
    def is_symmetric(self) -> bool:
        """Whether the law is its own mirror image."""
        is_even = self.low == -self.high and self.left == self.right
        is_even = is_even and self.lengths == self.lengths[::-1]
        return is_even and self.weights == self.weights[::-1]

    def _blocks(self) -> Iterator[tuple[int, int, int, int]]:
        """The runs of the window, cut at the tails: first, last, weight, side.

        The side is −1 in the left tail, 1 in the right one, and 0 between.
        """
        cuts = (self.low + self.left[0], self.high - self.right[0] + 1)
        start = self.low
        for length, weight in zip(self.lengths, self.weights, strict=True):
            inner = sorted(cut for cut in {0, *cuts} if start < cut < start + length)
            for first, after in pairwise([start, *inner, start + length]):
                side = 0
                if first < cuts[0]:
                    side = -1
                elif first >= cuts[1]:
                    side = 1
                yield first, after - 1, weight, side
            start += length

    def _masses(self, repeats: int) -> tuple[list[int], list[int]]:
        """Where the mass changes, and the masses before, between and after these integers.

        Tails are repeated so often, and all beyond is 0; the unit is 1/(total · 2^(64·repeats+64)).
        """
        changes = [(self.high + repeats * self.right[0] + 1, 0)]
        for first, _, weight, side in self._blocks():
            if side == 0:
                changes.append((first, weight * UNIT ** (repeats + 1)))
                continue
            period, ratio = self.left if side < 0 else self.right
            for times in range(repeats + 1):
                fall = (UNIT - ratio) * ratio**times * UNIT ** (repeats - times)
                changes.append((first + side * times * period, weight * fall))
        changes.sort()
        return [start for start, _ in changes], [0, *(mass for _, mass in changes)]

    def pairs(self, distance: int) -> Pairs:
        """The pairs f(k) and f(k + distance) over all k; one period stands for a whole tail."""
        p, q = self.periods
        low = min(self.low, self.low - distance) - p
        after = max(self.high, self.high - distance) + q + 1
        repeats = 1
        for period in (p, q):
            if period:
                repeats = max(repeats, -(-abs(distance) // period) + 1)
        starts, masses = self._masses(repeats)
        cuts = {low, after, *starts, *(start - distance for start in starts)}
        inside = sorted(cut for cut in cuts if low <= cut <= after)
        # The outermost periods stand for a geometric series: they are divided by 1 − ρ.
        left_rest, right_rest = UNIT - self.left[1], UNIT - self.right[1]
        counts: Counter[tuple[int, int]] = Counter()
        for first, end in pairwise(inside):
            factor = left_rest * right_rest
            if first < low + p:
                factor = UNIT * right_rest
            elif first >= after - q:
                factor = UNIT * left_rest
            here = masses[bisect_right(starts, first)]
            there = masses[bisect_right(starts, first + distance)]
            counts[here, there] += (end - first) * factor
        total = self.total * UNIT ** (repeats + 1) * left_rest * right_rest
        return Pairs(counts, total)

    @cached_property
    def is_unimodal(self) -> bool:
        """Whether the probabilities rise and then fall; one period beyond each end shows it."""
        falls = [a > b for a, b in pairwise(self._masses(1)[1]) if a != b]
        return falls == sorted(falls)

    def work(self, distances: set[int]) -> tuple[set[int], int, bool]:
        """Which distances to compare, how much work it is, and whether a tail is far shorter."""
        # Of unimodal noise the largest distance has the largest δ.
        chosen = {max(distances)} if self.is_unimodal else distances
        reaches = [max(distances) // period for period in self.periods if period]
        reach = sum(min(FAR, each) for each in reaches)
        work = 2 * len(chosen) * len(self.lengths) * (reach + 3) * (1 + reach // 8)
        return chosen, work, max(reaches, default=0) > FAR

    def is_far(self, distances: set[int]) -> bool:
        """Whether a unit moves the answer by more periods than are followed one by one."""
        return self.work(distances)[2]

    def compared(self, distances: set[int]) -> list[Pairs]:
        """All pairs that have to be compared, of the law and of its mirror image.

        Raises:
            Refused: that is more work than the page allows.
        """
        chosen, work, _ = self.work(distances)
        self._need(work <= MOST_WORK, "size", work, f"at most {MOST_WORK}")
        return [self.pairs(sign * each) for each in sorted(chosen) for sign in (1, -1)]

    def _largest_step(self) -> Fraction | None:
        """The largest f(k)/f(k ± period), where both tails are the same; none if infinite."""
        period, ratio = self.left
        if not period or self.right != (period, ratio):
            return None
        worst = Fraction(0)
        for sign in (1, -1):
            pairs = self.pairs(sign * period)
            if pairs.has_infinite:
                return None
            p, q = pairs.largest
            worst = max(worst, Fraction(p, q))
        return worst

    def is_pure_by_steps(self, distances: set[int], epsilon: Fraction) -> bool:
        """Whether so many steps of a period, each at its largest, lose at most ε."""
        ratio = self._largest_step()
        if ratio is None:
            return False
        # Each product is rounded up, so that the power is never below the exact one.
        upward = Context(prec=100, rounding=ROUND_CEILING)
        step = upward.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        power = Decimal(1)
        for digit in bin(-(-max(distances) // self.left[0]))[2:]:
            power = upward.multiply(power, power)
            if digit == "1":
                power = upward.multiply(power, step)
            if upward.multiply(power, Decimal(SCALE)) > below_e(epsilon):
                return False
        return True

    def cell(self, distances: set[int], step: Fraction) -> Profile | None:
        """The profile of a cell that moves by these distances; none if that is too much work."""
        chosen, work, is_far = self.work(distances)
        if not is_far and work <= MOST_WORK_IN_PROFILE:
            pairs = [self.pairs(sign * each) for each in sorted(chosen) for sign in (1, -1)]
            return largest([each.profile(step) for each in pairs], step)
        ratio = self._largest_step() if self.is_unimodal else None
        if ratio is None:
            return None
        upward = Context(prec=100, rounding=ROUND_CEILING)
        fifty = Context(prec=50)
        quotient = upward.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
        loss = Fraction(fifty.next_plus(fifty.ln(quotient)))
        return worst_case(-(-max(distances) // self.left[0]) * loss, Fraction(0), step)

    def falls_by(self, ratio: Fraction) -> bool:
        """Whether no two neighboring integers have probabilities further apart than the ratio."""
        for sign in (1, -1):
            pairs = self.pairs(sign)
            if pairs.has_infinite:
                return False
            p, q = pairs.largest
            if p > q * ratio:
                return False
        return True

    def moment(self, power: int) -> Fraction:
        """The sum of |k|^power · f(k), with 0^0 = 0."""
        total = Fraction(0)
        for first, last, weight, side in self._blocks():
            period, ratio = (0, 0)
            if side:
                period, ratio = self.left if side < 0 else self.right
            rho = Fraction(ratio, UNIT)
            # Of a run below 0 the mirror image: a tail lies on its side of 0.
            a, b = (-last, -first) if last <= 0 else (first, last)
            moment = moments(a, b, period, rho)[power]
            if power == 0 and a == 0:
                moment -= 1 - rho
            total += Fraction(weight, self.total) * moment
        return total


def moments(first: int, last: int, period: int, rho: Fraction) -> list[Fraction]:
    """The sums of 1, k and k² over a run from 0 on, or their means if it moves up by G · period.

    G is geometric: G ≥ g has the probability ρ^g.
    """
    count = last - first + 1
    ones = count * (first + last) // 2
    squares = [n * (n + 1) * (2 * n + 1) // 6 for n in (first - 1, last)]
    mean = period * rho / (1 - rho)
    square = period**2 * rho * (1 + rho) / (1 - rho) ** 2
    moved = squares[1] - squares[0] + 2 * ones * mean + count * square
    return [Fraction(count), ones + count * mean, moved]
