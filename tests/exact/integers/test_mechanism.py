"""Clamped and remapped noise: every figure against the rows by their definition."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from release.exact.composition.distribution import UNIT
from release.exact.domain import AnswerDomain, Topology
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import RATIO_ONE, REACH, IntegerNoise, Run, Tail, merged
from release.exact.integers.outcomes import Outcomes, listed_answers
from release.exact.integers.staircase import staircase
from release.exact.losses import LossName, named_loss
from release.exact.numbers import exp_bounds
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.noise.solvers.on_integers import with_ends
from tests.exact.integers.test_noise import every_noise, second, staircases

LOSSES = (LossName.ERROR_RATE, LossName.ABSOLUTE, LossName.SQUARED)
HALF = RATIO_ONE // 2

near = settings(max_examples=80)


def line(size: int) -> AnswerDomain:
    return AnswerDomain(Topology.ORDERED, tuple(range(size)))


@st.composite
def tables(draw: st.DrawFn, size: int) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """What is added to the first outcomes and to the last ones."""
    low = draw(st.integers(0, size))
    high = draw(st.integers(0, size - low))
    ends = []
    for first, stop in ((0, low), (size - high, size)):
        answers = [draw(st.integers(0, size - 1)) for _ in range(first, stop)]
        shifts = [answer - first - place for place, answer in enumerate(answers)]
        ends.append(merged((1, shift) for shift in shifts))
    return ends[0], ends[1]


@st.composite
def mechanisms(draw: st.DrawFn) -> IntegerMechanism:
    size = draw(st.integers(2, 12))
    noise = draw(every_noise.filter(is_no_trickle))
    low, high = draw(tables(size)) if draw(st.booleans()) else ((), ())
    return IntegerMechanism(noise, size, low, high)


def is_no_trickle(noise: IntegerNoise) -> bool:
    """Ratios so near 1 that 1 - ratio has few digits in floats are tested beside the noise."""
    return all(tail is None or tail.ratio < RATIO_ONE - 2**40 for tail in (noise.left, noise.right))


def published_by_force(mechanism: IntegerMechanism) -> list[int]:
    """What is published for each outcome, one by one."""
    answers = list(range(mechanism.size))
    place = 0
    for length, shift in mechanism.low:
        for _ in range(length):
            answers[place] += shift
            place += 1
    place = mechanism.size - sum(length for length, _ in mechanism.high)
    for length, shift in mechanism.high:
        for _ in range(length):
            answers[place] += shift
            place += 1
    return answers


def exact_rows(mechanism: IntegerMechanism) -> list[list[Fraction]]:
    """P(published | true), in exact rationals: clamp, then the tables."""
    pmf, last = second(mechanism.noise), mechanism.size - 1
    published, rows = published_by_force(mechanism), []
    for true in range(mechanism.size):
        row = [Fraction(0)] * mechanism.size
        row[published[0]] += pmf.below(1 - true)
        row[published[last]] += pmf.above(last - true - 1)
        for outcome in range(1, last):
            row[published[outcome]] += pmf.mass(outcome - true)
        assert sum(row) == 1
        rows.append(row)
    return rows


def close(expected: Fraction | float) -> object:
    return pytest.approx(float(expected), rel=1e-10, abs=1e-12)


@near
@given(mechanisms())
def test_rows_and_columns_are_those_of_the_definition(mechanism: IntegerMechanism) -> None:
    rows = exact_rows(mechanism)
    for true, exact in enumerate(rows):
        assert mechanism.probabilities(true) == close_row(exact)
        row = mechanism.row(true)
        assert int(row.sum()) == mechanism.total
        assert row / mechanism.total == pytest.approx(
            [float(x) for x in exact], abs=1e-9 + mechanism.size / mechanism.total
        )
    for code in range(mechanism.size):
        column = [row[code] for row in rows]
        assert mechanism.likelihood_of(code) == close_row(column)


def close_row(exact: list[Fraction]) -> object:
    return pytest.approx([float(x) for x in exact], rel=1e-10, abs=1e-12)


@near
@given(mechanisms(), st.integers(0, 12))
def test_losses_and_chances_are_those_of_the_rows(mechanism: IntegerMechanism, radius: int) -> None:
    rows, size = exact_rows(mechanism), mechanism.size
    for power, name in enumerate(LOSSES):
        loss = named_loss(name, Topology.ORDERED, size)
        costs = []
        for true, row in enumerate(rows):
            errors = (abs(o - true) for o in range(size))
            terms = (p * (e**power if e else 0) for p, e in zip(row, errors, strict=True))
            costs.append(sum(terms, Fraction(0)))
            assert float(mechanism.loss_at(power, true)) == close(costs[-1])
        assert float(mechanism.expected_loss(loss, line(size))) == close(sum(costs) / size)
        code, worst = mechanism.worst(power)
        assert float(worst) == close(max(costs)) == close(costs[code])
    assert mechanism.error_at(line(size), 0) == mechanism.loss_at(1, 0)
    near = sum(row[o] for q, row in enumerate(rows) for o in range(size) if abs(o - q) <= radius)
    assert float(mechanism.chance_within(line(size), radius)) == close(Fraction(near) / size)


def concentration_by_force(mechanism: IntegerMechanism) -> float:
    return math.sqrt(max(sum(p * p for p in row) for row in exact_rows(mechanism)))


@near
@given(mechanisms())
def test_concentration_of_clamped_noise_is_an_upper_bound(mechanism: IntegerMechanism) -> None:
    plain = IntegerMechanism(mechanism.noise, mechanism.size)
    assert plain.concentration() >= concentration_by_force(plain) * (1 - 1e-12)


def test_concentration_is_an_upper_bound_where_tables_keep_to_themselves() -> None:
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    mechanism = IntegerMechanism(noise, 9, ((2, 1), (1, 0)), ((1, 0), (1, -1)))
    assert mechanism.concentration() >= concentration_by_force(mechanism)


def test_concentration_of_clamped_noise_is_that_of_its_worst_row() -> None:
    """Masses of 1/2, and 1/8, 1/16 … on each side: 0 gives 24, 4, 2 and 2 of 32."""
    mechanism = IntegerMechanism(IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF)), 4)
    assert mechanism.concentration() == pytest.approx(math.hypot(24, 4, 2, 2) / 32)


def test_concentration_counts_what_both_tables_add_to_one_answer() -> None:
    noise = IntegerNoise(-4, ((4, 1), (1, 0), (4, 1)))
    mechanism = IntegerMechanism(noise, 9, ((4, 4),), ((4, -4),))
    assert 1 >= mechanism.concentration() >= concentration_by_force(mechanism) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("away", "low", "high"),
    [
        # The last three outcomes are published as the last answer.
        (2, (), ((1, 2), (1, 1), (1, 0))),
        (2, ((1, 0), (1, -1), (1, -2)), ()),
        # The outcome at the end is published as that three further in.
        (3, (), ((1, -3),)),
        (3, ((1, 3),), ()),
    ],
)
def test_concentration_counts_as_one_what_a_table_publishes_as_one_answer(
    away: int, low: tuple[Run, ...], high: tuple[Run, ...]
) -> None:
    """Noise is 0 or so far away: one true answer at an end is always published as the same."""
    noise = IntegerNoise.symmetric([(1, 2), (away - 1, 0), (1, 1)])
    mechanism = IntegerMechanism(noise, 9, low, high)
    assert concentration_by_force(mechanism) == 1
    assert mechanism.concentration() == pytest.approx(1, rel=1e-12)


@settings(max_examples=80, phases=[Phase.generate])
@given(mechanisms())
def test_concentration_is_an_upper_bound(mechanism: IntegerMechanism) -> None:
    assert mechanism.concentration() >= concentration_by_force(mechanism) * (1 - 1e-12)


@near
@given(staircases(), st.data())
def test_epsilon_everywhere_is_an_upper_bound(noise: IntegerNoise, data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 9))
    low, high = data.draw(tables(size))
    mechanism = IntegerMechanism(noise, size, low, high)
    epsilon, largest = mechanism.epsilon_everywhere(), Fraction(1)
    if epsilon is None:
        assert not noise.is_unimodal()
        return
    for column in zip(*exact_rows(mechanism), strict=True):
        if max(column):
            largest = max(largest, max(column) / min(column))
    assert math.log(largest) <= float(epsilon) + 1e-12
    if not low and not high:
        plain = max(noise.mass(k) / noise.mass(k + size - 1) for k in range(-30, 31))
        assert float(epsilon) == close(math.log(plain))


def test_epsilon_everywhere_of_geometric_noise() -> None:
    """The noise 0 has 1/2, those beyond 1/8, 1/16 …: over 5 answers apart a factor of 2^6."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    epsilon = IntegerMechanism(noise, 6).epsilon_everywhere()
    assert epsilon is not None
    assert float(epsilon) == close(6 * math.log(2))
    assert IntegerMechanism(IntegerNoise(0, ((2, 1),)), 6).epsilon_everywhere() is None


