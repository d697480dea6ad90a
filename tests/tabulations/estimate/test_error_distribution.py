"""The distribution of weighted sums of noise, beside sums over all their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.integers.noise import IntegerNoise, Tail
from release.exact.statistics.sums import geometric_noise
from release.noise.composed.laws import exponential_power
from release.tabulations.estimate import error_distribution
from release.tabulations.estimate.error_distribution import (
    ErrorDistribution,
    _small,
    _spacing,
    transform_of,
)
from release.tabulations.estimate.weights import Floats, Weights

THREE = IntegerNoise.symmetric([(1, 8), (1, 4)])
FLAT = IntegerNoise.symmetric([(1, 2), (3, 1)])
# Its characteristic function is not 0 at the angle π, as that of the others is.
RARE = IntegerNoise.symmetric([(1, 2**9 - 2), (1, 1)])
STAIRS = IntegerNoise.symmetric([(1, 8), (2, 3), (3, 2)], Tail(3, 2**63))
# The last period is two runs, and a part of the run before them.
LANDING = IntegerNoise.symmetric([(1, 8), (5, 2), (1, 1), (1, 1)], Tail(4, 2**62))
NARROW = geometric_noise(2**61)
WIDE = geometric_noise(2**64 - 2**58)
NOISES = [
    THREE,
    FLAT,
    RARE,
    STAIRS,
    LANDING,
    NARROW,
    WIDE,
    exponential_power(Fraction(1, 2), Fraction(2)),
    exponential_power(Fraction(40), Fraction(2)),
    exponential_power(Fraction(300), Fraction(3, 2), block=9),
]


def of(
    values: Sequence[float], noise: IntegerNoise, counts: Sequence[int] = ()
) -> ErrorDistribution:
    times = np.array(counts or [1] * len(values), dtype=float)
    weights = Weights(np.array(values), times, np.zeros(len(values), dtype=np.int64))
    spread = float(noise.moment(2))
    variance = float((weights.values**2 * times).sum()) * spread
    return found(ErrorDistribution.of(weights, [transform_of(noise)], np.array([spread]), variance))


def found(error: ErrorDistribution | None) -> ErrorDistribution:
    """The distribution, which is not too much work."""
    assert error is not None
    return error


def masses(noise: IntegerNoise) -> dict[int, float]:
    """All values but those that together have less than 10^-7 of the probability."""
    reach = noise.radius(1 - 1e-8)
    right = noise.probabilities(reach + 1).tolist()
    return {value: right[abs(value)] for value in range(-reach, reach + 1)}


def brute_force(values: Sequence[float], noise: IntegerNoise) -> tuple[Floats, Floats]:
    """The absolute values of all errors, ascending, and the chance of one no larger."""
    own = masses(noise)
    errors, chances = np.zeros(1), np.ones(1)
    for value in values:
        errors = np.add.outer(errors, value * np.array(list(own))).reshape(-1)
        chances = np.multiply.outer(chances, np.array(list(own.values()))).reshape(-1)
    order = np.argsort(np.abs(errors))
    return np.abs(errors)[order], np.cumsum(chances[order])


@pytest.mark.parametrize("noise", NOISES)
def test_the_characteristic_function_is_the_sum_of_cosines(noise: IntegerNoise) -> None:
    transform = transform_of(noise)
    deviation = sqrt(noise.moment(2))
    angles = np.linspace(0.001 / deviation, 12 / deviation, 97)
    own = masses(noise)
    errors = np.array(list(own))
    expected = np.cos(np.outer(angles, errors)) @ np.array(list(own.values()))
    assert transform.power(angles, 1) == pytest.approx(expected, abs=2e-5)
    assert transform.power(angles, 3) == pytest.approx(expected**3, abs=2e-5)
    # Near 0, where hundreds of small weights multiply up, it is right to more digits.
    few = angles[:9]
    assert transform.power(few, 3) == pytest.approx(expected[:9] ** 3, abs=1e-5)
    # It has the period 2π and no sign.
    for others in (2 * np.pi + angles, 2 * np.pi - angles):
        assert transform.power(others, 1) == pytest.approx(expected, abs=2e-5)
    # Far out, where the transform of wide noise has nearly vanished.
    far = np.linspace(0.5, 1.5, 7)
    expected = np.cos(np.outer(far, errors)) @ np.array(list(own.values()))
    assert transform.power(far, 1) == pytest.approx(expected, abs=3e-4)


def test_the_characteristic_function_of_very_wide_geometric_noise_keeps_its_digits() -> None:
    """Σ (1 - ρ)·ρ^g·cos((g + 1)θ) is (1 - ρ)(c - ρ)/(1 - 2ρc + ρ²) with c = cos θ."""
    noise, angle = geometric_noise(2**64 - 2**36), Fraction(1, 2**29)
    ratio, cosine = 1 - Fraction(1, 2**28), 1 - angle**2 / 2 + angle**4 / 24
    tails = (1 - ratio) * (cosine - ratio) / (1 - 2 * ratio * cosine + ratio**2)
    expected = noise.mass(0) + (1 - noise.mass(0)) * tails
    found = transform_of(noise).power(np.array([float(angle)]), 1)
    assert found == pytest.approx([float(expected)], abs=1e-12)


def test_noise_that_is_not_symmetric_is_refused() -> None:
    with pytest.raises(ValueError, match="symmetric"):
        transform_of(IntegerNoise(0, ((1, 3), (1, 1))))


def on_a_lattice(multiples: Mapping[int, int], noise: IntegerNoise, most: Fraction) -> Fraction:
    """The chance in rationals that Σ multiple·η is at most ``most`` from 0, for finite noise."""
    sums = {0: Fraction(1)}
    for multiple, count in multiples.items():
        for _ in range(count):
            longer: dict[int, Fraction] = defaultdict(Fraction)
            for value, chance in sums.items():
                for error in range(noise.low, noise.high + 1):
                    longer[value + multiple * error] += chance * noise.mass(error)
            sums = dict(longer)
    return sum((own for value, own in sums.items() if abs(value) <= most), Fraction(0))


@given(
    multiples=st.dictionaries(st.integers(1, 7), st.integers(1, 3), min_size=1, max_size=3),
    divisor=st.integers(1, 12),
    noise=st.sampled_from([THREE, FLAT, RARE]),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_errors_on_a_lattice_have_exact_chances_with_both_ends(
    multiples: dict[int, int], divisor: int, noise: IntegerNoise, data: st.DataObject
) -> None:
    reach = sum(multiple * count for multiple, count in multiples.items()) * noise.high
    most = data.draw(st.integers(0, reach))
    values = [multiple / divisor for multiple in multiples]
    error = of(values, noise, list(multiples.values()))
    assert error.spacing > 0
    assert error.margin == 0
    expected = float(on_a_lattice(multiples, noise, Fraction(most)))
    assert error.within(most / divisor) == pytest.approx(expected, abs=1e-9)
    assert error.within((most + 0.9) / divisor) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("noise", [NARROW, geometric_noise(2**63), STAIRS])
@pytest.mark.parametrize("values", [[1.0, 0.8660254], [0.7236068, 0.4472136, 0.1], [0.5773503]])
def test_errors_off_a_lattice_have_the_chances_of_all_their_values(
    values: list[float], noise: IntegerNoise
) -> None:
    error = of(values, noise)
    assert error.spacing == 0
    # The smoothing takes hardly any width away.
    assert error.margin < sqrt(float((np.array(values) ** 2).sum()) * noise.moment(2)) / 1000
    errors, chances = brute_force(values, noise)

    def within(width: float) -> float:
        return float(np.append(0.0, chances)[np.searchsorted(errors, width, side="right")])

    # Never above the truth but for 10^-4, nor below what a little less width has.
    for width in np.linspace(0.11, 4.4, 25) * sqrt(noise.moment(2)):
        chance = error.within(float(width))
        assert within(width - 2 * error.margin) - 1e-4 <= chance <= within(width) + 1e-4


def test_what_is_far_from_a_whole_period_is_not_counted() -> None:
    """More than 10^-10 of the noise lies 16 standard errors out, and less of it 22."""
    noise = WIDE
    for standard_errors in (0.5, 1.0, 2.0):
        most = int(standard_errors * sqrt(noise.moment(2)))
        expected = 1 - 2 * noise.above(most)
        assert of([1.0], noise).within(float(most)) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("values", [[1.0, 0.001 * sqrt(2)], [100 * sqrt(2)]])
def test_noise_that_is_hardly_ever_not_zero_is_told_from_what_it_is_then(
    values: list[float],
) -> None:
    error = of(values, RARE)
    assert error.spacing == 0
    errors, chances = brute_force(values, RARE)
    for width in (errors[1] / 2, errors[1] * 1.2, errors[-1] * 0.7, errors[-1] * 1.9):
        expected = chances[np.searchsorted(errors, width, side="right") - 1]
        assert error.within(float(width)) == pytest.approx(expected, abs=1e-9)


def test_a_weight_that_rounding_makes_leaves_an_error_on_its_lattice() -> None:
    """A cell whose noise is hardly ever not 0, and counts a millionth then."""
    weights = Weights(np.array([1.0, 1e-6]), np.ones(2), np.array([0, 1]))
    seldom = IntegerNoise.symmetric([(1, 2**40 - 2), (1, 1)])
    transforms = [transform_of(THREE), transform_of(seldom)]
    spreads = np.array([float(THREE.moment(2)), float(seldom.moment(2))])
    error = found(ErrorDistribution.of(weights, transforms, spreads, float(spreads[0])))
    assert error.within(0.0) == pytest.approx(0.5, abs=1e-9)
    assert error.within(1.0) == pytest.approx(1.0, abs=1e-9)


def test_an_error_of_few_values_is_smoothed_by_a_narrow_normal_variable() -> None:
    """As in docs/design/mathematics.md, 2.34: τ is σ/4096, and chances are those at w - 3τ."""
    error = of([sqrt(2)], FLAT)
    deviation = sqrt(2 * FLAT.moment(2))
    narrow = NormalDist(0, deviation / 4096)
    assert error.margin == pytest.approx(3 * deviation / 4096, rel=1e-12)
    for atom in (0, sqrt(2), 2 * sqrt(2), 3 * sqrt(2)):
        for shift in (-3, -1, 0, 1, 2.5, 4, 7):
            width = max(0.0, atom + shift * narrow.stdev)
            counted = max(0.0, width - 3 * narrow.stdev)
            expected = 0.0
            for value in range(FLAT.low, FLAT.high + 1):
                place = value * sqrt(2)
                chance = narrow.cdf(counted - place) - narrow.cdf(-counted - place)
                expected += float(FLAT.mass(value)) * chance
            assert error.within(width) == pytest.approx(expected, abs=1e-6)


def test_no_width_has_no_chance_off_a_lattice() -> None:
    assert of([sqrt(2)], THREE).within(0.0) == 0


@pytest.mark.parametrize(("count", "ratio"), [(2000, 2**63), (400, 2**64 - 2**60)])
def test_many_small_weights_are_as_good_as_normal(count: int, ratio: int) -> None:
    # The same sum on a lattice is exact. Off it, halfway between its values, the sum is normal.
    noise = geometric_noise(ratio)
    exact = of([1.0, 30.0], noise, [count, 1])
    shifted = of([1 / sqrt(2), 30 / sqrt(2)], noise, [count, 1])
    assert exact.spacing == 1
    assert shifted.spacing == 0
    for width in (40.5, 80.5, 120.5, 180.5):
        own = shifted.within(width / sqrt(2))
        assert own == pytest.approx(exact.within(width), abs=1e-4)


def test_one_wide_geometric_error_has_the_chance_of_its_tails() -> None:
    error, ratio = of([sqrt(2)], WIDE), 1 - 2.0**-6
    for most in (20, 90, 200, 400):
        expected = 1 - 2 * ratio ** (most + 1) / (1 + ratio)
        assert error.within((most + 0.5) * sqrt(2)) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("values", [[1.0, 1.0001], [1.0, 2.0, 3.0]])
def test_what_has_vanished_changes_no_digit(
    values: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it comes back: near the angle 2π all cosines of whole numbers are 1 again."""
    counts = [6] * len(values)
    error = of(values, WIDE, counts)
    with monkeypatch.context() as patched:
        patched.setattr(error_distribution, "_VANISHED", -1.0)
        whole = of(values, WIDE, counts)
    assert error.numbers.size < whole.numbers.size / 5
    # Not the first ones alone, where the angles reach that far.
    comes_back = error.spacing == 0
    assert (error.numbers[-1] > error.numbers.size) == comes_back
    deviation = sqrt(sum(6 * value**2 for value in values) * WIDE.moment(2))
    for width in (0.1, 0.9, 1.96, 3.5):
        own = error.within(width * deviation)
        assert own == pytest.approx(whole.within(width * deviation), abs=1e-13)


