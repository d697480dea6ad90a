"""Definitions 5 to 7 and Lemma 1 of Kadam et al. 2024: sets of differences, and what they cost."""

from __future__ import annotations

from functools import partial

from research.kadam.common import ONE_SIDED, PAPER
from research.programs import ours, printed
from research.sheet import Panel, Series, Sheet, Stroke

N = 9
SETS = {
    "single distance {3}": (3,),
    "bounded {1, 2, 3}": (1, 2, 3),
    "arbitrary {1, 4, 5}": (1, 4, 5),
    "bounded {1, …, 5}": (1, 2, 3, 4, 5),
}
PLACES = [k / 10 for k in range(2, 31)]


def _printed_rate(steps: tuple[int, ...], epsilon: float) -> float:
    return 1 - float(printed(N, steps, epsilon, 0.0)[0])


def _rate(steps: tuple[int, ...], epsilon: float) -> float:
    return float(ours(N, steps, epsilon, 0.0).objective)


def neighborhoods() -> Sheet:
    """The error rate by ε for four sets, one-sided and with both signs."""
    one_sided, both = [], []
    for label, steps in SETS.items():
        rate = partial(_printed_rate, steps)
        one_sided.append(Series.of_function(label, PLACES, rate, Stroke.DOTTED, pair=label))
        both.append(Series.of_function(f"± {label}", PLACES, partial(_rate, steps), pair=label))
    panels = (
        Panel("(a) as defined: one-sided", "ε", "error rate", tuple(one_sided)),
        Panel("(b) both signs", "ε", "error rate", tuple(both)),
    )
    subset, everything = (both[place].at(1.0) for place in (2, 3))
    return Sheet(
        "kadam-neighborhoods",
        "sets of differences",
        f"{PAPER}, Definitions 5 to 7 and Lemma 1",
        f"n = {N}, δ = 0, error rate",
        panels,
        f"A subset never costs more than the bounded set around it: at ε = 1 ±{{1, 4, 5}} has an "
        f"error rate of {subset:.4f}, ±{{1, …, 5}} of {everything:.4f}.",
        (
            ONE_SIDED,
            "Lemma 1 orders the lines: noise for 1..μ̄ satisfies the guarantee for every subset.",
            "Lemma 2 is drawn by kadam-01.",
        ),
    )
