"""The least of a smooth function over shares that add up to 1, by BFGS in their logarithms.

A local minimum: the function need not be convex. A share that should be 0 becomes very small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from release.noise.tables.publication import Floats

Function: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""From shares to the value, above 0, and its gradient as if the shares were free."""

_CLOSE = 1e-7
"""Iterations end where one lowers the value by less than this part of it."""

_LONGEST = 2.0
"""The most by which the logarithm of a share changes in one step."""

_SMALLEST = -40.0
"""The least logarithm of a share, beside the largest."""


def least_on_simplex(
    function: Function, start: Floats, iterations: int = 60
) -> tuple[float, Floats]:
    """Return a local minimum, and the shares where it lies.

    Args:
        function: the value and the gradient.
        start: shares above 0.
        iterations: the most iterations.
    """
    place = np.log(start)
    value, slope = _along(function, place)
    size = start.size
    curvature = np.eye(size)
    is_fresh = True
    for _ in range(iterations):
        direction = -curvature @ slope
        if slope @ direction >= 0:
            direction, curvature, is_fresh = -slope, np.eye(size), True
        lower = _shorter(function, place, direction, value)
        if lower is None and not is_fresh:
            # What was learned of the curvature misleads here: try straight down.
            curvature, is_fresh = np.eye(size), True
            lower = _shorter(function, place, -slope, value)
        if lower is None:
            break
        new, new_value, new_slope = lower
        step, change = new - place, new_slope - slope
        gain = value - new_value
        place, value, slope = new, new_value, new_slope
        if gain < _CLOSE:
            break
        bend = float(step @ change)
        if bend > 1e-14:
            if is_fresh:
                # The first step tells how long steps are.
                curvature = np.eye(size) * bend / float(change @ change)
                is_fresh = False
            curvature = _updated(curvature, step, change, bend)
    return float(np.exp(value)), _shares(place)


def _shorter(
    function: Function, place: Floats, direction: Floats, value: float
) -> tuple[Floats, float, Floats] | None:
    """The first lower point on the way, halving the step; None where there is none."""
    longest = min(1.0, _LONGEST / max(float(np.abs(direction).max()), 1e-300))
    for halving in range(12):
        new = place + direction * longest / 2**halving
        new = np.maximum(new - new.max(), _SMALLEST)
        new_value, new_slope = _along(function, new)
        if new_value < value:
            return new, new_value, new_slope
    return None


def _updated(curvature: Floats, step: Floats, change: Floats, bend: float) -> Floats:
    """The inverse of the Hessian after a step, by the formula of BFGS."""
    left = np.eye(step.size) - np.outer(step, change) / bend
    return np.asarray(left @ curvature @ left.T + np.outer(step, step) / bend, dtype=np.float64)


def _along(function: Function, place: Floats) -> tuple[float, Floats]:
    """The logarithm of the value, and its gradient in the logarithms of the shares."""
    shares = _shares(place)
    value, gradient = function(shares)
    weighed = shares * gradient / value
    return float(np.log(value)), weighed - shares * weighed.sum()


def _shares(place: Floats) -> Floats:
    shares = np.exp(place - place.max())
    return np.asarray(shares / shares.sum(), dtype=np.float64)
