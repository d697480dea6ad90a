"""A channel: a pmf over the published answers for each true answer, in exact integers.

Modular noise is one pmf that is moved round the answers. The error of a clamped, a truncated or an
optimal mechanism depends on the true answer, so it is a table with a row for each
(docs/design/format.md, ``rows`` and ``pairs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_release_verify import forms
from release.exact.domain import AnswerDomain, Codes, JointDomain
from release.exact.losses import COST_POWERS, Loss, LossName, line_fits
from release.exact.mechanism import Mechanism, shares
from release.exact.numbers import common_denominator
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import Definition, Deltas, Guarantee, largest_allowed
from release.exact.sensitivity import Pair

# Bits of the lower half of a weight; the upper halves of a row add up to 2^31 at most.
_HALF = 31


@dataclass(frozen=True, eq=False)
class Channel(Mechanism):
    """Row q holds the weights of the published answers when the true answer is q.

    ``rows`` has shape (true answers, published answers); each row adds up to ``total``.

    Raises:
        ValueError: a negative weight, a total that is no power of two or not that of some row.
    """

    family = "channel"

    rows: NDArray[Any]
    total: int

    def __post_init__(self) -> None:
        if self.rows.ndim != 2:
            raise ValueError("a channel needs a row for each true answer")
        if not (self.rows >= 0).all():
            raise ValueError("a weight is negative")
        if self.total < 2 or self.total & (self.total - 1):
            raise ValueError("the total is not a power of two")
        # Python integers: a forged file may hold weights whose 64-bit sum wraps round.
        if set(map(sum, self.rows.tolist())) - {self.total}:
            raise ValueError("the weights of a row do not add up to the total")
        self.rows.setflags(write=False)

    @classmethod
    def near(
        cls,
        masses: Sequence[Sequence[Fraction]] | Sequence[Sequence[int]],
        bits: int = DEFAULT_BITS,
        keep: Fraction | None = None,
    ) -> Channel:
        """The channel with about these shares of each row, rounded down to units of 2^-``bits``.

        What rounding leaves over goes to the heaviest outcome of each row. Rounding may break a
        ratio of two masses by a unit. Where no ratio of ``masses`` is above ``keep`` > 1, the rows
        are mixed with as little uniform noise as makes that true of the integers too.

        Raises:
            ValueError: a row without mass, or a ratio too near 1 for that many bits.
        """
        total, width = 2**bits, len(masses[0])
        if keep is not None:
            # Rounding moves a mass down by one unit and up by ``width`` units (the leftovers). The
            # uniform share s gives each mass s·total/width units, so that the slack of the ratio is
            # (keep - 1)·s·total/width units; this s makes it 2·width·(1 + keep).
            share = 2 * width**2 * (1 + keep) / ((keep - 1) * total)
            if not share < Fraction(1, 2):
                raise ValueError("the ratio to keep is too near 1 for this many bits; use more")
        else:
            share = Fraction(0)
        rows = np.zeros((len(masses), width), dtype=np.int64 if bits <= 62 else object)
        for row, row_masses in zip(rows, masses, strict=True):
            units = _units(row_masses)
            whole = sum(units)
            if not whole > 0:
                raise ValueError("a row of a channel has no mass")
            scale, floor = (1 - share) / whole * total, share / width * total
            # floor(unit·scale + floor) over one denominator, in integers alone.
            over = scale.denominator * floor.denominator
            up, more = scale.numerator * floor.denominator, floor.numerator * scale.denominator
            weights = [(unit * up + more) // over for unit in units]
            weights[weights.index(max(weights))] += total - sum(weights)
            row[:] = weights
        return cls(rows, total)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Channel:
        """The channel of these weights, a row for each true answer.

        Raises:
            ValueError: as the class says, or rows of different lengths.
        """
        total = sum(rows[0]) if rows else 0
        if len(set(map(len, rows))) != 1:
            raise ValueError("the rows of a channel have the same length")
        wide = np.array(rows, dtype=object)
        return cls(wide.astype(np.int64) if 0 < total <= 2**62 else wide, total)

    @classmethod
    def of_mechanism(cls, mechanism: Mechanism) -> Channel:
        """The rows of any mechanism, written out."""
        rows = np.stack(list(map(mechanism.row, range(mechanism.answers))))
        return cls(rows, mechanism.total)

    @classmethod
    def of_law(cls, domain: AnswerDomain | JointDomain, law: Any) -> Channel:
        """The mechanism that a public law is; see :meth:`law`.

        Raises:
            ValueError, OverflowError: the integers are no channel.
        """
        return cls.of(law.rows)

    def law(self) -> forms.ChannelLaw:
        """As :meth:`Mechanism.law`."""
        return forms.ChannelLaw(forms.MECHANISM, "channel", self.rows.tolist())

    @property
    def answers(self) -> int:
        """The number of true answers."""
        return int(self.rows.shape[0])

    def row(self, code: int) -> NDArray[Any]:
        """As :meth:`Mechanism.row`."""
        return np.asarray(self.rows[code])

    def deltas_of_pairs(self, pairs: Iterable[Pair], ratio: Fraction) -> Deltas:
        """As :meth:`Mechanism.deltas_of_pairs`; the largest weights allowed are computed once."""
        rows, ceilings = self.rows, largest_allowed(self.rows, self.total, ratio)
        probabilistic = approximate = Fraction(0)
        # A row below the least ceiling of every column is below those of all its neighbors.
        suspects = (rows > ceilings.min(axis=0)).any(axis=1).tolist()
        for true, neighbor in pairs:
            if not suspects[true]:
                continue
            violated = rows[true] > ceilings[neighbor]
            if violated.any():
                heavy = int(rows[true][violated].sum())
                light = int(rows[neighbor][violated].sum())
                probabilistic = max(probabilistic, Fraction(heavy, self.total))
                approximate = max(approximate, (heavy - ratio * light) / self.total)
        return Deltas(probabilistic, approximate)

    def expected_loss(self, loss: Loss, domain: AnswerDomain | JointDomain) -> Fraction:
        """As :meth:`Mechanism.expected_loss`, for answers in order."""
        if not channel_fits(domain, loss):
            raise ValueError("a channel needs the loss error_rate, absolute or squared")
        return self.mean_loss(answer_costs(COST_POWERS[LossName(loss.name)], self.answers))

    def likelihood_of(self, code: int) -> NDArray[np.float64]:
        """As :meth:`Mechanism.likelihood_of`: a column."""
        return shares(self.rows[:, code], self.total)

    def to_floats(self) -> NDArray[np.float64]:
        """The probabilities rounded to nearest: for pictures and solvers, never for proofs."""
        return shares(self.rows, self.total)

    def loss(self, costs: Codes) -> tuple[Fraction, ...]:
        """The expected cost at each true answer; ``costs`` as :func:`answer_costs`, same shape."""
        largest, width = int(np.abs(costs).max(initial=0)), self.rows.shape[1]
        if self.rows.dtype == np.int64 and largest * width < 2 ** (63 - _HALF):
            # weight = above·2^31 + below. The halves above add up to 2^31 at most and each half
            # below is less, so the sums stay under 2^31·largest·width: nothing overflows.
            above = np.einsum("qr,qr->q", self.rows >> _HALF, costs).astype(object)
            below = np.einsum("qr,qr->q", self.rows & (2**_HALF - 1), costs)
            weighted = (above * 2**_HALF + below).tolist()
        else:
            weighted = (self.rows.astype(object) * costs.astype(object)).sum(axis=1).tolist()
        return tuple(Fraction(int(w), self.total) for w in weighted)

    def mean_loss(self, costs: Codes) -> Fraction:
        """The expected cost under the uniform prior over the true answers."""
        return sum(self.loss(costs), Fraction(0)) / self.answers


def _units(masses: Sequence[Any]) -> list[int]:
    """The masses over their common denominator."""
    if isinstance(masses[0], int):
        return list(masses)
    common = common_denominator(masses)
    return [mass.numerator * (common // mass.denominator) for mass in masses]


MOST_ROWS = 1000
"""A channel of more answers would be a file of more than a million weights."""

MOST_ENTRIES = 10_000
"""Comparisons of masses in a linear program; with neighbors 1 apart three times as many."""

MOST_UNSEEN = 21
"""The most answers whose channel is a program of ``MOST_ENTRIES`` for every sensitivity."""

LEAST_UNSEEN, HIGHEST_UNSEEN = Fraction(1, 1000), Fraction(12)
"""The least and the highest ε at which a channel can be made for every sensitivity.

