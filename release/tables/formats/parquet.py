"""Parquet files as an Arrow dataset that no row can make unreadable.

The engine's own reader fails on a text that is not UTF-8 and on a time in milliseconds beyond its
years, so Arrow reads all Parquet, with the same bytes on one machine, on a cluster and from a
store. Each column is read as a type in which every value has a place, which is chosen from the
schemas alone. The names of partitions' folders are values too, and are read as text.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq

from release.errors import DataError, SpecError
from release.spec.declarations import ColumnType, Table
from release.tables.columns import ascii_of, number_of, stored_strings, text_column
from release.tables.formats.base import Format, Source
from release.tables.schemas import check_schema, comparable_type

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem

# Arrow would read the timestamps of older systems as nanoseconds, which end in 2262.
_OLD_TIMES = "us"
_MISSING = "__HIVE_DEFAULT_PARTITION__"


_MOST_AHEAD = 16
"""Batches of a file that are read before they are copied, at most."""


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet files, also in folders whose names are partitions."""

    endings = frozenset({".parquet"})

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


def check_parquet(
    name: str,
    columns: dict[str, ColumnType],
    files: Sequence[Path],
    filesystem: FileSystem | None = None,
) -> None:
    """Check that every file of a table has all columns, in one type that fits.

    Raises:
        SpecError: a column is missing, ambiguous or of another type.
        DataError: a file is not readable.
    """
    first: dict[str, pa.DataType] = {}
    for file, (_, schema) in zip(files, _footers(name, files, filesystem), strict=True):
        check_schema(name, columns, schema, file.name)
        for column in columns:
            kind = comparable_type(schema.field(column).type)
            if first.setdefault(column, kind) != kind:
                problem = f"{file.name} has {kind}, another file {first[column]}; write them alike"
                raise SpecError(f"tables.{name}.columns.{column}", problem)


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


def parquet_dataset(
    name: str,
    columns: Sequence[str],
    files: Mapping[Path, Mapping[str, str]],
    filesystem: FileSystem | None = None,
    coded: Collection[str] = (),
) -> ds.Dataset:
    """The columns of files that :func:`check_parquet` accepts, read lazily.

    ``files`` has the values of each file's partitions, as :func:`partition_values` tells them.
    Texts ``coded`` come as codes with a dictionary where every file stores them so.

    Raises:
        DataError: a file is not readable.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    types: dict[str, set[pa.DataType]] = {column: set() for column in columns}
    partitions = set().union(*files.values())
    for metadata, schema in _footers(name, files, filesystem):
        coded = [column for column in coded if _is_coded(column, metadata, schema)]
        for column in columns:
            stored = pa.string() if column in partitions else schema.field(column).type
            types[column].add(_read_type(stored))
    old_times = ds.ParquetReadOptions(
        dictionary_columns=set(coded), coerce_int96_timestamp_unit=_OLD_TIMES
    )
    form = ds.ParquetFileFormat(read_options=old_times)
    system = filesystem or LocalFileSystem()
    fragments = []
    for file, values in files.items():
        facts = [ds.field(column) == ds.scalar(value) for column, value in values.items()]
        partition = reduce(and_, facts, ds.scalar(True))
        source = _opened(file, filesystem)
        # Arrow takes a file system beside a path alone.
        where = system if isinstance(source, str) else None
        fragments.append(form.make_fragment(source, where, partition_expression=partition))
    # Files may store integers in different widths: the first file's would be too narrow.
    types |= {column: {pa.dictionary(pa.int32(), pa.string())} for column in coded}
    fields = [(c, kinds.pop() if len(kinds) == 1 else pa.int64()) for c, kinds in types.items()]
    return ds.FileSystemDataset(fragments, pa.schema(fields), form, system)


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


def _read_type(stored: pa.DataType) -> pa.DataType:
    """The type under which Arrow hands a column on, equal for stored types of one meaning."""
    if pa.types.is_dictionary(stored):
        return _read_type(stored.value_type)
    if pa.types.is_large_string(stored):
        return pa.string()
    if pa.types.is_float16(stored):
        return pa.float32()
    # As text, because the engine has decimals of 38 digits at most.
    return pa.string() if pa.types.is_decimal(stored) else stored
