"""Instants are read as the local time of the declared zone, from every source; else in UTC."""

from __future__ import annotations

import datetime
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import release
from release.errors import SpecError
from release.operate.rehearsal.text import lines_of
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.tables.duckdb import Tables
from release.tables.frames import with_frames
from tests.small import Small, query

LONDON = "Europe/London"
# Around both changes of the clocks, and where a day is 23 or 25 hours long.
INSTANTS = [
    datetime.datetime(2024, 3, 31, 0, 30),
    datetime.datetime(2024, 3, 31, 1, 0),
    datetime.datetime(2024, 7, 1, 23, 30),
    datetime.datetime(2024, 10, 27, 0, 30),
    datetime.datetime(2024, 10, 27, 1, 30),
    datetime.datetime(2024, 12, 31, 23, 59, 59, 999999),
]


def local(instant: datetime.datetime, zone: str) -> datetime.datetime:
    """By Python's own tables of zones."""
    return instant.replace(tzinfo=datetime.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def spec_of(folder: Path, path: str, zone: str | None, **table: Any) -> Path:
    plain = Small([], [query("count", of="unit", by=[], sensitivity="global")]).plain(path)
    plain["keys"] = {}
    at: Any = "timestamp" if zone is None else {"type": "timestamp", "zone": zone}
    plain["tables"]["rows"] |= {"columns": {"unit": "string", "at": at}, **table}
    (folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    return folder / "spec.yaml"


def times_of(spec_file: SpecFile) -> list[datetime.datetime | None]:
    with Tables(spec_file) as tables:
        rows = tables.rows('SELECT * FROM "given rows"', "rows").to_pylist()
    return [row["at"] for row in sorted(rows, key=lambda row: str(row["unit"]))]


UNITS = [f"u{place}" for place in range(len(INSTANTS))]


def stored(unit: str) -> pa.Table:
    times = pa.array(INSTANTS, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    return pa.table({"unit": UNITS, "at": times.cast(pa.timestamp(unit, "America/New_York"))})


def as_csv(folder: Path, zone: str | None) -> Path:
    ends = ["+00:00", "Z", "+02:00", "-0530", "Z", "+00"]
    lines = ["unit,at"]
    for name, instant, end in zip(UNITS, INSTANTS, ends, strict=True):
        shift = {"+02:00": 2, "-0530": -5.5}.get(end, 0)
        lines.append(f"{name},{(instant + datetime.timedelta(hours=shift)).isoformat()}{end}")
    (folder / "rows.csv").write_text("\n".join(lines), "utf-8")
    return spec_of(folder, "rows.csv", zone)


def as_parquet(folder: Path, zone: str | None) -> Path:
    pq.write_table(stored("us"), folder / "rows.parquet")
    return spec_of(folder, "rows.parquet", zone)


def as_nanoseconds(folder: Path, zone: str | None) -> Path:
    pq.write_table(stored("ns"), folder / "rows.parquet")
    return spec_of(folder, "rows.parquet", zone)


def as_duckdb(folder: Path, zone: str | None) -> Path:
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("incoming", stored("us"))
        connection.execute("CREATE TABLE t AS FROM incoming")
    return spec_of(folder, "rows.duckdb", zone, relation="t")


def as_sqlite(folder: Path, zone: str | None) -> Path:
    with closing(sqlite3.connect(folder / "rows.db")) as connection, connection:
        connection.execute("CREATE TABLE t (unit, at)")
        rows = [(u, f"{i.isoformat(' ')}+00:00") for u, i in zip(UNITS, INSTANTS, strict=True)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    return spec_of(folder, "rows.db", zone, relation="t")


@pytest.mark.parametrize("zone", [None, LONDON, "Asia/Kathmandu", "America/St_Johns"])
@pytest.mark.parametrize("write", [as_csv, as_parquet, as_nanoseconds, as_duckdb, as_sqlite])
def test_an_instant_is_local_time_of_the_declared_zone(
    write: Any, zone: str | None, tmp_path: Path
) -> None:
    expected = [local(instant, zone or "UTC") for instant in INSTANTS]
    assert times_of(read_spec(write(tmp_path, zone))) == expected


@pytest.mark.parametrize("zone", [None, LONDON])
def test_frames_have_the_local_times_too(zone: str | None, tmp_path: Path) -> None:
    spec_file = read_spec(spec_of(tmp_path, "rows.parquet", zone))
    expected = [local(instant, zone or "UTC") for instant in INSTANTS]

    def scratch() -> Path:
        return Path(tempfile.mkdtemp(dir=tmp_path))

    arrow = stored("us")
    zoned = pd.DataFrame({"unit": UNITS, "at": pd.to_datetime(INSTANTS, utc=True)})
    for frame in (arrow, pl.DataFrame(arrow), zoned):
        with with_frames(spec_file, {"rows": frame}, scratch) as declared:
            assert times_of(declared) == expected


def test_a_time_without_a_zone_is_local_already(tmp_path: Path) -> None:
    """Also beside files that store instants."""
    (tmp_path / "rows").mkdir()
    pq.write_table(stored("us"), tmp_path / "rows" / "a.parquet")
    naive = pa.table({"unit": ["v"], "at": pa.array(INSTANTS[2:3], pa.timestamp("us"))})
    pq.write_table(naive, tmp_path / "rows" / "b.parquet")
    found = times_of(read_spec(spec_of(tmp_path, "rows", LONDON)))
    assert found == [*(local(instant, LONDON) for instant in INSTANTS), INSTANTS[2]]
    (tmp_path / "rows.csv").write_text("unit,at\nv,2024-07-01 23:30\n", "utf-8")
    assert times_of(read_spec(spec_of(tmp_path, "rows.csv", LONDON))) == [INSTANTS[2]]


def test_hours_of_a_day_in_spring_and_autumn(tmp_path: Path) -> None:
    """An hour that is not there has no row, and one that is there twice has the rows of both."""
    hours = pd.date_range("2024-10-26 23:00", "2024-10-27 23:30", freq="30min", tz="UTC")
    frame = pd.DataFrame({"unit": [f"u{n}" for n in range(len(hours))], "at": hours})
    frame.to_parquet(tmp_path / "rows.parquet")
    found = Counter(
        time.hour
        for time in times_of(read_spec(spec_of(tmp_path, "rows.parquet", LONDON)))
        if time is not None and time.date() == datetime.date(2024, 10, 27)
    )
    assert found == {hour: 4 if hour == 1 else 2 for hour in range(24)}


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_nothing_beyond_all_years_makes_it_fail(write: Any, tmp_path: Path) -> None:
    spec = write(tmp_path, "Pacific/Auckland")
    ticks = pa.array([2**63 - 1, -(2**63), 253402300799999999, -62135596800000000], pa.int64())
    far = pa.table({"unit": list("abcd"), "at": ticks.view(pa.timestamp("us", "UTC"))})
    pq.write_table(far, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("unit,at\na,9999-12-31T23:59Z\nb,0001-01-01T00:00+01\n")
    assert set(times_of(read_spec(spec))) == {None}


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ({"type": "timestamp", "zone": "Europe/Londn"}, "did you mean 'Europe/London'"),
        ({"type": "timestamp", "zone": "CEST"}, "there is no zone 'CEST'"),
        ({"type": "date", "zone": LONDON}, "'at' is no timestamp; a zone is for instants"),
    ],
)
def test_a_zone_is_one_of_the_tz_database(at: Any, says: str, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "rows.csv", None)
    plain = yaml.safe_load(spec.read_text("utf-8"))
    plain["tables"]["rows"]["columns"]["at"] = at
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    with pytest.raises(SpecError, match=says):
        read_spec(spec)


def test_a_run_with_a_zone_verifies_and_is_told_of(tmp_path: Path) -> None:
    spec = as_parquet(tmp_path, LONDON)
    published = release.run(spec, tmp_path / "out")
    assert release.verify(published.public, require="none")
    told = "\n".join(lines_of(release.check(spec)))
    assert "instants, read as the time of Europe/London" in told
    told = "\n".join(lines_of(release.check(as_duckdb(tmp_path, None))))
    assert "instants, read in UTC; for local time declare zone: Europe/London" in told
