"""Non-negative tables of stated sums, and their rounding to whole numbers, in integers.

A table has a row for each item and a column for each cell. Its rows are in groups of neighboring
rows, and each group has a stated sum in every column: the areas of one parent add up to the parent.
Values are 64-bit integers, counted in millionths of a unit where they need not be whole. Sums of
integers do not depend on their order, so no result here depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes

MILLION = 10**6
"""How many parts a unit is counted in."""

Mask: TypeAlias = NDArray[np.bool_]
"""Which cells may be above 0; shape (rows, columns)."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of neighboring rows.

    Attributes:
        sizes: the number of rows of each group, at least 1; shape (groups,).
    """

    sizes: Codes

    @cached_property
    def starts(self) -> Codes:
        """The first row of each group; shape (groups,)."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def summed(self, values: Codes) -> Codes:
        """The sum of each group in each column; shape (groups, columns)."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    def spread(self, values: Codes) -> Codes:
        """The value of its group for each row; shape (rows, columns)."""
        return np.repeat(values, self.sizes, axis=0)


def thresholds(
    values: Codes, groups: Groups, sums: Codes, possible: Mask, start: Codes | None = None
) -> Codes:
    """For each group and column the t, rounded down, with Σ max(0, value − t) equal to the sum.

    The excess Σ max(0, value − t) − sum is convex in t and falls. A Newton step from anywhere ends
    at or below its root, and the steps after it rise to the root. No integer lies between a root
    and the root rounded down, so steps between integers have the same rows above them, and they end
    at the same place from every ``start``.

    Args:
        values: shape (rows, columns).
        groups: the groups of the rows.
        sums: at least 0, and 0 where no row of the group is possible; shape (groups, columns).
        possible: the values that count; the others are held at 0.
        start: where to begin; a good guess saves steps. Shape (groups, columns).

    Returns:
        Integers of shape (groups, columns). Where a sum is 0, any t with no value above it.
    """
    # The step from below every possible value, where all of them count.
    lowest = _step(values, groups, sums, possible)[0]
    below = lowest if start is None else start
    while True:
        newer, empty = _step(values, groups, sums, possible & (values > groups.spread(below)))
        # Nothing above t is right for a sum of 0; for any other the guess was too high.
        newer = np.where(empty, np.where(sums > 0, lowest, below), newer)
        if np.array_equal(newer, below):
            return below
        below = newer


def _step(values: Codes, groups: Groups, sums: Codes, above: Mask) -> tuple[Codes, Mask]:
    """The t at which the rows ``above`` have the sum, rounded down, and where there is no row."""
    counts = groups.summed(above.astype(np.int64))
    excess = groups.summed(np.where(above, values, 0)) - sums
    return excess // np.maximum(counts, 1), counts == 0


def onto_sums(
    values: Codes, groups: Groups, sums: Codes, possible: Mask, start: Codes | None = None
) -> tuple[Codes, Codes]:
    """The non-negative table of the stated sums that is nearest to ``values`` in squares.

    The nearest real table subtracts one t from a group and cuts at 0. Here t is rounded up to an
    integer, so a group falls short of its sum by less than the number of its rows that are above 0.

    Returns:
        The table, of shape (rows, columns), and the thresholds: a ``start`` for a table close by.
    """
    below = thresholds(values, groups, sums, possible, start)
    above = possible & (values > groups.spread(below))
    counts = groups.summed(above.astype(np.int64))
    excess = groups.summed(np.where(above, values, 0)) - sums
    # A quotient rounded up; nothing is above where the sum is 0.
    cut = -(-excess // np.maximum(counts, 1))
    return np.asarray(np.where(above, values - groups.spread(cut), 0)), below


def largest_remainder(values: Codes, groups: Groups, sums: Codes, possible: Mask) -> Codes:
    """The whole numbers of the stated sums that are nearest to ``values`` in squares.

    Every value is rounded down, and the rows of the largest remainders are raised by 1 until the
    group has its sum; of equal remainders the earlier row is raised. No whole numbers of the same
    sum are nearer. To raise a value from its floor costs 1 − 2·remainder, above −1 and at most 1;
    each further step up costs more than 1, and each step down from the floor saves nothing.

    Args:
        values: in millionths, at least 0; shape (rows, columns).
        groups: the groups of the rows.
        sums: whole numbers; shape (groups, columns).
        possible: the values that may be raised; the others are 0.

    Raises:
        ValueError: a sum that rounding the possible cells of its group up or down cannot reach.
    """
    floors = values // MILLION
    remainders = np.where(possible, values % MILLION, -1)
    missing = sums - groups.summed(floors)
    if (missing < 0).any() or (missing > groups.summed(possible.astype(np.int64))).any():
        raise ValueError("the values of a group do not add up to its whole number")
    return np.asarray(floors + (_ranks(remainders, groups) < groups.spread(missing)))


def _ranks(remainders: Codes, groups: Groups) -> Codes:
    """The place of each value in its group and column, from 0 for the largest, stable in ties."""
    rows, columns = remainders.shape
    group = groups.spread(np.arange(groups.sizes.size)[:, None])
    # A remainder lies in −1..MILLION − 1, so the keys of one run never reach those of the next.
    runs = np.arange(columns) * groups.sizes.size + group
    keys = runs * (MILLION + 1) - remainders
    order = np.argsort(keys.T.reshape(-1), kind="stable")
    places = np.empty(rows * columns, dtype=np.int64)
    places[order] = np.arange(rows * columns)
    firsts = groups.spread(groups.starts[:, None]) + np.arange(columns) * rows
    return np.asarray(places.reshape(columns, rows).T - firsts)
