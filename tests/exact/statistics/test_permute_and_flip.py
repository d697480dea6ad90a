"""Permute-and-flip: exact chances, draws that follow them, and its guarantee over all tables."""

from __future__ import annotations

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.numbers import exp_bounds
from release.exact.sampling import RandomBytes
from release.exact.statistics import selection
from release.exact.statistics.exponential import ExponentialMechanism
from release.exact.statistics.mechanism import RATIO_ONE, is_private, least_ratio, loss_above
from release.exact.statistics.permute_and_flip import PermuteAndFlip, _uniform_choice
from release.exact.statistics.selection import Selection


def stream(seed: str) -> RandomBytes:
    """Bytes that look random and are the same each time."""
    places = itertools.count()

    def draw(count: int) -> bytes:
        return hashlib.shake_256(f"{seed} {next(places)}".encode()).digest(count)

    return draw


def words(*integers: int) -> RandomBytes:
    """A source of these integers, which must be asked for no more than there are."""
    stream = iter(integers)
    return lambda count: next(stream).to_bytes(count, "little")


def by_order(mechanism: PermuteAndFlip, scores: list[int]) -> list[Fraction]:
    """The chances by the definition: over all orders, the first candidate that is accepted."""
    ratio = Fraction(mechanism.ratio, RATIO_ONE)
    shares = [ratio ** (max(scores) - score) for score in scores]
    chances = [Fraction(0)] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = Fraction(1)
        for candidate in order:
            chances[candidate] += left * shares[candidate] / len(orders)
            left *= 1 - shares[candidate]
    return chances


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=5),
    st.sampled_from(["0.1", "1", "3"]),
    st.integers(1, 3),
)
def test_chances_are_those_of_the_definition(scores: list[int], epsilon: str, spread: int) -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(epsilon), len(scores), spread)
    chances = mechanism.chances(np.array(scores))
    assert chances == by_order(mechanism, scores)
    assert sum(chances) == 1


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=5),
    st.sampled_from(["0.3", "1", "2"]),
)
def test_changes_within_the_spread_keep_the_guarantee(
    scores: list[tuple[int, int]], epsilon: str
) -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(epsilon), len(scores), 2)
    here = mechanism.chances(np.array([score for score, _ in scores]))
    there = mechanism.chances(np.array([score + change for score, change in scores]))
    above = exp_bounds(Fraction(epsilon))[1]
    for a, b in zip(here, there, strict=True):
        assert a <= above * b
        assert b <= above * a


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=5),
    st.sampled_from([PermuteAndFlip, ExponentialMechanism]),
)
def test_a_change_by_part_of_the_spread_loses_its_part(
    scores: list[tuple[int, int]], family: type[Selection]
) -> None:
    """A third of the spread loses a third of ε at most."""
    mechanism = family.fitted(Fraction(1), len(scores), 3)
    assert mechanism.loses_in_proportion(Fraction(1))
    assert not mechanism.loses_in_proportion(Fraction(99, 100))
    here = mechanism.chances(np.array([score for score, _ in scores]))
    there = mechanism.chances(np.array([score + change for score, change in scores]))
    above = exp_bounds(Fraction(1, 3))[1]
    for a, b in zip(here, there, strict=True):
        assert a <= above * b
        assert b <= above * a


def test_its_profile_is_that_of_randomised_response() -> None:
    """Up to e^ε the curve is (e^ε - t)/(e^ε + 1), and it holds for any table."""
    mechanism = PermuteAndFlip.fitted(Fraction(1), 3, 1)
    assert (mechanism.inputs, mechanism.outputs) == (3, 1)
    losses = mechanism.profile(Fraction(1), Fraction(1, 20)).distribution()
    here, there = mechanism.chances(np.array([4, 3, 0])), mechanism.chances(np.array([3, 3, 1]))
    for place in range(21):
        ratio = exp_bounds(Fraction(place, 20))[1]
        curve = (math.e - float(ratio)) / (math.e + 1)
        assert float(losses.delta_at(Fraction(place, 20))) == pytest.approx(curve, abs=1e-12)
        delta = sum(max(Fraction(0), a - ratio * b) for a, b in zip(here, there, strict=True))
        assert delta <= losses.delta_at(Fraction(place, 20))


def test_a_change_beyond_the_spread_breaks_it() -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(1), 2, 1)
    here, there = mechanism.chances(np.array([0, 9])), mechanism.chances(np.array([2, 9]))
    assert there[0] > exp_bounds(Fraction(1))[1] * here[0]


def test_draws_follow_the_chances() -> None:
    scores = np.array([4, 4, 3, 0])
    mechanism = PermuteAndFlip.fitted(Fraction(1), 4, 2)
    drawn = mechanism.draw(np.tile(scores, (200_000, 1)), stream("draws"))
    assert drawn.shape == (200_000, 1)
    expected = np.array(list(map(float, mechanism.chances(scores)))) * len(drawn)
    found = np.bincount(drawn[:, 0], minlength=4)
    # The 0.9999 quantile of chi-square with 3 degrees of freedom is 21.1.
    assert ((found - expected) ** 2 / expected).sum() < 21.1


