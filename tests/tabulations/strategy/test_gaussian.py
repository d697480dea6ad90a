"""Gaussian strategies: the split is the least up to its gap, and the guarantee is proved."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from release.budget.composed import step_of_budget
from release.noise.composed.account import certified_epsilon
from release.tabulations.strategy.gaussian import gaussian_mu, least_split, relative_gap
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.strategy import choose_strategy
from tests.tabulations.strategy import dense


@pytest.mark.parametrize("case", ["detail, first, total", "replaced", "detail at the top"])
def test_gaussian_splits_are_least_and_proved(case: str) -> None:
    publication, budget, delta = dense.CASES[case], Fraction(2), Fraction(1, 10**5)
    strategy = choose_strategy(publication, budget, delta, family="gaussian").best
    assert 0.998 * budget <= strategy.epsilon <= budget
    groups = [
        (noise, ((1,) * publication.moves[table],), 1) for table, noise in strategy.noises.items()
    ]
    cells = sum(publication.moves[table] for table in strategy.noises)
    proved = certified_epsilon(groups, delta, step_of_budget(budget, cells))
    assert proved is not None
    assert proved <= budget
    # Wherever else the same total precision goes, the objective is higher, up to the gap.
    spent = {t: float(1 / strategy.variances[t]) * publication.moves[t] for t in strategy.noises}
    total = sum(spent.values())
    tables = [table for table in publication.tables if publication.moves[table]]

    def value(logs: np.ndarray) -> float:
        shares = np.exp(logs - logs.max())
        split = dict(zip(tables, (total * shares / shares.sum()).tolist(), strict=True))
        return dense.objective(publication, split, lambda precision: precision)

    own = dense.objective(publication, spent, lambda precision: precision)
    assert strategy.objective == pytest.approx(own, rel=1e-4)
    found = minimize(value, np.zeros(len(tables)), method="L-BFGS-B", options={"maxiter": 30}).fun
    assert strategy.gap is not None
    assert strategy.gap < 2e-3
    assert found * (1 + 1e-5) >= own * (1 - strategy.gap)
    assert own <= found * 1.001


def test_the_gap_of_an_even_split_holds() -> None:
    objective = Objective(dense.CASES["groups"])
    even = np.ones(objective.publication.shares.shape) / 6
    best = np.zeros(even.shape)
    for table, share in least_split(objective).shares.items():
        best[table] = share
    higher, least = objective.value(even), objective.value(best)
    assert least < higher
    assert higher * (1 - relative_gap(objective, even)) <= least


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_gaussian_noise_of_a_known_profile(epsilon: float) -> None:
    mu = gaussian_mu(epsilon, 1e-6)
    outcomes = np.linspace(-14, 14 + mu, 2_000_001)
    here = np.exp(-((outcomes - mu) ** 2) / 2)
    there = np.exp(-(outcomes**2) / 2)
    width = (outcomes[1] - outcomes[0]) / math.sqrt(2 * math.pi)
    delta = np.maximum(here - math.exp(epsilon) * there, 0).sum() * width
    assert delta == pytest.approx(1e-6, rel=1e-4)


def test_gaussian_noise_that_is_too_wide_is_left_out() -> None:
    choice = choose_strategy(dense.CASES["groups"], Fraction(1, 10**5), Fraction(1, 10**9))
    assert choice.gaussian is None
    assert choice.best is choice.geometric
