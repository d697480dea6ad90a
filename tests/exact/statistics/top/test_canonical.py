"""The canonical choice of a set: exact ratios, classes against enumeration, and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.statistics.mechanism import RATIO_ONE, least_ratio
from release.exact.statistics.top.bounds import CountBounds
from release.exact.statistics.top.canonical import (
    CanonicalTop,
    SetClass,
    _combination,
    _set_at,
    _uniform_below,
)
from tests.exact.statistics.top.tables import RELATIONS, fixed_source, largest_ratio, p_value, power


@pytest.mark.parametrize("bounds", RELATIONS)
@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_no_set_is_more_likely_from_a_neighbor_than_promised(
    bounds: CountBounds, members: int, epsilon: Fraction
) -> None:
    mechanism = CanonicalTop.fitted(epsilon, bounds, members)
    assert mechanism.satisfies(epsilon)
    assert not mechanism.satisfies(epsilon * (1 - Fraction(1, 10**12)))
    # That part of a change loses its part of ε is proved of no draw of sets.
    assert not mechanism.loses_in_proportion(epsilon)
    promised = power(mechanism.ratio, mechanism.spread)
    assert largest_ratio(bounds, mechanism.chances) <= promised


@pytest.mark.parametrize("ratio", [1, RATIO_ONE // 3, RATIO_ONE * 99 // 100])
def test_weights_fall_by_no_more_than_the_ratio_down_to_the_cap(ratio: int) -> None:
    mechanism = CanonicalTop(CountBounds(30, 5), 4, ratio)
    weights = mechanism.weights
    assert weights[0] == 2**mechanism.bits
    assert all(
        following < weight and weight * ratio <= following * RATIO_ONE
        for weight, following in pairwise(weights)
    )
    # All sets at the cap together weigh next to nothing.
    assert weights[-1] * math.comb(30, 4) * 2**64 <= weights[0]
    assert mechanism.weight_of(10**30) == weights[-1]


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=7).flatmap(
        lambda counts: st.tuples(st.just(counts), st.integers(1, len(counts) - 1))
    ),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(30), Fraction(200)]),
)
def test_classes_hold_every_set_once_with_its_weight(
    given: tuple[list[int], int], epsilon: Fraction
) -> None:
    counts, members = given
    mechanism = CanonicalTop.fitted(epsilon, CountBounds(len(counts), 1), members)
    ranked = sorted(counts, reverse=True)
    weights = {}
    for first_outside, start, sets, weight in mechanism.classes(ranked):
        combinations_of_later = math.comb(len(counts) - 1 - first_outside, members - first_outside)
        assert 0 <= start < start + sets <= combinations_of_later
        for number in range(start, start + sets):
            later = _combination(number, members - first_outside)
            assert len(set(later)) == members - first_outside
            codes = [*range(first_outside), *(first_outside + 1 + at for at in later)]
            assert tuple(sorted(codes)) not in weights
            weights[tuple(sorted(codes))] = weight
    total = sum(weights.values())
    chances = mechanism.chances(ranked)
    assert {codes: Fraction(weight, total) for codes, weight in weights.items()} == chances


def test_equal_losses_share_a_class_and_all_beyond_the_cap_another() -> None:
    mechanism = CanonicalTop.fitted(Fraction(1), CountBounds(10_000, 3), 2)
    counts = [10**9, 5, *([4] * 5000), *([0] * 4998)]
    classes = list(mechanism.classes(counts))
    assert len(classes) == 1 + 1 + 2
    assert sum(each.sets for each in classes) == math.comb(10_000, 2)


@pytest.mark.parametrize("counts", [[4, 1, 3, 3, 0], [2, 2, 2, 2, 2], [0, 9, 0, 0, 1]])
@pytest.mark.parametrize("members", [1, 2, 4])
def test_frequencies_of_sets_are_their_chances(counts: list[int], members: int) -> None:
    mechanism = CanonicalTop.fitted(Fraction(3, 2), CountBounds(5, 5), members)
    drawn = mechanism.draw(np.tile(counts, (2000, 1)), fixed_source(2))
    assert p_value([tuple(row) for row in drawn.tolist()], mechanism.chances(counts)) > 1e-6


def test_combinations_are_numbered_by_their_largest() -> None:
    drawn = [tuple(_combination(number, 3)) for number in range(math.comb(7, 3))]
    assert drawn == sorted(drawn)
    assert {frozenset(each) for each in drawn} == set(map(frozenset, combinations(range(7), 3)))
    assert _combination(0, 0) == []


def test_each_set_takes_as_many_places_as_it_weighs() -> None:
    classes = [SetClass(2, 0, 1, 3), SetClass(1, 4, 3, 2), SetClass(0, 0, 2, 1)]
    sets = [(each, each.start + at) for each in classes for at in range(each.sets)]
    places = [chosen for chosen in sets for _ in range(chosen[0].weight)]
    assert [_set_at(place, classes) for place in range(3 + 6 + 2)] == places


@pytest.mark.parametrize(("bound", "width"), [(2**8, 1), (2**8 + 1, 2), (2**56, 7), (3**40, 8)])
def test_no_more_bytes_are_drawn_than_the_bound_has(bound: int, width: int) -> None:
    def source(count: int) -> bytes:
        assert count == width
        return (1).to_bytes(count, "big")

    # The highest bits are taken: of bytes that are 0 but for the highest, the last are cut off.
    spare = 8 * width - (bound - 1).bit_length()
    assert _uniform_below(bound, source) == 2 ** (8 * width - 8) >> spare


def test_bits_beyond_the_bound_are_drawn_again() -> None:
    words = iter([b"\xff", b"\xa0", b"\x90", b"\x70"])
    assert _uniform_below(10, lambda width: next(words)) == 9
    source = fixed_source(3)
    assert {_uniform_below(3, source) for _ in range(99)} == {0, 1, 2}


def test_large_counts_and_many_categories_are_decided_by_gaps_alone() -> None:
    mechanism = CanonicalTop.fitted(Fraction(1), CountBounds(2000, 2000), 20)
    counts = np.arange(2000) % 1980
    counts[-20:] = 10**12 + np.arange(20)
    drawn = mechanism.draw(counts[np.newaxis], fixed_source(4))
    assert drawn.tolist() == [list(range(1980, 2000))]


def test_the_ratio_follows_from_the_range() -> None:
    one_row = CanonicalTop.fitted(Fraction(1), CountBounds(9, 1), 3)
    many = CanonicalTop.fitted(Fraction(1), CountBounds(9, 2), 3)
    assert one_row.ratio == least_ratio(Fraction(1), 1)
    assert many.ratio == least_ratio(Fraction(1), 2)
    assert (many.inputs, many.outputs) == (9, 3)


@pytest.mark.parametrize("members", [0, 9])
def test_none_and_all_are_refused(members: int) -> None:
    with pytest.raises(ValueError, match="1 to 8"):
        CanonicalTop(CountBounds(9, 2), members, RATIO_ONE // 2)


@pytest.mark.parametrize("ratio", [0, RATIO_ONE])
def test_ratios_without_a_table_are_refused(ratio: int) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        CanonicalTop(CountBounds(9, 2), 3, ratio)


def test_a_table_of_very_many_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="so small that the table"):
        CanonicalTop.fitted(Fraction(1, 10**6), CountBounds(9, 2), 3)


def test_counts_of_another_number_of_categories_are_refused() -> None:
    mechanism = CanonicalTop.fitted(Fraction(1), CountBounds(4, 4), 2)
    with pytest.raises(ValueError, match="4 counts"):
        mechanism.draw(np.zeros((1, 5), dtype=np.int64))


def test_the_smallest_epsilon_is_that_of_a_table_of_a_million_entries() -> None:
    """One entry for each gap up to where the largest weight has fallen to 1."""
    bounds = CountBounds(50, 1)

    def entries(ratio: int) -> float:
        steps = -(-RATIO_ONE // (RATIO_ONE - ratio))
        bits = 64 + math.comb(50, 3).bit_length() + steps.bit_length()
        return bits * math.log(2) / -math.log1p(-(RATIO_ONE - ratio) / RATIO_ONE)

    low, high = RATIO_ONE // 2, RATIO_ONE - 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if entries(middle) <= 2**20 else (low, middle)
    near = RATIO_ONE >> 40
    assert CanonicalTop(bounds, 3, low - near).members == 3
    with pytest.raises(ValueError, match="the table would exceed"):
        CanonicalTop(bounds, 3, high + near)
