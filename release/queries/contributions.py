"""What the units contribute to each cell of a query: sums, and distinct profiles.

No unit is represented by itself outside the engine. What leaves it is the *distinct* profiles of
each cell's units, because equal profiles make equal neighbors, and how many units have each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from release.exact.domain import Codes
from release.exact.statistics.statistic import Statistic
from release.queries.base import Kind, Profiles
from release.queries.profiles import PROFILES, Cells, cells_of, integers
from release.queries.registry import kind_of
from release.spec.load import SpecFile
from release.spec.query import Query


@dataclass(frozen=True, repr=False)
class Parts:
    """Confidential: sparse profiles. Entry e says what profile ``of[e]`` has at ``item[e]``."""

    of: Codes
    item: Codes
    total: Codes
    rows: Codes

    def __repr__(self) -> str:
        return "Parts(confidential)"

    def dense(self, kind: Kind, start: int, stop: int) -> Profiles:
        """The profiles ``start`` to ``stop`` (without), one a row."""
        first, last = np.searchsorted(self.of, [start, stop])
        here = slice(first, last)
        profiles = np.zeros((stop - start, kind.width), dtype=np.int64)
        unit = self.of[here] - start
        kind.fill(profiles, unit, self.item[here], self.total[here], self.rows[here])
        return profiles


@dataclass(frozen=True, repr=False)
class Contributions:
    """Confidential: the sums of every cell and the distinct profiles of its units.

    Profile p belongs to the units of the fixed part ``home[p]`` (-1: outside the key sets) in the
    free part ``free[p]``; profiles are sorted by free part, then home. ``sums`` has one profile a
    cell, in the order of publication. The representation shows nothing.
    """

    home: Codes
    free: Codes
    profiles: Parts
    sums: Parts
    cells: Cells

    def __repr__(self) -> str:
        return "Contributions(confidential)"


def contributions(read: pa.Table, spec_file: SpecFile, query: Query) -> Contributions:
    """What units contribute to ``query``, from their profiles as an engine has read them."""
    cells = cells_of(spec_file, query)
    number, home, free, item, total, rows, units = map(partial(integers, read), PROFILES.names)
    # The engine orders the entries by profile: each profile begins where the number changes.
    first = np.flatnonzero(np.diff(number, prepend=-1))
    return Contributions(
        home[first],
        free[first],
        Parts(number, item, total, rows),
        _sums(cells, home, free, Parts(units, item, total, rows)),
        cells,
    )


def _sums(cells: Cells, home: Codes, free: Codes, parts: Parts) -> Parts:
    """The sums of each cell by item; ``parts.of`` says how many units have each profile."""
    # -1 marks a pair of parts that is no cell; no profile inside the key sets has one.
    cell_at = np.full((len(cells.fixed_parts), len(cells.free_parts)), -1, dtype=np.int64)
    cell_at[cells.fixed, cells.free] = np.arange(len(cells.keys))
    # Units outside the key sets add to no cell, but can be copied into one.
    inside = home >= 0
    # One number for both, because NumPy sorts numbers many times quicker than columns.
    items = int(parts.item.max(initial=0)) + 1
    numbers = cell_at[home[inside], free[inside]] * items + parts.item[inside]
    distinct, place = np.unique(numbers, return_inverse=True)
    cell, item = np.divmod(distinct, items)
    total, rows = np.zeros(cell.size, dtype=np.int64), np.zeros(cell.size, dtype=np.int64)
    # ``add.at``, because plain indexing would add only once where a place repeats.
    np.add.at(total, place, (parts.total * parts.of)[inside])
    np.add.at(rows, place, (parts.rows * parts.of)[inside])
    return Parts(cell, item, total, rows)


_ENTRIES_AT_ONCE = 2**22


def true_answers(contributed: Contributions, query: Query) -> Codes:
    """The true answer code of each cell, in the order of publication. Confidential."""
    codes = map(kind_of(query).decide, _sums_in_blocks(contributed, query))
    return np.concatenate([np.zeros(0, dtype=np.int64), *codes])


def statistics_in_blocks(
    contributed: Contributions, query: Query, statistic: Statistic
) -> Iterator[Codes]:
    """The integers that decide the answers, shape (cells, inputs), block by block. Confidential."""
    return map(statistic.of, _sums_in_blocks(contributed, query))


def _sums_in_blocks(contributed: Contributions, query: Query) -> Iterator[Profiles]:
    kind, count = kind_of(query), len(contributed.cells.keys)
    # Dense sums of all cells at once could be 10^6 cells times 10^6 answers.
    step = max(1, _ENTRIES_AT_ONCE // kind.width)
    for start in range(0, count, step):
        yield contributed.sums.dense(kind, start, min(count, start + step))
