"""The least approximate δ of any even noise with a given variance: a linear program in a window."""

from __future__ import annotations

import math

import numpy as np

from release.errors import DesignError
from release.noise.solvers.program import Builder, solve

WINDOW = 24
"""The noise of the figures is within ±8; a wider window finds nothing better."""


def least_delta(variance: float, epsilon: float, window: int = WINDOW) -> float:
    """The least δ of even noise on ±``window`` for counts 1 apart, to a solver's tolerance.

    Raises:
        DesignError: the solver found nothing.
    """
    builder, ratio = Builder(), math.exp(epsilon)
    half = builder.add_columns(np.zeros(window + 1))
    excess = builder.add_columns(np.ones(2 * window + 1))
    sizes = np.arange(window + 1)
    twice = np.where(sizes > 0, 2.0, 1.0)
    builder.add_row(half, twice, 1.0, equal=True)
    builder.add_row(half, twice * sizes**2.0, variance)
    for place, noise in enumerate(range(-window, window + 1)):
        # f(k) - e^ε·f(k+1) ≤ excess of k; the other direction is its mirror image.
        beside = abs(noise + 1)
        terms = np.array(
            [half[abs(noise)], half[beside] if beside <= window else -1, excess[place]]
        )
        builder.add_row(terms, np.array([1.0, -ratio, -1.0]), 0.0)
    solution = solve(builder.build())
    if solution is None:
        raise DesignError("the program for the least delta has no solution")
    return max(0.0, solution.objective)
