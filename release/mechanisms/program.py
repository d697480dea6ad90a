"""Linear and mixed-integer programs as arrays, handed to HiGHS through PuLP.

A solver's answer is a suggestion: PuLP calls a solve that was stopped by its time limit "Optimal",
and a solver's "feasible" means within a tolerance. So this module reads HiGHS' own status and
bound, and nothing downstream believes the values before the exact proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

TOLERANCE = 1e-10
"""Feasibility and optimality tolerance asked of the solver, on rows scaled to about 1."""


@dataclass
class Program:
    """minimise cost·x subject to rows·x ≤ limit (or = limit), 0 ≤ x ≤ upper, some x whole numbers.

    Rows are collected as sparse entries; columns and rows are numbered in the order they are added.
    """

    cost: list[float] = field(default_factory=list)
    upper: list[float | None] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[list[tuple[int, float]]] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)
    equal: list[bool] = field(default_factory=list)

    def add_columns(
        self, costs: Floats, upper: float | None = None, *, whole: bool = False
    ) -> NDArray[np.int64]:
        """Add one variable for each cost; return their numbers."""
        first = len(self.cost)
        self.cost.extend(costs.tolist())
        self.upper.extend([upper] * costs.size)
        self.whole.extend([whole] * costs.size)
        return np.arange(first, first + costs.size)

    def add_row(
        self, columns: NDArray[np.int64], values: Floats, limit: float, *, equal: bool = False
    ) -> int:
        """Add Σ values·x[columns] ≤ limit, or = limit; return the row's number."""
        self.rows.append(list(zip(columns.tolist(), values.tolist(), strict=True)))
        self.limit.append(limit)
        self.equal.append(equal)
        return len(self.rows) - 1


@dataclass(frozen=True)
class Solution:
    """What the solver says, unproved.

    ``multipliers[row]`` is at least 0: what a unit more of the row's limit would save. ``bound`` is
    the solver's lower bound of the objective. ``finished`` tells a proved end from a time limit.
    """

    values: Floats
    multipliers: Floats
    objective: float
    bound: float
    finished: bool
    solver: str


def solve(program: Program, time_limit: float | None = None) -> Solution | None:
    """Solve with PuLP and HiGHS; ``None`` when there is no feasible point (found).

    ``time_limit`` is in seconds; a solve that it stops is marked ``finished=False``.
    """
    import pulp

    problem = pulp.LpProblem("noise_law", pulp.LpMinimize)
    columns = [
        problem.add_variable(f"x{i}", 0, upper, pulp.LpInteger if whole else pulp.LpContinuous)
        for i, (upper, whole) in enumerate(zip(program.upper, program.whole, strict=True))
    ]
    problem += pulp.LpAffineExpression(
        {column: cost for column, cost in zip(columns, program.cost, strict=True) if cost}
    )
    rows = []
    for entries, limit, equal in zip(program.rows, program.limit, program.equal, strict=True):
        row = pulp.LpConstraint(
            pulp.LpAffineExpression({columns[i]: value for i, value in entries}),
            pulp.LpConstraintEQ if equal else pulp.LpConstraintLE,
            rhs=limit,
        )
        problem += row
        rows.append(row)
    solver = pulp.HiGHS(
        msg=False,
        timeLimit=time_limit,
        threads=1,
        gapRel=1e-9,
        gapAbs=1e-12,
        primal_feasibility_tolerance=TOLERANCE,
        dual_feasibility_tolerance=TOLERANCE,
        mip_feasibility_tolerance=TOLERANCE,
    )
    try:
        problem.solve(solver)
    except IndexError:  # PuLP reads a solution where HiGHS refused the model and has none
        return None
    return _read(problem, columns, rows, has_whole=any(program.whole))


def _read(problem: object, columns: list, rows: list, *, has_whole: bool) -> Solution | None:  # type: ignore[type-arg]  # PuLP publishes no types
    import highspy

    highs = problem.solverModel  # type: ignore[attr-defined]  # as above
    status, info = highs.getModelStatus(), highs.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return Solution(
        values=np.array([column.varValue for column in columns], dtype=np.float64),
        multipliers=np.array([max(0.0, -(row.pi or 0.0)) for row in rows]),
        objective=float(info.objective_function_value),
        bound=float(info.mip_dual_bound if has_whole else info.objective_function_value),
        finished=status == highspy.HighsModelStatus.kOptimal,
        solver=f"HiGHS {highs.version()}",
    )