def test_noise_that_ends_in_zeros_before_its_tail_has_no_epsilon_everywhere() -> None:
    noise = IntegerNoise.symmetric([(1, 2), (1, 1), (1, 0)], Tail(1, HALF))
    assert IntegerMechanism(noise, 10).epsilon_everywhere() is None


@pytest.mark.parametrize("ratio", [RATIO_ONE - 1, RATIO_ONE - 512])
def test_a_ratio_next_to_one_has_figures(ratio: int) -> None:
    noise = IntegerNoise.symmetric([(1, 2), (1, 1)], Tail(1, ratio))
    loss = named_loss(LossName.ERROR_RATE, Topology.ORDERED, 10)
    # Half of all noise is 0, the rest beyond both ends.
    found = IntegerMechanism(noise, 10).expected_loss(loss, line(10))
    assert float(found) == pytest.approx(0.45, abs=1e-9)


@near
@given(mechanisms())
def test_what_is_constant_publishes_one_answer(mechanism: IntegerMechanism) -> None:
    assert mechanism.is_constant() == (len(set(published_by_force(mechanism))) == 1)


def test_what_a_row_leaves_of_its_total_goes_to_its_mode() -> None:
    """Of 8 the answers have 6, 3/2, 3/8 and less."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF // 2))
    assert IntegerMechanism(noise, 6).row(0).tolist() == [7, 1, 0, 0, 0, 0]


def test_probabilities_near_an_answer_are_masses_of_the_noise() -> None:
    noise = IntegerNoise(-1, ((2, 3), (1, 2)), Tail(2, HALF), Tail(1, HALF))
    for size in (10**6, 2**40):
        middle = size // 2
        found = IntegerMechanism(noise, size).probabilities_near(middle, middle - 5, middle + 9)
        assert found == close_row([noise.mass(k) for k in range(-5, 9)])
    # Of up to a million answers those at the ends have what is clamped to them as well.
    pmf, last = second(noise), 10**6 - 1
    clamped = IntegerMechanism(noise, last + 1)
    at_lowest = [pmf.below(1), noise.mass(1), noise.mass(2)]
    assert clamped.probabilities_near(0, 0, 3) == close_row(at_lowest)
    at_highest = [noise.mass(-2), noise.mass(-1), pmf.above(-1)]
    assert clamped.probabilities_near(last, last - 2, last + 1) == close_row(at_highest)


def test_neighboring_rows_are_the_masses_a_step_apart() -> None:
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    mechanism, sensitivity = IntegerMechanism(noise, 9), Sensitivity.on_line(9, (1, 2))
    found = mechanism.neighboring_rows(sensitivity, 4)
    assert found is not None
    masses = [float(noise.mass(k)) for k in range(-3, 4)]
    lower, upper = masses[:-2], masses[2:]
    assert np.stack(found) == pytest.approx(np.array([[lower, upper], [upper, lower]]))
    assert mechanism.neighboring_rows(sensitivity, 2) is None


@pytest.mark.parametrize(
    "sensitivity", [Sensitivity.on_line(9, ()), Sensitivity.everything(line(9).group)]
)
def test_there_are_no_neighboring_rows_without_distances(sensitivity: Sensitivity) -> None:
    assert IntegerMechanism(SHORT, 9).neighboring_rows(sensitivity, 10**6) is None


def test_neighboring_rows_of_no_noise_share_no_outcome() -> None:
    rows = IntegerMechanism(IntegerNoise(0, ((1, 2),)), 9).neighboring_rows(
        Sensitivity.on_line(9, (2,)), 100
    )
    assert rows is not None
    here, there = rows
    assert (here.sum(axis=1) == 1).all()
    assert (there.sum(axis=1) == 1).all()
    assert not (here * there).any()


def test_comparisons_are_those_of_the_noise_at_the_distances() -> None:
    """Of three runs and two tails: nine periods of each tail up to the distance 9."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    mechanism = IntegerMechanism(noise, 50)
    assert mechanism.comparisons(Sensitivity.on_line(50, (1, 9))) == 2 * 3 * (18 + 3) * 3
    assert mechanism.comparisons(Sensitivity.on_line(50, ())) == 2 * 3 * 3
    assert mechanism.comparisons(Sensitivity.everything(line(50).group)) == 2 * 3 * 3


