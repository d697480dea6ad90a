"""Noisy sums: noise on the sums of a cell, before anything is divided or quantised.

A mean of values clamped to [low, high] is made of two sums, A = Σ(x - low) and B = Σ(high - x).
Together a row moves them by high - low, whatever its value is, so geometric noise on both costs one
ε as a whole (docs/design/mathematics.md T10), and every figure that is made of the noisy sums is
free: the mean is low + (high - low)·A/(A + B), the number of rows (A + B)/(high - low).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dp_release_verify import forms
from release.exact.composition.profile import Profile, pure_profile
from release.exact.domain import Codes
from release.exact.integers.noise import MOST_BITS, RATIO_ONE, REACH, IntegerNoise, Tail
from release.exact.integers.profile import exact_profile, is_cheap
from release.exact.integers.staircase import staircase
from release.exact.numbers import exp_bounds
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.mechanism import StatisticMechanism, least_ratio, loss_above
from release.exact.statistics.nearness import LEVEL, POINTS, Nearness, Wording
from release.exact.statistics.statistic import Statistic, Sums

_ROWS = (10, 100, 1_000, 10_000, 100_000)
"""Of so many rows the error of a mean is told."""

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

    @classmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> NoisySums:
        """As :meth:`StatisticMechanism.designed`.

        One sum by itself has the least noise of all (T2); that of several sums is geometric.
        """
        sums = Sums.checked(statistic)
        if sums.inputs > 1:
            return cls.geometric(epsilon, sums.inputs, sums.spread)
        distances = range(1, sums.spread + 1)
        stairs = cls(staircase(distances, epsilon, 1).noise, 1, sums.spread)
        if part == 1:
            return stairs
        # Geometric noise costs only a part of the charge: for that, stairs would be wider.
        geometric = cls.geometric(epsilon, 1, sums.spread)
        rival = staircase(distances, epsilon * part, 1)
        return geometric if geometric.noise.moment(1) <= rival.loss else stairs

    @classmethod
    def of_law(cls, statistic: Statistic, law: Any) -> NoisySums:
        """As :meth:`StatisticMechanism.of_law`."""
        sums = Sums.checked(statistic)
        return cls(IntegerNoise.of_law(law.noise), sums.inputs, sums.spread)

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

    @property
    def sentence(self) -> str:
        """As :attr:`StatisticMechanism.sentence`."""
        what = "the sum" if self.sums == 1 else f"each of {self.sums} sums"
        return (
            f"Noise on {what} of a cell, proved for units that move them by {self.spread} together"
        )

    def nearness(self, wording: Wording) -> Nearness:
        """As :meth:`StatisticMechanism.nearness`, in the unit of the published answers.

        On a grid that is its scale.
        """
        most = float(self.noise.radius(LEVEL))
        width = wording.width
        if self.sums == 1:
            return Nearness(
                f"error, in {width}",
                "chance that it is no larger",
                self._chances_within(int(most)),
                f"a sum errs by at most {most:,.6g} {width} in 95 of 100 cases, before it is put "
                "into a bin",
                near=most,
                short=f"±{most:,.6g} {width}",
            )
        # At either end of the clamp one of the two noises decides alone; between them less is left.
        return Nearness(
            "rows in the cell",
            f"error of 95 in 100, in {width}",
            tuple((float(rows), most / rows) for rows in _ROWS),
            f"a mean of 1,000 rows errs by at most {most / 1000:.3g} {width} in 95 of 100 cases, "
            "before it is put into a bin; of ten times the rows by a tenth of that",
            near=most / 1000,
            short=f"±{most / 1000:.3g} {width} of 1,000 rows",
            by_powers=True,
        )

    def _chances_within(self, most: int) -> tuple[tuple[float, float], ...]:
        """The chances of errors up to about twice ``most``, of one sum."""
        noise, step = self.noise, max(1, -(-2 * most // POINTS))
        points = []
        for error in range(0, 2 * most + step, step):
            points.append((float(error), 1 - noise.above(error) - noise.mirrored.above(error)))
        return tuple(points)

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
