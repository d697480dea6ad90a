"""The k commonest categories read off a noisy histogram.

Every count gets two-sided geometric noise and all noisy counts are published. Whoever reads them
may take the largest of them, whatever k is: one charge pays for every question about them. Where a
unit counts in one category this misses fewer members than k selections that share the charge.
The noise is from Ghosh, Roughgarden and Sundararajan 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dp_release_verify import forms
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import StatisticMechanism, least_ratio
from release.exact.statistics.sums import geometric_noise
from release.exact.statistics.top.bounds import CountBounds, OnCounts, check_counts, check_members


@dataclass(frozen=True)
class NoisyHistogram(OnCounts):
    """Publishes all counts with noise; next to each other its masses differ by 2^64/``ratio``.

    Raises:
        ValueError: a ratio not between 0 and 1, or too close to 1 for 62 bits.
    """

    bounds: CountBounds
    ratio: int

    family: ClassVar[str] = "noisy_histogram"

    def __post_init__(self) -> None:
        geometric_noise(self.ratio)

    @classmethod
    def fitted(cls, epsilon: Fraction, bounds: CountBounds) -> NoisyHistogram:
        """The one with the least noise that is proved for ε.

        Raises:
            ValueError: ε is too small for 64 bits.
        """
        return cls(bounds, least_ratio(epsilon, bounds.norm))

    @property
    def outputs(self) -> int:
        """One noisy count for each category."""
        return self.bounds.categories

    @property
    def spread(self) -> int:
        """By how much neighbors' counts differ, summed over the categories."""
        return self.bounds.norm

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


class Published(Enum):
    """Which noisy counts stand beside the members."""

    NONE, MEMBERS, ALL = range(3)


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

    def law(self) -> forms.RatioLaw:
        """As :meth:`StatisticMechanism.law`: one number decides it."""
        return forms.RatioLaw(forms.MECHANISM, self.family, self.histogram.ratio)

    @property
    def inputs(self) -> int:
        """One count for each category."""
        return self.histogram.inputs

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

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`, from counts."""
        noisy = self.histogram.draw(statistics, source)
        codes = largest(noisy, self.members)
        if self.counts is Published.NONE:
            return codes
        is_whole = self.counts is Published.ALL
        shown = noisy if is_whole else np.take_along_axis(noisy, codes, axis=1)
        return np.concatenate([codes, shown], axis=1)