def test_without_distances_there_is_a_profile_only_where_nothing_differs() -> None:
    mechanism, step = IntegerMechanism(SHORT, 9), Fraction(1, 4)
    assert set(mechanism.profile(Sensitivity.on_line(9, ()), step).values) == {0}
    with pytest.raises(ValueError, match="distances"):
        mechanism.profile(Sensitivity.everything(line(9).group), step)


def test_a_profile_that_would_take_too_long_is_a_bound_of_the_exact_one() -> None:
    """With one tail no pure bound is known, and 769 is more than 256 of its periods."""
    noise = IntegerNoise(0, ((1000, 1), (1, 21), (3, 1)), None, Tail(3, HALF))
    mechanism, sensitivity = IntegerMechanism(noise, 5000), Sensitivity.on_line(5000, (769,))
    found = mechanism.profile(sensitivity, Fraction(1))
    for place, value in enumerate(found.values):
        exact = mechanism.deltas_at_ratio(sensitivity, exp_bounds(Fraction(place))[1])
        assert Fraction(value, UNIT) >= exact.approximate
    at_zero = float(mechanism.deltas_at_ratio(sensitivity, Fraction(1)).approximate)
    assert found.values[0] / UNIT == pytest.approx(at_zero, rel=1e-9)


def test_tables_can_publish_one_answer_for_all() -> None:
    noise = IntegerNoise(0, ((2, 1),))
    assert IntegerMechanism(noise, 3, ((1, 1),), ((1, -1),)).is_constant()
    assert IntegerMechanism(noise, 3, ((1, 1), (1, 0), (1, -1))).is_constant()
    assert not IntegerMechanism(noise, 4, ((1, 1),), ((1, -1),)).is_constant()
    assert not IntegerMechanism(noise, 3, ((1, 1),)).is_constant()
    # The same at both ends, and another answer between them.
    assert not IntegerMechanism(noise, 3, ((1, 1), (1, -1), (1, -1))).is_constant()


