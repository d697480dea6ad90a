"""Parquet files as an Arrow dataset that no row can make unreadable.

The engine's own reader fails on a text that is not UTF-8 and on a time in milliseconds beyond its
years, so Arrow reads all Parquet, with the same bytes on one machine, on a cluster and from a
store. Each column is read as a type in which every value has a place, which is chosen from the
schemas alone. The names of partitions' folders are values too, and are read as text.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq

from release.errors import DataError
from release.spec.declarations import ColumnType, Table
from release.tables.columns import ascii_of, instant_of, number_of, stored_strings, text_column
from release.tables.formats.base import Format, Source
from release.tables.schemas import ARROW_TYPES, check_schema

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem

# Arrow would read the timestamps of older systems as nanoseconds, which end in 2262.
_OLD_TIMES = "us"
_CODED = pa.dictionary(pa.int32(), pa.string())
_MISSING = "__HIVE_DEFAULT_PARTITION__"


_MOST_AHEAD = 16
"""Batches of a file that are read before they are copied, at most."""


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet files, also in folders whose names are partitions."""

    endings = frozenset({".parquet", ".pq"})

    def check(self, name: str, table: Table, source: Source) -> None:
        """As every format: all files have all columns, each in one type that fits."""
        # The values of partitions are in the names of folders, not in the files.
        stored = {c: kind for c, kind in table.columns.items() if c not in source.partitions}
        check_parquet(name, stored, source.files, source.filesystem)

    def read(
        self, name: str, table: Table, source: Source, folder: Path
    ) -> Iterator[pa.RecordBatchReader]:
        """As every format. Confidential."""
        return read_parquet(name, table, source)


@dataclass(frozen=True)
class Frames(Parquet):
    """Frames, in the private files of :mod:`release.tables.frames`.

    Their dtypes were checked before they were written: a column of Python's objects is one of text.
    """

    endings = frozenset({".frame"})

    def check(self, name: str, table: Table, source: Source) -> None:
        """Nothing is left to check."""


def datasets_of(
    name: str, table: Table, source: Source, coded: Collection[str] = ()
) -> list[ds.Dataset]:
    """The declared columns of the Parquet files of a source, read lazily.

    As :func:`parquet_datasets` has it, with texts ``coded`` that may come with a dictionary.

    Raises:
        DataError: a file is not readable.
    """
    files: dict[Path, dict[str, str]] = {file: {} for file in source.files}
    if source.partitions:
        files = {file: partition_values(file.relative_to(source.root)) for file in source.files}
    return parquet_datasets(name, table.columns, files, source.filesystem, coded)


