"""The protocol of an engine, and the engine of one machine.

An engine reads profiles (:mod:`release.queries.profiles`) and the counts of tabulations
(:mod:`release.tabulations.measure.measuring`), and runs a statement of the curator's own; the later
stages are arithmetic on what it has read. This engine is DuckDB in this process; that of
:mod:`release.queries.engines.spark` is DuckDB in the tasks of a Spark cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self

from release.exact.domain import Codes
from release.queries.base import Rerun, RerunQuery
from release.queries.profiles import read_profiles
from release.spec.query import Query
from release.tables.duckdb import Tables
from release.tabulations.estimate.structure import Margin
from release.tabulations.measure.measuring import read_counts
from release.tabulations.spec.opened import OpenTabulation

if TYPE_CHECKING:
    import pyarrow as pa


class Loaded(Protocol):
    """Confidential tables, open; a context manager that closes them and wipes what it wrote."""

    def profiles(self, query: Query) -> pa.Table:
        """The distinct profiles of a query's units, as :func:`read_profiles` describes them."""

    def rerun(self, query: RerunQuery) -> Rerun:
        """The answers of a statement on the table and on every neighbor of it."""

    def counts(self, opened: OpenTabulation, cells: Mapping[int, Margin]) -> dict[int, Codes]:
        """The true counts of some levels of a tabulation, as :func:`read_counts` has them."""

    def check_unchanged(self) -> None:
        """Check that no file has changed since the tables were opened.

        Raises:
            DataError: a file has changed, so answers may be of different tables.
        """

    def __enter__(self) -> Self:
        """The tables."""

    def __exit__(self, *_: object) -> None:
        """Close them."""


class HereTables(Tables):
    """Tables in the DuckDB of this process."""

    def profiles(self, query: Query) -> pa.Table:
        """As :class:`Loaded` has it."""
        return read_profiles(self, self._spec_file, query)

    def rerun(self, query: RerunQuery) -> Rerun:
        """As :class:`Loaded` has it."""
        return query.rerun(self, self._spec_file)

    def counts(self, opened: OpenTabulation, cells: Mapping[int, Margin]) -> dict[int, Codes]:
        """As :class:`Loaded` has it."""
        return read_counts(self, self._spec_file, opened, cells)
