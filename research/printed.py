"""The closed forms of Kadam et al. 2024, as printed and as corrected; references, for no release.

All are for one-sided differences and the error rate. SD: every difference is μ̂ (Theorem 2,
Corollary 1). BD: the differences are 1..μ̄ (Theorem 3, Corollary 2). What is wrong with the printed
forms, with numbers, is in docs/gallery; in short:

- Remark 3 says to replace n by N_μ̂ where μ̂ and n+1 share a factor. It has to be N_μ̂ - 1.
- (34) to (36) are not 1/Σ ℓᵢe^{-iε} of the lengths (31) for j = h. (38) leaves out the group b+1
  for j < h, and its singleton then breaks δ. Corrected, the pmf is optimal for the program with one
  shared indicator while b ≤ 3 and ε ≥ ln((1+√5)/2); for b ≥ 4 and j ≤ h-2 it can break its own δ.
- The limits (44) and (48) hold without their first case: f(0) ≥ 0.5 is problem for by nothing.

Masses are floats in the order of the noise values 0..n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from release.noise.solvers.program import Floats


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
    reach = orbit(n, step)
    # Erratum K4: Remark 3 takes the number of the noise values for the number of the steps.
    return reach if form is Form.PRINTED and reach != n + 1 else reach - 1


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
    """The pmf of Theorem 2 for the one difference ``step`` (μ̂); shape (n+1,).

    The printed form where μ̂ and n+1 share a factor has masses that do not add up to 1.
    """
    masses = sd_sorted(_sections(n, step, form), epsilon, delta)
    pmf = np.zeros(n + 1)
    for k in range(orbit(n, step)):
        pmf[k * step % (n + 1)] = masses[k]
    return pmf


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


def sd_jumps(n: int, error_rate: float) -> list[float]:
    """ε_0 > ε_1 > … of (22) and (25), where δ^ε of Corollary 1 jumps, as far as they are above 0.

    ``n`` is that of a ring which the difference generates.
    """
    jumps = []
    for k in range(n):

        def flat(epsilon: float, length: int = n + 1 - k) -> float:
            e = math.exp(-epsilon)
            return (1 - e) / (1 - e**length)

        # It rises with ε from 1/length to 1.
        if 1 / (n + 1 - k) < 1 - error_rate:
            low, high = 1e-9, 60.0
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (low, middle) if flat(middle) >= 1 - error_rate else (middle, high)
            jumps.append(high)
    return jumps


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
class _Problem:
    """What Theorem 3 is about: n = b·μ̄ + r (26), differences 1..μ̄ = ``width``, and ε."""

    n: int
    width: int
    epsilon: float

    @property
    def b(self) -> int:
        return self.n // self.width

    @property
    def r(self) -> int:
        return self.n % self.width

    def decay(self, groups: int) -> float:
        """e^{-iε}, by which the i-th group is below f(0)."""
        return math.exp(-groups * self.epsilon)

    def xi(self, terms: int) -> float:
        """ξ: the sum of the first ``terms`` decays."""
        return sum(self.decay(i) for i in range(terms))

    def flat_lengths(self, h: int, j: int) -> tuple[int, ...]:
        """(31)."""
        b, width = self.b, self.width
        lengths = [1, *[width] * (b - h), *[width - 1] * h, self.r + h - (j != h)]
        if j != h:
            lengths[b - h + j + 1] = width
        return tuple(lengths)

    def slope_lengths(self, h: int, j: int) -> tuple[int, ...]:
        """(38) as printed; the singleton is group b-h+j+1, and of b+1 nothing is said for j < h."""
        b, width = self.b, self.width
        lengths = [1, *[width] * (b - h), *[width - 1] * h, 0, self.r + h - 1]
        lengths[b - h + j + 1] = 1
        return tuple(lengths)

    def printed_mode(self, h: int, j: int) -> float:
        """φ_0^k by (34) to (36)."""
        b, last = self.b, j != h
        alpha = self.decay(1) * self.xi(b) - (1 - last) * self.decay(b - h + j + 1)
        beta = 1 + self.decay(b - h + 1) * (self.decay(j) - self.xi(h))
        beta += (self.r + h - last) * self.decay(b + 1)
        return 1 / (self.width * alpha + beta)

    def mode(self, lengths: tuple[int, ...]) -> float:
        """φ_0^k by the first half of (34): what groups of these lengths leave for f(0)."""
        return 1 / sum(count * self.decay(i) for i, count in enumerate(lengths))


def bd_regions(n: int, width: int, epsilon: float, form: Form = Form.CORRECTED) -> list[Region]:
    """The regions of Theorem 3 in the order of δ, the first flat one (h = j = 0) first.

    Raises:
        ValueError: not μ̄ ≤ n and b + r < μ̄ (the theorem's conditions), where n = b·μ̄ + r.
    """
    problem = _Problem(n, width, epsilon)
    b = problem.b
    if not (width <= n and b + problem.r < width):
        raise ValueError("Theorem 3 is for b + r below the width of the differences")
    lengths = (1, *[width] * b, problem.r)
    mode = problem.mode(lengths)
    ends = mode * problem.decay(b - 1)
    regions = [Region(0, 0, lengths, (), mode, 0.0, 0.0, ends)]
    for h in range(1, b):
        for j in range(1, h + 1):
            lengths, after = problem.flat_lengths(h, j), ends
            printed = form is Form.PRINTED
            mode = problem.printed_mode(h, j) if printed else problem.mode(lengths)
            begins = mode * problem.decay(b - h) * problem.xi(j)
            if j < h:
                ends = mode * problem.decay(b - h) * problem.xi(j + 1)
            else:
                ends = mode * problem.decay(b - h - 1)
            slope = problem.slope_lengths(h, j)
            regions.append(Region(h, j, lengths, slope, mode, after, begins, ends))
    return regions


def bounded_difference(
    n: int, width: int, epsilon: float, delta: float, form: Form = Form.CORRECTED
) -> Floats:
    """The pmf of Theorem 3 for the differences 1..``width`` (μ̄); shape (n+1,).

    Raises:
        ValueError: not b + r < μ̄.
    """
    problem = _Problem(n, width, epsilon)
    for region in bd_regions(n, width, epsilon, form):
        if delta < region.begins:
            slope = _on_slope if form is Form.PRINTED else _on_slope_corrected
            return slope(region, problem, delta)
        if delta <= region.ends:
            decay = np.exp(-epsilon * np.arange(len(region.flat)))
            return np.repeat(region.mode * decay, region.flat)
    # (40) and (41): the last segment.
    return np.array([delta, *[(1 - delta) / n] * n])


def _on_slope(region: Region, problem: _Problem, delta: float) -> Floats:
    """(39): all groups rise with δ but the singleton, which takes what is left."""
    h, j, lengths = region.h, region.j, region.slope
    single = problem.b - h + j + 1
    # The singleton takes the place of a group, so later groups are one decay less below f(0).
    group = np.arange(len(lengths))
    exponent = np.where(group < single, problem.b - h - group, problem.b - h - group + 1)
    masses = delta * np.exp(exponent * problem.epsilon) / problem.xi(j)
    masses[single] = 0.0
    masses[single] = 1 - float(np.array(lengths) @ masses)
    pmf = np.repeat(masses, lengths)
    return np.concatenate([pmf, np.zeros(problem.n + 1 - pmf.size)])


def _on_slope_corrected(region: Region, problem: _Problem, delta: float) -> Floats:
    """The same f(0), with the groups of the flat stretch ahead and a floor under what is left.

    Raising the smallest masses to one height violates nothing new; the singleton of (38) does,
    where a later group has an element within μ̄ of it.
    """
    mode = delta / (problem.decay(problem.b - region.h) * problem.xi(region.j))
    masses = np.repeat(mode * np.exp(-problem.epsilon * np.arange(len(region.flat))), region.flat)
    missing, ordered = 1 - float(masses.sum()), np.sort(masses)
    # The floor under the k smallest masses: the largest k whose last mass is still below it.
    floors = (np.cumsum(ordered) + missing) / np.arange(1, ordered.size + 1)
    floor = floors[np.flatnonzero(ordered <= floors)[-1]]
    return np.asarray(np.maximum(masses, floor))


def bd_delta(
    n: int, width: int, epsilon: float, error_rate: float, form: Form = Form.CORRECTED
) -> float:
    """δ^ε of Corollary 2, (42): the least δ of Theorem 3's pmfs for the error rate ρ*."""
    mode = 1 - error_rate
    regions = bd_regions(n, width, epsilon, form)
    if regions[0].mode >= mode:
        return 0.0
    problem = _Problem(n, width, epsilon)
    for region in regions[1:]:
        if region.mode >= mode:
            return problem.xi(region.j) * problem.decay(problem.b - region.h) * mode
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
