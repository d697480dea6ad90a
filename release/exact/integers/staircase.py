"""The noise of least expected loss on the integers for pure guarantees: staircases.

For neighbors up to m apart and a loss that grows with the error, the masses are level up to r - 1
and fall by e^ε at r, r + m, r + 2m, …; the best r of 1..m is optimal among all noise on the
integers (Geng and Viswanath 2016, the discrete case; docs/design/mathematics.md T2). For m = 1 it
is the two-sided geometric noise, which has the least noise of all in every sense (T1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from release.exact.bounds import lattice, least_loss, lower_bound
from release.exact.integers.noise import MOST_BITS, RATIO_ONE, IntegerNoise, Run, Tail
from release.exact.numbers import exp_below_any_verifier, exp_bounds

_FINE = Fraction(1, 2)
"""How many units of the top the ratio has to tell apart."""

_COARSE = 2**32
"""Steps of fewer units are rounded up: one unit more is too large a share of them."""

_MOST_SPREAD = 64
"""Noise on every g-th integer alone is a run for each, so a step is at most this long."""


@dataclass(frozen=True)
class Staircase:
    """The best staircase, its expected loss, and the least that any noise with its guarantee has.

    The bound is 0 where the distances of neighbors have gaps.
    """

    noise: IntegerNoise
    loss: Fraction
    lower_bound: Fraction


def staircase(steps: Sequence[int], epsilon: Fraction, power: int) -> Staircase:
    """The staircase of least E|η|^``power`` for neighbors ``steps`` apart.

    Raises:
        ValueError: ε is not in [10⁻⁹, 100].
    """
    if not Fraction(1, 10**9) <= epsilon <= 100:
        raise ValueError("epsilon must be at least 10^-9 and at most 100")
    spacing, most = lattice(steps)
    if spacing * most > _MOST_SPREAD:
        spacing, most = 1, steps[-1]
    below, above = exp_below_any_verifier(epsilon), exp_bounds(epsilon)[1]
    noise = _integers(least_loss(most, above, power)[0], most, below, spacing)
    loss = noise.moment(power)
    return Staircase(noise, loss, min(loss, lower_bound(steps, epsilon, Fraction(0), power)))


def mixture(noise: IntegerNoise, delta: Fraction) -> IntegerNoise:
    """The noise with chance 1 - ``delta``, else none: of approximate guarantees, the fewest errors.

    Every weight but that of 0 is rounded up, so that δ stays within ``delta``.
    """
    half: list[Run] = []
    share = 1 - delta
    for length, weight in right_half(noise)[1:]:
        half.append((length, -(-weight * share.numerator // share.denominator)))
    top = noise.total - 2 * sum(length * weight for length, weight in half)
    return IntegerNoise.symmetric([(1, top), *half], noise.right)


def right_half(noise: IntegerNoise) -> list[Run]:
    """The runs of symmetric noise from 0 on, that of 0 by itself."""
    start, half = noise.low, []
    for length, weight in noise.runs:
        stop = start + length
        if start <= 0 < stop:
            half += [(1, weight), (stop - 1, weight)] if stop > 1 else [(1, weight)]
        elif start > 0:
            half.append((length, weight))
        start = stop
    return half


def _integers(rise: int, most: int, ratio: Fraction, spacing: int) -> IntegerNoise:
    """The staircase in integer weights, a little wider than exact where rounding needs it."""
    total, level = 1 << MOST_BITS, 2 * rise - 1
    # What rounding leaves over goes to the first step, which must then still fall by the ratio.
    spare = Fraction(16 * most, total) if rise > 1 else Fraction(0)
    fall = min(Fraction(RATIO_ONE - 1, RATIO_ONE), (1 + spare) / ratio)
    tail = min(RATIO_ONE - 1, -(-fall.numerator * RATIO_ONE // fall.denominator))
    exact = total / (level * ratio * (1 - Fraction(tail, RATIO_ONE)) + 2 * most)
    step = -(-exact.numerator // exact.denominator)
    top = (total - 2 * most * step) // level
    if step > _COARSE:
        # Many units: the top is what the first step allows, and the steps take the rest. A step
        # rounded up would take more from the top than a small ε allows.
        step -= 1
        highest = step * ratio * (1 - Fraction(tail, RATIO_ONE))
        top = min(highest.numerator // highest.denominator, (total - 2 * most * step) // level)
    rest = total - level * top - 2 * most * step
    if top * (ratio - 1) < _FINE:
        raise ValueError("epsilon is too small, or neighbors are too far apart, for 62 bits")
    if rest % 2:
        # One less on the odd number of integers at the top leaves an even rest for both sides.
        top, rest = top - 1, rest + level
    more, near = divmod(rest // 2, most)
    step += more
    half: list[Run] = [(rise, top)]
    half += [(near, step + 1)] if near else []
    half += [(most - near, step)]
    if spacing > 1:
        half = _spread(half, spacing)
    return IntegerNoise.symmetric(half, Tail(most * spacing, tail))


def _spread(half: Sequence[Run], spacing: int) -> list[Run]:
    """The runs with ``spacing`` - 1 zeros before each integer but 0."""
    spread: list[Run] = []
    for length, weight in half:
        spread += [(spacing - 1, 0), (1, weight)] * length
    return spread[1:]
