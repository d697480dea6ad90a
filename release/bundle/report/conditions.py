"""Conditions and derived columns in words, from the trees of ``release.json``.

The words follow the tree node by node, so they say what was evaluated. A function without words of
its own is written with its name and its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

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
from release.spec.expressions.places import expressions
from release.spec.model import Spec
from release.spec.query import spoken

Trees: TypeAlias = Mapping[str, Node]
"""The trees of a spec by the places of their expressions."""

_COMPARED = {
    "=": ("is", "is"),
    "<>": ("is not", "is not"),
    "<": ("is below", "is before"),
    "<=": ("is at most", "is no later than"),
    ">": ("is above", "is after"),
    ">=": ("is at least", "is no earlier than"),
}
"""What is said of numbers, and of times."""

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_MEMBERSHIP = ("is_null", "between", "in")

_BETWEEN_TWO = {
    "+": "plus",
    "-": "minus",
    "*": "times",
    "/": "divided by",
    "//": "divided, without a rest, by",
    "%": "modulo",
}

_OF_TEXT = {
    "starts_with": "starts with",
    "ends_with": "ends with",
    "contains": "contains",
    "like": "has the form",
    "ilike": "has, in any case of letters, the form",
    "regexp_matches": "contains the pattern",
    "regexp_full_match": "is of the pattern",
}

_UNITS_OF_TIME = ("year", "quarter", "month", "week", "hour", "minute", "second")

_PARTS = {
    **dict(zip(_UNITS_OF_TIME, _UNITS_OF_TIME, strict=True)),
    "day": "day of the month",
    "isodow": "day of the week (1 is Monday)",
    "dayofweek": "day of the week (0 is Sunday)",
    "dayofyear": "day of the year",
    "length": "length",
    "lower": "text in small letters",
    "upper": "text in capitals",
    "abs": "size",
}


def in_words(tree: Node) -> str:
    """A condition, or a value, as a phrase."""
    if isinstance(tree, CallNode):
        return _call(tree)
    if isinstance(tree, ColumnNode):
        return f"{spoken(tree.column)} is true"
    return _value(tree)


def trees_of(spec: Spec) -> Trees:
    """The trees of all derived columns and conditions of a spec."""
    return {expression.place: expression.tree for expression in expressions(spec)}


def derived_columns(trees: Trees, table: str) -> dict[str, Node]:
    """The trees of the derived columns of a table, by their names."""
    before = f"tables.{table}.derive."
    own = {}
    for place, tree in trees.items():
        if place.startswith(before):
            own[place.removeprefix(before)] = tree
    return own


def columns_of(tree: Node) -> Iterator[str]:
    """The columns that a tree reads."""
    if isinstance(tree, ColumnNode):
        yield tree.column
    children = tree.of if isinstance(tree, CallNode) else ()
    for child in (tree.of,) if isinstance(tree, CastNode) else children:
        yield from columns_of(child)


def listed(texts: Iterable[str], last: str = "and") -> str:
    """Texts with commas between them, and a word before the last."""
    *others, end = texts
    return f"{', '.join(others)} {last} {end}" if others else end


def _value(tree: Node) -> str:
    """A value as the object or the subject of a sentence."""
    match tree:
        case ColumnNode():
            text = f"the {spoken(tree.column)}"
        case StringNode():
            text = f"“{tree.string}”"
        case BooleanNode():
            text = "true" if tree.boolean else "false"
        case IntegerNode():
            text = tree.integer
        case NumberNode():
            text = tree.number
        case DateNode():
            text = tree.date
        case TimestampNode():
            text = tree.timestamp
        case CastNode():
            # Only a text is written in another way than the value that it is made of.
            text = f"{_value(tree.of)}{' as a text' if tree.cast == 'string' else ''}"
        case CallNode():
            text = _call(tree)
    return text


def _part(tree: CallNode) -> str | None:
    """A value that is part of another; None for other functions."""
    if tree.call in _PARTS and len(tree.of) == 1:
        return f"the {_PARTS[tree.call]} of {_value(tree.of[0])}"
    if tree.call in _BETWEEN_TWO and len(tree.of) == 2:
        left, right = map(_inner, tree.of)
        return f"{left} {_BETWEEN_TWO[tree.call]} {right}"
    return None


def _inner(tree: Node) -> str:
    is_nested = isinstance(tree, CallNode) and tree.call in _BETWEEN_TWO
    return f"({_value(tree)})" if is_nested else _value(tree)


def _call(tree: CallNode) -> str:
    name, arguments = tree.call, tree.of
    if name in ("and", "or"):
        text = _joined(tree)
    elif name in _COMPARED:
        text = _comparison(name, *arguments)
    elif name == "not":
        text = _negated(arguments[0])
    elif name in _MEMBERSHIP:
        text = _membership(tree, "is")
    elif name in _OF_TEXT:
        text = f"{_value(arguments[0])} {_OF_TEXT[name]} {_value(arguments[1])}"
    elif name == "case":
        text = _cases(arguments)
    else:
        text = _part(tree) or f"{name}({', '.join(map(_value, arguments))})"
    return text


def _joined(tree: CallNode) -> str:
    """Conditions joined by ``and`` or ``or``; in brackets where these alternate."""
    texts = []
    for child in tree.of:
        is_other = isinstance(child, CallNode) and child.call in ("and", "or")
        is_same = isinstance(child, CallNode) and child.call == tree.call
        text = in_words(child)
        texts.append(f"({text})" if is_other and not is_same else text)
    # Of more than two, a comma alone could be read as either word.
    return f" {tree.call} ".join(texts)


def _comparison(sign: str, left: Node, right: Node) -> str:
    if isinstance(right, BooleanNode) and sign in ("=", "<>"):
        is_so = right.boolean == (sign == "=")
        return in_words(left) if is_so else _negated(left)
    return f"{_value(left)} {_COMPARED[sign][_is_time(left, right)]} {_value(right)}"


def _membership(tree: CallNode, verb: str) -> str:
    """Whether a value is missing, within bounds, or in a list; ``verb`` may deny it."""
    subject, *arguments = map(_value, tree.of)
    if tree.call == "is_null":
        return f"{subject} {verb} missing"
    if tree.call == "between":
        low, high = arguments
        return f"{subject} {verb} from {low} to {high}"
    return f"{subject} {verb} {listed(arguments, 'or')}"


def _is_time(left: Node, right: Node) -> bool:
    times = DateNode | TimestampNode
    if isinstance(left, times) or isinstance(right, times):
        return True
    # A year is a number of the spec, but "is below 2020" is no way to speak of one.
    if isinstance(left, CallNode):
        return left.call == "year"
    return isinstance(left, ColumnNode) and "year" in left.column.lower().split("_")


def _negated(tree: Node) -> str:
    if isinstance(tree, ColumnNode):
        return f"{spoken(tree.column)} is false"
    # Of a missing value both a comparison and its opposite are missing, so that no row changes.
    if isinstance(tree, CallNode):
        if tree.call in _OPPOSITE:
            left, right = tree.of
            return _comparison(_OPPOSITE[tree.call], left, right)
        if tree.call in _MEMBERSHIP:
            return _membership(tree, "is not")
        if tree.call == "not":
            return in_words(tree.of[0])
    return f"it is not so that ({in_words(tree)})"


def _cases(arguments: Sequence[Node]) -> str:
    texts = []
    # Pairs of a condition and its value; an odd one at the end is for all other rows.
    for place in range(0, len(arguments) - 1, 2):
        texts.append(f"{_value(arguments[place + 1])} if {in_words(arguments[place])}")
    if len(arguments) % 2:
        texts.append(f"else {_value(arguments[-1])}")
    return ", ".join(texts)
