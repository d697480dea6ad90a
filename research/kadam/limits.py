"""Corollaries 1 and 2 of Kadam et al. 2024, and the limits (44) to (54)."""

from __future__ import annotations

import math
from functools import partial

from release.exact.losses import LossName
from research.kadam.common import PAPER
from research.lines import corners, refined
from research.printed import (
    Form,
    bd_delta,
    bd_limit,
    bd_section_mode,
    sd_delta,
    sd_jumps,
    sd_limit,
    sd_section_limit,
    single_distance,
)
from research.programs import least_delta
from research.sheet import Panel, Series, Sheet, Stroke

RATES = (0.1, 0.3, 0.5)
AXIS = [k / 40 for k in range(6, 121)]


def exact_corollary_1(n: int, rate: float) -> tuple[list[float], list[float]]:
    """X and y of δ^ε on :data:`AXIS`, with both sides of every jump that (25) solves."""
    jumps = [jump for jump in sd_jumps(n, rate) if AXIS[0] < jump < AXIS[-1]]
    x, y = [], []
    for epsilon in sorted({*AXIS, *jumps}):
        if epsilon in jumps:
            # The section that ends here, then the one that begins.
            x.append(epsilon)
            y.append(sd_delta(n, 1, epsilon * (1 - 1e-9), rate))
        x.append(epsilon)
        y.append(sd_delta(n, 1, epsilon, rate))
    return corners(x, y)


def _first_panel(n: int) -> Panel:
    series = []
    for rate in RATES:
        name = f"ρ = {rate:g}"
        series.append(Series.of(f"{name}, closed form", *exact_corollary_1(n, rate), pair=name))
        by_program = partial(least_delta, n, [1], cap=rate, name=LossName.ERROR_RATE, directed=True)
        places = [0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.7, 2.1]
        series.append(
            Series.of_function(
                f"{name}, program (15)", places, by_program, Stroke.POINTS, pair=name
            )
        )
    return Panel(f"(a) Corollary 1: n = {n}, μ̂ = 1", "ε", "least δ", tuple(series))


def _second_panel(n: int, width: int) -> Panel:
    series = []
    places = [k / 4 for k in range(2, 13)]
    for rate in (0.4, 0.5, 0.6):
        name = f"ρ = {rate:g}"
        for form, stroke in ((Form.PRINTED, Stroke.DOTTED), (Form.CORRECTED, Stroke.SOLID)):
            by_form = partial(bd_delta, n, width, error_rate=rate, form=form)
            line = corners(*refined(by_form, places, width=1 / 2000))
            series.append(Series.of(f"{name}, {form.value}", *line, stroke, pair=name))
    return Panel(f"(b) Corollary 2: n = {n}, μ̄ = {width}", "ε", "least δ", tuple(series))


def corollaries() -> Sheet:
    """δ against ε at equal error rates."""
    n, rate = 7, 0.3
    panels = (_first_panel(n), _second_panel(12, 5))
    jumps = sd_jumps(n, rate)
    before = sd_delta(n, 1, jumps[0] * (1 - 1e-9), rate)
    return Sheet(
        "kadam-corollaries",
        "jumps of the privacy loss at equal error rates",
        f"{PAPER}, Corollaries 1 and 2",
        "One-sided, error rate ρ",
        panels,
        f"At an error rate of 0.3 the least δ falls exponentially and jumps {len(jumps)} times, "
        f"the last time at ε = {jumps[0]:.4f} from {before:.2e} to 0.",
        (
            "(a) has its jumps at the roots of (22) and (25), solved; marks are the mixed-integer "
            "program (15).",
            "(b) is Corollary 2 with φ_0 of (34) as printed, and as the sum of the lengths (31).",
        ),
    )


def _limit_panel(letter: str, width: int) -> Panel:
    places = [k / 20 for k in range(2, 61)]
    cut = math.log(1 + width)
    number = "(44)" if width == 1 else "(48)"

    def limit(form: Form, epsilon: float) -> float:
        return sd_limit(epsilon, form) if width == 1 else bd_limit(width, epsilon, form)

    printed, right = partial(limit, Form.PRINTED), partial(limit, Form.CORRECTED)
    series = [
        Series.of_function("printed limit", sorted({*places, cut}), printed, Stroke.DOTTED),
        Series.of_function("limit", places, right, pair="printed limit"),
    ]
    for n in (7, 40):
        series.append(
            Series.of_function(f"n = {n}", places, partial(_rate, n, width), Stroke.DASHED)
        )
    differences = "μ̂ = 1" if width == 1 else f"μ̄ = {width}"
    return Panel(f"({letter}) {number}: {differences}", "ε", "error rate", tuple(series))


def _rate(n: int, width: int, epsilon: float) -> float:
    """The error rate for δ = 0: (17b) and (29)."""
    if width == 1:
        return float(1 - single_distance(n, 1, epsilon, 0.0)[0])
    weights = [math.exp(-epsilon * -(-noise // width)) for noise in range(n + 1)]
    return 1 - 1 / math.fsum(weights)


def _section_panel() -> Panel:
    series = []
    for epsilon in (0.5, 1.0, 2.0):
        name, sections = f"ε = {epsilon:g}", range(9)
        rates = Series.of_function(
            f"{name}, (51)",
            sections,
            partial(_section_rate, epsilon),
            marked=True,
            pair=name,
        )
        level = [math.exp(-epsilon)] * len(sections)
        series += [rates, Series.of(f"{name}, e^-ε", sections, level, Stroke.DASHED, pair=name)]
    return Panel("(c) (51): section n - i", "i", "error rate", tuple(series))


def _section_rate(epsilon: float, section: int) -> float:
    return sd_section_limit(section, epsilon)


def _region_panel(width: int, j: int, epsilon: float) -> Panel:
    regions = range(1, 9)
    series = (
        Series.of_function(
            "φ₀ printed, (53)",
            regions,
            lambda c: bd_section_mode(width, c, j, epsilon, Form.PRINTED),
            Stroke.DOTTED,
            marked=True,
            pair="φ₀",
        ),
        Series.of_function(
            "φ₀, limit of the lengths (31)",
            regions,
            lambda c: bd_section_mode(width, c, j, epsilon),
            marked=True,
            pair="φ₀",
        ),
    )
    title = f"(d) (53): μ̄ = {width}, j = {j}, ε = {epsilon:g}"
    return Panel(title, "c", "f(0)", series)


def limits() -> Sheet:
    """What n → ∞ does."""
    panels = (_limit_panel("a", 1), _limit_panel("b", 3), _section_panel(), _region_panel(5, 2, 1))
    first = panels[0].line("limit").at(0.5)
    second = panels[1].line("limit").at(1.0)
    printed, right = (line.at(3) for line in panels[3].series)
    return Sheet(
        "kadam-limits",
        "limits for many answers",
        f"{PAPER}, (44) to (54)",
        "Error rate, one-sided; δ = 0 in (a) and (b)",
        panels,
        f"The limits have no first case of ½: (44) is {first:.4f} at ε = 0.5, (48) {second:.4f} at "
        f"ε = 1; and (53) prints {printed:.5f} for {right:.5f} at c = 3.",
        (
            "(45), (49) and (50) are the pmfs of these limits, and (54) says that they go on by "
            "e^-ε: Lemmas 3 and 4 without an end (tests/research/test_statements.py).",
            "The condition b + r < μ̄ of Theorem 3 fails as b grows with μ̄ fixed, so that (52) to "
            "(54) are limits of the formulas and of no optimum.",
        ),
    )
