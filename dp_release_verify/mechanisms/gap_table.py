"""A row of weights for each state of gaps between the scores of three to six categories."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from math import comb

from dp_release_verify import forms
from dp_release_verify.canonical import SCALE, below_e
from dp_release_verify.losses import Profile, worst_case
from dp_release_verify.mechanisms.base import Deltas, Mechanism, not_this_question
from dp_release_verify.mechanisms.selection import check_votes
from dp_release_verify.reach import Reach

_TOTAL = 2**62 - 4
_MOST_STATES = 2**15


class GapTable(Mechanism):
    """The chance of a category follows from the gaps of all scores below the highest."""

    def __init__(
        self, file: str, law: forms.GapLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        question = reach.question
        if question.kind != "mode" or not question.on_statistic:
            raise not_this_question(file, "gap_table")
        check_votes(self, 6)
        self.size, self.cap = question.size, law.cap
        self.need(self.size >= 3, "family", self.size, "3 categories or more")
        states = comb(self.cap + self.size - 1, self.cap)
        self.need(states <= _MOST_STATES, "cap", states, f"at most {_MOST_STATES} states")
        gaps = combinations_with_replacement(range(self.cap + 1), self.size - 1)
        self.need(len(law.weights) == states, "weights", len(law.weights), states)
        self.weights: dict[tuple[int, ...], dict[int, int]] = {}
        for rest, weights in zip(gaps, law.weights, strict=True):
            state = (0, *rest)
            self.need(len(weights) == self.size, "weights", state, f"{self.size} weights")
            by_gap = dict(zip(state, weights, strict=True))
            is_fair = [by_gap[gap] for gap in state] == weights
            self.need(is_fair, "weights", state, "equal weights of equal gaps")
            self.weights[state] = by_gap

    def check(self) -> None:
        """Every row of weights is drawn exactly."""
        for state, by_gap in self.weights.items():
            total = sum(by_gap[gap] for gap in state)
            self.need(total == _TOTAL, "weights", total, "2^62 - 4")

    def _weights_of(self, scores: tuple[int, ...]) -> list[int]:
        top = max(scores)
        gaps = [min(top - score, self.cap) for score in scores]
        by_gap = self.weights[tuple(sorted(gaps))]
        return [by_gap[gap] for gap in gaps]

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps: every change of one vote moves every weight by at most e^ε."""
        ratio = below_e(epsilon)
        votes = []
        for place in range(self.size + 1):
            # The last is no vote at all.
            votes.append(tuple(int(each == place) for each in range(self.size)))
        for gaps in combinations_with_replacement(range(self.cap + 3), self.size - 1):
            scores = (0, *(-gap for gap in gaps))
            before = self._weights_of(scores)
            for rises, falls in permutations(votes, 2):
                moved = tuple(a + b - c for a, b, c in zip(scores, rises, falls, strict=True))
                for v, w in zip(before, self._weights_of(moved), strict=True):
                    if max(v, w) * SCALE > ratio * min(v, w):
                        return Deltas(Fraction(1), Fraction(1))
        return Deltas(Fraction(0), Fraction(0))

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The worst case of its ε."""
        return worst_case(epsilon, Fraction(0), step)
