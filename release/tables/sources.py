"""The files behind a declared table: finding them, checking them, reading them in SQL.

A path names Parquet files or CSV files (one, or several by a glob), a folder of Parquet files whose
subfolders may be partitions (``day=2024-01-05/part-0.parquet``), or a DuckDB or SQLite database
file, of which ``relation`` names the table or view. A URI such as ``s3://bucket/readings`` names
the same in a store (:mod:`release.tables.stores`), but for database files. The declaration rules,
never the file: columns are taken by name; a file that does not have them in a fitting type is
refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from release.errors import DataError, SpecError
from release.spec.declarations import ColumnType, Table
from release.spec.expressions import identifier, literal
from release.spec.load import SpecFile
from release.tables.sqlite import is_sqlite
from release.tables.stores import Store, is_uri, open_store

if TYPE_CHECKING:
    import pyarrow.dataset as ds

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
"""What a declared type is in Arrow, where Arrow has to be told."""


class Format(Enum):
    """How a table is stored."""

    PARQUET = "parquet"
    CSV = "csv"
    DUCKDB = "duckdb"
    SQLITE = "sqlite"


_ENDINGS = {".parquet": Format.PARQUET, ".csv": Format.CSV}
_MOST_COLUMNS = 10_000
"""The engine takes a minute to look at a header of a million."""

_DATABASES = {".duckdb", ".db", ".ddb", ".sqlite", ".sqlite3"}


@dataclass(frozen=True)
class Source:
    """The files of one table, all of one format, in the order of their names.

    ``partitions`` are the columns that stand in the names of folders below ``root``. With a
    ``store`` the files are its own, and not this machine's.
    """

    files: tuple[Path, ...]
    format: Format
    root: Path
    partitions: tuple[str, ...] = ()
    store: Store | None = None

    @property
    def folders(self) -> set[Path]:
        """The folders of this machine that have to be readable."""
        if self.store is not None:
            return set()
        return {self.root} if self.partitions else {file.parent for file in self.files}

    def stamps(self) -> list[tuple[int, int, int]]:
        """What changes when a file is written or replaced."""
        if self.store is not None:
            return self.store.stamps(map(str, self.files))
        logs = [file.with_name(f"{file.name}-wal") for file in self.files]
        try:
            found = [file.stat() for file in (*self.files, *(log for log in logs if log.exists()))]
        except OSError:
            return []
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in found]


def find_source(spec_file: SpecFile, name: str) -> Source:
    """The files that a table's path names.

    Raises:
        SpecError: none, or both Parquet and CSV.
    """
    table, field = spec_file.spec.tables[name], f"tables.{name}.path"
    if is_uri(table.path):
        return _find_in_store(table, field)
    path = spec_file.folder / table.path
    if any(mark in table.path for mark in "*?["):
        files = sorted(f for f in _glob(path) if f.is_file())
    elif path.is_dir():
        files = sorted(f for f in path.rglob("*.parquet") if f.is_file())
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise SpecError(field, f"no file {table.path!r} beside the spec; correct the path")
    is_database = files == [path] and path.suffix.lower() in _DATABASES
    if is_database != (table.relation is not None):
        raise SpecError(
            f"tables.{name}.relation",
            "a database file, and only one, needs relation: the name of its table or view",
        )
    kinds = {_ENDINGS.get(file.suffix.lower()) for file in files}
    if is_database:
        kind = Format.SQLITE if is_sqlite(path) else Format.DUCKDB
        return Source((path.resolve(),), kind, path.parent.resolve())
    if len(kinds) != 1 or None in kinds:
        raise SpecError(field, "the files must all be .parquet or all .csv")
    found = tuple(file.resolve() for file in files)
    root = path.resolve() if path.is_dir() else path.parent
    partitions = _partitions(field, root, found) if path.is_dir() else ()
    return Source(found, kinds.pop() or Format.PARQUET, root, partitions)


def find_sources(spec_file: SpecFile) -> dict[str, Source]:
    """The files of every table, their schemas looked at.

    Raises:
        SpecError, DataError: as :func:`find_source` and :func:`check_source`.
    """
    found = {name: find_source(spec_file, name) for name in spec_file.spec.tables}
    for name, source in found.items():
        check_source(name, spec_file.spec.tables[name], source)
    return found


Stamps: TypeAlias = dict[str, list[tuple[int, int, int]]]
"""What changes with the files of each table."""


def stamps_of(sources: dict[str, Source]) -> Stamps:
    """The stamps of every table's files, now."""
    return {name: source.stamps() for name, source in sources.items()}


