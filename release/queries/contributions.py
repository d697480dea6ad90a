"""Answers and empirical differences of a query, from what each unit contributes to each cell.

The cells come from the public key sets, never from the data: a group without rows is answered too,
and rows of groups outside the key sets are left out. A cell is a pair of a *fixed* part (key
columns that neighbours share, such as a home's circuit) and a *free* part (the other key columns,
such as the day).

Bounds are enforced here: of a unit's rows that meet the condition of a query and fall in a cell,
the first ``max_rows_per_unit`` by the declared columns, in their order, are kept. A unit has one
fixed part, the least that its rows name; its rows elsewhere are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from release.answers import Codes, Topology
from release.guarantee import Differences
from release.queries import kind_of
from release.queries.kind import Kind, Profiles
from release.reading import SpecFile
from release.spec import Query, Relation, Source, answer_domain
from release.sql import identifier
from release.tables import Tables, wide_table

_PAIRS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Cells:
    """The cells of a query in the order of publication.

    ``keys`` are the key tuples, ascending; ``fixed[c]`` and ``free[c]`` number the two parts.
    """

    keys: tuple[tuple[str, ...], ...]
    fixed_parts: tuple[tuple[str, ...], ...]
    free_parts: tuple[tuple[str, ...], ...]
    fixed: Codes
    free: Codes


def cells_of(spec_file: SpecFile, query: Query) -> Cells:
    """All key combinations of ``query``, sorted; one cell with an empty key without ``by``."""
    keys = tuple(product(*(spec_file.keys[column] for column in query.by)))
    is_fixed = [column in spec_file.spec.privacy.fixed for column in query.by]

    def part(key: tuple[str, ...], wanted: bool) -> tuple[str, ...]:
        return tuple(k for k, fixed in zip(key, is_fixed, strict=True) if fixed is wanted)

    fixed_parts = tuple(sorted({part(key, True) for key in keys}))
    free_parts = tuple(sorted({part(key, False) for key in keys}))
    fixed_number = {p: i for i, p in enumerate(fixed_parts)}
    free_number = {p: i for i, p in enumerate(free_parts)}
    return Cells(
        keys,
        fixed_parts,
        free_parts,
        np.array([fixed_number[part(key, True)] for key in keys], dtype=np.int64),
        np.array([free_number[part(key, False)] for key in keys], dtype=np.int64),
    )


@dataclass(frozen=True, repr=False)
class Contributions:
    """Confidential: what each unit adds to each cell of one query.

    ``home[u]`` is the fixed part of unit u, -1 outside the key sets. The other arrays are one entry
    a unit, free part and item, sorted by free part. The representation shows nothing.
    """

    home: Codes
    unit: Codes
    free: Codes
    item: Codes
    total: Codes
    rows: Codes

    def __repr__(self) -> str:
        return "Contributions(confidential)"

    def profiles(self, kind: Kind, free: int) -> Profiles:
        """The profile of every unit in one free part; zero for units without rows there."""
        start, stop = np.searchsorted(self.free, [free, free + 1])
        here = slice(start, stop)
        profiles = np.zeros((self.home.size, kind.width), dtype=np.int64)
        kind.fill(profiles, self.unit[here], self.item[here], self.total[here], self.rows[here])
        return profiles


def contributions(tables: Tables, spec_file: SpecFile, index: int) -> Contributions:
    """Read what the units contribute to query ``index``, with all bounds enforced, in two scans.

    Cost: one aggregation over the table for the units, one over the rows that meet the condition;
    a window over those rows only if some unit has more of them than it may.
    """
    spec, query = spec_file.spec, spec_file.spec.queries[index]
    cells, kind = cells_of(spec_file, query), kind_of(query)
    table, unit = wide_table(query.table), identifier(spec.privacy.unit)
    fixed = [identifier(c) for c in query.by if c in spec.privacy.fixed]
    free = [identifier(c) for c in query.by if c not in spec.privacy.fixed]
    tables.put("#fixed", _part_table(cells.fixed_parts))
    tables.put("#free", _part_table(cells.free_parts))
    present = " AND ".join(f"{column} IS NOT NULL" for column in fixed) or "true"
    # Our own columns start with #, which no declared column may.
    tables.run(
        'CREATE OR REPLACE TABLE "#units" AS SELECT row_number() OVER (ORDER BY "#unit") - 1 '
        'AS "#uid", "#unit", "#home", coalesce("#number", -1) AS "#home number" FROM ('
        f'SELECT {unit} AS "#unit", min({_key_list(fixed)}) FILTER (WHERE {present}) AS "#home" '
        f'FROM {table} GROUP BY ALL) LEFT JOIN "#fixed" ON "#key" = "#home"'
    )
    condition = tables.condition(
        f"queries[{index}].where",
        query.table,
        query.where,
        empirical=query.differences is Source.EMPIRICAL,
    )
    tables.run(
        f'CREATE OR REPLACE TABLE "#kept" AS SELECT "#uid", "#number" AS "#free", '
        f'({kind.item_sql})::BIGINT AS "#item", ({kind.value_sql})::BIGINT AS "#value", '
        f"{_order_columns(spec_file, query)} FROM {table} "
        f'JOIN "#units" ON {unit} = "#unit" AND {_key_list(fixed)} = "#home" '
        f'JOIN "#free" ON "#key" = {_key_list(free)} '
        f"WHERE {condition} AND {kind.eligible_sql}"
    )
    _keep_first_rows(tables, spec.rows_per_unit(query))
    found = tables.rows(
        'SELECT "#uid" AS uid, "#free" AS free, "#item" AS item, '
        'sum("#value")::BIGINT AS total, count(*) AS rows FROM "#kept" GROUP BY ALL ORDER BY ALL'
    )
    units = tables.rows('SELECT "#home number" AS home FROM "#units" ORDER BY "#uid"')
    by_free = np.argsort(_integers(found, "free"), kind="stable")
    columns = [_integers(found, name)[by_free] for name in ("uid", "free", "item", "total", "rows")]
    return Contributions(_integers(units, "home"), *columns)


def _order_columns(spec_file: SpecFile, query: Query) -> str:
    # All columns, joined ones too: rows that still tie are alike in everything a query can read.
    columns = spec_file.spec.table_columns(query.table)
    return ", ".join(
        f"{identifier(c)} AS {identifier(f'#order {i}')}" for i, c in enumerate(columns)
    )


def _keep_first_rows(tables: Tables, most: int) -> None:
    """Drop a unit's rows beyond the first ``most``; rows that tie on every column are alike."""
    found = tables.rows(
        'SELECT coalesce(max(n), 0) AS n FROM (SELECT count(*) AS n FROM "#kept" GROUP BY "#uid")'
    )
    if found.column("n")[0].as_py() > most:
        names = tables.rows('SELECT * FROM "#kept" LIMIT 0').schema.names
        order = ", ".join(identifier(name) for name in names if name.startswith("#order "))
        tables.run(
            'CREATE OR REPLACE TABLE "#kept" AS SELECT * FROM "#kept" '
            f'QUALIFY row_number() OVER (PARTITION BY "#uid" ORDER BY {order}) <= {most}'
        )


