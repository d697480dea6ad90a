"""The patterns of one unit: by how much its rows can move the cells of a query, all at once.

A pattern has one number for each cell that differs between neighboring tables. It bounds from above
by how many codes the cell's answer differs, and every change that one unit can make lies within
some pattern (docs/design/mathematics.md, 2.30).

The rows of a unit are shared out among its cells. So of a count the patterns are partitions of the
most rows. A replaced unit leaves the cells of one partition and enters those of another. Where a
cell is among both, the two changes have opposite signs, and less than the larger of them is left.
Of other queries each cell can move as far as one cell alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from release.budget.cost import cells_at_once, free_cells, touched_cells
from release.queries.registry import global_sensitivity, rows_read, statistic_of
from release.spec.declarations import Relation
from release.spec.load import SpecFile
from release.spec.query import PlainQuery, Query

Pattern: TypeAlias = tuple[int, ...]
"""The differences of the cells, falling; 0 stands for any difference of unordered answers."""

MOST_PATTERNS = 60
"""Where a count has more, all cells are taken to move by all rows of the unit."""


def patterns_of(spec_file: SpecFile, query: Query) -> tuple[Pattern, ...]:
    """The patterns of a query with a public mechanism, each once, ascending.

    With noise on the statistic the number is the spread of the statistic, which covers all that a
    unit does in a cell.
    """
    if query.is_on_statistic:
        farthest = statistic_of(spec_file.spec, query).spread
    else:
        sensitivity = global_sensitivity(spec_file.spec, query, rows_read(spec_file.spec, query))
        farthest = max(sensitivity.distances or (), default=0)
    everywhere = (farthest,) * touched_cells(spec_file, query)
    if not isinstance(query, PlainQuery) or not query.counts_rows or query.is_on_statistic:
        return (everywhere,)
    shared = _shared_rows(spec_file, query)
    if shared is None:
        return (everywhere,)
    # A clamped answer moves no farther than the domain is wide.
    clamped = set()
    for pattern in shared:
        clamped.add(tuple(min(rows, query.answers.size - 1) for rows in pattern))
    return tuple(sorted(clamped))


def _shared_rows(spec_file: SpecFile, query: Query) -> set[Pattern] | None:
    """The partitions of a unit's rows over its cells; None where there are too many."""
    rows = rows_read(spec_file.spec, query)
    if query.for_units:
        return {(rows,)}
    # F and k of docs/design/format.md, 3.3.
    free, at_once = free_cells(spec_file, query), cells_at_once(spec_file, query)
    alone = set(islice(partitions(rows, at_once), MOST_PATTERNS + 1))
    if len(alone) > MOST_PATTERNS:
        return None
    if spec_file.spec.privacy.neighbors is Relation.ADD_REMOVE or free == 1:
        return alone
    both = set()
    for leaving in alone:
        for entering in alone:
            # The cells that fall and those that rise are different ones.
            if len(leaving) + len(entering) <= free:
                both.add(tuple(sorted((*leaving, *entering), reverse=True)))
    return both if len(both) <= MOST_PATTERNS else None


def partitions(rows: int, cells: int, most: int | None = None) -> Iterator[Pattern]:
    """The ways to share ``rows`` out among at most ``cells`` cells, each falling.

    ``most`` bounds the rows of one cell.
    """
    if rows == 0:
        yield ()
        return
    if cells == 0:
        return
    # Fewer in the first cell than an even share would leave too much for the others.
    for first in range(min(rows, most or rows), -(-rows // cells) - 1, -1):
        for rest in partitions(rows - first, cells - 1, first):
            yield (first, *rest)
