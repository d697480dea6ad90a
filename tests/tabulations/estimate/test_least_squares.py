"""Least squares on a tree, against a dense solver in rationals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.problem import Table, estimable
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from tests.tabulations.estimate.dense import areas_of, dense, problems

CLOSE = Fraction(1, 10**12)

TOTAL = Margin((summed_out(4),))
ONE_OF_FOUR = Margin(((0, 1, 1, 1),))
HALVES = Margin(((0, 0, 1, 1),))
WHOLE = Margin((kept_whole(4),))


def measured(
    areas: Areas, variances: Mapping[Table, Fraction | int], seed: int = 0
) -> dict[Table, Measurement]:
    generator = np.random.default_rng(seed)
    measurements = {}
    for (level, margin), variance in variances.items():
        values = generator.integers(-20, 1000, (areas.size(level), margin.cells))
        measurements[level, margin] = Measurement(values, Fraction(variance))
    return measurements


def fractions(
    areas: Areas,
    sizes: Sequence[int],
    measurements: Mapping[Table, Measurement],
    published: Sequence[Table],
) -> dict[Table, list[list[Fraction]]]:
    """The estimates of the published tables as rationals."""
    result = estimates(areas, sizes, measurements, published)
    tables = {}
    for table in published:
        rows = result.table(*table).tolist()
        tables[table] = [[Fraction(value, result.denominator) for value in row] for row in rows]
    return tables


def assert_dense(
    areas: Areas,
    sizes: Sequence[int],
    measurements: Mapping[Table, Measurement],
    published: Sequence[Table],
) -> None:
    """The estimates and variances of what is estimable are the dense solver's; no more is."""
    solved = {table: dense(areas, measurements, table) for table in published}
    for table in published:
        assert estimable(areas, sizes, measurements, table) == (solved[table] is not None)
    answered = [table for table in published if solved[table] is not None]
    result = estimates(areas, sizes, measurements, answered)
    for table in answered:
        expected = solved[table]
        assert expected is not None
        values = result.table(*table)
        assert values.shape == (areas.size(table[0]), table[1].cells)
        for value, exact in zip(values.reshape(-1).tolist(), expected[0], strict=True):
            assert abs(Fraction(value, result.denominator) - exact) < CLOSE
        variances = result.variances(*table)
        for place, exact in enumerate(expected[1]):
            own = variances.variance(*divmod(place, table[1].cells))
            assert abs(own - exact) <= exact / 10**30


@settings(max_examples=100, deadline=None)
@given(problem=problems())
def test_random_tables_are_estimated_as_by_a_dense_solver(
    problem: tuple[Areas, tuple[int, ...], dict[Table, Measurement], list[Table]],
) -> None:
    assert_dense(*problem)


@pytest.mark.parametrize("seed", range(2))
def test_groupings_on_a_deep_tree_are_estimated_as_by_a_dense_solver(seed: int) -> None:
    # Areas of several classes at two levels, so that shares differ between siblings.
    areas = areas_of([0], [0, 0], [0, 0, 1], [0, 0, 1, 2, 2, 2])
    tables = [(level, margin) for level in range(4) for margin in (TOTAL, ONE_OF_FOUR, HALVES)]
    variances = {table: Fraction(1 + place, 3) for place, table in enumerate(tables)}
    measurements = measured(areas, variances | {(3, WHOLE): 7, (1, WHOLE): 2}, seed)
    assert_dense(areas, (4,), measurements, [*tables, (3, WHOLE), (2, WHOLE)])


def test_pairings_that_give_a_cell_in_halves_are_estimated_as_by_a_dense_solver() -> None:
    # Of three pairings of four categories follows twice a category, so coordinates are halves.
    areas = areas_of([0], [0, 0], [0, 0, 1])
    pairings = [HALVES, Margin(((0, 1, 0, 1),)), Margin(((0, 1, 1, 0),))]
    variances: dict[Table, Fraction | int] = {(2, margin): 2 for margin in pairings}
    measurements = measured(areas, {**variances, (0, WHOLE): 3, (1, WHOLE): 1})
    published = [(0, WHOLE), (1, ONE_OF_FOUR), (2, WHOLE), (2, TOTAL)]
    assert_dense(areas, (4,), measurements, published)


def test_variances_far_apart_keep_the_stated_precision() -> None:
    areas = areas_of([0], [0, 0], [0, 0, 0, 1])
    small, large = Fraction(1, 2**40), Fraction(2**24)
    measurements = measured(
        areas,
        {(0, TOTAL): small, (1, HALVES): large, (2, WHOLE): 1, (2, TOTAL): small, (1, WHOLE): 3},
    )
    for table, own in list(measurements.items()):
        measurements[table] = Measurement(own.values * 2**30, own.variance)
    assert_dense(areas, (4,), measurements, [(0, WHOLE), (1, HALVES), (2, WHOLE), (2, TOTAL)])


