"""The SQL of a tree, in DuckDB's dialect; nothing of the text that it came from is in it."""

from __future__ import annotations

from collections.abc import Mapping

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
from release.spec.declarations import ColumnType
from release.spec.expressions.check import type_of
from release.spec.expressions.functions import FUNCTIONS

_TYPES = {
    "string": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}


_OF_PLACES = frozenset({"substring", "left", "right", "round"})


def identifier(name: str) -> str:
    """``name`` quoted as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """``text`` quoted as an SQL string."""
    # Backslashes are letters in a plain string of DuckDB, so that the quote alone is doubled.
    return "'" + text.replace("'", "''") + "'"


def row_sql(tree: Node, columns: Mapping[str, ColumnType]) -> str:
    """The SQL of a checked tree over ``columns``, to be evaluated on each row by itself."""
    # Nothing in it fails. But with TRY the engine evaluates it on the rows, and decides nothing by
    # the bounds that a Parquet file claims for many rows together.
    return f"TRY({to_sql(tree, columns)})"


def to_sql(node: Node, columns: Mapping[str, ColumnType] | None = None) -> str:
    """The SQL of a node that was checked; no row makes it fail.

    Without the types of the ``columns`` it is the shorter form, which means the same, but takes
    longer where a row makes the engine raise an error.
    """
    if isinstance(node, ColumnNode):
        return identifier(node.column)
    if isinstance(node, CastNode):
        return f"TRY_CAST({to_sql(node.of, columns)} AS {_TYPES[node.cast]})"
    if isinstance(node, CallNode):
        return _call(node, columns)
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


def _call(node: CallNode, columns: Mapping[str, ColumnType] | None) -> str:
    function = FUNCTIONS[node.call]
    arguments = [to_sql(argument, columns) for argument in node.of]
    if columns is not None and function.total:
        # Numbers have infinities and raise nothing.
        is_number = type_of(node, columns) is ColumnType.NUMBER
        return (function.sql if is_number else function.total).format(*arguments)
    if node.call == "case":
        return _case(arguments)
    if node.call == "in":
        arguments = [arguments[0], ", ".join(arguments[1:])]
    if node.call in _OF_PLACES:
        # The engine raises an error for larger ones.
        arguments[1:] = [f"TRY_CAST({place} AS INTEGER)" for place in arguments[1:]]
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
