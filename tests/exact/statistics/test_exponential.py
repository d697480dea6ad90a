"""The exponential mechanism: draws that follow its chances, its guarantee and its profile."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import Profile
from release.exact.numbers import exp_bounds
from release.exact.sampling import RandomBytes
from release.exact.statistics.exponential import (
    ExponentialMechanism,
    _uniform,
    bounded_range_profile,
)
from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from tests.exact.statistics.test_permute_and_flip import words

ONE = Fraction(1)


def stream(seed: str) -> RandomBytes:
    """Bytes that look random and are the same each time."""
    places = itertools.count()

    def draw(count: int) -> bytes:
        return hashlib.shake_256(f"{seed} {next(places)}".encode()).digest(count)

    return draw


@pytest.mark.parametrize("scores", [[4, 4, 3, 0], [9, 0, 1, 0], [2, 2, 2, 2]])
def test_draws_follow_the_chances(scores: list[int]) -> None:
    mechanism = ExponentialMechanism.fitted(Fraction(1), 4, 2)
    table = np.tile(np.array(scores), (200_000, 1))
    drawn = mechanism.draw(table, stream("draws"))
    assert drawn.shape == (200_000, 1)
    expected = np.array(list(map(float, mechanism.chances(np.array(scores))))) * len(drawn)
    found = np.bincount(drawn[:, 0], minlength=4)
    # The 0.9999 quantile of chi-square with 3 degrees of freedom is 21.1.
    assert ((found - expected) ** 2 / expected).sum() < 21.1


def test_each_cell_is_drawn_from_its_own_scores() -> None:
    mechanism = ExponentialMechanism.fitted(Fraction(1), 2, 10**9)
    scores = np.array([[2**61, -(2**61)], [-(2**61), 2**61]] * 50)
    assert mechanism.draw(scores, stream("large")).ravel().tolist() == [0, 1] * 50


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=6)


@given(CHANGES, st.sampled_from(["0.3", "1", "2"]), st.fractions(0, 2, max_denominator=50))
def test_no_tables_exceed_the_profile(
    scores: list[tuple[int, int]], epsilon: str, loss: Fraction
) -> None:
    mechanism = ExponentialMechanism.fitted(Fraction(epsilon), len(scores), 2)
    here = mechanism.chances(np.array([score for score, _ in scores]))
    there = mechanism.chances(np.array([score + change for score, change in scores]))
    above, ratio = exp_bounds(Fraction(epsilon))[1], exp_bounds(loss)[1]
    losses = mechanism.profile(Fraction(epsilon), Fraction(1, 40)).distribution()
    for p, q in ((here, there), (there, here)):
        assert all(a <= above * b for a, b in zip(p, q, strict=True))
        delta = sum(max(Fraction(0), a - ratio * b) for a, b in zip(p, q, strict=True))
        assert delta <= losses.delta_at(loss)


@pytest.mark.parametrize(("epsilon", "place"), [(ONE, 0), (ONE, 20), (ONE, 90), (ONE / 2, 20)])
def test_the_profile_is_attained(epsilon: Fraction, place: int) -> None:
    """Of many candidates a share gains, another loses: the curve is reached at every loss."""
    step = Fraction(1, 100)
    bound = Fraction(bounded_range_profile(epsilon, step).values[place], UNIT)
    ratio = exp_bounds(place * step)[1]
    mechanism = ExponentialMechanism.fitted(epsilon, 400, 1)
    best = Fraction(0)
    share = Fraction(mechanism.ratio, RATIO_ONE)
    for raised in range(1, 400):
        # All tie; the neighbor lowers the candidates that are not raised by one.
        whole = raised + (400 - raised) * share
        best = max(best, raised * max(Fraction(0), 1 / whole - ratio * Fraction(1, 400)))
    assert bound * Fraction(999, 1000) < best <= bound


@given(st.fractions(Fraction(1, 10**6), 20), st.fractions(Fraction(1, 100), 1, max_denominator=100))
def test_it_composes_better_than_randomised_response(epsilon: Fraction, step: Fraction) -> None:
    profile = bounded_range_profile(epsilon, step)
    pure = Profile.of_charge(epsilon, Fraction(0)).distribution()
    assert profile.values[-1] == 0
    for place, value in enumerate(profile.values):
        assert Fraction(value - 2, UNIT) <= pure.delta_at(place * step)


def test_its_leader_is_less_likely_than_that_of_permute_and_flip() -> None:
    epsilon = Fraction(1)
    ours = ExponentialMechanism.fitted(epsilon, 6, 1)
    theirs = PermuteAndFlip.fitted(epsilon, 6, 1)
    for lead in (1, 4, 20):
        exact = ours.chances(np.array([lead, 0, 0, 0, 0, 0]))[0]
        assert ours.chance_of_leader(lead) == pytest.approx(float(exact), rel=1e-9)
        assert ours.chance_of_leader(lead) < theirs.chance_of_leader(lead)


def test_what_is_no_selection_is_refused() -> None:
    for candidates, spread, ratio in ((1, 1, 5), (2, 0, 5), (2, 1, 0), (2, 1, RATIO_ONE)):
        with pytest.raises(ValueError, match="a selection needs"):
            ExponentialMechanism(candidates, spread, ratio)
    assert bounded_range_profile(Fraction(100), Fraction(25)).values[-1] == 0
    for epsilon in (Fraction(0), 100 + Fraction(1, 10**9)):
        with pytest.raises(ValueError, match="above 0 and at most 100"):
            bounded_range_profile(epsilon, Fraction(25))
    mechanism = ExponentialMechanism.fitted(Fraction(1), 3, 1)
    with pytest.raises(ValueError, match="larger epsilon"):
        mechanism.profile(Fraction(9, 10), Fraction(1, 10))


def test_a_uniform_integer_draws_the_words_that_are_left_over_again() -> None:
    """2^64 is 1 more than a multiple of 3: the last word alone would make 0 likelier."""
    given_words = iter([2**64 - 1, 2**64 - 2, 2**64 - 1, 7])

    def source(count: int) -> bytes:
        return b"".join(next(given_words).to_bytes(8, "little") for _ in range(count // 8))

    assert _uniform(3, 2, source).tolist() == [1, 2]
    assert next(given_words, None) is None


@pytest.mark.parametrize("size", [2, 5, 7, 11])
def test_of_all_words_as_many_give_each_integer(size: int) -> None:
    surplus = 2**64 % size
    for word in (0, 1, size, 2**63, 2**64 - 1 - surplus):
        assert _uniform(size, 1, words(word)).tolist() == [word % size]
    for word in range(2**64 - surplus, 2**64):
        assert _uniform(size, 1, words(word, size + 1)).tolist() == [1]


def test_the_profile_of_the_least_epsilon_is_above_0_up_to_its_end() -> None:
    """The bounds of e^ε cannot tell it from 1, so the formula alone would divide by 0."""
    step = Fraction(1, 10**41)
    assert bounded_range_profile(Fraction(1, 10**60), Fraction(1, 100)).values == (1, 0)
    assert bounded_range_profile(2 * step, step).values == (1, 1, 0)
    # The same just below the end of a larger one.
    assert bounded_range_profile(1 + step, ONE).values[1:] == (1, 0)


def test_the_chance_of_a_leader_is_that_of_all_others_at_its_lead() -> None:
    mechanism = ExponentialMechanism.fitted(Fraction(1), 4, 2)
    for lead in (0, 1, 5):
        exact = mechanism.chances(np.array([lead, 0, 0, 0]))[0]
        assert mechanism.chance_of_leader(lead) == pytest.approx(float(exact), rel=1e-12)
