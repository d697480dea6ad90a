"""Values of Python as columns of text, for sources that type values and not columns.

The text of a value is its own; that of an integer its digits; that of a number Python's shortest;
dates and times are in ISO form. What has none of these is U+FFFD, which is never a value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_NO_VALUE = "\ufffd".encode()


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
    return next((text(value).encode() for kind, text in _TEXTS.items() if isinstance(value, kind)),
                _NO_VALUE)  # fmt: skip


# By a decimal, because Python refuses to write an integer of 5,000 digits. Booleans are integers
# to Python, and times are dates: they come first.
_TEXTS: dict[type | tuple[type, ...], Callable[[Any], str]] = {
    (bool, np.bool_): lambda value: "true" if value else "false",
    (int, np.integer): lambda value: str(Decimal(int(value))),
    (float, np.floating): lambda value: repr(float(value)),
    Decimal: str,
    datetime.datetime: lambda value: datetime.datetime.isoformat(value, " "),
    datetime.date: datetime.date.isoformat,
}
