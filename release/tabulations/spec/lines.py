"""Reads the columns of a CSV file that a spec names: of areas, or of declared numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from release.errors import SpecError, no_file

_MOST_BYTES = 64 * 2**20
"""The largest file of areas or of declared numbers."""

_LONGEST = 100_000
"""Characters of a value."""


def read_lines(at: str, path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The values of some columns of a CSV file, line by line after the header.

    A byte order mark in front is passed over. Every value stands in one line, so that the number of
    a line is its place in the list plus 2.

    Raises:
        SpecError: it cannot be read, or lacks a column or a value.
    """
    reader = csv.reader(io.StringIO(_text(at, path, columns), newline=""), strict=True)
    try:
        header = next(reader, [])
        places = [_place_in(at, path.name, header, column) for column in columns]
        lines = []
        for number, line in enumerate(reader, start=2):
            # Messages name lines, and a value over two of them would shift all that follow.
            if reader.line_num != number:
                raise SpecError(
                    at, f"line {number} of {path.name} has a line break in a value; remove it"
                )
            if len(line) != len(header):
                raise SpecError(
                    at,
                    f"line {number} of {path.name} has {len(line)} values for {len(header)} "
                    "columns; write one for each",
                )
            # A limit of our own: that of the csv module is whatever another library has set.
            if max(map(len, line), default=0) > _LONGEST:
                raise _unreadable(at, path)
            lines.append(tuple(line[place] for place in places))
    except csv.Error as error:
        raise _unreadable(at, path) from error
    return lines


def _text(at: str, path: Path, columns: Sequence[str]) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) <= _MOST_BYTES:
            return data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise SpecError(at, no_file(path)) from error
    except (OSError, ValueError) as error:
        raise _unreadable(at, path) from error
    raise SpecError(
        at,
        f"{path.name} has more than {_MOST_BYTES} bytes; keep the columns {', '.join(columns)} "
        "alone",
    )


def _unreadable(at: str, path: Path) -> SpecError:
    return SpecError(at, f"{path.name} cannot be read as UTF-8 CSV; give the path of such a file")


def _place_in(at: str, file: str, header: Sequence[str], column: str) -> int:
    """The place of a column in the header."""
    if column not in header:
        raise SpecError(at, f"{file} has no column {column!r}; name it in the header")
    if header.count(column) > 1:
        raise SpecError(at, f"{file} has the column {column!r} twice; keep one")
    return header.index(column)
