"""Confidence intervals of means from noisy sums: they cover as often as they say, and not more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release.exact.statistics.mean_intervals import mean_intervals
from release.exact.statistics.sums import NoisySums
from tests.exact.statistics.test_permute_and_flip import stream

DRAWS = 4000


@pytest.mark.parametrize("epsilon", ["1/4", "2"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-30, 70), (0, 5000)])
@pytest.mark.parametrize(("rows", "share"), [(5, 0.0), (40, 0.5), (40, 0.9), (3000, 0.2)])
def test_intervals_cover_as_often_as_they_say(
    epsilon: str, low: int, high: int, rows: int, share: float
) -> None:
    made = NoisySums.geometric(Fraction(epsilon), 2, high - low)
    above = round(share * rows * (high - low))
    true = low + above / rows
    sums = made.draw(np.tile([above, rows * (high - low) - above], (DRAWS, 1)), stream("cover"))
    first, last = mean_intervals(sums, made.noise, (low, high), 0.9)
    assert (first <= last).all()
    assert ((low <= first) & (last <= high)).all()
    covered = ((first <= true + 1e-9) & (true - 1e-9 <= last)).mean()
    # Four standard deviations of 4000 draws below; noise on few integers covers more than it says.
    assert covered >= 0.9 - 0.02
    if rows == 3000 and high > 1:
        assert covered <= 0.9 + 0.02


def test_intervals_shrink_as_rows_grow() -> None:
    made = NoisySums.geometric(Fraction(1), 2, 1000)
    widths = []
    for rows in (100, 1000, 10_000):
        exact = np.array([[400 * rows, 600 * rows]])
        first, last = mean_intervals(exact, made.noise, (0, 1000), 0.95)
        assert first[0] < 400 < last[0]
        widths.append(float(last[0] - first[0]))
    assert widths[0] == pytest.approx(10 * widths[1], rel=0.05)
    assert widths[1] == pytest.approx(10 * widths[2], rel=0.05)


def test_an_empty_cell_tells_nothing() -> None:
    made = NoisySums.geometric(Fraction(1), 2, 100)
    first, last = mean_intervals(np.array([[0, 0], [-5, 3]]), made.noise, (0, 100), 0.95)
    assert first.tolist() == [0, 0]
    assert last.tolist() == [100, 100]
