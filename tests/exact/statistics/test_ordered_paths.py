"""Values, exponents and scales of paths are those of their definitions."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.statistics.mechanism import RATIO_ONE
from release.exact.statistics.ordered_paths import Paths, Positions

few_rows = st.lists(st.integers(0, 6), min_size=1, max_size=6)


@given(few_rows, st.integers(1, 4), st.integers(1, 5))
def test_a_position_counts_the_rows_below_its_middle(
    rows: list[int], sublevels: int, scale: int
) -> None:
    """A row is spread evenly over the sub-levels of its candidate; 2B·scale is a whole row."""
    positions = Positions(np.array(rows), sublevels, scale)
    expected = []
    for candidate, here in enumerate(rows):
        for level in range(sublevels):
            share = Fraction(2 * level + 1, 2 * sublevels)
            expected.append((sum(rows[:candidate]) + here * share) * 2 * sublevels * scale)
    assert positions.count == len(expected)
    assert positions.values(np.arange(positions.count)) == expected
    assert positions.end == sum(rows) * 2 * sublevels * scale


@given(few_rows, st.lists(st.integers(0, 40), min_size=1, max_size=3), st.data())
def test_the_exponent_adds_up_how_far_steps_miss_their_targets(
    rows: list[int], targets: list[int], data: st.DataObject
) -> None:
    """In rows: each step passes so many, and ought to pass its target."""
    sublevels, scale = 3, 2
    positions = Positions(np.array(rows), sublevels, scale)
    place = st.integers(0, positions.count - 1)
    drawn = st.lists(place, min_size=len(targets), max_size=len(targets))
    path = sorted(data.draw(drawn))
    paths = Paths(positions, (*targets, 7), RATIO_ONE // 2)
    marks = [0, *(positions.values(np.array(path))), sum(rows) * 2 * sublevels * scale]
    missed = 0
    for number, target in enumerate([*targets, 7]):
        passed = marks[number + 1] - marks[number]
        missed += max(passed, target) - min(passed, target)
    assert paths.exponent(np.array(path)) == missed


def with_ratio(ratio: int) -> Paths:
    """The median of three rows: two at the first candidate, one at the second."""
    return Paths(Positions(np.array([2, 1]), 1, 2), (6, 6), ratio)


@pytest.mark.parametrize("units", [0.1, 0.7, 1.5, 2.5, 8.5, 1e6 + 0.5])
def test_the_scale_is_how_far_a_weight_falls_by_e(units: float) -> None:
    ratio = int(RATIO_ONE * exp(-1 / units))
    assert -1 / log(ratio / RATIO_ONE) == pytest.approx(units)
    assert with_ratio(ratio).scale == max(1, int(units))


def test_an_aim_is_near_a_position_up_to_a_quarter_of_the_scale() -> None:
    """The positions have the values 4 and 10, and the middle, 6, is 2 away from the nearer."""
    assert with_ratio(int(RATIO_ONE * exp(-1 / 8.5))).aims == [6]
    assert with_ratio(int(RATIO_ONE * exp(-1 / 7.5))).aims == [4, 10]
