"""The SQL of a tree, in DuckDB's dialect; nothing of the text that it came from is in it."""

from __future__ import annotations

from release.records.trees import (
    BooleanNode,
    CallNode,
    CastNode,
    ColumnNode,
    DateNode,
    IntegerNode,
    Node,
    NumberNode,
    StringNode,
    TimestampNode,
)
from release.spec.expressions.functions import FUNCTIONS

_TYPES = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}


def identifier(name: str) -> str:
    """``name`` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` quoted as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def row_sql(tree: Node) -> str:
    """The SQL of a checked tree, to be evaluated on each row by itself."""
    # Nothing in it fails. But with TRY the engine evaluates it on the rows, and decides nothing by
    # the bounds that a Parquet file claims for many rows together.
    return f"TRY({to_sql(tree)})"


def to_sql(node: Node) -> str:
    """The SQL of a node that was checked; no row makes it fail."""
    if isinstance(node, ColumnNode):
        return identifier(node.column)
    if isinstance(node, CastNode):
        return f"TRY_CAST({to_sql(node.of)} AS {_TYPES[node.cast]})"
    if isinstance(node, CallNode):
        return _call(node)
    return _constant(node)


def _constant(
    node: BooleanNode | IntegerNode | NumberNode | StringNode | DateNode | TimestampNode,
) -> str:
    if isinstance(node, BooleanNode):
        return "true" if node.boolean else "false"
    if isinstance(node, IntegerNode):
        # A short literal would have 32 bits, and so would sums of two.
        return f"CAST({node.integer} AS BIGINT)"
    if isinstance(node, NumberNode):
        # Without an exponent it would be a decimal, of another arithmetic.
        return f"({node.number}{'' if 'e' in node.number else 'e0'})"
    if isinstance(node, StringNode):
        return literal(node.string)
    if isinstance(node, DateNode):
        return f"DATE {literal(node.date)}"
    return f"TIMESTAMP {literal(node.timestamp)}"


def _call(node: CallNode) -> str:
    function = FUNCTIONS[node.call]
    arguments = [to_sql(argument) for argument in node.of]
    if node.call == "case":
        return _case(arguments)
    if node.call == "in":
        arguments = [arguments[0], ", ".join(arguments[1:])]
    if node.call == "round" and len(arguments) > 1:
        arguments[1] = f"CAST({arguments[1]} AS INTEGER)"
    if "{}" in function.sql:
        sql = function.sql.replace("{}", function.between.join(arguments))
    else:
        sql = function.sql.format(*arguments)
    # By itself, not around the whole: whether another part is evaluated first changes nothing.
    return f"TRY({sql})" if function.partial else sql


def _case(arguments: list[str]) -> str:
    sql = "CASE"
    for at in range(0, len(arguments) - 1, 2):
        sql += f" WHEN {arguments[at]} THEN {arguments[at + 1]}"
    if len(arguments) % 2:
        sql += f" ELSE {arguments[-1]}"
    return f"{sql} END"
