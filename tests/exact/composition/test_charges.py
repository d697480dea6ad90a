"""The composition of charges: the truth, the published figures and another library beside it."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from release.exact.composition.charges import common_step, compose
from release.exact.composition.grid import LONGEST
from release.exact.numbers import exp_bounds
from tests.every import some
from tests.exact.composition.test_distribution import exact_delta

Charge = tuple[Fraction, Fraction]
MILLIONTH = Fraction(1, 10**6)
PURE = Fraction(0)
EPSILONS = st.fractions(0, 3, max_denominator=1000)
DELTAS = st.sampled_from([PURE, Fraction(1, 10**9), Fraction(1, 100)])


@given(st.lists(st.tuples(EPSILONS, DELTAS), max_size=5), st.fractions(0, 9, max_denominator=50))
def test_delta_is_at_least_the_enumerated_truth(charges: list[Charge], at: Fraction) -> None:
    together = compose(charges)
    truth = exact_delta(charges, at)
    assert truth - Fraction(1, 10**25) <= together.delta_at(at)
    if common_step(dict.fromkeys(charges, 5)).denominator <= 100:
        assert together.delta_at(at) <= truth + Fraction(1, 10**20)


def binomial_delta(epsilon: Fraction, times: int, at: Fraction) -> Fraction:
    """δ of so many pure charges, or geometric counts: one sum over the number of lower losses."""
    ratio, threshold = exp_bounds(epsilon)[0], exp_bounds(at)[1]
    up, down, total = [1], [1], 0
    for _ in range(times):
        up.append(up[-1] * ratio.numerator)
        down.append(down[-1] * ratio.denominator)
    # Over the common denominator, so that no fraction is reduced on the way.
    for lower in range(times + 1):
        higher = times - lower
        over = threshold.denominator * up[higher] * down[lower]
        over -= threshold.numerator * up[lower] * down[higher]
        total += comb(times, lower) * max(0, over)
    return Fraction(total, threshold.denominator * sum(ratio.as_integer_ratio()) ** times)


def test_a_year_of_geometric_counts_is_the_binomial_sum() -> None:
    """Two-sided geometric noise attains the worst case of a pure charge: 4.61345, not 18.25."""
    epsilon = Fraction("0.05")
    found = compose([(epsilon, PURE)] * 365).epsilon_at(MILLIONTH)
    assert found is not None
    assert found <= Fraction("4.6134484")
    assert binomial_delta(epsilon, 365, found) <= MILLIONTH
    assert binomial_delta(epsilon, 365, found - Fraction(1, 10**9)) > MILLIONTH


@pytest.mark.parametrize(("epsilon", "times"), [("0.000001", 1000), ("50", 1), ("1/3", 30)])
def test_small_and_large_charges_are_the_binomial_sum(epsilon: str, times: int) -> None:
    one = Fraction(epsilon)
    found = compose([(one, PURE)] * times).epsilon_at(MILLIONTH)
    assert found is not None
    assert binomial_delta(one, times, found) <= MILLIONTH
    assert binomial_delta(one, times, found - Fraction(2, 10**12)) > MILLIONTH
    assert found < one * times


def dp_accountings(charges: list[Charge], step: Fraction, delta: Fraction) -> float:
    composition = privacy_loss_distribution.identity(value_discretization_interval=float(step))
    for charge in charges:
        parameters = common.DifferentialPrivacyParameters(*map(float, charge))
        composition = composition.compose(
            privacy_loss_distribution.from_privacy_parameters(
                parameters, value_discretization_interval=float(step)
            )
        )
    return float(composition.get_epsilon_for_delta(float(delta)))


def test_two_hundred_products_are_at_most_the_pessimistic_figure_of_dp_accounting() -> None:
    """At the same grid; 10⁻⁷ is for its floats. Where no grid is given ours is lower still."""
    source = random.Random(20240301)  # noqa: S311 - cases of a test
    step = Fraction(1, 250)
    for _ in range(some(200)):
        charges = [
            (
                Fraction(source.randrange(1, 20_000), 10_000),
                source.choice([PURE, Fraction(1, 10**9), MILLIONTH]),
            )
            for _ in range(source.randrange(2, 9))
        ]
        delta = source.choice([Fraction(1, 10**4), Fraction(1, 1000), Fraction(1, 10**5)])
        theirs = dp_accountings(charges, step, delta)
        for ours in (compose(charges, step), compose(charges)):
            found = ours.epsilon_at(delta)
            assert found is not None
            assert found <= theirs + 1e-7


def test_more_and_larger_charges_never_have_a_lesser_figure() -> None:
    base = [(Fraction("0.1"), PURE), (Fraction("0.25"), MILLIONTH), (Fraction("0.3"), PURE)]
    step = Fraction("0.01")
    before = compose(base, step)
    more = compose([*base, (Fraction("0.05"), PURE)], step)
    larger = compose([*base[:2], (Fraction("0.31"), PURE)], step)
    leaking = compose([*base[:2], (Fraction("0.3"), Fraction("0.001"))], step)
    points = [Fraction(point, 20) for point in range(15)]
    for after in (more, larger, leaking):
        assert all(before.delta_at(at) <= after.delta_at(at) for at in points)
    deltas = [before.delta_at(at) for at in points]
    assert deltas == sorted(deltas, reverse=True)


def test_the_order_of_products_does_not_matter() -> None:
    source = random.Random(7)  # noqa: S311 - cases of a test
    charges = [(Fraction(source.randrange(1, 500), 1000), MILLIONTH) for _ in range(40)]
    together = compose(charges)
    source.shuffle(charges)
    assert compose(charges) == together
    parts = [compose([charge], together.step) for charge in charges]
    slowly = parts[0]
    for part in parts[1:]:
        slowly = slowly.composed(part)
    for at in map(Fraction, ("0", "1", "3", "6")):
        assert abs(slowly.delta_at(at) - together.delta_at(at)) < Fraction(1, 10**16)


def test_charges_without_a_common_grid_stay_short_and_near_the_truth() -> None:
    source = random.Random(11)  # noqa: S311 - cases of a test
    charges = [(Fraction(source.randrange(1, 10**6), 10**6 + 3), PURE) for _ in range(60)]
    coarse = compose(charges)
    assert len(coarse.masses) <= LONGEST + 2 * len(charges)
    fine = compose(charges, coarse.step / 8)
    found, finer = coarse.epsilon_at(MILLIONTH), fine.epsilon_at(MILLIONTH)
    assert found is not None
    assert finer is not None
    assert finer <= found <= finer * Fraction(100_05, 100_00)


def test_nothing_and_all_is_private() -> None:
    assert compose([]).epsilon_at(PURE) == 0
    assert compose([(PURE, PURE)] * 3).delta_at(PURE) <= Fraction(1, 10**27)
    everything = compose([(Fraction(1), Fraction(1)), (Fraction(2), Fraction(3))])
    assert everything.epsilon_at(Fraction(999, 1000)) is None
    assert everything.delta_at(Fraction(5)) == 1
    # Above ε = 100 no bound of e^ε is needed: the lower loss has no mass to speak of.
    assert compose([(Fraction(240), PURE)] * 2).epsilon_at(MILLIONTH) == pytest.approx(
        480, abs=1e-5
    )


def test_ten_thousand_equal_charges_need_a_short_grid() -> None:
    together = compose([(Fraction("0.01"), Fraction(1, 10**12))] * 10**4)
    assert len(together.masses) < 1100
    found = together.epsilon_at(MILLIONTH)
    assert found is not None
    assert Fraction("4.88") < found < Fraction("4.89")


def test_no_charges_are_one_that_is_nothing() -> None:
    assert compose([]) == compose([(PURE, PURE)])


def test_the_step_divides_the_two_losses_of_every_charge() -> None:
    """They are 2ε apart; of a charge without ε there is one loss, on every grid."""
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert common_step({(half, PURE): 1, (third, MILLIONTH): 2, (PURE, MILLIONTH): 5}) == third
    assert common_step({(PURE, MILLIONTH): 5}) == 1


def test_as_many_charges_as_fit_in_the_window_keep_their_own_grid() -> None:
    """The root of 102·n times their range of 2ε is at most 2¹⁴ steps of it."""
    most = 2**28 // 102
    for epsilon in (Fraction(1, 4), Fraction(3)):
        assert common_step({(epsilon, PURE): most}) == 2 * epsilon
        assert common_step({(epsilon, PURE): most + 1}) > 2 * epsilon
