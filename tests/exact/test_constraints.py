"""Further demands on noise: each against its sentence, and their tolerance at its very edge."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.domain import Group
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.constraints import (
    TOLERANCE,
    Constraint,
    equal_masses,
    keeps_all,
    monotone,
    zero_mean,
)
from tests.noise.caps import at_most


@st.composite
def laws(draw: st.DrawFn, size: int) -> Pmf:
    cuts = sorted(draw(st.lists(st.integers(0, 16), min_size=size - 1, max_size=size - 1)))
    return Pmf.of(Group((size,)), [b - a for a, b in itertools.pairwise([0, *cuts, 16])])


@given(st.integers(2, 7), st.data())
def test_zero_mean_is_that_of_the_smallest_signed_numbers(size: int, data: st.DataObject) -> None:
    law = data.draw(laws(size))
    signed = {noise: noise if 2 * noise < size else noise - size for noise in range(size)}
    signed |= {noise: 0 for noise in signed if 2 * noise == size}
    mean = sum(value * law.mass(noise) for noise, value in signed.items())
    assert zero_mean(Group((size,))).holds(law) == (mean == 0)


def test_zero_mean_of_one_factor_leaves_the_other_free() -> None:
    group = Group((3, 5))
    for factor, moves in itertools.product((0, 1), itertools.product(range(3), range(5))):
        weights = np.zeros(15, dtype=np.int64)
        weights[group.element(moves)] = 2
        law = Pmf(group, weights, 2)
        assert zero_mean(group, factor).holds(law) == (moves[factor] == 0)
        assert zero_mean(group).holds(law) == (moves[0] == 0)


@given(st.integers(2, 6), st.lists(st.integers(0, 11), min_size=2, max_size=4), st.data())
def test_equal_masses_are_those_of_the_named_elements(
    size: int, elements: list[int], data: st.DataObject
) -> None:
    law = data.draw(laws(size))
    masses = {law.mass(element % size) for element in elements}
    demands = equal_masses(law.group, [(element,) for element in elements])
    assert all(demand.holds(law) for demand in demands) == (len(masses) == 1)
    assert len(demands) == len({element % size for element in elements}) - 1


@given(st.integers(2, 6), st.data())
def test_monotone_noise_is_never_likelier_further_off(size: int, data: st.DataObject) -> None:
    law = data.draw(laws(size))
    distance = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    demands = monotone(law.group, np.array(distance))
    expected = all(
        law.mass(far) <= law.mass(near)
        for near, far in itertools.product(range(size), repeat=2)
        if distance[near] < distance[far]
    )
    assert all(demand.holds(law) for demand in demands) == expected


@given(st.integers(2, 6), st.sets(st.integers(0, 11), min_size=1), st.integers(0, 16), st.data())
def test_a_cap_counts_each_named_element_once(
    size: int, elements: set[int], sixteenths: int, data: st.DataObject
) -> None:
    law = data.draw(laws(size))
    share = sum((law.mass(element) for element in {e % size for e in elements}), Fraction(0))
    demand = at_most(law.group, [(element,) for element in elements], Fraction(sixteenths, 16))
    assert demand.holds(law) == (share <= Fraction(sixteenths, 16))


@pytest.mark.parametrize("coefficient", [1, 3])
def test_the_tolerance_is_two_to_the_minus_forty_of_the_largest_coefficient(
    coefficient: int,
) -> None:
    assert Fraction(1, 2**40) == TOLERANCE
    group, total = Group((2,)), 2**42
    coefficients = np.array([0, coefficient])
    for units, kept in ((-5, False), (-4, True), (4, True), (5, False)):
        # At a mass of a half plus so many units the sum is that much times the coefficient off.
        half = total // 2 + units
        law = Pmf.of(group, [total - half, half])
        limit = Fraction(coefficient, 2)
        assert Constraint("equal", coefficients, limit, True).holds(law) == kept
        assert Constraint("at most", coefficients, limit, False).holds(law) == (units <= 4)


def test_all_demands_and_the_guarantee_have_to_hold() -> None:
    group = Group((3,))
    law, sensitivity = Pmf.of(group, [2, 1, 1]), Sensitivity.of(group, [(1,)])
    one, half = (Guarantee(Definition.PURE, Fraction(e), Fraction(0)) for e in ("1", "1/2"))
    capped = at_most(group, [(0,)], Fraction(1, 4))
    assert keeps_all(law, sensitivity, one, ())
    assert keeps_all(law, sensitivity, one, (zero_mean(group),))
    assert not keeps_all(law, sensitivity, half, (zero_mean(group),))
    assert not keeps_all(law, sensitivity, one, (zero_mean(group), capped))
    # The ratio of a law that a verifier may refuse: e within 10^-30.
    bits = 2**120
    low, _ = exp_bounds(Fraction(1))
    light = int(bits / (2 + low)) + 1
    edge = Pmf.of(group, [bits - 2 * light, light, light])
    assert Fraction(bits - 2 * light, light) < low
    assert not keeps_all(edge, sensitivity, one, ())
