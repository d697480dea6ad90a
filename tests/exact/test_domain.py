"""Groups, distances and level edges against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.domain import (
    AnswerDomain,
    Group,
    JointDomain,
    Topology,
    level_edge,
    levels,
)

moduli = st.lists(st.integers(2, 7), min_size=1, max_size=3).map(tuple)


@st.composite
def group_and_shifts(draw: st.DrawFn) -> tuple[Group, tuple[tuple[int, ...], ...]]:
    group = Group(draw(moduli))
    shift = st.tuples(*(st.integers(0, m - 1) for m in group.moduli))
    return group, tuple(draw(st.lists(shift, min_size=1, max_size=4)))


@given(moduli)
def test_elements_are_numbered_row_major(factors: tuple[int, ...]) -> None:
    group = Group(factors)
    for number, shift in enumerate(itertools.product(*(range(m) for m in factors))):
        assert group.element(shift) == number
        assert group.shift(number) == shift


@given(group_and_shifts())
def test_moving_adds_coordinate_by_coordinate(
    case: tuple[Group, tuple[tuple[int, ...], ...]],
) -> None:
    group, shifts = case
    for shift in shifts:
        moved = group.moved(shift)
        for element in range(group.size):
            parts = zip(group.shift(element), shift, group.moduli, strict=True)
            assert moved[element] == group.element(tuple((a + b) % m for a, b, m in parts))


@given(group_and_shifts())
def test_steps_are_those_of_a_search_over_sums(
    case: tuple[Group, tuple[tuple[int, ...], ...]],
) -> None:
    group, shifts = case
    expected = {(0,) * len(group.moduli): 0}
    for level in range(1, group.size + 1):
        for at in [a for a, d in expected.items() if d == level - 1]:
            for shift in shifts:
                total = group.normal(tuple(a + b for a, b in zip(at, shift, strict=True)))
                expected.setdefault(total, level)
    steps = group.steps_from_zero(shifts)
    for element in range(group.size):
        assert steps[element] == expected.get(group.shift(element), -1)


@given(st.integers(-1000, 1000), st.integers(2, 2000), st.data())
def test_labels_of_levels_are_the_least_integers_of_their_code(
    low: int, width: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(2, width))
    high = low + width
    domain = levels(low, high, count)
    assert domain.topology is Topology.ORDERED
    for code, label in enumerate(domain.labels):
        assert isinstance(label, int)
        assert (label - low) * count // width == code
        if code:
            assert (label - 1 - low) * count // width == code - 1


def test_the_edge_of_a_level_is_rounded_up() -> None:
    # 40000/11 = 3636.36: 3636 still has code 0 under the formula of the format.
    assert level_edge(0, 40000, 11, 1) == 3637
    assert 3636 * 11 // 40000 == 0


@pytest.mark.parametrize("factors", [(), (1,), (3, 0)])
def test_a_group_needs_factors_of_two_or_more(factors: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Group(factors)


@given(st.integers(2, 60), st.integers(1, 59), st.booleans())
def test_steps_of_intervals_need_no_search(size: int, width: int, signed: bool) -> None:
    """And wide rings are searched by thin fronts: both against a plain queue."""
    width = min(width, size - 1)
    group = Group((size,))
    numbers = {s for i in range(1, width + 1) for s in ((i, size - i) if signed else (i,))}
    for shifts in (numbers, numbers - {1}):
        distance, front, step = {0: 0}, [0], 0
        while front:
            step += 1
            ahead = {(e + s) % size for e in front for s in shifts} - set(distance)
            distance |= dict.fromkeys(ahead, step)
            front = list(ahead)
        found = group.steps_from_zero(tuple((s,) for s in sorted(shifts)))
        assert found.tolist() == [distance.get(e, -1) for e in range(size)]


@given(moduli)
def test_negatives_add_up_to_zero(factors: tuple[int, ...]) -> None:
    group = Group(factors)
    for element, negative in enumerate(group.negatives().tolist()):
        assert group.element(group.negative(group.shift(element))) == negative


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_elements_add_and_subtract_by_coordinates(moduli: list[int], data: st.DataObject) -> None:
    group = Group(tuple(moduli))
    element = st.integers(0, group.size - 1)
    left, right = (np.array(data.draw(st.lists(element, min_size=4, max_size=4))) for _ in range(2))
    sums, gaps = group.plus(left, right), group.minus(left, right)
    for a, b, plus, minus in zip(left, right, sums, gaps, strict=True):
        pairs = list(zip(group.shift(int(a)), group.shift(int(b)), moduli, strict=True))
        assert group.shift(int(plus)) == tuple((x + y) % m for x, y, m in pairs)
        assert group.shift(int(minus)) == tuple((x - y) % m for x, y, m in pairs)
    assert (group.elements(group.coordinates(left)) == left).all()


@given(st.integers(2, 12), st.sets(st.integers(0, 11), max_size=12))
def test_an_interval_of_shifts_is_known_by_its_width(size: int, numbers: set[int]) -> None:
    group = Group((size,))
    shifts = {number % size for number in numbers} - {0}
    expected = {
        (width, signed)
        for width in range(1, size)
        for signed in (False, True)
        if shifts == {s % size for i in range(1, width + 1) for s in ((i, -i) if signed else (i,))}
    }
    width, signed = group.interval(tuple((number,) for number in numbers))
    assert bool(width) == bool(expected)
    if expected:
        assert signed == any(description[1] for description in expected)
        assert (width, signed) == min(one for one in expected if one[1] == signed)


def test_intervals_are_those_of_one_ring() -> None:
    assert Group((3, 3)).interval(((1, 0), (2, 0))) == (0, False)
    assert Group((9,)).interval(()) == (0, False)
    assert Group((9,)).interval(((10,), (-1,))) == (1, True)


@pytest.mark.parametrize("shift", [(), (1,), (1, 2, 3)])
def test_a_shift_has_one_coordinate_for_each_factor(shift: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        Group((4, 5)).normal(shift)


def test_a_domain_has_two_answers_or_more() -> None:
    with pytest.raises(ValueError, match="two answers"):
        AnswerDomain(Topology.NOMINAL, ("only",))
    two = AnswerDomain(Topology.NOMINAL, ("no", "yes"))
    assert (two.size, two.group, two.parts) == (2, Group((2,)), (two,))


def test_a_topology_may_be_given_by_its_name() -> None:
    # As it is in a file; the type asks for the member.
    circle = AnswerDomain("cyclic", range(3))  # type: ignore[arg-type]
    assert circle.topology is Topology.CYCLIC
    assert circle.topologies == (Topology.CYCLIC,)


def test_only_ordered_answers_lie_on_a_line() -> None:
    on_a_line = {topology for topology in Topology if AnswerDomain(topology, (0, 1)).is_line}
    assert on_a_line == {Topology.ORDERED}


def test_joint_answers_live_in_the_product_of_their_groups() -> None:
    parts = tuple(AnswerDomain(Topology.ORDERED, tuple(range(size))) for size in (2, 3, 4))
    joint = JointDomain(parts)
    assert (joint.size, joint.group) == (24, Group((2, 3, 4)))
    assert joint.is_line is False


@pytest.mark.parametrize(
    ("low", "high", "count", "says"),
    [
        (0, 0, 2, "low must be"),
        (1, 0, 2, "low must be"),
        (0, 9, 1, "count must be"),
        (0, 9, 10, "count must be"),
    ],
)
def test_levels_are_no_more_than_the_integers_between(
    low: int, high: int, count: int, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        levels(low, high, count)


@given(st.integers(-50, 50), st.integers(1, 9), st.lists(st.integers(0, 11), max_size=5))
def test_labels_are_the_same_numbers_from_a_range_and_from_a_list(
    low: int, step: int, codes: list[int]
) -> None:
    labels = range(low, low + 12 * step, step)
    asked = np.array(codes, dtype=np.int64)
    found = AnswerDomain(Topology.ORDERED, labels).numbers(asked)
    assert found.tolist() == [labels[code] for code in codes]
    assert found.tolist() == AnswerDomain(Topology.ORDERED, tuple(labels)).numbers(asked).tolist()
