"""How near a published answer is to the true one, for every mechanism.

Everything here is under the uniform prior over the true answers, and in codes: a bin is one code,
an hour is one code, and on a circle the shorter way counts.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from release.exact.domain import AnswerDomain, JointDomain, Topology
from release.exact.losses import Loss, LossName, named_loss
from release.exact.mechanism import Mechanism

_MOST_LISTED = 10**6
"""Of a wider domain no list of all answers is made."""

IN_95_OF_100 = Fraction(95, 100)


def error_at_ends(
    mechanism: Mechanism, domain: AnswerDomain | JointDomain
) -> tuple[Fraction, Fraction] | None:
    """The expected absolute error where the true answer is the lowest, and where the highest.

    In codes; those of the parts of a joint answer add up. None where no part has an order.
    """
    if not domain.has_order:
        return None
    return mechanism.error_at(domain, 0), mechanism.error_at(domain, domain.size - 1)


def losses_where(
    mechanism: Mechanism, domain: AnswerDomain | JointDomain, loss: Loss
) -> tuple[Fraction, Fraction, Fraction] | None:
    """The expected loss at the lowest, the highest and the worst true answer.

    None where no part of the answer has an order: there all true answers fare alike.
    """
    if not domain.has_order:
        return None
    lowest = mechanism.expected_loss_at(loss, domain, 0)
    highest = mechanism.expected_loss_at(loss, domain, domain.size - 1)
    return lowest, highest, max(lowest, highest, mechanism.worst_loss(loss, domain)[1])


def far_error(mechanism: Mechanism, domain: AnswerDomain) -> tuple[int, Fraction] | None:
    """A large error, in codes, and the chance of a larger one, under the uniform prior.

    Large is a tenth of the domain or ten standard deviations of the error, whichever is less. None
    where answers have no distances.
    """
    if domain.topology is Topology.NOMINAL:
        return None
    squared = Loss(LossName.SQUARED.value, np.array([0, 1], dtype=np.int64))
    if not domain.is_line:
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
    if any(part.topology is Topology.NOMINAL for part in domain.parts):
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


def likely_around(
    mechanism: Mechanism, domain: AnswerDomain, code: int, share: Fraction = IN_95_OF_100
) -> tuple[int, int] | None:
    """The shortest run of true answers for which ``code`` was published, with chance ``share``.

    The first and the last code of the run; on a circle the first may be the larger. None where
    answers have no order, or where the run holds all of them.
    """
    if domain.topology is Topology.NOMINAL:
        return None
    size = domain.size
    if size > _MOST_LISTED:
        radius = radius_of(mechanism, domain, share) or 0
        return max(0, code - radius), min(size - 1, code + radius)
    likelihood = mechanism.likelihood_of(code)
    # Two laps of a circle hold every run, also those across its end.
    is_circle = domain.topology is Topology.CYCLIC
    laps = np.tile(likelihood, 2) if is_circle else likelihood
    sums = np.concatenate([[0.0], np.cumsum(laps)])
    # A little less than the share: the sums are rounded.
    enough = float(share) * float(likelihood.sum()) * (1 - 1e-12)
    starts = np.arange(size)
    ends = np.searchsorted(sums, sums[:size] + enough)
    lengths = np.where(ends < sums.size, ends - starts, 2 * size)
    first = int(lengths.argmin())
    if lengths[first] >= size:
        return None
    return first, (first + int(lengths[first]) - 1) % size
