"""A table of text under a contract, opened as a run opens it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from release.queries.read import read_spec
from release.spec.declarations import ColumnType
from release.tables.duckdb import Tables
from tests.small import Small, query


@contextmanager
def opened(
    folder: Path, contract: object, text: str, declared: Mapping[str, ColumnType]
) -> Iterator[Tables]:
    """The CSV ``text`` under ``contract``; the first declared column names the privacy unit."""
    count = query("count", by=[], sensitivity="global")
    path = Small([], [count], max_rows_per_unit=1).write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    plain["tables"]["rows"] |= {
        "path": "rows.csv",
        "columns": {name: kind.value for name, kind in declared.items()},
        "contract": "rows.contract.json",
    }
    plain["privacy"]["unit"] = next(iter(declared))
    plain["keys"] = {}
    path.write_text(yaml.safe_dump(plain), "utf-8")
    (folder / "rows.csv").write_text(text, "utf-8")
    (folder / "rows.contract.json").write_text(json.dumps(contract), "utf-8")
    with Tables(read_spec(path)) as tables:
        yield tables
