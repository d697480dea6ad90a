"""Loss functions against a sum over every true answer and every noise value."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.errors import SpecError
from release.exact.domain import AnswerDomain, Group, JointDomain, Topology
from release.exact.losses import (
    Loss,
    LossName,
    WorstCaseLoss,
    check_prior,
    costs_at,
    error_costs,
    joint_loss,
    line_fits,
    named_loss,
    power_of,
    prior_loss,
    probability_within,
    table_loss,
    worst_case,
    worst_on_line,
)
from release.exact.pmf import Pmf

names = st.sampled_from(LossName)
topologies = st.sampled_from(Topology)
LARGEST = 2**62


def distance(topology: Topology, size: int, true: int, published: int) -> int:
    if topology is Topology.NOMINAL:
        return int(true != published)
    apart = abs(true - published)
    return min(apart, size - apart) if topology is Topology.CYCLIC else apart


def cost(name: LossName, topology: Topology, size: int, true: int, noise: int) -> int:
    """What noise costs at one true answer, straight from the words of the losses."""
    if name is LossName.NOISE_SQUARED:
        return noise**2
    apart = distance(topology, size, true, (true + noise) % size)
    return {
        LossName.ERROR_RATE: int(apart > 0),
        LossName.ABSOLUTE: apart,
        LossName.SQUARED: apart**2,
    }[name]


@st.composite
def laws(draw: st.DrawFn, size: int) -> Pmf:
    cuts = sorted(draw(st.lists(st.integers(0, 64), min_size=size - 1, max_size=size - 1)))
    weights = [b - a for a, b in itertools.pairwise([0, *cuts, 64])]
    return Pmf.of(Group((size,)), weights)


@given(names, topologies, st.integers(2, 9), st.data())
def test_expected_losses_are_the_means_over_all_true_answers(
    name: LossName, topology: Topology, size: int, data: st.DataObject
) -> None:
    law = data.draw(laws(size))
    at_answers = [
        sum(law.mass(noise) * cost(name, topology, size, true, noise) for noise in range(size))
        for true in range(size)
    ]
    uniform = named_loss(name, topology, size)
    assert uniform.of(law) == sum(at_answers) / size
    parts = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    prior = tuple(Fraction(part, sum(parts)) for part in parts)
    expected = sum(p * at for p, at in zip(prior, at_answers, strict=True))
    assert prior_loss(name, topology, prior).of(law) == expected
    assert worst_case(name, topology, size).of(law) == max(at_answers)


@given(names, topologies, st.integers(2, 9))
def test_costs_of_single_noise_values_and_their_ends(
    name: LossName, topology: Topology, size: int
) -> None:
    table = [
        [cost(name, topology, size, true, noise) for noise in range(size)] for true in range(size)
    ]
    assert error_costs(name, topology, size).tolist() == table
    loss = named_loss(name, topology, size)
    costs = [Fraction(sum(column), size) for column in zip(*table, strict=True)]
    assert [loss.cost(noise) for noise in range(size)] == costs
    assert loss.typical().tolist() == pytest.approx([float(each) for each in costs])
    assert loss.largest == max(costs)
    assert loss.least == min(each for each in costs if each)
    assert loss.is_error_rate == (len(set(costs[1:])) == 1)
    worst = worst_case(name, topology, size)
    assert worst.largest == max(map(max, table))
    assert worst.typical().tolist() == pytest.approx([float(each) for each in costs])
    alike = all(row == table[0] for row in table)
    assert isinstance(worst, Loss if alike else WorstCaseLoss)
    assert worst.is_error_rate == (alike and loss.is_error_rate)


def test_a_table_of_costs_is_taken_exactly() -> None:
    loss = table_loss((Fraction(0), Fraction(1, 3), Fraction(5, 2)))
    assert [loss.cost(noise) for noise in range(3)] == [0, Fraction(1, 3), Fraction(5, 2)]
    law = Pmf.of(Group((3,)), [1, 2, 1])
    assert loss.of(law) == Fraction(1, 6) + Fraction(5, 8)
    assert (loss.least, loss.largest) == (Fraction(1, 3), Fraction(5, 2))
    assert table_loss((Fraction(0), Fraction(0))).least == 0
    assert table_loss((Fraction(0), Fraction(LARGEST - 1))).largest == LARGEST - 1
    for wrong in (Fraction(-1), Fraction(LARGEST), Fraction(LARGEST, 3)):
        with pytest.raises(ValueError, match="at least 0"):
            table_loss((Fraction(0), wrong))


def test_costs_of_the_worst_case_are_over_their_denominator() -> None:
    loss = WorstCaseLoss("worst-case", np.array([[0, 3], [0, 4]]), 2)
    assert loss.typical().tolist() == [0, 1.75]
    assert loss.of(Pmf.of(Group((2,)), [1, 3])) == Fraction(3, 2)
    assert (loss.least, loss.largest) == (Fraction(3, 2), Fraction(2))


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ((0, 2, 2), True),
        ((0, 2), True),
        ((0, 2, 1), False),
        ((1, 2, 2), False),
        ((0, 0, 0), False),
        ((0,), False),
    ],
)
def test_closed_forms_apply_where_every_error_costs_the_same(
    costs: tuple[int, ...], expected: bool
) -> None:
    assert table_loss(tuple(map(Fraction, costs))).is_error_rate == expected


def test_what_is_no_prior_is_refused() -> None:
    check_prior((Fraction(0), Fraction(1)))
    for wrong in (
        (Fraction(-1, 2), Fraction(3, 2)),
        (Fraction(1, 2), Fraction(1, 3)),
        (Fraction(1), Fraction(1)),
    ):
        with pytest.raises(ValueError, match="add up to 1"):
            check_prior(wrong)
        with pytest.raises(ValueError, match="add up to 1"):
            prior_loss(LossName.ABSOLUTE, Topology.ORDERED, wrong)


def test_the_denominator_of_a_prior_stays_within_64_bits() -> None:
    """The costs of two answers are 0 and the denominator itself."""

    def share(denominator: int) -> tuple[Fraction, Fraction]:
        return Fraction(1, denominator), Fraction(denominator - 1, denominator)

    near = prior_loss(LossName.ERROR_RATE, Topology.NOMINAL, share(LARGEST - 1))
    assert near.cost(1) == 1
    with pytest.raises(ValueError, match="common denominator is too large"):
        prior_loss(LossName.ERROR_RATE, Topology.NOMINAL, share(LARGEST))


def domain(topology: Topology, size: int) -> AnswerDomain:
    if topology is Topology.NOMINAL:
        return AnswerDomain(topology, tuple(f"label {code}" for code in range(size)))
    return AnswerDomain(topology, tuple(range(size)))


domains = st.builds(domain, topologies, st.integers(2, 4))


@given(names, st.lists(domains, min_size=1, max_size=3))
def test_joint_losses_add_up_over_the_parts(name: LossName, parts: list[AnswerDomain]) -> None:
    loss = joint_loss(name, tuple(parts))
    noises = list(itertools.product(*(range(part.size) for part in parts)))
    assert loss.numerators.shape == (len(noises),)
    for element, noise in enumerate(noises):
        if name is LossName.ERROR_RATE:
            assert loss.cost(element) == int(any(noise))
            continue
        expected = sum(
            Fraction(cost(name, part.topology, part.size, true, own), part.size)
            for part, own in zip(parts, noise, strict=True)
            for true in range(part.size)
        )
        assert loss.cost(element) == expected


@given(names, st.lists(domains, min_size=1, max_size=3), st.data())
def test_costs_at_an_answer_are_those_of_its_parts(
    name: LossName, parts: list[AnswerDomain], data: st.DataObject
) -> None:
    whole = parts[0] if len(parts) == 1 else JointDomain(tuple(parts))
    answers = list(itertools.product(*(range(part.size) for part in parts)))
    true = data.draw(st.integers(0, len(answers) - 1))
    loss = joint_loss(name, tuple(parts))
    found = costs_at(loss, whole, true)
    assert (found.shape, loss.denominator_at_answers) == ((len(answers),), 1)
    for published, answer in enumerate(answers):
        if name is LossName.ERROR_RATE:
            assert found[published] == int(published != true)
            continue
        expected = 0
        for part, own, other in zip(parts, answers[true], answer, strict=True):
            expected += cost(name, part.topology, part.size, own, (other - own) % part.size)
        assert found[published] == expected


def test_costs_of_a_table_at_an_answer_are_those_of_the_noise() -> None:
    loss = table_loss((Fraction(0), Fraction(1, 2), Fraction(5, 3)))
    assert loss.denominator_at_answers == 6
    # Published 0, 1 and 2 are 2, 0 and 1 above a true 1, modulo 3.
    assert costs_at(loss, domain(Topology.ORDERED, 3), 1).tolist() == [10, 0, 3]


def test_the_plain_loss_of_a_worst_case_is_that_at_the_lowest_answer() -> None:
    worst = worst_case(LossName.ABSOLUTE, Topology.ORDERED, 4)
    assert isinstance(worst, WorstCaseLoss)
    plain = worst.plain
    assert (plain.name, plain.numerators.tolist(), plain.denominator) == (
        "absolute",
        [0, 1, 2, 3],
        1,
    )


def test_joint_costs_beyond_64_bits_are_refused() -> None:
    """Absolute costs on a line of N answers are over N: primes have no smaller denominator."""
    lines = tuple(domain(Topology.ORDERED, size) for size in (2039, 2053, 2063, 2069, 2081))
    with pytest.raises(ValueError, match="fewer or smaller parts"):
        joint_loss(LossName.ABSOLUTE, lines)
    circle = domain(Topology.CYCLIC, 4)
    assert joint_loss(LossName.SQUARED, (circle, circle)).largest == 8
    small = tuple(domain(Topology.ORDERED, size) for size in (5, 7))
    assert joint_loss(LossName.ABSOLUTE, small).largest == Fraction(12, 5) + Fraction(24, 7)


@given(st.lists(domains, min_size=1, max_size=2), st.integers(0, 4), st.data())
def test_the_chance_of_a_near_answer_is_that_of_all_outcomes(
    parts: list[AnswerDomain], radius: int, data: st.DataObject
) -> None:
    sizes = [part.size for part in parts]
    size = int(np.prod(sizes))
    weights = data.draw(laws(size)).weights
    law = Pmf.of(Group(tuple(sizes)), weights.tolist())
    noises = list(itertools.product(*map(range, sizes)))
    near = Fraction(0)
    for true in itertools.product(*map(range, sizes)):
        for element, noise in enumerate(noises):
            apart = [
                distance(part.topology, part.size, q, (q + eta) % part.size)
                for part, q, eta in zip(parts, true, noise, strict=True)
            ]
            if all(each <= radius for each in apart):
                near += law.mass(element) / size
    assert probability_within(law, tuple(parts), radius) == near


@pytest.mark.parametrize("name", [LossName.ABSOLUTE, LossName.SQUARED])
def test_the_worst_of_many_answers_in_order_has_no_costs_of_noise(name: LossName) -> None:
    expected = worst_case(name, Topology.ORDERED, 5)
    assert isinstance(expected, WorstCaseLoss)
    for most in (5, 6):
        whole = worst_on_line(name, 5, most)
        assert (whole.name, whole.numerators.tolist()) == (
            expected.name,
            expected.numerators.tolist(),
        )
    short = worst_on_line(name, 5, 4)
    assert (short.name, short.numerators.tolist()) == (expected.name, [[0, 1]])


def test_the_power_of_a_loss_is_that_of_its_error() -> None:
    named = {LossName.ERROR_RATE: 0, LossName.ABSOLUTE: 1, LossName.SQUARED: 2}
    for name, power in named.items():
        assert power_of(named_loss(name, Topology.ORDERED, 4)) == power
        assert power_of(worst_on_line(name, 4, 9)) == power
    for other in (
        named_loss(LossName.NOISE_SQUARED, Topology.ORDERED, 4),
        table_loss((Fraction(0), Fraction(1))),
    ):
        with pytest.raises(ValueError, match="error_rate, absolute or squared"):
            power_of(other)


def test_a_line_fits_the_named_losses_of_an_error() -> None:
    line = domain(Topology.ORDERED, 4)
    for name in LossName:
        fits = name is not LossName.NOISE_SQUARED
        assert line_fits(line, name) is fits
        assert line_fits(line, named_loss(name, Topology.ORDERED, 4)) is fits
        assert not line_fits(domain(Topology.CYCLIC, 4), name)
    assert not line_fits(line, table_loss((Fraction(0), Fraction(1), Fraction(2), Fraction(3))))


def test_a_loss_needs_two_answers_or_more() -> None:
    for make in (named_loss, error_costs, worst_case):
        with pytest.raises(SpecError, match="answers: found 1; write an integer of at least 2"):
            make(LossName.ABSOLUTE, Topology.CYCLIC, 1)
