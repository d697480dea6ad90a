"""Several quantiles of one cell read off noisy counts, from one charge.

The rows at each candidate get noise, and perhaps also those of blocks of candidates. Sums from the
left say where each share of the rows is reached, however many shares there are. So on few
candidates, or for many quantiles, this is nearer to the ranks than a joint draw
(docs/design/quantiles-proof.md, section 5). What is done with noisy counts is free of charge, so it
may be done in floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist, fmean
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.joint_quantiles import Quantiles, check_shape, check_shares, spread_of
from release.exact.statistics.mechanism import RATIO_ONE, is_private, least_ratio
from release.exact.statistics.nearness import (
    LEVEL,
    POINTS,
    Nearness,
    Wording,
    nearness_of_ranks,
)
from release.exact.statistics.statistic import Ranks, Statistic
from release.exact.statistics.sums import geometric_noise

Floats: TypeAlias = NDArray[np.float64]

_CHUNK = 1 << 20
"""Counts that get noise at once."""

_LARGEST_BLOCK = 4096


@dataclass(frozen=True)
class QuantileTree(Quantiles):
    """Quantiles at the ``shares`` of the rows of a cell, as candidates' numbers, ascending.

    Each candidate's rows get geometric noise of ρ = ``ratio``/2^64. Where ``block`` is above 1 so
    do the rows of each block of so many candidates; the last block may be smaller. A unit has at
    most ``rows`` rows in the cell; ``is_replaced`` says whether neighbors replace them, or add or
    remove them.

    Raises:
        ValueError: fewer than 2 candidates, shares that do not ascend within (0, 1), a block that
            is not smaller than all candidates together, or a ratio without noise.
    """

    family = "quantile_tree"

    candidates: int
    shares: tuple[Fraction, ...]
    rows: int
    is_replaced: bool
    block: int
    ratio: int

    def __post_init__(self) -> None:
        if self.rows < 1 or not 1 <= self.block < self.candidates:
            raise ValueError("a tree needs two candidates, and blocks of some of them")
        check_shares(self.shares)
        geometric_noise(self.ratio)

    @classmethod
    def fitted(
        cls,
        epsilon: Fraction,
        candidates: int,
        shares: tuple[Fraction, ...],
        rows: int,
        block: int,
        *,
        replaces: bool,
    ) -> QuantileTree:
        """The one with the least noise that is proved for ε; ``rows`` are those of a unit.

        Raises:
            ValueError: as the class, or ε is too small for 64 bits.
        """
        ratio = least_ratio(epsilon, _exponent(rows, block, replaces=replaces))
        return cls(candidates, shares, rows, replaces, block, ratio)

    @classmethod
    def best(
        cls,
        epsilon: Fraction,
        candidates: int,
        shares: tuple[Fraction, ...],
        rows: int,
        *,
        replaces: bool,
    ) -> QuantileTree:
        """The tree of least variance: with noise on the candidates' rows alone, or with blocks.

        Raises:
            ValueError: ε is too small for 64 bits.
        """
        about = epsilon, candidates, shares, rows
        plain = cls.fitted(*about, 1, replaces=replaces)
        if candidates < 4:
            return plain
        # Blocks halve what ε is left for each count, whatever their size is.
        crossing = fmean(float(share * (1 - share)) for share in shares)
        sizes = range(2, min(candidates // 2, _LARGEST_BLOCK) + 1)
        block = min(sizes, key=lambda size: _in_blocks(candidates, size, crossing))
        split = cls.fitted(*about, block, replaces=replaces)
        return min(plain, split, key=lambda tree: fmean(tree.variances))

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> QuantileTree:
        """As :meth:`StatisticMechanism.designed`."""
        ranks = Ranks.checked(statistic)
        return cls.best(epsilon, ranks.inputs, ranks.shares, ranks.rows, replaces=ranks.replaces)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> QuantileTree:
        """As :meth:`StatisticMechanism.of_law`."""
        ranks = Ranks.checked(statistic)
        return cls(
            candidates=ranks.inputs,
            shares=ranks.shares,
            rows=ranks.rows,
            is_replaced=ranks.replaces,
            block=law.block,
            ratio=law.ratio,
        )

    def law(self) -> forms.TreeLaw:
        """As :meth:`StatisticMechanism.law`."""
        return forms.TreeLaw(forms.MECHANISM, "quantile_tree", self.ratio, self.block)

    @property
    def spread(self) -> int:
        """That of joint quantiles; what the noise has to hide follows from rows and relation."""
        return spread_of(self.shares, self.rows, replaces=self.is_replaced)

    @cached_property
    def noise(self) -> IntegerNoise:
        """The noise of each count."""
        return geometric_noise(self.ratio)

    @property
    def variances(self) -> list[float]:
        """The variance of the distance of each quantile from its rank, in rows, rounded.

        Where rows are spread evenly it is that of the rows below a point less their share of all
        rows: counts before the point weigh 1 - share in it, and those after it -share.
        """
        ratio = self.ratio / RATIO_ONE
        variance = 2 * ratio / ((RATIO_ONE - self.ratio) / RATIO_ONE) ** 2
        variances = []
        for share in self.shares:
            crossing = float(share * (1 - share))
            counts = self.candidates * crossing
            if self.block > 1:
                counts = _in_blocks(self.candidates, self.block, crossing)
            variances.append(variance * counts)
        return variances

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether ρ, to the power of the sum by which neighbors move all counts, times e^ε ≥ 1."""
        exponent = _exponent(self.rows, self.block, replaces=self.is_replaced)
        return is_private(self.ratio, exponent, epsilon)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`: each row moves a count or two."""
        # A replaced row loses 2 of 2, and by its spread D of D; one that comes in 1 of 2, and
        # by its spread D - min P of D, which is no less: two steps or more add up to D.
        return self.satisfies(epsilon)

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        blocks = f" and of blocks of {self.block}" if self.block > 1 else ""
        return (
            f"{len(self.shares)} quantiles read off noisy counts of {self.candidates} points"
            f"{blocks}, proved for units of up to {self.rows} rows"
        )

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`.

        Where rows are spread evenly, a distance from a rank is the sum of many noises.
        """
        deviation = math.sqrt(max(self.variances))
        rows = math.ceil(NormalDist().inv_cdf((1 + LEVEL) / 2) * deviation)
        distances = np.linspace(0, 2 * rows, POINTS)
        within = [math.erf(far / (math.sqrt(2) * deviation)) for far in distances.tolist()]
        return nearness_of_ranks(self.outputs, rows, distances, np.array(within))

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Candidates' numbers, shape (cells, shares), no row of which descends.

        ``statistics`` has the rows at each candidate, shape (cells, candidates).

        Raises:
            ValueError: another shape.
        """
        check_shape(statistics, self.candidates)
        drawn = np.empty((len(statistics), self.outputs), dtype=np.int64)
        cells = max(1, _CHUNK // self.candidates)
        for start in range(0, len(statistics), cells):
            part = statistics[start : start + cells]
            drawn[start : start + cells] = read_off(self._estimated(part, source), self.shares)
        return drawn

    def _estimated(self, rows: Codes, source: RandomBytes) -> Floats:
        """Estimates of the rows at each candidate, by least squares from all noisy counts."""
        points = self._noisy(rows, source)
        if self.block == 1:
            return points
        starts = np.arange(0, self.candidates, self.block)
        sizes = np.diff([*starts, self.candidates])
        blocks = self._noisy(np.add.reduceat(rows, starts, axis=1), source)
        sums = np.add.reduceat(points, starts, axis=1)
        # A block's own count is as precise as one point's, so the sum of its points weighs
        # 1/(size + 1); what the block has more is shared out evenly.
        excess = sizes / (sizes + 1) * (blocks - sums)
        return np.asarray(points + np.repeat(excess / sizes, sizes, axis=1))

    def _noisy(self, counts: Codes, source: RandomBytes) -> Floats:
        noise = self.noise.draw(counts.size, source).reshape(counts.shape)
        return counts.astype(np.float64) + noise


def _in_blocks(candidates: int, block: int, crossing: float) -> float:
    """The variance in those of one count.

    By least squares a block's sum has the variance block/(block + 1). Within the block of the
    quantile k of its points lie below: they add k·(block - k)/block, here the mean over k.
    """
    across = block / (block + 1) * (candidates / block) * crossing
    return across + (block**2 - 1) / (6 * block)


def _exponent(rows: int, block: int, *, replaces: bool) -> int:
    """By how much neighbors move the counts, summed over candidates and blocks.

    A row is in the count of its candidate, and in that of its block if there are blocks.
    """
    return rows * (2 if replaces else 1) * (1 if block == 1 else 2)


def read_off(counts: Floats, shares: tuple[Fraction, ...]) -> Codes:
    """The first candidate at which each share of the total is reached, shape (cells, shares).

    ``counts`` are estimates of the rows at each candidate, shape (cells, candidates), and may be
    negative. Sums from the left are replaced by the middle between the largest sum so far and the
    least from here on, which ascends.
    """
    sums = np.cumsum(counts, axis=1)
    total = np.maximum(sums[:, -1:], 0)
    rest = np.minimum.accumulate(sums[:, ::-1], axis=1)[:, ::-1]
    twice = np.maximum.accumulate(sums, axis=1) + rest
    codes = [
        (share.denominator * twice < 2 * share.numerator * total).sum(axis=1) for share in shares
    ]
    reached = np.minimum(np.stack(codes, axis=1), counts.shape[1] - 1)
    return np.asarray(reached, dtype=np.int64)