def read_parquet(
    name: str,
    table: Table,
    source: Source,
    keys: Mapping[str, Sequence[str]] | None = None,
    read: Collection[str] | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """The declared columns of Parquet files, with :func:`ascii_of` the texts. Confidential.

    One reader for the files of each dataset, as :func:`parquet_datasets` has them.

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
    for dataset in datasets_of(name, table, source, coded):
        wanted = [column for column in dataset.schema.names if read is None or column in read]
        columns = {column: ds.field(column) for column in wanted}
        for column in instants_in(dataset.schema, table):
            if column in wanted:
                columns[instant_of(column)] = pc.scalar(True)
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


def check_parquet(
    name: str,
    columns: dict[str, ColumnType],
    files: Sequence[Path],
    filesystem: FileSystem | None = None,
) -> None:
    """Check that every file of a table has all columns, each in a type that fits.

    Raises:
        SpecError: a column is missing, ambiguous or of another type.
        DataError: a file is not readable.
    """
    for file, (_, schema) in zip(files, _footers(name, files, filesystem), strict=True):
        check_schema(name, columns, schema, file.name)


def _footers(
    name: str, files: Iterable[Path], filesystem: FileSystem | None
) -> Iterator[tuple[pq.FileMetaData, pa.Schema]]:
    for file in files:
        try:
            with pq.ParquetFile(
                _opened(file, filesystem),
                filesystem=filesystem,
                coerce_int96_timestamp_unit=_OLD_TIMES,
            ) as opened:
                yield opened.metadata, opened.schema_arrow
        # A ValueError is the mapping's of an empty file.
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataError(
                f"tables.{name}.path: {file.name} is not a readable Parquet file"
            ) from error


def parquet_datasets(
    name: str,
    columns: Mapping[str, ColumnType],
    files: Mapping[Path, Mapping[str, str]],
    filesystem: FileSystem | None = None,
    coded: Collection[str] = (),
) -> list[ds.Dataset]:
    """The columns of files that :func:`check_parquet` accepts, read lazily.

    Files that store the columns alike are one dataset: what one part has as integers another has
    as floats where a value is missing, and each is read under its own types. ``files`` has the
    values of each file's partitions, as :func:`partition_values` tells them. Texts ``coded`` come
    as codes with a dictionary where every file stores them so.

    Raises:
        DataError: a file is not readable.
    """
    import pyarrow.dataset as ds

    partitions = set().union(*files.values())
    stored: dict[Path, dict[str, pa.DataType]] = {}
    instants: dict[Path, frozenset[str]] = {}
    categories: set[str] = set()
    for file, (metadata, schema) in zip(files, _footers(name, files, filesystem), strict=True):
        coded = [column for column in coded if _is_coded(column, metadata, schema)]
        stored[file] = {}
        zoned = [field.name for field in schema if _is_zoned(field.type)]
        instants[file] = frozenset(columns) & frozenset(zoned)
        for column, kind in columns.items():
            own = pa.string() if column in partitions else schema.field(column).type
            stored[file][column] = _read_type(own, kind)
            if pa.types.is_dictionary(own) and pa.types.is_string(stored[file][column]):
                categories.add(column)
    alike: dict[tuple[object, ...], list[Path]] = defaultdict(list)
    for file, types in stored.items():
        alike[(*map(_widened, types.values()), instants[file])].append(file)
    # Arrow checks the texts of a dictionary with codes of few bits, and fails on one that is not
    # UTF-8. It does not check those of one that it makes itself.
    old_times = ds.ParquetReadOptions(
        dictionary_columns={*coded, *categories}, coerce_int96_timestamp_unit=_OLD_TIMES
    )
    form = ds.ParquetFileFormat(read_options=old_times)
    datasets = []
    for own_files in alike.values():
        fields = []
        for column in columns:
            kinds = {stored[file][column] for file in own_files}
            # Files may store integers in different widths: the first file's would be too narrow.
            read = kinds.pop() if len(kinds) == 1 else pa.int64()
            told = {INSTANT: b"UTC"} if column in instants[own_files[0]] else None
            fields.append(pa.field(column, _CODED if column in coded else read, metadata=told))
        values = {file: files[file] for file in own_files}
        datasets.append(_dataset(values, pa.schema(fields), form, filesystem))
    return datasets


def _dataset(
    files: Mapping[Path, Mapping[str, str]],
    schema: pa.Schema,
    form: ds.ParquetFileFormat,
    filesystem: FileSystem | None,
) -> ds.Dataset:
    """Files that are read under one schema, with the values of their partitions."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    system = filesystem or LocalFileSystem()
    fragments = []
    for file, values in files.items():
        facts = [ds.field(column) == ds.scalar(value) for column, value in values.items()]
        partition = reduce(and_, facts, ds.scalar(True))
        source = _opened(file, filesystem)
        # Arrow takes a file system beside a path alone.
        where = system if isinstance(source, str) else None
        fragments.append(form.make_fragment(source, where, partition_expression=partition))
    return ds.FileSystemDataset(fragments, schema, form, system)


def _is_coded(column: str, metadata: pq.FileMetaData, schema: pa.Schema) -> bool:
    """Whether a file stores a text as codes of few texts, which then have to be looked at once.

    A text by itself takes four bytes for its length, and more for its letters.
    """
    if column not in schema.names or schema.field(column).type != pa.string():
        return False
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        named = [chunk for chunk in chunks if chunk.path_in_schema == column]
        # A column a.b has the path of the part b of a column a.
        if len(named) != 1 or not named[0].has_dictionary_page:
            return False
        if named[0].total_uncompressed_size > 4 * group.num_rows:
            return False
    return True


def _opened(file: Path, filesystem: FileSystem | None) -> str | pa.NativeFile:
    """The path of a file, or the file where its path is not UTF-8: Arrow takes no such path."""
    octets = os.fsencode(file)
    is_text = octets.decode("utf-8", "replace") == str(file)
    return str(file) if is_text or filesystem is not None else pa.OSFile(octets)


def partition_values(file: PurePath) -> dict[str, str]:
    """The values in the names of the folders above a file, by their keys.

    A value that is not UTF-8 holds U+FFFD, and a missing one is empty.
    """
    values = {}
    for part in file.parent.parts:
        key, equals, value = part.partition("=")
        if equals:
            octets = unquote_to_bytes(os.fsencode("" if value == _MISSING else value))
            values[key] = octets.decode("utf-8", "replace")
    return values


def _read_type(stored: pa.DataType, kind: ColumnType) -> pa.DataType:
    """The type under which Arrow hands a column on, equal for stored types of one meaning."""
    if pa.types.is_dictionary(stored):
        return _read_type(stored.value_type, kind)
    if pa.types.is_null(stored):
        return ARROW_TYPES[kind]
    if pa.types.is_large_string(stored):
        return pa.string()
    if pa.types.is_float16(stored):
        return pa.float32()
    # A time of a zone is an instant, which is handed on in UTC.
    if pa.types.is_timestamp(stored):
        return pa.timestamp(stored.unit)
    # As text, because the engine has decimals of 38 digits at most.
    return pa.string() if pa.types.is_decimal(stored) else stored


INSTANT = b"instant"
"""The entry of a field's metadata that tells of a time of a zone: an instant, handed on in UTC."""


def instants_in(schema: pa.Schema, table: Table) -> list[str]:
    """The declared columns that files of this schema store as instants."""
    return [column for column in table.columns if INSTANT in (schema.field(column).metadata or {})]


def _is_zoned(stored: pa.DataType) -> bool:
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    return bool(pa.types.is_timestamp(stored)) and stored.tz is not None


def _widened(read: pa.DataType) -> pa.DataType:
    """A type, equal for all that are read under one: integers of all widths."""
    return pa.int64() if pa.types.is_signed_integer(read) else read
