"""A mechanism on a statistic: a random rule from the integers of a cell to what is published of it.

The guarantee is pure and holds for all tables: neighbors change the integers within public bounds
(the ``spread``), and the mechanism is proved for every change within them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

from dp_release_verify import forms
from release.exact.composition.profile import Profile, pure_profile
from release.exact.domain import Codes
from release.exact.sampling import SYSTEM, RandomBytes
from release.exact.statistics.nearness import Nearness, Wording
from release.exact.statistics.statistic import Statistic

RATIO_BITS = 64
RATIO_ONE = 1 << RATIO_BITS
"""Ratios of chances are multiples of 1/RATIO_ONE."""

_DIGITS = 50


class StatisticMechanism(ABC):
    """A random rule from the statistics of a cell to the integers that are published of it."""

    family: ClassVar[str]
    """The name of the family in specs and in the files of a release."""

    @classmethod
    @abstractmethod
    def designed(cls, statistic: Statistic, epsilon: Fraction, part: Fraction) -> Self | None:
        """The one of least noise at one charge; None where another family has to answer.

        ``part`` is what one that loses in proportion is charged, as a part of what another one is.

        Raises:
            ValueError: there is none for this ε in 64 bits.
            TypeError: the statistic is of a kind that it does not answer.
        """

    @classmethod
    @abstractmethod
    def of_law(cls, statistic: Statistic, law: Any) -> Self:
        """The one that a public law is for the statistic of its question; see :meth:`law`.

        Raises:
            ValueError, OverflowError: the integers are no mechanism on this statistic.
            TypeError: the statistic is of a kind that it does not answer.
        """

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many integers of a cell it reads."""

    @property
    def outputs(self) -> int:
        """How many integers of a cell it publishes: the code of one choice, or more."""
        return 1

    @abstractmethod
    def law(self) -> forms.Law:
        """The mechanism as a release has it: whole numbers, and nothing that the question says."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What it is and the extent of its proof: how a report begins to describe it."""

    @abstractmethod
    def nearness(self, wording: Wording) -> Nearness:
        """How near its answers are to the true ones, in the words of their question."""

    @abstractmethod
    def satisfies(self, epsilon: Fraction) -> bool:
        """Whether it is proved to be pure ``epsilon``-private, in exact arithmetic."""

    def loses_in_proportion(self, epsilon: Fraction) -> bool:
        """Whether a change by d of its spread s is proved to lose at most ε·d/s, for every d.

        ``epsilon`` is what it :meth:`satisfies` (docs/design/mathematics.md 2.18).
        """
        return False

    def profile(self, epsilon: Fraction, step: Fraction) -> Profile:
        """Its privacy profile where it :meth:`satisfies` ``epsilon``, on the grid of ``step``.

        That of randomised response, which bounds whatever is ``epsilon``-private. A family that
        knows more of its masses has a smaller one.
        """
        return pure_profile(epsilon, step)

    @abstractmethod
    def draw(self, statistics: Codes, source: RandomBytes = SYSTEM) -> Codes:
        """Published integers, shape (cells, outputs), from statistics of shape (cells, inputs).

        Cells are independent, and each output has exactly its probability.
        """


def least_ratio(epsilon: Fraction, spread: int) -> int:
    """The least k for which (k/2^64)^``spread``·e^ε ≥ 1, or a few units more.

    Raises:
        ValueError: ε is so small, or the spread so wide, that no k below 2^64 is left.
    """
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    share = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator * spread))
    power = context.exp(context.minus(share))
    ratio = int(context.multiply(power, Decimal(RATIO_ONE)).to_integral_value(ROUND_CEILING))
    while ratio < RATIO_ONE and not is_private(ratio, spread, epsilon):
        ratio += 1
    if not 0 < ratio < RATIO_ONE:
        raise ValueError("epsilon is too small, or a unit moves the statistic too far, for 64 bits")
    return ratio


def is_private(ratio: int, spread: int, epsilon: Fraction) -> bool:
    """Whether (``ratio``/2^64)^``spread``·e^ε ≥ 1, by logarithms that are rounded outward."""
    return spread * loss_above(ratio) <= epsilon


def near_power(ratio: int, exponent: int) -> float:
    """(``ratio``/2^64)^``exponent``, to some ten digits."""
    # The quotient of a ratio within 2^10 of 2^64 would be rounded to 1, and no power be below it.
    return math.exp(exponent * math.log1p(-((RATIO_ONE - ratio) / RATIO_ONE)))


def loss_above(ratio: int) -> Fraction:
    """An upper bound of -ln(``ratio`` / 2^64), at most 10^-40 of it too large."""
    context = Context(prec=_DIGITS)
    # The quotient is rounded up, and the logarithm is within half a unit of its last digit.
    quotient = Context(prec=2 * _DIGITS, rounding=ROUND_CEILING).divide(
        Decimal(RATIO_ONE), Decimal(ratio)
    )
    return Fraction(context.next_plus(context.ln(quotient)))
