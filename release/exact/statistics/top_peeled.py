"""The k commonest categories one after the other, each by permute-and-flip.

Each round publishes one category and takes it out; the rounds share the charge evenly and basic
composition adds them up. Permute-and-flip (McKenna and Sheldon 2020) visits the candidates in
uniformly random order and publishes the first one accepted; that is noisy maximum with one-sided
noise (Ding et al. 2021). The proof is T3 of docs/design/mathematics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes, draw_geometric, random_below_power
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    least_ratio,
    loss_above,
)
from release.exact.statistics.top_bounds import CountBounds, check_counts, check_members

_CHUNK = 1 << 20
_WORD_BITS = 64


@dataclass(frozen=True)
class PeeledTop(StatisticMechanism):
    """Publishes ``members`` categories in the order of the rounds; ρ = ``ratio``/2^64.

    Raises:
        ValueError: no category or all of them are published, or the ratio is not between 0 and 1.
    """

    bounds: CountBounds
    members: int
    ratio: int

    family: ClassVar[str] = "top_peeled"

    def __post_init__(self) -> None:
        check_members(self.bounds, self.members)
        if not 0 < self.ratio < RATIO_ONE:
            raise ValueError("permute-and-flip needs a ratio between 0 and 1")

    @classmethod
    def fitted(cls, epsilon: Fraction, bounds: CountBounds, members: int) -> PeeledTop:
        """The one that decides best among those proved for ε.

        Raises:
            ValueError: ε is too small for 64 bits, or as for the class.
        """
        return cls(bounds, members, least_ratio(epsilon, members * bounds.range_of_counts))

    @property
    def inputs(self) -> int:
        """One count for each category."""
        return self.bounds.categories

    @property
    def outputs(self) -> int:
        """One code for each round."""
        return self.members

    @property
    def spread(self) -> int:
        """The range of the changes of the counts between neighbors, summed over the rounds."""
        return self.members * self.bounds.range_of_counts

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether ρ^spread·e^ε ≥ 1."""
        return self.spread * loss_above(self.ratio) <= epsilon

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
        # P(G ≥ gap) = ρ^gap. Gaps are below 2^62, so the end of G changes nothing.
        coins = draw_geometric(self.ratio, counts.size, source).reshape(counts.shape)
        is_accepted = ~is_taken & (coins >= best - counts)
        # The first accepted in random order is any of the accepted: the order is independent.
        return _uniform_choice(is_accepted, source)

    def chances(self, counts: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
        """The probability of every sequence of codes, by enumeration: for few categories."""
        ratio = Fraction(self.ratio, RATIO_ONE)
        chances: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for _ in range(self.members):
            longer: dict[tuple[int, ...], Fraction] = {}
            for codes, chance in chances.items():
                rest = {code: n for code, n in enumerate(counts) if code not in codes}
                for code, selected in selection_chances(rest, ratio).items():
                    longer[*codes, code] = chance * selected
            chances = longer
        return chances


def selection_chances(scores: dict[int, int], ratio: Fraction) -> dict[int, Fraction]:
    """With which probability permute-and-flip selects each candidate, exactly."""
    best = max(scores.values())
    accepted = {code: ratio ** (best - score) for code, score in scores.items()}
    chances = {}
    for code, own in accepted.items():
        # Π (1 - u·p) over the others, as coefficients of the powers of u, integrated from 0 to 1.
        product = [Fraction(1)]
        for other, chance in accepted.items():
            if other != code:
                shifted = [Fraction(0), *(-chance * term for term in product)]
                product = [a + b for a, b in zip([*product, Fraction(0)], shifted, strict=True)]
        chances[code] = own * sum(term / (power + 1) for power, term in enumerate(product))
    return chances


def _uniform_choice(is_candidate: NDArray[np.bool_], source: RandomBytes) -> Codes:
    """The place of a uniform one of the candidates of each row; each row has one or more."""
    candidates = is_candidate.sum(axis=1).astype(np.uint64)
    chosen = np.zeros(len(candidates), dtype=np.uint64)
    waiting = np.arange(len(candidates))
    while waiting.size:
        words = random_below_power(_WORD_BITS, waiting.size, source)
        sizes = candidates[waiting]
        # 2^64 mod size: so many words at the end would make some places more likely.
        surplus = (np.uint64(2**64 - 1) - sizes + np.uint64(1)) % sizes
        chosen[waiting] = words % sizes
        waiting = waiting[words > np.uint64(2**64 - 1) - surplus]
    reached = np.cumsum(is_candidate, axis=1) > chosen[:, np.newaxis].astype(np.int64)
    return np.asarray(reached.argmax(axis=1), dtype=np.int64)
