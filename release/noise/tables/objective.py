"""How good a strategy is: the mean over published tables of the mean root variance of their cells.

The variances are those of least squares over everything that is measured, in floats, with the
gradient in the precisions (one over the variance of the noise on a cell). They guide a search; what
is published is calculated exactly elsewhere.

For each block of the margins (:mod:`release.noise.tables.blocks`), W(l) is the information that the
tables of level l have of an area. Up: X = P⁻¹ is the covariance from the tree below an area, with
P = W + Y, Y = Σ⁻¹, Σ the sum of X over its children. Down: V = X at the top, and for a child
V = X - X·K·X with K = Y - Y·V·Y of its parent. The gradient goes the same way back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from release.exact.domain import Codes
from release.exact.tables.structure import Areas
from release.noise.tables.blocks import Block, Blocks, blocks_of
from release.noise.tables.kinds import LevelKinds, kinds_of
from release.noise.tables.publication import Floats, Publication

RIDGE = 1e-8
"""Information of everything, beside the largest precision, so that nothing has no inverse.

What cannot be estimated has a huge variance then; whether it can is settled elsewhere.
"""

_UNKNOWN = 1e30
"""A variance in place of one that is not known at all."""

CERTAIN = 1e5
"""The precision of tables without noise, beside the largest other one."""


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of a publication."""

    publication: Publication

    @cached_property
    def places(self) -> Codes:
        """For each level its place among those that differ: some only repeat the level above."""
        areas = self.publication.areas
        sizes = [areas.size(level) for level in range(len(areas.levels))]
        return np.cumsum(np.diff(sizes, prepend=sizes[0]) > 0, dtype=np.int64)

    @cached_property
    def kinds(self) -> tuple[LevelKinds, ...]:
        """The kinds of the areas of each level that differs from the one above."""
        areas = self.publication.areas
        first = [int(np.argmax(self.places == place)) for place in range(self.places[-1] + 1)]
        names = tuple(areas.levels[level] for level in first)
        return kinds_of(Areas(names, tuple(areas.parents[level] for level in first)))

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the margins."""
        return blocks_of(self.publication.margins)

    def errors(self, precisions: Floats) -> Floats:
        """Return the mean root variance of every table, published or not.

        Args:
            precisions: of each table, 0 where it is not measured; shape (levels, margins). Those of
                tables without noise do not count.

        Returns:
            Shape (levels, margins).
        """
        sweeps = self._sweeps(precisions)
        errors = np.zeros(precisions.shape)
        for level, margin in self.publication.tables:
            variances = self._variances(sweeps, level, margin)
            counts = self.blocks.counts[margin]
            shares = self.kinds[self.places[level]].shares
            errors[level, margin] = shares @ np.sqrt(variances) @ counts / counts.sum()
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
        sweeps = self._sweeps(precisions)
        total = 0.0
        for level, margin in self.publication.importance:
            share = self.publication.shares[level, margin]
            if (level, margin) in self.publication.exact:
                continue
            counts = self.blocks.counts[margin]
            roots = np.sqrt(self._variances(sweeps, level, margin))
            weights = share * np.outer(self.kinds[self.places[level]].shares, counts / counts.sum())
            total += float((weights * roots).sum())
            for sweep in sweeps:
                sweep.weigh(self.places[level], margin, weights / (2 * roots))
        gradient = np.zeros(precisions.shape)
        for sweep in sweeps:
            gradient += sweep.gradient()[self.places]
        for table in self.publication.exact:
            gradient[table] = 0
        return total, gradient

    def _sweeps(self, precisions: Floats) -> list[_Sweep]:
        known = precisions.copy()
        for table in self.publication.exact:
            known[table] = 0
        largest = known.max()
        for table in self.publication.exact:
            known[table] = CERTAIN * largest
        together = np.zeros((len(self.kinds), known.shape[1]))
        np.add.at(together, self.places, known)
        return [
            _Sweep(block, self.kinds, together, RIDGE * largest) for block in self.blocks.blocks
        ]

    def _variances(self, sweeps: list[_Sweep], level: int, margin: int) -> Floats:
        """The variances of the cells of a table; shape (kinds of areas, kinds of cells)."""
        parts = [sweep.variances(self.places[level], margin) for sweep in sweeps]
        whole = np.sum(parts, axis=0)
        # Where nothing is known, rounding leaves any number: no search may take it for a good one.
        return np.asarray(np.where(whole > 0, whole, _UNKNOWN), dtype=np.float64)


@dataclass(eq=False)
class _Sweep:
    """Covariances of one block for all classes and kinds of all levels, and their adjoints.

    Shapes are (parts, classes, k, k), and (parts, kinds, k, k) for ``whole`` and ``bend``.
    """

    block: Block
    kinds: tuple[LevelKinds, ...]
    precisions: Floats
    ridge: float
    below: list[Floats] = field(default_factory=list)
    inverse: list[Floats] = field(default_factory=list)
    whole: list[Floats] = field(default_factory=list)
    bend: list[Floats] = field(default_factory=list)
    adjoint: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._up()
        self._down()
        self.adjoint = [np.zeros_like(covariance) for covariance in self.whole]

    def _up(self) -> None:
        size = self.block.measured.shape[-1]
        information = np.einsum("lm,bmij->lbij", self.precisions, self.block.measured)
        information += self.ridge * np.eye(size)
        for level in range(len(self.kinds) - 1, -1, -1):
            own = information[level][:, None]
            if level == len(self.kinds) - 1:
                inverse = np.zeros_like(own)
            else:
                inverse = np.linalg.inv(_summed(self.kinds[level].children, self.below[0]))
            self.inverse.insert(0, inverse)
            self.below.insert(0, np.linalg.inv(own + inverse))

    def _down(self) -> None:
        for level, kinds in enumerate(self.kinds):
            own = self.below[level][:, kinds.own]
            covariance = own
            if level:
                covariance = own - own @ self.bend[-1][:, kinds.above] @ own
            inverse = self.inverse[level][:, kinds.own]
            self.whole.append(covariance)
            self.bend.append(inverse - inverse @ covariance @ inverse)

    def variances(self, level: int, margin: int) -> Floats:
        """The part of this block in the variances of a table; shape (kinds, kinds of cells)."""
        cells = self.block.cells[margin]
        half = np.einsum("bci,bdij->bdcj", cells, self.whole[level])
        return np.asarray(np.einsum("bdcj,bcj->dc", half, cells), dtype=np.float64)

    def weigh(self, level: int, margin: int, weights: Floats) -> None:
        """Note the derivative of the objective in the variances of a table."""
        cells = self.block.cells[margin]
        weighed = np.einsum("dc,bci->bdci", weights, cells)
        self.adjoint[level] += np.einsum("bdci,bcj->bdij", weighed, cells)

    def gradient(self) -> Floats:
        """The derivative in each precision, of all that has been weighed."""
        below, inverse = self._down_again()
        gradient = np.zeros(self.precisions.shape)
        for level, kinds in enumerate(self.kinds):
            own = self.below[level]
            information = -(own @ below[level] @ own)
            gradient[level] = np.einsum("bij,bmij->m", information.sum(axis=1), self.block.measured)
            if level + 1 < len(self.kinds):
                inverses = self.inverse[level]
                sums = -(inverses @ (inverse[level] + information) @ inverses)
                below[level + 1] += _summed(kinds.children.T, sums)
        return gradient

    def _down_again(self) -> tuple[list[Floats], list[Floats]]:
        """The adjoints of ``below`` and ``inverse`` that come from the way down."""
        below = [np.zeros_like(covariance) for covariance in self.below]
        inverse = [np.zeros_like(covariance) for covariance in self.inverse]
        whole = self.adjoint
        for level in range(len(self.kinds) - 1, 0, -1):
            kinds, parents = self.kinds[level], self.kinds[level - 1]
            own, bend = self.below[level][:, kinds.own], self.bend[level - 1]
            part = whole[level] @ own @ bend[:, kinds.above]
            _add(below[level], kinds.own, whole[level] - part - _turned(part))
            bends = np.zeros_like(bend)
            _add(bends, kinds.above, -(own @ whole[level] @ own))
            above = self.inverse[level - 1][:, parents.own]
            part = bends @ above @ self.whole[level - 1]
            _add(inverse[level - 1], parents.own, bends - part - _turned(part))
            whole[level - 1] -= above @ bends @ above
        _add(below[0], self.kinds[0].own, whole[0])
        return below, inverse


def _summed(counts: Floats, covariances: Floats) -> Floats:
    """Sums of covariances, each as often as a row of ``counts`` says."""
    return np.asarray(np.einsum("vu,buij->bvij", counts, covariances), dtype=np.float64)


def _add(target: Floats, places: Codes, values: Floats) -> None:
    """Add each of ``values`` to its place on the second axis."""
    np.add.at(np.swapaxes(target, 0, 1), places, np.swapaxes(values, 0, 1))


def _turned(values: Floats) -> Floats:
    return np.swapaxes(values, -1, -2)
