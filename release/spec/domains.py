"""The declared answers of a query: a circle, integers in order, categories, or bins.

A domain says which answers there are and in what order they are coded. It is public; nothing in it
comes from a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from math import ceil, floor
from typing import Annotated, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    StringConstraints,
    Tag,
    model_validator,
)

from release.exact.domain import AnswerDomain, Topology, levels
from release.exact.numbers import format_exact, parse_exact
from release.records.models import Exact as ExactText

MAX_ANSWERS = 10**6
"""Answers of one query, and cells of one query: beyond this a spec is a slip of the pen."""

GRID_LIMIT = 2**29
"""Grids lie within ± this: their half steps are integers too, and no larger than others."""

INTEGER_LIMIT = 2**62 - 1
"""An integer of a column beyond ± this is missing: the difference of two others fits 64 bits."""

KEY_LIMIT = 2**53 - 1
"""Integer keys lie within ± this: every reader of JSON holds them exactly."""

AMOUNT_LIMIT = 2**31 - 1
"""What a row adds to a sum lies within ± this, so that sums of 2^31 rows stay below 2^62."""


def _exact(value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    # ``bool`` by itself, because Python counts it among the integers. A float has lost its digits.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError('write the number as a string, such as "0.001": it has to be exact')
    try:
        return parse_exact(str(value))
    except ValueError as error:
        # Cut, because a spec may hold a number of any length.
        text = str(value)[:40]
        problem = "write a number of at least 0" if text.startswith("-") else str(error)
        raise ValueError(f"found {text!r}; {problem}") from error


Exact: TypeAlias = Annotated[
    Fraction,
    BeforeValidator(_exact, json_schema_input_type=ExactText | Annotated[int, Field(ge=0)]),
    PlainSerializer(format_exact, return_type=str),
]
Label: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Labels: TypeAlias = Annotated[list[Label], Field(min_length=2, max_length=MAX_ANSWERS)]
ColumnInteger: TypeAlias = Annotated[int, Field(ge=-AMOUNT_LIMIT, le=AMOUNT_LIMIT)]
GridInteger: TypeAlias = Annotated[int, Field(ge=-GRID_LIMIT, le=GRID_LIMIT)]
# Many readers of JSON hold numbers as 64-bit floats, which are exact up to this.
JsonInteger: TypeAlias = Annotated[int, Field(ge=-(2**53 - 1), le=2**53 - 1)]


class Model(BaseModel):
    """Frozen, strict about types, and without room for unknown fields."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )


class Cyclic(Model):
    """The answers 0..k-1 on a circle, such as hours or months."""

    cyclic: int = Field(ge=2, le=MAX_ANSWERS, description="the number of answers")


class OrderedRange(Model):
    """The bounds of an ordered domain, both included."""

    min: JsonInteger = Field(description="the least answer")
    max: JsonInteger = Field(description="the largest answer")


MOST_IN_ORDER = 2**53 - 1
"""Integers in order: all of them are exact in JSON and in every other reader's numbers."""


class Ordered(Model):
    """The integers from ``min`` to ``max``, such as counts."""

    ordered: OrderedRange = Field(description="the bounds of the answers")

    @model_validator(mode="after")
    def _check(self) -> Ordered:
        span = self.ordered.max - self.ordered.min
        if not 1 <= span < MOST_IN_ORDER:
            raise ValueError("the domain needs two answers or more (max above min), below 2^53")
        return self


class NoBounds(Model):
    """Nothing has to be said of all integers."""


