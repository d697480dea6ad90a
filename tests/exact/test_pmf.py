"""A probability mass function: its shape, its total, and when two are the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release.exact.domain import Group
from release.exact.pmf import DEFAULT_BITS, Pmf

FOUR = Group((4,))


@pytest.mark.parametrize(
    ("weights", "total"),
    [
        ([1, 1, 2], 4),
        ([1, 1, 1, 1, 0], 4),
        ([[1, 1], [1, 1]], 4),
        ([5, -1, 0, 0], 4),
        ([1, 0, 0, 0], 1),
        ([0, 0, 0, 0], 0),
        ([3, 0, 0, 0], 3),
        ([1, 1, 1, 1], 8),
        ([2**62, 2**62, 2**62, 2**62], 2**63),
    ],
)
def test_what_is_no_pmf_is_refused(weights: list[int], total: int) -> None:
    with pytest.raises(ValueError, match=r"weight|total"):
        Pmf(FOUR, np.array(weights), total)


def test_a_total_of_two_is_the_least() -> None:
    pmf = Pmf.of(FOUR, [1, 0, 0, 1])
    assert (pmf.total, pmf.bits) == (2, 1)
    assert [pmf.mass(element) for element in range(4)] == [Fraction(1, 2), 0, 0, Fraction(1, 2)]
    assert pmf.to_floats().tolist() == [0.5, 0, 0, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        pmf.weights[0] = 2


def test_weights_are_python_integers_where_sums_leave_64_bits() -> None:
    assert Pmf.of(FOUR, [2**62, 0, 0, 0]).weights.dtype == np.int64
    wide = Pmf.of(FOUR, [2**62, 2**62, 0, 0])
    assert (wide.weights.dtype, wide.bits) == (np.dtype(object), 63)
    assert DEFAULT_BITS == 62


def test_two_are_the_same_by_group_and_weights() -> None:
    pmf = Pmf.of(FOUR, [1, 1, 1, 1])
    same = Pmf(FOUR, np.array([1, 1, 1, 1], dtype=object), 4)
    assert pmf == same
    assert hash(pmf) == hash(same)
    for other in (
        Pmf.of(FOUR, [2, 2, 2, 2]),
        Pmf.of(FOUR, [2, 1, 1, 0]),
        Pmf.of(Group((2, 2)), [1, 1, 1, 1]),
        [1, 1, 1, 1],
    ):
        assert pmf != other
