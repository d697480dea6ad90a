"""The integers of a cell that decide an answer, and how far neighboring tables move them.

Noise on the answer's code has to hide the answer of a large cell as much as that of a small one.
Noise on the integers before it, the counts of categories, ranks or sums, hides what one unit does
to them, which is as little in a large cell (docs/design/mathematics.md 2.24).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from release.exact.domain import Codes
from release.exact.statistics.top.bounds import CountBounds, Published

_MOST_IN_TABLES = 5
"""Candidates for which a gap table is made."""


@dataclass(frozen=True)
class Statistic(ABC):
    """The integers of a cell: how they follow from its sums, and how far neighbors move them.

    ``of`` takes sums of shape (cells, width) and gives integers of shape (cells, inputs); these are
    confidential, everything else is public. ``spread`` is how far neighbors move them; each kind
    says in which sense.
    """

    inputs: int
    spread: int
    of: Callable[[Codes], Codes] = field(compare=False, repr=False)

    @property
    @abstractmethod
    def families(self) -> tuple[str, ...]:
        """The mechanisms that can answer it, the best first where no declared size decides."""

    @classmethod
    def checked(cls, statistic: Statistic) -> Self:
        """``statistic``, which a mechanism can answer only if it is of this class.

        Raises:
            TypeError: it is of another.
        """
        if not isinstance(statistic, cls):
            raise TypeError(f"these are {type(statistic).__name__}, not {cls.__name__}")
        return statistic


@dataclass(frozen=True)
class Scores(Statistic):
    """A score for each candidate; neighbors change all of them within a range of ``spread``.

    ``is_swap``: between neighbors one score at most falls, and one rises, each by 1.
    """

    is_swap: bool = False

    @property
    def families(self) -> tuple[str, ...]:
        """For few candidates between which units move there are better ones than permute-and-flip.

        The exponential mechanism errs more at one charge, and takes less of a budget that many
        share.
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
    """A count for each category; ``bounds`` say how far one unit moves them.

    Published are ``members`` of the categories, and beside them the noisy counts that ``published``
    names. The counts of a cell add up to about ``total``, as far as that is declared.
    """

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
