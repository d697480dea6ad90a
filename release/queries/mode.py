"""mode: the category with most rows, or most weight; ties go to the smallest code.

A unit's profile is its number of rows, or its weight, in each category. Rows whose category is
outside the domain are left out. An empty cell has the smallest code.

Global sensitivity: every difference. Whatever the bound on a unit's rows, two categories can be so
close that one unit decides between them, and they can be any two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from release.exact.domain import Codes
from release.queries.base import Prepared, Profiles, SummedQuery, reached_by_pairs
from release.spec.declarations import ColumnType, Relation
from release.spec.domains import INTEGER_LIMIT, Bins, Domain, Nominal, Ordered, plain_answers
from release.spec.expressions import identifier, literal
from release.spec.query import DomainQuery


class CategoryQuery(Protocol):
    """The fields of a query that answers with one category of a cell."""

    @property
    def of(self) -> str:
        """The column of the category."""

    @property
    def weight(self) -> str | None:
        """The column to sum; None to count rows."""

    @property
    def domain(self) -> Domain:
        """The possible categories."""


def category_type(domain: Domain) -> ColumnType:
    """The type of a column of categories."""
    return ColumnType.STRING if isinstance(domain, Nominal) else ColumnType.INTEGER


class ModeQuery(DomainQuery, SummedQuery):
    """The category with most rows, or most ``weight``; ties go to the smallest code.

    Its domain is cyclic, nominal or ordered.
    """

    kind: Literal["mode"] = Field(description="the kind of query")
    of: str = Field(description="the column of the category")
    weight: str | None = Field(default=None, description="an integer column to sum, not rows")

    def sums(self) -> Mode:
        """How its profiles become sums and answers."""
        return Mode(self)

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The category's column, and that of the weight."""
        weight = {} if self.weight is None else {"weight": (self.weight, ColumnType.INTEGER)}
        return {"of": (self.of, category_type(self.domain)), **weight}

    @model_validator(mode="after")
    def _check(self) -> ModeQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a mode needs a domain that is cyclic, nominal or ordered")
        return self


@dataclass(frozen=True)
class Mode:
    """The commonest category of one query."""

    query: CategoryQuery

    unit_sql = 'sum("#value")'

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
        """The weight, or one for each row."""
        return "1" if self.query.weight is None else identifier(self.query.weight)

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
        most = rows if self.query.weight is None else rows * INTEGER_LIMIT
        rest = sums - leaving
        first = np.asarray(rest.argmax(axis=1), dtype=np.int64)
        leader = rest[np.arange(len(rest)), first]
        # A tie goes to the smaller code.
        needed = leader[:, None] + (np.arange(self.width) > first[:, None])
        return np.flatnonzero((rest + most >= needed).any(axis=0))

    def steps(self, rows: int, relation: Relation) -> Codes:
        """Every step."""
        return np.arange(self.width, dtype=np.int64)
