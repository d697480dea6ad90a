"""An exact Rényi filter: moments of the privacy loss at one integer order, in rationals.

Mechanisms may be chosen as one goes, each from all earlier outputs. The product of their moments
is bounded in advance, and from that bound follows δ at one ε. docs/design/mathematics.md, section
2.32, has the proofs. Every rounding is upward.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import ceil

from release.exact.composition.distribution import PLACES, UNIT, LossDistribution
from release.exact.numbers import MAX_EPSILON, exp_below_any_verifier, exp_bounds

HIGHEST_ORDER = 256
"""The largest order α of a filter: a larger one is of use only for an ε below 0.001."""

MOMENT_PLACES = 30
"""Decimal places of a moment, a cut, and a product of moments; each is rounded up."""

_SCALE = 10**40

_BELOW = Fraction(HIGHEST_ORDER, 10**29)
"""More than (α-1)·ln of e^ε over the rational below it that :func:`certified` takes."""


@dataclass(frozen=True)
class Moment:
    """What one mechanism takes from a filter.

    Attributes:
        value: a bound of Σ p^α·q^(1-α) over both orders of all neighbors, at least 1.
        cut: the probability of the outputs that ``value`` leaves out.
    """

    value: Fraction
    cut: Fraction


def moment(losses: LossDistribution, order: int) -> Moment:
    """Return what a mechanism takes from a filter whose profile is at most that of ``losses``.

    Σ of masses·e^((α-1)·loss), rounded up. The mass at an infinite loss, and losses above 100,
    are cut. So is what the rounded masses have more than 1 in all.

    Args:
        losses: its profile bounds that of the mechanism in both orders of the neighbors.
        order: α, an integer of at least 2.

    Raises:
        ValueError: another order.
    """
    _check_order(order)
    masses, highest, cut = list(losses.masses), losses.highest, losses.infinite
    while masses and highest > MAX_EPSILON:
        cut += masses.pop(0)
        highest -= losses.step
    # The proof of the filter needs masses of at most 1 in all: what rounding up added is cut too.
    cut += max(0, cut + sum(masses) - UNIT)
    near = 1 / exp_bounds(min(losses.step, Fraction(MAX_EPSILON)))[0]
    below = ceil(near ** (order - 1) * _SCALE)
    weighted = 0
    # From the least loss upwards, so that each factor e^-((α-1)·step) is below 1.
    for mass in reversed(masses):
        weighted = -(-weighted * below // _SCALE) + mass * _SCALE
    value = Fraction(weighted, _SCALE * UNIT)
    if masses:
        value *= _power_above(highest, order - 1)
    return Moment(max(Fraction(1), _up(value)), min(Fraction(1), _up(Fraction(cut, UNIT))))


def product_above(product: Fraction, value: Fraction) -> Fraction:
    """Return the product of two moments, rounded up so that its digits do not grow."""
    return _up(product * value)


def certified(product: Fraction, order: int, epsilon: Fraction) -> Fraction:
    """Return δ at ``epsilon`` of all mechanisms whose moments have at most this product.

    c·product with c = (α-1)^(α-1)/(α^α·t^(α-1)), t a rational below e^ε. Cuts are added to it.
    """
    _check_order(order)
    # δ falls as t grows: with this t no verifier's own bound of e^ε finds a larger one.
    threshold = exp_below_any_verifier(epsilon)
    return product * _constant(order) / threshold ** (order - 1)


def most_moments(order: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest product of moments with ``certified(product) <= delta``."""
    _check_order(order)
    return delta / _constant(order) * exp_below_any_verifier(epsilon) ** (order - 1)


def certified_epsilon(product: Fraction, order: int, delta: Fraction) -> Fraction:
    """Return an ε with ``certified(product, order, ε) <= delta``, rounded up to 12 places.

    Args:
        product: a bound of the product of the moments.
        order: α.
        delta: above 0.
    """
    _check_order(order)
    ratio = product * _constant(order) / delta
    if ratio <= 1:
        return Fraction(0)
    context = Context(prec=60, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # ``ln`` rounds correctly: one unit in its last place makes it an upper bound.
    logarithm = Fraction(context.next_plus(context.ln(quotient))) + _BELOW
    return Fraction(ceil(logarithm / (order - 1) * 10**PLACES), 10**PLACES)


def _constant(order: int) -> Fraction:
    """The largest value of (1 - 1/x)·x^(1-α), attained at x = α/(α-1)."""
    return Fraction((order - 1) ** (order - 1), order**order)


def _power_above(loss: Fraction, times: int) -> Fraction:
    """A rational at least e^(loss·times); ``loss`` is at most 100 and may be negative."""
    if loss >= 0:
        return exp_bounds(loss)[1] ** times
    return 1 / exp_bounds(min(-loss, Fraction(MAX_EPSILON)))[0] ** times


def _check_order(order: int) -> None:
    if not 2 <= order <= HIGHEST_ORDER:
        raise ValueError(f"the order of a filter is an integer from 2 to {HIGHEST_ORDER}")


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * 10**MOMENT_PLACES), 10**MOMENT_PLACES)
