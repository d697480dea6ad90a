"""Where tables may lie: globs, partitioned folders, database files; and what is refused of them."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from release.errors import DataError, SpecError
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.tables.duckdb import Engine, Tables
from tests.answers import answer, load
from tests.small import Row, Small, query, table_of

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 3 % 2, "kind": i % 4, "wh": i}
    for i in range(12)
]
QUERIES = [query("count", by=["place", "day"]), query("binned", statistic="sum", name="energy")]


def spec_for(folder: Path, path: str, **table: Any) -> Path:
    plain = Small(ROWS, QUERIES).plain(path)
    plain["tables"]["rows"] |= table
    written = folder / "spec.yaml"
    written.write_text(yaml.safe_dump(plain), "utf-8")
    return written


def declared(folder: Path, path: str, columns: dict[str, str], **table: Any) -> SpecFile:
    """A spec over other columns, whose only query counts units."""
    plain = Small([], [query("count", of="unit", by=[])]).plain(path)
    plain["keys"] = {}
    plain["tables"]["rows"] |= {"columns": columns, **table}
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    return read_spec(folder / "spec.yaml")


def answers(path: Path) -> list[list[int]]:
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        return [one.codes.tolist() for one in answer(tables, spec_file)]


@pytest.fixture
def expected(tmp_path: Path) -> list[list[int]]:
    folder = tmp_path / "plain"
    folder.mkdir()
    return answers(Small(ROWS, QUERIES).write(folder))


def partitioned(root: Path, key: str = "day") -> None:
    """One folder a day, the day in the folder's name only."""
    for day in (1, 2):
        folder = root / f"{key}={day}" / "more"
        folder.mkdir(parents=True)
        table = table_of([row for row in ROWS if row["day"] == day]).drop_columns(["day"])
        pq.write_table(table, folder / "part-0.parquet")


def test_a_partitioned_folder_is_one_table(tmp_path: Path, expected: list[list[int]]) -> None:
    partitioned(tmp_path / "a=b" / "readings")
    assert answers(spec_for(tmp_path, "a=b/readings")) == expected


def test_dates_in_the_names_of_folders(tmp_path: Path) -> None:
    for day in ("2024-01-05", "2024-01-06"):
        folder = tmp_path / "readings" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(table_of(ROWS).drop_columns(["day"]), folder / "part.parquet")
    path = spec_for(tmp_path, "readings")
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["columns"]["day"] = "date"
    plain["keys"]["day"] = [datetime.date(2024, 1, 5), datetime.date(2024, 1, 7)]
    path.write_text(yaml.safe_dump(plain))
    assert answers(path)[0] == [5, 0, 5, 0]


@pytest.mark.parametrize(
    "value",
    ["monday", "1.5", "", "a=b=c", "%FF", "\udcff", "%", "__HIVE_DEFAULT_PARTITION__", "2e0"],
)
def test_a_folder_whose_name_has_another_type_is_missing(value: str, tmp_path: Path) -> None:
    partitioned(tmp_path / "readings")
    (tmp_path / "readings" / "day=2").rename(tmp_path / "readings" / f"day={value}")
    path = spec_for(tmp_path, "readings")
    counts, _ = answers(path)
    assert counts == [4, 0, 4, 0]
    with Tables(read_spec(path)) as tables:
        days = tables.rows('SELECT DISTINCT day FROM "given rows" ORDER BY ALL', "rows")
        assert days.column("day").to_pylist() == [1, None]
        told = tables.quality("rows").faults
    is_missing = value in {"", "__HIVE_DEFAULT_PARTITION__"}
    assert told.get(("not a integer", "day"), 0) == (0 if is_missing else 4)


@pytest.mark.parametrize("value", ["02", "%32", "2.0", "+2"])
def test_a_folder_may_write_an_integer_as_a_text_does(
    value: str, tmp_path: Path, expected: list[list[int]]
) -> None:
    partitioned(tmp_path / "readings")
    (tmp_path / "readings" / "day=2").rename(tmp_path / "readings" / f"day={value}")
    assert answers(spec_for(tmp_path, "readings")) == expected


