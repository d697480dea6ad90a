"""How far off answers in order are once noise on the integers was added and the ends were treated.

True answers are 0..n. Noise is added and the sum clamped to 0..n: the *outcome*. Each outcome is
published as some answer, most of them as themselves. Everything here is in floats, within about
10⁻¹² of the exact values and in time that grows with n: no figure of it enters a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise

Floats: TypeAlias = NDArray[np.float64]

MOST_LISTED = 1 << 22
"""Of a wider domain only so many answers are looked at, half of them near each end."""

_MOST_TERMS = 1 << 24
"""Terms that the loss at every true answer may take; beyond, answers are picked evenly."""

_NEGLIGIBLE = 50.0
"""Beyond so many factors of e noise adds nothing to a figure of 12 digits."""


def listed_answers(noise: IntegerNoise, answers: int, tables: int = 0) -> int:
    """How many of ``answers`` have to be looked at: all, or those within reach of an end.

    ``tables`` is how many outcomes at an end have a table.
    """
    reach = 1
    for side in (noise, noise.mirrored):
        periods = 0
        if side.right is not None:
            periods = int(_NEGLIGIBLE / -side.right.log) + 1
        reach = max(reach, side.high + periods * (side.right.period if side.right else 0))
    return min(answers, 2 * (reach + tables) + 2, MOST_LISTED)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Noise on ``answers`` answers in order; true answers are equally likely where it matters."""

    noise: IntegerNoise
    answers: int

    @cached_property
    def masses(self) -> Floats:
        """The masses of the noise -n, …, 0, …, n; shape (2n + 1,)."""
        below = self.noise.mirrored.probabilities(self.answers)[:0:-1]
        return np.concatenate([below, self.noise.probabilities(self.answers)])

    @cached_property
    def _sums(self) -> tuple[Floats, ...]:
        """Cumulative sums of the masses times 1, η and η², each with a leading 0."""
        noise = np.arange(1 - self.answers, self.answers, dtype=np.float64)
        sums = []
        for power in range(3):
            sums.append(np.concatenate([[0.0], np.cumsum(self.masses * noise**power)]))
        return tuple(sums)

    @cached_property
    def at_lowest(self) -> Floats:
        """The chance that a true answer q ends at the lowest, for each q; shape (answers,)."""
        return _from(self.noise.mirrored, self.answers)

    @cached_property
    def at_highest(self) -> Floats:
        """The chance that a true answer q ends at the highest, for each q; shape (answers,)."""
        return _from(self.noise, self.answers)[::-1]

    def _between(self, power: int, low: Codes, high: Codes) -> Floats:
        """Σ of mass times η^``power`` over the noise ``low``..``high``; 0 where there is none."""
        sums, n = self._sums[power], self.answers - 1
        low, high = np.clip(low, -n, n + 1), np.clip(high, -n - 1, n)
        return np.where(low <= high, sums[high + n + 1] - sums[np.minimum(low, high + 1) + n], 0.0)

    def _moments(self, most: int, low: Codes, high: Codes) -> list[Floats]:
        """As :meth:`_between` for the powers 0 to ``most``."""
        return [self._between(power, low, high) for power in range(most + 1)]

    @cached_property
    def _inner(self) -> Codes:
        return np.arange(1, self.answers - 1, dtype=np.int64)

    def losses(self, power: int, published: Codes) -> Floats:
        """For each outcome Σ_q P(outcome | q)·|published - q|^``power``; shape (answers,)."""
        inner, last = self._inner, self.answers - 1
        # Outcome o is reached from q = o - η, so published - q is η + moved.
        moved = published[1:-1] - inner
        low, high = inner - last, inner
        if power == 2:
            chance, mean, square = self._moments(2, low, high)
            costs = square + 2.0 * moved * mean + moved.astype(np.float64) ** 2 * chance
        elif power == 1:
            chance, mean = self._moments(1, low, high)
            # Where η + moved is negative, its negative is the error.
            chance_above, mean_above = self._moments(1, np.maximum(-moved, low), high)
            chance_below, mean_below = chance - chance_above, mean - mean_above
            costs = mean_above + moved * chance_above - mean_below - moved * chance_below
        else:
            right = np.where((-moved >= low) & (-moved <= high), self.masses[last - moved], 0.0)
            costs = self._between(0, low, high) - right
        ends = []
        for chances, answer in ((self.at_lowest, published[0]), (self.at_highest, published[-1])):
            ends.append(float(chances @ _cost(np.arange(self.answers) - answer, power)))
        return np.concatenate([ends[:1], costs, ends[1:]])

    def within(self, radius: int, published: Codes) -> Floats:
        """For each outcome Σ_q P(outcome | q) over the q at most ``radius`` from the published."""
        inner, last = self._inner, self.answers - 1
        moved = published[1:-1] - inner
        low = np.maximum(inner - last, -radius - moved)
        chances = self._between(0, low, np.minimum(inner, radius - moved))
        ends = []
        for chance, answer in ((self.at_lowest, published[0]), (self.at_highest, published[-1])):
            first, stop = max(0, int(answer) - radius), int(answer) + radius + 1
            ends.append(float(chance[first:stop].sum()))
        return np.concatenate([ends[:1], chances, ends[1:]])

    def best(self, power: int) -> Codes:
        """The answer of least expected |error|^``power`` for each outcome; shape (answers,)."""
        inner, last = self._inner, self.answers - 1
        if power == 2:
            best_at_end = _mean_answer
            # The mean, rounded.
            offset = self._between(1, inner - last, inner) / np.maximum(
                self._between(0, inner - last, inner), np.finfo(float).tiny
            )
            middle = inner - _rounded(offset)
        elif power == 1:
            best_at_end = _median_answer
            sums = self._sums[0]
            halves = (sums[inner + last + 1] + sums[inner]) / 2
            # The median of q = o - η: half of the mass lies above that noise.
            middle = inner - (np.searchsorted(sums, halves * (1 + 1e-13), side="left") - last - 1)
        else:
            best_at_end = _likeliest_answer
            middle = inner
        lowest, highest = best_at_end(self.at_lowest), best_at_end(self.at_highest)
        whole = np.concatenate([[lowest], middle, [highest]])
        return np.asarray(np.clip(whole, 0, last), dtype=np.int64)

    def losses_at(self, power: int, published: Codes, codes: Codes) -> Floats:
        """The expected |error|^``power`` at each of the true answers ``codes``."""
        losses = [self.row(q) @ _cost(published - q, power) for q in codes.tolist()]
        return np.array(losses, dtype=np.float64)

    def row(self, code: int) -> Floats:
        """The chance of each outcome where ``code`` is true; shape (answers,)."""
        last = self.answers - 1
        row = self.masses[last - code : 2 * last - code + 1].copy()
        row[0], row[-1] = self.at_lowest[code], self.at_highest[code]
        return row

    def worst(self, power: int, published: Codes) -> tuple[int, float]:
        """The true answer with the largest expected loss, and that loss.

        Of very many answers some are looked at, picked evenly, both ends among them.
        """
        picked = max(2, min(self.answers, _MOST_TERMS // self.answers))
        codes = np.unique(np.linspace(0, self.answers - 1, picked).astype(np.int64))
        losses = self.losses_at(power, published, codes)
        place = int(losses.argmax())
        return int(codes[place]), float(losses[place])


def _from(noise: IntegerNoise, answers: int) -> Floats:
    """P(noise ≥ k) for k = 0, …, ``answers`` - 1."""
    masses = noise.probabilities(answers)[::-1]
    # From the far end, where masses are small, so that small sums keep their digits.
    return np.asarray((noise.above(answers - 1) + np.cumsum(masses))[::-1])


def _mean_answer(chances: Floats) -> int:
    """The true answer of least expected squared error; ``chances`` need not add up to 1."""
    true = np.arange(chances.size, dtype=np.float64)
    return int(_rounded(np.array(chances @ true / chances.sum())))


def _median_answer(chances: Floats) -> int:
    """The true answer of least expected absolute error."""
    return int(np.searchsorted(np.cumsum(chances), chances.sum() / 2))


def _likeliest_answer(chances: Floats) -> int:
    """The true answer of the least error rate."""
    return int(chances.argmax())


def _cost(error: Codes, power: int) -> Floats:
    off = np.abs(error).astype(np.float64)
    return np.minimum(off, 1.0) if power == 0 else off**power


def _rounded(values: Floats) -> Codes:
    # Half a step to the nearer of two equally good answers: any would do.
    return np.asarray(np.floor(values + 0.5), dtype=np.int64)
