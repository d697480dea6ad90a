"""All beginnings of a profile that a better one than the incumbent can have, position by position.

A label is a beginning: its state, its mass so far and the mass that each step has given up so far.
A label is dropped when the rest of the line costs too much at some prices (:mod:`prices`), or when
another one of the same state is nowhere more. Neither can drop the only best profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from release.noise.solvers.profiles.line import Integers, Line
from release.noise.solvers.profiles.prices import UNIT, Rests
from release.noise.solvers.program import Work

_UNITS_A_LABEL = 4
"""Work of extending a label, in units of a row and a simplex step."""

_COMPARED = 24
"""With how many of its predecessors a label is compared."""

_PAIRS = 2**18
"""How many pairs of sides are joined at a time."""


@dataclass(frozen=True)
class Labels:
    """``states`` has a row for each of the last elements, ``used`` one for each label."""

    states: Integers
    """Numbers of levels among those possible; shape (reach, labels)."""
    used: Integers
    """The mass, and what each step has given up; shape (labels, 1 + steps)."""

    def subset(self, which: NDArray[np.intp]) -> Labels:
        """Some of the labels, in this order."""
        return Labels(self.states[:, which], self.used[which])


@dataclass(frozen=True)
class Ends:
    """The labels at the end of a line, or of its first side, and how each came there."""

    used: Integers
    trail: tuple[tuple[NDArray[np.intp], Integers], ...]
    """For each position the parent of each label, and its level."""

    def levels(self, label: int) -> list[int]:
        """The levels of one label, from the first position on."""
        backwards = []
        for parents, own in reversed(self.trail):
            backwards.append(int(own[label]))
            label = int(parents[label])
        return backwards[::-1]


@dataclass(frozen=True)
class Profile:
    """Levels of the elements of the line from ``reach`` + 1 on, and the least t they can have.

    ``least`` is in units of the scale, rounded down.
    """

    levels: list[int]
    least: int


def best_profile(
    line: Line, most: int, tables: Sequence[Rests], work: Work
) -> tuple[Profile | None, bool]:
    """The profile of least t among those of t ≤ ``most``, and whether the search ended.

    One of a larger t may be returned where there is none.
    """
    # The two sides are mirror images, so one of them is searched and joined with itself.
    last = (line.ring - 1 + line.reach) // 2 if line.apart else line.ring - 1
    ends = _ends(line, most, tables, last, work)
    if ends is None:
        return None, not work.is_over
    if line.apart:
        return _joined(line, ends, work)
    least = _least(line, ends.used)
    label = int(np.argmin(least))
    return Profile(ends.levels(label), int(least[label])), True


def _ends(line: Line, most: int, tables: Sequence[Rests], last: int, work: Work) -> Ends | None:
    """The labels at ``last``; None where there is none, or no work is left."""
    reach, count = line.reach, len(line.steps)
    labels = Labels(np.zeros((reach, 1), np.int64), np.zeros((1, 1 + count), np.int64))
    allowances = [entry.allowance(most) for entry in tables]
    budget = int(line.delta * most)
    trail = []
    for position in range(reach + 1, last + 1):
        size = line.levels[position].size
        work.spend(_UNITS_A_LABEL * labels.used.shape[0] * size * (1 + len(tables)) / 8)
        if work.is_over:
            return None
        parents = np.repeat(np.arange(labels.used.shape[0]), size)
        longer = _extended(line, labels, parents, position)
        # What is given up only grows along the line: beyond δ·t once is beyond it for good.
        hopeful = (longer.used[:, 1:] <= budget).all(axis=1)
        state = tuple(longer.states)
        for entry, allowance in zip(tables, allowances, strict=True):
            prices = np.array((UNIT, *entry.prices), dtype=np.int64)
            hopeful &= longer.used @ prices + entry.tables[position][state] <= allowance
        promising = np.flatnonzero(hopeful)
        if not promising.size:
            return None
        promising = promising[_undominated(line, longer.subset(promising), position)]
        labels = longer.subset(promising)
        trail.append((parents[promising], line.levels[position][labels.states[-1]]))
    return Ends(labels.used, tuple(trail))


def _extended(line: Line, labels: Labels, parents: NDArray[np.intp], position: int) -> Labels:
    """Every label with every level of the element at ``position``."""
    own = line.levels[position]
    number = np.tile(np.arange(own.size), labels.used.shape[0])
    level, used = own[number], labels.used[parents]
    states = labels.states[:, parents]
    used[:, 0] += line.masses[level]
    for column, step in enumerate(line.steps, start=1):
        away = abs(step)
        before = line.levels[position - away][states[line.reach - away]]
        used[:, column] += line.given_up(step, before, level)
    return Labels(np.vstack([states[1:], number]), used)


def _undominated(line: Line, labels: Labels, position: int) -> NDArray[np.intp]:
    """The labels without those that a near one of the same state makes needless."""
    state = np.ravel_multi_index(tuple(labels.states), line.shape(position))
    order = np.lexsort((*labels.used.T[::-1], state))
    state, used = state[order], labels.used[order]
    needless = np.zeros(order.size, dtype=bool)
    for back in range(1, min(_COMPARED, order.size - 1) + 1):
        same = state[back:] == state[:-back]
        if not same.any():
            break
        # The first in order is never needless, so each that is has one that stays before it.
        needless[back:] |= same & (used[back:] >= used[:-back]).all(axis=1)
    return order[~needless]


def _joined(line: Line, ends: Ends, work: Work) -> tuple[Profile | None, bool]:
    """The best profile with one end on each side; the left one is mirrored."""
    count, half = ends.used.shape[0], len(line.steps) // 2
    # A mirror turns each step into its negative, which stands ``half`` columns further.
    swapped = [0, *range(1 + half, 1 + 2 * half), *range(1, 1 + half)]
    mirrored, best, pair = ends.used[:, swapped], np.iinfo(np.int64).max, (0, 0)
    rows = max(1, _PAIRS // count)
    for first in range(0, count, rows):
        work.spend(count * rows)
        if work.is_over:
            return None, False
        sums = ends.used[first : first + rows, None, :] + mirrored[None, :, :]
        least = _least(line, sums)
        place = int(np.argmin(least))
        if least.flat[place] < best:
            best = int(least.flat[place])
            pair = (first + place // count, place % count)
    right, mirror = ends.levels(pair[0]), ends.levels(pair[1])
    whole = [*right, *mirror[: -line.reach][::-1], *_core(line).tolist()]
    return Profile(whole, best), True


def _core(line: Line) -> Integers:
    """The levels of the last elements of the line, which are known."""
    return line.least_levels[line.ring - line.reach :]


def _least(line: Line, used: Integers) -> Integers:
    """The least t of profiles, rounded down to units of the scale."""
    delta = line.delta
    fixed = line.start
    if line.apart:
        fixed += int(line.masses[_core(line)].sum())
    # Masses given up fit 2^42, so a denominator of δ below 2^20 keeps the products in range.
    given_up = used[..., 1:].max(axis=-1)
    if delta.denominator < 2**20:
        budget = given_up * delta.denominator // delta.numerator
    else:
        # Less by more than the roundings of floats, so that the bound stays one.
        budget = np.floor(given_up / float(delta) * (1 - 2.0**-50)).astype(np.int64)
    return np.asarray(np.maximum(fixed + used[..., 0], budget))
