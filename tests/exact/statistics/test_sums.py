"""Noise on sums: as little as ε allows, exactly private, and drawn as published."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release.exact.composition.profile import pure_profile
from release.exact.integers.noise import REACH, IntegerNoise, Tail
from release.exact.numbers import exp_bounds
from release.exact.statistics.mechanism import RATIO_ONE, is_private, loss_above
from release.exact.statistics.sums import NoisySums, geometric_noise
from tests.exact.statistics.test_permute_and_flip import stream


@given(st.sampled_from(["1/10", "1", "4"]), st.integers(1, 20), st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_two_sums_lose_no_more_than_epsilon(epsilon: str, spread: int, share: int) -> None:
    """T10: however a unit's change is shared between the sums, and whatever the outcome is."""
    made = NoisySums.geometric(Fraction(epsilon), 2, spread)
    above = exp_bounds(Fraction(epsilon))[1]
    one = min(share, spread)
    worst = Fraction(1)
    for step in (one, spread - one):
        ratios = [
            made.noise.mass(o) / made.noise.mass(o - step) for o in range(-2 * spread, 2 * spread)
        ]
        worst *= max(ratios)
    assert worst <= above
    # The tails alone lose nearly all of it, so that less noise would not do.
    assert float(worst) >= float(above) * (1 - 1e-9) or one not in (0, spread)


def test_a_unit_that_moves_further_is_not_covered() -> None:
    made = NoisySums.geometric(Fraction(1), 2, 10)
    assert made.satisfies(Fraction(1))
    assert not NoisySums(made.noise, 2, 11).satisfies(Fraction(1))
    assert not made.satisfies(Fraction(99, 100))


@given(st.integers(2**62, 2**64 - 2**34))
def test_geometric_noise_falls_by_its_ratio_everywhere(ratio: int) -> None:
    noise = geometric_noise(ratio)
    share = Fraction(ratio, 2**64)
    assert noise.mass(1) >= share * noise.mass(0)
    assert noise.mass(0) >= share * noise.mass(1)
    assert noise.mass(3) == share * noise.mass(2)


@given(st.integers(1, 2**34) | st.integers(1, 2**16))
@example(2**33)
def test_a_ratio_next_to_1_is_taken_where_rounding_leaves_0_its_weight(missing: int) -> None:
    """By the masses themselves: of 2^62 units ±1 and all beyond take a whole number each."""
    share = Fraction(RATIO_ONE - missing, RATIO_ONE)
    beside = math.ceil(2**62 * share / (1 + share))
    at_0, at_1 = 2**62 - 2 * beside, beside * (1 - share)
    if at_0 < share * at_1:
        with pytest.raises(ValueError, match="too close to 1"):
            geometric_noise(RATIO_ONE - missing)
        return
    noise = geometric_noise(RATIO_ONE - missing)
    assert (noise.mass(0), noise.mass(1)) == (Fraction(at_0, 2**62), at_1 / 2**62)


@pytest.mark.parametrize("ratio", [-1, 0, RATIO_ONE, RATIO_ONE + 1])
def test_ratios_that_do_not_fall_are_refused(ratio: int) -> None:
    with pytest.raises(ValueError, match="noise needs a ratio between 0 and 1"):
        geometric_noise(ratio)


def test_the_least_ratio_is_taken() -> None:
    noise = geometric_noise(1)
    assert noise.mass(2) == Fraction(1, RATIO_ONE) * noise.mass(1)


def test_what_is_proved_of_its_loss_is_the_least_epsilon() -> None:
    noise = geometric_noise(2**63)
    bound = 3 * loss_above(2**63)
    assert NoisySums(noise, 2, 3).satisfies(bound)
    assert not NoisySums(noise, 2, 3).satisfies(bound - Fraction(1, 10**60))
    assert is_private(2**63, 3, bound)


def test_one_sum_takes_no_noise_that_rounding_gave_a_dip() -> None:
    """Next to ratio 1 the mass of 0 may be a hair below that of ±1: two peaks, not one."""
    ratio = RATIO_ONE - 9167024630
    noise = geometric_noise(ratio)
    assert noise.mass(0) < noise.mass(1)
    with pytest.raises(ValueError, match="for 62 bits"):
        NoisySums.geometric(loss_above(ratio), 1, 1)
    assert not NoisySums.geometric(loss_above(ratio), 2, 1).noise.is_unimodal()


