"""Questions of a few answers, and what one unit can change of them."""

from __future__ import annotations

from typing import Any

from dp_release_verify import forms
from dp_release_verify.asked import Spec
from dp_release_verify.reach import Reach

Plain = dict[str, Any]

WAYS = {1: "add_remove", 2: "replace_one"}
PURE = {"definition": "pure", "epsilon": "1", "delta": "0"}
CYCLE = {"cyclic": 3}
LINE = {"ordered": {"min": 0, "max": 2}}


def reach_of(
    *queries: Plain, ways: int = 1, rows: int = 1, cells: int | None = None, free: int = 1
) -> Reach:
    """What a unit with so many rows can change of the first of the questions."""
    plain: Plain = {
        "release": {
            "id": "small",
            "title": "Small",
            "curator": "Tests",
            "contact": "nobody@example.org",
            "period": "2024",
            "purpose": "tests",
            "license": "CC0-1.0",
        },
        "tables": {
            "rows": {"path": "rows.parquet", "columns": {"unit": "string", "kind": "integer"}}
        },
        "privacy": {"unit": "unit", "neighbors": WAYS[ways], "max_rows_per_unit": rows},
        "budget": {"scope": "tests", "epsilon": "9", "delta": "0"},
        "queries": [
            {"table": "rows", "by": [], "max_rows_per_unit": rows, "sensitivity": "global"} | each
            for each in queries
        ],
    }
    if cells is not None:
        plain["privacy"]["max_cells_per_unit"] = cells
    spec = Spec(forms.read(forms.Asked, "release.json", plain))
    return Reach(spec.published[0], free, free)


def on_statistic(kind: str, **fields: Any) -> Plain:
    common = {"name": "own", "kind": kind, "of": "kind", "guarantee": PURE}
    return {**common, "domain": LINE, "noise": "on_statistic", **fields}


def of_units(kind: str, **fields: Any) -> Plain:
    return on_statistic(kind, **{"domain": CYCLE, "count": "units", **fields})


def of_rows(kind: str, **fields: Any) -> Plain:
    return on_statistic(kind, **{"domain": CYCLE, "count": "rows", **fields})


def count_of_rows(most: int) -> Plain:
    domain = {"ordered": {"min": 0, "max": most}}
    return {"name": "own", "kind": "count", "guarantee": PURE, "domain": domain}
