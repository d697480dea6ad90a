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
from release.tabulations.strategy.estimable import Estimability
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Floats, Publication, Table
from release.tabulations.strategy.simplex import Functions, least_on_simplex

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

    @property
    def support(self) -> Support:
        """The tables that are measured."""
        return frozenset(self.shares)


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
        estimable, unsplit = [], []
        for support in dict.fromkeys(supports):
            if support in self._splits:
                estimable.append(support)
            elif support and self._estimability.allows(support):
                # The ridge of the objective would give tables that do not determine the published
                # ones a huge but finite value, so that a search could walk among them.
                estimable.append(support)
                unsplit.append(support)
        for equal in _by_size(unsplit):
            # The descent works with logarithms: a table that begins at 0 would stay there.
            least = 0.5 / len(equal[0])
            starts = []
            for support in equal:
                starts.append([max(start.get(table, 0.0), least) for table in sorted(support)])
            minima = self._minima(equal, np.array(starts), goal)
            self._splits.update(zip(equal, minima, strict=True))
        return [self._splits[support] for support in estimable]

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
        moves = np.array(self.publication.moves_of_tables)
        # A table of which a unit moves m cells spends m·ε: its share buys each cell less.
        units = self.budget / moves[levels, margins]
        shape = self.publication.shares.shape

        def values(which: Codes, shares: Floats) -> tuple[Floats, Floats]:
            places = np.arange(len(which))[:, None], levels[which], margins[which]
            precisions = np.zeros((len(which), *shape))
            precisions[places], slopes = self.precision_of(shares * units[which])
            totals, gradients = self.objective.with_gradients(precisions)
            # The chain rule: share to ε of a cell, and ε to precision.
            return totals, gradients[places] * slopes * units[which]

        return values

    def best(self) -> Split:
        """Return the best split that is found over all sets of tables."""
        starts = self.splits(starting_supports(self.publication), {})
        starts.sort(key=_objective)
        best = min(map(self.descended, starts[:_STARTS]), key=_objective)
        # Ends, because every round lowers the objective by a fixed part, and it stays above 0.
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
        for equal in _by_size(near.support for near in around[:_SECOND_LOOKS]):
            # The first split of a support began near the split it came from, and may have ended in
            # a local minimum there: an even start is far from all of them.
            even = np.ones((len(equal), len(equal[0])))
            looks = self._minima(equal, even, split.objective)
            for support, look in zip(equal, looks, strict=True):
                self._splits[support] = min(self._splits[support], look, key=_objective)
        return self.closest(1)[0]

    def closest(self, count: int) -> list[Split]:
        """The best splits over so many different sets of tables that have been seen."""
        return sorted(self._splits.values(), key=_objective)[:count]

    def without_worthless(self, split: Split) -> Split:
        """The split without the tables that hardly lower the objective: each costs a file."""
        limit = split.objective * (1 + _WORTHLESS)
        while True:
            support = split.support
            fewer = [support - {table} for table in sorted(support)]
            # None where every table is needed to estimate what is published.
            best = min(self.splits(fewer, split.shares, limit), key=_objective, default=None)
            if best is None or best.objective > limit:
                return split
            split = best

    @staticmethod
    def _is_better(split: Split, rival: Split) -> bool:
        return split.objective < rival.objective * (1 - _BETTER)

    def _neighbors(self, split: Split) -> Iterator[Support]:
        support = split.support
        additions = self._additions(split)
        # Sorted, as nothing promises the order of a set: two machines must plan the same tables.
        for table in sorted(support):
            yield support - {table}
        levels = range(len(self.publication.areas.levels))
        for level, another in itertools.combinations(levels, 2):
            yield self._exchanged(support, {level: another, another: level})
        for addition in additions:
            yield support | {addition}
            for table in sorted(support):
                yield support - {table} | {addition}

    def _exchanged(self, support: Support, levels: Mapping[int, int]) -> Support:
        """The same margins, at other levels."""
        exchanged = set()
        for level, margin in support:
            table = levels.get(level, level), margin
            # Tables that no neighbor changes are exact already: nothing is spent on them.
            if self.publication.moves[table]:
                exchanged.add(table)
        return frozenset(exchanged)

    def _with_pairs(self, split: Split) -> Iterator[Support]:
        """Two tables more, also in place of one: the single steps on the way are no better."""
        support = split.support
        for pair in itertools.combinations(self._additions(split)[:_MOST_IN_PAIRS], 2):
            yield support | set(pair)
            for table in sorted(support):
                yield support - {table} | set(pair)

    def _additions(self, split: Split) -> list[Table]:
        """The tables outside a support, those first that lower the objective most."""
        gradient = self.objective.with_gradient(self._precisions(split.shares))[1]
        moves = self.publication.moves
        outside = [t for t in self.publication.tables if moves[t] and t not in split.shares]
        # The gradient is negative, and a little ε buys a precision like (ε/m)².
        return sorted(outside, key=lambda t: gradient[t] * moves[t] ** -2)[:MOST_CANDIDATES]


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
        finalists += search.splits([split.support], split.shares)
    return search.without_worthless(min(finalists, key=_objective))


def starting_supports(publication: Publication) -> list[Support]:
    """Return detail on every set of levels: the margins that no other margin refines."""
    levels = range(len(publication.areas.levels))
    published: list[set[int]] = [set() for _ in levels]
    for level, margin in publication.importance:
        published[level].add(margin)
    everywhere = _finest(publication, set[int]().union(*published))
    finest = []
    for level in levels:
        finest.append(list(itertools.product([level], _finest(publication, published[level]))))
    supports: list[Iterable[Table]] = []
    for count in range(1, len(levels) + 1):
        for chosen in itertools.combinations(levels, count):
            supports.append(itertools.product(chosen, everywhere))
            supports.append(itertools.chain.from_iterable(finest[level] for level in chosen))
    distinct = []
    for support in supports:
        paid = frozenset(place for place in support if publication.moves[place])
        # Without measured tables there is no split; those that cost nothing are exact anyway.
        if paid and paid not in distinct:
            distinct.append(paid)
    return distinct


def _finest(publication: Publication, places: Iterable[int]) -> list[int]:
    """The margins that no other one refines; of equal margins the first."""
    finest: list[int] = []
    for place in sorted(places, key=lambda p: (-publication.margins[p].cells, p)):
        own = publication.margins[place]
        if not any(publication.margins[finer].refines(own) for finer in finest):
            finest.append(place)
    return sorted(finest)
