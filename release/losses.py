"""What an answer error costs: the loss ρ as a cost for each noise value, in exact integers.

A reader sees the answer, not the noise. On an ordered domain noise η turns q into (q+η) mod N,
which is an error of η or, after wrapping, of N-η; under a uniform prior over q the expected cost of
η is ρ_η = (1/N)·Σ_q ℓ(q, (q+η) mod N) (DESIGN.md §3.3). So squared loss costs η(N-η), absolute
loss 2η(N-η)/N. On a cyclic domain the distance goes the shorter way round, on a nominal one it is
0 or 1. The paper's Σ η²·f(η) (Kadam et al. 2024, equation (11)) stays as ``noise_squared``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm
from operator import mul

import numpy as np

from release.answers import Codes, Topology
from release.law import Law


class LossName(Enum):
    """The losses that have a name; a table of costs has none."""

    ERROR_RATE = "error_rate"
    ABSOLUTE = "absolute"
    SQUARED = "squared"
    NOISE_SQUARED = "noise_squared"


@dataclass(frozen=True, eq=False)
class Loss:
    """Costs ρ_η = ``numerators[η] / denominator``, all at least 0."""

    name: str
    numerators: Codes
    denominator: int = 1

    @property
    def is_error_rate(self) -> bool:
        """Whether every error costs the same, so that the closed forms apply."""
        cost = self.numerators
        return bool(cost[0] == 0 and cost.size > 1 and cost[1] > 0 and (cost[1:] == cost[1]).all())

    def of(self, law: Law) -> Fraction:
        """The expected loss of ``law``, exactly."""
        weighted = sum(map(mul, self.numerators.tolist(), law.weights.tolist()))
        return Fraction(weighted, self.denominator * law.total)

    def cost(self, element: int) -> Fraction:
        """ρ of one noise value."""
        return Fraction(int(self.numerators[element]), self.denominator)


def named_loss(name: LossName, topology: Topology, size: int) -> Loss:
    """The costs of a named loss on ``size`` answers under the uniform prior.

    On a nominal domain any error is at distance 1, so absolute and squared loss are the error rate.
    """
    noise = np.arange(size, dtype=np.int64)
    if name is LossName.NOISE_SQUARED:
        return Loss(name.value, noise * noise)
    if name is LossName.ERROR_RATE or topology is Topology.NOMINAL:
        return Loss(name.value, (noise > 0).astype(np.int64))
    if topology is Topology.CYCLIC:
        distance = np.minimum(noise, size - noise)
        return Loss(name.value, distance if name is LossName.ABSOLUTE else distance * distance)
    around = noise * (size - noise)
    if name is LossName.ABSOLUTE:
        return Loss(name.value, 2 * around, size)
    return Loss(name.value, around)


def table_loss(costs: tuple[Fraction, ...]) -> Loss:
    """A loss given by its cost for each noise value 0..n.

    Raises:
        ValueError: a cost is negative, or too large for 64-bit integers over a common denominator.
    """
    denominator = lcm(*(cost.denominator for cost in costs))
    numerators = [int(cost * denominator) for cost in costs]
    if not all(0 <= n < 2**62 for n in numerators):
        raise ValueError("costs must be at least 0, and their common numerators below 2^62")
    return Loss("table", np.array(numerators, dtype=np.int64), denominator)


def probability_within(law: Law, topology: Topology, radius: int) -> Fraction:
    """The chance that the published answer is at most ``radius`` off, under the uniform prior."""
    size = law.group.size
    noise = np.arange(size, dtype=np.int64)
    if topology is Topology.NOMINAL:
        share = np.where((noise == 0) | (radius >= 1), size, 0)
    elif topology is Topology.CYCLIC:
        share = np.where(np.minimum(noise, size - noise) <= radius, size, 0)
    else:
        # Noise η is an error of η for the size-η answers that do not wrap, else of size-η.
        share = np.where(noise <= radius, size - noise, 0) + np.where(
            size - noise <= radius, noise, 0
        )
    weighted = sum(map(mul, share.tolist(), law.weights.tolist()))
    return Fraction(weighted, size * law.total)
