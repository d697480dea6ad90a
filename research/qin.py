"""Figures 7 to 10 and Table V of Qin et al. 2022."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import count

import numpy as np

from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.sampling import RandomBytes, draw_noise
from research.published.clamping import decay, law_near
from research.published.integer_pmf import IntegerPmf, theorem_1
from research.published.qin import (
    Input,
    Transport,
    distance,
    gaussian_input,
    poisson_input,
    solve_exact,
    solve_relaxed,
)
from research.sheet import Panel, Series, Sheet
from research.table_v import (
    one_sided_exponential,
    quantised_gaussian,
    quantised_laplace,
    staircase_noise,
    uniform_noise,
)

PAPER = "Qin et al. 2022"
HALF = Fraction(1, 2)
RUNS, SIZE = 100, 500
"""Of Figure 10: how many runs, and how many inputs a run has."""

INPUTS = {"Gaussian(0, 10)": gaussian_input(), "Poisson(5)": poisson_input()}
NO_INPUT = (
    "The printed objective of P2, Σ_k |p_xᵀM_k|·p_θ, is E|θ| for every input, since a law moved "
    "by i has moved all of its mass by i. So P2's law does not depend on the input, although the "
    "paper says it does: it is the staircase of the absolute loss."
)


@lru_cache
def _solved(name: str, epsilon: Fraction, most: int, *, relaxed: bool) -> Transport:
    solve = solve_relaxed if relaxed else solve_exact
    return solve(INPUTS[name], epsilon, most)


def _rivals(epsilon: Fraction, most: int) -> dict[str, IntegerPmf]:
    """The noise of the figures, with the parameters that Table V gives them."""
    # Answers m apart are ⌈m/a⌉ stairs of width a apart, so a stair may fall by e^{-ε/⌈m/a⌉}.
    return {
        "Laplacian, λ = (m+1)/ε": quantised_laplace((most + 1) / epsilon),
        "staircase, a = 5": staircase_noise(5, decay(epsilon / -(-most // 5))),
        "staircase, a = 20": staircase_noise(20, decay(epsilon / -(-most // 20))),
    }


def _gain(name: str, epsilon: Fraction) -> float:
    """By which share P1's distance is below P2's at m = 15; 0 within the solver's tolerance."""
    exact = _solved(name, epsilon, 15, relaxed=False).distance
    return max(0.0, round(1 - exact / _solved(name, epsilon, 15, relaxed=True).distance, 6))


def figure_7() -> Sheet:
    """The optimal noise for two inputs."""
    spread = range(-60, 61)
    panels, gains = [], []
    for name in INPUTS:
        series = []
        for epsilon in (Fraction(2), Fraction(4)):
            p2 = _solved(name, epsilon, 15, relaxed=True).noise.mass
            p1 = _solved(name, epsilon, 15, relaxed=False).noise.mass
            series.append(Series.of_function(f"P2, ε = {epsilon}", spread, p2))
            series.append(Series.of_function(f"P1, ε = {epsilon}", spread, p1, dashed=True))
            gains.append(f"{name}, ε = {epsilon}: {_gain(name, epsilon):.2%}")
        panels.append(Panel(f"input {name}", "θ", "probability", tuple(series), log=True))
    return Sheet(
        "qin-07",
        "optimal laws for two inputs",
        f"{PAPER}, Figure 7",
        "m = 15; the paper's ε = 2, and ε = 4 beside it",
        tuple(panels),
        (NO_INPUT, "What the exact program P1 gains over P2: " + "; ".join(gains) + "."),
    )


def _distance_panels(
    settings: list[tuple[Fraction, int]], axis: list[float], x: str
) -> tuple[Panel, ...]:
    """The distance by the (ε, m) of ``settings``, which stand at ``axis``; a panel an input."""
    panels = []
    for name, source in INPUTS.items():
        lines: dict[str, list[float]] = defaultdict(list)
        for epsilon, most in settings:
            lines["P2 as printed"].append(_solved(name, epsilon, most, relaxed=True).distance)
            lines["P1, exact"].append(_solved(name, epsilon, most, relaxed=False).distance)
            for label, noise in _rivals(epsilon, most).items():
                lines[label].append(distance(source, noise))
        series = []
        for label, distances in lines.items():
            marked, dashed = label.startswith("P"), label.startswith("P1")
            series.append(Series.of(label, axis, distances, marked=marked, dashed=dashed))
        panels.append(Panel(f"input {name}", x, "Wasserstein distance", tuple(series)))
    return tuple(panels)


