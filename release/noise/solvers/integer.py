"""Probabilistic guarantees with δ > 0 and any loss function: a mixed-integer program in a window.

Split form (docs/design/mathematics.md 2.8): f = y + g with a binary u_μ(η) for each shift μ and
element η,

    f - y ≤ E·f(η+μ),   y ≤ f,   y ≤ δ·u,   f - y ≤ 1-u,   Σ_η y_μ(η) ≤ δ.

u = 1 gives the constraint up and puts the whole mass into the budget, as definition (3) of
Kadam et al. 2024 counts it; u = 0 enforces it. The relaxation is at least as strong as the
approximate program. No optimum needs the paper's (13g).

Window (2.9). The optimum of the program in a window bounds the expected cost from below for the
whole group, however large. The pattern u of its solution, with no mass outside, is solved again as
a linear program; that pmf bounds the optimum from above. When the two differ, the window grows.

Incumbent. Cutting the mass off at a radius gives patterns at once. From the cheapest of them the
costliest elements are taken away as long as that helps. What it costs caps the cost: under the cap,
linear programs bound the masses (:func:`_bound_masses`), and the search leaves out what is above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from release.exact.losses import Loss
from release.noise.solvers.problem import Problem
from release.noise.solvers.program import Builder, Floats, Numbers, Program, Solution, Work, solve
from release.noise.solvers.repair import Pattern
from release.noise.solvers.window import Window, answer_rows, demand_rows, privacy_rows

_LOOSE = 1e-7
"""Tolerance of the searches: only a pattern is taken from them."""

_FEW = 300
"""Constraints up to which they are changed one by one."""

_BEYOND = (2, 3)
"""How many steps beyond the incumbent the first window goes, from ε = 1 on and below."""

_FAILURES = 2
"""After so many rings in a row that did not help, no more are taken away."""

_NEAR = 0.05
"""The share of the incumbent's cost that a relaxation may leave open for a cutoff to be of use.

Where it leaves more, a search without heuristics took twice as long.
"""

_NOTHING = 1e-11
"""Costs below this share of the largest one count as 0, or a search for 0 would not end."""


@dataclass(frozen=True)
class Incumbent:
    """Masses on the whole group, the constraints they give up, and the solver's lower bound."""

    masses: Floats
    pattern: Pattern
    objective: float
    bound: float
    finished: bool
    solver: str


