"""Frames in place of files: a pandas frame written where the engine reads, and wiped afterwards.

A frame is confidential as the file that it stands for is. It is written under its declared types
into a private folder, which goes when the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from release.errors import DataError, SpecError, unknown_name
from release.spec.declarations import ColumnType, Table
from release.spec.load import SpecFile

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@contextmanager
def with_frames(spec_file: SpecFile, frames: Mapping[str, pd.DataFrame]) -> Iterator[SpecFile]:
    """The spec with the tables of ``frames`` read from them; its published text stays as it is.

    Raises:
        SpecError: a frame for a table that the spec does not declare.
        DataError: a frame without a declared column, or with values of another type.
    """
    if not frames:
        yield spec_file
        return
    with TemporaryDirectory(prefix="dp-release-frames-") as folder:
        tables = dict(spec_file.spec.tables)
        for name, frame in frames.items():
            if name not in tables:
                raise SpecError(f"tables.{name}", unknown_name(name, tables))
            path = Path(folder) / f"{name}.parquet"
            _write(name, tables[name], frame, path)
            tables[name] = tables[name].model_copy(update={"path": str(path), "relation": None})
        spec = spec_file.spec.model_copy(update={"tables": tables})
        yield replace(spec_file, spec=spec)


def _write(name: str, table: Table, frame: pd.DataFrame, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for column in table.columns:
        if column not in frame.columns:
            raise DataError(f"tables.{name}: the frame has no column {column!r}; add it")
    columns = []
    for column, kind in table.columns.items():
        try:
            columns.append(pa.Array.from_pandas(frame[column], type=_stored(kind)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Arrow's own message quotes the value.
            raise DataError(
                f"tables.{name}: column {column!r} of the frame has values that are no {kind.value}"
            ) from None
    arrays = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in columns]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(table.columns)), path)


def _stored(kind: ColumnType) -> pa.DataType:
    import pyarrow as pa

    return {
        ColumnType.STRING: pa.string(),
        ColumnType.INTEGER: pa.int64(),
        ColumnType.DATE: pa.date32(),
        ColumnType.TIMESTAMP: pa.timestamp("us"),
        ColumnType.NUMBER: pa.float64(),
        ColumnType.BOOLEAN: pa.bool_(),
    }[kind]
