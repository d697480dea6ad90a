"""The error rate under probabilistic guarantees, δ > 0: levels instead of masses.

Normal form (docs/design/mathematics.md 2.7). Choose which constraints f(η) ≤ E·f(η+μ) to give up.
With d' the number of steps from zero along the others, masses relative to f(0) are E^{-d'}; with S
their sum and τ the largest sum over the given-up tails of one μ, f(0) = min(1/S, δ/τ). So the
variables are integers: a level for each element, level(η+μ) ≤ level(η)+1 unless given up, and the
least t = 1/f(0) with

    t ≥ Σ_η E^{-level(η)},     δ·t ≥ Σ over given-up η of E^{-level(η)}   for each μ.

Depth limit (2.9). Levels from K on count as mass zero, and edges from level K-1 into them cost
nothing. A level is at least the distance to zero, so only elements nearer than K appear, however
large the group is. That relaxes the program: its least t bounds t from below for the whole group.
Completed with true zeros its solution is a pmf, which bounds t from above. When they differ, K
grows.

CP-SAT solves it with coefficients rounded down to integers, which can only lower t, so its bound
needs no tolerance. But the bound is the solver's and not proved: see ``_solver``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from release.exact.domain import Codes
from release.exact.numbers import dot, exp_bounds
from release.exact.pmf import DEFAULT_BITS, Pmf
from release.noise.solvers.closed_form import falling, level_sum
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Work

_SCALE = 2**38
"""Integer units of one: rounding down loses less than 10⁻⁹ of t for hundreds of elements."""

_NOTHING = Fraction(1, 10**9)
"""A difference of f(0) that counts as none."""

_UNITS_A_SECOND = 3e7
"""Work of what CP-SAT counts as a second, whatever a clock says."""

_ZERO = -1
"""The level of an element without mass."""


@dataclass(frozen=True)
class LevelSolution:
    """A pmf from levels, with the solver's upper bound of f(0) over all pmfs."""

    pmf: Pmf
    highest_mode: Fraction
    finished: bool


def available() -> bool:
    """Whether CP-SAT can be loaded (the extra ``fast``)."""
    try:
        from ortools.sat.python import cp_model  # noqa: F401 - only whether it can be loaded
    except ImportError:
        return False
    return True


