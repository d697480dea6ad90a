"""How near published answers are, against a sum over every true and every published answer."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.accuracy import error_at_ends, likely_around, radius_of
from release.exact.channel import Channel
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.pmf import Pmf

LINE, CIRCLE, NAMES = Topology.ORDERED, Topology.CYCLIC, Topology.NOMINAL


def domain(topology: Topology, size: int) -> AnswerDomain:
    if topology is NAMES:
        return AnswerDomain(topology, tuple(f"label {code}" for code in range(size)))
    return AnswerDomain(topology, tuple(range(size)))


def distance(topology: Topology, size: int, true: int, published: int) -> int:
    if topology is NAMES:
        return int(true != published)
    apart = abs(true - published)
    return min(apart, size - apart) if topology is CIRCLE else apart


def modular(moduli: tuple[int, ...], weights: list[int]) -> Modular:
    return Modular(Pmf.of(Group(moduli), weights))


def row(draw: st.DrawFn, size: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, 64), min_size=size - 1, max_size=size - 1)))
    return [b - a for a, b in itertools.pairwise([0, *cuts, 64])]


@st.composite
def noises(draw: st.DrawFn, topologies: tuple[Topology, ...]) -> tuple[Mechanism, AnswerDomain]:
    """Modular noise on any domain, or a channel, which is for answers in order."""
    topology, size = draw(st.sampled_from(topologies)), draw(st.integers(2, 8))
    if topology is LINE and draw(st.booleans()):
        return Channel.of([row(draw, size) for _ in range(size)]), domain(LINE, size)
    return modular((size,), row(draw, size)), domain(topology, size)


def chance(noise: Mechanism, true: int, published: int) -> Fraction:
    if isinstance(noise, Channel):
        return Fraction(int(noise.rows[true, published]), noise.total)
    assert isinstance(noise, Modular)
    return noise.pmf.mass((published - true) % noise.answers)


@given(noises((LINE, CIRCLE, NAMES)), st.integers(0, 8))
def test_chances_of_a_near_answer(case: tuple[Mechanism, AnswerDomain], radius: int) -> None:
    noise, answers = case
    codes = range(answers.size)
    near = sum(
        chance(noise, true, published)
        for true, published in itertools.product(codes, codes)
        if distance(answers.topology, answers.size, true, published) <= radius
    )
    assert noise.chance_within(answers, radius) == near / answers.size


@given(
    noises((LINE, CIRCLE)),
    st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(95, 100), Fraction(1)]),
)
def test_the_radius_is_the_least_that_holds_the_share(
    case: tuple[Mechanism, AnswerDomain], share: Fraction
) -> None:
    noise, answers = case
    radius = radius_of(noise, answers, share)
    assert radius is not None
    assert noise.chance_within(answers, radius) >= share
    assert radius == 0 or noise.chance_within(answers, radius - 1) < share


def test_names_have_no_radius_and_no_ends() -> None:
    noise = modular((4,), [1, 1, 1, 1])
    assert radius_of(noise, domain(NAMES, 4)) is None
    assert likely_around(noise, domain(NAMES, 4), 0) is None
    assert error_at_ends(noise, domain(NAMES, 4)) is None
    assert error_at_ends(noise, domain(CIRCLE, 4)) is None
    joint = JointDomain((domain(LINE, 2), domain(NAMES, 2)))
    assert radius_of(modular((2, 2), [1, 1, 1, 1]), joint) is None


@pytest.mark.parametrize(("missing", "radius"), [(0, 0), (1, 1)])
def test_the_usual_share_is_95_of_100(missing: int, radius: int) -> None:
    """One of five answers is right in three of four cases, less ``missing``; the others always."""
    total = 2**20
    rows = np.diag([3 * total // 4 - missing, *[total] * 4])
    rows[0, 1] = total - rows[0, 0]
    assert radius_of(Channel(rows, total), domain(LINE, 5)) == radius


@pytest.mark.parametrize("sizes", [(2, 7), (7, 2)])
def test_the_radius_of_joint_answers_reaches_over_the_largest_part(sizes: tuple[int, int]) -> None:
    """All noise moves both parts from one end to the other."""
    weights = [0] * (sizes[0] * sizes[1])
    weights[-1] = 4
    noise = modular(sizes, weights)
    answers = JointDomain(tuple(domain(LINE, size) for size in sizes))
    assert radius_of(noise, answers, Fraction(1)) == 6


@given(noises((LINE,)))
def test_errors_at_the_ends_are_those_of_the_lowest_and_highest_answer(
    case: tuple[Mechanism, AnswerDomain],
) -> None:
    noise, answers = case
    expected = tuple(
        sum((chance(noise, true, code) * abs(code - true) for code in range(answers.size)), 0)
        for true in (0, answers.size - 1)
    )
    assert error_at_ends(noise, answers) == expected


@given(st.lists(st.sampled_from([LINE, CIRCLE, NAMES]), min_size=1, max_size=2), st.data())
def test_errors_at_the_ends_of_joint_answers_add_up(
    topologies: list[Topology], data: st.DataObject
) -> None:
    parts = (domain(LINE, 3), *(domain(topology, 5) for topology in topologies))
    sizes = tuple(part.size for part in parts)
    weights = [data.draw(st.integers(0, 3)) for _ in range(int(np.prod(sizes)))]
    missing = 2**9 - sum(weights)
    noise = modular(sizes, [weights[0] + missing, *weights[1:]])
    expected = [Fraction(0), Fraction(0)]
    for element, moves in enumerate(itertools.product(*map(range, sizes))):
        for part, move in zip(parts, moves, strict=True):
            for end, true in enumerate((0, part.size - 1)):
                apart = distance(part.topology, part.size, true, (true + move) % part.size)
                expected[end] += noise.pmf.mass(element) * apart
    assert error_at_ends(noise, JointDomain(parts)) == tuple(expected)


@given(
    noises((LINE, CIRCLE)),
    st.integers(0, 7),
    st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(95, 100)]),
)
def test_the_likely_answers_are_the_shortest_run_that_holds_the_share(
    case: tuple[Mechanism, AnswerDomain], code: int, share: Fraction
) -> None:
    noise, answers = case
    size = answers.size
    published = code % size
    column = [chance(noise, true, published) for true in range(size)]
    expected = None
    for length in range(size - 1, 0, -1):
        starts = range(size if answers.topology is CIRCLE else size - length + 1)
        for start in reversed(starts):
            run = [(start + step) % size for step in range(length)]
            if sum(column[true] for true in run) >= share * sum(column):
                expected = (run[0], run[-1])
    if any(column):
        assert likely_around(noise, answers, published, share) == expected


def test_a_run_of_likely_answers_may_pass_the_end_of_a_circle() -> None:
    noise = modular((8,), [16, 8, 0, 0, 0, 0, 0, 8])
    assert likely_around(noise, domain(CIRCLE, 8), 0) == (7, 1)
    # A share that is reached exactly is reached.
    assert likely_around(noise, domain(CIRCLE, 8), 0, Fraction(1, 2)) == (0, 0)
    assert likely_around(noise, domain(CIRCLE, 8), 4) == (3, 5)
    assert likely_around(modular((8,), [4] * 8), domain(CIRCLE, 8), 4) is None
