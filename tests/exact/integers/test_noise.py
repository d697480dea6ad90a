"""Noise on the integers: its masses, exact δ, moments and draws against a second computation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from release.exact.integers.noise import RATIO_ONE, REACH, IntegerNoise, Run, Tail, merged
from release.exact.integers.staircase import staircase
from release.exact.privacy import Deltas
from release.exact.sampling import draw_geometric
from research.published.integer_pmf import IntegerPmf
from research.published.integer_pmf import Tail as PmfTail

HALF = RATIO_ONE // 2

rather = settings(max_examples=60)


def to_power(weights: Sequence[int], at: int) -> tuple[int, ...]:
    """The weights with one of them raised, so that they add up to a power of two."""
    raised = list(weights)
    total = sum(raised)
    raised[at] += max(2, 1 << (total - 1).bit_length() if total > 1 else 2) - total
    return tuple(raised)


ratios = st.one_of(
    st.integers(1, RATIO_ONE - 1),
    st.sampled_from([1, HALF, RATIO_ONE // 4, 3 * (RATIO_ONE // 4), RATIO_ONE * 9 // 10]),
)
tails = st.none() | st.builds(Tail, st.integers(1, 4), ratios)


@st.composite
def noises(draw: st.DrawFn) -> IntegerNoise:
    """Noise with no tail, one or two, of periods 1 to 4, symmetric or not, some weights 0."""
    left, right = draw(tails), draw(tails)
    before = left.period if left else 0
    after = right.period if right else 0
    middle = draw(st.integers(0 if before + after else 1, 5))
    count = before + middle + after
    # The left period ends at 0 or before, the right one begins at 0 or after.
    lowest, highest = -6, 6
    if left:
        highest = min(highest, 1 - before)
    if right:
        lowest = max(lowest, after - count)
    assume(lowest <= highest)
    low = draw(st.integers(lowest, highest))
    weights = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    weights = list(to_power(weights, draw(st.integers(0, count - 1))))
    return IntegerNoise(low, merged((1, weight) for weight in weights), left, right)


@st.composite
def symmetric_noises(draw: st.DrawFn) -> IntegerNoise:
    """Noise of falling or arbitrary weights, mirrored at 0."""
    tail = draw(tails)
    least = (tail.period if tail else 0) + 1
    half = draw(st.lists(st.integers(0, 9), min_size=least, max_size=least + 3))
    if draw(st.booleans()):
        half.sort(reverse=True)
    total = half[0] + 2 * sum(half[1:])
    half[0] += max(2, 1 << max(0, total - 1).bit_length()) - total
    return IntegerNoise.symmetric(merged((1, weight) for weight in half), tail)


every_noise = noises() | symmetric_noises()


def second(noise: IntegerNoise) -> IntegerPmf:
    """The same pmf, mass by mass, by the definition of the runs and the tails."""
    weights = [weight for length, weight in noise.runs for _ in range(length)]
    masses = [Fraction(weight, noise.total) for weight in weights]
    left = right = None
    if noise.left:
        left = PmfTail(noise.left.period, noise.left.fraction)
        for place in range(left.period):
            masses[place] *= 1 - left.ratio
    if noise.right:
        right = PmfTail(noise.right.period, noise.right.fraction)
        for place in range(len(masses) - right.period, len(masses)):
            masses[place] *= 1 - right.ratio
    # Refuses masses that do not add up to 1.
    return IntegerPmf(noise.low, tuple(masses), left, right)


def deltas_of(pmf: IntegerPmf, steps: Sequence[int], ratio: Fraction) -> Deltas:
    """The exact δ of a set of steps, integer by integer."""
    probabilistic = approximate = Fraction(0)
    for shift in (*steps, *(-step for step in steps)):
        heavy = light = Fraction(0)
        for noise, times in pmf._window(shift):
            here, there = pmf.mass(noise), pmf.mass(noise + shift)
            if here > ratio * there:
                heavy, light = heavy + times * here, light + times * there
        probabilistic = max(probabilistic, heavy)
        approximate = max(approximate, heavy - ratio * light)
    return Deltas(probabilistic, approximate)


def rises_then_falls(masses: Sequence[Fraction]) -> bool:
    """Whether no mass rises after one fell."""
    fell = False
    for here, following in pairwise(masses):
        if following > here and fell:
            return False
        fell = fell or following < here
    return True


@rather
@given(every_noise)
def test_masses_are_those_of_the_definition(noise: IntegerNoise) -> None:
    pmf = second(noise)
    for place in range(-25, 26):
        assert noise.mass(place) == pmf.mass(place)
        assert noise.mirrored.mass(-place) == pmf.mass(place)
    symmetric = all(pmf.mass(k) == pmf.mass(-k) for k in range(40))
    assert symmetric or not noise.is_symmetric


@rather
@given(symmetric_noises())
def test_noise_made_from_one_half_is_symmetric(noise: IntegerNoise) -> None:
    assert noise.is_symmetric
    assert noise.mirrored == noise
    assert noise.mean == 0


@settings(max_examples=200)
@given(
    every_noise,
    st.sets(st.integers(1, 12), min_size=1, max_size=4),
    st.one_of(
        st.fractions(1, 20, max_denominator=1000),
        st.sampled_from([Fraction(1), Fraction(2), Fraction(4), Fraction(16)]),
    ),
)
def test_deltas_are_exact_for_any_set_of_steps(
    noise: IntegerNoise, steps: set[int], ratio: Fraction
) -> None:
    # Where a tail rises within its period, is_unimodal is wrong; see the test of that below.
    assume(noise.is_unimodal() == is_unimodal_by_force(noise))
    assert noise.deltas(steps, ratio) == deltas_of(second(noise), sorted(steps), ratio)


def is_unimodal_by_force(noise: IntegerNoise) -> bool:
    """Integer by integer, over three periods of each tail."""
    low = noise.low - 3 * (noise.left.period if noise.left else 1)
    high = noise.high + 3 * (noise.right.period if noise.right else 1)
    return rises_then_falls([noise.mass(k) for k in range(low, high + 1)])


A_TAIL_THAT_RISES = IntegerNoise(
    -1, ((2, 1), (1, 6)), left=Tail(1, HALF), right=Tail(2, HALF)
)  # masses 1/16, 1/16, 3/8 and then 1/32, 3/16, 1/64, 3/32, …


def test_unimodal_noise_has_no_tail_that_rises_within_its_period() -> None:
    assert not is_unimodal_by_force(A_TAIL_THAT_RISES)
    assert not A_TAIL_THAT_RISES.is_unimodal()


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_more_distances_never_have_a_smaller_delta(ratio: int) -> None:
    """At e^ε = 8 the step 2 alone is pure, and the step 1 has δ = 1/4."""
    assert A_TAIL_THAT_RISES.deltas((), Fraction(ratio)) == Deltas(Fraction(0), Fraction(0))
    apart = A_TAIL_THAT_RISES.deltas((1, 2), Fraction(ratio))
    assert apart == deltas_of(second(A_TAIL_THAT_RISES), (1, 2), Fraction(ratio))
    assert apart.approximate >= A_TAIL_THAT_RISES.deltas((1,), Fraction(ratio)).approximate


@settings(max_examples=300)
@given(every_noise)
def test_unimodality_is_that_of_all_integers(noise: IntegerNoise) -> None:
    assert noise.is_unimodal() == is_unimodal_by_force(noise)


@settings(max_examples=100)
@given(every_noise)
def test_unimodality_is_never_missed(noise: IntegerNoise) -> None:
    assert noise.is_unimodal() or not is_unimodal_by_force(noise)


@st.composite
def staircases(draw: st.DrawFn) -> IntegerNoise:
    """Falling symmetric noise with a tail, in most cases unimodal."""
    period = draw(st.integers(1, 3))
    rest = sorted(draw(st.lists(st.integers(1, 9), min_size=period, max_size=5)), reverse=True)
    total = 2 * sum(rest)
    top = (1 << total.bit_length()) - total
    tail = Tail(period, draw(st.sampled_from([HALF, RATIO_ONE // 3, RATIO_ONE // 16 * 15])))
    return IntegerNoise.symmetric([(1, top), *((1, weight) for weight in rest)], tail)


@settings(max_examples=100)
@given(staircases(), st.integers(1, 40), st.integers(1, 300))
def test_the_short_cut_over_periods_is_never_pure_where_the_noise_is_not(
    noise: IntegerNoise, step: int, power: int
) -> None:
    ratio = Fraction(21, 20) ** power
    exact = deltas_of(second(noise), (step,), ratio)
    assert not noise._is_pure_by_groups(step, ratio) or exact == Deltas(Fraction(0), Fraction(0))
    assert noise.deltas((step,), ratio) == exact


@pytest.mark.parametrize("step", [2, 3, 64, 100])
def test_the_short_cut_is_exact_at_its_edge(step: int) -> None:
    """Geometric noise, ratio 1/2: pure exactly from 2^step on."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    masses = [noise.mass(k) for k in range(4)]
    assert masses == [Fraction(1, 2), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32)]
    # From 0 to 1 it falls by 4, and from there by 2.
    edge = Fraction(2) ** (step + 1)
    assert noise.deltas((step,), edge).approximate == 0
    below = edge * (1 - Fraction(1, 10**20))
    assert noise.deltas((step,), below).approximate > 0
    # In powers of 4, the largest quotient of two neighbors.
    assert noise._is_pure_by_groups(step, Fraction(4) ** step)
    far = noise.mass(0) - below * noise.mass(step)
    assert noise.deltas((step,), below).approximate == far


