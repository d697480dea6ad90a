"""SQL that comes from a spec, made safe: quoting, and expressions that look at one row only.

A condition or a derived column may use the columns of its own row, constants, and functions that
always give the same result; no subquery, window, aggregate or function of the clock, the session or
chance. So a row's part in an answer depends on that row alone, which is what the differences of a
query are computed from. The expression is parsed by DuckDB, checked on the tree, and written out
again from the tree, so that no comment or stray bracket reaches the query it is put into.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from release.errors import SpecError

if TYPE_CHECKING:
    # The verifier reads the kinds of query, which quote names, and must not load the engine.
    import duckdb

_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "a star",
    "PARAMETER": "a parameter",
    "LAMBDA": "a lambda",
    "POSITIONAL_REFERENCE": "a column by number",
    "DEFAULT": "a default",
}


def identifier(name: str) -> str:
    """``name`` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` quoted as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def row_expression(
    connection: duckdb.DuckDBPyConnection, field: str, text: str, columns: Collection[str]
) -> str:
    """The expression ``text``, checked and written out anew.

    ``field`` is its place in the spec, for messages; ``columns`` are the names it may use.

    Raises:
        SpecError: not one expression over ``columns`` that depends on its row alone.
    """
    select = f"SELECT (\n{text}\n)"
    tree = json.loads(_one(connection, "SELECT json_serialize_sql(?::VARCHAR)", select))
    if tree.get("error"):
        raise SpecError(field, f"not an SQL expression: {tree.get('error_message', '')}")
    statements = tree["statements"]
    node = statements[0]["node"]
    plain = (
        len(statements) == 1
        and node["type"] == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not node["modifiers"]
        and not node["cte_map"]["map"]
        and not any(node[part] for part in ("where_clause", "group_expressions", "having"))
        and not any(node[part] for part in ("sample", "qualify"))
    )
    if not plain:
        raise SpecError(field, "write one expression over the columns of a row")
    deterministic = _deterministic_functions(connection)
    for part in _parts(node["select_list"][0]):
        kind = part.get("class")
        if kind in _REFUSED:
            raise SpecError(
                field, f"{_REFUSED[kind]} is not allowed; use the columns of one row only"
            )
        if kind == "COLUMN_REF":
            path = part["column_names"]
            if len(path) != 1 or path[0] not in columns:
                known = ", ".join(sorted(columns))
                raise SpecError(field, f"{'.'.join(path)!r} is not there; known are {known}")
        if kind == "FUNCTION" and part["function_name"].lower() not in deterministic:
            raise SpecError(
                field,
                f"the function {part['function_name']} is not allowed; "
                "use functions of one row that always give the same result",
            )
    written = _one(
        connection, "SELECT json_deserialize_sql(json_serialize_sql(?::VARCHAR))", select
    )
    return str(written).removeprefix("SELECT ")


def _one(connection: duckdb.DuckDBPyConnection, sql: str, *values: str) -> Any:
    row = connection.execute(sql, list(values)).fetchall()
    return row[0][0]


def _deterministic_functions(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    rows = connection.execute(
        "SELECT lower(function_name) FROM duckdb_functions() GROUP BY 1 "
        "HAVING bool_and(function_type = 'scalar' AND stability = 'CONSISTENT')"
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts(value)
