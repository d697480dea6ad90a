"""Modular noise of least expected cost under a guarantee, proved.

The first method that applies (docs/design/mathematics.md 2.1 to 2.9):

1. the closed forms: the error rate, and growing costs where M is an interval;
2. the linear program, for pure and approximate guarantees, any loss function and constraints;
3. for probabilistic guarantees with δ > 0, levels where the loss function is the error rate and
   CP-SAT is installed, else the mixed-integer program in a window.

Whatever a method returns is a suggestion. It becomes a pmf of integers, the guarantee is checked
exactly on those integers (1.2), and a pmf that fails does not leave this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from release.errors import DesignError
from release.exact.losses import Loss, WorstCaseLoss
from release.exact.modular import Modular
from release.exact.pmf import DEFAULT_BITS, MOST_BITS, Pmf
from release.exact.privacy import KEPT_FREE, Definition, Guarantee, keeps
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import Constraint, keeps_all
from release.noise.design import GAP, Design
from release.noise.solvers.closed_form import (
    delta_buys_nothing,
    highest_mode,
    mixture_pmf,
    pure_pmf,
    staircase,
)
from release.noise.solvers.integer import solve_integer
from release.noise.solvers.levels import available as levels_available
from release.noise.solvers.levels import solve_levels
from release.noise.solvers.linear import LinearSolution, proved_bound, solve_linear
from release.noise.solvers.problem import Problem
from release.noise.solvers.profiles.search import search_profiles
from release.noise.solvers.program import Work
from release.noise.solvers.refine import Precise, precise
from release.noise.solvers.repair import Pattern, mix, raise_to_feasible, round_down
from release.noise.solvers.window import Window
from release.records.notes import SOLVERS_BOUND, TOLERANCE, WORK_LIMIT

WORK = 7.5e8
"""Work of a design before its incumbent is used, with its gap: about a minute of a core."""

_BRIEF = 0.05
"""The share of the usual work after which CP-SAT gives way to the search of profiles."""

_SMALL = 20_000
"""Up to this many answers the safe pmf is compared with another one."""


def design(
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    loss: Loss | WorstCaseLoss,
    constraints: Sequence[Constraint] = (),
    *,
    work: float = 1.0,
    gap: Fraction = GAP,
) -> Design[Modular]:
    """The modular noise of least expected ``loss`` that satisfies ``guarantee``.

    ``constraints`` are further linear demands on the pmf (:mod:`release.noise.constraints`).
    ``work`` is a factor of the usual limit, which is counted, not timed: the result is the same
    under any load. A mixed-integer program ends earlier once its bound is within the relative
    ``gap``. After the limit the design states it in its notes and its gap, and the caller decides
    whether that will do (:meth:`Design.is_within`).

    Raises:
        DesignError: no pmf could be proved, or none satisfies the constraints.
        ValueError: the loss or a constraint does not have one number for each element.
    """
    size = sensitivity.group.size
    if loss.numerators.shape[-1] != size:
        raise ValueError("the loss needs one cost for each element of the group")
    if any(constraint.coefficients.shape != (size,) for constraint in constraints):
        raise ValueError("a constraint needs one coefficient for each element of the group")
    problem = Problem.of(sensitivity, _in_effect(guarantee), loss, tuple(constraints))
    solution = _closed_form(problem) or _by_solver(problem, Work(WORK * work), gap)
    # Trust no method: the caller's own guarantee is checked, not the one in effect.
    if not keeps_all(solution.mechanism.pmf, sensitivity, guarantee, constraints):
        raise DesignError(f"the noise distribution does not satisfy the {guarantee}")
    return replace(solution, guarantee=guarantee)


def _in_effect(guarantee: Guarantee) -> Guarantee:
    """With δ = 0, or below every float, all three definitions are the pure one."""
    if guarantee.epsilon == 0:
        # A verifier may take a ratio up to 10⁻³⁰ below 1; that adds at most the unused δ (1.3).
        return replace(guarantee, delta=guarantee.delta - KEPT_FREE)
    if float(guarantee.delta) == 0:
        return Guarantee(Definition.PURE, guarantee.epsilon, Fraction(0))
    return guarantee


def _finish(
    problem: Problem,
    pmf: Pmf,
    method: str,
    bound: Fraction,
    *,
    proved: bool = True,
    solver: str = "none",
) -> Design[Modular]:
    objective = problem.loss.of(pmf)
    return Design(
        mechanism=Modular(pmf),
        sensitivity=problem.sensitivity,
        guarantee=problem.guarantee,
        loss=problem.loss,
        method=method,
        objective=objective,
        # A solver's bound is within its tolerance only, and can be above an exact optimum.
        lower_bound=bound if proved else min(bound, objective),
        bound_proved=proved,
        solver=solver,
        name=Modular.family,
    )


def _safe_pmf(problem: Problem, bits: int = DEFAULT_BITS) -> Pmf:
    """The pure closed form: feasible under every definition, whatever the loss function."""
    return pure_pmf(problem.group, problem.steps, problem.exact_ratio, bits)


def _closed_form(problem: Problem) -> Design[Modular] | None:
    loss = problem.loss
    if problem.constraints or isinstance(loss, WorstCaseLoss):
        return None
    if not problem.sensitivity.shifts:
        # M is empty, so every pmf satisfies the guarantee: the cheapest noise value, for certain.
        cheapest = int(loss.numerators.argmin())
        weights = [0] * problem.size
        weights[cheapest] = 1 << DEFAULT_BITS
        pmf = Pmf.of(problem.group, weights)
        return _finish(problem, pmf, "closed-form", loss.cost(cheapest))
    if loss.is_error_rate:
        return _error_rate_design(problem, loss.cost(1))
    if problem.guarantee.definition is not Definition.PURE:
        return None
    steps = staircase(problem.sensitivity, loss, problem.guarantee.epsilon)
    if steps is None:
        return None
    pmf = pure_pmf(problem.group, steps.levels, problem.exact_ratio, _bits_for(problem))
    return _finish(problem, pmf, "closed-form", steps.lower_bound)


def _error_rate_design(problem: Problem, cost: Fraction) -> Design[Modular] | None:
    epsilon, delta = problem.guarantee.epsilon, problem.guarantee.delta
    definition = problem.guarantee.definition
    if definition is Definition.PROBABILISTIC:
        if not delta_buys_nothing(problem.steps, epsilon, delta):
            return None
        delta = Fraction(0)
    bits = _bits_for(problem)
    # With δ = 0 the mixture is the pure closed form.
    pmf = mixture_pmf(problem.group, problem.steps, problem.exact_ratio, delta, bits)
    bound = cost * (1 - highest_mode(problem.steps, epsilon, delta))
    return _finish(problem, pmf, "closed-form", max(Fraction(0), bound))


def _by_solver(problem: Problem, work: Work, gap: Fraction) -> Design[Modular]:
    if problem.guarantee.definition is not Definition.PROBABILISTIC:
        return _by_linear(problem, work)
    if not problem.loss.is_error_rate or problem.constraints or not levels_available():
        return _by_window(problem, work, gap)
    levels = _by_levels(problem, work, gap)
    if levels.is_within(gap) or work.is_over:
        return levels
    # Integer levels cannot distinguish masses that are as small as their unit.
    return _best_of(levels, _by_window(problem, work, gap))


def _best_of(first: Design[Modular], second: Design[Modular]) -> Design[Modular]:
    """The cheaper of two designs, with the higher of the bounds that its cost does not refute."""
    better = second if second.objective < first.objective else first
    # Neither bound need be proved, so one of them can be above a feasible cost.
    standing = [entry for entry in (first, second) if entry.lower_bound <= better.objective]
    best = max(standing, key=lambda entry: entry.lower_bound)
    bound, proved = best.lower_bound, best.bound_proved
    return replace(better, lower_bound=bound, bound_proved=proved, notes=best.notes)


def _by_linear(problem: Problem, work: Work) -> Design[Modular]:
    """The linear program in a window that grows until cost and bound meet."""
    soft = problem.guarantee.definition is Definition.APPROXIMATE
    bits = _bits_for(problem)
    bound, solver = Fraction(0), "none"
    best, late = _if_satisfied(problem, _safe_pmf(problem, bits)), False
    # Invariant: best is feasible on the whole group, and no feasible pmf costs less than bound.
    for window in _windows(problem):
        budget = _budget(problem, window, bits) if soft else Fraction(0)
        solution = solve_linear(window, budget, work)
        if solution is None and problem.constraints:
            # Constraints can move the mass to where the closed form has none.
            unscaled = Window(replace(problem, scaled=False), window.radius)
            solution = solve_linear(unscaled, budget, work)
        if solution is not None:
            solver = solution.solver
            bound = max(bound, proved_bound(problem, solution))
            best = _cheaper(problem, best, _pmf_of(problem, window, solution, bits))
            if best is not None and _is_sharp(problem, problem.loss.of(best), bound):
                break
        late = work.is_over
        if late:
            break
    else:
        # The solver may not see a δ so small; then the pure optimum may be cheaper.
        if soft and problem.guarantee.epsilon:
            best = _cheaper(problem, best, _pure_optimum(problem, work))
    if best is None:
        raise DesignError(_no_pmf(problem))
    # The bound is of pmfs that satisfy the constraints exactly; ours does up to the rounding.
    bound = min(bound, problem.loss.of(best)) if problem.constraints else bound
    result = _finish(problem, best, "linear-program", bound, solver=solver)
    return replace(result, notes=(*result.notes, WORK_LIMIT)) if late else result


def _no_pmf(problem: Problem) -> str:
    return f"no pmf could be proved to satisfy the {problem.guarantee} and the constraints"


def _cheaper(problem: Problem, first: Pmf | None, second: Pmf | None) -> Pmf | None:
    """The pmf with the smaller expected cost; the first of two equal ones."""
    if first is None or second is None:
        return second if first is None else first
    return second if problem.loss.of(second) < problem.loss.of(first) else first


def _pure_optimum(problem: Problem, work: Work) -> Pmf | None:
    """The best pmf with δ = 0; None where the constraints leave none."""
    pure = Guarantee(Definition.PURE, problem.guarantee.epsilon, Fraction(0))
    try:
        return _by_linear(replace(problem, guarantee=pure), work).mechanism.pmf
    except DesignError:
        return None


def _windows(problem: Problem) -> Iterator[Window]:
    """Windows of growing radius; the last is the whole group."""
    if problem.is_plain:
        window = Window(problem, _first_radius(problem))
        while window.near.size * 2 < problem.size:
            yield window
            window = Window(problem, window.radius + window.radius // 2 + 1)
    yield Window.all_of(problem)


def _first_radius(problem: Problem) -> int:
    """The radius of the first window; a guess, for it grows until bound and cost meet."""
    # Beyond it, e^{-ε·radius}·size·(the largest cost) is 10⁻¹² of the expected cost. Approximate
    # masses can be cut off earlier, where they are a hundredth of δ.
    loss = problem.loss_of_closed_form()
    far = 1e12 * problem.size * float(problem.loss.largest) / loss if loss > 0 else math.inf
    if problem.guarantee.definition is Definition.APPROXIMATE:
        far = min(far, 100 / problem.delta)
    if far == math.inf or problem.guarantee.epsilon == 0:
        return int(problem.steps.max())
    return math.ceil(math.log(max(far, 1.0)) / float(problem.guarantee.epsilon)) + 2


def _is_sharp(problem: Problem, loss: Fraction, bound: Fraction) -> bool:
    """Whether the bound is within 10⁻¹⁰ of the expected cost, or within 10⁻¹⁸ of a single cost."""
    return bool(loss - bound <= loss / 10**10 + problem.loss.largest / 10**18)


def _budget(problem: Problem, window: Window, bits: int) -> Fraction:
    """The δ that remains when every element of the window is rounded (:func:`round_down`)."""
    delta = problem.guarantee.delta
    return max(delta - _rounding(problem, window.near.size) / (1 << bits), delta / 2)


def _rounding(problem: Problem, elements: int) -> Fraction:
    """How many units of δ rounding that many elements can cost."""
    # At most (1 + E) units an element (1.4), and two to spare.
    return elements * (3 + problem.exact_ratio)


def _pmf_of(problem: Problem, window: Window, solution: LinearSolution, bits: int) -> Pmf | None:
    """The exact pmf near a solution, or None where it violates the guarantee or a constraint."""
    if problem.guarantee.definition is not Definition.APPROXIMATE:
        return _raised(problem, solution.masses, bits)
    try:
        pmf = round_down(solution.masses, problem.sensitivity, bits)
    except ValueError:
        return None
    return _if_satisfied(problem, _mixed(problem, pmf) if window.whole else pmf)


def _raised(
    problem: Problem, masses: Precise, bits: int, pattern: Pattern | None = None
) -> Pmf | None:
    """The exact pmf just above ``masses`` that gives up the constraints of ``pattern``."""
    ratio = problem.exact_ratio
    try:
        pmf = raise_to_feasible(masses, problem.sensitivity, ratio, bits, pattern)
    except ValueError:
        return None
    return _if_satisfied(problem, pmf)


def _if_satisfied(problem: Problem, pmf: Pmf) -> Pmf | None:
    """The pmf, or None where it violates the guarantee or a constraint."""
    holds = keeps_all(pmf, problem.sensitivity, problem.guarantee, problem.constraints)
    return pmf if holds else None


def _mixed(problem: Problem, pmf: Pmf) -> Pmf:
    """The pmf, mixed with as little of the safe pmf as the exact check needs (1.4)."""
    safe = _safe_pmf(problem, pmf.bits)
    for share in (Fraction(0), *(Fraction(1, 10**k) for k in range(12, 0, -1))):
        mixture = mix(pmf, safe, 1 - share)
        if keeps(mixture, problem.sensitivity, problem.guarantee, problem.exact_ratio):
            return mixture
    return safe


def _bits_for(problem: Problem) -> int:
    """Enough bits that rounding every element costs about 10⁻¹² of the expected cost and of δ."""
    loss = Fraction(problem.loss_of_closed_form())
    needed = problem.size * problem.loss.largest * 10**12 / loss if loss else Fraction(1)
    delta = problem.guarantee.delta
    if delta:
        needed = max(needed, _rounding(problem, problem.size) * 10**12 / delta)
    bits = math.ceil(needed).bit_length()
    return DEFAULT_BITS if bits <= DEFAULT_BITS else min(-(-bits // 32) * 32, MOST_BITS)


def _by_levels(problem: Problem, work: Work, gap: Fraction) -> Design[Modular]:
    """Levels by CP-SAT, proved or continued by the search of profiles where that applies."""
    brief = Work(min(work.left, WORK * _BRIEF))
    solution = solve_levels(problem, brief, gap)
    work.spend(brief.done)
    # Beside a finished search a proof must stay short; else it is worth a quarter of what is left.
    share = Work(min(work.left, WORK * _BRIEF) if solution.finished else work.left / 4)
    proof = None if share.is_over else search_profiles(problem, solution.pmf, share, gap)
    work.spend(share.done)
    if proof is not None and proof.finished:
        return _with_mode(problem, proof.pmf, proof.highest_mode, proved=True)
    if not solution.finished and not work.is_over:
        solution = solve_levels(problem, work, gap)
    result = _with_mode(problem, solution.pmf, solution.highest_mode, proved=False)
    if not solution.finished:
        result = replace(result, notes=(*result.notes, WORK_LIMIT))
        if proof is not None:
            partial = _with_mode(problem, proof.pmf, proof.highest_mode, proved=True)
            result = _best_of(result, replace(partial, notes=(WORK_LIMIT,)))
    return result


def _with_mode(problem: Problem, pmf: Pmf, highest: Fraction, *, proved: bool) -> Design[Modular]:
    """The design of an error rate whose f(0) is at most ``highest`` for every pmf."""
    bound = max(Fraction(0), problem.loss.largest * (1 - highest))
    result = _finish(problem, pmf, "levels", bound, proved=proved, solver="CP-SAT")
    return result if proved else replace(result, notes=(SOLVERS_BOUND,))


def _by_window(problem: Problem, work: Work, gap: Fraction) -> Design[Modular]:
    pmf, bound, solver, finished = None, Fraction(0), "HiGHS", False
    best = solve_integer(problem, work, float(gap))
    ended = work.is_over
    if best is not None:
        pmf = _raised(problem, precise(best.masses), DEFAULT_BITS, best.pattern)
        bound, solver, finished = Fraction(max(0.0, best.bound)), best.solver, best.finished
    if pmf is None or problem.size <= _SMALL:
        pmf = _cheaper(problem, _if_satisfied(problem, _safe_pmf(problem)), pmf)
    if pmf is None:
        raise DesignError(_no_pmf(problem))
    result = _finish(problem, pmf, "integer-program", bound, proved=False, solver=solver)
    notes = [SOLVERS_BOUND]
    if not result.is_within(gap):
        # Every such pmf satisfies the approximate guarantee too, and of those a bound is proved.
        approximate = replace(problem.guarantee, definition=Definition.APPROXIMATE)
        # The search may have left nothing; a linear program needs little.
        share = Work(work.most / 4)
        relaxed = _by_linear(replace(problem, guarantee=approximate), share).lower_bound
        if relaxed >= result.lower_bound:
            result, notes = replace(result, lower_bound=relaxed, bound_proved=True), []
    if not finished:
        notes.append(WORK_LIMIT if ended else TOLERANCE)
    return replace(result, notes=tuple(notes))
