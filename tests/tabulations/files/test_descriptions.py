"""What other tools are told of tabulations: it is what the files hold, and all public facts."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dp_release_verify.digests import sha256
from release.bundle.exports import registry
from release.bundle.opened import open_public
from release.bundle.tables.parquet import stated_facts
from tests.tabulations.files.folders import Folder, census

CONSTRAINTS = [
    {"level": "state", "margin": ["age"], "file": "ages.csv"},
    {"impossible": {"race": ["b"], "age": ["young"]}},
]
TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    place = tmp_path_factory.mktemp("described") / "public"
    return census(place, title="Persons", constraints=CONSTRAINTS)


def resources(folder: Folder) -> list[dict[str, Any]]:
    package = json.loads((folder.public / "datapackage.json").read_bytes())
    found: list[dict[str, Any]] = package["resources"]
    return found


def test_every_file_is_described_once(folder: Folder) -> None:
    told = [one["path"] for one in resources(folder)]
    files = [str(path.relative_to(folder.public)) for path in folder.public.rglob("*.parquet")]
    assert sorted(told) == sorted(files)
    assert len({one["name"] for one in resources(folder)}) == len(files)
    assert told[:3] == [f"data/census_{level}.parquet" for level in ("state", "county", "tract")]
    assert told[-1] == "data/census_declared.parquet"
    for one in resources(folder):
        data = (folder.public / one["path"]).read_bytes()
        assert one["bytes"] == len(data)
        assert one["hash"] == f"sha256:{sha256(data)}"


def test_columns_are_those_of_the_files(folder: Folder) -> None:
    for one in resources(folder):
        schema = pq.read_schema(folder.public / one["path"])
        fields = one["schema"]["fields"]
        assert [field["name"] for field in fields] == schema.names
        assert [TYPES[field["type"]] for field in fields] == schema.types
        for field, column in zip(fields, schema, strict=True):
            assert field.get("constraints", {}).get("required", False) is not column.nullable
            facts = stated_facts(schema, column.name)
            assert facts == {name: field[name] for name in facts}
            assert bool(facts) == (field["type"] != "string")


def test_keys_name_rows_and_bounds_hold(folder: Folder) -> None:
    for one in resources(folder):
        table = pq.read_table(folder.public / one["path"])
        schema = one["schema"]
        assert ("primaryKey" in schema) != ("uniqueKeys" in schema)
        keys = schema["primaryKey"] if "primaryKey" in schema else schema["uniqueKeys"][0]
        assert table.group_by(keys).aggregate([]).num_rows == table.num_rows
        if "primaryKey" in schema:
            assert all(table.column(name).null_count == 0 for name in keys)
        for field in schema["fields"]:
            if "minimum" in field.get("constraints", {}):
                assert (
                    min(table.column(field["name"]).to_pylist()) >= field["constraints"]["minimum"]
                )


@pytest.mark.skipif(find_spec("frictionless") is None, reason="frictionless is not installed")
def test_another_reader_finds_the_package_valid(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frictionless' own profile of Data Package v2."""
    from frictionless import Package

    monkeypatch.chdir(folder.public)
    report = Package.validate_descriptor("datapackage.json")
    assert report.valid, report.flatten(["message"])


def test_a_package_with_declared_numbers_does_not_say_that_all_are_noisy(
    folder: Folder, tmp_path: Path
) -> None:
    package = json.loads((folder.public / "datapackage.json").read_bytes())
    assert package["description"].endswith("; every number but those declared has noise.")
    plain = census(tmp_path / "public")
    package = json.loads((plain.public / "datapackage.json").read_bytes())
    assert package["description"].endswith("; every answer has noise.")


def test_the_registry_names_what_is_counted_and_what_is_not_protected(folder: Folder) -> None:
    record = yaml.safe_load(registry(open_public(folder.public)))
    assert record["basic"]["description"].endswith(": census")
    domain = record["dp_variant"]["data_domain"]
    assert domain == (
        "census: counts of persons by race and age and hispanic, on the levels state, county, tract"
    )
    assert record["dp_variant"]["unprotected_quantities"] == (
        "census: the areas of state, county, tract, the categories of race, age, the declared "
        "numbers of state, age, the impossible combinations of race, age"
    )
    implementation = record["implementation"]
    assert implementation["mechanisms"] == (
        "census: geometric noise on 2 tables, estimated by least squares"
    )
    assert implementation["justification"] == (
        "of tabulations the least mean standard error that was found; see the mechanisms and the "
        "report"
    )


def test_the_registry_says_what_a_spec_pins_and_what_sql_is_trusted(tmp_path: Path) -> None:
    tables = [{"level": "tract", "margin": ["race", "age"], "share": "1"}]
    strategy = {"noise": "geometric", "tables": tables}
    folder = census(tmp_path / "public", strategy=strategy, where="age <> 'old'")
    record = yaml.safe_load(registry(open_public(folder.public)))
    justification = record["implementation"]["justification"]
    assert justification.endswith("; of census the spec says what is measured")
    details = record["privacy_loss"]["privacy_parameters_details"]
    assert details.endswith(", provided that its conditions are evaluated as published")
