"""The five noise distributions of Table V of Qin et al. 2022, with Δ = 1."""

from __future__ import annotations

import math
from fractions import Fraction

from research.published.clamping import decay
from research.published.integer_pmf import IntegerPmf, Tail


def quantised_gaussian(variance: float, mean: float = 0.0) -> IntegerPmf:
    """p(k) = the normal density's integral from k to k+1, as far as floats tell it from 0.

    Source: Qin et al. 2022, (2) and (13), with Δ = 1.
    """
    scale = math.sqrt(2 * variance)
    reach = math.ceil(26 * scale) + 1
    low = math.floor(mean) - reach

    def mass(k: int) -> Fraction:
        # From the nearer side, so that no digits cancel in the tail.
        a, b = (k - mean) / scale, (k + 1 - mean) / scale
        if a < 0:
            a, b = -b, -a
        return Fraction(math.erfc(a) - math.erfc(b)) / 2

    masses = [mass(k) for k in range(low, low + 2 * reach + 1)]
    # Floats end before ``reach`` does, and a pmf on the integers begins and ends above 0.
    positive = [place for place, mass_at in enumerate(masses) if mass_at > 0]
    first, last = positive[0], positive[-1]
    return IntegerPmf.of(low + first, masses[first : last + 1])


def quantised_laplace(scale: Fraction) -> IntegerPmf:
    """p(k) = the integral of e^{-|z|/λ}/2λ from k to k+1; symmetric about -1/2.

    Source: Qin et al. 2022, Section IV-B.2, with Δ = 1 and μ = 0.
    """
    tail = Tail(1, decay(1 / scale))
    return IntegerPmf.of(-1, [Fraction(1), Fraction(1)], tail, tail)


def staircase_noise(width: int, ratio: Fraction) -> IntegerPmf:
    """Stairs of ``width`` integers, each lower by ``ratio`` (ρ); symmetric about -1/2.

    Source: Qin et al. 2022, (20), with Δ = 1.
    """
    tail = Tail(width, ratio)
    return IntegerPmf.of(-width, [Fraction(1)] * (2 * width), tail, tail)


def uniform_noise(low: int, high: int) -> IntegerPmf:
    """Every integer from ``low`` to ``high`` alike. Source: Qin et al. 2022, Section IV-B.4."""
    return IntegerPmf.of(low, [Fraction(1)] * (high - low + 1))


def one_sided_exponential(rate: Fraction) -> IntegerPmf:
    """p(k) ∝ e^{-ηk} for k ≥ 1; the printed η·e^{-ηk} does not add up to 1.

    Source: Qin et al. 2022, (23), with Δ = 1.
    """
    return IntegerPmf.of(1, [Fraction(1)], right=Tail(1, decay(rate)))