def figure_8() -> Sheet:
    """The distance by ε."""
    epsilons = [Fraction(k, 4) for k in (2, 3, 4, 6, 8, 10, 12, 16, 20)]
    panels = _distance_panels([(e, 15) for e in epsilons], list(map(float, epsilons)), "ε")
    gains = "; ".join(f"{name} {max(_gain(name, e) for e in epsilons):.1%}" for name in INPUTS)
    return Sheet(
        "qin-08",
        "distance of input and output by ε",
        f"{PAPER}, Figure 8",
        "m = 15",
        panels,
        (
            NO_INPUT,
            f"P1 gains over P2 only where ε is large; the most here: {gains}.",
            "Table V's (m+Δ)/λ bounds the ε of the Laplacian; the law itself keeps m/λ, so λ = "
            "m/ε would do and lose less than the line shown.",
        ),
    )


def figure_9() -> Sheet:
    """The distance by the adjacency m."""
    widths = [1, 3, 5, 8, 10, 12, 15, 18, 20, 25]
    panels = _distance_panels([(Fraction(2), m) for m in widths], list(map(float, widths)), "m")
    return Sheet(
        "qin-09",
        "distance of input and output by the adjacency",
        f"{PAPER}, Figure 9",
        "ε = 2",
        panels,
        (NO_INPUT,),
    )


def stream(name: str) -> RandomBytes:
    """Bytes that are the same in every run: a figure is no release."""
    calls = count(1)

    def read(length: int) -> bytes:
        return hashlib.shake_256(f"{name} {next(calls)}".encode()).digest(length)

    return read


def _drawable(noise: IntegerPmf) -> tuple[Pmf, int]:
    """The noise as a pmf to draw from, and what its element 0 stands for; tails to 600 beyond."""
    low, high = noise.low - 600, noise.high + 600
    return law_near(list(map(Fraction, noise.units(low, high, 256)))), low


def _run_distances(seed: str, data: Input, noise: IntegerPmf) -> list[float]:
    """Wasserstein distances of ``SIZE`` inputs and as many outputs, run by run."""
    random_bytes = stream(seed)
    inputs = law_near(list(map(Fraction, data.masses.tolist())))
    pmf, first = _drawable(noise)
    distances = []
    for _ in range(RUNS):
        x = data.low + draw_noise(inputs, SIZE, random_bytes)
        y = x + first + draw_noise(pmf, SIZE, random_bytes)
        # On the line the cheapest transport takes the smallest to the smallest.
        distances.append(float(np.abs(np.sort(x) - np.sort(y)).mean()))
    return distances


def _runs_panel(name: str, epsilon: Fraction, most: int) -> tuple[Panel, str]:
    """A histogram of the runs for one ε and m, and a remark of their means."""
    noises = {"optimal (P2)": _solved(name, epsilon, most, relaxed=True).noise}
    noises |= _rivals(epsilon, most)
    runs = {}
    for label, noise in noises.items():
        runs[label] = _run_distances(f"{epsilon} {most} {label}", INPUTS[name], noise)
    edges = np.linspace(0, max(map(max, runs.values())), 21)
    middles = (edges[:-1] + edges[1:]) / 2
    series, means = [], []
    for label, distances in runs.items():
        series.append(Series.of(label, middles, np.histogram(distances, edges)[0]))
        span = f"{min(distances):.2f} to {max(distances):.2f}"
        means.append(f"{label} {np.mean(distances):.2f} ({span})")
    title = f"ε = {float(epsilon):g}, m = {most}"
    panel = Panel(title, "Wasserstein distance", "runs", tuple(series))
    return panel, f"{title}: {', '.join(means)}."


