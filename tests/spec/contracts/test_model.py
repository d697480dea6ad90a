"""Contracts of tables: rows clamped, dropped or refused, and the curator's summary."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from release.cli.main import main
from release.errors import DataError, SpecError
from release.queries.read import read_spec
from release.spec.contracts.model import ColumnContract
from release.spec.declarations import ColumnType
from release.spec.expressions import identifier
from release.tables.duckdb import Tables, raw_table
from tests.answers import answer, load
from tests.conftest import PROJECT
from tests.small import Row, Small, query

COLUMNS: dict[str, dict[str, Any]] = {
    "unit": {"type": "string", "pattern": "u[0-9]+"},
    "place": {"type": "string", "allowed": ["a", "b"]},
    "day": {"type": "integer", "minimum": 1, "maximum": 2, "nullable": True},
    "wh": {"type": "integer", "minimum": 0, "maximum": 10},
}

ROWS: list[Row] = [
    {"unit": "u1", "place": "a", "day": 1, "kind": 0, "wh": 4},
    {"unit": "u1", "place": "a", "day": 1, "kind": 0, "wh": 4},
    {"unit": "u2", "place": "a", "day": None, "kind": 0, "wh": 40},
    {"unit": "u3", "place": "b", "day": 9, "kind": 0, "wh": 5},
    {"unit": "u4", "place": "c", "day": 2, "kind": 0, "wh": 5},
    {"unit": "w5", "place": "a", "day": 2, "kind": 0, "wh": 5},
    {"unit": "u6", "place": "b", "day": 2, "kind": 0, "wh": None},
    {"unit": "u7", "place": "b", "day": 2, "kind": 0, "wh": -7},
]

QUERIES = [
    query("count", by=[]),
    query(
        "binned",
        statistic="sum",
        by=["place"],
        clamp=[-100, 100],
        bins={"low": -100, "high": 100, "count": 200},
        mechanism="modular",
    ),
]


def written(
    folder: Path, changes: dict[str, dict[str, Any]], source: str = "empirical", **spec: Any
) -> Path:
    columns = {
        name: {"meaning": "x", "measure": "none", "nullable": False, **rule}
        for name, rule in COLUMNS.items()
    }
    for name, change in changes.items():
        columns[name] |= change
    contract = {
        "contract": "dp-release/table/v1",
        "table": "rows",
        "description": "x",
        "unit": "unit",
        "unique": ["unit", "day"],
        "columns": columns,
    }
    (folder / "rows.contract.yaml").write_text(yaml.safe_dump(contract))
    queries = [{**q, "sensitivity": source} for q in QUERIES]
    queries[1]["noise"] = "on_answer"
    path = Small(ROWS, queries, **spec).write(folder)
    plain = yaml.safe_load(path.read_text())
    plain["tables"]["rows"]["contract"] = "rows.contract.yaml"
    path.write_text(yaml.safe_dump(plain))
    return path


def answers(path: Path) -> list[list[int]]:
    spec_file = read_spec(path)
    with load(spec_file) as tables:
        return [one.codes.tolist() for one in answer(tables, spec_file)]


def test_rows_that_break_the_contract_are_left_out(tmp_path: Path) -> None:
    """Of the eight only the two of u1 keep every rule."""
    assert answers(written(tmp_path, {})) == [[2], [108, 100]]


def test_values_are_clamped_where_the_contract_says_so(tmp_path: Path) -> None:
    """u2 counts 10, u3 5 on a day that is put right, u7 0; what is no bound still drops a row."""
    clamp = {"on_violation": "clamp"}
    assert answers(written(tmp_path, {"wh": clamp, "day": clamp})) == [[5], [118, 105]]


BOUNDS: dict[str, dict[str, Any]] = {
    "kwh": {"type": "number", "minimum": 0.1, "maximum": 3},
    "at": {"type": "timestamp", "minimum": "2013-01-05 12:30:00", "maximum": "2013-01-06 00:00:00"},
    "on": {"type": "date", "minimum": "2013-01-05"},
}

MEASURED = """unit,kwh,at,on
least,0.1,2013-01-05 12:30:00,2013-01-05
most,3,2013-01-06T00:00:00Z,2013-12-31
missing,,,
no_value,nan,later,2013-02-30
low,0.09999999999999999,2013-01-05 13:00,2013-01-05
high,3.0000000000000004,2013-01-05 13:00,2013-01-05
infinite,inf,2013-01-05 13:00,2013-01-05
early,1,2013-01-05 12:29:59.999999,2013-01-05
late,1,2013-01-06 00:00:00.000001,2013-01-05
before,1,2013-01-05 13:00,2013-01-04
"""


def measured(folder: Path, **change: Any) -> list[tuple[Any, ...]]:
    """The rows of MEASURED as queries see them, under BOUNDS."""
    columns = {
        name: {"meaning": "x", "measure": "none", "nullable": True, **rule, **change}
        for name, rule in BOUNDS.items()
    }
    return seen(folder, MEASURED, columns)


def seen(folder: Path, text: str, columns: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    path = written(folder, {})
    plain = yaml.safe_load(path.read_text())
    table = plain["tables"]["rows"]
    table["columns"] = {"unit": "string"} | {name: rule["type"] for name, rule in columns.items()}
    table["path"] = "measured.csv"
    plain["queries"] = plain["queries"][:1]
    plain["keys"] = {}
    path.write_text(yaml.safe_dump(plain))
    (folder / "measured.csv").write_text(text)
    contract = yaml.safe_load((folder / "rows.contract.yaml").read_text())
    contract["columns"] = columns
    (folder / "rows.contract.yaml").write_text(yaml.safe_dump(contract))
    with Tables(read_spec(path)) as tables:
        names = ", ".join(map(identifier, ["unit", *columns]))
        sql = f"SELECT {names} FROM {raw_table('rows')} ORDER BY unit"
        return [tuple(row.values()) for row in tables.rows(sql, "rows").to_pylist()]


def test_numbers_dates_and_times_have_bounds(tmp_path: Path) -> None:
    """Both bounds are included; what has no value breaks none."""
    kept = [row[0] for row in measured(tmp_path)]
    assert kept == ["least", "missing", "most", "no_value"]


def test_numbers_dates_and_times_are_clamped_to_their_bounds(tmp_path: Path) -> None:
    noon, start = datetime(2013, 1, 5, 12, 30), date(2013, 1, 5)
    one, midnight = noon + timedelta(minutes=30), datetime(2013, 1, 6)
    assert measured(tmp_path, on_violation="clamp") == [
        ("before", 1.0, one, start),
        ("early", 1.0, noon, start),
        ("high", 3.0, one, start),
        ("infinite", 3.0, one, start),
        ("late", 1.0, midnight, start),
        ("least", 0.1, noon, start),
        ("low", 0.1, one, start),
        ("missing", None, None, None),
        ("most", 3.0, midnight, date(2013, 12, 31)),
        ("no_value", None, None, None),
    ]


@given(value=st.floats(allow_nan=False), bound=st.floats(allow_nan=False, allow_infinity=False))
@example(value=0.1 + 0.2, bound=0.3)
@example(value=5e-324, bound=0.0)
@example(value=1.7976931348623157e308, bound=1.7976931348623157e308)
def test_a_number_is_compared_with_its_bound_as_a_double(value: float, bound: float) -> None:
    rule = ColumnContract.model_validate(
        {
            "type": ColumnType.NUMBER,
            "meaning": "x",
            "measure": "x",
            "nullable": True,
            "minimum": bound,
            "on_violation": "clamp",
        }
    )
    sql = f"SELECT {rule.kept_sql('v')['minimum']}, {rule.clamped_sql('v')} FROM (SELECT ? AS v)"
    found = duckdb.execute(sql, [value]).fetchone()
    assert found == (value >= bound, max(value, bound))


def test_a_column_of_the_key_that_the_spec_does_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, {})
    contract = yaml.safe_load((tmp_path / "rows.contract.yaml").read_text())
    contract["unique"] = ["unit", "meter"]
    (tmp_path / "rows.contract.yaml").write_text(yaml.safe_dump(contract))
    with pytest.raises(SystemExit) as left:
        main(["check", str(path), "--json"])
    assert left.value.code == 0
    assert json.loads(capsys.readouterr().out)["tables"][0]["repeated"] == 0


def test_a_missing_value_may_be_allowed(tmp_path: Path) -> None:
    nullable = {"on_violation": "clamp", "nullable": True}
    found = answers(written(tmp_path, {"wh": nullable, "day": {"on_violation": "clamp"}}))
    assert found == [[5], [118, 105]]


def test_refusing_is_for_instance_specific_tables(tmp_path: Path) -> None:
    refuse = {"wh": {"on_violation": "refuse"}}
    with pytest.raises(DataError, match=r"tables\.rows\.contract: values of 'wh'") as caught:
        answers(written(tmp_path, refuse))
    assert "40" not in str(caught.value)
    with pytest.raises(SpecError, match="would tell of the table"):
        read_spec(written(tmp_path, refuse, "global"))


def test_fixed_columns_are_left_to_the_keys(tmp_path: Path) -> None:
    everywhere = {"place": {"allowed": ["nowhere"]}}
    assert answers(written(tmp_path, everywhere)) == [[0], [100, 100]]
    assert answers(written(tmp_path, everywhere, fixed=["place"])) == [[3], [108, 100]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"wh": {"type": "string"}}, "minimum and maximum are for integers, numbers, dates"),
        ({"wh": {"minimum": 11}}, "minimum 11 is above maximum 10"),
        ({"wh": {"minimum": "2024-01-01"}}, "write an integer of 64 bits"),
        ({"wh": {"minimum": 0.5}}, "write an integer of 64 bits"),
        ({"wh": {"maximum": 2**63}}, "write an integer of 64 bits"),
        (
            {"wh": {"maximum": 2**62}},
            "beyond ±4611686018427387903, and an integer",
        ),
        ({"wh": {"allowed": ["many"]}}, "write an integer of 64 bits"),
        ({"wh": {"allowed": []}}, "name at least 1"),
        ({"wh": {"type": "number", "minimum": float("nan")}}, "write a finite number"),
        ({"wh": {"type": "number", "maximum": float("inf")}}, "write a finite number"),
        ({"wh": {"type": "number", "maximum": 10**39}}, "declared is integer"),
        (
            {"day": {"type": "timestamp", "minimum": "2024-01-01 00:00:00+01:00", "maximum": None}},
            "without an offset",
        ),
        ({"day": {"type": "boolean"}}, "not for a boolean"),
        ({"wh": {"minimum": True}}, "true and false have no order"),
        ({"wh": {"maximum": [1]}}, "write a single value"),
        ({"day": {"type": "date", "minimum": "2024-13-01", "maximum": None}}, "a date as text"),
        ({"place": {"on_violation": "clamp"}}, "nothing to clamp to"),
        ({"unit": {"pattern": "("}}, "not a pattern that is understood"),
        ({"unit": {"pattern": "(?=u)u"}}, "not a pattern that is understood"),
        ({"wh": {"pattern": "x"}}, "a pattern is for strings"),
        ({"wh": {"on_violation": "guess"}}, "'clamp', 'drop' or 'refuse'"),
        ({"wh": {"minium": 3}}, "wh.minium: unknown field; did you mean 'minimum'"),
        ({"place": {"type": "integer", "allowed": None}}, "declared is string"),
    ],
)
def test_a_contract_that_cannot_be_meant_is_refused(
    changes: dict[str, dict[str, Any]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        read_spec(written(tmp_path, changes))
    assert str(caught.value).startswith("tables.rows.contract: ")
    assert "\n" not in str(caught.value)


def test_a_missing_contract(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    (tmp_path / "rows.contract.yaml").rename(tmp_path / "row.contract.yaml")
    says = (
        r"there is no rows\.contract\.yaml; did you mean 'row\.contract\.yaml'\? correct the path"
    )
    with pytest.raises(SpecError, match=says):
        read_spec(path)
    (tmp_path / "row.contract.yaml").rename(tmp_path / "rows.contract.yaml")
    (tmp_path / "rows.contract.yaml").write_text("{", "utf-8")
    with pytest.raises(SpecError, match=r"rows\.contract\.yaml cannot be read as YAML"):
        read_spec(path)


def test_a_contract_file_has_a_bound(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    with (tmp_path / "rows.contract.yaml").open("a") as file:
        file.write("#" * 2**20)
    with pytest.raises(SpecError, match=r"rows\.contract\.yaml has more than 1048576 bytes"):
        read_spec(path)


def test_the_curators_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts of what is broken, by rule; nothing is written."""
    path = written(tmp_path, {})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as left:
        main(["check", str(path), "--json"])
    assert left.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["confidential"] is True
    (table,) = found["tables"]
    assert (table["rows"], table["units"], table["repeated"]) == (8, 7, 1)
    faults = {(f["column"], f["rule"]): f["rows"] for f in table["faults"]}
    assert faults == {
        ("unit", "pattern"): 1,
        ("place", "allowed"): 1,
        ("day", "missing"): 1,
        ("day", "maximum"): 1,
        ("wh", "missing"): 1,
        ("wh", "nullable"): 1,
        ("wh", "minimum"): 1,
        ("wh", "maximum"): 1,
    }
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(SystemExit):
        main(["check", str(path)])
    printed = capsys.readouterr().out
    assert printed.startswith("CONFIDENTIAL: for the curator only")
    assert "wh: 1 row has no value and needs one" in printed


def test_the_sample_tables_keep_their_contracts(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ami", "persons"):
        with pytest.raises(SystemExit):
            main(["check", str(PROJECT / "data" / f"{name}.yaml"), "--json"])
        (table,) = json.loads(capsys.readouterr().out)["tables"]
        assert table["repeated"] == 0
        assert {fault["rule"] for fault in table["faults"]} <= {"missing"}
