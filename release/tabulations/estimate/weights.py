"""The weights of measured cells in a least-squares estimate: how an error is made of noise.

The estimate of a cell is a linear function of the measured cells, so its error is the same function
of their noise. The weights follow from the two passes of least squares, taken backward
(docs/design/mathematics.md, T11). An area's estimate is what is known from below, plus its gain of
what the parent knows better than the sum of its children. So a weight on the estimate of an area
becomes a weight on that of its parent and on the sum of the siblings, up to the top; from there
weights on sums go down to all rows. Areas of one class below one parent have equal weights.

Weights are floats: they are for the distribution of an error, and no published number is computed
from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.tabulations.estimate.components import Component, Frame, Integers, Split, whole
from release.tabulations.estimate.covariances import FINE, Solution
from release.tabulations.estimate.problem import Problem, Table
from release.tabulations.estimate.structure import Grouping, Margin
from release.tabulations.estimate.variances import Sorts

Floats: TypeAlias = NDArray[np.float64]

LEAST_SHARE = 1e-6
"""Areas of one class with equal weights are left out where all together have less of a variance."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of measured cells in the estimate of one cell, equal ones together.

    Attributes:
        values: the weights; shape (n,).
        counts: how many measured cells have each of them; shape (n,).
        sources: the measured table of each, numbered as in ``weights_of``; shape (n,).
    """

    values: Floats
    counts: Floats
    sources: Codes


@dataclass(frozen=True, eq=False)
class CellWeights:
    """The weights for one kind of area and sort of cell of a published table."""

    table: Table
    kind: int
    sort: int
    weights: Weights


@dataclass(frozen=True)
class _Target:
    """One sort of cell of a published table."""

    table: Table
    sort: int
    places: tuple[int, ...]


def weights_of(problem: Problem) -> Iterator[CellWeights]:
    """The weights for all published tables, kind by kind.

    Measured tables are numbered as in ``problem.measured``, without the declared facts: those have
    no noise. Cells with very little of the variance may be left out: see ``LEAST_SHARE``.
    """
    measured = problem.measured
    noisy = list(enumerate(place for place in measured if measured[place]))
    for place in range(problem.tree.depth):
        targets = _targets(problem, place)
        if targets:
            yield from _Adjoint(problem, place, targets, noisy).all_kinds()


def _targets(problem: Problem, place: int) -> list[_Target]:
    targets = []
    for table in problem.published:
        if problem.tree.places[table[0]] == place:
            shape = Sorts.of(problem.frame, table[1]).shape
            for sort, places in enumerate(product(*map(range, shape))):
                targets.append(_Target(table, sort, places))
    return targets


@dataclass(frozen=True, eq=False)
class _Coefficients:
    """The coefficients of one component as floats; see ``FromBelow``.

    Attributes:
        below: for each level and class, what a child's estimates weigh in the area's.
        rows: for each level and class, what the area's own rows weigh.
        covariances: for each level and class.
        gains: for each level, class and parent's class.
    """

    below: tuple[tuple[Floats, ...], ...]
    rows: tuple[tuple[Floats, ...], ...]
    covariances: tuple[tuple[Floats, ...], ...]
    gains: tuple[Mapping[tuple[int, int], Floats], ...]

    @classmethod
    def of(cls, solution: Solution) -> _Coefficients:
        """The coefficients of a solution."""
        below, rows, covariances = [], [], []
        for level in solution.from_below:
            of_children, of_rows, of_classes = [], [], []
            for own in level:
                weights, rank = _floats(own.weights), len(own.total)
                # The sums of the children come first; the own rows of the area follow.
                of_children.append(weights[:, :rank])
                of_rows.append(weights[:, rank:])
                of_classes.append(_floats(own.covariance))
            below.append(tuple(of_children))
            rows.append(tuple(of_rows))
            covariances.append(tuple(of_classes))
        gains = []
        for shares in solution.gains:
            gains.append({pair: _floats(gain) for pair, gain in shares.items()})
        return cls(tuple(below), tuple(rows), tuple(covariances), tuple(gains))


def _floats(integers: Integers) -> Floats:
    """Integers over 2^FINE, each rounded once."""
    return np.asarray((integers / (1 << FINE)).astype(np.float64))


_Rows: TypeAlias = Mapping[Component, Floats]
"""For each component, linear functions of the functionals of an area; (targets, functionals)."""


@dataclass(eq=False)
class _Node:
    """Areas of one class with equal weights.

    Attributes:
        level: of the tree.
        number: the class.
        count: how many areas.
        rows: the weights of their estimates from below.
    """

    level: int
    number: int
    count: int
    rows: dict[Component, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Adjoint:
    """The backward passes for the cells of one level of the tree."""

    problem: Problem
    place: int
    targets: Sequence[_Target]
    noisy: Sequence[tuple[int, Table]]

    def all_kinds(self) -> Iterator[CellWeights]:
        """The weights of every target, for every kind of area."""
        for kind in range(len(self.problem.tree.origins[self.place])):
            parts: list[list[tuple[Floats, int, _Pattern]]] = [[] for _ in self.targets]
            for node in self._nodes(kind):
                pattern = self._patterns[node.level]
                values = pattern.weights(self._on_rows(node))
                for place, own in enumerate(parts):
                    start, stop = pattern.bounds[place : place + 2].tolist()
                    if start < stop:
                        own.append((values[start:stop], node.count, pattern))
            for number, target in enumerate(self.targets):
                weights = _joined(parts[number], number)
                yield CellWeights(target.table, kind, target.sort, weights)

    @cached_property
    def _patterns(self) -> tuple[_Pattern, ...]:
        patterns = []
        for level in range(self.problem.tree.depth):
            measured = []
            for source, table in self.noisy:
                if self.problem.tree.places[table[0]] == level:
                    measured.append((source, table))
            patterns.append(_Pattern.of(self.problem, level, self.targets, measured))
        return tuple(patterns)

    @cached_property
    def _coefficients(self) -> Mapping[Component, _Coefficients]:
        used: set[Component] = set()
        for target in self.targets:
            used.update(self.problem.frame.components_of(target.table[1]))
        coefficients = {}
        # In the order of the solutions, so that floats are added up in one order.
        for component, solution in self.problem.solutions.items():
            if component in used:
                coefficients[component] = _Coefficients.of(solution)
        return coefficients

    @cached_property
    def _start(self) -> _Rows:
        """What each target is of the functionals of its area."""
        start = {}
        for component in self._coefficients:
            rank = self.problem.solutions[component].system.ranks[self.place]
            rows = np.zeros((len(self.targets), rank))
            for number, target in enumerate(self.targets):
                if component in self.problem.frame.components_of(target.table[1]):
                    matrix, denominator = self.problem.rows(target.table, component)
                    row, _ = self._shares[component][number]
                    rows[number] = (matrix[row] / denominator).astype(np.float64)
            start[component] = rows
        return start

    @cached_property
    def _shares(self) -> Mapping[Component, list[tuple[int, float]]]:
        """For each component and target, its row, and the row's share in the cell's variance."""
        shares: dict[Component, list[tuple[int, float]]] = {}
        frame = self.problem.frame
        for component in self._coefficients:
            own = []
            for target in self.targets:
                _, margin = target.table
                if component in frame.components_of(margin):
                    rows, parts = Sorts.of(frame, margin).shares(frame, margin, component)
                    own.append((rows[target.sort], float(parts[target.sort])))
                else:
                    own.append((0, 0.0))
            shares[component] = own
        return shares

    def _nodes(self, kind: int) -> Iterator[_Node]:
        """All areas of the tree, seen from an area of a kind; small ones may be left out."""
        tree, coefficients = self.problem.tree, self._coefficients
        # The level and the kind of each area on the way from this one to the top.
        path = [(self.place, kind)]
        while path[-1][0]:
            level, own = path[-1]
            path.append((level - 1, tree.origins[level][own][1]))
        classes = [tree.origins[level][own][0] for level, own in path]
        upward: list[_Rows] = [self._start]
        for (level, _), pair in zip(path[:-1], pairwise(classes), strict=True):
            rows = {}
            for component, coefficient in coefficients.items():
                rank = self.problem.solutions[component].system.ranks[level - 1]
                moved = upward[-1][component] @ coefficient.gains[level][pair]
                rows[component] = np.pad(moved, ((0, 0), (0, rank - moved.shape[1])))
            upward.append(rows)
        total = self._variances(kind)
        sums: _Rows | None = None
        for step in reversed(range(len(path))):
            level, number = path[step][0], classes[step]
            node = _Node(level, number, 1)
            for component, direct in upward[step].items():
                node.rows[component] = direct if sums is None else direct + sums[component]
            yield node
            sums = self._on_children(node, upward[step] if step else None)
            below = dict(tree.members[level][number])
            # The child on the path has weights of its own: the next step of the loop is about it.
            if step:
                below[classes[step - 1]] -= 1
            yield from self._below(level + 1, below, sums, total)

    def _below(
        self, level: int, classes: Mapping[int, int], rows: _Rows, total: Floats
    ) -> Iterator[_Node]:
        """The areas of some classes, and all below them."""
        tree = self.problem.tree
        for number, count in classes.items():
            if not count or self._is_small(level, number, count, rows, total):
                continue
            node = _Node(level, number, count, dict(rows))
            yield node
            if level + 1 < tree.depth:
                sums = self._on_children(node, None)
                # Children of one class have equal weights where their parents have.
                members = {own: count * times for own, times in tree.members[level][number]}
                yield from self._below(level + 1, members, sums, total)

    def _is_small(self, level: int, number: int, count: int, rows: _Rows, total: Floats) -> bool:
        """Whether what is measured in and below these areas has little of every variance."""
        parts = np.zeros(len(self.targets))
        for component, own in self._coefficients.items():
            # Of what the area and all below it say, which is what would be left out.
            covariance = own.covariances[level][number]
            shares = self._variance_shares(component)
            parts += shares * ((rows[component] @ covariance) * rows[component]).sum(axis=1)
        return bool((count * parts <= LEAST_SHARE * total).all())

    def _variances(self, kind: int) -> Floats:
        """The variance of every target."""
        total = np.zeros(len(self.targets))
        for component, rows in self._start.items():
            covariances = self.problem.solutions[component].covariances[self.place]
            shares = self._variance_shares(component)
            total += shares * ((rows @ _floats(covariances[kind])) * rows).sum(axis=1)
        return total

    def _variance_shares(self, component: Component) -> Floats:
        """For each target the share of its row of the component in the cell's variance."""
        return np.array([share for _, share in self._shares[component]])

    def _on_children(self, node: _Node, direct: _Rows | None) -> _Rows:
        """The weights of the sum of the children; ``direct`` is what goes around it downward."""
        sums = {}
        for component, rows in node.rows.items():
            weights = self._coefficients[component].below[node.level][node.number]
            sums[component] = rows @ weights
            # A child's estimate has the gain of its parent's less this sum, so what it passes up
            # to the parent it takes off here.
            if direct is not None:
                sums[component] -= direct[component][:, : weights.shape[1]]
        return sums

    def _on_rows(self, node: _Node) -> _Rows:
        """The weights of the rows measured in the areas; (targets, rows)."""
        weights = {}
        for component, rows in node.rows.items():
            weights[component] = rows @ self._coefficients[component].rows[node.level][node.number]
        return weights


