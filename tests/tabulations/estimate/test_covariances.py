"""What measurements say of a component, and its roundings."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from release.tabulations.estimate.components import Frame
from release.tabulations.estimate.covariances import FINE, Source, System, _gain, rounded, shifted
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from tests.tabulations.estimate.dense import solutions

TOTAL = Margin((summed_out(4),))
HALVES = Margin(((0, 0, 1, 1),))
CELLS = Margin(((0, 1, 2, 2),))
WHOLE = Margin((kept_whole(4),))


def test_quotients_are_rounded_to_the_nearest_and_a_half_upward() -> None:
    numerators = np.array([-7, -6, -5, -2, -1, 0, 1, 2, 3, 5, 6, 7], dtype=object)
    nearest = [-2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert shifted(numerators, 2).tolist() == nearest
    assert rounded(numerators, 4).tolist() == nearest


def test_the_finest_table_is_taken_up_first_and_facts_last() -> None:
    """So the functionals are cells where that is possible, whatever the tables are named by."""
    frame = Frame.of((4,), [TOTAL, HALVES, CELLS])
    sources = [
        Source(0, HALVES, Fraction(0)),
        Source(0, TOTAL, Fraction(1)),
        Source(0, HALVES, Fraction(2)),
        Source(0, CELLS, Fraction(3)),
        Source(0, TOTAL, Fraction(0)),
    ]
    for order in (sources, sources[::-1]):
        system = System.of(frame, (False,), [order])
        assert system.sources[0] == tuple(sources[place] for place in (3, 2, 1, 0, 4))
        assert system.span.basis == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
        # The total follows from the halves, which are the rows after those with noise.
        assert system.facts == (6, 7)
        assert [step.repeats for step in system.steps[0]] == [False] * 8 + [True]


@pytest.mark.parametrize("count", range(1, 13))
def test_children_of_one_class_take_equal_shares_to_the_nearest(count: int) -> None:
    own = np.array([[5, 1], [1, 7]], dtype=object) << FINE
    for number in (0, 7):
        share = _gain(own, count * own, ((number, count),))
        exact = Fraction(1 << FINE, count)
        assert abs(share[0, 0] - exact) <= Fraction(1, 2)
        assert share.tolist() == [[share[0, 0], 0], [0, share[0, 0]]]


def test_children_of_several_classes_share_in_proportion_to_their_covariance() -> None:
    first = np.array([[5, 1], [1, 7]], dtype=object) << FINE
    second = np.array([[2, -1], [-1, 3]], dtype=object) << FINE
    members = ((0, 3), (1, 2))
    total = 3 * first + 2 * second
    shares = [_gain(own, total, members) for own in (first, second)]
    for share, own in zip(shares, (first, second), strict=True):
        # G·T = C: the transpose of T·X = C, as both are symmetric.
        exact = solutions(total, own)
        assert exact is not None
        for row, place in np.ndindex(2, 2):
            error = share[row, place] - exact[place][row] * (1 << FINE)
            assert abs(error) <= Fraction(1, 2)
    # Together the children take all that the parent knows better.
    assert np.abs(3 * shares[0] + 2 * shares[1] - (np.eye(2, dtype=object) << FINE)).max() <= 3
