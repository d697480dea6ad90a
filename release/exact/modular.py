"""Modular noise: one pmf on the group of the answers, added to every true answer alike.

The published answer is the true one plus the noise in the group, so answers in order can wrap round
from one end to the other. Source: Kadam et al. 2024, (4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.domain import AnswerDomain, Codes, JointDomain
from release.exact.losses import Loss, WorstCaseLoss, line_fits, power_of, probability_within
from release.exact.mechanism import Mechanism, check_codes
from release.exact.pmf import Pmf
from release.exact.privacy import Deltas, deltas_at_ratio
from release.exact.sampling import SYSTEM, RandomBytes, draw_noise
from release.exact.sensitivity import Sensitivity


@dataclass(frozen=True)
class Modular(Mechanism):
    """The mechanism that adds noise of ``pmf``."""

    family = "modular"

    pmf: Pmf
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.pmf.total)

    @classmethod
    def of_law(cls, domain: AnswerDomain | JointDomain, law: Any) -> Modular:
        """The mechanism on the answers of ``domain`` that a public law is; see :meth:`law`.

        Raises:
            ValueError, OverflowError: the integers are no mechanism on these answers.
        """
        total = sum(law.weights)
        # Weights beyond 64 bits are held as Python's integers.
        dtype: Any = np.int64 if total <= 2**62 else object
        return cls(Pmf(domain.group, np.array(law.weights, dtype=dtype), total))

    def law(self) -> forms.ModularLaw:
        """As :meth:`Mechanism.law`."""
        return forms.ModularLaw(forms.MECHANISM, "modular", self.pmf.weights.tolist())

    def sentence(self, sensitivity: Sensitivity) -> str:
        """As :meth:`Mechanism.sentence`."""
        sizes = " × ".join(str(size) for size in self.pmf.group.moduli)
        differences = len(sensitivity.shifts)
        return f"Modular noise: one pmf on {sizes} answers, proved for {differences} differences"

    @property
    def answers(self) -> int:
        """The size of the group."""
        return self.pmf.group.size

    @property
    def modular_noise(self) -> Pmf:
        """The pmf: it is the same for every true answer."""
        return self.pmf

    def row(self, code: int) -> NDArray[Any]:
        """As :meth:`Mechanism.row`: the pmf moved on by ``code``."""
        group = self.pmf.group
        # P(r | q) = f(r - q).
        return np.asarray(self.pmf.weights[group.moved(group.negative(group.shift(code)))])

    def deltas_at_ratio(self, sensitivity: Sensitivity, ratio: Fraction) -> Deltas:
        """As :meth:`Mechanism.deltas_at_ratio`: every pair with one difference has the same δ."""
        return deltas_at_ratio(self.pmf, sensitivity, ratio)

    def comparisons(self, sensitivity: Sensitivity) -> int:
        """As :meth:`Mechanism.comparisons`: one pair stands for all with its difference."""
        return len(sensitivity.shifts) * self.answers

    def compared(self, sensitivity: Sensitivity) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """As :meth:`Mechanism.compared`: one pair for each difference and its negative."""
        weights = self.pmf.weights
        for shift in sensitivity.shifts:
            moved = weights[self.pmf.group.moved(shift)]
            yield weights, moved
            if sensitivity.directed:
                yield moved, weights

    def ratio_everywhere(self) -> Fraction | None:
        """As :meth:`Mechanism.ratio_everywhere`: the largest weight over the least."""
        # Every published answer has all the weights, each at another true answer.
        least, most = int(self.pmf.weights.min()), int(self.pmf.weights.max())
        return Fraction(most, least) if least else None

    def is_constant(self) -> bool:
        """Whether the noise is uniform."""
        return bool((self.pmf.weights == self.pmf.weights[0]).all())

    def expected_loss(self, loss: Loss, domain: AnswerDomain | JointDomain) -> Fraction:
        """As :meth:`Mechanism.expected_loss`; ``loss`` is averaged over the true answers."""
        return loss.of(self.pmf)

    def objective(self, loss: Loss | WorstCaseLoss, domain: AnswerDomain | JointDomain) -> Fraction:
        """As :meth:`Mechanism.objective`: the costs of the noise hold the prior, or all answers."""
        return loss.of(self.pmf)

    def worst_loss(self, loss: Loss, domain: AnswerDomain | JointDomain) -> tuple[int, Fraction]:
        """As :meth:`Mechanism.worst_loss`, to about 12 digits where answers have an order."""
        if not domain.has_order:
            return 0, self.expected_loss(loss, domain)
        if not line_fits(domain, loss):
            # Of a joint answer or a table of costs the ends are looked at.
            ends = (0, self.answers - 1)
            losses_at_ends = [self.expected_loss_at(loss, domain, code) for code in ends]
            worst = max(losses_at_ends)
            return ends[losses_at_ends.index(worst)], worst
        noise = np.arange(self.answers)
        masses, power = self.pmf.to_floats(), power_of(loss)
        costs = np.minimum(noise, 1) if power == 0 else noise.astype(np.float64) ** power
        # Noise η is an error of η for the answers that it does not wrap, and of N - η for others.
        unwrapped = np.cumsum(masses * costs)
        wrapped = np.cumsum((masses * np.roll(costs[::-1], 1))[::-1])
        losses = unwrapped[::-1] + np.concatenate([[0.0], wrapped[:-1]])
        code = int(losses.argmax())
        return code, Fraction(float(losses[code]))

    def chance_within(self, domain: AnswerDomain | JointDomain, radius: int) -> Fraction:
        """As :meth:`Mechanism.chance_within`."""
        return probability_within(self.pmf, domain.parts, radius)

    def concentration(self) -> float:
        """As :meth:`Mechanism.concentration`: every row has the same sum."""
        return float(np.sqrt((self.pmf.to_floats() ** 2).sum()))

    def draw(self, answers: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`Mechanism.draw`; totals have no bound.

        Above 2^62 a tie of the first bits takes some more: that depends on the noise alone.
        """
        check_codes(answers, self.answers)
        return self.pmf.group.plus(answers, draw_noise(self.pmf, answers.size, source))

    def likelihood_of(self, code: int) -> NDArray[np.float64]:
        """As :meth:`Mechanism.likelihood_of`."""
        true = np.arange(self.answers, dtype=np.int64)
        return self.pmf.to_floats()[self.pmf.group.minus(code, true)]

    def neighboring_rows(
        self, sensitivity: Sensitivity, most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """As :meth:`Mechanism.neighboring_rows`; one pair stands for all with its difference."""
        # P(r | q) = f(η) and P(r | q - μ) = f(η + μ), with η = r - q: the same for every q.
        shifts = sensitivity.shifts
        if not shifts or len(shifts) * self.answers > most:
            return None
        masses = self.pmf.to_floats()
        moved = np.stack([masses[self.pmf.group.moved(shift)] for shift in shifts])
        return np.broadcast_to(masses, moved.shape), moved
