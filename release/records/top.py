"""The files of the mechanisms that publish the k commonest categories."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

from pydantic import Field

from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.top.bounds import CountBounds, OnCounts
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop, NoisyHistogram, Published
from release.exact.statistics.top.peeled import PeeledTop
from release.records.models import Digits
from release.records.statistics import StatisticRecord


class TopRecord(StatisticRecord):
    """What the three have in common: how far a unit moves the counts, and one ratio."""

    categories: int = Field(ge=2, description="how many categories there are")
    members: int = Field(ge=1, description="how many are published")
    touched: int = Field(ge=1, description="in how many categories a unit can be")
    weight: int = Field(ge=1, description="the most that a unit adds to a category")
    # Part of the proof: a unit that is replaced changes counts both ways, and twice as many.
    replaced: bool = Field(description="whether neighbors replace a unit, or add or remove one")
    ratio: Digits = Field(
        description="what the chance of a worse outcome is multiplied by for each step, in units "
        "of 2^-64"
    )

    @property
    def bounds(self) -> CountBounds:
        """How far a unit moves the counts.

        Raises:
            ValueError: the integers do not fit together.
        """
        return CountBounds(self.categories, self.touched, self.weight, self.replaced)

    @property
    def what(self) -> str:
        """The end of each sentence."""
        return (
            f"of {self.categories} categories, proved for units that move their counts by "
            f"{self.spread} together"
        )

    @abstractmethod
    def to_mechanism(self) -> StatisticMechanism:
        """As :meth:`StatisticRecord.to_mechanism`."""

    @classmethod
    def own_fields(cls, mechanism: Any) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        return cls.common_fields(mechanism, mechanism.members)

    @staticmethod
    def common_fields(mechanism: OnCounts, members: int) -> dict[str, Any]:
        """The fields that all three have."""
        bounds = mechanism.bounds
        # The spread of the file is that of the statistic; a family proves its own range by it.
        return {
            "spread": bounds.norm,
            "categories": bounds.categories,
            "members": members,
            "touched": bounds.touched,
            "weight": bounds.weight,
            "replaced": bounds.is_replaced,
            "ratio": str(mechanism.ratio),
        }


class HistogramTopRecord(TopRecord):
    """The largest of noisy counts."""

    theorem = (
        "geometric noise on all counts: a unit moves them by {spread} together, and "
        "ratio^{spread} · e^ε is at least 1"
    )

    mechanism: Literal["top_histogram"] = Field(description="the largest of noisy counts")
    # Free of charge: the noisy counts satisfy the guarantee, and the choice is a function of them.
    counts: bool = Field(description="whether the noisy counts of the members are published too")
    histogram: bool = Field(description="whether the noisy counts of all categories are published")

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return f"The {self.members} largest noisy counts {self.what}"

    def to_mechanism(self) -> HistogramTop:
        """As :meth:`StatisticRecord.to_mechanism`."""
        histogram = NoisyHistogram(self.bounds, int(self.ratio))
        if self.counts and self.histogram:
            raise ValueError("noisy counts are those of the members or of all categories")
        members = Published.MEMBERS if self.counts else Published.NONE
        return HistogramTop(histogram, self.members, Published.ALL if self.histogram else members)

    @classmethod
    def own_fields(cls, mechanism: HistogramTop) -> dict[str, Any]:
        """As :meth:`StatisticRecord.own_fields`."""
        common = cls.common_fields(mechanism.histogram, mechanism.members)
        return {
            **common,
            "counts": mechanism.counts is Published.MEMBERS,
            "histogram": mechanism.counts is Published.ALL,
        }


class CanonicalTopRecord(TopRecord):
    """One draw from all sets, by the canonical loss."""

    theorem = (
        "one draw from all sets by how far the largest category outside exceeds the least inside; "
        "the range of that loss follows from how a unit moves the counts"
    )

    mechanism: Literal["top_canonical"] = Field(description="one draw from all sets")

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return f"One draw from all sets of {self.members} {self.what}"

    def to_mechanism(self) -> CanonicalTop:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return CanonicalTop(self.bounds, self.members, int(self.ratio))


class PeeledTopRecord(TopRecord):
    """One selection after the other."""

    # Each draws from the categories that are left, in view of those before: basic composition.
    theorem = (
        "so many selections by permute-and-flip (McKenna and Sheldon 2020), each with its share "
        "of ε"
    )

    mechanism: Literal["top_peeled"] = Field(description="one selection after the other")

    @property
    def sentence(self) -> str:
        """As :attr:`AnyMechanismRecord.sentence`."""
        return f"{self.members} selections, one after the other, {self.what}"

    def to_mechanism(self) -> PeeledTop:
        """As :meth:`StatisticRecord.to_mechanism`."""
        return PeeledTop(self.bounds, self.members, int(self.ratio))