@near
@given(mechanisms(), st.sets(st.integers(1, 11), min_size=1), st.fractions(1, 9))
def test_clamped_and_remapped_rows_have_at_most_the_delta_of_the_noise(
    mechanism: IntegerMechanism, steps: set[int], ratio: Fraction
) -> None:
    assume(mechanism.noise.is_unimodal() is False or mechanism.noise.is_symmetric)
    apart = [step for step in steps if step < mechanism.size]
    assume(apart)
    sensitivity = Sensitivity.on_line(mechanism.size, apart)
    claimed, rows = mechanism.deltas_at_ratio(sensitivity, ratio), exact_rows(mechanism)
    pairs = [(q, q + s) for s in apart for q in range(mechanism.size - s)]
    assert mechanism.deltas_of_pairs(pairs, ratio) == claimed
    for true, neighbor in [*pairs, *((b, a) for a, b in pairs)]:
        excess = probabilistic = Fraction(0)
        for here, there in zip(rows[true], rows[neighbor], strict=True):
            excess += max(Fraction(0), here - ratio * there)
            probabilistic += here if here > ratio * there else 0
        assert excess <= claimed.approximate
        assert probabilistic <= claimed.probabilistic


def test_noise_is_not_private_for_differences_without_distances() -> None:
    """M alone does not say how far apart answers are on the line."""
    mechanism = IntegerMechanism(IntegerNoise(0, ((1, 2),)), 4)
    unknown = Sensitivity.everything(line(4).group)
    try:
        deltas = mechanism.deltas_at_ratio(unknown, Fraction(2))
    except ValueError:
        return
    assert deltas.approximate == 1


