"""Two categories and gap tables: privacy over all small tables, optimality, exact draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import chisquare

from release.exact.domain import Codes
from release.exact.numbers import exp_bounds
from release.exact.sampling import RandomBytes
from release.exact.statistics.gap_states import (
    MOST_STATES,
    TOTAL,
    count_states,
    neighbor_places,
    states,
)
from release.exact.statistics.gap_table import GapTable, cascade
from release.exact.statistics.mechanism import (
    RATIO_ONE,
    StatisticMechanism,
    least_ratio,
    loss_above,
)
from release.exact.statistics.two_categories import TwoCategories

ONE = Fraction(1)
HALF = 1 << 63


def gaps_of(scores: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(scores) - score for score in scores)


def two_chances(mechanism: TwoCategories, scores: tuple[int, ...]) -> list[Fraction]:
    wrong = mechanism.error_at_lead(abs(scores[0] - scores[1]))
    return [1 - wrong, wrong] if scores[0] >= scores[1] else [wrong, 1 - wrong]


def rows_of(table: GapTable) -> dict[tuple[int, ...], list[int]]:
    gaps = states(table.categories, table.cap).tolist()
    return dict(zip(map(tuple, gaps), table.weights.tolist(), strict=True))


def table_chances(table: GapTable) -> Callable[[tuple[int, ...]], list[Fraction]]:
    rows = rows_of(table)

    def chances(scores: tuple[int, ...]) -> list[Fraction]:
        gaps = [min(gap, table.cap) for gap in gaps_of(scores)]
        state = tuple(sorted(gaps))
        return [Fraction(rows[state][state.index(gap)], TOTAL) for gap in gaps]

    return chances


def small_tables(categories: int, units: int) -> Iterator[tuple[int, ...]]:
    """The category of each unit; the code ``categories`` is a unit that is not in the cell."""
    return product(range(categories + 1), repeat=units)


def scores_of(units: tuple[int, ...], categories: int) -> tuple[int, ...]:
    return tuple(units.count(category) for category in range(categories))


def is_private_on_small_tables(
    chances: Callable[[tuple[int, ...]], list[Fraction]], categories: int, epsilon: Fraction
) -> bool:
    """All tables of four units, and all that replace, remove or add one of them."""
    # The rational is above e^ε: a mechanism that breaks it is not private.
    most = exp_bounds(epsilon)[1]
    for units in small_tables(categories, 4):
        here = chances(scores_of(units, categories))
        assert sum(here) == 1
        for place, code in product(range(4), range(categories + 1)):
            other = (*units[:place], code, *units[place + 1 :])
            there = chances(scores_of(other, categories))
            if not all(a <= most * b for a, b in zip(here, there, strict=True)):
                return False
    return True


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), ONE, Fraction(3)])
def test_two_categories_are_private_on_all_small_tables(epsilon: Fraction) -> None:
    mechanism = TwoCategories(least_ratio(epsilon, 1))
    assert mechanism.satisfies(epsilon)
    assert is_private_on_small_tables(lambda s: two_chances(mechanism, s), 2, epsilon)
    less = epsilon - Fraction(1, 10**9)
    assert not mechanism.satisfies(less)
    assert not is_private_on_small_tables(lambda s: two_chances(mechanism, s), 2, less)


@pytest.mark.parametrize(
    ("categories", "cap", "epsilon"),
    [
        *((2, cap, epsilon) for cap in (2, 3) for epsilon in (ONE, Fraction(5, 2))),
        *((3, cap, epsilon) for cap in (1, 2, 3, 5) for epsilon in (ONE, Fraction(2))),
        *((4, cap, epsilon) for cap in (2, 3, 4) for epsilon in (Fraction(3, 2), Fraction(2))),
    ],
)
def test_gap_tables_are_private_on_all_small_tables(
    categories: int, cap: int, epsilon: Fraction
) -> None:
    table = cascade(categories, cap, epsilon)
    assert table is not None
    assert is_private_on_small_tables(table_chances(table), categories, epsilon)
    less = epsilon - Fraction(1, 10**8)
    assert not table.satisfies(less)
    assert not is_private_on_small_tables(table_chances(table), categories, less)


@given(st.lists(st.integers(0, 40), min_size=3, max_size=3), st.data())
def test_gap_tables_are_private_far_above_their_cap(scores: list[int], data: st.DataObject) -> None:
    table = cascade(3, 12, ONE)
    assert table is not None
    fallen, risen = data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    before, after = [*scores, 0], [*scores, 0]
    after[fallen] -= 1
    after[risen] += 1
    chances = table_chances(table)
    most = exp_bounds(ONE)[1]
    here, there = chances(tuple(before[:3])), chances(tuple(after[:3]))
    assert all(a <= most * b and b <= most * a for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize(("categories", "cap"), [(2, 1), (2, 4), (3, 1), (3, 2), (3, 4), (4, 2)])
def test_the_pairs_are_those_of_all_neighboring_scores(categories: int, cap: int) -> None:
    rows = {tuple(gaps): row for row, gaps in enumerate(states(categories, cap).tolist())}

    def flat(scores: tuple[int, ...], category: int) -> int:
        gaps = [min(gap, cap) for gap in gaps_of(scores)]
        state = tuple(sorted(gaps))
        return rows[state] * categories + state.index(gaps[category])

    expected = set()
    for scores in product(range(cap + 4), repeat=categories):
        for fallen, risen in product(range(categories + 1), repeat=2):
            after = [*scores, 0]
            after[fallen] -= 1
            after[risen] += 1
            for category in range(categories):
                pair = flat(scores, category), flat(tuple(after[:categories]), category)
                expected |= {pair} if pair[0] != pair[1] else set()
    before, after_places = (places.tolist() for places in neighbor_places(categories, cap))
    pairs = list(zip(before, after_places, strict=True))
    assert pairs == sorted(expected)
    assert {(after, before) for before, after in pairs} == expected


def test_states_are_in_lexicographic_order() -> None:
    expected = [s for s in product(range(4), repeat=3) if s[0] == 0 and list(s) == sorted(s)]
    assert list(map(tuple, states(3, 3).tolist())) == expected
    assert count_states(3, 3) == len(expected)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_rule_for_two_categories_errs_less_at_any_gap(epsilon: float) -> None:
    """The linear program over all rules on the differences -12 … 12, its goal one gap at a time."""
    reach = 12
    differences = range(-reach, reach + 1)
    size = 2 * reach + 1
    # One unknown for each difference: the chance of the second category.
    lines, limits = [], []
    for a, b in product(range(size), repeat=2):
        if 0 < abs(a - b) <= 2:
            line = np.zeros(size)
            line[a], line[b] = 1, -exp(epsilon)
            # P(a) ≤ e^ε·P(b), and the same of the first category's 1 - P.
            lines += [line, -line]
            limits += [0.0, exp(epsilon) - 1]
    mechanism = TwoCategories(least_ratio(Fraction(epsilon), 1))
    for gap in range(9):
        goal = np.zeros(size)
        # Both orders of the scores: the mean of the two chances to err, less the constant ½.
        goal[reach + gap] += 0.5
        goal[reach - gap] -= 0.5
        found = linprog(goal, A_ub=lines, b_ub=limits, bounds=(0, 1), method="highs-ds")
        assert differences[reach + gap] == gap
        assert found.fun + 0.5 == pytest.approx(float(mechanism.error_at_lead(gap)), rel=1e-6)


def test_a_unit_that_moves_to_another_cell_costs_more_than_epsilon() -> None:
    """Two ties: one loses a unit of the first category, the other gains one of the second."""
    mechanism = TwoCategories(least_ratio(ONE, 1))
    tie, behind = mechanism.error_at_lead(0), mechanism.error_at_lead(1)
    high = exp_bounds(ONE)[1]
    assert high < (tie / behind) ** 2 < high**2


def test_the_chance_to_err_of_two_categories() -> None:
    mechanism = TwoCategories(HALF)
    expected = ["1/2", "1/3", "1/4", "1/6", "1/8", "1/12"]
    assert [mechanism.error_at_lead(lead) for lead in range(6)] == list(map(Fraction, expected))
    assert (mechanism.inputs, mechanism.outputs) == (2, 1)


@pytest.mark.parametrize("scores", [(7, 7), (8, 7), (7, 9), (10, 7), (3, 7), (0, 5)])
def test_frequencies_of_two_categories(scores: tuple[int, int]) -> None:
    mechanism = TwoCategories(RATIO_ONE // 5 * 3)
    drawn = mechanism.draw(np.tile(np.array(scores, dtype=np.int64), (10**5, 1)))
    assert drawn.shape == (10**5, 1)
    seen = np.bincount(drawn[:, 0], minlength=2)
    expected = np.array([float(chance) for chance in two_chances(mechanism, scores)])
    # A false alarm about once in a hundred million runs.
    assert chisquare(seen, expected * 10**5).pvalue > 1e-8


def test_a_source_is_read_alike_for_all_scores() -> None:
    lengths = []

    def source(count: int) -> bytes:
        lengths.append(count)
        return b"\x5a" * count

    table = cascade(3, 4, ONE)
    assert table is not None
    for mechanism in (TwoCategories(HALF), table):
        taken = []
        for top in (0, 1, 5, 2**62):
            lengths.clear()
            scores = np.zeros((3, mechanism.inputs), dtype=np.int64)
            scores[1, 0] = top
            assert mechanism.draw(scores, source).shape == (3, 1)
            taken.append(tuple(lengths))
        assert len(set(taken)) == 1


def words(*uniform: int) -> RandomBytes:
    """A source of 62-bit integers, as many as are asked for at a time."""
    waiting = list(uniform)

    def source(count: int) -> bytes:
        taken, waiting[:] = waiting[: count // 8], waiting[count // 8 :]
        assert 8 * len(taken) == count
        return b"".join((word << 2).to_bytes(8, "little") for word in taken)

    return source


def simple() -> GapTable:
    """Three categories, gaps up to 1; every follower has a tenth or a fifth."""
    third, tenth, fifth = TOTAL // 3, TOTAL // 10, TOTAL // 5
    two = (TOTAL - fifth) // 2
    rows = [[third] * 3, [two, two, fifth], [TOTAL - 2 * tenth, tenth, tenth]]
    return GapTable(3, 1, np.array(rows, dtype=np.int64))


def test_the_boundaries_of_a_draw_are_exact() -> None:
    table = simple()
    fifth, tenth = TOTAL // 5, TOTAL // 10
    two = (TOTAL - fifth) // 2
    # The follower is the middle one; places are leaders in the order of codes, then it.
    scores = np.array([[9, 2, 9]] * 6, dtype=np.int64)
    at = [0, two - 1, two, 2 * two - 1, 2 * two, TOTAL - 1]
    assert table.draw(scores, words(*at)).tolist() == [[0], [0], [2], [2], [1], [1]]
    scores = np.array([[0, 4, 5]] * 4, dtype=np.int64)
    at = [TOTAL - 2 * tenth - 1, TOTAL - 2 * tenth, TOTAL - tenth - 1, TOTAL - tenth]
    assert table.draw(scores, words(*at)).tolist() == [[2], [0], [0], [1]]


def test_a_draw_above_the_total_is_drawn_again() -> None:
    scores = np.zeros((2, 3), dtype=np.int64)
    again = words(TOTAL, 0, 2**62 - 1, TOTAL - 1)
    assert simple().draw(scores, again).tolist() == [[2], [0]]


def test_frequencies_of_a_gap_table() -> None:
    table = cascade(4, 6, ONE)
    assert table is not None
    scores = (3, 5, 1, 4)
    drawn = table.draw(np.tile(np.array(scores, dtype=np.int64), (10**5, 1)))
    seen = np.bincount(drawn[:, 0], minlength=4)
    expected = np.array([float(chance) for chance in table_chances(table)(scores)])
    assert chisquare(seen, expected * 10**5).pvalue > 1e-8


@given(st.lists(st.integers(0, 12), min_size=4, max_size=4))
def test_the_stated_chances_are_those_of_the_table(scores: list[int]) -> None:
    table = cascade(4, 6, ONE)
    assert table is not None
    stated = table.chances(np.array(scores, dtype=np.int64))
    assert stated == list(table_chances(table)(tuple(scores)))
    assert sum(stated) == 1


def test_a_table_is_private_to_the_last_unit() -> None:
    """Between (0, 1) and (1, 0) the leader's T - w becomes w: w·E ≥ T - w, and no unit less."""
    low, _ = exp_bounds(ONE)
    least = -(-TOTAL // (1 + low))

    def table(follower: int) -> GapTable:
        rows = [[TOTAL // 2, TOTAL // 2], [TOTAL - follower, follower]]
        return GapTable(2, 1, np.array(rows, dtype=np.int64))

    assert table(least).satisfies(ONE)
    assert not table(least - 1).satisfies(ONE)
    assert not table(0).satisfies(Fraction(100))


def test_a_loss_of_just_epsilon_is_private() -> None:
    """A rule that reads no score loses nothing: its chances are equal, and ε = 0 is enough."""
    assert TwoCategories(HALF).satisfies(loss_above(HALF))
    blind = GapTable(3, 2, np.full((count_states(3, 2), 3), TOTAL // 3, dtype=np.int64))
    assert blind.satisfies(Fraction(0))


def test_every_weight_of_a_table_is_checked() -> None:
    """A follower that has a third of its chance is noticed in whatever state it is."""
    table = cascade(3, 3, Fraction(1, 2))
    assert table is not None
    gaps = states(3, 3)
    for row, place in zip(*np.nonzero(gaps > 0), strict=True):
        weights = table.weights.copy()
        leads = gaps[row] == 0
        # A multiple of 60, so that the leaders can share the rest.
        weights[row, gaps[row] == gaps[row, place]] = weights[row, place] // 180 * 60
        weights[row, leads] = (TOTAL - weights[row, ~leads].sum()) // leads.sum()
        assert not GapTable(3, 3, weights).satisfies(Fraction(1, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[:2], "a row for each state"),
        (lambda w: w.astype(np.int32), "64-bit"),
        (lambda w: w + np.array([1, 0, -1]), "unequal weights"),
        # One tie of several is broken.
        (lambda w: w + np.array([[0, 0, 0], [1, -1, 0], [0, 0, 0]]), "unequal weights"),
        (lambda w: w + 1, "does not add up"),
        (lambda w: np.where(w == w.max(), -1, w), "is not in 0"),
        (lambda w: np.where(w == w.max(), TOTAL + 1, w), "is not in 0"),
    ],
)
def test_a_table_that_is_none_is_refused(change: Callable[[Codes], Codes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GapTable(3, 1, change(simple().weights))


def test_a_sum_that_wraps_round_is_refused() -> None:
    weights = np.full((count_states(6, 1), 6), TOTAL // 6, dtype=np.int64)
    excess = 2**64 - 5 * TOTAL + TOTAL
    weights[-1] = [TOTAL, *[TOTAL - (TOTAL - excess) // 5] * 5]
    with pytest.raises(ValueError, match="does not add up"):
        GapTable(6, 1, weights)


@pytest.mark.parametrize(
    ("categories", "cap", "message"),
    [(1, 5, "2 to 6"), (7, 1, "2 to 6"), (3, 0, "at least 1"), (3, 10**9, str(MOST_STATES))],
)
def test_sizes_out_of_range_are_refused(categories: int, cap: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GapTable(categories, cap, simple().weights)


def test_a_table_has_the_most_states_and_no_more() -> None:
    """Two categories have a state for each gap from 0 to the cap."""
    weights = np.full((MOST_STATES + 1, 2), TOTAL // 2, dtype=np.int64)
    assert GapTable(2, MOST_STATES - 1, weights[1:]).error_at_lead(MOST_STATES) == Fraction(1, 2)
    with pytest.raises(ValueError, match=str(MOST_STATES)):
        GapTable(2, MOST_STATES, weights)


def test_the_total_is_the_largest_multiple_of_60_that_62_bits_count() -> None:
    """Any number of leaders can share it, and hardly any draw is taken again."""
    assert max(range(2**62 - 60 + 1, 2**62 + 1), key=lambda total: total % 60 == 0) == TOTAL


def test_what_is_proved_cannot_be_changed_afterwards() -> None:
    """The weights of a table, and what the proofs of all tables of a size share."""
    for proved in (simple().weights, states(3, 4), *neighbor_places(3, 4)):
        with pytest.raises(ValueError, match="read-only"):
            proved[0] = 0


@pytest.mark.parametrize("ratio", [0, -1, RATIO_ONE])
def test_a_ratio_out_of_range_is_refused(ratio: int) -> None:
    with pytest.raises(ValueError, match="ratio must be in"):
        TwoCategories(ratio)


@pytest.mark.parametrize("mechanism", [TwoCategories(HALF), simple()])
@pytest.mark.parametrize("scores", [[1, 2], [[1, 2, 3, 4]], [[1], [2]]])
def test_statistics_that_are_no_scores_are_refused(
    mechanism: StatisticMechanism, scores: list[int]
) -> None:
    with pytest.raises(ValueError, match="are the scores of"):
        mechanism.draw(np.array(scores))


def test_negative_scores_and_leads_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        simple().draw(np.array([[1, 2, -1]]))
    for error in (simple().error_at_lead, TwoCategories(HALF).error_at_lead):
        with pytest.raises(ValueError, match="a lead is at least 0"):
            error(-1)


def test_the_least_ratio_there_is_almost_always_tells_the_larger_score() -> None:
    """Equal scores are told apart by a coin all the same."""
    assert TwoCategories(1).error_at_lead(0) == Fraction(1, 2)
    assert TwoCategories(1).error_at_lead(1) == Fraction(1, RATIO_ONE + 1)


def test_equal_tables_are_equal() -> None:
    assert simple() == simple()
    assert hash(simple()) == hash(simple())
    assert simple() != cascade(3, 1, ONE)
    assert simple() != TwoCategories(HALF)
    assert TwoCategories(HALF) == TwoCategories(HALF)


def test_the_chance_to_err_of_a_table() -> None:
    table = simple()
    expected = [Fraction(2, 3), 2 * Fraction(TOTAL // 10, TOTAL), 2 * Fraction(TOTAL // 10, TOTAL)]
    assert [table.error_at_lead(lead) for lead in (0, 1, 7)] == expected
    assert (table.inputs, table.outputs) == (3, 1)


def test_the_chance_of_a_leader_of_two() -> None:
    mechanism = TwoCategories(HALF)
    expected = [1 / 2, 2 / 3, 3 / 4, 5 / 6, 7 / 8]
    assert [mechanism.chance_of_leader(lead) for lead in range(5)] == pytest.approx(expected)


@pytest.mark.parametrize("categories", [2, 3, 4])
@pytest.mark.parametrize("lead", [0, 1, 2, 5])
def test_the_chance_of_a_leader_is_the_least_over_all_scores_behind_it(
    categories: int, lead: int
) -> None:
    """The second category has 6 units; any others have as many or fewer."""
    table = cascade(categories, 3, Fraction(2))
    assert table is not None
    chances = table_chances(table)
    least = min(
        chances((6 + lead, 6, *others))[0] for others in product(range(7), repeat=categories - 2)
    )
    assert table.chance_of_leader(lead) == pytest.approx(float(least))
