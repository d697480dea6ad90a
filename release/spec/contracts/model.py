"""The rules of a table contract: what a column may hold, and what happens to a row that breaks one.

Every rule looks at one value, so a row is clamped or dropped by itself.

A refusal says something about the table, so ``refuse`` is for tables of instance-specific queries
only. Rules of *fixed* columns are reported and not enforced: neighbors share those columns, and the
public keys already name their values. ``unique`` is reported only.
"""

from __future__ import annotations

import datetime
import sys
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from release.spec.declarations import ColumnType
from release.spec.domains import Model
from release.spec.expressions import identifier, literal
from release.spec.expressions.patterns import check_pattern


class OnViolation(StrEnum):
    """What happens to a row with a value that breaks a rule.

    ``clamp``: a value beyond its bounds becomes the bound. ``drop``: the row is left out.
    ``refuse``: the release is refused.
    """

    CLAMP = "clamp"
    DROP = "drop"
    REFUSE = "refuse"


def _single(value: object) -> object:
    # YAML reads an unquoted 2013-01-05 as a date; a rule has it as text.
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    # Here, because each type of the union would say this once more.
    if not isinstance(value, str | int | float):
        raise ValueError("write a single value, such as 0 or '2013-01-05'")
    return value


def _in_order(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false have no order; write a number, or a date as text")
    return _single(value)


Value: TypeAlias = Annotated[bool | int | float | str, BeforeValidator(_single)]
Bound: TypeAlias = Annotated[int | float | str, BeforeValidator(_in_order)]

_FORMS = {
    ColumnType.STRING: "a text",
    ColumnType.INTEGER: "an integer of 64 bits",
    ColumnType.NUMBER: "a finite number",
    ColumnType.DATE: "a date as text, such as '2013-01-05'",
    ColumnType.TIMESTAMP: "a time as text and without an offset, such as '2013-01-05 12:30:00'",
    ColumnType.BOOLEAN: "true or false",
}
_BOUNDED = {ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE, ColumnType.TIMESTAMP}


def _is_value(kind: ColumnType, value: object) -> bool:
    """Whether a value of a contract is one of a column's type, in its only form."""
    match kind:
        case ColumnType.INTEGER:
            return type(value) is int and -(2**63) <= value < 2**63
        case ColumnType.NUMBER:
            # A Boolean is an int to Python; a comparison with NaN is false.
            return type(value) in (int, float) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]  # a number by now
        case ColumnType.BOOLEAN:
            return type(value) is bool
        case ColumnType.STRING:
            # The engine's text may end at the first character 0.
            return isinstance(value, str) and "\0" not in value
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            return isinstance(value, str) and _is_moment(kind, value)


def _is_moment(kind: ColumnType, text: str) -> bool:
    try:
        if kind is ColumnType.DATE:
            return datetime.date.fromisoformat(text).isoformat() == text
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is None and moment.isoformat(" ") == text


class ColumnContract(Model):
    """The rules of one column."""

    type: ColumnType = Field(strict=False, description="the type of the column, as in the spec")
    meaning: str = Field(description="what the column says, for people")
    measure: str = Field(description="the unit of measure, for people")
    nullable: bool = Field(description="whether values may be missing")
    allowed: list[Value] | None = Field(
        default=None, min_length=1, description="all allowed values, of the column's type"
    )
    minimum: Bound | None = Field(
        default=None, description="the least allowed value, of the column's type"
    )
    maximum: Bound | None = Field(
        default=None, description="the largest allowed value, of the column's type"
    )
    pattern: str | None = Field(default=None, description="a pattern for the whole text")
    on_violation: OnViolation = Field(
        default=OnViolation.DROP,
        strict=False,
        description="what happens to a row that breaks a rule",
    )

    @model_validator(mode="after")
    def _check(self) -> ColumnContract:
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        if bounds and self.type not in _BOUNDED:
            raise ValueError(
                f"minimum and maximum are for integers, numbers, dates and times, not for a "
                f"{self.type.value}; remove them"
            )
        # A value of another type would compare with nothing, or as text.
        for value in (*bounds, *(self.allowed or ())):
            if not _is_value(self.type, value):
                name = "allowed" if value in (self.allowed or ()) else "minimum or maximum"
                raise ValueError(
                    f"a value of {name} is not of the type {self.type.value}; write "
                    f"{_FORMS[self.type]}"
                )
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

    def _literal(self, value: bool | int | float | str) -> str:
        match self.type:
            case ColumnType.NUMBER:
                # From text, because a decimal constant would be another double for some values.
                return f"CAST({literal(repr(float(value)))} AS DOUBLE)"
            case ColumnType.DATE:
                return f"DATE {literal(str(value))}"
            case ColumnType.TIMESTAMP:
                return f"TIMESTAMP {literal(str(value))}"
            case ColumnType.STRING:
                return literal(str(value))
            case ColumnType.INTEGER | ColumnType.BOOLEAN:
                return str(value).lower()


class Contract(Model):
    """A table contract, a YAML file that ``tables.<name>.contract`` of a spec names."""

    contract: Literal["dp-release/table/v1"] = Field(description="the version of this format")
    table: str = Field(description="the name of the table, for people")
    description: str = Field(description="what the table holds, for people")
    unit: str = Field(description="the column that names the privacy unit")
    unique: list[str] = Field(default=[], description="columns that together name a row once")
    columns: dict[str, ColumnContract] = Field(description="the rules of each column")
