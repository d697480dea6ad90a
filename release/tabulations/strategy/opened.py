"""A tabulation as what a strategy is chosen for, and a strategy as the tables of a tabulation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

from release.spec.declarations import Relation
from release.tabulations.spec.opened import NamedMargin, OpenTabulation, Table
from release.tabulations.strategy.measured import Strategy
from release.tabulations.strategy.publication import Publication
from release.tabulations.strategy.publication import Table as Place


def publication_of(opened: OpenTabulation, neighbors: Relation) -> Publication:
    """What the strategy of a tabulation is chosen for."""
    margins = opened.distinct
    importance: dict[Place, float] = defaultdict(float)
    for opened_margin in opened.published:
        weight = opened.declared.importance.get(opened.levels[opened_margin.level], Fraction(1))
        # A margin that a level publishes by two names counts twice, as in the objective.
        importance[opened_margin.level, margins.index(opened_margin.margin)] += float(weight)
    moves = {}
    for (level, margin), most in opened.moves(neighbors is Relation.REPLACE_ONE):
        moves[level, margins.index(margin)] = most
    return Publication(opened.named.areas, margins, importance, moves)


def margins_of_error(
    opened: OpenTabulation, publication: Publication, strategy: Strategy
) -> dict[Table, float]:
    """The mean half width of the 95 % intervals of each published table, in units."""
    noises = {}
    for (level, margin), noise in strategy.noises.items():
        noises[level, publication.margins[margin]] = noise
    return {table: own.mean() for table, own in opened.half_widths(noises).items()}


def named(opened: OpenTabulation, place: Place) -> NamedMargin:
    """The table at a place of the publication."""
    level, margin = place
    return replace(opened.margins[margin], level=level)
