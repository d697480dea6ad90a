"""Noise with masses in proportion to exp(-(|η|/t)^p): between the geometric and the Gaussian.

p = 1 is two-sided geometric noise, p = 2 the discrete Gaussian. The more queries share a budget,
the larger is the best p. The weights are calculated in decimals of so many digits that every
machine finds the same integers. What is published are these integers, and every guarantee is
proved from them, never from the formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from release.exact.integers.noise import MOST_BITS, RATIO_ONE, IntegerNoise, Run, Tail
from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise

FEW_HALF, MOST_HALF = 2000, 14_000
"""Runs of weights on one side of 0: so many without a need, and so many at most."""

REACH, LEAST_REACH = 12, 4
"""(|η|/t)^p at the end of the window, and where that takes too many runs.

A geometric tail takes over, so that no loss is infinite. It costs less than 10⁻⁶ of the variance
beyond 12, and less than two thousandths beyond 4.
"""

_DIGITS = 40


@dataclass(frozen=True)
class Shape:
    """The parameters of a noise distribution.

    Attributes:
        power: p, from 1 to 2.
        scale: t, above 0, in answer codes.
        block: so many integers in a row have the same weight; odd, and 1 where ``power`` is 1.
    """

    power: Fraction
    scale: Fraction
    block: int = 1

    @property
    def steps(self) -> int:
        """How many blocks lie on one side of 0 before the tail begins."""
        return min(self._steps(REACH), max(FEW_HALF, self._steps(LEAST_REACH)))

    @property
    def widest(self) -> int:
        """How many there are where no number of runs is too large."""
        return self._steps(REACH)

    def _steps(self, reach: int) -> int:
        root = Context(prec=_DIGITS).power(Decimal(reach), _decimal(1 / self.power))
        return max(1, int(Fraction(root) * self.scale / self.block))

    def noise(self) -> IntegerNoise:
        """Return the noise in integers.

        Raises:
            ValueError: as :func:`exponential_power`.
        """
        return exponential_power(self.scale, self.power, self.block)


def exponential_power(scale: Fraction, power: Fraction, block: int = 1) -> IntegerNoise:
    """Return noise on the integers with masses about in proportion to exp(-(|η|/t)^p).

    It is symmetric and unimodal. For p > 1 a window ends where (|η|/t)^p is 12, or less for wide
    noise; from there on a geometric tail goes on with the last ratio.

    Args:
        scale: t, above 0.
        power: p, from 1 to 2.
        block: an odd number of integers in a row share a weight; neighbors much further apart than
            that hardly notice, and the window has fewer runs.

    Raises:
        ValueError: a power outside [1, 2], a block that is not odd, a scale for which 62 bits or
            14,000 runs a side are not enough.
    """
    if not (1 <= power <= 2 and scale > 0 and block >= 1 and block % 2):
        raise ValueError("noise needs a power from 1 to 2, a scale above 0 and an odd block")
    if power == 1:
        return geometric_noise(least_ratio(1 / scale, 1))
    steps = Shape(power, scale, block).steps
    if steps > MOST_HALF:
        raise ValueError(f"the scale is too large for {MOST_HALF} runs of weights a side")
    return _of_masses(_masses(scale, power, block, steps), block)


def _masses(scale: Fraction, power: Fraction, block: int, steps: int) -> list[int]:
    """exp(-(|η|/t)^p) at the middle of each block from 0 to ``steps``, in units of 10^-40."""
    # Decimal rounds its powers and exponentials as a standard says; the machine's floats do not.
    context = Context(prec=_DIGITS)
    unit, exponent = _decimal(block / scale), _decimal(power)
    masses = [10**_DIGITS]
    for place in range(1, steps + 1):
        distance = context.multiply(unit, Decimal(place))
        mass = context.exp(-context.power(distance, exponent))
        masses.append(int(mass.scaleb(_DIGITS, context)))
    return masses


def _of_masses(masses: Sequence[int], block: int) -> IntegerNoise:
    """The integer weights of blocks, the last one with a tail that repeats it."""
    # Never 0 or 1: without a tail a loss would be infinite, and with 1 it would have no end.
    ratio = max(1, min(RATIO_ONE - 1, masses[-1] * RATIO_ONE // masses[-2]))
    # The weight of the last block stands for all that repeat it.
    last = masses[-1] * RATIO_ONE // (RATIO_ONE - ratio)
    sizes = [*masses[:-1], last]
    whole, total = block * (2 * sum(sizes) - sizes[0]), 1 << MOST_BITS
    # A weight of 0 inside the window would make the loss beside it infinite.
    weights = [max(1, size * total // whole) for size in sizes]
    rest = total - block * (2 * sum(weights) - weights[0])
    # The middle takes what rounding leaves: an odd number of integers, of which 0 takes the odd.
    more, odd = divmod(rest, block)
    weights[0] += more
    # Weights raised to 1 come off the middle. Below its neighbor the noise is no longer unimodal,
    # which every comparison of patterns takes for granted.
    if len(weights) > 2 and weights[0] < weights[1]:
        raise ValueError("the scale is too large for noise of 62 bits")
    half: list[Run] = [(1, weights[0] + odd)]
    if block > 1:
        half.append((block // 2, weights[0]))
    half += [(block, weight) for weight in weights[1:]]
    return IntegerNoise.symmetric(half, Tail(block, ratio))


def _decimal(value: Fraction) -> Decimal:
    context = Context(prec=_DIGITS)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
