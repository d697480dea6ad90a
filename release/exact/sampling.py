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
from release.exact.pmf import Pmf

RandomBytes: TypeAlias = Callable[[int], bytes]
"""A source of uniform bytes, by number of bytes."""

SYSTEM: RandomBytes = os.urandom
"""The operating system's generator: the source of every release."""

_WORD_BITS = 64
_MOST_DIGITS = 62
_CHUNK = 1 << 16


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


def draw_geometric(ratio: int, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent numbers G with P(G ≥ g) = (``ratio`` / 2^64)^g exactly, at most 2^62.

    The binary digits of a geometric number are independent, and digit i is 1 with chance x/(1 + x),
    x = P(G ≥ 2^i). Each number takes one word for each digit up to where x falls below 2^-64, and
    one for whether it goes beyond; a tie of a word with its chance (2^-64) takes another.
    """
    digits = 0
    while digits < _MOST_DIGITS and _leading_bits(ratio, digits, 1, is_digit=False):
        digits += 1
    chances = [_leading_bits(ratio, digit, 1, is_digit=True) for digit in range(digits)]
    chances.append(_leading_bits(ratio, digits, 1, is_digit=False))
    numbers = np.zeros(count, dtype=np.int64)
    for start in range(0, count, _CHUNK):
        part = numbers[start : start + _CHUNK]
        words = random_below_power(_WORD_BITS, part.size * len(chances), source)
        rows = zip(words.reshape(-1, part.size), chances, strict=True)
        for digit, (row, chance) in enumerate(rows):
            # Going beyond is decided by the complement: a source of zeros never does.
            row = row if digit < digits else ~row  # noqa: PLW2901
            is_one = row < np.uint64(chance)
            for tie in np.flatnonzero(row == np.uint64(chance)).tolist():
                is_one[tie] = _is_below(ratio, digit, chance, source, is_digit=digit < digits)
            if digit < digits:
                part += is_one.astype(np.int64) << digit
            elif is_one.any():
                # Beyond 2^digits what remains is geometric again.
                again = 0 if digits == _MOST_DIGITS else draw_geometric(ratio, part.size, source)
                beyond = np.minimum(2**_MOST_DIGITS - 2**digits, again) + 2**digits
                part[is_one] = beyond[is_one] if digits < _MOST_DIGITS else 2**_MOST_DIGITS
    return numbers


def draw_odd(ratio: int, count: int, source: RandomBytes = SYSTEM) -> Codes:
    """``count`` independent bits that are 1 with chance ρ/(1 + ρ) exactly, ρ = ``ratio`` / 2^64.

    It is the chance that a geometric number is odd, and needs its last digit only.
    """
    chance = _leading_bits(ratio, 0, 1, is_digit=True)
    words = random_below_power(_WORD_BITS, count, source)
    is_one = words < np.uint64(chance)
    for tie in np.flatnonzero(words == np.uint64(chance)).tolist():
        is_one[tie] = _is_below(ratio, 0, chance, source, is_digit=True)
    return is_one.astype(np.int64)


def _is_below(ratio: int, digit: int, first: int, source: RandomBytes, *, is_digit: bool) -> bool:
    """Whether a uniform number whose first word is ``first`` is below the chance of a digit."""
    uniform, words = first, 1
    while True:
        uniform, words = uniform << _WORD_BITS | int.from_bytes(source(8), "little"), words + 1
        chance = _leading_bits(ratio, digit, words, is_digit=is_digit)
        if uniform != chance:
            return uniform < chance


def _leading_bits(ratio: int, digit: int, words: int, *, is_digit: bool) -> int:
    """The first ``words`` words of x = (``ratio`` / 2^64)^(2^``digit``), or of x/(1 + x)."""
    places = _WORD_BITS * (words + 2)
    while True:
        # x lies in [low, high] / 2^places.
        low = high = ratio << (places - _WORD_BITS)
        for _ in range(digit):
            low, high = low * low >> places, -(-high * high >> places)
        quotients = []
        for x in (low, high):
            over = (x << places) // ((1 << places) + x) if is_digit else x
            quotients.append(over >> (places - _WORD_BITS * words))
        if quotients[0] == quotients[1]:
            return quotients[0]
        places *= 2


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
