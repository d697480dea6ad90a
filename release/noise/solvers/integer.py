"""Probabilistic guarantees with δ > 0 and any loss: the mixed-integer program in a window.

Which constraints to give up is what the integers say. The split form (docs/design/mathematics.md):
f = y + g with a binary u_μ(η) for each difference and element,

    f - y ≤ E·f(η+μ),   y ≤ f,   y ≤ δ·u,   f - y ≤ 1-u,   Σ_η y_μ(η) ≤ δ.

u = 1 gives the constraint up and puts the whole mass into the budget, as definition (3) of
Kadam et al. 2024 counts it; u = 0 keeps it. The relaxation is at least as strong as the approximate
program. The paper's (13g) is not needed: no optimum gives up a constraint that holds
(docs/design/mathematics.md).

Window (docs/design/mathematics.md). Only elements within a radius of the centre have variables of
their own. The others are one free mass at the cheapest of their costs, and constraints into them
cost nothing: that relaxes the program, so its optimum bounds the loss from below for the whole
group, however large. The pattern it finds, completed with zeros outside, is solved again as a
linear program; its law bounds the loss from above. When the two differ, the window grows.

Incumbent. Cutting the mass off at a radius gives patterns at once; the best of them caps the loss.
With the cap, linear programs bound the masses: an element that must weigh more than δ cannot give
a constraint up, so its binaries go; and the 1 of f - y ≤ 1-u becomes the most f can weigh.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from release.exact.losses import Loss
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Floats, Numbers, Program, Solution, solve
from release.noise.solvers.repair import Pattern
from release.noise.solvers.window import Window, answer_rows, demand_rows, keep_rows

_LOOSE = 1e-7
"""Tolerance of the searches: only a pattern is taken from them."""

_FEW = 300
"""Constraints up to which they are changed one by one."""

_NOTHING = 1e-11
"""Losses below this share of the largest cost count as none, or a search for 0 would not end."""


@dataclass(frozen=True)
class Found:
    """Masses on the whole group with the pattern they keep to, and the solver's lower bound."""

    masses: Floats
    pattern: Pattern
    objective: float
    bound: float
    finished: bool
    solver: str


