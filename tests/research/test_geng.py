"""The optimal (0, δ) noise of Geng et al. 2018, on the real line and on a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linprog

from research.published.geng import (
    density,
    least_cost,
    optimal_atom,
    zero_delta_noise,
)
from research.published.integer_pmf import IntegerPmf

DELTAS = [Fraction(d) for d in ("0.01", "0.2", "0.5", "0.6", "2/3", "0.75", "0.95")]
POWERS = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3)]


@pytest.mark.parametrize("delta", DELTAS)
def test_the_corollaries(delta: Fraction) -> None:
    """Magnitude Δ/4δ or (1-δ)Δ, power Δ²/12δ² or 9/16·(1-δ)Δ²; the atom is (p+1)δ - p."""
    wide, d = Fraction(7, 2), float(delta)
    magnitude = 3.5 / (4 * d) if d <= 0.5 else (1 - d) * 3.5
    power = 3.5**2 / (12 * d * d) if delta <= Fraction(2, 3) else 9 / 16 * (1 - d) * 3.5**2
    assert least_cost(delta, wide, Fraction(1)) == pytest.approx(magnitude, rel=1e-14)
    assert least_cost(delta, wide, Fraction(2)) == pytest.approx(power, rel=1e-14)
    assert optimal_atom(delta, Fraction(1)) == max(0, 2 * delta - 1)
    assert optimal_atom(delta, Fraction(2)) == max(0, 3 * delta - 2)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("power", POWERS)
def test_the_density_costs_what_theorem_3_says_and_no_atom_does_better(
    delta: Fraction, power: Fraction
) -> None:
    found = density(delta, Fraction(2), power)
    assert found.atom + 2 * found.half_width * found.height == pytest.approx(1, abs=1e-12)
    # Its mass in any window of Δ = 2 around 0 is δ: the condition for (0, δ).
    assert found.atom + 2 * found.height == pytest.approx(float(delta), abs=1e-12)
    cost, _ = quad(lambda x: 2 * x ** float(power) * found.height, 0, found.half_width)
    assert cost == pytest.approx(least_cost(delta, Fraction(2), power), rel=1e-6)

    def cost_at(atom: float) -> float:
        height, p = (float(delta) - atom) / 2, float(power)
        return 2 * height * math.pow((1 - atom) / height / 2, p + 1) / (p + 1)

    others = [cost_at(a) for a in np.linspace(0, float(delta) * 0.999, 200)]
    assert min(others) >= cost - 1e-6 * cost


def cost_of(noise: IntegerPmf, power: Fraction) -> float:
    spread = range(noise.low, noise.high + 1)
    return math.fsum(float(noise.mass(k)) * math.pow(abs(k), float(power)) for k in spread)


def best_on_grid(sensitivity: int, delta: float, power: float, reach: int) -> float:
    """Even falling laws on -reach..reach whose ``sensitivity`` middle masses are at most δ."""
    costs = np.array([0.0, *(2 * float(k) ** power for k in range(1, reach + 1))])
    falls = np.eye(reach + 1, k=1)[:-1] - np.eye(reach + 1)[:-1]
    middle = np.bincount(
        [abs(k - (sensitivity - 1) // 2) for k in range(sensitivity)], minlength=reach + 1
    )
    total = np.array([[1.0, *[2.0] * reach]])
    limits = np.array([0.0] * reach + [delta])
    found = linprog(costs, np.vstack([falls, middle]), limits, total, [1.0])
    assert found.status == 0
    return float(found.fun)


@given(
    st.integers(1, 12), st.sampled_from(DELTAS), st.sampled_from(POWERS), st.sampled_from([62, 80])
)
@settings(max_examples=120, deadline=None)
def test_the_law_on_the_grid_is_exact_and_optimal(
    sensitivity: int, delta: Fraction, power: Fraction, bits: int
) -> None:
    noise = zero_delta_noise(sensitivity, delta, power, bits)
    masses = [noise.mass(k) for k in range(noise.low, noise.high + 1)]
    assert all((mass * 2**bits).denominator == 1 for mass in masses)
    assert masses == masses[::-1]
    assert noise.deltas(sensitivity, Fraction(1)).approximate <= delta
    reach = int(sensitivity * max(1 / delta, (power + 1) / power)) + 3
    best = best_on_grid(sensitivity, float(delta), float(power), reach)
    assert cost_of(noise, power) == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("delta", ["0.02", "0.6", "0.8"])
@pytest.mark.parametrize("power", [Fraction(1), Fraction(2)])
def test_the_grid_goes_to_theorem_3(delta: str, power: Fraction) -> None:
    """A sensitivity of 1 in steps of 1/1000: within a thousandth."""
    noise = zero_delta_noise(1000, Fraction(delta), power)
    found = cost_of(noise, power) / 1000 ** float(power)
    assert found == pytest.approx(least_cost(Fraction(delta), Fraction(1), power), rel=1e-3)


def test_what_cannot_be_is_refused() -> None:
    for delta, power in ((Fraction(0), Fraction(1)), (Fraction(1), Fraction(1))):
        with pytest.raises(ValueError, match="delta must be"):
            optimal_atom(delta, power)
    with pytest.raises(ValueError, match="power must be"):
        least_cost(Fraction(1, 2), Fraction(1), Fraction(0))
    with pytest.raises(ValueError, match="sensitivity"):
        zero_delta_noise(0, Fraction(1, 2), Fraction(1))
    for steps, near_one in ((1000, 1 - Fraction(1, 10**16)), (2, 1 - Fraction(1, 10**20))):
        with pytest.raises(ValueError, match="use more bits"):
            zero_delta_noise(steps, near_one, Fraction(1))
        zero_delta_noise(steps, near_one, Fraction(1), bits=128)
    with pytest.raises(ValueError, match="coarser grid"):
        zero_delta_noise(1000, Fraction(1, 10**9), Fraction(1))
