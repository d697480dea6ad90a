"""The verifier in one file refuses specs that break a rule, whatever fits them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.pipeline import run_release
from release.verification import standalone
from tests.planted.specs import SPECS
from tests.small import Row, Small, query
from tests.verification.standalone.test_verdicts import at, edit, sum_up, told

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "abc"[i % 3], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
GLOBAL = {"sensitivity": "global"}
ON_STATISTIC = {**GLOBAL, "noise": "on_statistic"}
QUERIES = [
    query("count", name="total", mechanism="integer", loss="absolute", **GLOBAL),
    query("binned", name="middle", statistic="median", **ON_STATISTIC),
    query("mode", name="held", by=["day"]),
]
Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of worst-case queries and an instance-specific one."""
    folder = tmp_path_factory.mktemp("rules")
    return run_release(
        Small(ROWS, QUERIES, max_rows_per_unit=1).write(folder), folder / "out"
    ).public


@pytest.fixture(scope="module")
def tabulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tabulation of 36 areas by a category."""
    folder = tmp_path_factory.mktemp("areas")
    return run_release(SPECS["tabulated"].write(folder), folder / "out").public


def first(change: Change) -> Change:
    """A change of the first query."""
    return lambda plain: change(plain["queries"][0])


def as_attribute(column: str, **fields: Any) -> Change:
    """Protect one column alone."""
    return lambda plain: plain["privacy"].update(neighbors="attribute", attribute=column, **fields)


def derive(plain: Any) -> None:
    plain["tables"]["rows"]["derive"] = {"band": {"type": "integer", "sql": "kind // 2"}}


def derived_attribute(plain: Any) -> None:
    derive(plain)
    as_attribute("band")(plain)


def published_part(plain: Any) -> None:
    plain["queries"].append(plain["queries"][2] | {"name": "part"})
    for field in ("guarantee", "sensitivity"):
        plain["queries"][3].pop(field)


def joined_to_itself(plain: Any) -> None:
    plain["tables"]["rows"]["join"] = {"table": "rows"}


BROKEN: dict[str, tuple[Change, str]] = {
    "an unknown field": (lambda plain: plain.update(nonsense=1), "fields"),
    "an unknown field of a query": (first(lambda q: q.update(nonsense=1)), "fields"),
    "a field of another kind": (first(lambda q: q.update(k=2)), "fields"),
    "no table": (lambda plain: plain["tables"].clear(), "privacy.unit"),
    "a table without columns": (at("tables.rows.columns", {}), "privacy.unit"),
    "a table that joins itself": (joined_to_itself, "tables.rows.join"),
    "a query of no table": (first(lambda q: q.update(table="nowhere")), "total.by"),
    "two columns of one name": (at("tables.rows.columns.KIND", "integer"), "tables.rows"),
    "another unit": (at("privacy.unit", "nobody"), "privacy.unit"),
    "no rows": (at("privacy.max_rows_per_unit", 0), "max_rows_per_unit"),
    "fixed names no column": (at("privacy.fixed", ["nobody"]), "privacy.fixed"),
    "keys of no column": (at("keys.nobody", ["a"]), "privacy.fixed, keys"),
    "a key twice": (at("keys.place", ["a", "a", "b"]), "a list"),
    "an attribute without its relation": (at("privacy.attribute", "kind"), "privacy.attribute"),
    "no attribute": (at("privacy.neighbors", "attribute"), "privacy.attribute"),
    "an attribute that is fixed": (as_attribute("kind", fixed=["kind"]), "privacy.attribute"),
    "an attribute that is the unit": (as_attribute("unit"), "privacy.attribute"),
    "an attribute that is derived": (derived_attribute, "privacy.attribute"),
    "a key column twice": (first(lambda q: q.update(by=["place", "place"])), "total.by"),
    "a key column without keys": (first(lambda q: q.update(by=["wh"])), "total.by"),
    "the unit as a key": (
        lambda plain: (plain["keys"].update(unit=["u1"]), plain["queries"][0].update(by=["unit"])),
        "total.by",
    ),
    "a count of something else": (first(lambda q: q.update(of="wh")), "total.of"),
    "a category of another type": (at("queries.2.of", "place"), "held.of"),
    "two guarantees": (first(lambda q: q.update(share="1")), "total"),
    "a part of no tuple": (published_part, "part"),
    "a mechanism that does not fit": (at("queries.2.mechanism", "channel"), "held.mechanism"),
    "a mechanism of nobody": (first(lambda q: q.update(mechanism="none")), "total.mechanism"),
    "another mechanism on a statistic": (
        at("queries.1.mechanism", "two_categories"),
        "mechanisms/middle.json: mechanism",
    ),
    "a table of one category's gaps": (
        at("queries.1.mechanism", "gap_table"),
        "mechanisms/middle.json: mechanism",
    ),
    "per unit without an attribute": (
        at("queries.2.kind", "per_unit"),
        "held.by",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_spec_that_breaks_a_rule_is_refused(
    name: str, public: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, says = BROKEN[name]
    check_refused(change, says, public, tmp_path, capsys)


def check_refused(
    change: Change, says: str, public: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(public, folder / public.name))
    edit(copy / "spec.json", change)
    record = json.loads((copy / "release.json").read_bytes())
    # Whatever repeats the spec fits it.
    plain = json.loads((copy / "spec.json").read_bytes())
    for entry, own in zip(record["queries"], plain.get("queries", []), strict=False):
        entry |= {"kind": own["kind"], "by": own["by"]}
    for field in ("neighbors", "unit", "fixed", "max_rows_per_unit"):
        record["privacy"][field] = plain["privacy"].get(field) or record["privacy"][field]
    edit(copy / "release.json", lambda old: old.update(record))
    sum_up(copy)
    status, text = told(capsys, copy, "--require", "none")
    assert status == 1, text
    assert says in text.splitlines()[0], text


def classes(plain: Any) -> None:
    plain["tabulations"][0]["groupings"] = {
        "group": {"of": "race", "classes": {"some": ["a", "b"], "others": ["b", "c"]}}
    }


TABULATED: dict[str, tuple[Change, str]] = {
    "classes that overlap": (classes, "groupings.group"),
    "a category twice": (at("tabulations.0.attributes.race", ["a", "a"]), "a list"),
    "several rows": (at("privacy.max_rows_per_unit", 2), "rows of a unit"),
    "a category that is fixed": (at("privacy.fixed", ["race"]), "columns"),
    "a margin of nothing": (at("tabulations.0.publish.tract", [["size"]]), "publish"),
    "a margin that is not published": (at("tabulations.0.publish.tract", [[]]), "margin"),
    "two parts of one name": (at("tabulations.0.hierarchy.levels", ["race", "tract"]), "names"),
}


@pytest.mark.parametrize("name", TABULATED)
def test_a_tabulation_that_breaks_a_rule_is_refused(
    name: str, tabulated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, says = TABULATED[name]
    check_refused(change, says, tabulated, tmp_path, capsys)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("margins", [["size"]], "margins: found"),
        ("margins", lambda margins: [*margins, *margins], "margins: found"),
        ("output.rows", lambda rows: rows + 1, "rows: found"),
    ],
)
def test_what_the_record_says_of_a_level_follows_from_the_spec(
    place: str,
    value: Any,
    says: str,
    tabulated: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    public = tmp_path / "small"
    shutil.copytree(tabulated, public)
    edit(public / "release.json", at(f"tabulations.0.levels.0.{place}", value))
    sum_up(public)
    status, text = told(capsys, public, "--require", "none")
    assert status == 1
    assert says in text


@pytest.mark.parametrize("kind", ["banded", "chosen"])
def test_a_fixed_column_does_not_change(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of a spec that is right, and its spec with one field of ``privacy`` more."""
    plain = yaml.safe_load(SPECS[kind].write(tmp_path).read_text("utf-8"))
    fixed = plain["privacy"].pop("fixed")
    spec = tmp_path / "right.yaml"
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    public = run_release(spec, tmp_path / "out").public
    auditor = ("--auditor", tmp_path / "out" / "auditor") if kind == "chosen" else ()
    assert told(capsys, public, *auditor, "--require", "none")[0] == 0
    says = "privacy.fixed: band" if kind == "banded" else "queries.the_mode.where"

    def fix(plain: Any) -> None:
        plain["privacy"]["fixed"] = fixed

    for file in ("spec.json", "release.json"):
        edit(public / file, fix)
    if kind == "chosen":
        text = f"all rows of one unit are replaced by those of another, which keeps its {fixed[0]}"
        edit(public / "release.json", at("privacy.adjacency_text", text))
    sum_up(public)
    status, text = told(capsys, public, *auditor, "--require", "none")
    assert status == 1
    assert says in text


