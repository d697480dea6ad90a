"""Products of polynomials with integer coefficients, exact, by one long multiplication.

The coefficients are written side by side as decimal digits, far enough apart not to run into each
other, and two such numbers are multiplied (Kronecker substitution). ``decimal`` multiplies long
numbers by a number-theoretic transform; Python's own integers take far longer from some hundred
coefficients on. The result is exact either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, Context, Decimal, Inexact


def product(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return the ``len(first) + len(second) - 1`` coefficients of the product of two polynomials.

    Args:
        first: non-negative coefficients, at least one; the order is that of the result.
        second: as ``first``.
    """
    terms = min(len(first), len(second))
    # A coefficient is a sum of ``terms`` products at most: none has more digits, so none carries
    # into its neighbor.
    width = len(str(max(first) * max(second) * terms))
    size = len(first) + len(second) - 1
    # With the trap a product that does not fit raises, where decimal would round it in silence.
    context = Context(prec=width * size, Emax=MAX_EMAX, traps=[Inexact])
    whole = context.multiply(_packed(first, width), _packed(second, width))
    digits = str(whole).zfill(width * size)
    return [int(digits[start : start + width]) for start in range(0, width * size, width)]


def _packed(coefficients: Sequence[int], width: int) -> Decimal:
    return Decimal("".join(f"{coefficient:0{width}d}" for coefficient in coefficients))
