"""The error rate under probabilistic guarantees, δ > 0: levels instead of masses.

Normal form (docs/design/mathematics.md). Choose which constraints f(η) ≤ E·f(η+μ) to give up. With
d' the number of steps from zero without them, masses relative to f(0) are E^{-d'}; with S their sum
and τ the largest sum over the given-up tails of one μ, f(0) = min(1/S, δ/τ). So the program is of
integers: a level for each element, level(η+μ) ≤ level(η)+1 unless given up, and the least t =
1/f(0) with

    t ≥ Σ_η E^{-level(η)},     δ·t ≥ Σ over given-up η of E^{-level(η)}   for each μ.

Depth limit (the window of docs/design/mathematics.md). Only levels below K are told apart; from K
on masses count as zero, and edges from level K-1 into them cost nothing. A level is at least the
distance to zero, so only elements nearer than K appear, however large the group is. That relaxes
the program: its least t bounds t from below for the whole group. Completed with true zeros its
solution is a law, which bounds t from above. When they differ, K grows.

CP-SAT solves it with coefficients rounded down to integers, which again can only lower t. So its
bound needs no tolerance; but it is a solver's word, and CP-SAT 9.15 has been found to be wrong
(google/or-tools issue 5293: a presolve rule adds 64-bit coefficients in 32 bits). That rule is
switched off, and a law says that its bound is the solver's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from release.exact.domain import Codes
from release.exact.numbers import exp_below_any_verifier, exp_bounds
from release.exact.pmf import DEFAULT_BITS, Pmf
from release.noise.solvers.closed_form import falling, level_sum_bounds
from release.noise.solvers.problem import Problem

_SCALE = 2**38
"""Integer units of one: rounding down loses less than 10⁻⁹ of t for hundreds of elements."""

_NOTHING = Fraction(1, 10**9)
"""A difference of f(0) that counts as none."""

ZERO = -1
"""The level of an element without mass."""


@dataclass(frozen=True)
class LevelLaw:
    """A law from levels, with the solver's upper bound of f(0) over all laws."""

    law: Pmf
    highest_mode: Fraction
    finished: bool
    depth: int


def available() -> bool:
    """Whether CP-SAT can be loaded (the extra ``fast``)."""
    try:
        from ortools.sat.python import cp_model  # noqa: F401 - only whether it can be loaded
    except ImportError:
        return False
    return True


