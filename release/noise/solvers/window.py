"""The elements near the centre, which are all that a program needs to know.

Outside them, mass is one free variable at the cheapest cost found there, and constraints into the
outside cost nothing. That relaxes a program, so its optimum bounds the expected cost from below for
the whole group, however large (docs/design/mathematics.md 2.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from release.exact.domain import Codes
from release.exact.losses import Loss
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Floats, Numbers


@dataclass(frozen=True)
class Window:
    """The elements within ``radius`` steps of the centre, numbered from 0.

    A pattern without mass far away has no use for elements that cost more than ``dearest``.
    """

    problem: Problem
    radius: int
    dearest: float = inf

    @classmethod
    def all_of(cls, problem: Problem) -> Window:
        """The window with nothing outside."""
        return cls(problem, int(problem.steps.max()))

    @cached_property
    def near(self) -> Codes:
        """The elements, ascending."""
        steps = self.problem.steps
        within = (steps <= self.radius) & (self.problem.costs <= self.dearest)
        # Unreachable elements have -1 steps; they join once all others are inside.
        return np.flatnonzero(within if self.radius >= steps.max() else within & (steps >= 0))

    @cached_property
    def numbers(self) -> Numbers:
        """For each element of the group its number in the window; -1 outside."""
        numbers = np.full(self.problem.size, -1, dtype=np.int64)
        numbers[self.near] = np.arange(self.near.size)
        return numbers

    @cached_property
    def heads(self) -> list[Numbers]:
        """For each shift μ, the number of η+μ in the window for each η in it; -1 outside."""
        group = self.problem.group
        return [self.numbers[group.moved(s)[self.near]] for s in self.problem.sensitivity.shifts]

    @property
    def whole(self) -> bool:
        """Whether nothing is outside."""
        return self.near.size == self.problem.size

    @cached_property
    def scale(self) -> Floats:
        """About how large the masses are."""
        return self.problem.scale[self.near]

    @cached_property
    def costs(self) -> Floats:
        """ρ of the elements."""
        return self.problem.costs[self.near]

    @cached_property
    def outside_cost(self) -> float:
        """The cheapest ρ outside."""
        return float(np.delete(self.problem.costs, self.near).min())


def demand_rows(builder: Builder, window: Window, masses: Numbers, total: float = 1.0) -> list[int]:
    """One row for each further constraint, for masses that add up to ``total``; their numbers."""
    rows = []
    for demand in window.problem.constraints:
        values = demand.coefficients[window.near] * window.scale
        limit = float(demand.limit) * total
        rows.append(builder.add_row(masses, values, limit, equal=demand.equal))
    return rows


def answer_rows(builder: Builder, window: Window, masses: Numbers, unit: float = 1.0) -> Numbers:
    """For a worst-case loss function: each expected cost is at most the worst, which is minimised.

    Adds the variable of the worst, in units of ``unit``. Returns the numbers of the rows; none for
    a plain loss function.
    """
    loss = window.problem.loss
    if isinstance(loss, Loss):
        return np.zeros(0, dtype=np.int64)
    worst = builder.add_columns(np.ones(1))
    costs = loss.numerators[:, window.near] / loss.denominator * window.scale / unit
    values = np.hstack([costs, np.full((len(costs), 1), -1.0)])
    columns = np.broadcast_to(np.append(masses, worst), values.shape)
    return builder.add_rows(columns, values, np.zeros(len(costs)))


def privacy_rows(
    builder: Builder,
    window: Window,
    masses: Numbers,
    tails: Numbers,
    heads: Numbers,
    slack: tuple[Numbers, Floats | float] | None = None,
) -> tuple[Numbers, Floats]:
    """Rows f(tail) - E·f(head) ≤ unit·slack; a head of -1 has no mass.

    ``masses`` are the columns of the elements of the window, ``slack`` the columns for each tail
    and their units. Returns the numbers of the rows and what each was divided by in units of f.
    """
    # With f = s·x and x the variable, the row divided by s(tail) is
    #   x(tail) - E·s(head)/s(tail)·x(head) ≤ unit/s(tail)·slack.
    # A power of two brings its largest coefficient to about 1; dividing by it is exact.
    scale = window.scale
    factor = np.where(heads >= 0, window.problem.ratio * scale[heads] / scale[tails], 0.0)
    largest = np.exp2(np.maximum(0.0, np.ceil(np.log2(np.maximum(factor, 1.0)))))
    columns = [masses[tails], np.where(heads >= 0, masses[heads], -1)]
    values = [1.0 / largest, -factor / largest]
    if slack is not None:
        columns.append(slack[0])
        values.append(-slack[1] / scale[tails] / largest)
    residues = np.zeros((tails.size, len(columns)))
    residues[:, 1] = values[1] * (window.problem.ratio_residue / window.problem.ratio)
    limits = np.zeros(tails.size)
    rows = builder.add_rows(np.stack(columns, 1), np.stack(values, 1), limits, residues)
    return rows, largest * scale[tails]
