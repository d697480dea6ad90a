"""Two-sided geometric noise: pure ε, split over few tables.

Noise with ratio e^-ε on a cell has the variance 2α/(1 - α)², α = e^-ε, so its precision is
cosh ε - 1. The ε of the tables add up, each as often as a unit moves a cell of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from release.exact.statistics.mechanism import least_ratio
from release.exact.statistics.sums import geometric_noise
from release.tabulations.strategy.measured import Strategy, errors_of
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Floats, Table
from release.tabulations.strategy.supports import best_split

FOUND_UNITS, PINNED_UNITS = 10**3, 10**6
"""Shares that are found are multiples of one thousandth: the last digits of a search in floats may
differ between machines, and make no difference to errors. Pinned ones are of one millionth."""


def geometric_precisions(epsilons: Floats) -> tuple[Floats, Floats]:
    """Return the precision of geometric noise of each ε, and its derivative."""
    # cosh ε - 1 without the digits that the subtraction would lose.
    return 2 * np.sinh(epsilons / 2) ** 2, np.sinh(epsilons)


def geometric_strategy(
    objective: Objective, epsilon: Fraction, shares: Mapping[Table, float] | None = None
) -> Strategy:
    """Return the best strategy that is found, or the one with the given shares of ``epsilon``.

    Args:
        objective: the publication's.
        epsilon: the pure ε of all tables together, above 0.
        shares: of each table, above 0; None to search.

    Raises:
        ValueError: an ε too small for noise of 62 bits.
    """
    publication = objective.publication
    units = PINNED_UNITS
    if shares is None:
        shares = best_split(objective, float(epsilon), geometric_precisions).shares
        units = FOUND_UNITS
    costs = split_exactly(shares, epsilon, units)
    noises = {}
    for table, cost in costs.items():
        noises[table] = geometric_noise(least_ratio(cost / publication.moves[table], 1))
    value, errors = errors_of(objective, noises)
    return Strategy(
        family="geometric",
        noises=noises,
        exact=publication.exact,
        costs=costs,
        epsilon=sum(costs.values(), Fraction(0)),
        delta=Fraction(0),
        objective=value,
        errors=errors,
        gap=None,
    )


def split_exactly(
    shares: Mapping[Table, float], epsilon: Fraction, parts: int
) -> dict[Table, Fraction]:
    """Return ε for each table, in proportion to its share and together exactly ``epsilon``.

    Every table gets one of so many ``parts`` or more; the largest takes what rounding leaves.
    """
    total = sum(shares.values())
    units = {}
    for table in sorted(shares):
        units[table] = max(1, round(parts * shares[table] / total))
    largest = max(units, key=lambda table: units[table])
    units[largest] += parts - sum(units.values())
    return {table: epsilon * Fraction(count, parts) for table, count in units.items()}
