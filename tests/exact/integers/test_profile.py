"""Profiles of noise on the integers, and how many comparisons they take, as the format says."""

from __future__ import annotations

from fractions import Fraction

import pytest

from release.exact.composition.distribution import UNIT
from release.exact.composition.profile import Profile
from release.exact.integers.noise import RATIO_ONE, IntegerNoise, Tail
from release.exact.integers.profile import comparisons, exact_profile, grouped_profile, is_cheap
from release.exact.numbers import exp_bounds
from tests.hockey_stick import HAIR, hockey_stick

HALF = RATIO_ONE // 2
GEOMETRIC = IntegerNoise.symmetric([(1, 4), (1, 2)], Tail(1, HALF))
STAIRS = IntegerNoise.symmetric([(1, 8), (2, 3), (3, 2)], Tail(3, HALF))
TWO_PEAKS = IntegerNoise(-1, ((1, 3), (1, 2), (1, 3)))


@pytest.mark.parametrize(
    ("noise", "distances", "expected"),
    [
        (IntegerNoise(0, ((2, 1),)), (5,), 2 * 1 * 3),
        (GEOMETRIC, (1, 9), 2 * 3 * (18 + 3) * (1 + 2)),
        (GEOMETRIC, (10**6,), 2 * 3 * (512 + 3) * (1 + 64)),
        (STAIRS, (7,), 2 * 5 * (4 + 3)),
        (TWO_PEAKS, (1, 4), 2 * 2 * 3 * 3),
        (GEOMETRIC, (), 2 * 3 * 3),
    ],
)
def test_comparisons_are_counted_as_the_format_says(
    noise: IntegerNoise, distances: tuple[int, ...], expected: int
) -> None:
    """2·c·(number of runs)·(B + 3)·(1 + ⌊B/8⌋), with B periods up to the largest distance."""
    assert comparisons(noise, distances) == expected


def falling(runs: int) -> IntegerNoise:
    """Noise of so many integers, each less likely than the one before, that add up to 2^40."""
    weights = list(range(runs, 0, -1))
    weights[0] += 2**40 - sum(weights)
    return IntegerNoise(0, tuple((1, weight) for weight in weights))


def test_noise_is_cheap_up_to_as_many_comparisons_as_the_format_says() -> None:
    """Of 50,000 runs without tails there are 2·50,000·3: the limit of 3·10⁵ itself."""
    assert is_cheap(falling(50_000), (1, 2))
    assert not is_cheap(falling(50_001), (1, 2))


@pytest.mark.parametrize("mirrored", [False, True])
def test_noise_is_cheap_up_to_256_periods_of_a_tail(mirrored: bool) -> None:
    upward = IntegerNoise(0, ((1, 4), (3, 4)), None, Tail(3, HALF))
    noise = upward.mirrored if mirrored else upward
    assert is_cheap(noise, (1, 256 * 3))
    assert is_cheap(noise, (1, 256 * 3 + 1)) is False


def test_noise_reveals_nothing_without_distances() -> None:
    assert exact_profile(GEOMETRIC, (), Fraction(1, 2)) == Profile(Fraction(1, 2), (0,))
    assert is_cheap(GEOMETRIC, ())


THREE_PEAKS = IntegerNoise(-2, ((1, 3), (1, 0), (1, 8), (1, 0), (1, 5)))
UPWARD = IntegerNoise(0, ((1, 40), (1, 24)), None, Tail(1, HALF))


@pytest.mark.parametrize("noise", [GEOMETRIC, STAIRS, TWO_PEAKS, THREE_PEAKS, UPWARD])
@pytest.mark.parametrize("distances", [(1,), (2, 1), (1, 4)])
def test_a_profile_is_the_largest_of_all_distances_either_way(
    noise: IntegerNoise, distances: tuple[int, ...]
) -> None:
    """By the masses one by one; what lies beyond 300 is less than a hair."""
    step = Fraction(1, 3)
    found = exact_profile(noise, distances, step)
    masses = [noise.mass(place) for place in range(-304, 305)]
    for place, value in enumerate(found.values):
        ratio = exp_bounds(place * step)[0]
        exact = Fraction(0)
        for distance in distances:
            here, there = masses[distance:], masses[:-distance]
            exact = max(exact, hockey_stick(here, there, ratio), hockey_stick(there, here, ratio))
        assert exact <= Fraction(value, UNIT) <= exact + HAIR


def test_a_profile_by_periods_is_that_of_a_pure_epsilon() -> None:
    """From 0 to 1 the masses fall by 4, so c = 4 and ε = 7·ln 4: δ(0) is (c⁷ - 1)/(c⁷ + 1)."""
    found = grouped_profile(GEOMETRIC, 7, Fraction(1, 4))
    assert found is not None
    assert 0 <= Fraction(found.values[0], UNIT) - Fraction(4**7 - 1, 4**7 + 1) < HAIR
    # 7·ln 4 = 9.704 lies between 38 and 39 quarters.
    assert len(found.values) == 40
    assert found.values[38] > found.values[39] == 0
    assert grouped_profile(TWO_PEAKS, 7, Fraction(1, 4)) is None
