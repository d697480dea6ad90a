"""The files behind a declared table: finding them, checking them, reading them in SQL.

A path names Parquet files or CSV files (one, or several by a glob), a folder of Parquet files whose
subfolders may be partitions (``day=2024-01-05/part-0.parquet``), or a DuckDB or SQLite database
file, in which ``relation`` names the table or view. A URI such as ``s3://bucket/readings`` names
the same in a store (:mod:`release.records.stores`), except for database files. A URI such as
``postgresql://server/database`` names a database whose table ``relation`` is copied into files.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from release.errors import DataError, SpecError
from release.records.stores import Store, is_uri, open_store
from release.spec.declarations import Table
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.tables.columns import (
    ascii_of,
    number_of,
    stored_strings,
    text_column,
    with_ascii,
)
from release.tables.lines import read_lines
from release.tables.parquet import check_parquet, parquet_dataset, partition_values
from release.tables.postgresql import check_place, export_tables, is_postgresql
from release.tables.schemas import read_header
from release.tables.sqlite import is_sqlite

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem


class Format(Enum):
    """The storage format of a table."""

    PARQUET = "parquet"
    CSV = "csv"
    DUCKDB = "duckdb"
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


_ENDINGS = {".parquet": Format.PARQUET, ".csv": Format.CSV}
_MOST_AHEAD = 16
"""Batches of a file that are read before they are copied, at most."""

_DATABASES = {".duckdb", ".db", ".ddb", ".sqlite", ".sqlite3"}


@dataclass(frozen=True)
class Source:
    """The files of one table, all of one format, in the order of their names.

    ``partitions`` are the columns in the names of folders below ``root``. With a ``store`` the
    files are in that store, else on this machine.
    """

    files: tuple[Path, ...]
    format: Format
    root: Path
    partitions: tuple[str, ...] = ()
    store: Store | None = None

    @property
    def filesystem(self) -> FileSystem | None:
        """The file system of the store."""
        return None if self.store is None else self.store.filesystem

    def stamps(self) -> list[tuple[int, int, int]]:
        """Inode, size and time of each file, which differ once a file is written or replaced."""
        if self.store is not None:
            return self.store.stamps(map(str, self.files))
        stamps = []
        try:
            for file in self.files:
                # SQLite writes to a log beside the file first.
                log = file.with_name(f"{file.name}-wal")
                for path in (file, log) if log.exists() else (file,):
                    stat = path.stat()
                    stamps.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            # Differs from every list of files, so a file that vanished counts as changed.
            return []
        return stamps


def find_source(spec_file: SpecFile, name: str) -> Source:
    """The files that a table's path names.

    Raises:
        SpecError: no file is there, or the files are not of one format.
    """
    table, field = spec_file.spec.tables[name], f"tables.{name}.path"
    if is_postgresql(table.path):
        check_place(name, table)
        return Source((), Format.POSTGRESQL, spec_file.folder)
    if is_uri(table.path):
        return _find_in_store(table, field)
    path = spec_file.folder / table.path
    if set("*?[") & set(table.path):
        files = sorted(filter(Path.is_file, _glob(path)))
    elif path.is_dir():
        files = sorted(filter(Path.is_file, path.rglob("*.parquet")))
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise SpecError(field, f"no file {table.path!r} beside the spec; correct the path")
    is_database = files == [path] and path.suffix.lower() in _DATABASES
    if is_database != (table.relation is not None):
        problem = "a database file, and only one, needs relation: the name of its table or view"
        raise SpecError(f"tables.{name}.relation", problem)
    if is_database:
        kind = Format.SQLITE if is_sqlite(path) else Format.DUCKDB
        return Source((path.resolve(),), kind, path.parent.resolve())
    format_ = _format_of(files)
    if format_ is None:
        raise SpecError(field, "the files must all be .parquet or all .csv")
    resolved = tuple(map(Path.resolve, files))
    if not path.is_dir():
        return Source(resolved, format_, path.parent)
    root = path.resolve()
    return Source(resolved, format_, root, _partitions(field, root, resolved))


def _format_of(files: Sequence[Path]) -> Format | None:
    """The format of files by their endings; None where it is not the same one for all."""
    formats = {_ENDINGS.get(file.suffix.lower()) for file in files}
    return formats.pop() if len(formats) == 1 else None


def find_sources(spec_file: SpecFile) -> dict[str, Source]:
    """The files of every table, with their schemas checked.

    Raises:
        SpecError, DataError: as :func:`find_source` and :func:`check_source`.
    """
    sources = {name: find_source(spec_file, name) for name in spec_file.spec.tables}
    for name, source in sources.items():
        check_source(name, spec_file.spec.tables[name], source)
    return sources


Stamps: TypeAlias = dict[str, list[tuple[int, int, int]]]
"""The stamps of each table's files, by table."""


