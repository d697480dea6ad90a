"""Releases of many kinds, for tests of the verifier."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dp_release_verify import canonical
from dp_release_verify.checks import verify
from dp_release_verify.digests import SUMS, read_folder, sums_text
from dp_release_verify.verdict import Verdict
from release.street import run_release
from tests.small import Row, Small, query
from tests.tabulated import Tabulated, plain_spec

Plain = dict[str, Any]

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
PUBLIC = {"sensitivity": "global", "noise": "on_statistic"}
APPROXIMATE = {"definition": "approximate", "epsilon": "1", "delta": "0.001"}
QUERIES = [
    query("count", sensitivity="global", where="wh > 4 AND NOT kind = 2", loss="squared"),
    query(
        "count", name="by_channel", sensitivity="global", mechanism="channel", guarantee=APPROXIMATE
    ),
    query("mode", name="committed", guarantee=APPROXIMATE),
    query("mode", name="flipped", mechanism="permute_and_flip", **PUBLIC),
    query("binned", name="summed", statistic="sum", **PUBLIC),
    query("binned", name="averaged", statistic="mean", **PUBLIC),
    query("count", name="tops", of="kind", domain={"cyclic": 4}, sensitivity="global")
    | {"kind": "top", "k": 2},
    query("count", name="quarters", of="wh", sensitivity="global")
    | {"kind": "quantiles", "at": ["1/4", "3/4"], "domain": {"ordered": {"min": 0, "max": 8}}},
]


def small(folder: Path) -> tuple[Path, Path]:
    """A release of several kinds of questions, with the auditor's folder of one."""
    spec = Small(ROWS, QUERIES, fixed=["place"], max_rows_per_unit=1).write(folder)
    made = run_release(spec, folder / "out")
    auditor = folder / "release-auditor"
    if made.auditor is not None:
        made.auditor.rename(auditor)
    return made.public.rename(folder / "release"), auditor


def tabulated(folder: Path) -> Path:
    """A release of tables that add up, with declared numbers and impossible combinations."""
    plain = {
        "name": "pl",
        "table": "persons",
        "hierarchy": {"file": "areas.csv", "levels": ["state", "tract"]},
        "attributes": {"race": ["b", "a", "c"], "size": [1, 2, 3]},
        "groupings": {"few": {"of": "size", "classes": {"one": [1], "more": [2, 3]}}},
        "publish": {"state": [[], ["race"], ["few"]], "tract": [[], ["race", "size"]]},
        "constraints": [
            {"level": "state", "margin": [], "file": "totals.csv"},
            {"impossible": {"race": ["c"], "size": [3]}},
        ],
    }
    rows = []
    for i in range(60):
        race, size = "bac"[i % 3], 1 + i % 2
        rows.append({"person": f"p{i}", "tract": f"t{i % 3}", "race": race, "size": size})
    areas = [["state", "tract"], ["s", "t0"], ["s", "t1"], ["r", "t2"]]
    totals = [["state", "count"], ["s", "40"], ["r", "20"]]
    spec = plain_spec([plain], neighbors="add_remove", budget=("2", "0"))
    release = Tabulated(spec, rows, {"areas.csv": areas, "totals.csv": totals})
    made = run_release(release.write(folder), folder / "out")
    return made.public.rename(folder / "release")


def seal(folder: Path) -> None:
    """Make the hashes of a release anew."""
    (folder / SUMS).unlink(missing_ok=True)
    (folder / SUMS).write_bytes(sums_text(read_folder(folder).sums))


def edit(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change the plain data of a file, and make the hashes anew."""
    path = folder / name
    plain = json.loads(path.read_bytes())
    change(plain)
    path.write_bytes(canonical.dumps(plain))
    seal(folder)


def verdict_of(folder: Path, auditor: Path | None = None) -> Verdict:
    """The verdict, where nobody has to have signed."""
    return verify(folder, auditor, require="none")
