"""The loss function: the cost ρ of each noise value, in exact integers.

A reader sees the answer, not the noise. On an ordered domain noise η turns q into (q+η) mod N,
which is an error of η or, after wrapping, of N-η; under a uniform prior over q the expected cost of
η is ρ_η = (1/N)·Σ_q ℓ(q, (q+η) mod N) (docs/design/mathematics.md). So squared loss costs η(N-η),
absolute loss 2η(N-η)/N. On a cyclic domain the distance goes the shorter way round, on a nominal
one it is 0 or 1. The paper's Σ η²·f(η) (Kadam et al. 2024, equation (11)) stays as
``noise_squared``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import lcm
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import AnswerDomain, Codes, JointDomain, Topology
from release.exact.numbers import (
    common_denominator,
    dot,
    exact_tuple,
    member,
    over_one_denominator,
    whole,
)
from release.exact.pmf import Pmf


class LossName(Enum):
    """The losses that have a name; a table of costs has none."""

    ERROR_RATE = "error_rate"
    ABSOLUTE = "absolute"
    SQUARED = "squared"
    NOISE_SQUARED = "noise_squared"


_WORST = "worst-case "

COST_POWERS = {LossName.ERROR_RATE: 0, LossName.ABSOLUTE: 1, LossName.SQUARED: 2}
"""The losses of published answers in order, as powers of the error."""


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs ``numerators / denominator``, all at least 0."""

    name: str
    numerators: Codes
    denominator: int = 1

    @property
    def largest(self) -> Fraction:
        """The largest cost."""
        return Fraction(int(self.numerators.max()), self.denominator)

    @property
    def plain_name(self) -> str:
        """The name of the loss at one true answer, as files have it."""
        return self.name.removeprefix(_WORST)

    @property
    def least(self) -> Fraction:
        """The least cost above 0, or 0 where there is none."""
        positive = self.numerators[self.numerators > 0]
        return Fraction(int(positive.min()), self.denominator) if positive.size else Fraction(0)


@dataclass(frozen=True, eq=False)
class Loss(_Costs):
    """Costs ρ_η = ``numerators[η] / denominator``, all at least 0.

    ``prior`` is the pmf of the true answers over which they are means; None is the uniform one.
    """

    prior: tuple[Fraction, ...] | None = None

    @property
    def is_error_rate(self) -> bool:
        """Whether every error costs the same, so that the closed forms apply."""
        cost = self.numerators
        return bool(cost[0] == 0 and cost.size > 1 and cost[1] > 0 and (cost[1:] == cost[1]).all())

    def typical(self) -> NDArray[np.float64]:
        """ρ in floats, for solvers."""
        return np.array(self.numerators / float(self.denominator), dtype=np.float64)

    def of(self, pmf: Pmf) -> Fraction:
        """The expected loss of ``pmf``, exactly."""
        # Python integers: a cost times a weight overflows 64 bits.
        weighted = dot(self.numerators.tolist(), pmf.weights.tolist())
        return Fraction(weighted, self.denominator * pmf.total)

    @property
    def is_named(self) -> bool:
        """Whether the loss is one that a spec can name, and no table of costs."""
        return self.name in {name.value for name in LossName}

    @property
    def denominator_at_answers(self) -> int:
        """The denominator of the costs of :func:`costs_at`."""
        return 1 if self.is_named else self.denominator

    def cost(self, element: int) -> Fraction:
        """ρ of one noise value."""
        return Fraction(int(self.numerators[element]), self.denominator)


def power_of(loss: Loss | WorstCaseLoss) -> int:
    """The power of the error that a named loss is.

    Raises:
        ValueError: another loss than error_rate, absolute or squared.
    """
    for name, power in COST_POWERS.items():
        if name.value == loss.plain_name:
            return power
    raise ValueError("answers in order need the loss error_rate, absolute or squared")


def line_fits(domain: AnswerDomain | JointDomain, loss: object) -> bool:
    """Whether the answers have an order, and the loss is a power of their error."""
    if isinstance(loss, Loss) and loss.is_named:
        loss = LossName(loss.name)
    return domain.is_line and isinstance(loss, LossName) and loss in COST_POWERS


def distance(part: AnswerDomain, published: Codes, true: int) -> Codes:
    """How far each of ``published`` is from ``true``, in codes, by the topology of the answers."""
    off = np.abs(published - true)
    if part.topology is Topology.CYCLIC:
        return np.asarray(np.minimum(off, part.size - off), dtype=np.int64)
    return np.minimum(off, 1) if part.topology is Topology.NOMINAL else off


