"""How near a published answer is to the true one, for every mechanism.

Everything here is under the uniform prior over the true answers, and in codes: a bin is one code,
an hour is one code, and on a circle the shorter way counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import AnswerDomain, Codes, JointDomain, Topology
from release.exact.losses import Loss, LossName, named_loss
from release.exact.mechanism import Mechanism

_MOST_WORK = 4 * 10**6
"""Distinct published answers times possible ones; above it runs are not looked for."""

IN_95_OF_100 = Fraction(95, 100)

_ENDLESS = 2**52
"""A domain of so many answers stands for all integers."""


def error_at_ends(
    mechanism: Mechanism, domain: AnswerDomain | JointDomain
) -> tuple[Fraction, Fraction] | None:
    """The expected absolute error where the true answer is the lowest, and where the highest.

    In codes; those of the parts of a joint answer add up. None where no part has an order.
    """
    if not domain.has_order:
        return None
    lowest, highest = _ends(domain)
    return mechanism.error_at(domain, lowest), mechanism.error_at(domain, highest)


def losses_where(
    mechanism: Mechanism, domain: AnswerDomain | JointDomain, loss: Loss
) -> tuple[Fraction, Fraction, Fraction] | None:
    """The expected loss at the lowest, the highest and the worst true answer.

    None where no part of the answer has an order: there all true answers fare alike.
    """
    if not domain.has_order:
        return None
    lowest, highest = (mechanism.expected_loss_at(loss, domain, code) for code in _ends(domain))
    return lowest, highest, max(lowest, highest, mechanism.worst_loss(loss, domain)[1])


def _ends(domain: AnswerDomain | JointDomain) -> tuple[int, int]:
    """The codes of the lowest and the highest true answer.

    Of all integers that fit in a file both are in the middle, because no table reaches the ends.
    """
    return (0, domain.size - 1) if domain.size < _ENDLESS else (domain.size // 2,) * 2


def far_error(mechanism: Mechanism, domain: AnswerDomain) -> tuple[int, Fraction] | None:
    """A large error, in codes, and the chance of a larger one, under the uniform prior.

    Large is a tenth of the domain or ten standard deviations of the error, whichever is less. None
    where answers have no distances.
    """
    if domain.topology is Topology.NOMINAL:
        return None
    squared = Loss(LossName.SQUARED.value, np.array([0, 1], dtype=np.int64))
    # Modular noise reads a cost for each noise value, and the others only the name.
    if not domain.is_line or mechanism.modular_noise is not None:
        squared = named_loss(LossName.SQUARED, domain.topology, domain.size)
    deviation = math.sqrt(float(mechanism.expected_loss(squared, domain)))
    large = max(1, int(min(domain.size / 10, 10 * deviation)))
    return large, 1 - mechanism.chance_within(domain, large)


def loss_of_guess(loss: LossName, domain: AnswerDomain) -> float | None:
    """The expected loss of the best answer given without any table, under the uniform prior.

    None for a loss of noise, which a guess has not.
    """
    size = float(domain.size)
    if loss is LossName.NOISE_SQUARED:
        return None
    if loss is LossName.ERROR_RATE or domain.topology is Topology.NOMINAL:
        return 1 - 1 / size
    # Both on a line from its middle and on a circle from anywhere.
    return size / 4 if loss is LossName.ABSOLUTE else (size**2 - 1) / 12


def radius_of(
    mechanism: Mechanism, domain: AnswerDomain | JointDomain, share: Fraction = IN_95_OF_100
) -> int | None:
    """The least number of codes within which an answer is with chance ``share``.

    None where some part of the answer has no distances.
    """
    if Topology.NOMINAL in domain.topologies:
        return None
    # Bisection, with the invariant that ``high`` codes are enough and ``low`` codes are not.
    low, high = -1, max(domain.group.moduli) - 1
    while low + 1 < high:
        middle = (low + high) // 2
        if mechanism.chance_within(domain, middle) >= share:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True)
class Likely:
    """Of each of some published answers, what its true answer may be in one part.

    Attributes:
        first: where the shortest run of true answers with the share begins.
        last: where it ends; on a circle that may be the smaller code.
        chance: the chance that the published answer is true.
    """

    first: Codes
    last: Codes
    chance: NDArray[np.float64]


def likely_answers(
    mechanism: Mechanism,
    domain: AnswerDomain | JointDomain,
    codes: Codes,
    share: Fraction = IN_95_OF_100,
) -> list[Likely] | None:
    """The true answers for which each of ``codes`` was published, with chance ``share``, by part.

    None where that takes too long. Answers that the ends of a wide domain do not touch take the
    time of one answer.
    """
    narrow, inner = mechanism.narrowed(codes)
    published, places = np.unique(inner, return_inverse=True)
    if published.size * narrow.answers > _MOST_WORK:
        return None
    sizes = domain.group.moduli if narrow is mechanism else (narrow.answers,)
    ends = np.zeros((len(sizes), 2, published.size), dtype=np.int64)
    chances = np.zeros((len(sizes), published.size))
    for place, code in enumerate(published.tolist()):
        joint = narrow.likelihood_of(code).reshape(sizes)
        own_codes = np.unravel_index(code, joint.shape)
        for number, part in enumerate(domain.parts):
            rest = tuple(axis for axis in range(joint.ndim) if axis != number)
            likelihood = joint.sum(axis=rest)
            ends[number, :, place] = shortest_run(likelihood, share, part.topology)
            chances[number, place] = likelihood[own_codes[number]] / likelihood.sum()
    places, moved = places.reshape(-1), codes - inner
    likely = []
    for own_ends, own_chances in zip(ends, chances, strict=True):
        first, last = own_ends[:, places] + moved
        likely.append(Likely(first, last, own_chances[places]))
    return likely


def shortest_run(
    likelihood: NDArray[np.float64], share: Fraction, topology: Topology
) -> tuple[int, int]:
    """The shortest run of codes that has ``share`` of the sum of ``likelihood``.

    The first and the last code of the run; on a circle the first may be the larger. Where nothing
    shorter is enough it is (0, size - 1).
    """
    size = likelihood.size
    # Two laps of a circle hold every run, also those across its end.
    is_circle = topology is Topology.CYCLIC
    laps = np.tile(likelihood, 2) if is_circle else likelihood
    sums = np.concatenate([[0.0], np.cumsum(laps)])
    # A little less than the share: the sums are rounded.
    enough = float(share) * float(likelihood.sum()) * (1 - 1e-12)
    starts = np.arange(size)
    ends = np.searchsorted(sums, sums[:size] + enough)
    lengths = np.where(ends < sums.size, ends - starts, 2 * size)
    first = int(lengths.argmin())
    if lengths[first] >= size:
        return 0, size - 1
    return first, (first + int(lengths[first]) - 1) % size