DRAWN = [
    IntegerMechanism(IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF)), 5),
    IntegerMechanism(
        IntegerNoise(-2, ((1, 3), (2, 1), (1, 0), (2, 5), (1, 1)), Tail(2, HALF // 3), None),
        7,
        ((2, 1), (1, 0)),
        ((1, -3), (1, -1)),
    ),
    IntegerMechanism(IntegerNoise(-9, ((9, 1), (1, 0), (1, 7)), None, Tail(1, HALF)), 3),
]


@pytest.mark.parametrize("mechanism", DRAWN)
def test_draws_follow_the_rows(mechanism: IntegerMechanism) -> None:
    count = 200_000
    for true, row in enumerate(exact_rows(mechanism)):
        drawn = mechanism.draw(np.full(count, true, dtype=np.int64))
        seen = np.bincount(drawn, minlength=mechanism.size)
        expected = np.array([float(p) * count for p in row])
        assert seen.size == mechanism.size
        assert seen[expected == 0].sum() == 0
        assert chisquare(seen[expected > 0], expected[expected > 0]).pvalue > 1e-8


@pytest.mark.parametrize("size", [2, 10**6, 2**62])
def test_far_draws_are_clamped_and_never_wrap(size: int) -> None:
    answers = np.array([0, 1, size // 2, size - 2, size - 1] * 200, dtype=np.int64)
    up = IntegerMechanism(IntegerNoise(REACH, ((1, 2),)), size)
    assert (up.draw(answers) == size - 1).all()
    down = IntegerMechanism(IntegerNoise(-REACH, ((1, 2),)), size)
    assert (down.draw(answers) == 0).all()
    tail = Tail(2**60, RATIO_ONE - 1)
    wide = IntegerMechanism(IntegerNoise(-(2**60), ((2**61, 1),), tail, tail), size)
    drawn = wide.draw(answers)
    assert drawn.min() >= 0
    assert drawn.max() <= size - 1
    if size < 2**62:
        assert {0, size - 1} <= set(drawn.tolist())


@pytest.mark.parametrize("answers", [[-1], [0, 7], [7, 0]])
def test_codes_outside_are_refused(answers: list[int]) -> None:
    with pytest.raises(ValueError, match="outside"):
        DRAWN[1].draw(np.array(answers))


REFUSED: list[tuple[str, int, tuple[Run, ...], tuple[Run, ...]]] = [
    ("two answers", 1, (), ()),
    ("two answers", -5, (), ()),
    ("1 or more outcomes", 5, ((0, 1),), ()),
    ("1 or more outcomes", 5, (), ((-1, 0),)),
    ("longer", 5, ((3, 0),), ((3, 0),)),
    ("no answer", 5, ((1, -1),), ()),
    ("no answer", 5, ((2, 4),), ()),
    ("no answer", 5, (), ((1, 1),)),
    ("no answer", 5, (), ((2, -4),)),
]


@pytest.mark.parametrize(("message", "size", "low", "high"), REFUSED)
def test_what_is_no_mechanism_is_refused(
    message: str, size: int, low: tuple[Run, ...], high: tuple[Run, ...]
) -> None:
    with pytest.raises(ValueError, match=message):
        IntegerMechanism(IntegerNoise(0, ((2, 1),)), size, low, high)


SHORT = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF // 2**10))


@pytest.mark.parametrize("low", [(), ((2, 1),), ((1, 2), (1, 1))])
@pytest.mark.parametrize("high", [(), ((1, -1),), ((2, -1),)])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_wide_domains_fare_as_all_their_answers(
    low: tuple[Run, ...], high: tuple[Run, ...], power: int
) -> None:
    """Answers far from both ends are all alike, so that only some are looked at."""
    check_listed(IntegerMechanism(SHORT, 200, low, high), power)


def test_what_is_left_out_of_wide_domains_shows_in_no_figure_of_12_digits() -> None:
    """Noise of ±2 has e^-25 of the probability of ±1, which is 10^-11 of this figure."""
    steep = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE // 79_600_000_000))
    found = float(IntegerMechanism(steep, 200).loss_at(2, 100))
    assert found == pytest.approx(float(steep.moment(2)), rel=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2])
def test_wide_domains_with_long_tables_fare_as_all_their_answers(power: int) -> None:
    check_listed(IntegerMechanism(SHORT, 200, ((40, 2),), ()), power)


@settings(max_examples=20)
@example(60, 60, 2)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 2))
def test_means_over_wide_domains_are_those_over_all_answers(
    low: int, high: int, power: int
) -> None:
    tables = [((n, s),) if n else () for n, s in ((low, 2), (high, -2))]
    check_means(IntegerMechanism(SHORT, 200, *tables), power)


