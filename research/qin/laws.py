"""Figures 1 to 6 of Qin et al. 2022: the five kinds of noise, the optimum, other steps, vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from release.exact.numbers import exp_bounds
from research.published.clamping import decay
from research.published.integer_pmf import IntegerPmf, theorem_1
from research.published.qin import gaussian_input, solve_relaxed
from research.qin.distances import HALF, PAPER
from research.sheet import Panel, Series, Shape, Sheet, Stroke
from research.table_v import (
    one_sided_exponential,
    quantised_gaussian,
    quantised_laplace,
    staircase_noise,
    uniform_noise,
)

SPREAD = range(-12, 13)


def _printed_exponential(k: int) -> float:
    return 0.5 * math.exp(-k / 2) if k >= 1 else 0.0


def figures_1_to_5() -> Sheet:
    """The five pmfs."""
    noises: dict[str, IntegerPmf] = {
        "Figure 1: Gaussian, σ = 3": quantised_gaussian(9.0),
        "Figure 2: Laplacian, λ = 3": quantised_laplace(Fraction(3)),
        "Figure 3: staircase, a = 3, ρ = ½": staircase_noise(3, HALF),
        "Figure 4: uniform on -8..8": uniform_noise(-8, 8),
    }
    panels = []
    for title, noise in noises.items():
        pmf = Series.of_function("pmf, exact", SPREAD, noise.mass)
        panels.append(Panel(title, "θ", "probability", (pmf,), Shape.BARS))
    series = (
        Series.of_function(
            "masses as printed", SPREAD, _printed_exponential, Stroke.DOTTED, pair="pmf, exact"
        ),
        Series.of_function("pmf, exact", SPREAD, one_sided_exponential(HALF).mass),
    )
    panels.append(Panel("Figure 5: exponential, η = ½", "θ", "probability", series, Shape.BARS))
    total = math.fsum(_printed_exponential(k) for k in range(1, 200))
    return Sheet(
        "qin-01",
        "five kinds of noise",
        f"{PAPER}, Figures 1 to 5",
        "Δ = 1; the figures name no parameters",
        tuple(panels),
        "Four of the five are pmfs as printed; the printed masses of the exponential one add up "
        f"to {total:.3f}.",
        (
            "Densities become masses by (2), the integral from k to k + 1: so the Gaussian, the "
            "Laplacian and the staircase are symmetric about -½.",
        ),
        (("noise", "sum of the printed masses"), ("exponential", f"{total:.9f}")),
    )


def figure_6() -> Sheet:
    """The optimum of P2, by m and by ε."""
    spread = range(-30, 31)
    by_width, by_epsilon = [], []
    for m in (3, 6, 12):
        noise = solve_relaxed(gaussian_input(), Fraction(1), m).noise
        by_width.append(Series.of_function(f"m = {m}, ε = 1", spread, noise.mass))
    for epsilon in (HALF, Fraction(1), Fraction(2)):
        noise = solve_relaxed(gaussian_input(), epsilon, 6).noise
        label = f"m = 6, ε = {float(epsilon):g}"
        by_epsilon.append(Series.of_function(label, spread, noise.mass))
    panels = (
        Panel("(a) by m", "θ", "probability", tuple(by_width), log=True),
        Panel("(b) by ε", "θ", "probability", tuple(by_epsilon), log=True),
    )
    mode, next_step = by_width[1].at(0), by_width[1].at(6)
    return Sheet(
        "qin-06",
        "the optimum is a staircase",
        f"{PAPER}, Figure 6",
        "P2 for the Gaussian input; the same for every input",
        panels,
        f"The optimum goes down by e^ε every m integers: at m = 6, ε = 1 from {mode:.4f} at 0 to "
        f"{next_step:.4f} at 6.",
        ("The figure has no scale. Steps have the width m and the ratio e^-ε for every input.",),
    )


def _log_epsilon(make: Callable[[Fraction], IntegerPmf], most: int, step: int) -> float:
    """The exact ε of noise on multiples of 1/``step`` for a move of ``most``: log of (7)."""
    bound = theorem_1(make(Fraction(step)), most * step)
    return math.inf if bound is None else math.log(bound)


def steps() -> Sheet:
    """Grids with other steps than 1: noise on multiples of Δ."""
    pieces = (1, 2, 4, 8)
    printed, exact, stairs = [], [], []
    for piece in pieces:
        # λ = 10 and m = 5 in units of the answer are 10·k and 5·k steps of Δ = 1/k.
        printed.append((5 + 1 / piece) / 10)
        exact.append(_log_epsilon(lambda k: quantised_laplace(10 * k), 5, piece))
        stairs.append(_log_epsilon(lambda k: staircase_noise(int(4 * k), HALF), 5, piece))
    panels = (
        Panel(
            "(a) ε for a move of m = 5",
            "steps a unit, 1/Δ",
            "ε",
            (
                Series.of(
                    "Laplacian λ = 10, printed (m+Δ)/λ",
                    pieces,
                    printed,
                    Stroke.DOTTED,
                    marked=True,
                    pair="Laplacian",
                ),
                Series.of("Laplacian, exact", pieces, exact, marked=True, pair="Laplacian"),
                Series.of("staircase of width 4, ρ = ½", pieces, stairs, marked=True),
            ),
        ),
        Panel(
            "(b) mean size of optimal noise, m = 5, ε = 1",
            "steps a unit, 1/Δ",
            "E|θ|",
            (Series.of_function("P2", pieces, optimal_size, marked=True),),
        ),
    )
    coarse, fine = (panels[1].series[0].at(x) for x in (1, 8))
    return Sheet(
        "qin-steps",
        "steps other than 1",
        f"{PAPER}, (2), (19) and (21) for Δ = 1 to 1/8",
        "Answers on multiples of Δ; a unit moves one by at most m = 5",
        panels,
        f"The printed bound (m+Δ)/λ goes to the exact m/λ = {exact[-1]:.2f} as the step becomes "
        f"finer; the optimal noise has a mean size of {coarse:.4f} at Δ = 1 and {fine:.4f} at "
        "1/8.",
        ("Finer steps only matter by the width of one step: all forms depend on m/Δ and λ/Δ.",),
    )


def optimal_size(piece: int) -> float:
    """E|θ| of the staircase of least mean size for m = 5 and ε = 1 on multiples of 1/``piece``."""
    ratio, width = decay(Fraction(1)), 5 * piece
    best = math.inf
    for first in range(1, width + 1):
        # k steps from 0 cost level ⌈(|k| - first + 1)/width⌉, and each level is e^-ε lower.
        levels = [max(0, -(-(k - first + 1) // width)) for k in range(60 * width)]
        masses = np.exp(np.array(levels) * math.log(float(ratio)))
        total = 2 * masses.sum() - masses[0]
        best = min(best, 2 * float(masses @ np.arange(masses.size)) / total)
    return best / piece


def vectors() -> Sheet:
    """Noise on each entry of a vector: what one entry's move costs, and what several moves cost."""
    noise, epsilons = quantised_laplace(Fraction(2)), [k / 20 for k in range(0, 41)]
    window = range(-60, 61)
    masses = np.array([float(noise.mass(k)) for k in window])
    series = []
    for moved in (1, 2, 3):
        curve = partial(_moved_delta, masses, moved)
        word = "entry moves" if moved == 1 else "entries move"
        series.append(Series.of_function(f"{moved} {word}", epsilons, curve))
    exact = [float(noise.deltas(1, exp_bounds(_decimal(e))[0]).approximate) for e in epsilons]
    series.append(Series.of("a number, exact", epsilons, exact, Stroke.DASHED, marked=True))
    panel = Panel("δ by ε, Laplacian with λ = 2, m = 1", "ε", "δ", tuple(series))
    one, three = (series[k].at(0.5) for k in (0, 2))
    return Sheet(
        "qin-vectors",
        "vectors, entry by entry",
        f"{PAPER}, Definition 1 and (37) to (41)",
        "The same independent noise on every entry",
        (panel,),
        "A vector whose neighbors differ in one entry has the δ of one number; where three "
        f"entries move, δ at ε = 0.5 is {three:.4f}, not {one:.4f}.",
        (
            "m-adjacency (Definition 1) moves one entry, so all others cancel in (39), however "
            "many there are.",
            "For several entries the ratios multiply: the δ is that of the product of the pmfs.",
        ),
    )


def _decimal(value: float) -> Fraction:
    return Fraction(round(value * 1000), 1000)


def _moved_delta(masses: np.ndarray, moved: int, epsilon: float) -> float:
    """The hockey-stick δ where ``moved`` entries move by 1: sums over pairs of (mass, mass)."""
    here, there = masses[1:], masses[:-1]
    p, q = here, there
    for _ in range(moved - 1):
        p, q = _merged(np.outer(p, here).ravel(), np.outer(q, there).ravel())
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def _merged(p: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes with one ratio as one: the Laplacian has two ratios, so few are left."""
    ratios, places = np.unique((p / q).round(9), return_inverse=True)
    return (
        np.bincount(places, weights=p, minlength=ratios.size),
        np.bincount(places, weights=q, minlength=ratios.size),
    )
