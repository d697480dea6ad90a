"""Exact draws of paths of ordered positions, by upper bounds and rejection.

There are too many positions to sum over, so blocks of positions are: a trial draws a path from
integer weights that follow *upper bounds* of the paths' weights, and keeps it with a chance that
makes up for the difference (docs/design/quantiles-proof.md, section 3). What the bounds are decides
how many trials it takes, never what a path's chance is. Bounds are floats, rounded upwards by
margins above all their rounding errors; what is drawn and what is kept is decided in integers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes, random_below_power
from release.exact.statistics.mechanism import RATIO_BITS
from release.exact.statistics.ordered_paths import Paths

_TOGETHER = 2
"""Trials that are drawn together, for each step of a path."""

_ROUNDS = 8
"""So many times, before the blocks that they visited are cut."""

_PARTS = 16
"""Into how many parts."""

_FINENESS = 4
"""Blocks for each factor of e in the weight near the aims."""

_FAR = 2**62
"""An exponent above all others."""

_PIECES = 2
"""So many blocks for each step of a path have about the same share of the weight."""

_WORD = 64

_DRAWN_BITS = 62
"""The chances of a step are multiples of 2^-62."""

_ABOVE = 1 + 2.0**-30
"""By how much sums are raised: more than rounding takes away from one of 2^20 products."""

_BARELY_ABOVE = 1 + 2.0**-48
"""The same for a product of few factors."""

_LEAST = 2.0**-800
"""Added to sums: more than all their products that are too small for a float."""

_TABLE_BITS = 700
"""The table of powers ends above 2^-700, so that its products are seldom too small."""

_AT_ONCE = 1 << 16
"""Pairs of blocks that are summed over at once, so that a cache holds them."""

_Floats: TypeAlias = NDArray[np.float64]


def draw_path(paths: Paths, source: RandomBytes = SYSTEM) -> Codes:
    """The positions of one path, with exactly its chance, in order; shape (steps - 1,)."""
    cuts = np.zeros(0, dtype=np.int64)
    # A trial keeps each path with a chance in proportion to its weight, whatever the bounds: so
    # what failed before, and how the bounds were refined by it, says nothing of the path.
    while True:
        bounds = Bounds(paths, cuts)
        for _ in range(_ROUNDS):
            path = bounds.trials(_TOGETHER * len(paths.targets), source)
            if path is not None:
                return path
        cuts = np.union1d(cuts, bounds.cuts_of_visited())


class Bounds:
    """Upper bounds of the weights of all paths, by blocks of positions.

    Block i has ``counts[i]`` positions from ``starts[i]`` on, with values from ``low[i]`` to
    ``high[i]`` steps of a lattice, rounded outwards. The end is a last entry of ``low`` and
    ``high``. ``sums[j][i]``·ρ^(step·``exponents[j][i]``) bounds, up to a power of two for each j,
    the weight of all beginnings of paths up to one position of block i as position j+1. The last
    sum is that of the end and bounds the weight of all paths; ``doublings`` is the power left out.
    """

    def __init__(self, paths: Paths, cuts: Codes) -> None:
        """``cuts`` are positions with which blocks begin, beside those of the first bounds."""
        self.paths = paths
        self.step = max(1, paths.scale // (8 * _FINENESS))
        # So many that the powers beyond the table count for nothing, even over all paths.
        bits = _WORD + len(paths.targets) * paths.positions.count.bit_length()
        self.powers = powers_above(paths.ratio, self.step, min(bits, _TABLE_BITS))
        self.starts = np.union1d(cuts, self._split(self._cuts()))
        self.counts = np.diff(np.append(self.starts, paths.positions.count))
        self.low, self.high = self._ranges(self.starts)
        self.doublings = 0
        self.exponents = [np.maximum(0, np.maximum(*self._reach(0, np.arange(self.starts.size))))]
        self.sums: list[_Floats] = [np.ones(self.starts.size)]
        self._masses: list[_Floats] = []
        for stage in range(1, len(paths.targets)):
            self._add_sums(stage)
        self._visited: set[int] = set()

    def cuts_of_visited(self) -> Codes:
        """Positions that cut the blocks of all trials into parts."""
        blocks = np.array(sorted(self._visited), dtype=np.int64)
        parts = self.counts[blocks, None] * np.arange(_PARTS) // _PARTS
        return np.unique(self.starts[blocks, None] + parts)

    def trials(self, count: int, source: RandomBytes) -> Codes | None:
        """The first path that one of ``count`` trials keeps, or none.

        Each keeps a path with chance proportional to its weight.
        """
        blocks = np.full(count, self.starts.size)
        is_alive = np.ones(count, dtype=bool)
        chosen: list[Codes] = []
        chances: list[Codes] = []
        for stage in reversed(range(1, len(self.paths.targets))):
            weights = self.step_weights(stage, blocks)
            reached = np.cumsum(weights, axis=0)
            uniform = random_below_power(_DRAWN_BITS, count, source).astype(np.int64)
            is_alive &= uniform < reached[-1]
            blocks = np.minimum((reached <= uniform).sum(axis=0), self.starts.size - 1)
            chosen.append(blocks)
            chances.append(weights[blocks, np.arange(count)])
        for trial in np.flatnonzero(is_alive).tolist():
            visited = [int(blocks[trial]) for blocks in chosen]
            self._visited.update(visited)
            path = self._placed(visited, source)
            if path is not None:
                exponent, odds = self.acceptance(path, visited, [int(c[trial]) for c in chances])
                if keeps(self.paths.ratio, exponent, odds, source):
                    return path
        return None

    def step_weights(self, stage: int, blocks: Codes) -> Codes:
        """The chances of each block before some ``blocks``, in 2^-62; shape (blocks, blocks given).

        The number of blocks stands for the end, which is after the last stage. A chance is at least
        that of the bounds, c_h·sums[h]·ρ^gap over the sum of the block given; together they are at
        most 2^62.
        """
        powers, _ = self._powers_before(stage, blocks)
        sums = self.sums[stage][np.where(blocks < self.starts.size, blocks, 0)]
        shares = self._masses[stage - 1][:, None] * powers / sums * _BARELY_ABOVE
        return np.asarray((shares * 2.0**_DRAWN_BITS).astype(np.int64) + 1)

    def _placed(self, blocks: list[int], source: RandomBytes) -> Codes | None:
        """Positions drawn evenly from blocks, given from the last of a path to its first.

        None if they are not in order.
        """
        path: list[int] = []
        for block in blocks:
            position = int(self.starts[block]) + below(int(self.counts[block]), source)
            if path and position > path[-1]:
                return None
            path.append(position)
        return np.array(path[::-1], dtype=np.int64)

    def acceptance(
        self, path: Codes, blocks: list[int], chances: list[int]
    ) -> tuple[int, Fraction]:
        """An exponent e and odds with which a trial's path is kept: with chance ρ^e·odds.

        ``chances`` are those with which its blocks were drawn, in 2^-62.
        """
        # All paths lack at least the exponent of the end, which the bounds have left out.
        exponent = self.paths.exponent(path) - self.step * int(self.exponents[-1][0])
        places = math.prod(int(self.counts[block]) for block in blocks) << _DRAWN_BITS * len(blocks)
        bound = Fraction(float(self.sums[-1][0])) * Fraction(2) ** self.doublings
        return exponent, Fraction(places, math.prod(chances)) / bound

    def _cuts(self) -> Codes:
        """The first positions of blocks: narrow in value near the aims, wider away from them."""
        aims, end = self.paths.aims, self.paths.positions.end
        narrowest = max(1, self.paths.scale // _FINENESS)
        share = max(_FINENESS, len(self.paths.targets) // 2)
        aways = [0]
        while aways[-1] <= end:
            aways.append(aways[-1] + max(narrowest, aways[-1] // share))
        between = [(before + after) // 2 for before, after in pairwise(aims)]
        cuts = {0}
        for aim, first, last in zip(aims, [0, *between], [*between, end], strict=True):
            cuts.update(aim - away for away in aways[: bisect_right(aways, aim - first)])
            cuts.update(aim + away for away in aways[: bisect_right(aways, last - aim)])
        found = self.paths.positions.first_from(sorted(cuts))
        return np.unique(np.minimum(np.append(found, 0), self.paths.positions.count - 1))

    def _split(self, starts: Codes) -> Codes:
        """The blocks cut further, so that two positions of a path are seldom of the same block."""
        counts = np.diff(np.append(starts, self.paths.positions.count))
        low, high = (ends[:-1] for ends in self._ranges(starts))
        aims = np.array([aim // self.step for aim in self.paths.aims], dtype=low.dtype)
        after = np.searchsorted(aims, low)
        above = aims[np.minimum(after, aims.size - 1)] - high
        below = low - aims[np.maximum(after, 1) - 1]
        away = np.minimum(np.where(after < aims.size, above, below), np.where(after, below, above))
        masses = counts * self._powers(np.maximum(0, away))
        pieces = _PIECES * len(self.paths.targets)
        parts = np.minimum(counts, 1 + (pieces * masses / masses.sum()).astype(np.int64))
        part = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        cut = np.repeat(starts, parts) + np.repeat(counts, parts) * part // np.repeat(parts, parts)
        return np.asarray(cut)

    def _ranges(self, starts: Codes) -> tuple[Codes, Codes]:
        """The least and the greatest value of each block and of the end, in steps."""
        positions = self.paths.positions
        ends = np.append(starts[1:], positions.count) - 1
        low = [*positions.values(starts), positions.end]
        high = [*positions.values(ends), positions.end]
        # Sums of as many values as a path has are integers of 64 bits, or else Python's.
        most = 4 * len(self.paths.targets) * (positions.end // self.step + 1)
        kind = np.int64 if most < 2**62 else object
        downwards = np.array([value // self.step for value in low], dtype=kind)
        return downwards, np.array([-(-value // self.step) for value in high], dtype=kind)

    def _reach(self, stage: int, blocks: Codes) -> tuple[Codes, Codes]:
        """How far the blocks are above the target, if from 0, and how far below, at least."""
        target = self.paths.targets[stage]
        above = self.low[blocks] - -(-target // self.step)
        return above, target // self.step - self.high[blocks]

    def _powers(self, steps: Codes) -> _Floats:
        """At least ρ^(steps of the lattice), for steps of 0 or more."""
        return self.powers.take(steps.astype(np.int64, copy=False), mode="clip")

    def _powers_before(self, stage: int, blocks: Codes) -> tuple[_Floats, Codes]:
        """ρ^(gap) from each block to those given, over ρ^(their exponents), and those exponents.

        0 where a block is after the one given. The first has shape (blocks, blocks given).
        """
        above, under = self._reach(stage, blocks)
        before = self.exponents[stage - 1]
        # The exponent before and the gap: at most |x' - x - t| in steps, for all x in the block
        # before and x' in the block given.
        exponents = (before - self.high[:-1])[:, None] + above
        short = (before + self.low[:-1])[:, None] + under
        np.maximum(exponents, short, out=exponents)
        np.maximum(exponents, before[:, None], out=exponents)
        exponents[np.arange(self.starts.size)[:, None] > blocks] = _FAR
        least = exponents.min(axis=0)
        exponents -= least
        return self._powers(exponents), least

    def _add_sums(self, stage: int) -> None:
        """The sums of a stage: for each block i, of c_h·sums[h]·ρ^(gap of h and i) over h ≤ i."""
        size = self.starts.size
        doublings = math.frexp(float(self.sums[-1].max()))[1]
        masses = self.counts * np.maximum(np.ldexp(self.sums[-1], -doublings), _LEAST)
        blocks = np.arange(size) if stage < len(self.paths.targets) - 1 else np.array([size])
        sums, exponents = [], []
        for part in np.array_split(blocks, 1 + blocks.size * size // _AT_ONCE):
            powers, least = self._powers_before(stage, part)
            sums.append(masses @ powers * _ABOVE + _LEAST)
            exponents.append(least)
        self.doublings += doublings
        self._masses.append(masses)
        self.sums.append(np.concatenate(sums))
        self.exponents.append(np.concatenate(exponents))


@lru_cache(maxsize=16)
def powers_above(ratio: int, step: int, bits: int) -> _Floats:
    """A table of numbers of at least ρ^(a·``step``), a = 0, 1, .., down to about 2^-``bits``.

    The integers p[0] = 2^bits and p[a+1] = p[a]·p[1]/2^bits are rounded up, to where they stop, and
    p[1] is at least 2^bits·ρ^``step``; so p[a] is at least 2^bits·ρ^(a·step).
    """
    factor = power_within(ratio, step, bits)[1]
    powers = [1 << bits, factor]
    while powers[-1] != powers[-2]:
        powers.append(-(-powers[-1] * factor >> bits))
    table = np.array([power / (1 << bits) for power in powers]) * _BARELY_ABOVE
    table.setflags(write=False)
    return table


def power_within(ratio: int, exponent: int, places: int) -> tuple[int, int]:
    """Two integers around 2^places·(``ratio`` / 2^64)^``exponent``."""
    low = high = 1 << places
    for digit in bin(exponent)[2:]:
        low, high = low * low >> places, -(-high * high >> places)
        if digit == "1":
            low, high = low * ratio >> RATIO_BITS, -(-high * ratio >> RATIO_BITS)
    return low, high


def keeps(ratio: int, exponent: int, odds: Fraction, source: RandomBytes) -> bool:
    """True with chance (``ratio`` / 2^64)^``exponent``·``odds``, which is at most 1.

    The binary digits of a uniform number are drawn until it is decided whether it is below.
    """
    uniform = words = 0
    over, under = odds.as_integer_ratio()
    # As many places as tell the power from 0, and its digits beyond the first word.
    digits = max(0, over.bit_length() - under.bit_length()) + exponent.bit_length() + _WORD
    while True:
        words += 1
        digits += _WORD * words
        uniform = uniform << _WORD | int.from_bytes(source(_WORD // 8), "little")
        low, high = power_within(ratio, exponent, digits)
        # uniform/2^(64·words) against power·over/under, both times 2^(digits + 64·words)·under.
        if (uniform + 1) * under << digits <= low * over << _WORD * words:
            return True
        if uniform * under << digits >= high * over << _WORD * words:
            return False


def below(count: int, source: RandomBytes) -> int:
    """A uniform integer in [0, ``count``)."""
    bits = (count - 1).bit_length()
    width = -(-bits // 8)
    while True:
        uniform = int.from_bytes(source(width), "little") >> (8 * width - bits)
        if uniform < count:
            return uniform
