"""Whole numbers of all levels: signs, sums, equal treatment of areas, declared facts."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.domain import Codes
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.rounding import MILLION, Groups, onto_sums
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.estimate.whole import (
    HEAVIEST,
    TOTAL_FACTOR,
    Facts,
    Target,
    _saturated,
    check_adds_up,
    finest,
    millionths,
    targets_of,
    weights_of,
    whole_tables,
)

HISPANIC = (0, 1, 1)
GROUPINGS = (summed_out(3), HISPANIC, kept_whole(3))
AGES = (summed_out(2), kept_whole(2))
CELLS = Margin((kept_whole(3), kept_whole(2)))
TOTAL = Margin((summed_out(3), summed_out(2)))
RACE = Margin((kept_whole(3), summed_out(2)))
AGE = Margin((summed_out(3), kept_whole(2)))
MARGINS = (TOTAL, AGE, RACE, CELLS)


def tree(*children: list[int]) -> Areas:
    """One area at the top, then the numbers of areas in each area of the level above."""
    parents = [np.zeros(1, dtype=np.int64)]
    parents += [np.repeat(np.arange(len(sizes)), sizes) for sizes in children]
    return Areas(tuple(f"level {i}" for i in range(len(parents))), tuple(parents))


def estimates_of(areas: Areas, rng: np.random.Generator, noise: int) -> list[Codes]:
    """Estimates of random tables, each level with noise of its own: they need not add up."""
    counts = [rng.poisson(4, (areas.parents[-1].size, CELLS.cells))]
    for level in range(len(areas.levels) - 1, 0, -1):
        counts.insert(0, areas.summed_up(level, counts[0]))
    width = noise * MILLION
    return [c * MILLION + rng.integers(-width, width + 1, c.shape) for c in counts]


def targets_near(tables: list[Codes], weights: tuple[int, ...] = (1, 1, 1, 1)) -> list[Target]:
    return [Target(CELLS, estimate, MARGINS, weights) for estimate in tables]


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_every_published_table_adds_up_and_none_is_negative(data: st.DataObject) -> None:
    top = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=1))
    middle = data.draw(st.lists(st.integers(1, 4), min_size=top[0], max_size=top[0]))
    areas = tree(top, middle)
    choices = st.sampled_from([Margin((race, age)) for race in GROUPINGS for age in AGES])
    some = st.lists(choices, min_size=1, max_size=3, unique=True)
    published = data.draw(st.lists(some, min_size=3, max_size=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    noisy = estimates_of(areas, rng, data.draw(st.integers(0, 12)))
    cells = finest(published)
    targets = [
        Target(own, coarsened(estimates, CELLS, own), tuple(margins), (2,) * len(margins))
        for own, estimates, margins in zip(cells, noisy, published, strict=True)
    ]
    levels = whole_tables(areas, targets)
    check_adds_up(areas, cells, [level.counts for level in levels])
    for upper, margins in enumerate(published[:-1]):
        for margin in margins:
            if cells[upper + 1].refines(margin):
                above = coarsened(levels[upper].counts, cells[upper], margin)
                below = coarsened(levels[upper + 1].counts, cells[upper + 1], margin)
                assert np.array_equal(areas.summed_up(upper + 1, below), above)
    assert all((level.counts >= 0).all() and (level.near >= 0).all() for level in levels)


def test_whole_tables_that_add_up_are_not_changed() -> None:
    areas = tree([4], [3, 1, 5, 2])
    rng = np.random.default_rng(1)
    exact = estimates_of(areas, rng, 0)
    levels = whole_tables(areas, targets_near(exact, (5, 1, 2, 3)))
    for level, table in zip(levels, exact, strict=True):
        assert np.array_equal(level.counts * MILLION, table)
        assert np.array_equal(level.near, table)


def test_one_negative_number_among_others_is_refused() -> None:
    areas = tree([4], [3, 1, 5, 2])
    rng = np.random.default_rng(1)
    levels = whole_tables(areas, targets_near(estimates_of(areas, rng, 0), (5, 1, 2, 3)))
    counts = [level.counts.copy() for level in levels]
    cells = [CELLS] * len(counts)
    check_adds_up(areas, cells, counts)
    counts[-1][0, 0] = -1
    with pytest.raises(ValueError, match="missing or negative"):
        check_adds_up(areas, cells, counts)


def test_the_order_of_areas_in_an_area_does_not_matter() -> None:
    areas = tree([3], [6, 9, 4])
    rng = np.random.default_rng(2)
    noisy = estimates_of(areas, rng, 6)
    order = np.concatenate([rng.permutation(6), 6 + rng.permutation(9), 15 + rng.permutation(4)])
    levels = whole_tables(areas, targets_near(noisy))
    permuted = whole_tables(areas, targets_near([*noisy[:2], noisy[2][order]]))
    assert not np.array_equal(order, np.arange(19))
    assert np.array_equal(levels[2].counts[order], permuted[2].counts)
    assert np.array_equal(levels[2].near[order], permuted[2].near)


def test_the_order_of_the_upper_areas_does_not_matter_either() -> None:
    rng = np.random.default_rng(3)
    areas, swapped = tree([2], [3, 5]), tree([2], [5, 3])
    noisy = estimates_of(areas, rng, 6)
    moved = [noisy[0], noisy[1][::-1], np.concatenate([noisy[2][3:], noisy[2][:3]])]
    levels, other = (
        whole_tables(areas, targets_near(noisy)),
        whole_tables(swapped, targets_near(moved)),
    )
    assert np.array_equal(levels[1].counts[::-1], other[1].counts)
    assert np.array_equal(levels[2].counts[3:], other[2].counts[:5])


def test_declared_facts_are_kept_and_structural_zeros_stay_zero() -> None:
    areas = tree([3], [2, 4, 3])
    rng = np.random.default_rng(4)
    noisy = estimates_of(areas, rng, 8)
    possible = rng.random((9, CELLS.cells)) < 0.6
    possible[:, 1] = False
    facts = Facts(AGE, np.array([[150, 61]]))
    levels = whole_tables(areas, targets_near(noisy), facts, [None, None, possible])
    check_adds_up(areas, [CELLS] * 3, [level.counts for level in levels])
    assert coarsened(levels[0].counts, CELLS, AGE).tolist() == [[150, 61]]
    assert not levels[2].counts[~possible].any()
    assert not levels[0].counts[:, 1].any()
    assert levels[2].counts[possible].any()


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_zeros_of_finer_cells_above_hold_in_every_table(data: st.DataObject) -> None:
    """Zeros of the full detail: an upper level sees those that no cell below can show."""
    areas = tree([3], [2, 1, 3])
    choices = st.sampled_from([Margin((race, age)) for race in GROUPINGS for age in AGES])
    some = st.lists(choices, min_size=1, max_size=3, unique=True)
    published = data.draw(st.lists(some, min_size=3, max_size=3))
    open_detail = np.array(data.draw(st.lists(st.booleans(), min_size=6, max_size=6)))
    noisy = estimates_of(areas, np.random.default_rng(data.draw(st.integers(0, 1000))), 9)
    cells = finest(published)
    targets, possible = [], []
    for own, level_noisy, margins in zip(cells, noisy, published, strict=True):
        table = coarsened(level_noisy, CELLS, own)
        targets.append(Target(own, table, tuple(margins), (2,) * len(margins)))
        possible.append(np.array([[open_detail[own.cell_of == c].any() for c in range(own.cells)]]))
    levels = whole_tables(areas, targets, None, possible)
    check_adds_up(areas, cells, [level.counts for level in levels])
    for level, mask in zip(levels, possible, strict=True):
        assert not level.counts[:, ~mask[0]].any()
        assert not level.near[:, ~mask[0]].any()


def test_well_known_totals_survive_when_detail_is_cut_at_zero() -> None:
    """Cells near 0 with much noise, totals with little: the totals stay near."""
    areas = tree([60])
    rng = np.random.default_rng(5)
    true = rng.poisson(1.5, (60, CELLS.cells))
    noise = rng.laplace(0, 6, true.shape)
    noise += (rng.laplace(0, 0.3, (60, 1)) - noise.sum(axis=1, keepdims=True)) / CELLS.cells
    estimates = np.rint((true + noise) * MILLION).astype(np.int64)
    state = true.sum(axis=0, keepdims=True)
    targets = targets_near([state * MILLION, estimates], (64, 1, 1, 1))
    counts = whole_tables(areas, targets, Facts(CELLS, state))[1].counts
    assert (estimates < 0).mean() > 0.3
    assert np.abs(counts.sum(axis=1) - true.sum(axis=1)).mean() < 1
    # Each cell by itself: the totals take up the bias of the small areas.
    groups, everywhere = Groups(np.array([60])), np.ones(estimates.shape, dtype=bool)
    alone, _ = onto_sums(estimates, groups, state * MILLION, everywhere)
    assert np.abs(alone.sum(axis=1) / MILLION - true.sum(axis=1)).mean() > 2.5


def test_estimates_beyond_all_bounds_still_give_tables_that_add_up() -> None:
    areas = tree([2], [3, 2])
    rng = np.random.default_rng(6)
    absurd = [
        rng.choice([-(2**63), 2**63 - 1, 0, 5 * MILLION], (areas.size(i), 6)) for i in range(3)
    ]
    levels = whole_tables(areas, targets_near(absurd, (64, 1, 1, 1)))
    check_adds_up(areas, [CELLS] * 3, [level.counts for level in levels])


def test_many_estimates_beyond_all_bounds_still_give_tables_that_add_up() -> None:
    """So many at 2^52 millionths would add up to more than 64 bits hold."""
    areas = tree([5000])
    absurd = [np.full((areas.size(level), CELLS.cells), 2**62) for level in range(2)]
    levels = whole_tables(areas, targets_near(absurd, (64, 1, 1, 1)))
    check_adds_up(areas, [CELLS] * 2, [level.counts for level in levels])
    assert levels[0].counts.min() > 0


@pytest.mark.parametrize("size", [1, 3, 16, 17, 5000])
@pytest.mark.parametrize("sign", [1, -1])
def test_estimates_saturate_at_billions_each_and_at_some_seventy_billion_in_all(
    size: int, sign: int
) -> None:
    """At 2^52 millionths each, and where all have more than 2^56 together, at equal shares."""
    most = min(2**52, 2**56 // size)
    for value in (0, 1, most // 2, most - 2**16, most, most + 2**16, 2**52, 2**55, 2**62):
        saturated = _saturated(np.full(size, sign * value))
        # A share below 0 is rounded down.
        assert np.abs(saturated - sign * min(value, most)).max() <= (size * most < 2**56)


def test_estimates_that_add_up_to_less_than_the_most_are_not_touched() -> None:
    """However large one of them is: here twice its share of 2^56 millionths."""
    estimates = np.array([2**52 - 1, -(2**52), *[2**51] * 26, 1, -1])
    assert np.array_equal(_saturated(estimates), estimates)
    more = np.append(estimates, [2**52, 2**52])
    share = 2**56 // more.size
    assert np.array_equal(_saturated(more), np.clip(more, -share, share))


def test_cells_refine_what_is_published_at_the_level_and_below() -> None:
    age = Margin((summed_out(3), kept_whole(2)))
    hispanic = Margin((HISPANIC, summed_out(2)))
    cells = finest([[RACE], [age, hispanic], [hispanic]])
    assert cells[2] == hispanic
    assert cells[1] == Margin((HISPANIC, kept_whole(2)))
    assert cells[0] == CELLS


def test_weights_follow_precision_and_totals_are_heavier() -> None:
    variances = [Fraction(10), Fraction(5), Fraction(10**6), Fraction(0)]
    assert weights_of((RACE, AGE, CELLS, AGE), variances) == (HEAVIEST // 2, HEAVIEST, 1, HEAVIEST)
    assert weights_of((TOTAL, CELLS), [Fraction(10), Fraction(5)]) == (
        HEAVIEST // 2 * TOTAL_FACTOR,
        HEAVIEST,
    )
    assert weights_of((CELLS,), [Fraction(0)]) == (HEAVIEST,)


def test_weights_are_those_of_the_page() -> None:
    """64·v₀/v to the nearest integer, and 16 times that for a total, for variances of any size."""
    for unit in (Fraction(1), Fraction(1, 10**6), Fraction(10**6)):
        variances = [unit * own for own in (1, 25, 30, 100, 300)]
        margins = (RACE, AGE, CELLS, TOTAL, CELLS)
        # 64, 2.56, 2.13, 0.64 and 0.21.
        assert weights_of(margins, variances) == (64, 3, 2, 16, 1)


@pytest.mark.parametrize("variance", [Fraction(4), Fraction(1, 100)])
def test_targets_have_the_estimates_and_weights_of_least_squares(variance: Fraction) -> None:
    areas = tree([2])
    counts = np.array([[7, -2, 0, 4, 1, 1], [3, 3, 3, 3, 3, 3]])
    measured = {(1, CELLS): Measurement(counts, variance)}
    tables = [(level, margin) for level in (0, 1) for margin in (TOTAL, CELLS)]
    least_squares = estimates(areas, (3, 2), measured, tables)
    upper, lower = targets_of(least_squares, [(TOTAL, CELLS)] * 2)
    assert np.array_equal(lower.estimates, counts * MILLION)
    assert np.array_equal(upper.estimates, counts.sum(axis=0, keepdims=True) * MILLION)
    # Six cells make a total of six times their variance.
    assert lower.weights == (floor(HEAVIEST / 6 + 0.5) * TOTAL_FACTOR, HEAVIEST)
    assert upper.weights == lower.weights
    with pytest.raises(ValueError, match="only published tables"):
        targets_of(least_squares, [(TOTAL, RACE)] * 2)


def test_a_total_that_is_measured_beside_its_cells_is_known_as_well_as_they_are() -> None:
    """Cells of variance v and their total of variance v, all together: 6/7 of v for each."""
    areas = tree([2])
    counts = np.array([[7, -2, 0, 4, 1, 1], [3, 3, 3, 3, 3, 3]])
    measured = {
        (1, CELLS): Measurement(counts, Fraction(1, 100)),
        (1, TOTAL): Measurement(counts.sum(axis=1, keepdims=True), Fraction(1, 100)),
    }
    tables = [(level, margin) for level in (0, 1) for margin in (TOTAL, CELLS)]
    for target in targets_of(estimates(areas, (3, 2), measured, tables), [(TOTAL, CELLS)] * 2):
        assert target.weights == (HEAVIEST * TOTAL_FACTOR, HEAVIEST)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**20))
def test_millionths_are_the_nearest(numerator: int, denominator: int) -> None:
    got = int(millionths(np.array([numerator], dtype=object), denominator)[0])
    exact = Fraction(numerator, denominator) * MILLION
    if abs(exact) < 2**52:
        assert -Fraction(1, 2) < got - exact <= Fraction(1, 2)
    else:
        assert abs(got) == 2**52


def test_numbers_that_do_not_add_up_or_are_negative_are_found() -> None:
    areas = tree([2], [2, 2])
    counts = [c // MILLION for c in estimates_of(areas, np.random.default_rng(7), 0)]
    check_adds_up(areas, [CELLS] * 3, counts)
    for level in range(3):
        for change in (1, -100):
            table = counts[level].copy()
            table[0, 3] += change
            changed = [*counts[:level], table, *counts[level + 1 :]]
            with pytest.raises(ValueError, match=r"level [12]: areas do not|a whole number is"):
                check_adds_up(areas, [CELLS] * 3, changed)


def test_what_does_not_fit_is_refused() -> None:
    areas = tree([2])
    noisy = estimates_of(areas, np.random.default_rng(8), 3)
    targets = targets_near(noisy)
    with pytest.raises(ValueError, match="one target for each level"):
        whole_tables(areas, targets[:1])
    with pytest.raises(ValueError, match="level 1: estimates have a row"):
        whole_tables(areas, [targets[0], Target(CELLS, noisy[1][:1], MARGINS, (1, 1, 1, 1))])
    with pytest.raises(ValueError, match="a column for each cell"):
        Target(CELLS, noisy[1][:, :2], MARGINS, (1, 1, 1, 1))
    with pytest.raises(ValueError, match="margins add up cells"):
        Target(RACE, coarsened(noisy[0], CELLS, RACE), (TOTAL, AGE), (1, 1))
    with pytest.raises(ValueError, match="at least 1"):
        Target(CELLS, noisy[1], MARGINS, (1, 1, 0, 1))
    race = Target(RACE, coarsened(noisy[0], CELLS, RACE), (TOTAL, RACE), (1, 1))
    with pytest.raises(ValueError, match="level 1: cells are finer"):
        whole_tables(areas, [race, targets[1]])
    with pytest.raises(ValueError, match="a margin that is a sum of cells"):
        coarse = Target(RACE, coarsened(noisy[1], CELLS, RACE), (RACE,), (1,))
        whole_tables(areas, [race, coarse], Facts(AGE, np.array([[1, 1]])))
    with pytest.raises(ValueError, match="at least 0, one for each"):
        whole_tables(areas, targets, Facts(AGE, np.array([[-1, 1]])))
    with pytest.raises(ValueError, match="shape of their level"):
        whole_tables(areas, targets, None, [None, np.ones((3, 6), dtype=bool)])
    with pytest.raises(ValueError, match="for each level, or for none"):
        whole_tables(areas, targets, None, [None])
    nothing = np.zeros((2, 6), dtype=bool)
    with pytest.raises(ValueError, match="all its cells are declared to be 0"):
        whole_tables(areas, targets, Facts(AGE, np.array([[0, 1]])), [None, nothing])
    # Declared to be 0 as a number and as cells is the same twice.
    for level in whole_tables(areas, targets, Facts(AGE, np.array([[0, 0]])), [None, nothing]):
        assert not level.counts.any()
