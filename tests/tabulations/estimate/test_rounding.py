"""Tables of stated sums and their rounding, against enumeration and exact rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.tabulations.estimate.rounding import (
    MILLION,
    Groups,
    Mask,
    largest_remainder,
    onto_sums,
)

WHOLE = st.integers(0, 5)


def column(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)[:, None]


def everything(rows: int) -> Mask:
    return np.ones((rows, 1), dtype=bool)


def simplex(values: list[int], total: int) -> list[Fraction]:
    """The nearest non-negative rationals of a sum: by trying every set of rows above 0."""
    nearest: tuple[Fraction, list[Fraction]] | None = None
    for kept in product((False, True), repeat=len(values)):
        count = sum(kept)
        if not count and total:
            continue
        cut = Fraction(sum(v for v, k in zip(values, kept, strict=True) if k) - total, count or 1)
        table = [v - cut if k else Fraction(0) for v, k in zip(values, kept, strict=True)]
        if min(table) < 0:
            continue
        distance = sum(((t - v) ** 2 for t, v in zip(table, values, strict=True)), Fraction(0))
        if nearest is None or distance < nearest[0]:
            nearest = distance, table
    assert nearest is not None
    return nearest[1]


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=6), st.integers(0, 60))
def test_the_nearest_table_of_a_sum_is_that_of_enumeration(values: list[int], total: int) -> None:
    groups, sums = Groups(np.array([len(values)])), np.array([[total]])
    table = onto_sums(column(values), groups, sums, everything(len(values)))[0][:, 0]
    exact = simplex(values, total)
    for got, want in zip(table.tolist(), exact, strict=True):
        assert got <= want < got + 1
    short = total - int(table.sum())
    assert 0 <= short <= max(0, sum(want > 0 for want in exact) - 1)


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=6),
    st.integers(0, 60),
    st.integers(-100, 100),
)
def test_the_guess_of_a_threshold_changes_nothing(
    values: list[int], total: int, start: int
) -> None:
    groups, sums = Groups(np.array([len(values)])), np.array([[total]])
    cold, _ = onto_sums(column(values), groups, sums, everything(len(values)))
    warm, _ = onto_sums(column(values), groups, sums, everything(len(values)), np.array([[start]]))
    assert np.array_equal(cold, warm)


def test_groups_and_columns_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(5)
    groups = Groups(np.array([1, 4, 2, 9]))
    values = rng.integers(-50, 200, (16, 3))
    sums = rng.integers(0, 300, (4, 3))
    possible = rng.random((16, 3)) < 0.8
    possible[groups.starts] = True
    together, _ = onto_sums(values, groups, sums, possible)
    for group, start in enumerate(groups.starts):
        rows = slice(start, start + groups.sizes[group])
        for cell in range(3):
            alone, _ = onto_sums(
                values[rows, cell : cell + 1],
                Groups(groups.sizes[group : group + 1]),
                sums[group : group + 1, cell : cell + 1],
                possible[rows, cell : cell + 1],
            )
            assert np.array_equal(together[rows, cell], alone[:, 0])
    assert not together[~possible].any()


def test_a_value_at_the_cut_rounded_down_is_cut_to_0() -> None:
    # The cut is at one half.
    groups, sums = Groups(np.array([3])), np.array([[9]])
    table, below = onto_sums(column([0, 5, 5]), groups, sums, everything(3))
    assert (table[:, 0].tolist(), below.tolist()) == ([0, 4, 4], [[0]])


def test_values_at_a_guess_do_not_hold_the_search_back() -> None:
    # The cut is at three halves, and the first step ends at the 0 of the other values.
    groups, sums = Groups(np.array([5])), np.array([[3]])
    table, below = onto_sums(column([0, 0, 1, 3, 3]), groups, sums, everything(5))
    assert (table[:, 0].tolist(), below.tolist()) == ([0, 0, 0, 1, 1], [[1]])


def test_a_guess_above_every_value_is_taken_back_for_the_least_sum() -> None:
    groups, start = Groups(np.array([2])), np.array([[10]])
    for total, nearest in ((0, [0, 0]), (1, [1, 0]), (2, [2, 0])):
        table, _ = onto_sums(column([4, 1]), groups, np.array([[total]]), everything(2), start)
        assert table[:, 0].tolist() == nearest


@given(st.data())
def test_rounding_is_the_nearest_of_all_whole_tables_of_the_sum(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 5))
    total = data.draw(st.integers(0, 6))
    weights = data.draw(st.lists(st.integers(0, 50), min_size=rows, max_size=rows))
    possible = data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    possible[data.draw(st.integers(0, rows - 1))] = True
    mask = np.array(possible)[:, None]
    groups, sums = Groups(np.array([rows])), np.array([[total]])
    values, _ = onto_sums(column(weights) * 100_000, groups, sums * MILLION, mask)
    rounded = largest_remainder(values, groups, sums, mask)[:, 0].tolist()

    def distance(table: tuple[int, ...]) -> int:
        return sum(
            (n * MILLION - v) ** 2 for n, v in zip(table, values[:, 0].tolist(), strict=True)
        )

    tables = [
        table
        for table in product(range(total + 1), repeat=rows)
        if sum(table) == total and not any(n for n, p in zip(table, possible, strict=True) if not p)
    ]
    assert tuple(rounded) in tables
    assert distance(tuple(rounded)) == min(map(distance, tables))


@given(st.integers(0, 10**6))
def test_each_group_and_column_is_rounded_by_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = Groups(rng.integers(1, 5, 3))
    rows = int(groups.sizes.sum())
    possible = rng.random((rows, 3)) < 0.8
    # Ties, and remainders as small and as large as they can be.
    values = rng.choice([0, 1, 400_000, 999_999, 1_000_000, 2_400_000], (rows, 3)) * possible
    open_rows = groups.summed(possible.astype(np.int64))
    sums = groups.summed(values // MILLION) + rng.integers(0, open_rows + 1)
    rounded = largest_remainder(values, groups, sums, possible)
    for group, start in enumerate(groups.starts):
        for cell in range(3):
            of_group = range(start, start + groups.sizes[group])
            chosen = [row for row in of_group if possible[row, cell]]
            chosen.sort(key=lambda row: -(values[row, cell] % MILLION))
            raised = chosen[: sums[group, cell] - sum(values[of_group, cell] // MILLION)]
            for row in of_group:
                assert rounded[row, cell] == values[row, cell] // MILLION + (row in raised)


def test_of_equal_remainders_the_earlier_row_is_raised() -> None:
    values = column([500_000, 1_500_000, 500_000, 500_000])
    rounded = largest_remainder(values, Groups(np.array([4])), np.array([[3]]), everything(4))
    assert rounded[:, 0].tolist() == [1, 2, 0, 0]


def test_a_value_without_a_remainder_is_raised_before_an_impossible_one() -> None:
    values, possible = column([0, 2_000_000]), np.array([[False], [True]])
    rounded = largest_remainder(values, Groups(np.array([2])), np.array([[3]]), possible)
    assert rounded[:, 0].tolist() == [0, 3]


@pytest.mark.parametrize("total", [1, 4])
def test_a_sum_out_of_reach_of_rounding_is_refused(total: int) -> None:
    # Floors add up to 2, and one value may be raised.
    values, possible = column([2_500_000, 0]), np.array([[True], [False]])
    with pytest.raises(ValueError, match="do not add up"):
        largest_remainder(values, Groups(np.array([2])), np.array([[total]]), possible)
    with pytest.raises(ValueError, match="do not add up"):
        # Beside a group that adds up.
        twice, groups = np.concatenate([values, values]), Groups(np.array([2, 2]))
        largest_remainder(twice, groups, np.array([[2], [total]]), np.tile(possible, (2, 1)))
