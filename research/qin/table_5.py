"""Table V of Qin et al. 2022: printed ε and δ beside the exact ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from release.exact.numbers import exp_bounds
from research.published.integer_pmf import IntegerPmf, theorem_1
from research.qin.distances import HALF, PAPER
from research.sheet import Panel, Series, Sheet, Stroke
from research.table_v import (
    one_sided_exponential,
    quantised_gaussian,
    quantised_laplace,
    staircase_noise,
    uniform_noise,
)

WIDTHS = (*range(1, 13), 15, 20, 25, 30, 35, 40)
"""The m of the sheet: beyond 30 the printed Gaussian fails."""


def _log_bound(noise: IntegerPmf) -> Callable[[int], float]:
    """The exact ε of the noise by m."""

    def epsilon(m: int) -> float:
        bound = theorem_1(noise, m)
        return math.inf if bound is None else math.log(bound)

    return epsilon


def _epsilon_panel() -> Panel:
    laplace, stairs = quantised_laplace(Fraction(10)), staircase_noise(4, HALF)
    series = (
        Series.of_function(
            "Laplacian λ = 10, printed (m+1)/λ",
            WIDTHS,
            lambda m: (m + 1) / 10,
            Stroke.DOTTED,
            pair="Laplacian",
        ),
        Series.of_function("Laplacian, exact", WIDTHS, _log_bound(laplace), pair="Laplacian"),
        _stairs("staircase a = 4, ρ = ½, printed", lambda m: -(-m // 4) * math.log(2), dotted=True),
        _stairs("staircase, exact", _log_bound(stairs), dotted=False),
    )
    return Panel("(a) ε of the noise that has one", "m", "ε", series)


def _stairs(label: str, epsilon: Callable[[int], float], *, dotted: bool) -> Series:
    """A line that jumps between the integers and does not slope."""
    x, y = [], []
    for m in range(4, 41, 4):
        # The stair ⌈m/4⌉ holds m - 3 to m.
        x += [m - 3.5, m + 0.5]
        y += [epsilon(m)] * 2
    return Series.of(label, x, y, Stroke.DOTTED if dotted else Stroke.SOLID, pair="staircase")


def _delta_panel() -> Panel:
    uniform, exponential = uniform_noise(-50, 49), one_sided_exponential(Fraction(1, 10))
    gaussian, cut = quantised_gaussian(100.0), 40
    claimed = 2 * float(gaussian.above(cut - 1))

    def exponential_delta(m: int) -> Fraction:
        return exponential.deltas(m, exp_bounds(Fraction(m, 10))[0]).approximate

    def gaussian_delta(m: int) -> Fraction:
        epsilon = Fraction((m + 1) * (2 * cut + 1 - m), 200)
        return gaussian.deltas(m, exp_bounds(epsilon)[0]).approximate

    def shown(delta: Fraction) -> float:
        # A logarithmic axis has no 0, and floats no difference below.
        return max(float(delta), 1e-16)

    series = (
        Series.of_function(
            "uniform on 100, printed m/100",
            WIDTHS,
            lambda m: m / 100,
            Stroke.DOTTED,
            pair="uniform",
        ),
        Series.of_function(
            "uniform, exact at ε = 0",
            WIDTHS,
            lambda m: uniform.deltas(m, Fraction(1)).approximate,
            pair="uniform",
        ),
        Series.of_function("exponential η = 0.1, exact at ηm", WIDTHS, exponential_delta),
        Series.of_function(
            "Gaussian σ = 10, M = 40, printed",
            WIDTHS,
            lambda _: claimed,
            Stroke.DOTTED,
            pair="Gaussian",
        ),
        Series.of_function(
            "Gaussian, exact at the printed ε",
            WIDTHS,
            lambda m: shown(gaussian_delta(m)),
            pair="Gaussian",
        ),
    )
    return Panel("(b) δ at the printed ε", "m", "δ", series, log=True)


def table_5() -> Sheet:
    """Five distributions: printed ε and δ beside the exact ones."""
    panels = (_epsilon_panel(), _delta_panel())
    printed, exact = (panels[1].series[k].at(30) for k in (3, 4))
    one_way = panels[1].series[2].at(1)
    return Sheet(
        "qin-table-5",
        "five kinds of noise, printed and exact",
        f"{PAPER}, Table V",
        "Δ = 1; parameters in the legend",
        panels,
        f"Two of five rows fail: at m = 30 the Gaussian claims δ = {printed:.6f} and has "
        f"{exact:.4f}, and one-sided exponential noise, printed with δ = 0, has {one_way:.4f} at "
        "m = 1.",
        (
            "The exponential noise is on k ≥ 1 only, so by the paper's own condition (9) no ε "
            "exists: the printed ηm is that of one direction. Its δ at ε = ηm is 1 - e^(-ηm). "
            "Nor do the printed masses η·e^(-ηk) add up to 1.",
            "Theorem 2 holds with the noise of x in the numerator of (11), as its proof has it. "
            "Read with the denominator in Θ₁, uniform noise would satisfy (0, 0).",
            "The Gaussian satisfies what Table V and (43) print while m² is below about M; (14) "
            "takes the supremum over m₀ of both signs, which is larger and right.",
        ),
    )
