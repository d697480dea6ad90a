"""Attribute neighbors: one unit's sensitive column takes other values, all else is public."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from release.budget.cost import charges
from release.errors import SpecError
from release.queries.read import read_spec
from release.street import run_release
from tests.answers import answer, load
from tests.every import some
from tests.small import Row, Small, query, sensitivities, write_rows

QUERIES = [
    query("mode", sensitivity="global", by=["place", "day"]),
    query("mode", sensitivity="global", by=[]),
    query("count", sensitivity="global", where="kind = 2"),
    query("count", sensitivity="global", where="kind >= 1", by=["place", "day"]),
    query("count", of="unit", sensitivity="global", where="kind <> 1", by=["place"]),
]

VALUE = query(
    "mode", name="own", sensitivity="global", by=["unit"], domain={"nominal": ["x", "y", "z"]}
)
VALUE["kind"], VALUE["of"] = "per_unit", "colour"
del VALUE["noise"]


def write(small: Small, folder: Path, **privacy: Any) -> Path:
    path = small.write(folder)
    plain = yaml.safe_load(path.read_text())
    plain["privacy"] |= {"neighbors": "attribute", "attribute": "kind", **privacy}
    path.write_text(yaml.safe_dump(plain))
    return path


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    rows: list[Row] = [
        {
            "unit": f"u{index}",
            "place": draw(st.sampled_from(["a", "b", "elsewhere"])),
            "day": draw(st.sampled_from([1, 2])),
            "kind": draw(st.sampled_from([0, 1, 2, 3, None])),
            "wh": draw(st.integers(0, 9)),
        }
        for index in range(draw(st.integers(1, 4)))
        for _ in range(draw(st.integers(1, 2)))
    ]
    return Small(
        rows,
        [{**q, "name": f"q{i}"} for i, q in enumerate(QUERIES)],
        max_rows_per_unit=draw(st.integers(1, 3)),
    )


def codes(small: Small, rows: list[Row], folder: Path) -> list[np.ndarray]:
    folder.mkdir()
    write(small, folder)
    write_rows(folder / "rows.parquet", rows)
    spec_file = read_spec(folder / "spec.yaml")
    with load(spec_file) as tables:
        return [one.codes for one in answer(tables, spec_file)]


@settings(max_examples=some(12))
@given(smalls(), st.sampled_from(["global", "empirical"]))
def test_no_attribute_moves_more_cells_or_further_than_charged(small: Small, source: str) -> None:
    """Every assignment of other values to one unit's rows, each table answered anew."""
    small = replace(small, queries=[{**q, "sensitivity": source} for q in small.queries])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        here = codes(small, small.rows, folder / "here")
        spec_file = read_spec(folder / "here" / "spec.yaml")
        charged = charges(spec_file).queries
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
        allowed = [{s for (s,) in found.shifts} for found in sensitivities(answered, spec_file)]
        unit = small.rows[0]["unit"]
        own = [i for i, row in enumerate(small.rows) if row["unit"] == unit]
        for number, values in enumerate(itertools.product([0, 1, 2, None], repeat=len(own))):
            rows = [dict(row) for row in small.rows]
            for index, value in zip(own, values, strict=True):
                rows[index]["kind"] = value
            there = codes(small, rows, folder / f"there{number}")
            for a, b, cells, shifts, declared in zip(
                here, there, charged, allowed, spec_file.spec.queries, strict=True
            ):
                assert int((a != b).sum()) <= cells.cells
                size = 4 if declared.kind == "mode" else 6
                assert {int(d) for d in (a - b) % size} - {0} <= shifts


def value_spec(folder: Path, rows: list[Row], **query_fields: Any) -> Path:
    """One value query over a table unit, colour."""
    pq.write_table(
        pa.table(
            {
                "unit": pa.array([row["unit"] for row in rows], pa.string()),
                "colour": pa.array([row["colour"] for row in rows], pa.string()),
            }
        ),
        folder / "rows.parquet",
    )
    plain = Small([], [{**VALUE, **query_fields}]).plain()
    plain["tables"]["rows"]["columns"] = {"unit": "string", "colour": "string"}
    plain["privacy"] |= {"neighbors": "attribute", "attribute": "colour"}
    plain["keys"] = {"unit": [f"u{i}" for i in range(5)]}
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(plain))
    return path


ROWS: list[Row] = [
    {"unit": "u0", "colour": "z"},
    {"unit": "u1", "colour": "unknown"},
    {"unit": "u3", "colour": "y"},
    {"unit": "u3", "colour": "z"},
    {"unit": "u4", "colour": None},
    {"unit": "unlisted", "colour": "z"},
]


def test_each_listed_unit_has_its_own_value(tmp_path: Path) -> None:
    spec_file = read_spec(value_spec(tmp_path, ROWS))
    # Of the two rows of u3 one is read, that of the lesser hash (docs/design/spec.md).
    digests = {}
    for code, colour in ((1, "y"), (2, "z")):
        # The unit, then colour and unit by name, and the number of this row among equal ones.
        digests[sha256(f"small|2:u31:{colour}2:u3#1".encode()).hexdigest()] = code
    kept = digests[min(digests)]
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [2, 0, 0, kept, 0]


