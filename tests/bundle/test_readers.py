"""What other programs read in a released file: title, unit, scale and interval of each column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars

import release
from release.bundle.tables.parquet import FACTS
from tests.small import Small, query
from tests.tabulations.files.folders import census

ROWS = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 9} for i in range(20)
]
READ = "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = ?"


def seen_by_each(file: Path) -> list[dict[str, Any]]:
    """The facts of the columns as pandas, Polars and DuckDB give them."""
    (row,) = duckdb.execute(READ, [str(file), FACTS]).fetchall()
    kept = polars.read_parquet_metadata(file)[FACTS]
    return [
        pd.read_parquet(file).attrs["fields"],
        *(json.loads(t)["fields"] for t in (kept, row[0])),
    ]


def test_pandas_polars_and_duckdb_see_title_unit_scale_and_interval(tmp_path: Path) -> None:
    asked = [
        query("count", sensitivity="global", title="homes – all", units="homes"),
        query("on_grid", sensitivity="global", units="kWh"),
    ]
    public = release.run(Small(ROWS, asked).write(tmp_path), tmp_path / "out").public
    promise = "95% confidence, at every true answer (at most 3 rows read of each unit)"
    answer = {"title": "homes – all", "unit": "homes", "scale": "ratio"}
    ends = {
        "low": {"title": "lower end of the 95 % interval", "interval": "0.95"},
        "high": {"title": "upper end of the 95 % interval", "interval": "0.95"},
    }
    count = {"answer": answer | {"interval": f"at most ±5 homes: {promise}"}, **ends}
    assert seen_by_each(public / "data" / "the_count.parquet") == [count] * 3
    answer = {"title": "the on grid", "unit": "kWh", "scale": "interval"}
    grid = {"answer": answer | {"interval": f"at most ±10 kWh: {promise}"}, **ends}
    assert seen_by_each(public / "data" / "the_on_grid.parquet") == [grid] * 3
    # The rows are read as ever.
    frame = polars.read_parquet(public / "data" / "the_count.parquet")
    assert frame.columns == ["place", "answer", "low", "high", "answer_code"]
    assert frame["place"].to_list() == ["a", "b"]


def test_the_ends_of_intervals_say_of_how_many_cases(tmp_path: Path) -> None:
    folder = census(tmp_path / "public")
    (tabulation,) = folder.tabulations
    file = tabulation.made.levels[-1].file
    seen = seen_by_each(folder.public / "data" / f"{file}.parquet")
    assert seen[0] == seen[1] == seen[2]
    facts = seen[0]
    assert (facts["low"]["interval"], facts["high"]["interval"]) == ("0.95", "0.95")
    assert "interval" not in facts["answer"]
    assert facts["low"]["title"] == "lower end of the 95 % interval"