def test_folders_of_different_partitions_are_refused(tmp_path: Path) -> None:
    partitioned(tmp_path / "readings")
    partitioned(tmp_path / "readings", key="week")
    with pytest.raises(SpecError, match="different partitions"):
        answers(spec_for(tmp_path, "readings"))


def database(path: Path) -> None:
    rows = table_of(ROWS)
    with duckdb.connect(str(path)) as connection:
        connection.register("incoming", rows)
        connection.execute('CREATE TABLE "select" AS FROM incoming')
        connection.execute('CREATE VIEW seen AS SELECT * FROM "select"')
        connection.execute("CREATE TABLE made (unit VARCHAR, wh AS (1 // length(unit)))")


def test_a_table_of_a_database_file(tmp_path: Path, expected: list[list[int]]) -> None:
    database(tmp_path / "utility.duckdb")
    before = (tmp_path / "utility.duckdb").read_bytes()
    assert answers(spec_for(tmp_path, "utility.duckdb", relation="select")) == expected
    assert (tmp_path / "utility.duckdb").read_bytes() == before
    assert sorted(p.name for p in tmp_path.glob("utility*")) == ["utility.duckdb"]


def test_a_table_of_a_schema_of_a_database_file(tmp_path: Path, expected: list[list[int]]) -> None:
    database(tmp_path / "utility.duckdb")
    with duckdb.connect(str(tmp_path / "utility.duckdb")) as connection:
        connection.execute("CREATE SCHEMA meters")
        connection.execute('CREATE TABLE meters.readings AS FROM "select"')
    assert answers(spec_for(tmp_path, "utility.duckdb", relation="meters.readings")) == expected
    with pytest.raises(SpecError, match=r"known are made, meters.readings, select"):
        answers(spec_for(tmp_path, "utility.duckdb", relation="elsewhere.rows"))


@pytest.mark.parametrize(
    ("mark", "kind"),
    [("_delta_log/0.json", "a Delta"), ("metadata/v1.metadata.json", "an Iceberg")],
)
def test_a_table_format_is_never_read_as_loose_files(mark: str, kind: str, tmp_path: Path) -> None:
    """Its folder holds files that are not of the table any more."""
    folder = tmp_path / "readings"
    (folder / mark).parent.mkdir(parents=True)
    (folder / mark).write_text("{}", "utf-8")
    pq.write_table(table_of(ROWS), folder / "part-0.parquet")
    with pytest.raises(SpecError, match=rf"path: {kind} table, of which some files are not"):
        answers(spec_for(tmp_path, "readings"))


def test_a_database_file_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    database(tmp_path / "utility.duckdb")
    with pytest.raises(SpecError, match=r"tables\.rows\.relation: 'selec' is not there; did you"):
        answers(spec_for(tmp_path, "utility.duckdb", relation="selec"))
    with pytest.raises(SpecError, match=r"tables\.rows\.relation: a database file"):
        answers(spec_for(tmp_path, "utility.duckdb"))
    # What is computed when it is read could fail on one row.
    with pytest.raises(SpecError, match=r"tables\.rows\.relation: 'seen' is computed"):
        answers(spec_for(tmp_path, "utility.duckdb", relation="seen"))
    columns = {"unit": "string", "wh": "integer"}
    with pytest.raises(SpecError, match=r"tables\.rows\.columns\.wh: is computed"):
        Tables(declared(tmp_path, "utility.duckdb", columns, relation="made"))
    (tmp_path / "broken.duckdb").write_bytes(b"no database" * 1000)
    with pytest.raises(DataError, match=r"tables\.rows\.path: the table cannot be read"):
        answers(spec_for(tmp_path, "broken.duckdb", relation="seen"))
    with duckdb.connect(str(tmp_path / "utility.duckdb")) as connection:
        connection.execute('ALTER TABLE "select" ALTER wh TYPE VARCHAR')
    with pytest.raises(SpecError, match=r"tables\.rows\.columns\.wh: declared integer"):
        answers(spec_for(tmp_path, "utility.duckdb", relation="select"))


