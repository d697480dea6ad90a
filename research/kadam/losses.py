"""Figure 5 of Kadam et al. 2024: loss against ε at a fixed δ."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from release.exact.losses import LossName
from research.kadam.common import (
    AT_BEST,
    EPSILONS,
    NO_NEIGHBOURHOOD,
    ONE_SIDED,
    PAPER,
    RELEASED,
    WRAPS,
)
from research.kadam.rivals import FAMILIES, independent_rate, least_count_rate, least_loss
from research.lines import refined
from research.programs import ours, printed, released
from research.sheet import Panel, Series, Sheet, Stroke

PRINTED, MODULAR, RELEASE = "as printed, one-sided", "best modular, ±1", "a release, ±1"
FINE = [k / 8 for k in range(2, 25)]
"""The ε of the rivals."""


def _printed_squared(n: int, delta: float, epsilon: float) -> float:
    masses = printed(n, [1], epsilon, delta, LossName.NOISE_SQUARED)
    return float(np.arange(n + 1) ** 2 @ masses)


def _printed_rate(n: int, delta: float, epsilon: float) -> float:
    return 1 - float(printed(n, [1], epsilon, delta)[0])


def _modular(n: int, delta: float, name: LossName, epsilon: float) -> float:
    return float(ours(n, [1], epsilon, delta, name).objective)


def _released(n: int, delta: float, name: LossName, epsilon: float) -> float:
    return float(released(n, [1], epsilon, delta, name).objective)


def _three_lines(n: int, delta: float, name: LossName) -> tuple[Series, ...]:
    as_printed = _printed_squared if name is LossName.SQUARED else _printed_rate
    places = EPSILONS
    return (
        Series.of(
            PRINTED, *refined(partial(as_printed, n, delta), places), Stroke.DOTTED, pair="ours"
        ),
        Series.of(
            MODULAR, *refined(partial(_modular, n, delta, name), places), Stroke.DASHED, pair="ours"
        ),
        Series.of_function(
            RELEASE, places, partial(_released, n, delta, name), marked=True, pair="ours"
        ),
    )


def _rival_lines(n: int, delta: float, *, squared: bool) -> list[Series]:
    lines = []
    for label in FAMILIES if squared else ("geometric, clamped", "discrete Gaussian, clamped"):
        least = partial(least_loss, label, n, delta, squared=squared)
        lines.append(Series.of(label, *refined(least, FINE)))
    return lines


def figure_5() -> Sheet:
    """Loss against ε at a fixed δ, beside the mechanisms of the literature."""
    counts = partial(least_count_rate, 0.5)
    squared = (*_three_lines(8, 0.3, LossName.SQUARED), *_rival_lines(8, 0.3, squared=True))
    errors = (
        *_three_lines(7, 0.5, LossName.ERROR_RATE),
        *_rival_lines(7, 0.5, squared=False),
        Series.of_function("count mechanism", EPSILONS, counts),
        # With its corner, where e^ε/(e^ε + n) reaches δ.
        Series.of_function(
            "data-independent", sorted({*FINE, math.log(7)}), partial(independent_rate, 7, 0.5)
        ),
    )
    panels = (
        Panel("(a) squared error, n = 8, δ = 0.3", "ε", "mean squared error", squared, log=True),
        Panel("(b) error rate, n = 7, δ = 0.5", "ε", "error rate", errors),
    )
    modular, clamped, release = (
        panels[0].line(label).at(1.0) for label in (MODULAR, "geometric, clamped", RELEASE)
    )
    return Sheet(
        "kadam-05",
        "loss against ε at fixed δ",
        f"{PAPER}, Figure 5",
        "Neighbors differ by 1; probabilistic δ",
        panels,
        f"At ε = 1 the mean squared error of the best modular noise is {modular:.3f}, above "
        f"{clamped:.3f} of clamped geometric noise; a release has {release:.3f}.",
        (NO_NEIGHBOURHOOD, ONE_SIDED, WRAPS, RELEASED, AT_BEST),
    )
