"""Finding differences: ours beside one query per neighbor, on the sample readings.

The rival re-runs the aggregation in DuckDB without one home, for a sample of the homes, and the
time for all 1,416 removals is extrapolated; a replacement would cost 1,416 times that again.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import duckdb

from release.queries.read import read_spec
from tests.answers import answer, load
from tests.small import sensitivities

PROJECT = Path(__file__).parent.parent
REPETITIONS = 5
SAMPLE = 40


def ours() -> float:
    """Seconds for all differences of the three sample queries, replacements included."""
    spec_file = read_spec(PROJECT / "data" / "ami.yaml")
    with load(spec_file) as tables:
        start = time.perf_counter()
        answered = answer(tables, spec_file)
    sensitivities(answered, spec_file)
    return time.perf_counter() - start


def rival() -> float:
    """Seconds for one query without one home, mean over a sample."""
    connection = duckdb.connect()
    path = PROJECT / "data" / "ami_readings.parquet"
    connection.execute(f"CREATE TABLE readings AS FROM '{path}'")
    homes = connection.execute(
        f"SELECT DISTINCT household_id FROM readings ORDER BY 1 LIMIT {SAMPLE}"
    ).fetchall()
    start = time.perf_counter()
    for (home,) in homes:
        connection.execute(
            "SELECT circuit, hour, sum(wh) FROM readings WHERE day = DATE '2013-01-05' "
            "AND household_id <> ? GROUP BY ALL ORDER BY ALL",
            [home],
        ).fetchall()
    return (time.perf_counter() - start) / SAMPLE


def main() -> None:
    """Print the comparison."""
    mine = statistics.median(ours() for _ in range(REPETITIONS))
    one = statistics.median(rival() for _ in range(REPETITIONS))
    removals, replacements = 1416 * one, 1416 * 1415 * one
    print("differences of 3 queries, 1,416 homes, 12 circuits (replace_one)")
    print(f"  ours, all replacements, answers included  {mine:10.3f} s (median of {REPETITIONS})")
    print(
        f"  one query per removal, extrapolated       {removals:10.1f} s  {removals / mine:10.0f}×"
    )
    factor = replacements / mine
    print(f"  one query per replacement, extrapolated   {replacements:10.0f} s  {factor:10.0f}×")


if __name__ == "__main__":
    main()
