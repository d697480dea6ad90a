"""Parquet files as an Arrow dataset that no row can make unreadable.

The engine's own reader fails on a text that is not UTF-8 and on a time in milliseconds beyond its
years, so Arrow reads all Parquet, with the same bytes on one machine, on a cluster and from a
store. Each column is read as a type in which every value has a place, which is chosen from the
schemas alone. The names of partitions' folders are values too, and are read as text.
"""

from __future__ import annotations

import os
from functools import reduce
from operator import and_
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq

from release.errors import DataError, SpecError
from release.spec.declarations import Table
from release.tables.schemas import check_schema, comparable_type

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from release.tables.sources import Source

_MISSING = "__HIVE_DEFAULT_PARTITION__"


def check_parquet(name: str, table: Table, source: Source) -> None:
    """Check the schemas of the files of a source.

    Raises:
        SpecError: a declared column is missing, ambiguous or of another type.
        DataError: a file is not readable.
    """
    # The values of partitions are in the names of folders, not in the files.
    stored = {c: kind for c, kind in table.columns.items() if c not in source.partitions}
    first: dict[str, pa.DataType] = {}
    for file, schema in zip(source.files, _schemas(name, source), strict=True):
        check_schema(name, stored, schema, file.name)
        for column in stored:
            kind = comparable_type(schema.field(column).type)
            if first.setdefault(column, kind) != kind:
                problem = f"{file.name} has {kind}, another file {first[column]}; write them alike"
                raise SpecError(f"tables.{name}.columns.{column}", problem)


def _schemas(name: str, source: Source) -> list[pa.Schema]:
    filesystem = None if source.store is None else source.store.filesystem
    schemas = []
    for file in source.files:
        try:
            schemas.append(pq.read_schema(str(file), filesystem=filesystem))
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                f"tables.{name}.path: {file.name} is not a readable Parquet file"
            ) from error
    return schemas


def dataset_of(name: str, table: Table, source: Source) -> ds.Dataset:
    """The declared columns of a source that :func:`check_parquet` accepts, read lazily.

    Raises:
        DataError: a file is not readable.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    # Arrow would read the timestamps of older systems as nanoseconds, which end in 2262.
    old_times = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    form = ds.ParquetFileFormat(read_options=old_times)
    filesystem = LocalFileSystem() if source.store is None else source.store.filesystem
    fragments = []
    for file in source.files:
        values = [ds.scalar(True)]
        if source.partitions:
            for column, value in partition_values(file.relative_to(source.root)).items():
                values.append(ds.field(column) == ds.scalar(value))
        place = reduce(and_, values)
        fragments.append(form.make_fragment(str(file), filesystem, partition_expression=place))
    # Files may store integers in different widths: the first file's would be too narrow.
    schemas = _schemas(name, source)
    fields = []
    for column in table.columns:
        if column in source.partitions:
            fields.append(pa.field(column, pa.string()))
            continue
        types = {_read_type(schema.field(column).type) for schema in schemas}
        fields.append(pa.field(column, types.pop() if len(types) == 1 else pa.int64()))
    return ds.FileSystemDataset(fragments, pa.schema(fields), form, filesystem)


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
