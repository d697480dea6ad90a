"""Margins in components that least squares can treat one by one.

The categories of an attribute lie in classes: the common refinement of all groupings of it that do
not keep it whole. A table is the orthogonal sum of *class sums* and *deviations* from the mean of a
class, attribute by attribute. A grouping knows nothing of the deviations within its classes, and a
margin that keeps an attribute whole knows all of them equally well. So the information of every
margin on a component is a small matrix over the classes of the attributes that do not deviate,
times the identity over the deviations (docs/design/mathematics.md, T11). With one class for each
attribute the matrix is a number.

Deviations are written without their last category in each class, because they add up to zero there.
All of this is exact: the deviation of a category is its count times the size of its class, minus
the sum of the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import lcm, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.structure import (
    Grouping,
    Margin,
    kept_whole,
    numbered,
    summed_out,
)

Integers: TypeAlias = NDArray[Any]
"""Integers of any size: ``int64``, or Python's own in an array of dtype object."""

Component: TypeAlias = tuple[bool, ...]
"""Of each attribute, whether the component has its deviations or its class sums."""


@dataclass(frozen=True)
class Split:
    """The class sums and the deviations of one attribute.

    Attributes:
        classes: the class of each category.
    """

    classes: Grouping

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each class."""
        return tuple(np.bincount(self.classes).tolist())

    @property
    def count(self) -> int:
        """The number of classes."""
        return len(self.sizes)

    @property
    def deviations(self) -> int:
        """The number of deviations that are written down."""
        return len(self.classes) - self.count

    @property
    def denominator(self) -> int:
        """What ``merged`` multiplies by: the least common multiple of the sizes."""
        return lcm(*self.sizes)

    @cached_property
    def _last(self) -> Codes:
        """The last category of each class."""
        last = np.zeros(self.count, dtype=np.int64)
        for category, place in enumerate(self.classes):
            # A later category of the class takes the place of the one before it.
            last[place] = category
        return last

    @cached_property
    def _others(self) -> Codes:
        """The categories that are not the last of their class, ascending."""
        return np.setdiff1d(np.arange(len(self.classes)), self._last)

    def parted(self, values: Integers) -> Integers:
        """The class sums, then the deviations, along the last axis; shape as that of ``values``."""
        classes = np.array(self.classes)
        order = np.argsort(classes, kind="stable")
        starts = np.searchsorted(classes[order], np.arange(self.count))
        sums = np.add.reduceat(values[..., order], starts, axis=-1)
        own = classes[self._others]
        sizes = np.array(self.sizes)[own]
        deviations = values[..., self._others] * sizes - sums[..., own]
        return np.concatenate([sums, deviations], axis=-1)

    def merged(self, parts: Integers) -> Integers:
        """The categories, times ``denominator``, from what ``parted`` returns."""
        sums, deviations = parts[..., : self.count], parts[..., self.count :]
        values = np.empty_like(parts)
        factors = np.array([self.denominator // size for size in self.sizes], dtype=parts.dtype)
        # The last category of a class is what its others leave of the sum: classes add up exactly.
        rest = sums * self.denominator
        for place, category in enumerate(self._others.tolist()):
            own = self.classes[category]
            values[..., category] = (deviations[..., place] + sums[..., own]) * factors[own]
            rest[..., own] -= values[..., category]
        values[..., self._last] = rest
        return values


def whole(grouping: Grouping) -> bool:
    """Whether a grouping keeps every category of an attribute that has several."""
    return len(grouping) > 1 and grouping == kept_whole(len(grouping))


def common_refinement(groupings: Iterable[Grouping], categories: int) -> Grouping:
    """The coarsest grouping that refines all of them."""
    classes = summed_out(categories)
    for grouping in groupings:
        classes = numbered(zip(classes, grouping, strict=True))
    return classes


@dataclass(frozen=True)
class Rows:
    """What one margin measures of one component: a linear function of the class sums a row.

    Attributes:
        functionals: integers, shape (rows, class sums of the component).
        factors: of each row, by how much more its variance is than that of a cell.
    """

    functionals: tuple[tuple[int, ...], ...]
    factors: tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """The splits of all attributes: every margin that is measured or published is written in it."""

    splits: tuple[Split, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], margins: Iterable[Margin]) -> Frame:
        """The coarsest frame for these margins.

        Args:
            sizes: the number of categories of each attribute.
            margins: all margins that are measured or published.

        Raises:
            ValueError: a margin that is not one of these attributes.
        """
        grouped: list[set[Grouping]] = [set() for _ in sizes]
        for margin in margins:
            lengths = list(map(len, margin.groupings))
            if lengths != list(sizes):
                raise ValueError(f"a margin groups {lengths} categories; attributes have {sizes}")
            for place, grouping in enumerate(margin.groupings):
                if not whole(grouping):
                    grouped[place].add(grouping)
        splits = []
        for own, size in zip(grouped, sizes, strict=True):
            # Sorted: classes are numbered as they first occur, and sets have no order.
            splits.append(Split(common_refinement(sorted(own), size)))
        return cls(tuple(splits))

    @property
    def denominator(self) -> int:
        """The least number that makes every cell of every table an integer again."""
        return prod(split.denominator for split in self.splits)

    def components(self) -> Iterator[Component]:
        """All components that are not empty."""
        choices = []
        for split in self.splits:
            # Where every class has one category, nothing deviates from its mean.
            choices.append((False, True) if split.deviations else (False,))
        return product(*choices)

    def components_of(self, margin: Margin) -> list[Component]:
        """The components that a margin says something about."""
        keeps = tuple(map(whole, margin.groupings))
        chosen = []
        for component in self.components():
            # Deviations within a class are seen by margins alone that keep the attribute whole.
            if all(kept >= own for kept, own in zip(keeps, component, strict=True)):
                chosen.append(component)
        return chosen

    def width(self, component: Component) -> int:
        """The number of class sums of a component."""
        width = 1
        for split, deviates in zip(self.splits, component, strict=True):
            width *= 1 if deviates else split.count
        return width

    def columns(self, component: Component) -> int:
        """The number of deviations of a component."""
        columns = 1
        for split, deviates in zip(self.splits, component, strict=True):
            columns *= split.deviations if deviates else 1
        return columns

    def rows(self, margin: Margin, component: Component) -> Rows:
        """What a margin measures of a component; the margin must be one of ``components_of``."""
        functionals = np.ones((1, 1), dtype=np.int64)
        factors = np.ones(1, dtype=np.int64)
        for split, grouping, deviates in zip(self.splits, margin.groupings, component, strict=True):
            if deviates:
                continue
            if whole(grouping):
                # A class sum is then a sum of as many noisy cells as the class has categories.
                own, scales = np.eye(split.count, dtype=np.int64), np.array(split.sizes)
            else:
                own = _indicators(grouping, split)
                scales = np.ones(own.shape[0], dtype=np.int64)
            functionals, factors = np.kron(functionals, own), np.kron(factors, scales)
        return Rows(tuple(map(tuple, functionals.tolist())), tuple(factors.tolist()))

    def parted(self, margin: Margin, values: Codes) -> Integers:
        """The answers of a margin in components; both shapes are (areas, cells)."""
        table = self._widened(values).reshape(-1, *margin.shape)
        for place, split in enumerate(self.splits):
            if whole(margin.groupings[place]):
                moved = split.parted(np.moveaxis(table, place + 1, -1))
                table = np.moveaxis(moved, -1, place + 1)
        return table

    def part(self, margin: Margin, component: Component, parted: Integers) -> Integers:
        """One component of what ``parted`` returns; shape (areas, rows, columns)."""
        part = parted[self._slices(margin, component)].transpose(_deviations_last(component))
        return part.reshape(part.shape[0], -1, self.columns(component))

    def merged(self, margin: Margin, parts: Mapping[Component, Integers]) -> Integers:
        """The cells of a margin, times ``denominator``, from all its components.

        Args:
            margin: whose cells.
            parts: of each of ``components_of`` the values of ``rows``; (areas, rows, columns).
        """
        areas = next(iter(parts.values())).shape[0]
        table = np.empty((areas, *margin.shape), dtype=object)
        for component, values in parts.items():
            where = self._slices(margin, component)
            shape = np.array(table[where].shape)
            order = _deviations_last(component)
            ordered = values.reshape(shape[order].tolist())
            table[where] = ordered.transpose(np.argsort(order))
        # An attribute that is not whole has no deviations to merge, and its cells are multiplied
        # by its denominator all the same: all margins have the frame's denominator.
        missing = 1
        for place, split in enumerate(self.splits):
            if whole(margin.groupings[place]):
                moved = split.merged(np.moveaxis(table, place + 1, -1))
                table = np.moveaxis(moved, -1, place + 1)
            else:
                missing *= split.denominator
        table = table.reshape(areas, -1)
        return table if missing == 1 else table * missing

    def _slices(self, margin: Margin, component: Component) -> tuple[slice, ...]:
        """Where a component lies in the array of ``parted``."""
        slices = [slice(None)]
        for split, grouping, deviates in zip(self.splits, margin.groupings, component, strict=True):
            if not whole(grouping):
                slices.append(slice(None))
            elif deviates:
                slices.append(slice(split.count, None))
            else:
                slices.append(slice(None, split.count))
        return tuple(slices)

    def _widened(self, values: Codes) -> Integers:
        """The same integers, in a type that holds all that ``parted`` makes of them."""
        # A deviation is a count times the size of its class, less the sum of the class: at most
        # twice as many counts as the attribute has categories. 64 bits would wrap round silently.
        most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        growth = prod(2 * len(split.classes) for split in self.splits)
        return values if most * growth < 2**62 else values.astype(object)


def _deviations_last(component: Component) -> list[int]:
    """The axes of a table: areas, attributes that do not deviate, attributes that do."""
    # The sort is stable, so each group of attributes keeps its order.
    order = sorted(range(len(component)), key=lambda place: component[place])
    return [0, *(axis + 1 for axis in order)]


def _indicators(grouping: Grouping, split: Split) -> Codes:
    """For each group, which classes it consists of; shape (groups, classes)."""
    indicators = np.zeros((max(grouping) + 1, split.count), dtype=np.int64)
    indicators[np.array(grouping), np.array(split.classes)] = 1
    return indicators
