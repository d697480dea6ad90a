"""Privacy-loss distributions on a grid, in integers, with every rounding upward.

A distribution holds how much of the probability of one table's outputs lies at each privacy loss
ln(P/Q), in whole units of ``1/UNIT``. It stands for the profile

    δ(t) = infinite + Σ over k of masses[k] · (1 - t · e^(-loss k))₊ ,

which it bounds from above: each operation moves mass to a larger loss, splits it around its place
(connect the dots), or rounds it up. So δ read from a composition is never below the exact δ. The
grid is e^(step·k) itself, which is irrational; only its bounds enter, at the end, each in the
direction that makes δ larger. docs/design/mathematics.md, section 2.29, has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, floor

from release.exact.composition.products import product
from release.exact.numbers import MAX_EPSILON, exp_bounds

UNIT = 10**28
"""A mass of 1. The unit is below 2⁻⁹³, so that all roundings together stay far below any δ."""

FOLDED = 10**6
"""The most mass (10⁻²²) that one product moves at either end, to keep the grid short."""

PLACES = 12
"""Decimal places of an ε that is read from a composition."""

_SCALE = 10**40


@dataclass(frozen=True)
class LossDistribution:
    """Masses on a grid of privacy losses.

    Attributes:
        step: distance of two losses of the grid, above 0.
        highest: the privacy loss of ``masses[0]``; that of ``masses[k]`` is lower by ``k * step``.
        masses: masses in units of ``1/UNIT``, at least one; they may add up to slightly over 1.
        infinite: the mass at an infinite loss, in the same units.
    """

    step: Fraction
    highest: Fraction
    masses: tuple[int, ...]
    infinite: int

    def composed(self, other: LossDistribution) -> LossDistribution:
        """Return the distribution of the sum of two independent losses, rounded upward.

        Raises:
            ValueError: the two have different steps.
        """
        if self.step != other.step:
            raise ValueError(f"the grids differ: steps {self.step} and {other.step}")
        finite, other_finite = sum(self.masses), sum(other.masses)
        # A sum of two losses is infinite where either is.
        infinite = self.infinite * (other_finite + other.infinite) + finite * other.infinite
        masses = [_up(mass) for mass in product(self.masses, other.masses)]
        return _folded(self.step, self.highest + other.highest, masses, _up(infinite))

    def repeated(self, times: int) -> LossDistribution:
        """Return the distribution of the sum of ``times`` independent losses, at least one."""
        if times == 1:
            return self
        half = self.repeated(times // 2)
        double = half.composed(half)
        return double.composed(self) if times % 2 else double

    def regridded(self, step: Fraction) -> LossDistribution:
        """Return the losses on the grid of ``step``, each mass split around its place."""
        if self.step == step and (self.highest / step).denominator == 1:
            return self
        highest = ceil(self.highest / step)
        span = highest * step - self.highest + (len(self.masses) - 1) * self.step
        masses = [Fraction(0)] * (int(span / step) + 2)
        distance = highest * step - self.highest
        for mass in self.masses:
            place, rest = divmod(distance, step)
            near, far = _split(rest, step)
            masses[place] += mass * near
            masses[place + 1] += mass * far
            distance += self.step
        return _folded(step, highest * step, list(map(ceil, masses)), self.infinite)

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """Return an upper bound of δ at ``epsilon``, at least 0; exact but for upward rounding."""
        below = self._below()
        count = min(len(self.masses), ceil((self.highest - epsilon) / self.step))
        if count <= 0:
            return Fraction(self.infinite, UNIT)
        # Every summand has a factor e^(epsilon - its loss); the powers of e^-step are taken first.
        total = weighted = 0
        for mass in self.masses[:count]:
            total += mass
            weighted = weighted * below // _SCALE + mass
        nearest = self.highest - (count - 1) * self.step - epsilon
        least = 1 / exp_bounds(nearest)[1] if nearest <= MAX_EPSILON else Fraction(0)
        return min(Fraction(1), (self.infinite + total - least * weighted) / UNIT)

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return the least ε with ``delta_at(ε) <= delta``, rounded up to 12 decimal places.

        Returns None where no ε has so small a δ.
        """
        if self.infinite > delta * UNIT:
            return None
        below = self._below()
        total = weighted = last = 0
        for index, mass in enumerate(self.masses):
            carried = weighted * below // _SCALE
            # δ at the loss of this mass, to which the mass itself adds nothing.
            if self.infinite + total - carried > delta * UNIT:
                break
            total, weighted, last = total + mass, carried + mass, index
        needed = self.infinite + total - delta * UNIT
        if needed <= 0:
            return Fraction(0)
        drop = _ln_below(weighted / needed)
        # Beyond the next loss of the grid its mass counts as well.
        if last + 1 < len(self.masses):
            drop = min(drop, self.step)
        epsilon = max(Fraction(0), self.highest - last * self.step - drop)
        return Fraction(ceil(epsilon * 10**PLACES), 10**PLACES)

    def _below(self) -> int:
        """The greatest integer that is at most ``e^-step`` times the scale, or a lesser one."""
        return floor(_SCALE / exp_bounds(self.step)[1]) if self.step <= MAX_EPSILON else 0


