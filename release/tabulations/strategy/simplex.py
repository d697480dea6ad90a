"""The least of smooth functions over shares that add up to 1, by BFGS in their logarithms.

Local minima: the functions need not be convex. A share that should be 0 becomes very small. Many
functions of as many shares are descended side by side, because one evaluation of all of them costs
much less than one of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes
from release.tabulations.strategy.publication import Floats

Functions: TypeAlias = Callable[[Codes, Floats], tuple[Floats, Floats]]
"""From the places of some functions, shape (some,), and shares for each, shape (some, shares), to
the values, above 0, and the gradients as if the shares were free."""

_CLOSE = 1e-7
"""A descent ends where an iteration lowers the value by less than this part of it."""

_LONGEST = 2.0
"""The most by which the logarithm of a share changes in one step."""

_SMALLEST = -40.0
"""The least logarithm of a share, beside the largest."""

_MOST_EVALUATIONS = 120

_MOST_HALVINGS = 12

_HOPELESS = 8.0
"""A descent is given up where so many more iterations like the last would not reach the lowest."""


def least_on_simplex(
    functions: Functions, starts: Floats, goal: float = 0.0
) -> tuple[Floats, Floats]:
    """Return local minima of functions, and the shares where they lie.

    Args:
        functions: the values and the gradients.
        starts: shares above 0, of each function; shape (functions, shares).
        goal: a value that is of interest: a descent that stays far above it is given up early. By
            default none is.

    Returns:
        Shapes (functions,) and (functions, shares).
    """
    descents = _Descents.begin(functions, starts)
    for _ in range(_MOST_EVALUATIONS):
        running = np.flatnonzero(descents.runs)
        if not running.size:
            break
        descents.advance(functions, running)
        if goal:
            descents.give_up(running, float(np.log(goal)))
    return np.exp(descents.values), _shares(descents.places)


@dataclass(eq=False)
class _Descents:
    """Where each descent is; the first axis of every array is that of the functions.

    Attributes:
        places: logarithms of shares.
        values: of the logarithm of the function.
        slopes: its gradient in ``places``.
        curvatures: the inverse of the Hessian, as learned.
        is_fresh: whether nothing has been learned since the start.
        directions: of the step that is tried.
        lengths: of the step that is tried, in directions.
        halvings: how often it has been halved.
        gains: by how much the last step lowered the value.
        runs: whether the descent has not ended.
    """

    places: Floats
    values: Floats
    slopes: Floats
    curvatures: Floats
    is_fresh: np.ndarray
    directions: Floats
    lengths: Floats
    halvings: Codes
    gains: Floats
    runs: np.ndarray

    @classmethod
    def begin(cls, functions: Functions, starts: Floats) -> _Descents:
        """All descents at their starts."""
        count, size = starts.shape
        places = np.log(starts)
        values, slopes = _along(functions, np.arange(count), places)
        descents = cls(
            places=places,
            values=values,
            slopes=slopes,
            curvatures=np.zeros((count, size, size)),
            is_fresh=np.ones(count, dtype=bool),
            directions=np.zeros((count, size)),
            lengths=np.zeros(count),
            halvings=np.zeros(count, dtype=np.int64),
            gains=np.full(count, np.inf),
            runs=np.full(count, size > 1),
        )
        descents._restart(np.arange(count))
        return descents

    def advance(self, functions: Functions, running: Codes) -> None:
        """Try the next step of some descents: take it where it is lower, else halve it."""
        tried = self.places[running] + self.directions[running] * self.lengths[running, None]
        # Shares do not change when all logarithms move together, so they may drift without end;
        # and far below the largest, exp() would underflow to a share that never returns.
        tried = np.maximum(tried - tried.max(axis=1, keepdims=True), _SMALLEST)
        values, slopes = _along(functions, running, tried)
        lower = values < self.values[running]
        self._take(running[lower], tried[lower], values[lower], slopes[lower])
        self._halve(running[~lower])

    def give_up(self, running: Codes, goal: float) -> None:
        """End descents that would need far more iterations to reach a goal."""
        far = self.values[running] - _HOPELESS * self.gains[running] > goal
        self.runs[running[far]] = False

    def _take(self, which: Codes, places: Floats, values: Floats, slopes: Floats) -> None:
        steps, changes = places - self.places[which], slopes - self.slopes[which]
        self.gains[which] = self.values[which] - values
        self.places[which], self.values[which], self.slopes[which] = places, values, slopes
        self.runs[which] = self.gains[which] >= _CLOSE
        bends = (steps * changes).sum(axis=1)
        # BFGS keeps its matrix positive definite only where the slope rose along the step.
        curved = bends > 1e-14
        self._learn(which[curved], steps[curved], changes[curved], bends[curved])
        self._aim(which)

    def _learn(self, which: Codes, steps: Floats, changes: Floats, bends: Floats) -> None:
        """Update the inverses of the Hessians after steps, by the formula of BFGS."""
        unit = np.eye(steps.shape[1])
        # The first step tells how long steps are.
        scale = bends / (changes**2).sum(axis=1)
        fresh = self.is_fresh[which, None, None]
        before = np.where(fresh, scale[:, None, None] * unit, self.curvatures[which])
        bend = bends[:, None, None]
        correction = unit - steps[:, :, None] * changes[:, None, :] / bend
        outer = steps[:, :, None] * steps[:, None, :] / bend
        self.curvatures[which] = correction @ before @ np.swapaxes(correction, 1, 2) + outer
        self.is_fresh[which] = False

    def _aim(self, which: Codes) -> None:
        """Choose the next direction by what is known of the curvature."""
        self.directions[which] = -(self.curvatures[which] @ self.slopes[which, :, None])[:, :, 0]
        rising = (self.slopes[which] * self.directions[which]).sum(axis=1) >= 0
        self._start_step(which)
        self._restart(which[rising])

    def _halve(self, which: Codes) -> None:
        self.lengths[which] /= 2
        self.halvings[which] += 1
        spent = which[self.halvings[which] >= _MOST_HALVINGS]
        # Straight down did not help either: a minimum, up to rounding.
        self.runs[spent[self.is_fresh[spent]]] = False
        # What was learned of the curvature misleads here: try straight down.
        self._restart(spent[~self.is_fresh[spent]])

    def _restart(self, which: Codes) -> None:
        """Forget the curvature."""
        self.curvatures[which] = np.eye(self.places.shape[1])
        self.is_fresh[which] = True
        self.directions[which] = -self.slopes[which]
        self._start_step(which)

    def _start_step(self, which: Codes) -> None:
        longest = np.abs(self.directions[which]).max(axis=1)
        self.lengths[which] = np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))
        self.halvings[which] = 0


def _along(functions: Functions, which: Codes, places: Floats) -> tuple[Floats, Floats]:
    """The logarithms of the values, and their gradients in the logarithms of the shares."""
    shares = _shares(places)
    values, gradients = functions(which, shares)
    weighed = shares * gradients / values[:, None]
    return np.log(values), weighed - shares * weighed.sum(axis=1, keepdims=True)


def _shares(places: Floats) -> Floats:
    shares = np.exp(places - places.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)
