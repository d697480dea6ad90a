"""Drawing noise: bits from the operating system, then the integer inverse CDF.

Bits → integers below 2^k → the element whose cumulative weight is the first above the integer. The
law's total is 2^k, so nothing is rejected and the sampled law is the logged law exactly. No other
source of randomness is used anywhere in the package.
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


def draw_noise(law: Pmf, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent elements of the law's group, each with exactly its probability."""
    if law.bits <= _WORD_BITS - 2:
        cumulative = np.cumsum(law.weights.astype(np.uint64))
        uniform = random_below_power(law.bits, count, source)
        return np.searchsorted(cumulative, uniform, side="right").astype(np.int64)
    return _draw_wide(law, count, source)


def _draw_wide(law: Pmf, count: int, source: RandomBytes) -> Codes:
    """As :func:`draw_noise`, for laws of more than 62 bits: the rest decides ties of the first."""
    first = _WORD_BITS - 2
    rest = law.bits - first
    bounds = list(accumulate(law.weights.tolist()))
    heads = np.array([bound >> rest for bound in bounds], dtype=np.uint64)
    uniform = random_below_power(first, count, source)
    found = np.searchsorted(heads, uniform, side="left").astype(np.int64)
    ends = np.searchsorted(heads, uniform, side="right")
    width = -(-rest // 8)
    for index in np.flatnonzero(found < ends).tolist():
        tail = int.from_bytes(source(width), "little") >> (8 * width - rest)
        draw = (int(uniform[index]) << rest) | tail
        found[index] = bisect_right(bounds, draw, int(found[index]), int(ends[index]))
    return found


def draw_on_line(noise: IntegerPmf, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent integers of a law that ends, each with exactly its probability.

    Raises:
        ValueError: the law has a tail, or a mass that is no multiple of a power of two.
    """
    return noise.low + draw_noise(noise.to_law(), count, source)


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
    for code in np.unique(answers).tolist():
        here = answers == code
        cumulative = np.cumsum(row(code).astype(np.uint64))
        drawn[here] = np.searchsorted(cumulative, uniform[here], side="right")
    return drawn
