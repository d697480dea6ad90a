"""Many queries: seconds of a whole release of 10, 100 and 1,000 counts of one table.

The counts differ in their conditions and keys, so each has a statement of its own; their mechanism
is the same, and is found once. Each size runs in a process of its own, without a cache of designs.
The seconds are of the processors. A release of n queries costs a fixed part and a part for each;
the ratios show whether there is a third part, which grows faster.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_scale import spec, write_parquet, write_spec

ROWS, AREAS = 20_000, 12

PERSONS = """
SELECT 'p' || i::VARCHAR AS person, 'a' || lpad((hash(i) % {areas})::VARCHAR, 2, '0') AS area,
  ['f', 'm'][(1 + hash(i * 7 + 1) % 2)::INT] AS sex, (hash(i * 13 + 5) % 100)::INT AS age
FROM range({rows}) t(i)
"""


def written(folder: Path, queries: int, largest: int) -> Path:
    """The table and a spec with so many counts up to ``largest``; the path of the spec."""
    write_parquet(folder / "persons.parquet", PERSONS.format(rows=ROWS, areas=AREAS))
    plain: dict[str, Any] = spec("persons", "person", ["person", "area", "sex", "age"], 1)
    plain["tables"]["persons"]["columns"]["age"] = "integer"
    plain["budget"] = {"scope": "bench", "epsilon": str(2 * queries), "delta": "0"}
    plain["keys"] = {"area": [f"a{number:02d}" for number in range(AREAS)], "sex": ["f", "m"]}
    plain["queries"] = [counted(number, largest) for number in range(queries)]
    return write_spec(folder, plain)


def counted(number: int, largest: int) -> dict[str, Any]:
    """One count: its condition and its keys follow from its number."""
    by: list[list[str]] = [["area"], ["sex"], ["area", "sex"], []]
    low = number % 97
    return {
        "name": f"count_{number}",
        "kind": "count",
        "table": "persons",
        "by": by[number % 4],
        "where": f"age >= {low} AND age < {low + 1 + number // 97}",
        "domain": {"ordered": {"min": 0, "max": largest}},
        "sensitivity": "global",
        "guarantee": {"definition": "pure", "epsilon": "1"},
    }


def measure(path: Path) -> tuple[float, float, float]:
    """Seconds of the processors for the process, of the wall for a release, and peak MiB."""
    from release.street import run_release

    start = time.perf_counter()
    run_release(path, path.parent / "out")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # Of the whole process: a part that does not grow, such as imports, is a part of its time too.
    return time.process_time(), time.perf_counter() - start, peak


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--largest", type=int, default=40, help="the largest possible count")
    arguments, least = parser.parse_args(), None
    for queries in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder), queries, arguments.largest)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, wall, peak = pool.apply(measure, (path,))
        least = least or seconds
        print(
            f"{queries:>6,} queries: processors {seconds:.2f} s ({1000 * seconds / queries:.1f} ms "
            f"a query, {seconds / least:.2f}x the first), wall {wall:.2f} s, peak {peak:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
