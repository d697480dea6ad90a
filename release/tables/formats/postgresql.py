"""Tables of a PostgreSQL server, copied into private Parquet files from one snapshot.

All tables of a database are read in one read-only transaction under repeatable read, so they are of
one moment. Arrow brings their rows over in batches, and they are read from then on as Parquet files
are. ``path`` names the server and the database only; who asks, and with which password, is for the
environment (``PGUSER``, ``PGPASSWORD``, ``PGPASSFILE``, ``PGSERVICEFILE``, ``PGSSLMODE``), because
specs are published.

No row makes reading fail. What the server could fail to hand over (a number beyond floats, a date
that is infinite) has its meaning in the query already; a view, whose expressions could fail, and a
server that would have to convert texts are refused for that alone. Messages of the server are never
passed on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.errors import DataError, SpecError, listed
from release.records.files import make_folder, storage_errors
from release.spec.declarations import ColumnType, Table
from release.spec.expressions import identifier, literal
from release.tables.formats.base import Format, Incoming, Source
from release.tables.formats.parquet import Parquet
from release.tables.schemas import computed_column, computed_relation, misfit

if TYPE_CHECKING:
    import pyarrow as pa

_URI = re.compile(r"postgresql://(?P<server>[^/@?#]*)/(?P<database>[^/@?#]+)", re.ASCII)
_DRIVER = "adbc_driver_postgresql"

_NUMBERS = {"int2", "int4", "int8", "float4", "float8", "numeric"}
_TEXTS = {"text", "varchar", "bpchar", "name", "uuid", "an enum"}
_TYPES = {
    ColumnType.STRING: _TEXTS | {"int2", "int4", "int8"},
    ColumnType.INTEGER: _NUMBERS,
    ColumnType.NUMBER: _NUMBERS,
    ColumnType.DATE: {"date", "timestamp"},
    ColumnType.TIMESTAMP: {"timestamp", "timestamptz"},
    ColumnType.BOOLEAN: {"bool"},
}
"""The server's types that a column may have for a declared type."""

_BEGIN = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL search_path = pg_catalog",
    # Fails where a policy would hide rows, which would be another table for every reader.
    "SET LOCAL row_security = off",
    "SET LOCAL client_encoding = 'UTF8'",
)

_RELATION = """
SELECT c.relkind::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2"""

_COLUMNS = """
SELECT a.attname::text, CASE WHEN t.typtype = 'e' THEN 'an enum'
    WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text
    ELSE 'a type of its own' END, a.attgenerated::text
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum"""

_STORED = {"r", "p", "m"}
"""Tables, tables in partitions, and materialised views; a view, or what lies on another server, is
not stored."""

# The first that rounds to no float, and the last that rounds to 0: 2¹⁰²⁴ − 2⁹⁷⁰ and 2⁻¹⁰⁷⁵.
_INFINITE = 2**1024 - 2**970
_ZERO = f"0.{5**1075:01075}"


def is_postgresql(path: str) -> bool:
    """Whether the path of a table names a PostgreSQL server."""
    return path.startswith("postgresql:")


@dataclass(frozen=True)
class PostgreSql(Format):
    """Tables of a server, which are copied into Parquet files and read from there."""

    def fetched(
        self, tables: Mapping[str, Table], sources: Mapping[str, Source], folder: Path
    ) -> dict[str, Source]:
        """Copies of the tables, from one snapshot of each database, with their schemas checked.

        Raises:
            SpecError, DataError, StorageError: as :func:`export_tables`.
        """
        copies = {}
        # The types were checked on the server; a decimal comes as its text.
        for name, file in export_tables(tables, folder / "exported").items():
            copies[name] = Source((file,), Parquet(), folder)
        return copies

    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[Incoming]:
        """Nothing comes in from a server: its tables are copied first."""
        raise TypeError("a table of a server is copied before it is read")


def check_place(name: str, table: Table) -> None:
    """Check the path and the relation of a table of a server, without asking it.

    Raises:
        SpecError: the path has more than a server and a database, or there is no relation.
    """
    if _URI.fullmatch(table.path) is None:
        raise SpecError(
            f"tables.{name}.path",
            "write postgresql://SERVER/DATABASE alone; user, password and options are for the "
            "environment: PGUSER, PGPASSWORD, PGSSLMODE",
        )
    if table.relation is None:
        problem = "a table of a server needs relation: its name, such as public.readings"
        raise SpecError(f"tables.{name}.relation", problem)


@dataclass(frozen=True)
class _Relation:
    """A table of the server, and the types of its columns."""

    schema: str
    name: str
    types: Mapping[str, str]

    @property
    def sql(self) -> str:
        return f"{identifier(self.schema)}.{identifier(self.name)}"


def export_tables(tables: Mapping[str, Table], folder: Path) -> dict[str, Path]:
    """Copy the declared columns of tables of servers into Parquet files, one for each.

    Confidential: only their owner can read the folder and the files. Tables of one database are
    of one moment; those of two databases are not.

    Raises:
        SpecError: the driver is missing; the server refuses or has no such table; a column is
            missing, computed or of another type; texts are not UTF-8.
        DataError: the server does not answer, or stopped to.
        StorageError: the files cannot be written.
    """
    with storage_errors(folder, "a table"):
        make_folder(folder, 0o700)
    files: dict[str, Path] = {}
    for path in dict.fromkeys(table.path for table in tables.values()):
        own = {name: table for name, table in tables.items() if table.path == path}
        with _snapshot(path, next(iter(own))) as cursor:
            for name, table in own.items():
                with _server_errors(name):
                    relation = _described(name, table, cursor)
                    files[name] = folder / f"{len(files)}.parquet"
                    _write(cursor, _select(table, relation), folder, files[name])
    return files


