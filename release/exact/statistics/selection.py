"""A selection: of public candidates one, by integer scores that neighbors change within a range.

What the selections have in common. Each accepts a candidate by its gap, how far its score lies
below the best, with chances that are powers of a ratio ρ.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    is_private,
    least_ratio,
)
from release.exact.statistics.nearness import Nearness, Wording, nearness_of_one
from release.exact.statistics.statistic import Scores, Statistic

_ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Selection(StatisticMechanism):
    """``ratio`` is ρ in units of 2^-64; neighbors change scores within a range of ``spread``.

    Raises:
        ValueError: fewer than two candidates, a spread below 1, or a ratio not between 0 and 1.
    """

    how: ClassVar[str]
    """By what a candidate is chosen."""

    candidates: int
    spread: int
    ratio: int

    def __post_init__(self) -> None:
        if self.candidates < 2 or self.spread < 1 or not 0 < self.ratio < RATIO_ONE:
            raise ValueError(
                "a selection needs two candidates, a spread of 1 or more and a ratio below 1"
            )

    @classmethod
    def fitted(cls, epsilon: Fraction, candidates: int, spread: int) -> Self:
        """The one of least noise that is ``epsilon``-private.

        Raises:
            ValueError: there is none in 64 bits.
        """
        return cls(candidates, spread, least_ratio(epsilon, spread))

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> Self:
        """As :meth:`StatisticMechanism.designed`."""
        scores = Scores.checked(statistic)
        return cls.fitted(epsilon, scores.inputs, scores.spread)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> Self:
        """As :meth:`StatisticMechanism.of_law`."""
        scores = Scores.checked(statistic)
        return cls(scores.inputs, scores.spread, law.ratio)

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.ratio)

    @property
    def inputs(self) -> int:
        """The scores."""
        return self.candidates

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`: ρ^spread·e^ε is at least 1."""
        return is_private(self.ratio, self.spread, epsilon)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`: ln(1/ρ) for each step of a range."""
        return self.satisfies(epsilon)

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return (
            f"A selection among {self.candidates} candidates by {self.how}, proved for scores "
            f"that one unit moves within a range of {self.spread}"
        )

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`."""
        return nearness_of_one(self.chance_of_leader, wording)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`; ``statistics`` are scores."""
        drawn = np.empty((len(statistics), 1), dtype=np.int64)
        step = max(1, _ENTRIES_AT_ONCE // self.candidates)
        for start in range(0, len(statistics), step):
            scores = statistics[start : start + step]
            gaps = scores.max(axis=1, keepdims=True) - scores
            drawn[start : start + step, 0] = self.drawn(gaps, source)
        return drawn

    @abstractmethod
    def drawn(self, gaps: Codes, source: RandomBytes) -> Codes:
        """One candidate of each cell, from gaps of shape (cells, candidates); shape (cells,)."""

    @abstractmethod
    def chances(self, scores: Codes) -> list[Fraction]:
        """The exact chance of each candidate."""

    @abstractmethod
    def chance_of_leader(self, lead: int) -> float:
        """The chance to publish a candidate that leads all others, which tie, by ``lead``.

        Rounded. No other scores with this lead make the leader less likely.
        """
