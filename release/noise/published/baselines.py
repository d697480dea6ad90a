"""Mechanisms of the literature that ours are compared with, each in exact integers.

Noise on the integers is brought onto the answers 0..n in one of three ways: *clamped* (what falls
outside is published as the nearest answer, Kadam et al. 2024, (55) and (56)), *truncated* (drawn
again until it falls inside), or *modular* (wrapped round). The result may satisfy another guarantee
than the noise: compute its δ, with :meth:`release.exact.mechanism.Mechanism.deltas`.

Ghosh et al. 2009 call their clamped geometric mechanism the truncated one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.integers.noise import MOST_BITS, RATIO_BITS, IntegerNoise, merged
from release.exact.integers.staircase import staircase
from release.exact.modular import Modular
from release.exact.numbers import MAX_EPSILON, exp_below_any_verifier, exp_bounds
from release.exact.pmf import Pmf
from release.noise.solvers.closed_form import pure_pmf

# The least ε: noise for a smaller one is uniform up to the rounding to 62 bits.
_LEAST = Fraction(1, 10**9)

# Masses are brought onto the answers in units of 2^-256, far finer than the weights.
_PLACES = 256


def geometric(epsilon: Fraction) -> IntegerNoise:
    """p(k) ∝ e^{-ε|k|}, two-sided; ε-differentially private for neighbors 1 apart.

    Source: Ghosh, Roughgarden and Sundararajan 2009.

    Raises:
        ValueError: ε is not in [10⁻⁹, 100].
    """
    return staircase((1,), epsilon, 1).noise


def _check_epsilon(epsilon: Fraction) -> None:
    if not _LEAST <= epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be at least 10^-9 and at most {MAX_EPSILON}")


def _near(low: int, masses: Sequence[int]) -> IntegerNoise:
    """The noise with about these masses from ``low`` on; what rounding leaves goes to the mode."""
    whole, total = sum(masses), 1 << MOST_BITS
    weights = [mass * total // whole for mass in masses]
    weights[weights.index(max(weights))] += total - sum(weights)
    # Noise begins and ends with a mass: rounding may have left none at the ends.
    massive = [place for place, weight in enumerate(weights) if weight]
    first, last = massive[0], massive[-1]
    return IntegerNoise(low + first, merged(zip(itertools.repeat(1), weights[first : last + 1])))


@lru_cache(maxsize=64)
def discrete_gaussian(variance: Fraction) -> IntegerNoise:
    """p(k) ∝ e^{-k²/2σ²}, as far as masses are above 2^-62 of the whole; zero beyond.

    ``variance`` is σ², the parameter; for small σ the variance itself is smaller.

    Source: Canonne, Kamath and Steinke 2020, (1).

    Raises:
        ValueError: the variance is not in (0, 10¹⁰].
    """
    if not 0 < variance <= 10**10:
        raise ValueError("the variance must be above 0 and at most 10^10")
    # e^{-(k+1)²/2σ²} from e^{-k²/2σ²}, in integers far finer than the weights.
    mass = unit = 1 << _PLACES
    step, fall = (
        int(unit / exp_bounds(1 / (2 * variance))[0]),
        int(unit / exp_bounds(1 / variance)[0]),
    )
    half = [mass]
    # Up to k = √(90·σ²), where a mass is e^-45, which is below 2^-62 of the largest.
    for _ in range(math.isqrt(int(90 * variance)) + 1):
        mass, step = mass * step // unit, step * fall // unit
        half.append(mass)
    return _near(1 - len(half), [*half[:0:-1], *half])


@lru_cache(maxsize=64)
def gumbel(scale: float, location: float = 0.0) -> IntegerNoise:
    """Gumbel noise rounded to the nearest integer.

    Kadam et al. 2024 realise the exponential mechanism by adding this noise to the answer (footnote
    6). The Gumbel-max trick that it refers to draws one such value for each possible answer, and is
    :func:`exponential`; the two are different mechanisms.

    Raises:
        ValueError: the scale is not in [0.05, 10⁵].
    """
    if not 0.05 <= scale <= 1e5:
        raise ValueError("the scale must be at least 0.05 and at most 100,000")
    low, high = math.floor(location - 7 * scale) - 1, math.ceil(location + 45 * scale)
    ends = np.arange(low - 0.5, high + 1)
    # math, not NumPy: its exponentials differ in the last digit from processor to processor.
    below, above = np.zeros(ends.size), np.zeros(ends.size)
    for place, end in enumerate(ends.tolist()):
        fall = math.exp(-(end - location) / scale)
        below[place], above[place] = math.exp(-fall), -math.expm1(-fall)
    # From the nearer side, so that no digits cancel.
    masses = np.where(ends[:-1] < location, np.diff(below), -np.diff(above))
    return _near(low, [int(mass * 2.0**_PLACES) for mass in masses.tolist()])


def _units(noise: IntegerNoise, n: int) -> tuple[list[int], int]:
    """The masses of 0..n in units of 2^-256, rounded down, and that of all above n."""
    unit, inside = 1 << _PLACES, min(n, noise.high)
    units = [int(noise.mass(k) * unit) for k in range(inside + 1)]
    while len(units) <= n:
        # A tail is followed step by step: exact rationals far out would have millions of digits.
        tail = noise.right
        units.append(units[-tail.period] * tail.ratio >> RATIO_BITS if tail else 0)
    above, start = 0, noise.low
    for length, weight in noise.runs:
        above += max(0, min(length, start + length - 1)) * weight
        start += length
    return units, above * (unit // noise.total) - sum(units[1:])


def clamped(noise: IntegerNoise, answers: int, keep: Fraction | None = None) -> Channel:
    """min(max(0, q + η), n), for each of ``answers`` true answers q (Kadam et al. 2024, (56)).

    ``keep`` is a ratio that rounding may not break, as in :meth:`Channel.near`.
    """
    n = answers - 1
    (right, over), (left, under) = _units(noise, n), _units(noise.mirrored, n)
    # From -n to n: both sides have the mass of 0, so the mirrored one leaves it out.
    masses = [*left[:0:-1], *right]
    # below[q] is all that falls under -q, above[q] all beyond n - q.
    below = [*accumulate(masses[:n], initial=under)][::-1]
    above = [*accumulate(masses[:n:-1], initial=over)]
    rows = []
    for q in range(answers):
        row = masses[n - q : 2 * n - q + 1]
        row[0] += below[q]
        row[-1] += above[q]
        rows.append(row)
    return Channel.near(rows, keep=keep)


def truncated(noise: IntegerNoise, answers: int, keep: Fraction | None = None) -> Channel:
    """Noise drawn again until q + η is an answer: each row in proportion to the noise."""
    n = answers - 1
    masses = [*_units(noise.mirrored, n)[0][:0:-1], *_units(noise, n)[0]]
    # Rows need not add up to one: Channel.near scales each, which is the drawing again.
    return Channel.near([masses[n - q : 2 * n - q + 1] for q in range(answers)], keep=keep)


def modular(noise: IntegerNoise, answers: int, keep: Fraction | None = None) -> Pmf:
    """(q + η) mod N: the masses wrapped round, as a pmf on the group of the answers."""
    units = [0] * answers
    for side, sign in ((noise, 1), (noise.mirrored, -1)):
        # Beyond the window each N masses are those of N before, times a power of the ratio.
        last = max(0, side.high)
        block, repeats = 0, Fraction(1)
        if side.right:
            block = math.lcm(side.right.period, answers)
            repeats = 1 / (1 - side.right.fraction ** (block // side.right.period))
        masses, _ = _units(side, last + block)
        for k, mass in enumerate(masses):
            if k > last:
                units[sign * k % answers] += int(mass * repeats)
            elif k or sign > 0:
                units[sign * k % answers] += mass
    return pmf_near([Fraction(unit, 2**_PLACES) for unit in units], keep)


def pmf_near(masses: list[Fraction], keep: Fraction | None = None) -> Pmf:
    """The pmf on Z_N of about these masses, as a row of :meth:`Channel.near`."""
    row = Channel.near([masses], keep=keep).rows[0]
    return Pmf.of(Group((len(masses),)), row.tolist())


def randomised_response(answers: int, epsilon: Fraction) -> Pmf:
    """The truth with e^ε/(e^ε + n), any other answer alike: k-ary randomised response.

    Raises:
        ValueError: fewer than 2 answers, or ε not in [10⁻⁹, 100].
    """
    _check_epsilon(epsilon)
    steps = np.minimum(np.arange(answers), 1)
    return pure_pmf(Group((answers,)), steps, exp_below_any_verifier(epsilon))


def data_independent(answers: int, error_rate: Fraction) -> Pmf:
    """f(0) = 1 - ρ and ρ/n elsewhere. Source: Ravi et al. 2022, as in Kadam et al. 2024, Fig. 7.

    Raises:
        ValueError: fewer than 2 answers, or an error rate that is not in [0, 1].
    """
    if not (answers >= 2 and 0 <= error_rate <= 1):
        raise ValueError("there must be 2 answers or more, and an error rate from 0 to 1")
    rest = error_rate / (answers - 1)
    return pmf_near([1 - error_rate, *[rest] * (answers - 1)])


def exponential(answers: int, epsilon: Fraction) -> Channel:
    """P(o|q) ∝ e^{-ε|o - q|/2}: the exponential mechanism of McSherry and Talwar 2007.

    Score -|o - q|, which neighbors 1 apart change by 1. It is the truncated geometric at ε/2,
    which has to be at least 10⁻⁹.
    """
    return truncated(geometric(epsilon / 2), answers, exp_below_any_verifier(epsilon))


@lru_cache(maxsize=8)
def geometric_clamped(answers: int, epsilon: Fraction) -> Channel:
    """Clamped geometric noise as a channel: ε-differentially private for neighbors 1 apart."""
    return clamped(geometric(epsilon), answers, exp_below_any_verifier(epsilon))


def geometric_modular(answers: int, epsilon: Fraction) -> Modular:
    """Wrapped geometric noise: ε-differentially private for neighbors 1 apart."""
    return Modular(modular(geometric(epsilon), answers, exp_below_any_verifier(epsilon)))
