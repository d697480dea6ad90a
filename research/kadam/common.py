"""What the figures of Kadam et al. 2024 have in common: words of the remarks, and small helpers.

A trade-off has three lines of one hue: *as printed* (one-sided sensitivity), *best modular* (both
signs, noise that wraps) and *a release* (what ``mechanism: best`` takes for answers in order).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from release.noise.solvers.program import Floats
from research.sheet import Panel, Series, Shape, Stroke

PAPER = "Kadam et al. 2024"
NO_NEIGHBOURHOOD = (
    "The paper does not say which differences this figure is for; here neighbors differ by 1."
)
ONE_SIDED = (
    "What is printed protects one direction only (differences of one sign). The other lines "
    "protect both, which is what neighboring asks for, and so lose more."
)
WRAPS = (
    "The printed squared error is of the noise, Σ η²f(η), not of the wrapped answer. The other "
    "lines show what a reader sees; for modular noise that is η(N-η) under a uniform prior."
)
RELEASED = (
    "*A release* is what `mechanism: best` takes now for answers 0..n in order, with the same "
    "probabilistic guarantee: a channel, a pmf for each true answer. Modular noise makes 0 and n "
    "neighbors; a channel need not."
)
AT_BEST = (
    "Rivals are at their best: the least value over a fine grid of their parameter, by their own "
    "probabilistic δ after clamping."
)
EPSILONS = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0]

MATCHED = Fraction(4683, 10_000)
"""The ratio whose two-sided geometric noise has variance 3.38."""


def bars(label: str, masses: Floats, stroke: Stroke = Stroke.SOLID, *, pair: str = "") -> Series:
    """A series of masses by noise value."""
    return Series.of(label, range(masses.size), masses, stroke, pair=pair)


def pmf_panel(title: str, series: Iterable[Series]) -> Panel:
    """A panel of pmfs, as bars by noise value."""
    return Panel(title, "η", "f(η)", tuple(series), Shape.BARS)


def panel_by_delta(title: str, deltas: Iterable[float], masses: Callable[[float], Floats]) -> Panel:
    """A panel of the pmf ``masses(δ)`` of every δ."""
    return pmf_panel(title, [bars(f"δ = {delta}", masses(delta)) for delta in deltas])
