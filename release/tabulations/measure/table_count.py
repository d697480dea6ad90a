"""The table that a tabulation measures: noise on the count of every cell, as of a count query.

One unit has one row and so lies in one cell. A table is charged, proved and profiled as a count by
area and category; only its cells are numbered by the tabulation, and not by key sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated

from pydantic import Field, StringConstraints

from release.exact.losses import LossName
from release.queries.kinds.count import CountQuery
from release.spec.domains import Exact, Integers, NoBounds
from release.spec.guarantees import GuaranteeSpec, Source
from release.tabulations.spec.model import Tabulation
from release.tabulations.spec.opened import NamedMargin, OpenTabulation

MAX_FILE_NAME = 200
"""Letters of a file's name without its ending; file systems take 255."""

TableName = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=MAX_FILE_NAME)
]

CENTER = Integers(integers=NoBounds()).ordered.min
"""The count whose code is 0; that of a count c is c - CENTER."""


class TableCount(CountQuery):
    """A table of a tabulation: the count of units in each cell, on all integers.

    No spec can ask for it: the strategy of a tabulation does.
    """

    name: TableName = Field(description="the name of the table and of its files")
    measured_by: str = Field(description="the name of the tabulation")
    level: str = Field(description="the level of the areas")
    margin: list[str] = Field(description="the attributes and groupings; none for the total")
    cells: int = Field(ge=1, description="the number of cells in all areas")
    share: Exact | None = Field(description="found with the strategy")

    @property
    def tabulation(self) -> str:
        """The name of the tabulation."""
        return self.measured_by

    @property
    def own_cells(self) -> int:
        """Areas times categories."""
        return self.cells


def file_name(*names: str) -> str:
    """A name for files: lower case letters, digits and underscores."""
    return "_".join(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in names)


def table_file(tabulation: str, level: str, margin: Sequence[str]) -> str:
    """The name of the files of a table that a tabulation measures."""
    return file_name(tabulation, level, *(margin or ("total",)))


def files_of(tabulation: Tabulation) -> Iterator[str]:
    """The names of all files that a tabulation can have, whatever is measured."""
    levels = tabulation.hierarchy.levels
    for level in levels:
        yield file_name(tabulation.name, level)
    if tabulation.facts:
        yield file_name(tabulation.name, "declared")
    margins: dict[tuple[str, ...], None] = {}
    for level in levels:
        margins |= dict.fromkeys(map(tabulation.in_order, tabulation.publish[level]))
    for margin in margins:
        for level in levels:
            yield table_file(tabulation.name, level, margin)


def table_count(
    opened: OpenTabulation, table: NamedMargin, guarantee: GuaranteeSpec | None
) -> TableCount:
    """The query of a table that a tabulation measures, with the guarantee of one cell."""
    level = opened.levels[table.level]
    return TableCount(
        kind="count",
        name=table_file(opened.name, level, table.names),
        measured_by=opened.name,
        level=level,
        margin=list(table.names),
        cells=opened.cells(table.table),
        table=opened.declared.table,
        by=[],
        units=opened.declared.units,
        sensitivity=Source.GLOBAL,
        guarantee=guarantee,
        share=Fraction(1),
        loss=LossName.SQUARED,
        domain=Integers(integers=NoBounds()),
    )
