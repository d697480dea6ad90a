"""e^x by decimals, for tests of the bounds that the package takes of it."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

LONG = Context(prec=150)


def exponential(loss: Fraction) -> Fraction:
    """e^loss to 140 digits; of 0 it is exactly 1."""
    return Fraction(LONG.exp(LONG.divide(Decimal(loss.numerator), Decimal(loss.denominator))))
