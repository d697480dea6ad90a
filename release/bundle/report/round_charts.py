"""Charts of answers on a circle: a clock for each cell, or all cells round one circle.

Code 0 stands at the top, and codes follow clockwise, so the last one is beside the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from release.bundle.report.charts import NARROW
from release.bundle.report.pictures import BLUE, PALE

_RADIUS, _COLUMNS, _ROW_HEIGHT = 26.0, 3, 112.0
_LINE = "#767676"


@dataclass(frozen=True)
class Face:
    """One clock: its name, the published code, and the first and last code of its interval."""

    name: str
    code: int
    run: tuple[int, int] | None = None


def clocks_svg(labels: Sequence[str], faces: Sequence[Face]) -> str:
    """A clock for each of ``faces``, with the published answer beneath it."""
    columns = min(_COLUMNS, len(faces))
    rows = -(-len(faces) // columns)
    marks = []
    for place, face in enumerate(faces):
        row, column = divmod(place, columns)
        x, y = NARROW / columns * (column + 0.5), 44 + row * _ROW_HEIGHT
        marks += _clock(labels, face, x, y)
    return _svg(rows * _ROW_HEIGHT, marks)


def _clock(labels: Sequence[str], face: Face, x: float, y: float) -> list[str]:
    size = len(labels)
    marks = [f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{_RADIUS:g}" {_outline(_LINE, 0.8)}/>']
    marks += _names(labels, x, y, _RADIUS + 12)
    if face.run is not None:
        first, last = face.run
        # Round a circle the last code may be below the first.
        steps = (last - first) % size
        # An arc that ends where it begins is drawn as nothing, so the whole circle is no arc.
        if steps >= size - 1:
            marks.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{_RADIUS:g}" {_arc_style()}/>')
        else:
            # A little beyond both codes, so that a run of one code is seen.
            ends = [_angle(first - 0.35, size), _angle(first + steps + 0.35, size)]
            marks.append(_arc(x, y, *ends))
    at = _angle(face.code, size)
    to_x, to_y = _point(x, y, _RADIUS, at)
    marks.append(f'<path d="M{x:.2f} {y:.2f}L{to_x:.2f} {to_y:.2f}" {_outline(BLUE, 2)}/>')
    marks.append(f'<circle cx="{to_x:.2f}" cy="{to_y:.2f}" r="3.6" fill="{BLUE}"/>')
    tooltip = f"{face.name}: {labels[face.code]}" if face.name else labels[face.code]
    marks.append(_text(x, y + _RADIUS + 36, tooltip, "600"))
    return marks


def rose_svg(labels: Sequence[str], counts: Sequence[int]) -> str:
    """A wedge for each answer, whose area is in proportion to its count."""
    x, y, radius, most = NARROW / 2, 132.0, 100.0, max(1, *counts)
    size = len(labels)
    marks = [f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:g}" {_outline(_LINE, 0.8)}/>']
    for code, count in enumerate(counts):
        if not count:
            continue
        # By the root: eyes compare areas, and a wedge of twice the radius has four times the area.
        reach = radius * math.sqrt(count / most)
        left = _point(x, y, reach, _angle(code - 0.46, size))
        right = _point(x, y, reach, _angle(code + 0.46, size))
        path = f"M{x:.2f} {y:.2f}L{left[0]:.2f} {left[1]:.2f}"
        path += f"A{reach:.2f} {reach:.2f} 0 0 1 {right[0]:.2f} {right[1]:.2f}z"
        marks.append(f'<path d="{path}" fill="{BLUE}"/>')
    marks += _names(labels, x, y, radius + 12)
    marks.append(_text(x, y + radius + 36, f"the outer circle is {most:,} cells"))
    return _svg(y + radius + 46, marks)


def _names(labels: Sequence[str], x: float, y: float, radius: float) -> list[str]:
    """The labels at the quarters of a circle; of few answers, at each."""
    size = len(labels)
    # Quarters of many answers differ, so that no label stands twice.
    ticks = range(size) if size < 6 else (0, round(size / 4), round(size / 2), round(3 * size / 4))
    texts = []
    for code in ticks:
        to_x, to_y = _point(x, y, radius, _angle(code, size))
        texts.append(_text(to_x, to_y + 3.5, labels[code][:6]))
    return texts


def _angle(code: float, size: int) -> float:
    return 2 * math.pi * code / size


def _point(x: float, y: float, radius: float, angle: float) -> tuple[float, float]:
    # From the top, clockwise, as clocks go; and y grows downwards in SVG.
    return x + radius * math.sin(angle), y - radius * math.cos(angle)


def _arc(x: float, y: float, first: float, last: float) -> str:
    left, right = _point(x, y, _RADIUS, first), _point(x, y, _RADIUS, last)
    is_large = int(last - first > math.pi)
    path = f"M{left[0]:.2f} {left[1]:.2f}A{_RADIUS:g} {_RADIUS:g} 0 {is_large} 1 "
    return f'<path d="{path}{right[0]:.2f} {right[1]:.2f}" {_arc_style()}/>'


def _arc_style() -> str:
    return _outline(PALE, 6)


def _outline(colour: str, width: float) -> str:
    return f'fill="none" stroke="{colour}" stroke-width="{width:g}"'


def _text(x: float, y: float, text: str, weight: str = "400") -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" text-anchor="middle" font-weight="{weight}"'
    return f"<text {place}>{escape(text)}</text>"


def _svg(height: float, marks: Sequence[str]) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" aria-hidden="true" focusable="false" '
        f'class="narrow" width="{NARROW:g}pt" height="{height:.0f}pt" '
        f'viewBox="0 0 {NARROW:g} {height:.0f}" font-family="system-ui, sans-serif" '
        f'font-size="10" fill="currentColor">{"".join(marks)}</svg>'
    )
