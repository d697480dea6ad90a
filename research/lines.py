"""Lines whose jumps are solved, not sampled: halved where they change most, or given as steps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

WIDTH = 1 / 500
"""Where a line still changes by more than its share within this width, it jumps."""

SHARE = 0.04
"""The share of a line's whole range that two neighboring points may differ by."""


def refined(
    function: Callable[[float], float],
    places: Sequence[float],
    share: float = SHARE,
    width: float = WIDTH,
) -> tuple[list[float], list[float]]:
    """X and y of a line through ``places``, with points between where it changes much.

    Where it jumps, both sides of the jump are there, at most ``width`` apart.
    """
    values = {x: function(x) for x in places}
    step = share * (max(values.values()) - min(values.values()))
    waiting = list(itertools.pairwise(places))
    while waiting:
        left, right = waiting.pop()
        if right - left <= width or abs(values[right] - values[left]) <= step:
            continue
        # A decimal of four places: what a reader can ask again.
        middle = round((left + right) / 2, 4)
        values[middle] = function(middle)
        waiting += [(left, middle), (middle, right)]
    x = sorted(values)
    return x, [values[place] for place in x]


def corners(x: Iterable[float], y: Iterable[float]) -> tuple[list[float], list[float]]:
    """The same line without the points in the middle of a level stretch."""
    points = list(zip(x, y, strict=True))
    kept = []
    for number, (place, value) in enumerate(points):
        beside = points[max(0, number - 1) : number + 2]
        if len(beside) < 3 or any(other != value for _, other in beside):
            kept.append((place, value))
    return [place for place, _ in kept], [value for _, value in kept]


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is at least 0 at ``low`` and below 0 at ``high`` changes its sign."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) >= 0 else (low, middle)
    return low
