"""Intervals around estimates that cover the true count with a stated probability.

The error of an estimate is a weighted sum of the noise on all measured cells. Its distribution is
known before anything is measured, and is the same for all areas of one kind and cells of one sort.
So there is one half width for each kind and sort: the least on a grid at which the chance of an
error no larger is 95 % or more. A multiple of the standard error would not do: noise of less than
one unit lies on few integers, and geometric noise has other tails than normal noise.

The true count is an integer and not below 0. So the published interval runs from the least integer
in it that is not below 0 to the greatest, and nothing of the coverage is lost.

Chances are no more than about 10^-4 too high (docs/design/mathematics.md, 2.34): cells that have
less than a thousandth of the variance each are taken as one normal variable. Where the error has
atoms next to an end, a chance may be too low, and the interval a step too wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.tabulations.estimate.error_distribution import ErrorDistribution, transform_of
from release.tabulations.estimate.problem import Problem, Table
from release.tabulations.estimate.structure import Areas
from release.tabulations.estimate.variances import variances_of
from release.tabulations.estimate.weights import weights_of

COVERAGE = 0.95
"""The least chance that an interval covers the true count."""

_FINENESS = 32
_NO_VARIANCE = Fraction(1, 2**200)  # of a cell that follows from facts: rounding alone
_FARTHEST = 1 / sqrt(1 - COVERAGE)  # in standard errors: Chebyshev's inequality


@dataclass(frozen=True)
class HalfWidth:
    """The half width of one kind of area and sort of cell.

    Attributes:
        value: the half width, halfway between two multiples of the step; 0 for a cell without
            noise.
        coverage: the chance that the error is no larger.
        narrower: the same chance at the half width one step less.
    """

    value: Fraction
    coverage: float
    narrower: float


NO_WIDTH = HalfWidth(Fraction(0), 1.0, 0.0)
"""Of a cell that is known without noise."""


@dataclass(frozen=True, eq=False)
class HalfWidths:
    """The half widths of a table, for each kind of area and sort of cell.

    Attributes:
        kinds: the kind of each area of the level; shape (areas,).
        sorts: the sort of each cell of the margin; shape (cells,).
        values: the half width, by kind and sort.
    """

    kinds: Codes
    sorts: Codes
    values: tuple[tuple[HalfWidth, ...], ...]

    def mean(self) -> float:
        """The mean over all cells."""
        values = np.array([[float(own.value) for own in row] for row in self.values])
        areas = np.bincount(self.kinds, minlength=values.shape[0])
        cells = np.bincount(self.sorts, minlength=values.shape[1])
        return float(areas @ values @ cells) / (self.kinds.size * self.sorts.size)


def half_widths(
    areas: Areas,
    sizes: Sequence[int],
    noises: Mapping[Table, IntegerNoise],
    facts: Iterable[Table],
    published: Iterable[Table],
) -> dict[Table, HalfWidths]:
    """The half widths of all published tables, without any data.

    Args:
        areas: the areas of all levels.
        sizes: the number of categories of each attribute.
        noises: the noise on every cell of the measured tables, symmetric.
        facts: the tables that are known without noise, at the highest level only.
        published: the tables to estimate.

    Raises:
        ValueError: a level or a margin that does not exist, a variance out of bounds, noise that is
            not symmetric, or a table that the measured ones do not determine.
    """
    measured = dict.fromkeys(facts, Fraction(0))
    for table, noise in noises.items():
        measured[table] = noise.moment(2)
    problem = Problem.of(areas, sizes, measured, published)
    # Tables with the same noise share its transform, which takes long.
    by_noise = {noise: transform_of(noise) for noise in set(noises.values())}
    transforms, spreads = [], []
    # In the order by which ``weights_of`` numbers them: that of ``measured``, without facts.
    for table, variance in measured.items():
        if variance:
            transforms.append(by_noise[noises[table]])
            spreads.append(float(variance))
    of_noise = np.array(spreads, dtype=np.float64)
    exact = {table: variances_of(problem, table) for table in problem.published}
    widths: dict[tuple[Table, int, int], HalfWidth] = {}
    for cell in weights_of(problem):
        variance = exact[cell.table].values[cell.kind][cell.sort]
        width = NO_WIDTH
        if variance >= _NO_VARIANCE:
            error = ErrorDistribution.of(cell.weights, transforms, of_noise, float(variance))
            width = _least(error, variance)
        widths[cell.table, cell.kind, cell.sort] = width
    tables = {}
    for table, own in exact.items():
        rows = []
        for kind, row in enumerate(own.values):
            rows.append(tuple(widths[table, kind, sort] for sort in range(len(row))))
        tables[table] = HalfWidths(own.kinds, own.sorts, tuple(rows))
    return tables


def step_of(variance: Fraction) -> Fraction:
    """The step of the grid: the greatest power of two of at most 1 unit and of σ/32.

    Half widths lie halfway between its multiples: an error on a lattice, of whole numbers say, then
    does not end just there.
    """
    ratio = variance / _FINENESS**2
    # A ratio below 2^(n + 1), with n the difference, is below 4^(n // 2 + 1).
    exponent = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2
    while Fraction(4) ** exponent > ratio:
        exponent -= 1
    return Fraction(2) ** min(exponent, 0)


def _least(error: ErrorDistribution | None, variance: Fraction) -> HalfWidth:
    """The least half width on the grid with enough coverage; by its variance alone if need be."""
    step = step_of(variance)

    def value(count: int) -> Fraction:
        return (count + Fraction(1, 2)) * step

    low, high = -1, ceil(_FARTHEST * sqrt(variance) / step)
    if error is None:
        return HalfWidth(value(high), COVERAGE, 0.0)
    narrower, coverage = 0.0, 1.0
    # Invariant: ``low`` has too little coverage, ``high`` has enough.
    while low + 1 < high:
        middle = (low + high) // 2
        chance = error.within(float(value(middle)))
        if chance < COVERAGE:
            low, narrower = middle, chance
        else:
            high, coverage = middle, chance
    return HalfWidth(value(high), coverage, narrower)
