"""Draws sheets: one picture of a sheet, legible at half its width.

Series of one pair share a hue in all panels, and one legend below explains all panels.
"""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from release.records.files import write_anew
from research.sheet import Panel, Series, Shape, Sheet, Stroke

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C6D00", "#56B4E9", "#333333", "#999999")
DASHES = {Stroke.SOLID: "-", Stroke.DASHED: "--", Stroke.DOTTED: ":", Stroke.POINTS: "None"}
SIZE = 9.5
RESOLUTION = 100


def draw(sheet: Sheet) -> bytes:
    """The picture as PNG; the same bytes for the same sheet."""
    columns = min(2, len(sheet.panels))
    rows = -(-len(sheet.panels) // columns)
    width = 4.7 * columns if columns > 1 else 6.2
    labels = _labels(sheet)
    across = _across(labels, width)
    lines = _heading(sheet, int(width * 12.5))
    legend = 0.19 * -(-len(labels) // across)
    height = 3.0 * rows + 0.2 * (lines.count("\n") + 1) + legend
    figure = Figure(figsize=(width, height), layout="constrained")
    # A dollar sign is a dollar sign, and begins no formula.
    figure.suptitle(lines, x=0.01, ha="left", size=SIZE, parse_math=False)
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    hues = _hues(sheet)
    handles: dict[str, Any] = {}
    for place, panel in zip(axes, sheet.panels, strict=False):
        handles = {**_draw(place, panel, hues), **handles}
    for place in axes[len(sheet.panels) :]:
        place.remove()
    if len(labels) > 1 or (labels and labels[0] not in {p.title for p in sheet.panels}):
        figure.legend(
            [handles[label] for label in labels],
            labels,
            loc="outside lower left",
            ncols=across,
            frameon=False,
            fontsize=SIZE,
            borderpad=0.2,
            labelspacing=0.25,
        )
    return _png(figure)


def save(sheet: Sheet, folder: Path) -> None:
    """Write the picture and its numbers.

    Raises:
        OSError: the folder cannot be written.
    """
    write_anew(folder / f"{sheet.name}.csv", sheet.csv())
    write_anew(folder / f"{sheet.name}.png", draw(sheet))
    if sheet.listing:
        write_anew(folder / f"{sheet.name}-list.csv", sheet.listing_csv())


def _png(figure: Figure) -> bytes:
    data = io.BytesIO()
    # Without the name of the software, the same sheet is the same bytes.
    figure.savefig(data, dpi=RESOLUTION, format="png", metadata={"Software": None})
    return data.getvalue()


def _heading(sheet: Sheet, width: int) -> str:
    """Source and title, parameters, and what to conclude."""
    lines = []
    for text in (f"{sheet.source}: {sheet.title}", sheet.parameters, sheet.conclusion):
        lines.extend(textwrap.wrap(text, width))
    return "\n".join(lines)


def _labels(sheet: Sheet) -> list[str]:
    """The labels of the legend, each once."""
    lines = [panel for panel in sheet.panels if panel.shape is not Shape.HEAT]
    return list(dict.fromkeys(series.label for panel in lines for series in panel.series))


def _across(labels: list[str], width: float) -> int:
    """How many columns the legend has."""
    widest = max((len(label) for label in labels), default=1)
    return max(1, min(4, int(width * 13 / (widest + 8))))


def _hues(sheet: Sheet) -> dict[str, str]:
    """The colour of every pair."""
    pairs = dict.fromkeys(series.pair for panel in sheet.panels for series in panel.series)
    return {pair: COLOURS[number % len(COLOURS)] for number, pair in enumerate(pairs)}


def _draw(axes: Axes, panel: Panel, hues: dict[str, str]) -> dict[str, Any]:
    """Draw a panel; what stands for each label in the legend."""
    axes.set_title(panel.title, loc="left", size=SIZE)
    axes.set_xlabel(panel.x, size=SIZE)
    axes.set_ylabel(panel.y, size=SIZE)
    axes.tick_params(labelsize=SIZE - 0.5)
    if panel.shape is Shape.HEAT:
        _heat(axes, panel)
        return {}
    if panel.log:
        axes.set_yscale("log")
    if panel.log_x:
        axes.set_xscale("log")
    elif all(x == int(x) for series in panel.series for x in series.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles = {}
    for number, series in enumerate(panel.series):
        if panel.shape is Shape.BARS:
            count = len(panel.series)
            handles[series.label] = _bars(axes, series, hues[series.pair], (number, count))
        else:
            handles[series.label] = _line(axes, series, hues[series.pair])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return handles


def _bars(axes: Axes, series: Series, hue: str, place: tuple[int, int]) -> Any:
    number, count = place
    width = 0.84 / count
    return axes.bar(
        np.array(series.x) + (number - (count - 1) / 2) * width,
        np.array(series.y),
        width,
        color=hue,
        alpha=0.45 if series.stroke is Stroke.DOTTED else 1,
        hatch="///" if series.stroke is Stroke.DASHED else None,
        edgecolor="white",
        linewidth=0,
    )


def _line(axes: Axes, series: Series, hue: str) -> Any:
    (line,) = axes.plot(
        np.array(series.x),
        np.array(series.y),
        linestyle=DASHES[series.stroke],
        color=hue,
        lw=1.8,
        marker="o" if series.marked or series.stroke is Stroke.POINTS else None,
        ms=5 if series.stroke is Stroke.POINTS else 3.5,
    )
    return line


def _heat(axes: Axes, panel: Panel) -> None:
    masses = np.array([series.y for series in panel.series])
    # A mass of zero has no logarithm.
    logarithms = np.log10(np.maximum(masses, 1e-6))
    axes.imshow(logarithms, cmap="Blues", vmin=-6, vmax=0, aspect="auto")
    axes.set_yticks(range(len(panel.series)), [series.label for series in panel.series])
    axes.set_xticks(range(masses.shape[1]), [f"{x:g}" for x in panel.series[0].x])
    for (row, column), mass in np.ndenumerate(masses):
        axes.text(
            column,
            row,
            _mass(mass),
            ha="center",
            va="center",
            size=SIZE - (1.5 if masses.shape[1] > 5 else 0.5),
            color="white" if logarithms[row, column] > -2 else "black",
        )


def _mass(mass: float) -> str:
    """Four digits without the zero before the point; smaller ones as a power of ten."""
    if mass == 0:
        return "0"
    return f"{mass:.4f}".lstrip("0") if mass >= 1e-3 else f"{mass:.0e}".replace("e-0", "e-")
