"""Noise for queries that share one budget: as little as is known, and proved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from release.budget.composed import step_of_budget
from release.noise.composed.account import Pattern, certified_epsilon
from release.noise.composed.families import family_of
from release.noise.composed.groups import ShareRequest
from release.noise.composed.search import (
    Cap,
    Part,
    gaussian_deviation,
    objective,
    scaled_to,
    searched,
)
from release.noise.composed.share import noise_for

DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("count", "most"),
    [(3, 17.84), (5, 49.84), (8, 117.4), (10, 159.1), (20, 346), (30, 527.6), (100, 1787)],
)
def test_the_variance_of_one_count_of_several(count: int, most: float) -> None:
    noise = noise_for(count, Fraction(1), DELTA, 2)
    assert noise.moment(2) <= Fraction(most)
    certified = certified_epsilon(
        [(noise, ((1,),), count)], DELTA, step_of_budget(Fraction(1), count)
    )
    assert certified is not None
    assert Fraction(9995, 10_000) <= certified <= 1


def test_a_year_of_counts() -> None:
    assert noise_for(365, Fraction(1), DELTA, 2).moment(2) <= 6525


def test_the_chance_of_an_exact_count() -> None:
    noise = noise_for(30, Fraction(1), DELTA, 0)
    assert float(noise.mass(0)) >= 0.02286
    # No window: the geometric noise loses a known pure ε.
    assert len(noise.runs) == 3


def test_absolute_errors_are_below_those_of_the_noise_for_squares() -> None:
    count = 10
    absolute, squared = (noise_for(count, Fraction(1), DELTA, power) for power in (1, 2))
    assert absolute.moment(1) < squared.moment(1)
    assert absolute.moment(2) > squared.moment(2)


@pytest.mark.parametrize(
    ("patterns", "count"),
    [(((3,), (2, 1), (1, 1, 1)), 8), (((1000,),), 12), (((1, 1),), 10), (((40, 40), (80,)), 5)],
)
def test_patterns_of_one_unit_are_paid_for(patterns: tuple[Pattern, ...], count: int) -> None:
    noise = noise_for(count, Fraction(1), DELTA, 2, patterns)
    touched = max(map(len, patterns))
    step = step_of_budget(Fraction(1), count * touched)
    certified = certified_epsilon([(noise, patterns, count)], DELTA, step)
    assert certified is not None
    assert Fraction(9995, 10_000) <= certified <= 1
    # All changes together are worth so many of size 1; blocks and patterns cost a little more.
    squares = max(sum(d * d for d in pattern) for pattern in patterns)
    one = noise_for(count * touched, Fraction(1), DELTA, 2).moment(2)
    assert noise.moment(2) <= Fraction(106, 100) * one * squares / touched * (
        1 if touched == 1 else Fraction(14, 10)
    )


def test_a_small_epsilon_needs_wide_noise_and_gets_it() -> None:
    noise = noise_for(20, Fraction(1, 20), DELTA, 2)
    gaussian = 20 * gaussian_deviation(0.05, -13.815510557964274) ** 2
    assert float(noise.moment(2)) < gaussian * 1.01


def test_a_delta_beyond_the_digits_of_floats() -> None:
    delta = Fraction(1, 10**18)
    noise = noise_for(50, Fraction(1), delta, 2)
    certified = certified_epsilon([(noise, ((1,),), 50)], delta, step_of_budget(Fraction(1), 50))
    assert certified is not None
    assert Fraction(9995, 10_000) <= certified <= 1


def test_the_analytic_gaussian() -> None:
    # Balle and Wang's σ at (1, 1e-6), 4.22 by their program.
    assert gaussian_deviation(1.0, -13.815510557964274) == pytest.approx(4.2247, abs=2e-3)


@pytest.mark.parametrize("weights", [(100, 1), (9, 1), (1, 3, 9)])
def test_no_small_move_betters_what_was_found(weights: tuple[int, ...]) -> None:
    """More noise for one group and less for the others, or another shape of its masses."""
    cap = Cap(1.0, -13.815510557964274, 0.001)
    parts = []
    for place, weight in enumerate(weights):
        asked = ShareRequest("", weight=Fraction(weight))
        parts.append(Part(family_of(asked), 1 + 9 * place, float(weight), None))
    found = searched(parts, cap)
    least = objective(found, cap)
    assert abs(cap.excess(found)) < 1e-4
    for place, part in enumerate(found):
        for factor, shift in ((0.9, 0.0), (1.1, 0.0), (1.0, -0.15), (1.0, 0.15)):
            power = min(2.0, max(1.0, part.power + shift))
            moved = [*found]
            moved[place] = replace(part, spread=part.spread * factor, power=power)
            assert objective(scaled_to(moved, cap), cap) > least - 1e-4
