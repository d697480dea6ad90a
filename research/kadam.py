"""What the figures of Kadam et al. 2024 have in common: words of the remarks, and small helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from release.noise.solvers.program import Floats
from research.sheet import Panel, Series, Shape

PAPER = "Kadam et al. 2024"
NO_NEIGHBOURHOOD = (
    "The paper does not say which differences this figure is for; here neighbors differ by 1."
)
ONE_SIDED = (
    "The printed laws protect one direction only (differences of one sign). Ours keep both, "
    "which is what neighboring asks for, and so lose more."
)
WRAPS = (
    "The printed squared error is of the noise, Σ η²f(η), not of the wrapped answer. Ours is "
    "what a reader sees, η(N-η) under a uniform prior; noise that wraps is dear, clamped noise "
    "is not."
)
ENDS = (
    "Modular noise makes 0 and n neighbors too; clamped noise need not, and so can beat the "
    "best modular law on ordered answers."
)
EPSILONS = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0]

MATCHED = Fraction(4683, 10_000)
"""The ratio whose two-sided geometric noise has variance 3.38."""


def bars(label: str, masses: Floats, *, dashed: bool = False) -> Series:
    """A series of masses by noise value."""
    return Series.of(label, range(masses.size), masses, dashed=dashed)


def pmf_panel(title: str, series: Iterable[Series]) -> Panel:
    """A panel of pmfs, as bars by noise value."""
    return Panel(title, "η", "f(η)", tuple(series), Shape.BARS)


def panel_by_delta(title: str, deltas: Iterable[float], masses: Callable[[float], Floats]) -> Panel:
    """A panel of the pmf ``masses(δ)`` of every δ."""
    return pmf_panel(title, [bars(f"δ = {delta}", masses(delta)) for delta in deltas])
