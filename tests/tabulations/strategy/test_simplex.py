"""Least values over shares: many functions at once, beside the least that is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from release.tabulations.strategy.simplex import Functions, least_on_simplex

Floats = np.ndarray


def sums_of_inverses(weights: Floats) -> Functions:
    """Σ wᵢ/sᵢ for each row of weights: least (Σ √wᵢ)², where shares are as √wᵢ."""

    def values(which: np.ndarray, shares: Floats) -> tuple[Floats, Floats]:
        own = weights[which]
        return (own / shares).sum(axis=1), -own / shares**2

    return values


def even(count: int, size: int) -> Floats:
    return np.full((count, size), 1 / size)


@given(arrays(np.float64, (5, 4), elements=st.floats(0.01, 100)))
def test_each_function_has_its_least(weights: Floats) -> None:
    values, shares = least_on_simplex(sums_of_inverses(weights), even(5, 4))
    roots = np.sqrt(weights)
    assert values == pytest.approx(roots.sum(axis=1) ** 2, rel=1e-6)
    assert shares == pytest.approx(roots / roots.sum(axis=1, keepdims=True), abs=2e-3)


@given(arrays(np.float64, (4, 3), elements=st.floats(0.01, 100)))
def test_functions_do_not_disturb_each_other(weights: Floats) -> None:
    values, _ = least_on_simplex(sums_of_inverses(weights), even(4, 3))
    for place in range(4):
        alone, _ = least_on_simplex(sums_of_inverses(weights[place : place + 1]), even(1, 3))
        assert alone[0] == pytest.approx(values[place], rel=1e-9)


def test_a_goal_ends_only_what_stays_far_above_it() -> None:
    weights = np.array([[1.0, 4.0], [100.0, 900.0], [1.0, 2.0]])
    calls = np.zeros(3, dtype=int)
    plain = sums_of_inverses(weights)

    def counted(which: np.ndarray, shares: Floats) -> tuple[Floats, Floats]:
        calls[which] += 1
        return plain(which, shares)

    starts = np.tile([0.999, 0.001], (3, 1))
    full, _ = least_on_simplex(counted, starts)
    without_goal = calls.copy()
    calls[:] = 0
    early, shares = least_on_simplex(counted, starts, goal=9.0)
    assert early[[0, 2]] == pytest.approx(full[[0, 2]])
    assert calls[1] < without_goal[1]
    # What was given up is still the value at its shares.
    assert early[1] >= full[1]
    assert early[1] == pytest.approx((weights[1] / shares[1]).sum())


def test_a_share_that_should_be_nothing_becomes_small() -> None:
    def falling(which: np.ndarray, shares: Floats) -> tuple[Floats, Floats]:
        # 1 + the second share: least where that is 0.
        slopes = np.tile([0.0, 1.0], (len(which), 1))
        return 1 + shares[:, 1], slopes

    values, shares = least_on_simplex(falling, even(1, 2))
    assert values[0] == pytest.approx(1, abs=1e-5)
    assert shares[0, 1] < 1e-5
