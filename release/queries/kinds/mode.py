"""mode: the category of most units, most rows or most weight; ties go to the smallest code.

A unit's profile is what it adds to each category: one, its number of rows, or its weight there.
Rows whose category is outside the domain are left out. An empty cell has the smallest code.

With noise on the statistic the scores are the totals of the categories. Distinct units are counted
unless the spec says otherwise, because a unit then moves each total by one at most, however many
rows it has. Ties, and empty cells, are decided by lot.

Global sensitivity of the answer: every difference. Whatever the bound on a unit's rows, two
categories can be so close that one unit decides between them, and they can be any two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from release.exact.domain import Codes
from release.exact.statistics.nearness import Wording
from release.exact.statistics.statistic import Scores
from release.queries.base import Prepared, Profiles
from release.queries.on_statistic import OnStatisticQuery
from release.queries.reached import reached_by_pairs
from release.queries.statistics import doubled_unless_added
from release.spec.declarations import ColumnType, Pair, Relation
from release.spec.domains import AMOUNT_LIMIT, Bins, Domain, Nominal, Ordered, plain_answers
from release.spec.expressions import identifier, literal
from release.spec.query import DomainQuery, spoken


class CategoryQuery(Protocol):
    """The fields of a query that answers with one category of a cell."""

    @property
    def of(self) -> str:
        """The column of the category."""

    @property
    def weight(self) -> str | None:
        """The column to sum; None to count rows."""

    @property
    def clamp(self) -> list[int] | None:
        """The bounds of one row's weight."""

    @property
    def counts_units(self) -> bool:
        """Whether a unit counts once in each of its categories."""

    @property
    def domain(self) -> Domain:
        """The possible categories."""


def category_type(domain: Domain) -> ColumnType:
    """The type of a column of categories."""
    return ColumnType.STRING if isinstance(domain, Nominal) else ColumnType.INTEGER


class Counted(StrEnum):
    """What is counted in a category."""

    UNITS = "units"
    ROWS = "rows"


class ModeQuery(DomainQuery, OnStatisticQuery):
    """The category of most units, most rows or most ``weight``; ties go to the smallest code.

    Its domain is cyclic, nominal or ordered.
    """

    kind: Literal["mode"] = Field(description="the kind of query")
    of: str = Field(description="the column of the category")
    count: Counted | None = Field(
        default=None,
        strict=False,
        description="what is counted: `units`, the default with noise on the statistic, or `rows`",
    )
    weight: str | None = Field(default=None, description="an integer column to sum, not to count")
    clamp: Pair | None = Field(
        default=None, description="the lowest and highest weight a row counts as"
    )

    @property
    def counts_units(self) -> bool:
        """Whether a unit counts once in each of its categories."""
        if self.count is None:
            return self.is_on_statistic and self.weight is None
        return self.count is Counted.UNITS

    def question(self, units: str) -> str:
        """The category of most units, rows or weight."""
        if self.weight is not None:
            return f"the {spoken(self.of)} with the largest total of {spoken(self.weight)}"
        return f"the {spoken(self.of)} of most {units if self.counts_units else 'rows'}"

    @property
    def wording(self) -> Wording:
        """Counted are units, rows, or units of the weight's column."""
        if self.weight is not None:
            counted = f"units of {self.weight}"
        else:
            counted = "units" if self.counts_units else "rows"
        return replace(super().wording, counted=counted)

    @property
    def in_units(self) -> dict[str, Any]:
        """Distinct units are counted where the spec counts rows."""
        return {"count": Counted.UNITS} if self.count is Counted.ROWS else {}

    def fields_on_statistic(self, rows: int) -> dict[str, Any]:
        """A weight needs bounds, which no public fact suggests."""
        if self.weight is not None and self.clamp is None:
            raise ValueError("the weight of a row has no bounds; write clamp: [lo, hi]")
        return {}

    def statistic(self, rows: int, relation: Relation) -> Scores:
        """The totals of the categories."""
        heaviest = 1 if self.clamp is None else max(map(abs, self.clamp))
        most = 1 if self.counts_units else rows * heaviest
        # A unit with one row is in one category, so it lowers one total and raises another.
        # A weight may be negative, and then two totals rise together.
        is_counted = self.weight is None and rows == 1
        is_swap = is_counted and relation is not Relation.ADD_REMOVE
        spread = doubled_unless_added(most, relation)
        return Scores(self.answers.size, spread, np.positive, is_swap)

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        # A weight says what is counted, and a part of a tuple may leave it to the tuple.
        says_count = self.weight is None and (self.count is not None or self.is_released)
        return {
            "of": self.of,
            "weight": self.weight,
            "clamp": self.clamp,
            "count": self.counted.value if says_count else None,
        }

    @property
    def counted(self) -> Counted:
        """What is counted for each category."""
        return Counted.UNITS if self.counts_units else Counted.ROWS

    def sums(self) -> Mode:
        """How its profiles become sums and answers."""
        return Mode(self)

    @property
    def bounded(self) -> tuple[str, int, int] | None:
        """The weight, where the spec bounds it."""
        if self.weight is None or self.clamp is None:
            return None
        return identifier(self.weight), self.clamp[0], self.clamp[1]

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The category's column, and that of the weight."""
        weight = {} if self.weight is None else {"weight": (self.weight, ColumnType.INTEGER)}
        return {"of": (self.of, category_type(self.domain)), **weight}

    @model_validator(mode="after")
    def _check(self) -> ModeQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a mode needs a domain that is cyclic, nominal or ordered")
        if self.weight is None and self.clamp is not None:
            raise ValueError("clamp bounds the weight of a row; add weight: the column")
        if self.weight is not None and self.count is not None:
            raise ValueError("a weight is summed, not counted; leave count out")
        if self.clamp is not None and not -AMOUNT_LIMIT <= self.clamp[0] < self.clamp[1] <= (
            AMOUNT_LIMIT
        ):
            raise ValueError("clamp must be [lo, hi] with lo below hi, both within ±(2^31 - 1)")
        if self.is_on_statistic and self.weight is not None and self.clamp is None:
            raise ValueError(
                "noise on the statistic has to bound a row's weight; add clamp: [lo, hi], or write "
                "noise: on_answer"
            )
        return self


