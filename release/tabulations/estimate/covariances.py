"""What measurements say of one component of the areas' tables, without any data.

For each level of the tree the measured rows are taken up one after another, from the lowest level
up. A row that does not follow from earlier ones becomes a new *functional* of the basis; any other
row corrects the functionals. So the basis of a level begins with that of the level below, whose
functionals add up over children. Nothing else is estimable in an area that has a sibling: a change
of it along what no row below sees, undone in the sibling, changes no measurement.

Covariances are integers over 2^512, gains over 2^192 where they meet data; every quotient is
rounded to the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from release.exact.numbers import over_one_denominator
from release.tabulations.estimate.components import Component, Frame, Integers
from release.tabulations.estimate.node_types import Tree
from release.tabulations.estimate.spans import Span, solved
from release.tabulations.estimate.structure import Margin

PLACES = 192
"""Estimates are integers over 2^PLACES, and so are the coefficients that data is multiplied by."""

FINE = 512
"""Covariances, and gains among themselves, are integers over 2^FINE."""


@dataclass(frozen=True)
class Source:
    """One measured table, as least squares sees it.

    Attributes:
        level: the level of the areas.
        margin: which table.
        variance: of every cell; 0 for a declared fact.
    """

    level: int
    margin: Margin
    variance: Fraction


@dataclass(frozen=True)
class Step:
    """One measured row of a level.

    Attributes:
        row: the linear function of the class sums.
        coordinates: integers, those of ``scale`` times the row in the functionals before it; None
            if the row is a new functional.
        scale: what the row is multiplied by.
        variance: of the scaled row, over 2^FINE.
        repeats: whether it is a declared fact that follows from the facts before it.
    """

    row: tuple[int, ...]
    coordinates: tuple[int, ...] | None
    scale: int
    variance: int
    repeats: bool = False


@dataclass(frozen=True, eq=False)
class System:
    """The rows of one component at all levels of the tree.

    Attributes:
        component: which one.
        span: the functionals of the whole tree.
        ranks: for each level, how many of the functionals are estimable in its areas.
        sources: for each level the tables that its rows come from, in the order of the rows.
        steps: for each level its rows.
        facts: the rows of the top level that are declared and do not follow from each other.
    """

    component: Component
    span: Span
    ranks: tuple[int, ...]
    sources: tuple[tuple[Source, ...], ...]
    steps: tuple[tuple[Step, ...], ...]
    facts: tuple[int, ...]

    @classmethod
    def of(cls, frame: Frame, component: Component, levels: Sequence[Sequence[Source]]) -> System:
        """The system of a component.

        Args:
            frame: the frame of all margins.
            component: which component.
            levels: for each level of the tree, from the top down, what is measured.
        """
        span = Span(frame.width(component))
        ranks: list[int] = []
        own_sources: list[tuple[Source, ...]] = []
        steps: list[tuple[Step, ...]] = []
        facts: list[int] = []
        for sources in reversed(levels):
            own = [item for item in sources if component in frame.components_of(item.margin)]
            # The finest table first, so that functionals are cells where that is possible; facts
            # last, because a covariance is singular after them.
            own.sort(key=lambda item: (not item.variance, -item.margin.cells, *_order(item)))
            own_sources.insert(0, tuple(own))
            level_steps, facts = _steps(frame, component, own, span)
            steps.insert(0, tuple(level_steps))
            ranks.insert(0, len(span.basis))
        return cls(component, span, tuple(ranks), tuple(own_sources), tuple(steps), tuple(facts))

    def coordinates(self, level: int, row: Sequence[int]) -> tuple[Fraction, ...] | None:
        """A linear function in the functionals of a level of the tree; None if not estimable."""
        coordinates = self.span.coordinates(row)
        rank = self.ranks[level]
        if coordinates is None or any(coordinates[rank:]):
            return None
        return coordinates[:rank]


def _order(source: Source) -> tuple[object, ...]:
    return source.level, source.margin.groupings, source.variance


def _steps(
    frame: Frame, component: Component, sources: Sequence[Source], span: Span
) -> tuple[list[Step], list[int]]:
    """The rows of one level, and which of them are independent facts; the span grows."""
    steps: list[Step] = []
    declared = Span(span.width)
    facts: list[int] = []
    for source in sources:
        rows = frame.rows(source.margin, component)
        for row, factor in zip(rows.functionals, rows.factors, strict=True):
            variance = source.variance * factor
            repeats = False
            if not source.variance:
                repeats = declared.coordinates(row) is not None
                if not repeats:
                    declared.append(row)
                    facts.append(len(steps))
            steps.append(_step(span, row, variance, repeats))
    return steps, facts


def _step(span: Span, row: tuple[int, ...], variance: Fraction, repeats: bool) -> Step:
    coordinates = span.coordinates(row)
    if coordinates is None:
        span.append(row)
        return Step(row, None, 1, _fixed(variance))
    # Scaled to integers, so that taking the row up divides nothing.
    numerators, scale = over_one_denominator(coordinates)
    return Step(row, numerators, scale, _fixed(variance * scale * scale), repeats)


def _fixed(value: Fraction) -> int:
    return round(value * (1 << FINE))


def rounded(numerators: Integers, denominator: int) -> Integers:
    """Quotients, to the nearest integer, a half upward."""
    return np.asarray((2 * numerators + denominator) // (2 * denominator))


def shifted(numerators: Integers, places: int) -> Integers:
    """Quotients by 2^places, to the nearest integer, a half upward."""
    return np.asarray((numerators + (1 << (places - 1))) >> places)


@dataclass(frozen=True, eq=False)
class FromBelow:
    """What is known of the areas of a class from their own rows and from those below them.

    Attributes:
        covariance: of the estimates of the functionals, over 2^FINE; (functionals, functionals).
        total: of the sums of the children's estimates; (functionals of the children,) twice.
        weights: the estimates, as combinations of the children's sums and then of the rows, over
            2^FINE; (functionals, functionals of the children + rows).
    """

    covariance: Integers
    total: Integers
    weights: Integers


def combined(total: Integers, steps: Sequence[Step]) -> FromBelow:
    """Take up the rows of a level, one after another (recursive least squares).

    Args:
        total: the covariance of the children's sums, over 2^FINE; (0, 0) at the lowest level.
        steps: the rows.
    """
    rank = len(total)
    unit = 1 << FINE
    covariance = total
    weights = _zeros(rank, rank + len(steps))
    weights[range(rank), range(rank)] = unit
    for place, step in enumerate(steps, rank):
        size = len(covariance)
        if step.coordinates is None:
            larger, longer = _zeros(size + 1, size + 1), _zeros(size + 1, weights.shape[1])
            larger[:size, :size], longer[:size] = covariance, weights
            larger[size, size], longer[size, place] = step.variance, unit
            covariance, weights = larger, longer
        elif not step.repeats:
            row = np.array(step.coordinates, dtype=object)
            shared = covariance @ row
            # The variance of how far the measured row is from what the functionals say of it. It
            # is above 0: only a fact that follows from facts agrees with them for certain.
            spread = int(row @ shared) + step.variance
            gain = rounded(shared << FINE, spread)
            surprise = -(row @ weights)
            surprise[place] += step.scale * unit
            weights = weights + shifted(np.multiply.outer(gain, surprise), FINE)
            covariance = covariance - rounded(np.multiply.outer(shared, shared), spread)
    return FromBelow(covariance, total, weights)


def _zeros(rows: int, columns: int) -> Integers:
    return np.zeros((rows, columns), dtype=object)


@dataclass(frozen=True, eq=False)
class Solution:
    """The coefficients of least squares for one component, by type of area."""

    tree: Tree
    system: System

    @cached_property
    def from_below(self) -> tuple[tuple[FromBelow, ...], ...]:
        """For each level and class, what is known of its areas from below."""
        levels: list[tuple[FromBelow, ...]] = []
        rank = 0
        for level in reversed(range(self.tree.depth)):
            own = []
            for members in self.tree.members[level]:
                total = _zeros(rank, rank)
                for child, count in members:
                    total = total + count * levels[0][child].covariance
                own.append(combined(total, self.system.steps[level]))
            levels.insert(0, tuple(own))
            rank = self.system.ranks[level]
        return tuple(levels)

    @cached_property
    def gains(self) -> tuple[Mapping[tuple[int, int], Integers], ...]:
        """For each level, class and parent's class, the share of what the parent knows better.

        Over 2^FINE; (functionals, functionals). None at the top.
        """
        levels: list[Mapping[tuple[int, int], Integers]] = [{}]
        for level in range(1, self.tree.depth):
            own: dict[tuple[int, int], Integers] = {}
            for parent, members in enumerate(self.tree.members[level - 1]):
                total = self.from_below[level - 1][parent].total
                for child, _ in members:
                    covariance = self.from_below[level][child].covariance
                    own[child, parent] = _gain(covariance, total, members)
            levels.append(own)
        return tuple(levels)

    @cached_property
    def covariances(self) -> tuple[tuple[Integers, ...], ...]:
        """For each level and kind, the covariance of the estimates of the functionals.

        Over 2^FINE; (functionals, functionals).
        """
        levels: list[tuple[Integers, ...]] = []
        for level, origins in enumerate(self.tree.origins):
            own = []
            for number, parent in origins:
                covariance = self.from_below[level][number].covariance
                if parent >= 0:
                    above = self.tree.origins[level - 1][parent][0]
                    rank = len(covariance)
                    total = self.from_below[level - 1][above].total
                    # The parent may have more functionals; the first are those of its children.
                    estimated = levels[-1][parent][:rank, :rank]
                    gain = self.gains[level][number, above]
                    covariance = covariance - shifted(gain @ (total - estimated) @ gain.T, 2 * FINE)
                own.append(covariance)
            levels.append(tuple(own))
        return tuple(levels)


def _gain(covariance: Integers, total: Integers, members: tuple[tuple[int, int], ...]) -> Integers:
    """The covariance of a child, divided by that of the sum of all children."""
    if len(members) == 1:
        # All children are alike: each takes the same share.
        share = (2 * (1 << FINE) + members[0][1]) // (2 * members[0][1])
        return np.diag(np.full(len(covariance), share, dtype=object))
    numerators, denominator = solved(total.tolist(), covariance.tolist())
    quotient = np.array(numerators, dtype=object).reshape(covariance.shape)
    return rounded(quotient.T << FINE, denominator)
