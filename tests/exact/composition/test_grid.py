"""The step of a grid: a common divisor of all losses, or one that keeps the grid short."""

from __future__ import annotations

from fractions import Fraction

import pytest

from release.exact.composition.grid import Spread, short_step

LONGEST = 2**14


def spread(distance: str, width: str, times: int = 1) -> Spread:
    return Spread(Fraction(distance), Fraction(width), times)


@pytest.mark.parametrize(
    ("spreads", "expected"),
    [
        ([], "1"),
        ([spread("1/2", "1")], "1/2"),
        ([spread("2", "2"), spread("3", "3")], "1"),
        ([spread("1/2", "1"), spread("1/3", "1")], "1/6"),
        ([spread("3/4", "3/2"), spread("9/10", "9/5"), spread("3/4", "3/4", 7)], "3/20"),
    ],
)
def test_a_step_divides_all_distances(spreads: list[Spread], expected: str) -> None:
    assert short_step(spreads) == Fraction(expected)


@pytest.mark.parametrize("times", [1, 2, 50])
def test_few_losses_span_no_more_than_all_their_ranges(times: int) -> None:
    """So long a sum of ranges is just a grid, where it is less than by Hoeffding's inequality."""
    width = Fraction(LONGEST, times)
    assert short_step([Spread(Fraction(1), width, times)]) == 1
    longer = Fraction(LONGEST + 1, times)
    assert short_step([Spread(Fraction(1), longer, times)]) > 1


def test_many_losses_lie_in_a_window_of_the_root_of_their_number() -> None:
    """102·10,000 ranges squared are just within the grid, or just beyond."""
    times = 10_000
    # The square of the longest grid is 102·times·range².
    width = Fraction(16_221, 1000)
    assert 102 * times * width**2 < LONGEST**2 < 102 * times * (width + Fraction(1, 500)) ** 2
    assert short_step([Spread(Fraction(1), width, times)]) == 1
    step = short_step([Spread(Fraction(1), width + Fraction(1, 500), times)])
    assert 1 < step < Fraction(10_002, 10_000)


def test_a_long_grid_is_cut_to_the_window_rounded_up() -> None:
    """The step is the least multiple of 10^-20 above the window over 2^14."""
    spreads = [spread("1/1000003", "1", 3), spread("1/999983", "2")]
    # Few of them: all ranges together are less than the window of Hoeffding.
    step = short_step(spreads)
    window = 3 * 1 + 2
    assert step - Fraction(1, 10**20) <= Fraction(window, LONGEST) < step
    assert (step * 10**20).denominator == 1
    more = short_step([Spread(each.distance, each.range, 1000 * each.times) for each in spreads])
    square = 102 * 1000 * (3 * 1 + 4)
    assert (more - Fraction(1, 10**20)) ** 2 <= Fraction(square, LONGEST**2) < more**2
