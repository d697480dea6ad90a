"""How good a strategy is: the mean over published tables of the mean root variance of their cells.

The variances are those of least squares over everything that is measured, in floats, with the
gradient in the precisions (one over the variance of the noise on a cell). They guide a search; what
is published is calculated exactly elsewhere.

For each block of the margins (:mod:`release.tabulations.strategy.blocks`), W(l) is the information
that the tables of level l have of an area. Up: X = P⁻¹ is the covariance from the tree below an
area, with P = W + Y, Y = Σ⁻¹, Σ the sum of X over its children. Down: V = X at the top, for a child
V = X - X·K·X with K = Y - Y·V·Y of its parent. The gradient goes the same way back. Many strategies
are computed at once: the matrices are small, and one by one most of the time is overhead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.node_types import distinct_levels
from release.tabulations.estimate.structure import Areas
from release.tabulations.strategy.blocks import Block, Blocks, blocks_of
from release.tabulations.strategy.kinds import LevelKinds, kinds_of
from release.tabulations.strategy.publication import Floats, Publication

RIDGE = 1e-8
"""Information of everything, beside the largest precision, so that nothing has no inverse.

What cannot be estimated has a huge variance then; whether it can is settled elsewhere.
"""

_UNKNOWN = 1e30
"""A variance in place of one that is not known at all."""

CERTAIN = 1e5
"""The precision of tables without noise, beside the largest other one."""


_MOST_NUMBERS = 2**16
"""Strategies are computed at once as long as a covariance of all of them has so many entries."""


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of a publication.

    Attributes:
        publication: what is published.
        most_classes: areas of a level with more shapes of the tree below than this are taken
            together with similar ones, as an approximation; None for none.
    """

    publication: Publication
    most_classes: int | None = None

    @cached_property
    def _distinct(self) -> tuple[tuple[int, ...], Areas]:
        return distinct_levels(self.publication.areas)

    @cached_property
    def places(self) -> Codes:
        """For each level its place among those that differ: some only repeat the level above."""
        return np.array(self._distinct[0], dtype=np.int64)

    @cached_property
    def kinds(self) -> tuple[LevelKinds, ...]:
        """The kinds of the areas of each level that differs from the one above."""
        return kinds_of(self._distinct[1], self.most_classes)

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the margins."""
        return blocks_of(self.publication.margins)

    @cached_property
    def _weights(self) -> tuple[Floats, ...]:
        """Of each place the part of each kind of cells in the objective; shape (cells,)."""
        published = self.publication.shares.copy()
        for table in self.publication.exact:
            published[table] = 0
        together = np.zeros((len(self.kinds), published.shape[1]))
        # Not together[self.places] += published: that would count a repeated place once.
        np.add.at(together, self.places, published)
        return tuple(self.blocks.averages @ shares for shares in together)

    def errors(self, precisions: Floats) -> Floats:
        """Return the mean root variance of every table, published or not.

        Args:
            precisions: of each table, 0 where it is not measured; shape (levels, margins). Those of
                tables without noise do not count.

        Returns:
            Shape (levels, margins).
        """
        sweeps = self._sweeps(precisions[None])
        means = []
        for place, kinds in enumerate(self.kinds):
            roots = np.sqrt(_variances(sweeps, place))[0]
            means.append(kinds.shares @ roots @ self.blocks.averages)
        errors = np.array(means)[self.places]
        for table in self.publication.exact:
            errors[table] = 0
        return errors

    def value(self, precisions: Floats) -> float:
        """Return the objective; arguments as those of :meth:`errors`."""
        return float((self.errors(precisions) * self.publication.shares).sum())

    def with_gradient(self, precisions: Floats) -> tuple[float, Floats]:
        """Return the objective, and its derivative in each precision (0 for tables without noise).

        Arguments as those of :meth:`errors`; the gradient has their shape.
        """
        values, gradients = self.with_gradients(precisions[None])
        return float(values[0]), gradients[0]

    def with_gradients(self, precisions: Floats) -> tuple[Floats, Floats]:
        """Return objectives and their derivatives, as :meth:`with_gradient`, of many strategies.

        Args:
            precisions: shape (strategies, levels, margins).

        Returns:
            Shapes (strategies,) and (strategies, levels, margins).
        """
        most = max(len(kinds.own) for kinds in self.kinds)
        numbers = max(most * block.measured[:, 0].size for block in self.blocks.blocks)
        size = max(1, _MOST_NUMBERS // numbers)
        values, gradients = [], []
        for at in range(0, len(precisions), size):
            part_values, part_gradients = self._some(precisions[at : at + size])
            values.append(part_values)
            gradients.append(part_gradients)
        return np.concatenate(values), np.concatenate(gradients)

    def _some(self, precisions: Floats) -> tuple[Floats, Floats]:
        sweeps = self._sweeps(precisions)
        values = np.zeros(len(precisions))
        for place, kinds in enumerate(self.kinds):
            roots = np.sqrt(_variances(sweeps, place))
            weights = kinds.shares[:, None] * self._weights[place]
            values += (weights * roots).sum(axis=(1, 2))
            for sweep in sweeps:
                sweep.weigh(place, weights / (2 * roots))
        gradients = np.zeros(precisions.shape)
        for sweep in sweeps:
            gradients += sweep.gradient()[:, self.places]
        for level, margin in self.publication.exact:
            gradients[:, level, margin] = 0
        return values, gradients

    def _sweeps(self, precisions: Floats) -> list[_Sweep]:
        measured = precisions.copy()
        # Tables without noise have no precision of their own: an infinite one has no inverse, and
        # a fixed one would be lost, or swamp the others, beside precisions of another magnitude.
        for level, margin in self.publication.exact:
            measured[:, level, margin] = 0
        largest = measured.max(axis=(1, 2))
        for level, margin in self.publication.exact:
            measured[:, level, margin] = CERTAIN * largest
        together = np.zeros((len(measured), len(self.kinds), measured.shape[2]))
        # Independent measurements of the same cells: precisions add up.
        for level, place in enumerate(self.places):
            together[:, place] += measured[:, level]
        ridge = RIDGE * largest
        return [_Sweep(block, self.kinds, together, ridge) for block in self.blocks.blocks]


def _variances(sweeps: list[_Sweep], place: int) -> Floats:
    """The variances of all cells at a place; shape (strategies, kinds of areas, cells)."""
    whole = sweeps[0].variances(place)
    for sweep in sweeps[1:]:
        whole = whole + sweep.variances(place)
    # Where nothing is known, rounding leaves any number: no search may take it for a good one.
    return np.asarray(np.where(whole > 0, whole, _UNKNOWN), dtype=np.float64)


@dataclass(eq=False)
class _Sweep:
    """Covariances of one block for all classes and kinds of all levels, and their adjoints.

    Shapes are (strategies, parts, classes, k, k), and (strategies, parts, kinds, k, k) for
    ``whole`` and ``bend``.
    """

    block: Block
    kinds: tuple[LevelKinds, ...]
    precisions: Floats
    ridge: Floats
    below: list[Floats] = field(default_factory=list)
    inverse: list[Floats] = field(default_factory=list)
    whole: list[Floats] = field(default_factory=list)
    bend: list[Floats] = field(default_factory=list)
    adjoint: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._up()
        self._down()
        self.adjoint = list(map(np.zeros_like, self.whole))

    def _up(self) -> None:
        parts, margins, size, _ = self.block.measured.shape
        measured = np.swapaxes(self.block.measured, 0, 1).reshape(margins, -1)
        information = (self.precisions @ measured).reshape(
            *self.precisions.shape[:2], parts, size, size
        )
        information += self.ridge[:, None, None, None, None] * np.eye(size)
        for level in range(len(self.kinds) - 1, -1, -1):
            own = information[:, level, :, None]
            if level == len(self.kinds) - 1:
                inverse = np.zeros_like(own)
            else:
                inverse = _inverted(_summed(self.kinds[level].children, self.below[0]))
            self.inverse.insert(0, inverse)
            self.below.insert(0, _inverted(own + inverse))

    def _down(self) -> None:
        for level, kinds in enumerate(self.kinds):
            own = self.below[level][:, :, kinds.own]
            covariance = own
            if level:
                covariance = own - own @ self.bend[-1][:, :, kinds.above] @ own
            inverse = self.inverse[level][:, :, kinds.own]
            self.whole.append(covariance)
            self.bend.append(inverse - inverse @ covariance @ inverse)

    def variances(self, level: int) -> Floats:
        """The part of this block in the variances; shape (strategies, kinds, kinds of cells)."""
        cells = self.block.cells
        half = cells[:, None] @ self.whole[level]
        return np.asarray(np.einsum("nbdcj,bcj->ndc", half, cells), dtype=np.float64)

    def weigh(self, level: int, weights: Floats) -> None:
        """Note the derivative of the objective in the variances of a level."""
        cells = self.block.cells
        weighed = weights[:, None, :, :, None] * cells[:, None]
        self.adjoint[level] += _turned(weighed) @ cells[:, None]

    def gradient(self) -> Floats:
        """The derivative in each precision, of all that has been weighed."""
        below, inverse = self._down_again()
        gradient = np.zeros(self.precisions.shape)
        # From the top: what reaches a level from above has to be complete before it is passed on.
        for level, kinds in enumerate(self.kinds):
            own = self.below[level]
            # The derivative of an inverse: d(P⁻¹) = -P⁻¹·dP·P⁻¹.
            information = -(own @ below[level] @ own)
            summed = information.sum(axis=2)
            gradient[:, level] = np.einsum("nbij,bmij->nm", summed, self.block.measured)
            if level + 1 < len(self.kinds):
                inverses = self.inverse[level]
                sums = -(inverses @ (inverse[level] + information) @ inverses)
                below[level + 1] += _summed(kinds.children.T, sums)
        return gradient

    def _down_again(self) -> tuple[list[Floats], list[Floats]]:
        """The adjoints of ``below`` and ``inverse`` that come from the way down."""
        below = list(map(np.zeros_like, self.below))
        inverse = list(map(np.zeros_like, self.inverse))
        whole = self.adjoint
        for level in range(len(self.kinds) - 1, 0, -1):
            kinds, parents = self.kinds[level], self.kinds[level - 1]
            own, bend = self.below[level][:, :, kinds.own], self.bend[level - 1]
            part = whole[level] @ own @ bend[:, :, kinds.above]
            _add(below[level], kinds.own, whole[level] - part - _turned(part))
            bends = np.zeros_like(bend)
            _add(bends, kinds.above, -(own @ whole[level] @ own))
            above = self.inverse[level - 1][:, :, parents.own]
            part = bends @ above @ self.whole[level - 1]
            _add(inverse[level - 1], parents.own, bends - part - _turned(part))
            whole[level - 1] -= above @ bends @ above
        _add(below[0], self.kinds[0].own, whole[0])
        return below, inverse


def _inverted(matrices: Floats) -> Floats:
    # LAPACK is called for each matrix: for numbers a division is far faster.
    inverses = 1 / matrices if matrices.shape[-1] == 1 else np.linalg.inv(matrices)
    return np.asarray(inverses, dtype=np.float64)


def _summed(counts: Floats, covariances: Floats) -> Floats:
    """Sums of covariances, each as often as a row of ``counts`` says."""
    flat = covariances.reshape(*covariances.shape[:3], -1)
    sums = np.asarray(counts @ flat, dtype=np.float64)
    return sums.reshape(*flat.shape[:2], -1, *covariances.shape[3:])


def _add(target: Floats, places: Codes, values: Floats) -> None:
    """Add each of ``values`` to its place on the third axis."""
    # As a product of matrices: np.add.at goes entry by entry.
    members = np.zeros((target.shape[2], places.size))
    members[places, np.arange(places.size)] = 1
    target += _summed(members, values)


def _turned(values: Floats) -> Floats:
    return np.swapaxes(values, -1, -2)