def costs_at(loss: Loss, domain: AnswerDomain | JointDomain, true: int) -> Codes:
    """The cost of each published answer where ``true`` is true; shape (answers,), integers.

    In units of 1 / :attr:`Loss.denominator_at_answers`. The costs of a joint answer's parts add up.
    """
    group = domain.group
    published = np.arange(domain.size, dtype=np.int64)
    # A table is of noise, so its cost at an answer is that of published minus true.
    if not loss.is_named:
        return np.asarray(
            loss.numerators[group.minus(published, np.array(true, dtype=np.int64))], dtype=np.int64
        )
    name = LossName(loss.name)
    if name is LossName.ERROR_RATE:
        return np.asarray(published != true, dtype=np.int64)
    costs = np.zeros(domain.size, dtype=np.int64)
    coordinates = zip(
        domain.parts, group.coordinates(published), group.coordinates(true), strict=True
    )
    for part, here, there in coordinates:
        if name is LossName.NOISE_SQUARED:
            costs += ((here - there) % part.size) ** 2
        else:
            off = distance(part, here, int(there))
            costs += off if name is LossName.ABSOLUTE else off * off
    return costs


def named_loss(name: LossName | str, topology: Topology | str, size: int) -> Loss:
    """The costs of a named loss on ``size`` answers under the uniform prior.

    On a nominal domain any error is at distance 1, so absolute and squared loss are the error rate.

    Raises:
        SpecError: there is no such loss or topology, or fewer than two answers.
    """
    name, topology = member("loss", LossName, name), member("topology", Topology, topology)
    size = whole("answers", size, 2)
    noise = np.arange(size, dtype=np.int64)
    if name is LossName.NOISE_SQUARED:
        return Loss(name.value, noise * noise)
    if name is LossName.ERROR_RATE or topology is Topology.NOMINAL:
        return Loss(name.value, (noise > 0).astype(np.int64))
    if topology is Topology.CYCLIC:
        distance = np.minimum(noise, size - noise)
        return Loss(name.value, distance if name is LossName.ABSOLUTE else distance * distance)
    # Noise η is an error of η for size-η answers, and of size-η for the η that wrap round, so that
    # the mean squared error is [η²(size-η) + (size-η)²η]/size = η(size-η).
    around = noise * (size - noise)
    if name is LossName.ABSOLUTE:
        return Loss(name.value, 2 * around, size)
    return Loss(name.value, around)


@dataclass(frozen=True, eq=False)
class WorstCaseLoss(_Costs):
    """The largest of several expected losses, one for each true answer.

    ``numerators`` has shape (answers, size): the cost of noise η when the true answer is q.
    """

    prior: ClassVar[None] = None

    @property
    def plain(self) -> Loss:
        """The loss by its name alone, as mechanisms read it at one true answer."""
        return Loss(self.plain_name, self.numerators[0], self.denominator)

    @property
    def is_error_rate(self) -> bool:
        """Never: where all true answers cost the same, :func:`worst_case` gives a plain loss."""
        return False

    def typical(self) -> NDArray[np.float64]:
        """The mean cost of each noise value, in floats."""
        mean: NDArray[np.float64] = self.numerators.mean(axis=0) / self.denominator
        return mean

    def of(self, pmf: Pmf) -> Fraction:
        """The expected loss of ``pmf`` at its worst true answer, exactly."""
        # Python integers: a cost times a weight overflows 64 bits.
        sums = self.numerators.astype(object) @ pmf.weights.astype(object)
        return Fraction(max(sums.tolist()), self.denominator * pmf.total)


def error_costs(name: LossName | str, topology: Topology | str, size: int) -> Codes:
    """ℓ(q, (q+η) mod N), shape (N, N), row q: the cost of an answer error, without any prior.

    Raises:
        SpecError: as :func:`named_loss`.
    """
    name, topology = member("loss", LossName, name), member("topology", Topology, topology)
    size = whole("answers", size, 2)
    answer = np.arange(size, dtype=np.int64)
    error = np.abs(answer[:, None] - (answer[:, None] + answer[None, :]) % size)
    if name is LossName.NOISE_SQUARED:
        # The cost is that of the noise, whether or not the answer wraps.
        return np.broadcast_to(answer * answer, (size, size)).copy()
    if topology is Topology.CYCLIC:
        error = np.minimum(error, size - error)
    if name is LossName.ERROR_RATE or topology is Topology.NOMINAL:
        error = np.minimum(error, 1)
    return error * error if name is LossName.SQUARED else error


def check_prior(prior: tuple[Fraction, ...]) -> None:
    """Refuse what is no pmf over the true answers.

    Raises:
        ValueError: a probability is negative, or they do not add up to 1.
    """
    if min(prior) < 0 or sum(prior) != 1:
        raise ValueError("a prior needs probabilities of at least 0 that add up to 1")


