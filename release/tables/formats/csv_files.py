"""CSV files: read as text, a record at a time (:mod:`release.tables.lines`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from release.spec.declarations import ColumnType, CsvFormat, Table
from release.tables.columns import with_ascii
from release.tables.formats.base import Format, Source
from release.tables.lines import read_lines
from release.tables.schemas import read_header

_PACKED = ("", ".gz", ".zst", ".bz2")


@dataclass(frozen=True)
class Csv(Format):
    """CSV files, packed or not; their schema is what the spec declares."""

    is_csv = True
    endings = frozenset(map("".join, product((".csv", ".tsv", ".txt"), _PACKED)))

    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[pa.Table]:
        """As every format, as text; the first batch is empty. Confidential.

        Raises:
            SpecError: a header lacks a declared column.
            DataError: a file cannot be read.
        """
        form = table.csv or CsvFormat()
        files = source.fetched(folder).files
        headers = [read_header(name, table, form, file) for file in files]
        for file, header in zip(files, headers, strict=True):
            for lines in read_lines(name, file, form, header, list(table.columns)):
                read = _without_words(lines, table.missing)
                if form.decimal == ",":
                    read = _with_points(read, table.columns)
                yield with_ascii(read, table.columns)


def _without_words(lines: pa.Table, words: Sequence[str]) -> pa.Table:
    """The fields, of which those that are one of the words are missing."""
    if not words:
        return lines
    missing = pa.array([word.encode() for word in words], pa.binary())
    for place, column in enumerate(lines.column_names):
        # As bytes, because nobody has checked that they are text.
        octets = _octets(lines.column(column))
        is_missing = pc.is_in(octets, value_set=missing)
        kept = pc.if_else(is_missing, pa.scalar(None, pa.binary()), octets)
        lines = lines.set_column(place, column, _text(kept))
    return lines


def _with_points(lines: pa.Table, columns: Mapping[str, ColumnType]) -> pa.Table:
    """The numbers of a file with decimal commas, with points."""
    for place, (column, kind) in enumerate(columns.items()):
        if kind in (ColumnType.INTEGER, ColumnType.NUMBER):
            # A point is no decimal mark there: what has one is no number.
            marked = pc.replace_substring(_octets(lines.column(column)), b".", b"?")
            lines = lines.set_column(place, column, _text(pc.replace_substring(marked, b",", b".")))
    return lines


def _octets(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([piece.view(pa.binary()) for piece in column.chunks], pa.binary())


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([piece.view(pa.string()) for piece in column.chunks], pa.string())
