"""Figure 7 of Kadam et al. 2024: the least δ at a fixed loss, by (15)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from release.exact.losses import LossName
from release.spec.mechanisms import BEST
from research.kadam.common import (
    AT_BEST,
    NO_NEIGHBOURHOOD,
    ONE_SIDED,
    PAPER,
    RELEASED,
    WRAPS,
)
from research.kadam.losses import MODULAR, PRINTED, RELEASE
from research.kadam.rivals import (
    FAMILIES,
    independent_delta,
    least_count_delta,
    least_rival_delta,
)
from research.lines import corners, refined, root
from research.printed import sd_delta, sd_jumps
from research.programs import least_delta, released
from research.sheet import Panel, Series, Sheet, Stroke

PLACES = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0]
FINE = [k / 40 for k in range(10, 121)]
RELEASED_PLACES = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5]
STEPS = 128
"""A release's δ is a multiple of one part in so many."""


def least_released(n: int, cap: float, name: LossName, epsilon: float) -> float:
    """The least δ, a multiple of 1/128, with which a release loses at most ``cap``."""
    low, high = -1, STEPS
    # The loss falls as δ grows; ``low`` is too little, ``high`` (δ = 1) enough. With a
    # probabilistic δ `best` is the channel, which has no rival to be compared with here.
    while low + 1 < high:
        middle = (low + high) // 2
        best = released(n, [1], epsilon, middle / STEPS, name, "channel" if middle else BEST)
        low, high = (low, middle) if float(best.objective) <= cap else (middle, high)
    return high / STEPS


def _pure_from(n: int, cap: float, name: LossName) -> float:
    """The ε from which on a release needs no δ."""
    return root(
        lambda epsilon: float(released(n, [1], round(epsilon, 6), 0.0, name).objective) - cap,
        0.25,
        3.0,
    )


def _line(label: str, least: Callable[[float], float], stroke: Stroke) -> Series:
    return Series.of(label, *corners(*refined(least, PLACES)), stroke, pair="ours")


def _release_line(n: int, cap: float, name: LossName) -> Series:
    begins = _pure_from(n, cap, name)
    places = [place for place in RELEASED_PLACES if place < begins]
    deltas = [least_released(n, cap, name, epsilon) for epsilon in places]
    # From there on 0, up to the end of the axis.
    x, y = [*places, begins, PLACES[-1]], [*deltas, 0.0, 0.0]
    return Series.of(RELEASE, x, y, marked=True, pair="ours")


def corollary_1(n: int, rate: float) -> Series:
    """The printed curve with its jumps where (25) has them."""
    jumps = [epsilon for epsilon in sd_jumps(n, rate) if PLACES[0] < epsilon < PLACES[-1]]
    x, y = [], []
    for epsilon in sorted({*FINE, *jumps}):
        if epsilon in jumps:
            # The section that ends here, then the one that begins.
            x.append(epsilon)
            y.append(sd_delta(n, 1, epsilon * (1 - 1e-9), rate))
        x.append(epsilon)
        y.append(sd_delta(n, 1, epsilon, rate))
    return Series.of(PRINTED, *corners(x, y), Stroke.DOTTED, pair="ours")


def _rivals(n: int, cap: float, labels: list[str], *, squared: bool) -> list[Series]:
    lines = []
    for label in labels:
        least = partial(least_rival_delta, label, n, cap, squared=squared)
        lines.append(Series.of(label, *corners(*refined(least, FINE[::5]))))
    return lines


def _squared_panel(n: int, cap: float) -> Panel:
    as_printed = partial(least_delta, n, [1], cap=cap, name=LossName.NOISE_SQUARED, directed=True)
    both = partial(least_delta, n, [1], cap=cap, name=LossName.SQUARED, directed=False)
    series = (
        _line(PRINTED, as_printed, Stroke.DOTTED),
        _line(MODULAR, both, Stroke.DASHED),
        _release_line(n, cap, LossName.SQUARED),
        *_rivals(n, cap, list(FAMILIES), squared=True),
    )
    return Panel(f"(a) mean squared error {cap}, n = {n}", "ε", "δ", series)


def _errors_panel(n: int, cap: float) -> Panel:
    both = partial(least_delta, n, [1], cap=cap, name=LossName.ERROR_RATE, directed=False)
    jump = math.log((1 - cap) * n / cap)
    independent = [independent_delta(n, cap, epsilon) for epsilon in (0.25, jump * 0.9999, jump)]
    labels = ["geometric, clamped", "discrete Gaussian, clamped"]
    series = (
        corollary_1(n, cap),
        _line(MODULAR, both, Stroke.DASHED),
        _release_line(n, cap, LossName.ERROR_RATE),
        *_rivals(n, cap, labels, squared=False),
        Series.of("count mechanism", *corners(*refined(partial(least_count_delta, cap), PLACES))),
        Series.of("data-independent", [0.25, jump, jump, 3.0], [*independent, 0.0]),
    )
    return Panel(f"(b) error rate {cap}, n = {n}", "ε", "δ", series)


def figure_7() -> Sheet:
    """δ against ε at a fixed loss: (15)."""
    panels = (_squared_panel(8, 0.6101), _errors_panel(7, 0.3))
    modular, release, gaussian = (
        panels[0].line(label).at(1.0) for label in (MODULAR, RELEASE, "discrete Gaussian, clamped")
    )
    return Sheet(
        "kadam-07",
        "δ against ε at equal loss, (15)",
        f"{PAPER}, Figure 7",
        "Neighbors differ by 1; probabilistic δ",
        panels,
        f"For a mean squared error of 0.6101 at ε = 1 the best modular noise needs δ = "
        f"{modular:.3f}, a clamped Gaussian {gaussian:.3f}, and a release {release:.3f}.",
        (
            NO_NEIGHBOURHOOD,
            ONE_SIDED,
            WRAPS,
            RELEASED + f" Its δ is the least multiple of 1/{STEPS} that is enough.",
            AT_BEST,
            "The printed line of (b) is Corollary 1, with its jumps at the roots of (25). The "
            "lines of (15) are halved where they change, until a jump is 0.002 wide.",
        ),
    )
