"""Intervals around estimates: how often they cover, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp, floor, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from release.exact.integers.noise import IntegerNoise
from release.exact.statistics.sums import geometric_noise
from release.noise.composed.laws import exponential_power
from release.tabulations.estimate.error_distribution import ErrorDistribution, transform_of
from release.tabulations.estimate.intervals import (
    COVERAGE,
    HalfWidth,
    HalfWidths,
    _least,
    half_widths,
    step_of,
)
from release.tabulations.estimate.least_squares import Measurement, estimates
from release.tabulations.estimate.problem import NotEstimableError, Table
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from release.tabulations.estimate.weights import Floats, Weights
from tests.tabulations.estimate.dense import areas_of

SIZES = (3, 2)
TOTAL = Margin((summed_out(3), summed_out(2)))
FIRST = Margin(((0, 1, 1), summed_out(2)))
DETAIL = Margin((kept_whole(3), kept_whole(2)))
ALONE = areas_of([0])


def geometric(ratio: Fraction) -> IntegerNoise:
    return geometric_noise(int(ratio * 2**64))


@given(ratio=st.fractions(Fraction(1, 1000), Fraction(99, 100), max_denominator=1000))
@example(ratio=Fraction(1, 1000))
@example(ratio=Fraction(9, 10))
@settings(max_examples=40, deadline=None)
def test_a_cell_measured_alone_has_the_least_whole_half_width(ratio: Fraction) -> None:
    noise = geometric(ratio)
    own = half_widths(ALONE, SIZES, {(0, DETAIL): noise}, [], [(0, DETAIL)])[0, DETAIL]
    reach, coverage = 0, noise.mass(0)
    while coverage < Fraction(95, 100):
        reach += 1
        coverage += 2 * noise.mass(reach)
    width = own.values[0][0]
    assert floor(width.value) == reach
    assert width.coverage == pytest.approx(float(coverage), abs=1e-9)
    step = step_of(noise.moment(2))
    narrower = width.value - step
    assert floor(narrower) == reach - 1 or not reach
    # Halfway between multiples of the step.
    assert width.value / step % 1 == Fraction(1, 2)
    # It is the least there is where no error is the rule.
    assert reach or (narrower < 0 and width.narrower == 0)


def test_an_error_that_lies_as_far_out_as_any_may_is_covered() -> None:
    """Three values, the outer two with hardly more than 5 %: Chebyshev's inequality is sharp.

    Multiplied by 0.6 they lie on no multiple of the step, which is 1/256.
    """
    noise = IntegerNoise.symmetric([(1, 2**20 - 2 * 26215), (1, 26215)])
    variance = noise.moment(2) * Fraction(9, 25)
    assert noise.moment(2) > Fraction(1, 20)
    weights = Weights(np.array([0.6]), np.ones(1), np.zeros(1, dtype=np.int64))
    spreads = np.array([float(noise.moment(2))])
    error = ErrorDistribution.of(weights, [transform_of(noise)], spreads, float(variance))
    width = _least(error, variance)
    assert Fraction(3, 5) <= width.value < Fraction(3, 5) + 2 * step_of(variance)
    assert width.coverage == pytest.approx(1.0, abs=1e-9)


def test_hardly_any_noise_has_a_width_by_its_variance() -> None:
    """Noise that is 0 but once in 10^13: its error has more waves than a machine holds."""
    noise = IntegerNoise.symmetric([(1, 2**62 - 2 * 2**18), (1, 2**18)])
    # Thirds and sevenths of it lie on no grid that is short.
    weights = Weights(np.array([1 / 3, 1 / 7]), np.ones(2), np.zeros(2, dtype=np.int64))
    variance = noise.moment(2) * (Fraction(1, 9) + Fraction(1, 49))
    spreads = np.array([float(noise.moment(2))])
    width = _least(None, variance)
    assert width.value**2 * Fraction(1, 20) >= variance
    error = ErrorDistribution.of(weights, [transform_of(noise)], spreads, float(variance))
    if error is not None:
        assert error.within(float(width.value)) >= 0.95


def test_thirds_that_a_fact_leaves_are_counted_with_both_ends() -> None:
    # Three cells that add up to a known number: each error is (2·a − b − c)/3.
    noise = geometric(Fraction(3, 10))
    three = Margin((kept_whole(3),))
    facts = [(0, Margin((summed_out(3),)))]
    own = half_widths(ALONE, (3,), {(0, three): noise}, facts, [(0, three)])[0, three]
    ((width,),) = own.values
    reach = range(-16, 17)
    mass = {error: noise.mass(error) for error in reach}

    def within(most: Fraction) -> Fraction:
        chance = Fraction(0)
        for a in reach:
            for b in range(-12, 13):
                low, high = ceil(2 * a - b - 3 * most), floor(2 * a - b + 3 * most)
                both = mass[a] * mass[b]
                chance += both * sum((mass[c] for c in range(low, high + 1) if c in mass), start=0)
        return chance

    assert float(within(width.value)) == pytest.approx(width.coverage, abs=1e-5)
    assert within(width.value) >= Fraction(95, 100) - Fraction(1, 10**5)
    narrower = width.value - step_of(noise.moment(2) * Fraction(2, 3))
    assert float(within(narrower)) == pytest.approx(width.narrower, abs=1e-5)
    assert within(narrower) < Fraction(95, 100)


@pytest.mark.parametrize(
    "noises",
    [
        [geometric(Fraction(4, 5)), geometric(Fraction(1, 2)), geometric(Fraction(9, 10))],
        [geometric(Fraction(1, 20)), geometric(Fraction(1, 9)), geometric(Fraction(1, 12))],
        [exponential_power(Fraction(scale), Fraction(2)) for scale in (1, 4, 9)],
    ],
)
def test_simulated_releases_are_covered_as_often_as_computed(
    noises: Sequence[IntegerNoise],
) -> None:
    # Many trees of one shape side by side, each with noise of its own; the truth is 0.
    runs = 1000
    counties, tracts = np.array([0, 0]), np.array([0, 0, 0, 1])
    trees = np.arange(runs)[:, None]
    areas = areas_of([0] * runs, (trees + counties).reshape(-1), (2 * trees + tracts).reshape(-1))
    tables: list[Table] = [(0, TOTAL), (1, FIRST), (2, DETAIL)]
    measured = dict(zip(tables, noises, strict=True))
    published = [(0, TOTAL), (1, FIRST), (2, FIRST), (2, DETAIL)]
    widths = half_widths(areas, SIZES, measured, [], published)
    source = np.random.default_rng(5).bytes
    measurements = {}
    for (level, margin), noise in measured.items():
        drawn = noise.draw(areas.size(level) * margin.cells, source).reshape(-1, margin.cells)
        measurements[level, margin] = Measurement(drawn, noise.moment(2))
    result = estimates(areas, SIZES, measurements, published)
    for table in published:
        own = widths[table]
        errors = np.abs((result.table(*table) / result.denominator).astype(float))
        inside = errors <= of_cells(own)
        for (kind, sort), width in cells_of(own):
            chosen = inside[own.kinds == kind][:, own.sorts == sort]
            # Errors of one tree may be equal: only trees are independent.
            deviation = sqrt(0.05 * 0.95 / runs)
            assert chosen.mean() == pytest.approx(width.coverage, abs=4.5 * deviation)


def cells_of(widths: HalfWidths) -> list[tuple[tuple[int, int], HalfWidth]]:
    cells: list[tuple[tuple[int, int], HalfWidth]] = []
    for kind, row in enumerate(widths.values):
        cells.extend(((kind, sort), own) for sort, own in enumerate(row))
    return cells


def of_cells(widths: HalfWidths) -> Floats:
    """The half width of every cell; shape (areas, cells)."""
    values = np.array([[float(own.value) for own in row] for row in widths.values])
    return np.asarray(values[widths.kinds][:, widths.sorts])


def unequal() -> dict[Table, HalfWidths]:
    areas = areas_of([0], [0, 0], [0, 0, 1])
    noises = {
        (0, TOTAL): geometric(Fraction(1, 2)),
        (1, FIRST): geometric(Fraction(2, 3)),
        (2, DETAIL): geometric(Fraction(1, 3)),
    }
    published = [(0, FIRST), (1, TOTAL), (2, FIRST), (2, DETAIL)]
    return half_widths(areas, SIZES, noises, [], published)


def test_every_half_width_is_the_least_on_its_grid() -> None:
    for widths in unequal().values():
        for _, own in cells_of(widths):
            assert own.narrower < COVERAGE <= own.coverage
            assert own.value.denominator.bit_count() == 1


def test_areas_that_change_places_keep_their_half_widths() -> None:
    noises = {
        (1, FIRST): geometric(Fraction(2, 3)),
        (2, DETAIL): exponential_power(Fraction(3), Fraction(2)),
    }
    published = [(1, TOTAL), (2, DETAIL)]
    one = half_widths(areas_of([0], [0] * 3, [0, 0, 1, 2, 2, 2]), SIZES, noises, [], published)
    other = half_widths(areas_of([0], [0] * 3, [0, 1, 1, 1, 2, 2]), SIZES, noises, [], published)
    assert (of_cells(one[1, TOTAL])[[1, 2, 0]] == of_cells(other[1, TOTAL])).all()
    assert (of_cells(one[2, DETAIL])[[2, 3, 4, 5, 0, 1]] == of_cells(other[2, DETAIL])).all()
    assert len(np.unique(of_cells(one[2, DETAIL]))) > 1


def test_declared_facts_have_no_width() -> None:
    areas = areas_of([0], [0, 0])
    noises = {(1, DETAIL): geometric(Fraction(1, 2))}
    published = [(0, TOTAL), (0, FIRST), (1, FIRST)]
    widths = half_widths(areas, SIZES, noises, [(0, TOTAL)], published)
    assert of_cells(widths[0, TOTAL]).tolist() == [[0]]
    # It is always covered, and nothing is narrower.
    assert widths[0, TOTAL].values == ((HalfWidth(Fraction(0), 1.0, 0.0),),)
    halves = of_cells(widths[0, FIRST])
    assert (halves > 0).all()
    # Half of a known number and half of another: 1 unit more on one side is 1 less on the other.
    assert halves[0, 0] == halves[0, 1]


def test_steps_are_the_greatest_powers_of_two_of_a_32nd_of_the_standard_error() -> None:
    assert step_of(Fraction(1)) == Fraction(1, 32)
    assert step_of(Fraction(1) - Fraction(1, 2**90)) == Fraction(1, 64)
    assert step_of(Fraction(4)) == Fraction(1, 16)
    assert step_of(Fraction(15)) == Fraction(1, 16)
    assert step_of(Fraction(1, 2**60)) == Fraction(1, 2**35)
    assert step_of(Fraction(10**9)) == 1


def test_what_has_no_interval_is_refused() -> None:
    noise = geometric(Fraction(1, 2))
    with pytest.raises(NotEstimableError, match="not estimable"):
        half_widths(ALONE, SIZES, {(0, TOTAL): noise}, [], [(0, DETAIL)])
    with pytest.raises(ValueError, match="symmetric"):
        lopsided = IntegerNoise(0, ((1, 3), (1, 1)))
        half_widths(ALONE, SIZES, {(0, TOTAL): lopsided}, [], [(0, TOTAL)])


def test_a_mean_half_width_is_that_of_all_cells() -> None:
    """Two areas of one kind and one of another; a cell of one sort and three of another."""
    values = []
    for row in ((1, 2), (5, 10)):
        values.append(tuple(HalfWidth(Fraction(width, 2), 0.95, 0.9) for width in row))
    widths = HalfWidths(np.array([0, 1, 0]), np.array([1, 0, 1, 1]), tuple(values))
    assert widths.mean() == (2 * (1 + 3 * 2) + (5 + 3 * 10)) / 2 / 12


@pytest.mark.parametrize(("kinds", "sorts"), [([0, 1, 0], [2, 1, 0, 2]), ([2, 0, 1], [0, 1])])
def test_a_mean_half_width_needs_no_more_kinds_than_sorts_nor_fewer(
    kinds: list[int], sorts: list[int]
) -> None:
    values, total = [], 0
    for kind in range(max(kinds) + 1):
        widths = [10**kind * (sort + 1) for sort in range(max(sorts) + 1)]
        values.append(tuple(HalfWidth(Fraction(width), 0.95, 0.9) for width in widths))
        total += kinds.count(kind) * sum(widths[sort] for sort in sorts)
    widths_of_all = HalfWidths(np.array(kinds), np.array(sorts), tuple(values))
    assert widths_of_all.mean() == pytest.approx(total / len(kinds) / len(sorts), rel=1e-15)


def comb(gap: int) -> IntegerNoise:
    """Noise on the multiples of ``gap`` alone, with masses nearly proportional to e^-(k/3)²."""
    weights = [max(1, int(4096 * exp(-((k / 3) ** 2)))) for k in range(14)]
    whole = weights[0] + 2 * sum(weights[1:])
    weights[0] += (1 << (whole - 1).bit_length()) - whole
    half = [(1, weights[0])]
    for weight in weights[1:]:
        half += [(gap - 1, 0), (1, weight)]
    return IntegerNoise.symmetric(half)


@pytest.mark.parametrize(
    "noise",
    [
        comb(10),
        comb(50),
        comb(200),
        exponential_power(Fraction(60), Fraction(2), block=9),
        exponential_power(Fraction(1000), Fraction(2), block=301),
        exponential_power(Fraction(100), Fraction(5, 4), block=51),
    ],
)
def test_noise_in_steps_has_the_chance_that_is_said_of_it(noise: IntegerNoise) -> None:
    """Also where all of it lies on few of the integers, far apart."""
    width = half_widths(ALONE, SIZES, {(0, DETAIL): noise}, [], [(0, DETAIL)])[0, DETAIL]
    own = width.values[0][0]
    exact = 1 - 2 * noise.above(floor(own.value))
    assert own.coverage == pytest.approx(exact, abs=1e-5)
    assert exact >= COVERAGE - 1e-5
