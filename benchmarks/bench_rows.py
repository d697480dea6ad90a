"""Many rows: one count by district and cell of a table with an id a row, beside plain grouping.

The table has 14,000 districts of 16 cells each, its rows in no order. Ours is the stage from
opening the table to the true answers, with the bound of one row a unit; DuckDB's is the same
grouping without keys and bounds. Both read the same Parquet file with two threads, in turns, each
time in a process of its own that has read it once before; seconds are medians, of the wall and of
both processors. ``--copied`` adds a second query, for which the table is copied once.
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


def written(folder: Path, rows: int, *, copied: bool = False) -> Path:
    """The table and the spec, of two queries if the table is to be copied; its path."""
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
    count["guarantee"] = {"definition": "pure", "epsilon": "1"}
    plain["queries"] = [count]
    if copied:
        plain["queries"].append(count | {"name": "again", "where": "cell < 0"})
    return write_spec(folder, plain)


def ours(path: Path) -> tuple[Figures, int]:
    """Figures of the stage from opening the table to the answers, and how many there are."""
    from release.queries.read import read_spec
    from release.tables.duckdb import Engine
    from tests.answers import answer, load

    spec_file = read_spec(path)

    def stage() -> int:
        with load(spec_file, Engine(threads=THREADS)) as tables:
            return answer(tables, spec_file)[0].codes.size

    return measured(stage)


def plain_grouping(path: Path) -> tuple[Figures, int]:
    """Figures of DuckDB's grouping of the same file, and how many groups it has."""

    def stage() -> int:
        config: dict[str, Any] = {"threads": THREADS, "preserve_insertion_order": False}
        with duckdb.connect(config=config) as connection:
            connection.execute("SET enable_progress_bar = false")
            table = path.parent / "persons.parquet"
            select = f"SELECT district, cell, count(*) FROM '{table}' GROUP BY district, cell"
            return int(connection.sql(select).to_arrow_table().num_rows)

    return measured(stage)


def measured(stage: Callable[[], int]) -> tuple[Figures, int]:
    """Figures of the second run of ``stage``, and its result."""
    stage()
    wall, processor = time.perf_counter(), time.process_time()
    result = stage()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    # Not getrusage: what it says begins with the peak of the process that started this one.
    status = Path("/proc/self/status").read_text("utf-8")
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return (wall, processor, peak), result


def main() -> None:
    """Print both, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--copied", action="store_true")
    given = parser.parse_args()
    stages = {"ours": ours, "DuckDB": plain_grouping}
    found: dict[str, list[Figures]] = {name: [] for name in stages}
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), given.rows, copied=given.copied)
        size = (path.parent / "persons.parquet").stat().st_size / 2**20
        print(f"{given.rows:,} rows, {size:.0f} MiB, medians of {given.repetitions}", flush=True)
        for name, stage in list(stages.items()) * given.repetitions:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                figures, cells = pool.apply(stage, (path,))
            found[name].append(figures)
            print(f"{name:7} {cells:,} cells: {told(figures)}", flush=True)
    medians = [tuple(map(statistics.median, zip(*each, strict=True))) for each in found.values()]
    for name, (wall, processor, peak) in zip(stages, medians, strict=True):
        print(f"{name:7} median: {told((wall, processor, peak))}")
    ratios = map(truediv, *medians)
    print("ratio   wall {:.2f}, processors {:.2f}, memory {:.2f}".format(*ratios))


def told(figures: Figures) -> str:
    """The figures of one run, with their units."""
    wall, processor, peak = figures
    return f"wall {wall:.2f} s, processors {processor:.2f} s, peak {peak:,.0f} MiB"


if __name__ == "__main__":
    main()