def test_scores_of_any_size_are_drawn() -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(1), 2, 10**9)
    scores = np.array([[2**61, -(2**61)], [-(2**61), 2**61]])
    assert mechanism.draw(scores, stream("large")).tolist() == [[0], [1]]


@pytest.mark.parametrize("candidates", [2, 3, 5, 7])
def test_of_all_words_as_many_choose_each_candidate(candidates: int) -> None:
    """Those at the end that are too many for it are drawn again, and no others."""
    is_candidate = np.array([[False, *[True] * candidates]])
    surplus = 2**64 % candidates
    for word in (0, 1, candidates, 2**63, 2**64 - 1 - surplus):
        assert _uniform_choice(is_candidate, words(word)).tolist() == [1 + word % candidates]
    for word in range(2**64 - surplus, 2**64):
        assert _uniform_choice(is_candidate, words(word, 1)).tolist() == [2]


@pytest.mark.parametrize("lead", [0, 1, 3, 10, 20, 40])
def test_the_chance_of_a_leader(lead: int) -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(1, 2), 6, 1)
    exact = mechanism.chances(np.array([lead, 0, 0, 0, 0, 0]))[0]
    assert mechanism.chance_of_leader(lead) == pytest.approx(float(exact), rel=1e-9)


def test_no_table_with_this_lead_is_worse_than_one_of_ties() -> None:
    mechanism = PermuteAndFlip.fitted(Fraction(1), 4, 1)
    least = mechanism.chance_of_leader(2)
    for others in itertools.product(range(6), repeat=3):
        if max(others) == 3:
            assert mechanism.chances(np.array([5, *others]))[0] >= Fraction(least) * (
                1 - Fraction(1, 10**9)
            )


@given(st.fractions(Fraction(1, 1000), 20), st.integers(1, 10**9))
def test_the_least_ratio_satisfies_and_the_next_does_not(epsilon: Fraction, spread: int) -> None:
    ratio = least_ratio(epsilon, spread)
    assert spread * loss_above(ratio) <= epsilon
    # A few units are allowed for rounding; far less does not do.
    assert ratio == 1 or spread * loss_above(max(1, ratio - 4)) > epsilon
    assert float(loss_above(ratio)) == pytest.approx(
        -math.log1p(-(RATIO_ONE - ratio) / RATIO_ONE), rel=1e-9
    )


@pytest.mark.parametrize("ratio", [1, 12345, 2**63, 3 * 2**60 + 1, RATIO_ONE - 10**12])
def test_a_ratio_that_misses_epsilon_by_a_hair_gives_way_to_the_next(ratio: int) -> None:
    """To 50 digits ε is its loss; it is less than what is proved of the loss."""
    epsilon = loss_above(ratio) - Fraction(1, 10**60)
    assert not is_private(ratio, 1, epsilon)
    assert least_ratio(epsilon, 1) == ratio + 1


def test_the_least_ratio_of_all_is_that_of_every_large_epsilon() -> None:
    """1/2^64 loses 44.4: less than no chance at all is not needed."""
    assert least_ratio(loss_above(1), 1) == least_ratio(Fraction(100), 1) == 1
    assert least_ratio(Fraction(44), 1) == 2


@pytest.mark.parametrize("missing", [1, 2, 12345, 2**40 + 1, 2**63])
def test_the_loss_of_a_ratio_is_known_to_40_digits(missing: int) -> None:
    """Of a ratio next to 1 as well: the series x + x²/2 + x³/3 … of -ln(1 - x)."""
    x = Fraction(missing, RATIO_ONE)
    series, power, rest = Fraction(0), 1, Fraction(1)
    while rest > series / 10**60:
        series += x**power / power
        power += 1
        # All further terms are less than those of a geometric series.
        rest = x**power / (1 - x)
    found = loss_above(RATIO_ONE - missing)
    assert series < found <= (series + rest) * (1 + Fraction(1, 10**40))


def test_what_is_no_selection_is_refused() -> None:
    for candidates, spread, ratio in ((1, 1, 5), (2, 0, 5), (2, 1, 0), (2, 1, RATIO_ONE)):
        with pytest.raises(ValueError, match="a selection needs"):
            PermuteAndFlip(candidates, spread, ratio)
    assert PermuteAndFlip(2, 1, 1).ratio == 1
    with pytest.raises(ValueError, match="64 bits"):
        least_ratio(Fraction(1, 10**12), 10**9)


def test_more_candidates_than_are_drawn_at_once_are_drawn_cell_by_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "_ENTRIES_AT_ONCE", 2)
    mechanism = PermuteAndFlip.fitted(Fraction(1), 3, 1)
    # Scores so far apart that the best is drawn for certain.
    scores = np.array([[0, 10**6, 0], [10**6, 0, 0]])
    assert mechanism.draw(scores, stream("cells")).tolist() == [[1], [0]]
