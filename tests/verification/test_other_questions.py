"""What a forger may let an unsigned release have asked: other valid values of a spec are tried.

The lies of ``test_forgeries`` are near misses, which are mostly no valid specs. Here each field of
a spec gets the other values that a spec may have there, and ``release.json`` is made to fit. What
then passes has a line of the verdict, and stands in docs/verify.md.
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
import rfc8785

from release.bundle.statements import adjacency_text
from release.errors import ReleaseError
from release.pipeline import run_release
from release.queries.read import parse_spec
from release.verification.checks import CHECKS
from tests.attempts import Tried
from tests.every import every
from tests.small import UNSIGNED, Row, Small, query
from tests.verification.test_forgeries import ON_STATISTIC, Forger, places, read, written

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

ADDED: dict[str, dict[str, Any]] = {
    "": {"engine": {"backend": "spark"}, "acceptance": ["the_count: mean_error <= 100"]},
    "privacy": {"max_cells_per_unit": 1, "replacement": "domain"},
    "queries": {"max_rows_per_unit": 1, "loss": "squared", "cell_size": 10, "where": "kind = 1"},
}
"""Fields that a spec may have besides."""

MAY_BE_ASKED = re.compile(
    r"budget\..*|keys\.(day.*|place)|engine|acceptance|tables\.rows\.(path|columns\..*)"
    r"|privacy\.(unit|fixed.*|max_cells_per_unit|replacement)"
    r"|queries\.\d+\.(mechanism|of|rank|weight|clamp.*|count|cell_size|noise|loss|max_rows_per_unit)"
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
def test_what_else_may_have_been_asked_is_called_asserted(
    part: int, tmp_path: Path, record_property: Tried
) -> None:
    run_release(Small(ROWS, QUERIES, fixed=["place"]).write(tmp_path), tmp_path / "made")
    forger = Forger(tmp_path / "made", tmp_path / "out")
    forger.fit(Path())
    assert forger.is_accepted(UNSIGNED)
    path, record = forger.public / "spec.yaml", forger.public / "release.json"
    plain, first = read(path), parse_spec(path.read_bytes())
    tried, passed = 0, []
    for place, changed in list(edits(plain))[part::PARTS]:
        data = written(path, changed)
        try:
            spec = parse_spec(data)
        except ReleaseError:
            continue
        if spec == first:
            continue
        path.write_bytes(data)
        stated = json.loads(record.read_bytes())
        for field in ("unit", "neighbors", "max_rows_per_unit", "fixed"):
            stated["privacy"][field] = changed["privacy"].get(field)
        stated["privacy"]["adjacency_text"] = adjacency_text(spec.privacy)
        record.write_bytes(rfc8785.dumps(stated))
        forger.fit(path)
        tried += 1
        if forger.is_accepted(UNSIGNED):
            passed.append(place)
        forger.restore()
    record_property("tried", tried)
    record_property("passed", len(passed))
    assert tried > 10
    assert [place for place in passed if not MAY_BE_ASKED.fullmatch(place)] == []
    assert passed
    assert "no proof rests on" in CHECKS["spec.unread"].meaning
