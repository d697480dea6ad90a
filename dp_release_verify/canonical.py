"""Canonical JSON, exact numbers, and rational bounds of e^ε.

Files hold one form of each value (RFC 8785), so that one meaning has one hash. Numbers that are not
small integers are texts: digits, a decimal, or a fraction. They are compared as rationals.
"""

from __future__ import annotations

import json
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dp_release_verify.errors import Refused

SCALE = 10**40
"""Bounds of e^ε are integers in units of 10^-40."""

LARGEST = 2**53 - 1
"""Every reader of JSON holds integers up to here exactly."""


def dumps(value: Any) -> bytes:
    """The canonical JSON of objects, lists, texts, booleans and integers.

    Raises:
        ValueError: a text has half of a surrogate pair.
        TypeError: a value of another type.
    """
    separators = (",", ":")
    return json.dumps(_ordered(value), ensure_ascii=False, separators=separators).encode()


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        # RFC 8785 sorts by UTF-16, in which characters beyond the first plane come before some.
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, (list, tuple)):
        return [_ordered(each) for each in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int) and abs(value) <= LARGEST:
        return value
    raise TypeError(f"no canonical JSON of {type(value).__name__}")


def loads(file: str, data: bytes) -> Any:
    """The value of canonical JSON.

    Raises:
        Refused: no JSON, a number with a point, or another form than the canonical one.
    """
    try:
        value = json.loads(data, parse_int=_integer, parse_float=_none, parse_constant=_none)
        # A key that stands twice is gone by now, so that these are other bytes.
        again = dumps(value)
    except (ValueError, RecursionError) as error:
        raise Refused(file, "", f"{type(error).__name__}: {error}", "canonical JSON") from error
    if again != data:
        raise Refused(file, "", "another form", "canonical JSON")
    return value


def _integer(text: str) -> int:
    # Bounded first: the time to read a number grows with the square of its digits.
    if len(text) > len(str(LARGEST)) + 1 or abs(int(text)) > LARGEST:
        raise ValueError("an integer beyond 2^53")
    return int(text)


def _none(text: str) -> Any:
    raise ValueError(f"{text[:30]} is no integer")


NUMBER = re.compile(r"(?=.{1,400}\Z)[0-9]+([.][0-9]+|/[1-9][0-9]*)?", re.ASCII)
"""The texts of exact numbers that are not negative."""


def exact(value: Fraction) -> str:
    """The text of a number that is not negative: digits, a decimal if it ends, else a/b."""
    places = value.denominator.bit_length()
    scaled = value * 10**places
    if scaled.denominator != 1:
        return str(value)
    digits = str(scaled.numerator).rjust(places + 1, "0")
    cut = len(digits) - places
    return f"{digits[:cut]}.{digits[cut:]}".rstrip("0").rstrip(".")


def about(value: Fraction | None) -> str:
    """A number for people, of any size, to 12 digits."""
    if value is None:
        return "nothing"
    if abs(value.numerator) >= 10**300 * value.denominator:
        return "more than 10^300"
    return f"{float(value):.12g}"


@lru_cache(maxsize=40_000)
def _floor_of_e(value: Fraction) -> int:
    """The floor of 10^40 · e^value."""
    work = Context(prec=140, rounding=ROUND_HALF_EVEN)
    quotient = work.divide(Decimal(value.numerator), Decimal(value.denominator))
    return int(work.multiply(work.exp(quotient), Decimal(SCALE)))


def below_e(value: Fraction) -> int:
    """An integer at most 10^40 · e^value, and at least 10^40 where the value is not negative."""
    floor = _floor_of_e(value) - 1
    return max(SCALE, floor) if value >= 0 else floor


def above_e(value: Fraction) -> int:
    """An integer at least 10^40 · e^value."""
    # A power of e other than 1 is irrational, so its ceiling is the next integer.
    return SCALE if value == 0 else _floor_of_e(value) + 2


def loss_of(ratio: int) -> Fraction:
    """A rational at least ln(2^64 / ratio), and less than 10^-59 above it."""
    work = Context(prec=80, rounding=ROUND_HALF_EVEN)
    quotient = work.divide(Decimal(2**64), Decimal(ratio))
    return Fraction(work.ln(quotient)) + Fraction(1, 10**60)
