"""``dp-release init`` and ``plan`` with tabulations: what is printed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release.planning.plan import make_plan
from release.queries.read import read_spec
from tests.cli.test_main import run
from tests.tabulations.planning.small import BOTH, write_public, written

CROSSED: dict[str, list[list[str]]] = {"county": [["sex"], ["age"]], "tract": [["sex"]]}


def test_a_plan_shows_each_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec, page = written(tmp_path, CROSSED), tmp_path / "plan.html"
    code, printed, _ = run(capsys, "plan", spec, "--html", page)
    assert code == 0
    (planned,) = make_plan(read_spec(spec)).tabulations
    lines = printed.splitlines()
    heads = [
        "pl",
        "margin",
        "cells",
        "measured with",
        "standard error",
        "in 95 of 100",
        "gain if left out",
    ]
    assert lines[0].split("  ")[0] == "pl"
    assert all(head in lines[0] for head in heads)
    html = page.read_text()
    for line, table in zip(lines[1:], planned.tables, strict=False):
        assert line.startswith(table.level)
        texts = [table.text, f" {table.cells} ", f"{table.error:.4g} persons"]
        assert table.gain is not None
        texts += [f"{table.gain:.3f}"] if table.gain else []
        assert all(text in line for text in texts)
        assert f"{table.error:.4g} persons" in html
    best = f"geometric {planned.strategy.objective:.4g} (best found)"
    assert f"pl: mean standard error of the published tables: {best}\n" in printed
    assert best in html
    assert "charged together: ε = 2 of 2, δ = 0 of 0, composed exactly" in printed


def test_a_plan_is_plain_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = written(tmp_path, {"tract": [[], ["sex"]]}, delta="0.000001")
    plain = json.loads(run(capsys, "plan", spec, "--json")[1])
    (tabulation,) = plain["tabulations"]
    assert tabulation["name"] == "pl"
    assert tabulation["units"] == "persons"
    assert [one["noise"] for one in tabulation["strategies"]] == ["geometric", "gaussian"]
    geometric, gaussian = tabulation["strategies"]
    assert geometric["gap"] is None
    assert 0 <= gaussian["gap"] < 1e-2
    assert [table["margin"] for table in tabulation["tables"]] == [[], ["sex"]]
    assert {table["published"] for table in tabulation["tables"]} == {True}
    assert plain["queries"] == []


def test_leaving_one_out_is_searched_when_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    publish = {"county": [["sex"], ["age"]], "tract": [["sex", "age"], []]}
    spec = written(tmp_path, publish, delta="0.000001")
    printed = run(capsys, "plan", spec)[1]
    assert "gain if left out" not in printed
    assert "pl: plan --drop-one searches for what is gained" in printed
    assert "gain if left out" in run(capsys, "plan", spec, "--drop-one")[1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("plan", "--epsilon-for", "absolute <= 2"), "queries: none"),
        (("plan", "--delta-for", "absolute <= 2"), "queries: none"),
        (("plan", "--jobs", "2"), "--jobs: is for the searches of --drop-one"),
        (
            ("plan", "--epsilon-for", "absolute <= 2", "--drop-one"),
            "--drop-one are for plain plans",
        ),
        (("compare", "pl"), "QUERY: the spec has no queries"),
    ],
)
def test_options_without_a_meaning_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    command, *rest = options
    code, printed, errors = run(capsys, command, written(tmp_path, BOTH), *rest)
    assert code != 0
    assert printed == ""
    (line,) = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert reason in line


def test_init_writes_a_tabulation_that_plan_reads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_public(tmp_path)
    spec = tmp_path / "spec.yaml"
    files: list[str | Path] = [
        "--hierarchy",
        tmp_path / "areas.csv",
        "--attribute",
        f"sex={tmp_path / 'sex.csv'}",
    ]
    code, printed, _ = run(capsys, "init", tmp_path / "persons.parquet", *files, "--out", spec)
    assert code == 0
    assert "CHOOSE" in printed
    code, printed, told = run(capsys, "plan", spec)
    # As a run would end: its words are not written yet.
    assert code == 2
    assert "persons  margin" in printed
    assert "error: release.title" in told


def test_attributes_need_a_hierarchy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_public(tmp_path)
    table = tmp_path / "persons.parquet"
    code, printed, errors = run(capsys, "init", table, "--attribute", "sex=sex.csv")
    assert code != 0
    assert printed == ""
    assert "error: --attribute: is for tables that add up; give --hierarchy too" in errors
