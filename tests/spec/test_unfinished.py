"""A spec with something left to write is planned, and never published."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from release.queries.read import parse_spec
from release.spec.refusals.unfinished import TODO, check_finished, unfinished
from tests.cli.test_main import run
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]


def test_the_mark_is_found_wherever_text_can_stand() -> None:
    plain = Small([], [query("count", title=f"Homes, {TODO}", where=f"place <> '{TODO}'")]).plain()
    plain["release"]["contact"] = TODO
    plain["keys"]["place"] = ["a", TODO]
    spec = parse_spec(yaml.safe_dump(plain).encode())
    assert unfinished(spec) == (
        "release.contact",
        "keys.place[1]",
        "queries[0].title",
        "queries[0].where",
    )
    check_finished(parse_spec(yaml.safe_dump(Small([], [query("count")]).plain()).encode()))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_starting_spec_is_planned_and_not_run(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its placeholders are within what ``best`` reaches."""
    table = tmp_path / f"homes.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"home_id": ["h1", "h2"], "trade": ["a", "b"]}), table)
    else:
        table.write_text("home_id,trade\nh1,a\nh2,b\n")
    spec, out = tmp_path / "spec.yaml", tmp_path / "out"
    assert run(capsys, "init", table, "--unit", "home_id", "--out", spec)[0] == 0
    status, printed, _ = run(capsys, "plan", spec, "--json")
    assert status == 2
    plan = json.loads(printed)
    assert plan["queries"][0]["mechanism"] == "integer"
    fields = [told.split(":")[0] for told in plan["refusals"]]
    assert fields == ["release.title"]
    told = run(capsys, "plan", spec)[2]
    assert f"error: release.title: says {TODO}; write what is meant" in told
    status, printed, errors = run(capsys, "run", spec, "--out", out)
    assert status == 2
    assert printed == ""
    line = errors.splitlines()[-1]
    assert line.startswith(f"error: release.title: says {TODO}; write what is meant")
    assert not out.exists()
    spec.write_text(spec.read_text("utf-8").replace(TODO, "said"), "utf-8")
    assert json.loads(run(capsys, "plan", spec, "--json")[1])["refusals"] == []
    assert run(capsys, "run", spec, "--out", out)[0] == 0


def test_a_run_over_a_table_with_the_mark_in_its_rows_is_no_unfinished_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row | {"unit": TODO} for row in ROWS]
    spec = Small(rows, [query("count", sensitivity="global")]).write(tmp_path)
    assert run(capsys, "run", spec, "--out", tmp_path / "out")[0] == 0
