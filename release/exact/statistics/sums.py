"""Noisy sums: noise on the sums of a cell, before anything is divided or quantised.

A mean of values clamped to [low, high] is made of two sums, A = Σ(x - low) and B = Σ(high - x).
Together a row moves them by high - low, whatever its value is, so geometric noise on both costs one
ε as a whole (docs/design/mathematics.md T10), and every figure that is made of the noisy sums is
free: the mean is low + (high - low)·A/(A + B), the number of rows (A + B)/(high - low).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dp_release_verify import forms
from release.exact.composition.profile import Profile, pure_profile
from release.exact.domain import Codes
from release.exact.integers.noise import MOST_BITS, RATIO_ONE, REACH, IntegerNoise, Tail
from release.exact.integers.profile import exact_profile, is_cheap
from release.exact.numbers import exp_bounds
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import StatisticMechanism, least_ratio, loss_above

_MOST_RUNS = 1000
"""A forged file must cost a verifier little; a designed one has a few."""


@dataclass(frozen=True)
class NoisySums(StatisticMechanism):
    """Independent ``noise`` on each of ``sums`` sums of integers.

    Neighbors change them by at most ``spread`` together: Σ|change| over the sums.

    Raises:
        ValueError: no sum, a spread below 1, more than 1000 runs of weights, or several sums under
            noise without tails.
    """

    family = "noisy_sums"

    noise: IntegerNoise
    sums: int
    spread: int

    def __post_init__(self) -> None:
        if self.sums < 1 or self.spread < 1:
            raise ValueError("noisy sums need one sum or more, and a spread of 1 or more")
        if len(self.noise.runs) > _MOST_RUNS:
            raise ValueError(f"noise on sums has at most {_MOST_RUNS} runs of weights")
        if self.sums > 1 and (self.noise.left is None or self.noise.left != self.noise.right):
            raise ValueError("noise on several sums needs equal tails on both sides")

    @classmethod
    def geometric(cls, epsilon: Fraction, sums: int, spread: int) -> NoisySums:
        """Two-sided geometric noise, as little as ``epsilon`` allows for several sums.

        Raises:
            ValueError: there is none in 64 bits.
        """
        noisy = cls(geometric_noise(least_ratio(epsilon, spread)), sums, spread)
        if not noisy.satisfies(epsilon):
            raise ValueError("epsilon is too small, or a row moves the sums too far, for 62 bits")
        return noisy

    def law(self) -> forms.SumsLaw:
        """As :meth:`StatisticMechanism.law`."""
        return forms.SumsLaw(forms.MECHANISM, "noisy_sums", self.noise.law())

    @property
    def inputs(self) -> int:
        """The sums."""
        return self.sums

    @property
    def outputs(self) -> int:
        """The noisy sums."""
        return self.sums

    def satisfies(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.satisfies`.

        One sum is compared exactly at every distance. Of several the noise has to lose at most
        ln(1/ρ) a step, ρ the ratio of its tails, and ``spread`` such steps ε at most (T10).
        """
        if self.sums == 1:
            # Of unimodal noise the largest distance loses most; of other noise every one would have
            # to be compared.
            if not self.noise.is_unimodal():
                return False
            return self.noise.deltas((self.spread,), exp_bounds(epsilon)[0]).approximate == 0
        return self.loses_in_proportion(epsilon)

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """As :meth:`StatisticMechanism.loses_in_proportion`: geometric noise does."""
        tail = self.noise.right
        if tail is None:
            return False
        step = Fraction(RATIO_ONE, tail.ratio)
        one_step = self.noise.deltas((1,), step).approximate == 0
        return one_step and self.spread * loss_above(tail.ratio) <= epsilon

    def profile(self, epsilon: Fraction, step: Fraction) -> Profile:
        """As :meth:`StatisticMechanism.profile`; of one sum that of its noise at the spread."""
        pure = pure_profile(epsilon, step)
        # Every distance up to the spread is possible, and one comparison has to stand for all.
        is_exact = self.sums == 1 and self.noise.is_unimodal()
        if not is_exact or not is_cheap(self.noise, (self.spread,)):
            return pure
        return exact_profile(self.noise, (self.spread,), step)

    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`StatisticMechanism.draw`; sums beyond ±2^62 are published as that."""
        noise = self.noise.draw(statistics.size, source).reshape(statistics.shape)
        # Both lie within ±2^62, so that their sum fits into 64 bits.
        held = np.clip(statistics, -(REACH - 1), REACH - 1)
        return np.asarray(np.clip(held + noise, -REACH, REACH), dtype=np.int64)


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
