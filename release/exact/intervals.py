"""Intervals that hold a true answer with a stated chance, whatever the true answer is.

For each true answer q the outcomes are taken by falling P(o|q)/w(o), with w(o) the sum of P(o|q)
over all q, until they have the level: its likely outcomes. The interval of an outcome runs from the
first to the last q that it is a likely outcome of (Pratt 1961). So it holds every q with the level,
and of all sets that do, these have the least mean size under an even prior. Of more answers than a
table can have, the interval is the outcome and the noise's own quantile on both sides: clamping
moves no outcome away from a truth between the ends. Everything here is in codes, and follows from
the mechanism alone.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import AnswerDomain, Codes, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import Mechanism

Floats: TypeAlias = NDArray[np.float64]

MOST_ANSWERS = 2000
"""Of more answers no table is made, which has their square."""

_ROUNDING = 1e-12
"""Masses are rounded: likely outcomes have so much more than the level, and never less."""


def true_answers(
    mechanism: Mechanism, domain: AnswerDomain, codes: Codes, level: float
) -> tuple[Codes, Codes] | None:
    """The first and the last true answer of the interval of each published code.

    Round a circle the first may be the larger code. None where answers have no order, or are too
    many and have no noise on the integers.

    Args:
        mechanism: with noise on the answer, of one part.
        domain: its answers.
        codes: published ones; shape (cells,).
        level: above 0 and below 1.
    """
    if domain.topology is Topology.NOMINAL:
        return None
    narrow, inner = mechanism.narrowed(codes)
    if narrow.answers <= MOST_ANSWERS:
        first, last = _runs(narrow, domain.topology, level)
        return first[inner] + (codes - inner), last[inner] + (codes - inner)
    if not isinstance(mechanism, IntegerMechanism):
        return None
    radius = _radius(mechanism, level)
    return np.maximum(codes - radius, 0), np.minimum(codes + radius, domain.size - 1)


def reach(mechanism: Mechanism, domain: AnswerDomain, level: float) -> int | None:
    """How far from a published answer its interval reaches at most; None where there is none."""
    if domain.topology is Topology.NOMINAL:
        return None
    narrow, _ = mechanism.narrowed(np.zeros(1, dtype=np.int64))
    if narrow.answers > MOST_ANSWERS:
        return _radius(mechanism, level) if isinstance(mechanism, IntegerMechanism) else None
    first, last = _runs(narrow, domain.topology, level)
    codes = np.arange(narrow.answers)
    if domain.topology is Topology.CYCLIC:
        size = narrow.answers
        back, on = (codes - first) % size, (last - codes) % size
        # The half of the circle is as far as anything is.
        return min(int(max(back.max(), on.max())), size // 2)
    return int(max((codes - first).max(), (last - codes).max()))


def _radius(mechanism: IntegerMechanism, level: float) -> int:
    # The tables of the ends may move an outcome away from the truth.
    farthest = max((abs(shift) for _, shift in (*mechanism.low, *mechanism.high)), default=0)
    return mechanism.noise.radius(level) + farthest


@lru_cache(maxsize=256)
def _runs(mechanism: Mechanism, topology: Topology, level: float) -> tuple[Codes, Codes]:
    if isinstance(mechanism, IntegerMechanism):
        return runs_of(mechanism.table(), topology, level)
    rows = [mechanism.probabilities(code) for code in range(mechanism.answers)]
    return runs_of(np.stack(rows), topology, level)


def runs_of(masses: Floats, topology: Topology, level: float | Fraction) -> tuple[Codes, Codes]:
    """The first and the last true answer of the interval of each outcome; shape (answers,) each.

    ``masses`` are P(published | true), shape (true answers, published).
    """
    is_likely = _likely(masses, float(level))
    # An outcome that is likely of no answer has the one that it speaks for most; one that never
    # occurs has itself.
    nowhere = np.flatnonzero(~is_likely.any(axis=0))
    speaks_for = np.where(masses.any(axis=0), masses.argmax(axis=0), np.arange(len(masses)))
    is_likely[speaks_for[nowhere], nowhere] = True
    if topology is Topology.CYCLIC:
        return _arcs(is_likely)
    first = is_likely.argmax(axis=0)
    last = len(masses) - 1 - is_likely[::-1].argmax(axis=0)
    return first.astype(np.int64), last.astype(np.int64)


def _likely(masses: Floats, level: float) -> NDArray[np.bool_]:
    """Whether an outcome is a likely one of a true answer; shape (true answers, published)."""
    size = len(masses)
    weights = masses.sum(axis=0)
    shares = masses / np.where(weights > 0, weights, 1.0)
    outcomes = np.arange(size)
    is_likely = np.zeros(masses.shape, dtype=bool)
    for true in range(size):
        # Rounded, so that outcomes that fare alike tie: then the nearer goes first, and the lower.
        keys = outcomes, np.abs(outcomes - true), -np.round(shares[true], 12)
        order = np.lexsort(keys)
        enough = np.searchsorted(np.cumsum(masses[true][order]), level + _ROUNDING)
        is_likely[true, order[: enough + 1]] = True
    return is_likely


def _arcs(is_likely: NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """For each outcome the shortest arc that holds all answers that it is likely of."""
    size = len(is_likely)
    first, last = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for outcome in range(size):
        held = np.flatnonzero(is_likely[:, outcome])
        gaps = np.diff(held, append=held[0] + size)
        widest = int(gaps.argmax())
        # The arc is what the widest gap leaves: it begins behind the gap, and ends before it.
        first[outcome] = held[(widest + 1) % held.size]
        last[outcome] = held[widest]
    return first, last
