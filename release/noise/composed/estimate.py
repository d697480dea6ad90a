"""The account in floats, for searches: fast, close, and never what a guarantee rests on.

Losses are placed on the same grid as the exact account's and split as there. Their composition is a
product of Fourier transforms. The masses are tilted towards ε first, so that a δ far below the
precision of floats keeps its digits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from release.noise.composed.account import Pattern
from release.noise.composed.laws import Shape

Floats = NDArray[np.float64]

_MOST_POINTS = 2048
"""Larger differences of geometric noise are scaled down, and the noise with them."""

_DEVIATIONS = 12
"""Half the window of a composition, in standard deviations of the tilted losses."""

_MOST_WIDTH = 2**18
"""Losses over so many places are far beyond any budget."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Masses at the losses ``first``·step, (``first`` + 1)·step and so on."""

    first: int
    masses: Floats

    @property
    def places(self) -> Floats:
        """The places of the masses on the grid."""
        return np.arange(self.first, self.first + self.masses.size, dtype=np.float64)


Parts = Sequence[tuple[Losses, int]]
"""Independent losses, and how often each occurs."""


def parts_of(shape: Shape, pattern: Pattern, step: float) -> list[tuple[Losses, int]]:
    """The losses of one unit with a pattern under noise of a shape."""
    counted = sorted(Counter(pattern).items())
    return [(_losses(shape, difference, step), times) for difference, times in counted]


@lru_cache(maxsize=256)
def _losses(shape: Shape, difference: int, step: float) -> Losses:
    if shape.power == 1:
        losses, masses = _of_geometric(float(shape.scale), difference)
    else:
        losses, masses = _of_power(shape, difference / shape.block)
    return placed(losses, masses, step)


def _of_geometric(scale: float, difference: int) -> tuple[Floats, Floats]:
    """Losses of two-sided geometric noise with ratio e^(-1/scale), and their masses."""
    if difference > _MOST_POINTS:
        scale, difference = scale * _MOST_POINTS / difference, _MOST_POINTS
    ratio = math.exp(-1 / scale)
    # Outside of both answers the loss is the same everywhere, ±difference/scale: two masses. Each
    # integer between them has a loss of its own.
    between = np.arange(1, difference, dtype=np.float64)
    losses = np.concatenate([[difference], difference - 2 * between, [-difference]]) / scale
    inner = -math.expm1(-1 / scale) * np.exp(-between / scale)
    masses = np.concatenate([[1.0], inner, [ratio**difference]]) / (1 + ratio)
    return losses, masses


def _of_power(shape: Shape, difference: float) -> tuple[Floats, Floats]:
    """Losses of noise with a window where neighbors are ``difference`` blocks apart, and masses.

    A difference that is no integer is one of its two neighbors, in proportion.
    """
    power, scale, reach = float(shape.power), float(shape.scale / shape.block), shape.steps
    whole = math.floor(difference)
    # So far that a shift by the difference meets each mass with one of the window or the tails.
    far = reach + whole + 1
    logs = -((np.abs(np.arange(-far, far + 1)) / scale) ** power)
    # Beyond the window a geometric tail goes on with the last ratio.
    slope = (reach / scale) ** power - ((reach - 1) / scale) ** power
    beyond = np.arange(1, far - reach + 1)
    logs[far + reach + 1 :] = -((reach / scale) ** power) - slope * beyond
    logs[: far - reach] = logs[: far + reach : -1]
    masses = np.exp(logs)
    masses /= masses.sum()
    losses, shares = [], []
    for shift, share in ((whole, 1 - difference + whole), (whole + 1, difference - whole)):
        if share:
            losses.append(logs[: logs.size - shift] - logs[shift:])
            shares.append(share * masses[: masses.size - shift])
    return np.concatenate(losses), np.concatenate(shares)


def placed(losses: Floats, masses: Floats, step: float) -> Losses:
    """Masses split between the two losses of the grid around each, such that P and Q keep sums."""
    # A loss on the grid, but for rounding, is not to be split.
    upper = np.ceil(losses / step - 1e-9)
    distance = upper * step - losses
    lower_share = np.clip(np.expm1(distance) / math.expm1(step), 0, 1)
    first = int(upper.min()) - 1
    places = (upper - first).astype(np.int64)
    size = int(places.max()) + 1
    grid = np.zeros(size)
    np.add.at(grid, places, masses * (1 - lower_share))
    np.add.at(grid, places - 1, masses * lower_share)
    return Losses(first, grid)


