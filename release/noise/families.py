"""The families of mechanisms: which questions each can answer, and how each is designed.

:data:`release.spec.mechanisms.MECHANISMS` names where each family lies; the objects at the end of
this module are those places.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, cast

from release.errors import DesignError
from release.exact.channel import MOST_PROBABILISTIC, MOST_ROWS
from release.exact.domain import JointDomain
from release.exact.losses import WorstCaseLoss
from release.exact.mechanism import BoundOf
from release.exact.modular import Modular
from release.exact.privacy import MAX_WORK, Definition, Guarantee
from release.noise.constraints import constraints_of
from release.noise.design import GAP, Asked, Design
from release.noise.published.fitted import fitted, is_closed_form, is_quick
from release.noise.solve import design
from release.noise.solvers.answers.integer import best_channel
from release.noise.solvers.answers.laws import is_small
from release.noise.solvers.answers.problem import ChannelDesign, ChannelProblem
from release.noise.solvers.on_integers import design_integer, in_proportion
from release.records.notes import FROM_PURE, pinned
from release.spec.mechanisms import MECHANISMS

_MOST_COMPARED = 256
"""Baselines whose parameter has to be searched for are compared up to this many answers."""

AnyDesign: TypeAlias = Design[Any]

Solve: TypeAlias = Callable[..., Design[Modular]]
"""As :func:`release.noise.solve.design`, or a cache's."""

SolveChannel: TypeAlias = Callable[[ChannelProblem], ChannelDesign]
"""As :func:`release.noise.solvers.answers.integer.best_channel`, or a cache's."""


@dataclass(frozen=True)
class Solvers:
    """The solvers of programs, and how near to the optimum a design has to be."""

    law: Solve = design
    channel: SolveChannel = best_channel
    gap: Fraction = GAP


class Family(Protocol):
    """How one family of mechanisms is designed. ``name`` is the name in the spec."""

    def fits(self, name: str, question: Asked) -> bool:
        """Whether it is worth comparing; public rules of the registry have been checked."""
        ...

    def bounds(self, question: Asked) -> bool:
        """Whether its lower bound holds for everything that ``best`` may take."""
        ...

    def design(self, name: str, question: Asked, solvers: Solvers) -> AnyDesign:
        """Its mechanism, with a proved guarantee.

        Raises:
            DesignError: it cannot satisfy the guarantee, or has no answer to this question.
        """
        ...


def family_at(name: str) -> Family:
    """The family of the mechanism that a spec calls ``name``, loaded on use."""
    module, _, attribute = MECHANISMS[name].family.partition(":")
    return cast(Family, getattr(importlib.import_module(module), attribute))


class _Modular:
    """Modular noise, by the closed forms and programs of :mod:`release.noise.solve`."""

    def fits(self, name: str, question: Asked) -> bool:
        return not question.wraps or question.domain.size <= MOST_ROWS

    def bounds(self, question: Asked) -> bool:
        # Where answers have an order, channels may lose less than the bound of modular noise.
        return not question.wraps

    def design(self, name: str, question: Asked, solvers: Solvers) -> AnyDesign:
        _check_work(question)
        constraints = constraints_of(question.demands, question.domain)
        design = solvers.law(
            question.sensitivity, question.guarantee, question.loss, constraints, gap=solvers.gap
        )
        # On answers in no order no mechanism beats the best modular noise (module select), but for
        # a probabilistic δ and for a prior, which has no symmetry.
        if question.wraps or question.is_probabilistic or question.loss.prior is not None:
            return replace(design, bound_of=BoundOf.MODULAR)
        return design


