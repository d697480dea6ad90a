"""Selections among scores, of which the worst loss is a number of units times ln(1/ρ)."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from math import comb
from typing import ClassVar

from dp_release_verify import forms
from dp_release_verify.canonical import loss_of
from dp_release_verify.losses import Profile, worst_case
from dp_release_verify.mechanisms.base import Deltas, Mechanism, not_this_question
from dp_release_verify.mechanisms.noise import UNIT
from dp_release_verify.reach import Reach

SUBLEVELS = 256
"""In how many parts a gap between two answers is divided, of several quantiles drawn jointly."""


MOST_WEIGHTS = 2**20


class RatioSelection(Mechanism):
    """A selection with one parameter, ρ = ratio/2^64."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    """The kinds of questions that it can answer."""

    IN_PROPORTION: ClassVar[bool] = False
    IN_RANGE: ClassVar[bool] = False
    """Whether its losses lie within an interval of length ε."""

    def __init__(
        self,
        file: str,
        law: forms.RatioLaw | forms.TreeLaw,
        reach: Reach,
        found: forms.Found | None = None,
    ) -> None:
        super().__init__(file, law, reach, found)
        question = reach.question
        if question.kind not in self.KINDS or not question.on_statistic:
            raise not_this_question(file, law.family)
        named = question.query.mechanism
        self.need(named in (None, law.family), "family", law.family, named)
        self.family = law.family
        self.ratio = law.ratio
        self.rows = reach.rows
        self.ways = question.neighbors.ways
        self.spread = reach.spread(self.rows, self.ways)

    def check(self) -> None:
        """ρ is between 0 and 1."""
        self.need(1 <= self.ratio < UNIT, "ratio", self.ratio, "from 1 to 2^64 - 1")

    @property
    @abstractmethod
    def units(self) -> int:
        """How many times ln(1/ρ) one unit of the table can cost."""

    def deltas(self, epsilon: Fraction) -> Deltas:
        """What it keeps: nothing below its worst loss, all from there on."""
        is_kept = self.ratio > 0 and self.units * loss_of(self.ratio) <= epsilon
        return Deltas(Fraction(not is_kept), Fraction(not is_kept))

    def exact_cell(self, far: int, step: Fraction, epsilon: Fraction) -> Profile | None:
        """The worst case of its ε."""
        return worst_case(epsilon, Fraction(0), step, in_range=self.IN_RANGE)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """Whether a part of the change loses the same part of ε."""
        return self.IN_PROPORTION


class OfScores(RatioSelection):
    """A choice by scores, whose range the spread bounds."""

    KINDS = ("mode", "median", "min", "max", "quantiles")
    IN_PROPORTION = True

    def check(self) -> None:
        """It answers one question, not several quantiles."""
        super().check()
        number = len(self.reach.question.shares)
        self.need(number == 1, "family", self.family, "one of several quantiles")

    @property
    def units(self) -> int:
        """The spread of the scores."""
        return self.spread


class PermuteAndFlip(OfScores):
    """Permute-and-flip (McKenna and Sheldon 2020)."""


class ExponentialMechanism(OfScores):
    """The exponential mechanism (McSherry and Talwar 2007)."""

    IN_RANGE = True


class TwoCategories(RatioSelection):
    """Of two categories: the lead of one over the other."""

    KINDS = ("mode",)

    def check(self) -> None:
        """One unit has one vote among two."""
        super().check()
        check_votes(self, 2)

    @property
    def units(self) -> int:
        """A unit that changes its vote moves the lead by one step of the table."""
        return 1


def check_votes(mechanism: Mechanism, most: int) -> None:
    """One unit has one vote, which it may change, among so many categories.

    Raises:
        Refused: it has another.
    """
    reach = mechanism.reach
    query, size = reach.question.query, reach.question.size
    is_vote = reach.rows == 1 and reach.question.neighbors.ways == 2
    is_weighed = isinstance(query, forms.Mode) and query.weight is not None
    if is_weighed:
        is_vote = is_vote and reach.question.clamp == (0, 1)
    mechanism.need(is_vote and 2 <= size <= most, "family", size, f"one vote, {most} categories")


class OfTop(RatioSelection):
    """The k largest of the scores of all categories."""

    KINDS = ("top",)

    def __init__(
        self, file: str, law: forms.RatioLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        query = reach.question.query
        if not isinstance(query, forms.Top):
            raise not_this_question(file, law.family)
        self.members = query.k
        self.shows_counts = query.counts or query.histogram
        self.weight = reach.weight(self.rows)
        self.touched = reach.categories_touched(self.rows)


class TopHistogram(OfTop):
    """The k largest of noisy counts of all categories."""

    IN_PROPORTION = True

    @property
    def units(self) -> int:
        """All that one unit moves, in all counts together."""
        return self.spread


class TopSelection(OfTop):
    """A selection of k categories, which publishes no counts."""

    def check(self) -> None:
        """No counts are asked for."""
        super().check()
        self.need(not self.shows_counts, "family", self.family, "top_histogram, which has counts")


class TopCanonical(TopSelection):
    """The k categories at once (docs/design/top-k.md)."""

    def check(self) -> None:
        """ρ is between 0 and 1, and the weights of all losses are few."""
        super().check()
        sets = comb(self.reach.question.size, self.members)
        bits = 64 + sets.bit_length() + (-(-UNIT // (UNIT - self.ratio))).bit_length()
        # Weights fall from 2^bits by ρ until they do not change any more.
        right = bits * loss_of(UNIT // 2) <= MOST_WEIGHTS * loss_of(self.ratio)
        self.need(right, "ratio", self.ratio, f"at most {MOST_WEIGHTS} weights")

    @property
    def units(self) -> int:
        """Twice the weight, unless one category alone can come in or go out."""
        is_single = 1 in (self.touched, self.members, self.reach.question.size - self.members)
        return self.ways * self.weight * (1 if is_single else 2)


class TopPeeled(TopSelection):
    """One category after the other."""

    @property
    def units(self) -> int:
        """The weight for each of the k selections."""
        return self.ways * self.weight * self.members


class OfQuantiles(RatioSelection):
    """Several quantiles together."""

    KINDS = ("quantiles",)
    IN_PROPORTION = True

    def check(self) -> None:
        """It answers several quantiles."""
        super().check()
        number = len(self.reach.question.shares)
        self.need(number > 1, "family", self.family, "one of a single quantile")


class JointQuantiles(OfQuantiles):
    """All quantiles in one draw (docs/design/quantiles-proof.md)."""

    @property
    def units(self) -> int:
        """The spread of the ranks, in parts of a gap."""
        return 4 * SUBLEVELS * self.spread


class QuantileTree(OfQuantiles):
    """Noisy counts of a tree of answers, whose leaves are blocks."""

    def __init__(
        self, file: str, law: forms.TreeLaw, reach: Reach, found: forms.Found | None = None
    ) -> None:
        super().__init__(file, law, reach, found)
        self.block = law.block

    @property
    def units(self) -> int:
        """The rows of a unit, in one level of counts or, above blocks of several answers, two."""
        return self.ways * self.rows * (1 if self.block == 1 else 2)
