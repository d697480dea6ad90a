"""Which linear functions follow from others, in exact rationals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction


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
        if not any(rest):
            raise ValueError("the function lies in the span of the basis")
        pivot = list(map(bool, rest)).index(True)
        lead = rest[pivot]
        # The rest is the row less a combination of the basis, so its coordinates are these.
        own = _scaled([*(-coordinate for coordinate in coordinates), Fraction(1)], 1 / lead)
        for _, _, combination in self._echelon:
            combination.append(Fraction(0))
        self._echelon.append((pivot, _scaled(rest, 1 / lead), own))
        self.basis.append(tuple(row))

    def _reduced(self, row: Sequence[int]) -> tuple[list[Fraction], list[Fraction]]:
        """What is left of a function outside the span, and the coordinates of the rest of it."""
        rest = list(map(Fraction, row))
        coordinates = [Fraction(0)] * len(self.basis)
        # In the order of appending: each function of the echelon form was reduced by those before
        # it, so that none of them brings back a place that is 0 already.
        for pivot, function, own in self._echelon:
            factor = rest[pivot]
            if factor:
                rest = [a + b for a, b in zip(rest, _scaled(function, -factor), strict=True)]
                coordinates = [
                    a + b for a, b in zip(coordinates, _scaled(own, factor), strict=True)
                ]
        return rest, coordinates


def _scaled(values: Sequence[Fraction], factor: Fraction) -> list[Fraction]:
    return [value * factor for value in values]


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
    rows = []
    for own, right_row in zip(matrix, right, strict=True):
        rows.append([*own, *right_row])
    previous = 1
    for place in range(size):
        lead = place
        while lead < size and not rows[lead][place]:
            lead += 1
        if lead == size:
            raise ZeroDivisionError("the matrix is not invertible")
        rows[place], rows[lead] = rows[lead], rows[place]
        top = rows[place]
        pivot = top[place]
        for row in range(size):
            if row == place:
                continue
            lower = rows[row]
            factor = lower[place]
            # The division leaves no rest: the quotient is again a minor.
            for column, above in enumerate(top):
                lower[column] = (pivot * lower[column] - factor * above) // previous
        previous = pivot
    # All leading entries equal the determinant of the rows in the order that elimination chose.
    return [row[size:] for row in rows], previous
