"""Bounds of counts: the ranges that are proved are the ranges of all small tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from release.exact.statistics.top.bounds import CountBounds, check_counts, check_members
from tests.exact.statistics.top.tables import Counts, neighbors


def canonical_loss(counts: Counts, members: tuple[int, ...]) -> int:
    outside = max(n for code, n in enumerate(counts) if code not in members)
    return max(0, outside - min(counts[code] for code in members))


def ranges(bounds: CountBounds, members: int) -> tuple[int, int, int]:
    """Over all neighbors: the norm, the range of the counts, and that of the canonical losses."""
    sets = list(combinations(range(bounds.categories), members))
    norm = of_counts = of_losses = 0
    for one, other in set(neighbors(bounds)):
        changes = [a - b for a, b in zip(one, other, strict=True)]
        norm = max(norm, sum(map(abs, changes)))
        of_counts = max(of_counts, max(changes) - min(changes))
        losses = [canonical_loss(one, codes) - canonical_loss(other, codes) for codes in sets]
        of_losses = max(of_losses, max(losses) - min(losses))
    return norm, of_counts, of_losses


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("touched", [1, 2, 4])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_the_bounds_hold_for_all_small_tables_and_are_reached(
    touched: int, members: int, is_replaced: bool
) -> None:
    bounds = CountBounds(4, touched, is_replaced=is_replaced)
    assert ranges(bounds, members) == (
        bounds.norm,
        bounds.range_of_counts,
        bounds.range_of_losses(members),
    )


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("members", [1, 2])
def test_heavier_units_widen_all_bounds(members: int, is_replaced: bool) -> None:
    bounds = CountBounds(3, 1, 2, is_replaced)
    assert ranges(bounds, members) == (
        bounds.norm,
        bounds.range_of_counts,
        bounds.range_of_losses(members),
    )


def test_a_replaced_unit_moves_no_more_counts_than_there_are() -> None:
    assert CountBounds(5, 3, 2, is_replaced=True).norm == 10
    assert CountBounds(5, 2, 2, is_replaced=True).norm == 8


@pytest.mark.parametrize("fields", [(1, 1, 1), (4, 0, 1), (4, 5, 1), (4, 1, 0)])
def test_impossible_bounds_are_refused(fields: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="categor"):
        CountBounds(*fields)


@pytest.mark.parametrize("members", [0, 4])
def test_none_and_all_are_no_choice(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 3 categories are published"):
        check_members(CountBounds(4, 1), members)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 5)])
def test_counts_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="4 counts"):
        check_counts(CountBounds(4, 1), np.zeros(shape, dtype=np.int64))
