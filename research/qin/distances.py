"""Figures 7 to 10 of Qin et al. 2022: optimal noise, and how far it moves an input."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from fractions import Fraction
from functools import lru_cache
from itertools import count

import numpy as np

from release.exact.pmf import Pmf
from release.exact.sampling import RandomBytes, draw_noise
from research.published.clamping import decay, law_near
from research.published.integer_pmf import IntegerPmf
from research.published.qin import (
    Input,
    Transport,
    distance,
    gaussian_input,
    poisson_input,
    solve_exact,
    solve_relaxed,
)
from research.sheet import Panel, Series, Sheet, Stroke
from research.table_v import quantised_laplace, staircase_noise

PAPER = "Qin et al. 2022"
HALF = Fraction(1, 2)
RUNS, SIZE = 100, 500
"""Of Figure 10: how many runs, and how many inputs a run has."""

INPUTS = {"Gaussian(0, 10)": gaussian_input(), "Poisson(5)": poisson_input()}
NO_INPUT = (
    "The printed objective of P2, Σ_k |p_xᵀM_k|·p_θ, is E|θ| for every input, since a pmf moved "
    "by i has moved all of its mass by i. So P2's optimum does not depend on the input, although "
    "the paper says it does: it is the staircase of the absolute loss."
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
            pair = f"ε = {epsilon}"
            as_printed = Series.of_function(f"P2, {pair}", spread, p2, Stroke.DOTTED, pair=pair)
            series.append(as_printed)
            series.append(Series.of_function(f"P1, {pair}", spread, p1, pair=pair))
            gains.append(f"{name}, ε = {epsilon}: {_gain(name, epsilon):.2%}")
        panels.append(Panel(f"input {name}", "θ", "probability", tuple(series), log=True))
    return Sheet(
        "qin-07",
        "optimal noise for two inputs",
        f"{PAPER}, Figure 7",
        "m = 15; the paper's ε = 2, and ε = 4 beside it",
        tuple(panels),
        "The optimum of P2 is the same for both inputs; the exact program P1 differs, and at ε = 4 "
        f"is nearer by {_gain('Gaussian(0, 10)', Fraction(4)):.2%} and "
        f"{_gain('Poisson(5)', Fraction(4)):.2%}.",
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
            ours = label.startswith("P")
            stroke = Stroke.DOTTED if label.startswith("P2") else Stroke.SOLID
            pair = "ours" if ours else label
            series.append(Series.of(label, axis, distances, stroke, marked=ours, pair=pair))
        panels.append(Panel(f"input {name}", x, "Wasserstein distance", tuple(series), log=True))
    return tuple(panels)


def figure_8() -> Sheet:
    """The distance by ε."""
    epsilons = [Fraction(k, 4) for k in (2, 3, 4, 6, 8, 10, 12, 16, 20)]
    panels = _distance_panels([(e, 15) for e in epsilons], list(map(float, epsilons)), "ε")
    gains = "; ".join(f"{name} {max(_gain(name, e) for e in epsilons):.1%}" for name in INPUTS)
    laplace, exact = (panels[0].line(k).at(4.0) for k in ("Laplacian, λ = (m+1)/ε", "P1, exact"))
    return Sheet(
        "qin-08",
        "distance of input and output by ε",
        f"{PAPER}, Figure 8",
        "m = 15",
        panels,
        "P1 is the nearest at every ε: at ε = 4 its distance for the Gaussian input is "
        f"{exact:.3f}, the Laplacian's {laplace:.3f}.",
        (
            NO_INPUT,
            f"P1 gains over P2 only where ε is large; the most here: {gains}.",
            "Table V's (m+Δ)/λ bounds the ε of the Laplacian; the noise satisfies m/λ, so λ = "
            "m/ε would do and lose less than the line shown.",
        ),
    )


def figure_9() -> Sheet:
    """The distance by the adjacency m."""
    widths = [1, 3, 5, 8, 10, 12, 15, 18, 20, 25]
    panels = _distance_panels([(Fraction(2), m) for m in widths], list(map(float, widths)), "m")
    least, most = (panels[0].line("P1, exact").at(m) for m in (1.0, 25.0))
    return Sheet(
        "qin-09",
        "distance of input and output by the adjacency",
        f"{PAPER}, Figure 9",
        "ε = 2",
        panels,
        f"The distance grows with m, for the Gaussian input from {least:.3f} at m = 1 to "
        f"{most:.2f} at m = 25, and P1 is the nearest throughout.",
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


def _runs_panel(name: str, epsilon: Fraction, most: int) -> tuple[Panel, dict[str, float], str]:
    """A histogram of the runs for one ε and m, their means, and a remark of them."""
    noises = {"optimal (P2)": _solved(name, epsilon, most, relaxed=True).noise}
    noises |= _rivals(epsilon, most)
    runs = {}
    for label, noise in noises.items():
        runs[label] = _run_distances(f"{epsilon} {most} {label}", INPUTS[name], noise)
    edges = np.linspace(0, max(map(max, runs.values())), 21)
    middles = (edges[:-1] + edges[1:]) / 2
    series, means, mean = [], [], {}
    for label, distances in runs.items():
        mean[label] = float(np.mean(distances))
        series.append(Series.of(label, middles, np.histogram(distances, edges)[0]))
        span = f"{min(distances):.2f} to {max(distances):.2f}"
        means.append(f"{label} {mean[label]:.2f} ({span})")
    title = f"ε = {float(epsilon):g}, m = {most}"
    panel = Panel(title, "Wasserstein distance", "runs", tuple(series))
    return panel, mean, f"{title}: {', '.join(means)}."


def figure_10() -> Sheet:
    """Frequencies of the distance over 100 runs."""
    name = "Gaussian(0, 10)"
    panels, remarks, listing = [], [], [("ε", "m", "noise", "mean distance")]
    for epsilon, most in ((HALF, 15), (Fraction(2), 15), (Fraction(4), 15), (Fraction(2), 5)):
        panel, mean, remark = _runs_panel(name, epsilon, most)
        panels.append(panel)
        for label, value in mean.items():
            listing.append((f"{float(epsilon):g}", str(most), label, f"{value:.6f}"))
        remarks.append(remark)
    return Sheet(
        "qin-10",
        "frequencies of the distance",
        f"{PAPER}, Figure 10",
        f"{RUNS} runs of {SIZE} inputs, {name}",
        tuple(panels),
        f"The optimum has the least mean distance in all four settings; at ε = 2, m = 15 it is "
        f"{float(listing[5][3]):.2f}, the Laplacian's {float(listing[6][3]):.2f}.",
        (
            "The paper does not say how many inputs a run has; here 500. Below: mean, least and "
            "largest distance.",
            *remarks,
        ),
        tuple(listing),
    )
