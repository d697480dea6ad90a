"""Releases with a fixed seed: a refactoring changes neither a mechanism nor an answer.

``seeded.txt`` has a line for each query and each level of the sample specs, and of a small spec
with every kind of query and every mechanism: the spec, the query, the SHA-256 of the mechanism's
integers and that of the answers, both cut to 16 digits. The tables are invented, so nothing
confidential is hashed.

To write the file anew, on purpose only: ``python -m tests.test_seeded``. The change log says why.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dp_release_verify.digests import sha256
from release.bundle.tables.intervals import INTERVAL
from release.job import Options, Published
from release.spec.periods import parse_period
from release.street import run_release
from tests.conftest import PROJECT
from tests.small import Row, Small, joint, part, query

FINGERPRINTS = PROJECT / "tests" / "seeded.txt"
SOLVER = f"highspy {version('highspy')}"
SAMPLES = sorted(path.name for path in (PROJECT / "data").glob("*.yaml"))
SMALL = "small"
INTEGERS = ("ratio", "weights", "rows", "noise", "ends")
"""The fields of mechanism files that say what is drawn."""

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1 + i % 2, "kind": i % 4, "wh": 3 * i - 5}
    for i in range(9)
]


def with_delta(definition: str) -> dict[str, str]:
    return {"definition": definition, "epsilon": "1", "delta": "0.01"}


STATISTICS = ("sum", "mean", "min", "max", "median")
COUNTED = "SELECT place, count(*) AS answer FROM rows GROUP BY place"
EVERY_KIND: list[dict[str, Any]] = [
    query("count", sensitivity="global"),
    query("count", name="units", of="unit", by=["day"]),
    query("count", name="declared", sensitivity={"declared": [1, 2]}),
    query("mode", guarantee=with_delta("probabilistic")),
    query("mode", name="heaviest", weight="wh"),
    *(query("binned", name=statistic, statistic=statistic) for statistic in STATISTICS),
    query("on_grid"),
    query("count", name="own") | {"kind": "sql", "sql": COUNTED},
    joint("rows_here", "commonest", name="jointly", sensitivity="global"),
    part("rows_here", "count"),
    part("commonest", "mode"),
]
# The draws of one query shift those of the next: the order is that of the fingerprints.
MECHANISMS_IN_ORDER = (
    *("best", "modular", "channel", "geometric_clamped", "geometric_truncated"),
    *("geometric_modular", "gaussian_clamped", "gaussian_modular", "gumbel_clamped"),
    *("exponential", "randomised_response", "data_independent"),
)
EVERY_MECHANISM = [
    query("count", name=name, by=["place", "day"], mechanism=name)
    | {"guarantee": with_delta("approximate")}
    for name in MECHANISMS_IN_ORDER
]


def run(name: str, folder: Path) -> Published:
    """A release of a sample spec, or of the small one, with a seed in place of the system."""
    if name == SMALL:
        spec = Small(ROWS, EVERY_KIND + EVERY_MECHANISM).write(folder)
    else:
        spec = PROJECT / "data" / name
    template = "{period}" in spec.read_text("utf-8")
    options = Options(period=parse_period("2013-01-05") if template else None)
    source = random.Random(1).randbytes  # noqa: S311 - repeatable draws, nothing is kept secret
    return run_release(spec, folder / "out", test_source=source, options=options)


def fingerprint(values: object) -> str:
    return sha256(json.dumps(values, default=str).encode())[:16]


def fingerprints(name: str) -> Iterator[str]:
    """The lines of a spec."""
    with tempfile.TemporaryDirectory() as folder:
        published = run(name, Path(folder))
        made = json.loads((published.public / "release.json").read_bytes())["made"]
        # The tables of a level follow from all that its tabulation measures.
        levels, measured = set(), []
        for tabulation in made.get("tabulations", []):
            levels |= {level["file"] for level in tabulation["levels"]}
            for table in tabulation["measured"]:
                measured.append(drawn(published, table["mechanism"]))
        for answers in sorted(published.public.glob("data/*.parquet")):
            integers = measured if answers.stem in levels else drawn(published, answers.stem)
            table = pq.read_table(answers)
            if answers.stem not in levels:
                # Intervals follow from the rest, and have tests of their own.
                table = table.drop_columns([own for own in INTERVAL if own in table.column_names])
            rows = [list(row.values()) for row in table.to_pylist()]
            yield f"{name} {answers.stem} {fingerprint(integers)} {fingerprint(rows)}"


def drawn(published: Published, name: str) -> list[Any]:
    """What a law says of what is drawn, public or opened."""
    file = published.public / "mechanisms" / f"{name}.json"
    if file.exists():
        law = json.loads(file.read_bytes())
    else:
        assert published.auditor is not None
        law = json.loads((published.auditor / f"{name}.json").read_bytes())["law"]
    return [law[field] for field in INTEGERS if field in law]


@pytest.mark.parametrize("name", [*SAMPLES, SMALL])
def test_seeded_mechanisms_and_answers_are_as_written(name: str) -> None:
    solver, *written = FINGERPRINTS.read_text("utf-8").splitlines()
    if solver != SOLVER:
        pytest.skip(f"written with {solver}; another solver may end at another optimum")
    expected = [line for line in written if line.split()[0] == name]
    assert list(fingerprints(name)) == expected


def main() -> None:
    """Write the fingerprints anew."""
    lines = [line for name in (*SAMPLES, SMALL) for line in fingerprints(name)]
    FINGERPRINTS.write_text("\n".join([SOLVER, *lines, ""]), "utf-8")


if __name__ == "__main__":
    main()
