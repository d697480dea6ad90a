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

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sampling import RandomBytes, draw_geometric, random_below_power
from release.exact.statistics.mechanism import RATIO_ONE, near_power
from release.exact.statistics.selection import Selection


class PermuteAndFlip(Selection):
    """The first candidate, in a random order, that is accepted with chance ρ^gap."""

    family = "permute_and_flip"
    how = "permute-and-flip"

    def drawn(self, gaps: Codes, source: RandomBytes) -> Codes:
        """As :meth:`Selection.drawn`."""
        return selected(gaps, self.ratio, source)

    def chances(self, scores: Codes) -> list[Fraction]:
        """As :meth:`Selection.chances`; the cost is cubic in their number."""
        return list(chances_of(dict(enumerate(scores.tolist())), self.ratio).values())

    def chance_of_leader(self, lead: int) -> float:
        """As :meth:`Selection.chance_of_leader`."""
        share = near_power(self.ratio, lead)
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
        for rival, chance in accepted.items():
            if rival != code:
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
