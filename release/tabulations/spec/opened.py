"""A tabulation with its areas and categories: which tables there are, and what their cells are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.tabulations.estimate.intervals import HalfWidths, half_widths
from release.tabulations.estimate.rounding import Mask
from release.tabulations.estimate.structure import Grouping, Margin, kept_whole, summed_out
from release.tabulations.estimate.whole import finest
from release.tabulations.spec.areas import NamedAreas
from release.tabulations.spec.model import Tabulation, margin_text

Table: TypeAlias = tuple[int, Margin]
"""The level and the margin of a table."""

Names: TypeAlias = tuple[str, ...]

Places: TypeAlias = Mapping[str, tuple[int, ...]]
"""The places of some categories, by attribute."""


@dataclass(frozen=True)
class Attribute:
    """An attribute, or a grouping of one: the classes by which counts are broken down.

    Attributes:
        name: its column in the published tables.
        of: the attribute, itself where it is none of another.
        labels: of its classes.
        classes: the class of each category of the attribute.
    """

    name: str
    of: str
    labels: tuple[str, ...]
    classes: Grouping


@dataclass(frozen=True)
class NamedMargin:
    """A margin of one level, with the names of what breaks its counts down, in canonical order."""

    level: int
    names: Names
    margin: Margin

    @property
    def table(self) -> Table:
        """The table."""
        return self.level, self.margin

    @property
    def text(self) -> str:
        """The margin as readers see it."""
        return margin_text(self.names)


@dataclass(frozen=True, eq=False)
class OpenTabulation:
    """A tabulation with everything public that its files hold.

    Attributes:
        declared: as it stands in the spec.
        named: the areas.
        categories: of each attribute, as text, in the order of publication.
        by_name: every attribute and grouping.
        published: the tables to publish, level by level, in the order of the spec.
        facts: the tables that are declared; their values have the shape (areas, cells).
        zeros: the impossible categories of each constraint; all their combinations are impossible,
            whatever the categories of the other attributes are.
    """

    declared: Tabulation
    named: NamedAreas
    categories: Mapping[str, tuple[str, ...]]
    by_name: Mapping[str, Attribute]
    published: tuple[NamedMargin, ...]
    facts: Mapping[Table, Codes]
    zeros: tuple[Places, ...]

    @property
    def name(self) -> str:
        """The name of the tabulation."""
        return self.declared.name

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, from the highest down."""
        return self.named.areas.levels

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each attribute."""
        return tuple(map(len, self.categories.values()))

    def margin(self, names: Sequence[str]) -> Margin:
        """The margin that breaks counts down by these attributes and groupings."""
        groupings = {}
        for attribute, own in self.categories.items():
            groupings[attribute] = summed_out(len(own))
        # In the order of the attributes, whatever the order of the names.
        for name in names:
            named = self.by_name[name]
            groupings[named.of] = named.classes
        return Margin(tuple(groupings.values()))

    def in_order(self, names: Sequence[str]) -> Names:
        """The names of a margin in the order of the attributes."""
        return self.declared.in_order(names)

    def labels(self, names: Names) -> list[tuple[str, ...]]:
        """The labels of each class of each of ``names``, whose combinations are the cells."""
        return [self.by_name[name].labels for name in names]

    def published_at(self, level: int) -> tuple[NamedMargin, ...]:
        """The published margins of a level."""
        return tuple(table for table in self.published if table.level == level)

    @cached_property
    def margins(self) -> tuple[NamedMargin, ...]:
        """All margins, each once, at the highest level that publishes it."""
        # By the margin and not by its names: a grouping into single categories is the attribute.
        first_of: dict[Margin, NamedMargin] = {}
        for own in self.published:
            first_of.setdefault(own.margin, own)
        return tuple(first_of.values())

    def table(self, level: str, names: Sequence[str]) -> NamedMargin:
        """The table of a level that breaks counts down by these attributes and groupings."""
        ordered = self.in_order(names)
        return NamedMargin(self.levels.index(level), ordered, self.margin(ordered))

    @property
    def declared_tables(self) -> tuple[NamedMargin, ...]:
        """The tables of ``facts``, by the names that they are declared by."""
        return tuple(self.table(fact.level, fact.margin) for fact in self.declared.facts)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The published tables, without the names of their margins."""
        return tuple(own.table for own in self.published)

    @cached_property
    def distinct(self) -> tuple[Margin, ...]:
        """Those of ``margins``, without their names."""
        return tuple(own.margin for own in self.margins)

    @cached_property
    def finest(self) -> tuple[Margin, ...]:
        """The cells of each level: they refine its published margins and those below it."""
        return self.refining(self.tables)

    def refining(self, tables: Iterable[Table]) -> tuple[Margin, ...]:
        """The cells of each level that refine those of ``tables`` there and at lower levels."""
        margins: list[list[Margin]] = [[] for _ in self.levels]
        for level, margin in tables:
            margins[level].append(margin)
        return finest(margins)

    @cached_property
    def column_names(self) -> tuple[Names, ...]:
        """For each level the attributes and groupings that its published margins name."""
        columns = []
        for level in range(len(self.levels)):
            used: set[str] = set()
            for table in self.published_at(level):
                used.update(table.names)
            # In the order of the spec, which is that of the columns of the files.
            columns.append(tuple(name for name in self.by_name if name in used))
        return tuple(columns)

    def possible(self, margin: Margin) -> Mask | None:
        """Which cells of a margin somebody can be in, shape (cells,); None without a constraint."""
        if not self.zeros:
            return None
        # A cell is possible if any combination of categories in it is.
        reached = np.zeros(margin.cells, dtype=bool)
        reached[margin.cell_of[possible_combinations(self.categories, self.zeros)]] = True
        return reached

    def half_widths(self, noises: Mapping[Table, IntegerNoise]) -> dict[Table, HalfWidths]:
        """The half widths of the intervals of all published tables, from the noise alone.

        Raises:
            ValueError: a published table that the measured ones do not determine.
        """
        return half_widths(self.named.areas, self.sizes, noises, self.facts, self.tables)

    def cells(self, table: Table) -> int:
        """The number of cells of a table in all areas."""
        return self.named.areas.size(table[0]) * table[1].cells

    def rows(self, level: int) -> int:
        """The number of rows that are published of a level."""
        cells = 0
        for table in self.published_at(level):
            cells += table.margin.cells
        return self.named.areas.size(level) * cells

    def moves(self, is_replaced: bool) -> Iterator[tuple[Table, int]]:
        """How many cells of each table one unit moves by 1; of a declared table none."""
        for own in self.margins:
            for level in range(len(self.levels)):
                table = (level, own.margin)
                # A replaced unit leaves one cell and enters another, unless there is one alone.
                most = 2 if is_replaced and self.cells(table) > 1 else 1
                yield table, 0 if table in self.facts else most


def whole_attribute(name: str, categories: tuple[str, ...]) -> Attribute:
    """An attribute by itself."""
    return Attribute(name, name, categories, kept_whole(len(categories)))


def possible_combinations(
    categories: Mapping[str, tuple[str, ...]], zeros: Iterable[Places]
) -> Mask:
    """Which combinations of categories somebody can have, in row-major order."""
    possible = np.ones(tuple(map(len, categories.values())), dtype=bool)
    for zero in zeros:
        places = []
        for name, own in categories.items():
            # An attribute that a constraint does not name is impossible with any category.
            places.append(zero.get(name, range(len(own))))
        possible[np.ix_(*places)] = False
    return possible.reshape(-1)
