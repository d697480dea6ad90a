"""The closed forms of Kadam et al. 2024, as printed and as corrected; references, for no release.

All are for one-sided differences and the error rate. SD: every difference is μ̂ (Theorem 2,
Corollary 1). BD: the differences are 1..μ̄ (Theorem 3, Corollary 2). What is wrong with the printed
forms, with numbers, is in docs/gallery; in short:

- Remark 3 says to replace n by N_μ̂ where μ̂ and n+1 share a factor. It has to be N_μ̂ - 1.
- (34) to (36) are not 1/Σ ℓᵢe^{-iε} of the lengths (31) for j = h. (38) leaves out the group b+1
  for j < h, and its singleton then breaks δ. Corrected, the law is optimal for the program with one
  shared indicator while b ≤ 3 and ε ≥ ln((1+√5)/2); for b ≥ 4 and j ≤ h-2 it can break its own δ.
- The limits (44) and (48) hold without their first case: f(0) ≥ 0.5 is asked for by nothing.

Laws are floats in the order of the noise values 0..n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from release.mechanisms.program import Floats


class Form(Enum):
    """Which of the two."""

    PRINTED = "printed"
    CORRECTED = "corrected"


GOLDEN = math.log((1 + math.sqrt(5)) / 2)
"""Below this ε Theorem 3 is not optimal, corrected or not."""


def orbit(n: int, step: int) -> int:
    """N_μ̂ = (n+1)/gcd(n+1, μ̂): how many noise values the difference reaches."""
    return (n + 1) // math.gcd(n + 1, step)


def _sections(n: int, step: int, form: Form) -> int:
    """What stands for n in (19) to (21)."""
    found = orbit(n, step)
    if form is Form.PRINTED and found != n + 1:
        return found
    return found - 1


def sd_breaks(n: int, epsilon: float) -> list[tuple[float, float]]:
    """(δ̲_k, δ̄_k) for k = 0..n: where the k-th flat stretch of the error rate begins and ends (19).

    ``n`` is that of a ring which the difference generates.
    """
    e = math.exp(-epsilon)
    top = [(1 - e) / (1 - e ** (n - k + 1)) for k in range(n + 1)]
    return [
        (
            0.0 if k == 0 else e ** (n - k) * top[k],
            1.0 if k == n else e ** (n - k - 1) * top[k],
        )
        for k in range(n + 1)
    ]


def sd_sorted(n: int, epsilon: float, delta: float) -> Floats:
    """The masses of Theorem 2 in falling order, (20) and (21); shape (n+1,)."""
    breaks, order, e = sd_breaks(n, epsilon), np.arange(n + 1), math.exp(-epsilon)
    for k, (begins, ends) in enumerate(breaks):
        # Written with negative exponents only: e^{nε} may be more than a float holds.
        flat = (1 - e) / (1 - e ** (n - k + 1)) * np.exp(-order * epsilon)
        if delta < begins:  # (21): the stretch before the k-th flat one
            beyond = np.exp((n - k - np.maximum(order, n - k)) * epsilon)
            rest = beyond * (math.exp(epsilon) - 1) / (1 - e**k) * (1 - delta / begins)
            return np.asarray(np.where(order <= n - k, delta / begins * flat, rest))
        if delta <= ends:
            if k == 0:
                masses = np.exp(-epsilon * order)
                return np.asarray(masses / masses.sum())
            return np.asarray(np.where(order <= n - k, flat, 0.0))
    raise AssertionError("the last stretch ends at 1")


def single_distance(
    n: int, step: int, epsilon: float, delta: float, form: Form = Form.CORRECTED
) -> Floats:
    """The law of Theorem 2 for the one difference ``step`` (μ̂); shape (n+1,).

    The printed form where μ̂ and n+1 share a factor has masses that do not add up to 1.
    """
    masses = sd_sorted(_sections(n, step, form), epsilon, delta)
    law = np.zeros(n + 1)
    for k in range(orbit(n, step)):
        law[k * step % (n + 1)] = masses[k]
    return law


def sd_delta(n: int, step: int, epsilon: float, error_rate: float) -> float:
    """δ^ε of Corollary 1, (24): the least δ for the error rate ρ*, which must be below n/(n+1).

    In the k-th section e^{-(n-k)ε}·(1-ρ), for ε from ε_k to ε_{k-1} (25).
    """
    n = _sections(n, step, Form.CORRECTED)
    e, mode = math.exp(-epsilon), 1 - error_rate
    # ε ≥ ε_k says that the k-th flat stretch reaches the mode.
    for k in range(n + 1):
        if (1 - e) / (1 - e ** (n + 1 - k)) >= mode * (1 - 1e-12):
            return 0.0 if k == 0 else e ** (n - k) * mode
    raise AssertionError("the last stretch reaches 1")


@dataclass(frozen=True)
class Region:
    """One region of Theorem 3: flat up to ``ends`` from ``begins``, after a slope from ``after``.

    ``flat`` and ``slope`` are the group lengths ℓ_0, ℓ_1, … of (31) and (38); ``mode`` is φ_0^k.
    """

    h: int
    j: int
    flat: tuple[int, ...]
    slope: tuple[int, ...]
    mode: float
    after: float
    begins: float
    ends: float


@dataclass(frozen=True)
class _Place:
    """The problem a region belongs to: n, b = ⌊n/μ̄⌋ and ε."""

    n: int
    b: int
    epsilon: float


def _xi(terms: int, epsilon: float) -> float:
    return sum(math.exp(-i * epsilon) for i in range(terms))


def _flat_lengths(b: int, r: int, width: int, h: int, j: int) -> tuple[int, ...]:
    """(31)."""
    lengths = [1, *[width] * (b - h), *[width - 1] * h, r + h - (j != h)]
    if j != h:
        lengths[b - h + j + 1] = width
    return tuple(lengths)


def _slope_lengths(b: int, r: int, width: int, h: int, j: int) -> tuple[int, ...]:
    """(38) as printed; the singleton is group b-h+j+1, and for j < h nothing is said of b+1."""
    lengths = [1, *[width] * (b - h), *[width - 1] * h, 0, r + h - 1]
    lengths[b - h + j + 1] = 1
    return tuple(lengths)


def _mode(lengths: tuple[int, ...], place: tuple[int, int, int, int, int], epsilon: float) -> float:
    """φ_0^k by (34) to (36) as printed; ``place`` is (b, r, μ̄, h, j)."""
    b, r, width, h, j = place
    last = j != h

    def decay(i: int) -> float:
        return math.exp(-i * epsilon)

    alpha = decay(1) * _xi(b, epsilon) - (1 - last) * decay(b - h + j + 1)
    beta = 1 + decay(b - h + 1) * (decay(j) - _xi(h, epsilon)) + (r + h - last) * decay(b + 1)
    return 1 / (width * alpha + beta)


def bd_regions(n: int, width: int, epsilon: float, form: Form = Form.CORRECTED) -> list[Region]:
    """The regions of Theorem 3 in the order of δ, the first flat one (h = j = 0) first.

    Raises:
        ValueError: not μ̄ ≤ n and b + r < μ̄ (the theorem's conditions), where n = b·μ̄ + r.
    """
    b, r = divmod(n, width)
    if not (width <= n and b + r < width):
        raise ValueError("Theorem 3 is for b + r below the width of the differences")
    lengths = (1, *[width] * b, r)

    def mode_of(lengths: tuple[int, ...], h: int, j: int) -> float:
        if form is Form.PRINTED and h:
            return _mode(lengths, (b, r, width, h, j), epsilon)
        return 1 / sum(c * math.exp(-i * epsilon) for i, c in enumerate(lengths))

    mode = mode_of(lengths, 0, 0)
    ends = mode * math.exp(-(b - 1) * epsilon)
    found = [Region(0, 0, lengths, (), mode, 0.0, 0.0, ends)]
    for h in range(1, b):
        for j in range(1, h + 1):
            lengths = _flat_lengths(b, r, width, h, j)
            mode, after = mode_of(lengths, h, j), ends
            begins = mode * math.exp(-(b - h) * epsilon) * _xi(j, epsilon)
            if j < h:
                ends = mode * math.exp(-(b - h) * epsilon) * _xi(j + 1, epsilon)
            else:
                ends = mode * math.exp(-(b - h - 1) * epsilon)
            slope = _slope_lengths(b, r, width, h, j)
            found.append(Region(h, j, lengths, slope, mode, after, begins, ends))
    return found


def bounded_difference(
    n: int, width: int, epsilon: float, delta: float, form: Form = Form.CORRECTED
) -> Floats:
    """The law of Theorem 3 for the differences 1..``width`` (μ̄); shape (n+1,).

    Raises:
        ValueError: not b + r < μ̄.
    """
    place = _Place(n, n // width, epsilon)
    for region in bd_regions(n, width, epsilon, form):
        if delta < region.begins:
            slope = _on_slope if form is Form.PRINTED else _on_slope_corrected
            return slope(region, place, delta)
        if delta <= region.ends:
            decay = np.exp(-epsilon * np.arange(len(region.flat)))
            return np.repeat(region.mode * decay, region.flat)
    # (40) and (41): the last segment.
    return np.array([delta, *[(1 - delta) / n] * n])


def _on_slope(region: Region, place: _Place, delta: float) -> Floats:
    """(39): all groups rise with δ but the singleton, which takes what is left."""
    h, j, lengths = region.h, region.j, region.slope
    single = place.b - h + j + 1
    group = np.arange(len(lengths))
    exponent = np.where(group < single, place.b - h - group, place.b - h - group + 1)
    masses = delta * np.exp(exponent * place.epsilon) / _xi(j, place.epsilon)
    masses[single] = 0.0
    masses[single] = 1 - float(np.array(lengths) @ masses)
    law = np.repeat(masses, lengths)
    return np.concatenate([law, np.zeros(place.n + 1 - law.size)])


def _on_slope_corrected(region: Region, place: _Place, delta: float) -> Floats:
    """The same f(0), with the groups of the flat stretch ahead and a floor under what is left.

    Raising the smallest masses to one height violates nothing new; the singleton of (38) does,
    where a later group has an element within μ̄ of it.
    """
    mode = delta * math.exp((place.b - region.h) * place.epsilon) / _xi(region.j, place.epsilon)
    masses = np.repeat(mode * np.exp(-place.epsilon * np.arange(len(region.flat))), region.flat)
    missing, ordered = 1 - float(masses.sum()), np.sort(masses)
    # The floor under the k smallest masses: the largest k whose last mass is still below it.
    floors = (np.cumsum(ordered) + missing) / np.arange(1, ordered.size + 1)
    floor = floors[np.flatnonzero(ordered <= floors)[-1]]
    return np.asarray(np.maximum(masses, floor))


def bd_delta(
    n: int, width: int, epsilon: float, error_rate: float, form: Form = Form.CORRECTED
) -> float:
    """δ^ε of Corollary 2, (42): the least δ of Theorem 3's laws for the error rate ρ*."""
    mode = 1 - error_rate
    regions = bd_regions(n, width, epsilon, form)
    if regions[0].mode >= mode:
        return 0.0
    b = n // width
    for region in regions[1:]:
        if region.mode >= mode:
            return _xi(region.j, epsilon) * math.exp(-(b - region.h) * epsilon) * mode
    return mode


def sd_limit(epsilon: float, form: Form = Form.CORRECTED) -> float:
    """The error rate for δ = 0 and n → ∞: e^{-ε}; printed with 0.5 up to ε = ln 2 (44)."""
    rate = math.exp(-epsilon)
    return min(0.5, rate) if form is Form.PRINTED else rate


def bd_limit(width: int, epsilon: float, form: Form = Form.CORRECTED) -> float:
    """The error rate for δ = 0 and n → ∞, (47); printed with 0.5 up to ε = ln(1+μ̄) (48)."""
    e = math.exp(-epsilon)
    rate = width * e / (width * e + 1 - e)
    return min(0.5, rate) if form is Form.PRINTED else rate


def sd_section_limit(section: int, epsilon: float) -> float:
    """The error rate in section n - ``section`` for any n, (51): 1 - (1-e^{-ε})/(1-e^{-(i+1)ε})."""
    e = math.exp(-epsilon)
    return 1 - (1 - e) / (1 - e ** (section + 1))


def bd_section_mode(
    width: int, c: int, j: int, epsilon: float, form: Form = Form.CORRECTED
) -> float:
    """φ_0^∞(c, j) of (53): f(0) in region (b-c, j), j < h, as n → ∞.

    By (52) the printed form has e^{-ε}·(1 + e^{-(c+j)ε}) where the limit of (34) to (36) has it.
    """
    e = math.exp(-epsilon)
    if form is Form.PRINTED:
        return (1 - e) / (width * e + 1 - e * (1 + e ** (c + j)))
    # Lengths μ̄ up to group c, then μ̄-1 but for one μ̄ at group c+j+1, for ever.
    total = 1 + width * e / (1 - e) - e ** (c + 1) / (1 - e) + e ** (c + j + 1)
    return 1 / total
