"""Values of Python as columns of text, for sources that type values and not columns.

The text of a value is its own; that of an integer its digits; that of a number Python's shortest;
dates and times are in ISO form. What has none of these is U+FFFD, which is never a value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_NO_VALUE = "\ufffd".encode()
_MOST_BITS = 2**15


def texts(values: Iterable[object]) -> pa.Array:
    """Values as a column of text, of bytes that nobody has checked."""
    octets = pa.array(list(map(_octets, values)), pa.large_binary())
    _, offsets, data = octets.buffers()
    missing = octets.buffers()[0]
    return pa.LargeStringArray.from_buffers(len(octets), offsets, data, missing)


def _octets(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        # A lone surrogate is no UTF-8 then, and the text is missing.
        return str.encode(value, "utf-8", "surrogatepass")
    # A value may be of a class of its own, whose code raises anything.
    with suppress(Exception):
        for kind, text in _TEXTS.items():
            if isinstance(value, kind):
                return text(value).encode()
    return _NO_VALUE


def _digits(value: Any) -> str:
    """An integer's digits; one of about 10,000 digits or more is as many nines."""
    number = int(value)
    if number.bit_length() > _MOST_BITS:
        # Its digits would take a time that grows with their square.
        return f"{'-' if number < 0 else ''}{'9' * 10_000}"
    # By a decimal, because Python refuses to write an integer of 5,000 digits.
    return str(Decimal(number))


def _moment(value: Any) -> str:
    """A time in ISO form; of Pandas's beyond the year 9999, Python would see another year."""
    if not 1 <= value.year <= 9999:
        raise ValueError("a year that no time has")
    return datetime.datetime.isoformat(value, " ")


# Booleans are integers to Python, and times are dates: they come first.
_TEXTS: dict[type | tuple[type, ...], Callable[[Any], str]] = {
    (bool, np.bool_): lambda value: "true" if value else "false",
    (int, np.integer): _digits,
    (float, np.floating): lambda value: repr(float(value)),
    Decimal: str,
    datetime.datetime: _moment,
    datetime.date: datetime.date.isoformat,
}
