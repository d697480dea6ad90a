"""The trees of conditions and derived columns, as they stand in ``release.json``.

A node is one of nine forms, told apart by its first key. The union is closed: a file with any other
node is refused. What functions there are, and which arguments they take, stands in
:mod:`release.spec.expressions.functions`.
"""

from __future__ import annotations

import datetime
import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

TypeName: TypeAlias = Literal["string", "integer", "date", "timestamp", "number", "boolean"]


def _integer(text: str) -> str:
    # JSON numbers are floats for many readers and lose digits from 2^53 on, hence texts; one text
    # for each number, because the same condition has to have the same hash.
    if text != str(int(text)) or not -(2**63) <= int(text) < 2**63:
        raise ValueError("not an integer of 64 bits in its shortest form")
    return text


def number_text(value: float) -> str:
    """The one text of a finite 64-bit float: the shortest that reads back as it."""
    # A zero has no sign here: SQL reads -0.0 as 0.
    return repr(value + 0.0)


def _number(text: str) -> str:
    if not math.isfinite(float(text)) or number_text(float(text)) != text:
        raise ValueError("not a finite number in its shortest form")
    return text


def _string(text: str) -> str:
    # The engine's text may end at the first of them.
    if "\0" in text:
        raise ValueError("a text with the character 0")
    return text


def _date(text: str) -> str:
    if datetime.date.fromisoformat(text).isoformat() != text:
        raise ValueError("not a date such as 2013-01-05")
    return text


def _timestamp(text: str) -> str:
    # ``fromisoformat`` reads many forms, such as a week or a "T"; its own text is the one form.
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None or moment.isoformat(" ") != text:
        raise ValueError("not a timestamp such as 2013-01-05 12:30:00")
    return text


# Strict and closed: otherwise 1 would do for true, and an unknown key would be dropped unseen.
class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ColumnNode(_Node):
    """The value of a column in the same row."""

    column: str = Field(description="the name of a column")


class BooleanNode(_Node):
    """True or false."""

    boolean: bool = Field(description="the value")


class IntegerNode(_Node):
    """An integer constant of 64 bits."""

    integer: Annotated[
        str, Field(pattern=r"^-?[0-9]+$", max_length=20), AfterValidator(_integer)
    ] = Field(description="decimal digits, with `-` before them if it is negative")


class NumberNode(_Node):
    """A finite 64-bit float."""

    number: Annotated[
        str,
        Field(pattern=r"^-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?$", max_length=30),
        AfterValidator(_number),
    ] = Field(description="the shortest decimal text that reads back as it")


class StringNode(_Node):
    """A constant text."""

    string: Annotated[str, AfterValidator(_string)] = Field(description="the text")


class DateNode(_Node):
    """A constant date."""

    date: Annotated[str, AfterValidator(_date)] = Field(description="`2013-01-05`")


class TimestampNode(_Node):
    """A constant time without a time zone."""

    timestamp: Annotated[str, AfterValidator(_timestamp)] = Field(
        description="`2013-01-05 12:30:00`, with six decimals if they are not zero"
    )


class CastNode(_Node):
    """A value as one of another type; missing where it has none."""

    cast: TypeName = Field(description="the type")
    of: Node = Field(description="the value")


class CallNode(_Node):
    """A function, or an operator, of one or more values."""

    call: str = Field(max_length=24, description="the function, of the table in the format")
    of: list[Node] = Field(min_length=1, description="the arguments, in order")


_FORMS = (
    *("column", "boolean", "integer", "number", "string", "date", "timestamp"),
    *("cast", "call"),
)


def _form(value: Any) -> str | None:
    keys = type(value).model_fields if isinstance(value, _Node) else value
    if not isinstance(keys, dict):
        return None
    # A node with the keys of two forms is taken for one of them, which refuses the further key.
    for form in _FORMS:
        if form in keys:
            return form
    return None


Node: TypeAlias = Annotated[
    Annotated[ColumnNode, Tag("column")]
    | Annotated[BooleanNode, Tag("boolean")]
    | Annotated[IntegerNode, Tag("integer")]
    | Annotated[NumberNode, Tag("number")]
    | Annotated[StringNode, Tag("string")]
    | Annotated[DateNode, Tag("date")]
    | Annotated[TimestampNode, Tag("timestamp")]
    | Annotated[CastNode, Tag("cast")]
    | Annotated[CallNode, Tag("call")],
    Discriminator(_form),
]
# ``Node`` is defined by these two and they by it: their fields can be resolved only now.
CastNode.model_rebuild()
CallNode.model_rebuild()


class ExpressionRecord(_Node):
    """A condition or a derived column of the spec, as the tree that was evaluated."""

    place: str = Field(description="`tables.<table>.derive.<column>`, or `queries.<name>.where`")
    tree: Node = Field(description="a value of one row")
