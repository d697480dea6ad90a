"""How many comparisons noise on the integers takes, as the format counts them."""

from __future__ import annotations

import pytest

from release.exact.integers.noise import RATIO_ONE, IntegerNoise, Tail
from release.exact.integers.profile import comparisons, is_cheap

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
    assert not is_cheap(noise, (1, 256 * 3 + 1))
