"""What a forger may let an unsigned release have asked: other valid values are tried.

Each field of what was asked gets the other values that a question may have there. What then passes
stands in docs/verify.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_release_verify import canonical
from dp_release_verify.checks import verify
from dp_release_verify.verdict import REFUSED, VERIFIED
from release.street import run_release
from tests.attempts import Tried
from tests.every import every
from tests.small import Row, Small, query
from tests.verifier.made import seal

ROWS: list[Row] = []
for _number in range(9):
    ROWS.append(
        {
            "unit": f"u{_number}",
            "place": "ab"[_number % 2],
            "day": 1,
            "kind": _number % 4,
            "wh": _number,
        }
    )

GLOBAL = {"sensitivity": "global"}
ON_STATISTIC = {"sensitivity": "global", "noise": "on_statistic"}
QUERIES = [
    query("count", where="wh > 4", **GLOBAL),
    query("count", name="units", of="unit", **GLOBAL),
    query("mode", name="flipped", **ON_STATISTIC),
    query("mode", name="rows", count="rows", **ON_STATISTIC),
    query("mode", name="weighed", weight="wh", clamp=[0, 5], **ON_STATISTIC),
    query("binned", name="summed", **ON_STATISTIC),
    query("binned", name="largest", statistic="max", rank=2, **ON_STATISTIC),
    query("binned", name="middle", statistic="median", **ON_STATISTIC),
    query("binned", name="meant", statistic="mean", **ON_STATISTIC),
    query("mode", name="committed"),
]

WORDS = [
    ["unit", "place", "day", "kind", "wh"],
    ["string", "integer", "number", "boolean", "date", "timestamp"],
    ["replace_one", "add_remove"],
    ["units", "rows"],
    ["absolute", "squared", "error_rate"],
    ["best", "modular", "integer", "channel", "permute_and_flip", "noisy_sums", "gap_table"],
    ["pure", "approximate", "probabilistic"],
    ["global", "empirical"],
    ["mode", "top", "count", "max", "min", "median", "sum", "mean"],
]
"""Words of a spec that may stand in each other's place."""

TREE = {"sql": "kind = 1", "tree": {"call": "=", "of": [{"column": "kind"}, {"integer": "1"}]}}
ADDED: dict[str, dict[str, Any]] = {
    "": {"acceptance": [{"of": "the_count", "figure": "mean_error", "at_most": "100"}]},
    "privacy": {"max_cells_per_unit": 1, "replacement": "domain"},
    "queries": {"loss": "squared", "cell_size": 10, "where": TREE},
}
"""Fields that a question may have besides."""

MAY_BE_ASKED = re.compile(
    r"release\..*|budget\..*|acceptance|tables\.rows\.(path|columns\..*)"
    r"|privacy\.(unit|neighbors|fixed.*|max_cells_per_unit|replacement|max_rows_per_unit)"
    r"|queries\.\d+\.(mechanism|of|rank|weight|clamp.*|count|cell_size|noise|loss|max_rows_per_unit"
    r"|title|units|where.*|kind|domain.*)"
)
"""The fields that docs/verify.md lists: what no proof rests on."""


def valid_lies(value: Any) -> list[Any]:
    """Other values that may be valid in a spec in place of this one."""
    found: list[Any] = []
    if value is None:
        found = [1, 2]
    elif isinstance(value, int):
        found = [value + 1, value - 1, 2 * value, 100 * value, 1]
    elif isinstance(value, str):
        for words in WORDS:
            found += words if value in words else []
        if re.fullmatch(r"[0-9./]+", value):
            found += [str(2 * Fraction(value)), str(Fraction(value) / 2)]
    elif isinstance(value, list):
        found = [[], value[::-1], value[:-1], [*value, "c"]]
        if all(isinstance(one, int) for one in value):
            found.append([2 * one for one in value])
    return [one for one in found if one != value]


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value but the whole."""
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for step, member in members:
        yield (*at, step)
        yield from places(member, (*at, step))


def edits(plain: Any) -> Iterator[tuple[str, Any]]:
    """Specs with one field changed, left out or added, each with the place of that field."""
    for at in places(plain):
        *above, last = at
        for lie in [*valid_lies(_at(plain, at)), None]:
            changed = deepcopy(plain)
            holder = _at(changed, above)
            if lie is not None:
                holder[last] = lie
            else:
                del holder[last]
            yield ".".join(map(str, at)), changed
    holders: list[tuple[str, tuple[str | int, ...]]] = [("", ()), ("privacy", ("privacy",))]
    holders += [("queries", ("queries", place)) for place in range(len(plain["queries"]))]
    for kind, at in holders:
        for name, value in ADDED[kind].items():
            changed = deepcopy(plain)
            if name not in _at(changed, at):
                _at(changed, at)[name] = value
                yield ".".join(map(str, (*at, name))), changed


def _at(value: Any, at: Any) -> Any:
    for step in at:
        value = value[step]
    return value


PARTS = 6


@pytest.mark.parametrize("part", range(0, PARTS, every(6)))
def test_what_else_may_have_been_asked_is_listed(
    part: int, tmp_path: Path, record_property: Tried
) -> None:
    spec = Small(ROWS, QUERIES, fixed=["place"]).write(tmp_path)
    made = run_release(spec, tmp_path / "made")
    path = made.public / "release.json"
    plain = json.loads(path.read_bytes())
    tried, passed = 0, []
    for place, asked in list(edits(plain["asked"]))[part::PARTS]:
        path.write_bytes(canonical.dumps({**plain, "asked": asked}))
        seal(made.public)
        verdict = verify(made.public, made.auditor, require="none")
        assert verdict.status in (VERIFIED, REFUSED), (place, verdict.refusal)
        tried += 1
        if verdict.status == VERIFIED:
            passed.append(place)
    record_property("tried", tried)
    record_property("passed", len(passed))
    assert tried > 10
    assert [place for place in passed if not MAY_BE_ASKED.fullmatch(place)] == []
    assert passed
