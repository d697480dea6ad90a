"""What is asked of a channel, and the proved answer.

A channel has one distribution for each true answer, on the line without wrapping
(docs/design/mathematics.md 2.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.exact.channel import Channel
from release.exact.domain import Codes
from release.exact.losses import check_prior
from release.exact.numbers import exp_below_any_verifier
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Pair, line_pairs

LINEAR_PROGRAM, GEOMETRIC = "linear program", "clamped geometric noise"


@dataclass(frozen=True)
class ChannelProblem:
    """What is asked of a channel.

    Attributes:
        steps: how far apart neighboring answers can be, each at least 1.
        guarantee: pure, approximate or probabilistic.
        costs: ℓ(q, o) as integers of at least 0, shape (true answers, published answers).
        prior: π, one probability for each true answer; None for the worst true answer.

    Raises:
        ValueError: a prior that is none, or costs of another shape.
    """

    steps: tuple[int, ...]
    guarantee: Guarantee
    costs: Codes
    prior: tuple[Fraction, ...] | None

    def __post_init__(self) -> None:
        if self.costs.ndim != 2 or not (self.costs >= 0).all():
            raise ValueError("costs need a row of numbers of at least 0 for each true answer")
        if not self.steps or min(self.steps) < 1:
            raise ValueError("neighboring answers are 1 or more apart")
        if self.prior is not None:
            if len(self.prior) != len(self.costs):
                raise ValueError("a prior needs one probability for each true answer")
            check_prior(self.prior)

    @property
    def answers(self) -> int:
        """The number of true answers."""
        return int(self.costs.shape[0])

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of neighboring answers, both orders."""
        return line_pairs(self.answers, self.steps)

    @property
    def ratio(self) -> Fraction:
        """E, a rational below what every verifier may take for e^ε."""
        return exp_below_any_verifier(self.guarantee.epsilon)

    def loss_of(self, channel: Channel) -> Fraction:
        """The expected cost under the prior, or the largest over the true answers."""
        losses = channel.loss(self.costs)
        if self.prior is None:
            return max(losses)
        return sum(
            (share * loss for share, loss in zip(self.prior, losses, strict=True)), Fraction(0)
        )

    @property
    def has_envelope(self) -> bool:
        """Whether the guarantee is m(o) ≤ P(o|q) ≤ E·m(o) for some m: pure, and all neighbors."""
        # Take the least P(o|q) for m(o). This needs answers² rows in place of answers³ (2.12).
        pure = self.guarantee.definition is Definition.PURE
        return pure and set(range(1, self.answers)) <= set(self.steps)

    @property
    def is_plain(self) -> bool:
        """Whether as many answers are published as are true, at costs that grow with the error."""
        if self.costs.shape != (self.answers, self.answers):
            return False
        # Row q falls up to its diagonal entry, 0, and rises from there.
        rises = np.diff(self.costs, axis=1)
        outwards = (np.triu(rises) >= 0).all() and (np.tril(rises, -1) <= 0).all()
        return bool(outwards and not self.costs.diagonal().any())

    @property
    def entries(self) -> int:
        """How many comparisons of two masses a program of the guarantee has."""
        if self.has_envelope:
            return 2 * self.costs.size
        return len(self.pairs) * int(self.costs.shape[1])

    def is_satisfied_by(self, channel: Channel) -> bool:
        """Whether the channel satisfies the guarantee with every verifier's e^ε."""
        deltas = channel.deltas_of_pairs(self.pairs, self.ratio)
        return deltas.under(self.guarantee.definition) <= self.guarantee.delta


@dataclass(frozen=True)
class ChannelDesign:
    """A proved channel, and a proved lower bound of the expected cost of every such channel.

    ``method`` names how it was solved. ``notes`` say what is not proved.
    """

    problem: ChannelProblem
    channel: Channel
    objective: Fraction
    lower_bound: Fraction
    method: str
    solver: str = "none"
    notes: tuple[str, ...] = ()
