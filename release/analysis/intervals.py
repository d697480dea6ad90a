"""Confidence intervals of true answers, at any level, from what is known of each cell's noise.

The interval of a published answer o holds every true answer q for which o is not among the outcomes
that q leads to least: at most (1 - level)/2 below and as much above. So whatever the true answer
is, the interval holds it with probability ``level`` or more (Neyman 1937).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from release.analysis.sums import mean_intervals
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise

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
    """Noise of any kind: ``masses`` are P(published | true), by codes; ``labels`` of all codes."""

    masses: Floats
    codes: Codes
    labels: Floats

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        below = np.cumsum(self.masses, axis=1)
        above = np.cumsum(self.masses[:, ::-1], axis=1)[:, ::-1]
        tail = (1 - level) / 2 + _ROUNDING
        is_likely = (below > tail) & (above > tail)
        # Of a true answer whose every outcome is unlikely on one side, the likeliest is kept.
        is_likely[np.arange(len(self.masses)), self.masses.argmax(axis=1)] = True
        # From the first to the last likely truth: whatever lies between is held as well.
        first = is_likely.argmax(axis=0)
        last = len(self.masses) - 1 - is_likely[::-1].argmax(axis=0)
        # An outcome that no true answer is likely to lead to says nothing.
        is_any = is_likely.any(axis=0)
        first, last = np.where(is_any, first, 0), np.where(is_any, last, len(self.masses) - 1)
        return self.labels[first][self.codes], self.labels[last][self.codes]


@dataclass(frozen=True, eq=False)
class AddedNoise:
    """Noise that was added: ``values`` + ``step``·noise, and then perhaps kept within ``ends``.

    Keeping a value within ends between which the truth lies only brings it nearer to the truth.
    ``moved`` is by how many steps at most it was moved otherwise.
    """

    values: Floats
    noise: IntegerNoise
    step: int = 1
    ends: tuple[int, int] | None = None
    moved: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether what is published is the truth and symmetric noise, and nothing else."""
        return self.ends is None and not self.moved and self.noise.is_symmetric

    def intervals(self, level: float) -> tuple[Floats, Floats]:
        """As :meth:`CellNoise.intervals`."""
        # What was moved may have been moved towards the truth or away from it.
        reach = self.step * (self.noise.radius(level) + self.moved)
        low, high = (-np.inf, np.inf) if self.ends is None else self.ends
        return np.maximum(self.values - reach, low), np.minimum(self.values + reach, high)


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
    above, below = noise.probabilities(reach + 1), noise.mirrored.probabilities(reach + 1)
    masses = np.concatenate([below[:0:-1], above])
    # Powers of the transform: the convolution of all noises at once.
    length = 1 << (size - 1).bit_length()
    total = np.fft.irfft(np.fft.rfft(masses, length) ** count, length)[:size]
    middle = reach * count
    within = total[middle:].copy()
    within[1:] += total[:middle][::-1]
    return int(np.argmax(np.cumsum(within) >= min(level, 1 - 1e-11) - _ROUNDING))


_MOST_SUMMED = 2**22
