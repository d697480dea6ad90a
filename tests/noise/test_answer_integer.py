"""Channels with a probabilistic guarantee: known figures, every choice of cells, exact promises."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from release.errors import DesignError
from release.exact.channel import answer_costs
from release.exact.numbers import exp_below_any_verifier, exp_bounds
from release.exact.privacy import Definition, Guarantee
from release.noise.solvers.answers.integer import (
    PROVED_GAP,
    _block_bound,
    _Search,
    probabilistic_channel,
)
from release.noise.solvers.answers.laws import design_channel
from release.noise.solvers.answers.problem import ChannelDesign, ChannelProblem
from tests.every import some

PROBABILISTIC, APPROXIMATE, PURE = (
    Definition.PROBABILISTIC,
    Definition.APPROXIMATE,
    Definition.PURE,
)


def uniform(answers: int) -> tuple[Fraction, ...]:
    return (Fraction(1, answers),) * answers


def squared(answers: int, epsilon: str, delta: str) -> ChannelProblem:
    promise = Guarantee(PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    return ChannelProblem((1,), promise, answer_costs(2, answers), uniform(answers))


def under(problem: ChannelProblem, definition: Definition, delta: Fraction) -> ChannelProblem:
    return replace(
        problem, guarantee=replace(problem.guarantee, definition=definition, delta=delta)
    )


def is_proved(made: ChannelDesign) -> bool:
    nothing = Fraction(int(made.problem.costs.max()), 10**11)
    return made.objective - made.lower_bound <= PROVED_GAP * made.objective + nothing


def test_a_solver_that_goes_round_is_cut_off() -> None:
    """From the basis of its parent one node of these 51 answers keeps HiGHS going for ever."""
    problem = squared(51, "2.92", "0.00000028")
    made = probabilistic_channel(problem, 45_000_000, 20_000_000)
    assert problem.is_satisfied_by(made.channel)
    assert 0 < made.lower_bound <= made.objective
    assert float(made.objective) == pytest.approx(float(made.lower_bound), rel=1e-3)


OPTIMA = [
    (9, "1", "0.3", 0.38694),
    (8, "1", "0.05", 1.01274),
    (12, "2", "0.05", 0.287076),
    # A minute of a processor.
    (12, "1", "0.05", 1.104978),
]


@pytest.mark.parametrize(("answers", "epsilon", "delta", "known"), OPTIMA[: some(12)])
def test_the_optimum_is_proved(answers: int, epsilon: str, delta: str, known: float) -> None:
    """Eight steps, ε = 1, δ = 0.3: the pure channel loses 1.302. HiGHS found the others too."""
    problem = squared(answers, epsilon, delta)
    made = probabilistic_channel(problem, 375_000_000, 150_000_000)
    assert float(made.objective) == pytest.approx(known, rel=2e-5)
    assert is_proved(made)
    assert made.notes == ()
    assert made.channel.total == 2**62


def by_every_choice(problem: ChannelProblem) -> float:
    """The least cost over all choices of the cells given up, each a linear program."""
    true, published = problem.costs.shape
    ratio, delta = math.exp(problem.guarantee.epsilon), float(problem.guarantee.delta)
    pairs, width = problem.pairs, true * published + 1
    totals = np.zeros((true, width))
    costs = np.zeros(width)
    worst = []
    for q in range(true):
        totals[q, q * published : (q + 1) * published] = 1
        row = np.zeros(width)
        row[q * published : (q + 1) * published], row[-1] = problem.costs[q], -1
        worst.append(row)
    if problem.prior is None:
        costs[-1] = 1
    else:
        weights = np.array([float(p) for p in problem.prior])
        costs[:-1] = (problem.costs * weights[:, None]).reshape(-1)
    least = math.inf
    for chosen in product(*(product((False, True), repeat=published) for _ in pairs)):
        of_pair = dict(zip(pairs, chosen, strict=True))
        if any(np.any(np.logical_and(of_pair[a, b], of_pair[b, a])) for a, b in pairs):
            # Of two masses only one can be more than E times the other.
            continue
        rows, limits = list(worst), [0.0] * true
        if problem.prior is not None:
            rows, limits = [], []
        for (a, b), given_up in zip(pairs, chosen, strict=True):
            budget = np.zeros(width)
            for o, gives in enumerate(given_up):
                if gives:
                    budget[a * published + o] = 1
                    continue
                row = np.zeros(width)
                row[a * published + o], row[b * published + o] = 1, -ratio
                rows.append(row)
                limits.append(0.0)
            rows.append(budget)
            limits.append(delta)
        found = linprog(costs, rows, limits, totals, np.ones(true))
        if found.status == 0:
            least = min(least, float(found.fun))
    return least


@st.composite
def problems(draw: st.DrawFn, least: int = 2, most: int = 5) -> ChannelProblem:
    answers = draw(st.integers(least, most))
    steps = draw(st.sets(st.integers(1, max(1, answers - 1)), min_size=1, max_size=2))
    epsilon = draw(st.sampled_from(["0.1", "0.5", "1", "2.5"]))
    delta = draw(st.sampled_from(["0.001", "0.05", "0.3", "0.7"]))
    if draw(st.booleans()):
        costs = answer_costs(draw(st.integers(0, 2)), answers)
    else:
        table = draw(st.lists(st.integers(0, 9), min_size=answers**2, max_size=answers**2))
        costs = np.array(table, dtype=np.int64).reshape(answers, answers)
    prior = None
    if draw(st.booleans()):
        weights = draw(st.lists(st.integers(0, 9), min_size=answers, max_size=answers).filter(any))
        prior = tuple(Fraction(w, sum(weights)) for w in weights)
    promise = Guarantee(PROBABILISTIC, Fraction(epsilon), Fraction(delta))
    return ChannelProblem(tuple(sorted(steps)), promise, costs, prior)


@given(problems(2, 2))
@settings(max_examples=60, deadline=None)
def test_no_choice_of_cells_is_better_for_two_answers(problem: ChannelProblem) -> None:
    made = probabilistic_channel(problem, 375_000_000, 150_000_000)
    assert is_proved(made)
    assert float(made.objective) == pytest.approx(by_every_choice(problem), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("worst", [False, True])
def test_no_choice_of_cells_is_better_for_three_answers(*, worst: bool) -> None:
    """729 linear programs."""
    weights = (Fraction(1, 2), Fraction(1, 6), Fraction(1, 3))
    problem = replace(squared(3, "0.5", "0.2"), prior=None if worst else weights)
    made = probabilistic_channel(problem, 375_000_000, 150_000_000)
    assert is_proved(made)
    assert float(made.objective) == pytest.approx(by_every_choice(problem), rel=1e-6)


@given(problems())
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
def test_channels_keep_their_promise_and_bounds_hold(problem: ChannelProblem) -> None:
    made = probabilistic_channel(problem, 375_000_000, 150_000_000)
    delta = problem.guarantee.delta
    for ratio in (
        exp_below_any_verifier(problem.guarantee.epsilon),
        exp_bounds(problem.guarantee.epsilon)[0] - Fraction(1, 10**30),
    ):
        kept = made.channel.deltas_of_pairs(problem.pairs, ratio)
        assert kept.probabilistic <= delta
    assert made.objective == problem.loss_of(made.channel)
    assert made.lower_bound <= made.objective
    assert is_proved(made)
    pure = design_channel(under(problem, PURE, Fraction(0)))
    assert made.objective <= pure.objective
    approximate = design_channel(under(problem, APPROXIMATE, delta))
    slack = Fraction(1, 10**9) * (1 + approximate.objective)
    assert made.lower_bound >= approximate.lower_bound - slack
    # An approximate channel for less may keep the probabilistic promise: none is better.
    for share in (2, 4, 16):
        rival = design_channel(under(problem, APPROXIMATE, delta / share))
        if problem.is_satisfied_by(rival.channel):
            assert made.objective <= rival.objective * (1 + PROVED_GAP)


@pytest.mark.parametrize("steps", [(1,), (1, 2), (2, 3)])
@pytest.mark.parametrize("delta", ["0.01", "0.2"])
def test_bounds_from_blocks_hold(steps: tuple[int, ...], delta: str) -> None:
    """Cut short, a search has little more than them."""
    problem = replace(squared(7, "0.7", delta), steps=steps)
    made, hasty = probabilistic_channel(problem), probabilistic_channel(problem, 10**6, 0)
    assert is_proved(made)
    assert hasty.lower_bound <= made.objective <= hasty.objective * (1 + PROVED_GAP)
    blocks = _block_bound(problem, _Search(problem, float(made.objective)).root, 10**6)
    assert 0 < blocks <= made.objective


def test_mirrored_answers_lose_as_much() -> None:
    prior = tuple(Fraction(weight, 12) for weight in (1, 5, 2, 1, 3))
    problem = replace(squared(5, "0.5", "0.1"), prior=prior)
    made = probabilistic_channel(problem, 375_000_000, 150_000_000)
    mirrored = probabilistic_channel(replace(problem, prior=prior[::-1]))
    assert float(made.objective) == pytest.approx(float(mirrored.objective), rel=1e-6)


def test_the_same_question_has_the_same_channel() -> None:
    """Also where the work ends before the proof."""
    problem = squared(10, "0.5", "0.05")
    first, second = (probabilistic_channel(problem, 10**6, 10**6) for _ in range(2))
    assert first.channel.rows.tolist() == second.channel.rows.tolist()
    assert first.lower_bound == second.lower_bound
    assert not is_proved(first)
    assert "above the best channel" in first.notes[0]


def test_a_delta_below_what_rounding_takes_gets_the_pure_channel() -> None:
    made = probabilistic_channel(squared(4, "1", "1/1000000000000000000"))
    pure = design_channel(under(made.problem, PURE, Fraction(0)))
    assert made.objective == pure.objective
    assert is_proved(made)


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(DesignError, match="fallback: approximate"):
        probabilistic_channel(squared(65, "1", "0.1"))
    for definition, delta in ((PROBABILISTIC, "0"), (APPROXIMATE, "0.1"), (PURE, "0")):
        with pytest.raises(ValueError, match="probabilistic guarantee with delta above 0"):
            probabilistic_channel(under(squared(4, "1", "0.1"), definition, Fraction(delta)))
