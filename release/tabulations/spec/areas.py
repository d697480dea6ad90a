"""The public areas of a tabulation: read from a file, checked to nest, and sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from release.errors import SpecError
from release.exact.domain import Codes
from release.spec.declarations import ColumnType
from release.spec.domains import MAX_ANSWERS
from release.spec.key_sets import key_text
from release.tabulations.estimate.structure import Areas
from release.tabulations.spec.lines import read_lines


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


def read_areas(
    at: str, path: Path, levels: Sequence[str], kinds: Mapping[str, ColumnType]
) -> NamedAreas:
    """The areas in a file.

    Args:
        at: the field of the hierarchy, for messages.
        path: the file: a column for each level, a line for each area of the lowest.
        levels: the columns, from the highest level to the lowest.
        kinds: the types of columns of the table; other levels are text.

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
        SpecError: it is empty or not printable, or not written as its column has it.
    """
    if not name or not name.isprintable():
        raise SpecError(at, f"the {level} is empty or not printable; name every area")
    kind = kinds.get(level, ColumnType.STRING)
    try:
        key_text(at, name, kind)
    except SpecError as error:
        # Codes such as 007 are read as integers where nobody says otherwise.
        raise SpecError(at, f"{error.problem}, or declare {level!r} a string") from error


def nested(at: str, levels: Sequence[str], lines: Sequence[tuple[str, ...]]) -> NamedAreas:
    """The areas that the lines name, one for each area of the lowest level, in any order.

    Args:
        at: the field, for messages.
        levels: the levels, from the highest to the lowest.
        lines: one or more, each with a name for every level.

    Raises:
        SpecError: an area lies in two areas, stands twice, or there are too many.
    """
    if len(lines) > MAX_ANSWERS:
        raise SpecError(at, f"{len(lines)} areas; at most {MAX_ANSWERS}")
    # By the names from the top down, so that the lines of each area stand together on every level,
    # and no order of the file is published.
    columns = list(zip(*sorted(lines), strict=True))
    for depth in range(1, len(levels)):
        _check_nested(at, levels[depth - 1 : depth + 1], columns[depth - 1], columns[depth])
    _check_once(at, levels[-1], columns[-1])
    parents: list[Codes] = []
    names: list[tuple[str, ...]] = []
    above = np.zeros(1, dtype=np.int64)
    for column in columns:
        starts = _starts(column)
        # The last area above that begins no later is the one that this area lies in.
        parents.append(np.searchsorted(above, starts, side="right").astype(np.int64) - 1)
        names.append(tuple(column[line] for line in starts.tolist()))
        above = starts
    return NamedAreas(Areas(tuple(levels), tuple(parents)), tuple(names))


def _starts(column: Sequence[str]) -> Codes:
    """The first line of each area; the lines of an area lie together, because they are sorted."""
    changes = [line for line in range(1, len(column)) if column[line] != column[line - 1]]
    return np.array([0, *changes], dtype=np.int64)


def _check_nested(
    at: str, levels: Sequence[str], above: Sequence[str], names: Sequence[str]
) -> None:
    """Refuse an area that lies in two areas of the level above."""
    upper, level = levels
    within: dict[str, str] = {}
    for parent, name in zip(above, names, strict=True):
        first_parent = within.setdefault(name, parent)
        if first_parent != parent:
            raise SpecError(
                at,
                f"levels do not nest: the {level} {name!r} lies in the {upper} {first_parent!r} "
                f"and in {parent!r}; give each its own name",
            )


def _check_once(at: str, level: str, names: Sequence[str]) -> None:
    """Refuse an area of the lowest level with two lines, which lie together."""
    for name, following in pairwise(names):
        if name == following:
            raise SpecError(at, f"the {level} {name!r} stands twice; keep one line for each")
