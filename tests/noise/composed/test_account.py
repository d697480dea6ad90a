"""The account of noise for several queries, beside the hockey-stick in plain rationals."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.budget.composed import step_of_budget
from release.exact.composition.charges import compose
from release.exact.integers.noise import IntegerNoise
from release.exact.numbers import exp_bounds
from release.noise.composed.account import (
    Pattern,
    certified_epsilon,
    group_losses,
    losses_of_groups,
    undominated,
)
from release.noise.composed.estimate import log_delta, moment, parts_of
from release.noise.composed.laws import Shape, exponential_power

SMALL = (
    IntegerNoise(-2, ((1, 1), (1, 3), (1, 8), (1, 3), (1, 1))),
    IntegerNoise(-1, ((1, 4), (1, 8), (1, 4))),
    IntegerNoise(-1, ((1, 1), (1, 5), (1, 2))),
)


def masses(noise: IntegerNoise) -> dict[int, Fraction]:
    return {k: noise.mass(k) for k in range(noise.low, noise.high + 1)}


def hockey_stick(cells: list[tuple[IntegerNoise, int]], ratio: Fraction) -> Fraction:
    """Σ max(0, P - ratio·Q) over all joint outputs; each cell's neighbor differs by its shift."""
    total = Fraction(0)
    for outcome in itertools.product(*(masses(noise).items() for noise, _ in cells)):
        here = there = Fraction(1)
        for (noise, shift), (value, mass) in zip(cells, outcome, strict=True):
            here *= mass
            there *= noise.mass(value - shift)
        total += max(Fraction(0), here - ratio * there)
    return total


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SMALL),
            st.lists(
                st.lists(st.integers(-2, 2), min_size=0, max_size=2).map(tuple),
                min_size=1,
                max_size=3,
            ).map(tuple),
        ),
        min_size=1,
        max_size=2,
    ),
    st.fractions(0, 2, max_denominator=20),
)
def test_no_choice_of_patterns_exceeds_the_account(
    queries: list[tuple[IntegerNoise, tuple[Pattern, ...]]], epsilon: Fraction
) -> None:
    step = Fraction(1, 20)
    account = losses_of_groups([(noise, patterns, 1) for noise, patterns in queries], step)
    ratio = exp_bounds(epsilon)[1]
    for chosen in itertools.product(*(patterns for _, patterns in queries)):
        cells = []
        for (noise, _), pattern in zip(queries, chosen, strict=True):
            cells += [(noise, shift) for shift in pattern]
        assert hockey_stick(cells, ratio) <= account.delta_at(epsilon)


def test_one_pattern_is_tight_on_the_grid() -> None:
    noise = SMALL[0]
    step = Fraction(1, 2000)
    epsilon = Fraction(1, 2)
    found = losses_of_groups([(noise, ((1, 1),), 1)], step).delta_at(epsilon)
    exact = hockey_stick([(noise, 1), (noise, 1)], exp_bounds(epsilon)[0])
    assert 0 <= found - exact < Fraction(1, 10**5)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_geometric_noise_costs_what_its_pure_charges_cost(count: int) -> None:
    noise = exponential_power(Fraction(count), Fraction(1))
    delta, step = Fraction(1, 10**6), step_of_budget(Fraction(1), count)
    found = certified_epsilon([(noise, ((1,),), count)], delta, step)
    assert found is not None
    pure = compose([(Fraction(1, count), Fraction(0))] * count).epsilon_at(delta)
    assert pure is not None
    assert float(found) == pytest.approx(float(pure), rel=1e-9)


def test_a_unit_that_touches_nothing_costs_nothing() -> None:
    losses = group_losses(SMALL[0], ((), (0, 0)), Fraction(1, 10))
    assert losses.epsilon_at(Fraction(0)) == 0


def test_dominated_patterns_are_left_out() -> None:
    patterns = [(1, 2), (-2, 1), (2,), (1, 1, 0), (3,), (1, 1, 1), ()]
    assert set(undominated(patterns)) == {(3,), (2, 1), (1, 1, 1)}


def test_noise_that_rises_again_is_refused() -> None:
    noise = IntegerNoise(-1, ((1, 3), (1, 2), (1, 3)))
    with pytest.raises(ValueError, match="unimodal"):
        group_losses(noise, ((2,),), Fraction(1, 10))


@pytest.mark.parametrize(
    ("power", "scale", "block", "pattern", "count"),
    [
        ("1", "18", 1, (1,), 30),
        ("1.7", "36", 1, (1,), 30),
        ("2", "60", 1, (1,), 100),
        ("1.5", "80", 1, (3, 1, 1), 10),
        ("1.8", "30000", 101, (1000,), 25),
        ("1", "300", 1, (40,), 9),
    ],
)
def test_floats_find_the_exact_delta(
    power: str, scale: str, block: int, pattern: Pattern, count: int
) -> None:
    shape = Shape(Fraction(power), Fraction(scale), block)
    step = step_of_budget(Fraction(1), count * len(pattern))
    exact = losses_of_groups([(shape.noise(), (pattern,), count)], step)
    parts = parts_of(shape, pattern, float(step))
    for epsilon in (Fraction(1, 2), Fraction(1)):
        delta = float(exact.delta_at(epsilon))
        found = math.exp(log_delta([([parts], count)], float(epsilon), float(step)))
        assert found == pytest.approx(delta, rel=1e-3)
    for order in (0, 1, 2):
        assert moment(shape, order) == pytest.approx(float(shape.noise().moment(order)), rel=1e-6)
