"""Noise on the integers for answers in order: added, clamped to the answers, and remapped.

Nothing wraps round, and there is no matrix: the mechanism is its noise, the number of answers, and
two short tables that say what is published in place of the outcomes near either end. Clamping and
remapping see the noisy answer only, so pure and approximate guarantees pass through them unchanged
(docs/design/mathematics.md 2.16). A probabilistic δ > 0 does not; none is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.composition.profile import Profile
from release.exact.domain import Codes
from release.exact.integers.noise import DIGITS, IntegerNoise, Run, Tail, merged, width_of
from release.exact.integers.outcomes import MOST_LISTED, Outcomes, listed_answers
from release.exact.integers.profile import comparisons, exact_profile, grouped_profile, is_cheap
from release.exact.losses import Loss, power_of
from release.exact.mechanism import Domain, Floats, Mechanism, check_codes
from release.exact.numbers import exp_bounds
from release.exact.privacy import Deltas
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.sensitivity import Pair, Sensitivity


@dataclass(frozen=True)
class IntegerMechanism(Mechanism):
    """``low`` and ``high`` say how far from the outcomes near an end the published answers are.

    Each is a table of runs: how many outcomes, and what is added to them. Those of ``low`` begin at
    the outcome 0, those of ``high`` end at the last. Every other outcome is published as itself.
    Of more than :data:`MOST_LISTED` answers a table reads and publishes only the half of so many
    that are nearest to its end.

    Raises:
        ValueError: fewer than 2 answers, tables longer than the answers, an answer outside, or
            more than a table may read or publish.
    """

    family = "integer"
    tolerance = Fraction(1, 10**9)

    noise: IntegerNoise
    size: int
    low: tuple[Run, ...] = ()
    high: tuple[Run, ...] = ()
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.noise.total)
        if self.size < 2:
            raise ValueError("a mechanism needs two answers or more")
        for length, _ in (*self.low, *self.high):
            if length < 1:
                raise ValueError("a table of an end needs runs of 1 or more outcomes")
        if self.low_length + self.high_length > self.size:
            raise ValueError("the tables of the ends are longer than the answers")
        for first, last, shift in self._shifts():
            if not (first + shift >= 0 and last + shift < self.size):
                raise ValueError("a table of an end publishes what is no answer")
        # A table is one line of a file, but its figures take memory for all that it reaches.
        if self.size > MOST_LISTED and self._reach > MOST_LISTED // 2:
            raise ValueError("a table of an end reaches too far from that end")
        # One form of each mechanism: a table ends where nothing is added.
        if self.low and not self.low[-1][1]:
            object.__setattr__(self, "low", self.low[:-1])
        if self.high and not self.high[0][1]:
            object.__setattr__(self, "high", self.high[1:])

    @property
    def low_length(self) -> int:
        """How many outcomes the table of the lowest has."""
        return width_of(self.low)

    @property
    def high_length(self) -> int:
        """How many outcomes the table of the highest has."""
        return width_of(self.high)

    def _shifts(self) -> Iterator[tuple[int, int, int]]:
        """First and last outcome of each run of the tables, and what is added to them."""
        for start, table in ((0, self.low), (self.size - self.high_length, self.high)):
            first = start
            for length, shift in table:
                yield first, first + length - 1, shift
                first += length

    @property
    def _reach(self) -> int:
        """How many outcomes from its end the table of an end reads or publishes, at most."""
        reach = max(self.low_length, self.high_length)
        # A table may publish what lies farther in than all that it reads.
        for first, last, shift in self._shifts():
            is_low = first < self.low_length
            reach = max(reach, last + shift + 1 if is_low else self.size - first - shift)
        return reach

    @classmethod
    def of_law(cls, domain: Domain, law: Any) -> IntegerMechanism:
        """The mechanism on the answers of ``domain`` that a public law is; see :meth:`law`.

        Raises:
            ValueError, OverflowError: the integers are no mechanism on these answers.
        """
        low = tuple((length, shift) for length, shift in law.ends.low)
        high = tuple((length, shift) for length, shift in law.ends.high)
        return cls(IntegerNoise.of_law(law.noise), domain.size, low, high)

    def law(self) -> forms.IntegersLaw:
        """As :meth:`Mechanism.law`."""
        low, high = ([list(run) for run in merged(table)] for table in (self.low, self.high))
        ends = forms.Shifts(low, high)
        return forms.IntegersLaw(forms.MECHANISM, "integers", self.noise.law(), ends)

    def sentence(self, sensitivity: Sensitivity) -> str:
        """As :meth:`Mechanism.sentence`."""
        ends = "clamped and remapped" if self.low or self.high else "clamped"
        farthest = max(sensitivity.distances or (0,))
        return (
            f"Noise on the integers, {ends} to {self.size} answers in order, proved for neighbors "
            f"up to {farthest} apart"
        )

    @property
    def answers(self) -> int:
        """The number of answers."""
        return self.size

    def published(self, outcomes: Codes) -> Codes:
        """What is published for each outcome."""
        answers = outcomes.copy()
        for first, last, shift in self._shifts():
            answers += np.where((outcomes >= first) & (outcomes <= last), shift, 0)
        return answers

    def draw(self, answers: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """As :meth:`Mechanism.draw`."""
        check_codes(answers, self.size)
        noise, last = self.noise.draw(answers.size, source), self.size - 1
        # Compared before they are added: a sum could leave 64 bits.
        above, below = noise >= last - answers, noise <= -answers
        inside = answers + np.where(above | below, 0, noise)
        return self.published(np.where(above, last, np.where(below, 0, inside)))

    def deltas_at_ratio(self, sensitivity: Sensitivity, ratio: Fraction) -> Deltas:
        """As :meth:`Mechanism.deltas_at_ratio`, of the noise; clamping can only lower it.

        Where δ is above 0 the probabilistic one is not known, and 1 stands for it.

        Raises:
            ValueError: the sensitivity does not say how far apart answers are on the line.
        """
        if sensitivity.distances is None:
            raise ValueError("noise on the integers needs the distances of neighboring answers")
        return _after_clamping(self.noise.deltas(sensitivity.distances, ratio))

    def loses_in_proportion(self, sensitivity: Sensitivity, epsilon: Fraction) -> bool:
        """As :meth:`Mechanism.loses_in_proportion`: one step alone loses its part."""
        farthest = max(sensitivity.distances or (1,))
        part = exp_bounds(epsilon / farthest)[0]
        return self.noise.deltas((1,), part).approximate == 0

    def deltas_of_pairs(self, pairs: Iterable[Pair], ratio: Fraction) -> Deltas:
        """As :meth:`Mechanism.deltas_of_pairs`."""
        steps = {abs(true - neighbor) for true, neighbor in pairs}
        return _after_clamping(self.noise.deltas(steps, ratio))

    def profile(self, sensitivity: Sensitivity, step: Fraction) -> Profile:
        """As :meth:`Mechanism.profile`, of the noise; clamping and remapping can only lower it.

        Of unimodal noise the largest distance has the largest profile. Where that distance is many
        periods of a geometric tail, the loss of one period as often as it takes is a pure bound.

        Raises:
            ValueError: the sensitivity does not say how far apart answers are on the line.
        """
        if sensitivity.distances is None:
            raise ValueError("noise on the integers needs the distances of neighboring answers")
        farthest = max(sensitivity.distances, default=0)
        if not is_cheap(self.noise, sensitivity.distances):
            grouped = grouped_profile(self.noise, farthest, step)
            return grouped or self.rough_profile(sensitivity, step)
        return exact_profile(self.noise, sensitivity.distances, step)

    def comparisons(self, sensitivity: Sensitivity) -> int:
        """As :meth:`Mechanism.comparisons`: stretches of equal masses, for each distance."""
        return comparisons(self.noise, sensitivity.distances or ())

    def epsilon_everywhere(self) -> Decimal | None:
        """As :meth:`Mechanism.epsilon_everywhere`, of the noise: at most so much after clamping."""
        losses = []
        if not self.noise.is_unimodal():
            return None
        for side in (self.noise, self.noise.mirrored):
            tail = side.right
            if tail is None:
                return None
            # Every mass is compared with the one n further out, which lies so many periods beyond.
            for first, length, mass in side._pieces:
                far = first + length - 1 + self.size - 1
                periods = max(0, -(-(far - side.high) // tail.period))
                there = side.mass(far - periods * tail.period)
                if mass and not there:
                    return None
                if mass:
                    ratio = mass / there
                    rough = math.log(ratio.numerator) - math.log(ratio.denominator)
                    losses.append((rough - periods * tail.log, ratio, periods, tail))
        # Logarithms of many digits take long: only of what may be the largest.
        most = max(rough for rough, *_ in losses)
        candidates = []
        for rough, ratio, periods, tail in losses:
            if rough >= most - 1e-9 * max(1.0, most):
                candidates.append(_exact_loss(ratio, periods, tail))
        return max(candidates)

    def is_constant(self) -> bool:
        """Whether the tables publish one answer for every outcome."""
        if self.low_length + self.high_length < self.size - 1:
            return False
        every = self.published(np.arange(self.size, dtype=np.int64))
        return bool((every == every[0]).all())

    @cached_property
    def outcomes(self) -> Outcomes:
        """The outcomes near the ends, all others being alike; see :meth:`listed`."""
        least = min(self.size, 2 * self._reach + 1)
        return Outcomes(self.noise, max(least, listed_answers(self.noise, self.size, self._reach)))

    @cached_property
    def listed(self) -> Codes:
        """What is published for each of :attr:`outcomes`, as codes of that smaller domain."""
        codes = np.arange(self.outcomes.answers, dtype=np.int64)
        gone = self.size - codes.size
        # The middle is left out, so the table of the highest outcomes moves down by its length.
        for first, last, shift in self._shifts():
            start = first if first < self.size - self.high_length or not gone else first - gone
            codes[start : start + last - first + 1] += shift
        return codes

    def mean(self, sums: Floats) -> Fraction:
        """The mean over the true answers, from a sum for each of :attr:`outcomes`."""
        alike = self.size - sums.size
        # The outcome in the middle of the list stands for all that are left out of it.
        return Fraction(float(sums.sum() + alike * sums[sums.size // 2])) / self.size

    def expected_loss(self, loss: Loss, domain: Domain) -> Fraction:
        """As :meth:`Mechanism.expected_loss`, to about 12 digits."""
        return self.mean(self.outcomes.losses(power_of(loss), self.listed))

    def chance_within(self, domain: Domain, radius: int) -> Fraction:
        """As :meth:`Mechanism.chance_within`, to about 12 digits."""
        return min(Fraction(1), self.mean(self.outcomes.within(radius, self.listed)))

    def error_at(self, domain: Domain, code: int) -> Fraction:
        """As :meth:`Mechanism.error_at`, to about 12 digits."""
        return self.loss_at(1, code)

    def loss_at(self, power: int, code: int) -> Fraction:
        """The expected |error|^``power`` where ``code`` is true, to about 12 digits."""
        listed = self._listed_code(code)
        return Fraction(float(self.outcomes.losses_at(power, self.listed, np.array([listed]))[0]))

    def expected_loss_at(self, loss: Loss, domain: Domain, code: int) -> Fraction:
        """As :meth:`Mechanism.expected_loss_at`, to about 12 digits."""
        return self.loss_at(power_of(loss), code)

    def worst_loss(self, loss: Loss, domain: Domain) -> tuple[int, Fraction]:
        """As :meth:`Mechanism.worst_loss`, to about 12 digits."""
        return self.worst(power_of(loss))

    def worst(self, power: int) -> tuple[int, Fraction]:
        """The true answer of the largest expected |error|^``power``, and that loss."""
        code, loss = self.outcomes.worst(power, self.listed)
        # Codes of the upper half were moved down by the length of the middle.
        gone = self.size - self.outcomes.answers
        return code + (gone if code > self.outcomes.answers // 2 else 0), Fraction(loss)

    def _listed_code(self, code: int) -> int:
        """The code of the smaller domain of :attr:`outcomes` that fares as ``code`` does."""
        _, narrow = self.narrowed(np.array([code], dtype=np.int64))
        return int(narrow[0])

    def row(self, code: int) -> NDArray[Any]:
        """As :meth:`Mechanism.row`, rounded to the total: a tail has no common denominator."""
        weights = np.floor(self.probabilities(code) * float(self.total)).astype(np.int64)
        # Every row of a mechanism adds up to the total: its mode gets what the floors leave.
        weights[int(weights.argmax())] += self.total - int(weights.sum())
        return weights

    def likelihoods(self) -> Iterator[list[int]]:
        """As :meth:`Mechanism.likelihoods`, with 60 decimal places."""
        last, one = self.size - 1, 10**60
        up, down = map(self._tail_in_digits, (self.noise, self.noise.mirrored))
        # P(η ≥ n) for n = -last … size, and the masses between.
        above = [one - beyond for beyond in reversed(down)] + up
        masses = [more - less for more, less in pairwise(above)]

        def weights_of(outcome: int) -> list[int]:
            if outcome == 0:
                return [one - up[0], *down[:-1]]
            across = above[last:-1] if outcome == last else masses[outcome : outcome + self.size]
            return across[::-1]

        every = self.published(np.arange(self.size, dtype=np.int64))
        for code in range(self.size):
            columns = [weights_of(outcome) for outcome in np.flatnonzero(every == code).tolist()]
            yield reduce(_added, columns) if columns else [0] * self.size

    def _tail_in_digits(self, noise: IntegerNoise) -> list[int]:
        """P(η ≥ n) in units of 10^-60, for n = 1 … size."""
        tail = [0] * self.size
        for above in range(self.size):
            tail[above] = int(noise.above_in_digits(above).scaleb(60, DIGITS))
            # A wide domain has little else than what no place of 60 shows.
            if not tail[above]:
                break
        return tail

    def probabilities(self, code: int) -> Floats:
        """As :meth:`Mechanism.probabilities`."""
        outcomes = Outcomes(self.noise, self.size)
        every = np.arange(self.size, dtype=np.int64)
        row = np.bincount(self.published(every), outcomes.row(code), self.size)
        return np.asarray(row, dtype=np.float64)

    def table(self) -> Floats:
        """P(published | true) of all answers, shape (true answers, published); their square."""
        outcomes = Outcomes(self.noise, self.size)
        published = self.published(np.arange(self.size, dtype=np.int64))
        rows = []
        for code in range(self.size):
            rows.append(np.bincount(published, outcomes.row(code), self.size))
        return np.stack(rows)

    def probabilities_near(self, code: int, first: int, stop: int) -> Floats:
        """As :meth:`Mechanism.probabilities_near`; of over 10^6 answers only far from both ends."""
        if self.size <= 10**6:
            return super().probabilities_near(code, first, stop)
        reach = max(abs(first - code), abs(stop - 1 - code))
        masses = Outcomes(self.noise, reach + 1).masses
        return masses[first - code + reach : stop - code + reach]

    def likelihood_of(self, code: int) -> Floats:
        """As :meth:`Mechanism.likelihood_of`."""
        whole = Outcomes(self.noise, self.size)
        every = np.arange(self.size, dtype=np.int64)
        likelihood = np.zeros(self.size)
        for outcome in np.flatnonzero(self.published(every) == code).tolist():
            if outcome in (0, self.size - 1):
                likelihood += whole.at_highest if outcome else whole.at_lowest
            else:
                # P(outcome | q) = f(outcome - q).
                likelihood += whole.masses[outcome : outcome + self.size][::-1]
        return likelihood

    def narrowed(self, codes: Codes) -> tuple[IntegerMechanism, Codes]:
        """As :meth:`Mechanism.narrowed`: all answers beyond the reach of both ends are alike."""
        size = self.outcomes.answers
        if size == self.size:
            return self, codes
        half, gone = size // 2, self.size - size
        narrow = np.where(codes <= half, codes, np.maximum(half, codes - gone))
        return IntegerMechanism(self.noise, size, self.low, self.high), narrow

    def neighboring_rows(self, sensitivity: Sensitivity, most: int) -> tuple[Floats, Floats] | None:
        """As :meth:`Mechanism.neighboring_rows`, of the noise, for the largest distance."""
        step = max(sensitivity.distances or (0,))
        reach = listed_answers(self.noise, most)
        if not step or step >= reach:
            return None
        masses = Outcomes(self.noise, reach).masses
        lower, upper = masses[:-step], masses[step:]
        return np.stack([lower, upper]), np.stack([upper, lower])

    def concentration(self) -> float:
        """As :meth:`Mechanism.concentration`; what the tables merge counts as one outcome."""
        outcomes, last = self.outcomes, self.outcomes.answers - 1
        squares = np.concatenate([[0.0], np.cumsum(outcomes.masses**2)])
        q, published = np.arange(last + 1), self.listed
        # The chances of the outcomes 0..a and of those from b on, for every true answer; what is
        # published for the others is theirs alone.
        a = max(self.low_length - 1, *published[: self.low_length].tolist(), 0)
        high = published[last + 1 - self.high_length :].tolist()
        b = min(last - max(0, self.high_length - 1), *high, last)
        if a >= b:
            return 1.0
        sums = np.concatenate([[0.0], np.cumsum(outcomes.masses)])
        low = outcomes.at_lowest + sums[a - q + last + 1] - sums[last + 1 - q]
        high = outcomes.at_highest + sums[2 * last - q] - sums[b - q + last]
        inside = squares[b - q + last] - squares[a + 1 - q + last]
        return float(np.sqrt((inside + low**2 + high**2).max()))


def _added(first: list[int], second: list[int]) -> list[int]:
    return [one + two for one, two in zip(first, second, strict=True)]


def _after_clamping(deltas: Deltas) -> Deltas:
    # Merging outcomes can raise a probabilistic δ above 0, and nothing but 1 is sure to bound it
    # (docs/design/mathematics.md, 2.16). Where δ is 0 it stays 0.
    return deltas if deltas.approximate == 0 else Deltas(Fraction(1), deltas.approximate)


def _exact_loss(ratio: Fraction, periods: int, tail: Tail) -> Decimal:
    """ln(``ratio``) less ``periods`` times the logarithm of the tail's ratio."""
    # Each operation of decimal rounds correctly, so every machine gets the same 40 digits.
    context = Context(prec=40)
    beside = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    step = context.ln(context.divide(Decimal(tail.ratio), Decimal(2**64)))
    return context.subtract(context.ln(beside), context.multiply(periods, step))
