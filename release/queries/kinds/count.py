"""count: the number of rows, or units, that meet the condition, clamped to the domain.

A unit's profile is its number of rows in the cell, at most ``max_rows_per_unit``; where units are
counted, it is 1 if the unit has a row there.

Global sensitivity: replacing, adding or removing a unit changes the count by at most
``max_rows_per_unit``, and clamping to the domain never widens a change: ±1 .. ±max_rows_per_unit.
Units: ±1.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from release.errors import SpecError
from release.exact.domain import Codes
from release.queries.base import Prepared, Profiles, SummedQuery
from release.queries.reached import between, reached_by_order, steps_between
from release.spec.declarations import Privacy, Relation
from release.spec.domains import MOST_IN_ORDER, Domain, Integers, Ordered, OrderedRange
from release.spec.query import DomainQuery


class CountQuery(DomainQuery, SummedQuery):
    """The number of rows that meet ``where``, clamped to an ordered domain from 0 or more."""

    is_narrow = False

    kind: Literal["count"] = Field(description="the kind of query")
    of: str | None = Field(default=None, description="the privacy unit, to count units, not rows")
    domain: Domain = Field(
        default=Ordered(ordered=OrderedRange(min=0, max=MOST_IN_ORDER // 2)),
        description="the possible answers; without it, whole numbers from 0 up",
    )

    @property
    def counts_rows(self) -> bool:
        """Whether rows are counted, not units."""
        return self.of is None

    def question(self, units: str) -> str:
        """The number of units, or of rows under the word that the spec has for them."""
        return f"the number of {(self.units or 'rows') if self.of is None else units}"

    @property
    def scale(self) -> str:
        """None is a true zero."""
        return "ratio"

    @property
    def step_word(self) -> str:
        """Rows, or privacy units."""
        return "rows" if self.of is None else "units"

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {"of": self.of}

    def counts_again(self, privacy: Privacy) -> bool:
        """As every question has it."""
        is_free = any(column not in privacy.fixed for column in self.by)
        return not self.counts_rows and is_free and privacy.max_cells_per_unit != 1

    def sums(self) -> Count:
        """How its profiles become sums and answers."""
        return Count(self)

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """Only rows and units can be counted."""
        if self.of not in (None, privacy.unit):
            remedy = f"a count counts rows, or units: leave it out or write {privacy.unit}"
            raise SpecError(f"{at}.of", remedy)

    @model_validator(mode="after")
    def _check(self) -> CountQuery:
        is_bounded = isinstance(self.domain, Ordered) and self.domain.ordered.min >= 0
        if not is_bounded and not isinstance(self.domain, Integers):
            raise ValueError(
                "a count needs domain: {ordered: {min: a, max: b}} with min at least 0, or "
                "{integers: {}}"
            )
        return self


@dataclass(frozen=True)
class Count:
    """The count of one query."""

    query: CountQuery

    # Every row that meets ``where`` adds 1 to the one sum.
    eligible_sql, item_sql, value_sql = "true", "0", "1"
    items, width = 1, 1

    @property
    def unit_sql(self) -> str:
        """All rows of a unit count, or the unit itself."""
        return 'sum("#value")' if self.query.of is None else 'max("#value")'

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """A profile is the unit's number of rows, or that it has one."""
        profiles[unit, 0] = total

    def decide(self, sums: Profiles) -> Codes:
        """The clamped count, as a code."""
        return np.clip(sums[:, 0], self._bounds.min, self._bounds.max) - self._bounds.min

    def prepared(self, entering: Profiles) -> Prepared:
        """The numbers of rows, ascending."""
        return np.unique(entering[:, 0])

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """By order: every integer between is an edge."""
        return reached_by_order(self._edges, int(sums[0]), leaving[:, 0], entering)

    @property
    def _bounds(self) -> OrderedRange:
        domain = self.query.domain
        # The query's own check refuses other domains; the type says less.
        if not isinstance(domain, Ordered | Integers):
            raise TypeError("a count without an ordered domain")
        return domain.ordered

    @property
    def _size(self) -> int:
        return self._bounds.max - self._bounds.min + 1

    @cached_property
    def _edges(self) -> Codes:
        return np.arange(self._bounds.min + 1, self._bounds.max + 1, dtype=np.int64)

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """All codes from the count without a unit to that with the most it can add."""
        # A unit can bring any number of rows up to the bound, so the codes have no gaps.
        rest = sums[0] - np.unique(leaving[:, 0])
        most = rows if self.query.of is None else 1
        lowest, highest = self.decide(rest[:, None]), self.decide(rest[:, None] + most)
        return between(lowest, highest, self._size)

    def steps(self, rows: int, relation: Relation) -> Codes:
        """0 .. max_rows_per_unit for a new unit, ± for a replaced one; at most 1 of units."""
        # Clamping to the domain never widens a change.
        most = rows if self.query.of is None else 1
        down = 0 if relation is Relation.ADD_REMOVE else most
        return steps_between(down, most, self._size)
