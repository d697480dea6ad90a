"""Linear and mixed-integer programs, handed to HiGHS through PuLP or as arrays.

A solver's answer is a suggestion: "feasible" means within a tolerance. Nothing downstream trusts
the values before the exact check (docs/design/mathematics.md 1.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
"""Numbers of columns, rows or elements; -1 where there is none."""

TOLERANCE = 1e-10
"""Feasibility and optimality tolerance asked of the solver, on rows scaled to about 1."""

ARRAYS_FROM = 50
"""Rows from which a program is handed over as arrays (measured by benchmarks/bench_programs.py)."""

_ENDLESS = 1e30
"""What HiGHS takes for infinite; PuLP refuses the real thing."""

_HEURISTICS = tuple(
    f"mip_heuristic_run_{name}"
    for name in ("rins", "rens", "root_reduced_cost", "feasibility_jump")
)
"""Searches for a first solution, which a search below a good cutoff can do without."""

_STEPS_A_SOLVE = 10
"""What handing over a program costs, in steps of the simplex method."""

_STEPS_A_NODE = 70
"""Steps that a node of a search is taken to need, to turn the work that is left into nodes."""

_STEPS_AN_INTERIOR_STEP = 100

_MOST_COUNTED = 2**31 - 1
"""HiGHS counts in 32 bits."""


@dataclass
class Work:
    """A limit that is counted, not timed: the same on any machine and under any load.

    Units are rows of a program times steps of the simplex method; a core does some 10^7 a second.
    """

    most: float = inf
    done: float = 0.0

    @property
    def left(self) -> float:
        """What may still be done."""
        return max(0.0, self.most - self.done)

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.done >= self.most

    def spend(self, units: float) -> None:
        """Count work that was done."""
        self.done += units

    def end(self) -> None:
        """Count all that is left as done: a solver came to the end of its share."""
        self.done = max(self.done, self.most)


@dataclass(frozen=True)
class Program:
    """minimise cost·x subject to rows·x ≤ limit (or = limit), lower ≤ x ≤ upper, some x whole.

    Row r has the entries ``starts[r]`` to ``starts[r + 1]`` of ``columns`` and ``values``. A solver
    sees ``values``; the coefficients meant are ``values + residues``, with twice the digits.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    whole: NDArray[np.bool_]
    starts: Numbers
    columns: Numbers
    values: Floats
    residues: Floats
    limit: Floats
    equal: NDArray[np.bool_]


@dataclass
class Builder:
    """Collects a program; columns and rows are numbered in the order they are added."""

    _column_blocks: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    """Costs, upper bounds, whether whole."""
    _row_blocks: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    """Lengths, columns, values, residues, limits, whether equations."""
    _width: int = 0
    _height: int = 0

    def add_columns(self, costs: Floats, upper: float = np.inf, *, whole: bool = False) -> Numbers:
        """Add one variable, at least 0, for each cost; return their numbers."""
        first, self._width = self._width, self._width + costs.size
        costs = np.asarray(costs, dtype=np.float64)
        self._column_blocks.append((costs, np.full(costs.size, upper), np.full(costs.size, whole)))
        return np.arange(first, self._width)

    def add_rows(
        self, columns: Numbers, values: Floats, limits: Floats, residues: Floats | None = None
    ) -> Numbers:
        """Add the rows Σ values·x[columns] ≤ limits, both of shape (rows, terms).

        A term whose column is -1 is left out. Returns the numbers of the rows.
        """
        present, low = columns >= 0, np.zeros(columns.shape) if residues is None else residues
        self._row_blocks.append(
            (
                present.sum(axis=1),
                columns[present],
                np.broadcast_to(values, columns.shape)[present],
                low[present],
                np.asarray(limits, dtype=np.float64),
                np.zeros(len(columns), dtype=bool),
            )
        )
        first, self._height = self._height, self._height + len(columns)
        return np.arange(first, self._height)

    def add_row(
        self, columns: Numbers, values: Floats, limit: float, *, equal: bool = False
    ) -> int:
        """Add one row Σ values·x[columns] ≤ limit, or = limit; return its number."""
        number = int(self.add_rows(columns[None, :], values[None, :], np.array([limit]))[0])
        self._row_blocks[-1][-1][:] = equal
        return number

    def build(self) -> Program:
        """The program."""
        cost, upper, whole = map(np.concatenate, zip(*self._column_blocks, strict=True))
        lengths, *entries = map(np.concatenate, zip(*self._row_blocks, strict=True))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        # Blocks hold their arrays in the order of the fields of Program.
        return Program(cost, np.zeros(self._width), upper, whole, starts, *entries)


