"""Table Schemas as contracts, beside the library of Frictionless that checks the same rows."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.errors import SpecError
from release.queries.read import read_spec
from release.spec.contracts.model import Contract
from release.spec.contracts.read import read_contract
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier
from release.tables.duckdb import raw_table
from tests.answers import answer, load
from tests.small import Small, query
from tests.spec.contracts.open import opened

DECLARED = {
    "id": ColumnType.STRING,
    "place": ColumnType.STRING,
    "code": ColumnType.STRING,
    "hour": ColumnType.INTEGER,
    "kwh": ColumnType.NUMBER,
    "on": ColumnType.DATE,
    "at": ColumnType.TIMESTAMP,
    "paid": ColumnType.BOOLEAN,
}
TYPES = {"timestamp": "datetime"}

RULES: dict[str, dict[str, Any]] = {
    "place": {"enum": ["a", "b"], "required": True},
    "code": {"pattern": "[A-Z]{2}[0-9]+"},
    "hour": {"minimum": 0, "maximum": "23", "enum": [0, 1, 5, 23, 24], "required": True},
    "kwh": {"minimum": "0.1", "maximum": 2.5},
    "on": {"minimum": "2013-01-05", "maximum": "2013-12-31", "required": True},
    "at": {"minimum": "2013-01-05T12:30:00Z", "required": True},
    "paid": {"enum": [True]},
}

SCHEMA: dict[str, Any] = {
    "name": "readings",
    "title": "Readings",
    "description": "what homes draw",
    "fields": [
        {
            "name": name,
            "type": TYPES.get(kind.value, kind.value),
            "title": name.upper(),
            "constraints": RULES.get(name, {}),
        }
        for name, kind in DECLARED.items()
    ],
    "missingValues": [""],
    "primaryKey": "id",
}

ROWS = """id,place,code,hour,kwh,on,at,paid
whole,a,AB1,0,0.1,2013-01-05,2013-01-05T12:30:00Z,true
most,b,ZZ99,23,2.5,2013-12-31,2099-01-01T00:00:00Z,1
empty,a,,5,,2013-02-01,2013-02-01T00:00:00Z,
place,c,AB1,0,1,2013-02-01,2013-02-01T00:00:00Z,true
nowhere,,AB1,0,1,2013-02-01,2013-02-01T00:00:00Z,true
code,a,AB1x,0,1,2013-02-01,2013-02-01T00:00:00Z,true
below,a,AB1,-1,0.0999,2013-01-04,2013-01-05T12:29:59Z,true
above,a,AB1,24,2.5001,2014-01-01,2013-02-01T00:00:00Z,true
enum,a,AB1,7,1,2013-02-01,2013-02-01T00:00:00Z,true
unpaid,a,AB1,1,1,2013-02-01,2013-02-01T00:00:00Z,false
hourless,a,AB1,,1,2013-02-01,2013-02-01T00:00:00Z,true
typeless,a,AB1,many,1,2013-02-30,later,true
unread,a,AB1,1,one,2013-02-01,2013-02-01T00:00:00Z,maybe
whole,a,AB1,1,1,2013-02-01,2013-02-01T00:00:00Z,true
"""


def read(folder: Path, schema: object, name: str = "rows.schema.json") -> Contract:
    path = folder / name
    path.write_text(json.dumps(schema) if name.endswith("json") else yaml.safe_dump(schema))
    return read_contract("tables.rows.contract", path, DECLARED)


def changed(place: str, **change: Any) -> dict[str, Any]:
    """SCHEMA with a change to the field of a column."""
    fields = [field | (change if field["name"] == place else {}) for field in SCHEMA["fields"]]
    return SCHEMA | {"fields": fields}


def test_all_rules_are_taken_over(tmp_path: Path) -> None:
    contract = read(tmp_path, SCHEMA)
    assert contract.unique == ["id"]
    hour, moment = contract.columns["hour"], contract.columns["at"]
    assert (hour.minimum, hour.maximum, hour.nullable) == (0, 23, False)
    assert hour.allowed == [0, 1, 5, 23, 24]
    assert (moment.type, moment.minimum) == (ColumnType.TIMESTAMP, "2013-01-05 12:30:00")
    assert (contract.columns["kwh"].minimum, contract.columns["kwh"].nullable) == (0.1, True)
    assert contract.columns["code"].pattern == "[A-Z]{2}[0-9]+"
    assert not contract.columns["id"].nullable, "a key has a value in every row"
    assert {rule.on_violation.value for rule in contract.columns.values()} == {"drop"}


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    text = json.dumps(SCHEMA, indent="\t")
    (tmp_path / "tabs.json").write_text(text)
    tabs = read_contract("tables.rows.contract", tmp_path / "tabs.json", DECLARED)
    assert read(tmp_path, SCHEMA, "rows.yaml") == read(tmp_path, SCHEMA) == tabs


def test_what_the_spec_does_not_declare_is_ignored(tmp_path: Path) -> None:
    place = {"name": "where", "type": "geopoint", "constraints": {"minLength": 3}}
    assert read(tmp_path, SCHEMA | {"fields": [*SCHEMA["fields"], place]}) == read(tmp_path, SCHEMA)


def test_missing_values_that_are_none_here(tmp_path: Path) -> None:
    texts = {"missingValues": ["", "NA", "-"]}
    assert read(tmp_path, changed("hour", **texts)) == read(tmp_path, SCHEMA)


def test_a_unique_field_is_a_key(tmp_path: Path) -> None:
    keyless = {key: value for key, value in SCHEMA.items() if key != "primaryKey"}
    assert read(tmp_path, keyless).unique == []
    fields = changed("code", constraints={"unique": True})["fields"]
    assert read(tmp_path, keyless | {"fields": fields}).unique == ["code"]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (changed("place", type="geopoint"), "field 'place': has the type 'geopoint'"),
        (changed("hour", type="any"), "field 'hour': has the type 'any'"),
        (changed("hour", type="number"), "says 'hour' is number, declared is integer"),
        (changed("on", format="%d/%m/%y"), "field 'on': has the format '%d/%m/%y'"),
        (changed("code", format="email"), "field 'code': has the format 'email'"),
        (changed("kwh", decimalChar=","), "field 'kwh', decimalChar: unknown field"),
        (changed("paid", trueValues=["on"]), "field 'paid', trueValues: unknown field"),
        (
            changed("code", constraints={"minLength": 2}),
            r"field 'code', constraints\.minLength: unknown field; .*remove it",
        ),
        (
            changed("hour", constraints={"exclusiveMinimum": 2}),
            r"field 'hour', constraints\.exclusiveMinimum: unknown field",
        ),
        (changed("hour", constraints={"minimum": "few"}), "'hour', .*write an integer"),
        (changed("hour", constraints={"maximum": 2**62}), "a bound of 'hour' is beyond"),
        (changed("hour", constraints={"pattern": "[0-9]"}), "'hour', .*a pattern is for strings"),
        (changed("place", constraints={"minimum": "a"}), "'place', .*not for a string"),
        (changed("code", constraints={"pattern": "(?=a)"}), "'code', .*not a pattern that is"),
        (changed("at", constraints={"minimum": "2013-01-05T12:30:00+01:00"}), "'at', .*offset"),
        (changed("code", constraints={"unique": True}), "'code': is unique beside another key"),
        (changed("code", missingValues=["", "NA"]), "'code', missingValues: 'NA' may be a value"),
        (changed("hour", missingValues=["", "-99"]), "'hour', missingValues: '-99' may be a value"),
        (changed("paid", missingValues=["", "N"]), "'paid', missingValues: 'N' may be a value"),
        (changed("kwh", missingValues=["", "inf"]), "'kwh', missingValues: 'inf' may be a value"),
        (SCHEMA | {"missingValues": ["-"]}, "'id', missingValues: an empty text is no value"),
        (SCHEMA | {"foreignKeys": []}, "foreignKeys: unknown field"),
        (SCHEMA | {"fields": "id"}, "fields: found 'id'; write a list"),
        (SCHEMA | {"fields": SCHEMA["fields"] * 2}, "field 'id': is there twice"),
        (
            SCHEMA | {"fields": [{"name": "place", "constraints": {}}]},
            "field 'place', type: missing; add it",
        ),
    ],
)
def test_what_a_contract_cannot_say_is_refused(
    schema: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=says) as caught, opened(tmp_path, schema, ROWS, DECLARED):
        pass
    assert str(caught.value).startswith("tables.rows.contract: ")
    assert "\n" not in str(caught.value)
    assert caught.value.lines == (str(caught.value),)


RULE_OF = {
    "required": "nullable",
    "minimum": "minimum",
    "maximum": "maximum",
    "enum": "allowed",
    "pattern": "pattern",
}


@pytest.mark.skipif(find_spec("frictionless") is None, reason="frictionless is not installed")
def test_the_same_rows_are_faulty_as_for_frictionless(tmp_path: Path) -> None:
    """Each fault is counted alike, and the rows left are those of which it says nothing.

    Without a value that a row needs, it counts for us as of no type and as missing. What is of no
    type is missing, so a row that needs no value stays: ``unread``. A repeated key is only counted.
    """
    with opened(tmp_path, SCHEMA, ROWS, DECLARED) as tables:
        quality = tables.quality("rows")
        sql = f"SELECT {identifier('id')} AS id FROM {raw_table('rows')}"
        kept = sorted(tables.rows(sql, "rows").column("id").to_pylist())
    theirs, keys, faulty = frictionless_faults(tmp_path)
    ours = Counter({key: n for key, n in quality.faults.items() if key[0] != "missing"})
    untyped = {column: n for (rule, column), n in theirs.items() if rule.startswith("not a ")}
    for column, number in untyped.items():
        if RULES[column].get("required"):
            theirs["nullable", column] += number
    assert ours == theirs
    assert {rule for rule, _ in ours} >= {*RULE_OF.values(), "not a integer", "not a number"}
    assert (quality.repeated, keys) == (1, 1)
    names = [line.split(",")[0] for line in ROWS.splitlines()[1:]]
    valid = [name for row, name in enumerate(names) if row not in faulty]
    assert kept == sorted([*valid, "unread"])
    assert sorted(valid) == ["empty", "most", "whole", "whole"]


def frictionless_faults(folder: Path) -> tuple[Counter[tuple[str, str]], int, set[int]]:
    """The faults by our rule and column, the repeated keys, and the places of faulty rows."""
    from frictionless import Resource, Schema

    (folder / "theirs.csv").write_text(ROWS)
    schema = Schema.from_descriptor(SCHEMA)
    resource = Resource(path="theirs.csv", basepath=str(folder), schema=schema)
    report = resource.validate()
    found: Counter[tuple[str, str]] = Counter()
    keys, faulty = 0, set()
    for number, field, kind, note in report.flatten(["rowNumber", "fieldName", "type", "note"]):
        if kind == "primary-key":
            keys += 1
            continue
        # Their first row is the header.
        faulty.add(number - 2)
        if kind == "type-error":
            found[f"not a {DECLARED[field].value}", field] += 1
        else:
            assert kind == "constraint-error"
            found[RULE_OF[note.split('"')[1]], field] += 1
    return found, keys, faulty


def test_a_schema_is_named_by_a_spec_and_enforced(tmp_path: Path) -> None:
    """A row beyond the maximum of the schema does not count."""
    rows = [
        {"unit": f"u{i}", "place": "a", "day": 1, "kind": 0, "wh": wh}
        for i, wh in enumerate([3, 4])
    ]
    path = Small(rows, [query("count", by=[], sensitivity="global")]).write(tmp_path)
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["contract"] = "schema.yaml"
    path.write_text(yaml.safe_dump(plain))
    fields = [{"name": "wh", "type": "integer", "constraints": {"maximum": 3}}]
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump({"fields": fields}))
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [1]
