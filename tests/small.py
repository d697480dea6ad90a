"""Small tables and specs for tests: rows as dictionaries, written as Parquet or CSV."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import yaml

from release.at_work import AtWork
from release.bundle.opened import open_public
from release.bundle.tables.answers import released_bytes
from release.exact.sensitivity import Sensitivity
from release.queries.contributions import Contributions, statistics_in_blocks
from release.queries.profiles import Keys
from release.queries.registry import statistic_of
from release.spec.declarations import ColumnType
from release.spec.load import SpecFile
from release.spec.query import Query
from release.verification.evidence import Required, Trust
from tests.answers import moved

Row = dict[str, Any]

UNSIGNED = Trust(require=Required.NONE)
"""What is asked of a release that no ledger signs."""


# What occurs nowhere but in a confidential table: no word of those that Prefect makes names of
# (there is a zebra among them), and no number so short that a time or an identifier may hold it.
MARKED: list[Row] = [
    {"unit": f"quagzil-{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": 104729104729 + i}
    for i in range(9)
]
MARKS = (b"quagzil", b"1047291047")


def check_unmarked(folder: Path) -> None:
    """No file below a folder holds anything of :data:`MARKED`."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for mark in MARKS:
                assert mark not in data, path


TYPES = {"unit": pa.string(), "place": pa.string(), "day": pa.int64(), "wh": pa.int64()}


@dataclass(frozen=True)
class Small:
    """A spec over one table with columns unit, place, day, hour and wh."""

    rows: list[Row]
    queries: list[dict[str, Any]]
    neighbors: str = "replace_one"
    max_rows_per_unit: int = 3
    fixed: list[str] = field(default_factory=list)
    max_cells_per_unit: int | None = None
    budget: tuple[str, str] = ("1000", "0.9")
    attribute: str | None = None

    def plain(self, path: str = "rows.parquet") -> dict[str, Any]:
        """The spec as plain data; with a real query the table has a number column ``kwh`` too."""
        real = any("grid" in one for one in self.queries)
        derived = {"kwh": {"type": "number", "sql": "wh * 0.3"}} if real else {}
        return {
            "spec": "dp-release/spec/v1",
            "release": {
                "id": "small",
                "title": "Small",
                "curator": "Tests",
                "contact": "nobody@example.org",
                "purpose": "tests",
                "period": "2024",
                "license": "CC0-1.0",
            },
            "tables": {
                "rows": {
                    "path": path,
                    "columns": {
                        "unit": "string",
                        "place": "string",
                        "day": "integer",
                        "kind": "integer",
                        "wh": "integer",
                    },
                    **({"derive": derived} if derived else {}),
                }
            },
            "privacy": {
                "unit": "unit",
                "neighbors": self.neighbors,
                "max_rows_per_unit": self.max_rows_per_unit,
                "fixed": self.fixed,
                "max_cells_per_unit": self.max_cells_per_unit,
                **({"attribute": self.attribute} if self.attribute else {}),
            },
            "budget": {"scope": "tests", "epsilon": self.budget[0], "delta": self.budget[1]},
            "keys": {"place": ["a", "b"], "day": {"range": [1, 2]}},
            "queries": self.queries,
        }

    def write(self, folder: Path) -> Path:
        """Write table and spec; the path of the spec."""
        write_rows(folder / "rows.parquet", self.rows)
        path = folder / "spec.yaml"
        # By JSON, because YAML would write a value that stands twice as an alias.
        plain = json.loads(json.dumps(self.plain()))
        path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
        return path


def table_of(rows: list[Row]) -> pa.Table:
    """The rows under their declared types."""
    types = {**TYPES, "kind": pa.int64()}
    names = ["unit", "place", "day", "kind", "wh"]
    return pa.table({n: pa.array([row.get(n) for row in rows], types[n]) for n in names})


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write rows as Parquet, or as CSV by the ending of ``path``."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table_of(rows), path)
    else:
        pq.write_table(table_of(rows), path)


def sensitivities(runs: tuple[AtWork, ...], spec_file: SpecFile) -> tuple[Sensitivity, ...]:
    """The sensitivity of each query with noise on its answer, as its stage finds it."""
    found = moved(runs, spec_file)
    return tuple(run.sensitivity for run in found if not run.query.is_on_statistic)


def truths(runs: tuple[AtWork, ...], spec_file: SpecFile) -> list[list[Any]]:
    """What each query's noise is added to: the codes of its cells, or their statistics."""
    found = []
    for run in runs:
        if not run.query.is_on_statistic:
            found.append(run.codes.tolist())
            continue
        assert isinstance(run.contributed, Contributions)
        statistic = statistic_of(spec_file.spec, run.query)
        blocks = statistics_in_blocks(run.contributed, run.query, statistic)
        found.append([cell for block in blocks for cell in block.tolist()])
    return found


def query(kind: str, **fields: Any) -> dict[str, Any]:
    """A query with what all have in common filled in.

    ``binned`` and ``on_grid`` are statistics: the sum, unless ``statistic`` names another. The
    noise is on the answer unless ``noise`` says otherwise.
    """
    answers: dict[str, dict[str, Any]] = {
        "count": {"domain": {"ordered": {"min": 0, "max": 5}}},
        "mode": {"domain": {"cyclic": 4}},
        "binned": {"bins": {"low": 0, "high": 20, "count": 6}, "of": "wh", "clamp": [-5, 15]},
        "on_grid": {
            "grid": {"low": -2, "high": 8, "step": 2, "scale": "0.5"},
            "of": "kwh",
            "clamp": [-5, 15],
        },
    }
    plain = {
        "name": f"the_{kind}",
        "kind": fields.pop("statistic", "sum") if kind in {"binned", "on_grid"} else kind,
        "table": "rows",
        "by": ["place"],
        **answers[kind],
        "sensitivity": "empirical",
        "guarantee": {"definition": "pure", "epsilon": "1"},
    }
    if kind == "mode":
        plain["of"] = "kind"
    if kind != "count" and fields.get("sensitivity") == "global":
        plain["noise"] = "on_answer"
    return plain | fields


def rewrite(path: Path, release_id: str, query: Query, keys: Keys, codes: Any) -> bytes:
    """Replace a released table by one that is written properly, of these keys and codes."""
    kinds = {"place": ColumnType.STRING, "day": ColumnType.INTEGER, "unit": ColumnType.STRING}
    data = released_bytes(release_id, query, kinds, keys, np.asarray(codes, dtype=np.int64))
    path.write_bytes(data)
    return data


def mechanism_of(public: Path, name: str) -> Any:
    """The public mechanism of a released query, from its law."""
    opened = open_public(public)
    (made,) = [each for each in opened.made.queries if each.name == name]
    return opened.mechanism(made)


def part(name: str, kind: str, **fields: Any) -> dict[str, Any]:
    """A query that is published within tuples only."""
    plain = query(kind, name=name, **fields)
    del plain["sensitivity"], plain["guarantee"]
    return plain


def joint(*names: str, **fields: Any) -> dict[str, Any]:
    """A tuple of the named parts; parts in order need their noise to be named."""
    plain = query("count") | {"kind": "tuple", "of": list(names), "mechanism": "modular"} | fields
    del plain["domain"]
    return plain
