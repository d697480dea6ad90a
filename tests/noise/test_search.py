"""Least ε and δ for a cap on the loss, against the closed forms they invert."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from release.errors import DesignError
from release.exact.domain import Group, Topology
from release.exact.losses import LossName, named_loss
from release.exact.privacy import Definition
from release.exact.sensitivity import Sensitivity
from release.noise.search import least_delta, least_epsilon

GROUP = Group((24,))
EVERYTHING = Sensitivity.everything(GROUP)
ERROR_RATE = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, 24)


@pytest.mark.parametrize("cap", ["0.9", "0.5", "0.2", "0.01"])
def test_the_least_epsilon_of_randomised_response(cap: str) -> None:
    """f(0) = e/(e+23), e = e^ε, at least 1 - cap: ε = ln(23·(1-cap)/cap)."""
    made = least_epsilon(
        EVERYTHING, Definition.PURE, Fraction(0), ERROR_RATE, Fraction(cap), Fraction(1, 1000)
    )
    exact = math.log(23 * (1 - float(cap)) / float(cap))
    assert float(made.guarantee.epsilon) == pytest.approx(math.ceil(exact * 1000) / 1000)
    assert made.objective <= Fraction(cap)


@pytest.mark.parametrize("cap", ["0.7", "0.5", "0.1"])
def test_the_least_delta_of_the_mixture(cap: str) -> None:
    """1 - f(0) = (1-δ)·(1-1/S), so δ = 1 - cap/(1-1/S)."""
    made = least_delta(EVERYTHING, Definition.APPROXIMATE, Fraction(1), ERROR_RATE, Fraction(cap))
    pure_loss = 1 - 1 / (1 + 23 * math.exp(-1))
    exact = 1 - float(cap) / pure_loss
    assert float(made.guarantee.delta) == pytest.approx(math.ceil(exact * 10_000) / 10_000)


def test_no_delta_is_spent_where_none_is_needed() -> None:
    made = least_delta(EVERYTHING, Definition.APPROXIMATE, Fraction(5), ERROR_RATE, Fraction(1, 2))
    assert made.guarantee.delta == 0


def test_a_cap_out_of_reach_is_refused() -> None:
    with pytest.raises(DesignError, match="raise the cap"):
        least_epsilon(EVERYTHING, Definition.PURE, Fraction(0), ERROR_RATE, Fraction(0))
