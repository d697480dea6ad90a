"""What is asked of a channel, and what is found.

A channel is one law for each true answer, on the line without wrapping
(docs/design/mathematics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from release.exact.channel import Channel
from release.exact.domain import Codes
from release.exact.losses import check_prior
from release.exact.numbers import exp_below_any_verifier
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Pair, line_pairs

LINEAR_PROGRAM = "linear program"


@dataclass(frozen=True)
class ChannelProblem:
    """What is asked of a channel.

    Attributes:
        steps: how far apart neighboring answers can be, each at least 1.
        guarantee: pure or approximate.
        costs: ℓ(q, o) as integers of at least 0, shape (true answers, published answers).
        prior: π, one probability for each true answer, adding up to 1; None for the largest loss.

    Raises:
        ValueError: another definition, a prior that is none, or costs of another shape.
    """

    steps: tuple[int, ...]
    guarantee: Guarantee
    costs: Codes
    prior: tuple[Fraction, ...] | None

    def __post_init__(self) -> None:
        if self.guarantee.definition is Definition.PROBABILISTIC:
            raise ValueError("a channel keeps pure or approximate guarantees")
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
        """The rational that laws are built with in place of e^ε."""
        return exp_below_any_verifier(self.guarantee.epsilon)

    def loss_of(self, channel: Channel) -> Fraction:
        """The expected loss under the prior, or the largest over the true answers."""
        losses = channel.loss(self.costs)
        if self.prior is None:
            return max(losses)
        return sum((p * loss for p, loss in zip(self.prior, losses, strict=True)), Fraction(0))

    @property
    def is_everything(self) -> bool:
        """Whether every answer can turn into every other."""
        return len({step for step in self.steps if step < self.answers}) == self.answers - 1

    @property
    def is_plain(self) -> bool:
        """Whether as many answers are published as are true, at costs that grow with the error."""
        square = self.costs.shape == (self.answers, self.answers)
        return square and all(_grows_outwards(row, q) for q, row in enumerate(self.costs.tolist()))

    @property
    def entries(self) -> int:
        """How many comparisons of two masses the guarantee is made of."""
        return len(self.pairs) * int(self.costs.shape[1])

    def keeps(self, channel: Channel) -> bool:
        """Whether the channel keeps the guarantee with every verifier's e^ε."""
        deltas = channel.deltas_of_pairs(self.pairs, self.ratio)
        return deltas.under(self.guarantee.definition) <= self.guarantee.delta


@dataclass(frozen=True)
class ChannelDesign:
    """A proved channel, and an exact lower bound of the loss of every one that keeps the promise.

    ``method`` says how it was found. ``notes`` say what is not proved.
    """

    problem: ChannelProblem
    channel: Channel
    objective: Fraction
    lower_bound: Fraction
    method: str
    solver: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> Fraction:
        """How much better any channel could be at most."""
        return max(Fraction(0), self.objective - self.lower_bound)


def _grows_outwards(row: Sequence[int], true: int) -> bool:
    """Whether a cost is 0 at the true answer and grows with the error on both sides."""
    right, left = row[true:], row[true::-1] if true else row[:1]
    return row[true] == 0 and all(list(side) == sorted(side) for side in (right, left))
