"""Which linear functions follow from others, in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm


@dataclass
class Span:
    """A growing basis of linear functions, and the coordinates of all functions in their span.

    Attributes:
        width: the number of unknowns of a function.
        basis: the functions of the basis, in the order in which they were appended.
    """

    width: int
    basis: list[tuple[int, ...]] = field(default_factory=list)
    # The basis in echelon form: the place of a leading 1, the function, its coordinates.
    _echelon: list[tuple[int, list[Fraction], list[Fraction]]] = field(default_factory=list)

    def coordinates(self, row: Sequence[int]) -> tuple[Fraction, ...] | None:
        """The coordinates of a function in the basis; None if it does not lie in the span."""
        rest, coordinates = self._reduced(row)
        return None if any(rest) else tuple(coordinates)

    def append(self, row: Sequence[int]) -> None:
        """Add a function to the basis.

        Raises:
            ValueError: the function lies in the span already.
        """
        rest, coordinates = self._reduced(row)
        pivot = next((place for place, value in enumerate(rest) if value), None)
        if pivot is None:
            raise ValueError("the function lies in the span of the basis")
        lead = rest[pivot]
        own = [-value / lead for value in coordinates] + [1 / lead]
        for _, _, others in self._echelon:
            others.append(Fraction(0))
        self._echelon.append((pivot, [value / lead for value in rest], own))
        self.basis.append(tuple(row))

    def _reduced(self, row: Sequence[int]) -> tuple[list[Fraction], list[Fraction]]:
        """What is left of a function outside the span, and the coordinates of the rest of it."""
        rest = [Fraction(value) for value in row]
        coordinates = [Fraction(0)] * len(self.basis)
        for pivot, function, own in self._echelon:
            factor = rest[pivot]
            if factor:
                rest = [a - factor * b for a, b in zip(rest, function, strict=True)]
                coordinates = [a + factor * b for a, b in zip(coordinates, own, strict=True)]
        return rest, coordinates


def over_one_denominator(values: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """The numerators of rationals over their least common denominator, and that denominator."""
    denominator = lcm(*(value.denominator for value in values))
    return tuple(int(value * denominator) for value in values), denominator


def solved(
    matrix: Sequence[Sequence[int]], right: Sequence[Sequence[int]]
) -> tuple[list[list[int]], int]:
    """The solution X of A·X = B over one denominator: numerators, and the denominator.

    Bareiss' elimination: every number on the way is a minor of [A | B], so divisions are exact.

    Args:
        matrix: A, square and invertible.
        right: B, with as many rows.

    Raises:
        ZeroDivisionError: A is not invertible.
    """
    size = len(matrix)
    rows = [[*own, *others] for own, others in zip(matrix, right, strict=True)]
    previous = 1
    for place in range(size):
        lead = next((row for row in range(place, size) if rows[row][place]), None)
        if lead is None:
            raise ZeroDivisionError("the matrix is not invertible")
        rows[place], rows[lead] = rows[lead], rows[place]
        top = rows[place]
        pivot = top[place]
        for row in range(size):
            if row == place:
                continue
            factor = rows[row][place]
            pairs = zip(rows[row], top, strict=True)
            rows[row] = [(pivot * value - factor * above) // previous for value, above in pairs]
        previous = pivot
    # All leading entries equal the determinant of the rows in the order that elimination chose.
    return [row[size:] for row in rows], previous
