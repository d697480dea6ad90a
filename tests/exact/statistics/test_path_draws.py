"""Bounds of weights are bounds, powers are within theirs, and positions have their values."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from release.exact.sampling import RandomBytes
from release.exact.statistics.joint_quantiles import JointQuantiles
from release.exact.statistics.mechanism import RATIO_ONE, loss_above
from release.exact.statistics.ordered_paths import Paths, Positions
from release.exact.statistics.path_draws import (
    _below,
    _Bounds,
    _keeps,
    _power_within,
    _powers,
    _Window,
)

few_rows = st.lists(st.sampled_from([0, 0, 1, 2, 7, 300, 10**5]), min_size=1, max_size=9)
ratios = st.sampled_from([1, RATIO_ONE // 3, RATIO_ONE * 9 // 10, RATIO_ONE - 2**50, RATIO_ONE - 1])


def paths_of(rows: list[int], sublevels: int, ratio: int, quantiles: int) -> Paths:
    """Each target is longer than the one before it: 1, 2, … parts of the rows."""
    parts = (quantiles + 1) * (quantiles + 2)
    shares = tuple(Fraction(j * (j + 1), parts) for j in range(1, quantiles + 1))
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


@settings(max_examples=40, deadline=None)
@given(few_rows, st.sampled_from([1, 2, 4]), ratios, st.integers(1, 3))
def test_the_gap_of_two_blocks_is_the_least_there_is(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    """Rounding takes less than one step of the lattice for each block and for the target."""
    paths = paths_of(rows, sublevels, ratio, quantiles)
    bounds = _Bounds(paths, set())
    ranges = []
    for start, count in zip(bounds.starts, bounds.counts, strict=False):
        values = paths.positions.values(np.arange(start, start + count))
        ranges.append((min(values), max(values)))
    ranges.append((paths.positions.end, paths.positions.end))
    for stage in range(1, quantiles + 1):
        target = paths.targets[stage]
        for block, (low, high) in enumerate(ranges):
            first, last = bounds._middle(block, stage)
            assert 0 <= first <= last <= block + 1
            lower, upper = bounds._reach(block, stage)
            for before in range(block + 1):
                least, most = ranges[before]
                missed = max(0, low - most - target, target - (high - least))
                gap = bounds._gap(before, block, stage)
                assert max(0, missed - 3 * (bounds.step - 1)) <= gap * bounds.step <= missed
                if before < first:
                    assert gap == lower - bounds.high[before]
                elif before < last:
                    assert gap == 0
                else:
                    assert gap == bounds.low[before] - upper


def chance_to_keep(paths: Paths, bounds: _Bounds) -> dict[tuple[int, ...], float]:
    """The chance of a trial to end with each path: its weight, over the bound of all weights."""
    mantissa, exponent = bounds.sums[-1][-1]
    share, loss = float(Fraction(1 << bounds.bits, mantissa)), float(loss_above(paths.ratio))
    quantiles = len(paths.targets) - 1
    chances = {}
    for path in combinations_with_replacement(range(paths.positions.count), quantiles):
        lacks = paths.exponent(np.array(path)) - bounds.step * exponent
        chances[path] = share * exp(-lacks * loss)
    return chances


@settings(max_examples=60, deadline=None)
@given(few_rows, st.sampled_from([1, 2]), ratios, st.integers(1, 2))
def test_a_trial_among_few_positions_seldom_fails(
    rows: list[int], sublevels: int, ratio: int, quantiles: int
) -> None:
    """The bound of all weights is one, and little above their sum."""
    paths = paths_of(rows, sublevels, ratio, quantiles)
    kept = sum(chance_to_keep(paths, _Bounds(paths, set())).values())
    assert 0.7 <= kept <= 1 + 1e-9


@pytest.mark.parametrize(
    ("rows", "sublevels", "quantiles", "ratio"),
    [
        ([2, 0, 1], 1, 2, RATIO_ONE * 9 // 10),
        ([3, 0, 1, 2], 1, 1, RATIO_ONE * 49 // 50),
        ([5, 4], 2, 3, RATIO_ONE * 99 // 100),
        ([0, 0], 2, 2, RATIO_ONE // 2),
        # A quarter of these fail.
        ([7, 300, 0, 0], 4, 2, RATIO_ONE - 2**50),
        # Blocks hold several positions, of which a trial may draw some in the wrong order.
        ([0] * 6, 4, 3, RATIO_ONE // 2),
    ],
)
def test_a_trial_ends_with_a_path_as_often_as_its_weight_is_of_the_bound(
    rows: list[int], sublevels: int, quantiles: int, ratio: int
) -> None:
    paths = paths_of(rows, sublevels, ratio, quantiles)
    bounds = _Bounds(paths, set())
    count, source = 2000, np.random.default_rng(11).bytes
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(count):
        path = bounds.trial(source)
        seen[() if path is None else tuple(path.tolist())] += 1
    chances = chance_to_keep(paths, bounds)
    chances[()] = 1 - sum(chances.values())
    assert seen.keys() <= chances.keys()
    common = [path for path, chance in chances.items() if chance * count >= 5]
    observed = [seen[path] for path in common]
    expected = [chances[path] * count for path in common]
    if sum(expected) < count * (1 - 1e-3):
        observed.append(count - sum(observed))
        expected.append(count - sum(expected))
    scaled = np.array(expected) * sum(observed) / sum(expected)
    assert sum(observed) >= count - 20
    assert chisquare(observed, scaled).pvalue > 1e-4


def test_blocks_that_a_trial_visited_are_cut_into_sixteen_parts() -> None:
    paths = paths_of([0] * 8, 256, RATIO_ONE // 2, 2)
    bounds = _Bounds(paths, set())
    source = np.random.default_rng(12).bytes
    path = next(path for _ in range(100) if (path := bounds.trial(source)) is not None)
    finer = _Bounds(paths, bounds.cuts_of_visited())
    assert set(bounds.starts) < set(finer.starts)
    assert sum(finer.counts) == sum(bounds.counts)
    for position in path.tolist():
        before = bounds.counts[bisect_right(bounds.starts, position) - 1]
        after = finer.counts[bisect_right(finer.starts, position) - 1]
        assert after <= -(-before // 16)


@given(st.lists(st.integers(0, 9), max_size=12), st.data())
def test_sums_over_a_window_that_moves_on(numbers: list[int], data: st.DataObject) -> None:
    window = _Window([(n, 0) for n in numbers], lambda a, b: (a[0] + b[0], 0))
    first = end = 0
    for _ in range(8):
        first = data.draw(st.integers(first, len(numbers)))
        end = data.draw(st.integers(end, len(numbers)))
        assert window.sum(first, end)[0] == sum(numbers[first:end])


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


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.integers(1, RATIO_ONE - 1),
        st.floats(0, 64).map(lambda bits: max(1, RATIO_ONE - int(2**bits))),
    ),
    st.integers(1, 12),
)
def test_the_last_entry_is_below_the_number_of_entries(ratio: int, quantiles: int) -> None:
    """So that this number covers what a product of two of the table lacks, however many steps."""
    bounds = _Bounds(paths_of([3, 0, 2, 5], 16, ratio, quantiles), set())
    assert bounds.powers[-1] < len(bounds.powers) == bounds.excess


@given(st.integers(1, RATIO_ONE - 1), st.integers(0, 60), st.integers(1, 200))
def test_powers_are_within_their_bounds(ratio: int, exponent: int, places: int) -> None:
    low, high = _power_within(ratio, exponent, places)
    assert low <= Fraction(ratio, RATIO_ONE) ** exponent * 2**places <= high


@given(st.integers(1, RATIO_ONE - 1), st.integers(1, 5))
def test_entries_of_the_table_are_at_most_their_number_above_the_power(
    ratio: int, step: int
) -> None:
    table = _powers(ratio, step, 24)
    # It ends where a further power is not less, and not before.
    assert all(after < before for before, after in pairwise(table[1:]))
    assert table[-1] == -(-table[-1] * table[1] // 2**24)
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
    # What has chance 1 is kept by the largest of all numbers.
    assert _keeps(half, 0, 1, 0, lambda count: b"\xff" * count)
    # A third is decided by further words only where the first are all its own digits.
    third = 2**64 // 3
    assert _keeps(half, 0, 3, 0, words(third, third - 1))
    assert not _keeps(half, 0, 3, 0, words(third, third + 1))


def test_integers_below_a_count_are_drawn_again_where_they_are_not() -> None:
    asked: list[int] = []

    def source(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    assert [_below(count, source) for count in (1, 2, 256, 257)] == [0] * 4
    # Whole bytes, and no more than the largest number needs.
    assert asked == [0, 1, 1, 2]
    assert _below(5, words(0b111_00000, 0b101_00000, 0b100_00000)) == 4
