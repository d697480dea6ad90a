"""The columns that files have, compared with the declared ones; nothing here reads a row.

The declaration rules, never the file: columns are taken by name, and a file that lacks one, or has
it in a type that does not fit, is refused.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from release.errors import SpecError, did_you_mean
from release.spec.declarations import ColumnType, CsvFormat, Table, other_separator
from release.tables.lines import header_of
from release.tables.normal import ENGINE_TYPES

SQL_TYPES = {
    ColumnType.STRING: "VARCHAR",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
    ColumnType.NUMBER: "DOUBLE",
    ColumnType.BOOLEAN: "BOOLEAN",
}

ARROW_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us"),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
}
"""The Arrow types of the declared ones, of values that are normal already."""

_MOST_COLUMNS = 10_000
"""The engine takes a minute to look at a header of a million."""


def read_header(name: str, table: Table, form: CsvFormat, file: Path) -> tuple[str, ...]:
    """The header of a CSV file, which has every declared column once.

    Raises:
        SpecError: it has not, or cannot be read.
    """
    field = f"tables.{name}.path"
    try:
        header = tuple(header_of(file, form))
    except UnicodeDecodeError as error:
        remedy = f"name its encoding, such as csv: {{encoding: {likely_encoding(file)}}}"
        raise SpecError(field, f"{file.name} is not UTF-8; {remedy}") from error
    except (OSError, csv.Error) as error:
        raise SpecError(field, f"{file.name} cannot be read as CSV") from error
    _check_width(field, file.name, len(header))
    lowered = list(map(str.casefold, header))
    separator = form.separator_of(file)
    other = other_separator(header, separator)
    # Where no name is a declared one the line may be a row, and what a row holds is in no message.
    if not any(column.casefold() in lowered for column in table.columns):
        if other is not None:
            mark = "\\t" if other == "\t" else other
            remedy = f'write csv: {{separator: "{mark}"}}'
            raise SpecError(field, f"{file.name} is separated by '{mark}'; {remedy}")
        raise SpecError(
            field,
            f"line {form.skip + 1} of {file.name} names none of the declared columns; the first "
            "line of each CSV file has to be its header, or write csv: {header: [names]} for files "
            "without one, or csv: {skip: lines} where others stand before it",
        )
    for column in table.columns:
        count = lowered.count(column.casefold())
        at = f"tables.{name}.columns.{column}"
        if not count:
            near = did_you_mean(column, header)
            has = ", ".join(header[:12])
            raise SpecError(at, f"{file.name} has no such column; {near}it has {has}")
        if count > 1:
            problem = f"{file.name} has {count} columns of this name up to case; rename the others"
            raise SpecError(at, problem)
        if column not in header:
            written = header[lowered.index(column.casefold())]
            raise SpecError(at, f"{file.name} has {written!r}; write the name so")
    return header


def likely_encoding(file: Path) -> str:
    """The encoding that a file which is not UTF-8 probably has."""
    try:
        with file.open("rb") as stream:
            start = stream.read(2)
    except OSError:
        start = b""
    return "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "cp1252"


def check_schema(name: str, columns: dict[str, ColumnType], schema: pa.Schema, where: str) -> None:
    """Check that a schema has every column once, in a type that fits.

    Raises:
        SpecError: it has not; ``where`` is what messages call the file or relation.
    """
    _check_width(f"tables.{name}.path", where, len(schema))
    for column, kind in columns.items():
        field = f"tables.{name}.columns.{column}"
        _check_once(field, column, schema.names, where)
        stored = schema.field(column).type
        if not fits(stored, kind):
            raise misfit(field, kind, where, str(stored))


def check_relation(
    name: str, columns: dict[str, ColumnType], stored: Mapping[str, str], where: str
) -> None:
    """As :func:`check_schema` for the engine's own types, by their identifiers.

    Raises:
        SpecError: a column is missing, ambiguous or of another type.
    """
    _check_width(f"tables.{name}.path", where, len(stored))
    for column, kind in columns.items():
        field = f"tables.{name}.columns.{column}"
        _check_once(field, column, list(stored), where)
        if stored[column] not in ENGINE_TYPES[kind]:
            raise misfit(field, kind, where, stored[column])


def computed_relation(name: str, relation: str) -> SpecError:
    """The refusal of a view: its expressions could fail on one row."""
    return SpecError(
        f"tables.{name}.relation",
        f"{relation!r} is computed when it is read; store it (CREATE TABLE … AS SELECT)",
    )


def computed_column(name: str, column: str) -> SpecError:
    """The refusal of a generated column: its expression could fail on one row."""
    return SpecError(
        f"tables.{name}.columns.{column}", "is computed when it is read; store it, or derive it"
    )


def _check_once(field: str, column: str, names: Sequence[str], where: str) -> None:
    if list(names).count(column) != 1:
        near = did_you_mean(column, names)
        raise SpecError(field, f"{where} has no such column; {near}it has {', '.join(names[:12])}")
    count = list(map(str.casefold, names)).count(column.casefold())
    if count > 1:
        message = f"{where} has {count} columns of this name up to case; rename the others"
        raise SpecError(field, message)


def misfit(field: str, kind: ColumnType, where: str, stored: str) -> SpecError:
    """The refusal of a column that is stored in a type which its declared one does not fit."""
    return SpecError(field, f"declared {kind.value}, but {where} has {stored}; correct the type")


def _check_width(field: str, where: str, columns: int) -> None:
    if columns > _MOST_COLUMNS:
        raise SpecError(
            field,
            f"{where} has {columns} columns, at most {_MOST_COLUMNS} are read; keep those that "
            "are declared",
        )


def fits(stored: pa.DataType, kind: ColumnType) -> bool:
    """Whether a column that is stored as this Arrow type may be declared as ``kind``."""
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    # What a part of a table stores where it has no value at all.
    if pa.types.is_null(stored):
        return True
    is_number = (
        pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored)
    )
    return {
        # Identifiers are often stored as numbers: their digits.
        ColumnType.STRING: _is_text(stored) or pa.types.is_integer(stored),
        # Pandas makes floats of integers with missing values; what is not whole is missing.
        ColumnType.INTEGER: is_number,
        # A time has to be a midnight; one with a zone is none everywhere.
        ColumnType.DATE: pa.types.is_date(stored) or _is_local_time(stored),
        ColumnType.TIMESTAMP: pa.types.is_timestamp(stored),
        ColumnType.NUMBER: is_number,
        ColumnType.BOOLEAN: pa.types.is_boolean(stored),
    }[kind] is True


def type_of(stored: pa.DataType) -> ColumnType | None:
    """The type that a column which is stored as this Arrow type is best declared as."""
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_null(stored):
        return None
    is_whole = pa.types.is_decimal(stored) and stored.scale <= 0
    if fits(stored, ColumnType.NUMBER) and not (pa.types.is_integer(stored) or is_whole):
        return ColumnType.NUMBER
    if pa.types.is_timestamp(stored):
        return ColumnType.TIMESTAMP
    if pa.types.is_integer(stored):
        return ColumnType.INTEGER
    return next((kind for kind in ColumnType if fits(stored, kind)), None)


def _is_text(stored: pa.DataType) -> bool:
    return bool(pa.types.is_string(stored)) or bool(pa.types.is_large_string(stored))


def _is_local_time(stored: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(stored)) and stored.tz is None
