"""Charts as SVG text: marks between two axes, and a legend.

The text follows from the arguments alone: no clock, no random salt and no font of the machine
enters it. So the room that labels need is estimated from their characters. Lengths are in points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

WIDTH, NARROW, TOP = 576.0, 290.0, 8.0
"""A wide picture needs a wide screen, or is moved about in its box; a narrow one fits any."""

SOLID, DASHED, DOTTED, DASH_DOTTED = (), (4, 2), (1, 1.7), (6, 2, 1.4, 2)
"""Lengths of dashes and gaps, for a line of width 1."""

_LONGEST = 40
"""Characters of a label that are shown."""


@dataclass(frozen=True)
class Axis:
    """The values from ``low`` to ``high``, which may fall, and labels at some of them."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    label: str = ""
    has_grid: bool = False
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value stands: 0 is the low end, 1 the high one."""
        # An axis that falls has its high end below the low one: the same quotient holds.
        low, high = self.low, self.high
        if self.is_logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return (value - low) / (high - low)

    @property
    def room(self) -> float:
        """About how wide the longest label is."""
        return max((text_width(name) for _, name in self.ticks), default=0.0)


def number_axis(
    low: float, high: float, label: str = "", *, has_grid: bool = False, most: int = 7
) -> Axis:
    """An axis with round numbers as its labels, about ``most`` of them.

    Of a single value it goes one farther, for an axis without a length has no places.
    """
    if not high > low:
        high = low + 1
    many, power = _step(low, high, most)
    first, last = math.ceil(low / (many * power)), math.floor(high / (many * power))
    return Axis(low, high, _round_ticks(range(first, last + 1), many, power), label, has_grid)


def covering_axis(low: float, high: float, label: str = "", *, most: int = 7) -> Axis:
    """As :func:`number_axis`, with a grid, and with a label near both ends of the values.

    A value far beyond the last label could not be read.
    """
    many, power = _step(low, high, most)
    step = many * power
    first, last = math.ceil(low / step), math.floor(high / step)
    if high - last * step > step / 2:
        last += 1
        high = last * step
    if first * step - low > step / 2:
        first -= 1
        low = first * step
    return Axis(low, high, _round_ticks(range(first, last + 1), many, power), label, True)


def _step(low: float, high: float, most: int) -> tuple[float, float]:
    """The least round step with at most ``most`` of them: a few times a power of ten.

    1 where both ends are the same value.
    """
    if not high > low:
        return 1, 1.0
    least = (high - low) / most
    # ``least`` is from one to ten times this power, so that one of the five below is enough.
    power = 10.0 ** math.floor(math.log10(least))
    return next(many for many in (1, 2, 2.5, 5, 10) if many * power >= least), power


def _round_ticks(counts: range, many: float, power: float) -> tuple[tuple[float, str], ...]:
    """The multiples of a step with their labels."""
    values = [count * many * power for count in counts]
    # As many decimals for each, so that labels can be compared at a glance.
    places = max(0, -round(math.log10(power)) + (many == 2.5) - (many == 10))
    is_plain = places < 6 and max(map(abs, values), default=0) < 1e7
    digits = f".{places}f" if is_plain else ".4g"
    ticks = []
    for value in values:
        ticks.append((value, format(value, digits).replace("-", "−")))
    return tuple(ticks)


def power_axis(low: float, high: float, label: str = "", *, has_grid: bool = False) -> Axis:
    """A logarithmic axis, labelled at powers of ten, and between them where there are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    within = (1, 2, 5) if len(powers) < 4 else (1,)
    ticks = []
    for power, many in itertools.product(powers[:: 1 + len(powers) // 12], within):
        value = many * 10.0**power
        if low <= value <= high:
            ticks.append((value, f"{value:g}"))
    return Axis(low, high, tuple(ticks), label, has_grid, is_logarithmic=True)


def name_axis(
    names: Sequence[object], label: str = "", *, most: int = 60, has_grid: bool = False
) -> Axis:
    """A place for each name, from 0 on; of very many names, about ``most`` are written."""
    ticks = list(enumerate(map(str, names)))[:: math.ceil(len(names) / most)]
    return Axis(-0.5, len(names) - 0.5, tuple(ticks), label, has_grid)


def text_width(text: str) -> float:
    """About how wide a label is."""
    # Twice as wide are the letters of Chinese, Japanese and Korean.
    return sum(10.0 if east_asian_width(letter) in "WF" else 5.8 for letter in text[:_LONGEST])


@dataclass(frozen=True)
class Entry:
    """A line of the legend; without ``dashes`` it stands for boxes."""

    name: str
    colour: str
    dashes: tuple[float, ...] | None = None


class Chart:
    """A picture of marks between two axes; ``name`` keeps its identifiers apart from others'.

    The area between the axes is ``height`` high. The legend is above it, or beside it.
    """

    def __init__(
        self,
        name: str,
        height: float,
        axes: tuple[Axis, Axis],
        legend: Sequence[Entry] = (),
        beside: float = 0.0,
        width: float = WIDTH,
    ) -> None:
        self._name, (self._x, self._y) = escape(name), axes
        self._width = width
        # The name of an axis, where it has one, stands left of its labels.
        margin = 30 if self._y.label else 12
        self._left, self._right = margin + self._y.room, width - 14 - beside
        self._marks: list[str] = []
        self._around: list[str] = []
        self._top = TOP if beside or not legend else self._legend_above(legend)
        self._bottom = self._top + height
        if beside:
            down = self._top + height / 2 - 8 * (len(legend) - 1)
            for place, entry in enumerate(legend):
                self._around.append(_entry(entry, self._right + 12, down + 16 * place))

    def _legend_above(self, legend: Sequence[Entry]) -> float:
        """Draw the legend above the area, in as many lines as it needs; where the area begins."""
        across, down = self._left, TOP + 4
        for place, entry in enumerate(legend):
            if place and across + 28 + text_width(entry.name) > self._width:
                across, down = self._left, down + 16
            self._around.append(_entry(entry, across, down))
            across += 46 + text_width(entry.name)
        return down + 14

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where two values meet in the picture."""
        across = self._left + self._x.share(x) * (self._right - self._left)
        return across, self._bottom - self._y.share(y) * (self._bottom - self._top)

    def boxes(
        self, boxes: Iterable[tuple[float, float, float, float]], colour: str, edge: str = ""
    ) -> None:
        """Boxes of one colour: each from and to a value across, then from and to one upwards."""
        # Two decimals: digits beyond them may differ between machines, and nobody sees them.
        path = ""
        for x, to_x, y, to_y in boxes:
            (left, bottom), (right, top) = self.place(x, y), self.place(to_x, to_y)
            path += f"M{left:.2f} {bottom:.2f}H{right:.2f}V{top:.2f}H{left:.2f}z"
        self._marks.append(f'<path d="{path}" fill="{colour}" {edge}/>')

    def line(
        self,
        points: Iterable[tuple[float, float]],
        colour: str,
        dashes: tuple[float, ...] = SOLID,
        width: float = 1.5,
    ) -> None:
        """A line through the points."""
        places = [self.place(*point) for point in points]
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
        self._marks.append(f'<polyline points="{path}" {_stroke(colour, dashes, width)}/>')

    def dots(self, points: Iterable[tuple[float, float]], colour: str) -> None:
        """A dot at each point."""
        for x, y in points:
            across, down = self.place(x, y)
            self._marks.append(f'<circle cx="{across:.2f}" cy="{down:.2f}" r="3" fill="{colour}"/>')

    def note(self, x: float, y: float, text: str, colour: str = "currentColor") -> None:
        """Text beside a point, on the side where there is room for it."""
        across, down = self.place(x, y)
        fits = across + text_width(text) < self._width
        at, anchor = (across + 5, "start") if fits else (across - 5, "end")
        self._around.append(_text(at, down + 3.5, text, anchor, f'fill="{colour}"'))

    def scale(self, colours: Sequence[str], ticks: Axis) -> None:
        """What the colours of fields mean: a column of them beside the area, with an axis."""
        left, high = self._right + 12, (self._bottom - self._top) / len(colours)
        for place, colour in enumerate(colours):
            # A little too high, so that no seam shows.
            box = f"M{left:.2f} {self._bottom - place * high:.2f}h12v{-high - 0.4:.2f}h-12z"
            self._around.append(f'<path d="{box}" fill="{colour}"/>')
        for value, name in ticks.ticks:
            down = self._bottom - ticks.share(value) * (self._bottom - self._top)
            self._around.append(_text(left + 16, down + 3.5, name))
        middle = (self._top + self._bottom) / 2
        self._around.append(_upright(left + 30 + ticks.room, middle, ticks.label))

    def svg(self) -> str:
        """The whole picture."""
        # Hidden from screen readers: the page describes the picture in the element around it.
        across, bottom = self._across()
        height = bottom + (20 if self._x.label else 6)
        left, right, top, low = self._left, self._right, self._top, self._bottom
        rest = [*self._upwards(), *across, *self._around]
        if self._x.label:
            rest.append(_text((left + right) / 2, bottom + 12, self._x.label, "middle"))
        spine = f'<path d="M{left:.2f} {top:.2f}V{low:.2f}H{right:.2f}" {_stroke("currentColor")}/>'
        area = f'<path d="M{left:.2f} {top:.2f}H{right:.2f}V{low:.2f}H{left:.2f}z"/>'
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" aria-hidden="true" focusable="false" '
            f'class="{"wide" if self._width == WIDTH else "narrow"}" '
            f'width="{self._width:g}pt" height="{height:.0f}pt" '
            f'viewBox="0 0 {self._width:g} {height:.0f}" '
            'font-family="system-ui, sans-serif" font-size="10" fill="currentColor">'
            f'<clipPath id="{self._name}-area">{area}</clipPath>{self._grid()}'
            f'<g clip-path="url(#{self._name}-area)">{"".join(self._marks)}</g>{spine}'
            f"{''.join(rest)}</svg>"
        )

    def _grid(self) -> str:
        lines = ""
        for value, _ in self._y.ticks if self._y.has_grid else ():
            lines += f"M{self._left:.2f} {self.place(self._x.low, value)[1]:.2f}H{self._right:.2f}"
        for value, _ in self._x.ticks if self._x.has_grid else ():
            lines += f"M{self.place(value, self._y.low)[0]:.2f} {self._top:.2f}V{self._bottom:.2f}"
        return f'<path d="{lines}" {_stroke("#dddddd")}/>' if lines else ""

    def _upwards(self) -> Iterable[str]:
        """The labels of the vertical axis, and its name."""
        for value, name in self._y.ticks:
            down = self.place(self._x.low, value)[1]
            yield f'<path d="M{self._left:.2f} {down:.2f}h-4" {_stroke("currentColor")}/>'
            yield _text(self._left - 6, down + 3.5, name, "end")
        if self._y.label:
            yield _upright(12, (self._top + self._bottom) / 2, self._y.label)

    def _across(self) -> tuple[list[str], float]:
        """The labels of the horizontal axis, and where they end."""
        drawn, ticks = [], self._x.ticks
        # Upright where they would run into each other.
        turned = sum(text_width(name) + 8 for _, name in ticks) > self._right - self._left
        for value, name in ticks:
            across = self.place(value, self._y.low)[0]
            drawn.append(
                f'<path d="M{across:.2f} {self._bottom:.2f}v4" {_stroke("currentColor")}/>'
            )
            if turned:
                around = f'transform="rotate(-90 {across + 3.5:.2f} {self._bottom + 6:.2f})"'
                drawn.append(_text(across + 3.5, self._bottom + 6, name, "end", around))
            else:
                # The last label may be wider than the room to the right of its place.
                middle = min(across, self._width - text_width(name) / 2 - 2)
                drawn.append(_text(middle, self._bottom + 15, name, "middle"))
        return drawn, self._bottom + (8 + self._x.room if turned else 18)


def _entry(entry: Entry, x: float, y: float) -> str:
    swatch = f'<path d="M{x:.2f} {y - 4:.2f}h22v8h-22z" fill="{entry.colour}"/>'
    if entry.dashes is not None:
        swatch = f'<path d="M{x:.2f} {y:.2f}h22" {_stroke(entry.colour, entry.dashes, 1.8)}/>'
    return swatch + _text(x + 28, y + 3.5, entry.name)


def _upright(x: float, y: float, text: str) -> str:
    return _text(x, y, text, "middle", f'transform="rotate(-90 {x:.2f} {y:.2f})"')


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    label = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" {more}>{escape(label)}</text>'


def _stroke(colour: str, dashes: tuple[float, ...] = SOLID, width: float = 0.8) -> str:
    lengths = " ".join(f"{width * length:g}" for length in dashes)
    dashed = f' stroke-dasharray="{lengths}"' if dashes else ""
    return f'fill="none" stroke="{colour}" stroke-width="{width:g}"{dashed}'
