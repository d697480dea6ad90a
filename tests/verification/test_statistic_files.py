"""Releases with noise on statistics: what their files hold, and what readers are told of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import release
from release.analysis.summary import BY_STATISTIC, summarise
from release.errors import SpecError
from release.queries.read import parse_spec
from release.spec.model import Spec
from release.street import run_release
from release.verification.verifier import verify
from tests.queries.test_on_statistic import GLOBAL, KINDS
from tests.small import UNSIGNED, Row, Small, check_unmarked, mechanism_of, query

Plain = dict[str, Any]

ROWS: list[Row] = [
    {"unit": f"quagzil-{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i}
    for i in range(60)
]
TOP = query("count", of="kind", domain={"cyclic": 4}, sensitivity="global") | {"kind": "top"}
QUARTERS = query("count", of="wh", sensitivity="global") | {
    "kind": "quantiles",
    "at": ["0.25", "3/4"],
}
TREE = {"mechanism": "quantile_tree", "at": [f"{j}/20" for j in range(1, 20)]}
TABLES = {name: {"mechanism": "gap_table"} for name in ("units", "rows")}
QUERIES = [
    TOP | {"name": "tops", "k": 2, "counts": True},
    TOP | {"name": "histogram", "k": 2, "histogram": True},
    TOP | {"name": "set_of_two", "k": 2, "mechanism": "top_canonical"},
    TOP | {"name": "peeled", "k": 2, "mechanism": "top_peeled"},
    QUARTERS | {"name": "quarters", "mechanism": "joint_quantiles"},
    QUARTERS | {"name": "of_few"},
    QUARTERS | {"name": "in_blocks", "domain": {"ordered": {"min": 0, "max": 99}}} | TREE,
    QUARTERS | {"name": "half", "at": ["1/2"]},
    # Named where units move between cells: permute-and-flip is charged less there.
    *(plain | {"name": name} | TABLES.get(name, {}) for name, plain in KINDS.items()),
    query("mode", name="of_two", domain={"cyclic": 2}, mechanism="two_categories", **GLOBAL),
    query(
        "mode",
        name="accepted",
        mechanism="permute_and_flip",
        domain={"cyclic": 2},
        **GLOBAL,
    ),
]
FAMILIES = {
    "units": "gap_table",
    "rows": "gap_table",
    "weight": "permute_and_flip",
    "median": "permute_and_flip",
    "sum": "noisy_sums",
    "mean": "noisy_sums",
    "of_two": "two_categories",
    "accepted": "permute_and_flip",
    "tops": "top_histogram",
    "histogram": "top_histogram",
    "set_of_two": "top_canonical",
    "peeled": "top_peeled",
    "quarters": "joint_quantiles",
    "of_few": "quantile_tree",
    "in_blocks": "quantile_tree",
    "half": "permute_and_flip",
}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of every kind that can have its noise on the statistic, one row a unit."""
    place = tmp_path_factory.mktemp("statistics")
    return run_release(Small(ROWS, QUERIES, max_rows_per_unit=1).write(place), place).public


@pytest.fixture(scope="module")
def spec(public: Path) -> Spec:
    return parse_spec((public / "spec.yaml").read_bytes())


def test_everything_is_proved(public: Path) -> None:
    verdict = verify(public, None, UNSIGNED)
    assert verdict.status == 0
    proved = [own.about for own in verdict.findings if own.check == "mechanism.guarantee"]
    assert set(proved) == {plain["name"] for plain in QUERIES}


def test_every_query_has_the_family_that_suits_it(public: Path) -> None:
    for name, family in FAMILIES.items():
        assert mechanism_of(public, name).family == family, name


def test_no_bundle_holds_a_score(public: Path) -> None:
    """Of a marked table nothing but drawn integers leaves, and there is no other bundle."""
    check_unmarked(public)
    assert not (public.parent.parent / "auditor").exists()
    columns = {name: pq.read_schema(public / "data" / f"{name}.parquet").names for name in FAMILIES}
    assert columns["units"] == columns["median"] == ["place", "answer", "answer_code"]
    assert columns["tops"] == [
        *("place", "answer_1", "answer_2", "answer_code_1", "answer_code_2"),
        *("noisy_count_1", "noisy_count_2"),
    ]
    assert columns["histogram"] == [
        *("place", "answer_1", "answer_2", "answer_code_1", "answer_code_2"),
        *(f"noisy_count_{kind}" for kind in range(4)),
    ]
    assert columns["quarters"] == [
        *("place", "answer_0_25", "answer_0_75", "answer_code_0_25", "answer_code_0_75"),
    ]
    assert columns["sum"] == ["place", "answer", "low", "high", "noisy_sum"]
    assert columns["mean"] == ["place", "answer", "low", "high", "noisy_above", "noisy_below"]


