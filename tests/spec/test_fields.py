"""The descriptions of fields: found by location, present everywhere, and quoted by refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from release.bundle.schemas import WRITTEN, schema_texts
from release.errors import SpecError
from release.queries.kinds.binned import BinnedQuery
from release.queries.kinds.grid import GridQuery
from release.spec.contracts.read import read_contract
from release.spec.declarations import Table
from release.spec.load import parse_models
from release.spec.model import Spec
from release.spec.refusals.fields import description_of, fields_at
from tests.conftest import PROJECT


def _properties(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, definition in {"": schema, **schema.get("$defs", {})}.items():
        for field, what in definition.get("properties", {}).items():
            yield f"{name}.{field}", what


@pytest.mark.parametrize("file", sorted(f"{name}.schema.json" for name in WRITTEN))
def test_every_field_that_people_write_is_described(file: str) -> None:
    silent = [
        name
        for name, what in _properties(json.loads(schema_texts()[file]))
        if not what.get("description")
    ]
    assert silent == []


def test_the_fields_of_a_union_are_those_of_its_alternative() -> None:
    assert (
        fields_at(Spec, ("queries", 3, "release.queries.kinds.binned:BinnedQuery"))
        == BinnedQuery.model_fields
    )
    assert (
        fields_at(Spec, ("queries", 3, "release.queries.kinds.grid:GridQuery"))
        == GridQuery.model_fields
    )
    assert fields_at(Spec, ("queries", 3, "median")) == {}
    # A table may have the name of a field.
    assert fields_at(Spec, ("tables", "path")) == Table.model_fields


@pytest.mark.parametrize(
    ("location", "description"),
    [
        (("privacy", "unit"), "the column that names the privacy unit"),
        (
            ("queries", 0, "release.queries.kinds.grid:GridQuery", "grid", "step"),
            "the distance of neighboring points",
        ),
        (
            (
                "queries",
                0,
                "release.queries.kinds.count:CountQuery",
                "domain",
                "ordered",
                "ordered",
                "min",
            ),
            "the least answer",
        ),
        (
            ("queries", 0, "release.queries.kinds.joint:TupleQuery", "guarantee", "epsilon"),
            "ε of one cell",
        ),
        (("keys", "place", "range", "range"), "the first and the last integer"),
        (("queries", 0, "release.queries.kinds.count:CountQuery", "bins"), ""),
        (("spec", "spec"), ""),
    ],
)
def test_a_description_is_that_of_the_field(location: tuple[Any, ...], description: str) -> None:
    text = description_of(Spec, location)
    assert text.startswith(description)
    assert bool(text) is bool(description)


def test_a_missing_field_is_refused_with_what_it_means() -> None:
    text = (PROJECT / "data" / "persons.yaml").read_text("utf-8")
    whole = text.replace("  unit: person_id\n", "")
    with pytest.raises(
        SpecError, match=r"privacy\.unit: missing; add it \(the column that names the privacy unit"
    ):
        parse_models(whole.encode())


def test_a_missing_field_of_a_contract_is_refused_with_what_it_means(tmp_path: Path) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text("contract: dp-release/table/v1\n", "utf-8")
    with pytest.raises(SpecError, match=r"table: missing; add it \(the name of the table"):
        read_contract("tables.rows.contract", path, {})
