"""The mechanisms that ours are compared with, each as exact integers on the answers 0..n.

Noise over all integers is brought onto the answers in one of three ways: *clamped* (what falls
outside is published as the nearest answer, Kadam et al. 2024, (55) and (56)), *truncated* (drawn
again until it falls inside), or *modular* (wrapped round). The result may satisfy another guarantee
than the noise: compute its δ, with :meth:`release.exact.mechanism.Mechanism.deltas`.

Ghosh et al. 2009 call their clamped geometric mechanism the truncated one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from release.exact.channel import Channel
from release.exact.domain import Group
from release.exact.modular import Modular
from release.exact.numbers import MAX_EPSILON, exp_below_any_verifier, exp_bounds
from release.exact.pmf import Pmf
from release.noise.solvers.closed_form import pure_pmf
from research.published.integer_pmf import IntegerPmf, Tail

# The least ε: noise for a smaller one is uniform up to the rounding to 62 bits.
_LEAST = Fraction(1, 10**9)

# Masses are brought onto the answers in units of 2^-256, far finer than the weights.
_PLACES = 256


def geometric(epsilon: Fraction) -> IntegerPmf:
    """p(k) ∝ e^{-ε|k|}, two-sided; exactly ε-differentially private for neighbors 1 apart.

    Source: Ghosh, Roughgarden and Sundararajan 2009.

    Raises:
        ValueError: ε is not in [10⁻⁹, 100].
    """
    return two_sided(decay(epsilon))


def two_sided(ratio: Fraction) -> IntegerPmf:
    """p(k) ∝ ratio^|k|, the geometric noise of a given ratio in (0, 1)."""
    tail = Tail(1, ratio)
    return IntegerPmf.of(0, [Fraction(1)], tail, tail)


def decay(epsilon: Fraction) -> Fraction:
    """A little more than e^{-ε}, over a power of two: noise that falls by it is ε-private.

    Raises:
        ValueError: ε is not in [10⁻⁹, 100].
    """
    _check_epsilon(epsilon)
    ratio = exp_below_any_verifier(epsilon)
    return Fraction(-(-(2**256) * ratio.denominator // ratio.numerator), 2**256)


def _check_epsilon(epsilon: Fraction) -> None:
    if not _LEAST <= epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be at least 10^-9 and at most {MAX_EPSILON}")


def discrete_gaussian(variance: Fraction) -> IntegerPmf:
    """p(k) ∝ e^{-k²/2σ²}, as far as masses are above e^-100 of the mode; zero beyond.

    ``variance`` is σ², the parameter; for small σ the variance itself is smaller.

    Source: Canonne, Kamath and Steinke 2020, (1).
    """
    if not variance > 0:
        raise ValueError("the variance must be above 0")
    # e^{-(k+1)²/2σ²} from e^{-k²/2σ²}, in integers far finer than the least mass of e^-100.
    mass = unit = 1 << 2 * _PLACES
    step, fall = (int(unit / exp_bounds(x)[0]) for x in (1 / (2 * variance), 1 / variance))
    half = [Fraction(mass)]
    for _ in range(math.isqrt(int(200 * variance))):
        mass, step = mass * step // unit, step * fall // unit
        half.append(Fraction(mass))
    return IntegerPmf.of(1 - len(half), [*half[:0:-1], *half])


def gumbel(scale: float, location: float = 0.0) -> IntegerPmf:
    """Gumbel noise rounded to the nearest integer.

    Kadam et al. 2024 realise the exponential mechanism by adding this noise to the answer (footnote
    6). The Gumbel-max trick that it refers to draws one such value for each possible answer, and is
    :func:`exponential`; the two are different mechanisms.

    Raises:
        ValueError: the scale is not in [0.05, 1000].
    """
    if not 0.05 <= scale <= 1000:
        raise ValueError("the scale must be at least 0.05 and at most 1000")
    low = math.floor(location - 7 * scale) - 1
    tail = Tail(1, Fraction(math.exp(-1 / scale)))

    def below(x: float) -> float:
        return math.exp(-math.exp(-(x - location) / scale))

    def above(x: float) -> float:
        return -math.expm1(-math.exp(-(x - location) / scale))

    # Far out the mass falls by e^{-1/β} an integer, to the last digit of a float.
    high = math.ceil(location + 40 * scale)
    masses = []
    for k in range(low, high + 1):
        # From the nearer side, so that no digits cancel.
        difference = below(k + 0.5) - below(k - 0.5)
        masses.append(Fraction(difference if k < location else above(k - 0.5) - above(k + 0.5)))
    first = next(i for i, mass in enumerate(masses) if mass > 0)
    return IntegerPmf.of(low + first, masses[first:], right=tail)


def clamped(noise: IntegerPmf, answers: int, keep: Fraction | None = None) -> Channel:
    """min(max(0, q + η), n), for each of ``answers`` true answers q (Kadam et al. 2024, (56)).

    ``keep`` is a ratio that rounding may not break, as in :meth:`Channel.near`.
    """
    n, unit = answers - 1, 2**_PLACES
    masses = noise.units(-n, n, _PLACES)
    # below[q] is all that falls under -q, above[q] all beyond n - q.
    below = [*accumulate(masses[:n], initial=int(noise.below(-n) * unit))][::-1]
    above = [*accumulate(masses[:n:-1], initial=int(noise.above(n) * unit))]
    rows = []
    for q in range(answers):
        row = masses[n - q : 2 * n - q + 1]
        row[0] += below[q]
        row[-1] += above[q]
        rows.append(row)
    return Channel.near(rows, keep=keep)


def truncated(noise: IntegerPmf, answers: int, keep: Fraction | None = None) -> Channel:
    """Noise drawn again until q + η is an answer: each row in proportion to the noise."""
    n = answers - 1
    masses = noise.units(-n, n, _PLACES)
    return Channel.near([masses[n - q : 2 * n - q + 1] for q in range(answers)], keep=keep)


def modular(noise: IntegerPmf, answers: int, keep: Fraction | None = None) -> Pmf:
    """(q + η) mod N: the masses wrapped round, as a pmf on the group of the answers."""
    after = 0 if noise.right is None else math.lcm(noise.right.period, answers)
    before = 0 if noise.left is None else math.lcm(noise.left.period, answers)
    units = [0] * answers
    spread = noise.units(noise.low - before, noise.high + after, _PLACES)
    for k, mass in enumerate(spread, noise.low - before):
        # Such a stretch of a tail repeats itself scaled, and falls on the same answers.
        tail, block = (noise.left, before) if k < noise.low else (noise.right, after)
        if noise.low <= k <= noise.high or tail is None:
            units[k % answers] += mass
        else:
            units[k % answers] += int(mass / (1 - tail.ratio ** (block // tail.period)))
    return law_near([Fraction(unit, 2**_PLACES) for unit in units], keep)


def law_near(masses: list[Fraction], keep: Fraction | None = None) -> Pmf:
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
    return law_near([1 - error_rate, *[rest] * (answers - 1)])


def exponential(answers: int, epsilon: Fraction) -> Channel:
    """P(o|q) ∝ e^{-ε|o - q|/2}: the exponential mechanism of McSherry and Talwar 2007.

    Score -|o - q|, which neighbors 1 apart change by 1. It is the truncated geometric at ε/2,
    which has to be at least 10⁻⁹.
    """
    return truncated(geometric(epsilon / 2), answers, exp_below_any_verifier(epsilon))


@lru_cache(maxsize=8)
def geometric_clamped(answers: int, epsilon: Fraction) -> Channel:
    """Clamped geometric noise: ε-differentially private for neighbors 1 apart, as clamping is."""
    return clamped(geometric(epsilon), answers, exp_below_any_verifier(epsilon))


def geometric_modular(answers: int, epsilon: Fraction) -> Pmf:
    """Wrapped geometric noise: ε-differentially private for neighbors 1 apart."""
    return modular(geometric(epsilon), answers, exp_below_any_verifier(epsilon))


def _rows_of(noise: Pmf) -> Channel:
    return Channel.of_mechanism(Modular(noise))


BASELINES: dict[str, Callable[[int, Fraction], Channel]] = {
    "geometric_clamped": geometric_clamped,
    "geometric_truncated": lambda n, epsilon: truncated(geometric(epsilon), n),
    "geometric_modular": lambda n, epsilon: _rows_of(geometric_modular(n, epsilon)),
    "gaussian_clamped": lambda n, variance: clamped(discrete_gaussian(variance), n),
    "gaussian_modular": lambda n, variance: _rows_of(modular(discrete_gaussian(variance), n)),
    "gumbel_clamped": lambda n, scale: clamped(gumbel(float(scale)), n),
    "exponential": exponential,
    "randomised_response": lambda n, epsilon: _rows_of(randomised_response(n, epsilon)),
    "data_independent": lambda n, error_rate: _rows_of(data_independent(n, error_rate)),
}
"""The channel of each baseline, by name, from the number of answers and its one parameter."""