def _joined(parts: Sequence[tuple[Floats, int, _Pattern]], target: int) -> Weights:
    values, counts, sources = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for own, times, pattern in parts:
        where = slice(*pattern.bounds[target : target + 2].tolist())
        values.append(own)
        counts.append(pattern.counts[where] * times)
        sources.append(pattern.sources[where])
    return Weights(np.concatenate(values), np.concatenate(counts), np.concatenate(sources))


@dataclass(frozen=True, eq=False)
class _Pattern:
    """How the weights of rows become weights of cells, at one level, target by target.

    Attributes:
        bounds: where each target begins, and the last one ends; shape (targets + 1,).
        counts: how many cells of an area have each weight; shape (n,).
        sources: the measured table of each weight; shape (n,).
        targets: the target of each weight; shape (n,).
        places: for each component, the row that a weight comes from; shape (n,).
        factors: for each component, what that row's weight is multiplied by; shape (n,).
    """

    bounds: Codes
    counts: Floats
    sources: Codes
    targets: Codes
    places: Mapping[Component, Codes]
    factors: Mapping[Component, Floats]

    @classmethod
    def of(
        cls,
        problem: Problem,
        level: int,
        targets: Sequence[_Target],
        measured: Sequence[tuple[int, Table]],
    ) -> _Pattern:
        """The pattern for tables that are measured at one level of the tree."""
        rows: dict[Component, list[int]] = {}
        factors: dict[Component, list[float]] = {}
        offsets: dict[Component, dict[Table, int]] = {}
        for component, solution in problem.solutions.items():
            if solution.system.sources[level]:
                rows[component], factors[component] = [], []
                offsets[component] = _offsets(problem, component, level)
        bounds, counts, sources, owners = [0], [], [], []
        for number, target in enumerate(targets):
            for source, table in measured:
                for relation in _relations(problem.frame, target, table[1]):
                    counts.append(float(prod(own.count for own in relation)))
                    sources.append(source)
                    owners.append(number)
                    for component, of_table in offsets.items():
                        row, factor = _located(component, relation, of_table.get(table))
                        rows[component].append(row)
                        factors[component].append(factor)
            bounds.append(len(counts))
        return cls(
            np.array(bounds),
            np.array(counts),
            np.array(sources, dtype=np.int64),
            np.array(owners, dtype=np.int64),
            {own: np.array(places, dtype=np.int64) for own, places in rows.items()},
            {own: np.array(weights) for own, weights in factors.items()},
        )

    def weights(self, rows: _Rows) -> Floats:
        """The weights of cells from those of rows; shape (n,)."""
        values = np.zeros(self.counts.size)
        for component, own in rows.items():
            if component in self.places:
                chosen = own[self.targets, self.places[component]]
                values += self.factors[component] * chosen
        return values


