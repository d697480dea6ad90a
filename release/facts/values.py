"""Columns and key sets against the values of a table. Confidential throughout."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from release.facts.models import (
    ColumnFacts,
    JoinFacts,
    KeyFacts,
    TableFacts,
    ValueCount,
)
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.tables.duckdb import Tables, raw_table, wide_table

_MOST_LISTED = 1000
"""Values that no key names, those of most rows first."""

_MOST_COMPARED = 100
"""Keys without rows for which a like value is looked for: each is compared with all listed."""

_WITHOUT_ENDS = {ColumnType.STRING, ColumnType.BOOLEAN}
"""Types whose least and greatest value would say nothing, or would name a unit."""


def table_facts(tables: Tables, spec_file: SpecFile, name: str) -> TableFacts:
    """A table, and its columns as queries see them. Cost: three passes."""
    quality = tables.quality(name)
    columns = spec_file.spec.table_columns(name)
    figures = ["count(*)"]
    for column, kind in columns.items():
        value = identifier(column)
        ends = ["NULL", "NULL"]
        if kind not in _WITHOUT_ENDS and column != spec_file.spec.privacy.unit:
            ends = [f"min({value})", f"max({value})"]
        figures += [f"count(*) - count({value})", *map("CAST({} AS VARCHAR)".format, ends)]
    # As texts in one list: the columns of a result need names of their own.
    texts = ", ".join(map("CAST({} AS VARCHAR)".format, figures))
    query = f"SELECT [{texts}] AS n FROM {wide_table(name)}"
    distinct, *extremes = tables.rows(query, name).column("n")[0].as_py()
    zones = tables.zones(name)
    join = spec_file.spec.tables[name].join
    if join is not None:
        zones |= tables.zones(join.table)
    facts = []
    for place, column in enumerate(columns):
        missing, least, greatest = extremes[3 * place : 3 * place + 3]
        facts.append(ColumnFacts(column, int(missing), least, greatest, zones.get(column)))
    return TableFacts(
        name,
        quality.rows,
        quality.units,
        int(distinct),
        quality.repeated,
        quality.faults,
        tuple(facts),
        _join_facts(tables, spec_file, name),
    )


def _join_facts(tables: Tables, spec_file: SpecFile, name: str) -> JoinFacts | None:
    """What a join does to the rows of a table; None without one."""
    join = spec_file.spec.tables[name].join
    if join is None:
        return None
    unit = identifier(spec_file.spec.privacy.unit)
    partners = f'(SELECT {unit}, count(*) AS "#n" FROM {raw_table(join.table)} GROUP BY 1)'
    figures = tables.rows(
        'SELECT [count(*) FILTER ("#n" IS NULL), count(*) FILTER ("#n" > 1)] AS n '
        f"FROM {raw_table(name)} LEFT JOIN {partners} USING ({unit})",
        name,
    )
    unmatched, doubled = figures.column("n")[0].as_py()
    return JoinFacts(join.table, unmatched, doubled, join.many)


def key_facts(  # noqa: PLR0913 - what a set of values is compared with
    tables: Tables,
    spec_file: SpecFile,
    table: str,
    column: str,
    keys: Sequence[str],
    known: str,
    condition: str,
) -> KeyFacts:
    """The keys of one column against its values in the rows that meet a condition.

    ``known`` is the SQL name of the key set beside the tables. Cost: one grouping by the column,
    which also holds each unit of a value where units have several rows.
    """
    unit = identifier(spec_file.spec.privacy.unit)
    units = "count(*)" if tables.has_single_rows(table) else f"count(DISTINCT {unit})"
    tables.run(
        f'CREATE OR REPLACE TEMP TABLE "#values" AS SELECT counted.*, "#number" FROM ('
        f'SELECT CAST({identifier(column)} AS VARCHAR) AS "#value", count(*) AS "#rows", '
        f'{units} AS "#units" FROM {wide_table(table)} AS rows WHERE {condition} GROUP BY 1'
        f') AS counted LEFT JOIN {known} ON "#value" = "#key"'
    )
    numbered = tables.rows(
        'SELECT "#number", "#rows", "#units" FROM "#values" WHERE "#number" IS NOT NULL '
        'ORDER BY "#number"',
        table,
    )
    named = []
    for number, rows, of_units in _rows_of(numbered):
        named.append(ValueCount(keys[number], rows, of_units))
    listed = tables.rows(
        'SELECT "#value", "#rows", "#units" FROM "#values" WHERE "#number" IS NULL AND '
        f'"#value" IS NOT NULL ORDER BY "#rows" DESC, "#value" LIMIT {_MOST_LISTED}',
        table,
    )
    unnamed = tuple(ValueCount(value, rows, units) for value, rows, units in _rows_of(listed))
    is_unnamed = '"#number" IS NULL AND "#value" IS NOT NULL'
    totals = tables.rows(
        f'SELECT [count(*) FILTER ({is_unnamed}), coalesce(sum("#rows") FILTER ({is_unnamed}), 0), '
        'coalesce(sum("#rows") FILTER ("#value" IS NULL), 0)]::BIGINT[] AS n FROM "#values"',
        table,
    )
    values, rows, missing = totals.column("n")[0].as_py()
    with_rows = {count.value for count in named}
    without = tuple(key for key in keys if key not in with_rows)
    near = _near(without, [count.value for count in unnamed])
    return KeyFacts(column, tuple(named), without, missing, unnamed, values, rows, near)


def _rows_of(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*table.to_pydict().values(), strict=True)


def _near(keys: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """For each key a value that it may have been meant to name."""
    # Of values that differ by their case alone, the first has most rows: it is put in last.
    folded = {value.casefold(): value for value in reversed(values)}
    near = {}
    for key in keys[:_MOST_COMPARED]:
        # Without case: a key in other capitals is far off by its letters.
        like = difflib.get_close_matches(key.casefold(), list(folded), 1)
        if like:
            near[key] = folded[like[0]]
    return near
