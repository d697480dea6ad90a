"""Probabilistic guarantees with δ > 0: which constraints to give up is a mixed-integer program.

The split form (DESIGN.md §3.6): f = y + g with a binary u_μ(η) for each difference and element,

    f - y ≤ E·f(η+μ),   y ≤ f,   y ≤ δ·u,   f - y ≤ U·(1-u),   Σ_η y_μ(η) ≤ δ.

u = 1 gives the constraint up and puts the whole mass into the budget, as definition (3) of
Kadam et al. 2024 counts it; u = 0 keeps it. The relaxation is the approximate program. The paper's
(13g) is not needed: no optimum gives up a constraint that holds (MATH.md G).

Only the pattern u is taken from the solver. The law is solved again with the pattern fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from release.mechanisms.linear import Pattern, Problem, head_factors, start_program
from release.mechanisms.program import solve


@dataclass(frozen=True)
class PatternFound:
    """A violation pattern with the solver's lower bound of the loss over all patterns."""

    pattern: Pattern
    bound: float
    finished: bool
    solver: str


def find_pattern(problem: Problem, time_limit: float) -> PatternFound | None:
    """The violation pattern that HiGHS finds best within ``time_limit`` seconds, if any."""
    program, masses, scale = start_program(problem, 1.0)
    size, delta = problem.size, problem.delta
    indicators = []
    for shift in problem.differences.shifts:
        moved, factor = head_factors(problem, scale, shift)
        given = program.add_columns(np.zeros(size), 1.0)  # y/δ
        chosen = program.add_columns(np.zeros(size), 1.0, whole=True)  # u
        indicators.append(chosen)
        for e in range(size):
            f, f_moved, y, u = masses[e], masses[moved[e]], given[e], chosen[e]
            per_scale = delta / scale[e]
            kept = np.array([1.0, -factor[e], -per_scale]) / max(1.0, factor[e])
            program.add_row(np.array([f, f_moved, y]), kept, 0.0)
            program.add_row(np.array([y, f]), np.array([per_scale, -1.0]), 0.0)
            program.add_row(np.array([y, u]), np.array([1.0, -1.0]), 0.0)
            whole = [scale[e], -delta, 1.0]
            program.add_row(np.array([f, y, u]), np.array(whole), 1.0)
        program.add_row(given, np.ones(size), 1.0)
    solution = solve(program, time_limit)
    if solution is None:
        return None
    pattern = solution.values[np.array(indicators)] > 0.5
    return PatternFound(pattern, solution.bound, solution.finished, solution.solver)
