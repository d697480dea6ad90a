"""Classes and kinds of areas (:mod:`release.tabulations.estimate.node_types`) in floats.

A search over strategies takes areas of similar classes together, with the mean of their children.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.node_types import classes_above, kinds_below
from release.tabulations.estimate.structure import Areas
from release.tabulations.strategy.publication import Floats


@dataclass(frozen=True, eq=False)
class LevelKinds:
    """The classes and the kinds of one level.

    Attributes:
        children: how many children of each class of the level below a class has; shape (classes,
            classes below). The lowest level has one class without children.
        own: the class of each kind; shape (kinds,).
        above: the kind of the parent of each kind, -1 at the highest level; shape (kinds,).
        shares: which part of the areas of the level is of each kind; shape (kinds,).
    """

    children: Floats
    own: Codes
    above: Codes
    shares: Floats


def kinds_of(areas: Areas, most: int | None = None) -> tuple[LevelKinds, ...]:
    """Return the classes and kinds of every level, from the highest down.

    Args:
        areas: the areas.
        most: where a level has more classes than this, those with about as many areas below are
            made one, with the mean of their children; None for never.
    """
    depth = len(areas.levels)
    classes = [np.zeros(areas.size(depth - 1), dtype=np.int64)]
    children = [np.zeros((1, 0))]
    for level in range(depth - 1, 0, -1):
        own, shapes = classes_above(areas.parents[level], classes[0])
        counts = np.zeros((len(shapes), len(children[0])))
        for shape, pairs in enumerate(shapes):
            for below, count in pairs:
                counts[shape, below] = count
        if most is not None and len(shapes) > most:
            counts, merged = _merged(counts, np.bincount(own), most)
            own = merged[own]
        classes.insert(0, own)
        children.insert(0, counts)
    levels = []
    above = np.full(areas.size(0), -1, dtype=np.int64)
    for level in range(depth):
        kinds, origins = kinds_below(above, classes[level])
        class_of, parent_of = np.array(origins, dtype=np.int64).T
        shares = np.bincount(kinds) / len(kinds)
        levels.append(LevelKinds(children[level], class_of, parent_of, shares))
        if level + 1 < depth:
            above = kinds[areas.parents[level + 1]]
    return tuple(levels)


def _merged(members: Floats, areas: Codes, most: int) -> tuple[Floats, Codes]:
    """At most so many classes, of areas with similar numbers of children.

    ``members`` has the children of each class, and ``areas`` how many areas are of it. Returns the
    mean of the children of each merged class, and which it is for each class.
    """
    # What a parent knows changes with the logarithm of its number of children.
    sizes = np.log(members.sum(axis=1))
    width = (sizes.max() - sizes.min()) / most
    steps = np.minimum((sizes - sizes.min()) // max(width, 1e-9), most - 1)
    places = np.unique(steps, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((int(places.max()) + 1, members.shape[1]))
    np.add.at(sums, places, members * areas[:, None])
    return sums / np.bincount(places, areas)[:, None], places
