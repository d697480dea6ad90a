"""The question that a mechanism answers, and a designed mechanism with its proofs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

from release.exact.bounds import Multipliers
from release.exact.channel import answer_costs, channel_fits
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import COST_POWERS, Loss, LossName, WorstCaseLoss, line_fits
from release.exact.mechanism import BoundOf, Mechanism
from release.exact.privacy import Definition, Deltas, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.published.fitted import Requirement
from release.noise.shown import facts_html
from release.noise.solvers.answers.problem import ChannelProblem
from release.spec.demands import Demand

GAP = Fraction(1, 10**6)
"""The relative gap at which a mechanism counts as optimal, unless a caller asks for less."""

GAIN = Fraction(1, 1000)
"""What a mechanism has to save before it is taken in place of a simpler one."""

# Below it δ is lost in a solver's tolerance: a channel is made for the pure guarantee instead.
LEAST_DELTA = Fraction(1, 10**11)

AnyMechanism = TypeVar("AnyMechanism", bound=Mechanism)


@dataclass(frozen=True)
class Asked:
    """The public side of a query, with its sensitivity."""

    domain: AnswerDomain | JointDomain
    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss | WorstCaseLoss
    loss_name: LossName | None
    parameters: tuple[tuple[str, Fraction], ...] = ()
    """What the spec fixes of the noise, by the name of the parameter."""
    demands: tuple[Demand, ...] = ()
    """Constraints on the pmf of modular noise."""
    part: Fraction = Fraction(1)
    """What noise that loses in proportion is charged, as a part of what other noise is."""

    @property
    def is_line(self) -> bool:
        """Whether the answers have an order, and the loss is one of answers, not of noise."""
        return line_fits(self.domain, self.loss_name) and bool(self.sensitivity.distances)

    @property
    def has_rows(self) -> bool:
        """Whether channels apply: :attr:`is_line`, and few enough answers for a row each."""
        return self.is_line and channel_fits(self.domain, self.loss_name)

    @property
    def wraps(self) -> bool:
        """Whether modular noise can publish one end of an order for the other."""
        return self.domain.has_order

    @property
    def is_probabilistic(self) -> bool:
        """Whether the guarantee has a probabilistic δ, which clamping does not preserve."""
        guarantee = self.guarantee
        return guarantee.definition is Definition.PROBABILISTIC and guarantee.delta > 0

    @cached_property
    def problem(self) -> ChannelProblem:
        """The channel problem of the question, under its prior or for the worst true answer."""
        size = self.domain.size
        costs = answer_costs(COST_POWERS[self.loss_name or LossName.ERROR_RATE], size)
        is_worst = isinstance(self.loss, WorstCaseLoss)
        prior = None if is_worst else self.loss.prior or (Fraction(1, size),) * size
        distances = self.sensitivity.distances or ()
        return ChannelProblem(distances, _seen_by_solvers(self.guarantee), costs, prior)

    @property
    def requirement(self) -> Requirement:
        """The guarantee that a baseline is fitted to."""
        power = COST_POWERS.get(self.loss_name) if self.loss_name else None
        fixed = dict(self.parameters)
        return Requirement(
            self.domain.size, self.sensitivity, self.guarantee, power, fixed, self.loss.prior
        )


def _seen_by_solvers(guarantee: Guarantee) -> Guarantee:
    """The guarantee for which a channel is made: pure where δ is lost in a solver's tolerance."""
    # The pure guarantee implies both others; at ε = 0 it would allow no channel but a constant one.
    if guarantee.epsilon and guarantee.delta < LEAST_DELTA:
        return Guarantee(Definition.PURE, guarantee.epsilon, Fraction(0))
    return guarantee


@dataclass(frozen=True)
class Design(Generic[AnyMechanism]):
    """A mechanism whose guarantee is proved, with a bound on how far it is from the optimum.

    ``objective`` is the expected loss under the prior of the loss, or at its worst true answer.
    ``lower_bound`` bounds the loss of
    every mechanism of the class ``bound_of`` with this guarantee. The class of noise on the
    integers has no ends, so that there the bound is compared with ``noise_loss``, the expected loss
    far from both. ``bound_proved`` is whether the bound was proved exactly, and not only claimed by
    the solver; ``multipliers`` are its proof where no formula is. Losses are in units of the loss.
    """

    mechanism: AnyMechanism
    sensitivity: Sensitivity
    guarantee: Guarantee
    loss: Loss | WorstCaseLoss
    method: str
    objective: Fraction
    lower_bound: Fraction = Fraction(0)
    bound_of: BoundOf = BoundOf.EVERYTHING
    noise_loss: Fraction | None = None
    multipliers: Multipliers | None = None
    bound_proved: bool = True
    solver: str = "none"
    notes: tuple[str, ...] = ()
    name: str = ""
    """The name by which a spec can ask for it."""
    is_named: bool = False
    """Whether no optimality is claimed: a baseline that the spec names, or noise for a charge."""
    compared: tuple[tuple[str, Fraction], ...] = ()
    """The loss of each mechanism that was compared, where several were."""

    def __repr__(self) -> str:
        """One line, without the probabilities."""
        facts = [f"{name} {value}" for name, value in self._facts.items()]
        return f"<design: {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return facts_html("mechanism of least loss", self._facts)

    @property
    def _facts(self) -> dict[str, object]:
        """What is shown of it, by name."""
        return {
            "mechanism": self.name or self.method,
            "answers": self.mechanism.answers,
            "guarantee": self.guarantee,
            "loss function": self.loss.name,
            "expected loss": f"{float(self.objective):.6g}",
            "lower bound": f"{float(self.lower_bound):.6g} ({self.bound_of.value})",
            "gap": f"{float(self.gap):.3g}",
        }

    @cached_property
    def deltas(self) -> Deltas:
        """The exact δ of the mechanism at the claimed ε."""
        return self.mechanism.deltas(self.sensitivity, self.guarantee.epsilon)

    @cached_property
    def loses_in_proportion(self) -> bool:
        """As :meth:`Mechanism.loses_in_proportion`, at the claimed ε."""
        return self.mechanism.loses_in_proportion(self.sensitivity, self.guarantee.epsilon)

    @property
    def gap(self) -> Fraction:
        """The loss that is bounded less the lower bound, at least 0."""
        return max(Fraction(0), self.bounded_loss - self.lower_bound)

    @property
    def bounded_loss(self) -> Fraction:
        """The loss that the lower bound is compared with."""
        return self.objective if self.noise_loss is None else self.noise_loss

    def is_within(self, gap: Fraction = GAP) -> bool:
        """Whether no mechanism of the class can lose less by more than the share ``gap``.

        True of a mechanism of which no optimality is claimed.
        """
        # A billionth of the cheapest error counts as none, or a loss near 0 would never be near.
        return self.is_named or self.gap <= max(gap * self.bounded_loss, self.loss.least / 10**9)