def test_a_fixed_column_whose_sql_names_the_attribute_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file reads no SQL: a tree without the attribute is only what the curator says."""
    plain = yaml.safe_load(SPECS["banded"].write(tmp_path).read_text("utf-8"))
    fixed = plain["privacy"].pop("fixed")
    spec = tmp_path / "right.yaml"
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    public = run_release(spec, tmp_path / "out").public
    for file in ("spec.json", "release.json"):
        edit(public / file, at("privacy.fixed", fixed))
    tree = {"call": "//", "of": [{"column": "day"}, {"integer": "2"}]}
    edit(public / "release.json", at("expressions.0.tree", tree))
    charge_one_cell(public, [[3]])
    status, text = told(capsys, public, "--require", "none")
    assert (status, "not read: whether band, which is fixed, reads kind" in text) == (3, True), text


def test_a_charge_that_needs_the_keys_of_a_file_is_not_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replaced unit touches two of three cells; with the keys of one cell it would touch one."""
    plain = yaml.safe_load(
        Small(ROWS, QUERIES[:1], max_rows_per_unit=1).write(tmp_path).read_text()
    )
    (tmp_path / "places.csv").write_text("place\na\nb\nc\n", "utf-8")
    plain["keys"]["place"] = {"file": "places.csv"}
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(plain), "utf-8")
    public = run_release(spec, tmp_path / "out").public
    status, text = told(capsys, public, "--require", "none")
    assert (status, "which its charge needs" in text) == (0, False)

    edit(public / "release.json", at("queries.0.cells", 1))
    edit(public / "release.json", at("queries.0.output.rows", 1))
    charge_one_cell(public, [[1]])
    status, text = told(capsys, public, "--require", "none")
    assert status == 3, text
    assert "not read: total: the number of keys in a file, which its charge needs" in text


def charge_one_cell(public: Path, patterns: list[list[int]]) -> None:
    """Charge the only query for one cell, and make its profile fit that."""

    def undercharge(record: Any) -> None:
        record["queries"][0] |= {"parallel": True, "charge": {"epsilon": "1", "delta": "0"}}
        record["composition"]["epsilon"] = record["guarantee"]["epsilon"] = "1"

    edit(public / "release.json", undercharge)
    record = json.loads((public / "release.json").read_bytes())
    spec = standalone.Spec(json.loads((public / "spec.json").read_bytes()))
    path = public / "mechanisms" / "total.json"
    file, entry = json.loads(path.read_bytes()), record["queries"][0]
    mechanism = standalone.check_mechanism("mechanisms/total.json", file, spec.published[0], entry)
    values = standalone.profile_of(mechanism, patterns, Fraction(file["profile"]["step"]))
    assert values is not None
    fitting = {"patterns": patterns, "values": list(map(str, values))}
    edit(path, lambda plain: plain["profile"].update(fitting))
    sum_up(public)
