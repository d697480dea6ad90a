"""The choice of what is measured, beside all sets of tables, and the guarantees of the noise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from release.errors import SpecError
from release.exact.numbers import exp_bounds
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Publication, Table
from release.tabulations.strategy.strategy import choose_strategy
from tests.tabulations.strategy import dense


def cosh_precision(epsilon: float) -> float:
    return math.cosh(epsilon) - 1


def least_by_force(publication: Publication, epsilon: float) -> float:
    """The least objective over all sets of tables, from three starts each."""
    tables = [table for table in publication.tables if publication.moves[table]]
    objective = Objective(publication)
    least = math.inf
    for count in range(1, len(tables) + 1):
        for support in combinations(tables, count):
            known = [*support, *publication.exact]
            if not all(dense.is_estimable(publication, t, known) for t in publication.importance):
                continue
            for seed in range(3):
                least = min(least, _least(objective, support, epsilon, seed))
    return least


def _least(objective: Objective, support: tuple[Table, ...], epsilon: float, seed: int) -> float:
    """The least over splits from a start; the objective and its gradient are tested elsewhere."""
    places = tuple(np.array(axis) for axis in zip(*support, strict=True))
    unit = epsilon / np.array([objective.publication.moves[table] for table in support])
    precisions = np.zeros(objective.publication.shares.shape)

    def value(logs: np.ndarray) -> tuple[float, np.ndarray]:
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        precisions[places] = np.cosh(shares * unit) - 1
        total, gradient = objective.with_gradient(precisions)
        slope = gradient[places] * np.sinh(shares * unit) * unit * shares
        return total, slope - shares * slope.sum()

    start = np.random.default_rng(seed).normal(0, seed, len(support))
    return float(minimize(value, start, jac=True, method="L-BFGS-B").fun)


@pytest.mark.parametrize("case", dense.CASES)
@pytest.mark.parametrize("epsilon", ["1/2", "4"])
def test_the_search_finds_what_all_supports_hold(case: str, epsilon: str) -> None:
    publication, budget = dense.CASES[case], Fraction(epsilon)
    strategy = choose_strategy(publication, budget).best
    assert strategy.objective <= least_by_force(publication, float(budget)) * 1.001
    split = {table: float(cost) for table, cost in strategy.costs.items()}
    expected = dense.objective(publication, split, cosh_precision)
    assert strategy.objective == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("case", dense.CASES)
def test_geometric_costs_add_up_and_hold(case: str) -> None:
    publication, budget = dense.CASES[case], Fraction(1)
    strategy = choose_strategy(publication, budget).best
    assert sum(strategy.costs.values()) == strategy.epsilon == budget
    assert strategy.gap is None
    assert set(strategy.exact) == {t for t, moves in publication.moves.items() if not moves}
    for table, noise in strategy.noises.items():
        each = strategy.costs[table] / publication.moves[table]
        assert noise.deltas((1,), exp_bounds(each)[0]).approximate == 0
        # No noise of a hundredth less would do.
        assert noise.deltas((1,), exp_bounds(each * Fraction(99, 100))[1]).approximate > 0
        variance = 1 / cosh_precision(float(each))
        assert float(strategy.variances[table]) == pytest.approx(variance, rel=1e-9)


def test_more_budget_leaves_less_error() -> None:
    publication, delta = dense.CASES["uneven"], Fraction(1, 10**6)
    choices = [choose_strategy(publication, e, delta) for e in map(Fraction, (1, 2, 4))]
    for smaller, larger in pairwise(choices):
        for before, after in (
            (smaller.geometric, larger.geometric),
            (smaller.gaussian, larger.gaussian),
        ):
            assert before is not None
            assert after is not None
            assert after.objective < before.objective
    last = choices[-1]
    assert last.geometric is not None
    assert last.gaussian is not None
    assert last.best.objective == min(last.geometric.objective, last.gaussian.objective)


def test_what_is_more_important_is_known_better() -> None:
    plain = dense.CASES["uneven"]
    weights = {**plain.importance, (0, 1): 50.0}
    keen = Publication(plain.areas, plain.margins, weights, plain.moves)
    before = choose_strategy(plain, Fraction(1)).best.errors[0, 1]
    assert choose_strategy(keen, Fraction(1)).best.errors[0, 1] < before


def test_pinned_shares_are_kept() -> None:
    publication = dense.CASES["detail, first, total"]
    shares = {(1, 0): 3.0, (0, 2): 1.0}
    choice = choose_strategy(publication, Fraction(2), Fraction(1, 10**6), shares=shares)
    assert choice.geometric is not None
    assert choice.geometric.costs == {(0, 2): Fraction(1, 2), (1, 0): Fraction(3, 2)}
    assert choice.gaussian is not None
    variances = choice.gaussian.variances
    assert float(variances[0, 2] / variances[1, 0]) == pytest.approx(3, rel=1e-3)
    # A pinned split has a gap too, and it is wide.
    assert choice.gaussian.gap is not None
    assert choice.gaussian.gap > 0.1


def test_the_smallest_share_is_not_lost_in_rounding() -> None:
    shares = {(1, 0): 1.0, (0, 2): 1e-12}
    strategy = choose_strategy(
        dense.CASES["uneven"], Fraction(1), shares={(2, 0): 1.0, (0, 0): 1e-12}
    )
    assert strategy.best.costs[0, 0] == Fraction(1, 10**6)
    assert sum(strategy.best.costs.values()) == 1
    assert choose_strategy(dense.CASES["groups"], Fraction(1), shares=shares).geometric is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shares": {(0, 0): 1.0, (1, 1): 1.0}}, "margin 1 of level level1 does not follow"),
        ({"shares": {(0, 0): 1.0, (1, 0): 0.0}}, "margin 1 of level level1 needs a share above 0"),
        ({"shares": {(5, 0): 1.0}}, "is no table"),
        ({"shares": {(0, 2): 1.0, (1, 0): 1.0}}, "free without noise; leave it out"),
        ({"family": "gaussian"}, "needs a delta above 0"),
        ({"epsilon": Fraction(0)}, "write 0 < ε ≤ 100"),
        ({"epsilon": Fraction(1, 10**20)}, "too small for noise"),
        ({"delta": Fraction(1)}, "0 ≤ δ < 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: dict[str, object], message: str) -> None:
    whole: dict[str, object] = {"epsilon": Fraction(1), **arguments}
    with pytest.raises(SpecError, match=message):
        choose_strategy(dense.CASES["replaced"], **whole)  # type: ignore[arg-type]


def test_a_public_total_needs_no_strategy() -> None:
    areas = dense.areas_of()
    total = dense.publication_of(areas, (dense.TOTAL,), is_replaced=True)
    with pytest.raises(SpecError, match="nothing to protect"):
        choose_strategy(total, Fraction(1))
