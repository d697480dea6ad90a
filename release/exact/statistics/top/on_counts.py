"""What peeling and the draw of a whole set have in common: several categories by one ratio."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dp_release_verify import forms
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    is_private,
    least_ratio,
)
from release.exact.statistics.nearness import Nearness, Wording, nearness_of_members
from release.exact.statistics.statistic import Counts, Statistic
from release.exact.statistics.top.bounds import CountBounds, check_members


@dataclass(frozen=True)
class OnCounts(StatisticMechanism):
    """Publishes ``members`` categories; chances of neighbors differ by at most ρ^-spread.

    ρ is ``ratio``/2^64.

    Raises:
        ValueError: no category or all of them are published, or the ratio is not between 0 and 1.
    """

    bounds: CountBounds
    members: int
    ratio: int

    def __post_init__(self) -> None:
        check_members(self.bounds, self.members)
        if not 0 < self.ratio < RATIO_ONE:
            raise ValueError("a choice by counts needs a ratio between 0 and 1")

    @classmethod
    def fitted(cls, epsilon: Fraction, bounds: CountBounds, members: int) -> Self:
        """The one that decides best among those proved for ε.

        Raises:
            ValueError: ε is too small for 64 bits, or as for the class.
        """
        return cls(bounds, members, least_ratio(epsilon, cls.spread_of(bounds, members)))

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> Self:
        """As :meth:`StatisticMechanism.designed`."""
        counts = Counts.checked(statistic)
        return cls.fitted(epsilon, counts.bounds, counts.members)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> Self:
        """As :meth:`StatisticMechanism.of_law`."""
        counts = Counts.checked(statistic)
        return cls(counts.bounds, counts.members, law.ratio)

    @staticmethod
    @abstractmethod
    def spread_of(bounds: CountBounds, members: int) -> int:
        """By how many powers of the ratio neighbors' chances differ at most."""

    @property
    def spread(self) -> int:
        """As :meth:`spread_of`."""
        return self.spread_of(self.bounds, self.members)

    @property
    def inputs(self) -> int:
        """One count for each category."""
        return self.bounds.categories

    @property
    def outputs(self) -> int:
        """One code for each member."""
        return self.members

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.ratio)

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether ρ^spread·e^ε ≥ 1."""
        return is_private(self.ratio, self.spread, epsilon)

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`."""
        return nearness_of_members(self.members, self.chance_of_all, wording)

    @abstractmethod
    def chance_of_all(self, lead: int) -> float:
        """A lower bound of the chance that all members are published.

        Each leads every category that is no member by ``lead``. Rounded; it may be below 0.
        """