def test_a_value_release_is_randomised_response(tmp_path: Path) -> None:
    """K = 3 categories, ε = 1: the truth with chance e/(e+2); charged once, for one cell a unit."""
    published = run_release(value_spec(tmp_path, ROWS), tmp_path / "out")
    law = json.loads((published.public / "mechanisms" / "own.json").read_bytes())
    e = math.e
    masses = [int(w) / 2**62 for w in law["weights"]]
    assert masses == pytest.approx([e / (e + 2), 1 / (e + 2), 1 / (e + 2)])
    record = json.loads((published.public / "release.json").read_bytes())
    assert record["made"]["queries"][0]["charge"] == {"delta": "0", "epsilon": "1"}
    assert record["made"]["queries"][0]["cells"] == 5
    assert "colour of one unit" in (published.public / "report.html").read_text("utf-8")
    table = pq.read_table(published.public / "data" / "own.parquet")
    assert table.column("unit").to_pylist() == [f"u{i}" for i in range(5)]
    assert set(table.column("answer").to_pylist()) <= {"x", "y", "z"}


def test_what_was_seen_of_an_attribute_is_what_it_can_do_in_this_table(tmp_path: Path) -> None:
    """Nine of ten homes say 0: no one home changes the mode, and ±1 stands in for the unseen."""
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "a", "day": 1, "kind": int(i == 0), "wh": 0} for i in range(10)
    ]
    small = Small(rows, [query("mode", by=[]), query("count", by=[], where="kind = 0")])
    spec_file = read_spec(write(replace(small, max_rows_per_unit=1), tmp_path))
    with load(spec_file) as tables:
        found = sensitivities(answer(tables, spec_file), spec_file)
    assert [one.shifts for one in found] == [((1,), (3,)), ((1,), (5,))]


def test_a_fixed_column_cannot_change_with_the_attribute(tmp_path: Path) -> None:
    path = write(Small(SAME, [query("count", sensitivity="global", by=["band"])]), tmp_path)
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["derive"] = {"band": {"type": "integer", "sql": "kind // 2"}}
    plain["keys"]["band"] = [0, 1]
    plain["privacy"]["fixed"] = ["band"]
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(SpecError, match=r"derive\.band\.sql: 'band' is fixed, but changes"):
        read_spec(path)
    # Also where the attribute is a column of a table that is joined.
    plain["tables"]["homes"] = {"path": "homes.parquet", "columns": {"unit": "string"}}
    plain["tables"]["homes"]["columns"]["kind"] = plain["tables"]["rows"]["columns"].pop("kind")
    plain["tables"]["rows"]["join"] = {"table": "homes"}
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(SpecError, match=r"derive\.band\.sql: 'band' is fixed, but changes"):
        read_spec(path)
    # And a derived column is no attribute: what it is derived from would be public.
    plain["privacy"] |= {"fixed": [], "attribute": "band"}
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(SpecError, match=r"privacy\.attribute: 'band' is derived"):
        read_spec(path)


def test_values_of_a_unit_are_published_jointly(tmp_path: Path) -> None:
    """Colour and size of each unit: randomised response over the six pairs."""
    path = value_spec(tmp_path, ROWS)
    table = pq.read_table(tmp_path / "rows.parquet")
    column = pa.array(["s", "l"] * 3)
    pq.write_table(table.append_column("size", column), tmp_path / "rows.parquet")
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["columns"]["size"] = "string"
    whole = plain["queries"][0]
    colour = {k: v for k, v in whole.items() if k not in ("guarantee", "sensitivity")}
    size = {**colour, "name": "size", "of": "size", "domain": {"nominal": ["l", "s"]}}
    both = {k: v for k, v in whole.items() if k != "domain"}
    both |= {"name": "both", "kind": "tuple", "of": ["own", "size"]}
    plain["queries"] = [colour, both, size]
    path.write_text(json.dumps(plain))
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        # u0 z s, u1 unknown l, u2 absent, u3 (two rows, the first: y s), u4 none s
        assert answer(tables, spec_file)[0].codes.tolist() == [5, 0, 0, 3, 1]
    published = run_release(path, tmp_path / "out")
    law = json.loads((published.public / "mechanisms" / "both.json").read_bytes())
    masses = [int(w) / 2**62 for w in law["weights"]]
    assert len(masses) == 6
    assert masses == pytest.approx([math.e / (math.e + 5), *[1 / (math.e + 5)] * 5])
    released = pq.read_table(published.public / "data" / "both.parquet")
    assert released.column_names == ["unit", "answer_own", "answer_size", "answer_code"]


SAME: list[Row] = [{"unit": "u", "place": "a", "day": 1, "kind": 1, "wh": 1}]


def line(path: Path, change: Any) -> str:
    plain = yaml.safe_load(path.read_text())
    change(plain)
    path.write_text(yaml.safe_dump(plain))
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    return str(caught.value)


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    def fresh() -> Path:
        return value_spec(tmp_path, ROWS)

    assert "attribute: the sensitive column" in line(
        fresh(), lambda p: p["privacy"].pop("attribute")
    )
    assert "neighbors: attribute" in line(
        fresh(),
        lambda p: (
            p["privacy"].pop("attribute"),
            p["privacy"].update(neighbors="replace_one"),
        ),
    )
    assert "privacy.attribute" in line(fresh(), lambda p: p["privacy"].update(attribute="unit"))
    assert "privacy.attribute" in line(fresh(), lambda p: p["privacy"].update(attribute="color"))
    assert "one answer a unit" in line(fresh(), lambda p: p["queries"][0].update(by=[]))
    assert "would promise nothing" in line(
        fresh(),
        lambda p: (
            p["tables"]["rows"]["columns"].update(wh="integer"),
            p["privacy"].update(attribute="wh"),
        ),
    )