def hockey_stick(noise: IntegerNoise, shift: int, loss: float) -> float:
    """By the definition, over so many integers that what is left out weighs next to nothing."""
    masses = [float(noise.mass(at)) for at in range(-100, 101)]
    pairs = zip(masses[shift:], masses[:-shift], strict=True)
    return sum(max(0.0, here - math.exp(loss) * there) for here, there in pairs)


@pytest.mark.parametrize("spread", [1, 3])
def test_the_profile_of_one_sum_is_that_of_its_noise(spread: int) -> None:
    step = Fraction(1, 10)
    leaning = IntegerNoise(-1, ((1, 1), (1, 5), (1, 2)), Tail(1, 2**62), Tail(1, 2**63))
    for noise in (geometric_noise(2**63), leaning):
        made = NoisySums(noise, 1, spread)
        losses = made.profile(Fraction(9), step).distribution()
        mirrored = noise.mirrored
        for place in range(40):
            found = float(losses.delta_at(place * step))
            each = [hockey_stick(one, spread, place / 10) for one in (noise, mirrored)]
            assert found == pytest.approx(max(each), abs=1e-9)


def test_the_profile_is_that_of_randomised_response_where_no_distance_stands_for_all() -> None:
    step = Fraction(1, 10)
    one_peak = geometric_noise(2**63)
    two_peaks = IntegerNoise(-1, ((1, 7), (1, 2), (1, 7)), Tail(1, 2**63), Tail(1, 2**63))
    # Of two sums, of two peaks, and of a distance of more periods than are compared.
    for made in (
        NoisySums(one_peak, 2, 3),
        NoisySums(two_peaks, 1, 3),
        NoisySums(one_peak, 1, 1000),
    ):
        assert made.profile(Fraction(9, 4), step) == pure_profile(Fraction(9, 4), step)
        assert made.inputs == made.outputs == made.sums


