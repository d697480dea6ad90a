"""A linear program solved to hundreds of bits by a solver that has fifty-three.

Iterative refinement (Gleixner, Steffy and Wolter 2016, "Iterative refinement for linear
programming"): solve in floats, compute the violations in exact arithmetic, scale them up until the
solver can see them, solve for a correction, and add it. Each round adds some ten digits. The
coefficients of a program are sums of two floats, hence exact numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.numbers import exp_bounds
from release.noise.solvers.program import Floats, Numbers, Program, Solution, Work, solve

Precise: TypeAlias = NDArray[Any]
"""Python integers in units of 2^-PLACES."""

PLACES = 320
ONE = 1 << PLACES

_TARGET = 160
"""Violations below 2^-_TARGET end the search."""

_ROUNDS = 14
_GROWTH = 40
"""By how many bits a scale may grow in a round."""

_TOLERANCES = (1e-10, 1e-9)
"""Of the first round, and of its second attempt and all corrections."""

_UNITS_A_TERM = 50
"""Work of a coefficient in the exact arithmetic of a round."""

_INFINITE = 1e15
"""A scaled bound this far away cannot bind in a correction."""


@dataclass(frozen=True)
class Refined:
    """Values (at least 0) and duals of a program."""

    values: Precise
    duals: Precise
    solver: str


def precise(numbers: Floats, scale: int = 0) -> Precise:
    """``numbers``·2^-``scale`` in units of 2^-PLACES, rounded towards minus infinity."""
    mantissa, exponent = np.frexp(numbers)
    digits = (mantissa * 2.0**53).astype(np.int64).astype(object)
    return times_power(digits, exponent.astype(np.int64) - 53 + PLACES - scale)


def times_power(numbers: Precise, exponents: Floats | Codes | float) -> Precise:
    """numbers·2^exponents, rounded down; shapes as numpy broadcasts ``exponents``."""
    by = np.broadcast_to(np.round(exponents).astype(np.int64), numbers.shape)
    pairs = zip(numbers.reshape(-1).tolist(), by.reshape(-1).tolist(), strict=True)
    whole = [n << e if e >= 0 else n >> -e for n, e in pairs]
    return np.array(whole, dtype=object).reshape(numbers.shape)


def ratio_above(epsilon: Fraction) -> int:
    """The least integer at or above e^ε in units of 2^-PLACES."""
    high = exp_bounds(epsilon)[1]
    return -(-high.numerator * ONE // high.denominator)


def _floats(numbers: Precise, scale: int) -> Floats:
    """``numbers``·2^``scale`` as floats."""
    return np.array([number / ONE for number in (numbers << scale).tolist()], dtype=np.float64)


class _Matrix:
    """The coefficients of a program, for products in high precision."""

    def __init__(self, program: Program) -> None:
        self.rows = np.repeat(np.arange(program.limit.size), np.diff(program.starts))
        self.columns = program.columns
        self.values = precise(program.values) + precise(program.residues)
        self.height, self.width = program.limit.size, program.cost.size
        self.by_column = np.argsort(program.columns, kind="stable")

    def times(self, x: Precise) -> Precise:
        """Rows · x."""
        return _sums(self.values * x[self.columns], self.rows, self.height)

    def transposed_times(self, y: Precise) -> Precise:
        """Y · rows."""
        terms = (self.values * y[self.rows])[self.by_column]
        return _sums(terms, self.columns[self.by_column], self.width)


def _sums(terms: Precise, groups: Numbers, count: int) -> Precise:
    """Sums of the terms of each group (ascending), back in units of 2^-PLACES."""
    sums: Precise = np.zeros(count, dtype=object)
    if terms.size:
        # Products are in units of 2^-2·PLACES; shifting the sums rounds once, not once a term.
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        sums[groups[first]] = np.add.reduceat(terms, first) >> PLACES
    return sums


def refine(program: Program, work: Work | None = None, *, interior: bool = False) -> Refined | None:
    """Solve a program of columns ≥ 0 without upper bounds; None if the solver finds no solution.

    What is unsolved when ``work`` is over counts as unsolvable.
    ``interior`` is for the first round, as of :func:`release.noise.solvers.program.solve`. The
    result is as good as the last round was, and no guarantee depends on its being optimal.
    """
    program, work = _with_slack(program), work or Work()
    first = None
    # HiGHS ends without a solution where its basis after an interior point is too imprecise.
    for tolerance, inside in zip(_TOLERANCES, (interior, False), strict=True):
        first = first or _solved(program, work, tolerance, interior=inside)
    if first is None:
        return None
    state = _State(program, _Matrix(program), precise(first.values), precise(first.duals))
    basis, growth, primal, dual = first.basis, _GROWTH, 0, 0
    failed = False
    for _ in range(_ROUNDS):
        if not growth or state.violation < 1 << (PLACES - _TARGET):
            break
        work.spend(_UNITS_A_TERM * program.values.size)
        # The correction is x/2^primal with duals y/2^dual. So x has the limits 2^primal·missing,
        # the costs 2^dual·reduced and the lower bounds -2^primal·values. A scale grows at most
        # until the largest violation is 1.
        if failed:
            primal, dual = max(0, primal - growth), max(0, dual - growth)
        else:
            primal = max(0, min(primal + growth, PLACES - state.infeasible.bit_length()))
            dual = max(0, min(dual + growth, PLACES - state.improvable.bit_length()))
        solution = _solved(state.correction(primal, dual), work, _TOLERANCES[1], basis)
        corrected = None if solution is None else state.corrected(solution, primal, dual)
        failed = corrected is None or corrected.violation >= state.violation
        if solution is None or corrected is None or failed:
            # At this scale the solver cannot meet its tolerance.
            growth //= 2
        else:
            # Invariant: the violation of the state only falls.
            state, basis = corrected, solution.basis
    return Refined(np.maximum(state.values, 0), state.duals, first.solver)


def _solved(
    program: Program,
    work: Work,
    tolerance: float,
    basis: Any = None,
    *,
    interior: bool = False,
) -> Solution | None:
    solution = solve(program, work, tolerance=tolerance, basis=basis, interior=interior)
    return solution if solution is not None and solution.finished else None


@dataclass(frozen=True)
class _State:
    """A point, its duals, and by how much it fails to be a solution, exactly."""

    program: Program
    matrix: _Matrix
    values: Precise
    duals: Precise

    @cached_property
    def missing(self) -> Precise:
        """The limit of each row less its value."""
        return precise(self.program.limit) - self.matrix.times(self.values)

    @cached_property
    def reduced(self) -> Precise:
        """The reduced costs: negative where a value should grow."""
        return precise(self.program.cost) - self.matrix.transposed_times(self.duals)

    @cached_property
    def infeasible(self) -> int:
        """The largest violation of a row or of a column's lower bound 0."""
        return int(max(0, abs(self.missing).max(), -self.values.min()))

    @cached_property
    def improvable(self) -> int:
        """The most negative reduced cost, as a positive number."""
        return int(max(0, -self.reduced.min()))

    @property
    def violation(self) -> int:
        """The larger of both."""
        return max(self.infeasible, self.improvable)

    def correction(self, primal: int, dual: int) -> Program:
        """The program of the correction, scaled by 2^primal and 2^dual."""
        return replace(
            self.program,
            cost=_floats(self.reduced, dual),
            lower=_far(_floats(-self.values, primal)),
            limit=_floats(self.missing, primal),
        )

    def corrected(self, solution: Solution, primal: int, dual: int) -> _State:
        """With the correction added."""
        values = self.values + precise(solution.values, primal)
        return replace(self, values=values, duals=self.duals + precise(solution.duals, dual))


def _with_slack(program: Program) -> Program:
    """The same program with equations only."""
    # The dual of an inequality has a sign, and a correction of it has none by itself. As a column
    # the slack has a value and a reduced cost, so rows and columns are corrected alike.
    loose = np.flatnonzero(~program.equal)
    width, count = program.cost.size, loose.size
    ends = program.starts[loose + 1]
    return replace(
        program,
        cost=np.append(program.cost, np.zeros(count)),
        lower=np.zeros(width + count),
        upper=np.full(width + count, np.inf),
        whole=np.zeros(width + count, dtype=bool),
        starts=program.starts + np.concatenate([[0], np.cumsum(~program.equal)]),
        columns=np.insert(program.columns, ends, np.arange(width, width + count)),
        values=np.insert(program.values, ends, 1.0),
        residues=np.insert(program.residues, ends, 0.0),
        equal=np.ones(program.equal.size, dtype=bool),
    )


def _far(bounds: Floats) -> Floats:
    return np.where(np.abs(bounds) > _INFINITE, np.copysign(np.inf, bounds), bounds)
