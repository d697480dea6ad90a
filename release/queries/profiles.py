"""The statements that lead from rows to the distinct profiles of each cell's units.

The cells come from the public key sets, never from the data: a group without rows is answered too,
and rows of groups outside the key sets are left out. A cell is a pair of a *fixed* part (key
columns that neighbors share, such as a home's circuit) and a *free* part (the other key columns,
such as the day).

Bounds are enforced here: of a unit's rows that meet the condition of a query and fall in a cell,
those in its first ``max_cells_per_unit`` free parts count, where that is declared, and of these
a sample of ``max_rows_per_unit`` (:mod:`release.tables.kept`). A unit has one fixed part,
the least that its rows name; its rows elsewhere are left out. Each bound costs a pass of its own
only where some unit breaks it.

Everything up to the profiles looks at the rows of one unit at a time. So units can be read in
groups, each by an engine of its own, and :func:`merged` counts equal profiles of all groups
together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from release.exact.domain import Codes
from release.queries.base import Kind, row_sums
from release.queries.registry import kind_of, rows_read
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.spec.query import Query
from release.tables.columns import number_of, numbers_of
from release.tables.duckdb import PASSING, Tables, wide_table
from release.tables.kept import row_text, sample_of, text_of

Keys: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Cells:
    """The cells of a query in the order of publication.

    ``keys`` are the key tuples, ascending; ``fixed[c]`` and ``free[c]`` number the two parts.
    """

    keys: Keys
    fixed_parts: range
    free_parts: range
    fixed: Codes
    free: Codes


def cells_of(spec_file: SpecFile, query: Query) -> Cells:
    """All key combinations of ``query``, sorted; one cell with an empty key without ``by``."""
    # From the public key sets alone: which groups the table holds must not show. They are sorted,
    # and so are their combinations.
    keys = tuple(product(*(spec_file.keys[column] for column in query.by)))
    is_fixed = [column in spec_file.spec.privacy.fixed for column in query.by]
    sizes = [len(spec_file.keys[column]) for column in query.by]
    fixed_parts, fixed = _numbered_parts(sizes, is_fixed)
    free_parts, free = _numbered_parts(sizes, [not is_one for is_one in is_fixed])
    return Cells(keys, fixed_parts, free_parts, fixed, free)


def _numbered_parts(sizes: Sequence[int], columns: Sequence[bool]) -> tuple[range, Codes]:
    """The numbers of the keys' parts in some columns, and that of each key."""
    numbers, count = np.zeros(1, dtype=np.int64), 1
    for size, belongs in zip(sizes, columns, strict=True):
        # Row-major, as the combinations are; SQL numbers the parts of rows by the same rule.
        numbers = np.add.outer(
            numbers * (size if belongs else 1), np.arange(size) * belongs
        ).ravel()
        count *= size if belongs else 1
    return range(count), numbers


def read_profiles(tables: Tables, spec_file: SpecFile, query: Query) -> pa.Table:
    """The distinct profiles of the units in ``tables``. Confidential.

    A row for each item of each profile, sorted by number and item: ``number`` of the profile,
    ``home`` and ``free`` part, ``item`` with its ``total`` and ``rows``, and how many ``units``
    have the profile. Profiles are numbered from 0 by free part, home and content.

    Cost: one aggregation by unit over the table (shared by all queries on it) to see whether the
    bounds bind; one by unit and cell over the rows that meet the condition, which falls away where
    a unit has one row; one more of each only where a bound binds. A table that this query alone
    reads, one row a unit, is read once without a copy, where no unit has two rows that count.
    """
    reader = _Reader(tables, spec_file, query, kind_of(query))
    return reader.read().select(PROFILES.names)


@dataclass(frozen=True, repr=False)
class LeftOut:
    """Confidential: how many rows each bound leaves out of the cells of a query, one after another.

    ``homes`` are rows of a unit beyond its one fixed part, ``cells`` those beyond its first free
    parts, ``rows`` those beyond the bound ``most``. ``worst`` is the cell that loses most rows to
    all of them, in words.
    """

    homes: int
    cells: int
    rows: int
    most: int
    worst: str | None = None

    def __repr__(self) -> str:
        return "LeftOut(confidential)"


def left_out(tables: Tables, spec_file: SpecFile, query: Query) -> LeftOut:
    """How many rows each bound leaves out. Cost: as :func:`read_profiles`."""
    return _Reader(tables, spec_file, query, kind_of(query)).left_out()


