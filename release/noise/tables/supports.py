"""The best set of tables to measure: a local search where more tables are not always better.

Under pure ε each table costs, and its precision grows like ε² at first. So a strategy of few tables
is best, and the objective has many local minima. The search starts with detail on some set of
levels, and adds, drops and swaps tables until nothing is better. What it finds is the *best found*:
no bound of the least objective is known that is worth printing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np

from release.noise.tables.estimable import Estimability
from release.noise.tables.objective import Objective
from release.noise.tables.publication import Floats, Publication, Table
from release.noise.tables.simplex import least_on_simplex

Support: TypeAlias = frozenset[Table]

PrecisionOf: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""From the ε of tables to the precision of noise on a cell of each, and its derivative."""

MOST_CANDIDATES = 24
"""So many tables are tried as additions at a time, those first that promise most."""

_BETTER = 1e-5
"""A support replaces another one if its objective is lower by this part."""

_STARTS = 3


@dataclass(frozen=True)
class Split:
    """How a budget is split over tables.

    Attributes:
        objective: the objective, in floats.
        shares: the part of the budget that each measured table takes, above 0; they add up to 1.
    """

    objective: float
    shares: dict[Table, float]


@dataclass(eq=False)
class SupportSearch:
    """Splits of ``budget`` over sets of tables, where budgets add up and moves multiply them."""

    objective: Objective
    budget: float
    precision_of: PrecisionOf
    _splits: dict[Support, Split] = field(default_factory=dict)

    @property
    def publication(self) -> Publication:
        """What is published."""
        return self.objective.publication

    def split(self, support: Support, start: dict[Table, float] | None = None) -> Split:
        """Return the best split over a set of tables that is found from ``start``."""
        if support not in self._splits:
            tables = sorted(support)
            begin = start or {}
            first = np.array([max(begin.get(table, 0.0), 0.5 / len(tables)) for table in tables])
            value, shares = least_on_simplex(self._function(tables), first / first.sum())
            shared = dict(zip(tables, shares.tolist(), strict=True))
            self._splits[support] = Split(value, shared)
        return self._splits[support]

    def precisions(self, shares: dict[Table, float]) -> Floats:
        """The precision of each table; shape (levels, margins)."""
        precisions = np.zeros(self.publication.shares.shape)
        for table, share in shares.items():
            epsilon = np.array([share * self.budget / self.publication.moves[table]])
            precisions[table] = self.precision_of(epsilon)[0][0]
        return precisions

    def _function(self, tables: list[Table]) -> Callable[[Floats], tuple[float, Floats]]:
        places = tuple(np.array(axis) for axis in zip(*tables, strict=True))
        unit = self.budget / np.array([self.publication.moves[table] for table in tables])
        precisions = np.zeros(self.publication.shares.shape)

        def value(shares: Floats) -> tuple[float, Floats]:
            precisions[places], slopes = self.precision_of(shares * unit)
            total, gradient = self.objective.with_gradient(precisions)
            return total, gradient[places] * slopes * unit

        return value

    def best(self) -> Split:
        """Return the best split that is found over all sets of tables."""
        estimability = Estimability(self.publication)
        starts = [s for s in starting_supports(self.publication) if estimability.allows(s)]
        ranked = sorted((self.split(support) for support in starts), key=lambda s: s.objective)
        found = []
        for start in ranked[:_STARTS]:
            found.append(self._improved(start, estimability))
        return min(found, key=lambda split: split.objective)

    def _improved(self, split: Split, estimability: Estimability) -> Split:
        """The end of the steps that lower the objective most, one table more, less or other."""
        while True:
            around = []
            for support in self._neighbors(split):
                if estimability.allows(support):
                    around.append(self.split(support, split.shares))
            best = min(around, key=lambda other: other.objective, default=split)
            if best.objective >= split.objective * (1 - _BETTER):
                return split
            split = best

    def _neighbors(self, split: Split) -> Iterator[Support]:
        support = frozenset(split.shares)
        others = self._additions(split)
        for table in sorted(support):
            yield support - {table}
        for other in others:
            yield support | {other}
            for table in sorted(support):
                yield support - {table} | {other}

    def _additions(self, split: Split) -> list[Table]:
        """The tables outside a support, those first that lower the objective most."""
        gradient = self.objective.with_gradient(self.precisions(split.shares))[1]
        moves = self.publication.moves
        others = [t for t in self.publication.tables if moves[t] and t not in split.shares]
        return sorted(others, key=lambda t: gradient[t] * moves[t] ** -2)[:MOST_CANDIDATES]


def starting_supports(publication: Publication) -> list[Support]:
    """Detail on every set of levels: the margins of a level that no other of its margins refines."""
    tables = []
    for level in range(len(publication.areas.levels)):
        own = [m for at, m in publication.importance if at == level]
        tables.append([(level, m) for m in _finest(publication, own or range(0))])
    everywhere = _finest(publication, sorted({m for _, m in publication.importance}))
    supports = []
    levels = range(len(tables))
    for count in range(1, len(tables) + 1):
        for chosen in combinations(levels, count):
            supports.append([(level, m) for level in chosen for m in everywhere])
            supports.append([table for level in chosen for table in tables[level]])
    distinct = []
    for support in supports:
        paid = frozenset(table for table in support if publication.moves[table])
        if paid and paid not in distinct:
            distinct.append(paid)
    return distinct


def _finest(publication: Publication, margins: object) -> list[int]:
    places = list(margins)  # type: ignore[call-overload]
    finest = []
    for place in places:
        own = publication.margins[place]
        above = [o for o in places if o != place and publication.margins[o].refines(own)]
        # Of margins that refine each other, which are equal, the first stays.
        if all(own.refines(publication.margins[o]) and o > place for o in above):
            finest.append(place)
    return finest
