"""Theorem 3 of Geng et al. 2018, on the real line and on grids."""

from __future__ import annotations

import math
from fractions import Fraction

from release.line import LineLaw
from release.mechanisms.continuous import least_cost, zero_delta_noise
from release.reproduce.sheet import Panel, Series, Sheet


def _cost(noise: LineLaw, power: int) -> float:
    spread = range(noise.low, noise.high + 1)
    return math.fsum(float(noise.mass(k)) * math.pow(abs(k), power) for k in spread)


def theorem_3() -> Sheet:
    """Costs and laws for (0, δ)."""
    deltas = [Fraction(k, 40) for k in range(2, 40)]
    axis = [float(d) for d in deltas]
    costs = []
    for power, name in ((1, "E|noise|"), (2, "E noise²")):
        exact = [least_cost(d, Fraction(1), Fraction(power)) for d in deltas]
        series = [Series.of("Theorem 3", axis, exact)]
        for steps in (4, 20):
            found = [
                _cost(zero_delta_noise(steps, d, Fraction(power)), power) / steps**power
                for d in deltas
            ]
            series.append(Series.of(f"grid, Δ = {steps} steps", axis, found, dashed=True))
        costs.append(Panel(name, "δ", "cost, Δ = 1", tuple(series), log=True))
    spread = range(-60, 61)
    laws = tuple(
        Series.of(
            f"δ = {d}",
            spread,
            [float(zero_delta_noise(20, Fraction(d), Fraction(2)).mass(k)) for k in spread],
        )
        for d in ("0.3", "0.6", "0.8")
    )
    return Sheet(
        "geng-theorem-3",
        "the optimal (0, δ) noise",
        "Geng et al. 2018, Theorem 3",
        "p = 1 and 2; laws for p = 2 on a grid with Δ = 20 steps",
        (*costs, Panel("laws on the grid", "steps", "probability", laws)),
        (
            "On a grid the optimum of the same class is found in closed form and is exact in "
            "integers; on a coarse one it costs a little more than on the real line, on a finer "
            "one next to nothing.",
        ),
    )
