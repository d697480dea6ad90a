"""Exact draws of paths of ordered positions, by integer upper bounds and rejection.

There are too many positions to sum over, so blocks of positions are: a trial draws a path from
integer *upper bounds* of the weights, and keeps it with the quotient of its weight and its bound
(docs/design/quantiles-proof.md, section 3). What the bounds are decides how many trials it takes,
never what a path's chance is. Everything is computed in integers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import RATIO_BITS
from release.exact.statistics.ordered_paths import Paths

_TRIALS = 25
"""Trials before the blocks that they visited are cut."""

_PARTS = 16
"""Into how many parts."""

_FINENESS = 4
"""Blocks for each factor of e in the weight, at first; more where a path has many steps."""

_WORD = 64

_Power: TypeAlias = tuple[int, int]
"""A mantissa, in units of 2^-bits, and an exponent: so many steps of the lattice as power of ρ."""

_ZERO: _Power = (0, 0)


def draw_path(paths: Paths, source: RandomBytes = SYSTEM) -> Codes:
    """The positions of one path, with exactly its chance, in order; shape (steps - 1,)."""
    cuts: set[int] = set()
    # A trial keeps each path with a chance in proportion to its weight, whatever the bounds: so
    # what failed before, and how the bounds were refined by it, says nothing of the path.
    while True:
        bounds = _Bounds(paths, cuts)
        for _ in range(_TRIALS):
            path = bounds.trial(source)
            if path is not None:
                return path
        cuts |= bounds.cuts_of_visited()


class _Bounds:
    """Upper bounds of the weights of all paths, by blocks of positions, in integers.

    Block i has ``counts[i]`` positions from ``starts[i]`` on, with values from ``low[i]`` to
    ``high[i]`` steps of a lattice, rounded outwards. The end is a last block without positions.
    ``sums[j][i]`` bounds, for one position of block i as position j+1 of a path, the weight of all
    beginnings of paths up to it.
    """

    def __init__(self, paths: Paths, cuts: set[int]) -> None:
        """``cuts`` are positions with which blocks begin, beside those of the first bounds."""
        self.paths = paths
        fineness = max(_FINENESS, len(paths.targets) // 2)
        self.step = max(1, paths.scale // (8 * fineness))
        # So many that what the table rounds up counts for nothing, even over all paths.
        self.bits = _WORD + len(paths.targets) * paths.positions.count.bit_length()
        self.powers = _powers(paths.ratio, self.step, self.bits)
        # Entry a is at most a above the real power; beyond the table, at most the last entry. If a
        # step takes away a share u, that is at most 1/u, and it takes more steps to get there.
        self.excess = len(self.powers)
        self.starts = sorted(cuts.union(self._split(self._cuts(fineness), fineness)))
        self.counts = [*np.diff([*self.starts, paths.positions.count]).tolist(), 0]
        self.low, self.high = self._ranges(np.array(self.starts, dtype=np.int64))
        self.sums = self._sums()
        self._visited: set[int] = set()

    def cuts_of_visited(self) -> set[int]:
        """Positions that cut the blocks of all trials into parts."""
        cuts: set[int] = set()
        for block in self._visited:
            count = self.counts[block]
            cuts.update(_evenly(self.starts[block], count, _PARTS))
        return cuts

    def trial(self, source: RandomBytes) -> Codes | None:
        """A path with chance proportional to its weight, or none."""
        block = len(self.counts) - 1
        path: list[int] = []
        bound = 1
        for stage in reversed(range(1, len(self.paths.targets))):
            drawn = self._draw_before(stage, block, source)
            if drawn is None:
                return None
            bound *= self._power(self._steps(drawn, block, stage))
            block = drawn
            self._visited.add(block)
            position = self.starts[block] + _below(self.counts[block], source)
            if path and position > path[-1]:
                return None
            path.append(position)
        drawn_path = np.array(path[::-1], dtype=np.int64)
        # All paths lack at least the exponent of the end, which the bounds have left out.
        exponent = self.paths.exponent(drawn_path) - self.step * self.sums[-1][-1][1]
        places = self.bits * len(path)
        return drawn_path if _keeps(self.paths.ratio, exponent, bound, places, source) else None

    def _cuts(self, fineness: int) -> Codes:
        """The first positions of blocks: narrow in value near the aims, wider away from them."""
        cuts = [0]
        around = [0, *self.paths.aims, self.paths.positions.end]
        for before, aim, after in zip(around, around[1:], around[2:], strict=False):
            away, reach = 0, max(aim - before, after - aim)
            while away <= reach:
                cuts += [aim - away, aim + away]
                away += max(1, self.paths.scale // fineness, away // (2 * fineness))
        first = self.paths.positions.first_from(sorted(set(cuts)))
        return np.unique(np.minimum(np.append(first, 0), self.paths.positions.count - 1))

    def _split(self, starts: Codes, fineness: int) -> list[int]:
        """The blocks cut further, so that two positions of a path are seldom of the same block."""
        counts = np.diff(np.append(starts, self.paths.positions.count)).tolist()
        low, high = self._ranges(starts)
        aims = [aim // self.step for aim in self.paths.aims]
        masses = []
        for count, lowest, highest in zip(counts, low, high, strict=False):
            after = bisect_left(aims, lowest)
            above = aims[after] - highest if after < len(aims) else len(self.powers)
            below = lowest - aims[after - 1] if after else len(self.powers)
            masses.append(count * self._power(max(0, min(above, below))))
        pieces = fineness * len(self.paths.targets) // 2
        total = sum(masses)
        cut: list[int] = []
        for start, count, mass in zip(starts.tolist(), counts, masses, strict=True):
            parts = min(count, 1 + pieces * mass // total)
            cut += _evenly(start, count, parts)
        return cut

    def _ranges(self, starts: Codes) -> tuple[list[int], list[int]]:
        """The least and the greatest value of each block and of the end, in steps."""
        positions = self.paths.positions
        ends = np.append(starts[1:], positions.count) - 1
        low = [*positions.values(starts), positions.end]
        high = [*positions.values(ends), positions.end]
        return [value // self.step for value in low], [-(-value // self.step) for value in high]

    def _power(self, steps: int) -> int:
        """At least 2^bits·ρ^(steps of the lattice)."""
        return self.powers[min(steps, len(self.powers) - 1)]

    def _reach(self, block: int, stage: int) -> tuple[int, int]:
        """Where a step from lower values is too long by at most, and one from higher too short."""
        target = self.paths.targets[stage]
        return self.low[block] - -(-target // self.step), self.high[block] - target // self.step

    def _gap(self, before: int, block: int, stage: int) -> int:
        """At most |x′ - x - t| in steps, for all x in the block before and x′ in the block."""
        lower, upper = self._reach(block, stage)
        return max(0, lower - self.high[before], self.low[before] - upper)

    def _steps(self, before: int, block: int, stage: int) -> int:
        """By how many steps the bound of a path grows less likely from the block before; ≥ 0."""
        grown = self.sums[stage - 1][before][1] - self.sums[stage][block][1]
        return self._gap(before, block, stage) + grown

    def _middle(self, block: int, stage: int) -> tuple[int, int]:
        """The blocks from the first number to before the second have no gap to the block.

        In those before them the step is too long, in those after them too short.
        """
        lower, upper = self._reach(block, stage)
        first = bisect_right(self.high, lower, hi=block + 1)
        return first, max(first, bisect_left(self.low, upper, hi=block + 1))

    def _sums(self) -> list[list[_Power]]:
        first = []
        for block in range(len(self.counts)):
            lower, upper = self._reach(block, 0)
            first.append((1 << self.bits, max(0, lower, -upper)))
        sums = [first]
        for stage in range(1, len(self.paths.targets)):
            sums.append(self._next_sums(sums[-1], stage))
        return sums

    def _next_sums(self, sums: list[_Power], stage: int) -> list[_Power]:
        """For each block i a bound of the sum of c_h·sums[h]·ρ^(gap of h and i) over h ≤ i."""
        weights = [(count * sums[h][0], sums[h][1]) for h, count in enumerate(self.counts)]
        totals = list(accumulate(mantissa for mantissa, _ in weights))
        # The gap is lower - high[h] in the blocks before the middle, low[h] - upper in those after.
        falling = _shifted(weights, self.high, -1)
        long = list(accumulate(falling, self._plus))
        middle = _Window(weights, self._plus)
        short = _Window(_shifted(weights, self.low, 1), self._plus)
        following = []
        for block in range(len(weights)):
            lower, upper = self._reach(block, stage)
            first, last = self._middle(block, stage)
            mantissa, exponent = middle.sum(first, last)
            bound = (mantissa, exponent)
            if first:
                mantissa, exponent = long[first - 1]
                bound = self._plus(bound, (mantissa, exponent + lower))
            mantissa, exponent = short.sum(last, block + 1)
            bound = self._plus(bound, (mantissa, exponent - upper))
            # The sums above multiply powers of the table, and a product of two may be less than the
            # power of the sum of their steps, by ``excess`` at most: this covers it.
            lack = (self.excess * totals[block] >> self.bits) + 1
            following.append((bound[0] + lack, bound[1]))
        return following

    def _plus(self, first: _Power, second: _Power) -> _Power:
        """At least the sum of two, with the lesser exponent of those that are not 0."""
        if not first[0] or (second[0] and second[1] < first[1]):
            first, second = second, first
        if not second[0]:
            return first
        raised = -(-second[0] * self._power(second[1] - first[1]) >> self.bits)
        return first[0] + raised, first[1]

    def _draw_before(self, stage: int, block: int, source: RandomBytes) -> int | None:
        """A block h with chance c_h·sums[h]·ρ^gap over its bound, or none with the rest."""
        uniform = _below(self.sums[stage][block][0] << self.bits, source)
        first, _ = self._middle(block, stage)
        # From the middle outwards, where most of the weight is.
        for away in range(max(first, block + 1 - first)):
            for before in (first - 1 - away, first + away):
                if 0 <= before <= block and self.counts[before]:
                    weight = self.counts[before] * self.sums[stage - 1][before][0]
                    uniform -= weight * self._power(self._steps(before, block, stage))
                    if uniform < 0:
                        return before
        return None


class _Window:
    """Sums of the numbers first..end-1 of a list, as both limits move upwards.

    Sums that are rounded up cannot be subtracted. So the numbers up to a mark are kept as sums from
    each of them to the mark, and those after it as one sum; the mark moves when it is passed.
    """

    def __init__(self, numbers: list[_Power], plus: Callable[[_Power, _Power], _Power]) -> None:
        self._numbers = numbers
        self._plus = plus
        self._to_mark: list[_Power] = []
        self._mark = self._end = 0
        self._after = _ZERO

    def sum(self, first: int, end: int) -> _Power:
        """The sum of the numbers from ``first`` to before ``end``."""
        if first >= end:
            return _ZERO
        if first >= self._mark:
            backwards = reversed(self._numbers[first:end])
            self._to_mark = list(accumulate(backwards, self._plus))
            self._mark = self._end = end
            self._after = _ZERO
        for number in self._numbers[self._end : end]:
            self._after = self._plus(self._after, number)
        self._end = end
        return self._plus(self._to_mark[self._mark - 1 - first], self._after)


def _evenly(start: int, count: int, parts: int) -> list[int]:
    """The first positions of about equal parts of ``count`` positions."""
    return [start + count * part // parts for part in range(parts)]


def _shifted(numbers: list[_Power], by: list[int], sign: int) -> list[_Power]:
    """The numbers with their exponents raised by ``sign`` times each of ``by``."""
    pairs = zip(numbers, by, strict=True)
    return [(mantissa, exponent + sign * shift) for (mantissa, exponent), shift in pairs]


def _powers(ratio: int, step: int, bits: int) -> list[int]:
    """A table p of p[0] = 2^bits and p[a+1] = p[a]·p[1]/2^bits rounded up, to where it stops.

    p[1] is at least 2^bits·ρ^``step``; so p[a] is at least 2^bits·ρ^(a·step), and at most a above
    2^bits·(p[1]/2^bits)^a.
    """
    factor = _power_within(ratio, step, bits)[1]
    powers = [1 << bits, factor]
    while True:
        following = -(-powers[-1] * factor >> bits)
        if following == powers[-1]:
            return powers
        powers.append(following)


def _power_within(ratio: int, exponent: int, places: int) -> tuple[int, int]:
    """Two integers around 2^places·(``ratio`` / 2^64)^``exponent``."""
    low = high = 1 << places
    for digit in bin(exponent)[2:]:
        low, high = low * low >> places, -(-high * high >> places)
        if digit == "1":
            low, high = low * ratio >> RATIO_BITS, -(-high * ratio >> RATIO_BITS)
    return low, high


def _keeps(ratio: int, exponent: int, bound: int, places: int, source: RandomBytes) -> bool:
    """True with chance (``ratio`` / 2^64)^``exponent``·2^places / ``bound``, which is at most 1.

    The binary digits of a uniform number are drawn until it is decided whether it is below.
    """
    uniform = words = 0
    # As many places as tell the power from 0, and its digits beyond the first word.
    digits = max(0, places - bound.bit_length()) + exponent.bit_length() + _WORD
    while True:
        words += 1
        digits += _WORD * words
        uniform = uniform << _WORD | int.from_bytes(source(_WORD // 8), "little")
        low, high = _power_within(ratio, exponent, digits)
        # uniform/2^(64·words)·bound against power·2^places, both times 2^(digits + 64·words).
        shift = places + _WORD * words
        if (uniform + 1) * bound << digits <= low << shift:
            return True
        if uniform * bound << digits >= high << shift:
            return False


def _below(count: int, source: RandomBytes) -> int:
    """A uniform integer in [0, ``count``)."""
    bits = (count - 1).bit_length()
    width = -(-bits // 8)
    while True:
        uniform = int.from_bytes(source(width), "little") >> (8 * width - bits)
        if uniform < count:
            return uniform
