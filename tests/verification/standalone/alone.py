"""Specs, queries and refusals for tests that call parts of the verifier in one file."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from release.verification import standalone
from tests.small import Small

Plain = dict[str, Any]

GLOBAL: Plain = {"sensitivity": "global"}
PURE: Plain = {"definition": "pure", "epsilon": "1"}
COLUMNS = {
    **{"unit": "string", "place": "string", "sort": "string", "day": "integer"},
    **{"kind": "integer", "wh": "integer", "kwh": "number", "born": "date", "ok": "boolean"},
}


def plain_spec(*queries: Plain, **privacy: Any) -> Plain:
    """A spec of one table with a column of each type."""
    plain = Small([], [copy.deepcopy(each) for each in queries]).plain()
    plain["tables"]["rows"] = {"path": "rows.parquet", "columns": dict(COLUMNS)}
    plain["privacy"] |= {"max_rows_per_unit": 3} | privacy
    plain["keys"] = {"place": ["a", "b", "c"], "day": {"range": [1, 5]}}
    return plain


def spec_of(*queries: Plain, **privacy: Any) -> standalone.Spec:
    return standalone.Spec(plain_spec(*queries, **privacy))


def asked(kind: str, **fields: Any) -> Plain:
    """A published query of a kind: worst-case, in one cell, with the guarantee pure ε = 1."""
    own: dict[str, Plain] = {
        "count": {"domain": {"ordered": {"min": 0, "max": 9}}},
        "mode": {"of": "kind", "domain": {"cyclic": 4}},
        "top": {"of": "kind", "domain": {"cyclic": 6}, "k": 2},
        "quantiles": {"of": "wh", "domain": {"ordered": {"min": 0, "max": 8}}, "at": ["1/2"]},
        "per_unit": {"of": "kind", "domain": {"cyclic": 4}},
        "tuple": {},
        "sql": {"sql": "SELECT 1", "domain": {"cyclic": 3}, "sensitivity": "empirical"},
    }
    bins = {"of": "wh", "bins": {"low": 0, "high": 20, "count": 6}, "clamp": [-5, 15]}
    plain = {"name": "own", "kind": kind, "table": "rows", "by": [], **GLOBAL, "guarantee": PURE}
    return copy.deepcopy(plain | own.get(kind, bins) | fields)


def unpublished(kind: str, name: str, **fields: Any) -> Plain:
    """A query that is a part of a tuple."""
    plain = asked(kind, name=name, **fields)
    del plain["guarantee"], plain["sensitivity"]
    return plain


def query_of(plain: Plain, *others: Plain, **privacy: Any) -> standalone.Query:
    """The first of some queries, as the verifier in one file reads it."""
    return spec_of(plain, *others, **privacy).query(plain["name"])


def set_in(plain: Plain, place: str, value: Any) -> None:
    """Put a value, or what a function makes of the old, at a place such as ``design.0.loss``."""
    node: Any = plain
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in path:
        node = node[part]
    node[last] = value(node[last]) if callable(value) else value


def refused(*parts: str) -> Any:
    """A refusal whose message has these parts in order."""
    return pytest.raises(standalone.RefusedError, match=".*".join(map(re.escape, parts)))
