"""Many rows: one count by district and cell of a table with an id a row, beside plain grouping.

The table has 14,000 districts of 16 cells each, its rows in no order. Ours is the stage from
opening the table to the true answers, with the bound of one row a unit; DuckDB's is the same
grouping without keys and bounds. Both read the same Parquet file with two threads, each in a
process of its own; seconds are medians, of the wall and of both processors.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from operator import truediv
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
from bench_scale import spec, write_parquet, write_spec

DISTRICTS, CELLS, THREADS = 14_000, 16, 2

PERSONS = """
SELECT 'p' || lpad(i::VARCHAR, 9, '0') AS person,
  'd' || lpad((hash(i * 7 + 1) % {districts})::VARCHAR, 5, '0') AS district,
  (hash(i * 13 + 5) % {cells})::INT AS cell
FROM (SELECT i FROM range({rows}) t(i) ORDER BY hash(i * 11 + 3))
"""

Figures: TypeAlias = tuple[float, float, float]
"""Seconds of the wall, seconds of the processors, and peak MiB."""


def written(folder: Path, rows: int) -> Path:
    """The table and the spec; the path of the spec."""
    select = PERSONS.format(rows=rows, districts=DISTRICTS, cells=CELLS)
    write_parquet(folder / "persons.parquet", select, preserve_order=True)
    plain: dict[str, Any] = spec("persons", "person", ["person", "district", "cell"], 1)
    plain["tables"]["persons"]["columns"]["cell"] = "integer"
    plain["keys"] = {
        "district": [f"d{number:05d}" for number in range(DISTRICTS)],
        "cell": list(range(CELLS)),
    }
    count: dict[str, Any] = {
        "name": "persons",
        "kind": "count",
        "table": "persons",
        "by": ["district", "cell"],
    }
    count |= {"domain": {"ordered": {"min": 0, "max": 400}}, "sensitivity": "global"}
    plain["queries"] = [count | {"guarantee": {"definition": "pure", "epsilon": "1"}}]
    return write_spec(folder, plain)


def ours(path: Path, repetitions: int) -> tuple[Figures, int]:
    """Figures of the stage from opening the table to the answers, and how many there are."""
    from release.pipeline import answer, load
    from release.queries.read import read_spec
    from release.tables.duckdb import Engine

    spec_file = read_spec(path)

    def stage() -> int:
        with load(spec_file, Engine(threads=THREADS)) as tables:
            return answer(tables, spec_file)[0].codes.size

    return measured(stage, repetitions)


def plain_grouping(path: Path, repetitions: int) -> tuple[Figures, int]:
    """Figures of DuckDB's grouping of the same file, and how many groups it has."""

    def stage() -> int:
        config: dict[str, Any] = {"threads": THREADS, "preserve_insertion_order": False}
        with duckdb.connect(config=config) as connection:
            connection.execute("SET enable_progress_bar = false")
            table = path.parent / "persons.parquet"
            select = f"SELECT district, cell, count(*) FROM '{table}' GROUP BY district, cell"
            return int(connection.sql(select).to_arrow_table().num_rows)

    return measured(stage, repetitions)


def measured(stage: Callable[[], int], repetitions: int) -> tuple[Figures, int]:
    """Medians over so many runs of ``stage``, and its last result."""
    walls, processors, result = [], [], 0
    for _ in range(repetitions):
        wall, processor = time.perf_counter(), time.process_time()
        result = stage()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    # Not getrusage: what it says begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text("utf-8")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return (statistics.median(walls), statistics.median(processors), peak), result


def main() -> None:
    """Print both, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), given.rows)
        size = (path.parent / "persons.parquet").stat().st_size / 2**20
        print(f"{given.rows:,} rows, {size:.0f} MiB, medians of {given.repetitions}", flush=True)
        found = []
        for name, stage in (("ours", ours), ("DuckDB", plain_grouping)):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                figures, cells = pool.apply(stage, (path, given.repetitions))
            found.append(figures)
            wall, processor, peak = figures
            print(
                f"{name:7} {cells:,} cells: wall {wall:.2f} s, processors {processor:.2f} s, "
                f"peak {peak:,.0f} MiB",
                flush=True,
            )
    ratios = map(truediv, *found)
    print("ratio   wall {:.2f}, processors {:.2f}, memory {:.2f}".format(*ratios))


if __name__ == "__main__":
    main()
