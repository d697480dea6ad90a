"""The true counts of a tabulation: how many units lie in each cell of each area. Confidential.

A row counts that meets the condition of the tabulation, and whose area and categories are declared,
in a combination that is not declared impossible. Of a unit with several such rows one counts
(:mod:`release.tables.kept`), so that every level and every margin counts the same row of a unit.

The engine looks up the numbers of a row's area and categories, and NumPy counts them. So one pass
over the table serves all levels, however fine they are; a grouping in the engine would take one
for each. Areas and categories are public, and what is no name of one matches none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from release.exact.domain import Codes
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.spec.named import names_of
from release.tables.columns import numbers_of
from release.tables.duckdb import Tables, wide_table
from release.tables.kept import row_text
from release.tabulations.estimate.structure import Margin
from release.tabulations.spec.opened import OpenTabulation


def read_counts(
    tables: Tables, spec_file: SpecFile, opened: OpenTabulation, cells: Mapping[int, Margin]
) -> dict[int, Codes]:
    """The true counts of each level of ``cells``. Confidential.

    Args:
        tables: the confidential tables.
        spec_file: their spec.
        opened: the tabulation.
        cells: for each level to count the margin whose cells are counted.

    Returns:
        For each level the units in each cell of each area; int64, shape (areas, margin.cells).

    Cost: a hash of each row's unit, and one pass over the table; where units have several rows, one
    pass more, and a sort of the rows of these units that count.

    Raises:
        SpecError: the condition is not a Boolean expression over the table's columns.
        DataError: memory or scratch space do not suffice.
    """
    added_up = {level for level, margin in cells.items() if cells.get(level + 1) == margin}
    levels = {}
    for level, margin in cells.items():
        if level not in added_up:
            levels[level] = _Level.empty(opened, level, margin)
    for areas, combinations in _numbered_rows(tables, spec_file, opened):
        for counter in levels.values():
            counter.add(areas, combinations)
    counts: dict[int, Codes] = {}
    for level in sorted(cells, reverse=True):
        if level in added_up:
            counts[level] = opened.named.areas.summed_up(level + 1, counts[level + 1])
        else:
            counts[level] = levels[level].counts.reshape(-1, cells[level].cells)
    return counts


@dataclass(frozen=True, eq=False, repr=False)
class _Level:
    """The counts of a level, to which rows are added.

    Attributes:
        first_cells: for each area of the lowest level the place of the first cell of its area.
        cell_of: the cell of each combination of categories.
        counts: of every cell of one area after the other; shape (areas · cells,).
    """

    first_cells: Codes
    cell_of: Codes
    counts: Codes

    @classmethod
    def empty(cls, opened: OpenTabulation, level: int, margin: Margin) -> _Level:
        """Counts of 0."""
        named = opened.named
        lowest = len(opened.levels) - 1
        first_cells = named.places(lowest, level) * margin.cells
        counts = np.zeros(named.areas.size(level) * margin.cells, dtype=np.int64)
        return cls(first_cells, margin.cell_of, counts)

    def add(self, areas: Codes, combinations: Codes) -> None:
        """Count rows by the numbers of their areas and of their combinations of categories."""
        # Not bincount, which makes an array of all cells for every batch of rows.
        np.add.at(self.counts, self.first_cells[areas] + self.cell_of[combinations], 1)


def _numbered_rows(
    tables: Tables, spec_file: SpecFile, opened: OpenTabulation
) -> Iterator[tuple[Codes, Codes]]:
    """The rows that count, in batches: the numbers of their areas and of their combinations."""
    table = opened.declared.table
    statement = _statement(tables, spec_file, opened)
    statements = [statement]
    if not tables.has_single_rows(table):
        # A window holds and sorts its rows, so those of units with one row go without.
        unit = identifier(spec_file.spec.privacy.unit)
        is_repeated = f"hash(rows.{unit}) IN (FROM {tables.repeated_units(table)})"
        first = f"{statement} AND {is_repeated} QUALIFY {_is_kept(spec_file, table)}"
        statements = [f"{statement} AND NOT {is_repeated}", first]
    for own in statements:
        for batch in tables.batches(own, table):
            yield numbers_of(batch.column(0)), numbers_of(batch.column(1))


def _statement(tables: Tables, spec_file: SpecFile, opened: OpenTabulation) -> str:
    """The SQL of the rows that count, before the bound on the rows of a unit."""
    # Aliases of our own start with #, which no declared column may do.
    declared = opened.declared
    kinds = spec_file.spec.table_columns(declared.table)
    lowest = opened.levels[-1]
    joins = [_join(tables, opened, lowest, opened.named.names[-1], kinds[lowest])]
    combination = "0"
    for name, categories in opened.categories.items():
        joins.append(_join(tables, opened, name, categories, kinds[name]))
        # Row-major, as Margin.cell_of is.
        combination = f"({combination} * {len(categories)} + {_number(name)})"
    conditions = [
        condition_of(tables, spec_file, opened),
        *map(_is_possible, opened.zeros),
    ]
    return (
        f'SELECT ({_number(lowest)})::INTEGER AS "#at", ({combination})::INTEGER AS "#in" '
        f"FROM {wide_table(declared.table)} AS rows {' '.join(joins)} "
        f"WHERE {' AND '.join(conditions)}"
    )


def condition_of(tables: Tables, spec_file: SpecFile, opened: OpenTabulation) -> str:
    """The SQL of the condition under which a tabulation counts a row."""
    declared = opened.declared
    place = names_of(spec_file.spec.tabulations).index(opened.name)
    return tables.condition(f"tabulations[{place}].where", declared.table, declared.where)


def _alias(column: str) -> str:
    return identifier(f"#of {column}")


def _number(column: str) -> str:
    return f'{_alias(column)}."#number"'


def _join(
    tables: Tables, opened: OpenTabulation, column: str, keys: Sequence[str], kind: ColumnType
) -> str:
    """The join that numbers the values of a column, and leaves out rows with another value."""
    # Under the name of the tabulation: another one may have other categories of the column.
    keys_table = tables.put_keys(f"#{opened.name} {column}", keys)
    value, key = f"CAST(rows.{identifier(column)} AS VARCHAR)", "#key"
    if kind is ColumnType.INTEGER:
        # Without the text of each row's integer, which takes longer than the join.
        value, key = f"rows.{identifier(column)}", "#integer"
    return f'JOIN {keys_table} AS {_alias(column)} ON {value} = {_alias(column)}."{key}"'


def _is_possible(impossible: Mapping[str, Sequence[int]]) -> str:
    """The SQL that keeps rows out of declared impossible combinations."""
    members = []
    for name, places in impossible.items():
        members.append(f"{_number(name)} IN ({', '.join(map(str, places))})")
    return f"NOT ({' AND '.join(members)})"


def _is_kept(spec_file: SpecFile, table: str) -> str:
    """The SQL that keeps one of a unit's rows that count."""
    unit = identifier(spec_file.spec.privacy.unit)
    # Rows of one text are equal, and lie in the same cell.
    rank = f"sha256({row_text(spec_file, table)})"
    return f"row_number() OVER (PARTITION BY rows.{unit} ORDER BY {rank}) = 1"
