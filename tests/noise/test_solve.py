"""Noise laws: the papers' values, independent programs, the exact promise over random inputs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from release.exact.domain import Group, Topology
from release.exact.losses import Loss, LossName, named_loss, table_loss
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.privacy import Definition, Guarantee, deltas
from release.exact.sensitivity import Sensitivity
from release.noise.design import Design
from release.noise.solve import design
from release.noise.solvers.integer import _best_cut, _bound_masses, _search, _trimmed
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Work
from release.noise.solvers.program import solve as run_program
from release.noise.solvers.window import Window


def solve(
    size: int,
    shifts: list[int],
    epsilon: str,
    delta: str = "0",
    definition: Definition = Definition.PURE,
    loss: LossName = LossName.ERROR_RATE,
    topology: Topology = Topology.CYCLIC,
    *,
    directed: bool = False,
) -> Design[Modular]:
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts), directed=directed)
    guarantee = Guarantee(definition, Fraction(epsilon), Fraction(delta))
    return design(sensitivity, guarantee, named_loss(loss, topology, size))


def masses(made: Design[Modular]) -> list[float]:
    return [float(mass) for mass in made.mechanism.pmf.to_floats()]


def test_table_one_of_the_journal_text() -> None:
    """Kadam et al. 2024, Table I, column δ = 0: one-sided differences 1, 2, 3."""
    printed = [0.5432, *[0.1212] * 3, *[0.0270] * 3, *[0.0060] * 2]
    made = solve(9, [1, 2, 3], "1.5", directed=True)
    assert masses(made) == pytest.approx(printed, abs=5e-5)


def test_the_symmetric_law_beside_table_one() -> None:
    """The law that protects both directions: f(0) = 0.410 (erratum 1)."""
    made = solve(9, [1, 2, 3], "1.5")
    e = math.exp(-1.5)
    top = 1 / (1 + 6 * e + 2 * e * e)
    expected = [top, *[top * e] * 3, *[top * e * e] * 2, *[top * e] * 3]
    assert masses(made) == pytest.approx(expected, abs=1e-12)
    assert masses(made)[0] == pytest.approx(0.410, abs=5e-4)


@pytest.mark.parametrize("k", [2, 3, 5, 24, 101])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "7.5"])
def test_k_ary_randomised_response_is_the_case_of_all_differences(k: int, epsilon: str) -> None:
    made = solve(k, list(range(1, k)), epsilon)
    e = math.exp(float(epsilon))
    assert masses(made) == pytest.approx([e / (e + k - 1), *[1 / (e + k - 1)] * (k - 1)], rel=1e-12)


@pytest.mark.parametrize(("size", "shift"), [(8, 3), (8, 2), (12, 5), (15, 6), (9, 3), (7, 1)])
@pytest.mark.parametrize("epsilon", ["0.25", "0.75", "3"])
def test_single_difference_laws_are_those_of_lemma_3(size: int, shift: int, epsilon: str) -> None:
    """Kadam et al. 2024, (17) and (18): a geometric run along the orbit of the difference."""
    orbit = size // math.gcd(size, shift)
    e = math.exp(-float(epsilon))
    expected = [0.0] * size
    for k in range(orbit):
        expected[k * shift % size] = e**k * (1 - e) / (1 - e**orbit)
    made = solve(size, [shift], epsilon, directed=True)
    assert masses(made) == pytest.approx(expected, abs=1e-12)


def test_wrapping_noise_is_dear_on_ordered_answers() -> None:
    """N = 24, ε = 1, differences ±1, squared loss, uniform prior: 19.43."""
    made = solve(25, [1], "1", loss=LossName.SQUARED, topology=Topology.ORDERED)
    assert float(made.objective) == pytest.approx(19.43, abs=5e-3)


def test_joint_answers_that_move_together() -> None:
    """Kadam et al. 2024, (57): two coordinates in 0..4, each moved by 0, 1 or 2, ε = 3."""
    group = Group((5, 5))
    moves = [(a, b) for a in range(3) for b in range(3)]
    costs = np.array([0] + [1] * 24, dtype=np.int64)
    sensitivity = Sensitivity.of(group, moves, directed=True)
    guarantee = Guarantee(Definition.PURE, Fraction(3), Fraction(0))
    made = design(sensitivity, guarantee, Loss("error_rate", costs))
    expected = np.full((5, 5), 0.0017)
    expected[:3, :3] = 0.0346
    expected[0, 0] = 0.6954
    assert made.mechanism.pmf.to_floats().reshape(5, 5) == pytest.approx(expected, abs=5e-5)


@st.composite
def problems(draw: st.DrawFn, most: int = 40) -> tuple[Sensitivity, Fraction, Fraction, Loss]:
    """Random differences on Z_N, ε, δ and a loss; symmetric and directed, connected or not."""
    size = draw(st.integers(2, most))
    shifts = draw(st.lists(st.integers(1, size - 1), min_size=1, max_size=5))
    directed = draw(st.booleans())
    sensitivity = Sensitivity.of(Group((size,)), ((s,) for s in shifts), directed=directed)
    epsilon = Fraction(draw(st.sampled_from(["0.05", "0.3", "1", "2.5", "6"])))
    delta = Fraction(draw(st.sampled_from(["0.000001", "0.001", "0.02", "0.1", "0.4"])))
    named = st.builds(
        named_loss, st.sampled_from(LossName), st.sampled_from(Topology), st.just(size)
    )
    table = st.lists(st.integers(0, 50), min_size=size, max_size=size).map(
        lambda costs: table_loss(tuple(Fraction(c, 7) for c in costs))
    )
    return sensitivity, epsilon, delta, draw(st.one_of(named, table))


def _matrix(sensitivity: Sensitivity, ratio: float, slack: int) -> np.ndarray:
    """Rows f(η) - E·f(η+μ), with ``slack`` further columns after the masses."""
    size = sensitivity.group.size
    rows = np.zeros((len(sensitivity.shifts) * size, size + slack))
    for block, shift in enumerate(sensitivity.shifts):
        moved = sensitivity.group.moved(shift)
        for element in range(size):
            row = rows[block * size + element]
            row[element] += 1
            row[moved[element]] -= ratio
    return rows


def independent_optimum(
    sensitivity: Sensitivity, epsilon: Fraction, delta: Fraction, loss: Loss
) -> float:
    """The pure (δ = 0) or approximate optimum by another solver interface, unscaled."""
    size, moves = sensitivity.group.size, len(sensitivity.shifts)
    slack = moves * size if delta else 0
    costs = np.concatenate([loss.numerators / loss.denominator, np.zeros(slack)])
    rows = _matrix(sensitivity, math.exp(epsilon), slack)
    limits = np.zeros(len(rows))
    if delta:
        rows[:, size:] = -np.eye(slack)
        budget = np.zeros((moves, size + slack))
        for block in range(moves):
            budget[block, size + block * size : size + (block + 1) * size] = 1
        rows = np.vstack([rows, budget])
        limits = np.concatenate([limits, np.full(moves, float(delta))])
    total = np.concatenate([np.ones(size), np.zeros(slack)])[None, :]
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(costs, rows, limits, total, [1.0], method="highs", options=options)
    assert found.status == 0
    return float(found.fun)


@settings(max_examples=150)
@given(problems())
def test_pure_laws_are_optimal_and_keep_their_promise(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss],
) -> None:
    sensitivity, epsilon, _, loss = problem
    made = design(sensitivity, Guarantee(Definition.PURE, epsilon, Fraction(0)), loss)
    assert deltas(made.mechanism.pmf, sensitivity, epsilon).probabilistic == 0
    expected = independent_optimum(sensitivity, epsilon, Fraction(0), loss)
    assert float(made.objective) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert made.lower_bound <= made.objective


@settings(max_examples=150)
@given(problems(most=25))
def test_approximate_laws_are_optimal_and_keep_their_promise(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss],
) -> None:
    sensitivity, epsilon, delta, loss = problem
    made = design(sensitivity, Guarantee(Definition.APPROXIMATE, epsilon, delta), loss)
    assert deltas(made.mechanism.pmf, sensitivity, epsilon).approximate <= delta
    expected = independent_optimum(sensitivity, epsilon, delta, loss)
    assert float(made.objective) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert made.lower_bound <= made.objective


def verbatim_optimum(
    sensitivity: Sensitivity, epsilon: Fraction, delta: Fraction, loss: Loss
) -> float:
    """(13a) to (13h) of Kadam et al. 2024 with u, y per difference, without (13g), as written."""
    size, moves = sensitivity.group.size, len(sensitivity.shifts)
    block = moves * size
    columns = size + 2 * block
    f_part = _matrix(sensitivity, math.exp(epsilon), 2 * block)
    eye, zero = np.eye(block), np.zeros((block, block))
    tails = np.vstack([np.eye(size)] * moves)
    nothing = np.zeros((block, size))
    f_part[:, size + block :] = -eye  # (13f)
    budget = np.zeros((moves, columns))
    for index in range(moves):
        budget[index, size + index * size : size + (index + 1) * size] = 1
    constraints = [
        LinearConstraint(np.r_[np.ones(size), np.zeros(2 * block)][None, :], 1, 1),
        LinearConstraint(budget, -np.inf, float(delta)),
        LinearConstraint(np.hstack([nothing, eye, -eye]), -np.inf, 0),  # y ≤ u
        LinearConstraint(np.hstack([tails, -eye, eye]), -np.inf, 1),  # (13d)
        LinearConstraint(np.hstack([-tails, eye, eye]), -np.inf, 1),  # (13e)
        LinearConstraint(np.hstack([-tails, eye, zero]), -np.inf, 0),  # y ≤ f, as (12) means it
        LinearConstraint(f_part, -np.inf, 0),
    ]
    whole = np.r_[np.zeros(size + block), np.ones(block)]
    costs = np.r_[loss.numerators / loss.denominator, np.zeros(2 * block)]
    options = {"mip_rel_gap": 1e-9}
    found = milp(
        costs, integrality=whole, bounds=Bounds(0, 1), constraints=constraints, options=options
    )
    assert found.status == 0
    return float(found.fun)


@settings(max_examples=60)
@given(problems(most=9))
def test_probabilistic_laws_are_optimal_and_keep_their_promise(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss],
) -> None:
    sensitivity, epsilon, delta, loss = problem
    guarantee = Guarantee(Definition.PROBABILISTIC, epsilon, delta)
    made = design(sensitivity, guarantee, loss)
    assert deltas(made.mechanism.pmf, sensitivity, epsilon).probabilistic <= delta
    pure = design(sensitivity, Guarantee(Definition.PURE, epsilon, Fraction(0)), loss)
    approximate = design(sensitivity, Guarantee(Definition.APPROXIMATE, epsilon, delta), loss)
    tolerance = Fraction(1, 10**6) * max(Fraction(1), pure.objective)
    assert approximate.objective - tolerance <= made.objective <= pure.objective + tolerance
    if delta >= Fraction(1, 100):
        # Below, the other program's own tolerance of 10⁻⁶ is as large as the budget.
        expected = verbatim_optimum(sensitivity, epsilon, delta, loss)
        assert float(made.objective) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "10", "20"])
@pytest.mark.parametrize("delta", ["0", "0.000000000001", "0.0000000001", "0.5"])
@pytest.mark.parametrize("definition", list(Definition))
@pytest.mark.parametrize("loss", [LossName.ERROR_RATE, LossName.SQUARED])
def test_laws_at_the_edges_of_the_range_keep_their_promise(
    epsilon: str, delta: str, definition: Definition, loss: LossName
) -> None:
    """Where float solvers are known to return laws whose true δ is hundreds of times too large."""
    if definition is Definition.PURE:
        delta = "0"
    made = solve(21, [1, 2], epsilon, delta, definition, loss)
    found = deltas(made.mechanism.pmf, made.sensitivity, Fraction(epsilon)).under(definition)
    assert found <= Fraction(delta)
    assert sum(made.mechanism.pmf.weights.tolist()) == made.mechanism.pmf.total


def test_a_law_passes_with_every_admissible_ratio() -> None:
    """docs/design/format.md lets a verifier take any rational within 10⁻³⁰ below e^ε."""
    from release.exact.privacy import deltas_at_ratio

    for epsilon in ("0.5", "1", "3"):
        made = solve(50, [1, 4], epsilon)
        ratio = exp_bounds(Fraction(epsilon))[1] - Fraction(1, 10**30)
        assert deltas_at_ratio(made.mechanism.pmf, made.sensitivity, ratio).probabilistic == 0


def test_no_differences_need_no_noise() -> None:
    sensitivity = Sensitivity.of(Group((5,)), [])
    guarantee = Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    for loss in (LossName.ERROR_RATE, LossName.SQUARED):
        made = design(sensitivity, guarantee, named_loss(loss, Topology.ORDERED, 5))
        assert made.mechanism.pmf.mass(0) == 1


def test_a_work_limit_gives_a_proved_law_and_an_honest_gap() -> None:
    sensitivity = Sensitivity.of(Group((60,)), [(1,), (2,), (3,), (4,), (5,), (6,)])
    guarantee = Guarantee(Definition.PROBABILISTIC, Fraction(1), Fraction(1, 10))
    made = design(
        sensitivity, guarantee, named_loss(LossName.ERROR_RATE, Topology.CYCLIC, 60), work=0.02
    )
    assert deltas(made.mechanism.pmf, sensitivity, Fraction(1)).probabilistic <= Fraction(1, 10)
    assert made.gap > 0
    assert any("work limit" in note for note in made.notes)


@pytest.mark.parametrize("seed", range(20))
def test_programs_solve_alike_through_pulp_and_as_arrays(seed: int) -> None:
    """Costs of zero, columns that stand nowhere and whole numbers: PuLP has an order of its own."""
    from release.noise.solvers import program

    numbers = np.random.default_rng(seed)
    found = []
    builder = program.Builder()
    builder.add_columns(numbers.integers(0, 3, 6).astype(float), 5.0)
    builder.add_columns(numbers.integers(0, 3, 3).astype(float), 4.0, whole=True)
    builder.add_columns(np.ones(1))
    for _ in range(4):
        columns = numbers.choice(9, 4, replace=False)
        builder.add_row(columns, -numbers.uniform(0.5, 2, 4), -numbers.uniform(0.5, 3))
    made = builder.build()
    for arrays in (False, True):
        solution = program.solve(made, arrays=arrays)
        assert solution is not None
        assert float(solution.values @ made.cost) == pytest.approx(solution.objective)
        sums = np.add.reduceat(made.values * solution.values[made.columns], made.starts[:-1])
        assert (sums <= made.limit + 1e-7).all()
        found.append(solution.objective)
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize(
    ("shifts", "epsilon", "delta", "top"),
    [
        ([1, 2, 3], "0.5", "0.1", 0.1248494),
        ([1, 2, 3, 4], "1", "0.1", 0.1974597),
    ],
)
def test_error_rate_laws_proved_on_a_ring_of_49(
    shifts: list[int], epsilon: str, delta: str, top: float
) -> None:
    """docs/design/mathematics.md, "Solving the probabilistic program", to proof."""
    made = solve(49, shifts, epsilon, delta, Definition.PROBABILISTIC)
    assert masses(made)[0] == pytest.approx(top, abs=5e-8)
    assert made.gap < Fraction(1, 10**8)


@pytest.mark.parametrize("loss", [LossName.ERROR_RATE, LossName.SQUARED])
@pytest.mark.parametrize("delta", ["0.01", "0.1"])
def test_the_window_proves_laws_of_large_rings(loss: LossName, delta: str) -> None:
    """A ring of 2001 costs what one of 101 costs, and has the same optimum to the last digits."""
    definition = Definition.PROBABILISTIC
    small = solve(101, [1, 2, 3], "1", delta, definition, loss)
    large = solve(2001, [1, 2, 3], "1", delta, definition, loss)
    for made in (small, large):
        assert made.gap <= made.objective / 10**6
        found = deltas(made.mechanism.pmf, made.sensitivity, Fraction(1))
        assert found.probabilistic <= Fraction(delta)
    assert float(large.objective) == pytest.approx(float(small.objective), rel=1e-6)


def test_levels_without_cp_sat_give_the_same_law_by_the_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The extra is a matter of speed, not of the answer."""
    problem = (25, [1, 2], "1", "0.05", Definition.PROBABILISTIC)
    fast = solve(*problem)
    assert fast.method == "levels"
    monkeypatch.setattr("release.noise.solve.levels_available", lambda: False)
    slow = solve(*problem)
    assert slow.method == "integer-program"
    assert float(slow.objective) == pytest.approx(float(fast.objective), rel=1e-6)


