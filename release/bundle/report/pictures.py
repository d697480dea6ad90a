"""The pictures of reports and plans: SVG text whose bytes depend on the inputs alone.

No clock, random salt or font of the machine enters them. The identifiers of a picture begin with
its name, so that one page can hold several.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from release.budget.ledger import Spending
from release.bundle.answer_units import CODES, AnswerUnit
from release.exact.domain import AnswerDomain, Topology
from release.exact.mechanism import Mechanism
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, GREY = "#1f5582", "#a3262a", "#3c6e35", "#5c5c5c"

_SHOWN = 16
"""Codes on each side of the true answer for which a noise distribution is drawn."""

_MOST_STEPS = 100
"""Charges that the picture of the budget shows at most."""

_MOST_CURVE = 4 * 10**7
"""Probabilities that a δ(ε) curve compares at most; for more there is no picture."""


def budget_svg(spent: Spending) -> str:
    """The charges of a scope over time, and its cap."""
    # A sample of the charges: a report must not grow with the years before it.
    count = len(spent.days)
    places = np.linspace(0, count - 1, min(count, _MOST_STEPS))
    steps = np.unique(np.rint(places)).astype(int).tolist()
    days = [np.datetime64(spent.days[step]) for step in steps]
    with _figure(2.4) as (figure, axes, sink):
        # From the day before the first charge, so that the first step is visible.
        x = [days[0] - 1, *days, days[-1] + 1]
        y = [0.0, *(float(spent.epsilon[step]) for step in steps), float(spent.epsilon[-1])]
        axes.step(x, y, where="post", color=BLUE, linewidth=2)
        axes.fill_between(x, y, step="post", color=BLUE, alpha=0.15)
        axes.axhline(float(spent.cap), color=RED, linestyle="--")
        axes.annotate("cap", (x[0], float(spent.cap)), (2, -12), textcoords="offset points")
        axes.set_ylim(0, 1.08 * max(float(spent.cap), y[-1]) or 1.0)
        ends = {spent.days[0]: days[0], spent.days[-1]: days[-1]}
        axes.set_xticks([*ends.values()], [*ends])
        axes.set_ylabel("ε spent")
        _save(figure, sink)
    return _inside_html(sink, "budget")


def answers_svg(
    name: str, domain: AnswerDomain, column: str, keys: Sequence[str], codes: Sequence[int]
) -> str:
    """The released answers of one key."""
    places = range(len(keys))
    with _figure(2.8) as (figure, axes, sink):
        if domain.topology is Topology.ORDERED:
            heights = [float(domain.labels[code]) for code in codes]
            axes.bar(places, heights, color=BLUE)
        else:
            axes.plot(places, codes, "o", color=BLUE)
            axes.set_ylim(-0.5, domain.size - 0.5)
            if domain.topology is Topology.NOMINAL:
                # A label with dollar signs is a label: it must not be set as mathematics.
                labels = list(map(str, domain.labels))
                axes.set_yticks(range(domain.size), labels, parse_math=False)
        axes.set_xticks(places, list(keys), parse_math=False)
        _turned(axes, keys)
        axes.set_xlabel(column, parse_math=False)
        axes.set_ylabel("published answer")
        _save(figure, sink)
    return _inside_html(sink, f"answers-{name}")


def heat_map_svg(
    name: str,
    domain: AnswerDomain,
    columns: tuple[str, str],
    keys: Sequence[tuple[str, ...]],
    codes: Sequence[int],
) -> str:
    """The released answers of two keys: a field for each combination, darker for more."""
    across, down = map(sorted, map(set, zip(*keys, strict=True)))
    if len(down) > len(across):
        # The longer side goes across: a page is as wide as it is, but may be long.
        swapped = [(second, first) for first, second in keys]
        return heat_map_svg(name, domain, (columns[1], columns[0]), swapped, codes)
    values = np.zeros((len(down), len(across)))
    is_number = domain.topology is Topology.ORDERED
    for (first, second), code in zip(keys, codes, strict=True):
        value = float(domain.labels[code]) if is_number else float(code)
        values[down.index(second), across.index(first)] = value
    with _figure(1.1 + 0.32 * len(down)) as (figure, axes, sink):
        axes.grid(visible=False)
        # A cyclic map: the last answer of a circle is next to the first.
        colours = "twilight" if domain.topology is Topology.CYCLIC else "Blues"
        mesh = axes.pcolormesh(values, cmap=colours, edgecolors="white", linewidth=0.5)
        axes.invert_yaxis()
        bar = figure.colorbar(mesh, ax=axes, label="published answer")
        if domain.topology is Topology.NOMINAL:
            names = list(map(str, domain.labels))
            bar.ax.set_yticks(range(domain.size), names, parse_math=False)
        axes.set_xticks(np.arange(len(across)) + 0.5, across, parse_math=False)
        axes.set_yticks(np.arange(len(down)) + 0.5, down, parse_math=False)
        _turned(axes, across)
        axes.set_xlabel(columns[0], parse_math=False)
        axes.set_ylabel(columns[1], parse_math=False)
        _save(figure, sink)
    return _inside_html(sink, f"answers-{name}")


def mechanism_svg(
    name: str,
    mechanism: Mechanism,
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    unit: AnswerUnit = CODES,
) -> str:
    """The distribution for one true answer, for its neighbor, and the bound between them."""
    step = sensitivity.least_step
    offset = (mechanism.answers - step) // 2
    row, neighbor = mechanism.probabilities(offset), mechanism.probabilities(offset + step)
    first, last = max(0, offset - _SHOWN), min(row.size, offset + _SHOWN + 1)
    x, width = unit.scale * (np.arange(first, last) - offset), 0.4 * unit.scale
    with _figure(2.8) as (figure, axes, sink):
        axes.bar(x - width / 2, row[first:last], width=width, color=BLUE, label="one answer")
        axes.bar(
            x + width / 2,
            neighbor[first:last],
            width=width,
            color="#9dbad5",
            label=f"its neighbor, {step * unit.scale} away",
        )
        ceiling = math.exp(guarantee.epsilon) * neighbor[first:last]
        axes.step(x, ceiling, where="mid", color=RED, linestyle="--", label="e^ε × the neighbor")
        axes.set_ylim(0, 1.25 * max(float(row.max()), float(neighbor.max())))
        axes.set_xlabel(unit.axis, parse_math=False)
        axes.set_ylabel("probability")
        axes.legend(frameon=False)
        _save(figure, sink)
    return _inside_html(sink, f"mechanism-{name}")


def delta_svg(
    name: str, mechanism: Mechanism, sensitivity: Sensitivity, guarantee: Guarantee
) -> str | None:
    """δ at every ε, both definitions; None where there are too many probabilities to compare."""
    claimed = float(guarantee.epsilon)
    top = max(1.5 * claimed, 0.1)
    grid = np.unique(np.append(np.linspace(0, top, 61), claimed))
    pairs = mechanism.neighboring_rows(sensitivity, _MOST_CURVE // grid.size)
    if pairs is None:
        return None
    approximate, probabilistic = _curves(*pairs, grid)
    with _figure(2.6) as (figure, axes, sink):
        axes.plot(grid, probabilistic, color=GREEN, linestyle=":", label="probabilistic")
        axes.plot(grid, approximate, color=BLUE, label="approximate")
        axes.axvline(claimed, color=RED, linestyle="--")
        axes.annotate(
            f"claimed: ε = {claimed:g}, δ = {float(guarantee.delta):g}",
            (claimed, 0.95),
            (4, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=RED,
            va="top",
        )
        axes.set_xlim(0, top)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("ε")
        axes.set_ylabel("δ")
        axes.legend(frameon=False, loc="upper center")
        _save(figure, sink)
    return _inside_html(sink, f"delta-{name}")


def _curves(
    rows: NDArray[np.float64], neighbors: NDArray[np.float64], grid: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """The approximate and the probabilistic δ at each ε, over rows and their neighbors."""
    approximate, probabilistic = [], []
    for epsilon in grid.tolist():
        over = rows - math.exp(epsilon) * neighbors
        # Rounding alone can put a float above the bound.
        above = over > 1e-12 * rows
        approximate.append(float(np.where(above, over, 0).sum(axis=1).max()))
        probabilistic.append(float(np.where(above, rows, 0).sum(axis=1).max()))
    return approximate, probabilistic


def losses_svg(name: str, loss: str, compared: Sequence[tuple[str, Fraction]]) -> str:
    """The expected loss of each mechanism with the same guarantee, least first."""
    names, losses = zip(*compared, strict=True)
    values = list(map(float, losses))
    with _figure(0.9 + 0.3 * len(names)) as (figure, axes, sink):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", color="#dddddd")
        colours = [BLUE, *["#9dbad5"] * (len(names) - 1)]
        bars = axes.barh(range(len(names)), values, color=colours)
        axes.bar_label(bars, [f" {value:.4g}" for value in values], padding=2)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        if min(values) > 0 and max(values) > 30 * min(values):
            axes.set_xscale("log")
        axes.margins(x=0.12)
        axes.set_xlabel(f"{loss.replace('_', ' ')} loss")
        _save(figure, sink)
    return _inside_html(sink, f"losses-{name}")


def curves_svg(
    name: str,
    labels: tuple[str, str],
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    *,
    logarithmic: bool = False,
) -> str:
    """Several curves, each with a line style of its own, so that they differ without colour."""
    lines, colours = ("-", "--", ":", "-."), (BLUE, RED, GREEN, GREY)
    with _figure(3.4) as (figure, axes, sink):
        for place, (label, x, y) in enumerate(curves):
            axes.plot(
                x,
                y,
                linestyle=lines[place % 4],
                color=colours[(place + place // 4) % 4],
                # A curve that lies under another stays visible beside it.
                linewidth=max(1.2, 3.6 - 0.6 * place),
                label=label.replace("_", " "),
            )
        if logarithmic:
            axes.set_yscale("log")
        axes.set_xlabel(labels[0], parse_math=False)
        axes.set_ylabel(labels[1])
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        _save(figure, sink)
    return _inside_html(sink, name)


def _turned(axes: Axes, labels: Sequence[str]) -> None:
    """Labels upright where they would run into each other."""
    if len("  ".join(labels)) > 88:
        axes.tick_params(axis="x", rotation=90)


@contextmanager
def _figure(height: float) -> Iterator[tuple[Figure, Axes, io.StringIO]]:
    """An empty picture whose bytes will depend on the drawing alone."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "dp-release", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(8, height), layout="constrained")
        axes = figure.subplots()
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        yield figure, axes, io.StringIO()


def _save(figure: Figure, sink: io.StringIO) -> None:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with warnings.catch_warnings():
        # The file holds text and no glyphs: what the font of this machine lacks does not matter.
        warnings.simplefilter("ignore")
        # savefig draws twice to place things; drawing once places them too.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(sink, metadata={"Date": None, "Creator": None})


def _inside_html(sink: io.StringIO, name: str) -> str:
    """The picture without XML declaration and document type, its identifiers made unique."""
    svg = sink.getvalue().partition("<svg")[1] + sink.getvalue().partition("<svg")[2]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    # Hidden from screen readers: the page describes the picture in the element around it.
    return svg.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
