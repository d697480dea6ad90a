"""The composition of several loss distributions on one grid, each as often as it occurs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from fractions import Fraction
from itertools import count

from release.exact.composition.distribution import LossDistribution, of_charge


def together(parts: Iterable[tuple[LossDistribution, int]]) -> LossDistribution:
    """Return the distribution of the sum of independent losses, rounded upward.

    Args:
        parts: distributions on one grid, and how often each occurs, at least once. Their order
            does not change what is proved.

    Raises:
        ValueError: their grids differ.
    """
    # Parts of one length are taken in the order given: the heap cannot compare distributions.
    order = count()
    waiting: list[tuple[int, int, LossDistribution]] = []
    for part, times in parts:
        whole = part.repeated(times)
        heapq.heappush(waiting, (len(whole.masses), next(order), whole))
    if not waiting:
        return of_charge(Fraction(0), Fraction(0), Fraction(1))
    # The two shortest first: each mass then takes part in few products.
    while len(waiting) > 1:
        first, second = heapq.heappop(waiting)[2], heapq.heappop(waiting)[2]
        both = first.composed(second)
        heapq.heappush(waiting, (len(both.masses), next(order), both))
    return waiting[0][2]
