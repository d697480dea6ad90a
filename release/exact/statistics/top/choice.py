"""Which of the three mechanisms publishes the k commonest, from declared sizes only.

The choice is published, so it may not depend on the table. It decides how well members are found
and nothing about the guarantee: each mechanism is fitted to all of ε. Figures are in section 6 of
docs/design/top-k.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

from release.exact.statistics.top.bounds import CountBounds, check_members
from release.exact.statistics.top.canonical import CanonicalTop
from release.exact.statistics.top.histogram import HistogramTop
from release.exact.statistics.top.peeled import PeeledTop

_EULER = 0.5772
"""H - ln K, for many categories."""


def best_top(epsilon: Fraction, bounds: CountBounds, members: int, total: int | None = None) -> str:
    """The family to use for ``members`` of the categories at ε.

    ``total`` is the sum of all counts of a cell, declared by order of magnitude. Without it the
    counts are taken to be large.

    Raises:
        ValueError: no category or all of them are published.
    """
    check_members(bounds, members)
    # Selections share the charge, whereas a histogram pays for every count that a unit moves.
    is_histogram_narrow = bounds.norm <= bounds.range_of_losses(members)
    if members > 2 and not is_histogram_narrow and _is_strong(epsilon, bounds, members, total):
        return CanonicalTop.family
    if bounds.norm < members * bounds.range_of_counts:
        return HistogramTop.family
    return PeeledTop.family


def _is_strong(epsilon: Fraction, bounds: CountBounds, members: int, total: int | None) -> bool:
    """Whether counts are so large that a draw from all sets seldom goes astray.

    By Zipf's law the last member's count is total/(k·H), with H = 1 + 1/2 + … + 1/K. That is about
    what a bad set loses; all bad sets together outweigh the best one unless ε·loss/range is in the
    order of ln C(K, k). Both factors were measured: the first against peeling, the second against
    a histogram, which is the harder to beat where units touch few categories.
    """
    if total is None:
        return True
    last_count = total / (members * (math.log(bounds.categories) + _EULER))
    sets = math.log(math.comb(bounds.categories, members))
    signal = float(epsilon) * last_count / (bounds.range_of_losses(members) * sets)
    return signal >= max(1 / 4 + 1 / members, 2 / bounds.touched)
