"""per_unit: each unit's own category; the keys are the public list of units.

It is a mode over the one row that is read of a unit: the first, by the declared columns, whose
category is in the domain. A listed unit without such a row has the smallest code. Only attribute
neighbors make sense: the list of units is public, their categories are not.

Global and empirical sensitivity: every difference, because the category of a unit may become any
other. With the error rate as loss function, the optimal mechanism is k-ary randomised response.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field, model_validator

from release.errors import SpecError
from release.queries.base import SummedQuery
from release.queries.kinds.mode import Mode, category_type
from release.spec.declarations import ColumnType, Privacy
from release.spec.domains import Bins
from release.spec.query import DomainQuery, spoken


class PerUnitQuery(DomainQuery, SummedQuery):
    """Each unit's own category, for attribute neighbors; the keys are the public list of units.

    Its domain is cyclic, nominal or ordered. It reads one row of a unit.
    """

    kind: Literal["per_unit"] = Field(description="the kind of query")
    of: str = Field(description="the column of the unit's category")

    def question(self, units: str) -> str:
        """The unit's category."""
        return f"the {spoken(self.of)} of each of the {units}"

    @property
    def for_units(self) -> bool:
        """Each unit has its own answer."""
        return True

    def asked_fields(self) -> dict[str, Any]:
        """The fields that this kind has beside those of every question."""
        return {"of": self.of}

    def sums(self) -> Mode:
        """A mode over the one row of a unit."""
        return Mode(self)

    def needed_columns(self) -> dict[str, tuple[str, ColumnType]]:
        """The category's column."""
        return {"of": (self.of, category_type(self.domain))}

    def check(self, at: str, privacy: Privacy, keys: Collection[str]) -> None:
        """The keys are the units, whose categories may change."""
        if self.by != [privacy.unit] or privacy.unit not in keys:
            remedy = f"per_unit is one answer a unit: write [{privacy.unit}], and its keys"
            raise SpecError(f"{at}.by", remedy)

    @property
    def weight(self) -> str | None:
        """Each row counts one."""
        return None

    @property
    def clamp(self) -> list[int] | None:
        """There is no weight to bound."""
        return None

    @property
    def counts_units(self) -> bool:
        """A unit has one row here."""
        return False

    @model_validator(mode="after")
    def _check(self) -> PerUnitQuery:
        if isinstance(self.domain, Bins):
            raise ValueError("a per_unit answer needs a domain that is cyclic, nominal or ordered")
        if self.max_rows_per_unit not in (None, 1):
            raise ValueError(
                "a per_unit answer reads one row of a unit; leave max_rows_per_unit out"
            )
        return self
