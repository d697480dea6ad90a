"""Frames in place of files: pandas or Polars frames, or Arrow tables, written as Parquet.

A frame is as confidential as the file that it replaces. It lies in a private scratch folder that is
wiped once the answers are read; after a kill, the next run or ``recover`` wipes it.

A frame is refused for the dtype of a column and never for a value: the rule for Parquet files
applies (:func:`release.tables.schemas.fits`). Pandas makes floats of integers with missing values,
so floats may be declared as integers; those that are not whole are missing. Values of an object
column are taken as text. What a value means is found as it is read, as in every other source, so
that ``check`` can count what is left out.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.errors import DataError, SpecError, unknown_name
from release.exact.numbers import safe_text
from release.records.files import storage_errors
from release.spec.declarations import ColumnType, Table
from release.spec.load import SpecFile

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_DTYPES = {
    ColumnType.STRING: "string",
    ColumnType.INTEGER: "int64, Int64 or float64",
    ColumnType.DATE: "datetime64, or object with values of datetime.date (.dt.date)",
    ColumnType.TIMESTAMP: "datetime64 (pandas.to_datetime)",
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
            path = folder / f"{name}.frame"
            # Popped, so that its memory is free: the engine needs it.
            _write(columns.pop(name), path)
            # The path of a table may be a pattern; this one means itself.
            changed: dict[str, Any] = {"path": glob.escape(str(path)), "relation": None}
            # How the file is written that the frame stands for.
            changed |= {"csv": None, "missing": []}
            tables[name] = tables[name].model_copy(update=changed)
        yield replace(spec_file, spec=spec_file.spec.model_copy(update={"tables": tables}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def columns_of(name: str, table: Table, frame: pd.DataFrame) -> pa.Table:
    """The declared columns of a frame, in types that the engine reads whatever a column holds.

    Raises:
        SpecError: it is no frame.
        DataError: a declared column is missing, there twice, or of another dtype.
    """
    import pyarrow as pa

    stored = arrow_of(f"tables.{name}", frame)
    if stored is None:
        frame = _with_index(frame)
    titles = list(frame.columns) if stored is None else stored.column_names
    for column in table.columns:
        if column not in titles:
            raise DataError(f"tables.{name}: the frame has no column {column!r}; add it")
        if titles.count(column) > 1:
            raise DataError(
                f"tables.{name}: the frame has {titles.count(column)} columns {column!r}; keep one"
            )
    arrays = []
    for column, kind in table.columns.items():
        if stored is None:
            array = _column(name, frame[column], kind)
        else:
            array = _arrow_column(name, column, stored.column(column), kind)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=list(table.columns))


def arrow_of(at: str, frame: Any) -> pa.Table | None:
    """A frame of Arrow columns (an Arrow table, a Polars frame); None for one of pandas.

    Raises:
        SpecError: it is no frame; the message names ``at``.
    """
    import pandas as pd
    import pyarrow as pa

    if isinstance(frame, pd.DataFrame):
        return None
    if isinstance(frame, pa.Table):
        return frame
    found = type(frame).__name__
    if found == "Series":
        raise SpecError(at, "found Series, one column; give the frame")
    # Frames of other libraries hand their columns on through Arrow's interface.
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            return pa.table(frame)
        # Whatever another library raises of a column of Python's objects may quote a value.
        except Exception:
            raise SpecError(at, "the frame has a column that Arrow has no type for") from None
    raise SpecError(at, f"found {found}; give a pandas or Polars frame, or an Arrow table")


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of pandas with the named levels of its index as columns."""
    import pandas as pd

    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    if len(set(named)) < len(named):
        raise SpecError("frame", "two levels of its index have one name; rename one")
    if not named:
        return frame
    # Not by reset_index: it finds another dtype for a level of objects, which the value of one row
    # may decide for all.
    levels = {}
    for name in named:
        values = frame.index.get_level_values(name)
        levels[name] = pd.Series(values.array, dtype=values.dtype)
    plain = frame.set_axis(pd.RangeIndex(len(frame)))
    return pd.concat([pd.DataFrame(levels), plain], axis=1)


