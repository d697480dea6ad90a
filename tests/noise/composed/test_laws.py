"""Noise between the geometric and the Gaussian, in integers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.noise.composed.laws import MOST_HALF, exponential_power

POWERS = st.fractions(Fraction(101, 100), 2, max_denominator=100)


@settings(max_examples=25)
@given(st.fractions(2, 60, max_denominator=50), POWERS)
def test_masses_follow_the_formula_and_the_tail_goes_on(scale: Fraction, power: Fraction) -> None:
    noise = exponential_power(scale, power)
    assert noise.is_symmetric
    assert noise.is_unimodal()
    assert noise.total == 2**62
    inside = range(-99 * noise.high, 99 * noise.high + 1)
    whole = sum(math.exp(-((abs(k) / float(scale)) ** float(power))) for k in inside)
    for k in range(0, noise.high, max(1, noise.high // 9)):
        mass = math.exp(-((k / float(scale)) ** float(power))) / whole
        assert float(noise.mass(k)) == pytest.approx(mass, rel=1e-4)
    assert noise.right is not None
    last = noise.mass(noise.high + 1) / noise.mass(noise.high)
    assert last == noise.right.fraction
    # The window holds nearly everything: (|η|/t)^p is about 12 at its end.
    assert noise.above(noise.high) < 1e-4


def test_the_gaussian_has_its_variance() -> None:
    assert float(exponential_power(Fraction(60), Fraction(2)).moment(2)) == pytest.approx(
        1800, rel=1e-5
    )


def test_power_one_is_geometric() -> None:
    noise = exponential_power(Fraction(4), Fraction(1))
    for k in range(5):
        ratio = float(noise.mass(k + 1) / noise.mass(k))
        assert ratio == pytest.approx(math.exp(-1 / 4), rel=1e-12)


def test_blocks_widen_the_noise_by_their_own_variance_only() -> None:
    block = 125
    wide = exponential_power(Fraction(20_000), Fraction(3, 2), block)
    narrow = exponential_power(Fraction(20_000, block), Fraction(3, 2))
    expected = block**2 * narrow.moment(2) + Fraction(block**2 - 1, 12)
    assert float(wide.moment(2)) == pytest.approx(float(expected), rel=1e-9)
    masses = [wide.mass(k) for k in range(-62, 63)]
    # 0 takes what no block of equal weights can share.
    assert max(masses) - min(masses) <= Fraction(block, 2**62)
    assert wide.mass(63) < wide.mass(62)


@pytest.mark.parametrize(
    ("scale", "power", "block"), [("1", "3", 1), ("1", "0.5", 1), ("1", "2", 2), ("0", "2", 1)]
)
def test_other_parameters_are_refused(scale: str, power: str, block: int) -> None:
    with pytest.raises(ValueError, match="noise needs a power"):
        exponential_power(Fraction(scale), Fraction(power), block)


def test_too_wide_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match=f"too large for {MOST_HALF} runs"):
        exponential_power(Fraction(10_000), Fraction(2))
