"""The public part of a query, from which the report is made."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from release.exact.domain import Codes
from release.queries.nearness import Nearness, nearness_of
from release.queries.on_statistic import OnStatisticQuery
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import QueryRecord
from release.records.statistics import StatisticRecord
from release.spec.query import Query


@dataclass(frozen=True)
class PublicQuery:
    """The public part of one query.

    ``outcomes`` is what was drawn, shape (cells, columns). ``mechanism`` is None where it depends
    on the table. ``compared`` is the expected loss of each
    mechanism, where several were compared. ``rests_on`` is the assumption about its SQL.
    ``bounded`` says of which rows its answers are, ``shared`` why its cells do not add up.
    """

    query: Query
    record: QueryRecord
    keys: tuple[tuple[str, ...], ...]
    outcomes: Codes
    mechanism: AnyMechanismRecord | None
    compared: tuple[tuple[str, Fraction], ...] = ()
    rests_on: str | None = None
    bounded: str = ""
    shared: str = ""

    @property
    def on_answers(self) -> MechanismRecord | None:
        """The mechanism, where it is public and its noise is on the answer."""
        return self.mechanism if isinstance(self.mechanism, MechanismRecord) else None

    @property
    def nearness(self) -> Nearness | None:
        """How near the answers are, where the noise is on the statistic."""
        if not isinstance(self.mechanism, StatisticRecord):
            return None
        if not isinstance(self.query, OnStatisticQuery):
            return None
        return nearness_of(self.query, self.mechanism.to_mechanism())
