"""The variances of least squares on a tree: known before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.components import Component, Frame, whole
from release.tabulations.estimate.covariances import FINE
from release.tabulations.estimate.problem import Problem, Table
from release.tabulations.estimate.structure import Areas, Margin

SHOWN = 256
"""Variances are integers over 2^SHOWN: finer than any noise, coarser than their own rounding."""


@dataclass(frozen=True, eq=False)
class CellVariances:
    """The variance of every cell of a table, for each kind of area and sort of cell.

    Attributes:
        kinds: the kind of each area of the level; shape (areas,).
        sorts: the sort of each cell of the margin; shape (cells,).
        values: the variance, by kind and sort.
    """

    kinds: Codes
    sorts: Codes
    values: tuple[tuple[Fraction, ...], ...]

    def variance(self, area: int, cell: int) -> Fraction:
        """The variance of one cell."""
        return self.values[int(self.kinds[area])][int(self.sorts[cell])]

    def standard_errors(self) -> NDArray[np.float64]:
        """The root of the variance of every cell; shape (areas, cells)."""
        roots = np.sqrt(np.array(self.values, dtype=np.float64))
        return np.asarray(roots[self.kinds][:, self.sorts])


def variances(
    areas: Areas,
    sizes: Sequence[int],
    measured: Mapping[Table, Fraction],
    published: Iterable[Table],
) -> dict[Table, CellVariances]:
    """The variance of every published cell under least squares, without any data.

    Args:
        areas: the areas of all levels.
        sizes: the number of categories of each attribute.
        measured: for each measured table the variance of every cell; 0 for a declared fact, at
            the highest level only.
        published: the tables to estimate.

    Raises:
        ValueError: a level or a margin that does not exist, a variance out of bounds, or a table
            that the measured ones do not determine.
    """
    problem = Problem.of(areas, sizes, measured, published)
    return {table: variances_of(problem, table) for table in problem.published}


def variances_of(problem: Problem, table: Table) -> CellVariances:
    """The variance of every cell of one table."""
    level, margin = table
    place = problem.tree.places[level]
    sorts = Sorts.of(problem.frame, margin)
    kinds = problem.tree.kinds[place]
    values = [[Fraction(0)] * sorts.count for _ in problem.tree.origins[place]]
    for component in problem.frame.components_of(margin):
        rows, shares = sorts.shares(problem.frame, margin, component)
        of_rows = _row_variances(problem, table, component)
        for kind, own in enumerate(of_rows):
            # Components are uncorrelated, so the variance of a cell is the sum over them.
            for sort, (row, share) in enumerate(zip(rows, shares, strict=True)):
                values[kind][sort] += own[row] * share
    return CellVariances(kinds, sorts.cells, tuple(tuple(map(_rounded, row)) for row in values))


def _rounded(variance: Fraction) -> Fraction:
    """The variance to the nearest 2^-SHOWN: covariances are rounded far behind that."""
    # What follows from declared facts has the variance 0 then, and not a trifle of either sign.
    return Fraction(round(variance * 2**SHOWN), 2**SHOWN)


def _row_variances(problem: Problem, table: Table, component: Component) -> list[list[Fraction]]:
    """The variances of a component's rows, by kind and row."""
    matrix, denominator = problem.rows(table, component)
    # A level of as many areas as the level above shares its level of the tree, and covariances.
    covariances = problem.solutions[component].covariances[problem.tree.places[table[0]]]
    scale = denominator * denominator << FINE
    kinds = []
    for covariance in covariances:
        squares = ((matrix @ covariance) * matrix).sum(axis=1)
        # Of what is known exactly, rounding may leave less than 0.
        kinds.append([Fraction(max(0, int(square)), scale) for square in squares])
    return kinds


@dataclass(frozen=True, eq=False)
class Sorts:
    """The cells of a margin by what their variance depends on: the classes of their categories.

    Attributes:
        shape: for each attribute the number of classes, or of groups where it is grouped.
        cells: the sort of each cell, in row-major order of ``shape``.
    """

    shape: tuple[int, ...]
    cells: Codes

    @classmethod
    def of(cls, frame: Frame, margin: Margin) -> Sorts:
        """The sorts of a margin's cells."""
        shape = []
        cells = np.zeros(1, dtype=np.int64)
        for split, grouping in zip(frame.splits, margin.groupings, strict=True):
            if whole(grouping):
                own, count = np.array(split.classes), split.count
            else:
                count = max(grouping) + 1
                own = np.arange(count)
            cells = (cells[:, None] * count + own).reshape(-1)
            shape.append(count)
        return cls(tuple(shape), cells)

    @property
    def count(self) -> int:
        """The number of sorts."""
        return prod(self.shape)

    def shares(
        self, frame: Frame, margin: Margin, component: Component
    ) -> tuple[list[int], list[Fraction]]:
        """For each sort the row of a component, and the row's share in the cell's variance.

        The mean of a class of m categories has 1/m² of the variance of its sum, and the deviation
        of one category 1 − 1/m of the variance that deviations have per dimension.
        """
        rows, shares = [0], [Fraction(1)]
        for split, grouping, deviates, count in zip(
            frame.splits, margin.groupings, component, self.shape, strict=True
        ):
            own = [Fraction(1)] * count
            if deviates:
                own = [1 - Fraction(1, size) for size in split.sizes]
            elif whole(grouping):
                own = [Fraction(1, size * size) for size in split.sizes]
            # Where the attribute deviates, its categories share a row: a row has a column for each
            # deviation, and all of these have the same variance.
            places = [0] * count if deviates else range(count)
            stride = 1 if deviates else count
            rows = [row * stride + place for row, place in product(rows, places)]
            shares = [share * part for share, part in product(shares, own)]
        return rows, shares