def test_a_histogram_is_read_and_estimated_by_category(public: Path) -> None:
    frame = release.open(public)["histogram"].histogram()
    assert list(frame.columns) == [
        *("place", "kind", "noisy_count", "low", "high", "standard_error"),
    ]
    table = pq.read_table(public / "data" / "histogram.parquet").to_pylist()
    noisy = [row[f"noisy_count_{kind}"] for row in table for kind in range(4)]
    assert frame["noisy_count"].tolist() == noisy
    assert frame["kind"].tolist() == ["0", "1", "2", "3"] * 2
    estimates = release.estimate(public, "histogram")
    total = estimates.sum()
    # The noise of eight counts, of variance 2ρ/(1 - ρ)² each, ρ = e^(-1/2): a unit moves two.
    deviation = (8 * 2 * np.exp(-0.5)) ** 0.5 / (1 - np.exp(-0.5))
    assert total.method == "noise"
    assert abs(total.low - (sum(noisy) - 1.96 * deviation)) < 0.1 * deviation
    difference = estimates.difference(("a", "0"), ("b", "3"))
    assert difference.low <= noisy[0] - noisy[7] <= difference.high
    opened = release.open(public)
    assert "low" not in opened["histogram"].to_pandas()
    with pytest.raises(SpecError, match="histogram: true"):
        opened["tops"].histogram()
    with pytest.raises(SpecError, match="selected by their statistic"):
        release.estimate(public, "tops")


def test_the_intervals_of_a_histogram_hold_the_true_counts(tmp_path: Path) -> None:
    """Of 240 counts with independent noise, at 95 in 100, all but a few hold the truth."""
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 120, "wh": 1}
        for i in range(960)
    ]
    wide = TOP | {"name": "wide", "k": 3, "histogram": True, "domain": {"cyclic": 120}}
    small = Small(rows, [wide], max_rows_per_unit=1)
    frame = release.open(run_release(small.write(tmp_path), tmp_path).public)["wide"].histogram()
    true = 8 * (frame["kind"].astype(int) % 2 == (frame["place"] == "b").astype(int))
    held = ((frame["low"] <= true) & (true <= frame["high"])).mean()
    # Five standard errors below 0.95.
    assert held > 0.95 - 5 * (0.05 * 0.95 / 240) ** 0.5
    assert (frame["noisy_count"] < 0).any()
    assert (frame["low"] >= 0).all()


def test_open_gives_intervals_of_sums(public: Path) -> None:
    opened = release.open(public)
    # Each is of what was asked, and not of the answers that the domain allows: 391 for at most 17.
    for name, held in (("sum", "noisy_sum"), ("mean", "estimate"), ("mean_on_grid", "estimate")):
        frame = opened[name].to_pandas()
        assert (frame["low"] <= frame[held]).all()
        assert (frame[held] <= frame["high"]).all()
        assert (frame["standard_error"] > 0).all()
    assert "low" not in opened["units"].to_pandas()


REFUSED: list[tuple[Plain, str]] = [
    (query("mode", noise="on_statistic"), "sensitivity: global"),
    (query("mode", weight="wh", **GLOBAL), "clamp: [lo, hi]"),
    (query("mode", mechanism="modular", **GLOBAL), "noise: on_answer"),
    (query("mode", mechanism="permute_and_flip"), "write best"),
    (query("binned", statistic="max", **GLOBAL), "rank: "),
    (query("binned", statistic="median", rank=3, **GLOBAL), "leave it out"),
    (
        query(
            "mode",
            **GLOBAL,
            guarantee={"definition": "approximate", "epsilon": "0", "delta": "0.1"},
        ),
        "more than 0",
    ),
    (query("mode", loss="error_rate", **GLOBAL), "leave it out"),
    (
        query("binned", by=["noisy_sum"], **GLOBAL),
        "queries[0].by[0]",
    ),
    (QUARTERS | {"at": ["0.123456789012345"]}, "six digits"),
    (TOP | {"k": 4}, "k must be below"),
    (TOP | {"k": 2, "counts": True, "histogram": True}, "leave out counts"),
    (TOP | {"k": 2, "histogram": True, "domain": {"cyclic": 1001}}, "at most 1,000 categories"),
    (TOP | {"k": 2, "histogram": True, "mechanism": "top_peeled"}, "mechanism"),
    (query("mode", mechanism="gap_table", weight="wh", clamp=[-1, 1], **GLOBAL), "gap_table"),
    (query("mode", count="rows", weight="wh", clamp=[0, 1]), "leave count out"),
    (query("mode", clamp=[0, 1]), "add weight"),
    (query("mode", weight="wh", clamp=[3, 1]), "lo below hi"),
]


@pytest.mark.parametrize(("plain", "told"), REFUSED)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, plain: Plain, told: str) -> None:
    with pytest.raises(SpecError) as error:
        run_release(Small(ROWS, [plain]).write(tmp_path), tmp_path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_summary_sends_readers_to_the_report(public: Path) -> None:
    """Its mechanisms are public, so nothing waits in an auditor's folder."""
    for told in summarise(public).queries:
        assert told.exact == told.error == BY_STATISTIC
