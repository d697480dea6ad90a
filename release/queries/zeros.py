"""How many cells with a published answer above 0 are truly 0, estimated from public files alone.

An interval holds its true answer in 95 of 100 draws, whatever that is. Among cells that were picked
because they are high it holds less often, and where nearly all true answers are 0 most of those are
noise. How the true answers are distributed is estimated from all published ones and the public
mechanism, by the EM algorithm for mixing distributions (Laird 1978, *Nonparametric maximum
likelihood estimation of a mixing distribution*). That costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import Mechanism
from release.queries.intervals import LEVEL, around_answers
from release.spec.query import PlainQuery, Query

Floats: TypeAlias = NDArray[np.float64]

FEWEST_CELLS = 5_000
"""Fewer cells say too little of how true answers are distributed."""

_MOST_ANSWERS = 600
"""Of tables that are larger the estimate would take seconds."""

_STEPS = 400
_ALL_BUT = 1 - 1e-6


@dataclass(frozen=True)
class Zeros:
    """The cells whose interval begins above 0, shares being estimates.

    Attributes:
        cells: their number.
        zero: the share of them of which the true answer is 0.
        held: the share of them of which the interval holds the true answer.
    """

    cells: int
    zero: float
    held: float

    @property
    def sentence(self) -> str | None:
        """The shares for readers; None where the intervals hold about as often as they say."""
        if self.held >= 0.9:
            return None
        return (
            f"Of the {self.cells:,} cells with an interval above 0 about {self.zero:.0%} are truly "
            f"0, and about {self.held:.0%} of these intervals hold the true answer (estimated from "
            "all published answers)."
        )


def zeros_of(query: Query, mechanism: Mechanism, codes: Codes) -> Zeros | None:
    """What the published ``codes``, shape (cells,), say of those that look larger than 0.

    None where no answer looks larger, and where :func:`chances_of_zero` has no estimate.
    """
    found = _posterior(query, mechanism, codes)
    around = around_answers(query, mechanism, codes)
    if found is None or around is None:
        return None
    above = around.low > 0
    if not above.any():
        return None
    last = len(found.posterior) - 1
    lows, highs = np.minimum(around.low[above], last), np.minimum(around.high[above], last)
    posterior = found.posterior[:, found.places[above]]
    sums = np.concatenate([np.zeros((1, posterior.shape[1])), np.cumsum(posterior, axis=0)])
    cells = np.arange(posterior.shape[1])
    held = sums[highs + 1, cells] - sums[lows, cells]
    # Large answers are one outcome, of which no more is known than what holds of any answer.
    held = np.where(found.is_large[above], LEVEL, held)
    return Zeros(int(above.sum()), float(posterior[0].mean()), float(held.mean()))


def chances_of_zero(query: Query, mechanism: Mechanism, codes: Codes) -> Floats | None:
    """The estimated chance of each cell that its true answer is 0; shape (cells,).

    None of fewer than :data:`FEWEST_CELLS` cells, of answers that do not begin at 0, and of noise
    that is too wide for a table.
    """
    found = _posterior(query, mechanism, codes)
    return None if found is None else found.posterior[0, found.places]


@dataclass(frozen=True, eq=False)
class _Posterior:
    """What is known of each cell.

    Attributes:
        posterior: P(true | published), shape (true answers, outcomes).
        places: the outcome of each cell.
        is_large: whether that stands for all that are larger too.
    """

    posterior: Floats
    places: Codes
    is_large: NDArray[np.bool_]


def _posterior(query: Query, mechanism: Mechanism, codes: Codes) -> _Posterior | None:
    if len(codes) < FEWEST_CELLS or not isinstance(query, PlainQuery):
        return None
    domain = query.answers
    if domain.topology is not Topology.ORDERED or int(domain.labels[0]) != 0:
        return None
    narrow, last = _near_zero(mechanism)
    if narrow.answers > _MOST_ANSWERS:
        return None
    table = np.array([narrow.probabilities(code) for code in range(narrow.answers)])
    # All outcomes from the last one on are one.
    table = np.concatenate([table[:, :last], table[:, last:].sum(axis=1, keepdims=True)], axis=1)
    places = np.minimum(codes, last)
    counts = np.bincount(places, minlength=last + 1)
    is_large = (places == last) & (narrow.answers < mechanism.answers)
    return _Posterior(_estimated(table, counts), places, is_large)


def _near_zero(mechanism: Mechanism) -> tuple[Mechanism, int]:
    """The mechanism of the answers near 0, and the outcome from which on all are taken for one.

    Only answers that are far from the last of them can be published below that outcome, so that
    the last one stands for all that are larger.
    """
    if not isinstance(mechanism, IntegerMechanism):
        return mechanism, mechanism.answers - 1
    ends = mechanism.low_length + mechanism.high_length
    last = 2 * mechanism.noise.radius(_ALL_BUT) + ends
    if mechanism.size <= 2 * last:
        return mechanism, mechanism.size - 1
    return IntegerMechanism(mechanism.noise, 2 * last, mechanism.low, mechanism.high), last


def _estimated(table: Floats, counts: Codes) -> Floats:
    """P(true | published) under the distribution of true answers that fits ``counts`` best."""
    prior = np.full(len(table), 1 / len(table))
    for _ in range(_STEPS):
        expected = prior @ table
        prior *= table @ (counts / np.maximum(expected, 1e-300)) / counts.sum()
    joint = prior[:, None] * table
    posterior: Floats = joint / np.maximum(joint.sum(axis=0), 1e-300)
    return posterior