def check_means(mechanism: IntegerMechanism, power: int) -> None:
    size = mechanism.size
    assert listed_answers(mechanism.noise, size) <= mechanism.outcomes.answers < size
    whole = Outcomes(mechanism.noise, size)
    published = np.array(published_by_force(mechanism))
    loss = named_loss(LOSSES[power], Topology.ORDERED, size)
    every = whole.losses(power, published).sum() / size
    assert float(mechanism.expected_loss(loss, line(size))) == close(every)
    for radius in (0, 1, 5):
        within = whole.within(radius, published).sum() / size
        assert float(mechanism.chance_within(line(size), radius)) == close(within)


def check_listed(mechanism: IntegerMechanism, power: int) -> None:
    check_means(mechanism, power)
    whole = Outcomes(mechanism.noise, mechanism.size)
    published = np.array(published_by_force(mechanism))
    codes = np.arange(mechanism.size)
    losses = whole.losses_at(power, published, codes)
    found = [float(mechanism.loss_at(power, code)) for code in codes.tolist()]
    assert found == pytest.approx(losses.tolist(), rel=1e-10)
    code, worst = mechanism.worst(power)
    assert float(worst) == close(losses.max()) == close(losses[code])


@pytest.mark.parametrize("size", [14, 15, 17, 29])
def test_rounding_makes_no_chance_above_1(size: int) -> None:
    """Sums of floats come out above 1 by some 10^-16 here, over all radii that there are."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE // 3))
    mechanism = IntegerMechanism(noise, size)
    assert mechanism.mean(mechanism.outcomes.within(size, mechanism.listed)) > 1
    assert mechanism.chance_within(line(size), size) == 1


Table = tuple[Run, ...]


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (((1, 15),), ()),
        ((), ((1, -15),)),
        (((3, 60), (1, 0)), ((2, -1),)),
        (((1, 1),), ((2, -60), (1, -3))),
    ],
)
def test_a_table_may_publish_what_lies_far_from_its_end(
    low: Table, high: Table, power: int
) -> None:
    check_listed(IntegerMechanism(SHORT, 200, low, high), power)


@pytest.mark.parametrize(("low", "high"), [(((3, 150),), ()), ((), ((2, -150),))])
def test_a_table_may_publish_what_lies_nearer_to_the_other_end(low: Table, high: Table) -> None:
    """All answers are looked at then."""
    mechanism = IntegerMechanism(SHORT, 200, low, high)
    assert mechanism.outcomes.answers == 200
    loss = named_loss(LossName.ABSOLUTE, Topology.ORDERED, 200)
    losses = Outcomes(SHORT, 200).losses(1, np.array(published_by_force(mechanism)))
    assert float(mechanism.expected_loss(loss, line(200))) == close(losses.sum() / 200)


NEAR = 2**21
"""How many outcomes from its end a table reaches, where not all answers can be listed."""


def mirrored(table: Table) -> Table:
    """The table of the other end that does the same from there."""
    return tuple((length, -shift) for length, shift in reversed(table))


@pytest.mark.parametrize("farther", [0, 1])
@pytest.mark.parametrize("size", [2**22 + 1, 2**40])
def test_tables_of_wide_domains_reach_no_farther_than_what_is_listed(
    size: int, farther: int
) -> None:
    reads = ((NEAR - 1 + farther, 0), (1, -1))
    publishes = ((1, NEAR - 1 + farther),)
    both = ((NEAR - 1 + farther, 1),)
    for table in (reads, publishes, both):
        for ends in ((table, ()), ((), mirrored(table)), (((1, 1),), mirrored(table))):
            if not farther:
                assert IntegerMechanism(SHORT, size, *ends).low == ends[0]
                continue
            with pytest.raises(ValueError, match="too far from that end"):
                IntegerMechanism(SHORT, size, *ends)


@pytest.mark.parametrize("size", [2**22 - 1, 2**22])
def test_tables_may_be_as_long_as_all_answers_that_are_listed(size: int) -> None:
    for low, high in ((((1, size - 1),), ()), ((), ((size - 1, 0), (1, 1 - size)))):
        assert IntegerMechanism(SHORT, size, low, high).outcomes.answers == size


def test_of_wide_noise_four_million_answers_are_looked_at() -> None:
    """Two million near each end, and one between them where the tables of the ends meet."""
    wide = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, RATIO_ONE - 1))
    assert listed_answers(wide, 2**40) == 2**22
    assert listed_answers(wide, 2**40, 3 * 2**20) == 2**22
    assert listed_answers(wide, 2**22 - 1) == 2**22 - 1
    for low, high in ((((NEAR - 1, 1),), ()), ((), ((1, 1 - NEAR),))):
        assert IntegerMechanism(wide, 2**40, low, high).outcomes.answers == 2**22 + 1


@pytest.mark.parametrize(("answers", "code"), [(4096, 1), (4096, 4094), (9000, 0), (9000, 8999)])
def test_the_worst_of_up_to_4096_answers_is_found_and_of_more_that_at_an_end(
    answers: int, code: int
) -> None:
    """Without noise an answer is wrong only where its table says so."""
    published = np.arange(answers)
    published[code] += 3 if code < answers // 2 else -3
    assert Outcomes(IntegerNoise(0, ((1, 2),)), answers).worst(1, published) == (code, 3.0)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_designed_tables_fare_as_all_their_answers(power: int, epsilon: str) -> None:
    noise = staircase((1, 2, 3), Fraction(epsilon), power).noise
    check_listed(with_ends(noise, 2000, power), power)


@given(mechanisms(), st.data())
def test_likelihoods_are_those_of_the_floats(
    mechanism: IntegerMechanism, data: st.DataObject
) -> None:
    columns = list(mechanism.likelihoods())
    code = data.draw(st.integers(0, mechanism.size - 1))
    expected = mechanism.likelihood_of(code)
    np.testing.assert_allclose(np.array(columns[code], dtype=float) / 1e60, expected, atol=1e-12)
    for true in range(mechanism.size):
        whole = sum(column[true] for column in columns)
        assert abs(whole - 10**60) < 10**4


def test_geometric_noise_loses_in_proportion_and_a_staircase_does_not() -> None:
    """One step of four loses a quarter of ε, or all of it."""
    four = Sensitivity.on_line(50, range(1, 5))
    geometric = IntegerMechanism(geometric_noise(least_ratio(Fraction(1), 4)), 50)
    assert geometric.loses_in_proportion(four, Fraction(1))
    assert not geometric.loses_in_proportion(four, Fraction(99, 100))
    # Of the distances the farthest alone counts.
    assert geometric.loses_in_proportion(Sensitivity.on_line(50, (1, 4)), Fraction(1))
    assert not geometric.loses_in_proportion(Sensitivity.on_line(50, (1, 5)), Fraction(1))
    # Its tail has a quarter of each of its masses: ln (8·4/3) at the first step.
    stairs = IntegerMechanism(IntegerNoise.symmetric([(1, 8), (4, 1)], Tail(4, HALF // 2)), 50)
    assert not stairs.loses_in_proportion(four, Fraction("9.46"))
    assert stairs.loses_in_proportion(four, Fraction("9.47"))


def test_noise_loses_in_proportion_only_where_that_is_certain_whatever_the_digits_of_e() -> None:
    """The first step loses ln 4. ε is below it by less than the 30 digits of bounds of e^ε tell."""
    noise = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
    mechanism, one = IntegerMechanism(noise, 9), Sensitivity.on_line(9, (1,))
    epsilon = Fraction(Context(prec=45, rounding=ROUND_FLOOR).ln(Decimal(4)))
    assert not mechanism.loses_in_proportion(one, epsilon)
    assert mechanism.loses_in_proportion(one, epsilon + Fraction(1, 10**29))
    # Where no answers differ one step may lose all of it.
    nothing = Sensitivity.on_line(9, ())
    assert not mechanism.loses_in_proportion(nothing, epsilon)
    assert mechanism.loses_in_proportion(nothing, epsilon + Fraction(1, 10**29))


@pytest.mark.parametrize("noise", [SHORT, IntegerNoise(0, ((2, 1), (1, 6))), DRAWN[1].noise])
@pytest.mark.parametrize("power", [1, 2])
def test_the_best_answers_have_the_least_error(noise: IntegerNoise, power: int) -> None:
    mechanism = IntegerMechanism(noise, 7)
    columns = zip(*exact_rows(mechanism), strict=True)
    best = Outcomes(noise, 7).best(power).tolist()
    for answer, column in zip(best, columns, strict=True):
        costs = []
        for other in range(7):
            costs.append(sum(p * abs(other - true) ** power for true, p in enumerate(column)))
        assert float(costs[answer]) == close(min(costs))