Above it floats cannot tell the masses of a program from 0, and geometric noise hardly ever errs.
"""


def channel_fits(domain: AnswerDomain | JointDomain, loss: object) -> bool:
    """Whether a channel can answer: as :func:`line_fits`, and few enough for a row each."""
    return line_fits(domain, loss) and domain.size <= MOST_ROWS


MOST_PROBABILISTIC = 64
"""The most answers in order for which a mechanism with a probabilistic δ > 0 is sought."""


def probabilistic_fits(domain: AnswerDomain | JointDomain) -> bool:
    """Whether mechanisms with a probabilistic δ > 0 are sought for these answers."""
    return not domain.has_order or (domain.is_line and domain.size <= MOST_PROBABILISTIC)


def channel_unseen(domain: AnswerDomain | JointDomain, loss: object, guarantee: Guarantee) -> bool:
    """Whether ``best`` is a channel under empirical sensitivity, from public parameters alone.

    The domain is so small that a program solves every sensitivity, so that no mechanism loses less.
    """
    # No program fits a probabilistic δ, so that a channel for it may be far from the best.
    fits = guarantee.definition is not Definition.PROBABILISTIC or guarantee.delta == 0
    is_small = domain.size <= MOST_UNSEEN
    can_be_solved = LEAST_UNSEEN <= guarantee.epsilon <= HIGHEST_UNSEEN
    return channel_fits(domain, loss) and is_small and fits and can_be_solved


def answer_costs(power: int, answers: int) -> Codes:
    """|published - true|^power as integers, 0 for the error rate; shape (answers, answers).

    Raises:
        ValueError: a cost is 2^62 or more.
    """
    answer = np.arange(answers, dtype=np.int64)
    error = np.abs(answer[None, :] - answer[:, None])
    if int(error.max()) ** power >= 2**62:
        raise ValueError("the costs are too large for 64-bit integers; use a lower power")
    return np.asarray(error > 0, dtype=np.int64) if power == 0 else error**power
