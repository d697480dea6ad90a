"""Reading a table or view of an SQLite file: by Python's own library, read-only, in batches.

DuckDB reads SQLite only with an extension from the network, and the engine may load none. SQLite
types values, not columns, so each value is checked against the declared type here.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from release.errors import DataError, SpecError, listed
from release.spec.declarations import ColumnType, Table
from release.spec.expressions import identifier

MAGIC = b"SQLite format 3\x00"

_ROWS_AT_ONCE = 2**16

_STORED: dict[ColumnType, tuple[pa.DataType, set[type]]] = {
    ColumnType.STRING: (pa.string(), {str}),
    ColumnType.INTEGER: (pa.int64(), {int}),
    ColumnType.NUMBER: (pa.float64(), {int, float}),
    ColumnType.BOOLEAN: (pa.int64(), {int}),
    # SQLite has no dates: they are stored as text.
    ColumnType.DATE: (pa.string(), {str}),
    ColumnType.TIMESTAMP: (pa.string(), {str}),
}
"""The Arrow type of each declared type on its way to the engine, and SQLite's types for it."""


def is_sqlite(file: Path) -> bool:
    """Whether the file begins as SQLite databases do."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def batches(name: str, table: Table, file: Path) -> Iterator[pa.Table]:
    """The declared columns of a table's relation, in batches; the first one is empty.

    Confidential.

    Raises:
        SpecError: the relation or a column is missing.
        DataError: a value is not of its declared type, or the file cannot be read.
    """
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        ) as connection:
            _check(name, table, connection)
            columns = ", ".join(map(identifier, table.columns))
            rows = connection.execute(f"SELECT {columns} FROM {identifier(table.relation or '')}")
            # So that an empty table reaches the engine too.
            yield _typed(name, table, [])
            while batch := rows.fetchmany(_ROWS_AT_ONCE):
                yield _typed(name, table, batch)
    except sqlite3.Error as error:
        # SQLite's messages may quote values.
        kind = type(error).__name__
        raise DataError(f"tables.{name}.path: the table cannot be read ({kind})") from error


def _check(name: str, table: Table, connection: sqlite3.Connection) -> None:
    relation = table.relation or ""
    # table_info omits generated columns. The mark 1 is for what a virtual table hides on purpose.
    described = connection.execute(f"PRAGMA table_xinfo({identifier(relation)})")
    names = [column for _, column, *_, hidden in described if hidden != 1]
    if not names:
        raise SpecError(f"tables.{name}.relation", f"{relation!r} is no table or view of the file")
    for column in table.columns:
        if column not in names:
            problem = f"the relation has no such column; it has {listed(names)}"
            raise SpecError(f"tables.{name}.columns.{column}", problem)


def _typed(name: str, table: Table, rows: list[tuple[object, ...]]) -> pa.Table:
    values: list[tuple[object, ...]] = list(zip(*rows, strict=True))
    values = values or [()] * len(table.columns)
    columns = {}
    for (column, kind), own in zip(table.columns.items(), values, strict=True):
        stored, types = _STORED[kind]
        # Arrow would truncate 1.5 to an integer.
        if not set(map(type, own)) <= {*types, type(None)}:
            raise DataError(
                f"tables.{name}.columns.{column}: declared {kind.value}, but a row has something "
                "else; correct the table"
            )
        if kind is ColumnType.NUMBER:
            # Arrow refuses integers that a float would round.
            exact = [float(value) if isinstance(value, int) else value for value in own]
            columns[column] = pa.array(exact, stored)
        else:
            columns[column] = pa.array(own, stored)
    return pa.table(columns)
