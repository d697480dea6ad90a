"""Modular noise by linear program: pure and approximate guarantees, any loss function, constraints.

Variables are masses relative to a scale s(η): f(η) = s(η)·x(η) with s(η) near E^{-d(η)}, so that
the tail is as visible to the solver as the mode. For each shift μ and element η there is one row:

- hard:        f(η) - E·f(η+μ) ≤ 0                              pure (Kadam et al. 2024, (14c))
- soft:        f(η) - E·f(η+μ) ≤ t_μ(η),  Σ_η t_μ(η) ≤ δ        approximate (hockey-stick)

A worst-case loss function is one more variable above every expected cost. Only elements in a window
have variables (:mod:`release.noise.solvers.window`). The program is solved to hundreds of bits
(:mod:`release.noise.solvers.refine`), and all coefficients but costs and limits are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.losses import Loss, WorstCaseLoss
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Floats, Numbers, Work
from release.noise.solvers.refine import ONE, PLACES, Precise, ratio_above, refine, times_power
from release.noise.solvers.window import Window, answer_rows, demand_rows, privacy_rows

_SMALL = 2.0**-30
"""The least coefficient of a slack."""


@dataclass(frozen=True)
class LinearSolution:
    """A solution on the whole group, in units of 2^-PLACES, not proved.

    ``multipliers`` has shape (|M|, size): what giving up a little of f(η) ≤ E·f(η+μ) would save.
    ``answers`` weighs the true answers of a worst-case loss, ``demands`` the further constraints.
    """

    masses: Precise
    multipliers: Precise
    answers: Precise
    demands: Precise
    solver: str


def solve_linear(
    window: Window, budget: Fraction, work: Work | None = None
) -> LinearSolution | None:
    """The pure or, with a ``budget`` of δ > 0, the approximate program; None without a solution."""
    return LinearProgram(window, budget).solve(work)


class LinearProgram:
    """The program of a window, and how its columns and rows are read back."""

    def __init__(self, window: Window, budget: Fraction) -> None:
        self.window, self.problem, self.builder = window, window.problem, Builder()
        self.orbit, self.written = _fold(window)
        self.folded = int(self.orbit.max()) + 1 < self.orbit.size
        # In units of about the objective itself, so that the solver's tolerance is a relative one.
        self.unit = _power_of_two(float(window.costs @ window.scale / window.scale.sum()))
        self.masses = self._mass_columns()
        self._sum_row()
        self.rows = [self._privacy_rows(index, budget) for index in self.written]
        elements = self.masses[self.orbit]
        self.answers = answer_rows(self.builder, window, elements, self.unit)
        self.demands = demand_rows(self.builder, window, elements)

    def solve(self, work: Work | None) -> LinearSolution | None:
        """Solve to hundreds of bits and read the solution."""
        refined = refine(self.builder.build(), work)
        if refined is None:
            return None
        window, duals = self.window, refined.duals
        masses = np.zeros(self.problem.size, dtype=object)
        relative = refined.values[self.masses[self.orbit]]
        masses[window.near] = times_power(relative, np.log2(window.scale))
        up = float(np.log2(self.unit))
        return LinearSolution(
            masses=masses,
            multipliers=self._multipliers(duals, up),
            answers=-duals[self.answers],
            demands=times_power(-duals[np.array(self.demands, dtype=np.int64)], up),
            solver=refined.solver,
        )

    def _mass_columns(self) -> Numbers:
        costs = _sums(self.orbit, self.window.costs * self.window.scale / self.unit)
        plain = isinstance(self.problem.loss, Loss)
        return self.builder.add_columns(costs if plain else np.zeros_like(costs))

    def _sum_row(self) -> None:
        """Σ f = 1, with a free mass outside where there is an outside."""
        columns, shares = self.masses, _sums(self.orbit, self.window.scale)
        if not self.window.whole:
            outside = self.builder.add_columns(np.array([self.window.outside_cost / self.unit]))
            columns, shares = np.append(columns, outside), np.append(shares, 1.0)
        self.builder.add_row(columns, shares, 1.0, equal=True)

    def _privacy_rows(self, index: int, budget: Fraction) -> tuple[Numbers, Numbers, Floats]:
        """The rows of one shift: numbers, tails, and what each was divided by."""
        heads, columns = self.window.heads[index], self.masses[self.orbit]
        # Constraints into the outside are free (2.9). Where head and tail are one variable, the
        # row would be x ≤ E·x.
        binding = (heads >= 0) & (columns != np.where(heads >= 0, columns[heads], -1))
        tails, slack = np.flatnonzero(binding), None
        if budget > 0 and tails.size:
            # t = unit·slack, with a unit between δ and the mass: HiGHS drops small coefficients,
            # and both t ≥ f - E·f and Σ t ≤ δ must stay visible.
            scale, limit = self.window.scale[tails], _power_of_two(float(budget))
            unit = np.maximum(np.exp2(np.round(np.log2(limit * scale) / 2)), _SMALL * scale)
            slack = self.builder.add_columns(np.zeros(tails.size)), unit
            limit = max(limit, float(unit.max()) * _SMALL)
            # Rounded down: the program must not spend more than the budget.
            most = float(np.nextafter(float(budget / Fraction(limit)), 0.0))
            self.builder.add_row(slack[0], unit / limit, most)
        numbers, divisor = privacy_rows(
            self.builder, self.window, columns, tails, heads[tails], slack
        )
        return numbers, tails, divisor

    def _multipliers(self, duals: Precise, up: float) -> Precise:
        """The duals of the privacy rows in units of cost, for every shift and element."""
        shifts, group = self.problem.sensitivity.shifts, self.problem.group
        multipliers = np.zeros((len(shifts), self.problem.size), dtype=object)
        negatives = group.negatives()
        for index, (numbers, tails, divisor) in zip(self.written, self.rows, strict=True):
            elements = self.window.near[tails]
            values = times_power(-duals[numbers], up - np.log2(divisor))
            if not self.folded:
                multipliers[index, elements] = values
                continue
            # Each row stands for its mirror image too: both get half of its dual.
            mirror = shifts.index(group.negative(shifts[index]))
            multipliers[index, elements] += values >> 1
            multipliers[mirror, negatives[elements]] += values >> 1
        return multipliers


def _fold(window: Window) -> tuple[Numbers, list[int]]:
    """For each element of the window the number of its variable, and the shifts to write."""
    problem = window.problem
    shifts, group = problem.sensitivity.shifts, problem.group
    if not problem.is_even:
        return np.arange(window.near.size), list(range(len(shifts)))
    # By convexity some optimum is even, so η and -η share a variable (2.6). A probabilistic
    # guarantee has no such optimum and must never get here.
    mirror = window.numbers[group.negatives()[window.near]]
    _, orbit = np.unique(np.minimum(np.arange(window.near.size), mirror), return_inverse=True)
    return orbit, [i for i, shift in enumerate(shifts) if shift <= group.negative(shift)]


def _sums(groups: Numbers, values: Floats) -> Floats:
    return np.bincount(groups, values).astype(np.float64)


def _power_of_two(value: float) -> float:
    return math.ldexp(1.0, round(math.log2(value))) if value > 0 else 1.0


def proved_bound(problem: Problem, solution: LinearSolution) -> Fraction:
    """An exact lower bound of the expected cost under any pure or approximate guarantee.

    By weak duality (docs/design/mathematics.md 2.10), for any multipliers a ≥ 0 and b ≥ 0 (b of any
    sign for an equation), so nothing depends on the solver:

        cost ≥ min over η of [ρ(η) + Σ_μ a_μ(η) - E·Σ_μ a_μ(η-μ) + Σ b·c(η)]
               - δ·Σ_μ max a_μ - Σ b·limit.

    For a worst-case loss function ρ is the mixture of the costs of the true answers.
    """
    # The solver's duals may be slightly negative; the theorem needs a ≥ 0.
    multipliers = np.maximum(solution.multipliers, 0)
    ratio = ratio_above(problem.guarantee.epsilon)
    reduced, weight = _costs(problem.loss, solution.answers)
    largest = 0
    for shift, row in zip(problem.sensitivity.shifts, multipliers, strict=True):
        tails = np.flatnonzero(row)
        heads = problem.group.moved(shift)[tails]
        reduced[tails] += row[tails]
        # E·a is rounded up, which only lowers the bound.
        reduced[heads] -= (ratio * row[tails] >> PLACES) + 1
        largest += max(row.tolist())
    limits = Fraction(0)
    for constraint, dual in zip(problem.constraints, solution.demands.tolist(), strict=True):
        share = dual if constraint.equal else max(0, dual)
        reduced = reduced + share * constraint.coefficients.astype(object)
        limits += share * constraint.limit
    bound: Fraction = (min(reduced.tolist()) - problem.guarantee.delta * largest - limits) / weight
    return max(Fraction(0), bound)


def _costs(loss: Loss | WorstCaseLoss, answers: Precise) -> tuple[Precise, int]:
    """ρ·weight rounded down, in integers, and the weight."""
    if isinstance(loss, Loss):
        return loss.numerators.astype(object) * ONE // loss.denominator, ONE
    shares = np.maximum(answers, 0)
    weight = int(sum(shares.tolist()))
    if weight == 0:
        return np.zeros(loss.numerators.shape[1], dtype=object), 1
    return (shares @ loss.numerators.astype(object)) // loss.denominator, weight
