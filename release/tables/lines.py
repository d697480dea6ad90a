"""Reading CSV files line by line: what a line means depends on it alone wherever it can.

A record is a line; a carriage return at its end is dropped. Fields stand between separators; a
field in quotes may hold separators, and quotes that are doubled. An empty field after the last one
is none: many exports end each line in a separator, and their header not.

A field in quotes may also hold line breaks. Readers of whole tables let an open quote swallow the
lines after it, so that one broken line could cost the rows of others. Here *a line that is a record
by itself is one*, whatever stands before it, and a line that begins a record and ends within quotes
begins one (:class:`_Joining`). Only lines that are neither go on with the record before them.

What is left is *unreadable*, counted by its cause, and left out: too few or too many fields, a
quote in any other place, more than :data:`MOST_LINE` bytes. Fields are handed on as bytes,
unchecked, in Arrow columns of text: :mod:`release.tables.normal` takes them from there.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from release.errors import DataError
from release.spec.declarations import CsvFormat

MOST_LINE = 2**24
"""Bytes of a record; a longer one would have to be held in memory whole."""

UNREADABLE = b"unreadable lines, "
"""With a cause behind it, the entry of a batch's metadata with the number of lines left out."""

FEW, MANY, QUOTES, LONG = "fewer fields", "more fields", "quotes", "too long"
"""Causes for which a line cannot be read."""

_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_BLOCK = 2**23
_MARK = "\ufeff".encode()
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'

Places: TypeAlias = NDArray[np.int64]


