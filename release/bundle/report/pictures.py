"""The pictures of reports and plans: SVG text whose bytes depend on what is drawn alone.

Each is drawn once, without a clock, a random salt or a font of the machine, and its identifiers
begin with a name of its own, so that several can stand in one page.
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
from release.exact.domain import AnswerDomain, Topology
from release.exact.mechanism import Mechanism
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, GREY = "#1f5582", "#a3262a", "#3c6e35", "#5c5c5c"

_SHOWN = 16
"""A noise distribution is drawn for so many codes on each side of the true answer."""

_MOST_STEPS = 100
"""The picture of the budget shows so many charges."""

_MOST_CURVE = 4 * 10**7
"""A δ(ε) curve compares at most so many probabilities; for more there is no picture."""


def budget_svg(spent: Spending) -> str:
    """The charges of a scope over time, and its cap."""
    # Some of very many charges: a report must not grow with the years before it.
    count = len(spent.days)
    shown = sorted({round(place) for place in np.linspace(0, count - 1, min(count, _MOST_STEPS))})
    days = [np.datetime64(spent.days[place]) for place in shown]
    with _figure(2.4) as (figure, axes, sink):
        # From the day before the first charge, so that a first step is there to be seen.
        x = [days[0] - 1, *days, days[-1] + 1]
        y = [0.0, *(float(spent.epsilon[place]) for place in shown), float(spent.epsilon[-1])]
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
            values = [float(domain.labels[code]) for code in codes]
            axes.bar(places, values, color=BLUE)
        else:
            axes.plot(places, codes, "o", color=BLUE)
            axes.set_ylim(-0.5, domain.size - 0.5)
            if domain.topology is Topology.NOMINAL:
                labels = [str(label) for label in domain.labels]
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
    down, right = (sorted({key[place] for key in keys}) for place in (0, 1))
    if len(right) > len(down):
        return heat_map_svg(
            name, domain, (columns[1], columns[0]), [(b, a) for a, b in keys], codes
        )
    # The longer side goes to the right.
    values = np.zeros((len(right), len(down)))
    number = domain.topology is Topology.ORDERED
    for (a, b), code in zip(keys, codes, strict=True):
        value = float(domain.labels[code]) if number else float(code)
        values[right.index(b), down.index(a)] = value
    with _figure(1.1 + 0.32 * len(right)) as (figure, axes, sink):
        axes.grid(visible=False)
        colours = "twilight" if domain.topology is Topology.CYCLIC else "Blues"
        shown = axes.pcolormesh(values, cmap=colours, edgecolors="white", linewidth=0.5)
        axes.invert_yaxis()
        bar = figure.colorbar(shown, ax=axes, label="published answer")
        if domain.topology is Topology.NOMINAL:
            names = [str(label) for label in domain.labels]
            bar.ax.set_yticks(range(domain.size), names, parse_math=False)
        axes.set_xticks(np.arange(len(down)) + 0.5, down, parse_math=False)
        axes.set_yticks(np.arange(len(right)) + 0.5, right, parse_math=False)
        _turned(axes, down)
        axes.set_xlabel(columns[0], parse_math=False)
        axes.set_ylabel(columns[1], parse_math=False)
        _save(figure, sink)
    return _inside_html(sink, f"answers-{name}")


def mechanism_svg(
    name: str, mechanism: Mechanism, sensitivity: Sensitivity, guarantee: Guarantee
) -> str:
    """The distribution for one true answer, for its neighbor, and the bound between them."""
    step = sensitivity.least_step
    offset = (mechanism.answers - step) // 2
    row, neighbor = mechanism.probabilities(offset), mechanism.probabilities(offset + step)
    first, last = max(0, offset - _SHOWN), min(row.size, offset + _SHOWN + 1)
    x = np.arange(first, last) - offset
    with _figure(2.8) as (figure, axes, sink):
        axes.bar(x - 0.2, row[first:last], width=0.4, color=BLUE, label="one answer")
        axes.bar(
            x + 0.2,
            neighbor[first:last],
            width=0.4,
            color="#9dbad5",
            label=f"its neighbor, {step} away",
        )
        ceiling = math.exp(guarantee.epsilon) * neighbor[first:last]
        axes.step(x, ceiling, where="mid", color=RED, linestyle="--", label="e^ε × the neighbor")
        axes.set_ylim(0, 1.25 * max(float(row.max()), float(neighbor.max())))
        axes.set_xlabel("published minus true answer, in codes")
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
        # A float may be over by rounding alone.
        above = over > 1e-12 * rows
        approximate.append(float(np.where(above, over, 0).sum(axis=1).max()))
        probabilistic.append(float(np.where(above, rows, 0).sum(axis=1).max()))
    return approximate, probabilistic


def losses_svg(name: str, loss: str, compared: Sequence[tuple[str, Fraction]]) -> str:
    """The loss of each family of mechanisms with the same guarantee, least first."""
    names = [family for family, _ in compared]
    values = [float(value) for _, value in compared]
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
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        _save(figure, sink)
    return _inside_html(sink, name)


def _turned(axes: Axes, labels: Sequence[str]) -> None:
    """Labels upright where they would run into each other."""
    if sum(len(label) + 2 for label in labels) > 90:
        axes.tick_params(axis="x", rotation=90)


@contextmanager
def _figure(height: float) -> Iterator[tuple[Figure, Axes, io.StringIO]]:
    """An empty picture whose bytes depend on what is drawn alone."""
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
    """Without the XML declaration and the document type, and with identifiers of its own."""
    svg = sink.getvalue().partition("<svg")[1] + sink.getvalue().partition("<svg")[2]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    # The page describes the picture in the element around it.
    return svg.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
