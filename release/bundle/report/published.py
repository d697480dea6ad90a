"""The public part of a query, from which the report is made."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_release_verify import forms
from release.bundle.figures import Figures
from release.bundle.files.laws import AnyMechanism
from release.exact.domain import Codes
from release.exact.mechanism import Mechanism
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.nearness import Nearness
from release.queries.on_statistic import OnStatisticQuery
from release.spec.query import Query


@dataclass(frozen=True)
class PublicQuery:
    """The public part of one query.

    ``outcomes`` is what was drawn, shape (cells, columns). ``mechanism`` is None where it depends
    on the table; ``figures`` say how one on answers was found. ``compared`` is the expected loss of
    each mechanism, where several were compared. ``rests_on`` is the assumption about its SQL.
    ``bounded`` says of which rows its answers are, ``shared`` why its cells do not add up.
    """

    query: Query
    made: forms.MadeQuery
    family: str
    keys: tuple[tuple[str, ...], ...]
    outcomes: Codes
    mechanism: AnyMechanism | None
    figures: Figures | None = None
    compared: tuple[tuple[str, Fraction], ...] = ()
    rests_on: str | None = None
    bounded: str = ""
    shared: str = ""

    @property
    def on_answers(self) -> Mechanism | None:
        """The mechanism, where it is public and its noise is on the answer."""
        return None if isinstance(self.mechanism, StatisticMechanism) else self.mechanism

    @property
    def on_statistic(self) -> StatisticMechanism | None:
        """The mechanism, where its noise is on the statistic."""
        return self.mechanism if isinstance(self.mechanism, StatisticMechanism) else None

    @property
    def nearness(self) -> Nearness | None:
        """How near the answers are, where the noise is on the statistic."""
        if self.on_statistic is None or not isinstance(self.query, OnStatisticQuery):
            return None
        return self.on_statistic.nearness(self.query.wording)
