"""Intervals of means in bins go from edge to edge: 6.4 lies in the bin from 6 to 7."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import release
from release.spec.domains import BinRange, ends_of_bins
from release.street import run_release
from tests.small import Row, Small, query


def test_intervals_of_means_with_hardly_any_noise_hold_them(tmp_path: Path) -> None:
    rows: list[Row] = []
    for i in range(60):
        place = "ab"[i % 2]
        rows.append(
            {"unit": f"u{i}", "place": place, "day": 1, "kind": 1, "wh": 3 * (i % 5) + i % 2}
        )
    asked = query(
        "binned",
        statistic="mean",
        sensitivity="global",
        noise="on_answer",
        guarantee={"definition": "pure", "epsilon": "40"},
    )
    made = run_release(Small(rows, [asked], max_rows_per_unit=1).write(tmp_path), tmp_path / "out")
    frame = release.open(made.public)["the_binned"].to_pandas()
    for place, low, high in zip(frame["place"], frame["low"], frame["high"], strict=True):
        values = [int(row["wh"] or 0) for row in rows if row["place"] == place]
        assert low <= sum(values) / len(values) <= high
        # Bins of 20/6 have their edges at whole numbers or between two.
        assert high - low <= 5


@pytest.mark.parametrize("count", [3, 6, 7])
def test_edges_lie_around_the_reals_of_a_bin(count: int) -> None:
    bins = BinRange(low=-5, high=15, count=count)
    width = Fraction(20, count)
    *closed, (last, end) = ends_of_bins(bins, range(count), is_real=True)
    assert (last <= 15 - width < last + 1, end) == (True, None)
    for code, (low, high) in enumerate(closed):
        assert low <= -5 + code * width < low + 1
        assert high is not None
        assert high - 1 < -5 + (code + 1) * width <= high
