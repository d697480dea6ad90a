"""The public areas of a tabulation: read from a file, checked to nest, and sorted."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from release.errors import SpecError
from release.exact.domain import Codes
from release.exact.tables.structure import Areas
from release.spec.declarations import ColumnType
from release.spec.domains import MAX_ANSWERS
from release.spec.key_sets import key_text

_MOST_BYTES = 64 * 2**20
"""The largest file of areas or of declared numbers."""


@dataclass(frozen=True, eq=False)
class NamedAreas:
    """The areas of all levels with their names, sorted by the names from the highest level down.

    Attributes:
        areas: their structure.
        names: for each level the name of each area.
    """

    areas: Areas
    names: tuple[tuple[str, ...], ...]

    def places(self, level: int, upper: int) -> Codes:
        """For each area of ``level`` the place of the area of ``upper`` that it lies in."""
        places = np.arange(self.areas.size(level))
        for step in range(level, upper, -1):
            places = self.areas.parents[step][places]
        return places

    @cached_property
    def lowest_places(self) -> dict[str, int]:
        """The place of each area of the lowest level."""
        return {name: place for place, name in enumerate(self.names[-1])}


def read_lines(at: str, path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The values of some columns of a CSV file, line by line.

    Raises:
        SpecError: it cannot be read, or lacks a column or a value.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise SpecError(
                at,
                f"{path.name} has more than {_MOST_BYTES} bytes; keep the columns "
                f"{', '.join(columns)} alone",
            )
        reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True)
        header = next(reader, [])
        for column in columns:
            if header.count(column) != 1:
                raise SpecError(at, f"{path.name} has no column {column!r} in its header, or two")
        places = [header.index(column) for column in columns]
        lines = []
        for number, line in enumerate(reader, start=2):
            if len(line) != len(header):
                raise SpecError(
                    at,
                    f"line {number} of {path.name} has {len(line)} values for "
                    f"{len(header)} columns",
                )
            lines.append(tuple(line[place] for place in places))
        return lines
    except (OSError, ValueError, csv.Error) as error:
        raise SpecError(at, f"{path.name} cannot be read as UTF-8 CSV") from error


def read_areas(
    at: str, path: Path, levels: Sequence[str], kinds: Mapping[str, ColumnType]
) -> NamedAreas:
    """The areas in a file.

    Args:
        at: the field of the hierarchy, for messages.
        path: the file: a column for each level, a line for each area of the lowest.
        levels: the columns, from the highest level to the lowest.
        kinds: the types of columns of the table; other columns are text.

    Raises:
        SpecError: it cannot be read, an area has no proper name, or levels do not nest.
    """
    field = f"{at}.file"
    lines = read_lines(field, path, levels)
    if not lines:
        raise SpecError(field, f"{path.name} names no area; give a line for each")
    for number, line in enumerate(lines, start=2):
        for level, name in zip(levels, line, strict=True):
            check_name(f"{field} (line {number})", level, name, kinds)
    return nested(field, levels, lines)


def check_name(at: str, level: str, name: str, kinds: Mapping[str, ColumnType]) -> None:
    """Refuse what is no name of an area.

    Raises:
        SpecError: it is empty or not printable, or not a value of its column.
    """
    if not name or not name.isprintable():
        raise SpecError(at, f"the {level} is empty or has control characters; name every area")
    kind = kinds.get(level, ColumnType.STRING)
    if kind is not ColumnType.STRING:
        key_text(at, name, kind)


def nested(at: str, levels: Sequence[str], lines: Sequence[tuple[str, ...]]) -> NamedAreas:
    """The areas that the lines name, one for each area of the lowest level, in any order.

    Raises:
        SpecError: an area lies in two areas, stands twice, or there are too many.
    """
    if len(lines) > MAX_ANSWERS:
        raise SpecError(at, f"{len(lines)} areas; at most {MAX_ANSWERS}")
    ordered = sorted(lines)
    parents: list[Codes] = []
    names: list[tuple[str, ...]] = []
    above, begun = [""] * len(ordered), np.zeros(1, dtype=np.int64)
    for depth, level in enumerate(levels):
        own = [line[depth] for line in ordered]
        _check_nested(at, level, levels[depth - 1] if depth else None, own, above)
        # Sorted, an area's lines lie together: a new area begins where its name changes.
        first = [place for place in range(len(own)) if not place or own[place] != own[place - 1]]
        starts = np.array(first, dtype=np.int64)
        if depth:
            parents.append((np.searchsorted(begun, starts, side="right") - 1).astype(np.int64))
        else:
            parents.append(np.zeros(len(first), dtype=np.int64))
        names.append(tuple(own[place] for place in first))
        begun, above = starts, own
    if len(names[-1]) != len(ordered):
        own = [line[-1] for line in ordered]
        twice = next(name for name, after in pairwise(own) if name == after)
        raise SpecError(at, f"the {levels[-1]} {twice!r} stands twice; keep one line for each")
    return NamedAreas(Areas(tuple(levels), tuple(parents)), tuple(names))


def _check_nested(
    at: str, level: str, upper: str | None, own: Sequence[str], above: Sequence[str]
) -> None:
    """Refuse an area that lies in two areas of the level above."""
    within: dict[str, str] = {}
    for name, parent in zip(own, above, strict=True):
        known = within.setdefault(name, parent)
        if known != parent:
            raise SpecError(
                at,
                f"levels do not nest: the {level} {name!r} lies in the {upper} {known!r} and in "
                f"{parent!r}; give each its own name",
            )
