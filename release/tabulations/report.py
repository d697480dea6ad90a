"""The part of the report on tabulations: what is published, how near it is, and what was measured.

Only published numbers, the declaration and the noise enter it, so the same inputs give the same
bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np

from release.bundle.report.long_tables import (
    EMBEDDED,
    MAX_ROWS,
    Column,
    held_whole,
    interval_column,
    shown_table,
)
from release.exact.numbers import format_exact
from release.spec.declarations import KeyRange
from release.spec.query import spoken
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.files.descriptions import title_of
from release.tabulations.files.numbers import MarginNumbers
from release.tabulations.files.writing import PublicTabulation
from release.tabulations.picture import SizedTable, sizes_svg
from release.tabulations.spec.model import Categories, Impossible, margin_text
from release.tabulations.spec.opened import NamedMargin, OpenTabulation

_MOST_ROWS = 4000
"""Rows of all tables of a tabulation: a page of more is slow to load."""

_TRUE_COUNT = "true count, 95 of 100"

_UPPER_LEVELS = 1
"""Levels above its own that an area is shown with."""


def shown_tabulation(public: PublicTabulation) -> dict[str, Any]:
    """The values of the templates for one tabulation."""
    opened, tables = public.opened, _tables(public)
    sized, overview, cells = [], [], 0
    for named, numbers in tables:
        sized.append(_sized(public, named, numbers))
        overview.append(_overview(public, named, numbers))
        cells += numbers.rounded.size
    return {
        "name": opened.name,
        "family": public.family,
        "title": title_of(opened.declared),
        "units": units_of(public),
        "where": opened.declared.where,
        "levels": [
            f"{level} {opened.named.areas.size(place):,}"
            for place, level in enumerate(opened.levels)
        ],
        "cells": f"{cells:,}",
        "count": len(sized),
        "overview": overview,
        "facts": [
            _known(opened.levels[table.level], table.names) for table in opened.declared_tables
        ],
        "zeros": list(map(_impossible, opened.declared.zeros)),
        "example": _example(public),
        "picture": sizes_svg(f"sizes-{opened.name}", units_of(public), sized),
        "tables": list(_shown_tables(public)),
        "measured": list(_measured(public)),
        "objective": amount(float(Fraction(public.objective))),
        "rests_on": public.rests_on,
    }


def units_of(public: PublicTabulation) -> str:
    """What is counted."""
    return public.opened.declared.units or "rows"


def _tables(public: PublicTabulation) -> list[tuple[NamedMargin, MarginNumbers]]:
    """The published tables with their numbers, level by level."""
    tables: list[tuple[NamedMargin, MarginNumbers]] = []
    for numbers in public.levels:
        named = public.opened.published_at(numbers.level)
        tables += zip(named, numbers.margins, strict=True)
    return tables


def amount(value: float) -> str:
    """A number of units with about three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    places = 2 if value < 1 else 1
    return f"{value:.{places}f}"


def _known(level: str, margin: Sequence[str]) -> str:
    return f"{level}: {margin_text(margin)}"


def _impossible(zero: Impossible) -> str:
    sides = [f"{name} {_of(categories)}" for name, categories in zero.impossible.items()]
    return " with ".join(sides)


def _of(categories: Categories) -> str:
    if isinstance(categories, KeyRange):
        return f"{categories.range[0]} to {categories.range[1]}"
    return ", ".join(map(str, categories))


def _half_width(numbers: MarginNumbers) -> float:
    """The mean distance from the answer up to the high end of its interval.

    The low end is cut at 0, so it would say less.
    """
    distances = numbers.high - numbers.answer / MILLION
    # Exact before the last step, so that no machine adds up in an order of its own.
    return math.fsum(distances.reshape(-1).tolist()) / distances.size


def _standard_error(numbers: MarginNumbers) -> float:
    return math.fsum(numbers.standard_error.reshape(-1).tolist()) / (
        MILLION * numbers.standard_error.size
    )


def _overview(
    public: PublicTabulation, named: NamedMargin, numbers: MarginNumbers
) -> dict[str, Any]:
    areas, cells = numbers.rounded.shape
    # Down: a share that is written is never larger than it is.
    above = 100 * int((numbers.low > 0).sum()) // numbers.low.size
    return {
        "table": _spoken_table(public.opened, named),
        "cells": f"{areas * cells:,}",
        "error": amount(_standard_error(numbers)),
        "width": amount(_half_width(numbers)),
        "above": above,
    }


