"""One figure as data: panels of series, what they were computed with, and what to say of them.

Every figure is drawn by the same few lines from the same records that its CSV file holds, so that a
picture shows nothing that cannot be read as a number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat, TypeVar

import numpy as np

from release.records.files import write_anew

if TYPE_CHECKING:
    from matplotlib.axes import Axes

X = TypeVar("X", bound=SupportsFloat)
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
        x: Iterable[SupportsFloat],
        y: Iterable[SupportsFloat],
        *,
        dashed: bool = False,
        marked: bool = False,
    ) -> Series:
        """A series of plain floats."""
        return cls(label, tuple(map(float, x)), tuple(map(float, y)), dashed, marked)

    @classmethod
    def of_function(
        cls,
        label: str,
        x: Iterable[X],
        y: Callable[[X], SupportsFloat],
        *,
        dashed: bool = False,
        marked: bool = False,
    ) -> Series:
        """The values of ``y`` at every ``x``."""
        places = tuple(x)
        return cls.of(label, places, map(y, places), dashed=dashed, marked=marked)


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
        rows = [("panel", "series", "x", "y")]
        for panel in self.panels:
            for series in panel.series:
                for x, y in zip(series.x, series.y, strict=True):
                    rows.append((panel.title, series.label, f"{x:.12g}", f"{y:.12g}"))
        return _csv(rows)

    def png(self) -> bytes:
        """The picture."""
        from matplotlib.figure import Figure

        columns = min(2, len(self.panels))
        rows = -(-len(self.panels) // columns)
        width = 5.4 * columns if columns > 1 else 7
        figure = Figure(figsize=(width, 3.4 * rows + 0.7), layout="constrained")
        figure.suptitle(
            f"{self.source}: {self.title}\n{self.parameters}",
            x=0.01,
            ha="left",
            size=9,
            # A dollar sign is a dollar sign, and begins no formula.
            parse_math=False,
        )
        axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for place, panel in zip(axes, self.panels, strict=False):
            _draw(place, panel)
        for place in axes[len(self.panels) :]:
            place.remove()
        data = io.BytesIO()
        # Without the name of the software, the same sheet is the same bytes.
        figure.savefig(data, dpi=90, format="png", metadata={"Software": None})
        return data.getvalue()

    def markdown(self) -> str:
        """The entry of the gallery."""
        remarks = "".join(f"- {remark}\n" for remark in self.remarks)
        name = f"{self.name}-list.csv"
        listed = f" {len(self.listing) - 1} rows more: [{name}]({name})." if self.listing else ""
        return (
            f"## {self.source}: {self.title}\n\n"
            f"![{self.title}]({self.name}.png)\n\n{self.parameters}. Numbers: "
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
    for number, series in enumerate(panel.series):
        if panel.shape is Shape.BARS:
            _bars(axes, series, number, len(panel.series))
        else:
            _line(axes, series, number)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=7)


def _bars(axes: Axes, series: Series, number: int, count: int) -> None:
    width = 0.8 / count
    axes.bar(
        np.array(series.x) + (number - (count - 1) / 2) * width,
        np.array(series.y),
        width,
        color=COLOURS[number % len(COLOURS)],
        label=series.label,
        hatch="//" if series.dashed else None,
        edgecolor="white",
        linewidth=0,
    )


def _line(axes: Axes, series: Series, number: int) -> None:
    axes.plot(
        np.array(series.x),
        np.array(series.y),
        "--" if series.dashed else "-",
        color=COLOURS[number % len(COLOURS)],
        lw=1.4,
        label=series.label,
        marker="o" if series.marked else None,
        ms=3.5,
    )


def _heat(axes: Axes, panel: Panel) -> None:
    masses = np.array([series.y for series in panel.series])
    # A mass of zero has no logarithm.
    logarithms = np.log10(np.maximum(masses, 1e-12))
    axes.imshow(logarithms, cmap="Blues")
    axes.set_yticks(range(len(panel.series)), [series.label for series in panel.series])
    axes.set_xticks(range(masses.shape[1]))
    middle = logarithms.mean()
    for (row, column), mass in np.ndenumerate(masses):
        dark = logarithms[row, column] > middle + 0.5
        axes.text(
            column,
            row,
            f"{mass:.4f}",
            ha="center",
            va="center",
            size=6,
            color="white" if dark else "black",
        )
