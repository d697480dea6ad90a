"""The commonest of few categories by a table of chances, where one unit may replace another.

A gap is how far a score lies below the largest (:mod:`release.exact.statistics.gap_states`).
:class:`GapTable` holds the chances by the gaps as integers, and proves them pair by pair; where a
table comes from does not matter to the proof (docs/design/selection-gap-tables.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.numbers import exp_bounds
from release.exact.sampling import SYSTEM, RandomBytes, random_below_power
from release.exact.statistics.cascade import cascade_weights, public_cap
from release.exact.statistics.gap_states import (
    BITS,
    FEWEST,
    MOST,
    MOST_STATES,
    TOTAL,
    Integers,
    check_lead,
    checked_scores,
    count_states,
    neighbor_places,
    state_ranks,
    states,
)
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.nearness import Nearness, Wording, nearness_of_one
from release.exact.statistics.statistic import Scores, Statistic


@dataclass(frozen=True, eq=False)
class GapTable(StatisticMechanism):
    """The chance of each category by the gaps of all of them, as integers over :data:`TOTAL`.

    A *state* is the list of the gaps from the smallest, which is 0, to the largest, gaps above
    ``cap`` counted as ``cap``. ``weights`` has shape (states, categories): the states in the order
    of :func:`states`, and in each the categories by increasing gap. Categories with equal gaps have
    equal weights, so it does not matter in which order they are taken.

    Raises:
        ValueError: sizes that are out of range, a wrong shape, a negative weight, a row that does
            not add up to the total, or unequal weights at equal gaps.
    """

    family = "gap_table"

    categories: int
    cap: int
    weights: Integers

    def __post_init__(self) -> None:
        if not FEWEST <= self.categories <= MOST:
            raise ValueError(f"a gap table has {FEWEST} to {MOST} categories")
        if not self.cap >= 1:
            raise ValueError("the cap of a gap table is at least 1")
        # Before any state is listed: a forged cap must cost nothing.
        if not count_states(self.categories, self.cap) <= MOST_STATES:
            raise ValueError(f"a gap table has at most {MOST_STATES} states")
        if self.weights.shape != (count_states(self.categories, self.cap), self.categories):
            raise ValueError("a gap table needs a row for each state, a weight for each category")
        if self.weights.dtype != np.int64:
            raise ValueError("the weights of a gap table are 64-bit integers")
        if not ((self.weights >= 0) & (self.weights <= TOTAL)).all():
            raise ValueError(f"a weight of a gap table is not in 0 … {TOTAL}")
        # Python integers, because a forged file may hold weights whose 64-bit sum wraps round.
        if set(map(sum, self.weights.tolist())) != {TOTAL}:
            raise ValueError(f"a row of a gap table does not add up to {TOTAL}")
        gaps = states(self.categories, self.cap)
        is_tie = gaps[:, 1:] == gaps[:, :-1]
        if not (self.weights[:, 1:] == self.weights[:, :-1])[is_tie].all():
            raise ValueError("a gap table has unequal weights at equal gaps")
        self.weights.setflags(write=False)

    # Written out: the equality of a dataclass would ask an array for one truth value.
    def __eq__(self, another: object) -> bool:
        return (
            isinstance(another, GapTable)
            and (self.categories, self.cap) == (another.categories, another.cap)
            and bool(np.array_equal(self.weights, another.weights))
        )

    def __hash__(self) -> int:
        return hash((self.categories, self.cap, self.weights.tobytes()))

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> GapTable | None:
        """As :meth:`StatisticMechanism.designed`: the cascade.

        Where ε is small there is none: it would be too large, or is not private.
        """
        scores = Scores.checked(statistic)
        cap = public_cap(scores.inputs, epsilon)
        return None if cap is None else cascade(scores.inputs, cap, epsilon)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> GapTable:
        """As :meth:`StatisticMechanism.of_law`."""
        scores = Scores.checked(statistic)
        return cls(scores.inputs, law.cap, np.array(law.weights, dtype=np.int64))

    def law(self) -> forms.GapLaw:
        """As :meth:`StatisticMechanism.law`."""
        return forms.GapLaw(forms.MECHANISM, "gap_table", self.cap, self.weights.tolist())

    @property
    def inputs(self) -> int:
        """As :attr:`StatisticMechanism.inputs`: a score for each category."""
        return self.categories

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`: every pair of :func:`neighbor_places`."""
        low, _ = exp_bounds(epsilon)
        weights = self.weights.ravel()
        # For integers w ≤ v·num/den exactly where w ≤ ⌊v·num/den⌋. No weight is above TOTAL, so
        # the bound may be cut there, and fits 64 bits.
        bounds = (w * low.numerator // low.denominator for w in weights.tolist())
        allowed = np.array([min(TOTAL, bound) for bound in bounds], dtype=np.int64)
        before, after = neighbor_places(self.categories, self.cap)
        return bool((weights[before] <= allowed[after]).all())

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return (
            f"A choice among {self.categories} categories by their gaps up to {self.cap}, proved "
            "for one unit that is replaced"
        )

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`."""
        return nearness_of_one(self.chance_of_leader, wording)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from scores of at least 0.

        Raises:
            ValueError: statistics that are not scores of so many categories.
        """
        order, row = self._rows_of(statistics)
        cumulative = np.cumsum(self.weights[row], axis=1)
        uniform = _uniform_below_total(len(row), source)
        place = (cumulative <= uniform[:, np.newaxis]).sum(axis=1, keepdims=True)
        return np.take_along_axis(order, place, axis=1)

    def chances(self, scores: Codes) -> list[Fraction]:
        """The exact chance of each category, by its code, from one row of scores.

        Raises:
            ValueError: what is not a score for each category.
        """
        order, row = self._rows_of(np.asarray(scores)[np.newaxis])
        weights = dict(zip(order[0].tolist(), self.weights[row[0]].tolist(), strict=True))
        return [Fraction(weights[code], TOTAL) for code in range(self.categories)]

    def _rows_of(self, statistics: Codes) -> tuple[Codes, Codes]:
        """The categories of each cell by increasing gap, and the row of its state."""
        scores = checked_scores(statistics, self.categories)
        gaps = np.minimum(scores.max(axis=1, keepdims=True) - scores, self.cap)
        order = np.argsort(gaps, axis=1, kind="stable")
        return order, state_ranks(np.take_along_axis(gaps, order, axis=1), self.cap)

    def error_at_lead(self, lead: int) -> Fraction:
        """The exact chance of any other category than one that is ``lead`` above all others.

        The others are equal. With ``lead`` 0 all are, and the chance is that of all but one.

        Raises:
            ValueError: a negative lead.
        """
        check_lead(lead)
        gaps = np.full((1, self.categories), min(lead, self.cap), dtype=np.int64)
        gaps[0, 0] = 0
        return 1 - Fraction(int(self.weights[state_ranks(gaps, self.cap)[0], 0]), TOTAL)

    def chance_of_leader(self, lead: int) -> float:
        """The least chance of a category that is ``lead`` above the next, whatever the others."""
        gaps = states(self.categories, self.cap)
        here = gaps[:, 1] == min(lead, self.cap)
        return float(self.weights[here, 0].min() / TOTAL)


@lru_cache(maxsize=4)
def cascade(categories: int, cap: int, epsilon: Fraction) -> GapTable | None:
    """The gap table of the cascade, or None where it is not ``epsilon``-private.

    Raises:
        ValueError: a number of categories or a cap that no gap table has, or ε not in [0, 100].
    """
    table = GapTable(categories, cap, cascade_weights(categories, cap, epsilon))
    return table if table.satisfies(epsilon) else None


def _uniform_below_total(count: int, source: RandomBytes) -> Integers:
    """Uniform integers below the total: those above it, 2^-60 of all, are drawn again."""
    uniform = random_below_power(BITS, count, source).astype(np.int64)
    while (again := np.flatnonzero(uniform >= TOTAL)).size:
        uniform[again] = random_below_power(BITS, again.size, source)
    return uniform
