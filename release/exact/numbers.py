"""Exact numbers: reading and writing them as strings, and e^ε between two rationals.

A privacy guarantee rests on these numbers, so no float is let in: a float has already lost the
digits that were written, and a rounding in the wrong direction breaks a guarantee. Every function
that has to round says in its name or docstring which way, as an inequality.

Grammar of an exact number (docs/design/format.md): an integer ``"4"``, a decimal ``"0.001"`` or a
rational ``"1/3"``, without sign, exponent or blanks.

>>> parse_exact("0.001"), parse_exact("1/3"), parse_exact("4")
(Fraction(1, 1000), Fraction(1, 3), Fraction(4, 1))
>>> parse_exact("1e-3")
Traceback (most recent call last):
    ...
ValueError: not an exact number; write it out: '0.001'
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import lcm
from numbers import Integral
from typing import TypeVar

from release.errors import SpecError

E = TypeVar("E", bound=Enum)

# 40 digits each side are plenty for ε and δ, and keep hostile input from costing time.
_EXACT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40}|/[1-9][0-9]{0,39})?", re.ASCII)

EXP_DIGITS = 40
"""Decimal places of the rational bounds of e^ε; docs/design/format.md asks for 30."""

MAX_EPSILON = 100
"""A larger ε guarantees nothing, and the exact bounds of e^ε would only grow."""


def parse_exact(text: str) -> Fraction:
    """Read an exact number.

    Raises:
        ValueError: the text does not follow the grammar of the module's docstring.
    """
    if not _EXACT.fullmatch(text):
        raise ValueError(f"not an exact number; {_remedy(text)}")
    return Fraction(text)


def _remedy(text: str) -> str:
    """What to write in place of a text that is no exact number."""
    number, percent = text[:-1].rstrip(), text.endswith("%")
    if percent and _EXACT.fullmatch(number) and "/" not in number:
        share = format(Decimal(number).scaleb(-2).normalize(), "f")
        return f'write "{share}" in place of a percentage'
    if text.count(",") == 1 and _EXACT.fullmatch(text.replace(",", ".")):
        return f'write "{text.replace(",", ".")}", with a point'
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?[eE]-?[0-9]{1,2}", text):
        return f"write it out: {format(Decimal(text), 'f')!r}"
    if text[:1] in tuple("“”„‘’«»"):
        return 'these marks are not those of YAML; write "1" with straight ones'
    return 'write an integer "4", a decimal "0.001" or a rational "1/3"'


def exact(name: str, value: int | str | Fraction) -> Fraction:
    """The exact number that an argument called ``name`` gives.

    Raises:
        SpecError: a float, which has lost the digits that were written; a negative number; or text
            that does not follow the grammar.
    """
    # A Boolean is an integer of Python, and never meant as one.
    if isinstance(value, bool) or not isinstance(value, Integral | str | Fraction):
        example = "0.1"
        if isinstance(value, float) and 1e-40 < value < 1e40:
            example = format(Decimal(repr(float(value))), "f")
        raise SpecError(
            name, f'found {value!r}; write an integer, a Fraction, or text such as "{example}"'
        )
    try:
        # An integer of NumPy is one, but no int.
        number = parse_exact(value) if isinstance(value, str) else Fraction(value)
    except ValueError as error:
        raise SpecError(name, str(error)) from None
    if number < 0:
        raise SpecError(name, f"found {value}; write a number of at least 0")
    return number


def member(name: str, kind: type[E], value: E | str) -> E:
    """The member of an enumeration that an argument called ``name`` gives, by itself or as text.

    Raises:
        SpecError: there is none; the message lists all.
    """
    try:
        return kind(value)
    except ValueError:
        *first, last = (str(each.value) for each in kind)
        allowed = f"{', '.join(first)} or {last}"
        raise SpecError(name, f"found {safe_text(value)}; write {allowed}") from None


def safe_text(value: object) -> str:
    """An argument in a message: a frame or an array is named only, for it may be confidential."""
    is_plain = value is None or isinstance(value, str | int | float | list | tuple)
    return repr(value) if is_plain else type(value).__name__


def whole(name: str, value: object, least: int) -> int:
    """The integer, of Python or NumPy, that an argument called ``name`` gives.

    Raises:
        SpecError: it is none, or below ``least``.
    """
    # operator.index refuses floats, also whole ones: int() would round them.
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what is none is refused below
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise SpecError(name, f"found {safe_text(value)}; write an integer of at least {least}")
    return number


def exact_tuple(name: str, values: Iterable[int | str | Fraction]) -> tuple[Fraction, ...]:
    """The exact numbers that an argument called ``name`` lists; a Fraction is taken as it is.

    Raises:
        SpecError: it is no list, or one of them is no exact number.
    """
    # A text is a sequence of letters, and nobody means these.
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SpecError(name, f"found {safe_text(values)}; write a list of exact numbers")
    numbers = []
    for place, value in enumerate(values):
        is_exact = type(value) is Fraction
        numbers.append(Fraction(value) if is_exact else exact(f"{name}[{place}]", value))
    return tuple(numbers)


def least_enough(is_enough: Callable[[int], bool]) -> int:
    """The least number of 0, 1, 2, … that is enough, where all larger ones are too."""
    low, high = -1, 1
    while not is_enough(high):
        low, high = high, 2 * high
    # Invariant: ``high`` is enough, ``low`` is not.
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def dot(one: Iterable[int], two: Iterable[int]) -> int:
    """The sum of the products of two sequences of one length."""
    return sum(left * right for left, right in zip(one, two, strict=True))


def sum_to(last: int) -> int:
    """1 + 2 + … + ``last``."""
    return last * (last + 1) // 2


def squares_to(last: int) -> int:
    """1² + 2² + … + ``last``²."""
    return last * (last + 1) * (2 * last + 1) // 6


def common_denominator(values: Iterable[Fraction]) -> int:
    """The least number that makes an integer of each of the values; 1 where there is none."""
    return lcm(*(value.denominator for value in values))


def over_one_denominator(values: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """The numerators of rationals over their least common denominator, and that denominator."""
    denominator = common_denominator(values)
    return tuple(int(value * denominator) for value in values), denominator


def format_exact(value: Fraction) -> str:
    """Write a non-negative rational exactly: as a decimal where it ends, else as ``p/q``.

    >>> format_exact(Fraction(1, 1000)), format_exact(Fraction(1, 3)), format_exact(Fraction(12))
    ('0.001', '1/3', '12')
    """
    # A decimal ends exactly where the denominator has no prime factor but 2 and 5.
    odd, twos, fives = value.denominator, 0, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    if odd != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    return _decimal_text(value.numerator * 10**places // value.denominator, places)


def format_up(value: Fraction, places: int) -> str:
    """Write the least decimal with ``places`` decimals that is at least ``value``."""
    return _decimal_text(-((-value.numerator * 10**places) // value.denominator), places)


def format_down(value: Fraction, places: int) -> str:
    """Write the greatest decimal with ``places`` decimals that is at most ``value``."""
    return _decimal_text(value.numerator * 10**places // value.denominator, places)


def _decimal_text(scaled: int, places: int) -> str:
    sign, scaled = ("-", -scaled) if scaled < 0 else ("", scaled)
    whole, part = divmod(scaled, 10**places)
    digits = f"{part:0{places}d}".rstrip("0") if places else ""
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


@lru_cache(maxsize=256)
def exp_bounds(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals ``(low, high)`` with ``low <= e**epsilon <= high`` and ``high - low < 1e-30``.

    ``Decimal.exp`` rounds correctly, so its result is within one unit in the last place of the
    exponential of its argument; the argument itself is rounded outwards first.

    Raises:
        ValueError: ``epsilon`` is not in [0, 100].
    """
    if not 0 <= epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be in [0, {MAX_EPSILON}]")
    # e^100 has 44 digits before the point.
    precision = EXP_DIGITS + 50
    low = _exp(epsilon, Context(prec=precision, rounding=ROUND_FLOOR))
    high = _exp(epsilon, Context(prec=precision, rounding=ROUND_CEILING))
    # Outwards by one unit of 10^-40, far more than the last of 90 digits may be wrong by.
    unit = Decimal(1).scaleb(-EXP_DIGITS)
    floor = Context(prec=2 * precision, rounding=ROUND_FLOOR)
    ceiling = Context(prec=2 * precision, rounding=ROUND_CEILING)
    return (
        max(Fraction(1), Fraction(floor.subtract(low, unit).quantize(unit, ROUND_FLOOR, floor))),
        Fraction(ceiling.add(high, unit).quantize(unit, ROUND_CEILING, ceiling)),
    )


def _exp(epsilon: Fraction, context: Context) -> Decimal:
    argument = context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return argument.exp(context)


def exp_below_any_verifier(epsilon: Fraction) -> Fraction:
    """A rational below ``e**epsilon`` by more than ``1e-30``, at least 1: pmfs are built with it.

    A verifier may use any rational within 10⁻³⁰ below e^ε (docs/design/format.md). A pmf built for
    this smaller ratio passes with all of them and costs about 10⁻³⁰ more.
    """
    low, _ = exp_bounds(epsilon)
    return max(Fraction(1), low - Fraction(2, 10**30))
