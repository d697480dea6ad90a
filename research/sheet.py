"""One figure as data: panels of series, what they were computed with, and what to say of them.

Every figure is drawn by the same few lines from the same records that its CSV file holds, so that a
picture shows nothing that cannot be read as a number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from release.records.files import write_anew

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2b5d8a", "#b5452c", "#4f8f4f", "#8a6bb0", "#c0882c", "#5b6770")


class Shape(Enum):
    """How a panel is drawn."""

    LINES = "lines"
    BARS = "bars"
    HEAT = "heat"


@dataclass(frozen=True)
class Series:
    """Numbers by x, under a label; ``dashed`` and ``marked`` tell series apart without colour."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    marked: bool = False

    @classmethod
    def of(
        cls,
        label: str,
        x: Iterable[float],
        y: Iterable[float],
        *,
        dashed: bool = False,
        marked: bool = False,
    ) -> Series:
        """A series of plain floats."""
        return cls(label, tuple(map(float, x)), tuple(map(float, y)), dashed, marked)


@dataclass(frozen=True)
class Panel:
    """One pair of axes. A heat map has a series for each row."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    shape: Shape = Shape.LINES
    log: bool = False


@dataclass(frozen=True)
class Sheet:
    """A reproduced figure or table.

    ``source`` names the paper's figure, ``parameters`` is printed on the picture, ``remarks`` say
    where ours and the printed one differ, and why. ``listing`` is a table that no picture shows,
    its header first; it is saved as ``NAME-list.csv``.
    """

    name: str
    title: str
    source: str
    parameters: str
    panels: tuple[Panel, ...]
    remarks: tuple[str, ...] = field(default=())
    listing: tuple[tuple[str, ...], ...] = ()

    def csv(self) -> bytes:
        """All numbers: panel, series, x, y; 12 significant digits."""
        numbers = [
            (panel.title, series.label, f"{x:.12g}", f"{y:.12g}")
            for panel in self.panels
            for series in panel.series
            for x, y in zip(series.x, series.y, strict=True)
        ]
        return _csv([("panel", "series", "x", "y"), *numbers])

    def png(self) -> bytes:
        """The picture."""
        from matplotlib.figure import Figure

        columns = min(2, len(self.panels))
        rows = -(-len(self.panels) // columns)
        figure = Figure(
            figsize=(5.4 * columns if columns > 1 else 7, 3.4 * rows + 0.7), layout="constrained"
        )
        figure.suptitle(
            f"{self.source}: {self.title}\n{self.parameters}",
            x=0.01,
            ha="left",
            size=9,
            parse_math=False,
        )
        axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for one, panel in zip(axes, self.panels, strict=False):
            _draw(one, panel)
        for one in axes[len(self.panels) :]:
            one.remove()
        data = io.BytesIO()
        figure.savefig(data, dpi=90, format="png", metadata={"Software": None})
        return data.getvalue()

    def markdown(self) -> str:
        """The entry of the gallery."""
        remarks = "".join(f"- {remark}\n" for remark in self.remarks)
        name = f"{self.name}-list.csv"
        listed = f" {len(self.listing) - 1} rows more: [{name}]({name})." if self.listing else ""
        return (
            f"## {self.source}: "
            f"{self.title}\n\n![{self.title}]({self.name}.png)\n\n{self.parameters}. Numbers: "
            f"[{self.name}.csv]({self.name}.csv).{listed}\n\n{remarks}\n"
        )

    def save(self, folder: Path) -> None:
        """Write the picture and its numbers.

        Raises:
            OSError: the folder cannot be written.
        """
        write_anew(folder / f"{self.name}.csv", self.csv())
        write_anew(folder / f"{self.name}.png", self.png())
        if self.listing:
            write_anew(folder / f"{self.name}-list.csv", _csv(self.listing))


def _csv(rows: Iterable[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", size=9)
    axes.set_xlabel(panel.x, size=8)
    axes.set_ylabel(panel.y, size=8)
    axes.tick_params(labelsize=8)
    if panel.shape is Shape.HEAT:
        _heat(axes, panel)
        return
    if panel.log:
        axes.set_yscale("log")
    width = 0.8 / len(panel.series)
    for i, series in enumerate(panel.series):
        colour = COLOURS[i % len(COLOURS)]
        x, y = np.array(series.x), np.array(series.y)
        if panel.shape is Shape.BARS:
            places = x + (i - (len(panel.series) - 1) / 2) * width
            axes.bar(
                places,
                y,
                width,
                color=colour,
                label=series.label,
                hatch="//" if series.dashed else None,
                edgecolor="white",
                linewidth=0,
            )
        else:
            axes.plot(
                x,
                y,
                "--" if series.dashed else "-",
                color=colour,
                lw=1.4,
                label=series.label,
                marker="o" if series.marked else None,
                ms=3.5,
            )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=7)


def _heat(axes: Axes, panel: Panel) -> None:
    masses = np.array([series.y for series in panel.series])
    axes.imshow(np.log10(np.maximum(masses, 1e-12)), cmap="Blues")
    axes.set_yticks(range(len(panel.series)), [series.label for series in panel.series])
    axes.set_xticks(range(masses.shape[1]))
    middle = np.log10(np.maximum(masses, 1e-12)).mean()
    for (row, column), mass in np.ndenumerate(masses):
        dark = np.log10(max(mass, 1e-12)) > middle + 0.5
        axes.text(
            column,
            row,
            f"{mass:.4f}",
            ha="center",
            va="center",
            size=6,
            color="white" if dark else "black",
        )
