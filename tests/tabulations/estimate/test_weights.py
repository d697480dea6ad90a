"""The weights of measured cells in an estimate, beside a dense solver in rationals."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.tabulations.estimate.components import Integers
from release.tabulations.estimate.least_squares import Measurement
from release.tabulations.estimate.problem import Problem, Table, estimable
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.estimate.variances import variances_of
from release.tabulations.estimate.weights import LEAST_SHARE, Weights, weights_of
from tests.tabulations.estimate.dense import areas_of, problems, rows_of, solutions

ProblemData = tuple[Areas, tuple[int, ...], dict[Table, Measurement], list[Table]]
TOTAL, WHOLE = Margin((summed_out(4),)), Margin((kept_whole(4),))
ONE_OF_FOUR = Margin(((0, 1, 1, 1),))
TWO_OF_FOUR = Margin(((0, 1, 2, 2),))


def weights_by_cell(
    areas: Areas, measured: Mapping[Table, Fraction], table: Table
) -> dict[Table, Integers]:
    """For each noisy table the weights in all cells of ``table``; (its cells, those of ``table``).

    With N·u + Fᵀ·λ = t and F·u = 0 as in ``dense``, a row r of variance v has the weight u·r/v.
    """
    unknowns = areas.size(len(areas.levels) - 1) * table[1].cell_of.size
    rows = {own: rows_of(areas, own) for own in measured}
    information = np.zeros((unknowns, unknowns), dtype=object)
    fact = np.zeros((0, unknowns), dtype=object)
    for own, variance in measured.items():
        if variance:
            information = information + rows[own].T @ rows[own] / variance
        else:
            fact = np.vstack([fact, rows[own]])
    none = np.zeros((fact.shape[0], fact.shape[0]), dtype=object)
    matrix = np.vstack([np.hstack([information, fact.T]), np.hstack([fact, none])])
    targets = rows_of(areas, table)
    right = np.hstack([targets, np.zeros((targets.shape[0], fact.shape[0]), dtype=object)]).T
    solved = solutions(matrix, right)
    assert solved is not None
    dual = np.array(solved, dtype=object)[:unknowns]
    noisy = {own: variance for own, variance in measured.items() if variance}
    return {own: rows[own] @ dual / variance for own, variance in noisy.items()}


def assert_weights(
    areas: Areas, sizes: tuple[int, ...], measured: Mapping[Table, Fraction], table: Table
) -> None:
    """Every cell has the dense solver's weights, as many times."""
    problem = Problem.of(areas, sizes, measured, [table])
    by_type = {(own.kind, own.sort): own.weights for own in weights_of(problem)}
    types = variances_of(problem, table)
    expected = weights_by_cell(areas, measured, table)
    noisy = [source for source, variance in measured.items() if variance]
    for area in range(areas.size(table[0])):
        for cell in range(table[1].cells):
            own = by_type[int(types.kinds[area]), int(types.sorts[cell])]
            assert (own.counts > 0).all()
            place = area * table[1].cells + cell
            for number, source in enumerate(noisy):
                column = sorted(map(float, expected[source][:, place]))
                assert expanded(own, number, len(column)) == pytest.approx(column, abs=1e-9)


def expanded(weights: Weights, source: int, size: int) -> list[float]:
    """The weights of a table's cells, ascending; areas of other trees have none."""
    chosen = weights.sources == source
    values = np.repeat(weights.values[chosen], weights.counts[chosen].astype(int)).tolist()
    return sorted(values + [0.0] * (size - len(values)))


@given(problem=problems(), data=st.data())
@settings(max_examples=25, deadline=None)
def test_weights_are_those_of_a_dense_solver(problem: ProblemData, data: st.DataObject) -> None:
    areas, sizes, measurements, published = problem
    measured = {table: own.variance for table, own in measurements.items()}
    if data.draw(st.booleans()):
        margins = sorted({margin for _, margin in measured}, key=repr)
        measured[0, data.draw(st.sampled_from(margins))] = Fraction(0)
    for table in published:
        if estimable(areas, sizes, measured, table):
            assert_weights(areas, sizes, measured, table)


