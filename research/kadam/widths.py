"""Figures 11 and 12 of Kadam et al. 2024: the error rate by the differences and by δ."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from research.kadam.common import ONE_SIDED, PAPER, RELEASED
from research.printed import single_distance
from research.programs import ours, printed, released
from research.sheet import Panel, Series, Sheet, Stroke

N = 9
WIDTHS = range(1, N + 1)
RELEASED_WIDTHS = (1, 2)
"""With δ > 0; wider ones take half a minute each."""
DELTAS = [k / 40 for k in range(40)]
COARSE = [0.0, 0.1, 0.2, 0.4, 0.6]
"""The δ of a release's line, as its widths few: each point is proved optimal by a search."""

Rate = Callable[[Iterable[int], float, float], float]


def _printed_rate(steps: Iterable[int], epsilon: float, delta: float) -> float:
    return 1 - float(printed(N, steps, epsilon, delta)[0])


def _modular_rate(steps: Iterable[int], epsilon: float, delta: float) -> float:
    return float(ours(N, steps, epsilon, delta).objective)


def _released_rate(steps: Iterable[int], epsilon: float, delta: float) -> float:
    return float(released(N, steps, epsilon, delta).objective)


def _by_width(rate: Rate, epsilon: float, delta: float, width: int) -> float:
    return rate(range(1, width + 1), epsilon, delta)


def _width_panel(title: str, settings: dict[str, tuple[float, float]], shown: str) -> Panel:
    """Error rates by μ̄ of the (ε, δ) of every label; a release's of ``shown`` only."""
    series = []
    for label, (epsilon, delta) in settings.items():
        for name, rate, stroke in (
            ("as printed", _printed_rate, Stroke.DOTTED),
            ("best modular", _modular_rate, Stroke.DASHED),
            ("a release", _released_rate, Stroke.SOLID),
        ):
            if rate is _released_rate and label != shown:
                continue
            by_width = partial(_by_width, rate, epsilon, delta)
            widths = RELEASED_WIDTHS if rate is _released_rate and delta else WIDTHS
            line = Series.of_function(
                f"{name}, {label}", widths, by_width, stroke, marked=True, pair=label
            )
            series.append(line)
    return Panel(title, "μ̄", "error rate", tuple(series))


def figure_11() -> Sheet:
    """The error rate by the width of the differences."""
    by_epsilon = {f"ε = {epsilon:g}": (epsilon, 0.2) for epsilon in (0.5, 1.0, 2.0)}
    by_delta = {f"δ = {delta:g}": (2.0, delta) for delta in (0.0, 0.1, 0.6)}
    panels = (
        _width_panel("(a) δ = 0.2", by_epsilon, "ε = 2"),
        _width_panel("(b) ε = 2", by_delta, "δ = 0"),
    )
    rates = (panels[0].line(f"{name}, ε = 2").at(2) for name in ("as printed", "best modular"))
    as_printed, modular = rates
    release = panels[0].line("a release, ε = 2").at(2)
    return Sheet(
        "kadam-11",
        "error rate by the width of the differences",
        f"{PAPER}, Figure 11",
        "n = 9; differences 1..μ̄ as printed, and ±1..±μ̄",
        panels,
        f"Protecting both signs raises the error rate from {as_printed:.3f} to {modular:.3f} at "
        f"μ̄ = 2, ε = 2, δ = 0.2; a release has {release:.3f}.",
        (
            ONE_SIDED,
            RELEASED,
            "The caption names neither the ε of (a) nor the δ of (b). With both signs every answer "
            "is a neighbor of every other from μ̄ = 5 on, so that the dashed lines end level.",
        ),
    )


def _rates_by_delta(
    label: str, deltas: list[float], rate: Callable[[float, float], float], stroke: Stroke
) -> list[Series]:
    """A line an ε of the error rates ``rate(ε, δ)``."""
    series = []
    for epsilon in (0.5, 1.0, 2.0):
        pair = f"ε = {epsilon:g}"
        by_delta = partial(rate, epsilon)
        series.append(Series.of_function(f"{label}, {pair}", deltas, by_delta, stroke, pair=pair))
    return series


def _release_by_delta(steps: list[int]) -> Series:
    rate = partial(_released_rate, steps, 1.0)
    return Series.of_function("a release, ε = 1", COARSE, rate, marked=True, pair="ε = 1")


def figure_12() -> Sheet:
    """The error rate by δ."""
    near = [1, 2, 3]

    def theorem_2(epsilon: float, delta: float) -> float:
        return float(1 - single_distance(N, 3, epsilon, delta)[0])

    single = (
        *_rates_by_delta("as printed", DELTAS, theorem_2, Stroke.DOTTED),
        *_rates_by_delta("best modular", DELTAS[::2], partial(_modular_rate, [3]), Stroke.DASHED),
        _release_by_delta([3]),
    )
    bounded = (
        *_rates_by_delta("as printed", DELTAS[::2], partial(_printed_rate, near), Stroke.DOTTED),
        *_rates_by_delta("best modular", DELTAS[::2], partial(_modular_rate, near), Stroke.DASHED),
        _release_by_delta(near),
    )
    panels = (
        Panel("(a) single distance, μ̂ = 3", "δ", "error rate", single),
        Panel("(b) bounded differences, μ̄ = 3", "δ", "error rate", bounded),
    )
    as_printed, modular, release = (
        panels[1].line(f"{name}, ε = 1").at(0.2)
        for name in ("as printed", "best modular", "a release")
    )
    return Sheet(
        "kadam-12",
        "error rate by δ",
        f"{PAPER}, Figure 12",
        "n = 9; (a) the difference 3, (b) differences 1, 2, 3",
        panels,
        f"The error rate falls by flat and linear stretches; at δ = 0.2, ε = 1 for three "
        f"differences it is {as_printed:.3f} as printed, {modular:.3f} with both signs, and "
        f"{release:.3f} in a release.",
        (
            ONE_SIDED,
            RELEASED,
            "n = 9, μ̄ = 3 is outside of Theorem 3's condition b + r < μ̄ (3 + 0 < 3), so (b) is "
            "the printed program solved, not the theorem. Flat and linear stretches alternate, "
            "as it says.",
        ),
    )
