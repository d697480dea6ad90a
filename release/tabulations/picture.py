"""The picture of a tabulation: how large its counts are, and how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from release.bundle.report.charts import NARROW, SOLID, WIDTH, Axis, Chart, Entry

DARK, MEDIAN, MIDDLE, LIGHT = "#a3262a", "#1f5582", "#9dbad5", "#dfe7ee"
"""The margin of error, and the counts: their median, their middle half, and nearly all of them.

The two dark ones differ in shape, and the others in lightness, so that all are told apart in grey.
"""

MOST_TABLES = 60
"""Tables that are drawn; the table beside the picture has all."""


_LONGEST = 18
"""Characters of a label beside a picture that fits a telephone."""


@dataclass(frozen=True)
class SizedTable:
    """One published table.

    Attributes:
        level: the level of its areas.
        margin: what breaks it down, in words.
        sizes: the counts that 5, 25, 50, 75 and 95 of 100 counts do not exceed.
        half_width: the mean distance from an answer to the high end of its 95% interval.
    """

    level: str
    margin: str
    sizes: tuple[float, ...]
    half_width: float


def sizes_svg(name: str, units: str, tables: Sequence[SizedTable]) -> str:
    """A bar for each table from its small counts to its large ones, and its margin of error.

    Counts left of the margin of error are mostly noise.
    """
    drawn = tables[:MOST_TABLES]
    rows, heads = _rows(drawn)
    zero, across = _count_axis(drawn, units)
    last = rows[-1]
    ticks, longest = [], 0
    for row, label in (*heads, *zip(rows, [table.margin for table in drawn], strict=True)):
        # Rows count from the top, and an axis from the bottom.
        ticks.append((last - row, label))
        longest = max(longest, len(label))
    width = NARROW if longest <= _LONGEST else WIDTH
    upwards = Axis(-0.7, last + 0.7, tuple(ticks))
    legend = (
        Entry("9 of 10 counts", LIGHT),
        Entry("the middle half", MIDDLE),
        Entry("margin of error", DARK, SOLID),
    )
    chart = Chart(name, 15.0 * (last + 1.4), (across, upwards), legend, width=width)
    wide, middle, medians = [], [], []
    for row, table in zip(rows, drawn, strict=True):
        place = last - row
        # A logarithmic axis has no 0: small counts stand at its left end.
        least, lower, median, upper, most = (max(size, zero) for size in table.sizes)
        wide.append((least, most, place - 0.3, place + 0.3))
        middle.append((lower, upper, place - 0.3, place + 0.3))
        medians.append((median, place))
    edge = f'stroke="{MIDDLE}" stroke-width="0.8"'
    chart.boxes(wide, LIGHT, edge)
    # A bar of one count has no width, but an edge.
    chart.boxes(middle, MIDDLE, edge)
    chart.dots(medians, MEDIAN)
    for row, table in zip(rows, drawn, strict=True):
        place, at = last - row, max(table.half_width, zero)
        chart.line([(at, place - 0.48), (at, place + 0.48)], DARK, SOLID, 2.6)
    return chart.svg()


def _rows(tables: Sequence[SizedTable]) -> tuple[list[float], list[tuple[float, str]]]:
    """Where each table stands, from the top; and a head before the tables of each level."""
    rows: list[float] = []
    heads: list[tuple[float, str]] = []
    for place, table in enumerate(tables):
        before = rows[-1] if rows else -1.0
        if place == 0 or table.level != tables[place - 1].level:
            before += 1.2 if rows else 1.0
            heads.append((before, f"{table.level}:"))
        rows.append(before + 1.0)
    return rows, heads


def _count_axis(tables: Sequence[SizedTable], units: str) -> tuple[float, Axis]:
    """A logarithmic axis that begins with a place for 0, and that place."""
    smallest = largest = 1.0
    for table in tables:
        largest = max(largest, table.sizes[-1], table.half_width)
        # Exact tables have a half width of 0, which is drawn at the place for 0.
        if table.half_width > 0:
            smallest = min(smallest, table.half_width)
    # Left of all that is drawn, so that a mark at 0 is no small number.
    zero, high = smallest / 2.5, 1.3 * largest
    first, last = math.ceil(math.log10(zero * 1.6)), math.floor(math.log10(high))
    step = 1 + (last - first) // 8
    ticks = [(zero, "0")]
    for power in range(first, last + 1, step):
        ticks.append((10.0**power, f"{10.0**power:,.{max(0, -power)}f}"))
    # A little room on the left, or half of a mark at 0 would be cut.
    low = zero / 1.25
    return zero, Axis(low, high, tuple(ticks), units, has_grid=True, is_logarithmic=True)
