"""Reading CSV files line by line: what a line means depends on that line alone.

A record is a line; a carriage return at its end is dropped. Fields stand between commas; a field in
quotes may hold commas, and quotes that are doubled. A line with too few or too many fields, with
a quote in any other place, or of more than :data:`MOST_LINE` bytes is *unreadable*, and left out.
Readers of whole tables let an open quote swallow the lines after it, so none of them is used here.

Fields are handed on as bytes, unchecked, in Arrow columns of text: :mod:`release.tables.normal`
takes them from there.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from release.errors import DataError

MOST_LINE = 2**24
"""Bytes of a line; a longer one would have to be held in memory whole."""

UNREADABLE = b"unreadable lines"
"""The entry of a batch's metadata with the number of lines that were left out."""

_BLOCK = 2**23
_NEWLINE, _RETURN, _COMMA, _QUOTE = b'\n\r,"'

Places: TypeAlias = NDArray[np.int64]


def first_line(file: Path) -> list[str]:
    """The fields of the header of a file; none of an empty file.

    Raises:
        OSError, UnicodeDecodeError, csv.Error: it cannot be read as UTF-8 CSV.
    """
    with file.open("rb") as stream:
        line = _header(stream).decode("utf-8-sig")
    # Strict, so that a quote that is not closed is an error.
    return next(csv.reader([line], strict=True), [])


def _header(stream: BinaryIO) -> bytes:
    return stream.readline(MOST_LINE).removesuffix(b"\n").removesuffix(b"\r")


def read_lines(
    name: str, file: Path, header: Sequence[str], columns: list[str]
) -> Iterator[pa.Table]:
    """Some columns of a file, in batches; the first one is empty. Confidential.

    Raises:
        DataError: the file cannot be read.
    """
    places = list(map(header.index, columns))
    yield pa.table({column: pa.array([], pa.string()) for column in columns})
    try:
        with file.open("rb") as stream:
            _header(stream)
            for block, skipped in _blocks(stream):
                fields, unreadable = _split(block, len(header), places)
                batch = pa.Table.from_arrays(fields, names=columns)
                yield batch.replace_schema_metadata({UNREADABLE: str(unreadable + skipped)})
    except OSError as error:
        raise DataError(f"tables.{name}.path: {file.name} cannot be read") from error


def _blocks(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each ended by a newline, with the number of lines too long for one."""
    rest, too_long = b"", False
    while block := stream.read(_BLOCK):
        skipped = 0
        if too_long:
            _, ended, block = block.partition(b"\n")
            too_long = not ended
        end = block.rfind(b"\n") + 1
        # A line may go on for blocks; each of them is looked at once.
        if end or len(rest) + len(block) <= MOST_LINE:
            whole, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
        else:
            whole, rest, too_long, skipped = b"", b"", True, 1
        if whole or skipped:
            yield whole, skipped
    if rest:
        yield rest + b"\n", 0


def _split(block: bytes, width: int, places: Sequence[int]) -> tuple[list[pa.Array], int]:
    """The fields at ``places`` of each line of ``width`` fields, and the number of other lines."""
    octets = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(octets == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])[: ends.size]
    quotes = np.flatnonzero(octets == _QUOTE)
    commas = np.flatnonzero(octets == _COMMA)
    readable = ends - starts <= MOST_LINE
    if quotes.size:
        before, after = np.searchsorted(quotes, starts), np.searchsorted(quotes, ends)
        readable &= (after - before) % 2 == 0
        # A comma after an odd number of its line's quotes is part of a field.
        opened = np.searchsorted(quotes, commas) - before[np.searchsorted(ends, commas)]
        commas = commas[opened % 2 == 0]
    first = np.searchsorted(commas, starts)
    readable &= np.searchsorted(commas, ends) - first == width - 1
    lines = np.flatnonzero(readable)
    between = commas[first[lines, None] + np.arange(width - 1)]
    has_return = (ends > starts) & (octets[ends - 1] == _RETURN)
    begin = np.column_stack([starts[lines], between + 1])
    end = np.column_stack([between, (ends - has_return)[lines]])
    doubled = np.zeros(begin.shape, bool)
    if quotes.size:
        begin, end, doubled = _unquoted(begin, end, quotes)
    columns = _columns(block, begin, end, places)
    for number, place in enumerate(places):
        if doubled[:, place].any():
            columns[number] = _undoubled(columns[number], doubled[:, place])
    return columns, ends.size - len(begin)


def _unquoted(
    begin: Places, end: Places, quotes: Places
) -> tuple[Places, Places, NDArray[np.bool_]]:
    """Fields of readable lines without the quotes around them, and whether one has doubled quotes.

    Lines with a quote elsewhere are left out.
    """
    first, last = np.searchsorted(quotes, begin), np.searchsorted(quotes, end)
    count = last - first
    quoted = count > 0
    opening = np.minimum(first, quotes.size - 1)
    around = (count % 2 == 0) & (quotes[opening] == begin) & (quotes[last - 1] == end - 1)
    # The quotes between the first and the last one must stand side by side in pairs: the number of
    # pairs up to each quote, over every second quote, tells how many of a field's do.
    beside = np.append(np.diff(quotes) == 1, [False])
    pairs = np.zeros((2, quotes.size + 2), np.int64)
    for parity in (0, 1):
        pairs[parity, 1:-1] = np.cumsum(beside & (np.arange(quotes.size) % 2 == parity))
    inner = np.minimum(first + 1, quotes.size)
    own = inner % 2
    paired = pairs[own, np.maximum(last - 1, 0)] - pairs[own, inner]
    good = ~quoted | (around & (paired == (count - 2) // 2))
    whole = good.all(axis=1)
    return (begin + quoted)[whole], (end - quoted)[whole], (count > 2)[whole]


def _columns(block: bytes, begin: Places, end: Places, places: Sequence[int]) -> list[pa.Array]:
    """Columns of text over the bytes of a block."""
    lines, width = begin.shape
    if not lines:
        return [pa.array([], pa.string()) for _ in places]
    # Fields and what stands between them in turn: offsets without a copy of the bytes.
    offsets = np.stack([begin, end], axis=-1).astype(np.int32).ravel()
    pieces = pa.StringArray.from_buffers(
        offsets.size - 1, pa.py_buffer(offsets), pa.py_buffer(block)
    )
    fields = 2 * width * np.arange(lines)
    return [pieces.take(pa.array(fields + 2 * place)) for place in places]


def _undoubled(column: pa.Array, doubled: NDArray[np.bool_]) -> pa.Array:
    # As bytes, because nobody has checked that they are text.
    plain = pc.replace_substring(column.view(pa.binary()), b'""', b'"')
    return pc.if_else(pa.array(doubled), plain, column.view(pa.binary())).view(pa.string())
