"""Drawing noise: bits from the operating system, then the integer inverse CDF.

Bits → integers below 2^k → the element whose cumulative weight is the first above the integer. The
total of a pmf is 2^k, so nothing is rejected and an element has exactly its published probability.
No other source of randomness is used in the package.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.integer_pmf import IntegerPmf
from release.exact.pmf import Pmf

RandomBytes: TypeAlias = Callable[[int], bytes]
"""A source of uniform bytes, by number of bytes."""

SYSTEM: RandomBytes = os.urandom
"""The operating system's generator: the source of every release."""

_WORD_BITS = 64


def random_below_power(bits: int, count: int, source: RandomBytes = SYSTEM) -> NDArray[np.uint64]:
    """``count`` uniform integers in [0, 2^bits), for 1 ≤ ``bits`` ≤ 64."""
    if not 1 <= bits <= _WORD_BITS:
        raise ValueError("bits must be between 1 and 64")
    words = np.frombuffer(source(8 * count), dtype="<u8").astype(np.uint64)
    return words >> np.uint64(_WORD_BITS - bits)


def draw_noise(pmf: Pmf, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent elements of the group, each with exactly its probability."""
    if pmf.bits <= _WORD_BITS - 2:
        cumulative = np.cumsum(pmf.weights.astype(np.uint64))
        uniform = random_below_power(pmf.bits, count, source)
        # "right": the integer c is the first that belongs to the element after the sum c.
        return np.searchsorted(cumulative, uniform, side="right").astype(np.int64)
    return _draw_wide(pmf, count, source)


def _draw_wide(pmf: Pmf, count: int, source: RandomBytes) -> Codes:
    """As :func:`draw_noise`, for more than 62 bits: further bits decide ties of the first 62."""
    first = _WORD_BITS - 2
    rest = pmf.bits - first
    bounds = list(accumulate(pmf.weights.tolist()))
    heads = np.array(bounds, dtype=object) >> rest
    uniform = random_below_power(first, count, source)
    # With head h, every bound whose head is below h is passed and none whose head is above.
    elements = np.searchsorted(heads.astype(np.uint64), uniform, side="left").astype(np.int64)
    ends = np.searchsorted(heads.astype(np.uint64), uniform, side="right")
    width = -(-rest // 8)
    for index in np.flatnonzero(elements < ends).tolist():
        tail = int.from_bytes(source(width), "little") >> (8 * width - rest)
        draw = (int(uniform[index]) << rest) | tail
        elements[index] = bisect_right(bounds, draw, int(elements[index]), int(ends[index]))
    return elements


def draw_on_line(noise: IntegerPmf, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent integers of a pmf that ends, each with exactly its probability.

    Raises:
        ValueError: the pmf has a tail, or a mass that is no multiple of a power of two.
    """
    return noise.low + draw_noise(noise.to_pmf(), count, source)


def draw_codes(
    answers: Codes, row: Callable[[int], NDArray[Any]], total: int, source: RandomBytes = SYSTEM
) -> Codes:
    """One code for each true code: a draw from the row of weights of that code, of sum ``total``.

    Each cell takes as many bits of the source as any other, in the order of the cells.

    Raises:
        ValueError: a total above 2^62.
    """
    bits = total.bit_length() - 1
    if bits > _WORD_BITS - 2:
        raise ValueError("rows are drawn from with totals of at most 2^62")
    uniform = random_below_power(bits, answers.size, source)
    drawn = np.empty(answers.size, dtype=np.int64)
    # All bits are drawn above, whatever the answers are: a loop over answers would draw by them.
    for code in np.unique(answers).tolist():
        here = answers == code
        cumulative = np.cumsum(row(code).astype(np.uint64))
        drawn[here] = np.searchsorted(cumulative, uniform[here], side="right")
    return drawn
