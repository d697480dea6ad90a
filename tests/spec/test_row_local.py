"""The SQL of trees, in the engine: it never fails, and a row's value is its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings

from release.records.trees import CallNode, ColumnNode, Node
from release.spec.declarations import ColumnType
from release.spec.expressions.check import check_bounds, check_tree, type_of
from release.spec.expressions.functions import FUNCTIONS
from release.spec.expressions.parse import parse_expression
from release.spec.expressions.sql import row_sql, to_sql
from release.tables.schemas import ARROW_TYPES
from tests.every import some
from tests.spec.trees import COLUMNS, EXTREMES, any_tree, rows

many = settings(max_examples=some(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    assert together == evaluated(engine, row_sql(tree, COLUMNS))
    alone = []
    for row in contents:
        fill(engine, [row])
        alone += evaluated(engine, to_sql(tree))
    assert together == alone


@pytest.mark.parametrize("name", [f.name for f in FUNCTIONS.values() if f.total])
def test_the_form_that_raises_nothing_means_the_same(
    engine: duckdb.DuckDBPyConnection, name: str
) -> None:
    integers = [*EXTREMES[ColumnType.INTEGER], -2, 2, 12, 13, 29, 30, 2024, None]
    contents = [dict(zip("ijk", row, strict=True)) for row in product(integers, repeat=3)]
    if name == "%":
        # The short form overflows there, where nothing is left.
        contents = [row for row in contents if (row["i"], row["j"]) != (-(2**63), -1)]
    columns = dict.fromkeys("ijk", ColumnType.INTEGER)
    rows = {column: [row[column] for row in contents] for column in columns}
    engine.register("incoming", pa.table({**rows, "number of row": range(len(contents))}))
    engine.execute("CREATE OR REPLACE TABLE rows AS FROM incoming")
    engine.unregister("incoming")
    count = next(n for n in (1, 2, 3) if FUNCTIONS[name].expects(n))
    tree = CallNode(call=name, of=[ColumnNode(column=column) for column in "ijk"[:count]])
    sql = to_sql(tree, columns)
    # An error that the engine catches takes it two thousand evaluations, and one row can cause it.
    assert "TRY(" not in sql
    assert evaluated(engine, sql) == evaluated(engine, to_sql(tree))


@pytest.mark.parametrize(
    "text",
    [
        "week(CAST(s AS DATE)) IS NULL",
        "round(x, 4611686018427387904) IS NULL",
        "substring(s, 4611686018427387904) IS NULL",
        "left(s, -4611686018427387904) IS NULL",
    ],
)
def test_what_the_engine_refuses_is_missing_in_its_place(
    engine: duckdb.DuckDBPyConnection, text: str
) -> None:
    row = dict.fromkeys(COLUMNS) | {"s": "5877642-06-25 (BC)", "x": 1.5}
    fill(engine, [row])
    assert evaluated(engine, to_sql(parse_expression("sql", text, COLUMNS), COLUMNS)) == ["true"]


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
