"""The columns that files have, compared with the declared ones; nothing here reads a row.

The declaration rules, never the file: columns are taken by name, and a file that lacks one, or has
it in a type that does not fit, is refused.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow as pa

from release.errors import DataError, SpecError
from release.spec.declarations import ColumnType, Table

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
"""The Arrow types of the declared ones, for partitions, whose folders have no type."""

_MOST_COLUMNS = 10_000
"""The engine takes a minute to look at a header of a million."""

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PARTITION_FORMS = {
    ColumnType.STRING: r".+",
    ColumnType.INTEGER: r"-?[0-9]{1,18}",
    ColumnType.DATE: _DATE,
    # Some writers escape the colons and the space of a time.
    ColumnType.TIMESTAMP: rf"{_DATE}( |%20)[0-9:%A]+(\.[0-9]{{1,6}})?",
    ColumnType.NUMBER: r"-?[0-9]{1,15}(\.[0-9]{1,15})?",
    ColumnType.BOOLEAN: r"true|false",
}
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def check_partition(field: str, kind: ColumnType, value: str) -> None:
    """Check the value in the name of a partition's folder.

    Raises:
        DataError: it is not of the declared type.
    """
    # The engine would round 1.5 to an integer, and take an empty name for a missing value.
    if value != _MISSING and not re.fullmatch(_PARTITION_FORMS[kind], value, re.ASCII):
        raise DataError(
            f"{field}: declared {kind.value}, but the name of a folder holds something else; "
            "rename it"
        )


def read_header(name: str, table: Table, file: Path) -> tuple[str, ...]:
    """The header of a CSV file, which has every declared column once.

    Raises:
        SpecError: it has not, or cannot be read.
    """
    field = f"tables.{name}.path"
    try:
        # Spreadsheets begin UTF-8 with a byte order mark, which must not become part of a name.
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header = tuple(next(csv.reader(lines), []))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(field, f"{file.name} cannot be read as UTF-8 CSV") from error
    _check_width(field, file.name, len(header))
    lowered = list(map(str.casefold, header))
    for column in table.columns:
        count = lowered.count(column.casefold())
        if column not in header or count != 1:
            raise SpecError(
                f"tables.{name}.columns.{column}",
                f"{file.name} has {count or 'no'} such column in its header (DuckDB ignores case)",
            )
    return header


def check_schema(name: str, columns: dict[str, ColumnType], schema: pa.Schema, where: str) -> None:
    """Check that a schema has every column once, in a type that fits.

    Raises:
        SpecError: it has not; ``where`` is what messages call the file or relation.
    """
    _check_width(f"tables.{name}.path", where, len(schema))
    lowered = list(map(str.casefold, schema.names))
    for column, kind in columns.items():
        field = f"tables.{name}.columns.{column}"
        count = lowered.count(column.casefold())
        if schema.names.count(column) != 1:
            names = ", ".join(schema.names[:12])
            raise SpecError(field, f"{where} has no such column; it has {names}")
        if count > 1:
            message = f"{where} has {count} columns of this name up to case; rename the others"
            raise SpecError(field, message)
        stored = schema.field(column).type
        if not fits(stored, kind):
            raise SpecError(
                field, f"declared {kind.value}, but {where} has {stored}; correct the type"
            )


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
    numeric = pa.types.is_integer(stored) or pa.types.is_floating(stored)
    return {
        ColumnType.STRING: pa.types.is_string(stored) or pa.types.is_large_string(stored),
        ColumnType.INTEGER: pa.types.is_integer(stored),
        ColumnType.DATE: pa.types.is_date(stored),
        # With a time zone the engine would shift times by the setting of the session.
        ColumnType.TIMESTAMP: pa.types.is_timestamp(stored) and stored.tz is None,
        ColumnType.NUMBER: numeric or pa.types.is_decimal(stored),
        ColumnType.BOOLEAN: pa.types.is_boolean(stored),
    }[kind] is True


def comparable_type(stored: pa.DataType) -> pa.DataType:
    """A stored type, equal for all types that engines read alike."""
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_large_string(stored):
        return pa.string()
    # Integers are widened, and clamped afterwards.
    return pa.int64() if pa.types.is_signed_integer(stored) else stored
