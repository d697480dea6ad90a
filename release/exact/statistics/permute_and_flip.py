"""Permute-and-flip: of public candidates the one with the largest score, from one pure charge.

In a random order each candidate is accepted with chance ρ^g, g being how far its score lies below
the best; the first that is accepted is published (McKenna and Sheldon 2020). The order is
independent of the coins, so the first is any one of the accepted, each as likely; so it is drawn
here, with a geometric number for every candidate, and the work does not depend on the scores.

It is ε-private where neighbors change all scores by amounts within an interval of length
``spread``, and ρ^spread·e^ε ≥ 1 (docs/design/mathematics.md T3). Only differences of scores matter,
and no rule for ties is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes, draw_geometric, random_below_power
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    is_private,
    least_ratio,
)

_ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True)
class PermuteAndFlip(StatisticMechanism):
    """``ratio`` is ρ in units of 2^-64; neighbors change scores within a range of ``spread``.

    Raises:
        ValueError: fewer than two candidates, a spread below 1, or a ratio not between 0 and 1.
    """

    family = "permute_and_flip"

    candidates: int
    spread: int
    ratio: int

    def __post_init__(self) -> None:
        if self.candidates < 2 or self.spread < 1 or not 0 < self.ratio < RATIO_ONE:
            raise ValueError(
                "a selection needs two candidates, a spread of 1 or more and a ratio below 1"
            )

    @classmethod
    def fitted(cls, epsilon: Fraction, candidates: int, spread: int) -> PermuteAndFlip:
        """The one of least noise that is ``epsilon``-private.

        Raises:
            ValueError: there is none in 64 bits.
        """
        return cls(candidates, spread, least_ratio(epsilon, spread))

    @property
    def inputs(self) -> int:
        """The scores."""
        return self.candidates

    @property
    def outputs(self) -> int:
        """The code of one candidate."""
        return 1

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`, by T3."""
        return is_private(self.ratio, self.spread, epsilon)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`; ``statistics`` are scores."""
        drawn = np.empty((len(statistics), 1), dtype=np.int64)
        step = max(1, _ENTRIES_AT_ONCE // self.candidates)
        for start in range(0, len(statistics), step):
            drawn[start : start + step, 0] = self._draw(statistics[start : start + step], source)
        return drawn

    def _draw(self, scores: Codes, source: RandomBytes) -> Codes:
        gaps = scores.max(axis=1, keepdims=True) - scores
        return selected(gaps, self.ratio, source)

    def chances(self, scores: Codes) -> list[Fraction]:
        """The exact chance of each candidate; its cost is cubic in their number."""
        return list(chances_of(dict(enumerate(scores.tolist())), self.ratio).values())

    def chance_of_leader(self, lead: int) -> float:
        """The chance to publish a candidate that leads all others, which tie, by ``lead``.

        Rounded. No other scores with this lead make the leader less likely.
        """
        share = (self.ratio / RATIO_ONE) ** lead
        if share * self.candidates < 1e-6:
            return 1 - (self.candidates - 1) * share / 2
        return float((1 - (1 - share) ** self.candidates) / (self.candidates * share))


def selected(gaps: Codes, ratio: int, source: RandomBytes) -> Codes:
    """One candidate of each row, from how far each lies below the best; -1 leaves one out.

    ``gaps`` has shape (cells, candidates), one of each row being 0; ``ratio`` is in units of 2^-64.
    """
    # P(G ≥ gap) = ρ^gap. Gaps are below 2^62, so the end of G changes nothing.
    coins = draw_geometric(ratio, gaps.size, source).reshape(gaps.shape)
    return _uniform_choice((gaps >= 0) & (coins >= gaps), source)


def chances_of(scores: dict[int, int], ratio: int) -> dict[int, Fraction]:
    """The exact chance of each candidate by its score; the cost is cubic in their number.

    P(s) = p_s·∫₀¹ Π_{t≠s} (1 - u·p_t) du with p = ρ^gap.
    """
    best = max(scores.values())
    share = Fraction(ratio, RATIO_ONE)
    accepted = {code: share ** (best - score) for code, score in scores.items()}
    chances = {}
    for code, own in accepted.items():
        # The product, as coefficients of the powers of u, is integrated term by term.
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
        words = random_below_power(64, waiting.size, source)
        sizes = candidates[waiting]
        # 2^64 mod size: so many words at the end would make some places more likely.
        surplus = (np.uint64(2**64 - 1) - sizes + np.uint64(1)) % sizes
        chosen[waiting] = words % sizes
        waiting = waiting[words > np.uint64(2**64 - 1) - surplus]
    reached = np.cumsum(is_candidate, axis=1) > chosen[:, np.newaxis].astype(np.int64)
    return np.asarray(reached.argmax(axis=1), dtype=np.int64)
