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
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.structure import Areas

Members: TypeAlias = tuple[tuple[int, int], ...]
"""How many children of which class an area has: (class, count) pairs, ascending by class."""


def distinct_levels(areas: Areas) -> tuple[tuple[int, ...], Areas]:
    """For each level its place among those that differ, and the areas of these alone.

    A level of as many areas as the level above repeats it: what is measured of either is of both.
    """
    places = [0]
    kept = [0]
    for level in range(1, len(areas.levels)):
        if areas.size(level) > areas.size(level - 1):
            kept.append(level)
        places.append(len(kept) - 1)
    names = tuple(areas.levels[level] for level in kept)
    return tuple(places), Areas(names, tuple(areas.parents[level] for level in kept))


def classes_above(parents: Codes, classes: Codes) -> tuple[Codes, list[Members]]:
    """The class of each area of a level by the classes of its children, and of what each consists.

    ``parents`` and ``classes`` are of the level below. Classes are in the order of their numbers of
    children of the first class, then of the second, and so on.
    """
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    # How often each class occurs, in no order of the children: areas that have as many children of
    # each class have the same coefficients.
    members = [
        tuple(sorted(Counter(children.tolist()).items()))
        for children in np.split(classes, starts[1:])
    ]
    # Of two areas the one with more children of the first class in which they differ comes later.
    distinct = sorted(set(members), key=lambda pairs: [(-own, count) for own, count in pairs])
    numbers = {pairs: number for number, pairs in enumerate(distinct)}
    return np.array([numbers[pairs] for pairs in members], dtype=np.int64), distinct


def kinds_below(above: Codes, classes: Codes) -> tuple[Codes, list[tuple[int, int]]]:
    """The kind of each area of a level, and of each kind its class and the kind of the parent.

    ``above`` has the kind of the parent of each area.
    """
    pairs = np.stack([above, classes], axis=1)
    distinct, kinds = np.unique(pairs, axis=0, return_inverse=True)
    return kinds.reshape(-1), [(own, parent) for parent, own in distinct.tolist()]


@dataclass(frozen=True, eq=False)
class Tree:
    """Areas by type, on the levels that differ.

    Attributes:
        places: for each level of the areas, its level in the tree.
        areas: the areas of the levels of the tree.
        classes: for each level the class of each area.
        members: for each level and class, how many children of which class.
        kinds: for each level the kind of each area.
        origins: for each level and kind its class and the kind of the parent, -1 at the top.
    """

    places: tuple[int, ...]
    areas: Areas
    classes: tuple[Codes, ...]
    members: tuple[tuple[Members, ...], ...]
    kinds: tuple[Codes, ...]
    origins: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, areas: Areas) -> Tree:
        """The tree of some areas."""
        places, distinct = distinct_levels(areas)
        depth = len(distinct.levels)
        classes = [np.zeros(distinct.size(depth - 1), dtype=np.int64)]
        members: list[tuple[Members, ...]] = [((),)]
        for level in range(depth - 1, 0, -1):
            own, shapes = classes_above(distinct.parents[level], classes[0])
            classes.insert(0, own)
            members.insert(0, tuple(shapes))
        kinds: list[Codes] = []
        origins = []
        above = np.full(distinct.size(0), -1, dtype=np.int64)
        for level in range(depth):
            if level:
                above = kinds[-1][distinct.parents[level]]
            own, pairs = kinds_below(above, classes[level])
            kinds.append(own)
            origins.append(tuple(pairs))
        return cls(places, distinct, tuple(classes), tuple(members), tuple(kinds), tuple(origins))

    @property
    def depth(self) -> int:
        """The number of levels of the tree."""
        return len(self.areas.levels)

    @cached_property
    def roots(self) -> tuple[Codes, ...]:
        """For each level the place at the top under which each area lies."""
        roots = [np.arange(self.areas.size(0))]
        for parents in self.areas.parents[1:]:
            roots.append(roots[-1][parents])
        return tuple(roots)
