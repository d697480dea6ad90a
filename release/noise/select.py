"""Which mechanism answers a query: all families that fit it, compared on what is public.

``best`` takes the family that loses least under the spec's own loss and a uniform prior over the
answers, and its notes say what the others lose. Only public things enter: the declared domain, the
promise, the loss, and differences that follow from the declaration. Of differences seen in a table
nothing may show in the choice, for the name of the mechanism is public; there the domain, the loss
and the guarantee alone decide what ``best`` is.

On answers without an end to wrap round (circles, categories) no channel loses less than modular
noise: the mean of a channel's translates keeps what it keeps and loses as much, and is modular.

On answers in order, modular noise can publish the one end of the domain for the other. A mean over
all true answers hides that, so ``best`` never takes it there: the spec has to name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from release.errors import DesignError
from release.exact.channel import (
    COST_POWERS,
    MOST_ROWS,
    Channel,
    Pair,
    answer_costs,
    channel_fits,
    channel_unseen,
    has_order,
    line_pairs,
)
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName
from release.exact.pmf import Law
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.published.fitted import Promise, fitted, is_quick
from release.noise.solve import GAP, Design, design
from release.noise.solvers.answer_laws import design_channel
from release.noise.solvers.answer_problem import ChannelDesign, ChannelProblem
from release.spec.guarantees import MODULAR, MODULAR_WITH_DELTA, ON_LINE, ON_LINE_WITH_DELTA

BEST, MODULAR_NOISE, CHANNEL = "best", "modular", "channel"
OURS = (MODULAR_NOISE, CHANNEL)
"""The families of which one is as good as any other."""

WRAPS = (
    "only modular noise is left for these answers, which can publish the one end of an order for "
    "the other; write mechanism: modular to accept that"
)

_MOST_COMPARED = 256
"""Baselines that have to be searched for are compared up to this many answers."""

_LEAST_DELTA = Fraction(1, 10**11)
"""Below it an approximate promise is kept as a pure one by channels: a program would not see it."""


@dataclass(frozen=True)
class Asked:
    """What a mechanism is chosen for: the public side of a query, and its differences."""

    domain: AnswerDomain | JointDomain
    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss
    loss_name: LossName | None

    @property
    def is_line(self) -> bool:
        """Whether channels apply: answers in order, and a loss of answers rather than of noise."""
        return channel_fits(self.domain, self.loss_name) and bool(self.sensitivity.apart)

    @property
    def wraps(self) -> bool:
        """Whether modular noise can publish the one end of an order for the other."""
        return has_order(self.domain)

    @cached_property
    def problem(self) -> ChannelProblem:
        """What is asked of a channel, under the uniform prior."""
        size = self.domain.size
        power = COST_POWERS[self.loss_name or LossName.ERROR_RATE]
        share = (Fraction(1, size),) * size
        apart = self.sensitivity.apart or ()
        return ChannelProblem(apart, in_effect(self.guarantee), answer_costs(power, size), share)

    @property
    def promise(self) -> Promise:
        """What a baseline has to keep."""
        return Promise(self.domain.size, self.sensitivity, self.guarantee)


@dataclass(frozen=True)
class ChosenChannel:
    """A channel for a query, with what is known about it; the sibling of a :class:`Design`."""

    channel: Channel
    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss
    method: str
    objective: Fraction
    lower_bound: Fraction
    solver: str
    is_named: bool = False
    notes: tuple[str, ...] = ()
    compared: tuple[tuple[str, Fraction], ...] = ()
    bound_proved: bool = True

    @property
    def gap(self) -> Fraction:
        """How much better any channel could be at most."""
        return max(Fraction(0), self.objective - self.lower_bound)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of neighboring answers, both orders."""
        return line_pairs(self.channel.answers, self.sensitivity.apart or ())

    def is_within(self, gap: Fraction = GAP) -> bool:
        """Whether no other can lose less by more than the share ``gap``.

        Of a baseline that the spec names nothing is claimed, so nothing is asked.
        """
        return self.is_named or self.gap <= max(gap * self.objective, Fraction(1, 10**9))


Chosen: TypeAlias = Design | ChosenChannel
"""A proved mechanism of one query: modular noise, or a channel."""

