"""What the search leaves out, on tables like those of a census: ages in three groups, by area."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from release.tabulations.strategy.estimable import Estimability
from release.tabulations.strategy.geometric import geometric_precisions
from release.tabulations.strategy.measured import Strategy
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Publication, Table, moves_of_a_row
from release.tabulations.strategy.strategy import choose_strategy
from release.tabulations.strategy.supports import SupportSearch, starting_supports
from tests.tabulations.strategy import dense

AGES = 110
GROUPS = tuple(0 if age < 18 else 1 if age < 65 else 2 for age in range(AGES))
TOTAL = Margin((summed_out(2), summed_out(AGES)))
SEX = Margin((kept_whole(2), summed_out(AGES)))
AGE_GROUP = Margin((summed_out(2), GROUPS))
SEX_BY_GROUP = Margin((kept_whole(2), GROUPS))
AGE = Margin((summed_out(2), kept_whole(AGES)))
MARGINS = (TOTAL, SEX, AGE_GROUP, SEX_BY_GROUP, AGE)


def sample(is_reversed: bool = False) -> Publication:
    """A state of 3 counties and 24 tracts; single years of age are published of the state only."""
    areas = dense.areas_of((3,), (10, 8, 6))
    published = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3)]
    published += [(2, 0), (2, 2), (2, 3)]
    if is_reversed:
        published.reverse()
    moves = moves_of_a_row(areas, MARGINS, is_replaced=False)
    return Publication(areas, MARGINS, dict.fromkeys(published, 1.0), moves)


@cache
def strategy(epsilon: Fraction) -> Strategy:
    return choose_strategy(sample(), epsilon).best


def search_of(publication: Publication, epsilon: Fraction) -> SupportSearch:
    return SupportSearch(Objective(publication), float(epsilon), geometric_precisions)


@pytest.mark.parametrize(("epsilon", "known"), [("1", 6.2776), ("1/4", 25.314), ("4", 1.38730)])
def test_groups_of_an_attribute_are_as_good_as_known(epsilon: str, known: float) -> None:
    assert strategy(Fraction(epsilon)).objective <= known * (1 + 5e-4)


@pytest.mark.parametrize("epsilon", ["1", "1/4", "4"])
def test_every_measured_table_is_worth_it(epsilon: str) -> None:
    found = strategy(Fraction(epsilon))
    shares = {table: float(cost) for table, cost in found.costs.items()}
    search = search_of(sample(), Fraction(epsilon))
    for table in shares:
        rest = frozenset(shares) - {table}
        if Estimability(sample()).missing(rest):
            continue
        without = search.splits([rest], shares)[0]
        assert without.objective > found.objective * (1 + 4e-4)


def test_a_table_with_hardly_a_share_is_left_out() -> None:
    search = search_of(sample(), Fraction(1))
    needed = dict(strategy(Fraction(1)).costs)
    with_ages = search.splits(
        [frozenset([*needed, (1, 4)])], {t: float(c) for t, c in needed.items()}
    )[0]
    fewer = search.without_worthless(with_ages)
    assert set(fewer.shares) == set(needed)
    assert fewer.objective <= with_ages.objective * (1 + 5e-4)


def test_no_table_is_left_out_that_estimates_need() -> None:
    search = search_of(sample(), Fraction(1))
    only = search.splits([frozenset([(0, 4), (2, 3)])], {})[0]
    assert search.without_worthless(only) is only
    assert search.splits([frozenset([(0, 4)]), frozenset()], {}) == []


def test_gaussian_tables_have_a_share_that_counts() -> None:
    choice = choose_strategy(sample(), Fraction(1), Fraction(1, 10**6), family="gaussian")
    assert choice.gaussian is not None
    assert choice.gaussian.gap is not None
    assert choice.gaussian.gap <= 5e-4
    precisions = {table: 1 / choice.gaussian.variances[table] for table in choice.gaussian.noises}
    even = sum(precisions.values()) / len(precisions)
    assert min(precisions.values()) > even / 25
    # All tables of all levels together, split as well as can be: 9.42965 before any was left out.
    assert choice.gaussian.objective <= 9.4300


def test_the_strategy_depends_on_nothing_but_the_publication() -> None:
    again = choose_strategy(sample(is_reversed=True), Fraction(1)).best
    assert again.costs == strategy(Fraction(1)).costs
    assert again.objective == strategy(Fraction(1)).objective


def test_detail_of_every_set_of_levels_starts_the_search() -> None:
    starts = starting_supports(sample())
    assert frozenset([(0, 3), (0, 4)]) in starts
    assert frozenset([(1, 3), (2, 3)]) in starts
    assert len(starts) == len(set(starts))


def test_a_search_over_one_table_ends() -> None:
    areas = dense.areas_of()
    alone: dict[Table, float] = {(0, 0): 1.0}
    publication = Publication(areas, (TOTAL,), alone, {(0, 0): 1})
    found = choose_strategy(publication, Fraction(2)).best
    assert found.costs == {(0, 0): 2}
    assert found.objective == pytest.approx((np.cosh(2) - 1) ** -0.5)
