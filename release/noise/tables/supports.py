"""The best set of tables to measure: a local search where more tables are not always better.

Under pure ε each table costs, and its precision grows like ε² at first. So a strategy of few tables
is best, and the objective has many local minima. The search starts with detail on some set of
levels, and adds, drops and swaps tables until nothing is better. What it finds is the *best found*:
no bound of the least objective is known that is worth printing.

The search takes similar areas together, because the sets of tables that are good hardly depend on
the sizes of areas. The best sets are compared where more areas are told apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from release.exact.domain import Codes
from release.noise.tables.estimable import Estimability
from release.noise.tables.objective import Objective
from release.noise.tables.publication import Floats, Publication, Table
from release.noise.tables.simplex import Functions, least_on_simplex

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

_WORTHLESS = 5e-4
"""Tables are left out as long as the objective is higher by at most this part, all together."""

_ROUGH_CLASSES = 4
"""The search tells so many shapes of areas of a level apart."""

_FINALISTS = 4
"""So many sets of tables are compared where more shapes are told apart."""

_FINE_CLASSES = 8
"""So many shapes for the comparison: more of them changed no objective of a trial by 10⁻⁵."""

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

    def splits(
        self, supports: Iterable[Support], start: Mapping[Table, float], goal: float = 0.0
    ) -> list[Split]:
        """Return the best splits over sets of tables that are found from one start.

        Those that do not allow every estimate are left out, and those far above ``goal`` are not
        the best.
        """
        wanted = []
        for support in dict.fromkeys(supports):
            if support and (support in self._splits or self._estimability.allows(support)):
                wanted.append(support)
        for equal in _by_size(support for support in wanted if support not in self._splits):
            least = 0.5 / len(equal[0])
            starts = []
            for support in equal:
                starts.append([max(start.get(table, 0.0), least) for table in sorted(support)])
            minima = self._minima(equal, np.array(starts), goal)
            self._splits.update(zip(equal, minima, strict=True))
        return [self._splits[support] for support in wanted]

    def _minima(self, supports: Sequence[Support], starts: Floats, goal: float) -> list[Split]:
        """The best splits over sets of so many tables, each from its start."""
        tables = [sorted(support) for support in supports]
        first = starts / starts.sum(axis=1, keepdims=True)
        values, shares = least_on_simplex(self._functions(tables), first, goal)
        splits = []
        for own, value, parts in zip(tables, values.tolist(), shares.tolist(), strict=True):
            splits.append(Split(value, dict(zip(own, parts, strict=True))))
        return splits

    def _precisions(self, shares: Mapping[Table, float]) -> Floats:
        """The precision of each table; shape (levels, margins)."""
        precisions = np.zeros(self.publication.shares.shape)
        for table, share in shares.items():
            epsilon = np.array([share * self.budget / self.publication.moves[table]])
            precisions[table] = self.precision_of(epsilon)[0][0]
        return precisions

    def _functions(self, tables: Sequence[Sequence[Table]]) -> Functions:
        """The objective over some sets of as many tables, as functions of the shares."""
        levels, margins = np.moveaxis(np.array(tables), 2, 0)
        moves = [[self.publication.moves[table] for table in own] for own in tables]
        units = self.budget / np.array(moves)
        shape = self.publication.shares.shape

        def values(which: Codes, shares: Floats) -> tuple[Floats, Floats]:
            places = np.arange(len(which))[:, None], levels[which], margins[which]
            precisions = np.zeros((len(which), *shape))
            precisions[places], slopes = self.precision_of(shares * units[which])
            totals, gradients = self.objective.with_gradients(precisions)
            return totals, gradients[places] * slopes * units[which]

        return values

    def best(self) -> Split:
        """Return the best split that is found over all sets of tables."""
        starts = self.splits(starting_supports(self.publication), {})
        starts.sort(key=_objective)
        ends = [self.descended(start) for start in starts[:_STARTS]]
        best = min(ends, key=_objective)
        while True:
            wider = self._looked_again(best)
            if not self._is_better(wider, best):
                return best
            best = self.descended(wider)

    def descended(self, split: Split) -> Split:
        """The end of the steps that lower the objective most, one table more, less or other."""
        while True:
            around = self.splits(self._neighbors(split), split.shares, split.objective)
            best = min([split, *around], key=_objective)
            if not self._is_better(best, split):
                return split
            split = best

    def _looked_again(self, split: Split) -> Split:
        """The best split further around, the closest ones also from an even start."""
        supports = [*self._neighbors(split), *self._with_pairs(split)]
        around = [split, *self.splits(supports, split.shares, split.objective)]
        around.sort(key=_objective)
        for equal in _by_size(frozenset(other.shares) for other in around[:_SECOND_LOOKS]):
            even = np.ones((len(equal), len(equal[0])))
            for support, look in zip(
                equal, self._minima(equal, even, split.objective), strict=True
            ):
                self._splits[support] = min(self._splits[support], look, key=_objective)
        return self.closest(1)[0]

    def closest(self, count: int) -> list[Split]:
        """The best splits over so many different sets of tables that have been seen."""
        return sorted(self._splits.values(), key=_objective)[:count]

    def without_worthless(self, split: Split) -> Split:
        """The split without the tables that hardly lower the objective: each costs a file."""
        limit = split.objective * (1 + _WORTHLESS)
        while True:
            support = frozenset(split.shares)
            fewer = [support - {table} for table in sorted(support)]
            best = min(self.splits(fewer, split.shares, limit), key=_objective, default=None)
            if best is None or best.objective > limit:
                return split
            split = best

    @staticmethod
    def _is_better(split: Split, other: Split) -> bool:
        return split.objective < other.objective * (1 - _BETTER)

    def _neighbors(self, split: Split) -> Iterator[Support]:
        support = frozenset(split.shares)
        others = self._additions(split)
        for table in sorted(support):
            yield support - {table}
        levels = range(len(self.publication.areas.levels))
        for one, another in itertools.combinations(levels, 2):
            yield self._exchanged(support, {one: another, another: one})
        for other in others:
            yield support | {other}
            for table in sorted(support):
                yield support - {table} | {other}

    def _exchanged(self, support: Support, levels: Mapping[int, int]) -> Support:
        """The same margins, at other levels."""
        exchanged = {(levels.get(level, level), margin) for level, margin in support}
        return frozenset(table for table in exchanged if self.publication.moves[table])

    def _with_pairs(self, split: Split) -> Iterator[Support]:
        """Two tables more, also in place of one: the single steps on the way are no better."""
        support = frozenset(split.shares)
        for pair in itertools.combinations(self._additions(split)[:_MOST_IN_PAIRS], 2):
            yield support | set(pair)
            for table in sorted(support):
                yield support - {table} | set(pair)

    def _additions(self, split: Split) -> list[Table]:
        """The tables outside a support, those first that lower the objective most."""
        gradient = self.objective.with_gradient(self._precisions(split.shares))[1]
        moves = self.publication.moves
        others = [t for t in self.publication.tables if moves[t] and t not in split.shares]
        return sorted(others, key=lambda t: gradient[t] * moves[t] ** -2)[:MOST_CANDIDATES]


def _by_size(supports: Iterable[Support]) -> list[list[Support]]:
    """Sets of as many tables together: their splits are found side by side."""
    groups: dict[int, list[Support]] = {}
    for support in supports:
        groups.setdefault(len(support), []).append(support)
    return [groups[size] for size in sorted(groups)]


def _objective(split: Split) -> float:
    return split.objective


def best_split(objective: Objective, budget: float, precision_of: PrecisionOf) -> Split:
    """Return the best split that is found over all sets of tables, without worthless tables.

    Args:
        objective: the publication's.
        budget: ε, of all tables together.
        precision_of: of the noise.
    """
    rough = SupportSearch(replace(objective, most_classes=_ROUGH_CLASSES), budget, precision_of)
    rough.best()
    search = SupportSearch(replace(objective, most_classes=_FINE_CLASSES), budget, precision_of)
    finalists = []
    for split in rough.closest(_FINALISTS):
        finalists += search.splits([frozenset(split.shares)], split.shares)
    return search.without_worthless(min(finalists, key=_objective))


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
