"""Privacy profiles: never below the hockey stick of any pair, and hardly above it on the grid."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release.exact.channel import Channel
from release.exact.composition.distribution import UNIT, LossDistribution
from release.exact.composition.profile import (
    MOST_LOSSES,
    Profile,
    largest,
    profile_of_distribution,
    profile_of_pairs,
    profile_of_points,
    profile_of_weights,
    pure_profile,
)
from release.exact.domain import Group
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.integers.profile import exact_profile
from release.exact.mechanism import Mechanism
from release.exact.modular import Modular
from release.exact.numbers import exp_bounds
from release.exact.pmf import Pmf
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import NoisySums, geometric_noise
from tests.exact.composition.exponential import exponential
from tests.hockey_stick import HAIR, hockey_stick, standing

Row = list[Fraction]


def rows_of(mechanism: Mechanism) -> list[Row]:
    rows = []
    for code in range(mechanism.answers):
        weights = mechanism.row(code).tolist()
        rows.append([Fraction(weight, mechanism.total) for weight in weights])
    return rows


def truth(mechanism: Mechanism, sensitivity: Sensitivity, ratio: Fraction) -> Fraction:
    """The hockey stick of the worst pair of neighboring answers, by their rows."""
    rows = rows_of(mechanism)
    pairs = sensitivity.pairs(mechanism.answers)
    return max(hockey_stick(rows[true], rows[other], ratio) for true, other in pairs)


weights = st.lists(st.integers(0, 40), min_size=2, max_size=6)
steps = st.sampled_from(list(map(Fraction, ("1/7", "1/3", "1", "5/2"))))
ratios = st.fractions(Fraction(1, 20), 20, max_denominator=50)


def of_total(masses: list[int], total: int = 256) -> list[int]:
    """Weights in about the proportions of ``masses`` that add up to ``total``."""
    whole = sum(masses) + 1
    scaled = [mass * total // whole for mass in masses]
    scaled[0] += total - sum(scaled)
    return scaled


@given(masses=weights, step=steps, ratio=ratios, data=st.data())
@settings(max_examples=80, deadline=None)
def test_modular_noise_is_never_above_its_profile(
    masses: list[int], step: Fraction, ratio: Fraction, data: st.DataObject
) -> None:
    """At losses of either sign, on the grid or off it."""
    noise = Pmf.of(Group((len(masses),)), of_total(masses))
    shifts = data.draw(st.lists(st.integers(1, len(masses) - 1), min_size=1))
    mechanism, moves = Modular(noise), Sensitivity.of(noise.group, zip(shifts))
    found = mechanism.profile(moves, step)
    assert truth(mechanism, moves, ratio) <= standing(found, ratio)
    assert truth(mechanism, moves, ratio) <= found.distribution().delta_at(Fraction(0)) or ratio < 1
    for place, value in enumerate(found.values):
        at = exp_bounds(place * step)[1]
        assert Fraction(value, UNIT) <= truth(mechanism, moves, at) + HAIR


@given(data=st.data(), size=st.integers(2, 5), step=steps, ratio=ratios)
@settings(max_examples=60, deadline=None)
def test_a_channel_is_never_above_its_profile(
    data: st.DataObject, size: int, step: Fraction, ratio: Fraction
) -> None:
    rows = []
    for _ in range(size):
        masses = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
        rows.append(of_total(masses))
    mechanism = Channel.of(rows)
    moves = Sensitivity.on_line(size, [1, data.draw(st.integers(1, size - 1))])
    found = mechanism.profile(moves, step)
    assert truth(mechanism, moves, ratio) <= standing(found, ratio)
    rough = mechanism.rough_profile(moves, step)
    assert truth(mechanism, moves, ratio) <= standing(rough, ratio)


def test_hundreds_of_masses_are_compared_at_every_loss() -> None:
    size, step = 12, Fraction(1, 8)
    rows = []
    for true in range(size):
        masses = [1 + (7 * true**2 + 3 * code**3) % 11 for code in range(size)]
        rows.append(of_total(masses))
    mechanism, moves = Channel.of(rows), Sensitivity.on_line(size, [1])
    found = mechanism.profile(moves, step)
    assert len(found.values) > 5
    for place, value in enumerate(found.values):
        low, high = exp_bounds(place * step)
        assert truth(mechanism, moves, high) <= Fraction(value, UNIT)
        assert Fraction(value, UNIT) <= truth(mechanism, moves, low) + HAIR


NOISES = {
    "geometric": geometric_noise(least_ratio(Fraction(1), 1)),
    "staircase": IntegerNoise.symmetric([(2, 2**60), (1, 2**59)], Tail(2, 2**61)),
    "window": IntegerNoise(-1, ((1, 10), (2, 20), (1, 14))),
    "two peaks": IntegerNoise(-2, ((1, 20), (1, 4), (1, 16), (1, 4), (1, 20))),
    "one tail": IntegerNoise(0, ((1, 40), (1, 24)), None, Tail(1, 2**62)),
}


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("distances", [(1,), (1, 2), (1, 2, 3)])
def test_noise_on_the_integers_by_all_its_masses(name: str, distances: tuple[int, ...]) -> None:
    """Far out the masses of a tail are listed until they are below any hair."""
    noise, step = NOISES[name], Fraction(2, 7)
    found = IntegerMechanism(noise, 50).profile(Sensitivity.on_line(50, distances), step)
    integers = range(-120, 121)
    for place, value in enumerate(found.values):
        ratio = exp_bounds(place * step)[1]
        exact = Fraction(0)
        for distance in (*distances, *(-distance for distance in distances)):
            here = [noise.mass(integer) for integer in integers]
            there = [noise.mass(integer + distance) for integer in integers]
            exact = max(exact, hockey_stick(here, there, ratio))
        assert exact <= Fraction(value, UNIT) <= exact + HAIR


def test_geometric_noise_has_two_atoms() -> None:
    """With the step of its own loss, one at ε and one at -ε: randomised response."""
    losses = IntegerMechanism(geometric_noise(least_ratio(Fraction(1), 1)), 9).profile(
        Sensitivity.on_line(9, [1]), Fraction(1)
    )
    distribution = losses.distribution()
    upper, middle, lower = distribution.masses
    e = exp_bounds(Fraction(1))[0]
    assert abs(Fraction(upper, UNIT) - e / (1 + e)) < Fraction(1, 10**17)
    assert middle < 10**11
    assert abs(Fraction(lower, UNIT) - 1 / (1 + e)) < Fraction(1, 10**17)
    assert distribution.infinite == 0


@pytest.mark.parametrize("epsilon", ["0", "1/1000", "1", "2.3", "40", "100"])
@pytest.mark.parametrize("parts", ["1", "64", "6.4", "0.3"])
def test_randomised_response(epsilon: str, parts: str) -> None:
    """Its atoms are E/(E + 1) and 1/(E + 1), wherever ε lies on the grid."""
    loss = Fraction(epsilon)
    step = loss / Fraction(parts) or Fraction(1)
    found = pure_profile(loss, min(step, Fraction(100)))
    e = exp_bounds(loss)[1]
    for place in range(70):
        if (place + 1) * found.step > 100:
            break
        ratio = exp_bounds(place * found.step)[1]
        exact = max(Fraction(0), (e - ratio) / (e + 1))
        assert exact <= standing(found, ratio)
        if (loss / found.step).denominator == 1 and ratio <= e:
            assert standing(found, ratio) <= exact + HAIR
    assert found.values[-1] == 0


def test_no_loss_above_100_is_private() -> None:
    assert pure_profile(Fraction(101), Fraction(1)).values == (UNIT,)


def test_a_profile_is_no_longer_than_the_grid() -> None:
    """The last value stands for all larger losses."""
    long = pure_profile(Fraction(1), Fraction(1, 10**5))
    assert len(long.values) == MOST_LOSSES
    assert long.values[-1] > 0
    of_noise = exact_profile(NOISES["geometric"], (1,), Fraction(1, 10**5))
    assert len(of_noise.values) == MOST_LOSSES
    assert of_noise.values[-1] > 0


def test_far_distances_are_those_of_one_period_after_the_other() -> None:
    """Geometric noise at 3000 steps of ε/3000: ε in all, and the pure profile of it."""
    noise = geometric_noise(least_ratio(Fraction(1), 3000))
    found = IntegerMechanism(noise, 9000).profile(
        Sensitivity.on_line(9000, range(1, 3001)), Fraction(1, 8)
    )
    pure = pure_profile(Fraction(1), Fraction(1, 8))
    for value, bound in zip(found.values, pure.values, strict=True):
        assert bound - UNIT // 10**12 <= value <= bound


def test_a_sum_has_the_profile_of_its_noise() -> None:
    """A staircase with the period of the spread; several sums are known by their ε alone."""
    noise = IntegerNoise.symmetric([(2, 2**60), (1, 2**59)], Tail(2, 2**63))
    epsilon, step = Fraction(3, 2), Fraction(1, 10)
    alone = NoisySums(noise, 1, 2)
    assert alone.satisfies(epsilon)
    expected = IntegerMechanism(noise, 9).profile(Sensitivity.on_line(9, [1, 2]), step)
    assert alone.profile(epsilon, step) == expected
    assert NoisySums.geometric(epsilon, 2, 3).profile(epsilon, step) == pure_profile(epsilon, step)


def test_a_selection_has_the_profile_of_randomised_response() -> None:
    chosen = PermuteAndFlip(3, 2, least_ratio(Fraction(1), 2))
    assert chosen.profile(Fraction(1), Fraction(1, 4)) == pure_profile(Fraction(1), Fraction(1, 4))


@given(masses=weights, step=steps)
@settings(max_examples=40, deadline=None)
def test_a_distribution_gives_its_profile_back(masses: list[int], step: Fraction) -> None:
    noise = Pmf.of(Group((len(masses),)), of_total(masses))
    found = Modular(noise).profile(Sensitivity.everything(noise.group), step)
    back = profile_of_distribution(found.distribution(), step)
    for place, value in enumerate(found.values):
        again = back.values[min(place, len(back.values) - 1)]
        assert value <= again <= value + UNIT * HAIR


def test_masses_that_never_meet_have_an_infinite_loss() -> None:
    pairs = [(Fraction(1, 4), Fraction(0)), (Fraction(3, 4), Fraction(3, 4))]
    found = profile_of_pairs([*pairs, (Fraction(0), Fraction(1, 4))], Fraction(1), 9)
    assert found.values == (UNIT // 4,)
    assert found.distribution() == LossDistribution(
        Fraction(1), Fraction(0), (UNIT * 3 // 4,), UNIT // 4
    )


def test_losses_off_the_grid_have_no_profile_on_it() -> None:
    for step in (Fraction(2), Fraction(1, 2)):
        with pytest.raises(ValueError, match="do not lie on the grid"):
            profile_of_distribution(LossDistribution(Fraction(1), Fraction(2), (UNIT,), 0), step)
    between = LossDistribution(Fraction(1), Fraction(1, 2), (UNIT,), 0)
    with pytest.raises(ValueError, match="do not lie on the grid"):
        profile_of_distribution(between, Fraction(1))


def test_losses_of_0_and_less_leave_the_delta_of_0_alone() -> None:
    """No mass at such a loss adds to δ at ε = 0; what roundings lift above 1 counts as 1."""
    for highest in (Fraction(0), Fraction(-1)):
        losses = LossDistribution(Fraction(1), highest, (UNIT - 5,), 5)
        assert profile_of_distribution(losses, Fraction(1)) == Profile(Fraction(1), (5,))
        rounded = LossDistribution(Fraction(1), highest, (2,), UNIT + 2)
        assert profile_of_distribution(rounded, Fraction(1)) == Profile(Fraction(1), (UNIT,))


def test_chords_lie_above_what_they_join() -> None:
    exact = pure_profile(Fraction(2), Fraction(1, 8))
    known = [(place, exact.delta_at(place * exact.step)) for place in (0, 1, 4, 16)]
    rough = profile_of_points(known, exact.step)
    for value, bound in zip(exact.values, rough.values, strict=True):
        assert value <= bound <= value + UNIT * HAIR


def test_the_largest_of_profiles_needs_one_grid() -> None:
    one, other = pure_profile(Fraction(1), Fraction(1, 2)), Profile(Fraction(1, 2), (5 * 10**27, 7))
    assert largest([one, other]).values == (5 * 10**27, one.values[1], 7)
    assert largest([one]) == one
    with pytest.raises(ValueError, match="grid"):
        largest([one, pure_profile(Fraction(1), Fraction(1, 3))])


def test_a_large_ring_is_known_at_a_few_losses() -> None:
    """A ring of distinct masses is too much to compare everywhere: chords from exact values."""
    size = 2000
    weights_of = np.arange(size, dtype=np.int64) + 1
    weights_of[0] += 2**62 - int(weights_of.sum())
    noise = Pmf(Group((size,)), weights_of, 2**62)
    mechanism, few = Modular(noise), Sensitivity.of(Group((size,)), [(1,)])
    many = Sensitivity.everything(noise.group)
    step = Fraction(1, 4)
    rough = mechanism.profile(many, step)
    for place in (0, 1, 4, 16):
        ratio = exp_bounds(place * step)[0]
        exact = mechanism.deltas_at_ratio(many, ratio).approximate
        assert exact <= Fraction(rough.values[place], UNIT) <= exact + HAIR
    exact_values = mechanism.profile(few, step).values
    for place, value in enumerate(rough.values):
        assert value >= exact_values[min(place, len(exact_values) - 1)]


@given(
    falls=st.lists(st.integers(0, 10**27), min_size=1, max_size=6),
    step=st.sampled_from(list(map(Fraction, ("1/100000000000000", "1/1000", "1/2")))),
)
@settings(max_examples=60, deadline=None)
def test_every_mass_is_rounded_up(falls: list[int], step: Fraction) -> None:
    """Also where the step is so short that a bound of e^step is far from it in proportion."""
    values = [sum(falls[place:]) for place in range(len(falls) + 1)]
    found = Profile(step, tuple(values)).distribution()
    low, high = exp_bounds(step)
    for ratio in (low, (low + high) / 2, high):
        masses = exact_masses(values, 1 / ratio)
        for mass, exact in zip(found.masses, masses, strict=True):
            assert mass >= exact


def exact_masses(values: list[int], factor: Fraction) -> list[Fraction]:
    """The bends of the curve with ``factor`` for e^-step, those the other way left out."""
    falls = [*(before - after for before, after in pairwise(values)), 0]
    upper = []
    for place in range(len(values) - 1, 0, -1):
        bend = (falls[place - 1] - factor * falls[place]) / (1 - factor)
        upper.append(max(Fraction(0), bend))
    beside = (1 + factor) * values[0] - 2 * factor * values[1]
    middle = max(Fraction(0), UNIT - beside / (1 - factor))
    lower = [mass * factor ** (place + 1) for place, mass in enumerate(reversed(upper))]
    return [*upper, middle, *lower]


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0"), ("1", "1/4"), ("1/3", "1/1000")])
def test_the_worst_case_of_a_charge_has_the_known_delta_without_epsilon(
    epsilon: str, delta: str
) -> None:
    """δ + (1 - δ)·(E - 1)/(E + 1), the total variation of a response that fails with δ."""
    ratio, part = exp_bounds(Fraction(epsilon))[0], Fraction(delta)
    at_zero, last = Profile.of_charge(Fraction(epsilon), part).values
    truth = part + (1 - part) * (ratio - 1) / (ratio + 1)
    assert truth <= Fraction(at_zero, UNIT) + HAIR <= truth + 3 * HAIR
    assert Fraction(last, UNIT) == part


def test_the_worst_case_of_a_charge_without_epsilon_is_its_delta() -> None:
    found = Profile.of_charge(Fraction(0), Fraction(1, 3))
    assert found == Profile(Fraction(1), (ceil(Fraction(UNIT, 3)),))


@pytest.mark.parametrize("step", ["0", "-1", "100.01"])
def test_a_step_beyond_its_limits_is_refused(step: str) -> None:
    with pytest.raises(ValueError, match="the step of a profile is above 0 and at most 100"):
        Profile(Fraction(step), (1,))
    assert Profile(Fraction(100), (UNIT,)).step == 100


@pytest.mark.parametrize("values", [(), (5, -1), (-1,), (UNIT + 1, 5), (UNIT + 1,)])
def test_values_beyond_0_and_1_are_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="values between 0 and 1"):
        Profile(Fraction(1), values)
    assert Profile(Fraction(1), (UNIT, 0)).values == (UNIT, 0)


@pytest.mark.parametrize("values", [(3, 4, 1), (9, 3, 4, 1), (9, 8, 3, 4)])
def test_values_that_rise_are_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="never rise"):
        Profile(Fraction(1), values)


@pytest.mark.parametrize(
    ("step", "values", "shortened"),
    [
        ("1", (9, 5, 5, 5), (9, 5)),
        ("1", (9, 5, 5, 4), (9, 5, 5, 4)),
        ("1", (5, 5, 5), (5,)),
        ("1", (5,), (5,)),
        ("1", (7, 6), (7, 6)),
        # Two more than 100/h, rounded down.
        ("30", (9, 8, 7, 6, 5, 4, 3), (9, 8, 7, 6, 5)),
        ("100", (9, 8, 7, 6, 5), (9, 8, 7)),
        ("100", (9, 7, 7, 6, 5), (9, 7)),
    ],
)
def test_one_profile_has_one_short_form(
    step: str, values: tuple[int, ...], shortened: tuple[int, ...]
) -> None:
    assert Profile(Fraction(step), values).shortened() == Profile(Fraction(step), shortened)


def test_a_short_form_has_at_most_2_to_the_14_values() -> None:
    values = tuple(range(2**14 + 9, 0, -1))
    assert Profile(Fraction(1, 1000), values).shortened().values == values[: 2**14]


SHORT_STEPS = st.sampled_from(
    list(map(Fraction, ("1e-39", "1e-25", "1e-14", "1/9000", "1/7", "3")))
)
DESCENDING = st.lists(st.integers(0, UNIT // 8), min_size=1, max_size=7).map(
    lambda falls: [sum(falls[place:]) for place in range(len(falls))]
)


def lower(loss: Fraction) -> Fraction:
    """r(x), which section 1.3 of the format fixes to the digit."""
    return max(Fraction(1), Fraction(floor(exponential(loss) * 10**40) - 1, 10**40))


def upper(loss: Fraction) -> Fraction:
    """As ``lower``, above e^x."""
    return Fraction(ceil(exponential(loss) * 10**40) + 1, 10**40)


@given(DESCENDING, SHORT_STEPS)
@example([UNIT // 2, UNIT // 2], Fraction("1e-20"))
def test_the_masses_of_a_profile_are_those_of_the_format(values: list[int], step: Fraction) -> None:
    """Section 5.3.1. On the shortest grids the bounds of e^step change many of their digits."""
    found = Profile(step, tuple(values)).distribution()
    assert (found.step, found.highest) == (step, (len(values) - 1) * step)
    assert found.infinite == values[-1]
    if len(values) == 1:
        assert found.masses == (UNIT - values[0],)
        return
    near, far = 1 / upper(step), 1 / lower(step)
    if far == 1:
        return
    falls = [before - after for before, after in pairwise([*values, values[-1]])]
    above = []
    for before, after in reversed(list(pairwise(falls))):
        above.append(max(0, ceil((before - near * after) / (1 - far))))
    middle = UNIT - ((1 + near) * values[0] - 2 * far * values[1]) / (1 - near)
    below, factor = [], Fraction(1)
    for mass in reversed(above):
        factor = Fraction(ceil(10**45 * factor * far), 10**45)
        below.append(ceil(mass * factor))
    assert found.masses == (*above, max(0, ceil(middle)), *below)


@given(
    st.lists(st.integers(0, 3) | st.integers(0, UNIT // 3), min_size=1, max_size=7),
    st.integers(0, UNIT // 3),
    st.integers(-2, 9),
    SHORT_STEPS,
)
def test_what_is_read_from_masses_is_that_of_the_format(
    masses: list[int], infinite: int, highest: int, step: Fraction
) -> None:
    """Section 5.3.1: also beyond the masses, and beside masses of a few units."""
    values, total, taken = [infinite], 0, 0
    for mass in (masses + 9 * [0])[: max(0, highest)]:
        total += mass
        taken = floor((taken + mass) * floor(10**40 / upper(step)) / Fraction(10**40))
        values.append(min(UNIT, infinite + total - taken))
    losses = LossDistribution(step, highest * step, tuple(masses), infinite)
    assert profile_of_distribution(losses, step) == Profile(step, tuple(reversed(values)))


@given(DESCENDING, SHORT_STEPS, st.integers(1, 4), st.integers(2, 5))
def test_chords_are_those_of_the_format(
    values: list[int], step: Fraction, first: int, times: int
) -> None:
    """Section 5.3.1: a bound of the share of the nearer end, at most 1."""
    points = [(0, Fraction(values[0], UNIT + 1))]
    for place, value in enumerate(values[1:]):
        points.append((first + times * place, Fraction(value, UNIT + 1)))
    expected = [ceil(points[0][1] * UNIT)]
    for (start, before), (stop, after) in pairwise(points):
        for place in range(start + 1, stop):
            run = lower(stop * step) - upper(start * step)
            share = min(Fraction(1), (upper(stop * step) - lower(place * step)) / run)
            expected.append(ceil(UNIT * (after + share * (before - after))))
        expected.append(ceil(UNIT * after))
    assert profile_of_points(points, step) == Profile(step, tuple(expected))


def test_bounds_of_more_than_1_at_points_are_1() -> None:
    points = [(0, Fraction(3)), (2, Fraction(2)), (4, Fraction(0))]
    found = profile_of_points(points, Fraction(1, 10)).values
    assert found[:3] == (UNIT, UNIT, UNIT)
    assert 0 < found[3] <= UNIT
    assert found[4] == 0


MASSES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60))
    | st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
    max_size=6,
)


@given(MASSES, st.integers(10**8, 10**9), steps, st.integers(0, 9))
def test_a_pair_of_laws_has_the_values_of_the_format(
    pairs: list[tuple[int, int]], light: int, step: Fraction, most: int
) -> None:
    """Section 5.3.1, also where two ratios lie beside one of the grid and hardly differ."""
    for near in (light, light + 7):
        heavy = floor(near * lower(step))
        pairs = [(heavy, near), *pairs, (heavy + 1, near)]
    total = sum(map(max, pairs))
    expected = []
    for place in range(most + 1):
        ratio = lower(place * step)
        excess = sum(
            (max(Fraction(0), heavy - ratio * light) for heavy, light in pairs), Fraction()
        )
        expected.append(min(UNIT, ceil(UNIT * excess / total)))
        if not any(heavy > ratio * light > 0 for heavy, light in pairs):
            break
    found = profile_of_weights(pairs, total, step, most)
    assert found == Profile(step, tuple(expected))


def test_two_ratios_that_hardly_differ_are_ranked() -> None:
    """Were the lesser first, it would count where P is less than the ratio times Q."""
    step = Fraction(1)
    ratio = lower(step)
    lesser, larger = (floor(10**9 * ratio), 10**9), (floor((10**9 + 7) * ratio) + 1, 10**9 + 7)
    total = 10**10
    for pairs in ([lesser, larger, (1, 1)], [larger, lesser, (1, 1)]):
        found = profile_of_weights(pairs, total, step, 5)
        assert found.values[1] == ceil(UNIT * (larger[0] - ratio * larger[1]) / total)


def test_infinite_losses_are_ranked_before_all_others() -> None:
    """Of 10 in 100 no ratio takes anything off; 60 and 30 count up to a ratio of 2."""
    pairs = [(60, 30), (10, 0), (30, 70), (0, 0)]
    for turned in (pairs, pairs[::-1]):
        found = profile_of_weights(turned, 100, Fraction(1, 2), 9).values
        beside = 70 - 30 * lower(Fraction(1, 2))
        assert found == (UNIT * 40 // 100, ceil(UNIT * beside / 100), UNIT // 10)


def test_losses_beyond_100_are_not_listed() -> None:
    pairs = [(10**60, 1), (0, 10**60 - 1)]
    assert len(profile_of_weights(pairs, 10**60, Fraction(60), 9).values) == 2
    assert len(profile_of_weights(pairs, 10**60, Fraction(50), 9).values) == 3


def test_a_ratio_of_just_e_exceeds_that_of_the_grid() -> None:
    """A profile takes e^ε from below, so that no digit of e is left out of δ."""
    digits = 10**60
    heavy = floor(digits * exponential(Fraction(1)))
    found = profile_of_weights([(heavy, digits)], 3 * digits, Fraction(1), 9)
    assert found.values[1:] == (1, 0)


@pytest.mark.parametrize("step", ["1/1000", "1/7", "1"])
def test_every_digit_of_the_factor_of_a_step_counts(step: str) -> None:
    """The best approximations of it are masses of which it leaves all but an integer."""
    loss = Fraction(step)
    factor = Fraction(floor(10**40 / upper(loss)), 10**40)
    for size in range(20, 29):
        mass = factor.limit_denominator(10**size).denominator
        found = profile_of_distribution(LossDistribution(loss, loss, (mass,), 0), loss)
        assert found.values == (mass - floor(mass * factor), 0)
