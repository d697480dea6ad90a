"""Exact numbers and the bounds of e^ε."""

from __future__ import annotations

import doctest
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.errors import SpecError
from release.exact import numbers
from release.exact.domain import Topology
from release.exact.numbers import (
    common_denominator,
    exact,
    exact_tuple,
    exp_below_any_verifier,
    exp_bounds,
    format_down,
    format_exact,
    format_up,
    least_enough,
    member,
    over_one_denominator,
    parse_exact,
    safe_text,
    squares_to,
    sum_to,
    whole,
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


@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(0, 9))
def test_a_number_that_ends_is_written_as_its_shortest_decimal(
    numerator: int, twos: int, fives: int
) -> None:
    value = Fraction(numerator, 2**twos * 5**fives)
    text = format_exact(value)
    assert "/" not in text
    assert Fraction(text) == value
    assert not ("." in text and text.endswith("0"))


def test_a_number_that_does_not_end_is_written_as_a_rational() -> None:
    for value in (Fraction(1, 3), Fraction(7, 6), Fraction(2, 35), Fraction(1, 11 * 2**9)):
        assert format_exact(value) == f"{value.numerator}/{value.denominator}"


@pytest.mark.parametrize(
    ("value", "places", "down", "up"),
    [
        (Fraction(0), 3, "0", "0"),
        (Fraction(-1, 4), 1, "-0.3", "-0.2"),
        (Fraction(-1, 10), 1, "-0.1", "-0.1"),
        (Fraction(-1, 3), 0, "-1", "0"),
        (Fraction(10), 0, "10", "10"),
        (Fraction(100), 2, "100", "100"),
        (Fraction(1001, 1000), 2, "1", "1.01"),
    ],
)
def test_decimals_are_rounded_in_the_named_direction(
    value: Fraction, places: int, down: str, up: str
) -> None:
    assert (format_down(value, places), format_up(value, places)) == (down, up)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, Fraction(3)),
        ("0.25", Fraction(1, 4)),
        (Fraction(2, 7), Fraction(2, 7)),
        (0, Fraction(0)),
    ],
)
def test_an_argument_gives_an_exact_number(value: int | str | Fraction, expected: Fraction) -> None:
    assert exact("epsilon", value) == expected


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.5, "write an integer"),
        (True, "write an integer"),
        (None, "write an integer"),
        ("1e-3", "not an exact number"),
        (-1, "at least 0"),
        (Fraction(-1, 1000), "at least 0"),
    ],
)
def test_an_argument_that_is_not_exact_is_refused_by_its_name(value: Any, says: str) -> None:
    with pytest.raises(SpecError, match=f"^epsilon: .*{says}"):
        exact("epsilon", value)


FORTY = "9" * 40


@pytest.mark.parametrize("text", [FORTY, f"{FORTY}.{FORTY}", f"{FORTY}/{FORTY}"])
def test_numbers_have_at_most_forty_digits_each_side(text: str) -> None:
    assert parse_exact(text) == Fraction(text)
    with pytest.raises(ValueError, match="not an exact number"):
        parse_exact(text + "0")
    with pytest.raises(ValueError, match="not an exact number"):
        parse_exact("9" + text)


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
    low, high = _exp_by_series(epsilon)
    built = exp_below_any_verifier(epsilon)
    assert built <= max(Fraction(1), high - Fraction(1, 10**30))
    # Lower than that would cost accuracy for nothing.
    assert built >= low - Fraction(21, 10**31)


def test_the_powers_of_e_reach_from_zero_to_a_hundred() -> None:
    assert exp_bounds(Fraction(0))[0] == exp_below_any_verifier(Fraction(0)) == 1
    low, high = exp_bounds(Fraction(100))
    assert high - low < Fraction(1, 10**30)
    assert len(str(int(low))) == 44
    for wrong in (Fraction(-1, 10**9), 100 + Fraction(1, 10**9)):
        with pytest.raises(ValueError, match=r"in \[0, 100\]"):
            exp_bounds(wrong)