class Integers(Model):
    """All integers: answers are not clamped, so that noisy ones stay unbiased.

    Beyond ±(2^52 - 1) they are published as that.
    """

    integers: NoBounds = Field(description="`{}`: the answers have no bounds")

    @property
    def ordered(self) -> OrderedRange:
        """The integers as a range."""
        return OrderedRange(min=-(MOST_IN_ORDER // 2), max=MOST_IN_ORDER // 2)


class Nominal(Model):
    """Categories, in code order."""

    nominal: Labels = Field(description="the labels of the categories, in the order of their codes")

    @model_validator(mode="after")
    def _check(self) -> Nominal:
        if len(set(self.nominal)) != len(self.nominal):
            raise ValueError("a label stands twice; keep each once")
        return self


class BinRange(Model):
    """``count`` equal bins between ``low`` and ``high``."""

    low: ColumnInteger = Field(description="where the first bin begins")
    high: ColumnInteger = Field(description="where the last bin ends")
    count: int = Field(ge=2, le=MAX_ANSWERS, description="the number of bins")


def ends_of_bins(
    bins: BinRange, codes: Sequence[int], *, is_real: bool
) -> list[tuple[int, int | None]]:
    """Between which whole numbers the values of each bin lie, both included.

    Of integers these are the least and the largest; of real numbers, such as means, the nearest
    around the edges. Answers are clamped, so the last bin also holds every larger value: it has no
    end.
    """
    width = Fraction(bins.high - bins.low, bins.count)
    found: list[tuple[int, int | None]] = []
    for code in codes:
        first, after = code * width, ceil((code + 1) * width)
        low = bins.low + (floor(first) if is_real else ceil(first))
        high = bins.low + (after if is_real else after - 1)
        found.append((low, None if code == bins.count - 1 else high))
    return found


class Bins(Model):
    """The bins of a quantised number; the answer is the bin in which it lies."""

    bins: BinRange = Field(description="the range and the number of bins")

    @model_validator(mode="after")
    def _check(self) -> Bins:
        # For its refusal: more bins than integers would leave some without any.
        levels(self.bins.low, self.bins.high, self.bins.count)
        return self


class GridRange(Model):
    """The points ``low``, ``low`` + ``step``, …, ``high``, in units of ``scale``.

    ``scale`` is what one unit is in the column's own: with 0.001 a column in kWh is answered in Wh.
    """

    low: GridInteger = Field(description="the least point, in units of the scale")
    high: GridInteger = Field(description="the largest point, in units of the scale")
    step: int = Field(ge=1, le=GRID_LIMIT, description="the distance of neighboring points")
    scale: Exact = Field(description="the size of one unit, in the column's unit of measure")


class Grid(Model):
    """Points at equal distances on the real line."""

    grid: GridRange = Field(description="the points of the answers")

    @model_validator(mode="after")
    def _check(self) -> Grid:
        span, step = self.grid.high - self.grid.low, self.grid.step
        if not (span >= step and span % step == 0 and span // step < MAX_ANSWERS):
            raise ValueError(
                "the grid needs two points or more, at most 10^6, and high a whole number of steps "
                "above low"
            )
        if not self.grid.scale > 0:
            raise ValueError("scale must be above 0")
        return self


def only_key(value: object) -> str:
    """The tag of an alternative: a mapping has it as its one key, a model as its one field."""
    # Models too, because pydantic also asks of validated values when it writes them.
    if isinstance(value, Enum):
        return "name"
    if isinstance(value, BaseModel):
        # A validated alternative: the first of its fields is the key that it was written by.
        return next(iter(type(value).model_fields))
    if isinstance(value, dict) and len(value) == 1:
        return str(next(iter(value)))
    return "list" if isinstance(value, list) else "name" if isinstance(value, str) else ""


def one_of(**alternatives: str) -> Discriminator:
    """Tells the alternatives of a union apart by their key, and names them where none is meant."""
    message = f"write one of {', '.join(alternatives.values())}"
    return Discriminator(only_key, custom_error_type="alternatives", custom_error_message=message)


Domain: TypeAlias = Annotated[
    Annotated[Cyclic, Tag("cyclic")]
    | Annotated[Ordered, Tag("ordered")]
    | Annotated[Integers, Tag("integers")]
    | Annotated[Nominal, Tag("nominal")]
    | Annotated[Bins, Tag("bins")],
    one_of(
        cyclic="{cyclic: k}",
        ordered="{ordered: {min: a, max: b}}",
        integers="{integers: {}}",
        nominal="{nominal: [labels]}",
        bins="{bins: {low: a, high: b, count: k}}",
    ),
]


def plain_answers(domain: Domain | Grid) -> AnswerDomain:
    """The answers of a declared domain, in code order."""
    # The code order is part of the format: mechanism files hold codes, not labels.
    if isinstance(domain, Grid):
        g = domain.grid
        return AnswerDomain(Topology.ORDERED, range(g.low, g.high + 1, g.step))
    if isinstance(domain, Cyclic):
        return AnswerDomain(Topology.CYCLIC, range(domain.cyclic))
    if isinstance(domain, Ordered | Integers):
        bounds = domain.ordered
        return AnswerDomain(Topology.ORDERED, range(bounds.min, bounds.max + 1))
    if isinstance(domain, Nominal):
        return AnswerDomain(Topology.NOMINAL, tuple(domain.nominal))
    return levels(domain.bins.low, domain.bins.high, domain.bins.count)