def check_unchanged(sources: dict[str, Source], stamps: Stamps) -> None:
    """See to it that all answers are of the same files.

    Raises:
        DataError: a file was changed or replaced since ``stamps`` were taken.
    """
    for name, source in sources.items():
        if source.stamps() != stamps[name]:
            raise DataError(f"tables.{name}.path: a file was changed while it was read; run again")


def _find_in_store(table: Table, field: str) -> Source:
    """As :func:`find_source`, in a store."""
    # What stands before the first mark of a glob; the spec is published, so it holds no options.
    match = re.fullmatch(r"([^*?\[]*/)([^/]*[*?\[].*)", table.path)
    place, pattern = match.groups() if match else (table.path, "")
    store = open_store(place, field)
    root = Path(store.root)
    found = [Path(store.root)] if store.is_file("") else []
    found = found or [root / one for one in store.names("", recursive=True)]
    if pattern:
        wanted = _matching(pattern)
        files = tuple(f for f in found if wanted.fullmatch(str(f.relative_to(root))))
    else:
        files = tuple(f for f in found if found == [root] or f.suffix.lower() == ".parquet")
    if not files:
        raise SpecError(field, f"no file {table.path!r} in the store; correct the path")
    kinds = {_ENDINGS.get(file.suffix.lower()) for file in files}
    if len(kinds) != 1 or None in kinds or table.relation is not None:
        raise SpecError(field, "from a store come files that are all .parquet or all .csv")
    is_folder = not pattern and files != (root,)
    partitions = _partitions(field, root, files) if is_folder else ()
    return Source(files, kinds.pop() or Format.PARQUET, root, partitions, store)


def _matching(pattern: str) -> re.Pattern[str]:
    """A pattern as ``glob`` has it: a mark stays within a folder, but for ``**``."""
    found = re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
    found = found.replace(r"\?", "[^/]")
    return re.compile(re.sub(r"\\\[(!?)(.*?)\\\]", _letters, found))


def _letters(match: re.Match[str]) -> str:
    return f"[{'^' if match[1] else ''}{match[2]}]"


def fetched(source: Source, folder: Path) -> Source:
    """The source with its files copied from their store into a private folder.

    Raises:
        StorageError: the store does not answer, or the folder is full.
    """
    if source.store is None:
        return source
    files = []
    for number, file in enumerate(source.files):
        copy = folder / "fetched" / str(number) / file.name
        source.store.copy_out(str(file), copy)
        files.append(copy)
    return Source(tuple(files), source.format, folder, source.partitions)