def of_charge(epsilon: Fraction, delta: Fraction, step: Fraction) -> LossDistribution:
    """Return the worst case of all mechanisms that are (``epsilon``, ``delta``)-private.

    Two atoms and an infinite loss: randomised response that fails with probability δ. The larger
    loss, ε, lies on the grid. The other one, -ε, lies on it where ``step`` divides 2ε; elsewhere
    its mass is split.

    Args:
        epsilon: at least 0.
        delta: at least 0; 1 and more mean no privacy.
        step: the grid's, above 0.

    Source: Kairouz, Oh and Viswanath 2015, Theorem 3.3.
    """
    intact = max(Fraction(0), 1 - delta) * UNIT
    low, high = exp_bounds(min(epsilon, Fraction(MAX_EPSILON)))
    # E/(1 + E) grows with E and 1/(1 + E) falls: each mass takes the bound that makes it larger.
    upper = intact if epsilon > MAX_EPSILON else intact * high / (1 + high)
    lower = intact / (1 + low)
    place, rest = divmod(2 * epsilon, step)
    near, far = _split(rest, step)
    masses = [0] * (place + 2)
    masses[0] = ceil(upper)
    masses[place] += ceil(lower * near)
    masses[place + 1] += ceil(lower * far)
    return _folded(step, epsilon, masses, ceil(min(Fraction(1), delta) * UNIT))


def _split(distance: Fraction, step: Fraction) -> tuple[Fraction, Fraction]:
    """Shares, rounded upward, of an atom that lies ``distance`` below a loss of the grid.

    The first goes to that loss and the second to the one below it, such that P and Q keep their
    sums. Where no bound is to be had, all of it goes to the larger loss.
    """
    if distance == 0:
        return Fraction(1), Fraction(0)
    if step > MAX_EPSILON or exp_bounds(step)[0] == 1:
        return Fraction(1), Fraction(0)
    (low, high), (step_low, step_high) = exp_bounds(distance), exp_bounds(step)
    far = min(Fraction(1), (high - 1) / (step_low - 1))
    return 1 - (low - 1) / (step_high - 1), far


def _folded(
    step: Fraction, highest: Fraction, masses: list[int], infinite: int
) -> LossDistribution:
    """Move small masses upward: those at the top to infinity, those at the bottom to the last."""
    # Mass may only move to larger losses: δ then rises, and the bound stays one.
    start, top = 0, 0
    while start + 1 < len(masses) and top + masses[start] <= FOLDED:
        top += masses[start]
        start += 1
    end, bottom = len(masses), 0
    while end - 1 > start and bottom + masses[end - 1] <= FOLDED:
        end -= 1
        bottom += masses[end]
    masses[end - 1] += bottom
    return LossDistribution(step, highest - start * step, tuple(masses[start:end]), infinite + top)


def _up(value: int) -> int:
    return -(-value // UNIT)


def _ln_below(ratio: Fraction) -> Fraction:
    """A rational at most ln of ``ratio``, which is at least 1, and within 10^-45 of it."""
    context = Context(prec=60, rounding=ROUND_FLOOR)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # ``ln`` rounds correctly: one unit in its last place makes it a lower bound.
    return max(Fraction(0), Fraction(context.next_minus(context.ln(quotient))))
