"""The variances of least squares, without data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.problem import Table, estimable
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from release.tabulations.estimate.variances import variances
from tests.tabulations.estimate.dense import areas_of

TOTAL = Margin((summed_out(3), summed_out(2)))
FIRST = Margin(((0, 1, 1), summed_out(2)))
DETAIL = Margin((kept_whole(3), kept_whole(2)))


def test_equal_branching_has_the_weights_of_hay_and_others() -> None:
    # Hay et al. 2010: a binary tree of three levels, one table, equal noise. From below, a node of
    # height l has the weight (k^l − k^(l−1))/(k^l − 1) for itself, here 4/7 at the top.
    areas = areas_of([0], [0, 0], [0, 0, 1, 1])
    one = Margin(())
    result = variances(areas, (), {(level, one): Fraction(1) for level in range(3)}, [(0, one)])
    assert abs(result[0, one].variance(0, 0) - Fraction(4, 7)) < Fraction(1, 10**60)


def test_variances_are_those_of_simulated_noise() -> None:
    # Many trees of one shape side by side, each with noise of its own.
    runs = 4000
    counties, tracts = np.array([0, 0, 0]), np.array([0, 0, 0, 0, 1, 1, 2])
    trees = np.arange(runs)[:, None]
    areas = areas_of([0] * runs, (trees + counties).reshape(-1), (3 * trees + tracts).reshape(-1))
    measured: dict[Table, Fraction] = {
        (0, TOTAL): Fraction(2),
        (1, FIRST): Fraction(8),
        (2, DETAIL): Fraction(18),
    }
    published = [(0, TOTAL), (1, FIRST), (2, FIRST), (2, DETAIL)]
    known = variances(areas, (3, 2), measured, published)
    generator = np.random.default_rng(7)
    measurements = {}
    for (level, margin), variance in measured.items():
        # The successes of 4v fair trials, less 2v, have the variance v.
        draws = generator.binomial(int(4 * variance), 0.5, (areas.size(level), margin.cells))
        measurements[level, margin] = Measurement(draws - int(2 * variance), variance)
    result = estimates(areas, (3, 2), measurements, published)
    for table in published:
        errors = (result.table(*table) / result.denominator).astype(float)
        scores = (errors / known[table].standard_errors()).reshape(runs, -1)
        # Errors are nearly normal: the mean square of so many has a standard error of √(2/runs).
        squares = ((scores**2).mean(axis=0) - 1) / np.sqrt(2 / runs)
        assert np.abs(squares).max() < 4.5
        assert np.abs(scores.mean(axis=0)).max() < 4.5 / np.sqrt(runs)


def test_standard_errors_are_the_roots_of_the_variances_of_all_cells() -> None:
    areas = areas_of([0], [0, 0], [0, 0, 0, 1])
    measured = {(0, TOTAL): Fraction(1), (1, FIRST): Fraction(3), (2, DETAIL): Fraction(7)}
    result = variances(areas, (3, 2), measured, [(1, DETAIL), (2, FIRST)])
    for (level, margin), own in result.items():
        roots = [
            float(own.variance(area, cell)) ** 0.5
            for area in range(areas.size(level))
            for cell in range(margin.cells)
        ]
        assert own.standard_errors().reshape(-1) == pytest.approx(roots)


def test_a_table_that_is_measured_alone_keeps_its_variance() -> None:
    areas = areas_of([0], [0, 0])
    result = variances(areas, (3, 2), {(1, DETAIL): Fraction(5)}, [(1, DETAIL), (0, FIRST)])
    assert result[1, DETAIL].variance(1, 4) == 5
    assert [result[0, FIRST].variance(0, cell) for cell in range(2)] == [20, 40]


def test_cells_and_groups_of_two_attributes_have_variances_by_the_sizes_of_their_groups() -> None:
    groups, cells = Margin(((0, 1, 1), (0, 0, 1))), Margin((kept_whole(3), kept_whole(3)))
    areas = areas_of([0], [0, 0])
    measured = {(1, cells): Fraction(5), (1, groups): Fraction(3)}
    result = variances(areas, (3, 3), measured, [(1, groups), (1, cells)])
    sizes = [2, 1, 4, 2]
    for cell, group in enumerate(groups.cell_of.tolist()):
        # A sum of variance 5·size and a measurement of variance 3, of the same number.
        size = sizes[group]
        expected = {
            groups: Fraction(15 * size, 5 * size + 3),
            cells: 5 - Fraction(25, 5 * size + 3),
        }
        for margin, place in ((groups, group), (cells, cell)):
            own = result[1, margin].variance(1, place)
            assert abs(own - expected[margin]) < Fraction(1, 10**60)


def test_levels_above_are_estimable_from_below_but_not_the_reverse() -> None:
    areas = areas_of([0], [0, 0], [0, 1], [0, 1, 1])
    assert estimable(areas, (3, 2), [(3, DETAIL)], (0, FIRST))
    assert not estimable(areas, (3, 2), [(0, DETAIL), (3, FIRST)], (3, DETAIL))
    # Two counties of one town each: what is known of the county is known of the town.
    assert estimable(areas, (3, 2), [(1, DETAIL)], (2, DETAIL))


@pytest.mark.parametrize(
    ("table", "variance", "message"),
    [
        ((2, TOTAL), Fraction(1), "no level 2; levels are 0..1"),
        ((1, TOTAL), Fraction(-1), "variance -1"),
        ((1, TOTAL), Fraction(2**26 - 1, 2**90), "between 2"),
        ((1, TOTAL), Fraction(2**64 + 1), "between 2"),
        ((-1, TOTAL), Fraction(1), "no level -1"),
    ],
)
def test_levels_and_variances_out_of_bounds_are_refused(
    table: Table, variance: Fraction, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        variances(areas_of([0], [0, 0]), (3, 2), {table: variance}, [table])


@pytest.mark.parametrize("variance", [Fraction(1, 2**64), Fraction(2**64)])
def test_the_least_and_the_most_variance_are_answered(variance: Fraction) -> None:
    result = variances(areas_of([0], [0, 0]), (3, 2), {(1, DETAIL): variance}, [(1, DETAIL)])
    assert result[1, DETAIL].variance(1, 5) == variance


@pytest.mark.parametrize("variance", [Fraction(5), Fraction(4, 7), Fraction(10**9, 3)])
@pytest.mark.parametrize("measured", [FIRST, DETAIL, Margin(((0, 1, 1), (0, 1)))])
def test_what_is_declared_has_no_variance(variance: Fraction, measured: Margin) -> None:
    # Rounded covariances would leave a trifle, of either sign.
    areas = areas_of([0, 0], [0, 1, 1])
    known = {(0, TOTAL): Fraction(0), (1, measured): variance}
    result = variances(areas, (3, 2), known, [(0, TOTAL), (1, TOTAL), (1, FIRST)])
    assert not any(result[0, TOTAL].variance(area, 0) for area in range(2))
    one = result[1, TOTAL]
    assert one.variance(0, 0) == 0
    # Of two areas with a known sum: half of the measured difference.
    assert one.standard_errors()[1, 0] ** 2 == pytest.approx(
        float(variance * measured.cells / 2), rel=1e-12
    )
    assert (one.standard_errors() > 0).any()
