"""The rival's account: zero-concentrated differential privacy, as OpenDP composes it.

ρ of all mechanisms adds up and is converted to ε at δ by the tightest known formula, which OpenDP
uses too. So the figures of a budget that is composed by zCDP are known without installing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def epsilon_of(rho: float, delta: float) -> float:
    """The least ε at δ that follows from ρ-zCDP.

    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """

    def at(order: float) -> float:
        gain = math.log(1 / (order * delta)) / (order - 1) + math.log1p(-1 / order)
        return max(0.0, order * rho + gain)

    # The bound is quasi-convex in the logarithm of the order less 1.
    low, high = math.log(1e-3), math.log(1e6)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if at(1 + math.exp(left)) < at(1 + math.exp(right)):
            high = right
        else:
            low = left
    return at(1 + math.exp(low))


def rho_within(epsilon: float, delta: float) -> float:
    """The most ρ that stays within (ε, δ)."""
    return bisected(lambda rho: epsilon_of(rho, delta) <= epsilon, 1e-12, 1e3)


def bisected(is_within: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number within, between ``low``, which is, and ``high``, which is not."""
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return low


def geometric_variance(epsilon: float) -> float:
    """The variance 2r/(1 - r)², r = e^-ε, of pure noise on a count."""
    ratio = math.exp(-epsilon)
    return 2 * ratio / (1 - ratio) ** 2