def log_delta(
    alternatives: Sequence[tuple[Sequence[Parts], int]], cap: float, step: float
) -> float:
    """Return ln δ at ε = ``cap`` of all queries together; -inf where δ is 0.

    Args:
        alternatives: for each group what a unit may do to one query, and how many queries it has.
        cap: ε.
        step: the grid's.
    """
    tilt = _tilt(alternatives, cap / step)
    worst: list[tuple[Losses, int]] = []
    tilted_losses = _Tilted(tilt)
    for patterns, count in alternatives:
        parts = max(patterns, key=lambda parts: tilted_losses.cumulants(parts)[0])
        worst += [(losses, times * count) for losses, times in parts]
    height, mean, variance = tilted_losses.cumulants(worst)
    width = 2 * _DEVIATIONS * math.sqrt(max(variance, 1.0)) + max(p.masses.size for p, _ in worst)
    if width > _MOST_WIDTH:
        return 0.0
    # A transform is circular: masses outside the window wrap into it, so it has to hold nearly all.
    size = 1 << math.ceil(math.log2(width + 2))
    whole, offset = np.ones(size // 2 + 1, dtype=np.complex128), 0
    for losses, times in worst:
        # From the last place, so that the largest exponential is 1 and none overflows.
        tilted = losses.masses * np.exp(tilt * (losses.places - losses.places[-1]))
        tilted /= tilted.sum()
        whole *= np.fft.rfft(_wrapped(tilted, size)) ** times
        offset += losses.first * times
    # The transform back leaves ±10⁻¹⁷ where there is no mass.
    masses = np.maximum(np.fft.irfft(whole, size), 0)
    # Of all places that are equal to an index, the one in the window around the mean is meant.
    start = round(mean) - size // 2
    places = start + (np.arange(size) + offset - start) % size
    above = places * step > cap
    excess = (places[above] - cap / step) * step
    weights = masses[above] * np.exp(height - tilt * places[above]) * -np.expm1(-excess)
    total = float(weights.sum())
    return math.log(total) if total > 0 else -math.inf


def _wrapped(masses: Floats, size: int) -> Floats:
    padded = np.zeros(-(-masses.size // size) * size)
    padded[: masses.size] = masses
    return np.asarray(padded.reshape(-1, size).sum(axis=0), dtype=np.float64)


def _tilt(alternatives: Sequence[tuple[Sequence[Parts], int]], mean: float) -> float:
    """The tilt per step for which the mean loss is about ``mean`` steps."""
    # Where even the largest losses lie below ``mean`` no tilt reaches it: 64 is the end.
    low, high = 0.0, 1.0
    while _tilted_mean(alternatives, high) < mean and high < 64:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        if _tilted_mean(alternatives, middle) < mean:
            low = middle
        else:
            high = middle
        if high - low < 1e-3 * high:
            break
    return high


def _tilted_mean(alternatives: Sequence[tuple[Sequence[Parts], int]], tilt: float) -> float:
    mean, tilted = 0.0, _Tilted(tilt)
    for patterns, count in alternatives:
        # Of tuples the first number decides: the largest transform, as in log_delta.
        mean += count * max(map(tilted.cumulants, patterns))[1]
    return mean


class _Tilted:
    """Losses under one tilt, each computed once: the patterns of a unit are made of a few."""

    def __init__(self, tilt: float) -> None:
        self._tilt = tilt
        self._known: dict[Losses, tuple[float, float, float]] = {}

    def cumulants(self, parts: Parts) -> tuple[float, float, float]:
        """Return ln E e^(tilt·place), and the mean and the variance of the tilted places."""
        height = mean = variance = 0.0
        for losses, times in parts:
            if losses not in self._known:
                self._known[losses] = self._of_one(losses)
            own = self._known[losses]
            height += times * own[0]
            mean += times * own[1]
            variance += times * own[2]
        return height, mean, variance

    def _of_one(self, losses: Losses) -> tuple[float, float, float]:
        places = losses.places
        last = self._tilt * places[-1]
        weights = losses.masses * np.exp(self._tilt * places - last)
        total = float(weights.sum())
        first = float(weights @ places) / total
        variance = max(0.0, float(weights @ places**2) / total - first**2)
        return math.log(total) + last, first, variance


def moment(shape: Shape, power: int) -> float:
    """E|η|^``power`` of noise of a shape; for 0 the chance of an error."""
    scale, block = float(shape.scale), shape.block
    if shape.power == 1:
        ratio = math.exp(-1 / scale)
        # 1 - ratio, without losing the digits where noise is wide.
        rest = -math.expm1(-1 / scale)
        moments = 2 * ratio / (1 + ratio), 2 * ratio / (rest * (1 + ratio)), 2 * ratio / rest**2
        return moments[power]
    exponent, last = float(shape.power), shape.steps
    places = np.arange(last + 1) * block
    masses = np.exp(-((places / scale) ** exponent))
    # A geometric tail repeats the last block: G more blocks, P(G ≥ g) = ratio^g.
    ratio = float(masses[-1] / masses[-2])
    mean = block * ratio / (1 - ratio)
    square = block**2 * ratio * (1 + ratio) / (1 - ratio) ** 2
    masses[1:] *= 2
    masses[-1] /= 1 - ratio
    masses /= masses.sum()
    if power == 0:
        return float(1 - masses[0] / block)
    if power == 1:
        inside = masses[0] * (block * block - 1) / (4 * block)
        return float(masses @ places + masses[-1] * mean + inside)
    squares = float(masses @ places.astype(np.float64) ** 2)
    beyond = masses[-1] * (2 * mean * places[-1] + square)
    return float(squares + beyond + (block * block - 1) / 12)
