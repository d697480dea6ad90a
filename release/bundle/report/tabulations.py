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

from release.bundle.report.tabulation_picture import SizedTable, sizes_svg
from release.bundle.tabulations.descriptions import margin_text, title_of
from release.bundle.tabulations.numbers import MarginNumbers
from release.bundle.tabulations.writing import PublicTabulation
from release.exact.tables.rounding import MILLION
from release.spec.tabulations.model import Impossible
from release.spec.tabulations.opened import NamedMargin, OpenTabulation

MAX_ROWS = 200
"""Longer tables are cut in the report; the Parquet file has them whole."""

_MOST_ROWS = 4000
"""Rows of all tables of a tabulation: a page of more is slow to load."""

_UPPER_LEVELS = 1
"""Levels above its own that an area is shown with."""


def shown_tabulation(public: PublicTabulation) -> dict[str, Any]:
    """The values of the templates for one tabulation."""
    opened, record, tables = public.opened, public.record, _tables(public)
    sized = [_sized(public, named, numbers) for named, numbers in tables]
    return {
        "name": opened.name,
        "record": record,
        "title": title_of(opened.declared),
        "units": units_of(public),
        "where": opened.declared.where,
        "levels": [f"{entry.level} {entry.areas:,}" for entry in record.levels],
        "cells": f"{sum(numbers.rounded.size for _, numbers in tables):,}",
        "count": len(sized),
        "overview": [_overview(public, *table) for table in tables],
        "facts": [_known(entry.level, entry.margin) for entry in record.declared],
        "zeros": list(map(_impossible, opened.declared.zeros)),
        "example": _example(public),
        "picture": sizes_svg(f"sizes-{opened.name}", units_of(public), sized),
        "tables": list(_shown_tables(public)),
        "measured": list(_measured(public)),
        "objective": amount(float(Fraction(record.objective))),
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
    parts = [f"{name} {', '.join(map(str, values))}" for name, values in zero.impossible.items()]
    return " with ".join(parts)


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
        "level": public.opened.levels[named.level],
        "margin": named.text,
        "areas": f"{areas:,}",
        "cells": f"{areas * cells:,}",
        "error": amount(_standard_error(numbers)),
        "width": amount(_half_width(numbers)),
        "above": above,
    }


def _sized(public: PublicTabulation, named: NamedMargin, numbers: MarginNumbers) -> SizedTable:
    level = public.opened.levels[named.level]
    counts = np.sort(numbers.rounded.reshape(-1))
    places = [round(share * (counts.size - 1)) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
    sizes = tuple(float(counts[place]) for place in places)
    return SizedTable(level, named.text, sizes, _half_width(numbers))


def _example(public: PublicTabulation) -> str:
    """How to read one number: the first one of the last table of the highest level."""
    named, numbers = public.opened.published_at(0)[-1], public.levels[0].margins[-1]
    shown = (numbers.rounded, numbers.low, numbers.high)
    rounded, low, high = (int(values[0, 0]) for values in shown)
    columns, key = _key_columns(public.opened, named), next(_keys(public.opened, named))
    about = ", ".join(map(" ".join, zip(columns, key, strict=True)))
    where = f"is {low:,}" if low == high else f"lies from {low:,} to {high:,}"
    return (
        f"Published {rounded:,} {units_of(public)} for {about}: the true count {where} in 95 of "
        "100 such cases."
    )


def _upper_levels(opened: OpenTabulation, level: int) -> list[int]:
    """The levels above that tell areas apart, nearest last."""
    telling = [upper for upper in range(level) if opened.named.areas.size(upper) > 1]
    return telling[-_UPPER_LEVELS:]


def _key_columns(opened: OpenTabulation, named: NamedMargin) -> list[str]:
    """The columns of :func:`_keys`."""
    uppers = [opened.levels[upper] for upper in _upper_levels(opened, named.level)]
    return [*uppers, opened.levels[named.level], *named.names]


def _keys(opened: OpenTabulation, named: NamedMargin) -> Iterator[list[str]]:
    """The areas and labels of each row, in the order of the file."""
    level = named.level
    uppers = _upper_levels(opened, level)
    places = [opened.named.places(level, upper) for upper in uppers]
    for area, name in enumerate(opened.named.names[level]):
        above = []
        for upper, place in zip(uppers, places, strict=True):
            above.append(opened.named.names[upper][place[area]])
        for labels in product(*opened.labels(named.names)):
            yield [*above, name, *labels]


def _shown_tables(public: PublicTabulation) -> Iterator[dict[str, Any]]:
    """The published tables as rows of text, cut."""
    opened, left = public.opened, _MOST_ROWS
    for named, numbers in _tables(public):
        take = min(MAX_ROWS, left, numbers.rounded.size)
        left -= take
        shown = (numbers.rounded, numbers.low, numbers.high)
        counts, lows, highs = (values.reshape(-1)[:take].tolist() for values in shown)
        keys = islice(_keys(opened, named), take)
        rows = []
        for key, count, low, high in zip(keys, counts, lows, highs, strict=True):
            rows.append((key, f"{count:,}", f"{low:,} to {high:,}"))
        level = opened.levels[named.level]
        yield {
            "title": f"{level}: {named.text}",
            "columns": _key_columns(opened, named),
            "rows": rows,
            "left_out": f"{numbers.rounded.size - take:,}" if take < numbers.rounded.size else "",
            "path": public.record.levels[named.level].output.path,
        }


def _measured(public: PublicTabulation) -> Iterator[dict[str, Any]]:
    opened = public.opened
    for entry in public.record.measured:
        table = opened.levels.index(entry.level), opened.margin(entry.margin)
        yield {
            "record": entry,
            "text": _known(entry.level, entry.margin),
            "cells": f"{entry.cells:,}",
            "deviation": amount(math.sqrt(public.noises[table].moment(2))),
        }
