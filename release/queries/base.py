"""The protocols of a query's answers: sums of profiles, or runs on every neighbor.

Most kinds are decided by sums: each unit contributes a small vector of integers to a cell (its
*profile*), profiles add up, and the answer is a function of the sum alone. So one algorithm
computes the sensitivity of all of them exactly: taking a unit out subtracts its profile, putting
one in adds its profile.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from release.errors import DataError
from release.exact.domain import Codes
from release.spec.declarations import Relation
from release.spec.query import DomainQuery, Query

if TYPE_CHECKING:
    from release.spec.load import SpecFile
    from release.tables.duckdb import Tables

Profiles = NDArray[np.int64]
"""Shape (units, width): what each unit adds to the sums of a cell."""


Prepared: TypeAlias = Any
"""What a kind precomputes from the profiles that can enter; only that kind reads it."""


class Kind(Protocol):
    """How one query turns profiles into sums, and sums into an answer code."""

    @property
    def unit_sql(self) -> str:
        """The SQL aggregate of the values ``"#value"`` of one unit, cell and item: an integer."""

    @property
    def items(self) -> int:
        """The number of items; a unit can have several in a cell."""

    @property
    def width(self) -> int:
        """The number of integers in a profile."""

    def fill(self, profiles: Profiles, unit: Codes, item: Codes, total: Codes, rows: Codes) -> None:
        """Write one cell's contributions into zeroed ``profiles``.

        ``total`` is the aggregate :attr:`unit_sql`, ``rows`` the number of rows.
        """

    def decide(self, sums: Profiles) -> Codes:
        """The answer code for each row of sums; shape (n, width) to (n,)."""

    def prepared(self, entering: Profiles) -> Prepared:
        """What :meth:`reached` needs of the profiles that can enter, once for all cells."""

    def reached(self, sums: Codes, leaving: Profiles, entering: Prepared) -> Codes:
        """The codes of sums - a + b for all a of ``leaving`` and b of ``entering``, each once."""

    def reached_in_domain(self, sums: Codes, leaving: Profiles, rows: int) -> Codes:
        """As :meth:`reached`, for every profile b of up to ``rows`` rows within the bounds."""

    def steps(self, rows: int, relation: Relation) -> Codes:
        """The signed steps by which a unit can move the code in any table, 0 included.

        Under ``add_remove`` those of a unit that comes in (leaving gives the negatives), else those
        of a unit that is replaced. On a domain without an order, modulo its size.
        """


class RowKind(Kind, Protocol):
    """A kind that reads rows: each belongs to one item and adds one integer."""

    @property
    def eligible_sql(self) -> str:
        """The condition under which a row counts at all."""

    @property
    def item_sql(self) -> str:
        """An integer: which part of the profile the row belongs to."""

    @property
    def value_sql(self) -> str:
        """An integer: what the row adds there, already clamped."""


class SummedQuery(Query):
    """A query that the sums of its units' profiles decide."""

    @abstractmethod
    def sums(self) -> Kind:
        """How its profiles become sums and answers."""

    @property
    def bounded(self) -> tuple[str, int, int] | None:
        """The SQL of a row's number before it is clamped, and its bounds; None without bounds."""
        return None


MOST_UNITS = 150
"""The most units of a query that runs again; more units need over twenty thousand runs."""


@dataclass(frozen=True, repr=False)
class Rerun:
    """Confidential: the true codes, and their signed distances from the neighbors' codes."""

    codes: Codes
    steps: Codes

    def __repr__(self) -> str:
        return "Rerun(confidential)"


class RerunQuery(DomainQuery):
    """A query that can only be run: its sensitivity comes from a run on every neighbor.

    Its guarantee is instance-specific, and a unit is charged for every cell.
    """

    can_be_part = False
    runs_again = True

    @abstractmethod
    def rerun(self, tables: Tables, spec_file: SpecFile) -> Rerun:
        """Answer the query on the table and on every neighbor.

        Raises:
            SpecError: the query cannot be run as it is written.
            DataError: too many units, or it fails on the table or a neighbor.
        """


