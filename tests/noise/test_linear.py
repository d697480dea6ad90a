"""Linear programs: exact bounds, windows, staircases, priors, worst cases, further demands."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from release.errors import DesignError
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.losses import (
    Loss,
    LossName,
    error_costs,
    joint_loss,
    named_loss,
    prior_loss,
    probability_within,
    table_loss,
    worst_case,
)
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import Constraint, equal_masses, monotone, zero_mean
from release.noise.solve import design
from release.noise.solvers.closed_form import staircase
from release.noise.solvers.linear import proved_bound, solve_linear
from release.noise.solvers.problem import Problem
from release.noise.solvers.refine import ONE
from release.noise.solvers.window import Window
from tests.noise.caps import at_most
from tests.noise.test_solve import independent_optimum, problems

PURE, APPROXIMATE = Definition.PURE, Definition.APPROXIMATE


def guarantee(epsilon: str, delta: str = "0") -> Guarantee:
    return Guarantee(PURE if delta == "0" else APPROXIMATE, Fraction(epsilon), Fraction(delta))


@settings(max_examples=250)
@given(problems(most=40))
def test_laws_are_within_a_billionth_of_an_exact_bound(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss],
) -> None:
    """Pure and approximate: 500 designs; the bound is exact, and another program agrees."""
    sensitivity, epsilon, delta, loss = problem
    for promise in (Guarantee(PURE, epsilon, Fraction(0)), Guarantee(APPROXIMATE, epsilon, delta)):
        made = design(sensitivity, promise, loss)
        assert made.bound_proved
        assert made.lower_bound <= made.objective
        assert made.gap <= made.objective / 10**9
        assert deltas(made.mechanism.pmf, sensitivity, epsilon).approximate <= promise.delta
        expected = independent_optimum(sensitivity, epsilon, promise.delta, loss)
        assert float(made.objective) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@settings(max_examples=40)
@given(
    st.tuples(st.integers(2, 5), st.integers(2, 5)),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3),
    st.sampled_from(["0.3", "1", "4"]),
    st.sampled_from(["0", "0.001", "0.2"]),
    st.lists(st.integers(0, 30), min_size=25, max_size=25),
    st.booleans(),
)
def test_joint_answers_under_any_table_of_costs(
    moduli: tuple[int, int],
    shifts: list[tuple[int, int]],
    epsilon: str,
    delta: str,
    costs: list[int],
    even: bool,
) -> None:
    """Products of groups, where the window is two-dimensional and evenness runs through both."""
    group = Group(moduli)
    numbers = np.array(costs[: group.size], dtype=np.int64)
    loss = Loss("table", numbers + numbers[group.negatives()] if even else numbers)
    sensitivity = Sensitivity.of(group, shifts)
    made = design(sensitivity, guarantee(epsilon, delta), loss)
    expected = independent_optimum(sensitivity, Fraction(epsilon), Fraction(delta), loss)
    assert float(made.objective) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert made.gap <= made.objective / 10**9 + Fraction(1, 10**12)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "3", "20"])
@pytest.mark.parametrize("delta", ["0", "0.000000000001", "0.000001", "0.01", "0.5"])
@pytest.mark.parametrize(("size", "shifts"), [(48, (1, 2, 3)), (101, (1, 3, 5, 6)), (2001, (2, 3))])
def test_bounds_are_sharp_over_the_whole_range(
    size: int, shifts: tuple[int, ...], epsilon: str, delta: str
) -> None:
    """ε from 0.01 to 20, δ from 0 and 10⁻¹² to 0.5: law and exact bound meet to 10⁻¹⁰."""
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts))
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, size)
    made = design(sensitivity, guarantee(epsilon, delta), loss)
    assert made.bound_proved
    assert 0 <= made.gap <= made.objective / 10**10
    assert deltas(made.mechanism.pmf, sensitivity, Fraction(epsilon)).approximate <= Fraction(delta)


@pytest.mark.parametrize("delta", ["0.000001", "0.01"])
def test_a_window_costs_nothing_of_the_optimum(delta: str) -> None:
    """A hundred thousand answers: bound and law of a window hold for the whole group."""
    size = 100_001
    sensitivity = Sensitivity.of(Group((size,)), [(1,), (2,), (3,)])
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, size)
    large = design(sensitivity, guarantee("1", delta), loss)
    assert large.gap <= large.objective / 10**10
    small = Sensitivity.of(Group((501,)), [(1,), (2,), (3,)])
    other = design(small, guarantee("1", delta), named_loss(LossName.SQUARED, Topology.CYCLIC, 501))
    assert float(large.objective) == pytest.approx(float(other.objective), rel=1e-9)


@pytest.mark.parametrize("radius", [2, 5, 9])
def test_the_bound_of_a_small_window_is_below_the_optimum(radius: int) -> None:
    sensitivity = Sensitivity.of(Group((61,)), [(1,), (2,), (3,)])
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 61)
    promise = guarantee("0.5", "0.01")
    problem = Problem.of(sensitivity, promise, loss)
    found = solve_linear(Window(problem, radius), promise.delta)
    assert found is not None
    best = design(sensitivity, promise, loss).objective
    assert 0 < proved_bound(problem, found) <= best


@settings(max_examples=60)
@given(
    st.integers(3, 40),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(["0.05", "0.7", "3"]),
    st.data(),
)
def test_staircases_are_optimal(
    size: int, width: int, directed: bool, epsilon: str, data: st.DataObject
) -> None:
    """The staircase, against a linear program, for every width and any growing loss."""
    width = min(width, size - 1 if directed else size // 2)
    sensitivity = Sensitivity.of(
        Group((size,)), ((i + 1,) for i in range(width)), directed=directed
    )
    noise = np.arange(size)
    distance = noise if directed else np.minimum(noise, size - noise)
    steps = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    loss = Loss("table", np.cumsum([0, *steps])[distance])
    found = staircase(sensitivity, loss, Fraction(epsilon))
    assert found is not None
    made = design(sensitivity, guarantee(epsilon), loss)
    expected = independent_optimum(sensitivity, Fraction(epsilon), Fraction(0), loss)
    assert float(made.objective) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert float(found.lower_bound) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert found.lower_bound <= made.objective


def test_staircases_apply_only_where_they_are_proved() -> None:
    group = Group((12,))
    grows = named_loss(LossName.SQUARED, Topology.CYCLIC, 12)
    falls = table_loss(tuple(Fraction(abs(6 - i)) for i in range(12)))
    full, holes = Sensitivity.of(group, [(1,), (2,)]), Sensitivity.of(group, [(1,), (3,)])
    assert staircase(full, grows, Fraction(1)) is not None
    assert staircase(holes, grows, Fraction(1)) is None
    assert staircase(full, falls, Fraction(1)) is None
    pairs = Sensitivity.of(Group((3, 4)), [(0, 1)])
    assert staircase(pairs, Loss("t", grows.numerators), Fraction(1)) is None


def brute_expected(law: Pmf, name: LossName, topology: Topology, answer: int) -> Fraction:
    size = law.group.size
    total = Fraction(0)
    for noise in range(size):
        published = (answer + noise) % size
        error = abs(published - answer)
        if topology is Topology.CYCLIC:
            error = min(error, size - error)
        cost = {
            LossName.ERROR_RATE: int(error > 0),
            LossName.ABSOLUTE: error,
            LossName.SQUARED: error**2,
            LossName.NOISE_SQUARED: noise**2,
        }[name]
        total += cost * law.mass(noise)
    return total


@pytest.mark.parametrize("name", list(LossName))
@pytest.mark.parametrize("topology", [Topology.ORDERED, Topology.CYCLIC])
def test_priors_and_worst_cases_are_what_they_say(name: LossName, topology: Topology) -> None:
    """Against the definition, one true answer at a time."""
    size = 9
    sensitivity = Sensitivity.of(Group((size,)), [(1,), (2,)])
    prior = tuple(Fraction(i + 1, 45) for i in range(size))
    weighted, worst = prior_loss(name, topology, prior), worst_case(name, topology, size)
    uniform = prior_loss(name, topology, (Fraction(1, size),) * size)
    for loss in (weighted, worst):
        made = design(sensitivity, guarantee("1"), loss)
        each = [brute_expected(made.mechanism.pmf, name, topology, q) for q in range(size)]
        assert weighted.of(made.mechanism.pmf) == sum(
            p * e for p, e in zip(prior, each, strict=True)
        )
        assert worst.of(made.mechanism.pmf) == max(each)
        named = named_loss(name, topology, size)
        assert uniform.of(made.mechanism.pmf) == named.of(made.mechanism.pmf) == sum(each) / size


@pytest.mark.parametrize("delta", ["0", "0.01", "0.2"])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "5"])
@pytest.mark.parametrize("name", [LossName.ABSOLUTE, LossName.SQUARED])
def test_worst_case_laws_are_optimal(name: LossName, epsilon: str, delta: str) -> None:
    """Against the program with one more variable, written anew for another interface."""
    size, shifts = 13, [(1,), (2,), (5,)]
    sensitivity = Sensitivity.of(Group((size,)), shifts)
    made = design(sensitivity, guarantee(epsilon, delta), worst_case(name, Topology.ORDERED, size))
    assert made.gap <= made.objective / 10**9
    assert made.bound_proved
    moves, ratio = sensitivity.shifts, math.exp(float(epsilon))
    width = size + len(moves) * size + 1
    rows, limits = [], []
    for block, (shift,) in enumerate(moves):
        budget = np.zeros(width)
        for tail in range(size):
            row = np.zeros(width)
            row[tail], row[(tail + shift) % size] = 1, -ratio
            slack = size + block * size + tail
            row[slack], budget[slack] = -1, 1
            rows.append(row)
            limits.append(0.0)
        rows.append(budget)
        limits.append(float(delta))
    for costs in error_costs(name, Topology.ORDERED, size):
        rows.append(np.r_[costs, np.zeros(width - size - 1), -1])
        limits.append(0.0)
    total = np.r_[np.ones(size), np.zeros(width - size)][None, :]
    goal = np.r_[np.zeros(width - 1), 1]
    found = linprog(goal, np.array(rows), limits, total, [1.0], method="highs")
    assert float(made.objective) == pytest.approx(found.fun, rel=1e-6)
    mean = design(sensitivity, guarantee(epsilon, delta), named_loss(name, Topology.ORDERED, size))
    assert mean.objective <= made.objective


def test_a_prior_must_be_one() -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        prior_loss(LossName.SQUARED, Topology.ORDERED, (Fraction(1, 2), Fraction(1, 3)))
    with pytest.raises(ValueError, match="at least 0"):
        prior_loss(LossName.SQUARED, Topology.ORDERED, (Fraction(3, 2), Fraction(-1, 2)))


def demanded(size: int) -> list[tuple[str, list[Constraint]]]:
    group = Group((size,))
    noise = np.arange(size)
    distance = np.minimum(noise, size - noise)
    return [
        ("zero mean", [zero_mean(group)]),
        ("equal masses", list(equal_masses(group, [(0,), (1,), (size - 1,)]))),
        ("monotone", list(monotone(group, distance))),
        ("cap", [at_most(group, [(0,)], Fraction(1, 5))]),
    ]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("definition", list(Definition))
def test_further_demands_are_kept_at_the_least_price(number: int, definition: Definition) -> None:
    """Footnote 4: each costs something or nothing, is kept, and the bound takes it into account."""
    size = 11
    name, constraints = demanded(size)[number]
    sensitivity = Sensitivity.of(Group((size,)), [(1,), (4,)], directed=True)
    delta = Fraction(0) if definition is PURE else Fraction(1, 20)
    promise = Guarantee(definition, Fraction(1), delta)
    loss = named_loss(LossName.NOISE_SQUARED, Topology.ORDERED, size)
    free = design(sensitivity, promise, loss)
    made = design(sensitivity, promise, loss, constraints)
    assert made.objective >= free.objective - free.objective / 10**6
    assert deltas(made.mechanism.pmf, sensitivity, Fraction(1)).under(definition) <= delta
    assert made.is_within(Fraction(1, 10**6))
    masses = made.mechanism.pmf.to_floats()
    if name == "zero mean":
        signed = [(i + 5) % size - 5 for i in range(size)]
        assert abs(float(masses @ np.array(signed))) < 1e-9
    elif name == "equal masses":
        assert masses[0] == pytest.approx(masses[1], abs=1e-10)
        assert masses[0] == pytest.approx(masses[-1], abs=1e-10)
    elif name == "monotone":
        for a, b in itertools.pairwise(range(size // 2 + 1)):
            assert masses[b] <= masses[a] + 1e-10
            assert masses[-b] <= masses[-a] + 1e-10
    else:
        assert masses[0] <= 0.2 + 1e-10


def test_demands_that_cannot_be_kept_are_refused() -> None:
    group = Group((9,))
    sensitivity = Sensitivity.of(group, [(1,)])
    loss = named_loss(LossName.SQUARED, Topology.CYCLIC, 9)
    half = at_most(group, [(i,) for i in range(9)], Fraction(1, 2))
    with pytest.raises(DesignError, match="constraints"):
        design(
            sensitivity,
            guarantee("1"),
            loss,
            [half],
        )
    with pytest.raises(ValueError, match="one coefficient"):
        design(sensitivity, guarantee("1"), loss, [zero_mean(Group((8,)))])


def test_a_program_is_solved_far_beyond_floats() -> None:
    """A hundred bits of a law with a tail of e^-60, beside the closed form in exact fractions."""
    size, epsilon = 41, Fraction(3)
    sensitivity = Sensitivity.of(Group((size,)), [(1,)])
    loss = named_loss(LossName.ERROR_RATE, Topology.CYCLIC, size)
    problem = Problem.of(sensitivity, Guarantee(PURE, epsilon, Fraction(0)), loss)
    found = solve_linear(Window.all_of(problem), Fraction(0))
    assert found is not None
    ratio = Fraction(problem.ratio) + Fraction(problem.ratio_residue)
    steps = [min(i, size - i) for i in range(size)]
    total = sum(ratio**-s for s in steps)
    for element, mass in enumerate(found.masses.tolist()):
        exact = ratio ** -steps[element] / total
        assert abs(Fraction(mass, ONE) - exact) < Fraction(1, 2**100)


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_lemma_4_over_a_grid(seed: int) -> None:
    """Kadam et al. 2024, Lemma 4: differences 1..μ̄ one-sided; masses fall every μ̄ steps."""
    random = np.random.default_rng(seed)
    size = int(random.integers(2, 60))
    width = int(random.integers(1, size))
    epsilon = Fraction(int(random.integers(1, 400)), 100)
    e = math.exp(-float(epsilon))
    levels = [-(-i // width) for i in range(size)]
    total = sum(e**k for k in levels)
    sensitivity = Sensitivity.of(Group((size,)), ((i + 1,) for i in range(width)), directed=True)
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, size)
    made = design(sensitivity, Guarantee(PURE, epsilon, Fraction(0)), loss)
    assert made.mechanism.pmf.to_floats() == pytest.approx(
        [e**k / total for k in levels], abs=1e-12
    )


def test_a_program_ends_at_its_work_limit() -> None:
    """On a product of groups; what is left is a law that keeps its promise, and an honest gap."""
    group = Group((25, 25))
    near = [s for s in itertools.product(range(-2, 3), repeat=2) if s != (0, 0)]
    sensitivity = Sensitivity.of(group, near)
    parts = (AnswerDomain(Topology.ORDERED, tuple(range(25))),) * 2
    loss = joint_loss(LossName.ABSOLUTE, parts)
    made = design(sensitivity, guarantee("1"), loss, work=0.002)
    assert any("the work limit ended the search" in note for note in made.notes)
    assert not made.is_within()
    assert made.lower_bound <= made.objective
    assert deltas(made.mechanism.pmf, sensitivity, Fraction(1)).probabilistic == 0


def brute_joint(name: LossName, parts: tuple[AnswerDomain, ...], law: Pmf) -> tuple[Fraction, ...]:
    """Expected loss, chance of exact and chance of near, over every true answer and noise value."""
    loss = exact = near = Fraction(0)
    moduli = [part.size for part in parts]
    for truth in itertools.product(*map(range, moduli)):
        for element in range(law.group.size):
            errors = []
            for part, true, noise in zip(parts, truth, law.group.shift(element), strict=True):
                apart = abs(true - (true + noise) % part.size)
                if part.topology is Topology.CYCLIC:
                    apart = min(apart, part.size - apart)
                if part.topology is Topology.NOMINAL:
                    apart = min(apart, 1)
                errors.append(apart)
            share = law.mass(element) / math.prod(moduli)
            exact += share * (element == 0)
            near += share * (max(errors) <= 1)
            if name is LossName.ERROR_RATE:
                loss += share * (max(errors) > 0)
            else:
                loss += share * sum(e if name is LossName.ABSOLUTE else e * e for e in errors)
    return loss, exact, near


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(list(Topology)), st.integers(2, 4)), min_size=1, max_size=3),
    st.sampled_from([LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED]),
    st.randoms(use_true_random=False),
)
def test_joint_losses_are_what_they_say(
    shape: list[tuple[Topology, int]], name: LossName, random: Random
) -> None:
    parts = tuple(AnswerDomain(topology, tuple(range(size))) for topology, size in shape)
    group = JointDomain(parts).group
    weights = [random.randrange(100) for _ in range(group.size)]
    weights[0] += 2**20 - sum(weights)
    law = Pmf.of(group, weights)
    loss, exact, near = brute_joint(name, parts, law)
    assert joint_loss(name, parts).of(law) == loss
    assert probability_within(law, parts, 0) == law.mass(0) == exact
    assert probability_within(law, parts, 1) == near
