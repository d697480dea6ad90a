"""The scores and gaps of few categories where one unit may stand in another one's place.

The statistics of a cell are its scores: how many privacy units are in each of some public
categories. A unit has one row, so between neighboring tables at most one score falls and at most
one rises, each by 1. A unit that only leaves the cell, or only enters it, counts as well.

A *state* is the list of the gaps, how far each score is below the largest, from the smallest, which
is 0, to the largest (docs/design/selection-gap-tables.md).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, combinations_with_replacement, product
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes

Integers: TypeAlias = NDArray[np.int64]

BITS = 62

TOTAL = 2**BITS // 60 * 60
"""The sum of every row of a gap table.

A multiple of 1 to 6, so that any number of leaders can share what the others leave. All rows have
the same, so that ratios of chances are ratios of weights.
"""

FEWEST, MOST = 2, 6
"""How many categories a gap table may have."""

MOST_STATES = 2**15
"""How many states a gap table may have; the proof for so many takes about two seconds."""

# No gap changes by more between neighboring tables: the largest score and the category's own each
# move by 1.
_STEP = 2


def count_states(categories: int, cap: int) -> int:
    """How many states there are."""
    return comb(cap + categories - 1, categories - 1)


@lru_cache(maxsize=4)
def states(categories: int, cap: int) -> Integers:
    """All states, shape (states, categories): non-decreasing, first 0, in lexicographic order."""
    rest = combinations_with_replacement(range(cap + 1), categories - 1)
    flat = np.fromiter(chain.from_iterable(rest), dtype=np.int64).reshape(-1, categories - 1)
    gaps = np.concatenate([np.zeros((len(flat), 1), dtype=np.int64), flat], axis=1)
    gaps.setflags(write=False)
    return gaps


def first_places(gaps: Integers) -> Integers:
    """For each category how many have smaller gaps: where its gap first stands in the state."""
    smaller = gaps[:, np.newaxis, :] < gaps[:, :, np.newaxis]
    counts: Integers = smaller.sum(axis=2, dtype=np.int64)
    return counts


@lru_cache(maxsize=1)
def neighbor_places(categories: int, cap: int) -> tuple[Integers, Integers]:
    """All pairs of weights that one category may have in neighboring tables, as flat indices.

    The index is that of the category's first place in its state: equal gaps have equal weights. The
    pairs are sorted, each stands once and with its reverse, and none is of a weight with itself.

    Gaps up to ``cap`` + 2 are enough. No gap changes by more than 2, so one above that is above the
    cap afterwards too, whatever it is; and who leads afterwards is decided by gaps of at most 2.
    """
    wide = states(categories, cap + _STEP)
    size = count_states(categories, cap) * categories
    before = _flat_places(np.minimum(wide, cap), cap)
    pairs = []
    # The last index stands for no category: the unit was in none, or is in none now.
    for fallen, risen in product(range(categories + 1), repeat=2):
        if fallen == risen:
            continue
        gaps = np.concatenate([wide, np.zeros((len(wide), 1), dtype=np.int64)], axis=1)
        gaps[:, fallen] += 1
        gaps[:, risen] -= 1
        gaps = gaps[:, :categories]
        gaps = np.minimum(gaps - gaps.min(axis=1, keepdims=True), cap)
        after = _flat_places(gaps, cap)
        moved = before != after
        pairs.append(before[moved] * size + after[moved])
    both = np.sort(np.concatenate(pairs))
    both = both[np.append(True, both[1:] != both[:-1])]
    first, second = both // size, both % size
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


def _flat_places(gaps: Integers, cap: int) -> Integers:
    rows = state_ranks(np.sort(gaps, axis=1), cap)
    places: Integers = rows[:, np.newaxis] * gaps.shape[1] + first_places(gaps)
    return places


def state_ranks(sorted_gaps: Integers, cap: int) -> Integers:
    """The row of each state, a list of ascending gaps, in the order of :func:`states`."""
    categories = sorted_gaps.shape[1]
    # Written in base cap + 1, states are in the order of their numbers.
    places = (cap + 1) ** np.arange(categories - 1, -1, -1, dtype=np.int64)
    numbers = states(categories, cap) @ places
    ranks: Integers = np.searchsorted(numbers, sorted_gaps @ places).astype(np.int64)
    return ranks


def check_lead(lead: int) -> None:
    """Refuse a negative lead.

    Raises:
        ValueError: it is negative.
    """
    if not lead >= 0:
        raise ValueError(f"a lead is at least 0, not {lead}")


def checked_scores(statistics: Codes, categories: int) -> Integers:
    """Scores of shape (cells, categories) as they are.

    Raises:
        ValueError: another shape, or a negative score.
    """
    if statistics.ndim != 2 or statistics.shape[1] != categories:
        raise ValueError(f"the statistics of a cell are the scores of {categories} categories")
    if not (statistics >= 0).all():
        raise ValueError("a score is a number of privacy units, at least 0")
    return statistics.astype(np.int64)
