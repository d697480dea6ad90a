"""Values of Python as columns of text, for sources that type values and not columns.

The text of a value is its own; that of an integer its digits; that of a number Python's shortest;
dates and times are in ISO form. What has none of these is U+FFFD, which is never a value.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import pyarrow as pa

_NO_VALUE = "\ufffd".encode()


def texts(values: Iterable[object]) -> pa.Array:
    """Values as a column of text, of bytes that nobody has checked."""
    octets = pa.array(map(_octets, values), pa.large_binary())
    _, offsets, data = octets.buffers()
    missing = octets.buffers()[0]
    return pa.LargeStringArray.from_buffers(len(octets), offsets, data, missing)


def _octets(value: object) -> bytes | None:
    match value:
        case None:
            return None
        case bytes():
            return value
        case str():
            # A lone surrogate is no UTF-8 then, and the text is missing.
            return str.encode(value, "utf-8", "surrogatepass")
        case bool() | np.bool_():
            return b"true" if value else b"false"
        case int() | np.integer():
            # By a decimal, because Python refuses to write an integer of 5,000 digits.
            return str(Decimal(int(value))).encode()
        case float() | np.floating():
            return repr(float(value)).encode()
        case Decimal():
            return str(value).encode()
        case datetime.datetime():
            return datetime.datetime.isoformat(value, " ").encode()
        case datetime.date():
            return datetime.date.isoformat(value).encode()
    return _NO_VALUE
