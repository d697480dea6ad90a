"""What a strategy is chosen for: public structure, and nothing else.

A *table* is a margin of every area of a level. A strategy measures some tables, with independent
noise on each cell, and least squares over all of them gives every published table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.structure import Areas, Margin

Table: TypeAlias = tuple[int, int]
"""The level, and the place of the margin among the margins."""

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Publication:
    """The tables that are published, and how far one unit reaches into each.

    Attributes:
        areas: the areas of all levels.
        margins: the margins, over the same attributes.
        importance: the weight of each published table, above 0.
        moves: how many cells of a table one unit can move by 1 each, for every level and margin:
            1, 2, or 0 where the table is the same for all neighbors.

    Raises:
        ValueError: nothing is published, or a table, a weight or a number of moves is not possible.
    """

    areas: Areas
    margins: tuple[Margin, ...]
    importance: Mapping[Table, float]
    moves: Mapping[Table, int]

    def __post_init__(self) -> None:
        if not self.importance or min(self.importance.values()) <= 0:
            raise ValueError("a publication needs tables, each with an importance above 0")
        if not set(self.importance) <= set(self.tables):
            raise ValueError("a published table has a level and a margin that are listed")
        if set(self.moves) != set(self.tables) or not set(self.moves.values()) <= {0, 1, 2}:
            raise ValueError("one unit moves 0, 1 or 2 cells of each table")

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All tables, level by level: those that a strategy may measure."""
        levels, margins = range(len(self.areas.levels)), range(len(self.margins))
        return tuple(itertools.product(levels, margins))

    @cached_property
    def shares(self) -> Floats:
        """The importance of each table, which add up to 1; shape (levels, margins)."""
        shares = np.zeros((len(self.areas.levels), len(self.margins)))
        for table, weight in self.importance.items():
            shares[table] = weight
        return np.asarray(shares / shares.sum(), dtype=np.float64)

    @cached_property
    def moves_of_tables(self) -> Codes:
        """How many cells of each table one unit can move; shape (levels, margins)."""
        moves = np.zeros((len(self.areas.levels), len(self.margins)), dtype=np.int64)
        for table, count in self.moves.items():
            moves[table] = count
        return moves

    @cached_property
    def exact(self) -> tuple[Table, ...]:
        """The tables that are the same for all neighbors: they cost nothing, without noise."""
        return tuple(table for table in self.tables if not self.moves[table])


def moves_of_a_row(areas: Areas, margins: Iterable[Margin], is_replaced: bool) -> dict[Table, int]:
    """Return how many cells of each table move where one unit has one row.

    Args:
        areas: the areas of all levels.
        margins: the margins.
        is_replaced: whether neighbors replace a unit by another one, and not add or remove it. Then
            two cells move. A table of one cell moves by 1: the other unit may lie outside it.
    """
    moves = {}
    for place, margin in enumerate(margins):
        for level in range(len(areas.levels)):
            is_one_cell = margin.cells == 1 and areas.size(level) == 1
            moves[level, place] = 2 if is_replaced and not is_one_cell else 1
    return moves