def _sized(public: PublicTabulation, named: NamedMargin, numbers: MarginNumbers) -> SizedTable:
    level = spoken(public.opened.levels[named.level])
    counts = np.sort(numbers.rounded.reshape(-1))
    # Counts that occur, not means of two: np.quantile would draw numbers that nobody published.
    places = np.rint(np.array([0.05, 0.25, 0.5, 0.75, 0.95]) * (counts.size - 1)).astype(np.int64)
    sizes = tuple(map(float, counts[places]))
    return SizedTable(level, spoken(named.text), sizes, _half_width(numbers))


def _example(public: PublicTabulation) -> str:
    """How to read one number: the first one of the last table of the highest level."""
    named, numbers = public.opened.published_at(0)[-1], public.levels[0].margins[-1]
    rounded = int(numbers.rounded[0, 0])
    low, high = int(numbers.low[0, 0]), int(numbers.high[0, 0])
    columns, key = _key_columns(public.opened, named), next(_keys(public.opened, named))
    about = ", ".join(map(" ".join, zip(map(spoken, columns), key, strict=True)))
    where = f"is {low:,}" if low == high else f"lies from {low:,} to {high:,}"
    return (
        f"Published {rounded:,} {units_of(public)} for {about}: the true count {where} in 95 of "
        "100 such cases."
    )


def _upper_levels(opened: OpenTabulation, level: int) -> list[int]:
    """The levels above that tell areas apart, nearest last."""
    # A level of one area, such as the country, would be the same word in every row.
    telling = [upper for upper in range(level) if opened.named.areas.size(upper) > 1]
    return telling[-_UPPER_LEVELS:]


def _key_columns(opened: OpenTabulation, named: NamedMargin) -> list[str]:
    """The columns of :func:`_keys`."""
    uppers = [opened.levels[upper] for upper in _upper_levels(opened, named.level)]
    return [*uppers, opened.levels[named.level], *named.names]


def _keys(opened: OpenTabulation, named: NamedMargin) -> Iterator[list[str]]:
    """The areas and labels of each row, in the order of the file."""
    level = named.level
    columns: list[Sequence[str]] = []
    for upper in _upper_levels(opened, level):
        names = opened.named.names[upper]
        places = opened.named.places(level, upper).tolist()
        columns.append([names[place] for place in places])
    columns.append(opened.named.names[level])
    for areas in zip(*columns, strict=True):
        for labels in product(*opened.labels(named.names)):
            yield [*areas, *labels]


def _spoken_table(opened: OpenTabulation, named: NamedMargin) -> str:
    return spoken(_known(opened.levels[named.level], named.names))


def _shown_tables(public: PublicTabulation) -> Iterator[dict[str, Any]]:
    """The published tables as columns of text; the long ones as far as the page has room."""
    opened, shown, tables = public.opened, _MOST_ROWS, list(_tables(public))
    embedded = held_whole((numbers.rounded.size for _, numbers in tables), EMBEDDED)
    for (named, numbers), is_embedded in zip(tables, embedded, strict=True):
        rows = numbers.rounded.size
        # A table beyond the room of the page is not there at all, but for its name.
        take = rows if is_embedded else min(MAX_ROWS, shown, rows)
        shown -= min(MAX_ROWS, take)
        columns = list(_columns(public, named, numbers, take))
        yield {
            "title": _spoken_table(opened, named),
            "table": shown_table(columns, rows, is_embedded=is_embedded),
            "cells": f"{rows:,}",
            "path": f"data/{public.made.levels[named.level].file}.parquet",
        }


def _columns(
    public: PublicTabulation, named: NamedMargin, numbers: MarginNumbers, take: int
) -> Iterator[Column]:
    """The first rows of a table: its keys, the rounded numbers, the ends of their intervals."""
    keys = list(zip(*islice(_keys(public.opened, named), take), strict=True))
    # A table that is not shown has no keys to tell its columns from.
    for place, head in enumerate(_key_columns(public.opened, named)):
        yield Column(spoken(head), keys[place] if keys else (), is_number=False)
    texts = []
    for values in (numbers.rounded, numbers.low, numbers.high):
        texts.append([f"{value:,}" for value in values.reshape(-1)[:take].tolist()])
    yield Column(units_of(public), texts[0])
    yield interval_column(_TRUE_COUNT, ("true from", "true to"), *texts[1:])


def _measured(public: PublicTabulation) -> Iterator[dict[str, Any]]:
    opened = public.opened
    for entry in public.made.measured:
        table = opened.levels.index(entry.level), opened.margin(entry.margin)
        yield {
            "made": entry,
            "epsilon": format_exact(entry.epsilon),
            "delta": format_exact(entry.delta),
            "charge": [format_exact(entry.charge.epsilon), format_exact(entry.charge.delta)],
            "text": _known(entry.level, entry.margin),
            "cells": f"{entry.cells:,}",
            "deviation": amount(math.sqrt(public.noises[table].moment(2))),
        }
