"""A whole state at once: a tabulation from Parquet to a verified release, beside DuckDB's grouping.

Invented persons in districts of one state, three levels and six margins of eight categories of race
and ethnicity by two ages. DuckDB groups the same file by the same 18 tables, without noise. Every
part runs in a process of its own; processor seconds and the largest resident memory are those of
the process and its children. One repetition.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

RACES = ("hispanic", "aian", "asian", "black", "nhpi", "other", "two_or_more", "white")
AGES = ("adult", "minor")
MARGINS = ((), ("age",), ("ethnicity",), ("race",), ("ethnicity", "age"), ("race", "age"))
LEVELS = ("state", "county", "district")

SPEC = """\
spec: dp-release/spec/v1
release: {{id: state, title: Persons, curator: Example Office, contact: a@example.org,
          purpose: benchmark, period: "2024", license: CC0-1.0}}
tables:
  persons:
    path: persons.parquet
    columns: {{person: integer, district: string, race: string, age: string}}
privacy: {{unit: person, neighbors: add_remove, max_rows_per_unit: 1}}
budget: {{scope: state, epsilon: "{epsilon}", delta: "0"}}
tabulations:
  - name: persons
    table: persons
    hierarchy: {{file: areas.csv, levels: [{levels}]}}
    attributes:
      race: [{races}]
      age: [{ages}]
    groupings:
      ethnicity: {{of: race, classes: {{hispanic: [hispanic], other: [{others}]}}}}
    publish:
{publish}
"""


def write_state(folder: Path, persons: int, districts: int) -> Path:
    """Write persons, areas and a spec; the path of the spec."""
    counties = max(1, districts // 225)
    connection = duckdb.connect()
    connection.execute("SELECT setseed(0.25)")
    connection.execute(
        f"COPY (SELECT i AS county, printf('%05d', j) AS district FROM range({districts}) r(j), "
        # Counties of very different sizes, as they are.
        f"LATERAL (SELECT floor({counties} * pow(j / {districts}, 2))::INT AS i)) "
        f"TO '{folder / 'a.csv'}' (HEADER)"
    )
    connection.execute(
        f"COPY (SELECT 's' AS state, printf('c%03d', county) AS county, district "
        f"FROM '{folder / 'a.csv'}') TO '{folder / 'areas.csv'}' (HEADER)"
    )
    races, ages = list(RACES), list(AGES)
    connection.execute(
        f"COPY (SELECT i::INTEGER AS person, printf('%05d', floor(random() * {districts})::INT) "
        f"AS district, {races!r}[1 + floor(8 * pow(random(), 0.5))::INT] AS race, "
        f"{ages!r}[1 + (random() < 0.22)::INT] AS age FROM range({persons}) r(i)) "
        f"TO '{folder / 'persons.parquet'}' (FORMAT parquet)"
    )
    margins = ", ".join(f"[{', '.join(margin)}]" for margin in MARGINS)
    publish = "".join(f"      {level}: [{margins}]\n" for level in LEVELS)
    spec = folder / "state.yaml"
    spec.write_text(
        SPEC.format(
            epsilon=1,
            levels=", ".join(LEVELS),
            races=", ".join(RACES),
            ages=", ".join(AGES),
            others=", ".join(RACES[1:]),
            publish=publish,
        )
    )
    return spec


GROUP = """
import sys, duckdb
folder = sys.argv[1]
db = duckdb.connect()
db.execute(f"CREATE TABLE areas AS SELECT * FROM read_csv('{folder}/areas.csv', all_varchar=true)")
for level in ("state", "county", "district"):
    for margin in ((), ("age",), ("race = 'hispanic'",), ("race",), ("race = 'hispanic'", "age"),
                   ("race", "age")):
        columns = ", ".join((level, *margin))
        db.execute(f"SELECT {columns}, count(*) FROM '{folder}/persons.parquet' "
                   f"JOIN areas USING (district) GROUP BY ALL").to_arrow_table()
"""


@dataclass(frozen=True)
class Used:
    """What a process and its children used."""

    wall: float
    cpu: float
    mib: float

    def line(self, name: str, beside: float | None = None) -> str:
        """The figures; ``beside`` are the processor seconds of what they are compared with."""
        ratio = "" if beside is None else f"  {self.cpu / beside:5.2f} x"
        return f"  {name:24} {self.wall:7.1f} s  {self.cpu:7.1f} CPU s  {self.mib:6,.0f} MiB{ratio}"


def used_by(command: list[str]) -> Used:
    """Run a command, and say what it used.

    Raises:
        SystemExit: it fails.
    """
    # In a process of its own, because a process only knows the peak of all its children.
    probe = (
        "import json, resource, subprocess, sys, time; start = time.perf_counter(); "
        "code = subprocess.run(json.loads(sys.argv[1]), stdout=subprocess.DEVNULL).returncode; "
        "r = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(json.dumps([code, time.perf_counter() - start, r.ru_utime + r.ru_stime, "
        "r.ru_maxrss / 1024]))"
    )
    text = subprocess.run(
        [sys.executable, "-c", probe, json.dumps(command)],
        capture_output=True,
        text=True,
        check=True,
    )
    code, wall, cpu, mib = json.loads(text.stdout)
    if code:
        raise SystemExit(f"{command} failed: {text.stderr}")
    return Used(wall, cpu, mib)


def main() -> None:
    """Print the figures of a state."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=2_000_000)
    parser.add_argument("--districts", type=int, default=1_400)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        spec = write_state(folder, given.persons, given.districts)
        made = time.perf_counter() - start
        print(
            f"{given.persons:,} persons, {given.districts:,} districts, 3 levels x 6 margins "
            f"(made in {made:.0f} s); 1 repetition"
        )
        group = used_by([sys.executable, "-c", GROUP, name])
        print(group.line("DuckDB, 18 groupings"), flush=True)
        program = [sys.executable, "-m", "release"]
        run = used_by([*program, "run", str(spec), "--out", str(folder / "out")])
        print(run.line("run, verification too", group.cpu), flush=True)
        public = folder / "out" / "public" / "state"
        verify = used_by([*program, "verify", str(public), "--require", "none"])
        print(verify.line("verify", group.cpu))
        left = run.cpu - 3 * group.cpu
        print(f"  run beyond 3 x DuckDB: {left:.1f} CPU s")


if __name__ == "__main__":
    main()
