"""The mechanisms of the literature at their best: the least loss or δ over a grid of parameters.

Here in floats, for whole grids at once. A ratio that is e^ε up to 10⁻⁹ counts as e^ε: geometric
noise has it at its own ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from release.exact.channel import Channel, answer_costs
from release.noise.solvers.program import Floats
from research.programs import exact, noise_deltas
from research.published.clamping import clamped, discrete_gaussian, geometric, gumbel
from research.published.sadeghi import count_law

_TIES = 1 + 1e-9
_EULER = 0.5772156649
REACHES = (1, 2, 3, 5, 7)
"""The D of the count mechanism that are compared."""


def _centred_gumbel(n: int, scale: Fraction) -> Channel:
    # The mean of Gumbel noise is Euler's constant times its scale.
    return clamped(gumbel(float(scale), -_EULER * float(scale)), n + 1)


GEOMETRIC = "geometric, clamped"

FAMILIES: dict[str, tuple[Callable[[int, Fraction], Channel], float, float]] = {
    GEOMETRIC: (lambda n, epsilon: clamped(geometric(epsilon), n + 1), 0.02, 6.0),
    "discrete Gaussian, clamped": (
        lambda n, variance: clamped(discrete_gaussian(variance), n + 1),
        0.03,
        400.0,
    ),
    "Gumbel, clamped": (_centred_gumbel, 0.06, 40.0),
}
"""By label: the channel of a parameter, and the ends of the grid."""


@dataclass(frozen=True)
class Members:
    """A family on a grid; ``rows`` has shape (members, answers, answers), losses a row a power."""

    rows: Floats
    squared: Floats
    wrong: Floats

    def deltas(self, epsilon: float) -> Floats:
        """The probabilistic δ of each member for neighbors 1 apart."""
        ratio = math.exp(epsilon) * _TIES
        below, above = self.rows[:, :-1], self.rows[:, 1:]
        up = np.where(below > ratio * above, below, 0).sum(axis=2)
        down = np.where(above > ratio * below, above, 0).sum(axis=2)
        return np.asarray(np.maximum(up, down).max(axis=1))


@lru_cache(maxsize=8)
def members(label: str, n: int) -> Members:
    """A family of :data:`FAMILIES` on 240 parameters, evenly spaced in their logarithm."""
    make, low, high = FAMILIES[label]
    rows, squared, wrong = [], [], []
    for parameter in np.geomspace(low, high, 240):
        channel = make(n, exact(float(parameter), 4))
        rows.append(channel.to_floats())
        squared.append(float(channel.mean_loss(answer_costs(2, n + 1))))
        wrong.append(float(channel.mean_loss(answer_costs(0, n + 1))))
    return Members(np.array(rows), np.array(squared), np.array(wrong))


def least_loss(label: str, n: int, delta: float, epsilon: float, *, squared: bool) -> float:
    """The least loss of a member whose δ is at most ``delta``."""
    family = members(label, n)
    enough = family.deltas(epsilon) <= delta
    least = float((family.squared if squared else family.wrong)[enough].min())
    if label == GEOMETRIC:
        # Its own ε is between two parameters of the grid.
        own = clamped(geometric(exact(epsilon)), n + 1)
        least = min(least, float(own.mean_loss(answer_costs(2 if squared else 0, n + 1))))
    return least


def least_rival_delta(label: str, n: int, cap: float, epsilon: float, *, squared: bool) -> float:
    """The least δ of a member whose loss is at most ``cap``."""
    family = members(label, n)
    enough = (family.squared if squared else family.wrong) <= cap
    return float(family.deltas(epsilon)[enough].min())


@lru_cache(maxsize=4096)
def _count_delta(share: Fraction, epsilon: float) -> float:
    """The least probabilistic δ of count distributions that are right with this probability."""
    laws = (count_law(reach, share, exact(epsilon)) for reach in REACHES)
    return min(float(noise_deltas(law.noise, epsilon).probabilistic) for law in laws)


def least_count_delta(error_rate: float, epsilon: float) -> float:
    """The least δ of count distributions of an error rate."""
    return _count_delta(1 - exact(error_rate), epsilon)


def least_count_rate(delta: float, epsilon: float) -> float:
    """The least error rate of count distributions whose δ is at most ``delta``."""
    # δ is no monotone function of the share: look at each, from the largest on.
    for share in range(199, 0, -1):
        if _count_delta(Fraction(share, 200), epsilon) <= delta:
            return 1 - share / 200
    raise AssertionError("a pmf that is seldom right satisfies every delta of the figures")


def independent_rate(n: int, delta: float, epsilon: float) -> float:
    """The least error rate of one mass at 0 and another everywhere else."""
    ratio = math.exp(epsilon)
    # A probabilistic guarantee lets an outcome of mass δ break ε.
    return 1 - max(delta, ratio / (ratio + n))


def independent_delta(n: int, error_rate: float, epsilon: float) -> float:
    """The δ of one mass at 0 and another everywhere else, of an error rate."""
    mode = 1 - error_rate
    return mode if mode > math.exp(epsilon) * _TIES * error_rate / n else 0.0