def stamps_of(sources: dict[str, Source]) -> Stamps:
    """The stamps of every table's files, now."""
    return {name: source.stamps() for name, source in sources.items()}


def check_unchanged(sources: dict[str, Source], stamps: Stamps) -> None:
    """Check that all answers were computed from the same files.

    Raises:
        DataError: a file was changed or replaced since ``stamps`` were taken.
    """
    for name, source in sources.items():
        if source.stamps() != stamps[name]:
            raise DataError(f"tables.{name}.path: a file was changed while it was read; run again")


def _find_in_store(table: Table, field: str) -> Source:
    """As :func:`find_source`, in a store."""
    # A "?" is a mark of the pattern and begins no options: the spec, which is published, has none.
    match = re.fullmatch(r"([^*?\[]*/)([^/]*[*?\[].*)", table.path)
    place, pattern = match.groups() if match else (table.path, "")
    store = open_store(place, field)
    root = Path(store.root)
    is_file = store.is_file("")
    files = [root] if is_file else list(map(root.joinpath, store.names("")))
    if pattern:
        matches = _matching(pattern).fullmatch
        files = [file for file in files if matches(str(file.relative_to(root)))]
    elif not is_file:
        files = [file for file in files if file.suffix.lower() == ".parquet"]
    if not files:
        raise SpecError(field, f"no file {table.path!r} in the store; correct the path")
    format_ = _format_of(files)
    if format_ is None or table.relation is not None:
        raise SpecError(field, "files in a store must all be .parquet or all .csv")
    is_folder = not pattern and not is_file
    partitions = _partitions(field, root, tuple(files)) if is_folder else ()
    return Source(tuple(files), format_, root, partitions, store)


def _matching(pattern: str) -> re.Pattern[str]:
    """A pattern as in ``glob``: a mark stays within a folder, except ``**``."""
    # "**/" first: its stars would otherwise be taken one by one.
    regex = re.escape(pattern).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
    regex = regex.replace(r"\?", "[^/]")
    return re.compile(re.sub(r"\\\[(!?)(.*?)\\\]", _letters, regex))


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
        # Files of different folders may share a name.
        copy = folder / "fetched" / str(number) / file.name
        source.store.copy_out(str(file), copy)
        files.append(copy)
    return Source(tuple(files), source.format, folder, source.partitions)


def exported(spec_file: SpecFile, sources: dict[str, Source], folder: Path) -> dict[str, Source]:
    """The sources with tables of servers copied into Parquet files of a private folder.

    Raises:
        SpecError, DataError, StorageError: as
            :func:`release.tables.postgresql.export_tables`.
    """
    tables = spec_file.spec.tables
    remote = [name for name, source in sources.items() if source.format is Format.POSTGRESQL]
    if not remote:
        return sources
    files = export_tables({name: tables[name] for name in remote}, folder / "exported")
    copies = {name: Source((file,), Format.PARQUET, folder) for name, file in files.items()}
    for name, copy in copies.items():
        check_source(name, tables[name], copy)
    return sources | copies


