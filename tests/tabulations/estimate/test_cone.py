"""The nearest table that is not negative and adds up, against programs solved otherwise."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import highspy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.cone import (
    TOLERANCE,
    AddingUp,
    Declared,
    Distance,
    NonNegative,
    coarsened,
    excess_bound,
    nearest,
)
from release.tabulations.estimate.rounding import MILLION, Groups
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out

Floats = NDArray[np.float64]

TWO_BY_TWO = Margin((kept_whole(2), kept_whole(2)))
TOTAL = Margin((summed_out(2), summed_out(2)))
FIRST = Margin((kept_whole(2), summed_out(2)))
SECOND = Margin((summed_out(2), kept_whole(2)))


def adding_up(sizes: list[int], sums: Codes, cells: int) -> AddingUp:
    return AddingUp(Groups(np.array(sizes)), sums, np.ones((sum(sizes), cells), dtype=bool))


def stationary(
    form: Floats, target: Floats, equal: Floats, sums: Floats, kept: list[int]
) -> Floats:
    """The least (x − target)ᵀ form (x − target) with equal·x = sums and 0 outside ``kept``."""
    size, count = len(kept), len(sums)
    system = np.zeros((size + count, size + count))
    system[:size, :size] = form[np.ix_(kept, kept)]
    system[:size, size:] = equal[:, kept].T
    system[size:, :size] = equal[:, kept]
    right = np.concatenate([(form @ target)[kept], sums])
    table = np.zeros(len(target))
    table[kept] = np.linalg.lstsq(system, right, rcond=None)[0][:size]
    return table


def by_active_sets(form: Floats, target: Floats, equal: Floats, sums: Floats) -> Floats:
    """The nearest x ≥ 0 with equal·x = sums: the best stationary point of all sets above 0."""
    nearest_table, least = np.zeros(len(target)), np.inf
    for chosen in product((False, True), repeat=len(target)):
        table = stationary(form, target, equal, sums, [i for i, c in enumerate(chosen) if c])
        if table.min() < -1e-9 or np.abs(equal @ table - sums).max(initial=0) > 1e-7:
            continue
        distance = float((table - target) @ form @ (table - target))
        if distance < least:
            nearest_table, least = table, distance
    assert least < np.inf
    return nearest_table


def block_form(distance: Distance, areas: int) -> Floats:
    return np.asarray(np.kron(np.eye(areas), distance.matrix.astype(float)))


def cell_sums(areas: int, cells: int) -> Floats:
    """The matrix that adds up each cell over the areas of one parent."""
    return np.asarray(np.kron(np.ones((1, areas)), np.eye(cells)))


@pytest.mark.parametrize(
    ("margins", "weights"),
    [
        ((TOTAL, FIRST, SECOND, TWO_BY_TWO), (1, 1, 1, 1)),
        ((TOTAL, TWO_BY_TWO), (64, 1)),
        ((SECOND, TWO_BY_TWO), (5, 3)),
    ],
)
def test_the_nearest_table_is_that_of_active_sets(
    margins: tuple[Margin, ...], weights: tuple[int, ...]
) -> None:
    distance = Distance.of_margins(TWO_BY_TWO, margins, weights)
    rng = np.random.default_rng(3)
    for _ in range(5):
        estimates = rng.integers(-4 * MILLION, 6 * MILLION, (2, 4))
        sums = rng.integers(0, 8, (1, 4))
        allowed = adding_up([2], sums, 4)
        table = nearest(estimates, distance, allowed)
        target = estimates.reshape(-1) / MILLION
        exact = by_active_sets(block_form(distance, 2), target, cell_sums(2, 4), sums[0])
        # A last step of TOLERANCE is at most κ times as far from the end, κ = most/least.
        reach = 2 * distance.most / distance.least * TOLERANCE
        assert np.abs(table.reshape(-1) - exact * MILLION).max() < reach
        # Below 0 where the table falls a millionth short of a sum.
        assert abs(excess_bound(table, estimates, distance, allowed)) < 0.01 * MILLION**2


def test_a_table_without_a_parent_is_only_not_negative() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, FIRST, TWO_BY_TWO), (2, 1, 1))
    rng = np.random.default_rng(4)
    estimates = rng.integers(-4 * MILLION, 6 * MILLION, (6, 4))
    table = nearest(estimates, distance, NonNegative(np.ones((6, 4), dtype=bool)))
    for area in range(6):
        exact = by_active_sets(
            block_form(distance, 1), estimates[area] / MILLION, np.zeros((0, 4)), np.zeros(0)
        )
        assert np.abs(table[area] / MILLION - exact).max() < 1e-4


def test_declared_sums_of_cells_are_kept() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, SECOND, TWO_BY_TWO), (1, 3, 1))
    rng = np.random.default_rng(5)
    estimates = rng.integers(-4 * MILLION, 6 * MILLION, (6, 4))
    counts = rng.integers(0, 9, (6, 2))
    # The second attribute is declared: cells 0 and 2, and cells 1 and 3.
    allowed = Declared(SECOND.cell_of, counts, np.ones((6, 4), dtype=bool))
    table = nearest(estimates, distance, allowed)
    equal = np.array([[1, 0, 1, 0], [0, 1, 0, 1]], dtype=float)
    for area in range(6):
        exact = by_active_sets(
            block_form(distance, 1), estimates[area] / MILLION, equal, counts[area]
        )
        assert np.abs(table[area] / MILLION - exact).max() < 1e-4
    whole = allowed.whole(table, estimates, distance)
    assert whole.min() >= 0
    assert np.array_equal(whole[:, :2] + whole[:, 2:], counts)


def solved_by_highs(form: Floats, target: Floats, equal: Floats, sums: Floats) -> Floats:
    """The same program, given to another solver."""
    size, rows = len(target), len(sums)
    model = highspy.HighsModel()
    program, hessian = model.lp_, model.hessian_
    program.num_col_, program.num_row_ = size, rows
    program.col_cost_ = -(form @ target)
    program.col_lower_, program.col_upper_ = np.zeros(size), np.full(size, np.inf)
    program.row_lower_ = program.row_upper_ = sums
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum((equal != 0).sum(axis=1))])
    program.a_matrix_.index_ = np.nonzero(equal)[1]
    program.a_matrix_.value_ = equal[equal != 0]
    lower = np.tril(form)
    hessian.dim_, hessian.format_ = size, highspy.HessianFormat.kTriangular
    hessian.start_ = np.concatenate([[0], np.cumsum((lower != 0).sum(axis=0))])
    hessian.index_ = np.nonzero(lower.T)[1]
    hessian.value_ = lower.T[lower.T != 0]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(model)
    solver.run()
    return np.array(solver.getSolution().col_value)


def test_the_nearest_table_is_that_of_another_solver() -> None:
    cells = Margin((kept_whole(3), kept_whole(2)))
    grouped = Margin(((0, 1, 1), kept_whole(2)))
    total = Margin((summed_out(3), summed_out(2)))
    distance = Distance.of_margins(cells, (total, grouped, cells), (4, 2, 3))
    rng = np.random.default_rng(6)
    true = rng.poisson(2, (12, 6))
    sums = true.sum(axis=0, keepdims=True)
    estimates = true * MILLION + rng.integers(-5 * MILLION, 5 * MILLION, (12, 6))
    table = nearest(estimates, distance, adding_up([12], sums, 6))
    exact = solved_by_highs(
        block_form(distance, 12), estimates.reshape(-1) / MILLION, cell_sums(12, 6), sums[0] * 1.0
    )
    assert (exact < 1e-6).sum() > 10
    assert np.abs(table.reshape(-1) / MILLION - exact).max() < 1e-3


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_allowed_table_is_nearer_than_the_bound_says(data: st.DataObject) -> None:
    """Whatever table the bound is asked about, and with or without a weight of single cells."""
    margins = data.draw(st.sampled_from([(TOTAL, TWO_BY_TWO), (FIRST, SECOND)]))
    distance = Distance.of_margins(TWO_BY_TWO, margins, (3, 2))
    numbers = st.integers(-6, 9)
    estimates = np.array(data.draw(st.lists(numbers, min_size=8, max_size=8))).reshape(2, 4)
    table = np.array(data.draw(st.lists(st.integers(0, 5), min_size=8, max_size=8))).reshape(2, 4)
    other = np.array(data.draw(st.lists(st.integers(0, 5), min_size=4, max_size=4)))
    sums = table.sum(axis=0, keepdims=True)
    # Another table of the same sums.
    first = np.minimum(other, sums[0])
    rival = np.stack([first, sums[0] - first])
    bound = excess_bound(table * MILLION, estimates * MILLION, distance, adding_up([2], sums, 4))
    nearer = distance.squared(table - estimates) - distance.squared(rival - estimates)
    assert nearer * MILLION**2 <= bound


def test_the_bound_is_tight_at_the_nearest_table_and_covers_others() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, TWO_BY_TWO), (3, 2))
    rng = np.random.default_rng(7)
    true = rng.poisson(1, (40, 4))
    estimates = true * MILLION + rng.integers(-5 * MILLION, 5 * MILLION, true.shape)
    allowed = adding_up([40], true.sum(axis=0, keepdims=True), 4)
    table = nearest(estimates, distance, allowed)
    least = distance.squared(table - estimates)
    bound = excess_bound(table, estimates, distance, allowed)
    assert abs(bound) < 1e-6 * least
    worse = distance.squared(true * MILLION - estimates) - least
    assert 0.01 * least < worse
    assert worse - abs(bound) <= excess_bound(true * MILLION, estimates, distance, allowed)


def test_without_a_weight_of_single_cells_the_search_still_comes_near() -> None:
    """A heavy total and light sums of rows and columns, between which steps alone are slow."""
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, FIRST, SECOND), (64, 1, 1))
    assert distance.least == 0
    rng = np.random.default_rng(7)
    for areas in (2, 6, 12):
        true = rng.poisson(1, (areas, 4))
        estimates = true * MILLION + rng.integers(-5 * MILLION, 5 * MILLION, true.shape)
        allowed = adding_up([areas], true.sum(axis=0, keepdims=True), 4)
        table = nearest(estimates, distance, allowed)
        bound = excess_bound(table, estimates, distance, allowed)
        assert abs(bound) < 1e-4 * distance.squared(table - estimates)


def test_the_order_of_areas_does_not_matter_to_the_last_place() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, FIRST, TWO_BY_TWO), (7, 2, 3))
    rng = np.random.default_rng(8)
    true = rng.poisson(3, (30, 4))
    estimates = true * MILLION + rng.integers(-6 * MILLION, 6 * MILLION, (30, 4))
    sums = np.stack([true[:20].sum(axis=0), true[20:].sum(axis=0)])
    order = np.concatenate([rng.permutation(20), 20 + rng.permutation(10)])
    allowed = adding_up([20, 10], sums, 4)
    table, permuted = (nearest(e, distance, allowed) for e in (estimates, estimates[order]))
    assert np.array_equal(table[order], permuted)
    whole = allowed.whole(table, estimates, distance)
    assert np.array_equal(whole[order], allowed.whole(permuted, estimates[order], distance))


def test_products_beyond_the_reach_of_floats_are_exact() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, TWO_BY_TWO), (64, 1))
    change = np.array([[2**52 + 1, -(2**52), 3, 7], [1, 2**51 - 1, 2**50, 1]])
    exact = change.astype(object) @ distance.matrix.astype(object)
    assert np.array_equal(distance.slope(change), exact.astype(np.int64))


def test_beyond_64_bits_slopes_saturate_and_do_not_wrap() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, TWO_BY_TWO), (64, 1))
    slope = distance.slope(np.array([[2**61] * 4, [-(2**61)] * 4]))
    # Four cells of weight 64 together and 1 alone: a change of 2^62/257 has a slope of 2^62.
    most = 2**62 // 257 * 257
    assert slope.tolist() == [[most] * 4, [-most] * 4]


def test_sums_of_cells_beyond_the_reach_of_floats_are_exact() -> None:
    table = np.array([[2**53 - 1, 0, 2**53 - 2, 1], [1, 2, 3, 4]])
    assert coarsened(table, TWO_BY_TWO, SECOND).tolist() == [[2**54 - 3, 1], [4, 6]]


def test_a_distance_is_bounded_by_its_weights() -> None:
    cells, grouped = Margin((kept_whole(3),)), Margin(((0, 1, 1),))
    distance = Distance.of_margins(cells, (grouped, cells, cells), (2, 3, 1))
    assert distance.matrix.tolist() == [[6, 0, 0], [0, 6, 2], [0, 2, 6]]
    eigenvalues = np.linalg.eigvalsh(distance.matrix.astype(float))
    assert (distance.least, distance.most) == (4, 8)
    assert distance.least <= eigenvalues[0] <= eigenvalues[-1] <= distance.most


@pytest.mark.parametrize(
    ("cells", "weights"),
    [(FIRST, (1, 1)), (SECOND, (1, 1)), (TWO_BY_TWO, (0, 1)), (TWO_BY_TWO, ())],
)
def test_a_distance_needs_margins_of_its_cells_and_weights(
    cells: Margin, weights: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="weights are at least 1"):
        Distance.of_margins(cells, (SECOND, TWO_BY_TWO), weights)


def brute_force(estimates: Codes, sums: Codes, distance: Distance) -> int:
    """The least distance of all whole tables of two areas with these sums."""
    ranges = (range(int(total) + 1) for total in sums[0])
    rows = (np.array(row) for row in product(*ranges))
    return min(
        distance.squared(np.stack([row, sums[0] - row]) * MILLION - estimates) for row in rows
    )


def test_rounding_comes_close_to_the_best_of_all_whole_tables() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, FIRST, SECOND, TWO_BY_TWO), (4, 1, 1, 1))
    rng = np.random.default_rng(9)
    reached = least = by_cell = 0
    for _ in range(60):
        true = rng.poisson(2, (2, 4))
        estimates = true * MILLION + rng.integers(-3 * MILLION, 3 * MILLION, (2, 4))
        sums = true.sum(axis=0, keepdims=True)
        allowed = adding_up([2], sums, 4)
        near = nearest(estimates, distance, allowed)
        whole = allowed.whole(near, estimates, distance)
        assert whole.min() >= 0
        assert np.array_equal(whole.sum(axis=0), sums[0])
        best = brute_force(estimates, sums, distance)
        own = distance.squared(whole * MILLION - estimates)
        assert own >= best
        reached, least = reached + own, least + best
        cells = [allowed.whole_column(near[:, cell], cell) for cell in range(4)]
        by_cell += distance.squared(np.stack(cells, axis=1) * MILLION - estimates)
    # Rounding each cell by itself loses several times as much.
    assert reached <= 1.03 * least
    assert reached - least <= (by_cell - least) / 2


def test_a_cell_without_a_parent_is_rounded_to_the_nearest_that_is_not_negative() -> None:
    targets = [-(2**62), -1_500_001, -1, 499_999, 500_000, 1_499_999, 1_500_000, 9 * MILLION]
    possible = np.ones((8, 2), dtype=bool)
    possible[7, 1] = False
    allowed = NonNegative(possible)
    rounded = [allowed.whole_column(np.array(targets), cell).tolist() for cell in range(2)]
    assert rounded == [[0, 0, 0, 0, 1, 1, 2, 9], [0, 0, 0, 0, 1, 1, 2, 0]]


def test_no_single_cell_can_be_rounded_better() -> None:
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, SECOND, TWO_BY_TWO), (5, 2, 1))
    rng = np.random.default_rng(10)
    true = rng.poisson(1, (3, 4))
    estimates = true * MILLION + rng.integers(-2 * MILLION, 2 * MILLION, (3, 4))
    sums = true.sum(axis=0, keepdims=True)
    allowed = adding_up([3], sums, 4)
    whole = allowed.whole(nearest(estimates, distance, allowed), estimates, distance)
    own = distance.squared(whole * MILLION - estimates)
    for cell in range(4):
        for column in product(range(int(sums[0, cell]) + 1), repeat=3):
            if sum(column) == sums[0, cell]:
                rival = whole.copy()
                rival[:, cell] = column
                # Up to the millionths that the best place of a cell is rounded to.
                slack = 20 * MILLION
                assert distance.squared(rival * MILLION - estimates) >= own - slack


def test_the_search_ends_by_itself() -> None:
    """A further search from its end does not move."""
    distance = Distance.of_margins(TWO_BY_TWO, (TOTAL, FIRST, TWO_BY_TWO), (1, 1, 1))
    rng = np.random.default_rng(11)
    true = rng.poisson(1, (50, 4))
    estimates = true * MILLION + rng.integers(-9 * MILLION, 9 * MILLION, (50, 4))
    allowed = adding_up([50], true.sum(axis=0, keepdims=True), 4)
    table = nearest(estimates, distance, allowed)
    again, _ = allowed.project(table - distance.slope(table - estimates) // distance.most, None)
    assert np.abs(again - table).max() <= 2 * TOLERANCE


@pytest.mark.parametrize(("first", "second"), [(4, 2), (3, 2)])
@pytest.mark.parametrize("elsewhere", [-5, 0, 20])
def test_the_bound_of_single_cells_alone_is_exact(first: int, second: int, elsewhere: int) -> None:
    """Of the sum 6 the nearest to 10 and -5 is 6 and 0; a table may lack of the sum.

    Whatever is estimated of an impossible cell, no table is nearer there.
    """
    distance = Distance.of_margins(TWO_BY_TWO, (TWO_BY_TWO,), (3,))
    columns = [[first, second, 0], [10, -5, elsewhere], [6, 0, 0]]
    table, estimates, best = (np.array([[own, 0, 0, 0] for own in column]) for column in columns)
    possible = np.ones((3, 4), dtype=bool)
    possible[2, 0] = False
    allowed = AddingUp(Groups(np.array([3])), best.sum(axis=0, keepdims=True), possible)
    bound = excess_bound(table * MILLION, estimates * MILLION, distance, allowed)
    nearer = distance.squared(table - estimates) - distance.squared(best - estimates)
    assert bound == nearer * MILLION**2


def simplex(values: list[Fraction], total: int) -> list[Fraction]:
    """The nearest non-negative rationals of a sum; their cut lies below each that stays above 0."""
    ordered = sorted(values, reverse=True)
    for count in range(len(values), 0, -1):
        cut = Fraction(sum(ordered[:count]) - total, count)
        if cut < ordered[count - 1]:
            return [max(Fraction(0), value - cut) for value in values]
    return [Fraction(0)] * len(values)


@given(st.integers(0, 10**6), st.booleans())
def test_the_bound_is_the_most_that_slope_and_weight_of_single_cells_allow(
    seed: int, has_weight: bool
) -> None:
    """Found otherwise: by the nearest allowed table, or by all corners of the allowed ones."""
    rng = np.random.default_rng(seed)
    margins = (FIRST, TWO_BY_TWO) if has_weight else (FIRST, SECOND)
    distance = Distance.of_margins(TWO_BY_TWO, margins, (2, 3))
    groups = Groups(np.array([2, 3]))
    possible = rng.random((5, 4)) < 0.7
    sums = rng.integers(0, 3, (2, 4)) * groups.summed(possible.astype(np.int64)).astype(bool)
    table = rng.integers(0, 2 * MILLION, (5, 4)) * possible
    estimates = rng.integers(-2 * MILLION, 3 * MILLION, (5, 4))
    slope, least = distance.slope(table - estimates), distance.least
    most = Fraction(0)
    for group, cell in product(range(2), range(4)):
        rows = [row for row in [(0, 1), (2, 3, 4)][group] if possible[row, cell]]
        own = [int(table[row, cell]) for row in rows]
        slopes = [int(slope[row, cell]) for row in rows]
        total = int(sums[group, cell]) * MILLION
        if least:
            wanted = [x - Fraction(s, least) for x, s in zip(own, slopes, strict=True)]
            corners = [simplex(wanted, total)]
        else:
            corners = [[Fraction(total * (row == top)) for row in rows] for top in rows] or [[]]
        gains = []
        for corner in corners:
            steps = [y - x for y, x in zip(corner, own, strict=True)]
            pairs = zip(slopes, steps, strict=True)
            gains.append(-sum((2 * s * d + least * d * d for s, d in pairs), Fraction(0)))
        most += max(gains)
    bound = excess_bound(table, estimates, distance, AddingUp(groups, sums, possible))
    # A multiplier is rounded by less than 1, and the loss by it is at most its square's.
    assert most <= bound <= most + least * table.size + 1
    assert has_weight or bound == most
