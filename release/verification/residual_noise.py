"""The noise of a residual: its pmf, and how likely it is to be small."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
from numpy.typing import NDArray

from release.exact.pmf import Pmf

_LONGEST = 2**22
"""Elements of a transform; a longer one takes more time and memory than the test is worth."""


def spacing(total: int, parts: int, share: int) -> int:
    """The least distance of two sums of whole domains, by which noise can wrap around."""
    distances = set()
    for a, b in product(range(3), range(2 * share + 1)):
        distances.add(abs(a * total - b * parts))
    return min(distances - {0})


def falls_off(noise: Pmf) -> bool:
    """Whether the noise is symmetric and never likelier further from zero."""
    weights = noise.weights.tolist()
    half = weights[: len(weights) // 2 + 1]
    symmetric = weights[1:] == weights[:0:-1]
    # In integers, where two masses that differ by rounding alone cannot be confused.
    falls: bool = half == sorted(half, reverse=True)
    return symmetric and falls


def residual_pmf(total: Pmf, parts: Pmf, share: int) -> NDArray[np.float64] | None:
    """The chance of each absolute residual when ``share`` cells make up one; by transforms.

    Item i, of shape (residuals,), is that of an absolute residual i. None where the transform would
    be too long.
    """
    reach = total.group.size // 2 + share * (parts.group.size // 2)
    length = 1 << (2 * reach + 1).bit_length()
    if length > _LONGEST:
        return None
    # Both pmfs are symmetric, so a difference is distributed as a sum.
    transform = _transform(total, length) * _transform(parts, length) ** share
    # Rounding leaves tiny negative masses, which would make a cumulative chance too small.
    masses = np.maximum(np.fft.irfft(transform, length), 0)
    absolute = masses[: length // 2].copy()
    absolute[1:] += masses[: length // 2 : -1]
    return absolute


def _transform(noise: Pmf, length: int) -> NDArray[np.complex128]:
    """The transform of noise around 0 on so many elements; shape (``length`` // 2 + 1,)."""
    size = noise.group.size
    around = np.zeros(length)
    element = np.arange(size)
    centred = np.where(element <= size // 2, element, element - size)
    np.add.at(around, centred % length, noise.to_floats())
    return np.fft.rfft(around)


def chance_of_at_least(number: int, successes: int, chance: float) -> float:
    """The chance of so many successes or more, each with ``chance``."""
    if number > 1000:
        # Hoeffding's bound lies above the tail, so the test errs towards accepting.
        excess = successes / number - chance
        return float(np.exp(-2 * number * excess**2)) if excess > 0 else 1.0
    tail = sum(
        comb(number, k) * chance**k * (1 - chance) ** (number - k)
        for k in range(successes, number + 1)
    )
    return min(1.0, tail)
