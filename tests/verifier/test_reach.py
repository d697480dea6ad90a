"""What one unit can change, held against all tables of a few rows and all their neighbors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from dp_release_verify.errors import Refused
from dp_release_verify.reach import Reach
from tests.verifier.questions import (
    CYCLE,
    PURE,
    WAYS,
    Plain,
    count_of_rows,
    of_rows,
    of_units,
    on_statistic,
    reach_of,
)

Rows = tuple[int, ...]
Figures = Sequence[int]

CATEGORIES = (0, 1, 2)


def up_to(most: int, choices: Iterable[int]) -> list[Rows]:
    """All multisets of so many choices or fewer."""
    own = list(choices)
    return [each for size in range(most + 1) for each in combinations_with_replacement(own, size)]


def changes(rows: int, choices: Iterable[int], ways: int) -> Iterator[tuple[Rows, Rows]]:
    """The rows of a unit before and after, of all that it may have."""
    every = up_to(rows, choices)
    return product([()] if ways == 1 else every, every)


# ---- The statistic: what the noise is put on, of the rows of the others and of one unit


def times(category: int, rows: Rows) -> int:
    return rows.count(category)


def counts_of_rows(others: Rows, own: Rows) -> Figures:
    return [times(each, others) + times(each, own) for each in CATEGORIES]


def counts_of_units(others: Rows, own: Rows) -> Figures:
    return [times(each, others) + min(1, times(each, own)) for each in CATEGORIES]


def rank_scores(share: Fraction) -> Callable[[Rows, Rows], Figures]:
    """How far each answer is from the quantile, in rows times the denominator of the share."""

    def scores(others: Rows, own: Rows) -> Figures:
        every = others + own
        wanted = share.numerator * len(every)
        found = []
        for answer in CATEGORIES:
            below = share.denominator * sum(each < answer for each in every)
            through = share.denominator * sum(each <= answer for each in every)
            found.append(-max(0, below - wanted, wanted - through))
        return found

    return scores


def place_scores(others: Rows, own: Rows) -> Figures:
    """How far each answer is from the second smallest row."""
    every = others + own
    found = []
    for answer in CATEGORIES:
        below = sum(each < answer for each in every)
        through = sum(each <= answer for each in every)
        found.append(-max(0, below - 1, 2 - through))
    return found


def score_of_gaps(*parts: int) -> Callable[[Rows, Rows], Figures]:
    """How far the rows between several quantiles are from their parts of all rows."""

    def score(others: Rows, own: Rows) -> Figures:
        every = others + own
        return [
            sum(
                abs(sum(parts) * times(gap, every) - part * len(every))
                for gap, part in enumerate(parts)
            )
        ]

    return score


def sums(low: int, high: int) -> Callable[[Rows, Rows], Figures]:
    return lambda others, own: [sum(low + each * (high - low) // 2 for each in others + own)]


def ends(low: int, high: int) -> Callable[[Rows, Rows], Figures]:
    """How far the rows are above the lower bound together, and how far below the upper."""

    def both(others: Rows, own: Rows) -> Figures:
        (total,) = sums(low, high)(others, own)
        number = len(others + own)
        return [total - low * number, high * number - total]

    return both


def weights(low: int, high: int) -> Callable[[Rows, Rows], Figures]:
    """The sum of the weights of each category; a row is a category and one of the two ends."""

    def scores(others: Rows, own: Rows) -> Figures:
        total = Counter(dict.fromkeys(CATEGORIES, 0))
        for row in others + own:
            total[row // 2] += (low, high)[row % 2]
        return [total[category] for category in CATEGORIES]

    return scores


def width(moved: list[int]) -> int:
    return max(moved) - min(moved)


def together(moved: list[int]) -> int:
    return sum(abs(each) for each in moved)


QUARTER = Fraction(1, 4)
STATISTICS: dict[str, tuple[Plain, Callable[[Rows, Rows], Figures], Any, Iterable[int]]] = {
    "mode of rows": (of_rows("mode"), counts_of_rows, width, CATEGORIES),
    "mode of units": (of_units("mode"), counts_of_units, width, CATEGORIES),
    "mode of weights": (
        of_rows("mode", weight="kind", clamp=[-1, 3]),
        weights(-1, 3),
        width,
        range(6),
    ),
    "mode of weights below 0": (
        of_rows("mode", weight="kind", clamp=[-4, 3]),
        weights(-4, 3),
        width,
        range(6),
    ),
    "top of rows": (
        of_rows("top", k=1, counts=False, histogram=False),
        counts_of_rows,
        together,
        CATEGORIES,
    ),
    "top of units": (
        of_units("top", k=1, counts=False, histogram=False),
        counts_of_units,
        together,
        CATEGORIES,
    ),
    "median": (on_statistic("median"), rank_scores(Fraction(1, 2)), width, CATEGORIES),
    "a quarter": (
        on_statistic("quantiles", at=["0.25"]),
        rank_scores(QUARTER),
        width,
        CATEGORIES,
    ),
    "three quarters": (
        on_statistic("quantiles", at=["0.75"]),
        rank_scores(1 - QUARTER),
        width,
        CATEGORIES,
    ),
    "second smallest": (on_statistic("min", rank=2), place_scores, width, CATEGORIES),
    "two quantiles": (
        on_statistic("quantiles", at=["0.25", "0.75"]),
        score_of_gaps(1, 2, 1),
        together,
        CATEGORIES,
    ),
    "two uneven quantiles": (
        on_statistic("quantiles", at=["0.1", "0.5"]),
        score_of_gaps(1, 4, 5),
        together,
        CATEGORIES,
    ),
    "sum": (on_statistic("sum", clamp=[0, 4]), sums(0, 4), together, CATEGORIES),
    "sum below 0": (on_statistic("sum", clamp=[-6, 4]), sums(-6, 4), together, CATEGORIES),
    "mean": (on_statistic("mean", clamp=[-6, 4]), ends(-6, 4), together, CATEGORIES),
}


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", STATISTICS)
def test_a_unit_moves_a_statistic_as_far_as_the_spread_and_no_further(
    name: str, rows: int, ways: int
) -> None:
    plain, statistic, measure, choices = STATISTICS[name]
    moves = list(changes(rows, choices, ways))
    # Enough rows of others that a score, which is at most 0, can move both ways.
    most = 6 if choices is CATEGORIES else 1
    furthest: int = 0
    for others in up_to(most, choices):
        found = {own: statistic(others, own) for own in up_to(rows, choices)}
        for before, after in moves:
            moved = [b - a for a, b in zip(found[before], found[after], strict=True)]
            furthest = max(furthest, measure(moved))
    reach = reach_of(plain, ways=ways, rows=rows)
    assert reach.spread(reach.rows, ways) == furthest


# ---- Cells


def placed(rows: int, cells: int, free: int) -> list[Counter[int]]:
    """All ways to lay up to so many rows into cells."""
    every = [Counter(each) for each in up_to(rows, range(free))]
    return [each for each in every if len(each) <= cells]


def moved_in_cells(rows: int, cells: int, free: int, ways: int) -> set[Rows]:
    """By how much a unit moves the counts of cells, the largest first."""
    every = placed(rows, cells, free)
    before = [Counter[int]()] if ways == 1 else every
    found = set()
    for first, second in product(before, every):
        apart = [abs(second[cell] - first[cell]) for cell in range(free)]
        found.add(tuple(sorted((each for each in apart if each), reverse=True)))
    return found


CELLS = [
    pytest.param(rows, cells, free, id=f"{rows} rows, {cells} of {free} cells")
    for rows, cells, free in [(1, 1, 1), (3, 1, 1), (1, 2, 4), (2, 1, 4), (3, 2, 3), (3, 3, 4)]
]


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize(("rows", "cells", "free"), CELLS)
def test_a_unit_touches_as_many_cells_as_it_can(
    rows: int, cells: int, free: int, ways: int
) -> None:
    count = count_of_rows(9)
    reach = reach_of(count, ways=ways, rows=rows, cells=cells, free=free)
    found = moved_in_cells(rows, cells, free, ways)
    assert reach.cells_touched == max(len(each) for each in found)
    patterns = reach.patterns()
    # Every pattern occurs, and whatever occurs is nowhere more than one of the patterns.
    assert set(patterns) <= found
    assert all(any(is_within(each, pattern) for pattern in patterns) for each in found)
    most = max(sum(each) for each in found)
    assert times_charged(reach) * max(reach.distances) == most


def times_charged(reach: Reach) -> Fraction:
    """How often the ε of one cell is charged, where a part of a move loses that part of ε."""
    return min(Fraction(reach.cells_touched), reach.share_of_spread())


def is_within(moved: Rows, pattern: Rows) -> bool:
    return len(moved) <= len(pattern) and all(a <= b for a, b in zip(moved, pattern, strict=False))


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize(("rows", "cells", "free"), CELLS)
def test_scores_in_all_cells_move_no_further_than_their_share(
    rows: int, cells: int, free: int, ways: int
) -> None:
    plain = of_rows("mode")
    reach = reach_of(plain, ways=ways, rows=rows, cells=cells, free=free)
    spread = reach.spread(rows, ways)
    assert reach.patterns() == [(spread,) * reach.cells_touched]
    # Rows in a cell raise the score of one category by their number, or of two apart.
    most = max(sum(each) for each in moved_in_cells(rows, cells, free, 1)) * ways
    assert times_charged(reach) * spread == most


def test_patterns_are_cut_at_the_largest_answer_and_where_they_are_too_many() -> None:
    count = count_of_rows(2)
    assert reach_of(count, rows=3, free=2).patterns() == [(2,), (2, 1)]
    assert reach_of(count, rows=40, free=40).patterns() == [(2,) * 40]


# ---- Answers


def code_of_sum(value: int, low: int, width: Fraction, size: int) -> int:
    return int(min(size - 1, max(0, (value - low) // width)))


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    ("clamp", "low", "high", "count"),
    [((0, 4), 0, 20, 20), ((-3, 4), -6, 20, 10), ((1, 5), 0, 30, 4), ((-5, -2), -20, 0, 20)],
)
def test_codes_of_sums_move_as_far_as_the_steps(
    clamp: tuple[int, int], low: int, high: int, count: int, rows: int, ways: int
) -> None:
    bins = {"bins": {"low": low, "high": high, "count": count}}
    plain = on_statistic("sum", clamp=list(clamp), domain=bins, noise="on_answer")
    reach = reach_of(plain, ways=ways, rows=rows)
    width = Fraction(high - low, count)
    own = {sum(each) for each in up_to(rows, range(clamp[0], clamp[1] + 1))}
    found = set()
    for others in range(low - 20, high + 20):
        for before, after in product({0} if ways == 1 else own, own):
            codes = [code_of_sum(others + each, low, width, count) for each in (before, after)]
            found.add(codes[1] - codes[0])
    steps = reach.steps(0, rows)
    assert found == set(steps)
    assert reach.distances == {abs(each) for each in found} - {0}


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize(
    ("values", "low", "high", "count", "unit"),
    [
        ([0, 3, 6], 0, 12, 12, 1),
        ([0, 3, 6], 0, 22, 22, 3),
        ([0, 4], 0, 22, 11, 2),
        ([0, 3], 0, 20, 10, 1),
    ],
)
def test_sums_of_few_values_move_by_multiples(
    values: list[int], low: int, high: int, count: int, unit: int, ways: int
) -> None:
    bins = {"bins": {"low": low, "high": high, "count": count}}
    plain = on_statistic("sum", values=values, domain=bins, noise="on_answer")
    reach = reach_of(plain, ways=ways, rows=2)
    width = Fraction(high - low, count)
    sums_of_two = {sum(each) for each in up_to(2, values)}
    every = {sum(each) for each in up_to(8, values)}
    found = set()
    for others, before, after in product(every, {0} if ways == 1 else sums_of_two, sums_of_two):
        codes = [code_of_sum(others + each, low, width, count) for each in (before, after)]
        found.add(codes[1] - codes[0])
    steps = reach.steps(0, 2)
    assert found <= set(steps)
    assert (min(found), max(found)) == (steps[0], steps[-1])
    assert steps.step == unit


@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("of", [None, "unit"])
def test_parts_of_one_answer_move_together(of: str | None, ways: int) -> None:
    count = {
        "name": "number",
        "kind": "count",
        "noise": "on_answer",
        "domain": {"ordered": {"min": 0, "max": 3}},
    }
    if of is not None:
        count["of"] = of
    mode = on_statistic("mode", name="kind", domain=CYCLE, count="rows", noise="on_answer")
    del mode["guarantee"]
    both = {"name": "own", "kind": "tuple", "of": ["number", "kind"], "guarantee": PURE}
    reach = reach_of(both, count, mode, ways=ways, rows=2)
    assert reach.distances == set()
    found = set()
    for others in up_to(5, CATEGORIES):
        for before, after in changes(2, CATEGORIES, ways):
            codes = [joint_code(others, own, of) for own in (before, after)]
            for sign in (1, -1):
                pairs = zip(codes[0], codes[1], (4, 3), strict=True)
                found.add(tuple(sign * (b - a) % size for a, b, size in pairs))
    assert found - {(0, 0)} <= reach.differences
    assert {each[0] for each in found} == {each[0] for each in reach.differences}
    assert {each[1] for each in found} == {each[1] for each in reach.differences}


def joint_code(others: Rows, own: Rows, of: str | None) -> tuple[int, int]:
    """The number of rows, or of units, up to 3, and the category with the most rows."""
    every = others + own
    number = len(every) if of is None else len(others) + min(1, len(own))
    return min(3, number), max(CATEGORIES, key=lambda each: (times(each, every), -each))


# ---- Rows that are read


@pytest.mark.parametrize(
    ("declared", "ways", "rows"),
    [([[1]], 1, 1), ([[1], [2]], 1, 2), ([[3], [1], [2]], 1, 3), ([[1], [2]], 2, 2), ([[8]], 1, 0)],
)
def test_no_more_rows_are_read_than_a_declared_change_allows(
    declared: list[list[int]], ways: int, rows: int
) -> None:
    count = count_of_rows(9)
    reach = reach_of(count | {"declared": declared, "sensitivity": "declared"}, ways=ways, rows=4)
    if rows == 0:
        with pytest.raises(Refused, match="too small"):
            _ = reach.rows
    else:
        assert reach.rows == rows
