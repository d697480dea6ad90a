"""The pictures of reports and plans: SVG text whose bytes depend on the inputs alone.

The identifiers of a picture begin with its name, so that one page can hold several.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from release.budget.ledger import Spending
from release.bundle.answer_units import CODES, AnswerUnit
from release.bundle.report.charts import (
    DASH_DOTTED,
    DASHED,
    DOTTED,
    SOLID,
    Axis,
    Chart,
    Entry,
    name_axis,
    number_axis,
    power_axis,
    text_width,
)
from release.exact.domain import AnswerDomain, Topology
from release.exact.mechanism import Mechanism
from release.exact.privacy import Guarantee
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.nearness import Nearness

BLUE, RED, GREEN, GREY = "#1f5582", "#a3262a", "#3c6e35", "#5c5c5c"
PALE = "#9dbad5"

_LIGHT_TO_DARK = "f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b"
_ROUND = "e2d9e2 95b5c7 6276ba 592a8f 2f1436 741e4f b25652 cca389 e2d9e2"
"""The colours of fields; those of a circle end where they begin."""

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
    days, total = [], [0.0]
    for step in steps:
        days.append(date.fromisoformat(str(spent.days[step])).toordinal())
        total.append(float(spent.levels[step]))
    # From the day before the first charge, so that the first step is visible.
    days = [days[0] - 1, *days, days[-1] + 1]
    total.append(float(spent.levels[-1]))
    cap, label = float(spent.cap), "slots taken" if spent.rule == "pld" else "ε spent"
    ends = {days[1]: str(spent.days[0]), days[-2]: str(spent.days[-1])}
    across = Axis(days[0], days[-1], tuple(ends.items()))
    upwards = number_axis(0, 1.08 * max(cap, total[-1]) or 1.0, label, has_grid=True)
    legend = Entry(label, BLUE, SOLID), Entry("cap", RED, DASHED)
    chart = Chart("budget", 125, (across, upwards), legend)
    boxes, steps_of_line = [], []
    # One level more than days between charges: the last holds to the day after.
    for (first, last), level in zip(pairwise(days), total, strict=False):
        boxes.append((first, last, 0, level))
        steps_of_line += [(first, level), (last, level)]
    chart.boxes(boxes, "#dde6ec")
    chart.line(steps_of_line, BLUE, width=2)
    chart.line([(days[0], cap), (days[-1], cap)], RED, DASHED)
    return chart.svg()


def _code_axis(domain: AnswerDomain, label: str) -> Axis:
    """The codes of an answer without a least value, by their labels or their numbers."""
    if domain.topology is Topology.NOMINAL:
        return name_axis(domain.labels, label, most=12, has_grid=True)
    return number_axis(-0.5, domain.size - 0.5, label, has_grid=True)


def heat_map_svg(
    name: str,
    domain: AnswerDomain,
    columns: tuple[str, str],
    keys: Sequence[tuple[str, ...]],
    codes: Sequence[int],
    unit: str = "",
) -> str:
    """The released answers of two keys: a field for each combination, darker for more."""
    firsts, seconds = zip(*keys, strict=True)
    across, down = sorted(set(firsts), key=by_number), sorted(set(seconds), key=by_number)
    if len(down) > len(across):
        # The longer side goes across: a page is as wide as it is, but may be long.
        swapped = list(zip(seconds, firsts, strict=True))
        return heat_map_svg(name, domain, (columns[1], columns[0]), swapped, codes, unit)
    values, scale = list(map(float, codes)), _code_axis(domain, unit or "published answer")
    if domain.topology is Topology.ORDERED:
        values = [float(domain.labels[code]) for code in codes]
        scale = number_axis(min(values), max(values) + (min(values) == max(values)), scale.label)
    # A cyclic map: the last answer of a circle is next to the first.
    stops = _ROUND if domain.topology is Topology.CYCLIC else _LIGHT_TO_DARK
    places = dict(zip(across, range(len(across)), strict=True))
    rows = dict(zip(down, range(len(down)), strict=True))
    # By colour, for one path holds all fields of a colour.
    fields = defaultdict(list)
    for (first, second), value in zip(keys, values, strict=True):
        left, top = places[first] - 0.5, len(down) - rows[second] - 0.5
        fields[_colour(stops, scale.share(value))].append((left, left + 1, top, top - 1))
    axes = name_axis(across, columns[0]), name_axis(down[::-1], columns[1])
    chart = Chart(f"answers-{name}", max(90, 12 + 22.0 * len(down)), axes, beside=54 + scale.room)
    for colour, boxes in fields.items():
        chart.boxes(boxes, colour, 'stroke="#fff" stroke-width="0.6"')
    shades = domain.size if domain.topology is Topology.NOMINAL and domain.size <= 60 else 60
    chart.scale([_colour(stops, (step + 0.5) / shades) for step in range(shades)], scale)
    return chart.svg()


def by_number(key: str) -> tuple[int, str]:
    """Whole numbers in their order, before other keys."""
    digits = key.removeprefix("-")
    # isdigit() alone is true of superscripts, which int() refuses.
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 16
    return (int(key), "") if is_number else (10**16, key)


@lru_cache(maxsize=4096)
def _colour(stops: str, share: float) -> str:
    """The colour at a share of the way through ``stops``."""
    colours = [bytes.fromhex(stop) for stop in stops.split()]
    at = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    low = min(int(at), len(colours) - 2)
    mixed = [a + (at - low) * (b - a) for a, b in zip(*colours[low : low + 2], strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*map(round, mixed))


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
    first, last = max(0, offset - _SHOWN), min(mechanism.answers, offset + _SHOWN + 1)
    row = mechanism.probabilities_near(offset, first, last)
    neighbor = mechanism.probabilities_near(offset + step, first, last)
    scale = float(unit.scale)
    x = [scale * (code - offset) for code in range(first, last)]
    high = 1.1 * max(float(row.max()), float(neighbor.max()))
    across = number_axis(x[0] - 0.75 * scale, x[-1] + 0.75 * scale, unit.axis)
    legend = (
        Entry("one answer", BLUE),
        Entry(f"its neighbor, {step * unit.scale} away", PALE),
        Entry("e^ε × the neighbor", RED, DASHED),
    )
    axes = across, number_axis(0, high, "probability", has_grid=True)
    chart = Chart(f"mechanism-{name}", 160, axes, legend)
    factor = math.exp(guarantee.epsilon)
    own_bars, neighbor_bars, ceiling = [], [], []
    for at, own, mass in zip(x, row.tolist(), neighbor.tolist(), strict=True):
        own_bars.append((at - 0.4 * scale, at, 0, own))
        neighbor_bars.append((at, at + 0.4 * scale, 0, mass))
        # Far above the picture all heights look alike, and a file can hold them.
        height = min(factor * mass, 10 * high)
        ceiling += [(at - 0.5 * scale, height), (at + 0.5 * scale, height)]
    chart.boxes(own_bars, BLUE)
    chart.boxes(neighbor_bars, PALE)
    chart.line(ceiling, RED, DASHED)
    return chart.svg()


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
    high = 1.05 * max(*probabilistic, *approximate) or 1.0
    axes = number_axis(0, top, "ε"), number_axis(0, high, "δ", has_grid=True)
    text = f"claimed: ε = {claimed:g}, δ = {float(guarantee.delta):g}"
    legend = (
        Entry("probabilistic", GREEN, DOTTED),
        Entry("approximate", BLUE, SOLID),
        Entry(text, RED, DASHED),
    )
    chart = Chart(f"delta-{name}", 140, axes, legend)
    chart.line(zip(grid.tolist(), probabilistic, strict=True), GREEN, DOTTED)
    chart.line(zip(grid.tolist(), approximate, strict=True), BLUE)
    chart.line([(claimed, 0), (claimed, high)], RED, DASHED)
    return chart.svg()


def _curves(
    rows: NDArray[np.float64], neighbors: NDArray[np.float64], grid: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """The approximate and the probabilistic δ at each ε, over rows and their neighbors."""
    approximate, probabilistic = [], []
    # ε by ε: all at once would be an array of up to 40 million numbers.
    for epsilon in grid.tolist():
        over = rows - math.exp(epsilon) * neighbors
        # Rounding alone can put a float above the bound.
        above = over > 1e-12 * rows
        approximate.append(float(np.where(above, over, 0).sum(axis=1).max()))
        probabilistic.append(float(np.where(above, rows, 0).sum(axis=1).max()))
    return approximate, probabilistic


def losses_svg(name: str, loss: str, compared: Sequence[tuple[str, Fraction]]) -> str:
    """The expected loss of each mechanism with the same guarantee, least first."""
    names, losses = zip(*compared[::-1], strict=True)
    values = list(map(float, losses))
    low, high, label = min(values), max(values), f"{loss.replace('_', ' ')} loss"
    axis = number_axis(0, 1.12 * high or 1.0, label, has_grid=True)
    # On a linear axis the shortest bars would be a hair wide.
    if low > 0 and high > 30 * low:
        axis = power_axis(low / 2, high * (high / low) ** 0.12, label, has_grid=True)
    chart = Chart(f"losses-{name}", 8 + 20.0 * len(names), (axis, name_axis(names)))
    for place, value in enumerate(values):
        colour = BLUE if place == len(values) - 1 else PALE
        chart.boxes([(axis.low, value, place - 0.4, place + 0.4)], colour)
        chart.note(value, place, f"{value:.4g}")
    return chart.svg()


def curves_svg(
    name: str,
    labels: tuple[str, str],
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    *,
    logarithmic: bool = False,
) -> str:
    """Several curves, each with a line style of its own, so that they differ without colour."""
    dashes, colours = (SOLID, DASHED, DOTTED, DASH_DOTTED), (BLUE, RED, GREEN, GREY)
    legend = []
    for place, (label, _, _) in enumerate(curves):
        colour = colours[(place + place // 4) % 4]
        legend.append(Entry(label.replace("_", " "), colour, dashes[place % 4]))
    beside = 46 + max((text_width(entry.name) for entry in legend), default=0.0)
    _, x_sides, y_sides = zip(*curves, strict=True)
    x_ends, (y_low, y_high) = _ends(x_sides), _ends(y_sides)
    if logarithmic:
        upwards = power_axis(y_low / 1.3, y_high * 1.3, labels[1], has_grid=True)
    else:
        upwards = number_axis(min(0.0, y_low), 1.05 * y_high, labels[1], has_grid=True)
    axes = number_axis(*x_ends, labels[0]), upwards
    chart = Chart(name, 190, axes, legend, beside)
    for place, (entry, (_, x, y)) in enumerate(zip(legend, curves, strict=True)):
        # A curve that lies under another stays visible beside it.
        width = max(1.2, 3.6 - 0.6 * place)
        chart.line(zip(x, y, strict=True), entry.colour, entry.dashes or SOLID, width)
    return chart.svg()


def nearness_svg(name: str, nearness: Nearness) -> str:
    """How near answers are, by the public fact on which it depends."""
    x, y = zip(*nearness.points, strict=True)
    if nearness.by_powers:
        across = power_axis(min(x), max(x), nearness.of)
        # Where there is next to no noise the error is 0, which has no place on a logarithmic axis.
        if min(y) > 0:
            upwards = power_axis(min(y) / 1.3, max(y) * 1.3, nearness.figure, has_grid=True)
        else:
            upwards = number_axis(0.0, 1.05 * max(y), nearness.figure, has_grid=True)
        axes = across, upwards
    else:
        axes = (
            number_axis(min(x), max(x), nearness.of),
            number_axis(0.0, 1.05, nearness.figure, has_grid=True),
        )
    chart = Chart(name, 190, axes, [], 46)
    chart.line(nearness.points, BLUE, SOLID, 2.4)
    return chart.svg()


def _ends(curves: Iterable[Sequence[float]]) -> tuple[float, float]:
    """The least and the largest value of all curves, apart from each other."""
    values = list(chain.from_iterable(curves))
    low, high = min(values), max(values)
    return (low, high) if low < high else (low, low + 1)
