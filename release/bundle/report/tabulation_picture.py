"""The picture of a tabulation: how large its counts are, and how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from release.bundle.report.charts import SOLID, Axis, Chart, Entry

DARK, MEDIAN, MIDDLE, LIGHT = "#a3262a", "#1f5582", "#9dbad5", "#dfe7ee"
"""The margin of error, and the counts: their median, their middle half, and nearly all of them.

The two dark ones differ in shape, and the others in lightness, so that all are told apart in grey.
"""

MOST_TABLES = 60
"""Tables that are drawn; the table beside the picture has all."""


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
    shown = tables[:MOST_TABLES]
    rows = _rows(shown)
    zero, across = _count_axis(shown, units)
    last = rows[-1]
    ticks = tuple(
        (last - row, f"{table.level}: {table.margin}")
        for row, table in zip(rows, shown, strict=True)
    )
    upwards = Axis(-0.7, last + 0.7, ticks)
    legend = (
        Entry("9 of 10 counts", LIGHT),
        Entry("the middle half", MIDDLE),
        Entry("margin of error", DARK, SOLID),
    )
    chart = Chart(name, 15.0 * (last + 1.4), (across, upwards), legend)
    wide, middle = [], []
    for row, table in zip(rows, shown, strict=True):
        place = last - row
        least, lower, _, upper, most = (max(size, zero) for size in table.sizes)
        wide.append((least, most, place - 0.3, place + 0.3))
        middle.append((lower, upper, place - 0.3, place + 0.3))
    edge = f'stroke="{MIDDLE}" stroke-width="0.8"'
    chart.boxes(wide, LIGHT, edge)
    # A bar of one count has no width, but an edge.
    chart.boxes(middle, MIDDLE, edge)
    medians = [max(table.sizes[2], zero) for table in shown]
    chart.dots(zip(medians, (last - row for row in rows), strict=True), MEDIAN)
    for row, table in zip(rows, shown, strict=True):
        place, at = last - row, max(table.half_width, zero)
        chart.line([(at, place - 0.48), (at, place + 0.48)], DARK, SOLID, 2.6)
    return chart.svg()


def _rows(tables: Sequence[SizedTable]) -> list[float]:
    """Where each table stands, from the top: a gap goes before each level."""
    rows: list[float] = []
    for place, table in enumerate(tables):
        before = rows[-1] if rows else -1.0
        is_new = place > 0 and table.level != tables[place - 1].level
        rows.append(before + (1.6 if is_new else 1.0))
    return rows


def _count_axis(tables: Sequence[SizedTable], units: str) -> tuple[float, Axis]:
    """A logarithmic axis that begins with a place for 0, and that place."""
    widths = [table.half_width for table in tables if table.half_width > 0]
    # Left of all that is drawn, so that a mark at 0 is no small number.
    zero = min([1.0, *widths]) / 2.5
    largest = [max(table.sizes[-1], table.half_width) for table in tables]
    high = 1.3 * max(1.0, *largest)
    first, last = math.ceil(math.log10(zero * 1.6)), math.floor(math.log10(high))
    step = 1 + (last - first) // 8
    ticks = [(zero, "0")]
    for power in range(first, last + 1, step):
        ticks.append((10.0**power, f"{10.0**power:,.{max(0, -power)}f}"))
    # A little room on the left, or half of a mark at 0 would be cut.
    low = zero / 1.25
    return zero, Axis(low, high, tuple(ticks), units, has_grid=True, is_logarithmic=True)