def row_conditions(tables: Tables, spec_file: SpecFile, query: Query) -> tuple[str, str]:
    """The SQL of the condition of a query, and of whether a row adds anything to its answer."""
    return _Reader(tables, spec_file, query, kind_of(query)).conditions()


def merged(read: Sequence[pa.Table]) -> pa.Table:
    """The profiles of disjoint groups of units as those of all of them. Confidential."""
    shifted, first = [PROFILES.empty_table()], 0
    for table in read:
        # Each engine numbers from 0, so numbers are shifted past those of the tables before.
        number = integers(table, "number") + first
        shifted.append(table.set_column(0, "number", pa.array(number)))
        first = int(number.max(initial=first - 1)) + 1
    together = pa.concat_tables(shifted)
    # Without replacements: a name in a statement must never resolve to a Python variable.
    with duckdb.connect(":memory:", config={"python_enable_replacements": "false"}) as connection:
        connection.register("#read", together)
        # Numbered by content and not by arrival, so that tasks may come back in any order.
        profiles: pa.Table = connection.sql(
            f"SELECT number, home, free, {_UNNESTED} FROM (SELECT *, unnest(profile) AS part FROM ("
            "SELECT *, row_number() OVER (ORDER BY free, home, profile) - 1 AS number FROM ("
            "SELECT home, free, profile, sum(units)::BIGINT AS units FROM ("
            f"SELECT any_value(home) AS home, any_value(free) AS free, any_value(units) AS units, "
            f'{_PROFILE} FROM "#read" GROUP BY number) GROUP BY ALL))) ORDER BY number, item'
        ).to_arrow_table()
        return profiles.select(PROFILES.names)


PROFILES = pa.schema(
    dict.fromkeys(("number", "home", "free", "item", "total", "rows", "units"), pa.int64())
)
_PROFILE = "list((item, total, rows) ORDER BY item) AS profile"
_UNNESTED = "units, part[1] AS item, part[2] AS total, part[3] AS rows"


