"""A query on the tables of a rehearsal: its keys, bounds and cells. Confidential throughout."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from release.at_work import AtWork
from release.bundle.answer_units import answer_unit
from release.exact.domain import Codes, Topology
from release.exact.statistics.statistic import Sums
from release.facts.cells import told_by
from release.facts.models import Cut, QueryFacts
from release.facts.values import key_facts
from release.queries.base import SummedQuery
from release.queries.contributions import Contributions
from release.queries.engines.base import HereTables
from release.queries.profiles import left_out, row_conditions
from release.spec.expressions import identifier
from release.spec.load import SpecFile
from release.spec.query import Query
from release.tables.duckdb import wide_table


def query_facts(
    tables: HereTables, spec_file: SpecFile, query: Query, run: AtWork | None
) -> QueryFacts:
    """What a query finds in the tables; ``run`` is None where it is not answered.

    Cost: one pass for its totals, and a grouping for each key column and each bound that binds.
    """
    told = None if run is None or run.design is None else told_by(run)
    sensitivity = None
    if query.is_empirical and run is not None and run.moves is not None:
        sensitivity = _sensitivity_text(run)
    if query.runs_again:
        # A statement of the curator's own: which rows it reads is not known.
        return QueryFacts(query.name, sensitivity=sensitivity, told=() if told is None else (told,))
    condition, counts = row_conditions(tables, spec_file, query)
    keys = []
    for column in query.by:
        of_column = spec_file.keys[column]
        key_table = tables.put_keys(column, of_column)
        keys.append(
            key_facts(tables, spec_file, query.table, column, of_column, key_table, condition)
        )
    rows, inside, *figures = _totals(tables, spec_file, query, condition, counts)
    cuts = [*_value_cuts(query, *figures), *_row_cuts(tables, spec_file, query)]
    cells = empty = 0
    if run is not None:
        if isinstance(run.contributed, Contributions):
            cells = len(run.contributed.cells.keys)
            empty = cells - np.unique(run.contributed.sums.of).size
        cuts += _answer_cuts(run)
    return QueryFacts(
        query.name,
        rows,
        rows - inside,
        tuple(keys),
        tuple(cut for cut in cuts if cut.count),
        cells,
        empty,
        sensitivity,
        () if told is None else (told,),
    )


def _totals(
    tables: HereTables, spec_file: SpecFile, query: Query, condition: str, counts: str
) -> list[int]:
    """Rows that meet the condition; in a cell; there without a value; below and above the clamp."""
    is_named = ["true"]
    for column in query.by:
        key_table = tables.put_keys(column, spec_file.keys[column])
        is_named.append(
            f'CAST({identifier(column)} AS VARCHAR) IN (SELECT "#key" FROM {key_table})'
        )
    below = above = "false"
    bounded = query.bounded if isinstance(query, SummedQuery) else None
    if bounded is not None:
        value, low, high = bounded
        below, above = f"{value} < {low}", f"{value} > {high}"
    found = tables.rows(
        'SELECT [count(*), count(*) FILTER ("#in"), count(*) FILTER ("#in" AND NOT "#counts"), '
        'count(*) FILTER ("#in" AND "#counts" AND "#below"), '
        'count(*) FILTER ("#in" AND "#counts" AND "#above")] AS n FROM ('
        # NULL in SQL is neither true nor false: a row without a key or a value counts as outside.
        f'SELECT coalesce({" AND ".join(is_named)}, false) AS "#in", '
        f'coalesce({counts}, false) AS "#counts", {below} AS "#below", {above} AS "#above" '
        f"FROM {wide_table(query.table)} AS rows WHERE {condition})",
        query.table,
    )
    numbers: list[int] = found.column("n")[0].as_py()
    return numbers


def _value_cuts(query: Query, uncounted: int, below: int, above: int) -> Iterator[Cut]:
    """What the domain of the categories leaves out, and what the clamp changes."""
    # Of a tuple a row that one part does not read may count in another.
    yield Cut("have no value, or one outside the domain, and are left out", uncounted)
    bounded = query.bounded if isinstance(query, SummedQuery) else None
    if bounded is not None:
        yield Cut(f"are below {bounded[1]:,}, and count as that", below, "values")
        yield Cut(f"are above {bounded[2]:,}, and count as that", above, "values")


def _row_cuts(tables: HereTables, spec_file: SpecFile, query: Query) -> Iterator[Cut]:
    cut, most_cells = left_out(tables, spec_file, query), spec_file.spec.privacy.max_cells_per_unit
    fixed = " and ".join(column for column in query.by if column in spec_file.spec.privacy.fixed)
    yield Cut(f"are of a unit whose {fixed} is another, and are left out", cut.homes)
    yield Cut(f"are beyond max_cells_per_unit: {most_cells}, and are left out", cut.cells)
    bound = f"max_rows_per_unit: {cut.most}"
    if cut.most < spec_file.spec.rows_per_unit(query):
        bound = f"the {cut.most} rows of a unit that the declared sensitivity allows"
    example = "" if cut.worst is None else f"of {cut.worst}"
    yield Cut(f"are beyond {bound}, and are left out", cut.rows, example=example)


def _answer_cuts(run: AtWork) -> Iterator[Cut]:
    """How many cells have an answer at an end of the domain, where true ones beyond it would be."""
    query = run.query
    if len(query.answers.parts) > 1:
        return
    (domain,) = query.answers.parts
    codes = _true_codes(run)
    if domain.topology is not Topology.ORDERED or codes is None:
        return
    # What adds up has no end of its own, so that an answer at that of its domain is a clamped one.
    adds_up = query.kind in ("count", "sum")
    counted_as = ", the end of its domain, and count as that" if adds_up else ""
    highest = int((codes == domain.size - 1).sum())
    words = f"have {domain.labels[-1]} or more{counted_as or ', the highest answer'}"
    yield Cut(words, highest, "cells", is_change=adds_up)
    # Nothing is below no rows.
    lowest = 0 if domain.labels[0] == 0 else int((codes == 0).sum())
    words = f"have {domain.labels[0]} or less{counted_as or ', the lowest answer'}"
    yield Cut(words, lowest, "cells", is_change=adds_up)


def _true_codes(run: AtWork) -> Codes | None:
    """The true answers; None where the noise is on a statistic that is no sum of the cell."""
    if not run.query.is_on_statistic:
        return run.codes
    if run.design is None or not isinstance(run.moves, Sums):
        return None
    codes = [run.query.answer_codes(block)[0] for block in run.truths()]
    return np.concatenate([np.zeros(0, dtype=np.int64), *codes])


def _sensitivity_text(run: AtWork) -> str:
    """How far one unit of this table moves an answer, in words."""
    seen, size, query = run.sensitivity, run.query.answers.size, run.query
    if run.query.answers.is_line:
        farthest = max(map(abs, seen.distances or ()), default=0)
        if farthest:
            return f"one unit moves an answer by up to {answer_unit(query).amount(farthest)}"
    # The shift by nothing at all is no difference.
    moves = [shift for shift in seen.shifts if any(shift)]
    return f"one unit moves an answer by {len(moves)} of {size - 1} differences"