def row_sums(query: Query) -> RowKind:
    """The sums of a query that reads rows: of any that is summed, but for a tuple.

    Raises:
        TypeError: it is another.
    """
    if not isinstance(query, SummedQuery) or query.part_names:
        raise TypeError(f"{query.name} does not read rows")
    return cast(RowKind, query.sums())


_PAIRS_AT_ONCE = 2**22
_MOST_PAIRS = 2**34
"""The most integers compared for one cell: some minutes of work."""


def reached_by_pairs(kind: Kind, sums: Codes, leaving: Profiles, entering: Profiles) -> Codes:
    """:meth:`Kind.reached` by trying all pairs, in blocks. Cost: |leaving|·|entering|·width.

    Raises:
        DataError: there are too many pairs.
    """
    # A refusal depends on the table. Only empirical sensitivity comes here, whose guarantee is
    # instance-specific already.
    if len(leaving) * entering.size > _MOST_PAIRS:
        raise DataError(
            "sensitivity: too many units that differ have to be compared with each other; write "
            "sensitivity: global, or replacement: domain in privacy"
        )
    codes: set[int] = set()
    # Blocks bound the memory: all pairs at once would be |leaving|·|entering|·width integers.
    step = max(1, _PAIRS_AT_ONCE // entering.size)
    for start in range(0, len(leaving), step):
        block = sums - leaving[start : start + step]
        changed = (block[:, None, :] + entering[None, :, :]).reshape(-1, entering.shape[1])
        codes.update(np.unique(kind.decide(changed)).tolist())
    return np.array(sorted(codes), dtype=np.int64)


def reached_by_order(edges: Codes, total: int, leaving: Codes, entering: Codes) -> Codes:
    """The codes of total - a + b, where code ≥ k exactly when the sum is at least ``edges[k-1]``.

    ``entering`` is ascending.

    For each a, some b lands in level k exactly if more b lie below the next edge than below this
    one: a search among the sorted b for each edge within reach, without forming pairs.
    Cost: |leaving|·(edges within reach)·log|entering|.
    """
    leaving = np.unique(leaving)
    # No pair lands outside the levels of the two extreme pairs, so other edges need no search.
    least = int(np.searchsorted(edges, total - leaving[-1] + entering[0], side="right"))
    most = int(np.searchsorted(edges, total - leaving[0] + entering[-1], side="right"))
    is_reached = np.zeros(most - least + 1, dtype=bool)
    step = max(1, _PAIRS_AT_ONCE // (most - least + 2))
    for start in range(0, leaving.size, step):
        rest = total - leaving[start : start + step, None]
        below = np.searchsorted(entering, edges[None, least:most] - rest)
        # No b lies below the level in front of the first edge, all lie below the end of the last.
        padded = np.pad(below, ((0, 0), (1, 1)))
        padded[:, -1] = entering.size
        is_reached |= (np.diff(padded, axis=1) > 0).any(axis=0)
        if is_reached.all():
            break
    return np.flatnonzero(is_reached) + least


def between(lowest: Codes, highest: Codes, size: int) -> Codes:
    """The codes that lie between the two of some pair, both included. Cost: pairs + ``size``."""
    # A running sum counts the intervals that are open at each code. ``add.at``, because plain
    # indexing would count an end that repeats only once.
    ends = np.zeros(size + 1, dtype=np.int64)
    np.add.at(ends, lowest, 1)
    np.add.at(ends, highest + 1, -1)
    return np.flatnonzero(np.cumsum(ends[:-1]) > 0)


def steps_between(down: int, up: int, size: int) -> Codes:
    """The steps -``down`` .. ``up``, cut to the distances within a domain of ``size`` codes."""
    return np.arange(-min(down, size - 1), min(up, size - 1) + 1, dtype=np.int64)
