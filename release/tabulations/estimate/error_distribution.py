"""The distribution of an error that is a weighted sum of independent noise on the integers.

Its characteristic function is the product of those of the noise, each at its weight, and the chance
of an interval is a Fourier sum of it. Two cases need care. Where all weights are multiples of one
number, the error lies on a lattice, and the sum is the one for a lattice: exact, ends included.
Elsewhere all weights with little of the variance are replaced by one normal variable with their
variance, and an error that has hardly any of those is smoothed by a narrow normal variable.

All is computed in floats, and differs between machines by rounding alone, some 10^-12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, gcd, pi, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.tabulations.estimate.weights import Floats, Weights

SMALL = 1 / 1009
"""A cell taken as normal has at most this part of the variance; hardly a cell has just this."""

ALONE = 1 / 30.3
"""And at most this part of the variance of all that are: many together are nearly normal."""

NARROW = 1 / 4096
"""The least normal part of an error, in standard errors: it smooths what has no density."""

_PERIOD = 24.0  # in standard errors: what lies a period away is counted as if it were here
_ATOMS = 8  # and so many units of the largest weight, for noise that is hardly ever not 0
_NOTHING = 1e-20  # a part of the variance that only rounding makes
_VANISHED = 1e-20  # a characteristic function so near 0 adds less than rounding does
_MARGIN = 3  # in standard deviations of the smoothing: beyond is 1.3·10^-3 of it on each side
_DECAY = 5.6  # a normal part is e^-15.7 = 1.5·10^-7 of its peak so many standard errors out
_POINTS = 4096
_FEW_RUNS = 9
_TABULATED = 60.0  # radians a standard deviation: so far a characteristic function is tabulated
_NEGLECTED = 1e-4  # a chance may change by so much because it is taken as 0 beyond
_MOST_WORK = 1 << 20
_MOST_DIVISOR = 64
_MOST_POINTS = 1 << 16
_MOST_WAVES = 1 << 22
_SAME = 1e-9


class Transform(Protocol):
    """The characteristic function of noise."""

    def power(self, angles: Floats, count: float) -> Floats:
        """φ(angle) to the power of ``count``, a whole number, for angles from 0 on."""


def transform_of(noise: IntegerNoise) -> Transform:
    """The characteristic function of symmetric noise.

    Raises:
        ValueError: noise that is not symmetric.
    """
    if not noise.is_symmetric:
        raise ValueError("intervals around estimates need symmetric noise on every measured table")
    if noise.high == 1 and noise.right is not None and noise.right.period == 1:
        return _Geometric.of(noise)
    if len(noise.runs) <= _FEW_RUNS or _beyond_table(noise) > _NEGLECTED:
        return _Summed(noise)
    return _Tabulated.of(noise)


def _beyond_table(noise: IntegerNoise) -> float:
    """By how much a chance may change if the characteristic function is 0 beyond a table of it.

    It comes back where noise lies on few of the integers, or has steps that are long beside its
    deviation. The longer the list of runs, the nearer to the table is the first such place.
    """
    deviation = sqrt(noise.moment(2))
    places = _TABULATED + 0.5 + np.arange(_MOST_WORK // len(noise.runs))
    places = places[places < pi * deviation]
    values = _characteristic(noise, np.asarray(places / deviation, dtype=np.float64))
    return float(2 / pi * np.sum(np.abs(values) / places))


@dataclass(frozen=True)
class _Geometric:
    """Noise whose masses from ±1 on are a geometric series.

    Attributes:
        middle: the mass of 0.
        ratio: of the masses of an integer and the one before.
        rest: 1 less the ratio.
    """

    middle: float
    ratio: float
    rest: float

    @classmethod
    def of(cls, noise: IntegerNoise) -> _Geometric:
        if noise.right is None:
            raise ValueError("geometric noise has tails")
        return cls(float(noise.mass(0)), float(noise.right.fraction), noise.right.rest)

    def power(self, angles: Floats, count: float) -> Floats:
        """See ``Transform``."""
        # With s = sin²(θ/2): Re e^iθ·(1 − ρ)/(1 − ρ·e^iθ) = (1−ρ)·((1−ρ) − 2s)/((1−ρ)² + 4ρs).
        squares = np.sin(angles / 2) ** 2
        tails = self.rest * (self.rest - 2 * squares) / (self.rest**2 + 4 * self.ratio * squares)
        values = self.middle + (1 - self.middle) * tails
        return np.asarray(values**count)


@dataclass(frozen=True)
class _Summed:
    """Noise of a few runs: the sum over its runs."""

    noise: IntegerNoise

    def power(self, angles: Floats, count: float) -> Floats:
        """See ``Transform``."""
        return np.asarray(_characteristic(self.noise, _folded(angles)) ** count)


@dataclass(frozen=True, eq=False)
class _Tabulated:
    """Noise of many runs: its characteristic function between points, and 0 beyond the last.

    Attributes:
        points: angles from 0 to at most π; shape (n,).
        values: there; shape (n,).
        knee: up to this point its logarithm is interpolated, in the square of the angle.
    """

    points: Floats
    values: Floats
    knee: int

    @classmethod
    def of(cls, noise: IntegerNoise) -> _Tabulated:
        deviation = sqrt(noise.moment(2))
        points = np.linspace(0.0, min(pi, _TABULATED / deviation), _POINTS + 1)
        values = _characteristic(noise, points)
        below = np.flatnonzero(values < 0.05)
        return cls(points, values, int(below[0]) if below.size else points.size)

    def power(self, angles: Floats, count: float) -> Floats:
        """See ``Transform``."""
        folded = _folded(angles)
        near = slice(0, self.knee)
        logs = np.interp(folded**2, self.points[near] ** 2, np.log(self.values[near]))
        values = np.exp(logs * count)
        if self.knee < self.points.size:
            far = np.interp(folded, self.points, self.values, right=0.0) ** count
            values = np.where(folded < self.points[self.knee - 1], values, far)
        return np.asarray(values)


def _folded(angles: Floats) -> Floats:
    """The angles in [0, π] with the same cosines of all multiples."""
    return np.asarray(np.abs((angles + pi) % (2 * pi) - pi))


def _characteristic(noise: IntegerNoise, points: Floats) -> Floats:
    """Σ f(η)·cos(θ·η) of symmetric noise for each angle θ, which is in [0, π]; shape as theirs."""
    tail = noise.right
    start = noise.right_start
    values = np.full(points.shape, float(noise.mass(0)))
    ends = np.zeros(points.shape, dtype=np.complex128)
    first = noise.low
    for length, weight in noise.runs:
        low, stop = max(first, 1), first + length
        mass = 2 * weight / noise.total
        if low < min(stop, start):
            values += mass * _wave(points, low, min(stop, start)).real
        if max(low, start) < stop:
            ends += mass * _wave(points, max(low, start), stop)
        first = stop
    if tail:
        # The last period and its repetitions: Σ (1 − ρ)·ρ^t·e^(i·θ·t·period).
        steps = np.exp(1j * points * tail.period)
        values += (ends * tail.rest / (tail.rest + float(tail.fraction) * (1 - steps))).real
    return values


def _wave(points: Floats, low: int, stop: int) -> NDArray[np.complex128]:
    """Σ e^(i·θ·k) for the integers k from ``low`` to below ``stop``."""
    length = stop - low
    halves = np.sin(points / 2)
    # At θ = 0 every term is 1.
    safe = np.where(halves, halves, 1.0)
    sums = np.where(halves, np.sin(length * points / 2) / safe, float(length))
    return np.asarray(sums * np.exp(0.5j * (low + stop - 1) * points))


@dataclass(frozen=True, eq=False)
class ErrorDistribution:
    """The distribution of an error, ready for chances of being near 0.

    Attributes:
        spacing: the distance of the values that the error takes; 0 where it is not on a lattice.
        period: as far apart are values that are not told from each other.
        margin: how much nearer to 0 a smoothed error counts, so that smoothing adds no coverage.
        numbers: the multiples of 2π/``period`` at which the characteristic function is not
            ``_VANISHED``; shape (n,).
        values: the characteristic function there; shape (n,).
    """

    spacing: float
    period: float
    margin: float
    numbers: Floats
    values: Floats

    @classmethod
    def of(
        cls, weights: Weights, noises: Sequence[Transform], variances: Floats, variance: float
    ) -> ErrorDistribution | None:
        """The distribution of a weighted sum; None where it would take too many waves.

        That is where the noise is so little that the error is hardly ever anything but 0.

        Args:
            weights: of the measured cells; those left out have very little of the variance.
            noises: for each source the characteristic function of the noise on a cell.
            variances: for each source the variance of the noise; shape (sources,).
            variance: of the error, above 0.
        """
        sizes = np.abs(weights.values)
        parts = sizes**2 * variances[weights.sources] / variance
        alive = parts > _NOTHING
        rest = max(0.0, 1 - float(parts @ weights.counts))
        deviation = sqrt(variance)
        period = _PERIOD * deviation + _ATOMS * float(sizes[alive].max(initial=0.0))
        spacing = _spacing(sizes[alive]) if rest < _SAME else 0.0
        number = ceil(period / spacing / 2) if spacing else _MOST_POINTS
        if number < _MOST_POINTS:
            # An odd number of points in all: none of them is its own mirror image.
            period = (2 * number + 1) * spacing
            shares = np.where(alive, parts, 0.0)
            numbers = np.arange(1.0, number + 1)
            found = _product(weights, shares, noises, 2 * pi / period * numbers)
            return cls(spacing, period, 0.0, numbers[found.places], found.values)
        main = alive & ~_small(parts, weights.counts, rest)
        rest = max(0.0, 1 - float(parts[main] @ weights.counts[main]))
        smoothing = deviation * sqrt(max(rest, NARROW**2))
        margin = _MARGIN * deviation * sqrt(max(0.0, NARROW**2 - rest))
        number = ceil(_DECAY / smoothing * period / (2 * pi))
        if number > _MOST_WAVES:
            return None
        numbers = np.arange(1.0, number + 1)
        points = 2 * pi / period * numbers
        found = _product(weights, np.where(main, parts, 0.0), noises, points)
        normal = np.exp(-((smoothing * points[found.places]) ** 2) / 2)
        return cls(0.0, period, margin, numbers[found.places], normal * found.values)

    def within(self, width: float) -> float:
        """The chance that the error is at most ``width`` from 0."""
        if self.spacing:
            inside = 2 * floor(width / self.spacing + _SAME) + 1
            points = self._points
            sums = np.sin(inside * self._halves) / np.sin(self._halves)
            return float((inside + 2 * (self.values @ sums)) / points)
        share = 2 * max(0.0, width - self.margin) / self.period
        waves = np.sin(share * self._angles) / self.numbers
        return float(share + 2 / pi * (self.values @ waves))

    @cached_property
    def _angles(self) -> Floats:
        return pi * self.numbers

    @cached_property
    def _halves(self) -> Floats:
        return pi * self.numbers / self._points

    @property
    def _points(self) -> int:
        """The number of values of the lattice in a period."""
        return round(self.period / self.spacing)


@dataclass(frozen=True, eq=False)
class _Product:
    """A product of functions at some of many points: elsewhere it is ``_VANISHED``."""

    places: Codes
    values: Floats


def _product(
    weights: Weights, shares: Floats, noises: Sequence[Transform], points: Floats
) -> _Product:
    """The characteristic function of the cells with a share of the variance, all together."""
    places, values = np.arange(points.size), np.ones(points.size)
    own = shares * weights.counts
    # No factor is larger than 1, so that a product which has vanished stays so. Those with much of
    # the variance come first: of some 90,000 points they leave a few hundred.
    for cell in np.argsort(-own, kind="stable")[: np.count_nonzero(own)].tolist():
        angles = abs(float(weights.values[cell])) * points[places]
        factors = noises[weights.sources[cell]].power(angles, float(weights.counts[cell]))
        values = values * factors
        kept = np.abs(values) > _VANISHED
        places, values = places[kept], values[kept]
    return _Product(places, values)


def _small(parts: Floats, counts: Floats, rest: float) -> NDArray[np.bool_]:
    """The cells that together are taken as normal, with what is left out of the weights.

    The most of the smallest for which each has little of the variance, and little of the variance
    of all of them.
    """
    order = np.argsort(parts, kind="stable")
    sums = rest + np.cumsum((parts * counts)[order])
    ends = np.flatnonzero((parts[order] <= SMALL) & (parts[order] <= ALONE * sums))
    chosen = np.zeros(parts.size, dtype=bool)
    chosen[order[: ends[-1] + 1 if ends.size else 0]] = True
    return chosen


def _spacing(sizes: Floats) -> float:
    """The largest number that all sizes are multiples of; 0 if it is none that is looked for."""
    divisors = np.arange(1, _MOST_DIVISOR + 1)
    first = sizes[:1] * divisors
    for divisor in divisors[np.abs(first - np.round(first)) < _SAME].tolist():
        multiples = np.round(sizes * divisor)
        if (np.abs(sizes * divisor - multiples) < _SAME).all():
            common = gcd(*multiples.astype(np.int64).tolist())
            return common / divisor if common else 0.0
    return 0.0