@pytest.mark.parametrize(
    ("size", "shifts", "epsilon", "delta", "top"),
    [
        (9, [1, 2, 3], "1.5", "0.1238", 0.554833),
        (10, [3, 6, 9], "1.92", "0.1937", 0.674396),
        (13, [10, 11], "1.51", "0.062", 0.624459),
    ],
)
def test_laws_that_a_fault_of_cp_sat_once_missed(
    size: int, shifts: list[int], epsilon: str, delta: str, top: float
) -> None:
    """google/or-tools issue 5293 cut these optima off, under the status "optimal"."""
    made = solve(size, shifts, epsilon, delta, Definition.PROBABILISTIC, directed=True)
    assert masses(made)[0] == pytest.approx(top, abs=1e-6)


@settings(max_examples=40)
@given(problems(most=9))
def test_levels_and_window_agree(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss],
) -> None:
    from release.noise.solve import _by_levels, _by_window
    from release.noise.solvers.closed_form import delta_buys_nothing

    sensitivity, epsilon, delta, _ = problem
    loss = named_loss(LossName.ERROR_RATE, Topology.NOMINAL, sensitivity.group.size)
    asked = Problem.of(sensitivity, Guarantee(Definition.PROBABILISTIC, epsilon, delta), loss)
    if delta_buys_nothing(asked.steps, epsilon, delta) or delta < Fraction(1, 1000):
        return
    gap = Fraction(1, 10**6)
    one, two = _by_levels(asked, Work(2e8), gap), _by_window(asked, Work(2e8), gap)
    assert float(one.objective) == pytest.approx(float(two.objective), rel=2e-6, abs=1e-6)
    assert float(one.lower_bound) <= float(two.objective) + 1e-6


