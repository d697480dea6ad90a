"""Example 1 of Sadeghi et al. 2020: the matrices (5) and (6) for small counts, solved."""

from __future__ import annotations

import numpy as np

from release.errors import DesignError
from release.noise.solvers.program import Floats
from research.published.sadeghi import Counts, solve_counts
from research.sadeghi.figures import PAPER
from research.sheet import Panel, Series, Shape, Sheet, Stroke

MOST, REACH, KEEP = 3, 2, 0.5
"""N, D and η of the example."""

EPSILONS = [k / 10 for k in range(1, 31)]


def solved(epsilon: float) -> Counts:
    """Proposition 2 for the example.

    Raises:
        DesignError: the solver found nothing.
    """
    counts = solve_counts(MOST, REACH, KEEP, epsilon)
    if counts is None:
        raise DesignError("the program of Proposition 2 has no solution")
    return counts


def _corner(low: int, high: int) -> Floats:
    """The pmf (2) on ``low``, 0 and ``high``, of the noise -2..2."""
    noise = np.zeros(2 * REACH + 1)
    noise[REACH] = KEEP
    noise[REACH + low] = (1 - KEEP) * high / (high - low)
    noise[REACH + high] = (1 - KEEP) * -low / (high - low)
    return noise


def _matrix(title: str, y: str, rows: Floats, first: int) -> Panel:
    """A matrix with a column for each true count, as the paper prints it."""
    series = []
    for number, row in enumerate(rows):
        series.append(Series.of(str(number + first), range(1, MOST + 1), row))
    return Panel(title, "true count n", y, tuple(series), Shape.HEAT)


def example_1() -> Sheet:
    """The corners (4), and the solved matrices (5) and (6)."""
    counts = solved(1.0)
    published = counts.rows.T
    noise = np.zeros((2 * REACH + 1, MOST))
    for count in range(1, MOST + 1):
        for z in range(-REACH, REACH + 1):
            if 0 <= count + z < published.shape[0]:
                noise[z + REACH, count - 1] = published[count + z, count - 1]
    corners = [
        Series.of(f"i₁ = {low}, i₂ = {high}", range(-REACH, REACH + 1), _corner(low, high))
        for low, high in ((-1, 1), (-1, 2))
    ]
    deltas = [solved(epsilon).single_outcome_delta for epsilon in EPSILONS]
    panels = (
        Panel("(a) the corners (4) for n = 1", "z", "p(z|1)", tuple(corners), Shape.BARS),
        Panel(
            "(b) the least δ̃ by ε",
            "ε",
            "δ̃",
            (Series.of("Proposition 2, N = 3", EPSILONS, deltas, Stroke.DASHED),),
        ),
        _matrix("(c) matrix (5): p(z|n), ε = 1", "noise z", noise, -REACH),
        _matrix("(d) matrix (6): p(y|n), ε = 1", "published y", published, 0),
    )
    least = counts.single_outcome_delta
    weight = (float(published[0, 0]) - 0.25) / (1 / 3 - 0.25)
    return Sheet(
        "sadeghi-example-1",
        "small counts, solved",
        f"{PAPER}, Example 1 with (4) to (6)",
        "N = 3, η = ½, D = 2",
        panels,
        f"At ε = 1 the best matrix has δ̃ = {least:.4f}; for n = 1 it publishes 0 with "
        f"{published[0, 0]:.4f}.",
        (
            "The example leaves the weights α open. The program of Proposition 2 chooses them; for "
            f"n = 1 the corner on (-1, 2) has a weight of {weight:.3f}.",
            "Each column has mean zero, ends after D = 2, and leaves the count as it is with ½.",
        ),
    )
