"""Linear and mixed-integer programs, handed to HiGHS through PuLP or as arrays.

A solver's answer is a suggestion: PuLP calls a solve that was stopped by its time limit "Optimal",
and a solver's "feasible" means within a tolerance. So this module reads HiGHS' own status and
bound, and nothing downstream believes the values before the exact proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

TOLERANCE = 1e-10
"""Feasibility and optimality tolerance asked of the solver, on rows scaled to about 1."""

ARRAYS_FROM = 200
"""Rows from which a program is handed over as arrays."""


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


def solve(
    program: Program,
    time_limit: float | None = None,
    *,
    tolerance: float = TOLERANCE,
    gaps: tuple[float, float] = (1e-9, 1e-12),
) -> Solution | None:
    """Solve with HiGHS; ``None`` when there is no feasible point (found).

    ``time_limit`` is in seconds; a solve that it stops is marked ``finished=False``. A search ends
    when the bound is within the relative or the absolute of the ``gaps``. Small programs
    go through PuLP, larger ones as arrays: PuLP builds row by row in Python, which from about
    ``ARRAYS_FROM`` rows on costs more than solving (benchmarks/bench_programs.py).
    """
    options = {
        "threads": 1,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "mip_rel_gap": gaps[0],
        "mip_abs_gap": gaps[1],
    }
    if time_limit is not None:
        options["time_limit"] = float(time_limit)
    if len(program.rows) >= ARRAYS_FROM:
        return _read(_run_as_arrays(program, options), None, has_whole=any(program.whole))
    ran = _run_through_pulp(program, options)
    return None if ran is None else _read(*ran, has_whole=any(program.whole))


def _run_through_pulp(
    program: Program, options: dict[str, float]
) -> tuple[Any, list[int | None]] | None:
    """HiGHS after the solve, and where PuLP has put each of our columns."""
    import pulp

    problem = pulp.LpProblem("noise_law", pulp.LpMinimize)
    columns = [
        problem.add_variable(f"x{i}", 0, upper, pulp.LpInteger if whole else pulp.LpContinuous)
        for i, (upper, whole) in enumerate(zip(program.upper, program.whole, strict=True))
    ]
    problem += pulp.LpAffineExpression(
        {column: cost for column, cost in zip(columns, program.cost, strict=True) if cost}
    )
    for entries, limit, equal in zip(program.rows, program.limit, program.equal, strict=True):
        problem += pulp.LpConstraint(
            pulp.LpAffineExpression({columns[i]: value for i, value in entries}),
            pulp.LpConstraintEQ if equal else pulp.LpConstraintLE,
            rhs=limit,
        )
    try:
        problem.solve(pulp.HiGHS(msg=False, **options))
    except IndexError:  # PuLP reads a solution where HiGHS refused the model and has none
        return None
    highs = problem.solverModel
    # PuLP numbers the columns in an order of its own and leaves out those that stand nowhere.
    order = [getattr(column, "index", None) for column in columns]
    return highs, order


def _run_as_arrays(program: Program, options: dict[str, float]) -> Any:
    import highspy

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(program.cost), len(program.rows)
    model.col_cost_ = np.array(program.cost)
    model.col_lower_ = np.zeros(len(program.cost))
    model.col_upper_ = np.array([np.inf if u is None else u for u in program.upper])
    limit = np.array(program.limit)
    model.row_upper_ = limit
    model.row_lower_ = np.where(program.equal, limit, -np.inf)
    lengths = [len(row) for row in program.rows]
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    model.a_matrix_.index_ = np.array([i for row in program.rows for i, _ in row], dtype=np.int32)
    model.a_matrix_.value_ = np.array([value for row in program.rows for _, value in row])
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    model.integrality_ = [kinds[whole] for whole in program.whole]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    highs.run()
    return highs


def _read(highs: Any, order: list[int | None] | None, *, has_whole: bool) -> Solution | None:
    """HiGHS' own status and figures; PuLP's would call a stopped search optimal."""
    import highspy

    status, info, solution = highs.getModelStatus(), highs.getInfo(), highs.getSolution()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    values = np.array(solution.col_value, dtype=np.float64)
    if order is not None:
        values = np.array([0.0 if i is None else values[i] for i in order])
    return Solution(
        values=values,
        multipliers=np.maximum(0.0, -np.array(solution.row_dual, dtype=np.float64)),
        objective=float(info.objective_function_value),
        bound=float(info.mip_dual_bound if has_whole else info.objective_function_value),
        finished=status == highspy.HighsModelStatus.kOptimal,
        solver=f"HiGHS {highs.version()}",
    )
