"""The closed forms of Kadam et al. 2024, printed and corrected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from release.noise.solvers.program import Floats
from research.kadam.common import EPSILONS, PAPER
from research.printed import Form, bd_limit, bd_regions, bounded_difference, single_distance
from research.programs import per_difference, printed
from research.sheet import Panel, Series, Sheet, Stroke

Row: TypeAlias = tuple[str, ...]
GRID_EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.5)
SINGLE = tuple(
    (n, step, epsilon, delta)
    for n in (3, 5, 6, 7, 8)
    for step in (1, 2, 3)
    for epsilon in GRID_EPSILONS
    for delta in (0.0, 0.04, 0.15, 0.5)
)
"""Settings of Theorem 2: n, μ̂, ε, δ."""

BOUNDED = tuple(
    (n, width, epsilon)
    for n, width in ((8, 4), (9, 4), (12, 5), (15, 5), (10, 5))
    for epsilon in (0.5, 0.8, 1.2, 2.0)
)
"""Settings of Theorem 3 with b ≤ 3 and ε at least ln((1+√5)/2): n, μ̄, ε."""


def deltas_of(n: int, width: int, epsilon: float) -> list[float]:
    """A δ in every stretch of Theorem 3: 0, flat and linear ones, and the last."""
    regions = bd_regions(n, width, epsilon)
    flat = [(region.begins + region.ends) / 2 for region in regions[1:]]
    linear = [(region.after + region.begins) / 2 for region in regions[1:]]
    return [0.0, *flat, *linear, regions[0].ends / 3, min(0.95, regions[-1].ends * 1.2)]


def _row(form: str, setting: tuple[object, ...], as_printed: Floats, corrected: Floats) -> Row:
    numbers = (as_printed[0], as_printed.sum(), corrected[0])
    return (form, *map(str, setting), *(f"{number:.9f}" for number in numbers))


def _disagree(as_printed: Floats, corrected: Floats) -> bool:
    return bool(np.abs(as_printed - corrected).max() > 1e-9)


def _rows_of_theorem_2() -> Iterator[Row]:
    for setting in SINGLE:
        as_printed, corrected = single_distance(*setting, Form.PRINTED), single_distance(*setting)
        if _disagree(as_printed, corrected):
            yield _row("Theorem 2 with Remark 3", setting, as_printed, corrected)


def _rows_of_theorem_3() -> Iterator[Row]:
    for n, width, epsilon in BOUNDED:
        for delta in deltas_of(n, width, epsilon):
            as_printed = bounded_difference(n, width, epsilon, delta, Form.PRINTED)
            corrected = bounded_difference(n, width, epsilon, delta)
            if _disagree(as_printed, corrected):
                setting = (n, f"1..{width}", epsilon, f"{delta:.9f}")
                yield _row("Theorem 3", setting, as_printed, corrected)


def _rows_of_limits() -> Iterator[Row]:
    for epsilon in GRID_EPSILONS:
        for width in (1, 2, 3, 5):
            # Of infinitely many masses only the first, f(0), is compared.
            as_printed = np.array([1 - bd_limit(width, epsilon, Form.PRINTED)])
            corrected = np.array([1 - bd_limit(width, epsilon)])
            if _disagree(as_printed, corrected):
                name = "limit (44)" if width == 1 else "limit (48)"
                setting = ("infinite", f"1..{width}", epsilon, 0)
                yield _row(name, setting, as_printed, corrected)


def disagreements() -> tuple[Row, ...]:
    """Every setting of the grids in which the printed form is not the corrected one."""
    header = ("form", "n", "differences", "epsilon", "delta")
    numbers = ("f(0) printed", "sum printed", "f(0) corrected")
    rows = (*_rows_of_theorem_2(), *_rows_of_theorem_3(), *_rows_of_limits())
    return ((*header, *numbers), *rows)


def _sums(
    title: str, x: str, name: str, axis: list[float], masses: Callable[[float, Form], Floats]
) -> Panel:
    """What the masses of each form add up to; those of a pmf add up to 1."""

    def sums(form: Form) -> Series:
        stroke = Stroke.DOTTED if form is Form.PRINTED else Stroke.SOLID
        label = f"{name}, {form.value}"
        return Series.of_function(label, axis, lambda at: masses(at, form).sum(), stroke, pair=name)

    return Panel(title, x, "Σ f", (sums(Form.PRINTED), sums(Form.CORRECTED)))


def _theorem_3_panels(n: int, width: int, epsilon: float) -> tuple[Panel, Panel]:
    """f(0) of Theorem 3 and of the programs by δ, and the sums of the masses."""
    deltas = [k / 200 for k in range(1, 120)]
    coarse = deltas[::6]
    steps = range(1, width + 1)

    def masses(delta: float, form: Form) -> Floats:
        return bounded_difference(n, width, epsilon, delta, form)

    series = (
        Series.of_function(
            "Theorem 3, printed",
            deltas,
            lambda d: masses(d, Form.PRINTED)[0],
            Stroke.DOTTED,
            pair="Theorem 3",
        ),
        Series.of_function(
            "Theorem 3, corrected", deltas, lambda d: masses(d, Form.CORRECTED)[0], pair="Theorem 3"
        ),
        Series.of_function(
            "(13), shared indicator",
            coarse,
            lambda d: printed(n, steps, epsilon, d)[0],
            Stroke.POINTS,
        ),
        Series.of_function(
            "(13), one for each difference",
            coarse,
            lambda d: per_difference(n, steps, epsilon, d)[0],
            Stroke.POINTS,
        ),
    )
    sums = _sums("sum of the masses", "δ", "Theorem 3", deltas, masses)
    return Panel("f(0) by δ", "δ", "f(0)", series), sums


def closed_forms() -> Sheet:
    """Printed against corrected closed forms."""
    settings = sum(len(deltas_of(*setting)) for setting in BOUNDED)
    remark_3 = _sums(
        "sum of the masses of Remark 3",
        "ε",
        "Remark 3",
        EPSILONS,
        lambda epsilon, form: single_distance(7, 2, epsilon, 0.0, form),
    )
    panels = (*_theorem_3_panels(12, 5, 0.8), remark_3)
    most = max(panels[1].line("Theorem 3, printed").y)
    least = min(panels[2].line("Remark 3, printed").y)
    return Sheet(
        "kadam-errata",
        "Theorem 3 and Remark 3, printed and corrected",
        f"{PAPER}, (30) to (39) and Remark 3",
        "n = 12, μ̄ = 5, ε = 0.8; below: ring of 8, μ̂ = 2, δ = 0",
        panels,
        f"The printed masses of Theorem 3 add up to as much as {most:.3f}, those of Remark 3 to as "
        f"little as {least:.3f}; corrected, both are pmfs and optimal where the list says.",
        (
            "(34) to (36) are not 1/Σ ℓᵢe^{-iε} of the lengths (31) for j = h: the printed masses "
            "add up to more than 1.",
            "(38) says nothing of group b+1 for j < h, and its singleton then breaks δ where a "
            "later group has an element within μ̄ of it. Corrected: the groups of the flat "
            "stretch ahead, and what is left raises the smallest masses; f(0) is the same.",
            "Corrected, f(0) is that of the program with one shared indicator to 10⁻⁹ for b ≤ 3 "
            "and ε ≥ 0.4812; for b ≥ 4 it can break its own δ. An indicator for each difference, "
            "which is what (3) asks for, is never worse and often better.",
            f"Of {len(SINGLE)} settings of Theorem 2 and {settings} of Theorem 3 the list has all "
            "in which the printed form is not the corrected one, and the limits (44) and (48). "
            "The corrected forms are the programs' optimum in each to 10⁻⁹ "
            "(tests/research/test_printed.py).",
        ),
        disagreements(),
    )
