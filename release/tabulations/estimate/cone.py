"""The table nearest to the estimates that is not negative and adds up, in integers.

Estimates from noisy tables add up, but some are negative. To cut them at 0 cell by cell moves the
totals that were measured well. So the change is measured on all published margins at once: the sum,
over areas and margins, of weight times squared change, is least among the tables allowed. Where the
areas of a parent add up to it in every cell, the tables allowed are a product of simplices, one for
each parent and cell.

The search is projected gradient descent with momentum (Nesterov; Beck and Teboulle 2009). Every
step is exact in 64-bit integers of a millionth of a unit, or rounds in a stated way, and every sum
over areas is a sum of integers. So the result is a function of its inputs: the same on every
machine, and in whatever order the areas of a parent stand. How near it is to the least is not taken
on trust: ``excess_bound`` is an exact upper bound, from the table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Protocol

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.rounding import (
    MILLION,
    Groups,
    Mask,
    largest_remainder,
    onto_sums,
    thresholds,
)
from release.tabulations.estimate.structure import Margin

_EXACT_FLOAT = 2**53  # integers up to here, and their sums up to here, are exact in floats
_EXACT_INTEGER = 2**62

TOLERANCE = 5
"""The search ends when no value moves further; rounding alone moves values by 2 or 3 millionths."""

STEPS = 1000
"""The search ends after as many steps at the latest."""

SWEEPS = 16
"""Rounding passes over all cells at most as often; it has mostly ended after five."""


def coarsened(table: Codes, cells: Margin, margin: Margin) -> Codes:
    """The cells of ``margin`` for a table with the finer ``cells``; shape (areas, margin.cells)."""
    return _exact_product(table, _classes(cells, margin))


def _classes(cells: Margin, margin: Margin) -> Codes:
    """Which of ``cells`` each cell of ``margin`` adds up, as 0 and 1; (cells, margin.cells)."""
    indicator = np.zeros((cells.cells, margin.cells), dtype=np.int64)
    indicator[cells.cell_of, margin.cell_of] = 1
    return indicator


def _exact_product(values: Codes, matrix: Codes) -> Codes:
    """The matrix product of integers; by floats where every partial sum is exact in them too."""
    reach = int(np.abs(values).max(initial=0)) * int(np.abs(matrix).sum(axis=0).max(initial=0))
    if reach < _EXACT_FLOAT:
        return np.asarray((values.astype(float) @ matrix.astype(float)).astype(np.int64))
    return np.asarray(values @ matrix)


@dataclass(frozen=True, eq=False)
class Distance:
    """How far two tables of an area are apart: Σ over margins of weight × squared differences.

    Attributes:
        matrix: the quadratic form Σ weight·MᵀM on the cells; shape (cells, cells).
        least: the weight of single cells; no eigenvalue of the form is lower.
    """

    matrix: Codes
    least: int

    @classmethod
    def of_margins(
        cls, cells: Margin, margins: Sequence[Margin], weights: Sequence[int]
    ) -> Distance:
        """The distance over published margins.

        Raises:
            ValueError: a margin that the cells do not refine, or a weight below 1.
        """
        if not all(map(cells.refines, margins)) or min(weights, default=0) < 1:
            raise ValueError("margins add up cells, and their weights are at least 1")
        matrix = np.zeros((cells.cells, cells.cells), dtype=np.int64)
        least = 0
        for margin, weight in zip(margins, weights, strict=True):
            classes = _classes(cells, margin)
            matrix += weight * classes @ classes.T
            least += weight if margin.cells == cells.cells else 0
        return cls(matrix, least)

    @cached_property
    def most(self) -> int:
        """An upper bound of the eigenvalues: the largest sum of a row of non-negative numbers."""
        return int(self.matrix.sum(axis=0).max())

    def bounded(self, change: Codes) -> Codes:
        """The change, saturated where its slope would go beyond 64 bits."""
        reach = _EXACT_INTEGER // self.most
        return np.clip(change, -reach, reach)

    def slope(self, change: Codes) -> Codes:
        """Half the gradient of the distance at a change; saturates beyond 64 bits."""
        return _exact_product(self.bounded(change), self.matrix)

    def squared(self, change: Codes) -> int:
        """The distance, added up over areas, in squared units of ``change``; exact."""
        # Python integers: a square of millionths alone can leave 64 bits.
        exact = change.astype(object)
        return int((exact @ self.matrix.astype(object) * exact).sum())


class Allowed(Protocol):
    """The tables among which the nearest is sought."""

    def project(self, values: Codes, guess: Codes | None) -> tuple[Codes, Codes | None]:
        """The allowed table nearest to ``values`` cell by cell, and a guess for the next one."""

    def whole(self, near: Codes, estimates: Codes, distance: Distance) -> Codes:
        """An allowed table of whole numbers that is near to the estimates, in units."""


@dataclass(frozen=True, eq=False)
class NonNegative:
    """Tables of areas without a parent: nothing is below 0, and impossible cells are 0."""

    possible: Mask

    def project(self, values: Codes, guess: Codes | None) -> tuple[Codes, Codes | None]:
        """The allowed table nearest to ``values`` cell by cell."""
        return np.where(self.possible, np.maximum(values, 0), 0), guess

    def whole(self, near: Codes, estimates: Codes, distance: Distance) -> Codes:
        """An allowed table of whole numbers that is near to the estimates, in units."""
        return _cell_by_cell(self, near, estimates, distance)

    def whole_column(self, targets: Codes, cell: int) -> Codes:
        """The whole numbers of one cell nearest to ``targets``; a half is rounded up."""
        rounded = np.maximum((targets + MILLION // 2) // MILLION, 0)
        return np.asarray(np.where(self.possible[:, cell], rounded, 0))


@dataclass(frozen=True, eq=False)
class AddingUp:
    """Tables in which the areas of a group add up to the group's whole numbers, in every cell.

    Attributes:
        groups: the areas of each parent.
        sums: the whole numbers of the parents; shape (parents, cells).
        possible: the cells that may be above 0; shape (areas, cells).
    """

    groups: Groups
    sums: Codes
    possible: Mask

    def project(self, values: Codes, guess: Codes | None) -> tuple[Codes, Codes | None]:
        """The allowed table nearest to ``values`` cell by cell, and a guess for the next one."""
        return onto_sums(values, self.groups, self.sums * MILLION, self.possible, guess)

    def whole(self, near: Codes, estimates: Codes, distance: Distance) -> Codes:
        """An allowed table of whole numbers that is near to the estimates, in units."""
        return _cell_by_cell(self, near, estimates, distance)

    def whole_column(self, targets: Codes, cell: int) -> Codes:
        """The whole numbers of one cell nearest to ``targets``, by largest remainder."""
        column = slice(cell, cell + 1)
        sums, possible = self.sums[:, column], self.possible[:, column]
        near, _ = onto_sums(targets[:, None], self.groups, sums * MILLION, possible)
        return largest_remainder(near, self.groups, sums, possible)[:, 0]


@dataclass(frozen=True, eq=False)
class Declared:
    """Tables of areas without a parent whose cells add up to declared whole numbers of a margin.

    Attributes:
        classes: the cell of the declared margin that each cell is part of; shape (cells,).
        counts: the declared numbers; shape (areas, cells of the margin).
        possible: the cells that may be above 0; shape (areas, cells).
    """

    classes: Codes
    counts: Codes
    possible: Mask

    @cached_property
    def _order(self) -> Codes:
        return np.argsort(self.classes, kind="stable")

    @cached_property
    def _groups(self) -> Groups:
        return Groups(np.bincount(self.classes))

    def project(self, values: Codes, guess: Codes | None) -> tuple[Codes, Codes | None]:
        """The allowed table nearest to ``values`` cell by cell, and a guess for the next one."""
        # The cells of an area take the place of rows, class by class.
        rows, possible = values[:, self._order].T, self.possible[:, self._order].T
        table, guess = onto_sums(rows, self._groups, self.counts.T * MILLION, possible, guess)
        return self._in_place(table), guess

    def whole(self, near: Codes, estimates: Codes, distance: Distance) -> Codes:
        """The whole numbers nearest to ``near`` cell by cell, in units."""
        rows, possible = near[:, self._order].T, self.possible[:, self._order].T
        return self._in_place(largest_remainder(rows, self._groups, self.counts.T, possible))

    def _in_place(self, rows: Codes) -> Codes:
        table = np.empty_like(rows.T)
        table[:, self._order] = rows.T
        return table


def nearest(estimates: Codes, distance: Distance, allowed: Allowed) -> Codes:
    """The allowed table nearest to the estimates, in millionths; shape (areas, cells).

    The step is 1/λ, λ at least the largest eigenvalue of the distance, and every iterate is
    allowed. Where single cells have a weight μ, the momentum (√κ − 1)/(√κ + 1) with κ = λ/μ takes
    the error down by 1 − 1/√κ a step; elsewhere it is k/(k + 3), the k-th step's.
    """
    # √κ in 1,024ths; integers, so that no machine rounds another way.
    root = isqrt(distance.most * 2**20 // distance.least) if distance.least else 0
    table, guess = allowed.project(estimates, None)
    ahead = table
    for step in range(STEPS):
        downhill = ahead - distance.slope(ahead - estimates) // distance.most
        newer, guess = allowed.project(downhill, guess)
        moved = int(np.abs(newer - ahead).max())
        share, whole = (root - 1024, root + 1024) if root else (step, step + 3)
        # ``share`` is below ``whole``, so that their product with a change of at most ``reach``
        # stays within 64 bits.
        reach = _EXACT_INTEGER // whole
        ahead = newer + np.clip(newer - table, -reach, reach) * share // whole
        table = newer
        if moved <= TOLERANCE:
            break
    return table


def excess_bound(table: Codes, estimates: Codes, distance: Distance, allowed: AddingUp) -> int:
    """How much nearer than ``table`` any allowed table can be at most, in squared millionths.

    Let x be ``table``, s the slope there and μ the weight of single cells. The distance of an
    allowed y is at least that of x plus 2s·(y − x) + μ|y − x|². Take any multiplier t for each
    group and cell, and r = s + μt. The group's sum gives 2s·(y − x) = 2r·(y − x) − 2μt·short,
    ``short`` what x lacks of its sum. The rest splits into single values y ≥ 0, and is least at
    x − r/μ, where it is −r²/μ, or at 0, where it is −2rx + μx². So every t gives a bound, exact in
    integers, however the table was found. A threshold gives the best t; without weights of single
    cells it is minus the lowest slope of a group. A table that lacks millionths of its sums can be
    nearer than every allowed one, and then the bound is negative.
    """
    slope, weight = distance.slope(table - estimates), distance.least
    if not weight:
        return _linear_bound(table, slope, allowed)
    sums = allowed.sums * MILLION
    shift = thresholds(table - slope // weight, allowed.groups, sums, allowed.possible)
    exact, residual = table.astype(object), (slope + weight * allowed.groups.spread(shift))
    residual = np.where(allowed.possible, residual, 0).astype(object)
    inside = residual <= weight * exact
    outside = 2 * weight * residual * exact - weight**2 * exact**2
    short = shift.astype(object) * (sums - allowed.groups.summed(table))
    total = np.where(inside, residual**2, outside).sum() + 2 * weight**2 * short.sum()
    return -(-int(total) // weight)


def _linear_bound(table: Codes, slope: Codes, allowed: AddingUp) -> int:
    """The bound of ``excess_bound`` from the slope alone (the gap of Frank and Wolfe)."""
    # Above any slope: an impossible cell is never the lowest of a group that has a possible one.
    open_slope = np.where(allowed.possible, slope, _EXACT_INTEGER)
    lowest = np.minimum.reduceat(open_slope, allowed.groups.starts, axis=0).astype(object)
    least = (allowed.sums.astype(object) * MILLION * lowest).sum()
    return 2 * int((slope.astype(object) * table).sum() - least)


class _ByColumn(Protocol):
    """Tables whose cells are rounded one after the other."""

    def whole_column(self, targets: Codes, cell: int) -> Codes:
        """The whole numbers of one cell nearest to ``targets``."""


def _cell_by_cell(allowed: _ByColumn, near: Codes, estimates: Codes, distance: Distance) -> Codes:
    """Rounds one cell after the other, each to make up for those before it.

    With the other cells held, the distance of one cell is a sum of equal parabolas over the areas,
    whose lowest points are ``targets``. The nearest whole numbers are the best for that cell. After
    the first sweep all cells are whole, and a further sweep never raises the distance by more than
    the millionths that ``targets`` is rounded to.
    """
    table = near.copy()
    change = distance.bounded(table - estimates)
    for _ in range(SWEEPS):
        before = table.copy()
        for cell in range(table.shape[1]):
            slope = change @ distance.matrix[:, cell]
            targets = table[:, cell] - slope // int(distance.matrix[cell, cell])
            table[:, cell] = allowed.whole_column(targets, cell) * MILLION
            change[:, cell] = distance.bounded(table[:, cell] - estimates[:, cell])
        if np.array_equal(table, before):
            break
    return np.asarray(table // MILLION)
