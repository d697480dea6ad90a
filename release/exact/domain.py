"""Answer domains, the finite groups they live in, and distances in them.

An answer domain is the set of possible answers of a query, coded 0..n, with labels and a topology.
Noise is added modulo n+1, so the codes form the group Z_{n+1}; a joint answer lives in a product of
such groups. Elements of a product are numbered in row-major order, as in mechanism files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.numbers import member

Codes: TypeAlias = NDArray[np.int64]
"""Answer codes, or element numbers of a group."""

Shift: TypeAlias = tuple[int, ...]
"""A difference of two answers: one coordinate for each factor of the group."""


class Topology(Enum):
    """How far apart two answers are."""

    NOMINAL = "nominal"  # categories: equal or not
    ORDERED = "ordered"  # counts and levels: |a - b|
    CYCLIC = "cyclic"  # hours, months: the shorter way round


@dataclass(frozen=True)
class Group:
    """The product Z_{m1} × … × Z_{mk}; ``moduli`` as in the ``group`` of a mechanism file.

    Raises:
        ValueError: no modulus, or one below 2.
    """

    moduli: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.moduli, default=0) < 2:
            raise ValueError("a group needs one or more moduli, each at least 2")

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.moduli)

    def normal(self, shift: Shift) -> Shift:
        """The coordinates of ``shift``, each reduced to 0..m-1.

        Raises:
            ValueError: the number of coordinates is not the number of factors.
        """
        return tuple(int(s) % m for s, m in zip(shift, self.moduli, strict=True))

    def negative(self, shift: Shift) -> Shift:
        """The inverse of ``shift``."""
        return self.normal(tuple(-step for step in shift))

    def element(self, shift: Shift) -> int:
        """The number of an element, row-major."""
        number = 0
        for coordinate, modulus in zip(self.normal(shift), self.moduli, strict=True):
            number = number * modulus + coordinate
        return number

    def shift(self, element: int) -> Shift:
        """The coordinates of an element; the inverse of :meth:`element`."""
        coordinates = []
        for modulus in reversed(self.moduli):
            element, coordinate = divmod(element, modulus)
            coordinates.append(coordinate)
        return tuple(reversed(coordinates))

    def moved(self, shift: Shift) -> Codes:
        """For each element η, in order, the number of η + ``shift``; shape ``(size,)``."""
        grid = np.arange(self.size, dtype=np.int64).reshape(self.moduli)
        # Rolled back by the shift, each place of the grid holds the number that lies ahead of it.
        back = tuple(-step for step in self.normal(shift))
        return np.roll(grid, back, axis=tuple(range(len(self.moduli)))).reshape(-1)

    def negatives(self) -> Codes:
        """For each element η, in order, the number of -η; shape ``(size,)``."""
        grid = np.arange(self.size, dtype=np.int64).reshape(self.moduli)
        axes = tuple(range(len(self.moduli)))
        # Flipped, a coordinate c becomes m-1-c; rolled on by one, m-c, with 0 in its place again.
        return np.roll(np.flip(grid), (1,) * len(axes), axis=axes).reshape(-1)

    def steps_from_zero(self, shifts: tuple[Shift, ...]) -> Codes:
        """The least number of shifts whose sum is each element; -1 where there is none.

        Breadth-first search by levels on arrays, O(size · |shifts|). This is the distance d of
        docs/design/mathematics.md; with the differences of a query as shifts, it is how fast noise
        may fall off. All shifts up to a width need no search.
        """
        width, signed = self.interval(shifts)
        if width:
            element = np.arange(self.size, dtype=np.int64)
            nearest = np.minimum(element, self.size - element) if signed else element
            return -(-nearest // width)
        distance = np.full(self.size, -1, dtype=np.int64)
        distance[0] = 0
        front = np.zeros(1, dtype=np.int64)
        level = 0
        # Invariant: all elements at most ``level`` steps away are done, ``front`` at exactly that.
        while front.size:
            level += 1
            if front.size * len(shifts) * 16 < self.size:
                # A thin front: sorting its neighbors is cheaper than looking at every element.
                heads = [self.plus(front, self.element(shift)) for shift in shifts]
                around = np.unique(np.concatenate(heads)) if heads else front[:0]
                front = around[distance[around] < 0]
            else:
                reached = np.zeros(self.size, dtype=bool)
                for shift in shifts:
                    reached[self.plus(front, self.element(shift))] = True
                reached &= distance < 0
                front = np.flatnonzero(reached)
            distance[front] = level
        return distance

    def interval(self, shifts: tuple[Shift, ...]) -> tuple[int, bool]:
        """``(m, False)`` where the shifts of a ring are 1..m, ``(m, True)`` where ±1..±m, or 0.

        Where both descriptions fit, the signed one is given.
        """
        if len(self.moduli) != 1 or not shifts:
            return 0, False
        numbers = np.setdiff1d(list(map(self.element, shifts)), [0])
        # On a ring of even size, its half is its own negative: so the half of n numbers rounds up.
        signed = np.array_equal(numbers, np.sort(self.size - numbers))
        width = (numbers.size + 1) // 2 if signed else numbers.size
        interval = np.arange(1, width + 1)
        if signed:
            interval = np.union1d(interval, self.size - interval)
        return (width if np.array_equal(numbers, interval) else 0), signed

    def plus(self, first: Codes, second: Codes | int) -> Codes:
        """The numbers of the sums of elements; shapes as numpy broadcasts them."""
        return self._by_coordinate(first, second, 1)

    def minus(self, first: Codes | int, second: Codes) -> Codes:
        """The numbers of the differences of elements; shapes as numpy broadcasts them."""
        return self._by_coordinate(first, second, -1)

    def _by_coordinate(self, first: Codes | int, second: Codes | int, sign: int) -> Codes:
        # A ring has one coordinate, the number itself: unravelling it would only cost time.
        if len(self.moduli) == 1:
            return np.asarray((first + sign * second) % self.moduli[0], dtype=np.int64)
        coordinates = []
        pairs = zip(self.coordinates(first), self.coordinates(second), strict=True)
        for (a, b), modulus in zip(pairs, self.moduli, strict=True):
            coordinates.append((a + sign * b) % modulus)
        return self.elements(coordinates)

    def coordinates(self, elements: Codes | int) -> list[Codes]:
        """For each factor the coordinates of ``elements``, which are row-major numbers."""
        return [np.asarray(c, dtype=np.int64) for c in np.unravel_index(elements, self.moduli)]

    def elements(self, coordinates: Sequence[Codes]) -> Codes:
        """The inverse of :meth:`coordinates`."""
        return np.asarray(np.ravel_multi_index(coordinates, self.moduli), dtype=np.int64)


@dataclass(frozen=True)
class AnswerDomain:
    """The possible answers of one query, in code order.

    ``labels[c]`` is what code ``c`` is published as: a string for nominal domains, an integer for
    the others, given as a range where they follow one another. For levels it is the least integer
    of the level, so that coding it gives ``c`` back. The topology may be given by its name.

    Raises:
        SpecError: there is no such topology.
        ValueError: fewer than two answers.
    """

    topology: Topology
    labels: tuple[str, ...] | tuple[int, ...] | range

    def __post_init__(self) -> None:
        object.__setattr__(self, "topology", member("topology", Topology, self.topology))
        if len(self.labels) < 2:
            raise ValueError("a domain needs two answers or more")

    def numbers(self, codes: Codes) -> NDArray[np.float64]:
        """The labels of ``codes`` as floats, where they are integers; of the shape of ``codes``."""
        if isinstance(self.labels, range):
            first, step = self.labels.start, self.labels.step
            return np.array(first + step * codes, dtype=np.float64)
        return np.array([float(self.labels[code]) for code in codes.tolist()])

    @property
    def size(self) -> int:
        """The number of answers, n+1."""
        return len(self.labels)

    @property
    def group(self) -> Group:
        """The group Z_{n+1} of the codes."""
        return Group((self.size,))

    @property
    def parts(self) -> tuple[AnswerDomain, ...]:
        """Itself, the one part of a plain answer."""
        return (self,)

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """Its own topology, as that of one part."""
        return (self.topology,)

    @property
    def is_line(self) -> bool:
        """Whether the answers have an order, and wrapping round costs."""
        return self.topology is Topology.ORDERED

    @property
    def has_order(self) -> bool:
        """Whether the answers have a least and a largest value."""
        return self.is_line


@dataclass(frozen=True)
class JointDomain:
    """The possible joint answers of several queries, numbered row-major over their codes."""

    parts: tuple[AnswerDomain, ...]

    @property
    def is_line(self) -> bool:
        """Joint answers lie on no line."""
        return False

    @property
    def topologies(self) -> tuple[Topology, ...]:
        """The topology of each part."""
        return tuple(part.topology for part in self.parts)

    @property
    def has_order(self) -> bool:
        """Whether some part has a least and a largest value."""
        return Topology.ORDERED in self.topologies

    @property
    def size(self) -> int:
        """The number of joint answers."""
        return self.group.size

    @property
    def group(self) -> Group:
        """The product of the parts' groups."""
        return Group(tuple(part.size for part in self.parts))


# A spec and each of its queries ask again and again, and a million edges take half a second.
@lru_cache(maxsize=4)
def levels(low: int, high: int, count: int) -> AnswerDomain:
    """``count`` equal levels from ``low`` to ``high``; labels are the least integers of the levels.

    Raises:
        ValueError: not low < high, or more levels than integers between them.
    """
    if not low < high:
        raise ValueError("low must be below high")
    if not 2 <= count <= high - low:
        raise ValueError("count must be at least 2 and at most high - low")
    edges = map(partial(level_edge, low, high, count), range(count))
    return AnswerDomain(Topology.ORDERED, tuple(edges))


def level_edge(low: int, high: int, count: int, code: int) -> int:
    """The least integer x with floor((x - low)·count/(high - low)) ≥ code."""
    # ⌈code·(high - low)/count⌉ as -⌊-…⌋, in integers.
    return low - (-code * (high - low) // count)
