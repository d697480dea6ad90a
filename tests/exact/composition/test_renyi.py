"""The Rényi filter: moments and δ beside brute force in rationals, also where laws are chosen."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact.composition.distribution import UNIT, LossDistribution, of_charge
from release.exact.composition.profile import largest, profile_of_pairs
from release.exact.composition.renyi import (
    certified,
    certified_epsilon,
    moment,
    most_moments,
    product_above,
)
from release.exact.numbers import exp_below_any_verifier, exp_bounds
from tests.exact.composition.exponential import exponential

Law = list[tuple[Fraction, Fraction]]
MILLIONTH = Fraction(1, 10**6)
ORDERS = st.integers(2, 8)


@st.composite
def laws(draw: st.DrawFn) -> Law:
    """P and Q of up to four outcomes, each at least 1/40 of its law."""
    size = draw(st.integers(2, 4))
    sides = []
    for _ in "PQ":
        weights = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
        sides.append([Fraction(weight, sum(weights)) for weight in weights])
    return list(zip(*sides, strict=True))


def swapped(law: Law) -> Law:
    return [(q, p) for p, q in law]


def rational_moment(law: Law, order: int) -> Fraction:
    """Σ p^α·q^(1-α), of the order of the two laws in which it is larger."""
    return max(
        sum((p**order / q ** (order - 1) for p, q in way), Fraction(0))
        for way in (law, swapped(law))
    )


def losses_of(law: Law, step: Fraction) -> LossDistribution:
    ways = [profile_of_pairs(way, step, 2**12) for way in (law, swapped(law))]
    return largest(ways).distribution()


@given(laws(), ORDERS)
def test_a_moment_bounds_the_rational_one(law: Law, order: int) -> None:
    taken = moment(losses_of(law, Fraction(1, 20)), order)
    truth = rational_moment(law, order)
    assert truth <= taken.value
    # Connecting the dots between losses that are a twentieth apart costs little.
    assert taken.value <= truth * Fraction("1.1") ** order
    assert taken.cut <= Fraction(1, 10**20)


@pytest.mark.parametrize("order", [2, 6, 64])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "3"])
def test_the_moment_of_a_pure_charge_is_that_of_randomised_response(
    epsilon: str, order: int
) -> None:
    one = Fraction(epsilon)
    taken = moment(of_charge(one, Fraction(0), one), order)
    low, high = exp_bounds(one)
    truth = (low**order + 1 / high ** (order - 1)) / (1 + high)
    assert truth <= taken.value <= truth * (1 + Fraction(1, 10**15))


def test_what_a_moment_leaves_out_is_cut() -> None:
    failing = moment(of_charge(Fraction(1), Fraction(1, 100), Fraction(1)), 3)
    assert Fraction(1, 100) <= failing.cut <= Fraction(1, 100) + Fraction(1, 10**20)
    # A loss above 100 is cut as an infinite one is.
    half = UNIT // 2
    steep = moment(LossDistribution(Fraction(101), Fraction(101), (half, half), 0), 3)
    assert steep.cut == Fraction(1, 2)
    assert steep.value == 1
    assert moment(LossDistribution(Fraction(1), Fraction(102), (UNIT,), 0), 3).cut == 1
    # So are masses that were rounded up to more than 1 in all.
    much = moment(LossDistribution(Fraction(1), Fraction(0), (UNIT + 5,), 0), 2)
    assert much.cut == Fraction(5, UNIT)


@given(laws(), st.lists(laws(), min_size=4, max_size=4), ORDERS, st.integers(0, 20))
def test_delta_holds_where_the_second_law_is_chosen_by_the_first_answer(
    first: Law, seconds: list[Law], order: int, tenths: int
) -> None:
    """All outputs of an adaptive pair, in rationals, in both orders of the neighbors."""
    epsilon = Fraction(tenths, 10)
    threshold = exp_below_any_verifier(epsilon)
    bound = Fraction(1)
    for _, second in zip(first, seconds, strict=False):
        bound = max(bound, rational_moment(first, order) * rational_moment(second, order))
    for turned in (False, True):
        truth = Fraction(0)
        for (p, q), second in zip(first, seconds, strict=False):
            for p_then, q_then in second:
                heavy, light = (q * q_then, p * p_then) if turned else (p * p_then, q * q_then)
                truth += max(Fraction(0), heavy - threshold * light)
        assert truth <= certified(bound, order, epsilon)


@given(laws(), ORDERS)
def test_delta_of_three_times_one_law_is_bounded_at_the_epsilon_that_is_read(
    law: Law, order: int
) -> None:
    value, delta = moment(losses_of(law, Fraction(1, 20)), order).value, Fraction(1, 1000)
    together = product_above(product_above(value, value), value)
    epsilon = certified_epsilon(together, order, delta)
    assert certified(together, order, epsilon) <= delta
    assert together <= most_moments(order, epsilon, delta)
    if epsilon > 0:
        assert certified(together, order, epsilon - Fraction(2, 10**12)) > delta
    threshold, truth = exp_bounds(epsilon)[0], Fraction(0)
    for outcomes in product(law, repeat=3):
        p = q = Fraction(1)
        for mass_p, mass_q in outcomes:
            p, q = p * mass_p, q * mass_q
        truth += max(Fraction(0), p - threshold * q)
    assert truth <= delta


def test_the_constant_is_attained() -> None:
    """At x = t·α/(α-1) the bound (1 - t/x)₊ ≤ c·x^(α-1) is an equality."""
    order, epsilon = 5, Fraction(1)
    ratio = exp_below_any_verifier(epsilon) * order / (order - 1)
    threshold = exp_below_any_verifier(epsilon)
    assert certified(ratio ** (order - 1), order, epsilon) == 1 - threshold / ratio


def test_a_year_of_counts_is_4_926_at_order_6() -> None:
    def year(order: int) -> Fraction:
        value = moment(of_charge(Fraction("0.05"), Fraction(0), Fraction("0.05")), order).value
        together = Fraction(1)
        for _ in range(365):
            together = product_above(together, value)
        return certified_epsilon(together, order, MILLIONTH)

    figures = {order: year(order) for order in range(2, 12)}
    assert min(figures, key=figures.__getitem__) == 6
    assert Fraction("4.9258") < figures[6] < Fraction("4.9259")


@pytest.mark.parametrize("order", [1, 0, -3, 257])
def test_other_orders_are_refused(order: int) -> None:
    one = of_charge(Fraction(1), Fraction(0), Fraction(1))
    for call in (
        lambda: moment(one, order),
        lambda: certified(Fraction(1), order, Fraction(1)),
        lambda: certified_epsilon(Fraction(1), order, MILLIONTH),
        lambda: most_moments(order, Fraction(1), MILLIONTH),
    ):
        with pytest.raises(ValueError, match="from 2 to 256"):
            call()


def test_a_product_of_moments_is_rounded_up_to_thirty_decimals() -> None:
    """Section 7.9 of the format fixes every digit."""
    value = 1 + Fraction(1, 10**20)
    last = Fraction(1, 10**30)
    assert product_above(value, value) == 1 + Fraction(2, 10**20) + last
    assert product_above(1 + last, Fraction(1)) == 1 + last


def test_a_little_more_than_delta_allows_needs_a_little_epsilon() -> None:
    """Of order 2 the constant is a quarter, so that the logarithm of the product is left."""
    assert certified_epsilon(Fraction(1), 2, Fraction(1, 4)) == 0
    found = certified_epsilon(Fraction(3, 2), 2, Fraction(1, 4))
    assert math.log(1.5) <= found <= math.log(1.5) + 2e-12


@pytest.mark.parametrize("order", [2, 3, 256])
@pytest.mark.parametrize(("highest", "step"), [("100", "1"), ("100", "1/1000"), ("7/2", "3")])
def test_every_loss_up_to_100_counts_and_never_too_little(
    highest: str, step: str, order: int
) -> None:
    """So large moments have dozens of digits of which a factor rounded down would spoil some."""
    for place in (0, 1):
        masses = (0,) * place + (UNIT // 2,)
        losses = LossDistribution(Fraction(step), Fraction(highest), masses, 0)
        taken = moment(losses, order)
        truth = exponential((losses.highest - place * losses.step) * (order - 1)) / 2
        assert truth <= taken.value
        if place == 0:
            assert taken.value <= truth * (1 + Fraction(1, 10**15))
        assert taken.cut == 0


def test_the_losses_above_100_are_cut_from_the_largest_on() -> None:
    losses = LossDistribution(Fraction(50), Fraction(140), (UNIT // 2, UNIT // 4), UNIT // 8)
    taken = moment(losses, 2)
    truth = exponential(Fraction(90)) / 4
    assert taken.cut == Fraction(5, 8)
    assert truth <= taken.value <= truth * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("highest", ["-1/2", "-2", "-150"])
def test_losses_below_0_have_a_moment_of_1(highest: str) -> None:
    losses = LossDistribution(Fraction(1), Fraction(highest), (UNIT,), 0)
    assert moment(losses, 2).value == moment(losses, 200).value == 1


def test_no_more_than_everything_is_cut() -> None:
    assert moment(LossDistribution(Fraction(1), Fraction(0), (5,), UNIT), 2).cut == 1
    # Where nothing is left, its loss does not matter.
    nothing = moment(LossDistribution(Fraction(1), Fraction(100), (0,), UNIT), 256)
    assert nothing.value == nothing.cut == 1


@pytest.mark.parametrize("order", [2, 5, 256])
@pytest.mark.parametrize("epsilon", ["0", "0.001", "1", "7.3"])
def test_the_largest_product_has_just_that_delta(epsilon: str, order: int) -> None:
    most = most_moments(order, Fraction(epsilon), MILLIONTH)
    assert certified(most, order, Fraction(epsilon)) == MILLIONTH


@pytest.mark.parametrize("order", [2, 5, 256])
@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_hardly_more_than_the_largest_product_needs_another_decimal(
    epsilon: str, order: int
) -> None:
    """A logarithm alone would take e^ε for what it is; δ is read from a rational below it."""
    known = Fraction(epsilon)
    more = most_moments(order, known, MILLIONTH) * (1 + Fraction(1, 10**40))
    found = certified_epsilon(more, order, MILLIONTH)
    assert found == known + Fraction(1, 10**12)
    assert certified(more, order, found) <= MILLIONTH
