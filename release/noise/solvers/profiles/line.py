"""A ring without zero, in a line: where elements stand, and which levels each of them can have.

In the normal form (docs/design/mathematics.md 2.7) every mass is f(0)·E^-level. Here the elements
m+1 to N-1 of a ring follow each other, with m the largest step of M. The constraints of an element
then reach back to the m elements before it, and those around zero have levels that are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.sensitivity import Sensitivity

Integers = NDArray[np.int64]

SCALE = 2**36
"""Units of the mass of zero: rounding masses down loses less than 10⁻⁸ of their sum."""


@dataclass(frozen=True)
class Line:
    """Elements of a ring with their possible levels, the last level being that of no mass.

    ``ring`` is the number of elements. It is smaller than the ring's own where elements without
    mass are left out; then ``apart`` is true: no constraint leads from one side to the other.
    """

    ring: int
    steps: tuple[int, ...]
    """M with signs, each at most half the ring: 1, 2, …, and their negatives behind them."""
    levels: tuple[Integers, ...]
    """The possible levels of 0, 1, …, ascending without gaps."""
    masses: Integers
    """What each level weighs, rounded down; the last one weighs nothing."""
    delta: Fraction
    apart: bool

    @property
    def reach(self) -> int:
        """The largest step."""
        return max(self.steps)

    @property
    def nothing(self) -> int:
        """The level of no mass."""
        return self.masses.size - 1

    @cached_property
    def least_levels(self) -> Integers:
        """The least possible level of each element, shape (ring,)."""
        return np.array([own[0] for own in self.levels], dtype=np.int64)

    @cached_property
    def start(self) -> int:
        """The mass of zero and of the elements up to the largest step, whose levels are known."""
        # Zero and its next elements have one possible level each.
        return int(self.masses[self.least_levels[: self.reach + 1]].sum())

    def shape(self, position: int) -> tuple[int, ...]:
        """How many levels each of the ``reach`` elements up to ``position`` can have."""
        return tuple(own.size for own in self.levels[position - self.reach + 1 : position + 1])

    @cached_property
    def states(self) -> int:
        """The number of states of all positions together."""
        states = 0
        for position in range(self.reach, self.ring):
            # In floats: a product of many numbers of levels overflows 64 bits without a word.
            states += int(np.prod(self.shape(position), dtype=np.float64))
        return states

    def gives(self, position: int, away: int) -> tuple[Integers, Integers]:
        """What the constraints of +``away`` and -``away`` that end at ``position`` give up.

        By the number of the level of the first element and of that at ``position``.
        """
        before, here = self.levels[position - away], self.levels[position]
        # Levels have no gaps, so the first and the number of them say which they are.
        key = (int(before[0]), before.size, int(here[0]), here.size)
        if key not in self._gives:
            pair = before[:, None], here[None, :]
            self._gives[key] = self.given_up(1, *pair), self.given_up(-1, *pair)
        return self._gives[key]

    @cached_property
    def _gives(self) -> dict[tuple[int, int, int, int], tuple[Integers, Integers]]:
        return {}

    def given_up(self, step: int, before: Integers, here: Integers) -> Integers:
        """The mass that the constraint of ``step`` between two elements gives up, by their levels.

        They are |step| apart in the line, ``before`` first; only the sign of the step matters.
        """
        tail, head = (before, here) if step > 0 else (here, before)
        return (head > tail + 1) * self.masses[tail]


def line_of(
    sensitivity: Sensitivity,
    distances: Codes,
    delta: Fraction,
    masses: Sequence[Fraction],
    fixed: int,
) -> Line | None:
    """The line with ``masses`` for levels, those up to ``fixed`` being distances; None without one.

    There is one for M = -M on a ring where the elements up to the largest step have known levels.
    """
    group = sensitivity.group
    if len(group.moduli) != 1:
        return None
    size, numbers = group.size, sorted(map(group.element, sensitivity.shifts))
    # A step of exactly half the ring is its own negative, and would be counted twice.
    halves = [step for step in numbers if 2 * step < size]
    reach = max(halves, default=0)
    if numbers != sorted([*halves, *(size - step for step in halves)]) or not halves:
        return None
    depth = len(masses)
    nearest = distances[1 : reach + 1]
    # The line begins behind m elements whose levels are known: only then does it hold no cycle.
    if 2 * reach + 1 >= size or nearest.min() < 0 or nearest.max() > min(fixed, depth - 1):
        return None
    half = distances[: size // 2 + 1]
    edge = int(np.flatnonzero((half >= 0) & (half < depth))[-1])
    apart = 2 * edge + 1 + reach <= size
    if apart:
        # Elements without mass between both sides are all alike; as many as a step are enough.
        ring = 2 * edge + 1 + reach
        right, left = distances[: edge + 1], distances[size - edge :]
        distances = np.concatenate([right, np.full(reach, depth), left])
        size = ring
    # Rounded down: sums of them bound t = 1/f(0) from below, and a proof may only be too weak.
    rounded = [int(SCALE * mass) for mass in masses]
    return Line(
        ring=size,
        steps=(*halves, *(-step for step in halves)),
        levels=tuple(_levels(own, fixed, depth) for own in distances.tolist()),
        masses=np.array([*rounded, 0], dtype=np.int64),
        delta=delta,
        apart=apart,
    )


def _levels(distance: int, fixed: int, depth: int) -> Integers:
    if not 0 <= distance < depth:
        return np.array([depth], dtype=np.int64)
    if distance <= fixed:
        return np.array([distance], dtype=np.int64)
    return np.arange(distance, depth + 1, dtype=np.int64)