def find_law(problem: Problem, time_limit: float, gap: float) -> Found | None:
    """The best masses found within ``time_limit`` seconds, up to a relative ``gap``."""
    deadline = time.monotonic() + time_limit
    best = best_cut(problem)
    bound = 0.0
    radius = (_reach(problem, best) if best is not None else 4) + 3
    if not problem.is_plain:
        radius = int(problem.steps.max())
    while True:
        window = Window(problem, radius)
        cap = math.inf if best is None else best.objective
        masses = bound_masses(window, cap, deadline)
        solution = None
        for tolerance in _tolerances(problem):
            solution, chosen = _search(window, masses, deadline, tolerance)
            if solution is None:
                break
            bound = max(bound, min(solution.bound, cap))
            completed = solve_pattern(window, chosen, solution.values)
            if completed is not None and (best is None or completed.objective < best.objective):
                best = completed
            reached = best is not None and _is_close(window, best.objective, bound, gap)
            # A pattern that only the tolerance makes feasible is looked for again with less of it.
            if reached or not window.whole:
                break
        if solution is None:
            # Nothing is as good as the incumbent (or there was no time to find it).
            break
        if best is None or not solution.finished or time.monotonic() > deadline:
            break
        if window.whole or _is_close(window, best.objective, bound, gap):
            break
        radius += max(2, radius // 3)
    if best is None:
        return None
    if not _is_close(window, best.objective, bound, gap):
        best = polish(window, best, deadline)
    return replace(best, bound=bound, finished=_is_close(window, best.objective, bound, gap))


def _is_close(window: Window, objective: float, bound: float, gap: float) -> bool:
    return objective - bound <= max(gap * objective, 2 * _nothing(window, objective))


def _reach(problem: Problem, found: Found) -> int:
    return int(problem.steps[found.masses > 0].max())


def polish(window: Window, found: Found, deadline: float) -> Found:
    """The best law that changing one constraint at a time leads to.

    What a search calls feasible within its tolerance can be a pattern next to the right one.
    """
    if window.near.size * len(window.heads) > _FEW:
        return found
    best, better = found, True
    while better:
        better = False
        for index in np.ndindex(best.pattern.shape[0], window.near.size):
            if time.monotonic() > deadline:
                return best
            changed = best.pattern[:, window.near].copy()
            changed[index] = ~changed[index]
            made = solve_pattern(window, changed, None)
            if made is not None and made.objective < best.objective * (1 - 1e-9):
                best, better = made, True
    return best


def _tolerances(problem: Problem) -> tuple[float, float]:
    """Tighter than the budget, or the tolerance would be spent as one; then as tight as can be."""
    return max(1e-10, min(_LOOSE, problem.delta * 1e-3)), 1e-10


def best_cut(problem: Problem) -> Found | None:
    """The best law without mass beyond a radius, over all radii; None if no radius will do."""
    depth = int(problem.steps.max())
    epsilon, delta = float(problem.guarantee.epsilon), problem.delta
    # A boundary lighter than δ needs about this many steps; start where it is surely heavier.
    radius = min(depth, max(0, int(math.log(1 / (delta * problem.size)) / epsilon) - 2))
    best: Found | None = None
    worse = 0
    while radius <= depth and worse < 3:
        window = Window(problem, radius)
        boundary = _boundary(window)
        found = solve_pattern(window, boundary, None)
        if found is not None and (best is None or found.objective < best.objective):
            best, worse = found, 0
        elif best is not None:
            worse += 1
        radius += 1
    return best


def _boundary(window: Window) -> Pattern:
    """The constraints that lead out of the window."""
    return np.array([heads < 0 for heads in window.heads], dtype=bool).reshape(-1, window.near.size)


def solve_pattern(window: Window, given_up: Pattern, values: Floats | None) -> Found | None:
    """The least loss in the window with these constraints given up and no mass outside.

    ``given_up`` has shape (|M|, elements of the window). With ``values``, masses of a relaxed
    solution, constraints that lead out of the window are given up where there was mass.
    """
    problem = window.problem
    if values is not None:
        with_mass = values[: window.near.size] > _LOOSE
        leaving = _boundary(window)
        given_up = given_up | (leaving & with_mass)
    total = 1e4
    builder, masses = _start(window, total, outside=False)
    for heads, loose in zip(window.heads, given_up, strict=True):
        kept, tails = np.flatnonzero(~loose), np.flatnonzero(loose)
        keep_rows(builder, window, masses, kept, heads[kept])
        if tails.size:
            shares = window.scale[tails] / problem.delta
            builder.add_row(masses[tails], shares, total * (1 - 1e-12))
    solution = solve(builder.build())
    if solution is None or not solution.finished:
        return None
    everywhere = np.zeros(problem.size)
    everywhere[window.near] = np.maximum(0.0, solution.values[masses] * window.scale) / total
    pattern = np.zeros((len(given_up), problem.size), dtype=bool)
    pattern[:, window.near] = given_up
    objective = solution.objective / total
    return Found(everywhere, pattern, objective, 0.0, True, solution.solver)


@dataclass(frozen=True)
class Masses:
    """What every law that loses at most the cap must look like, element by element of a window."""

    kept: NDArray[np.bool_]
    """Whether an element weighs more than δ, so that it can give no constraint up."""
    most: Floats
    """An upper bound of each mass."""


def bound_masses(window: Window, cap: float, deadline: float) -> Masses:
    """Bounds of the masses near the centre, from linear programs with the loss capped."""
    kept = np.zeros(window.near.size, dtype=bool)
    most = np.ones(window.near.size)
    if not 0 < cap < math.inf:
        return Masses(kept, most)
    delta, ratio = window.problem.delta * (1 + 1e-6), window.problem.ratio
    least = np.zeros(window.near.size)
    mirror = _mirror(window)
    for tail in np.argsort(window.problem.steps[window.near], kind="stable").tolist():
        at_centre = window.problem.steps[window.near[tail]] == 0
        # What the kept constraints that end here carry over; a program only where it is too little.
        behind = [least[heads == tail].max(initial=0.0) / ratio for heads in window.heads]
        least[tail] = max(behind, default=0.0)
        reached = at_centre or least[tail] > 0
        if reached and least[tail] <= delta and time.monotonic() < deadline:
            twin = mirror[tail] if mirror is not None and mirror[tail] < tail else tail
            if kept[twin]:
                least[tail] = least[twin]
            else:
                least[tail] = _extreme(window, _capped(window, kept, cap), tail, 1.0)
        kept[tail] = least[tail] > delta
        if not kept[tail]:
            # Only from elements that keep all their constraints is anything carried over.
            least[tail] = 0.0
            if at_centre:
                break
    relaxed = _capped(window, kept, cap)
    for tail in np.flatnonzero(~kept).tolist():
        if mirror is not None and mirror[tail] < tail:
            most[tail] = most[mirror[tail]]
        elif time.monotonic() < deadline:
            most[tail] = min(1.0, -_extreme(window, relaxed, tail, -1.0))
    return Masses(kept, most)


def _mirror(window: Window) -> Numbers | None:
    """For each element of the window the number of its negative; None if they are not alike."""
    problem = window.problem
    if not problem.is_even:
        return None
    mirror = window.numbers[problem.group.negatives()[window.near]]
    return mirror if (mirror >= 0).all() else None


def _capped(window: Window, kept: NDArray[np.bool_], cap: float) -> Program:
    """The approximate relaxation with the loss capped; its first columns are the masses."""
    builder, masses = _start(window, 1.0, outside=True)
    losses = builder.build().cost
    builder.add_row(np.arange(losses.size), losses / cap, 1 + 1e-9)
    for heads in window.heads:
        hard, loose = np.flatnonzero((heads >= 0) & kept), np.flatnonzero((heads >= 0) & ~kept)
        keep_rows(builder, window, masses, hard, heads[hard])
        if loose.size:
            slack = builder.add_columns(np.zeros(loose.size), 1.0)
            unit = window.problem.delta
            keep_rows(builder, window, masses, loose, heads[loose], (slack, unit))
            builder.add_row(slack, np.ones(slack.size), 1.0)
    return builder.build()


def _extreme(window: Window, relaxed: Program, tail: int, sign: float) -> float:
    """A lower bound of sign·f(tail) in the program of :func:`_capped`."""
    goal = np.zeros(relaxed.cost.size)
    goal[tail] = sign
    solution = solve(replace(relaxed, cost=goal), tolerance=_LOOSE)
    if solution is None or not solution.finished:
        return 0.0 if sign > 0 else -1.0
    slip = 1e-5 * abs(solution.bound)
    return (solution.bound - slip) * float(window.scale[tail])


def _search(
    window: Window, bounds: Masses, deadline: float, tolerance: float
) -> tuple[Solution | None, Pattern]:
    """The mixed-integer program of the module's docstring; its solution and the pattern u."""
    builder, masses = _start(window, 1.0, outside=True)
    delta, scale, kept = window.problem.delta, window.scale, bounds.kept
    chosen = np.full((len(window.heads), window.near.size), -1, dtype=np.int64)
    for index, heads in enumerate(window.heads):
        hard, loose = np.flatnonzero((heads >= 0) & kept), np.flatnonzero((heads >= 0) & ~kept)
        keep_rows(builder, window, masses, hard, heads[hard])
        if not loose.size:
            continue
        y = builder.add_columns(np.zeros(loose.size), 1.0)  # the mass given up, in units of δ
        u = builder.add_columns(np.zeros(loose.size), 1.0, whole=True)
        chosen[index, loose] = u
        keep_rows(builder, window, masses, loose, heads[loose], (y, delta))
        f, none, one = masses[loose], np.zeros(loose.size), np.ones(loose.size)
        builder.add_rows(np.stack([y, f], 1), np.stack([delta / scale[loose], -one], 1), none)
        builder.add_rows(np.stack([y, u], 1), np.array([1.0, -1.0]), none)
        most = np.maximum(bounds.most[loose], delta * 1e-3)
        split = np.stack([scale[loose] / most, -delta / most, one], 1)
        builder.add_rows(np.stack([f, y, u], 1), split, one)
        builder.add_row(y, one, 1.0)
    left = max(0.05, deadline - time.monotonic())
    solution = solve(
        builder.build(), left, tolerance=tolerance, gaps=(_LOOSE, _nothing(window, 0.0))
    )
    if solution is None:
        return None, np.zeros(chosen.shape, dtype=bool)
    pattern = np.where(chosen >= 0, solution.values[chosen] > 0.5, False)
    return solution, pattern


def _start(window: Window, total: float, *, outside: bool) -> tuple[Builder, Numbers]:
    """Columns for the masses (and the free mass outside), the row of their sum, the demands.

    With a worst-case loss the costs stand in rows, below one more variable, and the cost is its.
    """
    builder, problem = Builder(), window.problem
    plain = isinstance(problem.loss, Loss)
    costs = window.costs * window.scale
    masses = builder.add_columns(costs if plain else np.zeros_like(costs))
    columns, weights = masses, window.scale
    if outside and not window.whole:
        free = builder.add_columns(np.array([window.outside_cost]))
        columns, weights = np.append(masses, free), np.append(window.scale, 1.0)
    builder.add_row(columns, weights, total, equal=True)
    demand_rows(builder, window, masses, total)
    answer_rows(builder, window, masses)
    return builder, masses


def _nothing(window: Window, loss: float) -> float:
    """A difference of losses that counts as none: tiny beside ``loss`` or beside any cost."""
    return max(_NOTHING * float(window.costs.max()), _LOOSE * loss)
