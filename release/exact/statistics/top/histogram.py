"""The k commonest categories read off a noisy histogram.

Every count gets two-sided geometric noise and all noisy counts are published. Whoever reads them
may take the largest of them, whatever k is: one charge pays for every question about them. Where a
unit counts in one category this misses fewer members than k selections that share the charge.
The noise is from Ghosh, Roughgarden and Sundararajan 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    is_private,
    least_ratio,
)
from release.exact.statistics.nearness import LEVEL, Nearness, Wording, nearness_of_members
from release.exact.statistics.statistic import Counts, Statistic
from release.exact.statistics.sums import geometric_noise
from release.exact.statistics.top.bounds import (
    CountBounds,
    Published,
    check_counts,
    check_members,
)


@dataclass(frozen=True)
class NoisyHistogram:
    """Publishes all counts with noise; next to each other its masses differ by 2^64/``ratio``.

    Raises:
        ValueError: a ratio not between 0 and 1, or too close to 1 for 62 bits.
    """

    bounds: CountBounds
    ratio: int

    def __post_init__(self) -> None:
        geometric_noise(self.ratio)

    @classmethod
    def fitted(cls, epsilon: Fraction, bounds: CountBounds) -> NoisyHistogram:
        """The one with the least noise that is proved for ε.

        Raises:
            ValueError: ε is too small for 64 bits.
        """
        return cls(bounds, least_ratio(epsilon, bounds.norm))

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether ρ, to the power of what neighbors move all counts together, times e^ε ≥ 1."""
        return is_private(self.ratio, self.bounds.norm, epsilon)

    @cached_property
    def noise(self) -> IntegerNoise:
        """The noise of each count."""
        return geometric_noise(self.ratio)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Noisy counts, shape (cells, categories), from counts of the same shape below 2^62.

        Raises:
            ValueError: the shape is another.
        """
        check_counts(self.bounds, statistics)
        return statistics + self.noise.draw(statistics.size, source).reshape(statistics.shape)


def largest(noisy: Codes, members: int) -> Codes:
    """The codes of the ``members`` largest noisy counts, descending, shape (cells, members).

    Equal noisy counts are put in the order of their codes. This rule needs no randomness: it is a
    function of what is published, so it reveals nothing, and anybody can repeat it. It favors the
    categories that the domain lists first.

    Raises:
        ValueError: ``members`` is not between 1 and the number of categories.
    """
    if not 1 <= members <= noisy.shape[1]:
        raise ValueError(f"1 to {noisy.shape[1]} categories can be the largest, not {members}")
    order = np.argsort(-noisy, axis=1, kind="stable")
    return order[:, :members].astype(np.int64)


@dataclass(frozen=True)
class HistogramTop(StatisticMechanism):
    """The ``members`` largest noisy counts of a histogram; ``counts`` says which are published.

    Every noisy count is paid for by the charge, whether it is published or not.
    """

    family = "top_histogram"

    histogram: NoisyHistogram
    members: int
    counts: Published = Published.NONE

    def __post_init__(self) -> None:
        check_members(self.histogram.bounds, self.members)

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> HistogramTop:
        """As :meth:`StatisticMechanism.designed`."""
        counts = Counts.checked(statistic)
        histogram = NoisyHistogram.fitted(epsilon, counts.bounds)
        return cls(histogram, counts.members, counts.published)

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> HistogramTop:
        """As :meth:`StatisticMechanism.of_law`."""
        counts = Counts.checked(statistic)
        return cls(NoisyHistogram(counts.bounds, law.ratio), counts.members, counts.published)

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.histogram.ratio)

    @property
    def inputs(self) -> int:
        """One count for each category."""
        return self.histogram.bounds.categories

    @property
    def outputs(self) -> int:
        """The codes, by descending noisy count, and the noisy counts that are published."""
        if self.counts is Published.ALL:
            return self.members + self.inputs
        return self.members * (2 if self.counts is Published.MEMBERS else 1)

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether the histogram is private; what is read off it is free."""
        return self.histogram.satisfies(epsilon)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`: ln(1/ρ) for each step of a count."""
        return self.satisfies(epsilon)

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        return f"The {self.members} largest noisy counts {self.histogram.bounds.words}"

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`, and how near the counts are that are published.

        The counts of the members alone are those whose noise is large, so it is not said of them.
        """
        found = nearness_of_members(self.members, self.chance_of_all, wording)
        if self.counts is not Published.ALL:
            return found
        radius = self.histogram.noise.radius(LEVEL)
        counts = (
            f"each noisy count is within {radius:,} {wording.counted} of the true one in 95 of "
            "100 cases"
        )
        return replace(found, sentence=f"{found.sentence}; {counts}")

    def chance_of_all(self, lead: int) -> float:
        """A lower bound of the chance that all members are published, each leading by ``lead``.

        A member is overtaken where the two noises together bridge the lead.
        """
        rivals = self.inputs - self.members
        overtaken = _chance_of_difference(self.histogram.ratio / RATIO_ONE, lead)
        return 1 - self.members * rivals * overtaken

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from counts."""
        noisy = self.histogram.draw(statistics, source)
        codes = largest(noisy, self.members)
        if self.counts is Published.NONE:
            return codes
        is_whole = self.counts is Published.ALL
        shown = noisy if is_whole else np.take_along_axis(noisy, codes, axis=1)
        return np.concatenate([codes, shown], axis=1)


def _chance_of_difference(ratio: float, lead: int) -> float:
    """P(Z - Z' ≥ ``lead``) for independent two-sided geometric noises of this ratio."""
    if lead <= 0:
        return 1.0
    # The two-sided geometric law, convolved with itself.
    scale = (1 - ratio) ** 2 / (1 + ratio) ** 2
    beyond = ratio**lead / (1 - ratio)
    mean = lead + ratio / (1 - ratio)
    return scale * beyond * (mean + (1 + ratio**2) / (1 - ratio**2))
