"""Acceptance: judged from mechanisms alone, alike by plan, run and verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from release.errors import DesignError, SpecError
from release.planning.plan import make_plan
from release.queries.read import read_spec
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query
from tests.tabulated import Tabulated, plain_spec

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]

STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}

QUERIES = [
    query("count", sensitivity="global"),
    query("binned", sensitivity="global", units="Wh", bins={"low": 0, "high": 60, "count": 6}),
    query("mode", sensitivity="global"),
    query("mode", name="by_units", **STATISTIC),
    query("binned", name="total", **STATISTIC),
    query("binned", name="median", statistic="median", **STATISTIC),
    query("mode", name="seen"),
    query("mode", name="nominal", sensitivity="global", of="place", domain={"nominal": ["a", "b"]}),
]


def accepting(entries: list[Any], folder: Path, rows: list[Row] = ROWS) -> Path:
    path = Small(rows, QUERIES).write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["acceptance"] = entries
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def test_figures_are_those_of_the_plan(tmp_path: Path) -> None:
    entries = [
        *("the_count: p95 <= 3", "the_count: mean_error <= 0.1", "the_count: absolute<=9"),
        *("the_binned: p95 <= 5/2", "the_binned: mean_error <= 100", "the_mode: p95 <= 2"),
        *("nominal: error_rate <= 0.3", "by_units: p95 <= 1", "total: p95 <= 1000"),
        "median: p95 <= 100",
    ]
    plan = make_plan(read_spec(accepting(entries, tmp_path)))
    by_name = {planned.query.name: planned.chosen for planned in plan.queries}
    near = {planned.query.name: planned.nearness.near for planned in plan.on_statistic}
    count, binned = by_name["the_count"], by_name["the_binned"]
    expected = [
        *(count.within, float(count.accuracy.mean_absolute), float(count.accuracy.mean_absolute)),
        # A bin is 10 Wh wide, and errors are in Wh.
        *(10 * (binned.within or 0), 10 * float(binned.accuracy.mean_absolute)),
        *(by_name["the_mode"].within, 1 - float(by_name["nominal"].accuracy.p_exact)),
        *(near["by_units"], near["total"], near["median"]),
    ]
    assert [float(one.found) for one in plan.acceptance] == pytest.approx(expected, abs=1e-11)
    for one in plan.acceptance:
        assert one.is_met is (one.found <= one.entry.cap)
    assert {one.is_met for one in plan.acceptance} == {True, False}
    missed = [one.refusal for one in plan.acceptance if not one.is_met]
    assert list(plan.refusals) == missed


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"the_count": "p95 <= 5"}, "put the entry in quotes"),
        ("the_count p95 <= 5", "write what is capped"),
        ("the_cuont: p95 <= 5", "did you mean 'the_count'"),
        ("the_count: p96 <= 5", "write a figure and its cap"),
        ("the_count: p95 < 5", "write a figure and its cap"),
        ("the_count: p95 <= -5", "not an exact number"),
        ("the_count place [x]: p95 <= 5", "'the_count' is a query; name it alone"),
        ("seen: p95 <= 5", "the accuracy of 'seen' depends on the table"),
        ("by_units: error_rate <= 0.1", "has the figure p95"),
        ("nominal: mean_error <= 1", "have no distances"),
    ],
)
def test_entries_that_cannot_be_meant(tmp_path: Path, entry: object, says: str) -> None:
    with pytest.raises(SpecError, match=r"acceptance\[1\]: ") as refused:
        read_spec(accepting(["the_count: p95 <= 5", entry], tmp_path))
    assert says in str(refused.value)


def test_a_missed_entry_is_refused_before_a_table_is_looked_at(tmp_path: Path) -> None:
    """With one table, with its neighbor, and with none the refusal is the same."""
    refusals = []
    for rows in (ROWS, ROWS[:-1], None):
        path = accepting(["the_count: p95 <= 9", "by_units: p95 <= 1"], tmp_path, rows or ROWS)
        if rows is None:
            (tmp_path / "rows.parquet").unlink()
        with pytest.raises(DesignError) as refused:
            run_release(path, tmp_path / "out")
        refusals.append(str(refused.value))
        assert not list((tmp_path / "out").rglob("*.parquet"))
    assert len(set(refusals)) == 1
    assert refusals[0].startswith("acceptance[1]: by_units: p95 <= 1: missed, ")
    assert "raise epsilon" in refusals[0]


def test_a_release_that_keeps_what_it_accepts_is_verified(tmp_path: Path) -> None:
    entries = ["the_count: mean_error <= 3", "by_units: p95 <= 100"]
    released = run_release(accepting(entries, tmp_path), tmp_path / "out")
    assert verify(released.public, released.auditor, UNSIGNED).status == 0


def tabulated(entries: list[str], folder: Path) -> Path:
    plain = {
        "name": "pl",
        "table": "persons",
        "hierarchy": {"file": "areas.csv", "levels": ["state", "tract"]},
        "attributes": {"race": ["a", "b"], "size": [1, 2]},
        "publish": {"state": [[], ["race", "size"]], "tract": [[]]},
    }
    rows = [{"person": f"p{i}", "tract": "t1", "race": "a", "size": 1} for i in range(20)]
    files = {"areas.csv": [["state", "tract"], ["s", "t1"], ["s", "t2"]]}
    spec = plain_spec([plain], neighbors="add_remove", budget=("2", "0")) | {"acceptance": entries}
    return Tabulated(spec, rows, files).write(folder)


def test_tables_of_a_tabulation(tmp_path: Path) -> None:
    entries = ["pl state [size, race]: p95 <= 100", "pl tract []: p95 <= 1"]
    spec_file = read_spec(tabulated(entries, tmp_path))
    plan = make_plan(spec_file)
    (pl,) = plan.tabulations
    margins = {(one.level, one.margin): one.margin_of_error for one in pl.tables}
    expected = [margins["state", ("race", "size")], margins["tract", ()]]
    assert [float(one.found) for one in plan.acceptance] == expected
    assert [one.is_met for one in plan.acceptance] == [True, False]
    with pytest.raises(DesignError, match=r"acceptance\[1\]: pl tract \[\]: p95 <= 1: missed"):
        run_release(tmp_path / "spec.yaml", tmp_path / "out")
    released = run_release(tabulated(entries[:1], tmp_path), tmp_path / "out")
    assert verify(released.public, None, UNSIGNED).status == 0
    for entry, says in (
        ("pl: p95 <= 1", "name a table of it"),
        ("pl county []: p95 <= 1", "'county' is not there"),
        ("pl tract [race]: p95 <= 1", "is not published at 'tract'"),
        ("pl tract []: mean_error <= 1", "has the figure p95"),
    ):
        with pytest.raises(SpecError, match=r"acceptance\[0\]: ") as refused:
            read_spec(tabulated([entry], tmp_path))
        assert says in str(refused.value)
