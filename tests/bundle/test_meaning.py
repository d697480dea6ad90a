"""The worked example of a guarantee: its shares bound what Bayes' rule gives."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from release.bundle.report.meaning import guesses


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(6)])
def test_shares_are_on_the_safe_side_and_near(epsilon: Fraction) -> None:
    factor = math.exp(epsilon)
    for guess in guesses(epsilon):
        before = float(guess.before) / 100
        high = factor * before / (1 - before + factor * before)
        low = before / (before + factor * (1 - before))
        if guess.at_most != "more than 99.9":
            assert 100 * high <= float(guess.at_most) <= 100 * high + 0.1001
        else:
            assert high > 0.999
        if guess.at_least != "less than 0.1":
            assert 100 * low - 0.1001 <= float(guess.at_least) <= 100 * low
        else:
            assert low < 0.001


def test_half_becomes_at_most_73_percent_at_one() -> None:
    (half,) = (guess for guess in guesses(Fraction(1)) if guess.before == "50")
    assert (half.at_least, half.at_most) == ("26.8", "73.2")
    assert not half.is_weak


def test_a_bound_that_says_nothing_is_known_as_such() -> None:
    assert float(guesses(Fraction(0))[2].at_most) <= 50.1
    assert guesses(Fraction(300))[2].is_weak
