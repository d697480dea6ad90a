"""Large tables: answers and differences of counts and modes, seconds and peak memory.

Persons are made to the shape of a census: one row each, 14,000 areas of very different size, eight
categories, shuffled. Meters have many rows each. Each run is a process of its own on a Parquet file
written before; the time is from opening the tables to the last difference. Beside it stands one
query for each neighbor, extrapolated from a sample of the removals.

``--full`` adds 100 million meter rows under a memory limit of 2 GB, and sizes from 1 million on;
``--csv FILE`` keeps the figures, from which docs/pictures.py draws.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import duckdb
import yaml

from tests.small import sensitivities

AREAS, CIRCUITS, SAMPLE = 14_000, 1_000, 5

PERSONS = """
SELECT 'p' || lpad(i::VARCHAR, 9, '0') AS person,
  'v' || lpad(((pow((hash(i * 7 + 1) % 1000003) / 1000003.0, 1.5) * {areas})::INT
    % {areas})::VARCHAR, 5, '0') AS area,
  ['hisp', 'white', 'black', 'aian', 'asian', 'nhpi', 'other', 'two']
    [(1 + CASE WHEN hash(i * 13 + 5) % 10 < 6 THEN 1 ELSE hash(i * 11 + 3) % 8 END)::INT] AS race,
  CASE WHEN hash(i * 17 + 9) % 100 < 21 THEN 'minor' ELSE 'adult' END AS age
FROM (SELECT (i * 7919) % {rows} AS i FROM range({rows}) t(i))
"""

METERS = """
SELECT 'm' || lpad((i % 200000)::VARCHAR, 6, '0') AS meter,
  'c' || lpad((i % 200000 % {circuits})::VARCHAR, 4, '0') AS circuit,
  (i // 200000 % 24)::INT AS hour, (hash(i) % 3000)::INT AS wh
FROM range({rows}) t(i)
"""


def spec(table: str, unit: str, columns: list[str], rows_per_unit: int) -> dict[str, object]:
    """A spec without queries."""
    types = {column: "integer" if column in ("hour", "wh") else "string" for column in columns}
    about = dict.fromkeys(("title", "curator", "contact", "purpose", "period", "license"), "x")
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": table, **about},
        "tables": {table: {"path": f"{table}.parquet", "columns": types}},
        "privacy": {
            "unit": unit,
            "neighbors": "replace_one",
            "max_rows_per_unit": rows_per_unit,
            "fixed": ["circuit"] if table == "meters" else [],
        },
        "budget": {"scope": "bench", "epsilon": "100", "delta": "0"},
    }


def query(name: str, kind: str, table: str, by: str, domain: object, **more: object) -> object:
    """One query with empirical differences."""
    guarantee = {"definition": "pure", "epsilon": "1"}
    shared: dict[str, object] = {"table": table, "by": [by], "guarantee": guarantee}
    if domain is not None:
        shared["domain"] = domain
    return {"name": name, "kind": kind, **shared, "sensitivity": "empirical", **more}


def write_persons(folder: Path, rows: int) -> Path:
    """The table and the spec; the path of the spec."""
    write_parquet(folder / "persons.parquet", PERSONS.format(rows=rows, areas=AREAS))
    plain = spec("persons", "person", ["person", "area", "race", "age"], 1)
    races = ["hisp", "white", "black", "aian", "asian", "nhpi", "other", "two"]
    top = {"ordered": {"min": 0, "max": 10_000}}
    plain["keys"] = {"area": [f"v{i:05d}" for i in range(AREAS)]}
    plain["queries"] = [
        query("persons", "count", "persons", "area", top),
        query("race", "mode", "persons", "area", {"nominal": races}, of="race"),
    ]
    return write_spec(folder, plain)


def write_meters(folder: Path, rows: int) -> Path:
    """The table and the spec; the path of the spec."""
    write_parquet(folder / "meters.parquet", METERS.format(rows=rows, circuits=CIRCUITS))
    plain = spec("meters", "meter", ["meter", "circuit", "hour", "wh"], max(1, rows // 200_000 + 1))
    plain["keys"] = {"circuit": [f"c{i:04d}" for i in range(CIRCUITS)]}
    loads = {"of": "wh", "clamp": [0, 3000], "bins": {"low": 0, "high": 3000, "count": 100}}
    plain["queries"] = [
        query(
            "evenings",
            "count",
            "meters",
            "circuit",
            {"ordered": {"min": 0, "max": 40_000}},
            where="hour >= 18 AND wh > 2500",
        ),
        query("mean_load", "mean", "meters", "circuit", None, **loads),
    ]
    return write_spec(folder, plain)


def write_parquet(path: Path, select: str, *, preserve_order: bool = False) -> None:
    """The rows of a statement as a Parquet file."""
    with duckdb.connect(config={"preserve_insertion_order": preserve_order}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


def write_spec(folder: Path, plain: Mapping[str, object]) -> Path:
    """The spec as a file; its path."""
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain), encoding="utf-8")
    return path


def measure(path: Path, limit: str | None) -> tuple[float, float, list[int]]:
    """Seconds, peak MiB and the number of differences of each query."""
    from release.queries.read import read_spec
    from release.tables.duckdb import Engine
    from tests.answers import answer, load

    spec_file = read_spec(path)
    start = time.perf_counter()
    with load(spec_file, Engine(limit, 2)) as tables:
        answered = answer(tables, spec_file)
    found = sensitivities(answered, spec_file)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, peak, [len(one.shifts) for one in found]


def one_query_each(path: Path, rows: int) -> float:
    """Seconds that one count for each removal of a person would take, from a sample of them."""
    table = path.parent / "persons.parquet"
    with duckdb.connect(config={"threads": "2"}) as connection:
        start = time.perf_counter()
        for number in range(SAMPLE):
            person = f"p{number * 977:09d}"
            connection.execute(
                f"SELECT area, count(*) FROM '{table}' WHERE person <> '{person}' GROUP BY ALL"
            ).fetchall()
        return (time.perf_counter() - start) / SAMPLE * rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--csv", type=Path)
    given = parser.parse_args()
    cases: list[tuple[str, int, str | None]] = [
        ("persons", 1_000_000, None),
        ("persons", 20_000_000, None),
    ]
    if given.full:
        sizes = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
        cases += [("meters", size, "2GB") for size in sizes]
        cases[1:1] = [("persons", size, None) for size in (3_000_000, 10_000_000)]
    lines = ["table,rows,seconds,mib"]
    for table, rows, limit in cases:
        with tempfile.TemporaryDirectory() as folder:
            write = write_persons if table == "persons" else write_meters
            path = write(Path(folder), rows)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, peak, found = pool.apply(measure, (path, limit))
            lines.append(f"{table},{rows},{seconds:.2f},{peak:.0f}")
            beside = ""
            if table == "persons":
                rival = one_query_each(path, rows)
                beside = f"; one query per removal {rival:,.0f} s ({rival / seconds:,.0f}x)"
            print(
                f"{table:8} {rows:>11,} rows, 2 queries, limit {limit or 'none'}: {seconds:.2f} s, "
                f"{peak:.0f} MiB, differences {found}{beside}",
                flush=True,
            )
    if given.csv:
        given.csv.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
