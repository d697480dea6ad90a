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
        """Write one cell's contributions into zeroed ``profiles``: linear in totals and rows.

        ``total`` is the aggregate :attr:`unit_sql`, ``rows`` the number of rows. The sums of a cell
        are filled from the totals and rows of all its units, added up: what compares, or takes a
        maximum, belongs in :meth:`decide` or in the SQL of a row.
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

        The guarantee rests on it; the module of a kind says why it holds.

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
