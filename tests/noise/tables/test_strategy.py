"""The choice of what is measured, beside all sets of tables, and the guarantees of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize

from release.errors import SpecError
from release.exact.numbers import exp_bounds
from release.exact.tables.structure import Areas, Margin, kept_whole, summed_out
from release.noise.composed.account import certified_epsilon, step_for
from release.noise.tables.gaussian import convex_shares, gaussian_mu, relative_gap
from release.noise.tables.objective import Objective
from release.noise.tables.publication import Publication, Table
from release.noise.tables.strategy import choose_strategy
from tests.noise.tables import dense

DETAIL = Margin((kept_whole(4), kept_whole(2)))
FIRST = Margin((kept_whole(4), summed_out(2)))
GROUPS = Margin(((0, 1, 1, 1), summed_out(2)))
TOTAL = Margin((summed_out(4), summed_out(2)))

MANY = dense.areas_of((6,))
UNEVEN = dense.areas_of((2,), (1, 5))

CASES = {
    "detail, first, total": dense.publication_of(MANY, (DETAIL, FIRST, TOTAL)),
    "groups": dense.publication_of(MANY, (FIRST, GROUPS, TOTAL)),
    "uneven": dense.publication_of(UNEVEN, (DETAIL, TOTAL)),
    "replaced": dense.publication_of(MANY, (DETAIL, FIRST, TOTAL), is_replaced=True),
    "one level": dense.publication_of(dense.areas_of(), (DETAIL, FIRST, TOTAL)),
    "detail at the top": Publication(
        MANY,
        (DETAIL, FIRST, TOTAL),
        {(0, 0): 1.0, (0, 2): 1.0, (1, 1): 2.0, (1, 2): 1.0},
        dict.fromkeys([(level, margin) for level in (0, 1) for margin in (0, 1, 2)], 1),
    ),
}


def cosh_precision(epsilon: float) -> float:
    return math.cosh(epsilon) - 1


def dense_objective(
    publication: Publication, split: dict[Table, float], precision: Callable[[float], float]
) -> float:
    """The objective of a split of a budget, with every step written out."""
    precisions = {}
    for table, part in split.items():
        precisions[table] = precision(part / publication.moves[table])
    errors = dense.errors(publication, precisions)
    weights = publication.importance
    return sum(weights[t] * errors[t] for t in weights) / sum(weights.values())


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


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", ["1/2", "4"])
def test_the_search_finds_what_all_supports_hold(case: str, epsilon: str) -> None:
    publication, budget = CASES[case], Fraction(epsilon)
    strategy = choose_strategy(publication, budget).best
    assert strategy.objective <= least_by_force(publication, float(budget)) * 1.001
    split = {table: float(cost) for table, cost in strategy.costs.items()}
    expected = dense_objective(publication, split, cosh_precision)
    assert strategy.objective == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_geometric_costs_add_up_and_hold(case: str) -> None:
    publication, budget = CASES[case], Fraction(1)
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


@pytest.mark.parametrize("case", ["detail, first, total", "replaced", "detail at the top"])
def test_gaussian_splits_are_least_and_proved(case: str) -> None:
    publication, budget, delta = CASES[case], Fraction(2), Fraction(1, 10**5)
    strategy = choose_strategy(publication, budget, delta, family="gaussian").best
    assert 0.998 * budget <= strategy.epsilon <= budget
    groups = [
        (noise, ((1,) * publication.moves[table],), 1) for table, noise in strategy.noises.items()
    ]
    cells = sum(publication.moves[table] for table in strategy.noises)
    proved = certified_epsilon(groups, delta, step_for(budget, cells))
    assert proved is not None
    assert proved <= budget
    # Wherever else the same total precision goes, the objective is higher, up to the gap.
    spent = {t: float(1 / strategy.variances[t]) * publication.moves[t] for t in strategy.noises}
    total = sum(spent.values())
    tables = [table for table in publication.tables if publication.moves[table]]

    def value(logs: np.ndarray) -> float:
        shares = np.exp(logs - logs.max())
        split = dict(zip(tables, (total * shares / shares.sum()).tolist(), strict=True))
        return dense_objective(publication, split, lambda precision: precision)

    own = dense_objective(publication, spent, lambda precision: precision)
    assert strategy.objective == pytest.approx(own, rel=1e-4)
    found = minimize(value, np.zeros(len(tables)), method="L-BFGS-B", options={"maxiter": 30}).fun
    assert strategy.gap is not None
    assert strategy.gap < 2e-3
    assert found * (1 + 1e-5) >= own * (1 - strategy.gap)
    assert own <= found * 1.001


def test_the_gap_of_an_even_split_holds() -> None:
    objective = Objective(CASES["groups"])
    even = np.ones(objective.publication.shares.shape) / 6
    best = np.zeros(even.shape)
    for table, share in convex_shares(objective).items():
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


def test_more_budget_leaves_less_error() -> None:
    publication, delta = CASES["uneven"], Fraction(1, 10**6)
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
    plain = CASES["uneven"]
    weights = {**plain.importance, (0, 1): 50.0}
    keen = Publication(plain.areas, plain.margins, weights, plain.moves)
    before = choose_strategy(plain, Fraction(1)).best.errors[0, 1]
    assert choose_strategy(keen, Fraction(1)).best.errors[0, 1] < before


def test_pinned_shares_are_kept() -> None:
    publication = CASES["detail, first, total"]
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
    strategy = choose_strategy(CASES["uneven"], Fraction(1), shares={(2, 0): 1.0, (0, 0): 1e-12})
    assert strategy.best.costs[0, 0] == Fraction(1, 10**6)
    assert sum(strategy.best.costs.values()) == 1
    assert choose_strategy(CASES["groups"], Fraction(1), shares=shares).geometric is not None


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
        choose_strategy(CASES["replaced"], **whole)  # type: ignore[arg-type]


def test_a_public_total_needs_no_strategy() -> None:
    areas = dense.areas_of()
    total = dense.publication_of(areas, (TOTAL,), is_replaced=True)
    with pytest.raises(SpecError, match="nothing to protect"):
        choose_strategy(total, Fraction(1))


def test_gaussian_noise_that_is_too_wide_is_left_out() -> None:
    choice = choose_strategy(CASES["groups"], Fraction(1, 100), Fraction(1, 10**9))
    assert choice.gaussian is None
    assert choice.best is choice.geometric


def hawaii(census: Path) -> Publication:
    """State, counties and tracts; total, age, Hispanic, race, Hispanic by age, race by age."""
    tracts = pq.read_table(census / "truth_hi_2020.parquet").column("tract").unique().to_pylist()
    counties = sorted({tract[:5] for tract in tracts})
    parents = np.array([counties.index(tract[:5]) for tract in sorted(tracts)])
    areas = Areas(
        ("state", "county", "tract"), (np.zeros(1, int), np.zeros(len(counties), int), parents)
    )
    hispanic = (0, *[1] * 7)
    margins = []
    for race in (summed_out(8), hispanic, kept_whole(8)):
        margins += [Margin((race, summed_out(2))), Margin((race, kept_whole(2)))]
    return dense.publication_of(areas, tuple(margins))


@pytest.mark.parametrize(
    ("epsilon", "geometric", "gaussian"),
    [("1/2", 16.00, 19.5), ("1", 7.974, 10.22), ("4", 1.766, 2.89)],
)
def test_strategies_of_a_state(
    census: Path, epsilon: str, geometric: float, gaussian: float
) -> None:
    choice = choose_strategy(hawaii(census), Fraction(epsilon), Fraction(1, 10**6))
    assert choice.geometric is not None
    assert choice.geometric.objective <= geometric
    assert choice.gaussian is not None
    assert choice.gaussian.objective <= gaussian
    assert choice.gaussian.gap is not None
    assert choice.gaussian.gap < 1e-3
