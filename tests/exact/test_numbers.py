"""Exact numbers and the bounds of e^ε."""

from __future__ import annotations

import doctest
from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.exact import numbers
from release.exact.numbers import (
    exp_below_any_verifier,
    exp_bounds,
    format_down,
    format_exact,
    format_up,
    parse_exact,
)

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=100, max_denominator=10**9)


def test_the_examples_in_the_docstrings_run() -> None:
    result = doctest.testmod(numbers)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e-3", ".5", "5.", "1/0", "1 ", "0x1", "١", "nan"]
)
def test_what_is_not_in_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an exact number"):
        parse_exact(text)


@given(st.fractions(min_value=0, max_denominator=10**12))
def test_writing_and_reading_gives_the_number_back(value: Fraction) -> None:
    assert parse_exact(format_exact(value)) == value


@given(st.fractions(min_value=0, max_value=1000), st.integers(0, 40))
def test_rounded_decimals_bracket_the_number(value: Fraction, places: int) -> None:
    low, high = Fraction(format_down(value, places)), Fraction(format_up(value, places))
    assert low <= value <= high
    assert high - low <= Fraction(1, 10**places)


def _exp_by_series(value: Fraction) -> tuple[Fraction, Fraction]:
    """e^x by halving and the Taylor series with a rest term: no library's exponential."""
    halvings = 8
    x = value / 2**halvings
    term, total, k = Fraction(1), Fraction(1), 1
    while term > Fraction(1, 10**120):
        term = term * x / k
        total += term
        k += 1
    low, high = total, total + 2 * term
    for _ in range(halvings):
        low, high = _down(low * low), _up(high * high)
    return low, high


def _down(value: Fraction) -> Fraction:
    return Fraction(value.numerator * 10**130 // value.denominator, 10**130)


def _up(value: Fraction) -> Fraction:
    return Fraction(-(-value.numerator * 10**130 // value.denominator), 10**130)


@given(epsilons)
def test_the_bounds_of_exp_hold_and_are_narrow(epsilon: Fraction) -> None:
    low, high = exp_bounds(epsilon)
    series_low, series_high = _exp_by_series(epsilon)
    assert low <= series_high
    assert high >= series_low
    assert low < high
    assert high - low < Fraction(1, 10**30)


@given(epsilons)
def test_laws_are_built_below_every_admissible_ratio(epsilon: Fraction) -> None:
    _, high = _exp_by_series(epsilon)
    assert exp_below_any_verifier(epsilon) <= max(Fraction(1), high - Fraction(1, 10**30))


def test_e_itself() -> None:
    # The digits of e, from the sum of 1/k!.
    e = Decimal("2.71828182845904523536028747135266249775724709369995")
    low, high = exp_bounds(Fraction(1))
    assert low <= Fraction(e) <= high
    assert Context(prec=30).create_decimal(format_down(low, 35)) == Context(prec=30).plus(e)
