"""One query on its way down the street, as far as it has come. Confidential until drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from release.exact.domain import Codes
from release.exact.sampling import RandomBytes
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.statistic import Statistic
from release.noise.on_statistic import StatisticDesign
from release.noise.refusal import Made
from release.queries.base import Rerun
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


class NotReachedError(AttributeError):
    """What a stage adds is not there: it has not run, or was passed over."""


@dataclass(frozen=True, repr=False)
class AtWork:
    """One query, or one table that a tabulation measures, between the spec and the release.

    Each stage returns a new one with its own result: ``design``, ``answered``, and in ``moves`` how
    far neighbors move the answer, or the statistic that has the noise. Confidential, and gone after
    the draw; the representation shows nothing.
    """

    query: Query
    design: Made | None = None
    answered: Answered | None = None
    moves: Sensitivity | Statistic | None = None

    def __repr__(self) -> str:
        return "AtWork(confidential)"

    @property
    def made(self) -> Made:
        """The designed mechanism.

        Raises:
            NotReachedError: there is none.
        """
        if self.design is None:
            raise NotReachedError("no mechanism is designed")
        return self.design

    @property
    def contributed(self) -> Contributions | Rerun | None:
        """What the units contribute; nothing of a table that a tabulation measures.

        Raises:
            NotReachedError: it is not answered.
        """
        return reached(self.answered).contributed

    @property
    def codes(self) -> Codes:
        """The true answer codes.

        Raises:
            NotReachedError: there are none.
        """
        return reached(reached(self.answered).codes)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far neighbors move the answer.

        Raises:
            NotReachedError: the noise is on the statistic, or it is not known yet.
        """
        if not isinstance(self.moves, Sensitivity):
            raise NotReachedError("no sensitivity of an answer is known")
        return self.moves

    @property
    def statistic(self) -> Statistic:
        """The statistic that has the noise.

        Raises:
            NotReachedError: the noise is on the answer, or it is not known yet.
        """
        if not isinstance(self.moves, Statistic):
            raise NotReachedError("no statistic with noise is known")
        return self.moves

    def truths(self) -> Iterator[Codes]:
        """The integers that the noise is put on, a row for each cell, in blocks of cells.

        Raises:
            NotReachedError: a stage has not run.
        """
        from release.queries.contributions import Contributions, statistics_in_blocks

        if not self.query.is_on_statistic:
            yield self.codes.reshape(-1, 1)
            return
        if not isinstance(self.contributed, Contributions):
            raise TypeError("noise on the statistic needs sums")
        yield from statistics_in_blocks(self.contributed, self.query, self.statistic)

    def draw(self, source: RandomBytes) -> Codes:
        """Noisy answers, or statistics with noise: the first values that may leave."""
        if not isinstance(self.made, StatisticDesign):
            noisy: Codes = self.made.mechanism.draw(self.codes, source)
            return noisy
        mechanism = self.made.mechanism
        drawn = [mechanism.draw(block, source) for block in self.truths()]
        return np.concatenate([np.zeros((0, mechanism.outputs), dtype=np.int64), *drawn])


def reached(value: T | None) -> T:
    """The result of a stage that has run.

    Raises:
        NotReachedError: the stage has not run.
    """
    if value is None:
        raise NotReachedError("a stage of the street was left out")
    return value