@given(epsilons)
def test_the_bounds_of_exp_are_outside_of_a_longer_series(epsilon: Fraction) -> None:
    """The series is good to a hundred places, so it tells on which side a bound lies."""
    low, high = exp_bounds(epsilon)
    series_low, series_high = _exp_by_series(epsilon)
    assert series_high - series_low < Fraction(1, 10**60)
    assert low < series_low
    assert series_high < high


def test_e_itself() -> None:
    # The digits of e, from the sum of 1/k!.
    e = Decimal("2.71828182845904523536028747135266249775724709369995")
    low, high = exp_bounds(Fraction(1))
    assert low <= Fraction(e) <= high
    assert Context(prec=30).create_decimal(format_down(low, 35)) == Context(prec=30).plus(e)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("5%", 'write "0.05" in place of a percentage'),
        ("12.5 %", 'write "0.125" in place of a percentage'),
        ("300%", 'write "3" in place of a percentage'),
        ("1/3%", 'write an integer "4", a decimal "0.001" or a rational "1/3"'),
        ("%", 'write an integer "4", a decimal "0.001" or a rational "1/3"'),
        ("0,5", 'write "0.5", with a point'),
        ("1,000,000", 'write an integer "4", a decimal "0.001" or a rational "1/3"'),
        ("a,b", 'write an integer "4", a decimal "0.001" or a rational "1/3"'),
    ],
)
def test_a_percentage_and_a_comma_have_a_remedy_of_their_own(text: str, remedy: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_exact(text)
    assert str(refusal.value) == f"not an exact number; {remedy}"


def test_a_list_of_exact_numbers_is_taken_one_by_one() -> None:
    below = Fraction(-1, 3)
    assert exact_tuple("costs", ["0.5", 2, below]) == (Fraction(1, 2), Fraction(2), below)
    assert exact_tuple("costs", ()) == ()
    for wrong in ("123", 7, None):
        with pytest.raises(SpecError, match=r"costs: found .*; write a list of exact numbers"):
            exact_tuple("costs", wrong)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(SpecError, match=r"costs\[1\]: found -1; write a number of at least 0"):
        exact_tuple("costs", [1, -1])


@pytest.mark.parametrize("least", [0, 1, 2, 3, 7, 8, 9, 1000])
def test_the_least_that_is_enough_is_found_with_few_trials(least: int) -> None:
    tried = []

    def is_enough(number: int) -> bool:
        tried.append(number)
        return number >= least

    assert least_enough(is_enough) == least
    assert min(tried) >= 0
    assert len(tried) <= 2 * least.bit_length() + 2


def test_the_least_common_denominator() -> None:
    assert common_denominator([]) == 1
    assert common_denominator([Fraction(1, 4), Fraction(5, 6), Fraction(3)]) == 12


def test_a_message_shows_plain_arguments_only() -> None:
    for plain in (None, "text", 3, 0.5, [1], (1, "a")):
        assert safe_text(plain) == repr(plain)
    assert safe_text({"secret": 1}) == "dict"
    assert safe_text({1}) == "set"


def test_an_integer_argument_is_no_float_and_no_truth() -> None:
    assert whole("answers", 2, 2) == 2
    for wrong in (1, 2.0, "3", True, None):
        with pytest.raises(SpecError, match=r"answers: found .*; write an integer of at least 2"):
            whole("answers", wrong, 2)
    with pytest.raises(SpecError, match="found True; write an integer of at least 0"):
        whole("answers", True, 0)


@pytest.mark.parametrize("last", range(7))
def test_sums_of_integers_and_squares_are_those_of_their_terms(last: int) -> None:
    terms = range(1, last + 1)
    assert sum_to(last) == sum(terms)
    assert squares_to(last) == sum(term**2 for term in terms)


def test_numerators_over_one_denominator_are_the_numbers() -> None:
    assert over_one_denominator((Fraction(1, 6), Fraction(3, 4), Fraction(2))) == ((2, 9, 24), 12)
    assert over_one_denominator(()) == ((), 1)


def test_a_member_is_given_by_itself_or_as_text() -> None:
    assert member("topology", Topology, Topology.CYCLIC) is Topology.CYCLIC
    assert member("topology", Topology, "nominal") is Topology.NOMINAL
    with pytest.raises(SpecError, match=r"found 'round'; write .*, .* or .*"):
        member("topology", Topology, "round")
