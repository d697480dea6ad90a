"""The types of the areas of a tree: what the coefficients of least squares depend on.

Every area of a level is measured in the same way. So what is known of an area from below depends on
the shape of the tree below it alone, its *class*; and what is known of it from everywhere depends
on its class and on what is known of its parent, its *kind*. A state of 14,000 tracts in 62 counties
has one class of tracts, and at most 62 of counties.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.components import Integers
from release.tabulations.estimate.structure import Areas


@dataclass(frozen=True, eq=False)
class Tree:
    """Areas by type. A level of as many areas as the level above repeats it, and is merged with it.

    Attributes:
        places: for each level of the areas, its level in the tree.
        parents: for each level of the tree the places of the parents in the level above.
        classes: for each level the class of each area.
        members: for each level and class, how many children of which class: (class, count) pairs.
        kinds: for each level the kind of each area.
        origins: for each level and kind its class and the kind of the parent, -1 at the top.
    """

    places: tuple[int, ...]
    parents: tuple[Codes, ...]
    classes: tuple[Codes, ...]
    members: tuple[tuple[tuple[tuple[int, int], ...], ...], ...]
    kinds: tuple[Codes, ...]
    origins: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, areas: Areas) -> Tree:
        """The tree of some areas."""
        places = [0]
        parents = [areas.parents[0]]
        for level in range(1, len(areas.levels)):
            # As many areas as above, each with one below it: measurements of either are of both.
            if areas.size(level) > areas.size(level - 1):
                parents.append(areas.parents[level])
            places.append(len(parents) - 1)
        classes, members = _classes(parents)
        kinds, origins = _kinds(parents, classes)
        return cls(
            tuple(places), tuple(parents), tuple(classes), tuple(members), tuple(kinds), origins
        )

    @property
    def depth(self) -> int:
        """The number of levels of the tree."""
        return len(self.parents)

    @cached_property
    def roots(self) -> tuple[Codes, ...]:
        """For each level the place at the top under which each area lies."""
        roots = [np.arange(self.parents[0].size)]
        for parents in self.parents[1:]:
            roots.append(roots[-1][parents])
        return tuple(roots)

    def summed_up(self, level: int, values: Integers) -> Integers:
        """The values of the areas of ``level``, added up over each area of the level above."""
        return np.add.reduceat(values, self._starts(level), axis=0)

    def _starts(self, level: int) -> Codes:
        return np.flatnonzero(np.diff(self.parents[level], prepend=-1))


def _classes(
    parents: list[Codes],
) -> tuple[list[Codes], list[tuple[tuple[tuple[int, int], ...], ...]]]:
    """The class of every area, and of what each class consists, from the lowest level up."""
    classes = [np.zeros(parents[-1].size, dtype=np.int64)]
    members: list[tuple[tuple[tuple[int, int], ...], ...]] = [((),)]
    for own in reversed(parents[1:]):
        numbers: dict[tuple[tuple[int, int], ...], int] = {}
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        above = []
        for children in np.split(classes[0], starts[1:]):
            # How often each class occurs, in no order of the children: areas that have as many
            # children of each class have the same coefficients.
            counts = tuple(sorted(Counter(children.tolist()).items()))
            above.append(numbers.setdefault(counts, len(numbers)))
        classes.insert(0, np.array(above, dtype=np.int64))
        members.insert(0, tuple(numbers))
    return classes, members


def _kinds(
    parents: list[Codes], classes: list[Codes]
) -> tuple[list[Codes], tuple[tuple[tuple[int, int], ...], ...]]:
    """The kind of every area, and from what each kind comes, from the top down."""
    kinds: list[Codes] = []
    origins: list[tuple[tuple[int, int], ...]] = []
    above = np.full(parents[0].size, -1, dtype=np.int64)
    for level, own in enumerate(classes):
        pairs = np.stack([own, above], axis=1)
        distinct, places = np.unique(pairs, axis=0, return_inverse=True)
        kinds.append(places.reshape(-1))
        origins.append(tuple(map(tuple, distinct.tolist())))
        if level + 1 < len(parents):
            above = kinds[level][parents[level + 1]]
    return kinds, tuple(origins)