@contextmanager
def _snapshot(path: str, name: str) -> Iterator[Any]:
    """A cursor in a read-only transaction, in which nothing changes."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError as error:
        raise SpecError(
            f"tables.{name}.path",
            "a PostgreSQL server needs its driver; pip install 'dp-release[postgresql]'",
        ) from error
    try:
        connection = dbapi.connect(path)
    except dbapi.Error:
        # ``from None`` here and below: the library's message holds names and values.
        raise DataError(
            f"tables.{name}.path: the server does not answer, or refuses; set PGUSER and "
            f"PGPASSWORD, and see why: psql {path}"
        ) from None
    with closing(connection), closing(connection.cursor()) as cursor:
        with _server_errors(name):
            for statement in _BEGIN:
                cursor.execute(statement)
            (encoding,) = _rows(cursor, "SELECT current_setting('server_encoding')")[0]
        if encoding != "UTF8":
            raise SpecError(
                f"tables.{name}.path",
                f"the database has the encoding {encoding}, in which a text can fail to be read; "
                "write the table as Parquet",
            )
        yield cursor


@contextmanager
def _server_errors(name: str) -> Iterator[None]:
    import pyarrow as pa
    from adbc_driver_postgresql import dbapi

    try:
        yield
    except (dbapi.Error, pa.ArrowException) as error:
        if getattr(error, "sqlstate", None) == "42501":
            problem = "the user may not read it, or not all of its rows; GRANT SELECT, BYPASSRLS"
            raise SpecError(f"tables.{name}.relation", problem) from None
        raise DataError(
            f"tables.{name}.path: the server stopped to answer; see its log, and run again"
        ) from None


def _rows(cursor: Any, query: str, *values: str) -> list[tuple[Any, ...]]:
    cursor.execute(query, values or None)
    return list(cursor.fetchall())


def _described(name: str, table: Table, cursor: Any) -> _Relation:
    """The relation, which is a table and has the declared columns."""
    name_in_spec = table.relation or ""
    before, dot, after = name_in_spec.partition(".")
    schema, relation = (before, after) if dot else ("public", before)
    kinds = _rows(cursor, _RELATION, schema, relation)
    if not kinds:
        problem = f"the database has no table {relation!r} in the schema {schema!r}"
        raise SpecError(f"tables.{name}.relation", problem)
    if kinds[0][0] not in _STORED:
        raise computed_relation(name, name_in_spec)
    stored = {column: rest for column, *rest in _rows(cursor, _COLUMNS, schema, relation)}
    for column, declared in table.columns.items():
        field = f"tables.{name}.columns.{column}"
        if column not in stored:
            problem = f"the relation has no such column; it has {listed(list(stored))}"
            raise SpecError(field, problem)
        kind, generated = stored[column]
        if generated == _VIRTUAL:
            raise computed_column(name, column)
        if kind not in _TYPES[declared]:
            raise misfit(field, declared, "the relation", kind)
    return _Relation(schema, relation, {column: kind for column, (kind, _) in stored.items()})


_VIRTUAL = "v"
"""The server's mark of a column that is computed when it is read, from version 18 on."""


def _select(table: Table, relation: _Relation) -> str:
    """The rows of a relation, each value with its meaning under the declared type."""
    read = []
    for column, declared in table.columns.items():
        zone = table.zones.get(column, "UTC")
        value = _value(identifier(column), declared, relation.types[column], zone)
        read.append(f"{value} AS {identifier(column)}")
    return f"SELECT {', '.join(read)} FROM {relation.sql}"


def _value(column: str, declared: ColumnType, stored: str, local: str) -> str:
    """An expression that fails for no value."""
    # The text of a decimal is exact, and means what it means in every other source.
    if declared is ColumnType.STRING or (declared is ColumnType.INTEGER and stored == "numeric"):
        return f"{column}::text"
    if stored == "numeric":
        return (
            f"CASE WHEN {column} = 'NaN' THEN NULL "
            f"WHEN {column} >= {_INFINITE} THEN 'Infinity'::float8 "
            f"WHEN {column} <= -{_INFINITE} THEN '-Infinity'::float8 "
            f"WHEN abs({column}) <= {_ZERO} THEN 0 ELSE {column}::float8 END"
        )
    if declared in (ColumnType.DATE, ColumnType.TIMESTAMP):
        zone = "+00" if stored == "timestamptz" else ""
        first, end = (f"'{day}{zone}'::{stored}" for day in ("0001-01-01", "10000-01-01"))
        read = f"{column} AT TIME ZONE {literal(local)}" if stored == "timestamptz" else column
        return f"CASE WHEN {column} >= {first} AND {column} < {end} THEN {read} END"
    return column


def _write(cursor: Any, query: str, folder: Path, file: Path) -> None:
    import pyarrow.parquet as pq

    cursor.execute(query)
    reader: pa.RecordBatchReader = cursor.fetch_record_batch()
    with storage_errors(folder, "a table"):
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(descriptor, "wb") as target,
            pq.ParquetWriter(target, reader.schema) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
