"""Laws that need no solver: the error rate on any group, growing losses with full differences.

Pure (docs/design/mathematics.md). Let d(η) be the least number of
differences that add up to η. The constraints f(η) ≤ E·f(η+μ) chain to f(η) ≥ E^{-d(η)}·f(0), so
f(0) ≤ 1/S with S = Σ E^{-d(η)}; and f(η) ∝ E^{-d(η)} is feasible because d(η+μ) ≤ d(η)+1. Elements
that no sum of differences reaches get no mass. Lemmas 3 and 4 of Kadam et al. 2024, their example
(57) and k-ary randomised response are special cases.

Approximate (docs/design/mathematics.md): put δ on zero and 1-δ on the pure law. In words: with
chance δ the truth.

Probabilistic: while δ is smaller than every mass whose privacy loss could be given up, δ buys
nothing and the pure law is optimal: the first flat stretch of Theorem 2, for any group. (That of
Theorem 3 can be longer, because its indicator is shared by all differences.)

Staircase (docs/design/mathematics.md): pure, all differences up to m on a ring, costs that grow
with the distance. Masses fall by E after the first r - 1 steps and then after every m; the best r
of 1..m is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from release.exact.domain import Codes, Group
from release.exact.losses import Loss
from release.exact.numbers import exp_bounds
from release.exact.pmf import DEFAULT_BITS, Pmf
from release.exact.sensitivity import Sensitivity

_PRECISION = 60


def pure_law(group: Group, steps: Codes, ratio: Fraction, bits: int = DEFAULT_BITS) -> Pmf:
    """The law f(η) ∝ ratio^{-steps(η)} in integers with total 2^bits.

    ``steps`` is :meth:`Group.steps_from_zero` of the differences, or a translate of it. The law is
    feasible for ``ratio``, and so is every translate; around zero its error rate is within
    size·2^-bits of the least possible for that ratio.
    """
    return Pmf.of(group, _weights(steps, ratio, 2**bits))


def mixture_law(
    group: Group, steps: Codes, ratio: Fraction, delta: Fraction, bits: int = DEFAULT_BITS
) -> Pmf:
    """δ on zero and 1-δ on the pure law, in integers; the excess over ``ratio`` is at most δ."""
    total = 2**bits
    published_truth = int(delta * total)
    weights = _weights(steps, ratio, total - published_truth)
    weights[0] += published_truth
    return Pmf.of(group, weights)


def _weights(steps: Codes, ratio: Fraction, total: int) -> list[int]:
    """Integer weights by levels: a, ⌈a/ratio⌉, ⌈⌈a/ratio⌉/ratio⌉, … and exactly the given total.

    Rounding up from the innermost level outwards keeps every ratio. The least ``a`` that reaches
    the total overshoots by less than one unit an element; that surplus is taken off the mode, whose
    constraints have the most room.
    """
    depth = int(steps.max())
    counts = [int(count) for count in np.bincount(steps[steps >= 0], minlength=depth + 1)]

    def sum_from(mode: int) -> int:
        return sum(c * a for c, a in zip(counts, falling(mode, depth, ratio), strict=True))

    low, mode = 0, total
    while low + 1 < mode:
        middle = (low + mode) // 2
        low, mode = (middle, mode) if sum_from(middle) < total else (low, middle)
    rungs = falling(mode, depth, ratio)
    by_level = np.array([*rungs, 0], dtype=object)  # level -1, unreachable, takes the last: 0
    weights: list[int] = by_level[steps].tolist()
    weights[int(np.argmin(np.where(steps < 0, depth + 1, steps)))] -= sum_from(mode) - total
    return weights


def falling(mode: int, depth: int, ratio: Fraction) -> list[int]:
    """The least weights of levels 0 to ``depth`` below ``mode``: each at least the last / ratio."""
    numerator, denominator = ratio.numerator, ratio.denominator
    rungs = [mode]
    while len(rungs) <= depth:
        below = -(-rungs[-1] * denominator // numerator)
        if below == rungs[-1]:  # a fixed point of rounding up: all that follow are the same
            rungs.extend([below] * (depth + 1 - len(rungs)))
            break
        rungs.append(below)
    return rungs


def level_sum_bounds(steps: Codes, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around S = Σ e^{-ε·steps(η)} over the reachable η."""
    low, high = exp_bounds(epsilon)
    counts = np.bincount(steps[steps >= 0]).tolist()
    return _level_sum(counts, high, ROUND_FLOOR), _level_sum(counts, low, ROUND_CEILING)


