"""The public structure of tables that add up: areas in levels, attributes, and margins.

A unit has one row, and lies in one area of the lowest level and in one category of each attribute.
The cells of a margin are the combinations of its classes: each attribute is grouped into classes,
and every category lies in one of them. One class of all categories sums an attribute out; a class
for each category keeps it whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes

Grouping: TypeAlias = tuple[int, ...]
"""The class of each category of an attribute; classes are numbered from 0 as they first occur."""


def summed_out(categories: int) -> Grouping:
    """The grouping with one class."""
    return (0,) * categories


def kept_whole(categories: int) -> Grouping:
    """The grouping with a class for each category."""
    return tuple(range(categories))


def numbered(classes: Iterable[Hashable]) -> Grouping:
    """The grouping with these classes, whatever they are called."""
    numbers: dict[Hashable, int] = {}
    return tuple(numbers.setdefault(name, len(numbers)) for name in classes)


@dataclass(frozen=True)
class Margin:
    """A table of an area: one grouping for each attribute, in the order of the attributes.

    Raises:
        ValueError: classes that are not numbered from 0 as they first occur.
    """

    groupings: tuple[Grouping, ...]

    def __post_init__(self) -> None:
        # One form for each margin: equal margins are equal keys of the tables.
        for grouping in self.groupings:
            largest = -1
            for place in grouping:
                if not 0 <= place <= largest + 1:
                    raise ValueError("classes are numbered from 0 as they first occur")
                largest = max(largest, place)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of classes of each attribute."""
        return tuple(max(grouping) + 1 for grouping in self.groupings)

    @property
    def cells(self) -> int:
        """The number of cells of one area."""
        return prod(self.shape)

    @cached_property
    def cell_of(self) -> Codes:
        """The cell of each combination of categories, both in row-major order; shape (detail,)."""
        strides = [prod(self.shape[place + 1 :]) for place in range(len(self.shape))]
        cells = np.zeros((1,), dtype=np.int64)
        for grouping, stride in zip(self.groupings, strides, strict=True):
            own = np.array(grouping, dtype=np.int64) * stride
            cells = (cells[:, None] + own[None, :]).reshape(-1)
        return cells

    def refines(self, other: Margin) -> bool:
        """Whether every cell of ``other`` is a union of cells of this margin."""
        for own, other_classes in zip(self.groupings, other.groupings, strict=True):
            pairs = set(zip(own, other_classes, strict=True))
            # More pairs than classes: categories of one class lie in two classes of ``other``.
            if len(pairs) != max(own) + 1:
                return False
        return True


@dataclass(frozen=True, eq=False)
class Areas:
    """The areas of all levels, from the highest level down.

    Attributes:
        levels: the name of each level.
        parents: for each level the place of each area's parent in the level above, ascending;
            those of the highest level have none, and theirs is 0. Shape (areas of the level,).

    Raises:
        ValueError: no level, parents that do not ascend, or an area above the lowest level that
            has no area below it.
    """

    levels: tuple[str, ...]
    parents: tuple[Codes, ...]

    def __post_init__(self) -> None:
        if not self.levels or len(self.levels) != len(self.parents):
            raise ValueError("areas need a level, and the parents of each level")
        # Sums over children are taken of neighboring rows, so these have to stand together.
        above = 1
        for place, parents in enumerate(self.parents):
            if not parents.size or (np.diff(parents) < 0).any():
                raise ValueError("the areas of a level are sorted by the area that they lie in")
            if place and not np.array_equal(np.unique(parents), np.arange(above)):
                raise ValueError("an area above the lowest level has areas below it")
            above = parents.size

    def size(self, level: int) -> int:
        """The number of areas of a level."""
        return int(self.parents[level].size)

    def children(self, level: int) -> Codes:
        """How many areas of the level below each area of ``level`` has; shape (areas,)."""
        return np.bincount(self.parents[level + 1], minlength=self.size(level))

    def summed_up(self, level: int, values: Codes) -> Codes:
        """The values of the areas of ``level``, added up over each area of the level above.

        ``values`` has the shape (areas, cells); dtype is kept, also for Python's own integers.
        """
        starts = np.flatnonzero(np.diff(self.parents[level], prepend=-1))
        return np.asarray(np.add.reduceat(values, starts, axis=0))
