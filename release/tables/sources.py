"""The files behind a declared table: finding them, checking them, reading them in SQL.

A path names Parquet files or CSV files (one, or several by a glob), a folder of Parquet files whose
subfolders may be partitions (``day=2024-01-05/part-0.parquet``), or a DuckDB or SQLite database
file, in which ``relation`` names the table or view. A URI such as ``s3://bucket/readings`` names
the same in a store (:mod:`release.records.stores`), except for database files. A URI such as
``postgresql://server/database`` names a database whose table ``relation`` is copied into files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TypeAlias

from release.errors import DataError, SpecError
from release.records.stores import is_uri, open_store
from release.spec.declarations import Table
from release.spec.load import SpecFile
from release.tables.formats.base import Format, Source, ending_of
from release.tables.formats.csv_files import Csv
from release.tables.formats.duckdb_file import DuckDbFile
from release.tables.formats.parquet import Frames, Parquet
from release.tables.formats.postgresql import PostgreSql, check_place, is_postgresql
from release.tables.formats.sqlite import Sqlite, is_sqlite

FORMATS: tuple[Format, ...] = (Parquet(), Csv(), Frames())
"""The formats of files, of which a table may have many."""

_UNREAD = {
    **dict.fromkeys((".xls", ".xlsx", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "write it as Parquet or CSV"),
    **dict.fromkeys((".feather", ".arrow", ".orc", ".avro"), "write it as Parquet"),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rds", ".rdata"), "write it as Parquet or CSV"),
}
"""Endings of tables that people have and no format reads, and what to do with them."""

DATABASES: tuple[Format, ...] = (DuckDbFile(), Sqlite())
"""The formats of one file with many tables."""


def find_source(spec_file: SpecFile, name: str) -> Source:
    """The files that a table's path names.

    Raises:
        SpecError: no file is there, or the files are not of one format.
    """
    table, field = spec_file.spec.tables[name], f"tables.{name}.path"
    if is_postgresql(table.path):
        check_place(name, table)
        return Source((), PostgreSql(), spec_file.folder)
    if is_uri(table.path):
        return _find_in_store(table, field)
    path = spec_file.folder / table.path
    if set("*?[") & set(table.path):
        files = [file for file in _glob(path) if _is_data(file, path.parts)]
        files = sorted(filter(Path.is_file, files))
    elif path.is_dir():
        _check_plain_folder(field, [file.relative_to(path) for file in path.glob("*/*")])
        files = [file for file in path.rglob("*") if _is_data(file, path.parts)]
        files = _of_a_folder(sorted(filter(Path.is_file, files)))
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise SpecError(field, f"no file {table.path!r} beside the spec; correct the path")
    endings = frozenset().union(*(kind.endings for kind in DATABASES))
    is_database = files == [path] and path.suffix.lower() in endings
    if is_database != (table.relation is not None):
        problem = "a database file, and only one, needs relation: the name of its table or view"
        raise SpecError(f"tables.{name}.relation", problem)
    if is_database:
        # Both call their files .db.
        kind = Sqlite() if is_sqlite(path) else DuckDbFile()
        return Source((path.resolve(),), kind, path.parent.resolve())
    format_ = _format_of(files)
    if format_ is None:
        raise SpecError(field, _unread(files))
    resolved = tuple(map(Path.resolve, files))
    if not path.is_dir():
        return Source(resolved, format_, path.parent)
    root = path.resolve()
    return Source(resolved, format_, root, _partitions(field, root, resolved))


def _check_plain_folder(field: str, files: Iterable[PurePath]) -> None:
    """Refuse the folder of a table format whose files are not all of the table: some are of old."""
    for file in files:
        folder = file.parts[0]
        is_iceberg = folder == "metadata" and file.name.endswith(".metadata.json")
        if folder == "_delta_log" or is_iceberg:
            kind = "an Iceberg" if is_iceberg else "a Delta"
            raise SpecError(
                field,
                f"{kind} table, of which some files are not current; write its rows as Parquet "
                "first, or name a folder that holds nothing else",
            )


def _of_a_folder(files: Sequence[Path]) -> list[Path]:
    """The files of a folder in the first of the formats that it has: notes may lie beside them."""
    for kind in FORMATS:
        own = [file for file in files if ending_of(file) in kind.endings]
        if own:
            return own
    return []


def _is_data(file: PurePath, named: Sequence[str]) -> bool:
    """Whether a file is one of a table; ``named`` are the parts of the path that the spec names.

    Writers mark what is none by its name: what is unfinished, checksums, what a killed job left.
    """
    for part in file.parent.parts:
        if part.startswith((".", "_")) and "=" not in part and part not in named:
            return False
    # A pattern such as _part*.csv means what begins like that.
    return not file.name.startswith((".", "_")) or file.name[0] == named[-1][:1]


def _format_of(files: Sequence[Path]) -> Format | None:
    """The format of files by their endings; None where it is not the same one for all."""
    endings = {ending_of(file) for file in files}
    for kind in FORMATS:
        if endings <= kind.endings:
            return kind
    return None


def _unread(files: Sequence[Path]) -> str:
    """Why no format reads these files, and the way out."""
    for file in files:
        remedy = _UNREAD.get(ending_of(file))
        if remedy is not None:
            return f"{ending_of(file)} files are not read; {remedy}"
    return "the files must all be .parquet or all .csv"


def find_sources(spec_file: SpecFile) -> dict[str, Source]:
    """The files of every table, with their schemas checked.

    Raises:
        SpecError, DataError: as :func:`find_source`, and for a schema.
    """
    sources = {name: find_source(spec_file, name) for name in spec_file.spec.tables}
    for name, source in sources.items():
        table = spec_file.spec.tables[name]
        if not source.format.is_csv:
            for field, given in (("csv", table.csv), ("missing", table.missing)):
                if given:
                    raise SpecError(f"tables.{name}.{field}", "is for CSV files; leave it out")
        source.format.check(name, table, source)
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
        _check_plain_folder(field, [file.relative_to(root) for file in files])
        files = _of_a_folder(files)
    if not is_file:
        files = [file for file in files if _is_data(file, (*root.parts, *pattern.split("/")))]
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


def fetched(spec_file: SpecFile, sources: dict[str, Source], folder: Path) -> dict[str, Source]:
    """The sources as they are read: what lies on a server is copied into a private folder.

    Raises:
        SpecError, DataError, StorageError: it cannot be copied.
    """
    by_format: dict[Format, dict[str, Source]] = defaultdict(dict)
    for name, source in sources.items():
        by_format[source.format][name] = source
    found: dict[str, Source] = {}
    for kind, own in by_format.items():
        tables = {name: spec_file.spec.tables[name] for name in own}
        found |= kind.fetched(tables, own, folder)
    return {name: found[name] for name in sources}


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
