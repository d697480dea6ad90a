"""Table contracts: what a column may hold, and what happens to a row that breaks a rule.

A contract is a YAML file (``schemas/tables/`` has those of the sample tables) that a spec names by
``tables.<name>.contract``. Every rule looks at one value, so a row is clamped or dropped by itself.

A refusal says something about the table, so ``refuse`` is for tables of instance-specific queries
only. Rules of *fixed* columns are reported and not enforced: neighbors share those columns, and the
public keys already name their values. ``unique`` is reported only.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from release.errors import SpecError
from release.spec.declarations import ColumnType
from release.spec.domains import Model
from release.spec.expressions import identifier, literal
from release.spec.expressions.patterns import check_pattern
from release.spec.fields import description_of


class OnViolation(StrEnum):
    """What happens to a row with a value that breaks a rule.

    ``clamp``: a number or a date beyond its bounds becomes the bound. ``drop``: the row is left
    out. ``refuse``: the release is refused.
    """

    CLAMP = "clamp"
    DROP = "drop"
    REFUSE = "refuse"


Bound = int | Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]

_MOST_BYTES = 2**20
"""Bytes of a contract file."""

_BOUNDED = {ColumnType.INTEGER: int, ColumnType.DATE: str}


class ColumnContract(Model):
    """The rules of one column."""

    type: ColumnType = Field(strict=False, description="the type of the column, as in the spec")
    meaning: str = Field(description="what the column says, for people")
    measure: str = Field(description="the unit of measure, for people")
    nullable: bool = Field(description="whether values may be missing")
    allowed: list[str | int] | None = Field(default=None, description="all allowed values")
    minimum: Bound | None = Field(default=None, description="the least allowed value")
    maximum: Bound | None = Field(default=None, description="the largest allowed value")
    pattern: str | None = Field(default=None, description="a pattern for the whole text")
    on_violation: OnViolation = Field(
        default=OnViolation.DROP,
        strict=False,
        description="what happens to a row that breaks a rule",
    )

    @model_validator(mode="after")
    def _check(self) -> ColumnContract:
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        # A bound of another type would compare with nothing, or as text.
        kind = _BOUNDED.get(self.type)
        if bounds and (kind is None or not all(isinstance(bound, kind) for bound in bounds)):
            raise ValueError("minimum and maximum are integers, or dates as text, as the type is")
        if kind is str:
            for bound in bounds:
                date.fromisoformat(str(bound))
        if len(bounds) == 2 and not self.minimum <= self.maximum:  # type: ignore[operator]  # one type
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        if self.on_violation is OnViolation.CLAMP and not bounds:
            raise ValueError("there is nothing to clamp to; give minimum or maximum, or write drop")
        if self.pattern is not None:
            if self.type is not ColumnType.STRING:
                raise ValueError("a pattern is for strings")
            check_pattern(self.pattern)
        return self

    def kept_sql(self, column: str) -> dict[str, str]:
        """An SQL condition for each rule, true where the value of ``column`` satisfies it."""
        # NULL satisfies every rule but ``nullable``: else SQL would make the condition NULL.
        name = identifier(column)
        rules = {} if self.nullable else {"nullable": f"{name} IS NOT NULL"}
        if self.minimum is not None:
            rules["minimum"] = f"({name} IS NULL OR {name} >= {self._literal(self.minimum)})"
        if self.maximum is not None:
            rules["maximum"] = f"({name} IS NULL OR {name} <= {self._literal(self.maximum)})"
        if self.allowed is not None:
            values = ", ".join(map(self._literal, self.allowed))
            rules["allowed"] = f"({name} IS NULL OR {name} IN ({values}))"
        if self.pattern is not None:
            match = f"regexp_full_match({name}, {literal(self.pattern)})"
            rules["pattern"] = f"({name} IS NULL OR {match})"
        return rules

    def clamped_sql(self, column: str) -> str:
        """The SQL of the value of ``column`` within its bounds; a missing value stays missing."""
        # CASE, because ``greatest`` and ``least`` of DuckDB skip NULL: it would become the bound.
        name = clamped = identifier(column)
        if self.minimum is not None:
            clamped = f"greatest({clamped}, {self._literal(self.minimum)})"
        if self.maximum is not None:
            clamped = f"least({clamped}, {self._literal(self.maximum)})"
        return f"CASE WHEN {name} IS NOT NULL THEN {clamped} END"

    def _literal(self, value: str | int) -> str:
        if self.type is ColumnType.DATE:
            return f"DATE {literal(str(value))}"
        return str(value) if isinstance(value, int) else literal(value)


class Contract(Model):
    """A table contract, a YAML file that ``tables.<name>.contract`` of a spec names."""

    contract: Literal["dp-release/table/v1"] = Field(description="the version of this format")
    table: str = Field(description="the name of the table, for people")
    description: str = Field(description="what the table holds, for people")
    unit: str = Field(description="the column that names the privacy unit")
    unique: list[str] = Field(default=[], description="columns that together name a row once")
    columns: dict[str, ColumnContract] = Field(description="the rules of each column")


def read_contract(field: str, path: Path) -> Contract:
    """Read a contract.

    Raises:
        SpecError: the file cannot be read, or is no contract; the message names the field.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise SpecError(field, f"{path.name} has more than {_MOST_BYTES} bytes; shorten it")
        return Contract.model_validate(yaml.safe_load(text.decode("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(field, f"{path.name} cannot be read as YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "contract"
        meaning = description_of(Contract, first["loc"])
        hint = f" ({meaning})" if meaning else ""
        raise SpecError(field, f"{path.name}, {place}: {first['msg']}{hint}") from error
