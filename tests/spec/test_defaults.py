"""What a spec may leave out, and what may never be left out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from dp_release_verify.verdict import VERIFIED
from release.bundle.files.asked import asked_of
from release.errors import SpecError
from release.queries.read import read_spec
from release.street import run_release

SHORT: dict[str, Any] = {
    "spec": "dp-release/spec/v1",
    "release": {"id": "short"},
    "tables": {"trips": {"path": "trips.csv", "columns": {"rider": "string", "line": "string"}}},
    "privacy": {"unit": "rider", "neighbors": "add_remove", "max_rows_per_unit": 2},
    "budget": {"scope": "riders", "epsilon": 2},
    "keys": {"line": ["a", "b"]},
    "queries": [{"name": "trips", "kind": "count", "by": ["line"], "guarantee": {"epsilon": 1}}],
}


def read(plain: dict[str, Any], folder: Path) -> Any:
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain))
    return read_spec(path).spec


def test_ten_lines_say_what_a_long_spec_says(tmp_path: Path) -> None:
    long = copy.deepcopy(SHORT)
    long["budget"]["delta"] = "0"
    long["queries"][0] |= {
        "table": "trips",
        "sensitivity": "global",
        "guarantee": {"definition": "pure", "epsilon": "1", "delta": "0"},
        "domain": {"ordered": {"min": 0, "max": 2**52 - 1}},
    }
    assert asked_of(read(SHORT, tmp_path)) == asked_of(read(long, tmp_path))
    short = copy.deepcopy(SHORT)
    del short["queries"][0]["by"]
    assert read(short, tmp_path).queries[0].by == []


def test_a_release_of_ten_lines_says_what_is_not_said(tmp_path: Path) -> None:
    rows = [("r1", "a"), ("r1", "b"), ("r2", "a"), ("r3", "z")]
    text = "rider,line\n" + "".join(f"{rider},{line}\n" for rider, line in rows)
    (tmp_path / "trips.csv").write_text(text)
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(SHORT))
    made = run_release(path, tmp_path / "out")
    assert made.verdict is not None
    assert made.verdict.status == VERIFIED
    texts = ["title", "curator", "contact", "purpose", "period", "license"]
    assert made.verdict.not_said == texts
    page = (made.public / "report.html").read_text("utf-8")
    assert f"Not said: {', '.join(texts)}." in page
    assert "<h1>short</h1>" in page
    assert "None" not in page


NEVER = [
    ("budget", "epsilon"),
    ("privacy", "unit"),
    ("privacy", "neighbors"),
    ("privacy", "max_rows_per_unit"),
    ("keys", "line"),
]


@pytest.mark.parametrize("place", NEVER, ids=".".join)
def test_what_protects_people_has_no_default(place: tuple[str, str], tmp_path: Path) -> None:
    plain = copy.deepcopy(SHORT)
    plain["queries"][0]["by"] = ["line"]
    del plain[place[0]][place[1]]
    with pytest.raises(SpecError, match=place[1]):
        read(plain, tmp_path)


def test_a_delta_needs_its_definition(tmp_path: Path) -> None:
    plain = copy.deepcopy(SHORT)
    plain["queries"][0]["guarantee"]["delta"] = "0.001"
    with pytest.raises(SpecError, match=r"needs its definition: approximate or probabilistic"):
        read(plain, tmp_path)


def test_of_several_tables_one_is_named(tmp_path: Path) -> None:
    plain = copy.deepcopy(SHORT)
    plain["tables"]["riders"] = copy.deepcopy(plain["tables"]["trips"])
    with pytest.raises(SpecError, match=r"queries\[0\].table: there are several tables"):
        read(plain, tmp_path)


def test_the_largest_of_a_share_is_refused_in_one_line(tmp_path: Path) -> None:
    plain = copy.deepcopy(SHORT)
    plain["tables"]["trips"]["columns"]["age"] = "integer"
    bins = {"low": 0, "high": 100, "count": 10}
    plain["queries"] = [{"name": "oldest", "kind": "max", "of": "age", "bins": bins, "share": 1}]
    with pytest.raises(SpecError, match=r"queries\[0\].rank: missing"):
        read(plain, tmp_path)