def test_estimates_are_of_192_places_and_variances_of_256() -> None:
    """The places for which the proof gives the error (docs/design/mathematics.md, T11)."""
    areas, count = areas_of([0], [0, 0, 0]), Margin(())
    measurements = measured(areas, {(0, count): 1, (1, count): 7})
    result = estimates(areas, (), measurements, [(0, count), (1, count)])
    assert result.denominator == 2**192
    # The mean of two measurements of variance 1 and 21.
    one, three = (int(measurements[level, count].values.sum()) for level in (0, 1))
    value = Fraction(int(result.table(0, count)[0, 0]), 2**192)
    assert abs(value - Fraction(21 * one + three, 22)) < Fraction(10**4, 2**192)
    # Of 7 a child loses the square of what it shares with the sum, over 22.
    variance = result.variances(1, count).variance(0, 0)
    assert variance == Fraction(round((7 - Fraction(49, 22)) * 2**256), 2**256)


@given(problem=problems())
@settings(max_examples=40, deadline=None)
def test_estimates_add_up_exactly(
    problem: tuple[Areas, tuple[int, ...], dict[Table, Measurement], list[Table]],
) -> None:
    areas, sizes, measurements, _ = problem
    every = {margin for _, margin in measurements}
    tables = [(level, margin) for level in range(len(areas.levels)) for margin in every]
    published = [table for table in tables if estimable(areas, sizes, measurements, table)]
    result = estimates(areas, sizes, measurements, published)
    for level, margin in published:
        values = result.table(level, margin)
        if (level - 1, margin) in published:
            above = result.table(level - 1, margin)
            if level:
                assert (areas.summed_up(level, values) == above).all()
        for coarser in every:
            if margin.refines(coarser) and (level, coarser) in published:
                sums = np.zeros((areas.size(level), coarser.cells), dtype=object)
                pairs = sorted(set(zip(margin.cell_of, coarser.cell_of, strict=True)))
                for cell, wider in pairs:
                    sums[:, wider] += values[:, cell]
                assert (sums == result.table(level, coarser)).all()


def test_one_bias_in_every_table_is_a_bias_of_the_estimates() -> None:
    # Unbiased: measurements without noise are reproduced exactly but for rounding.
    areas = areas_of([0], [0, 0], [0, 0, 1])
    truth = np.array([[3, 0, 7, 1], [0, 0, 0, 2], [9, 9, 9, 9]])
    tables = {}
    for level, values in ((2, truth), (0, truth.sum(axis=0, keepdims=True))):
        tables[level, WHOLE] = Measurement(values, Fraction(5 + level))
        halves = np.stack([values[:, :2].sum(axis=1), values[:, 2:].sum(axis=1)], axis=1)
        tables[level, HALVES] = Measurement(halves, Fraction(1, 7))
    for own, value in zip(
        fractions(areas, (4,), tables, [(2, WHOLE)])[2, WHOLE], truth.tolist(), strict=True
    ):
        assert all(abs(a - b) < CLOSE for a, b in zip(own, value, strict=True))


# --- Areas that change places -----------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_areas_that_change_places_change_places_in_the_result(seed: int) -> None:
    generator = np.random.default_rng(seed)
    parents = np.sort(np.concatenate([np.arange(4), generator.integers(0, 4, 5)]))
    areas = areas_of([0], [0] * 4, parents.tolist())
    tables: dict[Table, Fraction | int] = {
        (0, TOTAL): 2,
        (1, ONE_OF_FOUR): 3,
        (2, WHOLE): 5,
        (2, TOTAL): Fraction(1, 3),
    }
    measurements = measured(areas, tables, seed)
    # Counties in another order, and the tracts of each in another order.
    counties = generator.permutation(4)
    tracts = np.concatenate(
        [generator.permutation(np.flatnonzero(parents == county)) for county in counties]
    )
    orders = {0: np.array([0]), 1: counties, 2: tracts}
    place = np.argsort(counties)
    moved_areas = areas_of([0], [0] * 4, place[parents[tracts]].tolist())
    moved = {
        (level, margin): Measurement(own.values[orders[level]], own.variance)
        for (level, margin), own in measurements.items()
    }
    published = [(0, WHOLE), (1, HALVES), (2, WHOLE)]
    result = estimates(areas, (4,), measurements, published)
    again = estimates(moved_areas, (4,), dict(reversed(moved.items())), published[::-1])
    assert result.denominator == again.denominator
    for level, margin in published:
        assert (result.table(level, margin)[orders[level]] == again.table(level, margin)).all()


# --- Declared facts ---------------------------------------------------------------------------


