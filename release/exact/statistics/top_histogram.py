"""The k commonest categories read off a noisy histogram.

Every count gets two-sided geometric noise and all noisy counts are published. Whoever reads them
may take the largest of them, whatever k is: one charge pays for every question about them. Where a
unit counts in one category this misses fewer members than k selections that share the charge.
The noise is from Ghosh, Roughgarden and Sundararajan 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from release.exact.domain import Codes
from release.exact.integer_noise import MOST_BITS, IntegerNoise, Tail
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    least_ratio,
    loss_above,
)
from release.exact.statistics.top_bounds import CountBounds, check_counts


@dataclass(frozen=True)
class NoisyHistogram(StatisticMechanism):
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
    def inputs(self) -> int:
        """One count for each category."""
        return self.bounds.categories

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

    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether ρ^spread·e^ε ≥ 1."""
        return self.spread * loss_above(self.ratio) <= epsilon

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


def geometric_noise(ratio: int) -> IntegerNoise:
    """Two-sided geometric noise: f(η ± 1) ≥ ρ·f(η) for all η, with ρ = ``ratio``/2^64.

    Beyond ±1 the masses are those of a geometric series, exactly. The weight of ±1 is
    rounded up, so that 0 has at most 2^-61 less than its mass (1 - ρ)/(1 + ρ).

    Raises:
        ValueError: a ratio not between 0 and 1, or one so close to 1 that 0 has no weight left.
    """
    if not 0 < ratio < RATIO_ONE:
        raise ValueError("noise needs a ratio between 0 and 1")
    total = 1 << MOST_BITS
    # w1 ≥ total·ρ/(1 + ρ) gives w1·(1 - ρ) ≥ ρ·(total - 2·w1): f(1) ≥ ρ·f(0).
    beside = -(-total * ratio // (RATIO_ONE + ratio))
    middle = total - 2 * beside
    # And f(0) ≥ ρ·f(1), which rounding up could break only next to ρ = 1.
    if not middle * RATIO_ONE**2 >= beside * (RATIO_ONE - ratio) * ratio:
        raise ValueError("the ratio is too close to 1 for noise of 62 bits")
    return IntegerNoise.symmetric([(1, middle), (1, beside)], Tail(1, ratio))