@pytest.mark.parametrize("period", [1, 3])
def test_delta_is_exact_up_to_256_periods_and_then_one(period: int) -> None:
    """Only the far step tells: masses of more periods have too many digits."""
    upward = IntegerNoise(0, ((1, 4), (period, 4)), None, Tail(period, HALF))
    for noise in (upward, upward.mirrored):
        within = noise.deltas((1, 256 * period), Fraction(3))
        assert within == deltas_of(second(noise), (1, 256 * period), Fraction(3))
        assert within.approximate < 1
        assert noise.deltas((1, 256 * period + 1), Fraction(3)) == Deltas(Fraction(1), Fraction(1))


@rather
@given(every_noise, st.integers(1, 12), st.fractions(1, 20, max_denominator=100))
def test_pairs_of_masses_are_those_of_all_integers(
    noise: IntegerNoise, step: int, ratio: Fraction
) -> None:
    pairs = noise.pairs(step)
    assert sum(here for here, _ in pairs) == sum(there for _, there in pairs) == 1
    excess = sum(max(Fraction(0), here - ratio * there) for here, there in pairs)
    mirrored = noise.mirrored.pairs(step)
    other = sum(max(Fraction(0), here - ratio * there) for here, there in mirrored)
    assert max(excess, other) == deltas_of(second(noise), (step,), ratio).approximate


