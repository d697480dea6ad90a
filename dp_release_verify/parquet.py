"""Reads the one Parquet shape that a release has, with the standard library alone.

Flat columns, one row group, plain encoding, gzip, no dictionary and no statistics: every byte is
read, and whatever else a file could hold is refused, so that all readers read the same.
"""

from __future__ import annotations

import datetime
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dp_release_verify.errors import Refused, refuse_unless

ColumnKind: TypeAlias = Literal["string", "date", "int32", "int64", "double"]
Value: TypeAlias = str | int | float | datetime.date | None

MOST_UNPACKED = 2**31
"""Bytes of all pages of a file, before they were packed."""

BYTES_OF_A_TEXT = 20_000
_SPARE = 10**4

_MAGIC = b"PAR1"
_GZIP, _PLAIN, _RLE = 2, 0, 3
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_LAST_DAY = datetime.date.max.toordinal() - _EPOCH
_FIRST_DAY = datetime.date.min.toordinal() - _EPOCH

# The physical type, the converted type and the number of the logical type of each kind.
_KINDS: dict[ColumnKind, tuple[int, int | None, int | None]] = {
    "string": (6, 0, 1),
    "date": (1, 6, 6),
    "int32": (1, None, None),
    "int64": (2, None, None),
    "double": (5, None, None),
}
_NUMBERS = {1: ("i", 4), 2: ("q", 8), 5: ("d", 8)}

PEOPLE = "PANDAS_ATTRS"
"""The entry with titles and units as a JSON object, which pandas reads; it is not compared."""


def _is_object(text: str) -> bool:
    """Whether a text is a JSON object, so that no program that reads it fails."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, what it holds, and whether a value may be missing."""

    name: str
    kind: ColumnKind
    is_optional: bool
    values: list[Value]


@dataclass(frozen=True)
class Table:
    """A table as it stands in a file."""

    rows: int
    columns: dict[str, Column]
    entries: dict[str, str]


# ---- The compact protocol of Thrift --------------------------------------------------------------

_TRUE, _FALSE, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 4, 5, 6, 8, 9, 12
_Shape: TypeAlias = Mapping[int, Any]
"""The fields of a struct by number: a kind, ``[kind]`` of a list, or the shape of a struct."""