def lite(path: Path, rows: list[Row] = ROWS, types: str = "text, text, int, int, int") -> None:
    """A table named by a keyword, with types as SQLite takes them: hints."""
    columns = ["unit", "place", "day", "kind", "wh"]
    declared = ", ".join(f"{c} {t}" for c, t in zip(columns, types.split(", "), strict=True))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f'CREATE TABLE "select" ({declared})')
        connection.execute('CREATE VIEW seen AS SELECT * FROM "select"')
        connection.executemany(
            'INSERT INTO "select" VALUES (?, ?, ?, ?, ?)',
            [[row.get(column) for column in columns] for row in rows],
        )


@pytest.mark.parametrize("name", ["utility.db", "utility.sqlite", "an odd? name#.sqlite3"])
def test_a_table_of_an_sqlite_file(name: str, tmp_path: Path, expected: list[list[int]]) -> None:
    path = tmp_path / name.replace("?", "%3f")
    lite(path)
    before = path.read_bytes()
    assert answers(spec_for(tmp_path, path.name, relation="select")) == expected
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "plain", "spec.yaml"])


def test_an_sqlite_file_is_read_in_batches(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i % 7}
        for i in range(150_000)
    ]
    lite(tmp_path / "large.db", rows)
    pq.write_table(table_of(rows), tmp_path / "rows.parquet")
    one = answers(spec_for(tmp_path, "rows.parquet"))
    assert answers(spec_for(tmp_path, "large.db", relation="select")) == one


def test_dates_of_an_sqlite_file_are_text(tmp_path: Path) -> None:
    days = ["2024-01-05", "2024-01-06", None, "2024-01-05"]
    rows: list[Row] = [{"unit": f"u{i}", "place": "a", "day": d} for i, d in enumerate(days)]

    def seen(folder: Path) -> list[list[int]]:
        folder.mkdir()
        lite(folder / "x.db", rows)
        path = spec_for(folder, "x.db", relation="select")
        plain = yaml.safe_load(path.read_text())
        plain["tables"]["rows"]["columns"]["day"] = "date"
        plain["keys"]["day"] = ["2024-01-05", "2024-01-06"]
        plain["queries"] = [query("count", by=["day"])]
        path.write_text(yaml.safe_dump(plain))
        return answers(path)

    assert seen(tmp_path / "good") == [[2, 1]]
    rows[3]["day"] = "5th of January"
    assert seen(tmp_path / "bad") == [[1, 1]]