def dataset_of(table: Table, source: Source) -> ds.Dataset:
    """The Parquet files of a source as an Arrow dataset: what it has is read as it is asked for."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    types = [
        (column, ARROW_TYPES[table.columns.get(column, ColumnType.STRING)])
        for column in source.partitions
    ]
    # Arrow would read the timestamps of older systems as nanoseconds, which end in 2262.
    old_times = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    found = ds.dataset(
        [str(file) for file in source.files],
        format=ds.ParquetFileFormat(read_options=old_times),
        filesystem=LocalFileSystem() if source.store is None else source.store.filesystem,
        partitioning=ds.partitioning(pa.schema(types), flavor="hive") if types else None,
        partition_base_dir=str(source.root),
    )
    # The first file may have no gaps where another has.
    return found.replace_schema(pa.schema([field.with_nullable(True) for field in found.schema]))


def in_store(name: str) -> str:
    """The SQL name under which the Parquet files of a table in a store can be read."""
    return identifier(f"store {name}")


def _partitions(field: str, root: Path, files: tuple[Path, ...]) -> tuple[str, ...]:
    """The names in ``name=value`` folders between the root and the files, all alike."""
    named = {
        tuple(p.partition("=")[0] for p in file.relative_to(root).parent.parts if "=" in p)
        for file in files
        if file.is_relative_to(root)
    }
    if len(named) != 1:
        raise SpecError(field, "the files lie in folders of different partitions; make them alike")
    found = named.pop()
    # Engines differ in what they take for a partition above the table, or with two signs.
    if found and (
        any(part.partition("=")[0] in found for part in root.parts)
        or any(
            part.count("=") > 1 for file in files for part in file.relative_to(root).parent.parts
        )
    ):
        raise SpecError(
            field, "a partition stands above the table too, or a value has '='; rename it"
        )
    return found


def _glob(path: Path) -> Iterator[Path]:
    anchor = Path(path.anchor) if path.is_absolute() else Path()
    return anchor.glob(str(path.relative_to(anchor) if path.is_absolute() else path))


def scan_sql(name: str, table: Table, source: Source) -> str:
    """What a SELECT reads the declared columns from, unless that is an SQLite file."""
    if source.format is Format.CSV:
        return _csv_scan(name, table, source)
    if source.store is not None:
        return in_store(name)
    if source.format is Format.DUCKDB:
        return f"{database(name)}.{identifier(table.relation or '')}"
    files = ", ".join(literal(str(file)) for file in source.files)
    if not source.partitions:
        return f"read_parquet([{files}])"
    types = ", ".join(
        f"{literal(column)}: {SQL_TYPES[table.columns[column]]}"
        for column in source.partitions
        if column in table.columns
    )
    given = f", hive_types = {{{types}}}" if types else ""
    return f"read_parquet([{files}], hive_partitioning = true{given})"


def database(name: str) -> str:
    """The SQL name under which the database file of a table is attached."""
    return identifier(f"file {name}")


def check_source(name: str, table: Table, source: Source) -> None:
    """Look at the schemas of the files, without the engine.

    Raises:
        SpecError: a declared column is missing, ambiguous or of another type.
        DataError: a file is not readable.
    """
    if source.format is Format.PARQUET:
        _check_partitions(name, table, source)
        _check_parquet(name, table, source)


_MISSING = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_BOOLEAN = re.compile(r"true|false", re.ASCII)
_TIMESTAMP = re.compile(rf"{_DATE.pattern}( |%20)[0-9:%A]+(\.[0-9]{{1,6}})?", re.ASCII)
_ANYTHING = re.compile(r".+")


def _check_partitions(name: str, table: Table, source: Source) -> None:
    """The engine would round 1.5 to an integer and take an empty name for a missing value."""
    if not source.partitions:
        return
    forms = {
        ColumnType.INTEGER: _INTEGER,
        ColumnType.DATE: _DATE,
        ColumnType.NUMBER: _NUMBER,
        ColumnType.BOOLEAN: _BOOLEAN,
        ColumnType.TIMESTAMP: _TIMESTAMP,
    }
    parts = {part for file in source.files for part in file.relative_to(source.root).parts[:-1]}
    for column, _, value in (part.partition("=") for part in sorted(parts)):
        kind = table.columns.get(column) if column in source.partitions else None
        if kind is None or value == _MISSING:
            continue
        if not forms.get(kind, _ANYTHING).fullmatch(value):
            raise DataError(
                f"tables.{name}.columns.{column}: declared {kind.value}, but a folder is named for "
                "something else; rename it"
            )


def check_relation(name: str, table: Table, connection: duckdb.DuckDBPyConnection) -> None:
    """As :func:`check_source` for a table of an attached database file."""
    relation = f"{database(name)}.{identifier(table.relation or '')}"
    try:
        schema = connection.sql(f"SELECT * FROM {relation} LIMIT 0").to_arrow_table().schema
    except duckdb.Error as error:
        raise SpecError(
            f"tables.{name}.relation", f"{table.relation!r} is no table or view of the file"
        ) from error
    _check_schema(name, table.columns, schema, "the relation")


def _csv_scan(name: str, table: Table, source: Source) -> str:
    headers = {_header(name, table, file) for file in source.files}
    if len(headers) != 1:
        raise SpecError(f"tables.{name}.path", "the files have different headers; make them equal")
    # DuckDB takes the columns by position, so they are given in the order of the header.
    types = ", ".join(
        f"{literal(column)}: {literal(_csv_type(table, column))}" for column in headers.pop()
    )
    files = ", ".join(literal(str(file)) for file in source.files)
    return (
        f"read_csv([{files}], columns = {{{types}}}, header = true, auto_detect = false, "
        "delim = ',', quote = '\"', escape = '\"', strict_mode = true, store_rejects = true, "
        "rejects_limit = 0)"
    )


def _too_wide(field: str, where: str, columns: int) -> SpecError:
    return SpecError(
        field,
        f"{where} has {columns} columns, at most {_MOST_COLUMNS} are read; keep those that are "
        "declared",
    )


def _csv_type(table: Table, column: str) -> str:
    kind = table.columns.get(column, ColumnType.STRING)
    # HUGEINT, so that a number of up to 38 digits is clamped as any other.
    return "HUGEINT" if kind is ColumnType.INTEGER else SQL_TYPES[kind]


def _header(name: str, table: Table, file: Path) -> tuple[str, ...]:
    field = f"tables.{name}.path"
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header = tuple(next(csv.reader(lines), []))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(field, f"{file.name} cannot be read as UTF-8 CSV") from error
    if len(header) > _MOST_COLUMNS:
        raise _too_wide(field, file.name, len(header))
    lowered = [title.casefold() for title in header]
    for column in table.columns:
        if column not in header or lowered.count(column.casefold()) != 1:
            raise SpecError(
                f"tables.{name}.columns.{column}",
                f"{file.name} has {lowered.count(column.casefold()) or 'no'} such column in its "
                "header (DuckDB ignores case)",
            )
    return header


def _check_parquet(name: str, table: Table, source: Source) -> None:
    first: dict[str, pa.DataType] = {}
    for file in source.files:
        try:
            schema = _schema(source, file)
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(
                f"tables.{name}.path: {file.name} is not a readable Parquet file"
            ) from error
        stored = {c: k for c, k in table.columns.items() if c not in source.partitions}
        _check_schema(name, stored, schema, file.name)
        for column in stored:
            kind = _stored_type(schema.field(column).type)
            if first.setdefault(column, kind) != kind:
                # Engines take the type of the first file, and would round what others hold.
                raise SpecError(
                    f"tables.{name}.columns.{column}",
                    f"{file.name} has {kind}, another file {first[column]}; write them alike",
                )


def _stored_type(stored: pa.DataType) -> pa.DataType:
    """The type, alike for what engines read alike."""
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_large_string(stored):
        return pa.string()
    # Integers are widened, and clamped afterwards.
    return pa.int64() if pa.types.is_signed_integer(stored) else stored


def _schema(source: Source, file: Path) -> pa.Schema:
    if source.store is None:
        return pq.read_schema(file)
    return pq.read_schema(str(file), filesystem=source.store.filesystem)


def _check_schema(name: str, columns: dict[str, ColumnType], schema: pa.Schema, where: str) -> None:
    if len(schema) > _MOST_COLUMNS:
        raise _too_wide(f"tables.{name}.path", where, len(schema))
    for column, kind in columns.items():
        field = f"tables.{name}.columns.{column}"
        found = schema.get_all_field_indices(column)
        alike = sum(other.casefold() == column.casefold() for other in schema.names)
        if len(found) == 1 and alike > 1:
            raise SpecError(
                field, f"{where} has {alike} columns of this name but for case; rename one"
            )
        if len(found) != 1:
            there = ", ".join(schema.names[:12])
            raise SpecError(field, f"{where} has no such column; it has {there}")
        stored = schema.field(found[0]).type
        if not _fits(stored, kind):
            raise SpecError(
                field, f"declared {kind.value}, but {where} has {stored}; correct the type"
            )


def _fits(stored: pa.DataType, kind: ColumnType) -> bool:
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    numeric = pa.types.is_integer(stored) or pa.types.is_floating(stored)
    return {
        ColumnType.STRING: pa.types.is_string(stored) or pa.types.is_large_string(stored),
        ColumnType.INTEGER: pa.types.is_integer(stored),
        ColumnType.DATE: pa.types.is_date(stored),
        ColumnType.TIMESTAMP: pa.types.is_timestamp(stored) and stored.tz is None,
        ColumnType.NUMBER: numeric or pa.types.is_decimal(stored),
        ColumnType.BOOLEAN: pa.types.is_boolean(stored),
    }[kind] is True
