"""That no noise on the integers with a guarantee loses less than is printed.

Either in closed form, or by multipliers that stand in the file: any prices prove a bound, and good
ones a good one (docs/design/mathematics.md, 2.10).
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from dp_release_verify import forms
from dp_release_verify.asked import LINE_LOSSES
from dp_release_verify.canonical import SCALE, above_e
from dp_release_verify.errors import refuse_unless
from dp_release_verify.mechanisms.integers import Integers
from dp_release_verify.mechanisms.noise import moments

_MOST_WORK = 10**6
_PRICE = 2**80


def check_bound(
    file: str, mechanism: Integers, epsilon: Fraction, delta: Fraction
) -> tuple[Fraction, Fraction] | None:
    """The loss of a mechanism far from the ends, and a proved bound of any; none if none is stated.

    Raises:
        Refused: the stated bound is not proved.
    """
    bound, loss = mechanism.law.bound, mechanism.reach.question.loss
    if bound is None:
        return None
    refuse_unless(loss in LINE_LOSSES, file, "bound", loss, "a loss on the line")
    degree = LINE_LOSSES.index(loss)
    best = closed_bound(mechanism.distances, degree, epsilon, delta)
    if bound.prices is not None:
        priced = priced_bound(file, bound.prices, mechanism.distances, degree, epsilon, delta)
        best = max(best, priced)
    refuse_unless(bound.at_least <= best, file, "bound.at_least", bound.at_least, best)
    return mechanism.noise.moment(degree), bound.at_least


def closed_bound(distances: set[int], degree: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The bound for the distances g, 2g, …, m·g, of the loss |k|^degree; 0 for others."""
    unit = gcd(*distances)
    m = max(distances) // unit
    if len(distances) != m or epsilon == 0 or (delta > 0 and degree > 0):
        return Fraction(0)
    x = Fraction(SCALE, above_e(epsilon))

    def mean_loss(t: int) -> Fraction:
        # Blocks of m integers from t on have the weights x, x², …, on both sides of 0.
        outer = moments(t, t + m - 1, m, x)[degree] * x / (1 - x)
        inner = moments(1, t - 1, m, Fraction(0))[degree]
        return (2 * inner + 2 * outer) / (2 * t - 1 + 2 * m * x / (1 - x))

    # It falls, and then rises: the first t whose next is no better.
    low, high = 1, m
    while low < high:
        middle = (low + high) // 2
        if mean_loss(middle + 1) >= mean_loss(middle):
            high = middle
        else:
            low = middle + 1
    least: Fraction = mean_loss(low) * unit**degree
    if degree == 2 and m > 1:
        # Noise that is centred between two multiples of g can have a smaller sum.
        least -= unit * unit // 4
    return least * (1 - delta)


def priced_bound(
    file: str,
    listed: list[forms.Price],
    distances: set[int],
    degree: int,
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """The bound that multipliers prove."""
    prices = {each.distance: each.prices for each in listed}
    lengths = {len(each) for each in prices.values()}
    right = len(prices) == len(listed) and set(prices) <= distances and len(lengths) == 1
    length = max(lengths)
    refuse_unless(right and length % 2 == 1, file, "bound.prices", sorted(prices), "one length")
    reach = length // 2
    work = (reach + max(prices)) * len(prices)
    refuse_unless(work <= _MOST_WORK, file, "bound.prices", work, f"at most {_MOST_WORK}")
    tops = {s: max(each) for s, each in prices.items()}

    def price(s: int, k: int) -> int:
        return prices[s][k + reach] if abs(k) <= reach else tops[s]

    above = above_e(epsilon)
    least = None
    for k in range(reach + max(prices) + 2):
        cost = k**degree if k else 0
        total = 2 * cost * _PRICE * SCALE
        for s in prices:
            total += SCALE * (price(s, k) + price(s, -k))
            total -= above * (price(s, k - s) + price(s, -k - s))
        least = total if least is None else min(least, total)
    value = Fraction(least or 0, 2 * _PRICE * SCALE)
    return max(value - delta * Fraction(sum(tops.values()), _PRICE), Fraction(0))
