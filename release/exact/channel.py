"""A channel: one law for each true answer, in exact integers, and what it promises.

Modular noise is one law shifted round the answers. Clamped, truncated and answer-dependent
mechanisms are not: what they publish depends on the true answer, so they are a table with a row for
each. Rows are integer weights with one total, a power of two, so that they are sampled and proved
as a law is (docs/design/format.md, ``rows`` and ``pairs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import AnswerDomain, Codes, JointDomain
from release.exact.losses import Loss, LossName
from release.exact.mechanism import Mechanism
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import Definition, Deltas, Guarantee, largest_kept
from release.exact.sensitivity import Pair

_HALF = 31
"""Bits of the lower half of a weight; the upper halves of a row add up to 2^31 at most."""


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
        if any(sum(row) != self.total for row in self.rows.tolist()):
            raise ValueError("the weights of a row do not add up to the total")
        self.rows.setflags(write=False)

    @classmethod
    def near(
        cls,
        masses: Sequence[Sequence[Fraction]] | Sequence[Sequence[int]],
        bits: int = DEFAULT_BITS,
        keep: Fraction | None = None,
    ) -> Channel:
        """The channel of about these shares of each row, rounded down to units of 2^-``bits``.

        What rounding leaves over goes to the heaviest outcome of each row. Rounding may break a
        ratio of two masses by a unit; where they kept the ratio ``keep`` > 1, as little of the
        uniform law is mixed in as keeps it in integers too.

        Raises:
            ValueError: a row without mass, or a ratio too near 1 for that many bits.
        """
        total, width = 2**bits, len(masses[0])
        if keep is not None:
            # A unit lost above and one a row's leftovers below, against keep-1 units of what is
            # mixed in: 2·width·(1 + keep) covers both.
            share = 2 * width**2 * (1 + keep) / ((keep - 1) * total)
            if not share < Fraction(1, 2):
                raise ValueError("the ratio to keep is too near 1 for this many bits; use more")
        else:
            share = Fraction(0)
        rows = np.zeros((len(masses), width), dtype=np.int64 if bits <= 62 else object)
        for row, given in zip(rows, masses, strict=True):
            units = _units(given)
            whole = sum(units)
            if not whole > 0:
                raise ValueError("a row of a channel has no mass")
            scale, floor = (1 - share) / whole * total, share / width * total
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
        if len({len(row) for row in rows}) != 1:
            raise ValueError("the rows of a channel have the same length")
        wide = np.array([[int(weight) for weight in row] for row in rows], dtype=object)
        return cls(wide.astype(np.int64) if 0 < total <= 2**62 else wide, total)

    @classmethod
    def of_mechanism(cls, mechanism: Mechanism) -> Channel:
        """The rows of any mechanism, written out."""
        rows = np.stack([mechanism.row(code) for code in range(mechanism.answers)])
        return cls(rows, mechanism.total)

    @property
    def answers(self) -> int:
        """The number of true answers."""
        return int(self.rows.shape[0])

    def row(self, code: int) -> NDArray[Any]:
        """As :meth:`Mechanism.row`."""
        return np.asarray(self.rows[code])

    def deltas_of_pairs(self, pairs: Iterable[Pair], ratio: Fraction) -> Deltas:
        """As :meth:`Mechanism.deltas_of_pairs`; the largest weights allowed are computed once."""
        rows, ceilings = self.rows, largest_kept(self.rows, self.total, ratio)
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
        return np.asarray(self.rows[:, code] / float(self.total), dtype=np.float64)

    def to_floats(self) -> NDArray[np.float64]:
        """The probabilities rounded to nearest: for pictures and solvers, never for proofs."""
        return np.array([[w / self.total for w in row] for row in self.rows.tolist()])

    def loss(self, costs: Codes) -> tuple[Fraction, ...]:
        """The expected cost at each true answer; ``costs`` as :func:`answer_costs`, same shape."""
        largest, width = int(np.abs(costs).max(initial=0)), self.rows.shape[1]
        if self.rows.dtype == np.int64 and largest * width < 2 ** (63 - _HALF):
            # In two halves nothing can overflow, and no number has to be one of Python's.
            above = np.einsum("qr,qr->q", self.rows >> _HALF, costs).tolist()
            below = np.einsum("qr,qr->q", self.rows & (2**_HALF - 1), costs).tolist()
            weighted = [(a << _HALF) + b for a, b in zip(above, below, strict=True)]
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
    shares = [(mass.numerator, mass.denominator) for mass in masses]
    common = lcm(*(denominator for _, denominator in shares))
    return [numerator * (common // denominator) for numerator, denominator in shares]


MOST_ROWS = 1000
"""A channel of more answers would be a file of more than a million weights."""

MOST_ENTRIES = 10_000
"""Comparisons of masses in a linear program; with neighbors 1 apart three times as many."""

MOST_UNSEEN = 21
"""The most answers whose channel is a program of ``MOST_ENTRIES`` whatever the differences are."""

LEAST_UNSEEN = Fraction(1, 1000)
"""The least ε at which a channel can be made whatever the differences are."""

COST_POWERS = {LossName.ERROR_RATE: 0, LossName.ABSOLUTE: 1, LossName.SQUARED: 2}
"""The losses of published answers in order, as powers of the error."""


def channel_fits(domain: AnswerDomain | JointDomain, loss: object) -> bool:
    """Whether a channel can answer: few enough answers in order, a loss of published answers."""
    name = loss.name if isinstance(loss, Loss) else getattr(loss, "value", None)
    in_reach = domain.is_line and domain.size <= MOST_ROWS
    return in_reach and name in {power.value for power in COST_POWERS}


def channel_unseen(domain: AnswerDomain | JointDomain, loss: object, guarantee: Guarantee) -> bool:
    """Whether ``best`` is a channel where differences are confidential; nothing hangs on them.

    So small that a program takes all differences, so that no other mechanism loses less.
    """
    known = guarantee.definition is not Definition.PROBABILISTIC or guarantee.delta == 0
    few = domain.size <= MOST_UNSEEN
    return channel_fits(domain, loss) and few and known and guarantee.epsilon >= LEAST_UNSEEN


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
