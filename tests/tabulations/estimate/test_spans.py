"""Exact linear algebra on small systems."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.numbers import over_one_denominator
from release.tabulations.estimate.spans import Span, solved

ROWS = st.lists(st.tuples(*[st.integers(-3, 3)] * 4), min_size=1, max_size=7)


@given(rows=ROWS)
def test_a_span_grows_by_what_it_does_not_hold_and_gives_exact_coordinates(
    rows: list[tuple[int, ...]],
) -> None:
    span = Span(4)
    for row in rows:
        if span.coordinates(row) is None:
            span.append(row)
        else:
            with pytest.raises(ValueError, match="span"):
                span.append(row)
    assert len(span.basis) == np.linalg.matrix_rank(np.array(rows))
    for row in rows:
        coordinates = span.coordinates(row)
        assert coordinates is not None
        sums = [Fraction(0)] * 4
        for factor, function in zip(coordinates, span.basis, strict=True):
            sums = [a + factor * b for a, b in zip(sums, function, strict=True)]
        assert tuple(sums) == row


@given(
    matrix=st.lists(st.tuples(*[st.integers(-9, 9)] * 3), min_size=3, max_size=3),
    right=st.lists(st.tuples(*[st.integers(-9, 9)] * 2), min_size=3, max_size=3),
)
def test_solutions_are_exact(matrix: list[tuple[int, ...]], right: list[tuple[int, ...]]) -> None:
    if not round(np.linalg.det(np.array(matrix))):
        with pytest.raises(ZeroDivisionError):
            solved(matrix, right)
        return
    numerators, denominator = solved(matrix, right)
    product = np.array(matrix, dtype=object) @ np.array(numerators, dtype=object)
    assert (product == denominator * np.array(right, dtype=object)).all()


def test_rationals_over_their_least_denominator() -> None:
    assert over_one_denominator([Fraction(1, 2), Fraction(-2, 3), Fraction(4)]) == ((3, -4, 24), 6)
    assert over_one_denominator([]) == ((), 1)
