"""Areas by kind: what the variances of least squares depend on.

All areas of a level are measured in the same way. So what is known of an area from below depends on
its *class*, the shape of the tree below it; and what is known of it from everywhere on its *kind*:
its class, and the kind of its parent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.structure import Areas
from release.tabulations.strategy.publication import Floats


@dataclass(frozen=True, eq=False)
class LevelKinds:
    """The classes and the kinds of one level.

    Attributes:
        children: how many children of each class of the level below a class has; shape (classes,
            classes below). The lowest level has one class without children.
        own: the class of each kind; shape (kinds,).
        above: the kind of the parent of each kind, 0 at the highest level; shape (kinds,).
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
    for level in range(depth - 2, -1, -1):
        members = np.zeros((areas.size(level), int(classes[0].max()) + 1))
        np.add.at(members, (areas.parents[level + 1], classes[0]), 1)
        shapes, places = np.unique(members, axis=0, return_inverse=True)
        if most is not None and len(shapes) > most:
            shapes, places = _merged(members, most)
        classes.insert(0, places.reshape(-1))
        children.insert(0, shapes)
    levels = []
    above: Codes = np.zeros(areas.size(0), dtype=np.int64)
    for level in range(depth):
        pairs = np.stack([above, classes[level]], axis=1).astype(np.int64)
        kinds, places, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
        levels.append(LevelKinds(children[level], kinds[:, 1], kinds[:, 0], counts / counts.sum()))
        if level + 1 < depth:
            above = places.reshape(-1)[areas.parents[level + 1]]
    return tuple(levels)


def _merged(members: Floats, most: int) -> tuple[Floats, Codes]:
    """At most so many classes, of areas with similar numbers of children: means, and who is in."""
    # What a parent knows changes with the logarithm of its number of children.
    sizes = np.log(members.sum(axis=1))
    width = (sizes.max() - sizes.min()) / most
    steps = np.minimum((sizes - sizes.min()) // max(width, 1e-9), most - 1)
    places = np.unique(steps, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((int(places.max()) + 1, members.shape[1]))
    np.add.at(sums, places, members)
    return sums / np.bincount(places)[:, None], places
