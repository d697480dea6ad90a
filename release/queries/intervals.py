"""Where the true answers of a query lie, from what is published: for report, frames and estimates.

There is one interval of each answer. Where the noise is on the answer it is in codes
(:mod:`release.exact.intervals`). Where it is on sums it is in numbers of the sum or mean itself, in
the unit of the noisy sums, and the noisy sum lies within. Either holds the true answer with its
level, whatever that is: of the rows that are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import AnswerDomain, Codes
from release.exact.intervals import true_answers
from release.exact.mechanism import Mechanism
from release.exact.statistics.mean_intervals import mean_intervals
from release.exact.statistics.mechanism import StatisticMechanism
from release.exact.statistics.sums import NoisySums
from release.queries.on_statistic import OnStatisticQuery
from release.spec.domains import Bins, ends_of_bins
from release.spec.query import PlainQuery, Query

Floats: TypeAlias = NDArray[np.float64]

Ends: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

LEVEL = 0.95

_MILLIONTHS = 10**6


@dataclass(frozen=True, eq=False)
class Interval:
    """The ends of the interval of each cell, both included; shape (cells,) each.

    Attributes:
        low: codes, or numbers where ``is_number``; round a circle it may be the larger code.
        high: as ``low``.
        is_number: whether these are sums or means themselves, and not codes of answers.
    """

    low: Codes | Floats
    high: Codes | Floats
    is_number: bool = False

    def taken(self, places: Sequence[int]) -> Interval:
        """The intervals of some cells."""
        chosen = list(places)
        return Interval(self.low[chosen], self.high[chosen], self.is_number)


def around_answers(
    query: Query, mechanism: Mechanism, codes: Codes, level: float = LEVEL
) -> Interval | None:
    """The intervals of answers with noise on their codes; None where answers have no order."""
    if not isinstance(query, PlainQuery):
        return None
    return in_codes(query.answers, mechanism, codes, level)


def released_interval(
    query: Query, mechanism: Mechanism | StatisticMechanism, outcomes: Codes
) -> Ends | None:
    """The ends of the interval of each cell as tables have them, in the unit of the answers.

    ``outcomes`` is what was drawn, of shape (cells, columns). An interval of bins goes from the
    begin of one to the end of another, and the last one has no end (infinity). Round a circle an
    interval may end below its begin. Means and bins have floats, all others integers. None where
    answers have no order, or are selected or joint.
    """
    declared = getattr(query, "domain", None)
    # Means lie between whole numbers, and the last bin has no end.
    kind = np.float64 if query.kind == "mean" or isinstance(declared, Bins) else np.int64
    if isinstance(mechanism, NoisySums):
        if not isinstance(query, OnStatisticQuery):
            raise TypeError(f"{query.name} has no sums")
        found = around_sums(query, mechanism, outcomes)
        return found.low.astype(kind), found.high.astype(kind)
    if not isinstance(mechanism, Mechanism) or not isinstance(query, PlainQuery):
        return None
    around = in_codes(query.answers, mechanism, outcomes[:, 0])
    if around is None:
        return None
    # Each answer once: a million cells have few.
    lows, of_low = np.unique(around.low, return_inverse=True)
    highs, of_high = np.unique(around.high, return_inverse=True)
    if isinstance(declared, Bins):
        is_real = query.kind == "mean"
        firsts = [low for low, _ in ends_of_bins(declared.bins, lows.tolist(), is_real=is_real)]
        lasts = []
        for _, high in ends_of_bins(declared.bins, highs.tolist(), is_real=is_real):
            lasts.append(math.inf if high is None else high)
    else:
        labels = query.answers.labels
        firsts = [labels[code] for code in lows.tolist()]
        lasts = [labels[code] for code in highs.tolist()]
    return np.array(firsts, dtype=kind)[of_low], np.array(lasts, dtype=kind)[of_high]


def in_codes(
    domain: AnswerDomain, mechanism: Mechanism, codes: Codes, level: float = LEVEL
) -> Interval | None:
    """As :func:`around_answers`, of a domain."""
    found = true_answers(mechanism, domain, codes, level)
    return None if found is None else Interval(*found)


def around_sums(
    query: OnStatisticQuery, mechanism: NoisySums, noisy: Codes, level: float = LEVEL
) -> Interval:
    """The intervals of sums and means with noise on the sums; ``noisy`` has shape (cells, sums)."""
    if mechanism.sums == 1:
        radius = mechanism.noise.radius(level)
        return Interval(noisy[:, 0] - radius, noisy[:, 0] + radius, is_number=True)
    low, high = query.sum_bounds
    lows, highs = mean_intervals(noisy, mechanism.noise, (low, high), level)
    # Outward, so that no digit that is left out makes the interval narrower.
    step = (high - low) / _MILLIONTHS
    lows = low + np.floor((lows - low) / step) * step
    highs = low + np.ceil((highs - low) / step) * step
    return Interval(np.maximum(lows, low), np.minimum(highs, high), is_number=True)


def mean_of_sums(query: OnStatisticQuery, noisy: Codes) -> Floats:
    """The means that two noisy sums make; the middle of the clamp where they say of no row."""
    low, high = query.sum_bounds
    rows = noisy.sum(axis=1) / (high - low)
    shares = noisy[:, 0] / np.where(rows > 0, noisy.sum(axis=1), 1)
    means = low + (high - low) * np.where(rows > 0, shares, 0.5)
    return np.asarray(np.clip(means, low, high), dtype=np.float64)