@dataclass(frozen=True)
class Solution:
    """What the solver returns, unproved.

    ``duals[row]`` is what a unit more of the row's limit would add to the objective: at most 0 for
    an inequality. ``bound`` is the solver's lower bound of the objective. ``finished`` is false
    where a limit ended the solve. ``basis`` is the solver's own, to start a similar program from.
    """

    values: Floats
    duals: Floats
    objective: float
    bound: float
    finished: bool
    solver: str
    basis: Any = None


def solve(  # noqa: PLR0913 - one for each thing a program can ask of the solver
    program: Program,
    work: Work | None = None,
    *,
    tolerance: float = TOLERANCE,
    gaps: tuple[float, float] = (1e-9, 1e-12),
    cutoff: float = inf,
    basis: Any = None,
    arrays: bool | None = None,
    interior: bool = False,
) -> Solution | None:
    """Solve with HiGHS; ``None`` when it returns no feasible point.

    What is done is counted in ``work``; a solve that ends with what is left of it is marked
    ``finished=False``. A search ends when the bound is within the relative or the absolute of the
    ``gaps``, and looks only for objectives of at most ``cutoff``. Small programs go through PuLP;
    those of ``ARRAYS_FROM`` rows and those with a ``basis`` go as arrays. ``arrays`` forces one or
    the other. ``interior`` asks for an interior point first, which some programs with many optima
    need to end at all.
    """
    options: dict[str, int | float | bool | str] = {
        "threads": 1,
        "random_seed": 0,
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
        "mip_rel_gap": gaps[0],
        "mip_abs_gap": gaps[1],
        # HiGHS drops smaller coefficients, and a tail has many elements.
        "small_matrix_value": 1e-12,
        # Searches start from an incumbent; without heuristics and restarts they ended sooner.
        "mip_heuristic_effort": 0.0,
        "mip_allow_restart": False,
    }
    work = Work() if work is None else work
    has_whole = bool(program.whole.any())
    if work.most < inf:
        options |= _limits(work.left / max(1, program.limit.size), has_whole=has_whole)
    if cutoff < inf:
        options |= {"objective_bound": cutoff} | dict.fromkeys(_HEURISTICS, False)
    if interior:
        options["solver"] = "ipm"
    if arrays is None:
        # PuLP builds row by row in Python, which for larger programs takes longer than solving.
        arrays = program.limit.size >= ARRAYS_FROM or basis is not None
    order: list[int | None] | None = None
    if arrays:
        highs = _run_as_arrays(program, options, basis)
    else:
        ran = _run_through_pulp(program, options)
        if ran is None:
            return None
        highs, order = ran
    _count(work, highs, program)
    return _read(highs, order, has_whole=has_whole)


def _limits(steps: float, *, has_whole: bool) -> dict[str, int]:
    """The options of HiGHS that end a solve after about so many steps."""
    if has_whole:
        return {"mip_max_nodes": _counted(steps / _STEPS_A_NODE)}
    return {
        "simplex_iteration_limit": _counted(steps),
        "ipm_iteration_limit": _counted(steps / _STEPS_AN_INTERIOR_STEP),
    }


def _counted(steps: float) -> int:
    return int(min(max(1.0, steps), _MOST_COUNTED))


