"""The objective of a strategy, beside one dense least-squares problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from release.tabulations.strategy.estimable import Estimability, follows
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Publication, moves_of_a_row
from tests.tabulations.strategy import dense

DETAIL = Margin((kept_whole(4), kept_whole(2)))
HALVES = Margin(((0, 0, 1, 1), summed_out(2)))
TOTAL = Margin((summed_out(4), summed_out(2)))


@st.composite
def measured(draw: st.DrawFn) -> tuple[Publication, dict[tuple[int, int], float]]:
    publication = draw(dense.publications())
    precisions = {}
    for table in publication.tables:
        if publication.moves[table] and draw(st.booleans()):
            precisions[table] = draw(st.floats(0.1, 10))
    return publication, precisions


@settings(max_examples=60, deadline=None)
@given(measured())
def test_errors_are_those_of_dense_least_squares(
    case: tuple[Publication, dict[tuple[int, int], float]],
) -> None:
    publication, precisions = case
    if not precisions:
        return
    given_precisions = np.zeros(publication.shares.shape)
    for table, precision in precisions.items():
        given_precisions[table] = precision
    errors = Objective(publication).errors(given_precisions)
    known = [*precisions, *publication.exact]
    missing = Estimability(publication).missing(known)
    for table, expected in dense.errors(publication, precisions).items():
        estimable = dense.is_estimable(publication, table, known)
        assert estimable == (table not in missing)
        if estimable:
            # Tables without noise have a large precision in place of an infinite one.
            rel = 1e-4 if publication.exact else 1e-5
            assert errors[table] == pytest.approx(expected, rel=rel, abs=1e-6)
        else:
            assert errors[table] > 50


@settings(max_examples=40, deadline=None)
@given(dense.publications(), st.integers(0, 2**32 - 1))
def test_the_gradient_is_the_slope(publication: Publication, seed: int) -> None:
    if all(publication.moves[table] == 0 for table in publication.importance):
        return
    source = np.random.default_rng(seed)
    objective = Objective(publication)
    precisions = source.uniform(0.5, 2, publication.shares.shape)
    value, gradient = objective.with_gradient(precisions)
    assert value == pytest.approx(objective.value(precisions), rel=1e-9)
    for table in publication.tables:
        change = np.zeros(precisions.shape)
        change[table] = 1e-4
        slope = (objective.value(precisions + change) - objective.value(precisions - change)) / 2e-4
        assert gradient[table] == pytest.approx(slope, rel=1e-3, abs=1e-5 * value)


@settings(max_examples=30, deadline=None)
@given(dense.publications(), st.integers(0, 2**32 - 1), st.sampled_from([None, 1, 2]))
def test_many_strategies_at_once_are_each_alone(
    publication: Publication, seed: int, most: int | None
) -> None:
    if all(publication.moves[table] == 0 for table in publication.importance):
        return
    source = np.random.default_rng(seed)
    objective = Objective(publication, most)
    precisions = source.uniform(0.5, 2, (3, *publication.shares.shape))
    values, gradients = objective.with_gradients(precisions)
    for place in range(3):
        value, gradient = objective.with_gradient(precisions[place])
        assert values[place] == pytest.approx(value, rel=1e-9)
        assert gradients[place] == pytest.approx(gradient, rel=1e-6, abs=1e-9 * value)


def test_similar_areas_taken_together_change_little() -> None:
    areas = dense.areas_of((9,), (4, 5, 5, 6, 6, 7, 7, 8, 9))
    publication = dense.publication_of(areas, (DETAIL, HALVES, TOTAL))
    precisions = np.array([[0.1, 0.0, 3.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.5]])
    exact = Objective(publication).value(precisions)
    assert Objective(publication, 6).value(precisions) == pytest.approx(exact, rel=1e-9)
    for most in (3, 1):
        rough = Objective(publication, most)
        assert len(rough.kinds[1].children) == most
        assert rough.value(precisions) == pytest.approx(exact, rel=5e-3)
        # Every area below still lies in an area above.
        parts = rough.kinds[1]
        assert parts.shares @ parts.children[parts.own].sum(axis=1) == pytest.approx(57 / 9)


def test_noise_twice_as_wide_doubles_every_error() -> None:
    publication = dense.publication_of(dense.areas_of((2,), (1, 2)), (DETAIL, HALVES))
    objective = Objective(publication)
    precisions = np.array([[0.1, 3.0], [2.0, 0.0], [1.0, 0.5]])
    assert objective.errors(precisions / 4) == pytest.approx(2 * objective.errors(precisions))


def test_importance_weighs_tables() -> None:
    areas, margins = dense.areas_of((3,)), (DETAIL, TOTAL)
    moves = moves_of_a_row(areas, margins, False)
    publication = Publication(areas, margins, {(0, 1): 3.0, (1, 0): 1.0}, moves)
    objective = Objective(publication)
    precisions = np.array([[0.0, 1.0], [2.0, 0.0]])
    errors = objective.errors(precisions)
    expected = 0.75 * errors[0, 1] + 0.25 * errors[1, 0]
    assert objective.value(precisions) == pytest.approx(expected)
    # Measured alone it would have the variance 8·3/2, and measured directly has 1.
    assert errors[0, 1] == pytest.approx((1 / (1 + 1 / 12)) ** 0.5)


def test_a_margin_follows_from_overlapping_groups() -> None:
    left = Margin(((0, 1, 1),))
    right = Margin(((0, 0, 1),))
    whole = Margin((kept_whole(3),))
    # Three categories from two groupings: a sum, and a sum of the rest, share the middle one.
    assert follows(whole, [left, right])
    assert not follows(whole, [left])
    assert not follows(Margin(((0, 1, 2, 3),)), [Margin(((0, 0, 1, 1),)), Margin(((0, 1, 0, 1),))])
    assert not follows(left, [])


def test_moves_are_those_of_added_or_replaced_rows() -> None:
    areas, margins = dense.areas_of((2,)), (DETAIL, TOTAL)
    assert set(moves_of_a_row(areas, margins, False).values()) == {1}
    replaced = moves_of_a_row(areas, margins, True)
    assert replaced == {(0, 0): 2, (0, 1): 1, (1, 0): 2, (1, 1): 2}


def test_a_publication_without_sense_is_refused() -> None:
    areas, margins = dense.areas_of((2,)), (DETAIL, TOTAL)
    moves = moves_of_a_row(areas, margins, False)
    for importance in ({}, {(0, 0): 0.0}, {(2, 0): 1.0}):
        with pytest.raises(ValueError, match="publi"):
            Publication(areas, margins, importance, moves)
    with pytest.raises(ValueError, match="0, 1 or 2 cells"):
        Publication(areas, margins, {(0, 0): 1.0}, {**moves, (0, 0): 3})