Solve: TypeAlias = Callable[..., Design]
"""As :func:`release.noise.solve.design`, or a cache's."""

SolveChannel: TypeAlias = Callable[[ChannelProblem], ChannelDesign]
"""As :func:`release.noise.solvers.answer_laws.design_channel`, or a cache's."""


@dataclass(frozen=True)
class Solvers:
    """Who solves the programs, and how near to the best a law has to be."""

    law: Solve = design
    channel: SolveChannel = design_channel
    gap: Fraction = GAP


def in_effect(guarantee: Guarantee) -> Guarantee:
    """What a channel keeps: a pure promise where there is no program for the definition."""
    probabilistic = guarantee.definition is Definition.PROBABILISTIC
    if guarantee.epsilon and (probabilistic or guarantee.delta < _LEAST_DELTA):
        return Guarantee(Definition.PURE, guarantee.epsilon, Fraction(0))
    return guarantee


def choose(asked: Asked, mechanism: str = BEST, solvers: Solvers | None = None) -> Chosen:
    """The mechanism that the spec names, or the best of all that fit; proved.

    Raises:
        DesignError: it cannot keep the promise.
    """
    using = solvers or Solvers()
    if mechanism != BEST:
        return _made(asked, mechanism, using)
    found, failed = compare(asked, using, tuple(candidates(asked)))
    return best_of(asked, found, failed)


def best_of(
    asked: Asked, found: dict[str, Chosen], failed: Sequence[tuple[str, str]] = ()
) -> Chosen:
    """The candidate that loses least of those ``found``, with the bound that holds for all.

    Raises:
        DesignError: there is none; ``failed`` says why.
    """
    eligible = set(candidates(asked))
    order = sorted(
        ((name, made) for name, made in found.items() if name in eligible),
        key=lambda pair: pair[1].objective,
    )
    if not order:
        raise DesignError(failed[0][1] if failed else WRAPS)
    name, winner = order[0]
    # A bound of all channels is one of every family. Without an order, that of modular noise is.
    bounding = found.get(CHANNEL if asked.wraps else MODULAR_NOISE)
    bound = Fraction(0) if bounding is None else min(bounding.lower_bound, winner.objective)
    return replace(
        winner,
        is_named=False,
        lower_bound=bound,
        bound_proved=bounding is None or bounding.bound_proved,
        notes=(*winner.notes, _told(name, order)),
        compared=tuple((other, made.objective) for other, made in order),
    )


def family_of(asked: Asked, mechanism: str, *, seen: bool) -> str:
    """The family that the spec names; where ``best`` may hang on nothing ``seen``, what it is.

    Raises:
        DesignError: ``best`` would be modular noise on answers in order.
    """
    if mechanism != BEST or not seen:
        return mechanism
    if channel_unseen(asked.domain, asked.loss_name, asked.guarantee):
        return CHANNEL
    if asked.wraps:
        raise DesignError(WRAPS)
    return MODULAR_NOISE


def compare(
    asked: Asked, solvers: Solvers, names: Sequence[str] | None = None
) -> tuple[dict[str, Chosen], list[tuple[str, str]]]:
    """What each family makes of the query, by name, and why some make nothing.

    Of ``names`` where they are given. Baselines that have to be searched for are left out of large
    domains.
    """
    found: dict[str, Chosen] = {}
    failed = []
    for name in families(asked):
        if names is not None and name not in names:
            continue
        try:
            found[name] = _made(asked, name, solvers)
        except DesignError as error:
            failed.append((name, str(error)))
    return found, failed


def candidates(asked: Asked) -> Iterator[str]:
    """The families that ``best`` may take."""
    wrapping = (MODULAR_NOISE, *MODULAR, *MODULAR_WITH_DELTA) if asked.wraps else ()
    return (name for name in families(asked) if name not in wrapping)


