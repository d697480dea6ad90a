"""The files of mechanisms on statistics: the integers of the rule, and how far a unit moves it.

They share the name of their schema with the files of mechanisms on answers: ``mechanism`` tells one
family from the other (docs/design/format.md).
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from release.exact.numbers import format_exact
from release.exact.privacy import Deltas
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.gap_table import GapTable, TwoCategories
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.quantile_tree import QuantileTree
from release.exact.statistics.selection import Selection
from release.exact.statistics.sums import NoisySums
from release.records.mechanisms import AnyMechanismRecord, NoiseRecord
from release.records.models import Digits, Exact


class StatisticRecord(AnyMechanismRecord):
    """What the files of all families on statistics have in common."""

    theorem: ClassVar[str]
    """Why the rule is private, for the findings of a verifier."""

    # A verifier derives it anew from the spec: a file with a smaller one would claim too little.
    spread: int = Field(ge=1, description="the range in which neighbors move the statistic")

    @property
    def deltas(self) -> Deltas:
        """The guarantee is pure."""
        # Also where the spec allows a δ: that δ is not used, and not charged.
        return Deltas(Fraction(0), Fraction(0))

    @property
    def loses_in_proportion(self) -> bool:
        """As :attr:`AnyMechanismRecord.loses_in_proportion`."""
        return self.to_mechanism().loses_in_proportion(Fraction(self.guarantee.epsilon))

    @abstractmethod
    def to_mechanism(self) -> StatisticMechanism:
        """The exact mechanism.

        Raises:
            ValueError, OverflowError: the integers are no mechanism.
        """

    @classmethod
    @abstractmethod
    def own_fields(cls, mechanism: Any) -> dict[str, Any]:
        """The fields that the family adds; ``mechanism`` is one of its mechanisms."""


class SelectionRecord(StatisticRecord):
    """What the files of selections by their scores have in common."""

    candidates: int = Field(ge=2, description="how many candidates there are")

    @classmethod
    def own_fields(cls, mechanism: Selection) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {
            "candidates": mechanism.candidates,
            "spread": mechanism.spread,
            "ratio": str(mechanism.ratio),
        }


class PermuteAndFlipRecord(SelectionRecord):
    """A selection by permute-and-flip: the ratio by which a lower score is accepted."""

    theorem = (
        "permute-and-flip (McKenna and Sheldon 2020): scores move within a range of {spread}, and "
        "ratio^{spread} · e^ε is at least 1"
    )

    mechanism: Literal["permute_and_flip"] = Field(description="a selection by permute-and-flip")
    ratio: Digits = Field(
        description="what a candidate's chance to be accepted is multiplied by for each unit that "
        "its score lies below the best, in units of 2^-64"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return (
            f"A selection among {self.candidates} candidates by permute-and-flip, proved for "
            f"scores that one unit moves within a range of {self.spread}"
        )

    def to_mechanism(self) -> PermuteAndFlip:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return PermuteAndFlip(self.candidates, self.spread, int(self.ratio))


class ExponentialMechanismRecord(SelectionRecord):
    """A selection by the exponential mechanism: the ratio of the weights of scores one apart."""

    theorem = (
        "the exponential mechanism (McSherry and Talwar 2007): scores move within a range of "
        "{spread}, and ratio^{spread} · e^ε is at least 1"
    )

    mechanism: Literal["exponential_mechanism"] = Field(
        description="a selection by the exponential mechanism"
    )
    ratio: Digits = Field(
        description="what a candidate's weight is multiplied by for each unit that its score lies "
        "below the best, in units of 2^-64"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return (
            f"A selection among {self.candidates} candidates by the exponential mechanism, proved "
            f"for scores that one unit moves within a range of {self.spread}"
        )

    def to_mechanism(self) -> ExponentialMechanism:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return ExponentialMechanism(self.candidates, self.spread, int(self.ratio))


class TwoCategoriesRecord(StatisticRecord):
    """The rule of least error for two categories that units are swapped between."""

    # The proof holds for this spread alone: a unit counts once, and one count falls as one rises.

    theorem = (
        "the rule of two categories: a unit moves the gap by {spread} at most, and ratio · e^ε is "
        "at least 1"
    )

    mechanism: Literal["two_categories"] = Field(description="the rule of two categories")
    spread: Literal[2] = Field(description="the range in which neighbors move the counts")
    ratio: Digits = Field(
        description="by how much the chance of the rarer category falls for each two units that it "
        "lies behind, in units of 2^-64"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return "A choice between two categories by their gap, proved for one unit that is replaced"

    def to_mechanism(self) -> TwoCategories:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return TwoCategories(int(self.ratio))

    @classmethod
    def own_fields(cls, mechanism: TwoCategories) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {"spread": 2, "ratio": str(mechanism.ratio)}


class GapTableRecord(StatisticRecord):
    """The chances of few categories by their gaps."""

    theorem = (
        "a table of chances by gaps, compared pair by pair for every way in which one unit is "
        "replaced, leaves or comes"
    )

    mechanism: Literal["gap_table"] = Field(description="a table of chances by gaps")
    spread: Literal[2] = Field(description="the range in which neighbors move the counts")
    categories: int = Field(ge=2, le=6, description="how many categories there are")
    cap: int = Field(ge=1, description="the largest gap; larger ones count as this")
    weights: list[list[Digits]] = Field(
        description="the weights of the categories by ascending gap, for each list of gaps in "
        "lexicographic order"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return (
            f"A choice among {self.categories} categories by their gaps up to {self.cap}, proved "
            "for one unit that is replaced"
        )

    def to_mechanism(self) -> GapTable:
        """As :meth:`StatisticRecord.to_mechanism`."""
        rows = [list(map(int, row)) for row in self.weights]
        # A weight beyond 64 bits raises OverflowError here: as good a refusal as any.
        return GapTable(self.categories, self.cap, np.array(rows, dtype=np.int64))

    @classmethod
    def own_fields(cls, mechanism: GapTable) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {
            "spread": 2,
            "categories": mechanism.categories,
            "cap": mechanism.cap,
            "weights": mechanism.weights.astype(str).tolist(),
        }


class JointQuantilesRecord(StatisticRecord):
    """Several quantiles, drawn together."""

    theorem = (
        "quantiles drawn together by their ranks (Gillenwater, Joseph and Kulesza 2021): a unit "
        "moves the score of any of them by {spread} at most, however many they are"
    )

    mechanism: Literal["joint_quantiles"] = Field(description="several quantiles, drawn together")
    candidates: int = Field(ge=2, description="how many points or bins there are")
    shares: list[Exact] = Field(min_length=1, description="the quantiles, ascending")
    # A candidate's rows are spread over so many: ``ratio`` is per step of a sub-level.
    sublevels: int = Field(ge=1, description="the positions that a candidate has among its ties")
    ratio: Digits = Field(
        description="what a chance is multiplied by for each step of the score, in units of 2^-64"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return (
            f"{len(self.shares)} quantiles on {self.candidates} points, drawn together, proved for "
            f"scores that one unit moves by up to {self.spread}"
        )

    def to_mechanism(self) -> JointQuantiles:
        """As :meth:`StatisticRecord.to_mechanism`."""
        shares = tuple(map(Fraction, self.shares))
        return JointQuantiles(self.candidates, shares, self.spread, int(self.ratio), self.sublevels)

    @classmethod
    def own_fields(cls, mechanism: JointQuantiles) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {
            "spread": mechanism.spread,
            "candidates": mechanism.candidates,
            "shares": list(map(format_exact, mechanism.shares)),
            "sublevels": mechanism.sublevels,
            "ratio": str(mechanism.ratio),
        }


class QuantileTreeRecord(StatisticRecord):
    """Several quantiles, read off noisy counts."""

    theorem = (
        "geometric noise on the rows at each point, and of each block of points if there are any: "
        "a unit has some rows, or has them replaced, and the powers of the ratio for all noisy "
        "counts that they are in, times e^ε, are at least 1"
    )

    mechanism: Literal["quantile_tree"] = Field(description="several quantiles of noisy counts")
    candidates: int = Field(ge=2, description="how many points or bins there are")
    shares: list[Exact] = Field(min_length=1, description="the quantiles, ascending")
    rows: int = Field(ge=1, description="the most rows of a unit")
    replaced: bool = Field(description="whether neighbors replace a unit, or add or remove one")
    block: int = Field(
        ge=1, description="how many points have a noisy count together; 1 for none but their own"
    )
    ratio: Digits = Field(
        description="by how much neighboring masses of the noise differ, in units of 2^-64"
    )

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        blocks = f" and of blocks of {self.block}" if self.block > 1 else ""
        return (
            f"{len(self.shares)} quantiles read off noisy counts of {self.candidates} points"
            f"{blocks}, proved for units of up to {self.rows} rows"
        )

    def to_mechanism(self) -> QuantileTree:
        """As :meth:`StatisticRecord.to_mechanism`."""
        shares = tuple(map(Fraction, self.shares))
        unit = self.rows, self.replaced
        return QuantileTree(self.candidates, shares, *unit, self.block, int(self.ratio))

    @classmethod
    def own_fields(cls, mechanism: QuantileTree) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {
            "spread": mechanism.spread,
            "candidates": mechanism.candidates,
            "shares": list(map(format_exact, mechanism.shares)),
            "rows": mechanism.rows,
            "replaced": mechanism.is_replaced,
            "block": mechanism.block,
            "ratio": str(mechanism.ratio),
        }


class NoisySumsRecord(StatisticRecord):
    """Independent noise on one sum, or on several."""

    theorem = (
        "noise on sums: a unit moves them by {spread} together, and the noise loses at most ε over "
        "so many steps"
    )

    mechanism: Literal["noisy_sums"] = Field(description="noise on sums")
    sums: int = Field(ge=1, le=2, description="how many sums of a cell there are")
    noise: NoiseRecord = Field(description="the noise on each")

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        what = "the sum" if self.sums == 1 else f"each of {self.sums} sums"
        return (
            f"Noise on {what} of a cell, proved for units that move them by {self.spread} together"
        )

    def to_mechanism(self) -> NoisySums:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return NoisySums(self.noise.to_noise(), self.sums, self.spread)

    @classmethod
    def own_fields(cls, mechanism: NoisySums) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return {
            "sums": mechanism.sums,
            "spread": mechanism.spread,
            "noise": NoiseRecord.of(mechanism.noise),
        }