def test_a_delta_too_small_to_see_does_not_cost_more_than_none() -> None:
    """A product group and a table of costs, δ = 10⁻³⁰: no worse than the pure law."""
    sensitivity = Sensitivity.of(Group((3, 4)), [(0, 1), (1, 0)])
    costs = tuple(Fraction(c, 7) for c in [3, 0, 9, 1, 4, 8, 2, 7, 5, 6, 1, 2])
    tiny = Guarantee(Definition.APPROXIMATE, Fraction(1), Fraction(1, 10**30))
    pure = Guarantee(Definition.PURE, Fraction(1), Fraction(0))
    made = design(sensitivity, tiny, table_loss(costs))
    best = design(sensitivity, pure, table_loss(costs)).objective
    assert made.objective <= best * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("arrays", [True, False])
def test_a_search_leaves_out_what_is_above_its_cutoff(arrays: bool) -> None:
    """Of four things two at least: 3 + 5 is least; below 8 there is nothing."""
    builder = Builder()
    columns = builder.add_columns(np.array([7.0, 3.0, 9.0, 5.0]), 1.0, whole=True)
    builder.add_row(columns, -np.ones(4), -2.0)
    program = builder.build()
    found = run_program(program, cutoff=8.001, arrays=arrays)
    assert found is not None
    assert found.objective == found.bound == pytest.approx(8)
    assert run_program(program, cutoff=7.999, arrays=arrays) is None


