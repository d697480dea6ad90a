"""What a mechanism is chosen for, and a mechanism with what is proved of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

from release.exact.channel import COST_POWERS, answer_costs, channel_fits
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName, WorstCaseLoss
from release.exact.mechanism import Mechanism
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.published.fitted import Promise
from release.noise.solvers.answer_problem import ChannelProblem

GAP = Fraction(1, 10**6)
"""The relative gap at which a mechanism counts as optimal, unless a caller asks for less."""

LEAST_DELTA = Fraction(1, 10**11)
"""Below it a program would not see δ: a channel is made for the pure guarantee instead."""

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)


@dataclass(frozen=True)
class Asked:
    """The public side of a query, with the differences that neighbors can have."""

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
        return self.domain.has_order

    @cached_property
    def problem(self) -> ChannelProblem:
        """What is asked of a channel, under the uniform prior."""
        size = self.domain.size
        costs = answer_costs(COST_POWERS[self.loss_name or LossName.ERROR_RATE], size)
        uniform = (Fraction(1, size),) * size
        apart = self.sensitivity.apart or ()
        return ChannelProblem(apart, pure_where_no_program(self.guarantee), costs, uniform)

    @property
    def relaxed_problem(self) -> ChannelProblem:
        """The approximate problem that every channel with the guarantee solves as well."""
        delta = max(self.guarantee.delta, LEAST_DELTA)
        weaker = Guarantee(Definition.APPROXIMATE, self.guarantee.epsilon, delta)
        return replace(self.problem, guarantee=weaker)

    @property
    def promise(self) -> Promise:
        """What a baseline has to satisfy."""
        return Promise(self.domain.size, self.sensitivity, self.guarantee)


def pure_where_no_program(guarantee: Guarantee) -> Guarantee:
    """The guarantee for which a channel is made: pure where no program fits the definition."""
    probabilistic = guarantee.definition is Definition.PROBABILISTIC
    if guarantee.epsilon and (probabilistic or guarantee.delta < LEAST_DELTA):
        return Guarantee(Definition.PURE, guarantee.epsilon, Fraction(0))
    return guarantee


@dataclass(frozen=True)
class Design(Generic[AnyMechanism]):
    """A mechanism whose guarantee is proved, with what is known about its optimality.

    ``lower_bound`` bounds the loss of every mechanism of its class with this guarantee: of modular
    noise where the answers have no order, else of every mechanism. ``bound_proved`` tells whether
    it was proved exactly or is the solver's word. Losses are in the units of the loss.
    """

    mechanism: AnyMechanism
    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss | WorstCaseLoss
    method: str
    objective: Fraction
    lower_bound: Fraction = Fraction(0)
    bound_proved: bool = True
    solver: str = "none"
    notes: tuple[str, ...] = ()
    name: str = ""
    """The name by which a spec can ask for it."""
    is_named: bool = False
    """Whether it is a baseline that the spec names, of which nothing is claimed."""
    compared: tuple[tuple[str, Fraction], ...] = ()
    """The loss of each mechanism that was compared, where several were."""

    @property
    def gap(self) -> Fraction:
        """How much less any mechanism of the class could lose at most."""
        return max(Fraction(0), self.objective - self.lower_bound)

    def is_within(self, gap: Fraction = GAP) -> bool:
        """Whether no mechanism of the class can lose less by more than the share ``gap``.

        A difference of a billionth of the cheapest error counts as none, whatever the loss is. Of a
        baseline that the spec names nothing is claimed, so nothing is asked.
        """
        return self.is_named or self.gap <= max(gap * self.objective, self.loss.least / 10**9)