@dataclass(frozen=True)
class Mode:
    """The commonest category of one query."""

    query: CategoryQuery

    @property
    def unit_sql(self) -> str:
        """All that a unit adds to a category, or that it is there."""
        return 'max("#value")' if self.query.counts_units else 'sum("#value")'

    @property
    def eligible_sql(self) -> str:
        """The category is in the domain, and the weight, where the query has one, is present."""
        weighted = (
            "" if self.query.weight is None else f" AND {identifier(self.query.weight)} IS NOT NULL"
        )
        return f"({self.item_sql}) IS NOT NULL{weighted}"

    @property
    def item_sql(self) -> str:
        """The category's code, NULL outside the domain."""
        column, domain = identifier(self.query.of), self.query.domain
        if isinstance(domain, Nominal):
            labels = ", ".join(map(literal, domain.nominal))
            # NULL where the label is not in the list: the position is then NULL, not 0.
            return f"list_position([{labels}], {column}) - 1"
        low = domain.ordered.min if isinstance(domain, Ordered) else 0
        high = low + self.width - 1
        return f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} - ({low}) END"

    @property
    def value_sql(self) -> str:
        """The weight, clamped to the bounds of the spec or of all amounts, or one for each row."""
        if self.query.weight is None:
            return "1"
        weight = identifier(self.query.weight)
        low, high = self.query.clamp or (-AMOUNT_LIMIT, AMOUNT_LIMIT)
        return f"greatest(least({weight}, {high}), {low})"

    @property
    def items(self) -> int:
        """One for each category."""
        return self.width

    @property
    def width(self) -> int:
        """The number of categories."""
        return plain_answers(self.query.domain).size

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """A profile is the unit's weight in each category."""
        profiles[unit, item] = total

    def decide(self, sums: Profiles) -> Codes:
        """The first of the largest sums."""
        return np.asarray(np.argmax(sums, axis=1), dtype=np.int64)

    def prepared(self, entering: Profiles) -> Prepared:
        """The profiles, and the most of each category."""
        return entering, np.abs(entering).max(axis=0)

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By pairs, among the categories that a unit can bring within reach of the leader.

        Cost: nothing where no category is near, else |leaving|·|entering|·(categories near).
        """
        profiles, most = entering
        # A pair moves the sum of a category by at most the largest |a| plus the largest |b| there.
        # One that lies further behind the leader than both swings can neither win nor matter.
        swing = np.abs(leaving).max(axis=0) + most
        leader = int(np.argmax(sums))
        near = np.flatnonzero(sums + swing >= sums[leader] - swing[leader])
        if near.size == 1:
            return near
        within = reached_by_pairs(self, sums[near], leaving[:, near], profiles[:, near])
        return near[within]

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """The categories that win if a unit brings all that it can to them.

        Cost: |leaving|·categories.
        """
        # No other profile helps a category more, whichever its rival, and a category that wins
        # without help also wins with it. So one trial a category is enough.
        most = self._most(rows)
        rest = sums - leaving
        first = np.asarray(rest.argmax(axis=1), dtype=np.int64)
        leader = rest[np.arange(len(rest)), first]
        # A tie goes to the smaller code.
        needed = leader[:, None] + (np.arange(self.width) > first[:, None])
        return np.flatnonzero((rest + most >= needed).any(axis=0))

    def _most(self, rows: int) -> int:
        """The most that a unit can add to a category."""
        if self.query.weight is None:
            return 1 if self.query.counts_units else rows
        clamp = self.query.clamp
        # A weight below 0 lowers a rival, which helps no more than to be raised as far.
        return rows * (AMOUNT_LIMIT if clamp is None else max(map(abs, clamp)))

    def steps(self, rows: int, relation: Relation) -> Codes:
        """Every step."""
        return np.arange(self.width, dtype=np.int64)
