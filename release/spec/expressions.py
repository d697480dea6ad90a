"""SQL that comes from a spec, made safe: quoting, and expressions that look at one row only.

A condition or a derived column may use the columns of its own row, constants, and a list of
functions that depend on their arguments alone; no subquery, window, aggregate, nor any function of
the clock, the session, the table or chance. So a row's part in an answer depends on that row alone,
which the sensitivity of a query is derived from. The expression is parsed by DuckDB,
checked on the tree, and written out anew from the tree, so that no comment or bracket reaches
the query it is put into.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from release.errors import SpecError

if TYPE_CHECKING:
    # The verifier reads the kinds of query, which quote names, and must not load the engine.
    import duckdb

# What an expression may call. A list of what is allowed, because the engine also offers functions
# that look at the whole table's statistics, the clock or the session and calls them consistent.
FUNCTIONS = frozenset(
    """
    + - * / // % ** ^ & | ~ << >> || ~~ !~~ ~~* !~~* ~~~ abs ceil ceiling floor round trunc
    sign sqrt cbrt ln log log2 log10 exp pow power mod greatest least isnan isinf isfinite
    lower upper length strlen trim ltrim rtrim substring substr left right replace concat
    starts_with ends_with prefix suffix contains instr strpos position lpad rpad reverse ascii
    regexp_matches regexp_full_match regexp_extract regexp_replace like_escape not_like_escape
    year month day hour minute second quarter week dayofweek isodow dayofyear date_part
    datepart date_trunc datetrunc date_diff datediff make_date last_day to_days to_hours
    to_minutes list_value list_contains list_has list_position list_indexof
    """.split()  # noqa: SIM905 - fifty quoted words would say less
)
TYPES = frozenset(
    """
    boolean bool tinyint smallint integer int int1 int2 int4 int8 bigint long hugeint utinyint
    usmallint uinteger ubigint double float real float4 float8 decimal numeric varchar text
    string char date time timestamp datetime interval
    """.split()  # noqa: SIM905 - fifty quoted words would say less
)


@dataclass(frozen=True)
class RowExpression:
    """A checked expression as SQL, and the columns it uses."""

    sql: str
    columns: frozenset[str]


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
) -> RowExpression:
    """The expression ``text``, checked and written out anew, with the columns it uses.

    ``field`` is its place in the spec, for messages; ``columns`` are the names it may use.

    Raises:
        SpecError: not one expression over ``columns`` that depends on its row alone.
    """
    # The line ends close a comment at the end of the text.
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
    used: set[str] = set()
    for part in parts_of(node["select_list"][0]):
        kind = part.get("class")
        if kind in _REFUSED:
            raise SpecError(
                field, f"{_REFUSED[kind]} is not allowed; use the columns of one row only"
            )
        if kind == "COLUMN_REF":
            path = part["column_names"]
            if len(path) != 1 or path[0] not in columns:
                names = ", ".join(sorted(columns))
                raise SpecError(field, f"{'.'.join(path)!r} is not there; known are {names}")
            used.add(path[0])
        if kind == "FUNCTION" and part["function_name"].lower() not in FUNCTIONS:
            raise SpecError(
                field,
                f"the function {part['function_name']} is not allowed; "
                "use arithmetic, text, date and list functions of one row",
            )
        if kind == "TYPE" and part["type_name"].lower() not in TYPES:
            raise SpecError(field, f"the type {part['type_name']} is not allowed in a cast")
    # Written out by DuckDB from the tree that was checked: a comment or a bracket of the text can
    # change nothing in the statement around it.
    sql = _one(connection, "SELECT json_deserialize_sql(json_serialize_sql(?::VARCHAR))", select)
    return RowExpression(str(sql).removeprefix("SELECT "), frozenset(used))


def _one(connection: duckdb.DuckDBPyConnection, sql: str, *values: str) -> Any:
    return connection.execute(sql, list(values)).fetchall()[0][0]


def parts_of(tree: Any) -> Iterator[dict[str, Any]]:
    """All mappings of a parsed statement, at any depth."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from parts_of(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from parts_of(value)
