"""The staircases of the integers: their loss, the best of them, and that nothing is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from release.exact.bounds import expected_loss, lattice, least_loss, lower_bound
from release.exact.integers.noise import RATIO_ONE, IntegerNoise, Tail
from release.exact.numbers import exp_bounds
from release.exact.privacy import Deltas
from tests.exact.integers.test_noise import staircases

EPSILONS = (Fraction(1, 4), Fraction(1), Fraction(3))


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(3), Fraction(20)])
def test_the_expected_loss_is_that_of_a_direct_sum(power: int, ratio: Fraction) -> None:
    units = 2**200
    for most in range(1, 7):
        falls = [int(units / ratio**times) for times in range(300)]
        for rise in range(1, most + 1):
            total = weighted = 0
            for noise in range(most * 290):
                times = max(0, -(-(noise - rise + 1) // most))
                mass = falls[times] * (2 if noise else 1)
                total += mass
                weighted += mass * noise**power if noise else 0
            found = expected_loss(rise, most, ratio, power)
            assert abs(found - Fraction(weighted, total)) < Fraction(1, 10**30)


@given(
    st.integers(1, 60),
    st.fractions(Fraction(1001, 1000), 50, max_denominator=1000),
    st.integers(0, 2),
)
def test_the_least_loss_is_the_least_of_all_rises(most: int, ratio: Fraction, power: int) -> None:
    every = [expected_loss(rise, most, ratio, power) for rise in range(1, most + 1)]
    rise, loss = least_loss(most, ratio, power)
    assert loss == min(every) == every[rise - 1]


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_best_rise_of_many_is_no_worse_than_its_neighbors(power: int) -> None:
    most = 10**6
    for epsilon in (Fraction(1, 10**9), Fraction(1), Fraction(100)):
        ratio = exp_bounds(epsilon)[1]
        rise, loss = least_loss(most, ratio, power)
        for other in (1, most, most // 2, rise - 1, rise + 1, rise - 1000, rise + 1000):
            if 1 <= other <= most:
                assert expected_loss(other, most, ratio, power) >= loss


def test_one_apart_the_least_loss_is_that_of_geometric_noise() -> None:
    """P(η) ∝ a^|η|: an error in 2a/(1 + a) of all cases, 2a/(1 - a²), 2a/(1 - a)²."""
    for ratio in (Fraction(5, 4), Fraction(3), Fraction(50)):
        a = 1 / ratio
        expected = (2 * a / (1 + a), 2 * a / (1 - a**2), 2 * a / (1 - a) ** 2)
        assert tuple(least_loss(1, ratio, power)[1] for power in range(3)) == expected


@cache
def by_program(steps: tuple[int, ...], epsilon: Fraction, power: int, spread: int) -> float:
    """The least E|η|^power of noise that falls by e^-ε every max(steps) beyond ± reach.

    An upper bound on the least of all noise, whose excess falls with the reach.
    """
    ratio, period = math.exp(epsilon), max(steps)
    reach = period * math.ceil(spread / float(epsilon))
    places = np.arange(-reach, reach + 1)
    # The last period of each end stands for all its repetitions.
    fall = 1 / ratio
    counts, costs = np.ones(places.size), np.abs(places).astype(float) ** power
    costs[reach] = 0.0
    mean = fall / (1 - fall) ** 2
    square = fall * (1 + fall) / (1 - fall) ** 3
    for place in [*range(period), *range(places.size - period, places.size)]:
        far = abs(int(places[place]))
        counts[place] = 1 / (1 - fall)
        powers = (1.0, far / (1 - fall) + period * mean, 0.0)
        squares = far**2 / (1 - fall) + 2 * far * period * mean + period**2 * square
        costs[place] = (1 / (1 - fall), powers[1], squares)[power]
    # Masses relative to what they fall to: the program is then well scaled.
    scale = fall ** (np.abs(places) / period)
    rows, columns, values, row = [], [], [], 0
    for step in steps:
        for place in range(places.size + step):
            here, there = place - step, place
            for heavy, light in ((here, there), (there, here)):
                terms = []
                for place_of, factor in ((heavy, 1.0), (light, -ratio)):
                    at, beyond = place_of, 0
                    while at >= places.size:
                        at, beyond = at - period, beyond + 1
                    while at < 0:
                        at, beyond = at + period, beyond + 1
                    terms.append((at, factor * fall**beyond * scale[at]))
                largest = max(abs(value) for _, value in terms)
                for at, value in terms:
                    rows.append(row)
                    columns.append(at)
                    values.append(value / largest)
                row += 1
    matrix = coo_array((values, (rows, columns)), shape=(row, places.size))
    found = linprog(
        costs * scale,
        A_ub=matrix,
        b_ub=np.zeros(row),
        A_eq=(counts * scale)[None, :],
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    assert found.status == 0, found.message
    return float(found.fun)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("most", range(1, 7))
def test_the_bound_is_the_least_of_a_program(most: int, epsilon: Fraction, power: int) -> None:
    steps = tuple(range(1, most + 1))
    bound = float(lower_bound(steps, epsilon, Fraction(0), power))
    assert bound == pytest.approx(by_program(steps, epsilon, power, 3), rel=1e-6)


@pytest.mark.parametrize("power", [0, 1])
@pytest.mark.parametrize("steps", [(2,), (3,), (2, 4), (3, 6), (2, 4, 6), (5,)])
def test_the_bound_of_multiples_is_the_least_of_a_program(
    steps: tuple[int, ...], power: int
) -> None:
    bound = float(lower_bound(steps, Fraction(1), Fraction(0), power))
    assert bound == pytest.approx(by_program(steps, Fraction(1), power, 3), rel=1e-6)


@pytest.mark.parametrize("steps", [(2,), (3,), (5,), (2, 4, 6)])
def test_no_program_is_below_the_bound_of_squares(steps: tuple[int, ...]) -> None:
    bound = float(lower_bound(steps, Fraction(1), Fraction(0), 2))
    assert 0 < bound <= by_program(steps, Fraction(1), 2, 3) * (1 + 1e-6)


@pytest.mark.parametrize("step", [1, 2, 5])
def test_the_bound_of_squares_of_one_step_is_the_variance_of_geometric_noise(step: int) -> None:
    """Two-sided geometric noise on the multiples of the step: 2E/(E - 1)² of its square."""
    ratio = exp_bounds(Fraction(1))[1]
    expected = 2 * ratio / (ratio - 1) ** 2 * step**2
    assert lower_bound((step,), Fraction(1), Fraction(0), 2) == expected


@pytest.mark.parametrize("steps", [(2, 4), (3, 6)])
def test_no_program_between_the_multiples_is_below_the_bound_of_squares(
    steps: tuple[int, ...],
) -> None:
    bound = float(lower_bound(steps, Fraction(1), Fraction(0), 2))
    assert bound <= by_program(steps, Fraction(1), 2, 3) * (1 + 1e-6)


def noise_on_odd_integers() -> IntegerNoise:
    """±1 have 1/4 each, ±3 and ±5 a third of it, ±7 and ±9 a ninth, and so on, nearly."""
    tail = Tail(4, RATIO_ONE // 3 + 1)
    weights = (1, 0, 1, 0, 2, 0, 2, 0, 1, 0, 1)
    return IntegerNoise(-5, tuple((1, weight) for weight in weights), tail, tail)


A_LITTLE_ABOVE_3 = Fraction(3) + Fraction(1, 10**12)
LN_OF_IT = Fraction("1.0986122886685")


def test_noise_on_odd_integers_loses_less_than_noise_on_even_ones() -> None:
    noise = noise_on_odd_integers()
    assert noise.deltas((2, 4), A_LITTLE_ABOVE_3) == Deltas(Fraction(0), Fraction(0))
    assert A_LITTLE_ABOVE_3 < exp_bounds(LN_OF_IT)[0] < A_LITTLE_ABOVE_3 + Fraction(1, 10**11)
    assert noise.moment(2) < least_loss(2, A_LITTLE_ABOVE_3, 2)[1] * 4 * Fraction(99, 100)


def test_noise_on_odd_integers_loses_no_less_than_the_bound() -> None:
    assert lower_bound((2, 4), LN_OF_IT, Fraction(0), 2) <= noise_on_odd_integers().moment(2)


@pytest.mark.parametrize("steps", [(1, 3), (2, 3), (1, 2, 5), (4, 6), (2, 6)])
def test_distances_with_gaps_have_no_bound(steps: Sequence[int]) -> None:
    assert all(lower_bound(steps, Fraction(1), Fraction(0), power) == 0 for power in range(3))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100)])
def test_without_any_epsilon_there_is_no_bound(delta: Fraction) -> None:
    """The format says so: neither of what δ alone allows, nor of what nothing satisfies."""
    assert all(lower_bound((1, 2), Fraction(0), delta, power) == 0 for power in range(3))


def test_the_spacing_of_distances() -> None:
    assert lattice((1, 2, 3)) == (1, 3)
    assert lattice((2, 4, 6)) == (2, 3)
    assert lattice((7,)) == (7, 1)
    assert lattice((4, 6)) == (2, 3)
    assert lattice(range(1, 10**6)) == (1, 10**6 - 1)


def feasible_ratio(masses: Sequence[Fraction], most: int) -> Fraction | None:
    """The least e^ε of masses that are listed far enough to both sides."""
    worst = Fraction(1)
    for step in range(1, most + 1):
        for here, there in zip(masses, masses[step:], strict=False):
            if not here or not there:
                return None
            worst = max(worst, here / there, there / here)
    return worst


@settings(max_examples=150)
@given(staircases(), st.integers(1, 4), st.integers(0, 2))
def test_no_noise_loses_less_than_the_least_loss(
    noise: IntegerNoise, most: int, power: int
) -> None:
    # Two periods beyond each end and a step show every ratio there is.
    ratio = feasible_ratio([noise.mass(k) for k in range(-20, 21)], most)
    assert ratio is not None
    assert noise.moment(power) >= least_loss(most, ratio, power)[1]


@pytest.mark.parametrize("power", [0, 1, 2])
def test_the_least_loss_itself_is_reached(power: int) -> None:
    """Masses 1/2, 1/8, 1/16 … fall by 4 once, and then by 2: worse than the best for 4."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE // 4))
    # 1/2, 3/16, 3/64 …: 8/3 and then 4.
    assert feasible_ratio([noise.mass(k) for k in range(-9, 10)], 1) == 4
    assert noise.moment(power) > least_loss(1, Fraction(4), power)[1]
    level = IntegerNoise.symmetric([(1, 4), (1, 6)], Tail(1, RATIO_ONE // 3 + 1))
    assert level.moment(power) > least_loss(1, Fraction(3), power)[1]


def test_steps_far_apart_lose_what_moving_between_them_adds() -> None:
    """Of multiples of 3 the square grows by 9/4 at most, so by 2: noise is whole."""
    near = lower_bound((1, 2), Fraction(1, 2), Fraction(0), 2)
    assert lower_bound((3, 6), Fraction(1, 2), Fraction(0), 2) == 9 * near - 2


def test_of_two_rises_that_are_as_good_the_first_is_taken() -> None:
    """For steps up to 3 and e^ε = 4 the mean error is 2 with a rise of 1 and with one of 2."""
    assert [expected_loss(rise, 3, Fraction(4), 1) for rise in (1, 2)] == [2, 2]
    assert least_loss(3, Fraction(4), 1) == (1, Fraction(2))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10), Fraction(1)])
def test_delta_takes_its_share_of_the_bound_of_error_rates(delta: Fraction) -> None:
    """The truth with chance δ and geometric noise of 2^-|η|/3 else: wrong in 2/3 of 1 - δ."""
    # ln 2 = 0.69314718…
    bound = lower_bound((1,), Fraction("0.69314718"), delta, 0)
    assert abs(bound - (1 - delta) * Fraction(2, 3)) < Fraction(1, 10**8)


def test_where_moving_to_multiples_costs_more_than_the_bound_there_is_none() -> None:
    """At ε = 9 nearly all noise is 0: the mean square is below the 25 that moving may add."""
    assert least_loss(2, exp_bounds(Fraction(9))[1], 2)[1] * 100 < 25
    assert lower_bound((10, 20), Fraction(9), Fraction(0), 2) == 0
