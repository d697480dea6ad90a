"""Laws as linear programs: pure and approximate guarantees, any loss, further demands.

Variables are masses relative to a scale s(η): f(η) = s(η)·x(η) with s(η) near E^{-d(η)}, so that
the tail is as visible to the solver as the mode. For each difference μ and element η one row:

- hard:        f(η) - E·f(η+μ) ≤ 0                              pure (Kadam et al. 2024, (14c))
- soft:        f(η) - E·f(η+μ) ≤ t_μ(η),  Σ_η t_μ(η) ≤ δ        approximate (hockey-stick)

A worst-case loss is one more variable above every expected loss. Only elements in a window have
variables of their own (:mod:`release.noise.solvers.window`). Where differences and costs are even,
η and -η share one: by convexity some optimum is even (docs/design/mathematics.md). The program is
solved to hundreds of bits (:mod:`release.noise.solvers.refine`), and all coefficients but costs and
limits are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from release.exact.losses import Loss, WorstCaseLoss
from release.exact.numbers import exp_bounds
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Floats, Numbers, Program
from release.noise.solvers.refine import ONE, PLACES, Precise, refine, times_power
from release.noise.solvers.window import Window, answer_rows, demand_rows, keep_rows

_SMALL = 2.0**-30
"""The least coefficient of a slack."""


@dataclass(frozen=True)
class LinearLaw:
    """A solution on the whole group, in units of 2^-PLACES; proved by nobody.

    ``multipliers`` has shape (|M|, size): what giving up a little of f(η) ≤ E·f(η+μ) would save.
    ``answers`` weighs the true answers of a worst-case loss, ``demands`` the further constraints.
    """

    masses: Precise
    multipliers: Precise
    answers: Precise
    demands: Precise
    solver: str


def solve_linear(window: Window, budget: Fraction, deadline: float = inf) -> LinearLaw | None:
    """The pure or, with a ``budget`` of δ > 0, the approximate program; None if none is found.

    ``deadline`` is a moment of the monotonic clock.
    """
    return _Assembly(window, budget).solve(deadline)


def assemble(window: Window, budget: Fraction) -> Program:
    """The program that :func:`solve_linear` refines, as a solver sees it first."""
    return _Assembly(window, budget).builder.build()


class _Assembly:
    """The program of a window, and how its columns and rows are read back."""

    def __init__(self, window: Window, budget: Fraction) -> None:
        self.window, self.problem, self.builder = window, window.problem, Builder()
        self.orbit, self.kept = _fold(window)
        self.folded = int(self.orbit.max()) + 1 < self.orbit.size
        # In units of about the loss itself, so that the solver's tolerance is a relative one.
        self.unit = _power_of_two(_loss_of_scale(window))
        self.masses = self._mass_columns()
        self._sum_row()
        self.rows = [self._privacy_rows(index, budget) for index in self.kept]
        elements = self.masses[self.orbit]
        self.answers = answer_rows(self.builder, window, elements, self.unit)
        self.demands = demand_rows(self.builder, window, elements)

    def solve(self, deadline: float) -> LinearLaw | None:
        """Solve to hundreds of bits and read the solution."""
        refined = refine(self.builder.build(), deadline)
        if refined is None:
            return None
        window, duals = self.window, refined.duals
        masses = np.zeros(self.problem.size, dtype=object)
        found = refined.values[self.masses[self.orbit]]
        masses[window.near] = times_power(found, np.log2(window.scale))
        up = float(np.log2(self.unit))
        return LinearLaw(
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
        """The rows of one difference: numbers, tails, and what each was divided by."""
        heads, columns = self.window.heads[index], self.masses[self.orbit]
        # Outside is free; and where head and tail are one variable there is nothing to keep.
        there = (heads >= 0) & (columns != np.where(heads >= 0, columns[heads], -1))
        tails, slack = np.flatnonzero(there), None
        if budget > 0 and tails.size:
            # Between δ and the mass: no coefficient so small that the solver drops it.
            scale, limit = self.window.scale[tails], _power_of_two(float(budget))
            unit = np.maximum(np.exp2(np.round(np.log2(limit * scale) / 2)), _SMALL * scale)
            slack = self.builder.add_columns(np.zeros(tails.size)), unit
            limit = max(limit, float(unit.max()) * _SMALL)
            self.builder.add_row(slack[0], unit / limit, _down(budget / Fraction(limit)))
        numbers, divisor = keep_rows(self.builder, self.window, columns, tails, heads[tails], slack)
        return numbers, tails, divisor

    def _multipliers(self, duals: Precise, up: float) -> Precise:
        """The duals of the privacy rows in units of loss, for every difference and element."""
        shifts, group = self.problem.sensitivity.shifts, self.problem.group
        found = np.zeros((len(shifts), self.problem.size), dtype=object)
        negatives = group.negatives()
        for index, (numbers, tails, divisor) in zip(self.kept, self.rows, strict=True):
            elements = self.window.near[tails]
            values = times_power(-duals[numbers], up - np.log2(divisor))
            if not self.folded:
                found[index, elements] = values
                continue
            # An even optimum: each row speaks for its mirror image too.
            mirror = shifts.index(group.negative(shifts[index]))
            found[index, elements] += values >> 1
            found[mirror, negatives[elements]] += values >> 1
        return found


def _fold(window: Window) -> tuple[Numbers, list[int]]:
    """For each element of the window the number of its variable, and the differences to write."""
    problem = window.problem
    shifts, group = problem.sensitivity.shifts, problem.group
    if not problem.is_even:
        return np.arange(window.near.size), list(range(len(shifts)))
    negatives = group.negatives()
    mirror = window.numbers[negatives[window.near]]
    _, orbit = np.unique(np.minimum(np.arange(window.near.size), mirror), return_inverse=True)
    return orbit, [i for i, shift in enumerate(shifts) if shift <= group.negative(shift)]


def _loss_of_scale(window: Window) -> float:
    """About the loss, with masses no smaller than a solver sees them."""
    return float(window.costs @ window.scale / window.scale.sum())


def _sums(groups: Numbers, values: Floats) -> Floats:
    return np.bincount(groups, values).astype(np.float64)


def _power_of_two(value: float) -> float:
    return math.ldexp(1.0, round(math.log2(value))) if value > 0 else 1.0


def _down(value: Fraction) -> float:
    return float(np.nextafter(float(value), 0.0))


def proved_bound(problem: Problem, law: LinearLaw) -> Fraction:
    """An exact lower bound of the loss of any pure or approximate law, from multipliers a ≥ 0.

    For every feasible f, Σ_μ Σ_η a_μ(η)·(f(η) - E·f(η+μ)) ≤ δ·Σ_μ max a_μ, and for every demand
    b·(c·f - limit) ≤ 0. Adding ρ·f and collecting the factor of each f(η) gives (weak duality,
    docs/design/mathematics.md "Floats are not private")

        loss ≥ min over η of [ρ(η) + Σ_μ a_μ(η) - E·Σ_μ a_μ(η-μ) + Σ b·c(η)]
               - δ·Σ_μ max a_μ - Σ b·limit.

    Any non-negative a will do (and b of any sign for an equation), so nothing is asked of the
    solver; E is replaced by a rational above it, which can only lower the bound. For a worst-case
    loss ρ is the mixture of the losses of the true answers by their multipliers.
    """
    _, high = exp_bounds(problem.guarantee.epsilon)
    ratio = -(-high.numerator * ONE // high.denominator)
    group, shifts = problem.group, problem.sensitivity.shifts
    multipliers = np.maximum(law.multipliers, 0)
    reduced, weight = _costs(problem.loss, law.answers)
    largest = 0
    for shift, row in zip(shifts, multipliers, strict=True):
        tails = np.flatnonzero(row)
        heads = group.moved(shift)[tails]
        reduced[tails] += row[tails]
        reduced[heads] -= (ratio * row[tails] >> PLACES) + 1
        largest += max(row.tolist())
    limits = Fraction(0)
    for constraint, given in zip(problem.constraints, law.demands.tolist(), strict=True):
        share = given if constraint.equal else max(0, given)
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
