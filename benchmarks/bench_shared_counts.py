"""A release of 20 counts by 2,000 tracts that share (1, 10⁻⁶): run, verify, and the errors.

100,000 persons are made, one row each, in tracts of very different size. Each count asks for an age
from some year on, so a person may be in all twenty counts, in one cell each. The domain is
0..3,000,000, far above what is counted, and the noise does not depend on it. Beside the planned
errors stand those of the published cells. CPU seconds are those of this process. Takes about ten
seconds.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import yaml
from numpy.typing import NDArray
from rival_accounts import gaussian, is_installed, opendp_scale
from timing import wall_and_cpu
from zcdp import geometric_variance, rho_within

import release

ROWS, TRACTS, QUERIES, HIGH = 100_000, 2_000, 20, 3_000_000
UNCLAMPED = 100
"""True counts from here on have noise that hardly ever reaches below 0, where it is clamped."""

Floats = NDArray[np.float64]

PERSONS = """
SELECT 'p' || lpad(i::VARCHAR, 6, '0') AS person,
  't' || lpad(((pow((hash(i * 7 + 1) % 1000003) / 1000003.0, 2) * {tracts})::INT
    % {tracts})::VARCHAR, 4, '0') AS tract,
  (hash(i * 13 + 5) % 100)::BIGINT AS age
FROM range({rows}) t(i)
"""


def first_age(place: int) -> int:
    """The least age that a count counts."""
    return place * 4


def plain_spec() -> dict[str, Any]:
    """The spec as plain data."""
    about = dict.fromkeys(("title", "curator", "contact", "purpose", "period", "license"), "x")
    queries = []
    for place in range(QUERIES):
        queries.append(
            {
                "name": f"from_{first_age(place)}",
                "kind": "count",
                "table": "persons",
                "by": ["tract"],
                "where": f"age >= {first_age(place)}",
                "domain": {"ordered": {"min": 0, "max": HIGH}},
                "sensitivity": "global",
                "loss": "squared",
                "share": "1",
            }
        )
    columns = {"person": "string", "tract": "string", "age": "integer"}
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": "shared-counts", **about},
        "tables": {"persons": {"path": "persons.parquet", "columns": columns}},
        "privacy": {"unit": "person", "neighbors": "add_remove", "max_rows_per_unit": 1},
        "budget": {"scope": "bench", "epsilon": "1", "delta": "0.000001"},
        "keys": {"tract": [f"t{place:04d}" for place in range(TRACTS)]},
        "queries": queries,
    }


def write(folder: Path) -> Path:
    """Write table and spec; the path of the spec."""
    with duckdb.connect() as connection:
        select = PERSONS.format(rows=ROWS, tracts=TRACTS)
        connection.execute(f"COPY ({select}) TO '{folder / 'persons.parquet'}' (FORMAT parquet)")
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain_spec()), encoding="utf-8")
    return path


def true_counts(folder: Path, place: int) -> dict[str, int]:
    """The rows of each tract that has some."""
    select = f"SELECT tract, count(*) FROM '{folder / 'persons.parquet'}' WHERE age >= ? GROUP BY 1"
    with duckdb.connect() as connection:
        return dict(connection.execute(select, [first_age(place)]).fetchall())


def errors(folder: Path, published: Path) -> Floats:
    """Published less true counts of all cells whose noise does not reach an end of the domain."""
    opened = release.open(published)
    differences = []
    for place in range(QUERIES):
        truth = true_counts(folder, place)
        name = f"from_{first_age(place)}"
        frame = opened[name].to_pandas()
        for tract, answer in zip(frame["tract"], frame["answer"], strict=True):
            if truth.get(tract, 0) >= UNCLAMPED:
                differences.append(float(answer) - truth[tract])
    return np.array(differences)


def show_errors(found: Floats, planned: float) -> None:
    """Print the standard deviation beside the planned one and those of other rules."""
    squares = found**2
    error = math.sqrt(float(squares.mean()))
    doubt = float(squares.std()) / math.sqrt(squares.size) / (2 * error)
    print(f"  planned standard deviation {planned:.3f}")
    print(
        f"  found {error:.3f} ± {1.96 * doubt:.3f} (95 %) in {found.size:,} cells of at least "
        f"{UNCLAMPED} persons, mean error {float(found.mean()):+.2f}"
    )
    added = math.sqrt(geometric_variance(1 / QUERIES))
    print(f"  geometric noise, ε added up: {added:.3f}, {added / planned:.3f}×")
    zcdp = math.sqrt(QUERIES / (2 * rho_within(1.0, 1e-6)))
    print(f"  Gaussian noise, zCDP: {zcdp:.3f}, {zcdp / planned:.3f}×")
    if is_installed("opendp"):
        wide = opendp_scale(lambda scale: [gaussian(scale)] * QUERIES, 1.0, 1e-6)
        print(f"  OpenDP's own search: {wide:.3f}, {wide / planned:.3f}×")


def main() -> None:
    """Print times and errors."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"{QUERIES} counts by {TRACTS:,} tracts of {ROWS:,} rows, domain 0..{HIGH:,}, (1, 10⁻⁶)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Mechanisms are kept in a cache; the run has to find them itself.
        os.environ["DP_RELEASE_CACHE"] = str(folder / "cache")
        spec = write(folder)
        _, wall, cpu = wall_and_cpu(lambda: release.run(spec, folder / "out"))
        print(f"  run {wall:.1f} s, CPU {cpu:.1f} s, no mechanism known before")
        public = folder / "out/public/shared-counts"
        verdict, wall, cpu = wall_and_cpu(lambda: release.verify(public, require="none"))
        size = sum(path.stat().st_size for path in public.rglob("*") if path.is_file())
        print(f"  verify {wall:.1f} s, CPU {cpu:.1f} s; public folder {size / 1e6:.1f} MB")
        plan, wall, cpu = wall_and_cpu(lambda: release.plan(spec))
        print(f"  plan {wall:.1f} s, CPU {cpu:.1f} s")
        for finding in verdict.findings:
            if finding.check == "charges.total":
                print(f"  {finding.sentence}")
        # The mechanisms are equal, and so are the variances.
        planned = max(float(query.chosen.objective) for query in plan.queries)
        show_errors(errors(folder, public), math.sqrt(planned))


if __name__ == "__main__":
    main()
