"""Zero-concentrated differential privacy in floats, for comparison: nothing rests on it.

A mechanism is ρ-zCDP if its Rényi divergence of every order α > 1 is at most ρ·α (Bun and Steinke
2016). ρ adds up. The conversion to ε at a δ is the tight one of Canonne, Kamath and Steinke 2020,
Proposition 12. The ρ of a mechanism is the least one: it is read from the losses of its dominating
pair, which has the largest divergence of every order. Of randomised response it is ε·tanh(ε/2), of
a Gaussian Δ²/2σ².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from release.exact.composition.distribution import UNIT, LossDistribution

_ORDERS = np.concatenate([1 + np.logspace(-4, 0, 80), np.logspace(math.log10(2.05), 4, 160)])
"""Orders α at which a divergence is compared with ρ·α; as α tends to 1 it is the mean loss."""

_MOST_ORDER = 1e6


@dataclass(frozen=True)
class Concentrated:
    """ρ, but for outputs of probability δ, at which losses may be infinite."""

    rho: float = 0.0
    delta: float = 0.0

    def __add__(self, other: Concentrated) -> Concentrated:
        return Concentrated(self.rho + other.rho, self.delta + other.delta)

    def times(self, count: int) -> Concentrated:
        """So many equal mechanisms."""
        return Concentrated(count * self.rho, count * self.delta)

    def epsilon_at(self, delta: float) -> float | None:
        """The ε at ``delta``; None where no ε has so small a δ."""
        remainder = delta - self.delta
        return _epsilon(self.rho, remainder) if remainder > 0 else None


def concentrated(losses: LossDistribution) -> Concentrated:
    """The least ρ of the mechanisms that ``losses`` dominates, rounded."""
    # Python's division: the masses are integers beyond those of NumPy.
    masses = np.array([mass / UNIT for mass in losses.masses])
    places = np.arange(masses.size)
    at = float(losses.highest) - float(losses.step) * places
    likely = masses > 0
    if not likely.any():
        # Every loss lies beyond the range of the distribution: all of it counts as δ.
        return Concentrated(0.0, losses.infinite / UNIT)
    # Without the infinite loss, which is counted as δ: what is left is a distribution of its own.
    masses, at = masses[likely] / masses.sum(), at[likely]
    # Rounding masses up can leave a mean a little below 0.
    rho = max(0.0, float(masses @ at))
    for order in _ORDERS:
        exponents = np.log(masses) + (order - 1) * at
        # The largest exponent is taken out first, so that no exponential overflows.
        top = float(exponents.max())
        moment = top + math.log(float(np.exp(exponents - top).sum()))
        rho = max(rho, moment / float((order - 1) * order))
    return Concentrated(rho, losses.infinite / UNIT)


def rho_within(epsilon: float, delta: float) -> float:
    """The largest ρ with at most ``epsilon`` at ``delta``, both above 0."""
    # ``low`` stays on the side that keeps ``epsilon``.
    low, high = 0.0, epsilon
    for _ in range(100):
        middle = (low + high) / 2
        if _epsilon(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _epsilon(rho: float, delta: float) -> float:
    """ρ·α + ln(1/(α·δ))/(α-1) + ln(1-1/α) at the best order, at least 0."""
    if rho <= 0:
        return 0.0

    def at(log_order: float) -> float:
        rest = math.exp(log_order)
        order = 1 + rest
        return rho * order - math.log(order * delta) / rest + math.log(rest / order)

    # The bound falls and then rises with the order.
    low, high = math.log(1e-3), math.log(_MOST_ORDER)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(120):
        near, far = high - ratio * (high - low), low + ratio * (high - low)
        if at(near) <= at(far):
            high = far
        else:
            low = near
    return max(0.0, at((low + high) / 2))
