"""The paper's own program (13a) to (13h), as printed: a reference, never used for a release.

Kadam et al. 2024 write u and y without saying whether they are one for each difference or shared
by all; the two are different programs (docs/design/mathematics.md, erratum 2), and Table I belongs
to the shared one. Both are here, solved by HiGHS or CBC through PuLP, unscaled and without window.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Floats


class Indicators(Enum):
    """Whose the indicators u and y are."""

    PER_DIFFERENCE = "per difference"
    SHARED = "shared"


@dataclass(frozen=True)
class Verbatim:
    """A solver's answer to the printed program; floats, proved by nobody."""

    masses: Floats
    objective: float
    finished: bool


def solve_verbatim(
    problem: Problem,
    indicators: Indicators,
    time_limit: float,
    solver: str = "HiGHS",
    *,
    with_13g: bool = True,
) -> Verbatim | None:
    """Solve (13) within ``time_limit`` seconds; None without a feasible point.

    ``with_13g`` keeps the constraint that no optimum needs with an indicator per difference.
    """
    import pulp

    size = problem.size
    program = pulp.LpProblem("kadam_13", pulp.LpMinimize)
    f = [program.add_variable(f"f{e}", 0, 1) for e in range(size)]
    program += pulp.lpDot(problem.costs.tolist(), f)  # (13a)
    _constrain(program, problem, f, problem.delta, (indicators, with_13g))
    if solver == "CBC":
        program.solve(pulp.PULP_CBC_CMD(msg=False, timeLimit=time_limit))
        finished = program.sol_status == pulp.LpSolutionOptimal
    else:
        finished = _solved_by_highs(program, time_limit)
    values = [variable.varValue for variable in f]
    if any(value is None for value in values):
        return None
    masses = np.array(values, dtype=np.float64)
    return Verbatim(masses, float(problem.costs @ masses), finished)


def solve_least_delta(
    problem: Problem, cap: float, indicators: Indicators, time_limit: float
) -> float | None:
    """(15): the least δ with a mean cost of at most ``cap``; None where no proof came in time.

    The δ of the problem does not count.
    """
    import pulp

    program = pulp.LpProblem("kadam_15", pulp.LpMinimize)
    f = [program.add_variable(f"f{e}", 0, 1) for e in range(problem.size)]
    delta = program.add_variable("delta", 0, 1)
    program += delta  # (15a)
    program += pulp.lpDot(problem.costs.tolist(), f) <= cap  # (15b)
    _constrain(program, problem, f, delta, (indicators, False))
    return float(delta.varValue) if _solved_by_highs(program, time_limit) else None


def solve_even(problem: Problem, time_limit: float) -> Verbatim | None:
    """(13) with f(η) = f(-η) and an indicator for each difference; None where it did not finish."""
    import pulp

    size = problem.size
    program = pulp.LpProblem("even", pulp.LpMinimize)
    f = [program.add_variable(f"f{e}", 0, 1) for e in range(size)]
    program += pulp.lpDot(problem.costs.tolist(), f)
    for e in range(1, (size + 1) // 2):
        program += f[e] - f[size - e] == 0
    _constrain(program, problem, f, problem.delta, (Indicators.PER_DIFFERENCE, False))
    if not _solved_by_highs(program, time_limit):
        return None
    masses = np.array([variable.varValue for variable in f], dtype=np.float64)
    return Verbatim(masses, float(problem.costs @ masses), True)


def _solved_by_highs(program: Any, time_limit: float) -> bool:
    import pulp

    program.solve(pulp.HiGHS(msg=False, timeLimit=time_limit, threads=1))
    # PuLP calls a search that the time limit stopped optimal; HiGHS itself does not.
    return bool(program.solverModel.getModelStatus().name == "kOptimal")


def _constrain(
    program: Any, problem: Problem, f: list[Any], delta: Any, words: tuple[Indicators, bool]
) -> None:
    """(13b) to (13h); ``words`` say whose the indicators are, and whether (13g) is there."""
    import pulp

    indicators, with_13g = words
    size, ratio = problem.size, problem.ratio
    program += pulp.lpSum(f) == 1  # (13b)
    shared: tuple[list[Any], list[Any]] | None = None
    for number, shift in enumerate(problem.sensitivity.shifts):
        if shared is None or indicators is Indicators.PER_DIFFERENCE:
            u = [program.add_variable(f"u{number}_{e}", cat=pulp.LpBinary) for e in range(size)]
            y = [program.add_variable(f"y{number}_{e}", 0, 1) for e in range(size)]
            shared = (u, y)
            program += pulp.lpSum(y) <= delta  # (13c)
            for e in range(size):
                program += y[e] - u[e] <= 0  # (13c)
                program += u[e] + f[e] - y[e] <= 1  # (13d)
                program += u[e] - f[e] + y[e] <= 1  # (13e)
        u, _ = shared
        for e, head in enumerate(problem.sensitivity.group.moved(shift).tolist()):
            program += f[e] - ratio * f[head] - u[e] <= 0  # (13f)
            if with_13g:
                program += ratio * f[head] - f[e] + ratio * u[e] <= ratio  # (13g)
