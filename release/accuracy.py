"""How near to the true answer a published one is: of one law, or of a law for each answer.

Everything here is under the uniform prior over the true answers, and in codes: a level is one code,
an hour is one code, of a circle the shorter way counts.
"""

from __future__ import annotations

from fractions import Fraction

from release.answers import AnswerDomain, JointDomain, Topology
from release.channel import Channel
from release.law import Law
from release.losses import probability_within

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
