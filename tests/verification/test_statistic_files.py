"""Files of mechanisms on statistics: written, proved again, and refused where they are forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import rfc8785

import release
from release.bundle.read import parse_any_mechanism
from release.bundle.report.summary import BY_STATISTIC, summarise
from release.bundle.tables.answers import FORMAT, check_released, released_bytes
from release.errors import SpecError, VerificationError
from release.pipeline import run_release
from release.queries.read import parse_spec
from release.spec.model import Spec
from release.verification import standalone
from release.verification.statistics import check_statistic
from release.verification.verifier import verify
from tests.queries.test_on_statistic import GLOBAL, KINDS
from tests.small import UNSIGNED, Row, Small, check_unmarked, query

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


def plain_of(public: Path, name: str) -> Plain:
    record = json.loads((public / "release.json").read_bytes())
    (entry,) = (one for one in record["queries"] if one["name"] == name)
    plain: Plain = json.loads((public / entry["mechanism_file"]["path"]).read_bytes())
    return plain


def checked(plain: Plain, spec: Spec, name: str) -> str:
    file = f"mechanisms/{plain['query']}.json"
    (query,) = (one for one in spec.released if one.name == name)
    return check_statistic(file, parse_any_mechanism(file, rfc8785.dumps(plain)), spec, query)


def test_everything_is_proved(public: Path) -> None:
    verdict = verify(public, None, UNSIGNED)
    assert verdict.complete
    for name in (plain["name"] for plain in QUERIES):
        told, profile = (line for line in verdict.proved if line.startswith(f"{name}: "))
        assert "for every table that fits the declaration, by " in told
        assert "the profile covers all that one unit can change, in up to 2 cells" in profile
    assert any("permute-and-flip (McKenna and Sheldon 2020)" in line for line in verdict.proved)


def test_the_second_verifier_proves_them_too(
    public: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert standalone.main([str(public), "--require", "none"]) in (0, 3)
    told = capsys.readouterr().out
    for name in FAMILIES:
        assert f"proved: {name}: the mechanism satisfies its guarantee" in told


def test_every_query_has_the_family_that_suits_it(public: Path) -> None:
    for name, family in FAMILIES.items():
        assert plain_of(public, name)["mechanism"] == family, name


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
    assert columns["sum"] == ["place", "answer", "noisy_sum"]
    assert columns["mean"] == ["place", "answer", "noisy_above", "noisy_below"]


FORGED: list[tuple[str, Plain, str]] = [
    ("units", {"spread": 1}, "spread"),
    ("accepted", {"spread": 1}, "spread"),
    ("accepted", {"ratio": "6786177901268885274"}, "ε"),
    ("accepted", {"ratio": "0"}, "ratio"),
    ("accepted", {"ratio": str(2**64)}, "ratio"),
    ("accepted", {"candidates": 3}, "inputs"),
    ("accepted", {"query": "another"}, "spec"),
    ("median", {"spread": 1}, "spread"),
    ("mean", {"spread": 20}, "spread"),
    ("mean", {"sums": 1}, "inputs"),
    ("of_two", {"ratio": "1"}, "ε"),
    ("of_two", {"mechanism": "modular"}, "schema"),
    ("sum", {"guarantee": {"definition": "pure", "epsilon": "2", "delta": "0"}}, "epsilon"),
    ("sum", {"guarantee": {"definition": "pure", "epsilon": "1", "delta": "0.1"}}, "delta: found"),
    ("tops", {"members": 1}, "members"),
    ("tops", {"touched": 2, "weight": 1}, "touched"),
    ("tops", {"counts": False}, "outputs"),
    ("tops", {"counts": False, "histogram": True}, "outputs"),
    ("histogram", {"histogram": False}, "outputs"),
    ("histogram", {"counts": True}, "integers"),
    ("histogram", {"ratio": "1"}, "ε"),
    ("tops", {"ratio": "1"}, "ε"),
    ("set_of_two", {"replaced": False}, "replaced"),
    ("set_of_two", {"weight": 2}, "weight"),
    ("peeled", {"categories": 5}, "categories"),
    ("peeled", {"mechanism": "top_canonical"}, "mechanism"),
    ("quarters", {"shares": ["0.25", "0.5"]}, "shares"),
    ("quarters", {"sublevels": 1}, "sublevels"),
    ("quarters", {"spread": 1}, "spread"),
    ("quarters", {"ratio": "1"}, "ε"),
    ("of_few", {"spread": 1}, "spread"),
    ("of_few", {"rows": 2}, "rows"),
    ("of_few", {"replaced": False}, "replaced"),
    ("of_few", {"block": 2}, "ε"),
    ("of_few", {"block": 6}, "blocks"),
    ("of_few", {"block": 0}, "schema"),
    ("of_few", {"shares": ["0.25", "0.5"]}, "shares"),
    ("of_few", {"candidates": 5}, "inputs"),
    ("of_few", {"ratio": "1"}, "ε"),
    ("in_blocks", {"block": 1}, "the least that satisfies"),
    ("half", {"spread": 2}, "spread"),
    ("units", {"cap": 5}, "a row for each state"),
    ("units", {"cap": 10**9}, "states"),
]


@pytest.mark.parametrize(("name", "change", "told"), FORGED)
def test_what_is_forged_is_refused(
    public: Path, spec: Spec, name: str, change: Plain, told: str
) -> None:
    plain = plain_of(public, name)
    checked(plain, spec, name)
    if "query" in change:
        # A file of another name is found by release.json, before it is read.
        plain |= {"spread": 9}
    with pytest.raises(VerificationError) as error:
        checked(plain | change, spec, name)
    message = str(error.value)
    assert told in message or "query" in change
    assert "\n" not in message


def test_what_is_proved_is_told_with_the_theorem() -> None:
    """Of a file by hand: the least ratio whose square times e is at least 1, in units of 2^-64."""
    asked = query("mode", name="own", mechanism="permute_and_flip", domain={"cyclic": 2}, **GLOBAL)
    small = Small(ROWS, [asked], max_rows_per_unit=1).plain()
    spec = parse_spec(json.dumps(small).encode())
    plain = {
        "schema": "dp-release/mechanism/v1",
        "query": "own",
        "guarantee": {"definition": "pure", "epsilon": "1", "delta": "0"},
        "mechanism": "permute_and_flip",
        "candidates": 2,
        "spread": 2,
        "ratio": "11188515852577165300",
    }
    assert checked(plain, spec, "own") == (
        "own: the mechanism satisfies pure ε = 1 for every table that fits the declaration, by "
        "permute-and-flip (McKenna and Sheldon 2020): scores move within a range of 2, and "
        "ratio^2 · e^ε is at least 1"
    )


def test_a_weight_moved_by_one_breaks_a_gap_table(public: Path, spec: Spec) -> None:
    plain = plain_of(public, "units")
    rows = [list(map(int, row)) for row in plain["weights"]]
    rows[-1][0], rows[-1][1] = rows[-1][0] - rows[-1][1], 2 * rows[-1][1]
    with pytest.raises(VerificationError):
        checked(plain | {"weights": [list(map(str, row)) for row in rows]}, spec, "units")


def test_noise_that_falls_too_fast_is_refused(public: Path, spec: Spec) -> None:
    plain = plain_of(public, "mean")
    noise = plain["noise"]
    tail = {"period": 1, "ratio": str(int(noise["right"]["ratio"]) - 2**50)}
    with pytest.raises(VerificationError, match="ε"):
        checked(plain | {"noise": noise | {"left": tail, "right": tail}}, spec, "mean")


def test_a_label_that_does_not_follow_from_the_sums_is_refused(
    public: Path, tmp_path: Path
) -> None:
    spec = parse_spec((public / "spec.yaml").read_bytes())
    (query,) = (one for one in spec.released if one.name == "mean")
    path = public / "data" / "mean.parquet"
    table = pq.read_table(path)
    moved = table.set_column(2, "noisy_above", [np.array(table["noisy_above"]) + 900])
    forged = tmp_path / "mean.parquet"
    pq.write_table(moved.cast(table.schema), forged, compression="zstd", use_dictionary=False)
    with pytest.raises(VerificationError):
        check_released("data/mean.parquet", forged, spec.release.id, query, 2)


IMPOSSIBLE = [
    ("tops", [[0, 0, 5, 4], [1, 0, 2, 1]], "a category twice"),
    ("tops", [[0, 1, 5, 4], [1, 0, 2, 3]], "counts that rise"),
    ("tops", [[0, 4, 5, 4], [1, 0, 2, 1]], "a code outside"),
    ("histogram", [[0, 1, 4, 5, 0, -1], [1, 0, 2, 3, 1, 1]], "not those of the largest counts"),
    ("histogram", [[1, 0, 5, 5, 0, -1], [1, 0, 2, 3, 1, 1]], "not those of the largest counts"),
    ("quarters", [[3, 2], [0, 0]], "quantiles that fall"),
    ("quarters", [[-1, 2], [0, 0]], "a code outside"),
]


@pytest.mark.parametrize(("name", "drawn", "told"), IMPOSSIBLE)
def test_what_no_mechanism_draws_is_refused(
    spec: Spec, name: str, drawn: list[list[int]], told: str, tmp_path: Path
) -> None:
    (query,) = (one for one in spec.released if one.name == name)
    keys, possible = (("a",), ("b",)), np.array(drawn, dtype=np.int64)
    labelled = np.clip(possible, 0, 3)
    path = tmp_path / "table.parquet"
    path.write_bytes(released_bytes(spec.release.id, query, keys, labelled))
    table = pq.ParquetFile(path).read()
    for column, values in zip(query.outcome_columns, possible.T, strict=True):
        place = table.schema.get_field_index(column)
        table = table.set_column(place, table.schema.field(place), [values])
    with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {"release_id": spec.release.id, "query": name, "format": FORMAT}
        )
    with pytest.raises(VerificationError) as error:
        check_released("data/table.parquet", path, spec.release.id, query, 2)
    assert told in str(error.value)


def test_more_than_a_million_rows_are_not_read(public: Path, spec: Spec) -> None:
    """A column of equal values takes a few bytes of a file, whatever the number of its rows."""
    (query,) = (each for each in spec.released if each.name == "mean")
    with pytest.raises(VerificationError, match="cells: found 1000001, expected at most 1000000"):
        check_released("data/mean.parquet", public, spec.release.id, query, 10**6 + 1)


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
    """Its mechanisms are public, so nothing waits in an auditor bundle."""
    for told in summarise(public).queries:
        assert told.exact == told.error == BY_STATISTIC
