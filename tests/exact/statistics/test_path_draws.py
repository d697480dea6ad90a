"""Bounds of weights are bounds, powers are within theirs, and positions have their values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.sampling import RandomBytes
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.ordered_paths import Paths, Positions
from release.exact.statistics.path_draws import _below, _Bounds, _keeps, _power_within, _powers

few_rows = st.lists(st.sampled_from([0, 0, 1, 2, 7, 300, 10**5]), min_size=1, max_size=9)
ratios = st.sampled_from([1, RATIO_ONE // 3, RATIO_ONE * 9 // 10, RATIO_ONE - 2**50, RATIO_ONE - 1])


def paths_of(rows: list[int], sublevels: int, ratio: int, quantiles: int) -> Paths:
    shares = tuple(Fraction(j, quantiles + 1) for j in range(1, quantiles + 1))
    return JointQuantiles(len(rows), shares, 1, ratio, sublevels)._paths(np.array(rows))


@settings(max_examples=60, deadline=None)
@given(few_rows, st.sampled_from([1, 2, 16]), ratios, st.integers(1, 4))
def test_the_chances_of_a_step_never_add_up_to_more_than_one(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    bounds = _Bounds(paths_of(rows, sublevels, ratio, quantiles), set())
    assert sum(bounds.counts) == len(rows) * sublevels
    for stage in range(1, quantiles + 1):
        for block in range(len(bounds.counts)):
            weights = 0
            for before in range(block + 1):
                if bounds.counts[before]:
                    steps = bounds._steps(before, block, stage)
                    assert steps >= 0
                    weight = bounds.counts[before] * bounds.sums[stage - 1][before][0]
                    weights += weight * bounds._power(steps)
            assert weights <= bounds.sums[stage][block][0] << bounds.bits


@settings(max_examples=40, deadline=None)
@given(few_rows, st.sampled_from([1, 2, 16]), ratios, st.integers(1, 3))
def test_a_block_before_is_drawn_by_as_many_numbers_as_its_weight(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    bounds = _Bounds(paths_of(rows, sublevels, ratio, quantiles), set())
    for stage in range(1, quantiles + 1):
        for block in {0, len(bounds.counts) // 2, len(bounds.counts) - 2, len(bounds.counts) - 1}:
            expected = {}
            for before in range(block + 1):
                weight = bounds.counts[before] * bounds.sums[stage - 1][before][0]
                weight *= bounds._power(bounds._steps(before, block, stage))
                if weight:
                    expected[before] = weight
            # The numbers of a block follow each other: from the first one to the last.
            found: dict[int, int] = {}
            number = 0
            total = bounds.sums[stage][block][0] << bounds.bits
            while number < total:
                drawn = bounds._draw_before(stage, block, uniform(number, total))
                if drawn is None:
                    break
                found[drawn] = expected[drawn]
                number += expected[drawn]
                assert bounds._draw_before(stage, block, uniform(number - 1, total)) == drawn
            assert found == expected


def uniform(number: int, below: int) -> RandomBytes:
    """A source from which ``number`` is drawn as the uniform integer below ``below``."""
    bits = (below - 1).bit_length()
    return words(number << (-bits % 8))


@given(few_rows, st.integers(1, 4), st.integers(1, 5))
def test_the_first_position_from_a_value_is_found(
    rows: list[int], sublevels: int, scale: int
) -> None:
    positions = Positions(np.array(rows), sublevels, scale)
    values = positions.values(np.arange(positions.count))
    assert values == sorted(values)
    asked = sorted({0, positions.end, *values, *(value + 1 for value in values)})
    expected = [sum(value < least for value in values) for least in asked]
    assert positions.first_from(asked).tolist() == expected


@settings(max_examples=60)
@given(few_rows, st.sampled_from([1, 2, 16]), ratios, st.integers(1, 4))
def test_aims_are_what_likely_paths_are_near(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    """Each sum of the first targets, or the values beside it where those are far."""
    paths = paths_of(rows, sublevels, ratio, quantiles)
    values = paths.positions.values(np.arange(paths.positions.count))
    expected = set()
    for stage in range(1, quantiles + 1):
        value = sum(paths.targets[:stage])
        # Every step changes a weight by a factor of e^(-1/scale).
        if 4 * min(abs(value - each) for each in values) <= paths.scale:
            expected.add(value)
            continue
        expected.add(max((each for each in values if each < value), default=values[0]))
        expected.add(min((each for each in values if each >= value), default=values[-1]))
    assert paths.aims == sorted(expected)


@given(st.integers(1, RATIO_ONE - 1), st.integers(0, 60), st.integers(1, 200))
def test_powers_are_within_their_bounds(ratio: int, exponent: int, places: int) -> None:
    low, high = _power_within(ratio, exponent, places)
    assert low <= Fraction(ratio, RATIO_ONE) ** exponent * 2**places <= high


@given(st.integers(1, RATIO_ONE - 1), st.integers(1, 5))
def test_entries_of_the_table_are_at_most_their_number_above_the_power(
    ratio: int, step: int
) -> None:
    powers = _powers(ratio, step, 40)[:50]
    base = Fraction(powers[min(1, len(powers) - 1)], powers[0])
    for number, power in enumerate(powers):
        assert Fraction(ratio, RATIO_ONE) ** (step * number) * 2**40 <= power
        assert power <= base**number * 2**40 + number


def words(*integers: int) -> RandomBytes:
    stream = iter(integers)
    return lambda count: next(stream).to_bytes(count, "little")


def test_a_path_is_kept_by_the_digits_of_a_uniform_number() -> None:
    half = RATIO_ONE // 2
    # The chance is (1/2)^3·2^10/2^9 = 1/4.
    assert _keeps(half, 3, 2**9, 10, words(2**62 - 1))
    assert not _keeps(half, 3, 2**9, 10, words(2**62))
    # A third is decided by further words only where the first are all its own digits.
    third = 2**64 // 3
    assert _keeps(half, 0, 3, 0, words(third, third - 1))
    assert not _keeps(half, 0, 3, 0, words(third, third + 1))


def test_integers_below_a_count_are_drawn_again_where_they_are_not() -> None:
    assert _below(1, bytes) == 0
    assert _below(5, words(0b111_00000, 0b101_00000, 0b100_00000)) == 4