def test_declared_facts_hold_exactly_and_estimates_are_those_of_a_dense_solver() -> None:
    areas = areas_of([0], [0, 0, 0], [0, 0, 1, 2, 2, 2, 2])
    variances: dict[Table, Fraction | int] = {
        (0, TOTAL): 0,
        (0, HALVES): 0,
        (0, WHOLE): 3,
        (1, ONE_OF_FOUR): 2,
        (2, WHOLE): 5,
    }
    measurements = measured(areas, variances)
    halves = np.array([[123, 456]])
    measurements[0, HALVES] = Measurement(halves, Fraction(0))
    measurements[0, TOTAL] = Measurement(halves.sum(axis=1, keepdims=True), Fraction(0))
    published = [(level, margin) for level in range(3) for margin in (TOTAL, HALVES, WHOLE)]
    assert_dense(areas, (4,), measurements, published)
    tables = fractions(areas, (4,), measurements, published)
    assert tables[0, TOTAL] == [[579]]
    assert tables[0, HALVES] == [[123, 456]]
    assert sum(row[0] for row in tables[2, TOTAL]) == 579


@given(problem=problems(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_random_facts_hold_exactly(
    problem: tuple[Areas, tuple[int, ...], dict[Table, Measurement], list[Table]],
    data: st.DataObject,
) -> None:
    areas, sizes, measurements, published = problem
    every = sorted({margin for _, margin in measurements}, key=repr)
    declared = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=2, unique=True))
    detail = every[0].cell_of.size
    truth = np.random.default_rng(1).integers(0, 100, (areas.size(0), detail))
    for margin in declared:
        values = np.zeros((areas.size(0), margin.cells), dtype=np.int64)
        np.add.at(values.T, margin.cell_of, truth.T)
        measurements[0, margin] = Measurement(values, Fraction(0))
    assert_dense(areas, sizes, measurements, [*published, *((0, own) for own in declared)])
    tables = fractions(areas, sizes, measurements, [(0, margin) for margin in declared])
    for table, rows in tables.items():
        assert rows == measurements[table].values.tolist()


def test_a_fact_may_be_all_that_is_known_of_a_functional() -> None:
    areas = areas_of([0], [0, 0])
    measurements = measured(areas, {(0, WHOLE): 0, (1, TOTAL): 2})
    assert_dense(areas, (4,), measurements, [(0, WHOLE), (0, TOTAL), (1, TOTAL), (1, WHOLE)])
    tables = fractions(areas, (4,), measurements, [(0, WHOLE), (1, TOTAL)])
    assert tables[0, WHOLE] == measurements[0, WHOLE].values.tolist()


def test_several_highest_areas_keep_their_own_facts() -> None:
    areas = areas_of([0, 0], [0, 0, 0, 1, 1])
    measurements = measured(areas, {(0, HALVES): 0, (1, WHOLE): 2, (1, HALVES): 1})
    assert_dense(areas, (4,), measurements, [(0, HALVES), (0, WHOLE), (1, WHOLE)])
    tables = fractions(areas, (4,), measurements, [(0, HALVES)])
    assert tables[0, HALVES] == measurements[0, HALVES].values.tolist()


def test_facts_that_contradict_each_other_are_refused() -> None:
    areas = areas_of([0], [0, 0])
    measurements = measured(areas, {(0, HALVES): 0, (0, TOTAL): 0, (1, WHOLE): 1})
    with pytest.raises(ValueError, match="contradict"):
        estimates(areas, (4,), measurements, [(1, WHOLE)])


def test_facts_below_the_highest_level_are_refused_by_name() -> None:
    areas = areas_of([0], [0, 0])
    measurements = measured(areas, {(1, TOTAL): 0, (1, WHOLE): 1})
    with pytest.raises(ValueError, match=r"level level 1, margin \(\[0, 0, 0, 0\]\).*level 0"):
        estimates(areas, (4,), measurements, [(1, WHOLE)])


# --- Refusals ---------------------------------------------------------------------------------


def test_what_is_not_estimable_is_refused_by_name() -> None:
    areas = areas_of([0], [0, 0])
    measurements = measured(areas, {(0, WHOLE): 1, (1, HALVES): 1})
    with pytest.raises(ValueError, match=r"level 1, margin \(\[0, 1, 2, 3\]\) is not estimable"):
        estimates(areas, (4,), measurements, [(0, WHOLE), (1, HALVES), (1, WHOLE)])


def test_values_of_another_shape_are_refused() -> None:
    areas = areas_of([0], [0, 0])
    measurements = {(1, WHOLE): Measurement(np.zeros((2, 3), dtype=np.int64), Fraction(1))}
    with pytest.raises(ValueError, match=r"the shape \(2, 4\), not int64 of \(2, 3\)"):
        estimates(areas, (4,), measurements, [(1, WHOLE)])


def test_only_published_tables_are_answered() -> None:
    areas = areas_of([0])
    result = estimates(areas, (4,), measured(areas, {(0, WHOLE): 1}), [(0, TOTAL)])
    with pytest.raises(ValueError, match="only published"):
        result.table(0, WHOLE)


def test_numbers_near_the_end_of_64_bits_do_not_wrap() -> None:
    areas = areas_of([0], [0, 0])
    most = np.full((2, 4), 2**63 - 1)
    tables = fractions(areas, (4,), {(1, WHOLE): Measurement(most, Fraction(1))}, [(0, TOTAL)])
    assert tables[0, TOTAL] == [[8 * (2**63 - 1)]]
