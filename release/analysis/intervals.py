"""Confidence intervals of true answers, at any level, from what is known of each cell's noise.

Whatever the true answer is, the interval holds it with probability ``level`` or more
(:mod:`release.exact.intervals`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from release.analysis.unbiased import NearlyUnbiased, Summands, of_noise, of_table, summands
from release.exact.domain import AnswerDomain, Codes, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.integers.outcomes import MOST_LISTED, Outcomes
from release.exact.intervals import runs_of
from release.exact.statistics.mean_intervals import mean_intervals

Floats = NDArray[np.float64]

_ROUNDING = 1e-12
"""Masses are rounded: what a tail has more than that is not a rounding error."""


class CellNoise(Protocol):
    """The noise of all cells of a query, each independent of the others."""

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """Lower and upper ends, both included, shape (cells,) each."""
        ...


@dataclass(frozen=True, eq=False)
class TableNoise:
    """Noise of any kind: ``masses`` are P(published | true), by codes; ``labels`` of all codes.

    ``moved`` is how far above that label each cell is, where the table leaves out answers in the
    middle that fare alike.
    """

    masses: Floats
    codes: Codes
    labels: Floats
    moved: Floats | float = 0.0

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        first, last = self._ends(level)
        return self.labels[first] + self.moved, self.labels[last] + self.moved

    def summands(self, level: float) -> Summands:
        """What each cell brings into a sum if its interval of this level holds."""
        found = summands(self._nearly, self.codes, *self._ends(level))
        return replace(found, values=found.values + self.moved)

    @cached_property
    def _nearly(self) -> NearlyUnbiased:
        return of_table(self.masses, self.labels)

    def _ends(self, level: float) -> tuple[Codes, Codes]:
        """The interval of each cell, in codes."""
        first, last = runs_of(self.masses, Topology.ORDERED, level)
        return first[self.codes], last[self.codes]


@dataclass(frozen=True, eq=False)
class AddedNoise:
    """Noise that was added, and nothing else done: ``values`` + ``step``·noise."""

    values: Floats
    noise: IntegerNoise
    step: int = 1

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        reach = self.step * self.noise.radius(level)
        return self.values - reach, self.values + reach


@dataclass(frozen=True, eq=False)
class ClampedNoise:
    """Noise on the integers whose table would be too large; ``codes`` are of ``domain``."""

    codes: Codes
    mechanism: IntegerMechanism
    domain: AnswerDomain

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        low, high = self._ends(level)
        return self.domain.numbers(low), self.domain.numbers(high)

    def summands(self, level: float) -> Summands | None:
        """As :meth:`TableNoise.summands`; None where the values do not add up."""
        narrow, codes = self.mechanism.narrowed(self.codes)
        labels = self.domain.labels
        # The labels of bins need not be in even steps, and then they do not add up as codes do.
        if narrow.size >= MOST_LISTED or not isinstance(labels, range):
            return None
        low, high = (self.mechanism.narrowed(ends)[1] for ends in self._ends(level))
        found, step = summands(of_noise(narrow), codes, low, high), labels.step
        return Summands(
            labels.start + step * (found.values + (self.codes - codes)),
            step * found.least_bias,
            step * found.most_bias,
            step**2 * found.variance,
        )

    def _ends(self, level: float) -> tuple[Codes, Codes]:
        # Clamping brings a value nearer to a truth between the ends; the tables may move it away.
        farthest = 0
        for _, shift in (*self.mechanism.low, *self.mechanism.high):
            farthest = max(farthest, abs(shift))
        reach, last = self.mechanism.noise.radius(level) + farthest, self.mechanism.size - 1
        return np.maximum(self.codes - reach, 0), np.minimum(self.codes + reach, last)


@dataclass(frozen=True, eq=False)
class MeanNoise:
    """The noisy sums of means, shape (cells, 2), as :func:`mean_intervals` takes them."""

    sums: Codes
    noise: IntegerNoise
    bounds: tuple[int, int]

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        return mean_intervals(self.sums, self.noise, self.bounds, level)


def radius_of_sum(noise: IntegerNoise, count: int, level: float) -> int | None:
    """The least r for which the sum of so many independent noises is within ±r with ``level``.

    Found by convolution in floats, with an error of about 10⁻¹². None where the noise is so wide
    that the convolution would take more than a second.
    """
    # So little mass lies beyond that all noises together are inside but for 10⁻¹³.
    reach = noise.radius(1 - 1e-13 / count)
    size = 2 * reach * count + 1
    if size > _MOST_SUMMED:
        return None
    masses = Outcomes(noise, reach + 1).masses
    # Powers of the transform: the convolution of all noises at once.
    length = 1 << (size - 1).bit_length()
    total = np.fft.irfft(np.fft.rfft(masses, length) ** count, length)[:size]
    middle = reach * count
    within = total[middle:].copy()
    within[1:] += total[:middle][::-1]
    return int(np.argmax(np.cumsum(within) >= min(level, 1 - 1e-11) - _ROUNDING))


_MOST_SUMMED = 2**22
