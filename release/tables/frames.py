"""Frames in place of files: pandas frames written as Parquet where the engine reads.

A frame is as confidential as the file that it replaces. It lies in a private scratch folder that is
wiped once the answers are read; after a kill, the next run or ``recover`` wipes it. Columns keep
their types, and the rule for Parquet files applies (:func:`release.tables.schemas.fits`). Pandas
makes floats of integers with missing values, so whole floats count as integers. Nothing else is
converted.
"""

from __future__ import annotations

import datetime
import glob
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from release.errors import DataError, SpecError, unknown_name
from release.records.files import storage_errors
from release.spec.declarations import ColumnType, Table
from release.spec.load import SpecFile

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_DTYPES = {
    ColumnType.STRING: "string",
    ColumnType.INTEGER: "int64 or Int64, or floats that are whole and below 2^53",
    ColumnType.DATE: "object with values of datetime.date (.dt.date)",
    ColumnType.TIMESTAMP: "datetime64 without a time zone (pandas.to_datetime)",
    ColumnType.NUMBER: "float64 or Float64",
    ColumnType.BOOLEAN: "bool or boolean",
}
"""Which dtypes a message proposes for a declared type."""


@contextmanager
def with_frames(
    spec_file: SpecFile, frames: Mapping[str, pd.DataFrame], scratch: Callable[[], Path]
) -> Iterator[SpecFile]:
    """The spec with ``frames`` in place of the files of their tables; its text stays as it is.

    ``scratch`` makes the private folder that the frames are written into, once all of them fit.

    Raises:
        SpecError: a frame for a table that the spec does not declare, or an object that is none.
        DataError: a frame without a declared column, or with a column of another type.
        StorageError: the frames cannot be written.
    """
    if not frames:
        yield spec_file
        return
    tables = dict(spec_file.spec.tables)
    columns = {}
    for name, frame in frames.items():
        if name not in tables:
            raise SpecError(f"tables.{name}", unknown_name(name, tables))
        columns[name] = columns_of(name, tables[name], frame)
    folder = scratch().resolve()
    try:
        for name in tuple(columns):
            path = folder / f"{name}.parquet"
            # Popped, so that its memory is free: the engine needs it.
            _write(columns.pop(name), path)
            # The path of a table may be a pattern; this one means itself.
            changed = {"path": glob.escape(str(path)), "relation": None}
            tables[name] = tables[name].model_copy(update=changed)
        yield replace(spec_file, spec=spec_file.spec.model_copy(update={"tables": tables}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def columns_of(name: str, table: Table, frame: pd.DataFrame) -> pa.Table:
    """The declared columns of a frame as Arrow, in the order of the declaration.

    Raises:
        SpecError: it is no frame.
        DataError: a declared column is missing, there twice, or of another type.
    """
    import pandas as pd
    import pyarrow as pa

    if not isinstance(frame, pd.DataFrame):
        raise SpecError(f"tables.{name}", f"found {type(frame).__name__}; give a pandas DataFrame")
    titles = list(frame.columns)
    for column in table.columns:
        if column not in titles:
            raise DataError(f"tables.{name}: the frame has no column {column!r}; add it")
        if titles.count(column) > 1:
            raise DataError(
                f"tables.{name}: the frame has {titles.count(column)} columns {column!r}; keep one"
            )
    arrays = [_column(name, frame[column], kind) for column, kind in table.columns.items()]
    return pa.Table.from_arrays(arrays, names=list(table.columns))


def _column(name: str, column: pd.Series, kind: ColumnType) -> pa.Array:
    """A column under its own type, without categories."""
    import pyarrow as pa

    from release.tables.schemas import ARROW_TYPES, fits

    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Arrow's own message quotes the value.
        raise _misfit(name, column, kind) from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        # A categorical may name categories of rows that are not there.
        array = array.dictionary_decode()
    stored = array.type
    is_float = pa.types.is_floating(stored)
    if (is_float or pa.types.is_null(stored)) and array.null_count == len(array):
        return pa.nulls(len(array), ARROW_TYPES[kind])
    if is_float and kind is ColumnType.INTEGER and _is_whole(array):
        return array.cast(pa.int64())
    is_mixed = pa.types.is_temporal(stored) and _mixes_times(column)
    if is_mixed or not fits(stored, kind):
        raise _misfit(name, column, kind, getattr(stored, "tz", None))
    return array


def _is_whole(array: pa.Array) -> bool:
    """Whether floats are integers small enough that none lost a digit as a float."""
    import numpy as np

    values = array.drop_null().to_numpy(zero_copy_only=False)
    # From there on neighboring integers are the same float, and two units would count as one.
    first_lost = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return bool(((np.abs(values) < first_lost) & (values == np.floor(values))).all())


def _mixes_times(column: pd.Series) -> bool:
    """Whether Python objects are not all dates, all local times or all times of a zone.

    Arrow takes the first for the type of all, and drops times and time zones of the others.
    """
    if column.dtype != object:
        return False
    kinds = {
        (isinstance(value, datetime.datetime), getattr(value, "tzinfo", None) is not None)
        for value in column.dropna()
    }
    return len(kinds) > 1


def _misfit(
    name: str, column: pd.Series, kind: ColumnType, time_zone: str | None = None
) -> DataError:
    import pandas as pd

    # A sparse dtype is named with the value that fills its gaps.
    dtype = "Sparse" if isinstance(column.dtype, pd.SparseDtype) else str(column.dtype)
    remedy = f"make it {_DTYPES[kind]}"
    if kind is ColumnType.TIMESTAMP and time_zone is not None:
        remedy = "take its time zone away: .dt.tz_convert('UTC').dt.tz_localize(None)"
    return DataError(
        f"tables.{name}: column {column.name!r} of the frame has dtype {dtype}, declared "
        f"{kind.value}; {remedy}"
    )


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    with storage_errors(path.parent, "a frame"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pq.write_table(table, file)