def test_the_variance_is_half_that_of_a_sum_and_a_count() -> None:
    """A mean of n rows in the middle of its range, beside a centred sum and a count at ε/2 each."""
    spread = 2000
    two = float(NoisySums.geometric(Fraction(1), 2, spread).noise.moment(2))
    split = float(NoisySums.geometric(Fraction(1, 2), 1, spread // 2).noise.moment(2))
    # The mean errs by (Z - Z')/2n, of variance two/2n²; that of the sum alone is split/n².
    assert two / 2 == pytest.approx(split / 2, rel=1e-3)


def test_draws_are_the_published_noise() -> None:
    made = NoisySums.geometric(Fraction(1), 2, 3)
    drawn = made.draw(np.tile([100, -7], (60_000, 1)), stream("sums")) - [100, -7]
    reach = 12
    expected = np.array([float(made.noise.mass(o)) for o in range(-reach, reach + 1)]) * 60_000
    for column in drawn.T:
        found = np.bincount(np.clip(column, -reach, reach) + reach, minlength=2 * reach + 1)
        inside = slice(1, -1)
        off = (found[inside] - expected[inside]) ** 2 / expected[inside]
        # The 0.9999 quantile of chi-square with 22 degrees of freedom is 54.
        assert off.sum() < 54
    assert abs(float((drawn[:, 0] * drawn[:, 1]).mean())) < 0.02 * float(made.noise.moment(2))


def test_sums_never_wrap_round() -> None:
    made = NoisySums.geometric(Fraction(1, 10**6), 1, 1000)
    drawn = made.draw(np.array([[2**63 - 1], [-(2**63)]]), stream("far"))
    assert drawn[0, 0] > 2**61
    assert drawn[1, 0] < -(2**61)


@pytest.mark.parametrize("low", [0, -1])
def test_noise_that_leans_to_one_side_is_added_as_it_is(low: int) -> None:
    """One sum may have such noise: of 0 and 1, or of -1 and 0, three to one."""
    made = NoisySums(IntegerNoise(low, ((1, 3), (1, 1))), 1, 1)
    drawn = made.draw(np.full((4000, 1), 7), stream("leaning"))[:, 0]
    assert set(drawn.tolist()) == {7 + low, 8 + low}
    assert abs((drawn == 7 + low).mean() - 3 / 4) < 0.04


def test_sums_beyond_the_reach_are_published_as_those_at_its_end() -> None:
    made = NoisySums(geometric_noise(2**63), 2, 1)
    for beyond in (REACH, REACH + 1, 2**63 - 1):
        ends = np.tile([REACH - 1, 1 - REACH], (50, 1))
        far = np.tile([beyond, -beyond], (50, 1))
        drawn = made.draw(far, stream("beyond")).tolist()
        assert drawn == made.draw(ends, stream("beyond")).tolist()


def test_the_largest_sums_have_all_of_their_noise() -> None:
    made = NoisySums(geometric_noise(2**63), 1, 1)
    noise = made.draw(np.zeros((500, 1), dtype=np.int64), stream("ends"))
    for largest in (REACH - 1, 1 - REACH):
        drawn = made.draw(np.full((500, 1), largest), stream("ends"))
        expected = [max(-REACH, min(largest + each, REACH)) for each in noise[:, 0].tolist()]
        assert drawn[:, 0].tolist() == expected


def test_what_is_no_noise_on_sums_is_refused() -> None:
    noise = geometric_noise(2**63)
    for sums, spread in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="need one sum"):
            NoisySums(noise, sums, spread)
    bounded = IntegerNoise(-1, ((1, 1), (1, 2), (1, 1)))
    with pytest.raises(ValueError, match="equal tails"):
        NoisySums(bounded, 2, 1)
    assert not NoisySums(bounded, 1, 1).satisfies(Fraction(1))
    many = [(1, 2**10 + place % 2) for place in range(1200)]
    spare = 2**30 - sum(weight for _, weight in many)
    with pytest.raises(ValueError, match="1000 runs"):
        NoisySums(IntegerNoise(-600, (*many, (1, spare))), 1, 1)
    spare = 2**30 - sum(weight for _, weight in many[:999])
    assert NoisySums(IntegerNoise(-600, (*many[:999], (1, spare))), 1, 1).sums == 1


def test_noise_with_two_peaks_is_refused_at_once() -> None:
    """Every distance would have to be compared, and a file could name very many."""
    peaks = IntegerNoise(-1, ((1, 7), (1, 2), (1, 7)), Tail(1, 2**63), Tail(1, 2**63))
    assert not NoisySums(peaks, 1, 10**9).satisfies(Fraction(20))
    assert math.isfinite(float(peaks.moment(2)))


def test_noise_that_is_too_often_none_is_refused() -> None:
    """Its tails fall as they should, and 0 is far more likely than its neighbors."""
    made = NoisySums.geometric(Fraction(1), 2, 10)
    (_, side), (_, middle), _ = made.noise.runs
    tail = made.noise.right
    heavy = ((1, side // 2), (1, middle + 2 * (side - side // 2)), (1, side // 2))
    assert not NoisySums(IntegerNoise(-1, heavy, tail, tail), 2, 10).satisfies(Fraction(1))


def test_one_sum_loses_no_hair_more_than_epsilon() -> None:
    """From 0 to ±1 the masses fall by 4: ln 4, rounded down to 45 places, is not enough."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, 2**63))
    assert noise.mass(0) == 4 * noise.mass(1) == 8 * noise.mass(2)
    below = Decimal("1.386294361119890618834464242916353136151000268")
    assert below < Decimal(4).ln(Context(prec=50)) < below + Decimal("1e-45")
    assert not NoisySums(noise, 1, 1).satisfies(Fraction(below))
    assert NoisySums(noise, 1, 1).satisfies(Fraction(below) + Fraction(1, 10**38))


def test_sums_lose_in_proportion_where_each_step_loses_its_part() -> None:
    one = NoisySums.geometric(Fraction(1), 1, 10)
    assert one.loses_in_proportion(Fraction(1))
    assert not one.loses_in_proportion(Fraction(99, 100))
    # A staircase loses all of ε at once: of one sum that is private, and not in proportion.
    stairs = NoisySums(IntegerNoise.symmetric([(1, 12), (10, 1)], Tail(10, 2**63)), 1, 10)
    assert stairs.satisfies(Fraction("3.18"))
    assert not stairs.satisfies(Fraction("3.17"))
    assert not stairs.loses_in_proportion(Fraction(9))
    assert not NoisySums(stairs.noise, 2, 10).satisfies(Fraction(9))
    # Noise without tails cannot lose in proportion.
    ends = NoisySums(IntegerNoise.symmetric([(1, 12), (10, 1)]), 1, 10)
    assert not ends.loses_in_proportion(Fraction(1))