def test_terms_beyond_the_last_change_no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of few values, hardly smoothed, has the slowest decay there is."""
    error = of([sqrt(2)], THREE)
    with monkeypatch.context() as patched:
        patched.setattr(error_distribution, "_DECAY", 9.0)
        longer = of([sqrt(2)], THREE)
    assert error.numbers[-1] < 0.7 * longer.numbers[-1]
    for width in (0.3, 1.4141, 1.4145, 1.42, 2.0):
        assert error.within(width) == pytest.approx(longer.within(width), abs=1e-8)


def test_what_is_left_out_of_the_weights_is_normal() -> None:
    # One cell, and a thousand times its variance that no weight tells of.
    noise = geometric_noise(2**63)
    spread = np.array([float(noise.moment(2))])
    weights = Weights(np.array([1.0]), np.array([1.0]), np.zeros(1, dtype=np.int64))
    own = ErrorDistribution.of(weights, [transform_of(noise)], spread, 1001 * float(spread[0]))
    error = found(own)
    deviation = sqrt(1001 * float(spread[0]))
    chances: Floats = np.array([error.within(deviation * z) for z in (0.5, 1.0, 1.959964, 3.0)])
    assert chances == pytest.approx([0.382925, 0.682689, 0.95, 0.9973], abs=1e-5)


def test_an_error_of_which_no_weight_tells_is_normal() -> None:
    nothing = Weights(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
    error = found(ErrorDistribution.of(nothing, [], np.zeros(0), 0.01))
    assert error.within(0.1959964) == pytest.approx(0.95, abs=1e-6)


@given(
    parts=st.lists(st.floats(1e-9, 0.01), min_size=1, max_size=9),
    counts=st.lists(st.integers(1, 60), min_size=9, max_size=9),
    rest=st.sampled_from([0.0, 0.001, 0.02, 0.5]),
)
def test_the_most_small_cells_are_normal_that_together_are_nearly(
    parts: list[float], counts: list[int], rest: float
) -> None:
    """Of the smallest, each is at most 1/1009 of the variance, and 1/30.3 of them all."""
    most = 0
    ascending = sorted(zip(parts, counts, strict=False))
    for number, (part, _) in enumerate(ascending, 1):
        together = rest + sum(own * times for own, times in ascending[:number])
        if part * 1009 <= 1 and part * 30.3 <= together:
            most = number
    chosen = _small(np.array(parts), np.array(counts[: len(parts)], dtype=float), rest)
    assert sorted(np.array(parts)[chosen]) == [part for part, _ in ascending[:most]]


@pytest.mark.parametrize(
    ("part", "rest", "is_small"),
    [
        (1 / 1008.5, 0.5, False),
        (1 / 1009.5, 0.5, True),
        # Beside one other: 1/30 and 1/30.6 of both together.
        (0.0001, 0.0029, False),
        (0.0001, 0.00296, True),
    ],
)
def test_a_cell_is_small_up_to_a_part_of_the_variance(
    part: float, rest: float, is_small: bool
) -> None:
    assert _small(np.array([part]), np.ones(1), rest).tolist() == [is_small]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([3.0], 3.0),
        ([2.0, 3.0], 1.0),
        ([6.0, -4.0], 2.0),
        ([0.5, 0.75], 0.25),
        ([1 / 3, 1.0], 1 / 3),
        ([5 / 64, 3 / 64], 1 / 64),
        # Of larger denominators, and of roots, none is found.
        ([5 / 65, 3 / 65], 0.0),
        ([1.0, 2**0.5], 0.0),
        # Multiples of 0 alone.
        ([1e-12], 0.0),
    ],
)
def test_a_spacing_divides_all_sizes(sizes: list[float], expected: float) -> None:
    assert _spacing(np.array(sizes)) == pytest.approx(expected, rel=1e-12, abs=0)