def solve_levels(problem: Problem, work: Work, gap: Fraction) -> LevelSolution:
    """The best pmf within the ``work`` that is left, up to a relative ``gap`` in 1 - f(0).

    The problem is one of the error rate, centred at zero, with a probabilistic guarantee, δ > 0.
    """
    epsilon, delta = problem.guarantee.epsilon, problem.guarantee.delta
    longest = level_sum(problem.steps, epsilon, ROUND_CEILING)
    best = pmf_of_levels(problem, problem.steps)
    highest = Fraction(1)
    masses = masses_of_levels(epsilon, 4096)
    # Levels whose mass is above δ·t cannot be given up (t ≤ S of the pure pmf), and levels whose
    # mass is below a unit are all the same to the program. Masses fall, so both are bisections.
    fixed = bisect_left(masses, -delta * longest, key=lambda value: -value)
    visible = bisect_right(masses, -Fraction(1, _SCALE), key=lambda value: -value)
    depth = fixed + 3
    # Invariant: best is feasible, and no pmf of the group has f(0) above highest.
    while not work.is_over:
        solution = _solve_at_depth(problem, masses, fixed, depth, longest, work)
        if solution is None:
            break
        levels, lowest, finished = solution
        highest = min(highest, 1 / lowest)
        pmf = pmf_of_levels(problem, levels)
        if pmf.weights[0] > best.weights[0]:
            best = pmf
            longest = min(longest, 1 / best.mass(0))
        close = max(gap * (1 - best.mass(0)), _NOTHING)
        if highest - best.mass(0) <= close or (finished and depth >= visible):
            return LevelSolution(best, highest, finished=True)
        if not finished:
            break
        depth += max(1, depth // 6)
    return LevelSolution(best, highest, finished=False)


def masses_of_levels(epsilon: Fraction, count: int) -> list[Fraction]:
    """Lower bounds of e^{-εk} for k below ``count``, as far as they matter."""
    context = Context(prec=60, rounding=ROUND_FLOOR, Emin=-999999)
    _, high = exp_bounds(epsilon)
    factor = context.divide(Decimal(high.denominator), Decimal(high.numerator))
    # Masses below 1e-40 are far below a unit of the program, 1/_SCALE.
    masses, mass = [], Decimal(1)
    for _ in range(count):
        masses.append(Fraction(mass))
        if mass < Decimal("1e-40"):
            break
        mass = context.multiply(mass, factor)
    return masses


def _solve_at_depth(
    problem: Problem,
    masses: list[Fraction],
    fixed: int,
    depth: int,
    longest: Fraction,
    work: Work,
) -> tuple[Codes, Fraction, bool] | None:
    """Levels, a lower bound of t and whether the search ended; None without a solution."""
    from ortools.sat.python import cp_model

    depth = min(depth, len(masses))
    near = np.flatnonzero((problem.steps >= 0) & (problem.steps < depth))
    numbers = np.full(problem.size, -1, dtype=np.int64)
    numbers[near] = np.arange(near.size)
    window = _Window(cp_model.CpModel(), problem.steps[near].tolist(), fixed, depth)
    mass = _rounded_down(masses[:depth], Fraction(_SCALE))
    budget = _rounded_down(masses[:depth], _SCALE / problem.guarantee.delta)
    total = window.model.new_int_var(_SCALE // 2, int(_SCALE * longest) + near.size + 1, "t")
    window.model.add(window.total_mass(mass) <= total)
    for shift in problem.sensitivity.shifts:
        heads = numbers[problem.sensitivity.group.moved(shift)[near]].tolist()
        given_up = window.given_up(heads, budget)
        if given_up:
            window.model.add(sum(given_up) <= total)
    window.model.minimize(total)
    solver = _solver(work.left / _UNITS_A_SECOND)
    status = solver.solve(window.model)
    work.spend(solver.response_proto.deterministic_time * _UNITS_A_SECOND)
    if status in (cp_model.FEASIBLE, cp_model.UNKNOWN):
        work.end()
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    levels = np.full(problem.size, _ZERO, dtype=np.int64)
    for element, row in zip(near.tolist(), window.at_most, strict=True):
        values = list(map(solver.boolean_value, row))
        levels[element] = values.index(True) if True in values else _ZERO
    # The bound is of an integer program, so rounding the float to the nearest integer is exact.
    lowest = Fraction(round(solver.best_objective_bound), _SCALE)
    return levels, lowest, status == cp_model.OPTIMAL


def _solver(counted_seconds: float) -> Any:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    # Steps of the search, weighted; no clock.
    solver.parameters.max_deterministic_time = counted_seconds
    # Strategies beside each other would end in the order in which the machine runs them.
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    # CP-SAT 9.15 calls solutions optimal that are not (google/or-tools issue 5293): a presolve rule
    # adds 64-bit coefficients in 32 bits. This limit is the only way to switch that rule off.
    solver.parameters.presolve_inclusion_work_limit = 0
    return solver


def _rounded_down(masses: list[Fraction], factor: Fraction) -> list[int]:
    """factor·mass in integers, and 0 for the level after the last."""
    return [*(int(factor * mass) for mass in masses), 0]


class _Window:
    """The Booleans of the elements nearer than ``depth``: ``at_most[v][k]`` is level(v) ≤ k.

    Up to ``fixed`` steps from zero levels are the distances, because heavier constraints stay.
    """

    def __init__(self, model: Any, distance: list[int], fixed: int, depth: int) -> None:
        self.model, self.distance, self.fixed, self.depth = model, distance, fixed, depth
        self.yes, self.no = model.new_constant(1), model.new_constant(0)
        self.at_most = list(map(self._levels, distance))

    def _levels(self, own: int) -> list[Any]:
        # A level is at least the distance: constraints given up only lengthen the way from zero.
        row, above = [self.no] * own, range(own, self.depth)
        if own <= self.fixed:
            return row + [self.yes] * len(above)
        row += [self.model.new_bool_var("") for _ in above]
        for k in range(own, self.depth - 1):
            self.model.add_implication(row[k], row[k + 1])
        return row

    def total_mass(self, mass: list[int]) -> Any:
        """Σ mass[level], with mass falling to 0 at ``depth``."""
        # mass[level] = Σ over k ≥ level of (mass[k] - mass[k+1]), and at_most[k] is k ≥ level.
        terms = []
        for own, row in zip(self.distance, self.at_most, strict=True):
            for k in range(own, self.depth):
                terms.append((mass[k] - mass[k + 1]) * row[k])
        return sum(terms)

    def given_up(self, heads: list[int], budget: list[int]) -> list[Any]:
        """Terms that add up to the budget that the given-up constraints of one μ take."""
        terms = []
        for tail, head in enumerate(heads):
            own = self.distance[tail]
            # Heavy tails satisfy their constraint: their levels and those of their heads are fixed.
            if head < 0 or own < self.fixed:
                continue
            row, ahead = self.at_most[tail], self.at_most[head]
            open_levels = [k for k in range(own, self.depth - 1) if ahead[k + 1] is not self.yes]
            if not open_levels:
                continue
            gives = self.model.new_bool_var("")
            for k in open_levels:
                # level(tail) ≤ k needs level(head) ≤ k+1, unless given up.
                self.model.add_bool_or([row[k].negated(), ahead[k + 1], gives])
            if own <= self.fixed:
                terms.append(budget[own] * gives)
                continue
            # budget[level] as in total_mass, each term times gives.
            for k in range(own, self.depth):
                counted = self.model.new_bool_var("")
                self.model.add_bool_or([gives.negated(), row[k].negated(), counted])
                terms.append((budget[k] - budget[k + 1]) * counted)
        return terms


def pmf_of_levels(problem: Problem, levels: Codes) -> Pmf:
    """The exact pmf with these levels: f(0) as large as mass and budget allow.

    Constraints that the levels violate are given up and paid for in full.
    """
    total = 2**DEFAULT_BITS
    ratio, cap = problem.exact_ratio, int(problem.guarantee.delta * total)
    tails = _tails_by_level(problem, levels, int(levels.max()))
    depth = _settled(total, int(levels.max()), ratio)
    counts = _folded(np.bincount(levels[levels >= 0]), depth)
    rows = [_folded(row, depth) for row in tails]

    def fits(mode: int) -> bool:
        rungs = falling(mode, depth, ratio)
        if dot(counts, rungs) > total:
            return False
        return all(dot(row, rungs) <= cap for row in rows)

    # Invariant of the bisection: low fits, high does not.
    low, high = 0, total + 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    # Where the budget binds, mass remains; it raises the floor: max(f, c) violates nothing that f
    # satisfies (2.7).
    by_level = np.array([*falling(low, depth, ratio), 0], dtype=np.int64)
    weights = by_level[np.minimum(levels, depth)]
    return Pmf.of(problem.sensitivity.group, _raise_floor(weights, total).tolist())


def _settled(mode: int, depth: int, ratio: Fraction) -> int:
    """A level from which on all weights are alike, for this mode and every smaller one."""
    rungs = falling(mode, depth, ratio)
    return bisect_left(rungs, -rungs[-1], key=lambda value: -value)


def _folded(counts: Codes, depth: int) -> list[int]:
    """The counts of levels, those beyond ``depth`` counted there."""
    return [*counts[:depth].tolist(), int(counts[depth:].sum())]


def _tails_by_level(problem: Problem, levels: Codes, depth: int) -> list[Codes]:
    """For each μ, how many given-up constraints start at each level."""
    far = np.iinfo(np.int64).max
    height = np.where(levels < 0, far, levels)
    rows = []
    for shift in problem.sensitivity.shifts:
        heads = height[problem.sensitivity.group.moved(shift)]
        # Only elements with mass add 1: at the others the sum would overflow.
        violated = (levels >= 0) & (heads > height + (levels >= 0))
        rows.append(np.bincount(levels[violated], minlength=depth + 1))
    return rows


def _raise_floor(weights: Codes, total: int) -> Codes:
    """max(weights, c) with the c for which the sum is ``total``; single units to the lowest."""
    distinct, counts = map(np.ndarray.tolist, np.unique(weights, return_counts=True))
    missing = total - dot(distinct, counts)
    raised, floor = 0, 0
    # Invariant: raising the ``raised`` lowest weights to ``floor`` has been paid for.
    for weight, count in zip(distinct, counts, strict=True):
        step = (weight - floor) * raised
        if step > missing:
            break
        missing -= step
        raised, floor = raised + count, weight
    if raised:
        floor += missing // raised
        missing -= (missing // raised) * raised
    values = np.maximum(weights, floor)
    # What is missing still is less than one unit for each element on the floor.
    lowest = np.flatnonzero(values == floor)[:missing]
    values[lowest] += 1
    return values
