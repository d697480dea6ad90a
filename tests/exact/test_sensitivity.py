"""Sets of differences: closed, reduced, and on a line with their distances."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.domain import AnswerDomain, Group, Topology
from release.exact.sensitivity import Sensitivity, check_shifts, line_pairs


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
    assert sensitivity.distances is None


@pytest.mark.parametrize("moduli", [(2,), (3,), (2, 2), (2, 3)])
def test_everything_is_every_difference_but_zero(moduli: tuple[int, ...]) -> None:
    everything = sorted(itertools.product(*map(range, moduli)))
    assert list(Sensitivity.everything(Group(moduli)).shifts) == everything[1:]


def test_a_line_keeps_how_far_neighbors_are_apart() -> None:
    """One step up and all the way down are the same shift, and different distances."""
    up, down = Sensitivity.on_line(5, [1, 0]), Sensitivity.on_line(5, [-4])
    assert up.shifts == down.shifts == ((1,), (4,))
    assert (up.distances, down.distances) == ((1,), (4,))
    both = Sensitivity.on_line(6, [3, -2, 2, 0])
    assert (both.shifts, both.distances) == (((2,), (3,), (4,)), (2, 3))
    assert not both.directed


def test_a_step_of_all_answers_is_no_difference_of_codes() -> None:
    """No two of 3 answers are 3 apart; modulo 3 such a step is none."""
    line = Sensitivity.on_line(3, (3, 4))
    assert (line.distances, line.shifts) == ((3, 4), ((1,), (2,)))
    assert line.pairs(3) == ()


def test_the_least_step_is_that_of_the_nearest_neighbors() -> None:
    assert Sensitivity.on_line(9, [-3, 5]).least_step == 3
    assert Sensitivity.on_line(9, []).least_step == 1
    # In a group without an order the numbers of its elements stand for distances.
    assert Sensitivity.of(Group((9,)), [(3,)]).least_step == 3
    assert Sensitivity.of(Group((9,)), []).least_step == 1


@given(st.integers(1, 9), st.lists(st.integers(-9, 9), max_size=3))
def test_pairs_on_a_line_do_not_wrap(answers: int, steps: list[int]) -> None:
    codes = itertools.product(range(answers), repeat=2)
    expected = [(a, b) for a, b in codes if a != b and abs(a - b) in {abs(s) for s in steps}]
    assert list(line_pairs(answers, steps)) == expected
    assert list(Sensitivity.on_line(10, steps).pairs(answers)) == expected


def test_pairs_of_a_group_are_those_of_its_differences() -> None:
    group = Group((2, 3))
    pairs = Sensitivity.of(group, [(1, 1)]).pairs(6)
    assert pairs == tuple(sorted(pairs))
    moves = {
        tuple((b - a) % m for a, b, m in zip(*map(group.shift, pair), group.moduli, strict=True))
        for pair in pairs
    }
    assert (moves, len(set(pairs))) == ({(1, 1), (1, 2)}, 12)


@pytest.mark.parametrize(
    ("shifts", "is_possible"),
    [
        ([(4, 0)], True),
        ([(-4, 2)], True),
        ([(0, 0), (0, -2)], True),
        ([(5, 0)], False),
        ([(-5, 0)], False),
        ([(1, 0), (0, 3)], False),
        ([(0, 0)], False),
        ([], False),
        ([(1,)], False),
    ],
)
def test_declared_differences_are_those_of_two_answers(
    shifts: list[tuple[int, ...]], is_possible: bool
) -> None:
    parts = (
        AnswerDomain(Topology.ORDERED, (0, 1, 2, 3, 4)),
        AnswerDomain(Topology.NOMINAL, ("x", "y", "z")),
    )
    if is_possible:
        check_shifts(parts, shifts)
        return
    with pytest.raises(ValueError):
        check_shifts(parts, shifts)
