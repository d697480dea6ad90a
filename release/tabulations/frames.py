"""The tables of tabulations as pandas frames: one margin of one level at a time.

A file holds all margins of a level, so a margin is filtered in Arrow before pandas sees a row.
As in :mod:`release.analysis.opened`, only the SHA-256 of a file is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

from release.bundle.opened import PublicRelease
from release.bundle.tables.parquet import stated_facts
from release.errors import SpecError, VerificationError, unknown_name
from release.spec.named import names_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

NUMBERS = ("answer", "rounded", "low", "high", "standard_error")

_MOST_NAMED = 12
"""Margins that a message names."""

_INTERVAL = "95%, of each cell by itself"


def table_frame(
    release: PublicRelease,
    level: str,
    margin: Sequence[str] = (),
    tabulation: str | None = None,
) -> pd.DataFrame:
    """A row for each published cell of one margin: areas, categories, and the numbers.

    The columns are those of all levels down to ``level``, one for each name of ``margin``, then
    :data:`NUMBERS`. ``attrs`` has the release, tabulation, level, margin, unit, and the meaning of
    the interval.

    Args:
        release: the public folder.
        level: the level of the areas.
        margin: attributes and groupings in any order; none for the total.
        tabulation: its name, where the release has several.

    Raises:
        SpecError: no such tabulation, level or margin; the message names those there are.
        VerificationError: the file does not have the SHA-256 in SHA256SUMS.
    """
    source = _tabulation(release, tabulation)
    depth, entry = _level(source, level)
    names = _margin(entry, margin)
    # The file of a level has the areas above it as well, and none below.
    levels = source.level_names[: depth + 1]
    table = _read_level(release, entry, levels)
    chosen = table.filter(_rows(table, _columns(table, levels), names))
    frame: pd.DataFrame = chosen.select([*levels, *names, *NUMBERS]).to_pandas()
    facts = stated_facts(table.schema, "answer")
    frame.attrs = {
        "release": release.name,
        "tabulation": source.name,
        "level": level,
        "margin": names,
        **({"unit": facts["unit"]} if "unit" in facts else {}),
        "interval": _INTERVAL,
    }
    return frame


def list_tables(release: PublicRelease) -> pd.DataFrame:
    """A row for each published table: what :func:`table_frame` takes, its size and its error.

    The columns are tabulation, level, margin (a list of names), areas, cells (rows of the table),
    and the mean standard error of a cell.

    Raises:
        VerificationError: a file does not have the SHA-256 in SHA256SUMS.
    """
    import pandas as pd
    import pyarrow.compute as pc

    rows = []
    for tabulation in _tabulations(release):
        for depth, entry in enumerate(tabulation.levels):
            levels = tabulation.level_names[: depth + 1]
            table = _read_level(release, entry, levels)
            areas = pc.count_distinct(table.column(entry.level)).as_py()
            errors = table.column("standard_error")
            for names in entry.margins:
                chosen = errors.filter(_rows(table, _columns(table, levels), names))
                mean = pc.mean(chosen).as_py()
                rows.append((tabulation.name, entry.level, names, areas, len(chosen), mean))
    columns = ["tabulation", "level", "margin", "areas", "cells", "mean_standard_error"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class _Level:
    """A level, its published margins in their order, and the name of its file."""

    level: str
    margins: list[list[str]]
    file: str


@dataclass(frozen=True)
class _Source:
    """A tabulation: its levels from the highest on."""

    name: str
    levels: list[_Level]

    @property
    def level_names(self) -> list[str]:
        """The names of all levels, which are the columns of the areas; from the highest down."""
        return [level.level for level in self.levels]


def _tabulations(release: PublicRelease) -> list[_Source]:
    found = []
    for declared, made in zip(release.spec.tabulations, release.tabulations, strict=True):
        levels = []
        for level in made.levels:
            margins = [list(declared.in_order(own)) for own in declared.publish[level.level]]
            levels.append(_Level(level.level, margins, level.file))
        found.append(_Source(made.name, levels))
    return found


def _read_level(release: PublicRelease, entry: _Level, levels: Sequence[str]) -> pa.Table:
    """The file of a level.

    Raises:
        VerificationError: as :meth:`PublicRelease.table`, or it lacks a column.
    """
    table = release.table(entry.file)
    for name in (*levels, *chain.from_iterable(entry.margins), *NUMBERS):
        if name not in table.column_names:
            file = f"data/{entry.file}.parquet"
            raise VerificationError(file, "columns", "no such column", repr(name))
    return table


def no_such_query(query: object, release: PublicRelease) -> str:
    """The message for a query that is not published."""
    names = names_of(release.made.queries)
    text = unknown_name(query, names) if names else f"{query!r} is not there; there are no queries"
    if not release.tabulations:
        return text
    return f"{text}; a table of a tabulation is opened by .table(level, margin)"


def _tabulation(release: PublicRelease, name: str | None) -> _Source:
    tabulations = _tabulations(release)
    names = names_of(tabulations)
    if not names:
        raise SpecError("tabulation", "the release has none; open a query by its name")
    if name is None and len(names) == 1:
        return tabulations[0]
    if name is None:
        raise SpecError("tabulation", f"there are several; name one of {', '.join(names)}")
    if name not in names:
        raise SpecError("tabulation", unknown_name(name, names))
    return tabulations[names.index(name)]


def _level(tabulation: _Source, name: str) -> tuple[int, _Level]:
    names = tabulation.level_names
    if name not in names:
        raise SpecError("level", unknown_name(name, names))
    depth = names.index(name)
    return depth, tabulation.levels[depth]


def _margin(entry: _Level, names: Sequence[str]) -> list[str]:
    """The names of a published margin in its own order."""
    # A text is a sequence of letters, and nobody means these.
    chosen = [names] if isinstance(names, str) else list(names)
    for margin in entry.margins:
        if sorted(margin) == sorted(chosen):
            return margin
    # Of very many margins a few, because a message is one line.
    published = ", ".join(map(str, entry.margins[:_MOST_NAMED]))
    more = ", …" if len(entry.margins) > _MOST_NAMED else ""
    raise SpecError(
        "margin", f"{chosen} is not published of the {entry.level}; there are {published}{more}"
    )


def _columns(table: pa.Table, levels: Sequence[str]) -> list[str]:
    """The columns of the margins."""
    return [name for name in table.schema.names if name not in {*levels, *NUMBERS}]


def _rows(table: pa.Table, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Which rows are of the margin: a value where it breaks down, none where it does not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    masks = []
    for column in columns:
        values = table.column(column)
        masks.append(pc.is_valid(values) if column in names else pc.is_null(values))
    # A file of totals alone has no columns of categories, so that every row is taken.
    everything = pa.chunked_array([pa.repeat(True, table.num_rows)])
    return reduce(pc.and_, masks, everything)