@pytest.mark.parametrize("published", [(0, TOTAL), (1, ONE_OF_FOUR), (2, WHOLE), (3, TOTAL)])
def test_weights_in_unequal_trees_with_a_fact_are_those_of_a_dense_solver(
    published: Table,
) -> None:
    areas = areas_of([0], [0, 0], [0, 0, 1], [0, 0, 1, 2])
    measured = {
        (0, TOTAL): Fraction(0),
        (1, ONE_OF_FOUR): Fraction(2),
        (2, WHOLE): Fraction(3),
        (3, TOTAL): Fraction(1, 3),
        (3, WHOLE): Fraction(5),
    }
    assert_weights(areas, (4,), measured, published)


@pytest.mark.parametrize(
    "published",
    [(0, WHOLE), (0, TOTAL), (1, TWO_OF_FOUR), (2, ONE_OF_FOUR), (2, TOTAL), (3, TOTAL)],
)
def test_weights_are_right_where_upper_levels_are_measured_in_more_detail(
    published: Table,
) -> None:
    """Every level knows functions of its areas that the one below does not."""
    areas = areas_of([0], [0, 0], [0, 0, 1], [0, 0, 1, 2])
    measured = {
        (0, WHOLE): Fraction(7),
        (1, TWO_OF_FOUR): Fraction(2),
        (2, ONE_OF_FOUR): Fraction(3),
        (3, TOTAL): Fraction(5),
    }
    assert_weights(areas, (4,), measured, published)


@pytest.mark.parametrize("published", [(0, WHOLE), (0, ONE_OF_FOUR), (1, WHOLE)])
def test_weights_are_right_where_a_cell_is_half_a_sum(published: Table) -> None:
    """With cells a to d, a is half of a + b and a + c less b + c."""
    halves = [Margin((groups,)) for groups in ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0))]
    areas = areas_of([0], [0, 0, 0])
    measured = {(1, own): Fraction(place) for place, own in enumerate(halves, 1)}
    measured[0, TOTAL] = Fraction(1, 2)
    assert_weights(areas, (4,), measured, published)


@pytest.mark.parametrize("variance", [Fraction(4), Fraction(4, 10**12)])
def test_what_is_left_out_has_very_little_of_the_variance(variance: Fraction) -> None:
    # Of 60 towns of 1,000 villages each, one village has 10^-8 of what another one's error is.
    towns, villages = [0] * 60, np.repeat(np.arange(60), 1000 + np.arange(60))
    areas = areas_of([0], towns, villages)
    measured = {(level, TOTAL): variance for level in range(3)}
    problem = Problem.of(areas, (4,), measured, [(2, TOTAL)])
    known = variances_of(problem, (2, TOTAL))
    left_out = []
    for own in weights_of(problem):
        parts = own.weights.values**2 * own.weights.counts * float(variance)
        left_out.append(1 - float(parts.sum() / known.values[own.kind][own.sort]))
    assert len(left_out) == 60
    assert max(left_out) <= 120 * LEAST_SHARE
    assert max(left_out) > 1e-12
    assert min(left_out) > -1e-12


def test_what_is_small_for_one_table_is_not_left_out_of_another() -> None:
    """The total is known without the villages, the single cells are not."""
    areas = areas_of([0], [0] * 3)
    measured = {(0, TOTAL): Fraction(1, 10**9), (1, WHOLE): Fraction(4)}
    problem = Problem.of(areas, (4,), measured, [(0, TOTAL), (0, WHOLE)])
    known = variances_of(problem, (0, WHOLE))
    (own,) = (own for own in weights_of(problem) if own.table == (0, WHOLE))
    variances = np.array([1e-9, 4.0])[own.weights.sources]
    parts = own.weights.values**2 * own.weights.counts * variances
    assert parts.sum() == pytest.approx(known.values[own.kind][own.sort])
