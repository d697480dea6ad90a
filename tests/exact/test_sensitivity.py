"""Sets of differences: closed, reduced, and on a line with their distances."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.domain import Group
from release.exact.sensitivity import Sensitivity


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3), st.data())
def test_a_set_is_closed_under_negation_and_without_zero(
    moduli: list[int], data: st.DataObject
) -> None:
    group = Group(tuple(moduli))
    shift = st.tuples(*(st.integers(-9, 9) for _ in moduli))
    shifts = data.draw(st.lists(shift, max_size=4))
    signed = [tuple(sign * s for s in shift) for shift in shifts for sign in (1, -1)]
    expected = {tuple(s % m for s, m in zip(shift, moduli, strict=True)) for shift in signed}
    expected -= {(0,) * len(moduli)}
    sensitivity = Sensitivity.of(group, shifts)
    assert sensitivity.shifts == tuple(sorted(expected))
    assert sensitivity == Sensitivity(group, sensitivity.shifts)
    assert not sensitivity.directed
    assert sensitivity.apart is None


@pytest.mark.parametrize("moduli", [(2,), (3,), (2, 2), (2, 3)])
def test_everything_is_every_difference_but_zero(moduli: tuple[int, ...]) -> None:
    everything = sorted(itertools.product(*map(range, moduli)))
    assert list(Sensitivity.everything(Group(moduli)).shifts) == everything[1:]


def test_a_line_keeps_how_far_neighbors_are_apart() -> None:
    """One step up and all the way down are the same shift, and different distances."""
    up, down = Sensitivity.on_line(5, [1, 0]), Sensitivity.on_line(5, [-4])
    assert up.shifts == down.shifts == ((1,), (4,))
    assert (up.apart, down.apart) == ((1,), (4,))
    both = Sensitivity.on_line(6, [3, -2, 2, 0])
    assert (both.shifts, both.apart) == (((2,), (3,), (4,)), (2, 3))
    assert not both.directed