def solve_integer(problem: Problem, work: Work, gap: float) -> Incumbent | None:
    """The cheapest masses within the ``work`` that is left, up to a relative ``gap``."""
    best = _best_cut(problem, work)
    if best is not None and problem.is_plain:
        best = _trimmed(problem, best, work)
    bound = 0.0
    reach = 4 if best is None else _reach(problem, best)
    # Where masses fall slowly, those just outside matter more, and a second search costs the most.
    beyond = _BEYOND[0] if problem.guarantee.epsilon >= 1 else _BEYOND[1]
    window = Window(problem, reach + beyond) if problem.is_plain else Window.all_of(problem)
    # Invariant: best is feasible on the whole group; the solver claims that no pmf is below bound.
    while True:
        best, bound, solution = _improve(window, best, bound, gap, work)
        if solution is None:
            # Nothing is as cheap as the incumbent, or no work was left for it.
            break
        if best is None or not solution.finished or work.is_over:
            break
        if window.whole or _is_close(window, best.objective, bound, gap):
            break
        window = Window(problem, window.radius + max(2, window.radius // 3))
    if best is None:
        return None
    if not _is_close(window, best.objective, bound, gap):
        best = _polish(window, best, work)
    return replace(best, bound=bound, finished=_is_close(window, best.objective, bound, gap))


def _improve(
    window: Window, best: Incumbent | None, bound: float, gap: float, work: Work
) -> tuple[Incumbent | None, float, Solution | None]:
    """The incumbent and the bound after a search of the window, and the search's last solution."""
    cap = math.inf if best is None else best.objective
    masses = _bound_masses(window, cap, work)
    solution = None
    # Looser than the budget, a tolerance would be spent as one; the second is as tight as can be.
    for tolerance in (max(1e-10, min(_LOOSE, window.problem.delta * 1e-3)), 1e-10):
        solution, pattern = _search(window, masses, cap, work, tolerance)
        if solution is None:
            break
        bound = max(bound, min(solution.bound, cap))
        completed = _solve_pattern(window, pattern, solution.values, work)
        if completed is not None and (best is None or completed.objective < best.objective):
            best = completed
        close = best is not None and _is_close(window, best.objective, bound, gap)
        # A pattern that only the tolerance makes feasible is searched again with less of it.
        if close or not window.whole or work.is_over:
            break
    return best, bound, solution


def _is_close(window: Window, objective: float, bound: float, gap: float) -> bool:
    return objective - bound <= max(gap * objective, 2 * _nothing(window, objective))


def _polish(window: Window, best: Incumbent, work: Work) -> Incumbent:
    """The best pmf that changing one constraint at a time leads to.

    What a search calls feasible within its tolerance can be a pattern next to the right one.
    """
    if window.near.size * len(window.heads) > _FEW:
        return best
    better = True
    while better:
        better = False
        for index in np.ndindex(best.pattern.shape[0], window.near.size):
            if work.is_over:
                return best
            changed = best.pattern[:, window.near].copy()
            changed[index] = ~changed[index]
            neighbor = _solve_pattern(window, changed, None, work)
            if neighbor is not None and neighbor.objective < best.objective * (1 - 1e-9):
                best, better = neighbor, True
    return best


def _best_cut(problem: Problem, work: Work) -> Incumbent | None:
    """The best pmf without mass beyond a radius, over all radii; None if no radius will do."""
    depth = int(problem.steps.max())
    epsilon, delta = float(problem.guarantee.epsilon), problem.delta
    # A boundary lighter than δ needs about this many steps; start where it is surely heavier.
    radius = min(depth, max(0, int(math.log(1 / (delta * problem.size)) / epsilon) - 2))
    best: Incumbent | None = None
    worse = 0
    while radius <= depth and worse < 3:
        window = Window(problem, radius)
        cut = _solve_pattern(window, _boundary(window), None, work)
        if cut is not None and (best is None or cut.objective < best.objective):
            best, worse = cut, 0
        elif best is not None:
            worse += 1
        radius += 1
    return best


def _trimmed(problem: Problem, best: Incumbent, work: Work) -> Incumbent:
    """The best pmf after taking away the costliest elements that have mass, ring by ring."""
    reach = _reach(problem, best)
    rings = np.unique(problem.costs[best.masses > 0])[::-1]
    worse = 0
    for dearest in rings[1:].tolist():
        window = Window(problem, reach, dearest)
        cut = _solve_pattern(window, _boundary(window), None, work)
        if cut is not None and cut.objective < best.objective:
            best, worse = cut, 0
        else:
            worse += 1
        if worse == _FAILURES:
            break
    return best


def _reach(problem: Problem, best: Incumbent) -> int:
    """The radius of a window that holds all elements with mass."""
    steps = problem.steps[best.masses > 0]
    # The differences of neighbors may not reach all elements; the others have -1 steps, and are in
    # the window of everything alone.
    return int(problem.steps.max() if (steps < 0).any() else steps.max())


def _boundary(window: Window) -> Pattern:
    """The constraints that lead out of the window."""
    return np.array([heads < 0 for heads in window.heads], dtype=bool).reshape(-1, window.near.size)


def _solve_pattern(
    window: Window, given_up: Pattern, values: Floats | None, work: Work
) -> Incumbent | None:
    """The least cost in the window with these constraints given up and no mass outside.

    ``given_up`` has shape (|M|, elements of the window). With ``values``, masses of a relaxed
    solution, constraints that lead out of the window are given up where there was mass.
    """
    problem = window.problem
    if values is not None:
        with_mass = values[: window.near.size] > _LOOSE
        given_up = given_up | (_boundary(window) & with_mass)
    # Masses add up to 10^4, so that a solver's absolute tolerance is a smaller share of them.
    total = 1e4
    builder, masses = _start(window, total, outside=False)
    for heads, loose in zip(window.heads, given_up, strict=True):
        hard, tails = np.flatnonzero(~loose), np.flatnonzero(loose)
        privacy_rows(builder, window, masses, hard, heads[hard])
        if tails.size:
            # The masses of the tails given up add up to at most δ: Σ (s/δ)·x ≤ total.
            shares = window.scale[tails] / problem.delta
            builder.add_row(masses[tails], shares, total * (1 - 1e-12))
    # A pattern that was found is solved to its end, whatever is left.
    counted = Work()
    solution = solve(builder.build(), counted)
    work.spend(counted.done)
    if solution is None or not solution.finished:
        return None
    everywhere = np.zeros(problem.size)
    everywhere[window.near] = np.maximum(0.0, solution.values[masses] * window.scale) / total
    pattern = np.zeros((len(given_up), problem.size), dtype=bool)
    pattern[:, window.near] = given_up
    objective = solution.objective / total
    return Incumbent(everywhere, pattern, objective, 0.0, True, solution.solver)


@dataclass(frozen=True)
class _Masses:
    """What every pmf that costs at most the cap must look like, element by element of a window."""

    heavy: NDArray[np.bool_]
    """Whether an element weighs more than δ, so that it can give no constraint up."""
    most: Floats
    """An upper bound of each mass."""


def _bound_masses(window: Window, cap: float, work: Work) -> _Masses:
    """Bounds of the masses near the centre, from linear programs with the cost capped.

    They strengthen the search: heavy elements need no binaries, and the 1 of f - y ≤ 1-u becomes
    the upper bound of f (2.8).
    """
    heavy = np.zeros(window.near.size, dtype=bool)
    most = np.ones(window.near.size)
    if not 0 < cap < math.inf:
        return _Masses(heavy, most)
    delta, ratio = window.problem.delta * (1 + 1e-6), window.problem.ratio
    least = np.zeros(window.near.size)
    mirror = _mirror(window)
    # Invariant: least is a lower bound of the heavy masses, and 0 elsewhere. Elements are taken
    # from the centre outwards, because constraints carry mass outwards.
    for tail in np.argsort(window.problem.steps[window.near], kind="stable").tolist():
        at_centre = window.problem.steps[window.near[tail]] == 0
        # A heavy element gives nothing up: its constraints carry least / E over to their heads.
        behind = [least[heads == tail].max(initial=0.0) / ratio for heads in window.heads]
        least[tail] = max(behind, default=0.0)
        reached = at_centre or least[tail] > 0
        # A program is solved only where that is too little.
        if reached and least[tail] <= delta and not work.is_over:
            twin = mirror[tail] if mirror is not None and mirror[tail] < tail else tail
            if heavy[twin]:
                least[tail] = least[twin]
            else:
                least[tail] = _extreme(window, _capped(window, heavy, cap), tail, 1.0, work)
        heavy[tail] = least[tail] > delta
        if not heavy[tail]:
            least[tail] = 0.0
            if at_centre:
                break
    relaxed = _capped(window, heavy, cap)
    for tail in np.flatnonzero(~heavy).tolist():
        if mirror is not None and mirror[tail] < tail:
            most[tail] = most[mirror[tail]]
        elif not work.is_over:
            most[tail] = min(1.0, -_extreme(window, relaxed, tail, -1.0, work))
    return _Masses(heavy, most)


def _mirror(window: Window) -> Numbers | None:
    """For each element of the window the number of its negative; None if they are not alike."""
    problem = window.problem
    # No optimum need be even here (2.6). But the mirror image of a feasible pmf is feasible and
    # costs the same, so bounds that hold for all of them are even.
    if not problem.is_even:
        return None
    mirror = window.numbers[problem.group.negatives()[window.near]]
    return mirror if (mirror >= 0).all() else None


def _capped(window: Window, heavy: NDArray[np.bool_], cap: float) -> Program:
    """The approximate relaxation with the cost capped; its first columns are the masses."""
    builder, masses = _start(window, 1.0, outside=True)
    costs = builder.build().cost
    builder.add_row(np.arange(costs.size), costs / cap, 1 + 1e-9)
    for heads in window.heads:
        hard, loose = np.flatnonzero((heads >= 0) & heavy), np.flatnonzero((heads >= 0) & ~heavy)
        privacy_rows(builder, window, masses, hard, heads[hard])
        if loose.size:
            slack = builder.add_columns(np.zeros(loose.size), 1.0)
            unit = window.problem.delta
            privacy_rows(builder, window, masses, loose, heads[loose], (slack, unit))
            builder.add_row(slack, np.ones(slack.size), 1.0)
    return builder.build()


def _extreme(window: Window, relaxed: Program, tail: int, sign: float, work: Work) -> float:
    """A lower bound of sign·f(tail) in the program of :func:`_capped`."""
    goal = np.zeros(relaxed.cost.size)
    goal[tail] = sign
    solution = solve(replace(relaxed, cost=goal), work, tolerance=_LOOSE)
    if solution is None or not solution.finished:
        return 0.0 if sign > 0 else -1.0
    # A bound within the solver's tolerance would cut the optimum off; this allows for more.
    slip = 1e-5 * abs(solution.bound)
    return (solution.bound - slip) * float(window.scale[tail])


def _search(
    window: Window, bounds: _Masses, cap: float, work: Work, tolerance: float
) -> tuple[Solution | None, Pattern]:
    """The mixed-integer program of the module's docstring; its solution and the pattern u."""
    builder, masses = _start(window, 1.0, outside=True)
    delta, scale, heavy = window.problem.delta, window.scale, bounds.heavy
    chosen = np.full((len(window.heads), window.near.size), -1, dtype=np.int64)
    for index, heads in enumerate(window.heads):
        hard, loose = np.flatnonzero((heads >= 0) & heavy), np.flatnonzero((heads >= 0) & ~heavy)
        privacy_rows(builder, window, masses, hard, heads[hard])
        if not loose.size:
            continue
        y = builder.add_columns(np.zeros(loose.size), 1.0)  # the mass given up, in units of δ
        u = builder.add_columns(np.zeros(loose.size), 1.0, whole=True)
        chosen[index, loose] = u
        privacy_rows(builder, window, masses, loose, heads[loose], (y, delta))
        # The variables are x = f/s and y/δ. In them y ≤ f, divided by s, is δ/s·y - x ≤ 0;
        # y ≤ δ·u is y - u ≤ 0; f - y ≤ most·(1-u), divided by most, is s/most·x - δ/most·y + u ≤ 1.
        x, zeros, ones = masses[loose], np.zeros(loose.size), np.ones(loose.size)
        builder.add_rows(np.stack([y, x], 1), np.stack([delta / scale[loose], -ones], 1), zeros)
        builder.add_rows(np.stack([y, u], 1), np.array([1.0, -1.0]), zeros)
        most = np.maximum(bounds.most[loose], delta * 1e-3)
        split = np.stack([scale[loose] / most, -delta / most, ones], 1)
        builder.add_rows(np.stack([x, y, u], 1), split, ones)
        builder.add_row(y, ones, 1.0)
    program = builder.build()
    ask = partial(solve, work=work, tolerance=tolerance, gaps=(_LOOSE, _nothing(window, 0.0)))
    solution = None
    if cap < math.inf:
        relaxed = ask(replace(program, whole=np.zeros_like(program.whole)))
        if relaxed is not None and relaxed.objective >= cap * (1 - _NEAR):
            # A little above the cap, for the incumbent too is feasible only within a tolerance.
            solution = ask(program, cutoff=cap * (1 + 1e-6) + _nothing(window, cap))
    if solution is None:
        solution = ask(program)
    if solution is None:
        return None, np.zeros(chosen.shape, dtype=bool)
    pattern = np.where(chosen >= 0, solution.values[chosen] > 0.5, False)
    return solution, pattern


def _start(window: Window, total: float, *, outside: bool) -> tuple[Builder, Numbers]:
    """Columns for the masses (and the free mass outside), the row of their sum, the constraints."""
    builder, problem = Builder(), window.problem
    # The costs of a worst-case loss function stand in rows, below one more variable.
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


def _nothing(window: Window, cost: float) -> float:
    """A difference of costs that counts as 0: tiny beside ``cost`` or beside any one."""
    return max(_NOTHING * float(window.costs.max()), _LOOSE * cost)