class Stream(Protocol):
    """Bytes in order."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


@dataclass
class _Recoded:
    """A stream in UTF-8 of one in another encoding; what is no text there is U+FFFD."""

    stream: Stream
    encoding: str

    def __post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder(self.encoding)("replace")

    def read(self, size: int, /) -> bytes:
        """As of every stream, with as many bytes as the characters take."""
        while True:
            block = self.stream.read(size)
            text = self._decoder.decode(block, not block)
            if text or not block:
                return text.encode("utf-8", "replace")


@contextmanager
def _opened(file: Path, form: CsvFormat) -> Iterator[tuple[bytes, Iterator[bytes]]]:
    """The header of a file (none where the spec has it), and the blocks that follow it."""
    packed = _PACKED.get(file.suffix.lower())
    with ExitStack() as opened:
        stream: Stream = opened.enter_context(file.open("rb"))
        if packed is not None:
            stream = opened.enter_context(pa.CompressedInputStream(stream, packed))
        recoded = stream if form.is_utf8 else _Recoded(stream, form.encoding)
        wanted = form.skip + (form.header is None)
        start = recoded.read(_BLOCK).removeprefix(_MARK)
        while start.count(b"\n") < wanted and len(start) <= MOST_LINE:
            block = recoded.read(_BLOCK)
            if not block:
                break
            start += block
        lines = start.split(b"\n", wanted)
        header = b"" if form.header is not None else b"".join(lines[form.skip : wanted])
        rest = lines[wanted] if len(lines) > wanted else b""

        def blocks() -> Iterator[bytes]:
            if rest:
                yield rest
            while block := recoded.read(_BLOCK):
                yield block

        yield header.removesuffix(b"\r"), blocks()


def header_of(file: Path, form: CsvFormat) -> list[str]:
    """The names of the columns of a file; none of an empty one.

    Raises:
        OSError, UnicodeDecodeError, csv.Error: it cannot be read.
    """
    if form.header is not None:
        return list(form.header)
    with _opened(file, form) as (line, _):
        # Strict, so that a quote that is not closed is an error.
        delimiter = form.separator_of(file)
        return next(csv.reader([line.decode()], strict=True, delimiter=delimiter), [])


def read_lines(
    name: str, file: Path, form: CsvFormat, header: Sequence[str], columns: list[str]
) -> Iterator[pa.Table]:
    """Some columns of a file, in batches; the first one is empty. Confidential.

    Raises:
        DataError: the file cannot be read.
    """
    places = list(map(header.index, columns))
    yield pa.table({column: pa.array([], pa.string()) for column in columns})
    separator = form.separator_of(file).encode()
    joining = _Joining(separator, len(header), places)
    try:
        with _opened(file, form) as (_, stream):
            for block, skipped, is_last in _blocks(stream):
                if skipped:
                    joining.interrupted(skipped)
                fields, unreadable = _split(block, separator, len(header), places)
                more = joining.records(block, unreadable, is_last=is_last)
                arrays = [
                    pa.chunked_array([own, *extra], pa.string())
                    for own, extra in zip(fields, more, strict=True)
                ]
                batch = pa.Table.from_arrays(arrays, names=columns)
                yield batch.replace_schema_metadata(joining.taken_causes())
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"tables.{name}.path: {file.name} cannot be read") from error


def _blocks(stream: Iterator[bytes]) -> Iterator[tuple[bytes, int, bool]]:
    """Blocks of whole lines, each ended by a newline; the lines too long for one; the last."""
    rest, too_long = b"", False
    for read in stream:
        skipped, block = 0, read
        if too_long:
            _, ended, block = read.partition(b"\n")
            too_long = not ended
        end = block.rfind(b"\n") + 1
        # A line may go on for blocks; each of them is looked at once.
        if end or len(rest) + len(block) <= MOST_LINE:
            whole, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
        else:
            whole, rest, too_long, skipped = b"", b"", True, 1
        if whole or skipped:
            yield whole, skipped, False
    yield (rest + b"\n" if rest else b""), 0, True


@dataclass
class _Joining:
    """Records of several lines: each is put together of lines that are none by themselves.

    A line that begins a record begins with a whole field at least, and ends within quotes. So a
    line that another person's record begins with is never a part of this one.
    """

    separator: bytes
    width: int
    places: Sequence[int]
    causes: Counter[str] = field(default_factory=Counter)
    _open: list[bytes] = field(default_factory=list)
    _size: int = 0
    _kept: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # Possessive, so that a long line takes no memory for ways back: there is one way alone.
        separator = re.escape(self.separator)
        within = rb'[^"]*+(?:""[^"]*+)*+'
        one = rb'(?:"%b"|[^"%b\n]*+)' % (within, separator)
        self._field = re.compile(one)
        self._within = re.compile(within)
        self._begins = re.compile(rb'(?:%b%b)++"%b' % (one, separator, within))
        self._closes = re.compile(rb"(?:%b%b)*+" % (separator, one))
        self._goes_on = re.compile(
            rb'(?:%b%b(?=%b))*+%b"%b' % (separator, one, separator, separator, within)
        )

    def records(
        self, block: bytes, unreadable: Sequence[tuple[int, int, str]], *, is_last: bool
    ) -> list[list[pa.Array]]:
        """The columns of the records that unreadable lines make up, and what is left counted.

        ``unreadable`` are the ends of these lines in the block, and why they are no records.
        """
        found: list[list[bytes]] = []
        last_end = -1
        for start, end, cause in unreadable:
            line = block[start:end]
            # A record goes on in the very next line, also of the next block.
            if start != last_end + 1:
                self._drop()
            last_end = end
            if self._begins.fullmatch(line):
                self._drop()
                self._keep(line, cause)
            elif self._open:
                self._keep(line, cause)
                self._go_on(line, found)
            else:
                self.causes[cause] += 1
        if is_last or last_end != len(block) - 1:
            self._drop()
        if not found:
            return [[] for _ in self.places]
        columns = []
        for place in self.places:
            octets = pa.array([record[place] for record in found], pa.binary())
            columns.append([octets.view(pa.string())])
        return columns

    def interrupted(self, lines: int) -> None:
        """Lines follow that are too long for any record."""
        self._drop()
        self.causes[LONG] += lines

    def taken_causes(self) -> dict[bytes, bytes]:
        """The metadata of a batch: the lines that were left out since the last one, by cause."""
        taken = {UNREADABLE + cause.encode(): b"%d" % n for cause, n in self.causes.items() if n}
        self.causes.clear()
        return taken

    def _keep(self, line: bytes, cause: str) -> None:
        self._open.append(line)
        self._kept[cause] += 1
        self._size += len(line)
        if self._size > MOST_LINE:
            self._drop()

    def _drop(self) -> None:
        """What was begun is no record: its lines are left out."""
        self.causes += self._kept
        self._kept.clear()
        self._open.clear()
        self._size = 0

    def _go_on(self, line: bytes, found: list[list[bytes]]) -> None:
        """See whether the open field ends in a line, and the record with it.

        Cost: the length of the line.
        """
        inside = self._within.match(line)
        end = len(line) if inside is None else inside.end()
        if end == len(line):
            return
        rest = line[end + 1 :]
        if self._closes.fullmatch(rest.removesuffix(b"\r")):
            self._close(found)
        elif not self._goes_on.fullmatch(rest):
            # No line that follows makes a record of this.
            self._drop()

    def _close(self, found: list[list[bytes]]) -> None:
        """Take the lines for a record, if it has as many fields as the header."""
        fields = self._fields(b"\n".join(self._open).removesuffix(b"\r"))
        if len(fields) == self.width + 1 and not fields[-1]:
            fields.pop()
        if len(fields) == self.width:
            found.append([_bare(own) for own in fields])
            self._kept.clear()
        self._drop()

    def _fields(self, record: bytes) -> list[bytes]:
        fields, position = [], 0
        while True:
            match = self._field.match(record, position)
            # Each position that is reached is that of a field: the whole is a record.
            fields.append(match[0] if match else b"")
            position += len(fields[-1]) + 1
            if position > len(record):
                return fields


def _bare(field_: bytes) -> bytes:
    return field_[1:-1].replace(b'""', b'"') if field_.startswith(b'"') else field_


def _split(
    block: bytes, separator: bytes, width: int, places: Sequence[int]
) -> tuple[list[pa.Array], list[tuple[int, int, str]]]:
    """The fields at ``places`` of each line of ``width`` fields; start, end and cause of others."""
    if not block:
        return [pa.array([], pa.string()) for _ in places], []
    octets = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(octets == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])[: ends.size]
    quotes = np.flatnonzero(octets == _QUOTE)
    commas = np.flatnonzero(octets == separator[0])
    is_long = ends - starts > MOST_LINE
    is_open = np.zeros(ends.size, bool)
    if quotes.size:
        before, after = np.searchsorted(quotes, starts), np.searchsorted(quotes, ends)
        is_open = (after - before) % 2 == 1
        # A comma after an odd number of its line's quotes is part of a field.
        opened = np.searchsorted(quotes, commas) - before[np.searchsorted(ends, commas)]
        commas = commas[opened % 2 == 0]
    has_return = (ends > starts) & (octets[ends - 1] == _RETURN)
    stops = ends - has_return
    first, after_last = np.searchsorted(commas, starts), np.searchsorted(commas, ends)
    beyond = after_last - first - (width - 1)
    # An empty field after the last one.
    is_trailing = (beyond == 1) & (stops > starts)
    is_trailing[is_trailing] = commas[after_last[is_trailing] - 1] == stops[is_trailing] - 1
    stops = stops - is_trailing
    readable = ~is_long & ~is_open & ((beyond == 0) | is_trailing)
    lines = np.flatnonzero(readable)
    between = commas[first[lines, None] + np.arange(width - 1)]
    begin = np.column_stack([starts[lines], between + 1])
    end = np.column_stack([between, stops[lines]])
    doubled = np.zeros(begin.shape, bool)
    if quotes.size:
        begin, end, doubled, whole = _unquoted(begin, end, quotes)
        readable[lines[~whole]] = False
        begin, end, doubled = begin[whole], end[whole], doubled[whole]
    columns = _columns(block, begin, end, places)
    for number, place in enumerate(places):
        if doubled[:, place].any():
            columns[number] = _undoubled(columns[number], doubled[:, place])
    others = []
    for line in np.flatnonzero(~readable).tolist():
        cause = QUOTES
        if is_long[line]:
            cause = LONG
        elif not is_open[line] and beyond[line] and not is_trailing[line]:
            cause = MANY if beyond[line] > 0 else FEW
        others.append((int(starts[line]), int(ends[line]), cause))
    return columns, others


def _unquoted(
    begin: Places, end: Places, quotes: Places
) -> tuple[Places, Places, NDArray[np.bool_], NDArray[np.bool_]]:
    """Fields without the quotes around them, and whether one has doubled quotes.

    The last value tells which lines have no quote in another place.
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
    return begin + quoted, end - quoted, count > 2, good.all(axis=1)


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
