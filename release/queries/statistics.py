"""Noise on the statistic: the integers that decide an answer, and how far a unit moves them.

Noise on the answer's code has to hide the answer of a large cell as much as that of a small one.
Noise on the integers before it, the counts of categories, ranks or sums, hides what one unit does
to them, which is as little in a large cell (docs/design/mathematics.md 2.24). It is the default
where the sensitivity is global. The noise on the code, as the papers have it, is ``on_answer``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from release.exact.domain import Codes
from release.exact.statistics.top_bounds import CountBounds
from release.exact.statistics.top_histogram import Published
from release.queries.base import Profiles, SummedQuery
from release.spec.declarations import Relation
from release.spec.guarantees import Source
from release.spec.query import Noise, PlainQuery

_MOST_IN_TABLES = 5
"""Candidates for which a gap table is made."""


@dataclass(frozen=True)
class Statistic(ABC):
    """The integers of a cell: how they follow from its sums, and how far neighbors move them.

    ``of`` takes sums of shape (cells, width) and gives integers of shape (cells, inputs); these are
    confidential, everything else is public.
    """

    inputs: int
    spread: int
    of: Callable[[Profiles], Codes] = field(compare=False, repr=False)

    @property
    @abstractmethod
    def families(self) -> tuple[str, ...]:
        """The mechanisms that can answer it, the best first."""


@dataclass(frozen=True)
class Scores(Statistic):
    """A score for each candidate; neighbors change all of them within a range of ``spread``.

    ``is_swap``: between neighbors one score at most falls, and one rises, each by 1.
    """

    is_swap: bool = False

    @property
    def families(self) -> tuple[str, ...]:
        """For few candidates that are swapped there are better ones than permute-and-flip.

        The exponential mechanism loses more at one charge, and less of a budget that many share.
        """
        always = ("permute_and_flip", "exponential_mechanism")
        if not self.is_swap or self.inputs > _MOST_IN_TABLES:
            return always
        few = "two_categories" if self.inputs == 2 else "gap_table"
        return (few, *always)


@dataclass(frozen=True)
class Sums(Statistic):
    """Sums; neighbors change them by at most ``spread`` together."""

    @property
    def families(self) -> tuple[str, ...]:
        """There is one."""
        return ("noisy_sums",)


@dataclass(frozen=True)
class Ranks(Statistic):
    """The rows at each candidate, for several quantiles; ``spread`` is that of their score.

    A unit has at most ``rows`` rows; ``replaces`` says whether neighbors replace it, or add or
    remove it. A cell has about ``total`` rows, as far as that is declared.
    """

    shares: tuple[Fraction, ...]
    rows: int
    replaces: bool
    total: int | None

    @property
    def families(self) -> tuple[str, ...]:
        """Two, of which declared sizes choose."""
        return ("joint_quantiles", "quantile_tree")


@dataclass(frozen=True)
class Counts(Statistic):
    """A count for each category; ``bounds`` say how far one unit moves them."""

    bounds: CountBounds
    members: int
    total: int | None
    published: Published

    @property
    def families(self) -> tuple[str, ...]:
        """The three of them; only a histogram has counts to publish."""
        if self.published is not Published.NONE:
            return ("top_histogram",)
        return ("top_histogram", "top_canonical", "top_peeled")


class OnStatisticQuery(PlainQuery, SummedQuery):
    """A query that can be answered with noise on its statistic."""

    has_answer_noise: ClassVar[bool] = True
    """Whether noise on the answer is a choice."""

    noise: Noise | None = Field(
        default=None,
        strict=False,
        description="`on_statistic`, the default under global sensitivity, or `on_answer`",
    )

    @property
    def is_on_statistic(self) -> bool:
        """Whether noise is added to the statistic; by default where the sensitivity is global."""
        if self.noise is None:
            return self.sensitivity is Source.GLOBAL
        return self.noise is Noise.ON_STATISTIC

    @property
    def scores_a_row(self) -> int | None:
        """What one row of distance in rank is in scores; None where scores are no ranks."""
        return None

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The quantiles that are asked for; none of other kinds."""
        return ()

    @property
    def count_columns(self) -> tuple[str, ...]:
        """The columns of noisy counts that are published beside the answers."""
        return ()

    @property
    def histogram_of(self) -> str | None:
        """The column whose values have a noisy count each; None where no histogram is published."""
        return None

    @property
    def in_units(self) -> dict[str, Any]:
        """The fields with which units are counted in place of rows; none where they are."""
        return {}

    def fields_on_statistic(self, rows: int) -> dict[str, Any]:
        """Further fields that noise on the statistic needs, where a unit has up to ``rows`` rows.

        Raises:
            ValueError: a bound is needed that nothing public suggests.
        """
        return {}

    @property
    def sum_bounds(self) -> tuple[int, int]:
        """The lowest and highest value a row counts as in its sums.

        Raises:
            TypeError: the statistic is no sum.
        """
        raise TypeError(f"{self.name} has no sums")

    def codes_of_numbers(self, numbers: NDArray[np.float64]) -> Codes:
        """The codes of statistics that a reader has computed, in the unit of the sums.

        Raises:
            TypeError: the statistic is no sum.
        """
        raise TypeError(f"{self.name} has no sums")

    @property
    def rank_condition(self) -> str:
        """In which cells a rank can be found at all, as the beginning of a sentence."""
        return ""

    @property
    def counted_word(self) -> str:
        """What the scores count, in the plural."""
        return "rows"

    @abstractmethod
    def statistic(self, rows: int, relation: Relation) -> Statistic:
        """The integers that decide the answer, where a unit has at most ``rows`` rows in a cell."""

    @model_validator(mode="after")
    def _check_noise(self) -> OnStatisticQuery:
        if self.noise is Noise.ON_STATISTIC and self.sensitivity is not Source.GLOBAL:
            raise ValueError(
                "noise: on_statistic is proved for every table; write sensitivity: global"
            )
        return self


