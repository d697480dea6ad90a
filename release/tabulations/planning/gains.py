"""What a tabulation gains where one of its published tables is left out.

Each published table takes its part of the budget: the strategy has to serve it too. The strategy is
searched once more without it, so that a curator sees what each table costs all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from release.noise.processes import FanOut, Refused
from release.tabulations.strategy.measured import Family, Strategy
from release.tabulations.strategy.publication import Publication, Table
from release.tabulations.strategy.strategy import choose_strategy

MOST_TABLES, MOST_WITH_DELTA = 18, 6
"""Levels times margins up to which gains are found without being asked for.

A search takes a third of a second; with δ some seconds, as Gaussian noise is accounted for exactly.
"""


@dataclass(frozen=True, eq=False)
class Search:
    """A search for the best strategy of a publication.

    Attributes:
        publication: what is published.
        epsilon: of all tables together.
        delta: 0 for pure noise only.
        family: the only noise to consider; None for both.
    """

    publication: Publication
    epsilon: Fraction
    delta: Fraction
    family: Family | None


def gains(search: Search, strategy: Strategy, fan_out: FanOut) -> dict[Table, float]:
    """By how much the mean standard error of the other tables falls without each published table.

    A gain below 0 says that the other tables are served by a table that may be measured only as
    long as its margin is published somewhere.

    Args:
        search: that of the whole publication.
        strategy: what it found.
        fan_out: works on one search for each published table.

    Returns:
        For each published table the gain, in units; none for a table whose absence leaves nothing
        to measure.
    """
    published = sorted(search.publication.importance)
    # Without its only table nothing is published, and no strategy can be searched for.
    if len(published) < 2:
        return {}
    searches = []
    for table in published:
        publication = without(search.publication, table)
        searches.append(Search(publication, search.epsilon, search.delta, search.family))
    differences = {}
    for table, least in zip(published, fan_out.map(_least, searches), strict=True):
        if not isinstance(least, Refused):
            # Both are means over the same tables: the one left out is in neither.
            now = _mean_without(search.publication.importance, strategy, table)
            differences[table] = now - least
    return differences


def without(publication: Publication, table: Table) -> Publication:
    """The publication without one of its tables.

    A margin that no level publishes any more is no longer measured either. The levels stay.
    """
    margins = sorted(
        {margin for level, margin in publication.importance if (level, margin) != table}
    )
    # Margins are named by their places, which move up where one is missing.
    importance, moves = {}, {}
    for place, margin in enumerate(margins):
        for level in range(len(publication.areas.levels)):
            moves[level, place] = publication.moves[level, margin]
            if (level, margin) in publication.importance and (level, margin) != table:
                importance[level, place] = publication.importance[level, margin]
    own = tuple(publication.margins[margin] for margin in margins)
    return Publication(publication.areas, own, importance, moves)


def _least(search: Search) -> float:
    choice = choose_strategy(search.publication, search.epsilon, search.delta, search.family)
    return choice.best.objective


def _mean_without(importance: Mapping[Table, float], strategy: Strategy, table: Table) -> float:
    """The mean standard error of the published tables but one, as they are measured now."""
    total = weights = 0.0
    for published, weight in importance.items():
        if published != table:
            total += weight * float(strategy.errors[published])
            weights += weight
    return total / weights