def largest_quotient(noise: IntegerNoise, step: int) -> Fraction | None:
    """The largest f(η)/f(η ± step) over a window and some periods beside it; None without end."""
    pmf = second(noise)
    most = Fraction(1)
    for shift in (-step, step):
        for place, _ in pmf._window(shift):
            here, there = pmf.mass(place), pmf.mass(place + shift)
            if here and not there:
                return None
            most = max(most, here / there if there else Fraction(0))
    return most


@settings(max_examples=150)
@given(staircases() | symmetric_noises(), st.integers(1, 12))
def test_the_loss_by_periods_is_above_every_quotient(noise: IntegerNoise, step: int) -> None:
    """And it is that of one period, as often as it takes, to some 50 digits."""
    loss, tail = noise.loss_by_groups(step), noise.right
    of_period = largest_quotient(noise, tail.period) if tail else None
    if of_period is None or not is_unimodal_by_force(noise):
        assert loss is None
        return
    assert loss is not None
    assert tail is not None
    exact = largest_quotient(noise, step)
    many = Context(prec=80)
    each = many.ln(many.divide(Decimal(of_period.numerator), Decimal(of_period.denominator)))
    periods = -(-step // tail.period)
    assert periods * Fraction(each) < loss < periods * Fraction(each) * (1 + Fraction(1, 10**47))
    assert exact is not None
    assert many.exp(many.divide(Decimal(loss.numerator), Decimal(loss.denominator))) > many.divide(
        Decimal(exact.numerator), Decimal(exact.denominator)
    )


def test_the_loss_of_a_period_is_that_of_the_steeper_side() -> None:
    """Masses 1/16, 1/2, 3/16: a quotient of 8 on one side, and of 8/3 on the other."""
    tail = Tail(1, HALF)
    noise = IntegerNoise(-1, ((1, 1), (1, 4), (1, 3)), tail, tail)
    for side in (noise, noise.mirrored):
        loss = side.loss_by_groups(1)
        assert loss is not None
        assert 0 < loss - 3 * LN_2 < Fraction(1, 10**48)


LN_2 = Fraction("0.69314718055994530941723212145817656807550013436025525412068")


def test_the_loss_of_a_period_is_a_number_of_50_digits_as_the_format_says() -> None:
    """From 0 to 1 the masses fall by 4, and ln 4 lies just above 1.386…7205."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    up = Fraction("1.3862943611198906188344642429163531361510002687206")
    assert noise.loss_by_groups(1) == up
    assert up - Fraction(1, 10**49) < 2 * LN_2 < up


def test_no_loss_by_periods_is_known_of_unlike_tails_and_of_several_peaks() -> None:
    unlike = IntegerNoise(-1, ((1, 1), (1, 2), (1, 1)), Tail(1, HALF), Tail(1, HALF + 1))
    peaks = IntegerNoise(-1, ((1, 7), (1, 2), (1, 7)), Tail(1, HALF), Tail(1, HALF))
    for noise in (unlike, peaks, IntegerNoise(0, ((2, 1),))):
        assert noise.loss_by_groups(1) is None
        assert noise._is_pure_by_groups(2, Fraction(10**9)) is False


@settings(max_examples=100)
@given(staircases(), st.integers(2, 30))
def test_the_short_cut_over_periods_ends_at_the_power_of_its_loss(
    noise: IntegerNoise, step: int
) -> None:
    assert noise.right is not None
    quotient = largest_quotient(noise, noise.right.period)
    assume(step > noise.right.period and noise.is_unimodal())
    assert quotient is not None
    edge = quotient ** -(-step // noise.right.period)
    assert noise._is_pure_by_groups(step, edge * (1 + Fraction(1, 10**40)))
    assert noise._is_pure_by_groups(step, edge * (1 - Fraction(1, 10**40))) is False


@rather
@given(every_noise)
def test_without_steps_nothing_is_revealed(noise: IntegerNoise) -> None:
    assert noise.deltas((), Fraction(1)) == Deltas(Fraction(0), Fraction(0))


def test_very_long_steps_of_pure_noise_are_proved_at_once() -> None:
    """2^20 periods: the exact masses would have millions of digits."""
    noise = staircase((1,), Fraction(1, 10**6), 1).noise
    nothing = Deltas(Fraction(0), Fraction(0))
    # e^1.0486 = 2.8536
    assert noise.deltas((2**20,), Fraction("2.8537")) == nothing
    assert not noise._is_pure_by_groups(2**20, Fraction("2.8534"))


def direct_moment(noise: IntegerNoise, power: int) -> Fraction:
    """E|η|^power by a sum over the integers up to 1000, in units of 2^-300."""
    units = second(noise).units(-1000, 1000, 300)
    weighted = (abs(place) ** power * mass for place, mass in enumerate(units, -1000) if place)
    return Fraction(sum(weighted), 2**300)


@rather
@given(every_noise)
def test_moments_are_those_of_long_direct_sums(noise: IntegerNoise) -> None:
    slowest = max((float(t.fraction) for t in (noise.left, noise.right) if t), default=0.0)
    # What is left out is at most a millionth of a billionth of a billionth.
    assume(slowest < 0.75)
    for power in (0, 1, 2):
        assert abs(noise.moment(power) - direct_moment(noise, power)) < Fraction(1, 10**16)
    units = second(noise).units(-1000, 1000, 300)
    mean = Fraction(sum(place * mass for place, mass in enumerate(units, -1000)), 2**300)
    assert noise.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("period", [2, 3])
def test_moments_count_all_that_repeats_from_zero_on(period: int) -> None:
    """0, p, 2p, … with chances 1/2, 1/4, 1/8, …: a mean of p and a mean square of 3·p²."""
    noise = IntegerNoise(0, ((1, 2), (period - 1, 0)), None, Tail(period, HALF))
    for side in (noise, noise.mirrored):
        expected = (Fraction(1, 2), Fraction(period), Fraction(3 * period**2))
        assert tuple(side.moment(power) for power in (0, 1, 2)) == expected
    assert (noise.mean, noise.mirrored.mean) == (period, -period)


def test_moments_of_a_tail_that_begins_at_one_are_those_of_the_sum() -> None:
    """Masses 1/2, and 1/8, 1/16, … on either side: 2·Σ k/2^(k+2) = 1 and 2·Σ k²/2^(k+2) = 3."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    assert [noise.moment(power) for power in (0, 1, 2)] == [Fraction(1, 2), 1, 3]


@pytest.mark.parametrize("period", [1, 2, 3])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_moments_are_those_of_a_tail_wherever_it_begins(period: int, start: int) -> None:
    weights = to_power([5, 3, *range(start), *range(1, period + 1)], 0)
    low = start - len(weights) + period
    noise = IntegerNoise(low, merged((1, weight) for weight in weights), None, Tail(period, HALF))
    assert noise.right_start == start
    for power in (0, 1, 2):
        exact = direct_moment(noise, power)
        assert abs(noise.moment(power) - exact) < Fraction(1, 10**16)
        assert noise.mirrored.moment(power) == noise.moment(power)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_moments_count_the_repetitions_of_zero(power: int) -> None:
    """P(η) = 2^-(η+1): an error in half of all cases, a mean of 1, a mean square of 3."""
    one_sided = IntegerNoise(0, ((1, 2),), right=Tail(1, HALF))
    masses = [one_sided.mass(k) for k in range(3)]
    assert masses == [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]
    expected = (Fraction(1, 2), 1, 3)[power]
    assert abs(direct_moment(one_sided, power) - expected) < Fraction(1, 10**16)
    assert one_sided.moment(power) == expected
    assert one_sided.mirrored.moment(power) == expected


@rather
@given(every_noise)
def test_floats_are_near_the_exact_values(noise: IntegerNoise) -> None:
    pmf = second(noise)
    for count in (1, 2, 7, 30):
        expected = [float(pmf.mass(k)) for k in range(count)]
        assert noise.probabilities(count) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    for place in range(-20, 21):
        assert noise.above(place) == pytest.approx(float(pmf.above(place)), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("missing", [1, 2**4 + 1, 12345, 2**30 + 1])
def test_the_tail_of_a_ratio_near_one_keeps_its_digits(missing: int) -> None:
    noise = IntegerNoise.symmetric([(1, 2), (1, 1)], Tail(1, RATIO_ONE - missing))
    expected = float(second(noise).above(1000))
    assert noise.above(1000) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("missing", [17, 2**20 + 1, 2**30 + 1])
def test_a_tail_of_a_ratio_near_one_falls_as_far_out_as_it_should(missing: int) -> None:
    """Above 2^64/missing there is a share of 1/e of the tail, hardly less: (1 - x)^(1/x)."""
    noise = IntegerNoise.symmetric([(1, 2), (1, 1)], Tail(1, RATIO_ONE - missing))
    expected = np.exp(-(RATIO_ONE // missing) * missing / RATIO_ONE) / 4
    assert noise.above(RATIO_ONE // missing) == pytest.approx(expected, rel=1e-9)


REFUSED: list[tuple[str, int, tuple[Run, ...], Tail | None, Tail | None]] = [
    ("runs", 0, (), None, None),
    ("runs", 0, ((1, -1), (1, 3)), None, None),
    ("runs", 0, ((0, 2), (1, 2)), None, None),
    ("runs", 0, ((-1, 2), (2, 2)), None, None),
    ("power of two", 0, ((3, 1),), None, None),
    ("power of two", 0, ((1, 1),), None, None),
    ("power of two", 0, ((5, 0),), None, None),
    ("power of two", 0, ((2, 2**62),), None, None),
    ("shorter", -1, ((2, 1),), Tail(2, HALF), Tail(1, HALF)),
    ("shorter", 0, ((2, 1),), None, Tail(3, HALF)),
    ("other side", 1, ((2, 1),), Tail(1, HALF), None),
    ("other side", -3, ((2, 1),), None, Tail(2, HALF)),
    ("other side", -2, ((2, 1),), None, Tail(1, HALF)),
    ("beyond", REACH, ((2, 1),), None, None),
    ("beyond", -REACH - 1, ((2, 1),), None, None),
]


@pytest.mark.parametrize(("message", "low", "runs", "left", "right"), REFUSED)
def test_what_is_no_noise_is_refused(
    message: str, low: int, runs: tuple[Run, ...], left: Tail | None, right: Tail | None
) -> None:
    with pytest.raises(ValueError, match=message):
        IntegerNoise(low, runs, left, right)


def test_half_a_noise_begins_with_one_integer_or_more() -> None:
    with pytest.raises(ValueError, match="runs"):
        IntegerNoise.symmetric([(0, 4), (1, 2)])


@pytest.mark.parametrize(("period", "ratio"), [(0, 1), (-1, 1), (1, 0), (1, RATIO_ONE), (1, -1)])
def test_what_is_no_tail_is_refused(period: int, ratio: int) -> None:
    with pytest.raises(ValueError, match="a tail needs"):
        Tail(period, ratio)


def test_the_least_and_the_largest_noise_are_allowed() -> None:
    assert IntegerNoise(5, ((1, 2),)).mass(5) == 1
    assert IntegerNoise(-REACH, ((1, 1), (2 * REACH - 1, 0), (1, 1))).moment(1) == REACH
    assert IntegerNoise(0, ((1, 2**62),)).total == 2**62


# Draws.


def words(*values: int) -> Callable[[int], bytes]:
    """A source of these words, which must be asked for no more than there are."""
    data = b"".join(value.to_bytes(8, "little") for value in values)
    place = 0

    def source(count: int) -> bytes:
        nonlocal place
        assert place + count <= len(data)
        place += count
        return data[place - count : place]

    return source


DRAWN = [
    IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF)),
    IntegerNoise.symmetric([(2, 4), (1, 0), (1, 2)]),
    IntegerNoise(-2, ((1, 3), (2, 1), (1, 0), (2, 5), (1, 1)), Tail(2, HALF // 3), Tail(3, HALF)),
    IntegerNoise(-1, ((1, 1), (1, 7)), Tail(1, RATIO_ONE // 10 * 9), None),
    IntegerNoise(0, ((1, 3), (1, 2**62 - 3)), None, Tail(2, RATIO_ONE // 7)),
]


@pytest.mark.parametrize("noise", DRAWN)
def test_frequencies_of_a_million_draws(noise: IntegerNoise) -> None:
    count, reach = 10**6, 60
    drawn = noise.draw(count)
    middle = np.arange(-reach, reach + 1)
    expected = np.array([float(noise.mass(k)) for k in middle.tolist()]) * count
    seen = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    # Cells of few draws are merged, with all that lies beyond.
    large = expected >= 20
    assert seen[1:-1][expected == 0].sum() == 0
    rest = count - expected[large].sum()
    expected_cells = np.append(expected[large], max(rest, 0))
    seen_cells = np.append(seen[1:-1][large], count - seen[1:-1][large].sum())
    if expected_cells[-1] < 1:
        assert seen_cells[-1] < 20
        expected_cells, seen_cells = expected_cells[:-1], seen_cells[:-1]
        expected_cells *= seen_cells.sum() / expected_cells.sum()
    assert chisquare(seen_cells, expected_cells).pvalue > 1e-8


def test_every_integer_of_the_window_is_drawn_as_often_as_its_weight() -> None:
    noise = IntegerNoise(-2, ((2, 3), (1, 0), (2, 5)))
    drawn = noise.draw(16, words(*(place << 60 for place in range(16))))
    assert drawn.tolist() == [-2] * 3 + [-1] * 3 + [1] * 5 + [2] * 5


def chances(ratio: int) -> list[Fraction]:
    """The chance of each digit of a geometric number, and that of going beyond all of them."""
    found: list[Fraction] = []
    x = Fraction(ratio, RATIO_ONE)
    while x * RATIO_ONE >= 1 and len(found) < 62:
        found.append(x / (1 + x))
        x *= x
    return [*found, x]


@st.composite
def tied(draw: st.DrawFn) -> tuple[int, list[int], list[int]]:
    """A ratio, first words of which some tie, and what follows ties."""
    ratio = draw(st.sampled_from([HALF, 1, 3, RATIO_ONE // 3, RATIO_ONE // 4, RATIO_ONE - 2**57]))
    exact = chances(ratio)
    first, more = [], []
    for chance in exact:
        head = int(chance * RATIO_ONE)
        if not draw(st.booleans()):
            # Any word but one that goes beyond all digits.
            word = draw(st.integers(1, RATIO_ONE - 2))
            first.append(word if word != head else word + 1)
            continue
        first.append(head)
        rest = chance * RATIO_ONE - head
        while True:
            word = int(rest * RATIO_ONE) + draw(st.sampled_from([-1, 0, 1]))
            word = min(max(word, 0), RATIO_ONE - 1)
            more.append(word)
            if word != int(rest * RATIO_ONE) or len(more) > 8 + len(exact):
                break
            rest = rest * RATIO_ONE - word
        if word == int(rest * RATIO_ONE):
            more.append(RATIO_ONE - 1)
    return ratio, first, more


@settings(max_examples=60)
@given(tied())
def test_ties_are_decided_as_by_exact_rationals(
    case: tuple[int, list[int], list[int]],
) -> None:
    ratio, first, more = case
    exact, rest, number = chances(ratio), iter(more), 0
    for digit, (chance, word) in enumerate(zip(exact, first, strict=True)):
        uniform, places = Fraction(word, RATIO_ONE), RATIO_ONE
        # The uniform number lies in [uniform, uniform + 1/places).
        while uniform <= chance < uniform + Fraction(1, places):
            places *= RATIO_ONE
            uniform += Fraction(next(rest, RATIO_ONE - 1), places)
        if uniform < chance:
            assume(digit < len(exact) - 1)
            number += 1 << digit
    spare = [RATIO_ONE - 1] * 4
    # The last word is taken by its complement.
    *digits, last = first
    given_words = words(*digits, RATIO_ONE - 1 - last, *more, *spare)
    assert draw_geometric(ratio, 1, given_words).tolist() == [number]


def test_the_tie_of_a_third() -> None:
    """Of ratio 1/2 the digit 0 has the chance 1/3, in words of 0x5555…."""
    third = RATIO_ONE // 3
    others = [*[RATIO_ONE - 1] * 6, 0]
    assert len(chances(HALF)) == 8
    for more, drawn in (([0], 1), ([third - 1], 1), ([third + 1], 0), ([third, 0], 1)):
        assert draw_geometric(HALF, 1, words(third, *others, *more)).tolist() == [drawn]
    assert draw_geometric(HALF, 1, words(third - 1, *others)).tolist() == [1]
    assert draw_geometric(HALF, 1, words(third + 1, *others)).tolist() == [0]


def test_what_goes_beyond_all_digits_is_geometric_again() -> None:
    """Of ratio 1/2: 7 digits, then a word of ones with a second word of 0 is below 2^-128."""
    high = RATIO_ONE - 1
    again = [0, *[high] * 6, 0]
    drawn = draw_geometric(HALF, 1, words(*[high] * 7, high, 0, *again))
    assert drawn.tolist() == [2**7 + 1]


def test_what_goes_beyond_all_digits_ends_at_the_highest_number() -> None:
    """61 digits; going beyond them twice, and all digits after that, would be above 2^62."""
    high = RATIO_ONE - 1
    beyond, ones = [*[0] * 61, high, 0], [0] * 62
    drawn = draw_geometric(RATIO_ONE - 500, 1, words(*beyond, *beyond, *ones))
    assert drawn.tolist() == [2**62]


@given(st.sampled_from(range(len(DRAWN))), st.integers(0, 2**32), st.integers(1, 40))
@settings(max_examples=40)
def test_the_number_of_bytes_reveals_no_noise(which: int, seed: int, count: int) -> None:
    """Whatever is drawn, as many bytes are asked for, in calls of as many."""
    noise = DRAWN[which]

    def taken(of: Callable[[int], bytes]) -> list[int]:
        calls = []

        def source(size: int) -> bytes:
            calls.append(size)
            return of(size)

        noise.draw(count, source)
        return calls

    random = np.random.default_rng(seed)
    assert taken(random.bytes) == taken(lambda size: b"\xfe" * size)
    assert sum(taken(random.bytes)) % (8 * count) == 0


@pytest.mark.parametrize("period", [1, 2**20, 2**60])
def test_far_noise_saturates_and_never_wraps(period: int) -> None:
    """With the largest ratio 3/4 of all are beyond 2^62, even with a period of 1."""
    tail = Tail(period, RATIO_ONE - 1)
    noise = IntegerNoise(-period, ((2 * period, 1),), tail, tail)
    drawn = noise.draw(4000)
    assert np.abs(drawn).max() == REACH
    assert np.abs(drawn).min() >= 0
    above, below = (drawn == REACH).mean(), (drawn == -REACH).mean()
    chance = 0.5 * (np.exp(-0.25) if period == 1 else np.exp(-0.25 / period))
    assert abs(above - chance) < 0.06
    assert abs(below - chance) < 0.06


def test_only_what_lies_beyond_the_ends_is_drawn_as_an_end() -> None:
    """In periods of 2^61 half of all is in the first, a quarter in the second, the rest far out."""
    upward = IntegerNoise(0, ((2**61, 2),), None, Tail(2**61, HALF))
    for noise, sign in ((upward, 1), (upward.mirrored, -1)):
        drawn = sign * noise.draw(4000)
        assert drawn.min() >= 0
        assert abs((drawn < 2**61).mean() - 0.5) < 0.06
        assert abs(((drawn >= 2**61) & (drawn < REACH)).mean() - 0.25) < 0.06
        assert abs((drawn == REACH).mean() - 0.25) < 0.06


def test_the_window_may_reach_the_ends() -> None:
    noise = IntegerNoise(-REACH, ((1, 1), (2 * REACH - 1, 0), (1, 1)))
    low, high = noise.draw(2, words(0, RATIO_ONE - 1)).tolist()
    assert (low, high) == (-REACH, REACH)
    wide = IntegerNoise(-REACH + 1, ((2**62, 1),))
    assert wide.draw(2, words(0, RATIO_ONE - 1)).tolist() == [-REACH + 1, 0]


def test_a_run_of_zeros_may_be_longer_than_64_bits_hold() -> None:
    noise = IntegerNoise(-REACH, ((2 * REACH, 0), (1, 2)))
    assert noise.draw(3).tolist() == [REACH] * 3


@given(noises(), st.integers(-12, 40))
def test_chances_in_digits_are_sums_of_masses(noise: IntegerNoise, at: int) -> None:
    """Where both tails are gone, or else as far out as the masses can be added one by one."""
    stop = max(at, noise.high) + 1
    between = sum((noise.mass(j) for j in range(at + 1, stop)), Fraction(0))
    rest = Fraction(0)
    if noise.right is not None:
        period = noise.right.period
        once = sum((noise.mass(j) for j in range(stop, stop + period)), Fraction(0))
        rest = once / (1 - noise.right.fraction)
    assert abs(Fraction(noise.above_in_digits(at)) - (between + rest)) < Fraction(1, 10**57)


def test_a_radius_just_reaches_its_level() -> None:
    """Half of the noise is 0, and all of it within 1."""
    noise = IntegerNoise(-1, ((1, 1), (1, 2), (1, 1)))
    for level, expected in ((Fraction(1, 2), 0), (Fraction(51, 100), 1), (Fraction(1), 1)):
        assert noise.radius(float(level)) == expected