def families(asked: Asked) -> Iterator[str]:
    """The families that can answer the query, those that only a spec may name among them."""
    yield MODULAR_NOISE
    if isinstance(asked.domain, JointDomain):
        return
    few = asked.domain.size <= _MOST_COMPARED
    with_delta = asked.guarantee.delta > 0 and asked.guarantee.epsilon > 0 and few

    def quick(name: str) -> bool:
        return is_quick(name, asked.promise)

    if asked.is_line:
        yield CHANNEL
    if asked.guarantee.epsilon == 0:
        return
    if asked.is_line:
        yield from ON_LINE if few else ON_LINE[:1]
        yield from filter(quick, ON_LINE_WITH_DELTA if with_delta else ())
    yield from MODULAR if few else MODULAR[:1]
    yield from filter(quick, MODULAR_WITH_DELTA if with_delta else ())


def _told(name: str, order: Sequence[tuple[str, Chosen]]) -> str:
    """Which won and by how much."""
    losses = ", ".join(f"{other} {_short(made.objective)}" for other, made in order)
    won = f"best of {len(order)} by {order[0][1].loss.name} loss: {losses}"
    if len(order) == 1 or order[0][1].objective == 0:
        return won
    second = order[1]
    times = second[1].objective / order[0][1].objective
    share = "as much as" if times < 1 + Fraction(1, 10**5) else f"{float(times):.5g} times what"
    return f"{won}; the next, {second[0]}, loses {share} {name} loses"


def _short(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _made(asked: Asked, name: str, solvers: Solvers) -> Chosen:
    if name == MODULAR_NOISE:
        return solvers.law(asked.sensitivity, asked.guarantee, asked.loss, gap=solvers.gap)
    if name == CHANNEL:
        return _channel(asked, solvers)
    if name in (*ON_LINE, *ON_LINE_WITH_DELTA) and not asked.is_line:
        raise DesignError(
            f"{name} needs at most {MOST_ROWS} answers in order, and the loss error_rate, absolute "
            "or squared"
        )
    made = fitted(name, asked.promise)
    objective = asked.loss.of(made) if isinstance(made, Law) else _loss(asked, made)
    told = (f"pinned to the baseline {name}; nothing is proved of others",)
    if isinstance(made, Law):
        return Design(
            law=made,
            sensitivity=asked.sensitivity,
            guarantee=asked.guarantee,
            loss=asked.loss,
            method=f"baseline {name}",
            objective=objective,
            lower_bound=Fraction(0),
            bound_proved=True,
            solver="none",
            notes=told,
            is_named=True,
        )
    return _as_chosen(asked, made, f"baseline {name}", objective, told)


def _loss(asked: Asked, made: Channel) -> Fraction:
    return asked.problem.loss_of(made)


def _as_chosen(
    asked: Asked, made: Channel, method: str, objective: Fraction, notes: tuple[str, ...]
) -> ChosenChannel:
    return ChosenChannel(
        channel=made,
        sensitivity=asked.sensitivity,
        guarantee=asked.guarantee,
        loss=asked.loss,
        method=method,
        objective=objective,
        lower_bound=Fraction(0),
        solver="none",
        is_named=True,
        notes=notes,
    )


def _channel(asked: Asked, solvers: Solvers) -> ChosenChannel:
    if not asked.is_line:
        raise DesignError(
            f"a channel needs at most {MOST_ROWS} answers in order, and a loss of answers"
        )
    found = solvers.channel(asked.problem)
    notes, bound = found.notes, found.lower_bound
    if found.problem.guarantee != asked.guarantee:
        notes = (*notes, "made for the pure promise, which implies this one")
        # What keeps the weaker promise may lose less than anything that keeps the pure one.
        bound = min(found.objective, solvers.channel(_relaxed(asked)).lower_bound)
    chosen = _as_chosen(asked, found.channel, found.method, found.objective, notes)
    return replace(chosen, lower_bound=bound, solver=found.solver, is_named=False)


def _relaxed(asked: Asked) -> ChannelProblem:
    """The approximate problem that every channel which keeps the promise solves as well."""
    delta = max(asked.guarantee.delta, _LEAST_DELTA)
    weaker = Guarantee(Definition.APPROXIMATE, asked.guarantee.epsilon, delta)
    return replace(asked.problem, guarantee=weaker)


def noise_of(made: Chosen) -> Law | Channel:
    """The law, or the channel."""
    return made.channel if isinstance(made, ChosenChannel) else made.law