def solve_levels(problem: Problem, time_limit: float, gap: Fraction) -> LevelLaw:
    """The best law found within ``time_limit`` seconds, up to a relative ``gap`` in 1 - f(0).

    The problem is one of the error rate, centred at zero, with a probabilistic guarantee, δ > 0.
    """
    deadline = time.monotonic() + time_limit
    epsilon, delta = problem.guarantee.epsilon, problem.guarantee.delta
    _, longest = level_sum_bounds(problem.steps, epsilon)
    levels = problem.steps
    best = law_of_levels(problem, levels)
    highest = Fraction(1)
    masses = _masses(epsilon, 4096)
    # Levels whose mass is above δ·t cannot be given up (t ≤ S of the pure law).
    kept = next((k for k, mass in enumerate(masses) if mass <= delta * longest), len(masses))
    depth = kept + 3
    seen = next((k for k, mass in enumerate(masses) if mass * _SCALE < 1), len(masses))
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return LevelLaw(best, highest, finished=False, depth=depth)
        found = _solve_at_depth(problem, masses, kept, depth, longest, left)
        if found is None:
            return LevelLaw(best, highest, finished=False, depth=depth)
        levels, lowest, finished = found
        highest = min(highest, 1 / lowest)
        law = law_of_levels(problem, levels)
        if law.weights[0] > best.weights[0]:
            best = law
            longest = min(longest, 1 / best.mass(0))
        close = max(gap * (1 - best.mass(0)), _NOTHING)
        # Beyond the depth at which masses are smaller than the unit there is nothing to find.
        if highest - best.mass(0) <= close or (finished and depth >= seen):
            return LevelLaw(best, highest, finished=True, depth=depth)
        if not finished:
            return LevelLaw(best, highest, finished=False, depth=depth)
        depth += max(1, depth // 6)


def _masses(epsilon: Fraction, count: int) -> list[Fraction]:
    """Lower bounds of e^{-εk} for k below ``count``, as far as they matter."""
    context = Context(prec=60, rounding=ROUND_FLOOR, Emin=-999999)
    _, high = exp_bounds(epsilon)
    factor = context.divide(Decimal(high.denominator), Decimal(high.numerator))
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
    kept: int,
    depth: int,
    longest: Fraction,
    seconds: float,
) -> tuple[Codes, Fraction, bool] | None:
    """Levels, a lower bound of t and whether the search ended; None without a solution."""
    from ortools.sat.python import cp_model

    depth = min(depth, len(masses))
    near = np.flatnonzero((problem.steps >= 0) & (problem.steps < depth))
    numbers = np.full(problem.size, -1, dtype=np.int64)
    numbers[near] = np.arange(near.size)
    window = _Window(cp_model.CpModel(), problem.steps[near].tolist(), kept, depth)
    mass = [int(_SCALE * m) for m in masses[:depth]] + [0]
    budget = [int(_SCALE * m / problem.guarantee.delta) for m in masses[:depth]] + [0]
    total = window.model.new_int_var(_SCALE // 2, int(_SCALE * longest) + near.size + 1, "t")
    window.model.add(window.total_mass(mass) <= total)
    for shift in problem.sensitivity.shifts:
        heads = numbers[problem.sensitivity.group.moved(shift)[near]].tolist()
        given_up = window.given_up(heads, budget)
        if given_up:
            window.model.add(sum(given_up) <= total)
    window.model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    # Two strategies beside each other; more share the cores and were slower in every trial.
    solver.parameters.num_workers = 2
    # The only way to the rule that is wrong (see the module's docstring).
    solver.parameters.presolve_inclusion_work_limit = 0
    status = solver.solve(window.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    levels = np.full(problem.size, ZERO, dtype=np.int64)
    for element, row in zip(near.tolist(), window.at_most, strict=True):
        levels[element] = next((k for k in range(depth) if solver.boolean_value(row[k])), ZERO)
    # The bound is of an integer program, so rounding the float to the nearest integer is exact.
    lowest = Fraction(round(solver.best_objective_bound), _SCALE)
    return levels, lowest, status == cp_model.OPTIMAL


class _Window:
    """The Booleans of the elements nearer than ``depth``: ``at_most[v][k]`` says level(v) ≤ k.

    Up to ``kept`` steps from zero levels are the distances, because heavier constraints stay.
    """

    def __init__(self, model: Any, distance: list[int], kept: int, depth: int) -> None:
        self.model, self.distance, self.kept, self.depth = model, distance, kept, depth
        self.yes, self.no = model.new_constant(1), model.new_constant(0)
        self.at_most = [self._levels(own) for own in distance]

    def _levels(self, own: int) -> list[Any]:
        if own <= self.kept:
            return [self.yes if k >= own else self.no for k in range(self.depth)]
        row = [self.no if k < own else self.model.new_bool_var("") for k in range(self.depth)]
        for k in range(own, self.depth - 1):
            self.model.add_implication(row[k], row[k + 1])
        return row

    def total_mass(self, mass: list[int]) -> Any:
        """Σ mass[level], with mass falling to 0 at ``depth``."""
        return sum(
            (mass[k] - mass[k + 1]) * row[k]
            for row in self.at_most
            for k in range(self.depth)
            if row[k] is not self.no
        )

    def given_up(self, heads: list[int], budget: list[int]) -> list[Any]:
        """Terms that add up to the budget that the given-up constraints of one μ take."""
        terms = []
        for tail, head in enumerate(heads):
            own = self.distance[tail]
            # Heavy tails keep their constraint: fixed levels see to it, here and one step on.
            if head < 0 or own < self.kept:
                continue
            row, ahead = self.at_most[tail], self.at_most[head]
            open_levels = [k for k in range(own, self.depth - 1) if ahead[k + 1] is not self.yes]
            if not open_levels:
                continue
            gives = self.model.new_bool_var("")
            for k in open_levels:
                self.model.add_bool_or([row[k].negated(), ahead[k + 1], gives])
            if own <= self.kept:
                terms.append(budget[own] * gives)
                continue
            for k in range(own, self.depth):
                counted = self.model.new_bool_var("")
                self.model.add_bool_or([gives.negated(), row[k].negated(), counted])
                terms.append((budget[k] - budget[k + 1]) * counted)
        return terms


def law_of_levels(problem: Problem, levels: Codes, bits: int = DEFAULT_BITS) -> Pmf:
    """The exact law with these levels: f(0) as large as mass and budget allow.

    Constraints that the levels break are given up and paid for in full. Where the budget is what
    binds, the mass left over raises the floor: max(f, c) breaks nothing that f keeps.
    """
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    total, cap = 2**bits, int(problem.guarantee.delta * 2**bits)
    depth = int(levels.max())
    counts = np.bincount(levels[levels >= 0], minlength=depth + 1).tolist()
    tails = _tails_by_level(problem, levels, depth)

    def fits(mode: int) -> bool:
        rungs = falling(mode, depth, ratio)
        mass = sum(c * a for c, a in zip(counts, rungs, strict=True))
        return mass <= total and all(
            sum(c * a for c, a in zip(row, rungs, strict=True)) <= cap for row in tails
        )

    low, high = 0, total + 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    rungs = falling(low, depth, ratio)
    weights = np.array([*rungs, 0], dtype=object)[levels]
    return Pmf.of(problem.sensitivity.group, _raise_floor(weights, total))


def _tails_by_level(problem: Problem, levels: Codes, depth: int) -> list[list[int]]:
    """For each μ, how many given-up constraints start at each level."""
    far = np.iinfo(np.int64).max
    height = np.where(levels < 0, far, levels)
    rows = []
    for shift in problem.sensitivity.shifts:
        heads = height[problem.sensitivity.group.moved(shift)]
        broken = (levels >= 0) & (heads > height + (levels >= 0))
        rows.append(np.bincount(levels[broken], minlength=depth + 1).tolist())
    return rows


def _raise_floor(weights: Any, total: int) -> list[int]:
    """max(weights, c) with the c for which the sum is ``total``; single units to the lowest."""
    missing = total - sum(weights.tolist())
    ordered = sorted(weights.tolist())
    raised, floor = 0, 0
    for index, weight in enumerate(ordered):
        step = (weight - floor) * index
        if step > missing:
            break
        missing -= step
        raised, floor = index + 1, weight
    if raised:
        floor += missing // raised
        missing -= (missing // raised) * raised
    values = np.maximum(weights, floor)
    # What is left is less than one unit for each element on the floor.
    lowest = np.flatnonzero(values == floor)[:missing]
    values[lowest] += 1
    return [int(value) for value in values]
