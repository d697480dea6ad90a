"""Published conditions: proved row-local without an engine, and refused where they are forged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from release.errors import VerificationError
from release.pipeline import run_release
from release.queries.read import parse_spec
from release.records.models import ReleaseRecord, parse
from release.verification.checks import Level
from release.verification.conditions import check_expressions
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.small import UNSIGNED, Row, Small, query
from tests.verification.test_verifier import edit_json, sign_anew

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with a derived column and two conditions."""
    folder = tmp_path_factory.mktemp("conditions")
    asked = [
        query("count", name="some", sensitivity="global", where="wh > 3"),
        query("count", name="all_of_them", sensitivity="global"),
        query("count", name="few", sensitivity="global", where="double_wh = 8 AND place = 'a'"),
    ]
    small = Small(ROWS, asked)
    spec = small.write(folder)
    plain = small.plain()
    plain["tables"]["rows"]["derive"] = {"double_wh": {"type": "integer", "sql": "wh * 2"}}
    spec.write_text(json.dumps(plain), "utf-8")
    return run_release(spec, folder / "out").public


@pytest.fixture
def public(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / made.name))


def test_conditions_are_published_and_proved(public: Path) -> None:
    stated = json.loads((public / "release.json").read_bytes())["expressions"]
    assert stated == [
        {
            "place": "tables.rows.derive.double_wh",
            "tree": {"call": "*", "of": [{"column": "wh"}, {"integer": "2"}]},
        },
        {
            "place": "queries.some.where",
            "tree": {"call": ">", "of": [{"column": "wh"}, {"integer": "3"}]},
        },
        {
            "place": "queries.few.where",
            "tree": {
                "call": "and",
                "of": [
                    {"call": "=", "of": [{"column": "double_wh"}, {"integer": "8"}]},
                    {"call": "=", "of": [{"column": "place"}, {"string": "a"}]},
                ],
            },
        },
    ]
    verdict = verify(public, None, UNSIGNED)
    for place in ("tables.rows.derive.double_wh", "queries.some.where", "queries.few.where"):
        assert f"{place}: it looks at one row at a time, and no row makes it fail" in verdict.proved
    assert any("are those of the text in spec.yaml" in line for line in verdict.tested)


def deep(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"column": "wh"}
    for _ in range(levels):
        tree = {"call": "abs", "of": [tree]}
    return {"call": ">", "of": [tree, {"integer": "3"}]}


def condition(tree: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda record: record["expressions"][1].update(tree=tree)


MORE = {"call": ">", "of": [{"column": "wh"}, {"integer": "4"}]}
FORGED: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (condition({"query": "SELECT 1"}), "schema"),
    (condition({"call": "max", "of": [{"column": "wh"}]}), "the function 'max' is not there"),
    (condition(MORE | {"over": []}), "schema"),
    (condition({"column": "wh", "integer": "3"}), "schema"),
    (condition([]), "schema"),
    (condition({"column": "other"}), "'other' is not there"),
    (condition({"column": "wh"}), "the expression is an integer"),
    (condition({"call": ">", "of": [{"column": "wh"}, {"string": "3"}]}), "'>' takes"),
    (condition({"call": ">", "of": [{"column": "wh"}, {"integer": "03"}]}), "schema"),
    (condition({"call": ">", "of": [{"column": "wh"}, {"integer": str(2**63)}]}), "schema"),
    (condition({"call": ">", "of": [{"column": "wh"}, {"date": "2013-02-30"}]}), "schema"),
    (condition({"cast": "boolean", "of": {"column": "place"}}), "as in spec.yaml"),
    (condition(MORE), "as in spec.yaml"),
    (condition(deep(70)), "nested more than 64 deep"),
    (condition(deep(400)), "release.json"),
    (condition({"call": "or", "of": [MORE] * 400}), "more than 1000 parts"),
    (lambda record: record["expressions"].pop(), "places of expressions"),
    (lambda record: record.pop("expressions"), "places of expressions"),
    (lambda record: record.update(expressions=[]), "schema"),
    (lambda record: record["expressions"].reverse(), "places of expressions"),
    (
        lambda record: record["expressions"].append(
            {"place": "queries.all_of_them.where", "tree": {"boolean": True}}
        ),
        "places of expressions",
    ),
    (lambda record: record["expressions"][0].update(place="x"), "places of expressions"),
]


@pytest.mark.parametrize(("change", "says"), FORGED)
def test_a_forged_tree_is_refused(
    change: Callable[[dict[str, Any]], Any], says: str, public: Path
) -> None:
    edit_json(public / "release.json", change)
    sign_anew(public)
    with pytest.raises(VerificationError) as told:
        verify(public, None, UNSIGNED)
    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "text",
    ["wh > 4", "wh > (SELECT median(wh) FROM rows)", "this is (no SQL", "wh > 3 AND wh > 3"],
)
def test_a_text_that_says_something_else_is_refused(text: str, public: Path) -> None:
    path = public / "spec.yaml"
    assert "wh > 3" in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace("wh > 3", text), "utf-8")
    sign_anew(public)
    with pytest.raises(VerificationError, match=r"as in spec\.yaml|queries\[0\]\.where"):
        verify(public, None, UNSIGNED)


def test_a_tree_of_ten_thousand_levels_is_one_line(public: Path) -> None:
    path = public / "release.json"
    old = b'{"call":">","of":[{"column":"wh"},{"integer":"3"}]}'
    assert old in path.read_bytes()
    levels = 10_000
    new = b'{"call":"abs","of":[' * levels + b'{"column":"wh"}' + b"]}" * levels
    path.write_bytes(path.read_bytes().replace(old, new))
    sign_anew(public)
    with pytest.raises(VerificationError, match=r"release\.json"):
        verify(public, None, UNSIGNED)


def test_row_local_is_proved_without_an_engine_or_a_parser(public: Path) -> None:
    """Before the text is parsed, a tree is refused by itself."""
    record = parse(ReleaseRecord, (public / "release.json").read_bytes())
    spec = parse_spec((public / "spec.yaml").read_bytes())
    levels = [finding.level for finding in check_expressions(record, spec)]
    assert levels == [Level.PROVED] * 3 + [Level.TESTED]
    program = (
        "import sys; from release.records.models import ReleaseRecord, parse;"
        "from release.spec.declarations import ColumnType;"
        "from release.spec.expressions.check import check_tree;"
        "record = parse(ReleaseRecord, sys.stdin.buffer.read());"
        "columns = {'wh': ColumnType.INTEGER};"
        "check_tree(record.expressions[1].tree, columns, ColumnType.BOOLEAN);"
        "assert not {'sqlglot', 'duckdb', 'pyarrow'} & sys.modules.keys()"
    )
    data = (public / "release.json").read_bytes()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PROJECT, input=data)