def prior_loss(name: LossName | str, topology: Topology | str, prior: tuple[Fraction, ...]) -> Loss:
    """The costs ρ_η = Σ_q π(q)·ℓ(q, (q+η) mod N) under a given prior π.

    Raises:
        SpecError: as :func:`named_loss`, or a probability is a float or no number.
        ValueError: a probability is negative, they do not add up to 1, or their common denominator
            is too large for 64-bit integers.
    """
    name, prior = member("loss", LossName, name), exact_tuple("prior", prior)
    check_prior(prior)
    denominator = common_denominator(prior)
    # Python integers: before the check below the sums may be of any length.
    shares = np.array(prior, dtype=object) * denominator
    costs = (shares @ error_costs(name, topology, len(prior)).astype(object)).tolist()
    if max(costs) >= 2**62:
        raise ValueError("the prior's common denominator is too large; round the probabilities")
    return Loss(name.value, np.array(list(map(int, costs)), dtype=np.int64), denominator, prior)


def worst_case(name: LossName | str, topology: Topology | str, size: int) -> Loss | WorstCaseLoss:
    """The expected loss at the worst true answer; a plain loss where all answers fare alike.

    Raises:
        SpecError: as :func:`named_loss`.
    """
    name = member("loss", LossName, name)
    costs = error_costs(name, topology, size)
    # On a circle and among categories every true answer fares alike: one row is all of them.
    if (costs == costs[0]).all():
        return Loss(name.value, costs[0])
    return WorstCaseLoss(f"{_WORST}{name.value}", costs)


def worst_on_line(name: LossName, size: int, most: int) -> WorstCaseLoss:
    """The loss at the worst of ``size`` answers in order, whatever the mechanism.

    Beyond ``most`` answers it has no costs of noise, so that modular noise cannot be designed.
    """
    if size > most:
        return WorstCaseLoss(f"{_WORST}{name.value}", np.array([[0, 1]], dtype=np.int64))
    return WorstCaseLoss(f"{_WORST}{name.value}", error_costs(name, Topology.ORDERED, size))


def table_loss(costs: tuple[Fraction, ...]) -> Loss:
    """A loss given by its cost for each noise value 0..n.

    Raises:
        SpecError: a cost is a float, negative, or no number.
        ValueError: a cost is negative, or too large for 64-bit integers over a common denominator.
    """
    costs = exact_tuple("costs", costs)
    numerators, denominator = over_one_denominator(costs)
    if not 0 <= min(numerators, default=0) <= max(numerators, default=0) < 2**62:
        raise ValueError("costs must be at least 0, and their common numerators below 2^62")
    return Loss("table", np.array(numerators, dtype=np.int64), denominator)


def joint_loss(name: LossName | str, parts: tuple[AnswerDomain, ...]) -> Loss:
    """The costs of a named loss on joint answers: the sum over the parts; one for any error.

    Shape of the costs: row-major over the parts' codes. For one part this is :func:`named_loss`.

    Raises:
        SpecError: there is no such loss.
        ValueError: the sums over a common denominator are too large for 64-bit integers.
    """
    name = member("loss", LossName, name)
    losses = [named_loss(name, part.topology, part.size) for part in parts]
    if name is LossName.ERROR_RATE:
        return Loss(name.value, (np.arange(JointDomain(parts).size) > 0).astype(np.int64))
    denominator = lcm(*(loss.denominator for loss in losses))
    if sum(denominator * loss.largest for loss in losses) >= 2**62:
        raise ValueError("the joint costs are too large; use fewer or smaller parts")
    costs = np.zeros(1, dtype=np.int64)
    # Part by part: the last part runs fastest in the row-major order.
    for loss in losses:
        own = loss.numerators * (denominator // loss.denominator)
        costs = np.add.outer(costs, own).reshape(-1)
    return Loss(name.value, costs, denominator)


def probability_within(pmf: Pmf, parts: tuple[AnswerDomain, ...], radius: int) -> Fraction:
    """The chance that each part of the published answer is at most ``radius`` off.

    Under the uniform prior.
    """
    share = np.ones(1, dtype=object)
    for part in parts:
        own = _share_within(part.topology, part.size, radius)
        share = np.multiply.outer(share, own).reshape(-1)
    weighted = dot(share.tolist(), pmf.weights.tolist())
    return Fraction(weighted, JointDomain(parts).size * pmf.total)


def _share_within(topology: Topology, size: int, radius: int) -> Codes:
    """For each noise value the number of answers that it moves at most ``radius`` off."""
    noise = np.arange(size, dtype=np.int64)
    if topology is Topology.NOMINAL:
        return np.where((noise == 0) | (radius >= 1), size, 0)
    if topology is Topology.CYCLIC:
        return np.where(np.minimum(noise, size - noise) <= radius, size, 0)
    # Noise η is an error of η for the size-η answers that do not wrap, else of size-η.
    stays = np.where(noise <= radius, size - noise, 0)
    return stays + np.where(size - noise <= radius, noise, 0)