def _level_sum(counts: list[int], ratio: Fraction, rounding: str) -> Fraction:
    context = Context(prec=_PRECISION, rounding=rounding, Emin=-999999)
    outward = ROUND_CEILING if rounding == ROUND_FLOOR else ROUND_FLOOR
    divisor = Context(prec=_PRECISION, rounding=outward).divide(
        Decimal(ratio.numerator), Decimal(ratio.denominator)
    )
    term, total = Decimal(1), Decimal(0)
    for count in counts:
        total = context.fma(term, Decimal(count), total)
        term = context.divide(term, divisor)
    return Fraction(total)


def highest_mode(steps: Codes, epsilon: Fraction, delta: Fraction) -> Fraction:
    """An upper bound of f(0) for pure (δ = 0) and approximate guarantees: δ + (1-δ)/S."""
    low, _ = level_sum_bounds(steps, epsilon)
    return delta + (1 - delta) / low


def delta_buys_nothing(steps: Codes, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the pure law is optimal for the probabilistic guarantee (ε, δ) and the error rate.

    A law at least as good has f(0) ≥ 1/S. As long as e^{-εk}/S > δ, no constraint from an element
    k steps out may be given up, so elements k+1 steps out have at least e^{-ε(k+1)}/S. If this
    goes through to the last but one level, every chain of the pure proof stands: f(0) ≤ 1/S.
    """
    depth = int(steps.max())
    if depth == 0:
        return True
    _, high_sum = level_sum_bounds(steps, epsilon)
    _, high_ratio = exp_bounds(epsilon)
    context = Context(prec=_PRECISION, rounding=ROUND_FLOOR, Emin=-999999)
    upward = Context(prec=_PRECISION, rounding=ROUND_CEILING)
    ratio = upward.divide(Decimal(high_ratio.numerator), Decimal(high_ratio.denominator))
    decay = context.power(context.divide(Decimal(1), ratio), depth - 1)
    # Decimal powers are within one unit in the last place but not directed; give one unit away.
    return Fraction(context.next_minus(decay)) / high_sum > delta


def staircase(sensitivity: Sensitivity, loss: Loss, epsilon: Fraction) -> Staircase | None:
    """The optimal levels for pure guarantees, all differences up to m, and a growing loss.

    Symmetric differences ±{1..m} with a loss that is even and grows with the circular distance, or
    directed ones {1..m} with a loss that grows on 0..n. None for any other problem. O(size).
    """
    group = sensitivity.group
    width, signed = group.interval(sensitivity.shifts)
    if not width:
        return None
    if len(sensitivity.shifts) == group.size - 1 and loss.numerators[1] != loss.numerators[-1]:
        # All differences are an interval both ways; the loss says which.
        width, signed = group.size - 1, False
    noise = np.arange(group.size, dtype=np.int64)
    distance = np.minimum(noise, group.size - noise) if signed else noise
    by_distance = np.zeros(int(distance.max()) + 1, dtype=np.int64)
    by_distance[distance] = loss.numerators
    grows = bool((np.diff(by_distance) >= 0).all())
    if not grows or not np.array_equal(by_distance[distance], loss.numerators):
        return None
    counts = np.bincount(distance).tolist()
    costs = [c * n for c, n in zip(by_distance.tolist(), counts, strict=True)]
    low, high = _powers(epsilon, by_distance.size // width + 2)
    losses = [
        Fraction(_by_steps(costs, first, width, low), _by_steps(counts, first, width, high))
        for first in range(1, width + 1)
    ]
    best = min(range(width), key=losses.__getitem__)
    levels = np.maximum(0, -(-(distance - best) // width))
    return Staircase(levels, losses[best] / loss.denominator)


@dataclass(frozen=True)
class Staircase:
    """Levels of all elements, and a lower bound of the loss of every pure law."""

    levels: Codes
    lower_bound: Fraction


def _by_steps(values: list[int], first: int, width: int, powers: list[int]) -> int:
    """Σ values·powers[level], the first ``first`` at level 0 and then ``width`` at each."""
    total, start = 0, 0
    for end, power in zip(range(first, len(values) + width, width), powers, strict=False):
        total += sum(values[start:end]) * power
        start = end
    return total


def _powers(epsilon: Fraction, count: int) -> tuple[list[int], list[int]]:
    """Integers below and above 2^320·e^{-εk}, for k below ``count``."""
    low_ratio, high_ratio = exp_bounds(epsilon)
    low, high = [2**320], [2**320]
    for _ in range(count):
        low.append(low[-1] * high_ratio.denominator // high_ratio.numerator)
        high.append(-(-high[-1] * low_ratio.denominator // low_ratio.numerator))
    return low, high