@settings(max_examples=25)
@given(problems(most=9), st.sampled_from([LossName.SQUARED, LossName.ABSOLUTE]))
def test_a_cutoff_does_not_change_the_optimum(
    problem: tuple[Sensitivity, Fraction, Fraction, Loss], loss: LossName
) -> None:
    """Searches that know an incumbent's cost against searches that know none."""
    sensitivity, epsilon, delta, _ = problem
    guarantee = Guarantee(Definition.PROBABILISTIC, epsilon, delta)
    if delta < Fraction(1, 1000):
        return
    size = sensitivity.group.size
    asked = Problem.of(sensitivity, guarantee, named_loss(loss, Topology.CYCLIC, size))
    window = Window.all_of(asked)
    incumbent = _best_cut(asked, Work())
    if incumbent is None:
        return
    fewer = _trimmed(asked, incumbent, Work())
    assert fewer.objective <= incumbent.objective
    bounds = _bound_masses(window, math.inf, Work())
    solutions = [
        _search(window, bounds, cap, Work(), 1e-9)[0] for cap in (math.inf, fewer.objective)
    ]
    assert all(solution is not None and solution.finished for solution in solutions)
    without, within = (solution.objective for solution in solutions if solution is not None)
    assert within == pytest.approx(without, rel=1e-5, abs=1e-7)