def _count(work: Work, highs: Any, program: Program) -> None:
    """Count what the solver has done."""
    import highspy

    info, limits = highs.getInfo(), highspy.HighsModelStatus
    steps = _STEPS_A_SOLVE + max(0, info.simplex_iteration_count)
    steps += _STEPS_AN_INTERIOR_STEP * max(0, info.ipm_iteration_count)
    work.spend(program.limit.size * (steps + max(0, info.crossover_iteration_count)))
    if highs.getModelStatus() in {limits.kIterationLimit, limits.kSolutionLimit}:
        work.end()


def _run_through_pulp(
    program: Program, options: dict[str, int | float | bool | str]
) -> tuple[Any, list[int | None]] | None:
    """HiGHS after the solve, and where PuLP has put each of our columns."""
    import pulp

    problem = pulp.LpProblem("noise", pulp.LpMinimize)
    bounds = zip(
        program.lower.tolist(), program.upper.tolist(), program.whole.tolist(), strict=True
    )
    columns = []
    for i, (lower, upper, whole) in enumerate(bounds):
        low = lower if np.isfinite(lower) else None
        high = upper if np.isfinite(upper) else None
        kind = pulp.LpInteger if whole else pulp.LpContinuous
        columns.append(problem.add_variable(f"x{i}", low, high, kind))
    costs = zip(columns, program.cost.tolist(), strict=True)
    problem += pulp.LpAffineExpression({column: cost for column, cost in costs if cost})
    for row, limit in enumerate(program.limit.tolist()):
        entries = slice(program.starts[row], program.starts[row + 1])
        terms = zip(
            program.columns[entries].tolist(), program.values[entries].tolist(), strict=True
        )
        problem += pulp.LpConstraint(
            pulp.LpAffineExpression({columns[i]: value for i, value in terms}),
            pulp.LpConstraintEQ if program.equal[row] else pulp.LpConstraintLE,
            rhs=min(limit, _ENDLESS),
        )
    try:
        problem.solve(pulp.HiGHS(msg=False, **options))
    except IndexError:  # PuLP reads a solution where HiGHS refused the model and has none
        return None
    except KeyError:  # PuLP has no word for a search that its limit stopped; HiGHS has one
        pass
    highs = problem.solverModel
    # PuLP numbers the columns in an order of its own and leaves out those that stand nowhere.
    order = [getattr(column, "index", None) for column in columns]
    return highs, order


def highs_model(program: Program) -> Any:
    """The columns and rows of ``program`` as a model of HiGHS, without its whole numbers."""
    import highspy

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.cost.size, program.limit.size
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = program.lower, program.upper
    model.row_upper_ = program.limit
    model.row_lower_ = np.where(program.equal, program.limit, -np.inf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.starts.astype(np.int32)
    model.a_matrix_.index_ = program.columns.astype(np.int32)
    model.a_matrix_.value_ = program.values
    return model


def _run_as_arrays(
    program: Program, options: dict[str, int | float | bool | str], basis: Any
) -> Any:
    import highspy

    model = highs_model(program)
    if program.whole.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[whole] for whole in program.whole.tolist()]
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    if basis is not None:
        highs.setBasis(basis)
    highs.run()
    return highs


def _read(highs: Any, order: list[int | None] | None, *, has_whole: bool) -> Solution | None:
    """The solution by HiGHS' own status and figures."""
    import highspy

    # PuLP's status cannot be used: it calls a solve that its limit stopped "Optimal".
    status, info, solution = highs.getModelStatus(), highs.getInfo(), highs.getSolution()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    values = np.array(solution.col_value, dtype=np.float64)
    if order is not None:
        values = np.array([0.0 if i is None else values[i] for i in order])
    return Solution(
        values=values,
        duals=np.array(solution.row_dual, dtype=np.float64),
        objective=float(info.objective_function_value),
        bound=float(info.mip_dual_bound if has_whole else info.objective_function_value),
        finished=status == highspy.HighsModelStatus.kOptimal,
        solver=f"HiGHS {highs.version()}",
        basis=None if has_whole or order is not None else highs.getBasis(),
    )
