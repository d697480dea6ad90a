"""One query on its way down the street, as far as it has come. Confidential until drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from release.exact.domain import Codes
from release.exact.sampling import RandomBytes
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import StatisticMechanism
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.queries.base import Rerun
from release.queries.statistics import Statistic
from release.spec.query import Query

if TYPE_CHECKING:
    from release.queries.contributions import Contributions

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Answered:
    """Confidential: what the units contribute to one query, and its true answer codes.

    There are no codes where the noise is on the statistic, and nothing else of a table that a
    tabulation measures.
    """

    contributed: Contributions | Rerun | None
    codes: Codes | None

    def __repr__(self) -> str:
        return "Answered(confidential)"


@dataclass(frozen=True, repr=False)
class QueryRun:
    """One query on its way down the street; each stage returns a new one with its own result.

    Confidential until it is drawn: the draw takes ``answered`` away and adds ``noisy``, the first
    values that may leave. With noise on the statistic there is a ``statistic`` in place of a
    sensitivity. The representation shows nothing.
    """

    query: Query
    answered: Answered | None
    sensitivity: Sensitivity | None = None
    statistic: Statistic | None = None
    design: AnyDesign | StatisticDesign | None = None
    noisy: Codes | None = None

    def __repr__(self) -> str:
        return "QueryRun(confidential)"

    @property
    def made(self) -> AnyDesign | StatisticDesign:
        """The designed mechanism.

        Raises:
            TypeError: the stage has not run.
        """
        if self.design is None:
            raise TypeError("a stage of the street was left out")
        return self.design

    @property
    def codes(self) -> Codes:
        """The true answer codes."""
        return reached(reached(self.answered).codes)

    def drawn(self, source: RandomBytes) -> QueryRun:
        """The run with noisy answers and without the true ones."""
        design = self.made
        if isinstance(design, StatisticDesign):
            noisy = self._drawn_on_statistic(design.mechanism, source)
        else:
            noisy = design.mechanism.draw(self.codes, source)
        # The true answers go in the same step, so that no later stage can publish them.
        return replace(self, answered=None, noisy=noisy)

    def _drawn_on_statistic(self, mechanism: StatisticMechanism, source: RandomBytes) -> Codes:
        from release.queries.contributions import Contributions, statistics_in_blocks

        contributed = reached(self.answered).contributed
        if not isinstance(contributed, Contributions):
            raise TypeError("noise on the statistic needs sums")
        blocks = statistics_in_blocks(contributed, self.query, reached(self.statistic))
        drawn = [mechanism.draw(block, source) for block in blocks]
        return np.concatenate([np.zeros((0, mechanism.outputs), dtype=np.int64), *drawn])


def reached(value: T | None) -> T:
    """The result of a stage that has run.

    Raises:
        TypeError: the stage has not run.
    """
    if value is None:
        raise TypeError("a stage of the street was left out")
    return value
