"""Confidence intervals of sums and means that are published with noise on their sums.

A noisy sum is unbiased, and its noise public: the interval is the noise's own quantile. A mean of
values in [low, high] is published as noisy A = Σ(x - low) and B = Σ(high - x). At the true mean μ
the difference (high - μ)·A - (μ - low)·B is noise alone, whatever the number of rows is. So the
interval holds every μ at which it is no larger than its quantile (Fieller 1954, for this noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise

Floats = NDArray[np.float64]

_DISCRETE = 200
"""Up to this scale the noise is summed integer by integer; beyond it is as good as continuous."""

_GRID = 129
_SHARES = np.linspace(0.0, 1.0, _GRID)
_HALVINGS = 50
_CELLS_AT_ONCE = 2**14


def mean_intervals(
    sums: Codes, noise: IntegerNoise, bounds: tuple[int, int], level: float
) -> tuple[Floats, Floats]:
    """Lower and upper ends of the intervals of the means, shape (cells,) each.

    ``sums`` are the noisy A and B of each cell, shape (cells, 2); ``bounds`` the low and high of a
    row. The noise is geometric, the same on both.
    """
    low, high = bounds
    widths = _widths(noise, level)
    lows, highs = np.empty(len(sums)), np.empty(len(sums))
    for start in range(0, len(sums), _CELLS_AT_ONCE):
        block = sums[start : start + _CELLS_AT_ONCE].astype(np.float64)
        ends = _ends(block, widths)
        lows[start : start + _CELLS_AT_ONCE], highs[start : start + _CELLS_AT_ONCE] = ends
    return low + (high - low) * lows, low + (high - low) * highs


@lru_cache(maxsize=32)
def _widths(noise: IntegerNoise, level: float) -> Floats:
    """How far the noise of the difference reaches at each share of the grid.

    The width depends on the share alone, so it is calculated once for all cells. A release is
    written and read several times, and asks for it each time.
    """
    half = [_radius(noise, 1 - share, share, level) for share in _SHARES[: _GRID // 2 + 1]]
    # The noise is the same on both sums, so the other half is its mirror image.
    return np.array([*half, *half[-2::-1]])


def _ends(sums: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Both ends as shares of the way from low to high."""

    def excess(share: Floats) -> Floats:
        off = np.abs((1 - share) * sums[:, 0] - share * sums[:, 1])
        return np.asarray(off - np.interp(share, _SHARES, widths))

    inside = np.stack([excess(np.full(len(sums), share)) <= 0 for share in _SHARES], axis=1)
    best = np.clip(sums[:, 0] / np.maximum(sums.sum(axis=1), 1e-9), 0, 1)
    # A narrow interval lies between two points of the grid, around the mean itself.
    first = np.where(inside.any(axis=1), _SHARES[inside.argmax(axis=1)], best)
    last = np.where(inside.any(axis=1), _SHARES[_GRID - 1 - inside[:, ::-1].argmax(axis=1)], best)
    step = _SHARES[1]
    lower = _crossing(excess, np.minimum(first, best), np.maximum(first - step, 0))
    upper = _crossing(excess, np.maximum(last, best), np.minimum(last + step, 1))
    return lower, upper


def _crossing(excess: Callable[[Floats], Floats], within: Floats, beyond: Floats) -> Floats:
    """Between a point in the interval and one outside, the end; the outer one where both are in."""
    outer_is_in = excess(beyond) <= 0
    inner, outer = within.copy(), beyond.copy()
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2
        is_in = excess(middle) <= 0
        inner, outer = np.where(is_in, middle, inner), np.where(is_in, outer, middle)
    return np.asarray(np.where(outer_is_in, beyond, outer))


def _radius(noise: IntegerNoise, a: float, b: float, level: float) -> float:
    """The least t with P(|a·Z - b·Z'| > t) ≤ 1 - ``level`` for independent noises Z and Z'."""
    tail = noise.right
    if tail is None:
        raise ValueError("noise on two sums has tails")
    scale = -1 / tail.log
    # Beyond 40 scales is a mass of e^-40, which no level of an interval can see.
    low, high = 0.0, scale * 40 + 1
    reach = math.ceil(40 * scale) if scale <= _DISCRETE else 0
    both, below = np.empty(0), np.empty(0)
    if reach:
        masses = noise.probabilities(reach + 1)
        both = np.concatenate([masses[:0:-1], masses])
        below = np.concatenate([[0.0], np.cumsum(both)])

    def chance_beyond(t: float) -> float:
        return _discrete(both, below, a, b, t) if reach else _continuous(scale, a, b, t)

    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        chance = chance_beyond(middle)
        low, high = (low, middle) if chance <= 1 - level else (middle, high)
    return high


def _continuous(scale: float, a: float, b: float, t: float) -> float:
    """P(|a·X - b·Y| > t) for independent Laplace X and Y."""
    # The formula below, by partial fractions of 1/((1 + a²s²)(1 + b²s²)), is 0/0 where a = b; this
    # is its limit.
    if abs(a - b) < 1e-6:
        return (1 + t / (2 * a * scale)) * math.exp(-t / (a * scale))
    total = 0.0
    for first, second in ((a, b), (b, a)):
        if first:
            total += first**2 * math.exp(-t / (first * scale)) / (first**2 - second**2)
    return total


def _discrete(both: Floats, below: Floats, a: float, b: float, t: float) -> float:
    """The same for the noise itself: its masses around 0, and the sums below each of them."""
    if a < b:
        a, b = b, a
    reach = both.size // 2
    steps = np.arange(-reach, reach + 1)
    # |a·z - b·y| ≤ t for z from ⌈(b·y - t)/a⌉ to ⌊(b·y + t)/a⌋.
    first = np.ceil((b * steps - t) / a - 1e-9)
    last = np.floor((b * steps + t) / a + 1e-9)
    start = np.minimum(np.maximum(first + reach, 0), both.size).astype(np.int64)
    stop = np.minimum(np.maximum(last + reach + 1, 0), both.size).astype(np.int64)
    within = np.maximum(below[stop] - below[start], 0)
    return float(1 - (both * within).sum())