@dataclass(frozen=True)
class _Reader:
    """The statements that lead from the rows to the distinct profiles."""

    # Names of our own start with #, which no declared column may do, so that none hides another.

    tables: Tables
    spec_file: SpecFile
    query: Query
    kind: Kind

    @property
    def _is_joint(self) -> bool:
        return len(self.query.parts) > 1

    @property
    def unit(self) -> str:
        return identifier(self.spec_file.spec.privacy.unit)

    def _keys(self, fixed: bool) -> list[str]:
        """The key columns of a part, as text."""
        keys = []
        for column in self.query.by:
            if (column in self.spec_file.spec.privacy.fixed) is fixed:
                keys.append(f"CAST({identifier(column)} AS VARCHAR)")
        return keys

    def read(self) -> pa.Table:
        """Profiles by number, with their parts, their items and how many units have them."""
        most = rows_read(self.spec_file.spec, self.query)
        if most == 1 and (passed := self._passed()) is not None:
            return passed
        rows, homes = self._bounds(most)
        # Homes first, cells second, rows last: each bound counts only what the one before left. In
        # another order a row that is left out later would use up a unit's bound.
        eligible = self._eligible(self._source(homes))
        if rows > most:
            rows = self._most_rows(eligible)
        is_bounded = rows > most
        eligible = self._kept_cells(self._eligible(self._source(homes), with_text=is_bounded))
        if is_bounded:
            eligible = sample_of(eligible, most)
            rows = most
        return self.tables.rows(self._profiles(eligible, one_row=rows <= 1), self.query.table)

    def _passed(self) -> pa.Table | None:
        """The profiles, where the table is not copied yet and no unit has two rows that count."""
        # A fixed part is that of all rows of a unit, of those too that do not count.
        if self._is_joint or self._keys(True):
            return None
        constant, numbered = self._constant(), self._numbered_by_reading()
        # Half as wide as they leave the engine: every row has one, and cells are a million at most.
        kept = ['hash("#unit") AS "#hash"', '"#free"::INTEGER AS free']
        for name, value in (("item", '"#item"'), ("total", '"#value"')):
            if name not in constant:
                kept.append(f"{value} AS {name}")
        read = f"SELECT {', '.join(kept)} FROM {self._eligible(PASSING, numbered)}"
        counted = _counted('(SELECT * REPLACE (free::BIGINT AS free) FROM "#passed")', constant)
        keys = {column: self.spec_file.keys[column] for column in numbered}
        return self.tables.in_passing(self.query.table, keys, read, counted)

    def _numbered_by_reading(self) -> list[str]:
        """The key columns whose keys Arrow numbers as it reads them, which is quicker than a join.

        Those of strings, unless a key is no value of any string.
        """
        columns, numbered = self.spec_file.spec.table_columns(self.query.table), []
        for column in self.query.by:
            keys = self.spec_file.keys[column]
            are_values = all(key and "\ufffd" not in key for key in keys)
            if columns[column] is ColumnType.STRING and are_values:
                numbered.append(column)
        return numbered

    def _source(self, homes: int) -> str:
        """The table, without the rows of a unit outside its fixed part."""
        source = wide_table(self.query.table)
        if homes <= 1:
            return source
        self._settle_homes()
        return (
            f'(SELECT * FROM {source} JOIN "#homes" ON {self.unit} = "#unit" '
            f'AND {_tuple(self._keys(True))} = "#home")'
        )

    def conditions(self) -> tuple[str, str]:
        """The condition, and whether a row adds anything."""
        counts = self._joint()[1] if self._is_joint else row_sums(self.query).eligible_sql
        return self._condition(self.query), counts

    def left_out(self) -> LeftOut:
        """The rows that each bound leaves out, of those that fall in a cell."""
        most = rows_read(self.spec_file.spec, self.query)
        rows, homes = self._bounds(most)
        everywhere = self._eligible(wide_table(self.query.table))
        at_home = everywhere if homes <= 1 else self._eligible(self._source(homes))
        first = self._kept_cells(at_home)
        within = self._inside(first)
        in_homes = within if first == at_home else self._inside(at_home)
        anywhere = in_homes if homes <= 1 else self._inside(everywhere)
        beyond = self._inside(first, f"greatest(n - {most}, 0)") if rows > most else 0
        worst = self._worst_cell(everywhere, homes, most) if beyond else None
        return LeftOut(anywhere - in_homes, in_homes - within, beyond, most, worst)

    def _worst_cell(self, everywhere: str, homes: int, most: int) -> str | None:
        """The cell that loses most rows, with how many of how many: "a, 3 1,840 of 1,909 rows"."""
        in_cells = self._kept_cells(self._eligible(self._source(homes), with_text=True))
        kept = sample_of(in_cells, most)
        of_cells = 'SELECT "#at", "#free", count(*) AS n FROM {} WHERE "#at" >= 0 GROUP BY ALL'
        found = self.tables.rows(
            f'SELECT [a."#at", a."#free", a.n - coalesce(k.n, 0), a.n] AS n '
            f"FROM ({of_cells.format(everywhere)}) AS a "
            f"LEFT JOIN ({of_cells.format(kept)}) AS k "
            'ON a."#at" = k."#at" AND a."#free" = k."#free" '
            'ORDER BY a.n - coalesce(k.n, 0) DESC, a."#at", a."#free" LIMIT 1',
            self.query.table,
        )
        if not found.num_rows or not self.query.by:
            return None
        at, free, lost, rows = found.column("n")[0].as_py()
        cells = cells_of(self.spec_file, self.query)
        (place, *_) = np.flatnonzero((cells.fixed == at) & (cells.free == free)).tolist()
        return f"{', '.join(cells.keys[place])} {lost:,} of {rows:,} rows"

    def _inside(self, eligible: str, counted: str = "n") -> int:
        """The rows in a cell, or another sum over units of their ``n`` rows."""
        # -1 is a fixed part outside the key sets.
        of_units = f'SELECT count(*) AS n FROM {eligible} WHERE "#at" >= 0 GROUP BY "#unit"'
        if counted == "n":
            of_units = f'SELECT count(*) AS n FROM {eligible} WHERE "#at" >= 0'
        total = f"SELECT coalesce(sum({counted}), 0)::BIGINT AS total FROM ({of_units})"
        return int(integers(self.tables.rows(total, self.query.table), "total")[0])

    def _bounds(self, most: int) -> tuple[int, int]:
        """How many rows and fixed parts a unit has at most, anywhere in the table."""
        # A grouping would hold every unit; where each has one row, its hash alone can tell.
        if most <= 1 and self.tables.has_single_rows(self.query.table):
            return 1, 1
        fixed = self._keys(True)
        homes = "1"
        if fixed:
            present, key = _all_present(fixed), _tuple(fixed)
            homes = (
                f"CASE WHEN min({key}) FILTER (WHERE {present}) = max({key}) "
                f"FILTER (WHERE {present}) THEN 1 ELSE 2 END"
            )
        # Over the whole table, without the query's condition, so that all queries share the result.
        bounds = self.tables.rows_once(
            f"SELECT coalesce(max(n), 0) AS n, coalesce(max(h), 1) AS h FROM ("
            f"SELECT count(*) AS n, {homes} AS h FROM {wide_table(self.query.table)} "
            f"GROUP BY {self.unit})",
            self.query.table,
        )
        return int(integers(bounds, "n")[0]), int(integers(bounds, "h")[0])

    def _settle_homes(self) -> None:
        """One fixed part a unit: the least that its rows name."""
        # The least and not the first: a table has no order of its own.
        fixed = self._keys(True)
        present = _all_present(fixed)
        self.tables.run(
            f'CREATE OR REPLACE TABLE "#homes" AS SELECT {self.unit} AS "#unit", '
            f'min({_tuple(fixed)}) FILTER (WHERE {present}) AS "#home" '
            f"FROM {wide_table(self.query.table)} GROUP BY ALL"
        )

    def _eligible(
        self, source: str, numbered: Collection[str] = (), *, with_text: bool = False
    ) -> str:
        """The rows that count, with the numbers of their parts, and what each adds to an item.

        ``source`` has the numbers of the keys of the columns ``numbered``. Only a sample of rows or
        cells needs the text of a row ``with_text``, and that of its free part.
        """
        # Rows of fixed parts outside the key sets stay, with -1: a copy of their unit can enter any
        # cell. A NULL names no fixed part. Free parts outside the key sets belong to no cell.
        named = _all_present(self._keys(True))
        homes, home = self._numbered(True)
        places, free = self._numbered(False, numbered)
        has_keys = _all_present([f"rows.{identifier(number_of(column))}" for column in numbered])
        if self._is_joint:
            added, counts = self._joint()
        else:
            rows = row_sums(self.query)
            added = f'({rows.item_sql})::BIGINT AS "#item", ({rows.value_sql})::BIGINT AS "#value"'
            counts = rows.eligible_sql
        text, is_empirical = "", self.query.is_empirical
        if with_text:
            of_row = row_text(self.spec_file, self.query.table, is_empirical=is_empirical)
            text = f', {of_row} AS "#text"'
        if self._most_cells is not None:
            free_keys = set(self.query.by) - set(self.spec_file.spec.privacy.fixed)
            of_cell = text_of(self.spec_file, free_keys, is_empirical=is_empirical)
            text += f', {of_cell} AS "#cell"'
        return (
            f'(SELECT rows.{self.unit} AS "#unit", coalesce({home}, -1) AS "#at", '
            f'{free} AS "#free", {added}{text} '
            f"FROM {source} AS rows{homes}{places} "
            f"WHERE {named} AND {has_keys} AND {self._condition(self.query)} AND ({counts}))"
        )

    def _numbered(self, fixed: bool, numbered: Collection[str] = ()) -> tuple[str, str]:
        """Joins with the key sets of a part, and the part's number, as in :class:`Cells`."""
        joins, number = "", "0::BIGINT"
        columns = self.spec_file.spec.table_columns(self.query.table)
        for place, column in enumerate(self.query.by):
            if (column in self.spec_file.spec.privacy.fixed) is fixed:
                keys = self.spec_file.keys[column]
                if column in numbered:
                    number = f"({number} * {len(keys)} + rows.{identifier(number_of(column))})"
                    continue
                value, key = f"CAST({identifier(column)} AS VARCHAR)", "#key"
                if columns[column] is ColumnType.INTEGER:
                    # Without the text of each row's integer, which takes longer than the join.
                    value, key = identifier(column), "#integer"
                joins += (
                    f" {'LEFT ' if fixed else ''}JOIN {self.tables.put_keys(column, keys)} AS "
                    f'"#{place}" ON {value} = "#{place}"."{key}"'
                )
                number = f'({number} * {len(keys)} + "#{place}"."#number")'
        return joins, number

    def _condition(self, query: Query) -> str:
        return self.tables.condition(
            f"{self.spec_file.spec.place_of(query)}.where", query.table, query.where
        )

    def _joint(self) -> tuple[str, str]:
        """What a row adds to each part that reads it, as a list; whether any part does."""
        kinds = list(map(row_sums, self.query.parts))
        # One more number than parts: the last is the number of all items.
        firsts = accumulate((kind.items for kind in kinds), initial=0)
        reads, adds = [], []
        for part, own, first in zip(self.query.parts, kinds, firsts, strict=False):
            reads.append(f"({self._condition(part)} AND {own.eligible_sql})")
            adds.append(
                f"CASE WHEN {reads[-1]} THEN {{'item': ({own.item_sql})::BIGINT + {first}, "
                f"'value': ({own.value_sql})::BIGINT}} END"
            )
        return f'[{", ".join(adds)}] AS "#adds"', " OR ".join(reads)

    @property
    def _most_cells(self) -> int | None:
        """The bound on the free parts of a unit; None where there is none that could bind."""
        most = self.spec_file.spec.privacy.max_cells_per_unit
        if most is None or most >= len(cells_of(self.spec_file, self.query).free_parts):
            return None
        return most

    def _kept_cells(self, eligible: str) -> str:
        """Without the rows of a unit outside a sample of its cells."""
        if self._most_cells is None:
            return eligible
        return (
            f"(SELECT * FROM {eligible} QUALIFY dense_rank() "
            f'OVER (PARTITION BY "#unit" ORDER BY sha256("#cell")) <= {self._most_cells})'
        )

    def _most_rows(self, eligible: str) -> int:
        most = self.tables.rows(
            "SELECT coalesce(max(n), 0) AS n FROM "
            f'(SELECT count(*) AS n FROM {eligible} GROUP BY "#unit")',
            self.query.table,
        )
        return int(integers(most, "n")[0])

    def _profiles(self, eligible: str, *, one_row: bool) -> str:
        if self._is_joint:
            eligible = (
                '(SELECT "#unit", "#at", "#free", "#add".item AS "#item", "#add".value AS "#value" '
                f'FROM (SELECT *, unnest("#adds") AS "#add" FROM {eligible}) '
                'WHERE "#add" IS NOT NULL)'
            )
            # One row can add to several parts, so it is not one item of a profile.
            one_row = False
        parts = '"#at" AS home, "#free" AS free, "#item" AS item'
        by_unit = (
            f'SELECT "#unit", {parts}, ({self.kind.unit_sql})::BIGINT AS total, count(*) AS rows '
            f"FROM {eligible} GROUP BY ALL"
        )
        # Ordered by content wherever profiles are numbered: numbers must not depend on the order of
        # rows, nor on threads.
        if self.kind.items > 1 and not one_row:
            return (
                f"SELECT number, home, free, {_UNNESTED} FROM (SELECT *, unnest(profile) AS part "
                "FROM (SELECT *, row_number() OVER (ORDER BY free, home, profile) - 1 AS number "
                "FROM (SELECT home, free, profile, count(*) AS units FROM ("
                f"SELECT home, free, {_PROFILE} FROM ({by_unit}) "
                'GROUP BY "#unit", home, free) GROUP BY ALL))) ORDER BY number, item'
            )
        if not one_row:
            return _counted(f"({by_unit})", {})
        # Where a unit has one row, equal rows are equal profiles, and no unit has to be named.
        return _counted(f'(SELECT {parts}, "#value" AS total FROM {eligible})', self._constant())

    def _constant(self) -> dict[str, str]:
        """The columns of profiles that are the same for all units with one row."""
        adds, constant = row_sums(self.query), {"rows": "1::BIGINT"}
        if not self._keys(True):
            constant["home"] = "0::BIGINT"
        for name, value in (("item", adds.item_sql), ("total", adds.value_sql)):
            if value.isdecimal():
                constant[name] = f"{value}::BIGINT"
        return constant


def _counted(profiles: str, constant: Mapping[str, str]) -> str:
    """How many units have each of ``profiles``, in order; what is constant is no part of them."""
    # A constant among the columns of a grouping takes the engine as long as any other column.
    columns = ("free", "home", "item", "total", "rows")
    varying = ", ".join(column for column in columns if column not in constant)
    every = ", ".join(f"{constant.get(column, column)} AS {column}" for column in columns)
    return (
        f"SELECT row_number() OVER () - 1 AS number, {every}, units FROM (SELECT {varying}, "
        f"count(*) AS units FROM {profiles} GROUP BY {varying} ORDER BY {varying})"
    )


def _tuple(columns: list[str]) -> str:
    return columns[0] if len(columns) == 1 else f"[{', '.join(columns)}]"


def _all_present(columns: list[str]) -> str:
    return " AND ".join(map("{} IS NOT NULL".format, columns)) or "true"


def integers(table: pa.Table, column: str) -> Codes:
    """A column of integers without gaps."""
    chunks = map(numbers_of, table.column(column).chunks)
    return np.concatenate([np.zeros(0, dtype=np.int64), *chunks])