def _partitions(field: str, root: Path, files: tuple[Path, ...]) -> tuple[str, ...]:
    """The names in ``name=value`` folders between the root and the files, equal for all files."""
    # A link can lead out of the folder.
    inside = [file for file in files if file.is_relative_to(root)]
    named: set[tuple[str, ...]] = set()
    for file in inside:
        parts = file.relative_to(root).parent.parts
        named.add(tuple(part.partition("=")[0] for part in parts if "=" in part))
    if len(named) != 1 or (named != {()} and len(inside) < len(files)):
        raise SpecError(field, "the files lie in folders of different partitions; make them alike")
    (names,) = named
    if len(set(names)) < len(names):
        raise SpecError(field, "a partition stands in a partition of its name; rename it")
    return names


def _glob(path: Path) -> Iterator[Path]:
    # Path.glob refuses absolute patterns.
    anchor = Path(path.anchor)
    return anchor.glob(str(path.relative_to(anchor)))


def database(name: str) -> str:
    """The SQL name under which the database file of a table is attached."""
    return identifier(f"file {name}")


def check_source(name: str, table: Table, source: Source) -> None:
    """Check the schemas of the files, without the engine.

    Raises:
        SpecError: a declared column is missing, ambiguous or of another type.
        DataError: a file is not readable.
    """
    if source.format is Format.PARQUET:
        # The values of partitions are in the names of folders, not in the files.
        stored = {c: kind for c, kind in table.columns.items() if c not in source.partitions}
        check_parquet(name, stored, source.files, source.filesystem)


def dataset_of(name: str, table: Table, source: Source, coded: Collection[str] = ()) -> ds.Dataset:
    """The declared columns of the Parquet files of a source, read lazily.

    Texts ``coded`` may come with a dictionary, as :func:`parquet_dataset` has it.

    Raises:
        DataError: a file is not readable.
    """
    files: dict[Path, dict[str, str]] = {file: {} for file in source.files}
    if source.partitions:
        files = {file: partition_values(file.relative_to(source.root)) for file in source.files}
    return parquet_dataset(name, list(table.columns), files, source.filesystem, coded)


def read_parquet(
    name: str,
    table: Table,
    source: Source,
    keys: Mapping[str, Sequence[str]] | None = None,
    read: Collection[str] | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """The declared columns of Parquet files, with :func:`ascii_of` the texts. Confidential.

    Strings of which ``keys`` has the key set come with :func:`number_of` too. If columns to be
    ``read`` are named, the others are left out, but for those numbers.

    Raises:
        DataError: a file is not readable.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    # The engine never sees a dictionary: its texts would not have the meaning of others.
    coded = [column for column in keys or {} if read is not None and column not in read]
    dataset = dataset_of(name, table, source, coded)
    wanted = [column for column in dataset.schema.names if read is None or column in read]
    columns = {column: ds.field(column) for column in wanted}
    for column in stored_strings(dataset.schema, table.columns):
        if column in wanted:
            columns[ascii_of(column)] = pc.string_is_ascii(ds.field(column))
    for column, texts in (keys or {}).items():
        columns[number_of(column)] = pc.index_in(ds.field(column), value_set=text_column(texts))
    # By default 64 batches wait to be copied: that takes memory, and fetching it takes time.
    ahead = max(2, min(_MOST_AHEAD, pa.cpu_count()))
    scanner = dataset.scanner(
        columns=columns, batch_readahead=ahead, fragment_readahead=max(1, ahead // 4)
    )
    yield scanner.to_reader()


def read_csv(name: str, table: Table, source: Source) -> Iterator[pa.Table]:
    """The declared columns of CSV files as text, in batches; the first one is empty. Confidential.

    Raises:
        SpecError: a header lacks a declared column.
        DataError: a file cannot be read.
    """
    headers = [read_header(name, table, file) for file in source.files]
    for file, header in zip(source.files, headers, strict=True):
        for lines in read_lines(name, file, header, list(table.columns)):
            yield with_ascii(lines, table.columns)
