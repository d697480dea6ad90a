"""One figure as data: panels of series, what they were computed with, and what to say of them.

Every figure is drawn by the same few lines from the same records that its CSV file holds, so that a
picture shows nothing that cannot be read as a number (:mod:`research.picture`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import SupportsFloat, TypeVar

X = TypeVar("X", bound=SupportsFloat)


class Shape(Enum):
    """How a panel is drawn."""

    LINES = "lines"
    BARS = "bars"
    HEAT = "heat"


class Stroke(Enum):
    """How a line is drawn, and so what it stands for in a trade-off."""

    SOLID = "solid"  # what a release uses, or a rival
    DASHED = "dashed"  # the best modular noise, or an exact value beside a printed one
    DOTTED = "dotted"  # as printed
    POINTS = "points"  # a second computation, in places


@dataclass(frozen=True)
class Series:
    """Numbers by x, under a label.

    Series of one ``pair`` share a hue in all panels of a sheet; it is the label where none is
    given. ``stroke`` and ``marked`` tell them apart without colour.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    stroke: Stroke = Stroke.SOLID
    marked: bool = False
    pair: str = ""

    @classmethod
    def of(
        cls,
        label: str,
        x: Iterable[SupportsFloat],
        y: Iterable[SupportsFloat],
        stroke: Stroke = Stroke.SOLID,
        *,
        marked: bool = False,
        pair: str = "",
    ) -> Series:
        """A series of plain floats."""
        return cls(label, tuple(map(float, x)), tuple(map(float, y)), stroke, marked, pair or label)

    @classmethod
    def of_function(
        cls,
        label: str,
        x: Iterable[X],
        y: Callable[[X], SupportsFloat],
        stroke: Stroke = Stroke.SOLID,
        *,
        marked: bool = False,
        pair: str = "",
    ) -> Series:
        """The values of ``y`` at every ``x``."""
        places = tuple(x)
        return cls.of(label, places, map(y, places), stroke, marked=marked, pair=pair)

    def at(self, x: float) -> float:
        """The value at one of the x of the series, or within one of its level stretches.

        Raises:
            ValueError: x is neither.
        """
        for (left, before), (right, after) in pairwise(zip(self.x, self.y, strict=True)):
            if left < x < right and before == after:
                return before
        return self.y[self.x.index(x)]


@dataclass(frozen=True)
class Panel:
    """One pair of axes. A heat map has a series for each row."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    shape: Shape = Shape.LINES
    log: bool = False
    log_x: bool = False

    def line(self, label: str) -> Series:
        """The series of a label."""
        return next(series for series in self.series if series.label == label)


@dataclass(frozen=True)
class Sheet:
    """A reproduced figure or table.

    ``source`` names the paper's figure, ``parameters`` is printed on the picture, ``conclusion`` is
    the one sentence to take away, and ``remarks`` say where ours and the printed one differ, and
    why. ``listing`` is a table that no picture shows, its header first; it is saved as
    ``NAME-list.csv``.
    """

    name: str
    title: str
    source: str
    parameters: str
    panels: tuple[Panel, ...]
    conclusion: str
    remarks: tuple[str, ...] = field(default=())
    listing: tuple[tuple[str, ...], ...] = ()

    def csv(self) -> bytes:
        """All numbers: panel, series, x, y; 12 significant digits."""
        rows = [("panel", "series", "x", "y")]
        for panel in self.panels:
            for series in panel.series:
                for x, y in zip(series.x, series.y, strict=True):
                    rows.append((panel.title, series.label, f"{x:.12g}", f"{y:.12g}"))
        return _csv(rows)

    def listing_csv(self) -> bytes:
        """The table that no picture shows."""
        return _csv(self.listing)

    def markdown(self, level: int = 2) -> str:
        """The entry of the gallery, under a heading of this level."""
        remarks = "".join(f"- {remark}\n" for remark in self.remarks)
        heading = f"{self.source}: {self.title}"
        name = f"{self.name}-list.csv"
        listed = f" {len(self.listing) - 1} rows more: [{name}]({name})." if self.listing else ""
        return (
            f'<a id="{self.name}"></a>\n\n{"#" * level} {heading}\n\n'
            f"**{self.conclusion}**\n\n![{self.title}]({self.name}.png)\n\n"
            f"{self.parameters}. Numbers: [{self.name}.csv]({self.name}.csv).{listed} "
            f"Command: `python -m research {self.name}`.\n\n{remarks}\n"
        )


def _csv(rows: Iterable[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
