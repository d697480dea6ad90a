"""Tables of mostly zeros: how many of the cells that look larger than 0 are, against the truth."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

import release
from release.errors import SpecError
from release.exact.domain import Codes
from release.exact.integers.mechanism import IntegerMechanism
from release.noise.published.baselines import geometric
from release.queries.intervals import around_answers
from release.queries.read import parse_spec
from release.queries.zeros import chances_of_zero, zeros_of
from release.spec.query import Query
from tests.small import Row, Small, query, write_rows


def counted(largest: int) -> Query:
    """A query whose answers are 0 to ``largest``."""
    asked = query("count", domain={"ordered": {"min": 0, "max": largest}}, sensitivity="global")
    (found,) = parse_spec(yaml.safe_dump(Small([], [asked]).plain()).encode()).released
    return found


def noised(mechanism: IntegerMechanism, truth: Codes, random: np.random.Generator) -> Codes:
    """One outcome for each true answer, by numpy's own draws from the table of the mechanism."""
    published = np.empty_like(truth)
    for answer in np.unique(truth).tolist():
        masses = mechanism.probabilities(answer)
        here = truth == answer
        drawn = random.choice(len(masses), here.sum(), p=masses / masses.sum())
        published[here] = drawn
    return published


@pytest.mark.parametrize(
    ("zero", "largest", "mean"),
    [
        (0.98, 60, 12),
        (0.98, 400, 12),
        (0.5, 60, 12),
        # Answers far beyond those of which a table is made.
        (0.98, 3_000, 1_000),
        (0.9, 3_000, 100),
        (0.9, 3_000, 12),
    ],
)
def test_the_shares_are_those_of_the_truth(zero: float, largest: int, mean: int) -> None:
    random = np.random.default_rng(7)
    cells = 20_000
    positive = np.minimum(random.geometric(1 / mean, cells), largest)
    truth = np.where(random.random(cells) < zero, 0, positive)
    mechanism = IntegerMechanism(geometric(Fraction(1, 2)), largest + 1)
    asked = counted(largest)
    codes = noised(mechanism, truth, random)
    found = zeros_of(asked, mechanism, codes)
    around = around_answers(asked, mechanism, codes)
    assert found is not None
    assert around is not None
    above = around.low > 0
    assert found.cells == above.sum()
    holds = (around.low <= truth) & (truth <= around.high)
    assert found.zero == pytest.approx((truth[above] == 0).mean(), abs=0.06)
    assert found.held == pytest.approx(holds[above].mean(), abs=0.06)
    assert (found.sentence is None) == (found.held >= 0.9)
    chances = chances_of_zero(asked, mechanism, codes)
    assert chances is not None
    # Of the cells with chances near a tenth about a tenth are 0, and so on.
    for low in (0.0, 0.3, 0.6):
        group = (chances >= low) & (chances < low + 0.3)
        if group.sum() > 200:
            assert chances[group].mean() == pytest.approx((truth[group] == 0).mean(), abs=0.08)


def test_the_report_warns_of_what_looks_high(tmp_path: Path) -> None:
    keys = 6_000
    rows: list[Row] = []
    for number in range(60):
        rows.append({"unit": f"u{number}", "place": "a", "day": number * 90, "kind": 0, "wh": 0})
    claimed = {"definition": "pure", "epsilon": "1/2"}
    asked = query(
        "count",
        by=["day"],
        sensitivity="global",
        guarantee=claimed,
        domain={"ordered": {"min": 0, "max": 60}},
    )
    plain = Small([], [asked], neighbors="add_remove", max_rows_per_unit=1).plain()
    plain["keys"] = {"day": {"range": [0, keys - 1]}}
    write_rows(tmp_path / "rows.parquet", rows)
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    public = release.run(str(spec), str(tmp_path / "out")).public
    page = (public / "report.html").read_text("utf-8")
    frame = release.open(public)["the_count"].to_pandas()
    looks_high = int((frame["low"] > 0).sum())
    # Of the cells that nobody is in most are surely 0, and of those with three persons fewer are.
    chances = release.open(public)["the_count"].to_pandas(chance_of_zero=True)["chance_of_zero"]
    assert ((chances >= 0) & (chances <= 1)).all()
    assert chances[frame["answer"] == 0].min() > 0.95
    assert f"Of the {looks_high:,} cells with an interval above 0 about " in page
    # Fewer cells say too little: nothing is said of them.
    plain["keys"] = {"day": {"range": [0, 999]}}
    plain["release"]["id"] = "fewer"
    spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    fewer = release.run(str(spec), str(tmp_path / "out")).public
    with pytest.raises(SpecError, match="it takes 5,000 cells"):
        release.open(fewer)["the_count"].to_pandas(chance_of_zero=True)
    assert "cells with an interval above 0" not in (fewer / "report.html").read_text("utf-8")
