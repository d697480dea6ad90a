"""Joint quantiles: private by enumeration, drawn as defined, never crossing, close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from release.exact.domain import Codes
from release.exact.statistics.joint_quantiles import JointQuantiles, spread_of
from release.exact.statistics.mechanism import RATIO_ONE, loss_above
from tests.every import every
from tests.exact.statistics.rank_errors import compared, rank_errors, sample

HALF = Fraction(1, 2)
THIRDS = (Fraction(1, 3), Fraction(2, 3))
QUARTILES = (Fraction(1, 4), HALF, Fraction(3, 4))
SKEWED = (Fraction(1, 10), HALF)
DECILES = tuple(Fraction(j, 10) for j in range(1, 10))


def tables(candidates: int, most: int) -> Iterator[tuple[int, ...]]:
    """All tables of at most so many rows, as rows at each candidate."""
    for table in product(range(most + 1), repeat=candidates):
        if sum(table) <= most:
            yield table


def moved(table: tuple[int, ...], change: dict[int, int]) -> tuple[int, ...]:
    return tuple(rows + change.get(candidate, 0) for candidate, rows in enumerate(table))


def neighbors(table: tuple[int, ...], *, replaces: bool) -> Iterator[tuple[int, ...]]:
    """The tables in which one row is removed, or moved: each pair is met from one of its sides."""
    for candidate, rows in enumerate(table):
        if not rows:
            continue
        if not replaces:
            yield moved(table, {candidate: -1})
        for other in range(candidate):
            if replaces:
                yield moved(table, {candidate: -1, other: 1})


def worst_ratio(mechanism: JointQuantiles, most: int, *, replaces: bool) -> Fraction:
    """The largest ratio of the chances of an output over all pairs of neighbors."""
    chances = {
        table: mechanism.chances(np.array(table)) for table in tables(mechanism.candidates, most)
    }
    worst = Fraction(1)
    for table, here in chances.items():
        for neighbor in neighbors(table, replaces=replaces):
            there = chances[neighbor]
            assert here.keys() == there.keys()
            for output, chance in here.items():
                ratio = chance / there[output]
                worst = max(worst, ratio, 1 / ratio)
    return worst


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize(
    ("candidates", "sublevels", "shares"),
    [
        (4, 1, THIRDS),
        (4, 2, (HALF,)),
        (4, 2, SKEWED),
        (3, 2, QUARTILES),
        (2, 3, THIRDS),
        (1, 3, THIRDS),
    ],
)
def test_no_neighbors_chances_differ_by_more_than_the_guarantee(
    candidates: int, sublevels: int, shares: tuple[Fraction, ...], *, replaces: bool
) -> None:
    epsilon = Fraction(2)
    mechanism = JointQuantiles.fitted(
        epsilon, candidates, shares, 1, replaces=replaces, sublevels=sublevels
    )
    assert mechanism.satisfies(epsilon)
    exponent = 4 * sublevels * spread_of(shares, 1, replaces=replaces)
    worst = worst_ratio(mechanism, 4, replaces=replaces)
    # (2^64/ratio)^exponent is at most e^ε by ``satisfies``; the ratio of chances is within it.
    assert worst <= Fraction(RATIO_ONE, mechanism.ratio) ** exponent
    assert exponent * loss_above(mechanism.ratio) <= epsilon


def test_the_score_moves_by_its_spread_and_no_further() -> None:
    """Over all tables of 4 rows; the bound is reached where rows are replaced, and where added."""
    shares = (Fraction(1, 4), HALF)
    for replaces in (False, True):
        mechanism = JointQuantiles(4, shares, 1, RATIO_ONE // 2, 1)
        tuples = list(combinations_with_replacement(range(4), 2))
        widest = 0
        for table in tables(4, 5):
            for neighbor in neighbors(table, replaces=replaces):
                here, there = (mechanism._paths(np.array(rows)) for rows in (table, neighbor))
                for path in map(np.array, tuples):
                    widest = max(widest, abs(here.exponent(path) - there.exponent(path)))
        assert widest == 2 * spread_of(shares, 1, replaces=replaces)


def test_the_spread_does_not_grow_with_the_number_of_shares() -> None:
    for count in (1, 3, 9, 19):
        shares = tuple(Fraction(j, count + 1) for j in range(1, count + 1))
        # In multiples of D, by which the score itself is multiplied.
        assert spread_of(shares, 1, replaces=True) == 2 * (count + 1)
        assert spread_of(shares, 3, replaces=False) == 6 * count


@pytest.mark.parametrize(
    ("rows", "sublevels", "shares", "epsilon"),
    [
        ([0, 0, 0], 2, THIRDS, 1),
        ([3, 0, 1, 2], 3, QUARTILES, 1),
        ([0, 9, 0, 0, 1], 2, SKEWED, 3),
        ([40, 0, 1], 2, THIRDS, 1),
        ([60, 0, 0], 1, SKEWED, 2),
        ([5, 1, 0, 0, 4, 4], 1, QUARTILES, 8),
        ([2, 7], 4, QUARTILES, 20),
    ],
)
def test_tuples_are_drawn_as_often_as_their_chances(
    rows: list[int], sublevels: int, shares: tuple[Fraction, ...], epsilon: int
) -> None:
    mechanism = JointQuantiles.fitted(
        Fraction(epsilon), len(rows), shares, 1, replaces=False, sublevels=sublevels
    )
    chances = mechanism.chances(np.array(rows))
    assert sum(chances.values()) == 1
    count = 1500
    drawn = mechanism.draw(np.tile(rows, (count, 1)), np.random.default_rng(5).bytes)
    seen = Counter(map(tuple, drawn.tolist()))
    assert seen.keys() <= chances.keys()
    # Rare tuples are counted together, so that each class is expected five times or more.
    common = [output for output, chance in chances.items() if chance * count >= 5]
    observed = [seen[output] for output in common]
    expected = [float(chances[output] * count) for output in common]
    observed.append(count - sum(observed))
    expected.append(count - sum(expected))
    if expected[-1] < 1e-6 * count:
        assert observed.pop() <= 3
        expected.pop()
        expected = [value * sum(observed) / sum(expected) for value in expected]
    if len(expected) > 1:
        assert chisquare(observed, expected).pvalue > 1e-4


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 50, 10**4]), min_size=1, max_size=30),
    st.sampled_from([HALF, Fraction(1, 50), Fraction(3), Fraction(30)]),
    st.sampled_from([(HALF,), THIRDS, SKEWED, DECILES]),
    st.sampled_from([1, 2, 256]),
    st.booleans(),
)
def test_quantiles_never_cross(
    rows: list[int],
    epsilon: Fraction,
    shares: tuple[Fraction, ...],
    sublevels: int,
    replaces: bool,
) -> None:
    mechanism = JointQuantiles.fitted(
        epsilon, len(rows), shares, 2, replaces=replaces, sublevels=sublevels
    )
    drawn = mechanism.draw(np.array([rows, rows]), np.random.default_rng(1).bytes)
    assert drawn.shape == (2, mechanism.outputs)
    assert drawn.dtype == np.int64
    assert all(0 <= a <= b < len(rows) for cell in drawn.tolist() for a, b in pairwise(cell))
    assert 0 <= drawn.min() <= drawn.max() < mechanism.inputs


def large(rows: int, candidates: int) -> Codes:
    return sample("skewed", rows, candidates, np.random.default_rng(7))


def test_the_median_of_many_rows_is_within_a_few_ranks() -> None:
    rows = large(10**5, 10**5)
    mechanism = JointQuantiles.fitted(Fraction(1), rows.size, (HALF,), 1, replaces=False)
    drawn = mechanism.draw(np.tile(rows, (50, 1)), np.random.default_rng(2).bytes)
    errors = [rank_errors(rows, (HALF,), published)[0] for published in drawn]
    assert np.mean(errors) <= 8
    assert max(errors) <= 60


def test_tied_rows_do_not_hide_what_holds_most_of_them() -> None:
    """All deciles of 10⁵ rows on three candidates of 101: those that hold their ranks."""
    rows = np.zeros(101, dtype=np.int64)
    rows[[0, 40, 41]] = 35_000, 30_000, 35_000
    mechanism = JointQuantiles.fitted(Fraction(1), rows.size, DECILES, 1, replaces=False)
    drawn = mechanism.draw(rows[None], np.random.default_rng(3).bytes)
    assert drawn.tolist() == [[0, 0, 0, 40, 40, 40, 41, 41, 41]]


def test_a_draw_of_nine_quantiles_from_many_rows_takes_few_trials() -> None:
    rows = large(10**5, 10_001)
    mechanism = JointQuantiles.fitted(Fraction(1), rows.size, DECILES, 1, replaces=False)
    random, reads = np.random.default_rng(4), []

    def source(count: int) -> bytes:
        reads.append(count)
        return random.bytes(count)

    mechanism.draw(np.tile(rows, (12, 1)), source)
    # A trial that is kept reads 19 numbers at least: a block and a place for each quantile.
    assert 12 * 19 <= len(reads) <= 12 * 300


@pytest.mark.parametrize(
    ("quantiles", "replaces", "most"),
    # The recursion is at its best at 2^i - 1 quantiles, where neighbors add or remove a row.
    [(3, False, 1.5), (9, False, 1.1), (9, True, 0.7), (3, True, 1.1)][:: every(2)],
)
def test_rank_errors_are_below_those_of_single_quantiles_and_near_the_recursion(
    quantiles: int, *, replaces: bool, most: float
) -> None:
    errors = compared("even", quantiles, 150, replaces=replaces)
    assert errors["joint"] <= 0.9 * errors["split"]
    assert errors["joint"] <= most * errors["recursive"]


def test_what_it_cannot_be_is_refused() -> None:
    ratio = RATIO_ONE // 2
    with pytest.raises(ValueError, match="at least 1"):
        JointQuantiles(0, (HALF,), 1, ratio)
    with pytest.raises(ValueError, match="at least 1"):
        JointQuantiles(2, (HALF,), 1, ratio, 0)
    with pytest.raises(ValueError, match="at least 1"):
        JointQuantiles(2, (HALF,), 0, ratio)
    for shares in ((), (Fraction(0),), (Fraction(1),), (HALF, HALF), THIRDS[::-1]):
        with pytest.raises(ValueError, match="ascend"):
            JointQuantiles(2, shares, 1, ratio)
    for outside in (0, RATIO_ONE):
        with pytest.raises(ValueError, match="ratio"):
            JointQuantiles(2, (HALF,), 1, outside)
    with pytest.raises(ValueError, match="64 bits"):
        JointQuantiles.fitted(Fraction(1, 10**18), 2, (HALF,), 1, replaces=False)


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (np.zeros(3, dtype=np.int64), "a column for each candidate"),
        (np.zeros((1, 4), dtype=np.int64), "a column for each candidate"),
        (np.array([[0, -1, 2]]), "at least 0"),
        (np.array([[2**40, 0, 1]]), "at most"),
    ],
)
def test_statistics_that_are_no_rows_at_candidates_are_refused(
    statistics: Codes, message: str
) -> None:
    mechanism = JointQuantiles.fitted(Fraction(1), 3, (HALF,), 1, replaces=False)
    with pytest.raises(ValueError, match=message):
        mechanism.draw(statistics)


def test_a_narrower_ratio_or_a_wider_spread_is_not_accepted() -> None:
    epsilon = Fraction(1)
    fitted = JointQuantiles.fitted(epsilon, 10, THIRDS, 2, replaces=True)
    assert fitted.satisfies(epsilon)
    assert not fitted.satisfies(epsilon * Fraction(999_999, 1_000_000))
    assert not JointQuantiles(10, THIRDS, fitted.spread + 1, fitted.ratio).satisfies(epsilon)
    assert not JointQuantiles(10, THIRDS, fitted.spread, fitted.ratio, 512).satisfies(epsilon)


def test_a_loss_of_just_epsilon_is_accepted() -> None:
    """The chance of an output changes by 4B·spread powers of the ratio, here 48 halves."""
    mechanism = JointQuantiles(3, THIRDS, 6, RATIO_ONE // 2, 2)
    loss = 48 * loss_above(RATIO_ONE // 2)
    for is_proved in (mechanism.satisfies, mechanism.loses_in_proportion):
        assert is_proved(loss)
        assert not is_proved(loss - Fraction(1, 10**12))


def test_a_row_further_away_lowers_a_chance_by_its_share_of_the_scale() -> None:
    """A distance that is a row longer adds 2B·D to the exponent, here 4·4: so many halves."""
    mechanism = JointQuantiles(3, QUARTILES, 1, RATIO_ONE // 2, 2)
    assert 2 ** (4 * 4 * mechanism.row_scale) == pytest.approx(exp(1))


def test_as_many_rows_as_a_cell_may_have_are_drawn_from() -> None:
    mechanism = JointQuantiles.fitted(Fraction(1), 3, (HALF,), 1, replaces=False)
    drawn = mechanism.draw(np.array([[0, 2**40, 0]]), np.random.default_rng(6).bytes)
    assert drawn.tolist() == [[1]]
