"""Ordered positions whose weight is a product over neighboring positions: what is to be drawn.

The positions of a cell have non-decreasing integer values. A path of m positions, none before the
one ahead of it, has weight ρ^G, where G adds up |x_j - x_(j-1) - t_j| over its m+1 steps: x_j is
the value of position j, x_0 = 0, x_(m+1) is the value of the end, and t_1..t_(m+1) are the targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from release.exact.domain import Codes
from release.exact.statistics.mechanism import loss_above

_NEAR = 4
"""A position is near a value where the weight falls by less than the 4th root of e up to it."""


@dataclass(frozen=True)
class Positions:
    """The positions of one cell: ``sublevels`` B to each candidate, numbered by candidate.

    ``rows`` are the rows at each candidate, shape (candidates,). Position b of candidate c has
    2B·L + (2b+1)·E half-sublevels below it, L being the rows at lower candidates and E those at c:
    each row of c counts (2b+1)/2B. The value of a position is ``scale`` times that number.
    """

    rows: Codes
    sublevels: int
    scale: int

    @property
    def count(self) -> int:
        """How many positions there are."""
        return self.rows.size * self.sublevels

    @property
    def end(self) -> int:
        """The value of the end, above all positions."""
        return self.scale * 2 * self.sublevels * int(self._below[-1])

    @cached_property
    def _below(self) -> Codes:
        return np.concatenate([[0], np.cumsum(self.rows)])

    @cached_property
    def _lasts(self) -> Codes:
        """Half-sublevels below the last position of each candidate."""
        whole = 2 * self.sublevels
        return whole * self._below[:-1] + (whole - 1) * self.rows

    def values(self, positions: Codes) -> list[int]:
        """The values of ``positions``, as Python's integers."""
        candidates, levels = np.divmod(positions, self.sublevels)
        below = 2 * self.sublevels * self._below[candidates]
        halves = below + (2 * levels + 1) * self.rows[candidates]
        return [self.scale * half for half in halves.tolist()]

    def first_from(self, values: list[int]) -> Codes:
        """The first position of at least each value, or the number of all; shape (values,)."""
        halves = np.array([-(-value // self.scale) for value in values], dtype=np.int64)
        candidates = np.searchsorted(self._lasts, halves, side="left")
        inside = np.minimum(candidates, self.rows.size - 1)
        rest = halves - 2 * self.sublevels * self._below[inside] - self.rows[inside]
        levels = np.maximum(0, -(-rest // (2 * np.maximum(1, self.rows[inside]))))
        # A value above all positions has no candidate, and the level means nothing there.
        return np.where(candidates < self.rows.size, inside * self.sublevels + levels, self.count)


@dataclass(frozen=True)
class Paths:
    """Paths of ``len(targets) - 1`` positions, with weight (``ratio`` / 2^64)^G.

    ``targets`` are the steps t_j, at least 0, and add up to the value of the end.
    """

    positions: Positions
    targets: tuple[int, ...]
    ratio: int

    def exponent(self, path: Codes) -> int:
        """G of a path, in units of values."""
        values = [0, *self.positions.values(path), self.positions.end]
        steps = zip(pairwise(values), self.targets, strict=True)
        return sum(abs(after - before - target) for (before, after), target in steps)

    @cached_property
    def scale(self) -> int:
        """How many units of values lower a weight by a factor of about e; at least 1."""
        return max(1, int(1 / loss_above(self.ratio)))

    @cached_property
    def aims(self) -> list[int]:
        """Values near which the positions of likely paths are, ascending.

        These are the sums of the first targets, which a path without error has, or the values of
        the positions on both sides where such a sum is far from all positions.
        """
        sums = list(accumulate(self.targets))[:-1]
        last = self.positions.count - 1
        after = self.positions.first_from(sums)
        above = self.positions.values(np.minimum(after, last))
        below = self.positions.values(np.maximum(after - 1, 0))
        aims = set()
        for value, lower, higher in zip(sums, below, above, strict=True):
            is_near = min(abs(value - lower), abs(higher - value)) * _NEAR <= self.scale
            aims |= {value} if is_near else {lower, higher}
        return sorted(aims)
