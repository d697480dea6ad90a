"""A Frictionless Table Schema as a contract.

Fields that the spec does not declare are ignored, and so is what is for people. Of the others every
rule becomes one of the contract, or is refused by the name of its field: a rule that is silently
left out would seem to hold. What a text means stays with ``release.tables``: a schema whose texts
mean something else is refused.

Source: https://specs.frictionlessdata.io/table-schema/
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from release.errors import SpecError
from release.spec.contracts.model import ColumnContract, Contract, Value
from release.spec.declarations import ColumnType
from release.spec.domains import Model
from release.spec.refusals.shape import shape_error

_TYPES = {
    "string": ColumnType.STRING,
    "integer": ColumnType.INTEGER,
    "number": ColumnType.NUMBER,
    "date": ColumnType.DATE,
    "datetime": ColumnType.TIMESTAMP,
    "boolean": ColumnType.BOOLEAN,
}

_FOR_PEOPLE = {"$schema", "name", "title", "description", "example", "rdfType"}

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}

_WORDS = re.compile(r"\s*([+-]?inf(inity)?|t|true|y|yes|f|false|n|no)\s*", re.IGNORECASE)
"""Texts without a digit that are a number or a Boolean."""


class Constraints(Model):
    """The constraints of a field that a contract has a rule for."""

    required: bool = Field(default=False, description="whether a value must be there")
    unique: bool = Field(default=False, description="whether a value occurs once")
    minimum: Value | None = Field(default=None, description="the least value")
    maximum: Value | None = Field(default=None, description="the largest value")
    enum: list[Value] | None = Field(default=None, description="all values")
    pattern: str | None = Field(default=None, description="a pattern for the whole text")


class SchemaField(Model):
    """A field of a Table Schema, without what is for people."""

    type: str = Field(description="the type of the field")
    format: str = Field(default="default", description="how a value is written")
    constraints: Constraints = Field(default=Constraints(), description="the rules")
    missing_values: list[str] | None = Field(
        default=None, alias="missingValues", description="texts of no value"
    )


class TableSchema(Model):
    """A Table Schema, without what is for people; its fields are read one by one."""

    fields: list[dict[str, Any]] = Field(description="the columns")
    missing_values: list[str] = Field(
        default=[""], alias="missingValues", description="texts of no value"
    )
    primary_key: str | list[str] = Field(
        default=[], alias="primaryKey", description="the columns that name a row"
    )


def contract_of(at: str, plain: Mapping[str, Any], declared: Mapping[str, ColumnType]) -> Contract:
    """The contract of a Table Schema; ``at`` begins every message.

    Raises:
        SpecError: it is no Table Schema, or has a rule for a declared column that a contract cannot
            have; the message names the field.
    """
    try:
        schema = TableSchema.model_validate(_rules(plain))
    except ValidationError as error:
        raise shape_error(TableSchema, error, f"{at}, ") from error
    key = schema.primary_key
    unique = [key] if isinstance(key, str) else key
    columns, alone = {}, []
    for entry in schema.fields:
        name = entry.get("name")
        if not isinstance(name, str) or name not in declared:
            continue
        here = f"{at}, field {name!r}"
        if name in columns:
            raise SpecError(here, "is there twice; remove one")
        field = _field(here, entry)
        columns[name] = _column(here, field, schema.missing_values, name in unique)
        if field.constraints.unique and unique != [name]:
            alone.append(name)
    if len(alone) > (0 if unique else 1):
        raise SpecError(
            f"{at}, field {alone[-1]!r}",
            "is unique beside another key; a contract counts the repeats of one key; remove one",
        )
    # Names and meanings are for people, and stay in the schema.
    return Contract(
        contract="dp-release/table/v1",
        table="",
        description="",
        unit="",
        unique=unique or alone,
        columns=columns,
    )


def _rules(plain: Mapping[str, Any]) -> dict[str, Any]:
    # Everything else is left in, so that what has no rule here is refused by its name.
    return {key: value for key, value in plain.items() if key not in _FOR_PEOPLE}


def _field(here: str, plain: Mapping[str, Any]) -> SchemaField:
    try:
        field = SchemaField.model_validate(_rules(plain))
    except ValidationError as error:
        raise shape_error(SchemaField, error, f"{here}, ") from error
    if field.type not in _TYPES:
        raise SpecError(
            here, f"has the type {field.type[:60]!r}; a column has one of {', '.join(_TYPES)}"
        )
    if field.format != "default":
        raise SpecError(
            here, f"has the format {field.format[:60]!r}; a value is written in the default format"
        )
    return field


def _column(here: str, field: SchemaField, missing: list[str], is_key: bool) -> ColumnContract:
    kind, rules = _TYPES[field.type], field.constraints
    _check_missing(here, kind, missing if field.missing_values is None else field.missing_values)
    plain = {
        "type": kind,
        "meaning": "",
        "measure": "",
        # In a Table Schema a primary key is never missing.
        "nullable": not (rules.required or is_key),
        "allowed": None if rules.enum is None else [_value(kind, value) for value in rules.enum],
        "minimum": _value(kind, rules.minimum),
        "maximum": _value(kind, rules.maximum),
        "pattern": rules.pattern,
    }
    try:
        return ColumnContract.model_validate(plain)
    except ValidationError as error:
        raise shape_error(ColumnContract, error, f"{here}, ") from error


def _value(kind: ColumnType, value: object) -> object:
    """A value of a constraint, which may be written as text, in the form of a contract."""
    if not isinstance(value, str):
        return value
    if kind is ColumnType.INTEGER and _INTEGER.fullmatch(value):
        return int(value)
    if kind is ColumnType.NUMBER and _NUMBER.fullmatch(value):
        return float(value)
    if kind is ColumnType.BOOLEAN:
        return _BOOLEANS.get(value, value)
    if kind is ColumnType.TIMESTAMP:
        return _moment(value)
    return value


def _moment(text: str) -> str:
    """A time in the form of a contract; what is none stays as it is, and is refused there."""
    # A column of times has no zone, and its texts may end with Z too.
    try:
        return datetime.datetime.fromisoformat(text.removesuffix("Z")).isoformat(" ")
    except ValueError:
        return text


def _check_missing(here: str, kind: ColumnType, texts: list[str]) -> None:
    """Refuse texts of no value that are one here, and a schema in which no text is a value."""
    if "" not in texts:
        raise SpecError(f"{here}, missingValues", 'an empty text is no value here; add ""')
    for text in texts:
        # Everything that is not of its type is missing; of strings only the empty text is.
        could_be = text != "" if kind is ColumnType.STRING else _could_be_value(text)
        if could_be:
            raise SpecError(
                f"{here}, missingValues",
                f"{text[:60]!r} may be a value of a {kind.value} column; leave such cells empty",
            )


def _could_be_value(text: str) -> bool:
    # Wider than what is read as one: a text that might be a value is refused rather than dropped.
    return any(map(str.isdigit, text)) or _WORDS.fullmatch(text) is not None
