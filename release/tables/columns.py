"""Arrow columns: made without pandas, and what Arrow can tell of their values.

``pa.array`` loads pandas to ask whether its values are a series, which takes longer than most
queries; so columns are made here from their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from release.spec.declarations import ColumnType

_SLOTS = 2**20


def text_column(values: Sequence[str]) -> pa.Array:
    """Strings as a column.

    Raises:
        OverflowError: they are longer than 2^31 bytes together.
    """
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)])
    if ends[-1] >= 2**31:
        raise OverflowError("a column of text has at most 2^31 bytes")
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.StringArray.from_buffers(len(encoded), offsets, pa.py_buffer(b"".join(encoded)))


def number_column(values: ArrayLike, kind: pa.DataType) -> pa.Array:
    """Integers as a column of a type with as many bits as its values have here."""
    numbers = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, numbers.size, [None, pa.py_buffer(numbers)])


def numbers_of(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column without gaps, in place where they lie in one piece."""
    # Arrow's own to_numpy of several pieces imports pandas, which takes a third of a second.
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.from_dlpack(column)


def ascii_of(column: str) -> str:
    """The name of the column that tells which texts of another one are ASCII."""
    # No declared column begins with #.
    return f"#ascii {column}"


def number_of(column: str) -> str:
    """The name of the column with the place of each text of another one in its key set."""
    return f"#number {column}"


def instant_of(column: str) -> str:
    """The name of the column that tells that the times of another one are instants, in UTC.

    It stands beside a column whose source stores instants.
    """
    return f"#instant {column}"


def with_ascii(table: pa.Table, columns: Mapping[str, ColumnType]) -> pa.Table:
    """The table, with a column that tells which texts are ASCII for each declared string."""
    for column in stored_strings(table.schema, columns):
        table = table.append_column(ascii_of(column), pc.string_is_ascii(table.column(column)))
    return table


def stored_strings(schema: pa.Schema, columns: Mapping[str, ColumnType]) -> list[str]:
    """The columns declared as strings that are stored as text."""
    strings = []
    for column, kind in columns.items():
        stored = schema.field(column).type
        is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
        if kind is ColumnType.STRING and is_text:
            strings.append(column)
    return strings


def repeated_hashes(batches: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The hashes that stand more than once, each once. Confidential, as the hashes are."""
    # In parts of one first byte each, because a processor's cache can hold one.
    parts: list[list[NDArray[np.uint64]]] = [[] for _ in range(256)]
    for hashes in batches:
        first = (hashes >> np.uint64(56)).astype(np.uint8)
        # Stable, because NumPy then sorts bytes by counting them.
        ordered = hashes[np.argsort(first, kind="stable")]
        ends = np.cumsum(np.bincount(first, minlength=256)).tolist()
        for part, start, end in zip(parts, [0, *ends], ends, strict=False):
            part.append(ordered[start:end])
    repeated, last = [np.empty(0, dtype=np.uint64)], np.empty(_SLOTS, dtype=np.uint32)
    for part in filter(None, parts):
        values = np.sort(_sharing(np.concatenate(part), last))
        repeated.append(np.unique(values[1:][values[1:] == values[:-1]]))
    return np.concatenate(repeated)


def _sharing(hashes: NDArray[np.uint64], last: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """The hashes that share 20 bits with another, so that only they have to be sorted.

    ``last`` is room for a number of each slot. What stands in it counts for nothing.
    """
    slots = (hashes >> np.uint64(32)).astype(np.int64) & (_SLOTS - 1)
    places = np.arange(hashes.size, dtype=np.uint32)
    last[slots] = places
    shares = last[slots] != places
    # Those that stand in the slot of another.
    shares[last[slots[shares]]] = True
    return np.compress(shares, hashes)
