"""Products of polynomials with integer coefficients, exact, by one long multiplication.

The coefficients are written side by side as decimal digits, far enough apart not to run into each
other, and two such numbers are multiplied (Kronecker substitution). ``decimal`` multiplies long
numbers by a number-theoretic transform; Python's own integers take far longer from some hundred
coefficients on. The result is exact either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_EMAX, Context, Decimal, Inexact


def product(left: Sequence[int], right: Sequence[int]) -> list[int]:
    """Return the ``len(left) + len(right) - 1`` coefficients of the product of two polynomials.

    Args:
        left: non-negative coefficients, at least one; the order is that of the result.
        right: as ``left``.
    """
    terms = min(len(left), len(right))
    width = len(str(max(left) * max(right) * terms))
    size = len(left) + len(right) - 1
    context = Context(prec=width * (size + 1), Emax=MAX_EMAX, traps=[Inexact])
    whole = context.multiply(_packed(left, width), _packed(right, width))
    digits = str(whole).zfill(width * size)
    return [int(digits[start : start + width]) for start in range(0, width * size, width)]


def _packed(coefficients: Sequence[int], width: int) -> Decimal:
    return Decimal("".join(f"{coefficient:0{width}d}" for coefficient in coefficients))