def test_large_integers_and_generated_columns_of_an_sqlite_file(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE t (unit TEXT, place TEXT, day INT, kind INT, "
            "wh INT GENERATED ALWAYS AS (day * 3) STORED, volt INT, "
            "own INT GENERATED ALWAYS AS (day * 2) VIRTUAL)"
        )
        connection.execute("INSERT INTO t VALUES ('u', 'a', 1, 1, ?)", [2**60 + 1])
    path = spec_for(tmp_path, "x.db", relation="t")
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["columns"]["volt"] = "number"
    plain["queries"] = [query("count", by=["place"], where="wh = 3 AND volt > 1e18")]
    path.write_text(yaml.safe_dump(plain))
    assert answers(path) == [[1, 0]]
    with pytest.raises(SpecError, match=r"tables\.rows\.columns\.own: is computed"):
        columns = {"unit": "string", "own": "integer"}
        Tables(declared(tmp_path, "x.db", columns, relation="t"))


def test_an_sqlite_file_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    lite(tmp_path / "x.db")
    with pytest.raises(SpecError, match=r"tables\.rows\.relation: 'none' is no table"):
        answers(spec_for(tmp_path, "x.db", relation="none"))
    with pytest.raises(SpecError, match=r"tables\.rows\.relation: 'seen' is computed"):
        answers(spec_for(tmp_path, "x.db", relation="seen"))
    path = spec_for(tmp_path, "x.db", relation="select")
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["columns"]["watts"] = "integer"
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(SpecError, match=r"tables\.rows\.columns\.watts: .* it has day, kind"):
        answers(path)
    (tmp_path / "y.db").write_bytes((tmp_path / "x.db").read_bytes()[:3000])
    with pytest.raises(DataError, match=r"tables\.rows\.path: the table cannot be read"):
        answers(spec_for(tmp_path, "y.db", relation="select"))


def test_a_parquet_file_has_no_relation(tmp_path: Path) -> None:
    pq.write_table(table_of(ROWS), tmp_path / "rows.parquet")
    with pytest.raises(SpecError, match="relation"):
        answers(spec_for(tmp_path, "rows.parquet", relation="rows"))


def test_a_file_replaced_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    """Parquet is read where it lies, so two answers could be of two tables."""
    path = Small(ROWS, QUERIES).write(tmp_path)
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        pq.write_table(table_of(ROWS[:5]), tmp_path / "other.parquet")
        os.replace(tmp_path / "other.parquet", tmp_path / "rows.parquet")  # noqa: PTH105 - as a job would
        with pytest.raises(DataError, match="changed while it was read"):
            answer(tables, spec_file)


def test_memory_has_a_bound_and_a_wrong_one_is_told(tmp_path: Path) -> None:
    spec_file = read_spec(Small(ROWS, QUERIES).write(tmp_path))
    with Tables(spec_file, Engine("64MB", 1)) as tables:
        settings = "SELECT current_setting('memory_limit') AS m, current_setting('threads') AS t"
        assert tables.rows(settings, "rows").to_pylist() == [{"m": "61.0 MiB", "t": 1}]
    with pytest.raises(SpecError, match="--memory-limit: 'plenty' is no size"):
        load(spec_file, Engine("plenty"))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_what_is_no_number_is_missing_whatever_else_a_file_holds(
    tmp_path: Path, ending: str
) -> None:
    """The engine folds comparisons by the bounds in Parquet files, which leave NaN out."""
    plain = Small([], [query("count", where="x > 5 OR x IS NULL", by=[])]).plain(f"rows.{ending}")
    plain["keys"] = {}
    plain["tables"]["rows"]["columns"] = {"unit": "string", "x": "number"}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    for other in ([], [1.0], [1.0, 7.0]):
        values = [math.nan, *other]
        table = pa.table({"unit": [f"u{i}" for i in range(len(values))], "x": pa.array(values)})
        if ending == "csv":
            pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
        else:
            pq.write_table(table, tmp_path / "rows.parquet")
        spec_file = read_spec(tmp_path / "spec.yaml")
        with load(spec_file) as tables:
            (answered,) = answer(tables, spec_file)
        assert answered.codes.tolist() == [1 + other.count(7.0)]


def test_what_exceeds_the_memory_lies_in_the_scratch_folder(tmp_path: Path) -> None:
    units = pa.array([f"a unit whose name is no short text, {i}" for i in range(1_200_000)])
    pq.write_table(pa.table({"unit": units}), tmp_path / "rows.parquet")
    spec_file = declared(tmp_path, "rows.parquet", {"unit": "string"})
    scratch = tmp_path / "scratch"
    with Tables(spec_file, Engine("40MB", 1), scratch) as tables:
        assert sum(file.stat().st_size for file in scratch.iterdir()) > 2**20
        count = tables.rows('SELECT count(unit) AS n FROM "given rows"', "rows")
        assert count.column("n").to_pylist() == [1_200_000]
    assert not scratch.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"rows.parquet", "spec.yaml"}