def schema_of(frame: Any) -> pa.Schema:
    """The columns of a frame with the types that they are stored as; no value is read.

    A column of objects is one of text.

    Raises:
        SpecError: it is no frame.
    """
    import pandas as pd
    import pyarrow as pa

    stored = arrow_of("frame", frame)
    if stored is not None:
        return pa.schema([(field.name, _plain(field.type)) for field in stored.schema])
    frame = _with_index(frame)
    fields = []
    titles = list(frame.columns)
    for name in titles:
        if not isinstance(name, str):
            raise SpecError("frame", f"a column is called {safe_text(name)}; give it a text")
        if titles.count(name) > 1:
            raise SpecError("frame", f"the column {name!r} stands twice; rename one")
        dtype = frame[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = dtype.categories.dtype
        is_text = isinstance(dtype, pd.StringDtype) or pd.api.types.is_object_dtype(dtype)
        empty = pd.Series([], dtype=dtype)
        fields.append(pa.field(name, pa.string() if is_text else pa.Array.from_pandas(empty).type))
    return pa.schema(fields)


def _plain(stored: pa.DataType) -> pa.DataType:
    """The type of the values, whatever way they are stored."""
    import pyarrow as pa

    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    # Of 64 bits: the texts of a column may be longer together than 2 GiB.
    return pa.large_string() if pa.types.is_string_view(stored) else stored


def _arrow_column(
    name: str, column: str, stored: pa.ChunkedArray, kind: ColumnType
) -> pa.ChunkedArray:
    """A column under a type that its own type alone decides."""
    import pyarrow as pa

    from release.tables.schemas import fits

    plain = _plain(stored.type)
    if not fits(plain, kind):
        # Without the fields of a nested type, whose names may be values of a row.
        nested = str(plain).partition("<")[0]
        raise DataError(
            f"tables.{name}: column {column!r} of the frame has type {nested}, declared "
            f"{kind.value}; make it one that fits"
        )
    # Piece by piece: together they may be longer than one piece can be.
    pieces = [_readable(_decoded(piece, plain), kind) for piece in stored.chunks]
    return pa.chunked_array([_readable(pa.array([], plain), kind), *pieces])


def _decoded(piece: pa.Array, plain: pa.DataType) -> pa.Array:
    """The values of a piece, in place of codes with a dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(piece.type):
        return piece.cast(plain)
    # Arrow cannot decode a dictionary of views.
    values = pa.DictionaryArray.from_arrays(piece.indices, piece.dictionary.cast(plain))
    return values.dictionary_decode()


def _readable(array: pa.Array, kind: ColumnType) -> pa.Array:
    """A column in a type that the engine reads whatever its values are."""
    import pyarrow as pa

    from release.tables.schemas import ARROW_TYPES

    stored = array.type
    if pa.types.is_null(stored):
        return array.cast(ARROW_TYPES[kind])
    if pa.types.is_date64(stored):
        return array.view(pa.timestamp("ms"))
    # Parquet has one kind of zoned times: instants.
    if pa.types.is_timestamp(stored):
        zone = None if stored.tz is None else "UTC"
        return _storable(array.cast(pa.timestamp(stored.unit, zone)))
    if pa.types.is_decimal(stored):
        return array.cast(pa.string())
    return array.cast(pa.float32()) if pa.types.is_float16(stored) else array


_BEYOND = 10**12
"""Seconds from 1970 to beyond all years that a time may have."""


def _storable(times: pa.Array) -> pa.Array:
    """Times that Parquet can hold: it has no seconds, and casting the largest would fail."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if times.type.unit != "s":
        return times
    seconds = times.view(pa.int64())
    near = pc.max_element_wise(
        pc.min_element_wise(seconds, _BEYOND, skip_nulls=False), -_BEYOND, skip_nulls=False
    )
    return near.view(times.type)


def _column(name: str, column: pd.Series, kind: ColumnType) -> pa.ChunkedArray:
    """A column under a type that its dtype alone decides, without categories."""
    import pandas as pd
    import pyarrow as pa

    from release.tables.values import texts

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    is_text = isinstance(dtype, pd.StringDtype)
    if is_text and kind is not ColumnType.STRING:
        raise _misfit(name, column, kind)
    # Texts that Arrow holds may be any bytes, and are handed on as they are: pandas would decode
    # them, and fail on one that is not UTF-8.
    is_arrows = is_text and dtype.storage == "pyarrow"
    if not is_arrows and (is_text or pd.api.types.is_object_dtype(dtype)):
        # Arrow would take the first value's type for that of all, and fail on another one.
        values = column.astype(object)
        return pa.chunked_array([texts(None if _is_missing(value) else value for value in values)])
    try:
        array = pa.Array.from_pandas(column)
        if not isinstance(array, pa.ChunkedArray):
            array = pa.chunked_array([array])
        return _arrow_column(name, str(column.name), array, kind)
    except (DataError, pa.ArrowException, ArithmeticError, TypeError, ValueError, RuntimeError):
        # Arrow's own message quotes the value.
        raise _misfit(name, column, kind) from None


def _is_missing(value: object) -> bool:
    """Whether pandas takes a value of Python for none."""
    import numpy as np
    import pandas as pd

    # A value may be of a class of its own, whose code raises anything: it is no text then.
    with suppress(Exception):
        if isinstance(value, Decimal):
            # Pandas compares it with itself, which is an error for a signaling NaN.
            return value.is_nan()
        is_nan = isinstance(value, float | np.floating) and bool(np.isnan(value))
        return value is None or value is pd.NA or value is pd.NaT or is_nan
    return False


def _misfit(name: str, column: pd.Series, kind: ColumnType) -> DataError:
    import pandas as pd

    # A sparse dtype is named with the value that fills its gaps.
    dtype = "Sparse" if isinstance(column.dtype, pd.SparseDtype) else str(column.dtype)
    # Without the fields of a nested type, whose names may be values of a row.
    dtype = dtype.partition("<")[0] or dtype
    return DataError(
        f"tables.{name}: column {column.name!r} of the frame has dtype {dtype}, declared "
        f"{kind.value}; make it {_DTYPES[kind]}"
    )


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    with storage_errors(path.parent, "a frame"):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pq.write_table(table, file)
