"""Meter rows through DuckDB in one process and through Spark on the same cores: integers and times.

The same count and mean by circuit, with their sensitivity, of the meters of ``bench_scale.py``.
Each engine runs in processes of its own; memory is the largest sum of resident memory over them and
their children, seen every 200 ms, so shared pages count more than once. Spark's time is shown with
and without its start. ``--rows`` goes up to what the disk holds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from bench_scale import write_meters

RUN = """
import hashlib, json, sys, time
from pathlib import Path
from release.job import Job, Options, walk
from release.noise.unseen import Unseen
from release.queries.read import read_spec
from release.street import between
from release.tables.duckdb import Engine
spec_file = read_spec(Path(sys.argv[1]))
start = time.perf_counter()
with Job(Options(engine=Engine(sys.argv[2] or None, spark=sys.argv[3] or None))) as job:
    job.take(Unseen.of(spec_file))
    walk(between("load", "load"), job)
    opened = time.perf_counter()
    walk(between("answer", "move"), job)
    found = job.runs
ended = time.perf_counter()
plain = [[one.codes.tolist(), list(map(list, one.sensitivity.shifts))] for one in found]
digest = hashlib.sha256(json.dumps(plain).encode()).hexdigest()
print(json.dumps({"open": opened - start, "read": ended - opened, "digest": digest}))
"""


def measure(spec: Path, limit: str, master: str) -> dict[str, object]:
    """Seconds to open and to read, peak MiB, and a digest of all integers."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(spec), limit, master], stdout=subprocess.PIPE, text=True
    )
    peak, tree = 0, psutil.Process(process.pid)
    while process.poll() is None:
        total = 0
        try:
            for one in [tree, *tree.children(recursive=True)]:
                total += one.memory_info().rss
        except psutil.Error:
            continue
        finally:
            peak = max(peak, total)
        time.sleep(0.2)
    text = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{master or 'duckdb'} failed")
    return {**json.loads(text), "MiB": peak / 2**20}


def main() -> None:
    """Print a table for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--memory-limit", default="1200MB", help="of DuckDB's buffers")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            spec = write_meters(Path(folder), rows)
            size = (Path(folder) / "meters.parquet").stat().st_size / 2**20
            found = {
                "duckdb": measure(spec, given.memory_limit, ""),
                f"spark {given.master}": measure(spec, "", given.master),
            }
        same = len({one["digest"] for one in found.values()}) == 1
        print(f"{rows:,} rows, {size:,.0f} MiB of Parquet; same integers: {same}; 1 repetition")
        # DuckDB copies the table as it opens; what Spark does then is to start.
        first = float(str(found["duckdb"]["open"])) + float(str(found["duckdb"]["read"]))
        for name, one in found.items():
            seconds = first if name == "duckdb" else float(str(one["read"]))
            print(
                f"  {name:16} {seconds:7.1f} s (start {one['open']:.1f} s)  "
                f"{one['MiB']:,.0f} MiB   {seconds / first:.2f} x"
            )
        if not same:
            raise SystemExit("the integers differ")


if __name__ == "__main__":
    main()