class _Integer:
    """Noise on the integers, for answers in order."""

    def fits(self, name: str, question: Asked) -> bool:
        return question.is_line

    def bounds(self, question: Asked) -> bool:
        return False

    def design(self, name: str, question: Asked, solvers: Solvers) -> AnyDesign:
        if not question.is_line:
            raise DesignError(
                "noise on the integers needs answers in order, and the loss error_rate, absolute "
                "or squared"
            )
        if not question.is_probabilistic:
            return in_proportion(question) or design_integer(question)
        # Clamping does not preserve a probabilistic δ; a pure guarantee implies it.
        pure = Guarantee(Definition.PURE, question.guarantee.epsilon, Fraction(0))
        made = design_integer(replace(question, guarantee=pure))
        return replace(
            made,
            guarantee=question.guarantee,
            lower_bound=Fraction(0),
            multipliers=None,
            notes=(*made.notes, FROM_PURE),
        )


class _Channel:
    """A pmf for each true answer, for answers in order."""

    def fits(self, name: str, question: Asked) -> bool:
        if not question.has_rows:
            return False
        if question.is_probabilistic:
            return question.domain.size <= MOST_PROBABILISTIC
        # For pure guarantees and neighbors one apart noise on the integers with tables at the ends
        # is as good as any channel (docs/design/mathematics.md 2.13).
        steps = tuple(question.sensitivity.distances or ())
        is_pure = question.guarantee.delta == 0 and steps == (1,)
        is_pure = is_pure and not isinstance(question.loss, WorstCaseLoss)
        return not is_pure and is_small(question.problem)

    def bounds(self, question: Asked) -> bool:
        return question.has_rows

    def design(self, name: str, question: Asked, solvers: Solvers) -> AnyDesign:
        if not question.has_rows:
            raise DesignError(
                f"a channel needs at most {MOST_ROWS} answers in order, and a loss of answers"
            )
        problem = question.problem
        solution = solvers.channel(problem)
        notes = solution.notes
        if solution.problem.guarantee != question.guarantee:
            notes = (*notes, FROM_PURE)
        return replace(
            _designed(question, solution.channel, solution.objective, name),
            method=solution.method,
            lower_bound=solution.lower_bound,
            solver=solution.solver,
            notes=notes,
        )


class _Baselines:
    """Mechanisms of the literature, with as little noise as satisfies the guarantee."""

    def fits(self, name: str, question: Asked) -> bool:
        if isinstance(question.domain, JointDomain):
            return False
        if question.wraps and MECHANISMS[name].can_wrap and question.domain.size > MOST_ROWS:
            return False
        # A search over wide channels would take minutes, for a mechanism that seldom wins.
        if is_closed_form(name):
            return True
        if MECHANISMS[name].law and not question.is_line:
            return False
        return question.domain.size <= _MOST_COMPARED and is_quick(name, question.requirement)

    def bounds(self, question: Asked) -> bool:
        return False

    def design(self, name: str, question: Asked, solvers: Solvers) -> AnyDesign:
        entry = MECHANISMS[name]
        fits = question.has_rows if entry.needs_rows else question.is_line
        if entry.needs_order and not fits:
            most = f"at most {MOST_ROWS} " if entry.needs_rows else ""
            raise DesignError(
                f"{name} needs {most}answers in order, and the loss error_rate, absolute or squared"
            )
        if entry.can_wrap:
            _check_work(question)
        mechanism = fitted(name, question.requirement)
        objective = mechanism.objective(question.loss, question.domain)
        return replace(
            _designed(question, mechanism, objective, name),
            method=f"baseline {name}",
            is_named=True,
            notes=(pinned(name),),
        )


def _check_work(question: Asked) -> None:
    """Refuse modular noise that no verifier could check, before it is made."""
    if question.domain.size * len(question.sensitivity.shifts) > MAX_WORK:
        # How many differences were seen in a table is confidential: no number.
        raise DesignError(
            f"answers and differences make more pairs than a verifier checks ({MAX_WORK}); "
            "declare a smaller domain"
        )


def _designed(question: Asked, mechanism: Any, objective: Fraction, name: str) -> AnyDesign:
    return Design(
        mechanism=mechanism,
        sensitivity=question.sensitivity,
        guarantee=question.guarantee,
        loss=question.loss,
        method="",
        objective=objective,
        name=name,
    )


MODULAR, INTEGER = _Modular(), _Integer()
CHANNEL, BASELINES = _Channel(), _Baselines()
