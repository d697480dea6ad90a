"""Optimal pmfs that need no solver, in exact integers (docs/design/mathematics.md 2.1-2.5).

- Pure, error rate, any group: f(η) ∝ E^{-d(η)} with d(η) the least number of elements of M that add
  up to η. Lemmas 3 and 4 of Kadam et al. 2024, their example (57) and k-ary randomised response are
  special cases.
- Approximate, error rate: δ on zero and 1-δ on the pure pmf. In words: with chance δ the truth.
- Probabilistic, error rate: the pure pmf while δ is too small to give up any constraint. That is
  the first flat stretch of Theorem 2, for any group. (That of Theorem 3 can be longer, because its
  indicator is shared by all shifts.)
- Pure, M an interval on a ring, costs that do not fall with the distance: masses fall by E after
  the first r - 1 steps and then after every m; the best r of 1..m is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from release.exact.domain import Codes, Group
from release.exact.losses import Loss
from release.exact.numbers import dot, exp_bounds
from release.exact.pmf import DEFAULT_BITS, Pmf
from release.exact.sensitivity import Sensitivity

_PRECISION = 60


def pure_pmf(group: Group, steps: Codes, ratio: Fraction, bits: int = DEFAULT_BITS) -> Pmf:
    """The pmf f(η) ∝ ratio^{-steps(η)} in integers with total 2^bits.

    ``steps`` is :meth:`Group.steps_from_zero` of M, or a translate of it. Elements with -1 steps
    get no mass. The pmf is feasible for ``ratio``; around zero its error rate is within
    size·2^-bits of the least possible for that ratio.
    """
    return Pmf.of(group, _weights(steps, ratio, 2**bits))


def mixture_pmf(group: Group, steps: Codes, ratio: Fraction, delta: Fraction, bits: int) -> Pmf:
    """δ on zero and 1-δ on the pure pmf, in integers; the excess over ``ratio`` is at most δ."""
    total = 2**bits
    # Rounded down, so the excess at zero stays at most δ.
    published_truth = int(delta * total)
    weights = _weights(steps, ratio, total - published_truth)
    weights[0] += published_truth
    return Pmf.of(group, weights)


def _weights(steps: Codes, ratio: Fraction, total: int) -> list[int]:
    """Integer weights by levels, a, ⌈a/ratio⌉, ⌈⌈a/ratio⌉/ratio⌉, …, that add up to ``total``."""
    depth = int(steps.max())
    counts = np.bincount(steps[steps >= 0], minlength=depth + 1).tolist()

    def sum_from(mode: int) -> int:
        return dot(counts, falling(mode, depth, ratio))

    # Invariant of the bisection: sum_from(low) < total ≤ sum_from(mode).
    low, mode = 0, total
    while low + 1 < mode:
        middle = (low + mode) // 2
        low, mode = (middle, mode) if sum_from(middle) < total else (low, middle)
    rungs = falling(mode, depth, ratio)
    by_level = np.array([*rungs, 0], dtype=object)  # level -1, unreachable, takes the last: 0
    weights: list[int] = by_level[steps].tolist()
    # The surplus is below one unit an element; the constraints of the mode have the most room.
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


def level_sum(steps: Codes, epsilon: Fraction, rounding: str) -> Fraction:
    """S = Σ e^{-ε·steps(η)} over the reachable η, or a little less (or more) as ``rounding``."""
    low, high = exp_bounds(epsilon)
    context = Context(prec=_PRECISION, rounding=rounding, Emin=-999999)
    # The divisor is rounded the other way: a larger one makes the sum smaller.
    ratio, opposite = (high, ROUND_CEILING) if rounding == ROUND_FLOOR else (low, ROUND_FLOOR)
    divisor = Context(prec=_PRECISION, rounding=opposite).divide(
        Decimal(ratio.numerator), Decimal(ratio.denominator)
    )
    term, total = Decimal(1), Decimal(0)
    for count in np.bincount(steps[steps >= 0]).tolist():
        total = context.fma(term, Decimal(count), total)
        term = context.divide(term, divisor)
    return Fraction(total)


def highest_mode(steps: Codes, epsilon: Fraction, delta: Fraction) -> Fraction:
    """An upper bound of f(0) for pure (δ = 0) and approximate guarantees: δ + (1-δ)/S."""
    return delta + (1 - delta) / level_sum(steps, epsilon, ROUND_FLOOR)


def delta_buys_nothing(steps: Codes, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the pure pmf is optimal for the probabilistic guarantee (ε, δ) and the error rate."""
    depth = int(steps.max())
    if depth == 0:
        return True
    # A pmf at least as good has f(0) ≥ 1/S. While e^{-εk}/S > δ, no constraint from an element k
    # steps out may be given up, so elements k+1 steps out have at least e^{-ε(k+1)}/S. If this
    # holds to the last but one level, every chain of the pure proof stands: f(0) ≤ 1/S (2.3).
    _, high_ratio = exp_bounds(epsilon)
    context = Context(prec=_PRECISION, rounding=ROUND_FLOOR, Emin=-999999)
    upward = Context(prec=_PRECISION, rounding=ROUND_CEILING)
    ratio = upward.divide(Decimal(high_ratio.numerator), Decimal(high_ratio.denominator))
    decay = context.power(context.divide(Decimal(1), ratio), depth - 1)
    # Decimal powers are within one unit in the last place but not directed; give one unit away.
    return Fraction(context.next_minus(decay)) / level_sum(steps, epsilon, ROUND_CEILING) > delta


def staircase(sensitivity: Sensitivity, loss: Loss, epsilon: Fraction) -> Staircase | None:
    """The optimal levels for pure guarantees, intervals M and growing costs (2.5); else None.

    M is ±{1..m} with even costs that do not fall with the circular distance, or it is directed,
    {1..m}, with costs that do not fall on 0..n. Takes time O(size).
    """
    group = sensitivity.group
    width, signed = group.interval(sensitivity.shifts)
    if not width:
        return None
    if len(sensitivity.shifts) == group.size - 1 and loss.numerators[1] != loss.numerators[-1]:
        # M = everything is an interval both ways; the costs decide which.
        width, signed = group.size - 1, False
    noise = np.arange(group.size, dtype=np.int64)
    distance = np.minimum(noise, group.size - noise) if signed else noise
    by_distance = np.zeros(int(distance.max()) + 1, dtype=np.int64)
    by_distance[distance] = loss.numerators
    grows = bool((np.diff(by_distance) >= 0).all())
    if not grows or not np.array_equal(by_distance[distance], loss.numerators):
        return None
    counts = np.bincount(distance).tolist()
    costs = [cost * count for cost, count in zip(by_distance.tolist(), counts, strict=False)]
    # Each candidate is a lower bound: costs with powers rounded down over masses rounded up.
    low, high = _powers(epsilon, by_distance.size // width + 2)
    losses = [
        Fraction(_by_steps(costs, first, width, low), _by_steps(counts, first, width, high))
        for first in range(1, width + 1)
    ]
    best = min(range(width), key=lambda place: losses[place])
    levels = np.maximum(0, -(-(distance - best) // width))
    return Staircase(levels, losses[best] / loss.denominator)


@dataclass(frozen=True)
class Staircase:
    """Levels of all elements, and a lower bound of the expected cost of every pure pmf."""

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
