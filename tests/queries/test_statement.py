"""kind sql: a statement of the curator's own, run again for every neighbor."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from release.errors import DataError, ReleaseError, SpecError
from release.queries.base import MOST_UNITS
from release.queries.read import read_spec
from release.street import run_release
from release.verification.verifier import verify
from tests.answers import answer, load
from tests.queries.test_kinds import answers_of, sensitivity_of, smalls
from tests.small import UNSIGNED, Row, Small, query, sensitivities

COUNT = query("count", by=["place"])
PEOPLE = query("count", by=["day"], of="unit")
LEVEL = query("binned", statistic="sum", by=["place", "day"], clamp=[-5, 15])

SAME: list[tuple[dict[str, Any], str]] = [
    (COUNT, "SELECT place, count(*) AS answer FROM rows GROUP BY place"),
    (PEOPLE, "SELECT day, count(DISTINCT unit) AS answer FROM rows GROUP BY ALL"),
    (
        LEVEL,
        "WITH clamped AS (SELECT *, greatest(least(wh, 15), -5) AS w FROM rows) "
        "SELECT place, day, sum(w)::BIGINT AS answer FROM clamped GROUP BY ALL",
    ),
]
"""Queries, and statements that say the same."""


def as_sql(plain: dict[str, Any], sql: str, **fields: Any) -> dict[str, Any]:
    kept = {k: v for k, v in plain.items() if k not in {"of", "bins", "clamp"}}
    answers = {"domain": {"bins": plain["bins"]}} if "bins" in plain else {}
    return {**kept, **answers, "kind": "sql", "name": "own", "sql": sql, **fields}


@settings(max_examples=25)
@given(smalls())
def test_statements_find_what_the_kinds_find(small: Small) -> None:
    """A unit has one row here, so that the bound on rows cannot choose between cells."""
    rows = list({row["unit"]: row for row in small.rows}.values())
    own = Small(
        [row for row in rows if row["unit"] is not None and row["wh"] is not None],
        [as_sql(plain, sql, name=f"q{i}") for i, (plain, sql) in enumerate(SAME)],
        neighbors=small.neighbors,
        max_rows_per_unit=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(own.write(Path(folder)))
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    found = sensitivities(answered, spec_file)
    for (plain, _), one, sensitivity in zip(SAME, answered, found, strict=True):
        assert one.codes.tolist() == answers_of(own, plain, own.rows)
        assert set(sensitivity.shifts) == sensitivity_of(own, plain, own.rows)
        assert "confidential" in repr(one)


ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(6)
]


def run(folder: Path, sql: str, rows: list[Row] = ROWS, **fields: Any) -> list[int]:
    small = Small(rows, [as_sql(COUNT, sql, **fields)])
    spec_file = read_spec(small.write(folder))
    with load(spec_file) as tables:
        codes: list[int] = answer(tables, spec_file)[0].codes.tolist()
    return codes


def test_a_statement_is_released_and_verified(tmp_path: Path) -> None:
    """Its law depends on the table, so it goes to the auditor's folder, charged for every cell."""
    sql = "SELECT place, (max(wh) - min(wh))::BIGINT AS answer FROM rows GROUP BY place"
    small = Small(ROWS, [as_sql(COUNT, sql)])
    published = run_release(small.write(tmp_path), tmp_path / "out")
    assert published.auditor is not None
    assert not (published.public / "mechanisms").exists()
    assert verify(published.public, published.auditor, UNSIGNED).status == 0
    import json

    record = json.loads((published.public / "release.json").read_bytes())["made"]["queries"][0]
    assert record["charge"]["epsilon"] == "2"
    assert record["commitment"].startswith("hmac-sha256:")


@pytest.mark.parametrize(
    ("domain", "value", "code"),
    [
        ({"ordered": {"min": 2, "max": 5}}, "4", 2),
        ({"ordered": {"min": 2, "max": 5}}, "400", 3),
        ({"ordered": {"min": 2, "max": 5}}, "NULL::INT", 0),
        ({"cyclic": 24}, "23", 23),
        ({"bins": {"low": -10, "high": 10, "count": 4}}, "-1", 1),
        ({"bins": {"low": -10, "high": 10, "count": 4}}, "-10000", 0),
    ],
)
def test_answers_become_codes(domain: Any, value: str, code: int, tmp_path: Path) -> None:
    sql = f"SELECT {value} AS answer FROM rows LIMIT 1"
    assert run(tmp_path, sql, by=[], domain=domain) == [code]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 1", "gives no column 'place'"),
        ("SELECT place FROM rows", "gives no column 'answer'"),
        ("SELECT place, 1.5 AS answer FROM rows", "not an integer"),
        ("SELECT place, 1 AS answer FROM rows; SELECT 2", "write one SELECT"),
        ("DROP TABLE rows", "write one SELECT"),
        ("SELECT place, 1 AS answer FROM other", "'other' is not there"),
        ('SELECT place, 1 AS answer FROM "wide rows"', "is not there"),
        ("SELECT * FROM read_csv('/etc/passwd')", "table functions are not allowed"),
        ("SELECT place, random()::INT AS answer FROM rows", "the function random"),
        ("SELECT place, nonsense AS answer FROM rows", "does not fit the columns"),
        ("SELECT place, (", "write one SELECT"),
    ],
)
def test_a_statement_that_cannot_be_meant_is_refused(sql: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        run(tmp_path, sql)
    assert str(caught.value).startswith("queries[0].sql: ")
    assert "\n" not in str(caught.value)


def test_a_statement_that_fails_does_not_tell_why(tmp_path: Path) -> None:
    for sql, says in (
        ("SELECT place, (error('secret'))::INT AS answer FROM rows", "secret"),
        ("SELECT place, wh::INT AS answer FROM rows", "two answers"),
        ("SELECT place, CAST(unit AS INT) AS answer FROM rows", "fails on the table"),
    ):
        with pytest.raises(ReleaseError) as caught:
            run(tmp_path, sql)
        told = str(caught.value)
        assert (says in told) is (says != "secret")
        assert "u0" not in told


def test_a_table_of_many_units_is_refused(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "unit": f"u{i}"} for i in range(MOST_UNITS + 1)]
    with pytest.raises(DataError, match="once for each pair"):
        run(tmp_path, "SELECT place, count(*) AS answer FROM rows GROUP BY 1", rows)


def test_what_a_statement_cannot_have(tmp_path: Path) -> None:
    plain = as_sql(COUNT, "SELECT place, 1 AS answer FROM rows")
    nominal = {"nominal": ["x", "y"]}
    for changes, fixed, says in (
        ({"sensitivity": "global"}, [], "sensitivity: empirical"),
        ({"domain": nominal}, [], "ordered, cyclic or bins"),
        ({}, ["place"], "leave fixed out"),
    ):
        with pytest.raises(SpecError, match=says):
            read_spec(Small(ROWS, [{**plain, **changes}], fixed=fixed).write(tmp_path))
