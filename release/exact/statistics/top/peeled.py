"""The k commonest categories one after the other, each by permute-and-flip.

Each round publishes one category and takes it out; the rounds share the charge evenly and basic
composition adds them up. Permute-and-flip (McKenna and Sheldon 2020) visits the candidates in
uniformly random order and publishes the first one accepted. The proof is T3 of
docs/design/mathematics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.permute_and_flip import PermuteAndFlip, chances_of, selected
from release.exact.statistics.top.bounds import CountBounds, check_counts
from release.exact.statistics.top.on_counts import OnCounts

_CHUNK = 1 << 20


@dataclass(frozen=True)
class PeeledTop(OnCounts):
    """Publishes ``members`` categories in the order of the rounds; ρ = ``ratio``/2^64."""

    family = "top_peeled"

    @staticmethod
    def spread_of(bounds: CountBounds, members: int) -> int:
        """The range of the changes of the counts between neighbors, summed over the rounds."""
        return members * bounds.range_of_counts

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return f"{self.members} selections, one after the other, {self.bounds.words}"

    def chance_of_all(self, lead: int) -> float:
        """As :meth:`OnCounts.chance_of_all`: the union bound over the draws.

        Each draw has one category fewer than the one before.
        """
        missed = 0.0
        for drawn in range(self.members):
            candidates = max(2, self.bounds.categories - drawn)
            missed += 1 - PermuteAndFlip(candidates, 1, self.ratio).chance_of_leader(lead)
        return 1 - missed

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Codes by rounds, shape (cells, members), from counts (cells, categories) below 2^62.

        Raises:
            ValueError: the shape is another.
        """
        check_counts(self.bounds, statistics)
        drawn = np.empty((len(statistics), self.members), dtype=np.int64)
        cells = max(1, _CHUNK // self.bounds.categories)
        for start in range(0, len(statistics), cells):
            part = statistics[start : start + cells]
            is_taken = np.zeros(part.shape, dtype=bool)
            for turn in range(self.members):
                codes = self._selected(part, is_taken, source)
                drawn[start : start + cells, turn] = codes
                is_taken[np.arange(len(part)), codes] = True
        return drawn

    def _selected(self, counts: Codes, is_taken: NDArray[np.bool_], source: RandomBytes) -> Codes:
        """One category for each cell, among those not taken yet."""
        best = np.where(is_taken, np.iinfo(np.int64).min, counts).max(axis=1, keepdims=True)
        return selected(np.where(is_taken, -1, best - counts), self.ratio, source)

    def chances(self, counts: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of every sequence of codes, by enumeration: for few categories."""
        chances: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for _ in range(self.members):
            longer: dict[tuple[int, ...], Fraction] = {}
            for codes, chance in chances.items():
                # As an exponent, an integer of NumPy would wrap.
                rest = {code: int(n) for code, n in enumerate(counts) if code not in codes}
                for code, own in chances_of(rest, self.ratio).items():
                    longer[*codes, code] = chance * own
            chances = longer
        return chances
