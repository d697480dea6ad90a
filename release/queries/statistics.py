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

import numpy as np

from release.exact.domain import Codes
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.histogram import Published
from release.queries.base import Profiles
from release.spec.declarations import Relation

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
