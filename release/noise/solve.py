"""The front door: the law that loses least under a promised guarantee, proved.

A ladder; the first rung that applies (docs/design/mathematics.md):

1. the closed forms: the error rate, and growing losses with all differences up to a width;
2. the linear program, for pure and approximate guarantees, any loss and further demands;
3. for probabilistic guarantees with δ > 0, levels where the loss is the error rate and CP-SAT is
   there, else the mixed-integer program in a window.

Whatever a rung returns is a suggestion. It becomes a law of integers, the guarantee is proved on
those integers, and a law that cannot be proved does not leave this module.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from release.errors import DesignError
from release.exact.constraints import Constraint, keeps_all
from release.exact.losses import Loss, WorstCaseLoss
from release.exact.modular import Modular
from release.exact.numbers import exp_below_any_verifier
from release.exact.pmf import DEFAULT_BITS, Pmf
from release.exact.privacy import KEPT_FREE, Definition, Guarantee, keeps
from release.exact.sensitivity import Sensitivity
from release.noise.design import GAP, Design
from release.noise.solvers.closed_form import (
    delta_buys_nothing,
    highest_mode,
    mixture_law,
    pure_law,
    staircase,
)
from release.noise.solvers.integer import find_law
from release.noise.solvers.levels import available as levels_available
from release.noise.solvers.levels import solve_levels
from release.noise.solvers.linear import LinearLaw, proved_bound, solve_linear
from release.noise.solvers.problem import Problem
from release.noise.solvers.refine import Precise, precise
from release.noise.solvers.repair import Pattern, mix, raise_to_feasible, round_down
from release.noise.solvers.window import Window

TIME_LIMIT = 60.0
"""Seconds a mixed-integer program may take before its best law is used, with its honest gap."""

_SOLVERS_BOUND = "the lower bound is the solver's, not proved exactly"

_TIME_LIMIT = "the time limit ended the search; the gap is what is left open"

_TOLERANCE = "the search ended within the solver's tolerance; the gap is what is left open"

_SMALL = 20_000
"""Up to this many answers the safe law is made beside another, to see which loses less."""


def design(
    sensitivity: Sensitivity,
    guarantee: Guarantee,
    loss: Loss | WorstCaseLoss,
    constraints: Sequence[Constraint] = (),
    *,
    time_limit: float = TIME_LIMIT,
    gap: Fraction = GAP,
) -> Design[Modular]:
    """The law of least expected ``loss`` that keeps ``guarantee`` under ``differences``.

    ``constraints`` are further linear demands on the law (:mod:`release.exact.constraints`).
    ``time_limit`` (seconds) bounds a program; a mixed-integer one ends earlier once it is proved to
    be within the relative ``gap``; when the time strikes, the design says so in its notes and its
    gap, and whether that is good enough is for the caller to decide
    (:meth:`Design.is_within`).

    Raises:
        DesignError: no law could be proved, or none keeps the constraints.
        ValueError: the loss or a constraint does not have one number for each element.
    """
    size = sensitivity.group.size
    if loss.numerators.shape[-1] != size:
        raise ValueError("the loss needs one cost for each element of the group")
    if any(constraint.coefficients.shape != (size,) for constraint in constraints):
        raise ValueError("a constraint needs one coefficient for each element of the group")
    problem = Problem.of(sensitivity, _in_effect(guarantee), loss, tuple(constraints))
    found = _closed_form(problem) or _by_solver(problem, time_limit, gap)
    found = replace(found, guarantee=guarantee)
    if not keeps_all(found.mechanism.pmf, sensitivity, guarantee, constraints):
        raise DesignError(f"the law found does not keep the {guarantee}")
    return found


def _in_effect(guarantee: Guarantee) -> Guarantee:
    """With δ = 0, or less than a float can say, all three definitions are the pure one."""
    if guarantee.epsilon == 0:
        # A verifier may take a ratio up to 10⁻³⁰ below 1; the δ which that adds is kept free.
        return replace(guarantee, delta=guarantee.delta - KEPT_FREE)
    if float(guarantee.delta) == 0:
        return Guarantee(Definition.PURE, guarantee.epsilon, Fraction(0))
    return guarantee


def _finish(
    problem: Problem,
    law: Pmf,
    method: str,
    bound: Fraction,
    *,
    proved: bool = True,
    solver: str = "none",
) -> Design[Modular]:
    objective = problem.loss.of(law)
    return Design(
        mechanism=Modular(law),
        sensitivity=problem.sensitivity,
        guarantee=problem.guarantee,
        loss=problem.loss,
        method=method,
        objective=objective,
        lower_bound=min(bound, objective) if not proved else bound,
        bound_proved=proved,
        solver=solver,
        name=Modular.family,
    )


def _safe_law(problem: Problem, bits: int = DEFAULT_BITS) -> Pmf:
    """The closed form for pure guarantees: feasible under every definition, whatever the loss."""
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    return pure_law(problem.group, problem.steps, ratio, bits)


def _closed_form(problem: Problem) -> Design[Modular] | None:
    loss = problem.loss
    if problem.constraints or isinstance(loss, WorstCaseLoss):
        return None
    if not problem.sensitivity.shifts:
        # Nothing moves an answer: the cheapest noise value, for certain.
        cheapest = int(loss.numerators.argmin())
        weights = [0] * problem.size
        weights[cheapest] = 1 << DEFAULT_BITS
        law = Pmf.of(problem.group, weights)
        return _finish(problem, law, "closed-form", loss.cost(cheapest))
    if loss.is_error_rate:
        return _error_rate_law(problem, loss.cost(1))
    if problem.guarantee.definition is not Definition.PURE:
        return None
    steps = staircase(problem.sensitivity, loss, problem.guarantee.epsilon)
    if steps is None:
        return None
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    law = pure_law(problem.group, steps.levels, ratio, _bits_for(problem))
    return _finish(problem, law, "closed-form", steps.lower_bound)


def _error_rate_law(problem: Problem, cost: Fraction) -> Design[Modular] | None:
    epsilon, delta = problem.guarantee.epsilon, problem.guarantee.delta
    definition = problem.guarantee.definition
    if definition is Definition.PROBABILISTIC:
        if not delta_buys_nothing(problem.steps, epsilon, delta):
            return None
        delta = Fraction(0)
    bits = _bits_for(problem)
    if delta == 0:
        law = _safe_law(problem, bits)
    else:
        ratio = exp_below_any_verifier(epsilon)
        law = mixture_law(problem.group, problem.steps, ratio, delta, bits)
    bound = cost * (1 - highest_mode(problem.steps, epsilon, delta))
    return _finish(problem, law, "closed-form", max(Fraction(0), bound))


def _by_solver(problem: Problem, time_limit: float, gap: Fraction) -> Design[Modular]:
    definition = problem.guarantee.definition
    if definition is Definition.PROBABILISTIC:
        if problem.loss.is_error_rate and not problem.constraints and levels_available():
            start = time.monotonic()
            found = _by_levels(problem, time_limit, gap)
            left = time_limit - (time.monotonic() - start)
            if found.is_within(gap) or left <= 0:
                return found
            # Integer levels cannot tell masses apart that are as small as their unit.
            return _best_of(found, _by_window(problem, left, gap))
        return _by_window(problem, time_limit, gap)
    return _by_linear(problem, time_limit)


def _best_of(one: Design[Modular], other: Design[Modular]) -> Design[Modular]:
    """The better law of two ways, with the higher bound that it does not refute."""
    better = min(one, other, key=lambda made: made.objective)
    standing = [made for made in (one, other) if made.lower_bound <= better.objective]
    bound = max(standing, key=lambda made: made.lower_bound)
    return replace(
        better,
        lower_bound=bound.lower_bound,
        bound_proved=bound.bound_proved,
        notes=bound.notes,
    )


def _by_linear(problem: Problem, time_limit: float) -> Design[Modular]:
    """The linear program in a window that grows until law and bound meet."""
    deadline, late = time.monotonic() + time_limit, False
    soft = problem.guarantee.definition is Definition.APPROXIMATE
    bits = _bits_for(problem)
    bound, solver = Fraction(0), "none"
    best = _if_kept(problem, _safe_law(problem, bits))
    for window in _windows(problem):
        budget = _budget(problem, window, bits) if soft else Fraction(0)
        found = solve_linear(window, budget, deadline)
        if found is None and problem.constraints:
            # Demands can move the mass to where the closed form has none.
            plain = Window(replace(problem, scaled=False), window.radius)
            found = solve_linear(plain, budget, deadline)
        late = time.monotonic() > deadline
        if found is None and late:
            break
        if found is None:
            continue
        solver = found.solver
        bound = max(bound, proved_bound(problem, found))
        made = _law_of(problem, window, found, bits)
        if made is not None and (best is None or problem.loss.of(made) < problem.loss.of(best)):
            best = made
        if late or (best is not None and _is_sharp(problem, problem.loss.of(best), bound)):
            break
    else:
        # A δ that the solver cannot see: the pure law may be the better one.
        left = max(deadline - time.monotonic(), 0)
        pure = _pure_law(problem, left) if soft and problem.guarantee.epsilon else None
        laws = [made for made in (best, pure) if made is not None]
        best = min(laws, key=problem.loss.of, default=None)
    if best is None:
        raise DesignError(f"no law was found for the {problem.guarantee} and its constraints")
    # The bound is of laws that keep the constraints to the letter; ours does up to the rounding.
    bound = min(bound, problem.loss.of(best)) if problem.constraints else bound
    result = _finish(problem, best, "linear-program", bound, solver=solver)
    return replace(result, notes=(*result.notes, _TIME_LIMIT)) if late else result


def _pure_law(problem: Problem, time_limit: float) -> Pmf | None:
    """The best law with δ = 0; None where the constraints leave none."""
    pure = Guarantee(Definition.PURE, problem.guarantee.epsilon, Fraction(0))
    try:
        return _by_linear(replace(problem, guarantee=pure), time_limit).mechanism.pmf
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
    """Beyond it pure laws have next to no loss, and approximate ones next to no mass."""
    loss = problem.loss_of_closed_form()
    far = 1e12 * problem.size * float(problem.loss.largest) / loss if loss > 0 else math.inf
    if problem.guarantee.definition is Definition.APPROXIMATE:
        far = min(far, 100 / problem.delta)
    if far == math.inf or problem.guarantee.epsilon == 0:
        return int(problem.steps.max())
    return math.ceil(math.log(max(far, 1.0)) / float(problem.guarantee.epsilon)) + 2


def _is_sharp(problem: Problem, loss: Fraction, bound: Fraction) -> bool:
    """Whether the bound is within 10⁻¹⁰ of the loss, or of nothing at the size of the costs."""
    return bool(loss - bound <= loss / 10**10 + problem.loss.largest / 10**18)


def _budget(problem: Problem, window: Window, bits: int) -> Fraction:
    """What of δ is left when every element of the window is rounded (:func:`round_down`)."""
    delta = problem.guarantee.delta
    return max(delta - _rounding(problem, window.near.size) / (1 << bits), delta / 2)


def _rounding(problem: Problem, elements: int) -> Fraction:
    """How many units of δ rounding that many elements can cost."""
    return elements * (3 + exp_below_any_verifier(problem.guarantee.epsilon))


def _law_of(problem: Problem, window: Window, found: LinearLaw, bits: int) -> Pmf | None:
    """The exact law near a solution, or None where there is none that keeps everything."""
    if problem.guarantee.definition is not Definition.APPROXIMATE:
        return _raised(problem, found.masses, bits)
    try:
        law = round_down(found.masses, problem.sensitivity, bits)
    except ValueError:
        return None
    return _if_kept(problem, _mixed_until_kept(problem, law) if window.whole else law)


def _raised(
    problem: Problem, masses: Precise, bits: int, pattern: Pattern | None = None
) -> Pmf | None:
    """The exact law just above ``masses`` that gives up the constraints of ``pattern``."""
    ratio = exp_below_any_verifier(problem.guarantee.epsilon)
    try:
        law = raise_to_feasible(masses, problem.sensitivity, ratio, bits, pattern)
    except ValueError:
        return None
    return _if_kept(problem, law)


def _if_kept(problem: Problem, law: Pmf) -> Pmf | None:
    kept = keeps_all(law, problem.sensitivity, problem.guarantee, problem.constraints)
    return law if kept else None


def _mixed_until_kept(problem: Problem, law: Pmf) -> Pmf:
    """The law, mixed with as little of the safe law as the exact proof asks for."""
    ratio, safe = exp_below_any_verifier(problem.guarantee.epsilon), _safe_law(problem, law.bits)
    for give in (Fraction(0), *(Fraction(1, 10**k) for k in range(12, 0, -1))):
        mixed = mix(law, safe, 1 - give)
        if keeps(mixed, problem.sensitivity, problem.guarantee, ratio):
            return mixed
    return safe


def _bits_for(problem: Problem) -> int:
    """Enough bits that rounding every element costs next to nothing of the loss and of δ."""
    loss = Fraction(problem.loss_of_closed_form())
    needed = problem.size * problem.loss.largest * 10**12 / loss if loss else Fraction(1)
    delta = problem.guarantee.delta
    if delta:
        needed = max(needed, _rounding(problem, problem.size) * 10**12 / delta)
    bits = math.ceil(needed).bit_length()
    return DEFAULT_BITS if bits <= DEFAULT_BITS else -(-bits // 32) * 32


def _by_levels(problem: Problem, time_limit: float, gap: Fraction) -> Design[Modular]:
    found = solve_levels(problem, time_limit, gap)
    bound = max(Fraction(0), problem.loss.largest * (1 - found.highest_mode))
    result = _finish(problem, found.law, "levels", bound, proved=False, solver="CP-SAT")
    notes = (_SOLVERS_BOUND,) if found.finished else (_SOLVERS_BOUND, _TIME_LIMIT)
    return replace(result, notes=notes)


def _by_window(problem: Problem, time_limit: float, gap: Fraction) -> Design[Modular]:
    start = time.monotonic()
    found = find_law(problem, time_limit, float(gap))
    law = None
    if found is not None:
        law = _raised(problem, precise(found.masses), DEFAULT_BITS, found.pattern)
    if law is None or problem.size <= _SMALL:
        laws = [made for made in (_if_kept(problem, _safe_law(problem)), law) if made is not None]
        law = min(laws, key=problem.loss.of, default=None)
    if law is None:
        raise DesignError(f"no law was found for the {problem.guarantee} and its constraints")
    bound = Fraction(0) if found is None else Fraction(max(0.0, found.bound))
    solver = "HiGHS" if found is None else found.solver
    result = _finish(problem, law, "integer-program", bound, proved=False, solver=solver)
    notes = [_SOLVERS_BOUND]
    if not result.is_within(gap):
        # Every such law is an approximate one too, and of those the best is known.
        approximate = replace(problem.guarantee, definition=Definition.APPROXIMATE)
        relaxed = _by_linear(replace(problem, guarantee=approximate), time_limit).lower_bound
        if relaxed >= result.lower_bound:
            result, notes = replace(result, lower_bound=relaxed, bound_proved=True), []
    if found is None or not found.finished:
        ended = time.monotonic() - start >= time_limit
        notes.append(_TIME_LIMIT if ended else _TOLERANCE)
    return replace(result, notes=tuple(notes))
