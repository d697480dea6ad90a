"""The relaxation of a probabilistic guarantee on answers in order, and its exact bound.

Call a pair (a, b) of neighboring answers with an outcome o a *cell*. Some cells are decided:
*hard*, P(o|a) ≤ E·P(o|b), or *given up*, where all of P(o|a) counts. An open cell costs what the
approximate definition counts:

    P(o|a) - E·P(o|b) ≤ y_ab(o),   Σ_o y_ab(o) ≤ δ;   hard: y = 0;   given up: y ≥ P(o|a).

With all cells open this is the approximate program. For neighbors 1 apart nothing that looks at
single outcomes is tighter. Where x_a > E·x_b, split the column x of an outcome: one part has the
share 1 - E·x_b/x_a of x on the side of a, and nothing on the side of b; the rest satisfies the
ratio. Each part gives up whole masses, together what the approximate definition counts. So with
enough copies of each published answer both definitions have one optimum, and only the search of
:mod:`release.noise.solvers.answers.integer` tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.numbers import over_one_denominator
from release.noise.solvers.answers.problem import ChannelProblem
from release.noise.solvers.program import Builder, Floats, Program, highs_model
from release.noise.solvers.refine import PLACES, precise, ratio_above

Cells: TypeAlias = NDArray[np.int8]
"""What is decided of each cell, shape (pairs, published): ``OPEN``, ``HARD`` or ``GIVEN_UP``."""

OPEN, HARD, GIVEN_UP = 0, 1, 2

_STEPS_A_SOLVE = 10
"""What starting a program costs, in steps of the simplex method (measured)."""

_MOST_STEPS = 200_000
_MOST_STEPS_FROM_BASIS = 5_000
"""Of the simplex method in one solve; from the basis of a similar program some tens are usual."""

_BITS = 64
"""Bits after the point of the prices in a proof."""

_HIGH_PRICE = 100.0
"""Of mass that is missing from a row, in units of the largest cost."""


@dataclass(frozen=True)
class Node:
    """A solved relaxation.

    ``bound`` is proved and in the units of the costs; all else is the solver's. ``masses`` has
    shape (true, published), ``given`` is y, shape (pairs, published), ``prices`` are those of the
    rows P(o|a) - E·P(o|b) ≤ y, same shape, and ``missing`` is the most that a row lacks to 1.
    ``symmetric`` says that with each channel of the node its mirror image belongs to it as well.
    """

    bound: Fraction
    objective: float
    cells: Cells
    masses: Floats
    given: Floats
    prices: Floats
    missing: float
    basis: Any
    symmetric: bool


class Relaxation:
    """The relaxation in HiGHS, changed from node to node by bounds of columns and rows alone.

    Columns are P(o|q), y_ab(o)/δ, the mass missing from each row at a high price, so that there
    always is a solution, and for the worst true answer the largest expected cost. Costs are in
    units of ``unit``. ``work`` counts rows times steps of the simplex method.
    """

    def __init__(self, problem: ChannelProblem, unit: float) -> None:
        self.problem, self.unit, self.work = problem, unit, 0
        self.own, self.other = np.array(problem.pairs).reshape(-1, 2).T
        self.delta = float(problem.guarantee.delta)
        self.ratio = float(problem.ratio)
        self._ratio_above = ratio_above(problem.guarantee.epsilon)
        program = self._build()
        self.rows = program.limit.size
        self._highs = _loaded(program)
        self.solver = f"HiGHS {self._highs.version()}"
        self._cells: Cells = np.full(self.given.shape, OPEN, dtype=np.int8)
        prior = problem.prior
        self._costs = None if prior is None else self._weighted_costs(*over_one_denominator(prior))

    def _build(self) -> Program:
        problem, builder = self.problem, Builder()
        true, published = problem.costs.shape
        costs = problem.costs / self.unit
        if problem.prior is not None:
            weighted = costs * np.array(list(map(float, problem.prior)))[:, None]
            self.masses = builder.add_columns(weighted.reshape(-1), 1.0)
        else:
            weighted = costs
            self.masses = builder.add_columns(np.zeros(costs.size), 1.0)
        self.masses = self.masses.reshape(true, published)
        shape = len(self.own), published
        self.given = builder.add_columns(np.zeros(shape[0] * shape[1]), 1.0).reshape(shape)
        self.missing = builder.add_columns(
            np.full(true, _HIGH_PRICE * max(1.0, float(weighted.max())))
        )
        for row, missing in zip(self.masses, self.missing, strict=True):
            builder.add_row(np.append(row, missing), np.ones(published + 1), 1.0, equal=True)
        own, neighbor = self.masses[self.own].reshape(-1), self.masses[self.other].reshape(-1)
        given_up, zeros = self.given.reshape(-1), np.zeros(own.size)
        over = np.array([1.0, -self.ratio, -self.delta])
        self.over = builder.add_rows(np.stack([own, neighbor, given_up], axis=1), over, zeros)
        # Without a limit until the cell is given up.
        whole = np.array([1.0, -self.delta])
        self.whole = builder.add_rows(np.stack([own, given_up], axis=1), whole, zeros + np.inf)
        self.over, self.whole = self.over.reshape(shape), self.whole.reshape(shape)
        for row in self.given:
            builder.add_row(row, np.ones(published), 1.0)
        self.worst = []
        if problem.prior is None:
            top = builder.add_columns(np.ones(1))
            for row, loss in zip(self.masses, costs, strict=True):
                columns, values = np.append(row, top), np.append(loss, -1.0)
                self.worst.append(builder.add_row(columns, values, 0.0))
        return builder.build()

    def solve(self, cells: Cells, basis: Any = None, *, symmetric: bool = False) -> Node:
        """The relaxation with these cells decided, from the basis of a similar one."""
        import highspy

        changed = np.argwhere(cells != self._cells)
        for pair, o in changed.tolist():
            state = cells[pair, o]
            self._highs.changeColBounds(int(self.given[pair, o]), 0.0, float(state != HARD))
            limit = 0.0 if state == GIVEN_UP else highspy.kHighsInf
            self._highs.changeRowBounds(int(self.whole[pair, o]), -highspy.kHighsInf, limit)
        self._cells = cells.copy()
        if basis is not None:
            self._highs.setBasis(basis)
        # A degenerate program may go round for ever; what is cut off is proved with prices of 0.
        most = _MOST_STEPS if basis is None else _MOST_STEPS_FROM_BASIS
        self._highs.setOptionValue("simplex_iteration_limit", most)
        self._highs.run()
        info, solution = self._highs.getInfo(), self._highs.getSolution()
        self.work += self.rows * (_STEPS_A_SOLVE + max(0, info.simplex_iteration_count))
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            # Prices of 0 prove a bound all the same.
            values, duals = np.zeros(self._highs.getNumCol()), np.zeros(self.rows)
        return Node(
            self.bound(cells, duals),
            float(info.objective_function_value),
            self._cells,
            values[self.masses],
            values[self.given] * self.delta,
            np.maximum(-duals[self.over] * self.unit, 0.0),
            float(values[self.missing].max()),
            self._highs.getBasis(),
            symmetric,
        )

    def bound(self, cells: Cells, duals: Floats) -> Fraction:
        """A lower bound of the expected cost of every channel with these cells decided.

        For prices u ≥ 0 of the rows P(o|a) - E·P(o|b) ≤ y and v ≥ 0 of P(o|a) ≤ y, where the cell
        is given up, the cost is at least that of the reduced costs less Σ (u+v)·y, and y is 0 in a
        hard cell and adds up to at most δ for a pair: Σ_q min_o reduced(q, o) - δ·Σ_ab max (u+v).
        """
        problem = self.problem
        over = _units(-duals[self.over] * self.unit)
        # The others' rows have no limit.
        whole = _units(np.where(cells == GIVEN_UP, -duals[self.whole] * self.unit, 0.0))
        paid = over + whole
        # Rounded up: a verifier may take any ratio up to e^ε.
        moved = (over * self._ratio_above >> PLACES) + 1
        if self._costs is None:
            weights = _units(-duals[np.array(self.worst)])
            # Without prices every weighting of the true answers is as good.
            weights = weights if weights.any() else weights + 1
            reduced = self._weighted_costs(weights, int(weights.sum()))
        else:
            reduced = self._costs.copy()
        np.add.at(reduced, self.own, paid)
        np.subtract.at(reduced, self.other, moved)
        largest = np.where(cells == HARD, 0, paid).max(axis=1)
        total = sum(reduced.min(axis=1).tolist()) - problem.guarantee.delta * sum(largest.tolist())
        return max(Fraction(0), Fraction(total) / (1 << _BITS))

    def _weighted_costs(self, weights: Sequence[int] | NDArray[Any], divisor: int) -> NDArray[Any]:
        """Σ over the true answers of weight·cost, in units of 2^-_BITS and rounded down."""
        costs: NDArray[Any] = np.array(weights, dtype=object)[:, None] * self.problem.costs.astype(
            object
        )
        return np.asarray((costs << _BITS) // divisor)


def _units(prices: Floats) -> NDArray[Any]:
    """Prices of at least 0 as Python integers, in units of 2^-_BITS."""
    return precise(np.fmax(prices, 0), PLACES - _BITS)


def _loaded(program: Program) -> Any:
    """HiGHS with the program, set to start each solve where the last one ended."""
    import highspy

    model = highs_model(program)
    highs = highspy.Highs()
    options: dict[str, float | bool | str] = {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "small_matrix_value": 1e-12,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    return highs
