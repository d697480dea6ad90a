"""The front door: the law that loses least under a promised guarantee, proved.

A ladder; the first rung that applies (DESIGN.md §3.6):

1. the closed forms, for the error rate;
2. the linear program, for pure and approximate guarantees and any loss;
3. for probabilistic guarantees with δ > 0, levels where the loss is the error rate and CP-SAT is
   there, else the mixed-integer program in a window.

Whatever a rung returns is a suggestion. It becomes a law of integers, the guarantee is proved on
those integers, and a law that cannot be proved does not leave this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from release.errors import DesignError
from release.exact import exp_below_any_verifier
from release.guarantee import Definition, Differences, Guarantee, keeps
from release.law import DEFAULT_BITS, Law
from release.losses import Loss
from release.mechanisms.closed_form import (
    delta_buys_nothing,
    highest_mode,
    mixture_law,
    pure_law,
)
from release.mechanisms.levels import available as levels_available
from release.mechanisms.levels import solve_levels
from release.mechanisms.linear import (
    Pattern,
    Problem,
    Suggestion,
    proved_bound,
    solve_linear,
)
from release.mechanisms.program import Floats
from release.mechanisms.repair import raise_to_feasible, round_mixture
from release.mechanisms.window import find_law

TIME_LIMIT = 60.0
"""Seconds a mixed-integer program may take before its best law is used, with its honest gap."""

_SOLVERS_BOUND = "the lower bound is the solver's, not proved exactly"

_TIME_LIMIT = "the time limit ended the search; the gap is what is left open"

GAP = Fraction(1, 10**6)
"""The relative gap at which a law counts as optimal, unless a caller asks for less."""

_SMALL = 20_000
"""Up to this many answers the safe law is made beside another, to see which loses less."""

# How much of δ is kept free for the solver's tolerance and for rounding, in the order of trial.
_TIGHTEN = (0.0, 1e-9, 1e-8, 1e-6, 1e-4)


@dataclass(frozen=True)
class Design:
    """A proved law with what is known about its optimality.

    ``lower_bound`` is a bound of the loss of every law with this guarantee; ``bound_proved`` tells
    whether it was proved exactly or is the solver's word. Losses are in the units of the loss.
    """

    law: Law
    differences: Differences
    guarantee: Guarantee
    loss: Loss
    method: str
    objective: Fraction
    lower_bound: Fraction
    bound_proved: bool
    solver: str
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> Fraction:
        """How much better any law could be at most."""
        return max(Fraction(0), self.objective - self.lower_bound)


def design(
    differences: Differences,
    guarantee: Guarantee,
    loss: Loss,
    time_limit: float = TIME_LIMIT,
    gap: Fraction = GAP,
) -> Design:
    """The law of least expected ``loss`` that keeps ``guarantee`` under ``differences``.

    ``time_limit`` (seconds) bounds a mixed-integer program, which ends earlier once it is proved to
    be within the relative ``gap``; when the time strikes, the design says so in its notes and its
    gap, and whether that is good enough is for the caller to decide.

    Raises:
        DesignError: no law could be proved.
        ValueError: the loss and the differences have different sizes.
    """
    if loss.numerators.shape != (differences.group.size,):
        raise ValueError("the loss needs one cost for each element of the group")
    problem = Problem.of(differences, _in_effect(guarantee), loss)
    found = _closed_form(problem) or _by_solver(problem, time_limit, gap)
    found = replace(found, guarantee=guarantee)
    # Proved with a ratio below every verifier's, so that the law passes with any of them.
    if not keeps(found.law, differences, guarantee, exp_below_any_verifier(guarantee.epsilon)):
        raise DesignError(f"the law found does not keep the {guarantee}")
    return found


def _in_effect(guarantee: Guarantee) -> Guarantee:
    """With δ = 0 all three definitions are the pure one."""
    if guarantee.delta == 0:
        return Guarantee(Definition.PURE, guarantee.epsilon, guarantee.delta)
    return guarantee


def _finish(
    problem: Problem,
    law: Law,
    method: str,
    bound: Fraction,
    *,
    proved: bool = True,
    solver: str = "none",
) -> Design:
    objective = problem.loss.of(law)
    return Design(
        law=law,
        differences=problem.differences,
        guarantee=problem.guarantee,
        loss=problem.loss,
        method=method,
        objective=objective,
        lower_bound=min(bound, objective) if not proved else bound,
        bound_proved=proved,
        solver=solver,
    )


def _safe_law(problem: Problem, bits: int = DEFAULT_BITS) -> Law:
    """The closed form for pure guarantees: feasible under every definition, whatever the loss."""
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    return pure_law(problem.differences.group, problem.steps, ratio, bits)


def _closed_form(problem: Problem) -> Design | None:
    if not problem.differences.shifts:
        # Nothing moves an answer: the cheapest noise value, for certain.
        cheapest = problem.loss.cost(int(problem.loss.numerators.argmin()))
        return _finish(problem, _safe_law(problem), "closed-form", cheapest)
    if not problem.loss.is_error_rate:
        return None
    epsilon, delta = problem.guarantee.epsilon, problem.guarantee.delta
    definition = problem.guarantee.definition
    if definition is Definition.PROBABILISTIC:
        if not delta_buys_nothing(problem.steps, epsilon, delta):
            return None
        delta = Fraction(0)
    if delta == 0:
        law = _safe_law(problem)
    else:
        ratio = exp_below_any_verifier(epsilon)
        law = mixture_law(problem.differences.group, problem.steps, ratio, delta)
    cost = problem.loss.cost(1)
    bound = cost * (1 - highest_mode(problem.steps, epsilon, delta))
    return _finish(problem, law, "closed-form", max(Fraction(0), bound))


def _by_solver(problem: Problem, time_limit: float, gap: Fraction) -> Design:
    definition = problem.guarantee.definition
    if definition is Definition.PROBABILISTIC:
        if problem.loss.is_error_rate and levels_available():
            return _by_levels(problem, time_limit, gap)
        return _by_window(problem, time_limit, gap)
    return _by_linear(problem)


def _by_linear(problem: Problem) -> Design:
    """The linear program, with masses relative to the closed form and, if need be, as they are.

    The first sees a long tail as well as the mode, the second a law whose mass is where the closed
    form has none. The better law and the better bound are kept; the safe law is always one.
    """
    soft = problem.guarantee.definition is Definition.APPROXIMATE
    law = _safe_law(problem, _bits_for(problem) if soft else DEFAULT_BITS)
    safe, loss = law, problem.loss.of(law)
    bound, claimed, solver = Fraction(0), Fraction(0), "none"
    for attempt in (problem, replace(problem, scaled=False)):
        for tighten in _TIGHTEN if soft else (0.0,):
            suggestion = solve_linear(attempt, tighten)
            if suggestion is None or not suggestion.finished:
                continue
            solver = suggestion.solver
            bound = max(bound, proved_bound(problem, suggestion.multipliers))
            claimed = claimed or Fraction(max(0.0, suggestion.bound))
            found = _law_of(problem, suggestion, safe, soft=soft)
            if problem.loss.of(found) < loss:
                law, loss = found, problem.loss.of(found)
            if _is_sharp(problem, loss, Fraction(suggestion.objective)):
                break
        if _is_sharp(problem, loss, bound):
            return _finish(problem, law, "linear-program", bound, solver=solver)
    if solver == "none":
        raise DesignError(f"the solver found no law for the {problem.guarantee}")
    if soft:
        # A δ too small for the solver to see: the pure law may be the better one.
        pure = Guarantee(Definition.PURE, problem.guarantee.epsilon, Fraction(0))
        other = _by_linear(replace(problem, guarantee=pure))
        if other.objective < loss:
            law = other.law
    bound = max(bound, claimed)
    result = _finish(problem, law, "linear-program", bound, proved=False, solver=solver)
    return replace(result, notes=(_SOLVERS_BOUND,))


def _by_levels(problem: Problem, time_limit: float, gap: Fraction) -> Design:
    found = solve_levels(problem, time_limit, gap)
    bound = problem.loss.cost(1) * (1 - found.highest_mode)
    result = _finish(problem, found.law, "levels", max(Fraction(0), bound), solver="CP-SAT")
    return result if found.finished else replace(result, notes=(_TIME_LIMIT,))


def _is_sharp(problem: Problem, loss: Fraction, bound: Fraction) -> bool:
    """Whether the bound is within 10⁻⁷ of the loss, or of nothing at the size of the costs."""
    largest = problem.loss.cost(int(problem.loss.numerators.argmax()))
    return loss - bound <= loss / 10**7 + largest / 10**12


def _law_of(problem: Problem, suggestion: Suggestion, safe: Law, *, soft: bool) -> Law:
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    if soft:
        return _mixed_until_kept(problem, suggestion, safe, ratio)
    try:
        return raise_to_feasible(suggestion.masses, problem.differences, ratio, DEFAULT_BITS, None)
    except ValueError:
        return safe


def _mixed_until_kept(problem: Problem, suggestion: Suggestion, safe: Law, ratio: Fraction) -> Law:
    """The rounded suggestion, mixed with as little of the safe law as the exact proof asks for."""
    guarantee = problem.guarantee
    for give in (Fraction(0), *(Fraction(1, 10**k) for k in range(9, 0, -1))):
        law = round_mixture(suggestion.masses, safe, Fraction(1) - give)
        if keeps(law, problem.differences, guarantee, ratio):
            return law
    return safe


def _bits_for(problem: Problem) -> int:
    """Enough bits that rounding every element costs less than a billionth of δ."""
    roundings = problem.size * (2 + int(problem.ratio))
    needed = (roundings * 10**9 / problem.guarantee.delta).__ceil__().bit_length()
    return DEFAULT_BITS if needed <= DEFAULT_BITS else -(-needed // 32) * 32


def _by_window(problem: Problem, time_limit: float, gap: Fraction) -> Design:
    found = find_law(problem, time_limit, float(gap))
    law = None if found is None else _law_of_pattern(problem, found.pattern, found.masses)
    if law is None or problem.size <= _SMALL:
        safe = _safe_law(problem)
        law = min((safe, law or safe), key=problem.loss.of)
    bound = Fraction(0) if found is None else Fraction(max(0.0, found.bound))
    solver = "HiGHS" if found is None else found.solver
    result = _finish(problem, law, "integer-program", bound, proved=False, solver=solver)
    notes = [_SOLVERS_BOUND]
    if found is None or not found.finished:
        notes.append(_TIME_LIMIT)
    return replace(result, notes=tuple(notes))


def _law_of_pattern(problem: Problem, pattern: Pattern, masses: Floats) -> Law | None:
    """The exact law near ``masses`` that gives up the constraints of ``pattern``."""
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    try:
        law = raise_to_feasible(masses, problem.differences, ratio, DEFAULT_BITS, pattern)
    except ValueError:
        return None
    return law if keeps(law, problem.differences, problem.guarantee, ratio) else None
