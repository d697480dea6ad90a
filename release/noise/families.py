"""The families of mechanisms: which questions each can answer, and its mechanism for one.

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
from release.exact.channel import MOST_ROWS
from release.exact.domain import JointDomain
from release.exact.modular import Modular
from release.noise.design import GAP, Asked, Design
from release.noise.published.fitted import fitted, is_closed_form, is_quick
from release.noise.solve import design
from release.noise.solvers.answer_laws import design_channel
from release.noise.solvers.answer_problem import ChannelDesign, ChannelProblem
from release.spec.mechanisms import MECHANISMS

_MOST_COMPARED = 256
"""Baselines whose parameter has to be searched for are compared up to this many answers."""

AnyDesign: TypeAlias = Design[Any]

Solve: TypeAlias = Callable[..., Design[Modular]]
"""As :func:`release.noise.solve.design`, or a cache's."""

SolveChannel: TypeAlias = Callable[[ChannelProblem], ChannelDesign]
"""As :func:`release.noise.solvers.answer_laws.design_channel`, or a cache's."""


@dataclass(frozen=True)
class Solvers:
    """Who solves the programs, and how near to the best a pmf has to be."""

    law: Solve = design
    channel: SolveChannel = design_channel
    gap: Fraction = GAP


class Family(Protocol):
    """How one family of mechanisms is designed. ``name`` is the name in the spec."""

    def fits(self, name: str, asked: Asked) -> bool:
        """Whether it is worth comparing; public rules of the registry have been checked."""
        ...

    def bounds(self, asked: Asked) -> bool:
        """Whether its lower bound holds for everything that ``best`` may take."""
        ...

    def design(self, name: str, asked: Asked, solvers: Solvers) -> AnyDesign:
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

    def fits(self, name: str, asked: Asked) -> bool:
        return True

    def bounds(self, asked: Asked) -> bool:
        # Where answers have an order, best takes no modular noise, and channels may lose less.
        return not asked.wraps

    def design(self, name: str, asked: Asked, solvers: Solvers) -> AnyDesign:
        return solvers.law(asked.sensitivity, asked.guarantee, asked.loss, gap=solvers.gap)


class _Channel:
    """A pmf for each true answer, for answers in order."""

    def fits(self, name: str, asked: Asked) -> bool:
        return asked.is_line

    def bounds(self, asked: Asked) -> bool:
        return asked.is_line

    def design(self, name: str, asked: Asked, solvers: Solvers) -> AnyDesign:
        if not asked.is_line:
            raise DesignError(
                f"a channel needs at most {MOST_ROWS} answers in order, and a loss of answers"
            )
        solution = solvers.channel(asked.problem)
        notes, bound = solution.notes, solution.lower_bound
        if solution.problem.guarantee != asked.guarantee:
            notes = (*notes, "made for the pure guarantee, which implies this one")
            # A mechanism with the weaker guarantee may lose less than any with the pure one.
            weaker = solvers.channel(asked.relaxed_problem)
            bound = min(solution.objective, weaker.lower_bound)
        return replace(
            _designed(asked, solution.channel, solution.objective, name),
            method=solution.method,
            lower_bound=bound,
            solver=solution.solver,
            notes=notes,
        )


class _Baselines:
    """Mechanisms of the literature, with as little noise as satisfies the guarantee."""

    def fits(self, name: str, asked: Asked) -> bool:
        if isinstance(asked.domain, JointDomain):
            return False
        if is_closed_form(name):
            return True
        return asked.domain.size <= _MOST_COMPARED and is_quick(name, asked.promise)

    def bounds(self, asked: Asked) -> bool:
        return False

    def design(self, name: str, asked: Asked, solvers: Solvers) -> AnyDesign:
        if MECHANISMS[name].needs_order and not asked.is_line:
            raise DesignError(
                f"{name} needs at most {MOST_ROWS} answers in order, and the loss error_rate, "
                "absolute or squared"
            )
        mechanism = fitted(name, asked.promise)
        objective = mechanism.expected_loss(asked.loss, asked.domain)
        return replace(
            _designed(asked, mechanism, objective, name),
            method=f"baseline {name}",
            is_named=True,
            notes=(f"pinned to the baseline {name}; nothing is proved of others",),
        )


def _designed(asked: Asked, mechanism: Any, objective: Fraction, name: str) -> AnyDesign:
    return Design(
        mechanism=mechanism,
        sensitivity=asked.sensitivity,
        guarantee=asked.guarantee,
        loss=asked.loss,
        method="",
        objective=objective,
        name=name,
    )


MODULAR, CHANNEL, BASELINES = _Modular(), _Channel(), _Baselines()
