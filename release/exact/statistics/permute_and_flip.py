"""Permute-and-flip: of public candidates the one with the largest score, from one pure charge.

In a random order each candidate is accepted with chance ρ^g, g being how far its score lies below
the best; the first that is accepted is published (McKenna and Sheldon 2020). It is the same to add
to every score a geometric number G with P(G ≥ g) = ρ^g and to take the largest, ties by lot (Ding
et al. 2021); so it is drawn here, and the work does not depend on the scores.

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
    least_ratio,
    loss_above,
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
        return self.spread * loss_above(self.ratio) <= epsilon

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`; ``statistics`` are scores."""
        drawn = np.empty((len(statistics), 1), dtype=np.int64)
        step = max(1, _ENTRIES_AT_ONCE // self.candidates)
        for start in range(0, len(statistics), step):
            drawn[start : start + step, 0] = self._draw(statistics[start : start + step], source)
        return drawn

    def _draw(self, scores: Codes, source: RandomBytes) -> Codes:
        gaps = scores.max(axis=1, keepdims=True) - scores
        noise = draw_geometric(self.ratio, scores.size, source).reshape(scores.shape)
        noisy = noise - gaps
        order = _lots(scores.shape, source)
        # Among the largest the one with the highest lot: the lots of a row are all different.
        among = np.where(noisy == noisy.max(axis=1, keepdims=True), order, 0)
        return np.asarray(among.argmax(axis=1), dtype=np.int64)

    def chances(self, scores: Codes) -> list[Fraction]:
        """The exact chance of each candidate; its cost grows as the square of their number.

        P(s) = p_s·∫₀¹ Π_{t≠s} (1 - u·p_t) du with p = ρ^gap.
        """
        ratio = Fraction(self.ratio, RATIO_ONE)
        best = int(scores.max())
        shares = [ratio ** (best - score) for score in scores.tolist()]
        chances = []
        for place, share in enumerate(shares):
            product = [Fraction(1)]
            for other in shares[:place] + shares[place + 1 :]:
                shifted = [Fraction(0), *(-other * term for term in product)]
                product = [a + b for a, b in zip([*product, Fraction(0)], shifted, strict=True)]
            whole = sum(term / (power + 1) for power, term in enumerate(product))
            chances.append(share * whole)
        return chances

    def chance_of_leader(self, lead: int) -> float:
        """The chance to publish a candidate that leads all others, which tie, by ``lead``.

        Rounded. No other scores with this lead make the leader less likely.
        """
        share = (self.ratio / RATIO_ONE) ** lead
        if share * self.candidates < 1e-6:
            return 1 - (self.candidates - 1) * share / 2
        return float((1 - (1 - share) ** self.candidates) / (self.candidates * share))


_MOST_LOTTERIES = 16
"""Lots that tie are drawn again; that so many lotteries tie has a chance below 2^-400."""


def _lots(shape: tuple[int, ...], source: RandomBytes) -> NDArray[np.uint64]:
    """Random words above 0, all different within a row, so that their order is uniform."""
    lots = random_below_power(64, shape[0] * shape[1], source).reshape(shape)
    for _ in range(_MOST_LOTTERIES):
        ordered = np.sort(lots, axis=1)
        again = (ordered[:, 0] == 0) | (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not again.any():
            break
        # What is drawn again depends on no score.
        fresh = random_below_power(64, int(again.sum()) * shape[1], source)
        lots[again] = fresh.reshape(-1, shape[1])
    return np.maximum(lots, 1)