class _Thrift:
    """Reads structs of a known shape, and refuses all others."""

    def __init__(self, file: str, data: bytes, place: int, end: int) -> None:
        self.file = file
        self._data = data
        self.place = place
        self._end = end

    def _refuse(self, found: object) -> Refused:
        return Refused(self.file, f"byte {self.place}", found, "Parquet as a release has it")

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if not 0 <= count <= self._end - self.place:
            raise self._refuse("the end")
        taken = self._data[self.place : self.place + count]
        self.place += count
        return taken

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def varint(self) -> int:
        """A number of seven bits a byte."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift > 63:
                raise self._refuse("a number of more than 64 bits")
        if value >= 2**64:
            raise self._refuse("a number of more than 64 bits")
        return value

    def _integer(self, bits: int) -> int:
        zigzag = self.varint()
        value = (zigzag >> 1) ^ -(zigzag & 1)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise self._refuse(f"a number of more than {bits} bits")
        return value

    def _value(self, kind: int, shape: Any) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._integer({_I16: 16, _I32: 32, _I64: 64}[kind])
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _LIST:
            return self._list(shape)
        return self.struct(shape)

    def _list(self, shape: Any) -> list[Any]:
        header = self.byte()
        count = header >> 4
        if count == 15:
            count = self.varint()
        kind = header & 15
        if kind != _kind_of(shape) or count > self._end - self.place:
            raise self._refuse("another list")
        return [self._value(kind, shape) for _ in range(count)]

    def struct(self, shape: _Shape) -> dict[int, Any]:
        """The fields of a struct, by their numbers, which ascend."""
        found: dict[int, Any] = {}
        number = 0
        while True:
            header = self.byte()
            if header == 0:
                return found
            step = header >> 4
            before = number
            number = number + step if step else self._integer(16)
            kind = header & 15
            if number <= before or number not in shape or kind != _kind_of(shape[number]):
                raise self._refuse(f"a field of number {number} and kind {kind}")
            inner = shape[number]
            found[number] = self._value(kind, inner[0] if isinstance(inner, list) else inner)


def _kind_of(shape: Any) -> int:
    if isinstance(shape, list):
        return _LIST
    if isinstance(shape, int):
        return shape
    return _STRUCT


_LOGICAL: _Shape = {1: {}, 6: {}}
_SCHEMA: _Shape = {1: _I32, 3: _I32, 4: _BINARY, 5: _I32, 6: _I32, 10: _LOGICAL}
_SIZES: _Shape = {1: _I64, 2: [_I64], 3: [_I64]}
_STATS: _Shape = {1: _I32, 2: _I32, 3: _I32}
_COLUMN: _Shape = {
    1: _I32,
    2: [_I32],
    3: [_BINARY],
    4: _I32,
    5: _I64,
    6: _I64,
    7: _I64,
    9: _I64,
    13: [_STATS],
    16: _SIZES,
}
_CHUNK: _Shape = {2: _I64, 3: _COLUMN}
_GROUP: _Shape = {1: [_CHUNK], 2: _I64, 3: _I64, 5: _I64, 6: _I64, 7: _I16}
_PAIR: _Shape = {1: _BINARY, 2: _BINARY}
_FOOTER: _Shape = {
    1: _I32,
    2: [_SCHEMA],
    3: _I64,
    4: [_GROUP],
    5: [_PAIR],
    6: _BINARY,
    7: [{1: {}}],
}
_DATA: _Shape = {1: _I32, 2: _I32, 3: _I32, 4: _I32, 5: {}}
_PAGE: _Shape = {1: _I32, 2: _I32, 3: _I32, 5: _DATA}


# ---- The file ------------------------------------------------------------------------------------


class _File:
    def __init__(self, file: str, data: bytes, rows: int) -> None:
        self.file = file
        self.data = data
        self.rows = rows
        self.left = MOST_UNPACKED

    def need(self, holds: bool, place: str, found: object, needed: object) -> None:
        refuse_unless(holds, self.file, place, found, needed)

    def read(self) -> Table:
        data = self.data
        framed = len(data) >= 12 and data[:4] == _MAGIC and data[-4:] == _MAGIC
        self.need(framed, "", "no Parquet", "a Parquet file")
        (length,) = struct.unpack("<I", data[-8:-4])
        start = len(data) - 8 - length
        self.need(start >= 4, "footer", length, "a footer within the file")
        thrift = _Thrift(self.file, data, start, len(data) - 8)
        footer = thrift.struct(_FOOTER)
        self.need(thrift.place == len(data) - 8, "footer", "more bytes", "the footer alone")
        self.need({1, 2, 3, 4, 6} <= footer.keys(), "footer", sorted(footer), "all its fields")
        self.need(footer[1] in (1, 2), "version", footer[1], "1 or 2")
        self.need(footer[3] == self.rows, "rows", footer[3], self.rows)
        self.need(len(footer[4]) == 1, "row groups", len(footer[4]), 1)
        root, *elements = footer[2] or [{}]
        right = root.keys() == {3, 4, 5} and root[5] == len(elements) and root[3] == 0
        self.need(right and bool(elements), "schema", sorted(root), "flat columns")
        orders = footer.get(7)
        self.need(orders is None or len(orders) == len(elements), "orders", orders, "one a column")
        (group,) = footer[4]
        self.need({1, 2, 3} <= group.keys(), "row group", sorted(group), "all its fields")
        right = group[3] == self.rows and len(group[1]) == len(elements)
        self.need(right, "row group", group[3], "all rows and columns")
        sizes = [chunk.get(3, {}) for chunk in group[1]]
        right = group[2] == sum(each.get(6, 0) for each in sizes) and group.get(5, 4) == 4
        right = right and group.get(6) in (None, sum(each.get(7, 0) for each in sizes))
        self.need(
            right and group.get(7, 0) == 0, "row group", "other sizes", "those of its columns"
        )
        columns = {}
        place = 4
        for element, chunk in zip(elements, group[1], strict=True):
            column, place = self._column(element, chunk, place)
            self.need(column.name not in columns, column.name, "twice", "once")
            columns[column.name] = column
        self.need(place == start, "", "bytes that are in no column", "none")
        return Table(self.rows, columns, self._entries(footer.get(5, [])))

    def _entries(self, pairs: list[dict[int, Any]]) -> dict[str, str]:
        entries = {}
        for pair in pairs:
            self.need(pair.keys() == {1, 2}, "metadata", sorted(pair), "names and values")
            name = self._text(pair[1])
            self.need(name not in entries, "metadata", name, "each name once")
            entries[name] = self._text(pair[2])
        if PEOPLE in entries:
            self.need(_is_object(entries[PEOPLE]), "metadata", PEOPLE, "a JSON object")
        return entries

    def _text(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refused(self.file, "", "bytes that are no UTF-8", "texts") from error

    def _kind(self, element: dict[int, Any]) -> ColumnKind:
        logical = element.get(10)
        number = next(iter(logical)) if logical else None
        self.need(logical is None or len(logical) == 1, "schema", logical, "one logical type")
        own = (element.get(1), element.get(6), number)
        for kind, known in _KINDS.items():
            if own == known:
                return kind
        raise Refused(self.file, "schema", own, "a type that a release has")

    def _column(
        self, element: dict[int, Any], chunk: dict[int, Any], place: int
    ) -> tuple[Column, int]:
        """A column whose bytes begin at a place, and where they end."""
        right = {1, 3, 4} <= element.keys() and 5 not in element and element[3] in (0, 1)
        self.need(right, "schema", sorted(element), "a flat column")
        kind, name = self._kind(element), self._text(element[4])
        is_optional = element[3] == 1
        about = chunk.get(3, {})
        self.need(chunk.get(2, 0) == 0, name, chunk.get(2), "metadata in the footer alone")
        self.need({1, 2, 3, 4, 5, 6, 7, 9} <= about.keys(), name, sorted(about), "its fields")
        right = about[1] == element[1] and about[3] == [element[4]] and about[4] == _GZIP
        self.need(right, name, "another type, name or packing", "those of its column")
        self.need(set(about[2]) <= {_PLAIN, _RLE}, name, about[2], "plain encoding")
        right = about[5] == self.rows and about[9] == place and about[7] >= 0
        self.need(right, name, "other values or bytes", "all rows, after the column before")
        end = place + about[7]
        self.need(end <= len(self.data), name, end, "within the file")
        values: list[Value] = []
        width = BYTES_OF_A_TEXT if kind == "string" else _NUMBERS[about[1]][1]

        def most(count: int) -> int:
            """How many bytes so many values need at most, with their levels."""
            return count * (width + 1) + _SPARE

        pages = unpacked = 0
        while place < end:
            body, place, size, count = self._page(name, place, end, most)
            unpacked += size
            pages += 1
            values += self._values(name, body, kind, count, is_optional)
        self.need(place == end and len(values) == self.rows, name, len(values), self.rows)
        self.need(about[6] == unpacked, name, about[6], "the size of its pages")
        stats = about.get(13, [{1: 0, 2: _PLAIN, 3: pages}])
        self.need(stats == [{1: 0, 2: _PLAIN, 3: pages}], name, stats, "plain pages of data")
        self._check_sizes(name, about.get(16), kind, values, is_optional)
        return Column(name, kind, is_optional, values), end

    def _check_sizes(
        self,
        name: str,
        sizes: dict[int, Any] | None,
        kind: ColumnKind,
        values: list[Value],
        is_optional: bool,
    ) -> None:
        """The histogram of missing values says what the values say."""
        if sizes is None:
            return
        missing = values.count(None)
        right = sizes.get(2, []) == []
        if is_optional:
            right = right and sizes.get(3, []) in ([], [missing, len(values) - missing])
        else:
            right = right and sizes.get(3, []) == []
        if 1 in sizes:
            texts = [each.encode() for each in values if isinstance(each, str)]
            right = right and kind == "string" and sizes[1] == sum(len(each) for each in texts)
        self.need(right, name, "other sizes", "those of its values")

    def _page(
        self, name: str, place: int, end: int, most: Callable[[int], int]
    ) -> tuple[bytes, int, int, int]:
        """The unpacked bytes of a page, where it ends, its size with the header, its values."""
        thrift = _Thrift(self.file, self.data, place, end)
        page = thrift.struct(_PAGE)
        self.need(page.keys() == {1, 2, 3, 5} and page[1] == 0, name, "another page", "a data page")
        about = page[5]
        right = {1, 2, 3, 4} <= about.keys() and about[2] == _PLAIN
        right = right and about[3] == _RLE and about[4] == _RLE
        self.need(right, name, "another encoding", "a plain one")
        header = thrift.place - place
        begin, after = thrift.place, thrift.place + page[3]
        self.need(page[3] >= 0 and after <= end, name, page[3], "a page within its column")
        self.need(page[2] <= most(about[1]), name, page[2], "as many bytes as its values need")
        self.left -= page[2]
        self.need(page[2] >= 0 and self.left >= 0, name, "size", f"{MOST_UNPACKED} bytes unpacked")
        self.need(0 <= about[1] <= self.rows, name, about[1], "as many values as rows")
        unpack = zlib.decompressobj(wbits=31)
        try:
            body = unpack.decompress(self.data[begin:after], page[2] + 1)
        except zlib.error as error:
            raise Refused(self.file, name, "a page that cannot be unpacked", "gzip") from error
        whole = len(body) == page[2] and unpack.eof and not unpack.unused_data
        self.need(whole, name, "a page of another size", page[2])
        return body, after, header + page[2], about[1]

    def _values(
        self, name: str, body: bytes, kind: ColumnKind, count: int, is_optional: bool
    ) -> list[Value]:
        if not is_optional:
            return self._plain(name, body, kind, count)
        self.need(len(body) >= 4, name, "a page without levels", "levels")
        (length,) = struct.unpack_from("<I", body)
        self.need(length <= len(body) - 4, name, length, "levels within the page")
        is_there = self._levels(name, body[4 : 4 + length], count)
        present = iter(self._plain(name, body[4 + length :], kind, sum(is_there)))
        return [next(present) if there else None for there in is_there]

    def _levels(self, name: str, body: bytes, count: int) -> list[bool]:
        """Definition levels of one bit: runs of one value, or packed in groups of eight."""
        levels: list[bool] = []
        runs = _Thrift(self.file, body, 0, len(body))
        while len(levels) < count:
            header = runs.varint()
            many = header >> 1
            self.need(many > 0, name, "an empty run", "levels")
            if header & 1:
                groups = -(-(count - len(levels)) // 8)
                self.need(many <= groups, name, many, f"at most {groups} groups")
                for packed in runs.take(many):
                    levels += [bool(packed >> place & 1) for place in range(8)]
                # Only the last group may have bits beyond the last value, and these are 0.
                self.need(not any(levels[count:]), name, "bits beyond the last", "none")
                self.need(len(levels) - count < 8, name, "groups beyond the last", "none")
            else:
                value = runs.byte()
                self.need(value <= 1 and len(levels) + many <= count, name, many, "levels")
                levels += [value == 1] * many
        self.need(runs.place == len(body), name, "bytes beyond the levels", "none")
        return levels[:count]

    def _plain(self, name: str, body: bytes, kind: ColumnKind, count: int) -> list[Value]:
        if kind == "string":
            return self._texts(name, body, count)
        letter, width = _NUMBERS[_KINDS[kind][0]]
        self.need(len(body) == width * count, name, len(body), width * count)
        numbers = struct.unpack(f"<{count}{letter}", body)
        if kind != "date":
            return list(numbers)
        for day in numbers:
            self.need(_FIRST_DAY <= day <= _LAST_DAY, name, day, "a day of the calendar")
        return [datetime.date.fromordinal(_EPOCH + day) for day in numbers]

    def _texts(self, name: str, body: bytes, count: int) -> list[Value]:
        values: list[Value] = []
        place = 0
        for _ in range(count):
            self.need(place + 4 <= len(body), name, "a text cut off", "texts")
            (length,) = struct.unpack_from("<I", body, place)
            place += 4 + length
            self.need(place <= len(body), name, "a text cut off", "texts")
            values.append(self._text(body[place - length : place]))
        self.need(place == len(body), name, "bytes beyond the last text", "none")
        return values


def read_table(file: str, data: bytes, rows: int) -> Table:
    """The table of a file that has so many rows.

    Raises:
        Refused: it is not of the shape that a release may have.
    """
    return _File(file, data, rows).read()
