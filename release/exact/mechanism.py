"""A mechanism: for each true answer a probability mass function over the published ones.

Masses are integer weights over one total, a power of two. So a mechanism is drawn from, and its
guarantee proved, without any floating point. A family of mechanisms says what its rows are
(:meth:`Mechanism.row`); all else follows from the rows, and a family overrides what it can compute
faster.

Answers are numbered from 0 in the order of their domain; these numbers are called codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.composition.profile import (
    MOST_COMPARED,
    MOST_LOSSES,
    Profile,
    largest,
    profile_of_points,
    profile_of_weights,
    ratio_below,
)
from release.exact.domain import AnswerDomain, Codes, JointDomain
from release.exact.losses import Loss, WorstCaseLoss, costs_at, distance
from release.exact.numbers import MAX_EPSILON, exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Deltas, Guarantee, largest_allowed
from release.exact.sampling import SYSTEM, RandomBytes, draw_codes
from release.exact.sensitivity import Pair, Sensitivity

Domain: TypeAlias = AnswerDomain | JointDomain
Floats: TypeAlias = NDArray[np.float64]

MOST_JOINED = 10**7
"""Over so many masses they are not looked at one by one for a profile."""


class BoundOf(Enum):
    """Of which mechanisms a lower bound speaks."""

    EVERYTHING = "every mechanism"
    MODULAR = "modular noise"
    INTEGERS = "noise on the integers"


class Mechanism(ABC):
    """A random rule from true answers to published ones, in exact integers."""

    family: ClassVar[str]
    """The name of the family in the files of a release."""

    tolerance: ClassVar[Fraction] = Fraction(0)
    """How far a figure of its accuracy, computed elsewhere, may be off, as a share; 0: exact."""

    total: int
    """The sum of every row, a power of two."""

    outputs: ClassVar[int] = 1
    """How many integers of a cell it publishes: the code of the answer."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """The number of possible answers, true and published."""

    @abstractmethod
    def row(self, code: int) -> NDArray[Any]:
        """The weight of each published answer when the true one is ``code``; shape (answers,)."""

    def law(self) -> forms.Law:
        """The mechanism as a release has it: whole numbers, and nothing that the question says.

        Raises:
            TypeError: the format has no such mechanism.
        """
        raise TypeError(f"{type(self).__name__} has no form")

    def sentence(self, sensitivity: Sensitivity) -> str:
        """What it is and the extent of its proof: how a report begins to describe it."""
        pairs = len(sensitivity.pairs(self.answers))
        return (
            f"A channel: one pmf for each of {self.answers} true answers, proved over {pairs} "
            "ordered pairs of neighboring answers"
        )

    def likelihoods(self) -> Iterator[list[int]]:
        """For each published answer, in code order, the weight that each true answer gives it.

        Integers on one scale, and the same on every machine; memory is the square of the answers.
        """
        for weights in np.stack(list(map(self.row, range(self.answers)))).T:
            yield weights.tolist()

    def deltas(self, sensitivity: Sensitivity, epsilon: Fraction) -> Deltas:
        """The exact δ at ``epsilon`` over all neighboring answers, under both definitions.

        e^ε is replaced by a rational below it, so a δ is never too small.
        """
        return self.deltas_at_ratio(sensitivity, exp_bounds(epsilon)[0])

    def deltas_at_ratio(self, sensitivity: Sensitivity, ratio: Fraction) -> Deltas:
        """As :meth:`deltas`, with ``ratio`` in place of e^ε."""
        return self.deltas_of_pairs(sensitivity.pairs(self.answers), ratio)

    def deltas_of_pairs(self, pairs: Iterable[Pair], ratio: Fraction) -> Deltas:
        """As :meth:`deltas_at_ratio`, over ``pairs`` of true answers."""
        probabilistic = approximate = Fraction(0)
        for true, neighbor in pairs:
            here, there = self.row(true), self.row(neighbor)
            violated = here > largest_allowed(there, self.total, ratio)
            if violated.any():
                # Distinct weights of one row add up to the total at most: nothing overflows.
                heavy, light = int(here[violated].sum()), int(there[violated].sum())
                probabilistic = max(probabilistic, Fraction(heavy, self.total))
                approximate = max(approximate, (heavy - ratio * light) / self.total)
        return Deltas(probabilistic, approximate)

    def loses_in_proportion(self, sensitivity: Sensitivity, epsilon: Fraction) -> bool:
        """Whether answers d apart are proved to lose at most ε·d/s, s the largest distance.

        Of pure mechanisms, for every d up to s (docs/design/mathematics.md 2.18).
        """
        return False

    def comparisons(self, sensitivity: Sensitivity) -> int:
        """How many pairs of masses δ at one ε compares."""
        return len(sensitivity.pairs(self.answers)) * self.answers

    def compared(self, sensitivity: Sensitivity) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Pairs of rows, in both orders, that have all the profiles which pairs of answers have."""
        rows = list(map(self.row, range(self.answers)))
        for true, neighbor in sensitivity.pairs(self.answers):
            yield rows[true], rows[neighbor]

    def profile(self, sensitivity: Sensitivity, step: Fraction) -> Profile:
        """The privacy profile over all neighboring answers, on the grid of ``step``.

        Exact at the losses of the grid, but for upward rounding. Where that would compare too many
        masses it is exact at a few of these losses, with chords between them.

        Args:
            sensitivity: the differences to bound: those of the query, or fewer.
            step: distance of two losses, above 0 and at most 100.
        """
        # Both limits count work, not time, so that every machine publishes the same profile.
        if self.comparisons(sensitivity) > MOST_JOINED:
            return self.rough_profile(sensitivity, step)
        profiles, work = [Profile(step, (0,))], 0
        distinct: set[frozenset[tuple[tuple[int, int], int]]] = set()
        for here, there in self.compared(sensitivity):
            joined = Counter(zip(here.tolist(), there.tolist(), strict=True))
            # Pairs that are as far apart often have the same weights in another order.
            weights = frozenset(joined.items())
            if weights in distinct:
                continue
            distinct.add(weights)
            pairs = []
            for (heavy, light), times in joined.items():
                pairs.append((times * heavy, times * light))
            profiles.append(profile_of_weights(pairs, self.total, step, MOST_LOSSES - 1))
            work += len(pairs) + len(profiles[-1].values)
            if work > MOST_COMPARED:
                return self.rough_profile(sensitivity, step)
        return largest(profiles)

    def rough_profile(self, sensitivity: Sensitivity, step: Fraction) -> Profile:
        """An upper bound of :meth:`profile` from δ at the places 0, 1, 4, 16 and so on."""
        points: list[tuple[int, Fraction]] = []
        place = 0
        while place < MOST_LOSSES and place * step <= MAX_EPSILON:
            delta = self.deltas_at_ratio(sensitivity, ratio_below(step, place)).approximate
            points.append((place, delta))
            # A profile falls: once it is 0 it stays 0, and the last value stands for all larger ε.
            if delta == 0:
                break
            place = 4 * place or 1
        return profile_of_points(points, step)

    def satisfies(self, sensitivity: Sensitivity, guarantee: Guarantee, ratio: Fraction) -> bool:
        """Whether the guarantee is satisfied when e^ε is replaced by ``ratio``."""
        deltas = self.deltas_at_ratio(sensitivity, ratio)
        return deltas.under(guarantee.definition) <= guarantee.delta

    def ratio_everywhere(self) -> Fraction | None:
        """The largest ratio of two masses of one published answer; None where there is none.

        Its logarithm is the ε for which any answer may turn into any other.
        """
        rows = np.stack(list(map(self.row, range(self.answers))))
        largest = Fraction(1)
        for least, most in zip(rows.min(axis=0).tolist(), rows.max(axis=0).tolist(), strict=True):
            # An answer that is never published reveals nothing.
            if most and not least:
                return None
            if most:
                largest = max(largest, Fraction(most, least))
        return largest

    def epsilon_everywhere(self) -> Decimal | None:
        """An ε for which any answer may turn into any other, or a little more; None without one."""
        ratio = self.ratio_everywhere()
        if ratio is None:
            return None
        # decimal rounds ln correctly, so a verifier on another machine gets the same digits.
        context = Context(prec=40)
        return context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(context)

    def is_constant(self) -> bool:
        """Whether the published answer never depends on the true one."""
        first = self.row(0)
        return all(np.array_equal(self.row(code), first) for code in range(1, self.answers))

    def expected_loss(self, loss: Loss, domain: Domain) -> Fraction:
        """The expected loss under the uniform prior over the true answers.

        Raises:
            ValueError: the loss is not one of this domain's answers.
        """
        weighted = 0
        for code in range(self.answers):
            weighted += _weighted(self.row(code), costs_at(loss, domain, code))
        return Fraction(weighted, self.answers * self.total * loss.denominator_at_answers)

    def objective(self, loss: Loss | WorstCaseLoss, domain: Domain) -> Fraction:
        """The expected loss under the prior of ``loss``, or at its worst true answer.

        Raises:
            ValueError: the loss is not one of this domain's answers.
        """
        if isinstance(loss, WorstCaseLoss):
            return self.worst_loss(loss.plain, domain)[1]
        if loss.prior is None:
            return self.expected_loss(loss, domain)
        losses = self._expected_losses(loss, domain)
        weighted = (share * own for share, own in zip(loss.prior, losses, strict=True))
        return sum(weighted, Fraction(0))

    def chance_within(self, domain: Domain, radius: int) -> Fraction:
        """The chance, under the uniform prior, that each part is at most ``radius`` codes off."""
        near = 0
        for code in range(self.answers):
            within = (_distances(domain, code) <= radius).all(axis=0)
            near += int(self.row(code)[within].sum())
        return Fraction(near, self.answers * self.total)

    def error_at(self, domain: Domain, code: int) -> Fraction:
        """The expected absolute error in codes where ``code`` is true; those of parts add up."""
        off = _distances(domain, code).sum(axis=0)
        return Fraction(_weighted(self.row(code), off), self.total)

    def expected_loss_at(self, loss: Loss, domain: Domain, code: int) -> Fraction:
        """The expected loss where ``code`` is the true answer."""
        weighted = _weighted(self.row(code), costs_at(loss, domain, code))
        return Fraction(weighted, self.total * loss.denominator_at_answers)

    def worst_loss(self, loss: Loss, domain: Domain) -> tuple[int, Fraction]:
        """The true answer with the largest expected loss, the first of several, and that loss."""
        losses = self._expected_losses(loss, domain)
        worst = max(losses)
        return losses.index(worst), worst

    def _expected_losses(self, loss: Loss, domain: Domain) -> list[Fraction]:
        """:meth:`expected_loss_at` of every true answer."""
        return list(map(partial(self.expected_loss_at, loss, domain), range(self.answers)))

    @property
    def modular_noise(self) -> Pmf | None:
        """The pmf on the group that is added to every true answer; None where there is none."""
        return None

    def concentration(self) -> float:
        """The largest √Σ_o P(o|q)² over the true answers q, or more."""
        rows = map(self.probabilities, range(self.answers))
        return max(float(np.sqrt((row**2).sum())) for row in rows)

    def draw(self, answers: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """One published code for each true code, independently, with exactly its probability.

        Each cell takes as many bits of the source as any other, in the order of the cells, so that
        how many bits are drawn reveals no true answer.

        Raises:
            ValueError: a code is outside the domain, or a total above 2^62.
        """
        check_codes(answers, self.answers)
        return draw_codes(answers, self.row, self.total, source)

    def probabilities(self, code: int) -> Floats:
        """The row of ``code`` as probabilities, rounded: for pictures and solvers, not proofs."""
        return shares(self.row(code), self.total)

    def probabilities_near(self, code: int, first: int, stop: int) -> Floats:
        """Those of the published answers ``first`` to ``stop`` - 1 of :meth:`probabilities`."""
        return self.probabilities(code)[first:stop]

    def likelihood_of(self, code: int) -> Floats:
        """P(``code`` is published | true answer), rounded; shape (answers,)."""
        column = np.zeros(self.answers, dtype=object)
        for true in range(self.answers):
            column[true] = self.row(true)[code]
        return shares(column, self.total)

    def narrowed(self, codes: Codes) -> tuple[Mechanism, Codes]:
        """The same mechanism on fewer answers, and the code there of each of ``codes``.

        A true answer as far from the new code as from the old one has the same chance to be
        published as it, to about 12 digits. The answers that are gone have no chance that counts.
        """
        return self, codes

    def neighboring_rows(self, sensitivity: Sensitivity, most: int) -> tuple[Floats, Floats] | None:
        """The probabilities of neighboring true answers side by side; shapes (pairs, answers).

        None where there is no pair, or where these are more than ``most`` numbers.
        """
        pairs = sensitivity.pairs(self.answers)
        if not pairs or len(pairs) * self.answers > most:
            return None
        rows = np.stack(list(map(self.probabilities, range(self.answers))))
        true, neighbor = np.array(pairs).T
        return rows[true], rows[neighbor]


def check_codes(answers: Codes, size: int) -> None:
    """Refuse codes outside a domain of ``size``.

    Raises:
        ValueError: a code is outside; the message holds none, for they are confidential.
    """
    if not ((answers >= 0) & (answers < size)).all():
        raise ValueError("an answer code is outside the domain")


def _distances(domain: Domain, code: int) -> Codes:
    """How far each published answer is from ``code``, part by part; shape (parts, answers)."""
    group = domain.group
    published = group.coordinates(np.arange(domain.size, dtype=np.int64))
    true = map(int, group.coordinates(code))
    return np.stack(list(map(distance, domain.parts, published, true)))


def _weighted(weights: NDArray[Any], costs: Codes) -> int:
    """Σ weight·cost; a product of two 64-bit integers would overflow."""
    return int((weights.astype(object) * costs.astype(object)).sum())


def shares(weights: NDArray[Any], total: int) -> Floats:
    """The weights over their total, each rounded correctly, as Python divides integers."""
    return np.asarray(weights.astype(object) / total, dtype=np.float64)
