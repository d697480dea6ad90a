"""Which of the three mechanisms publishes the k commonest, from declared sizes only.

The choice is published, so it may not depend on the table. It decides how well members are found
and nothing about the guarantee: each mechanism is fitted to all of ε. Figures are in section 6 of
docs/design/top-k.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from release.exact.statistics.top_bounds import CountBounds, check_members
from release.exact.statistics.top_canonical import CanonicalTop
from release.exact.statistics.top_histogram import NoisyHistogram
from release.exact.statistics.top_peeled import PeeledTop

TopMechanism: TypeAlias = NoisyHistogram | CanonicalTop | PeeledTop


def fitted_top(
    epsilon: Fraction, bounds: CountBounds, members: int, units: int | None = None
) -> TopMechanism:
    """The mechanism to use for ``members`` of the categories, fitted to ε.

    ``units`` is how many units a cell is declared to have, by order of magnitude. Without it
    there are taken to be enough of them.

    Raises:
        ValueError: no category or all of them are published, or ε is too small.
    """
    check_members(bounds, members)
    # Selections share the charge, whereas a histogram pays for every count that a unit moves.
    is_histogram_narrow = bounds.norm <= bounds.range_of_losses(members)
    if members > 2 and not is_histogram_narrow and _is_strong(epsilon, bounds, members, units):
        return CanonicalTop.fitted(epsilon, bounds, members)
    if bounds.norm < members * bounds.range_of_counts:
        return NoisyHistogram.fitted(epsilon, bounds)
    return PeeledTop.fitted(epsilon, bounds, members)


def _is_strong(epsilon: Fraction, bounds: CountBounds, members: int, units: int | None) -> bool:
    """Whether counts are so large that a draw from all sets seldom goes astray.

    A bad set loses about the count of the last member, in the order of units/k. All bad sets
    together outweigh the best one unless ε·units/k is well above the range times ln C(K, k). The
    factors are empirical: a histogram for units that touch few categories is the harder to beat.
    """
    if units is None:
        return True
    sets = math.log(math.comb(bounds.categories, members))
    signal = float(epsilon) * units * bounds.weight / (bounds.range_of_losses(members) * sets)
    return signal >= max(3, members / 2 + 1, 3 * members / bounds.touched)
