"""How near to the true answer a published one is: of one law, or of a law for each answer.

Everything here is under the uniform prior over the true answers, and in codes: a level is one code,
an hour is one code, of a circle the shorter way counts.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from release.exact.channel import Channel, has_order
from release.exact.domain import AnswerDomain, Codes, JointDomain, Topology
from release.exact.losses import probability_within
from release.exact.pmf import Law

IN_95_OF_100 = Fraction(95, 100)


def chance_within(
    noise: Law | Channel, domain: AnswerDomain | JointDomain, radius: int
) -> Fraction:
    """The chance that each part of an answer is at most ``radius`` codes off."""
    if isinstance(noise, Law):
        return probability_within(noise, domain.parts, radius)
    rows, size = noise.rows, noise.answers
    near = sum(int(rows[q, max(0, q - radius) : q + radius + 1].sum()) for q in range(size))
    return Fraction(near, size * noise.total)


def error_at_ends(
    noise: Law | Channel, domain: AnswerDomain | JointDomain
) -> tuple[Fraction, Fraction] | None:
    """The expected absolute error where the true answer is the lowest, and where the highest.

    In codes; those of the parts of a joint answer add up. None where no part has an order.
    """
    if not has_order(domain):
        return None
    if isinstance(noise, Channel):
        codes = np.arange(noise.answers, dtype=np.int64)
        lowest = _mean(noise.rows[0], codes, noise.total)
        return lowest, _mean(noise.rows[-1], codes[::-1], noise.total)
    low = high = Fraction(0)
    moves = noise.group.coordinates(np.arange(noise.group.size))
    for part, moved in zip(domain.parts, moves, strict=True):
        # From the lowest answer noise η leads to η; from the highest it wraps round to η - 1.
        low += _mean(noise.weights, _apart(part, moved), noise.total)
        high += _mean(noise.weights, _apart(part, -moved % part.size), noise.total)
    return low, high


def _apart(part: AnswerDomain, moved: Codes) -> Codes:
    """How far off an answer at an end is that was moved inwards, by the topology."""
    if part.topology is Topology.CYCLIC:
        return np.minimum(moved, part.size - moved)
    return np.minimum(moved, 1) if part.topology is Topology.NOMINAL else moved


def _mean(weights: NDArray[Any], costs: Codes, total: int) -> Fraction:
    return Fraction(int((weights.astype(object) * costs.astype(object)).sum()), total)


def radius_of(
    noise: Law | Channel, domain: AnswerDomain | JointDomain, share: Fraction = IN_95_OF_100
) -> int | None:
    """The least number of codes within which an answer is with chance ``share``.

    None where some part of the answer has no distances.
    """
    if any(part.topology is Topology.NOMINAL for part in domain.parts):
        return None
    low, high = -1, max(part.size for part in domain.parts) - 1
    while low + 1 < high:
        middle = (low + high) // 2
        if chance_within(noise, domain, middle) >= share:
            high = middle
        else:
            low = middle
    return high


def likely_around(
    noise: Law | Channel, domain: AnswerDomain, code: int, share: Fraction = IN_95_OF_100
) -> tuple[int, int] | None:
    """The shortest run of true answers that ``code`` was published for, with chance ``share``.

    The first and the last code of it; on a circle the first may be the larger. None where answers
    have no order, or where it is all of them.
    """
    if domain.topology is Topology.NOMINAL:
        return None
    size = domain.size
    if isinstance(noise, Channel):
        column = noise.rows[:, code].astype(np.float64)
    else:
        column = noise.to_floats()[(code - np.arange(size)) % size]
    round_ = domain.topology is Topology.CYCLIC
    sums = np.concatenate([[0.0], np.cumsum(np.tile(column, 2) if round_ else column)])
    wanted = float(share) * float(column.sum()) * (1 - 1e-12)
    starts = np.arange(size)
    ends = np.searchsorted(sums, sums[:size] + wanted)
    lengths = np.where(ends < sums.size, ends - starts, 2 * size)
    first = int(lengths.argmin())
    if lengths[first] >= size:
        return None
    return first, (first + int(lengths[first]) - 1) % size
