"""What changed in a spec since the last release of the series, and what is no change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release.operate.log.changes import changes, changes_since_last, predecessor


def published(folder: Path, name: str, spec: dict[str, Any]) -> Path:
    public = folder / name
    public.mkdir()
    (public / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    return public


def night(day: str, **changed: Any) -> dict[str, Any]:
    homes = {"name": "homes", "kind": "count", "where": f"day = '{day}'", "by": ["place"]}
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": f"n-{day}", "title": changed.pop("title", "Nights")},
        "tables": {"rows": {"path": f"{day}.csv", "columns": {"day": "date"}}},
        "budget": {"scope": "s", "epsilon": "1", "delta": "0"},
        "queries": [homes | {"guarantee": {"definition": "pure", "epsilon": "1"}} | changed],
    }


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("n-2024-01-05", "n-2024-01-04-r2"),
        ("n-2024-01-04-r2", "n-2024-01-04"),
        ("n-2024-01-04", "n-2023-12-31"),
        ("n-2023-12-31", None),
        ("m-2024-w02", "m-2024-w01"),
        ("year-2024-q2-all", "year-2024-q1-all"),
        ("once-r10", "once-r9"),
        ("once", None),
        ("other", None),
        ("n-2024-13-01", None),
    ],
)
def test_the_release_before_is_the_last_of_its_series(
    name: str, before: str | None, tmp_path: Path
) -> None:
    others = ["n-2024-01-05", "n-2024-01-04-r2", "n-2024-01-04", "n-2023-12-31", "once", "once-r9"]
    others += ["m-2024-w01", "m-2024-w02", "year-2024-q1-all", "year-2024-q2-all", "once-r2"]
    others += ["n-2024-01-06", "once-r10", "other", "n-2024-13-01"]
    for other in others:
        published(tmp_path, other, night("2024-01-04"))
    found = predecessor(tmp_path / name)
    assert (None if found is None else found.name) == before


def test_what_follows_from_the_period_and_words_for_people_are_no_changes(tmp_path: Path) -> None:
    before = published(tmp_path, "n-2024-01-04", night("2024-01-04"))
    after = published(tmp_path, "n-2024-01-05", night("2024-01-05", title="Evenings"))
    assert changes(before, after) == ()
    assert changes_since_last(after) == ("n-2024-01-04", ())


def test_each_part_of_a_query_that_differs_is_named(tmp_path: Path) -> None:
    before = published(tmp_path, "n-2024-01-04", night("2024-01-04"))
    spec = night("2024-01-05", guarantee={"definition": "pure", "epsilon": "2"}, by=["place", "x"])
    spec["queries"].insert(0, {"name": "more", "kind": "mode"})
    spec["tables"]["rows"]["columns"]["wh"] = "integer"
    after = published(tmp_path, "n-2024-01-05", spec)
    assert list(map(str, changes(before, after))) == [
        'queries.homes.by: ["place"] → ["place", "x"]',
        'queries.homes.guarantee.epsilon: "1" → "2"',
        'queries.more.kind: nothing → "mode"',
        'queries.more.name: nothing → "more"',
        'tables.rows.columns.wh: nothing → "integer"',
    ]


def test_a_condition_of_another_day_is_a_change(tmp_path: Path) -> None:
    before = published(tmp_path, "n-2024-01-04", night("2024-01-04"))
    after = published(tmp_path, "n-2024-01-05", night("2024-01-05", where="day = '2024-01-04'"))
    (change,) = changes(before, after)
    assert change.after == "\"day = '2024-01-04'\""


def test_a_neighbor_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (published(tmp_path, "n-2024-01-04", {}) / "spec.yaml").write_bytes(b"\xff{")
    after = published(tmp_path, "n-2024-01-05", night("2024-01-05"))
    assert changes_since_last(after) == (None, ())
    assert changes_since_last(tmp_path / "nowhere" / "n-2024-01-05") == (None, ())


def test_a_long_or_strange_text_is_shown_in_one_short_line(tmp_path: Path) -> None:
    before = published(tmp_path, "once", night("2024-01-04"))
    after = published(
        tmp_path, "once-r2", night("2024-01-04", where="\x1b[31m\n\u202e" + "x" * 500)
    )
    (change,) = changes(before, after)
    assert str(change).isascii() is False  # the arrow, and the mark of the cut
    assert str(change).replace("→", "").replace("…", "").isascii()
    assert str(change).isprintable()
    assert len(str(change)) < 300
