"""Rounds of permute-and-flip: exact ratios, the law of one round, and draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.permute_and_flip import _uniform_choice
from release.exact.statistics.top import peeled
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.peeled import PeeledTop
from tests.exact.statistics.top.tables import RELATIONS, fixed_source, largest_ratio, p_value, power


def permute_and_flip(scores: Sequence[int], ratio: Fraction) -> list[Fraction]:
    """The chances by the definition: every order of the candidates, visited until one accepts."""
    orders = list(permutations(range(len(scores))))
    chances = [Fraction(0)] * len(scores)
    for order in orders:
        reached = Fraction(1, len(orders))
        for candidate in order:
            accepts = ratio ** (max(scores) - scores[candidate])
            chances[candidate] += reached * accepts
            reached *= 1 - accepts
    return chances


@given(st.lists(st.integers(-3, 6), min_size=2, max_size=5), st.integers(1, RATIO_ONE - 1))
def test_one_round_is_permute_and_flip(scores: list[int], ratio: int) -> None:
    mechanism = PeeledTop(CountBounds(len(scores), 1), 1, ratio)
    expected = permute_and_flip(scores, Fraction(ratio, RATIO_ONE))
    assert mechanism.chances(scores) == {(code,): chance for code, chance in enumerate(expected)}


@pytest.mark.parametrize("bounds", RELATIONS)
@pytest.mark.parametrize("members", [1, 2, 3])
def test_no_sequence_is_more_likely_from_a_neighbor_than_promised(
    bounds: CountBounds, members: int
) -> None:
    # A ratio of few bits keeps the fractions short; the proof asks nothing more of it.
    mechanism = PeeledTop(bounds, members, RATIO_ONE * 5 // 8)
    promised = power(mechanism.ratio, mechanism.spread)
    assert largest_ratio(bounds, mechanism.chances) <= promised


@pytest.mark.parametrize("bounds", RELATIONS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_the_fitted_ratio_is_proved_and_the_least(bounds: CountBounds, epsilon: Fraction) -> None:
    mechanism = PeeledTop.fitted(epsilon, bounds, 3)
    assert mechanism.spread == 3 * bounds.range_of_counts
    assert mechanism.satisfies(epsilon)
    assert not mechanism.satisfies(epsilon * (1 - Fraction(1, 10**12)))
    # That part of a change loses its part of ε is proved of no sequence of rounds.
    assert not mechanism.loses_in_proportion(epsilon)


@pytest.mark.parametrize("counts", [[4, 1, 3, 3], [2, 2, 2, 2], [0, 2**61, 0, 1]])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_frequencies_of_sequences_are_their_chances(counts: list[int], members: int) -> None:
    mechanism = PeeledTop.fitted(Fraction(3, 2), CountBounds(4, 4), members)
    drawn = mechanism.draw(np.tile(counts, (4000, 1)), fixed_source(5))
    # A gap of 2^61 is as good as none at all.
    exact = mechanism.chances([min(count, 500) for count in counts])
    likely = {codes: chance for codes, chance in exact.items() if chance > Fraction(1, 10**6)}
    assert p_value([tuple(row) for row in drawn.tolist()], likely) > 1e-6


def test_no_category_is_published_twice() -> None:
    mechanism = PeeledTop.fitted(Fraction(1), CountBounds(6, 6), 5)
    drawn = mechanism.draw(np.zeros((50, 6), dtype=np.int64), fixed_source(6))
    assert (drawn.shape, mechanism.inputs, mechanism.outputs) == ((50, 5), 6, 5)
    assert all(len(set(row)) == 5 for row in drawn.tolist())


@pytest.mark.parametrize("chunk", [1, 3, 6, 1000])
def test_cells_are_drawn_in_parts(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one cell alone has more categories than are drawn at once."""
    monkeypatch.setattr(peeled, "_CHUNK", chunk)
    mechanism = PeeledTop.fitted(Fraction(80), CountBounds(3, 3), 2)
    counts = np.array([[900, 0, 500], [500, 900, 0], [0, 500, 900]])
    assert mechanism.draw(counts, fixed_source(7)).tolist() == [[0, 2], [1, 0], [2, 1]]


def test_a_choice_is_uniform_among_the_candidates() -> None:
    is_candidate = np.tile([False, True, True, False, True], (3000, 1))
    drawn = _uniform_choice(is_candidate, fixed_source(8))
    chances = {(place,): Fraction(1, 3) for place in (1, 2, 4)}
    assert p_value([(place,) for place in drawn.tolist()], chances) > 1e-6


def test_words_that_would_favor_a_place_are_drawn_again() -> None:
    words = iter([[2**64 - 1, 5], [4]])

    def source(count: int) -> bytes:
        return np.array(next(words), dtype="<u8").tobytes()

    is_candidate = np.ones((2, 3), dtype=bool)
    assert _uniform_choice(is_candidate, source).tolist() == [1, 2]


@pytest.mark.parametrize("ratio", [0, RATIO_ONE])
def test_ratios_without_coins_are_refused(ratio: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        PeeledTop(CountBounds(9, 2), 3, ratio)


@pytest.mark.parametrize("members", [0, 9])
def test_none_and_all_are_refused(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 8"):
        PeeledTop(CountBounds(9, 2), members, RATIO_ONE // 2)


def test_counts_of_another_number_of_categories_are_refused() -> None:
    mechanism = PeeledTop.fitted(Fraction(1), CountBounds(4, 4), 2)
    with pytest.raises(ValueError, match="4 counts"):
        mechanism.draw(np.zeros((1, 5), dtype=np.int64))
