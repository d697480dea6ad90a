"""The best set of tables to measure: a local search where more tables are not always better.

Under pure ε each table costs, and its precision grows like ε² at first. So a strategy of few tables
is best, and the objective has many local minima. The search starts with detail on some set of
levels, and adds, drops and swaps tables until nothing is better. What it finds is the *best found*:
no bound of the least objective is known that is worth printing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
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
"""Local searches begin at so many sets of levels, the best ones."""

_SECOND_LOOKS = 16
"""Where no step is better, the best so many supports are split anew from an even start."""

_MOST_IN_PAIRS = 10
"""And of so many tables, those first that promise most, any two are added, one perhaps dropped."""


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

    @cached_property
    def _estimability(self) -> Estimability:
        return Estimability(self.publication)

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
            self._splits[support] = self._minimum(tables, first / first.sum())
        return self._splits[support]

    def _minimum(self, tables: list[Table], start: Floats) -> Split:
        value, shares = least_on_simplex(self._function(tables), start)
        return Split(value, dict(zip(tables, shares.tolist(), strict=True)))

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
        starts = []
        for support in starting_supports(self.publication):
            if self._estimability.allows(support):
                starts.append(self.split(support))
        starts.sort(key=lambda split: split.objective)
        ends = [self._descended(start) for start in starts[:_STARTS]]
        best = min(ends, key=lambda split: split.objective)
        while True:
            wider = self._looked_again(best)
            if not self._is_better(wider, best):
                return best
            best = self._descended(wider)

    def _descended(self, split: Split) -> Split:
        """The end of the steps that lower the objective most, one table more, less or other."""
        while True:
            best = min(self._around(split, self._neighbors(split)), key=lambda s: s.objective)
            if not self._is_better(best, split):
                return split
            split = best

    def _looked_again(self, split: Split) -> Split:
        """The best split further around, the closest ones also from an even start."""
        supports = itertools.chain(self._neighbors(split), self._with_pairs(split))
        around = sorted(self._around(split, supports), key=lambda other: other.objective)
        looks = around[:1]
        for other in around[:_SECOND_LOOKS]:
            tables = sorted(other.shares)
            looks.append(self._minimum(tables, np.full(len(tables), 1 / len(tables))))
        return min(looks, key=lambda other: other.objective)

    def _around(self, split: Split, supports: Iterable[Support]) -> list[Split]:
        """The split itself, and those over other supports that allow every estimate."""
        around = [split]
        for support in supports:
            if self._estimability.allows(support):
                around.append(self.split(support, split.shares))
        return around

    @staticmethod
    def _is_better(split: Split, other: Split) -> bool:
        return split.objective < other.objective * (1 - _BETTER)

    def _neighbors(self, split: Split) -> Iterator[Support]:
        support = frozenset(split.shares)
        others = self._additions(split)
        for table in sorted(support):
            yield support - {table}
        for other in others:
            yield support | {other}
            for table in sorted(support):
                yield support - {table} | {other}

    def _with_pairs(self, split: Split) -> Iterator[Support]:
        """Two tables more, also in place of one: the single steps on the way are no better."""
        support = frozenset(split.shares)
        for pair in itertools.combinations(self._additions(split)[:_MOST_IN_PAIRS], 2):
            yield support | set(pair)
            for table in sorted(support):
                yield support - {table} | set(pair)

    def _additions(self, split: Split) -> list[Table]:
        """The tables outside a support, those first that lower the objective most."""
        gradient = self.objective.with_gradient(self.precisions(split.shares))[1]
        moves = self.publication.moves
        others = [t for t in self.publication.tables if moves[t] and t not in split.shares]
        return sorted(others, key=lambda t: gradient[t] * moves[t] ** -2)[:MOST_CANDIDATES]


def starting_supports(publication: Publication) -> list[Support]:
    """Return detail on every set of levels: the margins that no other margin refines."""
    levels = range(len(publication.areas.levels))
    finest = []
    for level in levels:
        finest.append(_finest(publication, {m for at, m in publication.importance if at == level}))
    everywhere = _finest(publication, {margin for _, margin in publication.importance})
    supports = []
    for count in range(1, len(levels) + 1):
        for chosen in itertools.combinations(levels, count):
            supports.append([(level, margin) for level in chosen for margin in everywhere])
            supports.append([(level, margin) for level in chosen for margin in finest[level]])
    distinct = []
    for support in supports:
        paid = frozenset(table for table in support if publication.moves[table])
        if paid and paid not in distinct:
            distinct.append(paid)
    return distinct


def _finest(publication: Publication, places: Iterable[int]) -> list[int]:
    """The margins that no other one refines; of equal margins the first."""
    finest: list[int] = []
    for place in sorted(places, key=lambda p: (-publication.margins[p].cells, p)):
        own = publication.margins[place]
        if not any(publication.margins[other].refines(own) for other in finest):
            finest.append(place)
    return sorted(finest)
