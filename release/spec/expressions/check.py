"""Checks of a tree that need neither its text nor an engine: its bounds, columns and types.

A tree that passes depends on one row alone and has a value for every row, or none: each of its
functions does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from release.errors import listed, unknown_name
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
from release.spec.expressions.functions import CASTS, FUNCTIONS, OF_PARTS, PARTS, PATTERNS
from release.spec.expressions.patterns import check_pattern

MOST_DEPTH = 64
"""The most nodes from the root of a tree to a leaf."""
MOST_NODES = 1000
"""The most nodes of a tree, once each value is written as often as the engine writes it."""
MOST_JOINED = 16
"""The most texts that a tree joins, so that no row can grow without bound."""

_CONSTANTS: dict[type, ColumnType] = {
    BooleanNode: ColumnType.BOOLEAN,
    IntegerNode: ColumnType.INTEGER,
    NumberNode: ColumnType.NUMBER,
    StringNode: ColumnType.STRING,
    DateNode: ColumnType.DATE,
    TimestampNode: ColumnType.TIMESTAMP,
}


def is_constant(node: Node) -> bool:
    """Whether a node is a constant, which no row changes."""
    return type(node) in _CONSTANTS


def check_tree(tree: Node, columns: Mapping[str, ColumnType], kind: ColumnType) -> None:
    """Check that a tree is within its bounds and gives a value of type ``kind``.

    ``columns`` are those that it may use, with their types.

    Raises:
        ValueError: it is not; the message says why, and what to do.
    """
    check_bounds(tree)
    own = type_of(tree, columns)
    if own is not kind:
        raise ValueError(f"the expression is {_a(own)}, and has to be {_a(kind)}")


def check_bounds(tree: Node) -> None:
    """Check the depth of a tree, its nodes, and the texts that it joins.

    Raises:
        ValueError: too many.
    """
    # The bounds of docs/design/format.md, 2.5, which a hostile release.json has to keep too.
    if _size(tree, MOST_DEPTH) > MOST_NODES:
        raise ValueError(f"more than {MOST_NODES} parts; write a shorter expression")
    joined = 0
    for node in nodes_of(tree):
        if isinstance(node, CallNode) and node.call in {"||", "concat"}:
            joined += len(node.of)
    if joined > MOST_JOINED:
        raise ValueError(f"joins more than {MOST_JOINED} texts; join fewer")


def node_name(node: Node) -> str | None:
    """The function of a call; None for other nodes."""
    return node.call if isinstance(node, CallNode) else None


COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
"""The names of calls that compare two values of one type."""


def nodes_of(tree: Node) -> Iterator[Node]:
    """All nodes of a tree, its root first."""
    # Without recursion: a hostile tree may be deeper than Python's stack.
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def columns_of(tree: Node) -> frozenset[str]:
    """The columns that a tree uses."""
    return frozenset(node.column for node in nodes_of(tree) if isinstance(node, ColumnNode))


def _children(node: Node) -> list[Node]:
    if isinstance(node, CallNode):
        return node.of
    return [node.of] if isinstance(node, CastNode) else []


def _size(node: Node, levels: int) -> int:
    # Counted down, so that a tree that is too deep is left before the recursion is.
    if not levels:
        raise ValueError(f"nested more than {MOST_DEPTH} deep; write a flatter expression")
    sizes = [_size(child, levels - 1) for child in _children(node)]
    function = FUNCTIONS.get(node_name(node) or "")
    if function is not None and sizes:
        # The engine writes some arguments twice, and so twice what is within them.
        sizes[0] *= function.repeats
        sizes[-1] *= function.repeats_last
    return 1 + sum(sizes)


def type_of(node: Node, columns: Mapping[str, ColumnType]) -> ColumnType:
    """The type of a tree within its bounds.

    Raises:
        ValueError: a column or a function is not known, or arguments do not fit.
    """
    if isinstance(node, ColumnNode):
        if node.column not in columns:
            raise ValueError(unknown_name(node.column, columns))
        return columns[node.column]
    if isinstance(node, CastNode):
        return _cast_type(node, columns)
    if isinstance(node, CallNode):
        return _call_type(node, columns)
    return _CONSTANTS[type(node)]


def _cast_type(node: CastNode, columns: Mapping[str, ColumnType]) -> ColumnType:
    of, to = type_of(node.of, columns), ColumnType(node.cast)
    if (of, to) not in CASTS:
        raise ValueError(f"{_a(of)} is not cast to {_a(to)}; compare values of one type")
    # A text that is a date has become a constant date. What is left is none, or would be read by
    # the engine's own rules.
    if isinstance(node.of, StringNode) and to in {ColumnType.DATE, ColumnType.TIMESTAMP}:
        raise ValueError(f"{node.of.string!r} is no {to.value}; write one such as 2013-01-05")
    return to


def _call_type(node: CallNode, columns: Mapping[str, ColumnType]) -> ColumnType:
    function = FUNCTIONS.get(node.call)
    if function is None:
        raise ValueError(f"the function {unknown_name(node.call, FUNCTIONS)}")
    types = [type_of(argument, columns) for argument in node.of]
    bound = function.bound(types)
    # In a file every widening is written out as a cast, so that no reader has rules of its own.
    if bound is None or list(bound[0]) != types:
        raise ValueError(misfit(node.call, types))
    check_constants(node)
    return bound[1]


def misfit(name: str, types: list[ColumnType]) -> str:
    """The message for arguments that a function does not take."""
    if name in COMPARISONS and len(types) == 2:
        remedy = "cast one of them"
        if ColumnType.DATE in types or ColumnType.TIMESTAMP in types:
            remedy = "write a day as DATE '2024-01-31', a time as TIMESTAMP '2024-01-31 12:00'"
        elif ColumnType.STRING in types:
            remedy = f"write numbers without quotes and texts in quotes, or {remedy}"
        return f"{name!r} compares {_a(types[0])} with {_a(types[1])}; {remedy}"
    kinds = ", ".join(kind.value for kind in types)
    return f"{name!r} takes {FUNCTIONS[name].in_words()}, not ({kinds}); cast what differs"


def check_constants(node: CallNode) -> None:
    """Check the arguments of a call that have to be constants.

    Raises:
        ValueError: one is not, or it is no such pattern or part of a date.
    """
    function = FUNCTIONS[node.call]
    for place, argument in enumerate(node.of):
        if not function.is_constant(len(node.of), place):
            continue
        if not is_constant(argument):
            raise ValueError(f"argument {place + 1} of {node.call!r} has to be a constant")
        if not isinstance(argument, StringNode):
            continue
        # Each row is matched in time linear in its text, whatever the pattern is.
        if node.call in PATTERNS:
            check_pattern(argument.string)
        if node.call in OF_PARTS and argument.string not in PARTS:
            raise ValueError(f"{argument.string!r} is no part; write one of {listed(PARTS)}")


def _a(kind: ColumnType) -> str:
    return f"{'an' if kind is ColumnType.INTEGER else 'a'} {kind.value}"
