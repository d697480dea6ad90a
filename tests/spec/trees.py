"""Random trees of conditions, and rows with the extremes of every type."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import strategies as st

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
    number_text,
)
from release.spec.declarations import ColumnType as Type
from release.spec.expressions.functions import (
    CASTS,
    FUNCTIONS,
    LETTERS,
    OF_PARTS,
    PARTS,
    PATTERNS,
    Function,
)

COLUMNS = {
    "i": Type.INTEGER,
    "j": Type.INTEGER,
    "x": Type.NUMBER,
    "s": Type.STRING,
    "d": Type.DATE,
    "t": Type.TIMESTAMP,
    "b": Type.BOOLEAN,
    'a "name"': Type.STRING,
}
INF = float("inf")
EXTREMES: dict[Type, list[Any]] = {
    Type.INTEGER: [0, 1, -1, 7, 19, 2**31, 2**32, 2**53 + 1, 2**63 - 1, -(2**63)],
    Type.NUMBER: [0.0, -0.0, 0.3, -2.5, 1e15, 1e308, -1e308, 5e-324, INF, -INF, float("nan")],
    Type.STRING: [
        "",
        " ",
        "abc",
        "ABC",
        "12",
        "1e400",
        "2013-01-05",
        "true",
        "%_\\",
        "é\u0301😀İß",
    ],
    Type.DATE: [datetime.date.min, datetime.date(2013, 1, 5), datetime.date.max],
    Type.TIMESTAMP: [
        datetime.datetime.min,
        datetime.datetime(2013, 1, 5, 23, 59, 59, 999999),
        datetime.datetime.max,
    ],
    Type.BOOLEAN: [True, False],
}
VALUES = {
    Type.INTEGER: st.integers(-(2**63), 2**63 - 1) | st.integers(-40, 40),
    Type.NUMBER: st.floats(),
    Type.STRING: st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
    ),
    Type.DATE: st.dates(),
    Type.TIMESTAMP: st.datetimes(),
    Type.BOOLEAN: st.booleans(),
}
PATTERN_TEXTS = ("a+b*", "^[a-z]{1,3}$", "(?:a|b)?c", "\\d{4}-\\d{2}", "", ".*", "[^\\w]")


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values of a column, extremes among them; None is a missing one."""
    return st.none() | st.sampled_from(EXTREMES[kind]) | VALUES[kind]


def constant(kind: Type, value: Any) -> Node | None:
    """The constant of a value; None where it has none."""
    if kind is Type.INTEGER:
        return IntegerNode(integer=str(value))
    if kind is Type.NUMBER:
        return NumberNode(number=number_text(value)) if abs(value) < INF else None
    if kind is Type.STRING:
        return StringNode(string=value)
    if kind is Type.DATE:
        return DateNode(date=value.isoformat())
    if kind is Type.TIMESTAMP:
        return TimestampNode(timestamp=value.isoformat(" "))
    return BooleanNode(boolean=value)


def constants(kind: Type) -> st.SearchStrategy[Any]:
    drawn = st.sampled_from(EXTREMES[kind]) | VALUES[kind]
    return drawn.map(lambda value: constant(kind, value)).filter(lambda node: node is not None)


def leaves(kind: Type) -> st.SearchStrategy[Any]:
    names = [name for name, of in COLUMNS.items() if of is kind]
    return st.sampled_from([ColumnNode(column=name) for name in names]) | constants(kind)


def _type(expected: str, choice: Type) -> Type:
    name = expected.removesuffix(" constant")
    return choice if name in LETTERS else Type(name)


def _choices(function: Function, kind: Type) -> list[Type]:
    """What the letter of a function can be, for a value of ``kind``."""
    letter = next(
        (e[0] for e in function.expects(_count(function, 0)) or () if e[0] in LETTERS), ""
    )
    return [c for c in LETTERS.get(letter, (Type.BOOLEAN,)) if _type(function.gives, c) is kind]


def _count(function: Function, more: int) -> int:
    return len(function.takes) + more * len(function.more)


@st.composite
def trees(draw: st.DrawFn, kind: Type, depth: int = 4) -> Any:
    """A tree of a type, of the functions of the table, as the reader of texts would make it."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves(kind))
    if draw(st.integers(0, 4)) == 0:
        of = draw(st.sampled_from([o for o, to in sorted(CASTS) if to is kind]))
        inner = draw(trees(of, depth - 1))
        if not (isinstance(inner, StringNode) and kind in {Type.DATE, Type.TIMESTAMP}):
            return CastNode(cast=kind.value, of=inner)
    usable = [f for f in FUNCTIONS.values() if _choices(f, kind)]
    function = draw(st.sampled_from(usable))
    choice = draw(st.sampled_from(_choices(function, kind)))
    count = _count(function, draw(st.integers(0, 2)) if function.more else 0)
    count += len(function.last) * draw(st.integers(0, 1))
    arguments = []
    for place, expected in enumerate(function.expects(count) or ()):
        of = _type(expected, choice)
        if expected.endswith(" constant"):
            arguments.append(draw(_argument(function, of, place)))
        else:
            arguments.append(draw(trees(of, depth - 1)))
    return _canonical(CallNode(call=function.name, of=arguments))


def _argument(function: Function, kind: Type, place: int) -> st.SearchStrategy[Any]:
    if function.name in PATTERNS:
        return st.sampled_from([StringNode(string=text) for text in PATTERN_TEXTS])
    if function.name in OF_PARTS:
        return st.sampled_from([StringNode(string=part) for part in PARTS])
    if function.name == "round" and place:
        return st.integers(-400, 400).map(lambda n: IntegerNode(integer=str(n)))
    return constants(kind)


def _canonical(node: CallNode) -> Node:
    """As a text would be read: chains are flat, and the sign of a constant is part of it."""
    first = node.of[0]
    if node.call == "negate" and isinstance(first, IntegerNode | NumberNode):
        return first
    if node.call not in {"and", "or", "||"}:
        return node
    joined: list[Node] = []
    for argument in node.of:
        is_same = isinstance(argument, CallNode) and argument.call == node.call
        joined += argument.of if is_same and isinstance(argument, CallNode) else [argument]
    return CallNode(call=node.call, of=joined)


def rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """One to four rows of the columns."""
    row = st.fixed_dictionaries({name: values(kind) for name, kind in COLUMNS.items()})
    return st.lists(row, min_size=1, max_size=4)


def any_tree() -> st.SearchStrategy[Any]:
    return st.sampled_from(list(Type)).flatmap(trees)
