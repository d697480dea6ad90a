"""The commoner of two categories where a neighboring table may hold another unit in one's place.

It is published by the gap of the two scores alone (:mod:`release.exact.statistics.gap_states`), and
has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes, draw_geometric, draw_odd, random_below_power
from release.exact.statistics.gap_states import check_lead, checked_scores
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    least_ratio,
    loss_above,
    near_power,
)
from release.exact.statistics.nearness import Nearness, Wording, nearness_of_one
from release.exact.statistics.statistic import Scores, Statistic


@dataclass(frozen=True)
class TwoCategories(StatisticMechanism):
    """The category of the smaller score is published with the least chance that privacy allows.

    With ρ = ``ratio``/2^64 and scores g apart that chance is ρ^(g/2)/2 for even g, and
    ρ^((g-1)/2)·ρ/(1+ρ) for odd g. It is ε-private where ρ·e^ε ≥ 1; with equality no ε-private rule
    has a smaller chance at any g.

    Raises:
        ValueError: a ratio that is not in 1 … 2^64 - 1.
    """

    family = "two_categories"

    ratio: int

    def __post_init__(self) -> None:
        if not 0 < self.ratio < RATIO_ONE:
            raise ValueError(f"the ratio must be in 1 … 2^64 - 1, not {self.ratio}")

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> TwoCategories:
        """As :meth:`StatisticMechanism.designed`."""
        Scores.checked(statistic)
        return cls(least_ratio(epsilon, 1))

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> TwoCategories:
        """As :meth:`StatisticMechanism.of_law`."""
        Scores.checked(statistic)
        return cls(law.ratio)

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.ratio)

    @property
    def inputs(self) -> int:
        """As :attr:`StatisticMechanism.inputs`: the two scores."""
        return 2

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`, for all scores and all their neighbors."""
        return loss_above(self.ratio) <= epsilon

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return "A choice between two categories by their gap, proved for one unit that is replaced"

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`."""
        return nearness_of_one(self.chance_of_leader, wording)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from scores of at least 0.

        Raises:
            ValueError: statistics that are not scores of two categories.
        """
        scores = checked_scores(statistics, 2)
        gaps = np.abs(scores[:, 0] - scores[:, 1])
        # All three are drawn for every cell: what a cell takes of the source tells no gap.
        reaches = draw_geometric(self.ratio, gaps.size, source) >= gaps // 2
        coin = random_below_power(1, gaps.size, source) == 1
        odd = draw_odd(self.ratio, gaps.size, source) == 1
        is_wrong = reaches & np.where(gaps % 2 == 0, coin, odd)
        leader = (scores[:, 1] > scores[:, 0]).astype(np.int64)
        return np.where(is_wrong, 1 - leader, leader)[:, np.newaxis]

    def chance_of_leader(self, lead: int) -> float:
        """The chance of a category that is ``lead`` above the other."""
        ratio = near_power(self.ratio, 1)
        of_odd = ratio / (1 + ratio) if lead % 2 else 0.5
        return 1 - near_power(self.ratio, lead // 2) * of_odd

    def error_at_lead(self, lead: int) -> Fraction:
        """The exact chance of the smaller score, ``lead`` ≥ 0 below the other; ½ for a tie.

        Raises:
            ValueError: a negative lead.
        """
        check_lead(lead)
        ratio = Fraction(self.ratio, RATIO_ONE)
        return ratio ** (lead // 2) * (ratio / (1 + ratio) if lead % 2 else Fraction(1, 2))
