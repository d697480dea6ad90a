"""Fitted baselines against a scan of their parameter, with every δ from the definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from release.exact.channel import Channel, answer_costs
from release.exact.mechanism import Mechanism
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.published.fitted import Requirement, fitted
from release.noise.solvers.program import Floats

ANSWERS = 9
"""Kadam et al. 2024, Figure 5a: n = 8, squared error, δ = 0.3."""


def figure_5a(epsilon: str) -> Requirement:
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(epsilon), Fraction(3, 10))
    return Requirement(ANSWERS, Sensitivity.on_line(ANSWERS, [1]), guarantee)


def gaussian_rows(deviation: float) -> Floats:
    """The clamped discrete Gaussian, in floats and mass by mass (Kadam et al. 2024, (56))."""
    noise = np.arange(-60, 61)
    masses = np.exp(-(noise**2) / (2 * deviation**2))
    rows = np.zeros((ANSWERS, ANSWERS))
    for true in range(ANSWERS):
        np.add.at(rows[true], np.clip(true + noise, 0, ANSWERS - 1), masses / masses.sum())
    return rows


def probabilistic_delta(rows: Floats, epsilon: float) -> float:
    """The largest mass of the outcomes whose ratio is beyond e^ε (Kadam et al. 2024, (3))."""
    pairs = [(a, a + 1) for a in range(ANSWERS - 1)]
    pairs += [(b, a) for a, b in pairs]
    ratio = math.exp(epsilon)
    return max(float(rows[a][rows[a] > ratio * rows[b]].sum()) for a, b in pairs)


def squared_error(rows: Floats) -> float:
    return float((rows * answer_costs(2, ANSWERS)).sum() / ANSWERS)


def fitted_error(epsilon: str) -> float:
    made: Mechanism = fitted("gaussian_clamped", figure_5a(epsilon))
    return float(Channel.of_mechanism(made).mean_loss(answer_costs(2, ANSWERS)))


@pytest.mark.parametrize(
    ("epsilon", "known"),
    [("0.5", 3.426), ("1", 0.6381), ("1.25", 0.4512), ("2", 0.2140), ("3", 0.0845)],
)
def test_the_clamped_gaussian_is_the_best_of_a_scan(epsilon: str, known: float) -> None:
    """Deviations from 0.2 to 4 in steps of 0.002; δ rises again above some that are allowed.

    At ε = 1 all from 0.8633 to 0.997 are allowed, then none below 1.364, where the error is 1.476.
    """
    best = math.inf
    for step in range(100, 2000):
        rows = gaussian_rows(step / 500)
        if probabilistic_delta(rows, float(epsilon)) <= 0.3:
            best = min(best, squared_error(rows))
    error = fitted_error(epsilon)
    assert error == pytest.approx(known, abs=1e-3)
    # A step of the scan is up to a hundredth of the error.
    assert best * 0.99 <= error <= best * (1 + 1e-6)


def test_the_clamped_gaussian_of_figure_5a_is_the_weakest_allowed() -> None:
    """σ² = 0.745273 at ε = 1: a thousandth less is not allowed, and has an error of 0.638."""
    deviation = math.sqrt(0.745273)
    assert probabilistic_delta(gaussian_rows(deviation), 1.0) <= 0.3
    assert probabilistic_delta(gaussian_rows(deviation * 0.9999), 1.0) > 0.3
    assert probabilistic_delta(gaussian_rows(1.2), 1.0) > 0.3
    assert squared_error(gaussian_rows(1.364)) == pytest.approx(1.476, abs=1e-3)
    assert fitted_error("1") == pytest.approx(squared_error(gaussian_rows(deviation)), rel=1e-4)


@pytest.mark.parametrize("epsilon", ["3", "10", "100"])
def test_a_gaussian_is_fitted_where_hardly_any_noise_is_needed(epsilon: str) -> None:
    requirement = figure_5a(epsilon)
    for name in ("gaussian_clamped", "gaussian_modular"):
        assert requirement.is_satisfied_by(fitted(name, requirement))
