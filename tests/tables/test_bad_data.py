"""Bad data is the normal case: put right by the declaration, value by value; never told."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from release.queries.read import read_spec
from tests.answers import answer, load
from tests.small import Row, Small, query, sensitivities, table_of

QUERIES = [
    query("count", by=["place"]),
    query("mode", by=["place"]),
    query("binned", statistic="sum", by=["place"], clamp=[-5, 15]),
]


def answers(path: Path) -> list[list[int]]:
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        return [one.codes.tolist() for one in answer(tables, spec_file)]


def written(rows: list[Row], folder: Path, queries: list[Any] | None = None) -> Path:
    return Small(rows, queries or QUERIES).write(folder)


def row(unit: str | None, place: str | None = "a", **values: Any) -> Row:
    return {"unit": unit, "place": place, "day": 1, "kind": 2, "wh": 3, **values}


def test_a_wrong_type_three_million_rows_down_is_missing(tmp_path: Path) -> None:
    """One row among three million changes what it says itself, and nothing else."""
    good, bad = "u1,a,1,2,3\n", "u2,a,1,2,secret\n"
    lines = "unit,place,day,kind,wh\n" + good * 3_000_000 + bad + good * 10
    (tmp_path / "rows.csv").write_text(lines)
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(Small([], [query("count", by=["place"], of="unit"), query(
        "count", name="known", by=["place"], of="unit", where="wh IS NOT NULL"
    )]).plain("rows.csv")))  # fmt: skip
    assert answers(spec) == [[2, 0], [1, 0]]


def test_missing_units_keys_and_values(tmp_path: Path) -> None:
    """Left out: nobody to protect, nowhere to count, nothing to add."""
    rows = [row("u"), row(None), row("v", None), row("w", kind=None), row("x", wh=None)]
    assert answers(written(rows, tmp_path)) == [[3, 0], [2, 0], [1, 0]]


def test_values_beyond_every_bound_are_clamped(tmp_path: Path) -> None:
    rows = [row("u", wh=2**62 - 1), row("v", wh=1 - 2**62), row("w", "b", wh=2**61)]
    queries = [*QUERIES[:2], query("binned", statistic="sum", by=["place"], clamp=[-5, 15])]
    assert answers(written(rows, tmp_path, queries))[2] == [3, 4]


@pytest.mark.parametrize("rows", [[], [row("u")], [row(None)]])
def test_tables_of_nobody_and_of_one(rows: list[Row], tmp_path: Path) -> None:
    """Every cell is answered, and a law has to hide the one."""
    spec_file = read_spec(written(rows, tmp_path))
    with load(spec_file) as tables:
        answered = answer(tables, spec_file)
    assert [one.codes.size for one in answered] == [2, 2, 2]
    assert all(found.shifts for found in sensitivities(answered, spec_file))


def test_all_ties_go_to_the_smallest_code(tmp_path: Path) -> None:
    rows = [row(f"u{i}", kind=3 - i % 4) for i in range(8)]
    assert answers(written(rows, tmp_path))[1] == [0, 0]


def test_unknown_categories_are_nobodys(tmp_path: Path) -> None:
    rows = [row("u", kind=99), row("v", kind=-1), row("w", kind=1), row("x", "unheard of")]
    assert answers(written(rows, tmp_path))[:2] == [[3, 0], [1, 0]]


def test_keys_differ_by_case_and_blanks(tmp_path: Path) -> None:
    """A key is what it is: 'a', 'A', 'a ' and ' a' are four groups."""
    rows = [row("u", "a"), row("v", "A"), row("w", "a "), row("x", " a"), row("y", "a")]
    path = written(rows, tmp_path)
    plain = yaml.safe_load(path.read_text())
    plain["keys"]["place"] = ["a", "A", "a ", " a"]
    path.write_text(yaml.safe_dump(plain))
    assert answers(path)[0] == [1, 1, 2, 1]


def test_equal_rows_of_a_unit_count_as_rows(tmp_path: Path) -> None:
    """A meter that sends a reading twice: rows are counted up to the bound, units once."""
    rows = [row("u")] * 5 + [row("v")]
    queries = [query("count"), query("count", name="units", of="unit")]
    assert answers(written(rows, tmp_path, queries)) == [[4, 0], [2, 0]]


@pytest.mark.parametrize("name", ["select", "from", "order", "Group", "ünit", "a b", 'quo"te'])
def test_columns_may_have_any_name(name: str, tmp_path: Path) -> None:
    rows = table_of([row("u"), row("v"), row("w", "b")])
    renamed = rows.rename_columns([name if c == "place" else c for c in rows.schema.names])
    pq.write_table(renamed, tmp_path / "rows.parquet")
    plain = Small([], [query("count", by=[name]), query("mode", by=[name])]).plain()
    columns = plain["tables"]["rows"]["columns"]
    columns[name] = columns.pop("place")
    plain["keys"][name] = plain["keys"].pop("place")
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    assert answers(path) == [[2, 1], [2, 2]]


def clock(zone: str | None, folder: Path) -> Path:
    """Half-hourly readings over the night in which clocks go back."""
    night = datetime.datetime(2013, 10, 27, tzinfo=datetime.UTC)
    times = [night + datetime.timedelta(minutes=30 * i) for i in range(8)]
    stamps = pa.array(times, pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us", tz=zone))
    rows = table_of([row("u") for _ in times]).append_column("ts", stamps)
    pq.write_table(rows, folder / "rows.parquet")
    plain = Small([], [query("mode", by=[], of="hour", domain={"cyclic": 24})]).plain()
    plain["tables"]["rows"]["columns"]["ts"] = "timestamp"
    plain["tables"]["rows"]["derive"] = {"hour": {"type": "integer", "sql": "hour(ts)"}}
    plain["privacy"]["max_rows_per_unit"] = 8
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def test_times_with_a_zone_are_instants_and_plain_ones_are_not_shifted(tmp_path: Path) -> None:
    """By the clocks of London four of the eight readings lie in hour 1."""
    assert answers(clock("Europe/London", tmp_path)) == [[0]]
    assert answers(clock(None, tmp_path)) == [[0]]