def figure_10() -> Sheet:
    """Frequencies of the distance over 100 runs."""
    name = "Gaussian(0, 10)"
    panels, remarks = [], []
    for epsilon, most in ((HALF, 15), (Fraction(2), 15), (Fraction(4), 15), (Fraction(2), 5)):
        panel, remark = _runs_panel(name, epsilon, most)
        panels.append(panel)
        remarks.append(remark)
    return Sheet(
        "qin-10",
        "frequencies of the distance",
        f"{PAPER}, Figure 10",
        f"{RUNS} runs of {SIZE} inputs, {name}; mean, least and largest below",
        tuple(panels),
        ("The paper does not say how many inputs a run has; here 500.", *remarks),
    )


def _log_bound(noise: IntegerPmf) -> Callable[[int], float]:
    """The exact ε of the noise by m; infinite where none exists."""

    def epsilon(m: int) -> float:
        bound = theorem_1(noise, m)
        return math.inf if bound is None else math.log(bound)

    return epsilon


def _epsilon_panel(widths: range) -> Panel:
    laplace, stairs = quantised_laplace(Fraction(10)), staircase_noise(4, HALF)
    series = (
        Series.of_function("Laplacian λ = 10, printed (m+1)/λ", widths, lambda m: (m + 1) / 10),
        Series.of_function("Laplacian, exact", widths, _log_bound(laplace), dashed=True),
        Series.of_function(
            "staircase a = 4, ρ = 1/2, printed", widths, lambda m: -(-m // 4) * math.log(2)
        ),
        Series.of_function("staircase, exact", widths, _log_bound(stairs), dashed=True),
    )
    return Panel("ε of the laws with one", "m", "ε", series)


def _delta_panel(widths: range) -> Panel:
    uniform, exponential = uniform_noise(-50, 49), one_sided_exponential(Fraction(1, 10))
    gaussian, cut = quantised_gaussian(100.0), 30
    claimed = 2 * float(gaussian.above(cut - 1))

    def exponential_delta(m: int) -> Fraction:
        return exponential.deltas(m, exp_bounds(Fraction(m, 10))[0]).approximate

    def gaussian_delta(m: int) -> Fraction:
        epsilon = Fraction((m + 1) * (2 * cut + 1 - m), 200)
        return gaussian.deltas(m, exp_bounds(epsilon)[0]).approximate

    series = (
        Series.of_function("uniform on 100 values, printed m/100", widths, lambda m: m / 100),
        Series.of_function(
            "uniform, exact at ε = 0",
            widths,
            lambda m: uniform.deltas(m, Fraction(1)).approximate,
            dashed=True,
        ),
        Series.of_function(
            "exponential η = 0.1, exact at ηm", widths, exponential_delta, dashed=True
        ),
        Series.of_function("Gaussian σ = 10, M = 30, printed", widths, lambda _: claimed),
        Series.of_function("Gaussian, exact at the printed ε", widths, gaussian_delta, dashed=True),
    )
    return Panel("δ at the printed ε", "m", "δ", series)


def table_5() -> Sheet:
    """Five distributions: printed ε and δ beside the exact ones."""
    widths = range(1, 13)
    return Sheet(
        "qin-table-5",
        "five laws, printed and exact",
        f"{PAPER}, Table V",
        "Δ = 1; parameters in the legend",
        (_epsilon_panel(widths), _delta_panel(widths)),
        (
            "The exponential law is on k ≥ 1 only, so by the paper's own condition (9) no ε "
            "exists: the printed ηm is that of one direction. Its δ at ε = ηm is 1 - e^(-ηm). "
            "Nor do the printed masses η·e^(-ηk) add up to 1.",
            "Theorem 2 holds with the noise of x in the numerator of (11), as its proof has it. "
            "Read with the denominator in Θ₁, uniform noise would keep (0, 0).",
            "The Gaussian keeps what Table V and (43) print while m² is below about M; for m = 30, "
            "M = 40 the exact δ at the printed ε is above the printed one "
            "(tests/research/test_table_v.py). (14) takes the supremum over m₀ of both signs, "
            "which is larger and right.",
        ),
    )
