"""Figures 1 to 4 of Kadam et al. 2024: the structure of the optimal pmfs and of the error rate."""

from __future__ import annotations

from functools import partial

import numpy as np

from research.kadam.common import PAPER, pmf_panel
from research.printed import (
    bd_regions,
    bounded_difference,
    orbit,
    sd_breaks,
    single_distance,
)
from research.programs import per_difference, printed
from research.sheet import Panel, Series, Sheet, Stroke

RING = 7
"""n of Figures 1 and 2."""


def figure_1() -> Sheet:
    """The order in which masses are assigned."""
    panels = []
    for letter, step in (("a", 3), ("b", 2)):
        law = single_distance(RING, step, 0.75, 0.0)
        order = np.full(RING + 1, -1)
        for turn in range(orbit(RING, step)):
            order[turn * step % (RING + 1)] = turn
        reached = np.flatnonzero(order >= 0)
        title = f"({letter}) μ̂ = {step}: order " + ", ".join(
            map(str, sorted(reached.tolist(), key=lambda place: int(order[place])))
        )
        series = (
            Series.of("Lemma 3", range(RING + 1), law),
            Series.of(
                "program (14)", range(RING + 1), printed(RING, [step], 0.75, 0.0), Stroke.DASHED
            ),
        )
        panels.append(pmf_panel(title, series))
    first, second = (panels[0].line("Lemma 3").at(place) for place in (3, 6))
    return Sheet(
        "kadam-01",
        "which mass follows which",
        f"{PAPER}, Figure 1 with Lemmas 2 and 3",
        "n = 7, ε = 0.75, δ = 0, one-sided",
        tuple(panels),
        f"Masses fall by e^ε along 0, μ̂, 2μ̂, …, for μ̂ = 3 from {first:.4f} at 3 to {second:.4f} "
        "at 6; what is no multiple of μ̂ has none.",
        ("The figure's ε is not printed; 0.75 is that of Figure 9.",),
    )


def figure_2() -> Sheet:
    """The error rate by δ for a single distance, with its breakpoints."""
    epsilon = 0.75
    breaks = sd_breaks(RING, epsilon)
    places = sorted({place for pair in breaks for place in pair})
    rates = [1 - single_distance(RING, 1, epsilon, place)[0] for place in places]
    coarse = [k / 20 for k in range(1, 20)]
    series = (
        Series.of("Theorem 2, breakpoints (19)", places, rates, marked=True),
        Series.of_function(
            "program (13)",
            coarse,
            lambda d: 1 - per_difference(RING, [1], epsilon, d)[0],
            Stroke.POINTS,
        ),
    )
    flat = sum(ends - begins for begins, ends in breaks)
    return Sheet(
        "kadam-02",
        "flat and linear stretches of the error rate",
        f"{PAPER}, Figure 2 with Theorem 2",
        f"n = {RING}, ε = {epsilon}, one-sided",
        (Panel("error rate by δ", "δ", "ρ*", series),),
        f"The error rate falls from {rates[0]:.4f} to 0 in {RING} linear stretches between flat "
        f"ones; where it is flat, a share of {flat:.3f} of all δ, more δ buys nothing.",
        ("Breakpoints are those of (19), joined by straight lines: nothing is sampled.",),
    )


def figure_3() -> Sheet:
    """Pmfs of a flat and of a linear region for bounded differences."""
    n, width, epsilon = 12, 5, 0.8
    first, region = bd_regions(n, width, epsilon)
    flat = (region.begins + region.ends) / 2
    slope = (first.ends + region.begins) / 2
    panels = []
    for letter, word, delta in (("a", "flat", flat), ("b", "linear", slope)):
        series = (
            Series.of(
                "Theorem 3, corrected", range(n + 1), bounded_difference(n, width, epsilon, delta)
            ),
            Series.of(
                "program (13), falling",
                range(n + 1),
                np.sort(printed(n, range(1, width + 1), epsilon, delta))[::-1],
                Stroke.DASHED,
            ),
        )
        panels.append(pmf_panel(f"({letter}) a {word} region, δ = {delta:.4f}", series))
    stairs = [panel.line("Theorem 3, corrected").at(0) for panel in panels]
    return Sheet(
        "kadam-03",
        "staircases of flat and linear regions",
        f"{PAPER}, Figure 3 with (31) and (38)",
        f"n = {n}, μ̄ = {width}, ε = {epsilon}, one-sided",
        tuple(panels),
        f"Every step is e^ε below the one before in a flat region, f(0) = {stairs[0]:.4f}; in a "
        f"linear one, {stairs[1]:.4f}, what is left stands above the last step.",
        (
            "b = 2, r = 2: the corrected lengths. The printed (38) has no group b + 1 for j < h.",
            "In a linear region the program has what is left as one mass between two steps, as the "
            "figure has it; the corrected form raises the smallest masses to one height. f(0) is "
            "the same.",
        ),
    )


def figure_4() -> Sheet:
    """f(0) by δ for bounded differences, with its breakpoints."""
    n, width, epsilon = 15, 5, 0.8
    regions = bd_regions(n, width, epsilon)
    places: list[float] = []
    modes: list[float] = []
    for region in regions:
        places += [region.begins, region.ends]
        modes += [region.mode] * 2
    last = modes[-1]
    # f(0) = δ from where δ is above the last flat stretch.
    ends, tops = [*places, last], [*modes, last]
    program = partial(_shared_mode, n, range(1, width + 1), epsilon)
    panels = []
    for title, beyond, coarse in (
        ("(a) the first segments", 1.2 * last, [k / 50 for k in range(1, 13)]),
        ("(b) all δ", 1.0, [k / 10 for k in range(1, 10)]),
    ):
        steps = [*zip(ends, tops, strict=True), (beyond, beyond)]
        breaks = Series.of(
            "Theorem 3 corrected, breakpoints (37)",
            [x for x, _ in steps],
            [y for _, y in steps],
            marked=True,
        )
        points = Series.of_function(
            "program (13), shared indicator", coarse, program, Stroke.POINTS
        )
        panels.append(Panel(title, "δ", "f(0)", (breaks, points)))
    return Sheet(
        "kadam-04",
        "segments of f(0) for bounded differences",
        f"{PAPER}, Figure 4 with Theorem 3",
        f"n = {n}, μ̄ = {width}, ε = {epsilon}: b = 3, r = 0; one-sided",
        tuple(panels),
        f"After {len(regions) - 1} pairs of linear and flat regions, b(b-1)/2, f(0) is δ; the flat "
        f"ones have {modes[0]:.4f}, {modes[2]:.4f}, {modes[4]:.4f} and {modes[6]:.4f}.",
        ("Breakpoints are those of (37) with f(0) corrected, joined by straight lines.",),
    )


def _shared_mode(n: int, steps: range, epsilon: float, delta: float) -> float:
    return float(printed(n, steps, epsilon, delta)[0])
