"""Counts of a table on a PostgreSQL server, beside counts of the CSV file that one would write.

    python benchmarks/bench_postgresql.py [--rows 2000000]

Each time is the CPU of this process and of what it starts, from opening the table to the answers of
one count in 1,000 cells: by the spec whose path is the server's, and by ``psql`` that writes the
table as CSV and the same spec on that file. The server's own CPU is in neither.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from bench_scale import CIRCUITS, query, spec

from release.queries.read import read_spec
from release.street import answered
from tests.postgresql import IS_INSTALLED, Server, started

COLUMNS = {"meter": "text", "circuit": "text", "hour": "int", "wh": "int"}
ROWS = """
INSERT INTO meters SELECT 'm' || i % 200000, 'c' || lpad((i % {circuits})::text, 4, '0'),
    i % 24, i % 2999 FROM generate_series(1, {rows}) AS i"""


def fill(server: Server, rows: int) -> None:
    """Hourly readings of 200,000 meters."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    server.run(f"CREATE TABLE meters ({columns})", ROWS.format(rows=rows, circuits=CIRCUITS))


def write(folder: Path, name: str, **place: str) -> Path:
    """The spec of one count by circuit."""
    plain = spec("meters", "meter", list(COLUMNS), 1000)
    plain["keys"] = {"circuit": [f"c{i:04d}" for i in range(CIRCUITS)]}
    plain["tables"]["meters"] |= place  # type: ignore[index]  # plain data
    top = {"ordered": {"min": 0, "max": 10_000}}
    plain["queries"] = [query("high", "count", "meters", "circuit", top, where="wh > 2500")]
    path = folder / name
    path.write_text(yaml.safe_dump(plain), "utf-8")
    return path


def answers(path: Path) -> list[int]:
    """The true answers."""
    spec_file = read_spec(path)
    (run,) = answered(spec_file)
    return [int(code) for code in run.codes]


def spent(action: Callable[[], list[int]]) -> tuple[list[int], float]:
    """The result, and the CPU seconds of this process and of those that it waited for."""
    before = os.times()
    result = action()
    after = os.times()
    return result, sum(after[:4]) - sum(before[:4])


def main() -> None:
    """Print both ways and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows: int = parser.parse_args().rows
    if not IS_INSTALLED:
        print("PostgreSQL is not installed: nothing to measure")
        return
    os.environ["PGUSER"] = "postgres"
    with tempfile.TemporaryDirectory() as given, started() as server:
        folder = Path(given)
        fill(server, rows)
        here = write(folder, "here.yaml", path=server.path(), relation="meters")
        there = write(folder, "there.yaml", path="meters.csv")

        def through_csv() -> list[int]:
            copied = f"\\copy meters TO '{folder / 'meters.csv'}' (FORMAT csv, HEADER)"
            subprocess.run(["/usr/bin/psql", server.path(), "-qc", copied], check=True)
            return answers(there)

        answers(here)
        ours = [spent(lambda: answers(here)) for _ in range(3)]
        theirs = [spent(through_csv) for _ in range(3)]
    if ours[0][0] != theirs[0][0]:
        raise SystemExit("the two ways count differently")
    one, other = (sorted(seconds for _, seconds in runs)[1] for runs in (ours, theirs))
    print(f"{rows:,} rows of 4 columns, a count in {CIRCUITS:,} cells, median of 3:")
    print(f"  in place {one:.2f} CPU s, through CSV {other:.2f}, ratio {one / other:.2f}")


if __name__ == "__main__":
    main()
