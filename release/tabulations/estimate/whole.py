"""Tables of whole numbers that are not negative and add up over all levels and margins.

From the top level down: the table of each level is the nearest non-negative one whose areas add up
to the whole numbers of their parents (``cone``), rounded so that they still do. A level has whole
numbers for its *cells*, the combinations that refine every margin published there or below. Every
published margin is a sum of cells, so all tables add up (T12).

The result is a function of the areas, the published margins, the weights and the estimates, and of
nothing else. Whoever has these computes it again, in integers, and compares it number by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.cone import (
    AddingUp,
    Allowed,
    Declared,
    Distance,
    NonNegative,
    coarsened,
    nearest,
)
from release.tabulations.estimate.least_squares import Estimates
from release.tabulations.estimate.rounding import MILLION, Groups, Mask
from release.tabulations.estimate.structure import Areas, Margin, numbered
from release.tabulations.estimate.variances import CellVariances

HEAVIEST = 64
"""The weight of the best known margin of a level beside 1 for the least known, totals apart."""

TOTAL_FACTOR = 16
"""How many times as heavy the total of an area is as its precision alone would make it.

Many cells of a small area are near 0, and what keeps them from going below moves its total up. On
the margins of Hawaii a factor of 16 keeps the totals of the lowest level nearer to the truth than
the estimates are, for every strategy tried, and costs the other margins nothing.
"""


@dataclass(frozen=True, eq=False)
class Target:
    """What the whole numbers of a level are to be near to.

    Attributes:
        cells: the margin that refines all published margins of this level and of those below.
        estimates: in millionths of a unit, any sign; shape (areas, cells).
        margins: the published margins, each a sum of cells.
        weights: of each published margin's squared changes, at least 1.

    Raises:
        ValueError: margins that the cells do not refine, weights below 1, or another shape.
    """

    cells: Margin
    estimates: Codes
    margins: tuple[Margin, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.estimates.ndim != 2 or self.estimates.shape[1] != self.cells.cells:
            raise ValueError("estimates have a row for each area and a column for each cell")
        self.distance()

    def distance(self) -> Distance:
        """The squared changes of the published margins of an area, weighted."""
        return Distance.of_margins(self.cells, self.margins, self.weights)


@dataclass(frozen=True, eq=False)
class Level:
    """The table of a level.

    Attributes:
        near: the nearest non-negative table that adds up to the parents, in millionths.
        counts: its whole numbers. Both have the shape (areas, cells).
    """

    near: Codes
    counts: Codes


@dataclass(frozen=True, eq=False)
class Facts:
    """Whole numbers of the highest level that are known without noise.

    Attributes:
        margin: the margin whose cells are known.
        counts: at least 0; shape (areas of the highest level, margin.cells).
    """

    margin: Margin
    counts: Codes


def finest(published: Sequence[Sequence[Margin]]) -> tuple[Margin, ...]:
    """The cells of each level: what refines all margins published there or at a lower level."""
    cells: list[Margin] = []
    below: tuple[Margin, ...] = ()
    for margins in reversed(published):
        below = (*margins, *below)
        refinements = []
        for groupings in zip(*(margin.groupings for margin in below), strict=True):
            # Two categories share a cell where every grouping has them in one class.
            refinements.append(numbered(zip(*groupings, strict=True)))
        cells.append(Margin(tuple(refinements)))
    return tuple(reversed(cells))


def millionths(numerators: NDArray[np.object_] | Codes, denominator: int) -> Codes:
    """Exact numbers to the nearest millionth, a half upward; too large ones saturate.

    Args:
        numerators: integers of any size.
        denominator: what all of them are divided by, above 0.
    """
    scaled = numerators.astype(object) * (2 * MILLION) + denominator
    nearest_integers = scaled // (2 * denominator)
    return np.asarray(np.clip(nearest_integers, -(2**52), 2**52).astype(np.int64))


def weights_of(margins: Sequence[Margin], variances: Sequence[Fraction]) -> tuple[int, ...]:
    """Weights in proportion to precision, from HEAVIEST for the least variance down to 1.

    The total of an area is TOTAL_FACTOR times as heavy. A margin without variance is known exactly,
    and weighs as much as the best known of the others.

    Args:
        margins: the published margins of a level.
        variances: the mean variance of the cells of each.
    """
    positive = [variance for variance in variances if variance > 0]
    # Without any noise all weights are the same, whatever stands for the least variance.
    least = min(positive, default=Fraction(1))
    weights = []
    for margin, variance in zip(margins, variances, strict=True):
        share = least / variance if variance > 0 else Fraction(1)
        weight = max(1, int(HEAVIEST * share + Fraction(1, 2)))
        weights.append(weight * TOTAL_FACTOR if margin.cells == 1 else weight)
    return tuple(weights)


def targets_of(estimates: Estimates, published: Sequence[Sequence[Margin]]) -> tuple[Target, ...]:
    """What the whole numbers of each level are to be near to, from least squares.

    Args:
        estimates: with tables for the cells of every level (``finest``) and the published margins.
        published: the published margins of each level.

    Raises:
        ValueError: a table that has no estimates.
    """
    targets = []
    for level, (margins, cells) in enumerate(zip(published, finest(published), strict=True)):
        near = millionths(estimates.table(level, cells), estimates.denominator)
        variances = [_mean(estimates.variances(level, margin)) for margin in margins]
        targets.append(Target(cells, near, tuple(margins), weights_of(margins, variances)))
    return tuple(targets)


def _mean(variances: CellVariances) -> Fraction:
    """The mean variance over all areas and cells."""
    areas: list[int] = np.bincount(variances.kinds).tolist()
    cells: list[int] = np.bincount(variances.sorts).tolist()
    total = Fraction(0)
    for row, times in zip(variances.values, areas, strict=True):
        for value, columns in zip(row, cells, strict=True):
            total += times * columns * value
    return total / (sum(areas) * sum(cells))


def whole_tables(
    areas: Areas,
    targets: Sequence[Target],
    facts: Facts | None = None,
    possible: Sequence[Mask | None] | None = None,
) -> tuple[Level, ...]:
    """The whole numbers of every level, from the highest down.

    Args:
        areas: the areas of all levels.
        targets: one for each level.
        facts: what the highest level must add up to; None: its own estimates decide.
        possible: for each level the cells that may be above 0 (the others are structural zeros);
            None: all. Shape (areas, cells), or (1, cells) where all areas of the level are alike.
            The cells of an upper level may be finer, so each level can have zeros of its own.

    Raises:
        ValueError: shapes that do not fit the areas, cells of a level that do not refine those of
            the level below, or facts that no possible cells can add up to.
    """
    _check(areas, targets)
    masks = _possible(areas, targets, possible)
    tables: list[Level] = []

    for level, (target, mask) in enumerate(zip(targets, masks, strict=True)):
        estimates, distance = _saturated(target.estimates), target.distance()
        allowed: Allowed
        if tables:
            sums = coarsened(tables[-1].counts, targets[level - 1].cells, target.cells)
            allowed = AddingUp(Groups(areas.children(level - 1)), sums, mask)
        else:
            allowed = _highest(target, facts, mask)
        near = nearest(estimates, distance, allowed)
        tables.append(Level(near, allowed.whole(near, estimates, distance)))
    return tuple(tables)


def check_adds_up(areas: Areas, cells: Sequence[Margin], counts: Sequence[Codes]) -> None:
    """Checks that published whole numbers are not negative and add up to those of their parents.

    Raises:
        ValueError: the first level at which they do not, by name.
    """
    for level, table in enumerate(counts):
        name = areas.levels[level]
        if table.shape != (areas.size(level), cells[level].cells) or (table < 0).any():
            raise ValueError(f"{name}: a whole number is missing or negative")
        if level:
            above = coarsened(counts[level - 1], cells[level - 1], cells[level])
            if not np.array_equal(areas.summed_up(level, table), above):
                raise ValueError(f"{name}: areas do not add up to the area that they lie in")


def _check(areas: Areas, targets: Sequence[Target]) -> None:
    """Whether the targets fit the areas and one another."""
    if len(targets) != len(areas.levels):
        raise ValueError("there is one target for each level")
    for level, target in enumerate(targets):
        if target.estimates.shape[0] != areas.size(level):
            raise ValueError(f"{areas.levels[level]}: estimates have a row for each area")
        if level and not targets[level - 1].cells.refines(target.cells):
            raise ValueError(
                f"{areas.levels[level]}: cells are finer than those of the level above"
            )


def _possible(
    areas: Areas, targets: Sequence[Target], masks_of_levels: Sequence[Mask | None] | None
) -> list[Mask]:
    """The possible cells of each level: those given that a possible cell below adds to."""
    own = [None] * len(targets) if masks_of_levels is None else masks_of_levels
    if len(own) != len(targets):
        raise ValueError("possible cells are given for each level, or for none")
    masks: list[Mask] = []
    # From the lowest level up: a cell that no area below may have cannot be above 0, because the
    # areas below could not add up to it.
    for level in range(len(targets) - 1, -1, -1):
        mask = _mask(targets[level], own[level])
        if masks:
            below = areas.summed_up(level + 1, masks[0].astype(np.int64)) > 0
            # The coarser cell of the level below that each cell lies in.
            finer, coarser = targets[level].cells, targets[level + 1].cells
            within = np.zeros(finer.cells, dtype=np.int64)
            within[finer.cell_of] = coarser.cell_of
            mask = mask & below[:, within]
        masks.insert(0, mask)
    return masks


def _mask(target: Target, possible: Mask | None) -> Mask:
    """The possible cells that are given for a level; shape (areas, cells)."""
    rows, cells = target.estimates.shape
    if possible is None:
        return np.ones((rows, cells), dtype=bool)
    if possible.shape not in {(rows, cells), (1, cells)}:
        raise ValueError("possible cells have the shape of their level's estimates, or one row")
    return np.broadcast_to(possible, (rows, cells))


def _highest(target: Target, facts: Facts | None, mask: Mask) -> Allowed:
    """The tables allowed at the highest level."""
    if facts is None:
        return NonNegative(mask)
    if not target.cells.refines(facts.margin):
        raise ValueError("facts are declared for a margin that is a sum of cells")
    classes = np.zeros(target.cells.cells, dtype=np.int64)
    classes[target.cells.cell_of] = facts.margin.cell_of
    reachable = coarsened(mask.astype(np.int64), target.cells, facts.margin) > 0
    if facts.counts.shape != reachable.shape or (facts.counts < 0).any():
        raise ValueError("facts are numbers of at least 0, one for each area and cell")
    if (facts.counts[~reachable] > 0).any():
        raise ValueError("a declared number is above 0, and all its cells are declared to be 0")
    return Declared(classes, facts.counts, mask)


def _saturated(estimates: Codes) -> Codes:
    """Estimates whose sums stay far from the end of 64 bits; real tables are never touched."""
    # 2^52 millionths are 4.5 billion units, and 2^56 in all are 72 billion.
    bounded = np.clip(estimates, -(2**52), 2**52)
    if int((np.abs(bounded) >> 16).sum()) < 2**40:
        return bounded
    return np.clip(bounded, -(2**56) // estimates.size, 2**56 // estimates.size)
