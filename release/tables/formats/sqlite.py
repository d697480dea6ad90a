"""Reading a table or view of an SQLite file: by Python's own library, read-only, in batches.

DuckDB reads SQLite only with an extension from the network, and the engine may load none. SQLite
types values, not columns, so each value is handed on as text: :mod:`release.tables.values`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from release.errors import DataError, SpecError, listed
from release.spec.declarations import Table
from release.spec.expressions import identifier
from release.tables.columns import with_ascii
from release.tables.formats.base import Format, Source
from release.tables.schemas import computed_column, computed_relation
from release.tables.values import texts

MAGIC = b"SQLite format 3\x00"

_ROWS_AT_ONCE = 2**16
_BYTES_AT_ONCE = 2**25


def is_sqlite(file: Path) -> bool:
    """Whether the file begins as SQLite databases do."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


@dataclass(frozen=True)
class Sqlite(Format):
    """An SQLite database file."""

    endings = frozenset({".sqlite", ".sqlite3", ".db"})
    is_database = True

    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[pa.Table]:
        """As every format, as text; the first batch is empty. Confidential.

        Raises:
            SpecError: the relation or a column is missing, or is computed.
            DataError: the file cannot be read.
        """
        place = f"{source.files[0].as_uri()}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(place, uri=True)) as connection:
                _check(name, table, connection)
                # Texts are not always text: SQLite stores whatever bytes it is given.
                connection.text_factory = bytes
                columns = ", ".join(map(identifier, table.columns))
                relation = identifier(table.relation or "")
                rows = connection.execute(f"SELECT {columns} FROM {relation}")
                # So that an empty table reaches the engine too.
                yield _as_text(table, [])
                while batch := _batch(rows):
                    yield _as_text(table, batch)
        except sqlite3.Error as error:
            raise DataError(f"tables.{name}.path: the table cannot be read") from error


def _check(name: str, table: Table, connection: sqlite3.Connection) -> None:
    relation = table.relation or ""
    # table_info omits generated columns. The mark 1 is for what a virtual table hides on purpose.
    described = connection.execute(f"PRAGMA table_xinfo({identifier(relation)})")
    hidden = {column: mark for _, column, *_, mark in described if mark != 1}
    if not hidden:
        raise SpecError(f"tables.{name}.relation", f"{relation!r} is no table of the file")
    kinds = connection.execute(f"PRAGMA table_list({identifier(relation)})").fetchall()
    if any(kind != "table" for _, _, kind, *_ in kinds):
        raise computed_relation(name, relation)
    for column in table.columns:
        if column not in hidden:
            problem = f"the relation has no such column; it has {listed(list(hidden))}"
            raise SpecError(f"tables.{name}.columns.{column}", problem)
        if hidden[column] == _VIRTUAL:
            raise computed_column(name, column)


_VIRTUAL = 2
"""SQLite's mark of a column that is computed when it is read."""


def _batch(rows: sqlite3.Cursor) -> list[tuple[object, ...]]:
    """The next rows, fewer where they are long."""
    batch, size = [], 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if len(batch) == _ROWS_AT_ONCE or size > _BYTES_AT_ONCE:
            break
    return batch


def _as_text(table: Table, rows: list[tuple[object, ...]]) -> pa.Table:
    columns: list[tuple[object, ...]] = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    read = {name: texts(values) for name, values in zip(table.columns, columns, strict=True)}
    return with_ascii(pa.table(read), table.columns)
