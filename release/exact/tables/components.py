"""Margins in components that least squares can treat one by one.

The categories of an attribute lie in classes: the common refinement of all groupings of it that do
not keep it whole. A table is the orthogonal sum of *class sums* and *deviations* from the mean of a
class, attribute by attribute. A grouping knows nothing of the deviations within its classes, and a
margin that keeps an attribute whole knows all of them equally well. So the information of every
margin on a component is a small matrix over the classes of the attributes that do not deviate,
times the identity over the deviations (docs/design/mathematics.md; two classes of one category
each, or one class in all, make that matrix a number).

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
from release.exact.tables.structure import Grouping, Margin, kept_whole, summed_out

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
        return np.array([_last_index(self.classes, place) for place in range(self.count)])

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


def _last_index(classes: Grouping, place: int) -> int:
    return len(classes) - 1 - classes[::-1].index(place)


def whole(grouping: Grouping) -> bool:
    """Whether a grouping keeps every category of an attribute that has several."""
    return len(grouping) > 1 and grouping == kept_whole(len(grouping))


def common_refinement(groupings: Iterable[Grouping], categories: int) -> Grouping:
    """The coarsest grouping that refines all of them."""
    classes = summed_out(categories)
    for grouping in groupings:
        numbers: dict[tuple[int, int], int] = {}
        pairs = zip(classes, grouping, strict=True)
        classes = tuple(numbers.setdefault(pair, len(numbers)) for pair in pairs)
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
            lengths = [len(grouping) for grouping in margin.groupings]
            if lengths != list(sizes):
                raise ValueError(f"a margin groups {lengths} categories; attributes have {sizes}")
            for place, grouping in enumerate(margin.groupings):
                if not whole(grouping):
                    grouped[place].add(grouping)
        pairs = zip(grouped, sizes, strict=True)
        return cls(tuple(Split(common_refinement(sorted(own), size)) for own, size in pairs))

    @property
    def denominator(self) -> int:
        """The least number that makes every cell of every table an integer again."""
        return prod(split.denominator for split in self.splits)

    def components(self) -> Iterator[Component]:
        """All components that are not empty."""
        choices = [(False, True) if split.deviations else (False,) for split in self.splits]
        return product(*choices)

    def components_of(self, margin: Margin) -> list[Component]:
        """The components that a margin says something about."""
        keeps = [whole(grouping) for grouping in margin.groupings]
        chosen = []
        for component in self.components():
            if all(keep >= deviates for keep, deviates in zip(keeps, component, strict=True)):
                chosen.append(component)
        return chosen

    def width(self, component: Component) -> int:
        """The number of class sums of a component."""
        pairs = zip(self.splits, component, strict=True)
        return prod(split.count for split, deviates in pairs if not deviates)

    def columns(self, component: Component) -> int:
        """The number of deviations of a component."""
        pairs = zip(self.splits, component, strict=True)
        return prod(split.deviations for split, deviates in pairs if deviates)

    def rows(self, margin: Margin, component: Component) -> Rows:
        """What a margin measures of a component; the margin must be one of ``components_of``."""
        functionals = np.ones((1, 1), dtype=np.int64)
        factors = np.ones(1, dtype=np.int64)
        for split, grouping, deviates in zip(self.splits, margin.groupings, component, strict=True):
            if deviates:
                continue
            if whole(grouping):
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
            shape = table[where].shape
            order = _deviations_last(component)
            ordered = values.reshape([shape[axis] for axis in order])
            table[where] = ordered.transpose(np.argsort(order))
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
        most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        growth = prod(2 * len(split.classes) for split in self.splits)
        return values if most * growth < 2**62 else values.astype(object)


def _deviations_last(component: Component) -> list[int]:
    """The axes of a table: areas, attributes that do not deviate, attributes that do."""
    deviating = [axis for axis, deviates in enumerate(component, 1) if deviates]
    others = [axis for axis, deviates in enumerate(component, 1) if not deviates]
    return [0, *others, *deviating]


def _indicators(grouping: Grouping, split: Split) -> Codes:
    """For each group, which classes it consists of; shape (groups, classes)."""
    indicators = np.zeros((max(grouping) + 1, split.count), dtype=np.int64)
    indicators[np.array(grouping), np.array(split.classes)] = 1
    return indicators