def _key_list(columns: list[str]) -> str:
    return "[" + ", ".join(f"CAST({column} AS VARCHAR)" for column in columns) + "]::VARCHAR[]"


def _part_table(parts: tuple[tuple[str, ...], ...]) -> pa.Table:
    return pa.table(
        {
            "#key": pa.array([list(part) for part in parts], pa.list_(pa.string())),
            "#number": pa.array(range(len(parts)), pa.int64()),
        }
    )


def _integers(table: pa.Table, column: str) -> Codes:
    values = table.column(column).to_numpy()
    return np.asarray(values, dtype=np.int64)


def true_answers(contributed: Contributions, spec_file: SpecFile, index: int) -> Codes:
    """The true answer code of each cell, in the order of publication. Confidential."""
    query = spec_file.spec.queries[index]
    cells, kind = cells_of(spec_file, query), kind_of(query)
    codes = np.zeros(len(cells.keys), dtype=np.int64)
    for free in range(len(cells.free_parts)):
        profiles = contributed.profiles(kind, free)
        sums = _sums_by_home(profiles, contributed.home, len(cells.fixed_parts))
        here = np.flatnonzero(cells.free == free)
        codes[here] = kind.decide(sums[cells.fixed[here]])
    return codes


def _sums_by_home(profiles: Profiles, home: Codes, homes: int) -> Profiles:
    sums = np.zeros((homes, profiles.shape[1]), dtype=np.int64)
    inside = home >= 0
    np.add.at(sums, home[inside], profiles[inside])
    return sums


def empirical_differences(
    contributed: Contributions, spec_file: SpecFile, index: int
) -> Differences:
    """All differences that a neighbour of this very table makes, over all cells. Confidential.

    - ``replace_one``: any unit of a cell is replaced by a copy of any unit of the table, which
      takes over the fixed keys: sums - p_u + p_v. A unit without rows is among both: it may stand
      in another table, or nowhere.
    - ``add_remove``: any unit is removed, or a copy of any unit is added to any cell.

    Where nothing that is seen would change an answer, ±1 (nominal: everything) stands in for the
    unseen, because an answer without noise is a promise kept by luck.

    Cost: for each cell the distinct profiles of its units times the distinct profiles of all units
    (equal profiles give equal answers), in array operations.
    """
    spec, query = spec_file.spec, spec_file.spec.queries[index]
    cells, kind = cells_of(spec_file, query), kind_of(query)
    domain = answer_domain(query.domain)
    found: set[int] = set()
    for free in range(len(cells.free_parts)):
        profiles = contributed.profiles(kind, free)
        nobody = np.zeros((1, kind.width), dtype=np.int64)
        everyone = np.unique(np.concatenate([profiles, nobody]), axis=0)
        sums = _sums_by_home(profiles, contributed.home, len(cells.fixed_parts))
        for home in range(len(cells.fixed_parts)):
            here = np.concatenate([profiles[contributed.home == home], nobody])
            members = np.unique(here, axis=0)
            answer = int(kind.decide(sums[home : home + 1])[0])
            for changed in _changed_sums(sums[home], members, everyone, spec.privacy.neighbours):
                found.update(np.unique((answer - kind.decide(changed)) % domain.size).tolist())
    if not found - {0}:
        if domain.topology is Topology.NOMINAL:
            return Differences.everything(domain.group)
        found = {1}
    return Differences.of(domain.group, ((shift,) for shift in found))


def _changed_sums(
    sums: Codes, members: Profiles, everyone: Profiles, relation: Relation
) -> Iterator[Profiles]:
    """The sums of a cell over its neighbours, in blocks of bounded size."""
    if relation is Relation.ADD_REMOVE:
        yield sums - members
        yield sums + everyone
        return
    step = max(1, _PAIRS_AT_ONCE // everyone.size) if everyone.size else 1
    for start in range(0, len(members), step):
        block = sums - members[start : start + step]
        yield (block[:, None, :] + everyone[None, :, :]).reshape(-1, everyone.shape[1])
