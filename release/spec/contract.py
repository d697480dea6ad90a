"""Table contracts: what a column may hold, and what becomes of a row that does not keep to it.

A contract is a YAML file (``schemas/tables/`` has those of the sample tables) that a spec names by
``tables.<name>.contract``. Every rule looks at one value, so a broken one is put right row by row:

- ``clamp``: a number or a date beyond its bounds becomes the bound;
- ``drop``: the row is left out (what happens where nothing is said);
- ``refuse``: the release is refused. A refusal tells of the table, so this is for tables of
  instance-specific queries only.

Rules of *fixed* columns are reported, not enforced: a neighbor takes those columns over, and the
public keys already say which there are. ``unique`` is reported only.
"""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from release.errors import SpecError
from release.spec.domains import Model
from release.spec.expressions import identifier, literal
from release.spec.model import ColumnType


class OnViolation(StrEnum):
    """What becomes of a row with a value that breaks a rule."""

    CLAMP = "clamp"
    DROP = "drop"
    REFUSE = "refuse"


Bound = int | Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]

_BOUNDED = {ColumnType.INTEGER: int, ColumnType.DATE: str}


class ColumnContract(Model):
    """The rules of one column; ``meaning`` and ``measure`` (its unit) are for people."""

    type: Annotated[ColumnType, Field(strict=False)]
    meaning: str
    measure: str
    nullable: bool
    allowed: list[str | int] | None = None
    minimum: Bound | None = None
    maximum: Bound | None = None
    pattern: str | None = None
    on_violation: Annotated[OnViolation, Field(strict=False)] = OnViolation.DROP

    @model_validator(mode="after")
    def _check(self) -> ColumnContract:
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        kind = _BOUNDED.get(self.type)
        if bounds and (kind is None or not all(isinstance(bound, kind) for bound in bounds)):
            raise ValueError("minimum and maximum are integers, or dates as text, as the type is")
        if kind is str:
            for bound in bounds:
                date.fromisoformat(str(bound))
        if self.on_violation is OnViolation.CLAMP and not bounds:
            raise ValueError("there is nothing to clamp to; give minimum or maximum, or write drop")
        if self.pattern is not None:
            if self.type is not ColumnType.STRING:
                raise ValueError("a pattern is for strings")
            try:
                re.compile(self.pattern)
            except re.error:
                raise ValueError("the pattern is no regular expression") from None
        return self

    def kept_sql(self, column: str) -> dict[str, str]:
        """A condition for each rule, true where the value of ``column`` keeps it."""
        name = identifier(column)
        given = {
            "minimum": self.minimum is not None and f"{name} >= {self._literal(self.minimum)}",
            "maximum": self.maximum is not None and f"{name} <= {self._literal(self.maximum)}",
            "allowed": self.allowed is not None
            and f"{name} IN ({', '.join(map(self._literal, self.allowed))})",
            "pattern": self.pattern is not None
            and f"regexp_full_match({name}, {literal(self.pattern)})",
        }
        rules = {rule: f"({name} IS NULL OR {sql})" for rule, sql in given.items() if sql}
        return rules if self.nullable else {"nullable": f"{name} IS NOT NULL", **rules}

    def clamped_sql(self, column: str) -> str:
        """The value of ``column`` within its bounds; a missing one stays missing."""
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
    """The contract of one table."""

    contract: Literal["dp-release/table/v1"]
    table: str
    description: str
    unit: str
    unique: list[str] = Field(default_factory=list)
    columns: dict[str, ColumnContract]


def read_contract(field: str, path: Path) -> Contract:
    """Read a contract.

    Raises:
        SpecError: it cannot be read, or says something that cannot be meant.
    """
    try:
        return Contract.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(field, f"{path.name} cannot be read as YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "contract"
        raise SpecError(field, f"{path.name}, {place}: {first['msg']}") from error