def _offsets(problem: Problem, component: Component, level: int) -> dict[Table, int]:
    """Where the rows of each measured table begin among those of a level."""
    offsets, start = {}, 0
    for source in problem.solutions[component].system.sources[level]:
        offsets[source.level, source.margin] = start
        start += len(problem.frame.rows(source.margin, component).functionals)
    return offsets


@dataclass(frozen=True)
class _Relation:
    """How some categories of a measured table stand to that of a target, in one attribute.

    Attributes:
        count: how many classes of the measured margin stand so.
        place: their class or group among the rows.
        width: the number of places.
        deviation: their weight in the target's deviation; 0 where one of both has none.
        mean: their weight in the target's class mean or group.
    """

    count: int
    place: int
    width: int
    deviation: float
    mean: float


def _relations(frame: Frame, target: _Target, measured: Margin) -> Iterator[tuple[_Relation, ...]]:
    """All cells of a measured margin, those that stand alike to the target together."""
    choices = []
    groupings = zip(target.table[1].groupings, measured.groupings, strict=True)
    for split, place, (own, measured_grouping) in zip(
        frame.splits, target.places, groupings, strict=True
    ):
        choices.append(_of_attribute(split, place, own, measured_grouping))
    return product(*choices)


def _of_attribute(split: Split, place: int, own: Grouping, measured: Grouping) -> list[_Relation]:
    # A count is the mean of its class of m, 1/m of the sum, and its deviation from that: 1 - 1/m of
    # itself less 1/m of each of the others.
    size = split.sizes[place] if whole(own) else 1
    mean = 1 / size
    if not whole(measured):
        groups = max(measured) + 1
        return [_Relation(1, group, groups, 0.0, mean) for group in range(groups)]
    relations = []
    for category, count in enumerate(split.sizes):
        if whole(own) and category == place:
            # The category itself, and the others of its class.
            relations.append(_Relation(1, category, split.count, 1 - 1 / size, mean))
            if size > 1:
                relations.append(_Relation(size - 1, category, split.count, -1 / size, mean))
        else:
            relations.append(_Relation(count, category, split.count, 0.0, mean))
    return relations


def _located(
    component: Component, relation: Sequence[_Relation], offset: int | None
) -> tuple[int, float]:
    """The row of a component that cells get their weight from, and the factor."""
    # The table says nothing of the component: any row will do, times 0.
    if offset is None:
        return 0, 0.0
    place, factor = 0, 1.0
    for deviates, own in zip(component, relation, strict=True):
        if deviates:
            factor *= own.deviation
        else:
            place = place * own.width + own.place
            factor *= own.mean
    return offset + place, factor
