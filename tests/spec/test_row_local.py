"""The SQL of trees, in the engine: it never fails, and a row's value is its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

from release.records.trees import Node
from release.spec.expressions.check import check_bounds, check_tree, type_of
from release.spec.expressions.parse import parse_expression
from release.spec.expressions.sql import row_sql, to_sql
from release.tables.schemas import ARROW_TYPES
from tests.spec.trees import COLUMNS, any_tree, rows

many = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


def fill(engine: duckdb.DuckDBPyConnection, contents: list[dict[str, Any]]) -> None:
    arrays = {
        name: pa.array([row[name] for row in contents], ARROW_TYPES[kind])
        for name, kind in COLUMNS.items()
    }
    arrays["number of row"] = pa.array(range(len(contents)), pa.int64())
    engine.register("incoming", pa.table(arrays))
    engine.execute("CREATE OR REPLACE TABLE rows AS FROM incoming")
    engine.unregister("incoming")


def evaluated(engine: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    """The values of all rows, as text: nan would not equal itself."""
    select = f'SELECT CAST(v AS VARCHAR) FROM (SELECT {sql} AS v, "number of row" AS n FROM rows)'
    return [value for (value,) in engine.execute(f"{select} ORDER BY n").fetchall()]


def in_bounds(tree: Node) -> bool:
    try:
        check_bounds(tree)
    except ValueError:
        return False
    return True


@many
@given(any_tree(), rows())
def test_no_row_makes_a_tree_fail_and_each_has_its_own_value(
    engine: duckdb.DuckDBPyConnection, tree: Node, contents: list[dict[str, Any]]
) -> None:
    assume(in_bounds(tree))
    fill(engine, contents)
    together = evaluated(engine, to_sql(tree))
    assert together == evaluated(engine, row_sql(tree))
    alone = []
    for row in contents:
        fill(engine, [row])
        alone += evaluated(engine, to_sql(tree))
    assert together == alone


@many
@given(any_tree())
def test_the_sql_of_a_tree_reads_back_as_it(tree: Node) -> None:
    assume(in_bounds(tree))
    kind = type_of(tree, COLUMNS)
    check_tree(tree, COLUMNS, kind)
    sql = to_sql(tree)
    assume(len(sql) <= 4000 and sql.count("(") < 300)
    from release.errors import SpecError

    try:
        back = parse_expression("sql", sql, COLUMNS, kind)
    except SpecError as error:
        assume("nest" not in str(error))
        raise
    assert back == tree
