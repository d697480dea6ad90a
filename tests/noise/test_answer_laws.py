"""Channels of least loss: known figures, another solver, every other family, exact promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from release.exact.channel import Channel, answer_costs
from release.exact.domain import Group
from release.exact.losses import Loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.solve import design
from release.noise.solvers.answers.laws import design_channel
from release.noise.solvers.answers.problem import ChannelProblem
from research.published.clamping import (
    exponential,
    geometric_clamped,
    geometric_modular,
    randomised_response,
)
from research.published.remapped import best_answers, remapped_geometric

PURE, APPROXIMATE = Definition.PURE, Definition.APPROXIMATE


def uniform(answers: int) -> tuple[Fraction, ...]:
    return (Fraction(1, answers),) * answers


def promise(epsilon: str, delta: str = "0") -> Guarantee:
    definition = APPROXIMATE if Fraction(delta) else PURE
    return Guarantee(definition, Fraction(epsilon), Fraction(delta))


def test_the_figures_of_the_design_page() -> None:
    """N = 24, ε = 1, uniform prior: 1.647 squared (clamped geometric 1.662), error rate 0.5164."""
    for power, known, clamped in ((2, 1.647, 1.662), (0, 0.5164, 0.5164)):
        problem = ChannelProblem((1,), promise("1"), answer_costs(power, 25), uniform(25))
        made = design_channel(problem)
        assert float(made.objective) == pytest.approx(known, abs=5e-4)
        plain = problem.loss_of(geometric_clamped(25, Fraction(1)))
        assert float(plain) == pytest.approx(clamped, abs=5e-4)
        # A channel in integers loses a few units of 2^-62 more than its exact masses would.
        assert made.objective <= plain + Fraction(25, 2**62)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "3"])
def test_the_theorem_and_the_program_agree(power: int, epsilon: str) -> None:
    """Pure, neighbors 1 apart, an uneven prior: Ghosh et al. 2009, Theorem 3.2."""
    weights = [1, 5, 2, 0, 3, 1, 8]
    prior = tuple(Fraction(w, sum(weights)) for w in weights)
    problem = ChannelProblem((1,), promise(epsilon), answer_costs(power, 7), prior)
    quick, slow = remapped_geometric(problem), design_channel(problem)
    assert (quick.method, slow.method) == ("remapped geometric", "linear program")
    assert float(quick.objective) == pytest.approx(float(slow.objective), rel=1e-9, abs=1e-12)
    assert slow.lower_bound <= quick.objective
    assert slow.objective - slow.lower_bound <= slow.objective / 10**9 + Fraction(1, 10**12)


@pytest.mark.parametrize("answers", [2, 3, 24])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_least_error_rate_one_apart_is_that_of_another_solver(
    answers: int, epsilon: str
) -> None:
    problem = ChannelProblem((1,), promise(epsilon), answer_costs(0, answers), uniform(answers))
    channel = design_channel(problem)
    assert problem.is_satisfied_by(channel.channel)
    assert float(channel.objective) == pytest.approx(by_another_solver(problem), rel=1e-6)
    assert 0 <= channel.objective - channel.lower_bound <= Fraction(1, 10**13)


def test_the_least_error_rate_of_a_hundred_answers() -> None:
    """Solvers fail at its program: 1 - (2 + 98·(1 - r))/(100·(1 + r)), r = 1/e."""
    problem = ChannelProblem((1,), promise("1"), answer_costs(0, 100), uniform(100))
    channel = design_channel(problem)
    assert problem.is_satisfied_by(channel.channel)
    ratio = math.exp(-1)
    rate = 1 - (2 + 98 * (1 - ratio)) / (100 * (1 + ratio))
    assert float(channel.objective) == pytest.approx(rate, rel=1e-12)
    assert 0 <= channel.objective - channel.lower_bound <= Fraction(1, 10**12)


def by_another_solver(problem: ChannelProblem) -> float:
    """The optimum in floats, as docs/design/mathematics.md has it, unscaled."""
    true, published = problem.costs.shape
    ratio, delta = math.exp(problem.guarantee.epsilon), float(problem.guarantee.delta)
    cells, pairs = true * published, problem.pairs
    width = cells + len(pairs) * published + 1
    rows, limits = [], []
    for number, (a, b) in enumerate(pairs):
        first = cells + number * published
        for o in range(published):
            row = np.zeros(width)
            row[a * published + o], row[b * published + o], row[first + o] = 1, -ratio, -1
            rows.append(row)
            limits.append(0.0)
        budget = np.zeros(width)
        budget[first : first + published] = 1
        rows.append(budget)
        limits.append(delta)
    totals = np.zeros((true, width))
    for q in range(true):
        totals[q, q * published : (q + 1) * published] = 1
    costs = np.zeros(width)
    if problem.prior is None:
        costs[-1] = 1
        for q in range(true):
            row = np.zeros(width)
            row[q * published : (q + 1) * published], row[-1] = problem.costs[q], -1
            rows.append(row)
            limits.append(0.0)
    else:
        weights = np.array([float(p) for p in problem.prior])
        costs[:cells] = (problem.costs * weights[:, None]).reshape(-1)
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(costs, rows, limits, totals, np.ones(true), options=options)
    assert found.status == 0
    return float(found.fun)


@st.composite
def problems(draw: st.DrawFn) -> ChannelProblem:
    answers = draw(st.integers(2, 7))
    steps = draw(st.sets(st.integers(1, max(1, answers - 1)), min_size=1, max_size=2))
    epsilon = draw(st.sampled_from(["0.1", "0.5", "1", "2.5"]))
    delta = draw(st.sampled_from(["0", "0.001", "0.05", "0.3"]))
    if draw(st.booleans()):
        costs = answer_costs(draw(st.integers(0, 2)), answers)
    else:
        table = draw(st.lists(st.integers(0, 9), min_size=answers**2, max_size=answers**2))
        costs = np.array(table, dtype=np.int64).reshape(answers, answers)
    weights = draw(st.lists(st.integers(0, 9), min_size=answers, max_size=answers).filter(any))
    prior = tuple(Fraction(w, sum(weights)) for w in weights)
    worst = draw(st.booleans())
    return ChannelProblem(
        tuple(sorted(steps)), promise(epsilon, delta), costs, None if worst else prior
    )


@given(problems())
@settings(max_examples=120, deadline=None)
def test_channels_are_optimal_and_keep_their_promise(problem: ChannelProblem) -> None:
    made = design_channel(problem)
    ratio = exp_bounds(problem.guarantee.epsilon)[0] - Fraction(1, 10**30)
    kept = made.channel.deltas_of_pairs(problem.pairs, ratio)
    assert kept.under(problem.guarantee.definition) <= problem.guarantee.delta
    assert made.objective == problem.loss_of(made.channel)
    other = by_another_solver(problem)
    assert float(made.objective) == pytest.approx(other, rel=1e-6, abs=1e-7)
    assert made.lower_bound <= made.objective
    assert float(made.lower_bound) == pytest.approx(other, rel=1e-6, abs=1e-7)


def rivals(answers: int, guarantee: Guarantee, steps: tuple[int, ...]) -> list[Channel]:
    """Other families at the same promise; those for neighbors 1 apart get a share of ε a step."""
    share = guarantee.epsilon / max(steps)
    moves = Sensitivity.of(Group((answers,)), ((s,) for s in steps))
    loss = Loss("error_rate", (np.arange(answers) > 0).astype(np.int64))
    return [
        geometric_clamped(answers, share),
        exponential(answers, share),
        Channel.of_mechanism(Modular(geometric_modular(answers, share))),
        Channel.of_mechanism(Modular(randomised_response(answers, guarantee.epsilon))),
        Channel.of_mechanism(Modular(design(moves, guarantee, loss).mechanism.pmf)),
    ]


@given(problems())
@settings(max_examples=300, deadline=None)
def test_no_other_family_is_better(problem: ChannelProblem) -> None:
    made = design_channel(problem)
    for rival in rivals(problem.answers, problem.guarantee, problem.steps):
        if problem.is_satisfied_by(rival):
            assert made.objective <= problem.loss_of(rival) + Fraction(1, 10**9)


def test_sixty_answers_by_program() -> None:
    """Approximate, worst case too: proved to nine digits."""
    for prior in (uniform(60), None):
        problem = ChannelProblem((1,), promise("1", "0.001"), answer_costs(2, 60), prior)
        made = design_channel(problem)
        assert made.objective - made.lower_bound <= made.objective / 10**9


@pytest.mark.parametrize("power", [0, 2])
def test_a_program_whose_interior_point_fails(power: int) -> None:
    """HiGHS 1.14 ends these two without a solution when it starts from an interior point."""
    problem = ChannelProblem((1,), promise("2"), answer_costs(power, 48), uniform(48))
    made, known = design_channel(problem), remapped_geometric(problem)
    assert float(made.objective) == pytest.approx(float(known.objective), rel=1e-9)
    assert made.objective - made.lower_bound <= made.objective / 10**6


def test_remapping_publishes_what_loses_least() -> None:
    """Under a prior that knows the answer to be 0 or 4, nothing else is published."""
    prior = (Fraction(1, 2), *(Fraction(0),) * 3, Fraction(1, 2))
    plain = geometric_clamped(5, Fraction(2))
    assert set(best_answers(plain, answer_costs(0, 5), prior)) == {0, 4}
    made = design_channel(ChannelProblem((1,), promise("2"), answer_costs(0, 5), prior))
    # A few units of 2^-62 are the uniform channel's, which keeps the ratios.
    assert (made.channel.rows[:, 1:4] < 1000).all()


def test_what_cannot_be_asked_is_refused() -> None:
    costs = answer_costs(2, 4)
    for steps, guarantee, table, prior in (
        ((), promise("1"), costs, None),
        ((0,), promise("1"), costs, None),
        ((1,), promise("1"), -costs, None),
        ((1,), promise("1"), costs[0], None),
        ((1,), promise("1"), costs, uniform(3)),
        ((1,), promise("1"), costs, (Fraction(1, 2),) * 4),
    ):
        with pytest.raises(ValueError, match=r"."):
            ChannelProblem(steps, guarantee, table, prior)