def doubled_unless_added(range_of_a_unit: int, relation: Relation) -> int:
    """The range in which neighbors move what one unit moves within a range: one may leave too."""
    return range_of_a_unit if relation is Relation.ADD_REMOVE else 2 * range_of_a_unit


def rank_scores(below: Codes, at: Codes, share: Fraction) -> Codes:
    """How far each candidate lies from the quantile ``share`` = a/b, as scores of at most 0.

    ``below`` and ``at`` have shape (cells, candidates): the rows below each candidate, and at it.
    A candidate with L rows below it and E at it, of N, lies max(0, b·L - a·N, a·N - b·(L + E)) off.
    """
    a, b = share.numerator, share.denominator
    rows = below[:, -1:] + at[:, -1:]
    over, under = b * below - a * rows, a * rows - b * (below + at)
    return np.asarray(-np.maximum(0, np.maximum(over, under)), dtype=np.int64)


def rank_spread(share: Fraction, rows: int, relation: Relation) -> int:
    """The range in which a unit of at most ``rows`` rows changes :func:`rank_scores`."""
    # A row that comes in moves a score by at most max(a, b - a) either way; one that is replaced
    # moves L + E or L by one at the same N, and so the score by b.
    a, b = share.numerator, share.denominator
    return 2 * rows * (max(a, b - a) if relation is Relation.ADD_REMOVE else b)


def place_scores(below: Codes, at: Codes, place: int) -> Codes:
    """How far each candidate lies from the ``place``-th row from below, as scores of at most 0."""
    return np.asarray(
        -np.maximum(0, np.maximum(below - (place - 1), place - (below + at))), dtype=np.int64
    )


def place_spread(rows: int) -> int:
    """The range in which a unit of at most ``rows`` rows changes :func:`place_scores`."""
    return 2 * rows
