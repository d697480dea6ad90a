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
from release.exact.statistics.path_draws import Bounds, below, keeps, power_within, powers_above

few_rows = st.lists(st.sampled_from([0, 0, 1, 2, 7, 300, 10**5]), min_size=1, max_size=9)
ratios = st.sampled_from([1, RATIO_ONE // 3, RATIO_ONE * 9 // 10, RATIO_ONE - 2**50, RATIO_ONE - 1])


no_cuts = np.zeros(0, dtype=np.int64)


def paths_of(rows: list[int], sublevels: int, ratio: int, quantiles: int) -> Paths:
    shares = tuple(Fraction(j, quantiles + 1) for j in range(1, quantiles + 1))
    return JointQuantiles(len(rows), shares, 1, ratio, sublevels)._paths(np.array(rows))


@settings(max_examples=60, deadline=None)
@given(few_rows, st.sampled_from([1, 2, 16]), ratios, st.integers(1, 4))
def test_the_chances_of_a_step_never_add_up_to_more_than_one(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    bounds = Bounds(paths_of(rows, sublevels, ratio, quantiles), no_cuts)
    blocks = np.arange(bounds.starts.size)
    assert bounds.counts.sum() == len(rows) * sublevels
    for stage in range(1, quantiles + 1):
        given_blocks = blocks if stage < quantiles else np.array([blocks.size])
        chances = bounds.step_weights(stage, given_blocks)
        assert chances.min() >= 1
        assert max(sum(column) for column in chances.T.tolist()) <= 2**62


@settings(max_examples=60, deadline=None)
@given(few_rows, st.sampled_from([1, 2, 16]), ratios, st.integers(1, 4), st.integers(0, 2**32))
def test_no_path_would_be_kept_with_a_chance_above_one(
    rows: list[int], sublevels: int, ratio: int, quantiles: int, seed: int
) -> None:
    paths = paths_of(rows, sublevels, ratio, quantiles)
    bounds = Bounds(paths, no_cuts)
    random = np.random.default_rng(seed)
    for _ in range(4):
        path = np.sort(random.integers(0, paths.positions.count, quantiles))
        blocks = np.searchsorted(bounds.starts, path, side="right") - 1
        after = [*blocks[1:].tolist(), bounds.starts.size]
        steps = zip(range(1, quantiles + 1), blocks.tolist(), after, strict=True)
        chances = [
            int(bounds.step_weights(stage, np.array([following]))[block, 0])
            for stage, block, following in steps
        ]
        exponent, odds = bounds.acceptance(path, blocks.tolist(), chances)
        assert exponent >= 0
        _, power = power_within(ratio, exponent, 400)
        assert (power - 2 * exponent.bit_length() - 1) * odds <= 2**400


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


@given(st.integers(1, RATIO_ONE - 1), st.integers(0, 60), st.integers(1, 200))
def test_powers_are_within_their_bounds(ratio: int, exponent: int, places: int) -> None:
    low, high = power_within(ratio, exponent, places)
    assert low <= Fraction(ratio, RATIO_ONE) ** exponent * 2**places <= high


@given(st.integers(1, RATIO_ONE - 1), st.integers(1, 5))
def test_entries_of_the_table_are_barely_above_the_power(ratio: int, step: int) -> None:
    powers = powers_above(ratio, step, 40)[:50].tolist()
    barely = 1 + Fraction(1, 2**40)
    for number, power in enumerate(map(Fraction, powers)):
        assert Fraction(ratio, RATIO_ONE) ** (step * number) <= power
        assert power <= Fraction(powers[1]) ** number * barely + Fraction(number, 2**40)


def words(*integers: int) -> RandomBytes:
    stream = iter(integers)
    return lambda count: next(stream).to_bytes(count, "little")


def test_a_path_is_kept_by_the_digits_of_a_uniform_number() -> None:
    half = RATIO_ONE // 2
    # The chance is (1/2)^3·2^10/2^9 = 1/4.
    assert keeps(half, 3, Fraction(2), words(2**62 - 1))
    assert not keeps(half, 3, Fraction(2), words(2**62))
    # A third is decided by further words only where the first are all its own digits.
    third = 2**64 // 3
    assert keeps(half, 0, Fraction(1, 3), words(third, third - 1))
    assert not keeps(half, 0, Fraction(1, 3), words(third, third + 1))


def test_integers_below_a_count_are_drawn_again_where_they_are_not() -> None:
    assert below(1, bytes) == 0
    assert below(5, words(0b111_00000, 0b101_00000, 0b100_00000)) == 4
