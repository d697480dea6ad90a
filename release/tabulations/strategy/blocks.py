"""Margins in blocks that least squares treats one by one, in floats.

The categories of an attribute lie in classes: the common refinement of its groupings that do not
keep it whole. A table is the orthogonal sum of class sums and of deviations within classes,
attribute by attribute. A grouping does not see the deviations within its classes, and a margin that
keeps the attribute whole sees them all equally well. So every margin acts on a block as a small
matrix over classes, whatever the number of categories (docs/design/mathematics.md, T11, is the
case of one class).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from release.tabulations.estimate.structure import Grouping, Margin
from release.tabulations.strategy.publication import Floats


@dataclass(frozen=True, eq=False)
class Block:
    """Parts of the same size k of the space of tables of one area.

    Attributes:
        measured: what each margin measures, AᵀA in an orthonormal basis; shape (parts, margins,
            k, k).
        cells: the kinds of cells of all margins, one margin after the other, in that basis, scaled
            by the length of what deviates; shape (parts, kinds, k).
    """

    measured: Floats
    cells: Floats


@dataclass(frozen=True, eq=False)
class Blocks:
    """All blocks of some margins.

    Attributes:
        blocks: one for each size.
        averages: for each margin which part of its cells are of each kind, 0 for the kinds of other
            margins; shape (kinds, margins), the same for every block.
    """

    blocks: tuple[Block, ...]
    averages: Floats


@dataclass(frozen=True, eq=False)
class _Axis:
    """One grouping of an attribute.

    Attributes:
        counts: how many cells are of each kind; shape (kinds,).
        sums: the cells in the basis of class sums; shape (kinds, classes).
        deviating: the squared length of a cell's part among the deviations; shape (kinds,).
        is_whole: whether every category is a cell.
    """

    counts: Floats
    sums: Floats
    deviating: Floats
    is_whole: bool

    def measured(self, deviates: bool) -> Floats:
        """AᵀA on the deviations, a number, or on the class sums."""
        if deviates:
            return np.full((1, 1), float(self.is_whole))
        return np.asarray((self.sums * self.counts[:, None]).T @ self.sums, dtype=np.float64)

    def cells(self, deviates: bool) -> Floats:
        """The cells in the basis; among deviations of a class all directions are alike."""
        return np.sqrt(self.deviating)[:, None] if deviates else self.sums


def blocks_of(margins: Sequence[Margin]) -> Blocks:
    """Return the blocks of margins over the same attributes."""
    axes = [_axes(own) for own in zip(*(margin.groupings for margin in margins), strict=True)]
    counts = []
    for place in range(len(margins)):
        counts.append(_product([axis[place].counts for axis in axes]).reshape(-1))
    measured: dict[int, list[Floats]] = {}
    cells: dict[int, list[Floats]] = {}
    # Each attribute contributes its class sums or its deviations. Both are orthogonal, so these
    # parts can be solved one by one, and parts of one size side by side.
    for deviating in itertools.product((False, True), repeat=len(axes)):
        matrices, rows = _part(axes, deviating, len(margins))
        # A part that no margin sees is neither measured nor published.
        if matrices.any():
            size = matrices.shape[-1]
            measured.setdefault(size, []).append(matrices)
            cells.setdefault(size, []).append(rows)
    blocks = []
    for size, matrices_of_parts in measured.items():
        blocks.append(Block(np.array(matrices_of_parts), np.array(cells[size])))
    return Blocks(tuple(blocks), _averages(counts))


def _averages(counts: Sequence[Floats]) -> Floats:
    averages = np.zeros((sum(own.size for own in counts), len(counts)))
    start = 0
    for place, own in enumerate(counts):
        averages[start : start + own.size, place] = own / own.sum()
        start += own.size
    return averages


def _part(
    axes: Sequence[Sequence[_Axis]], deviating: Sequence[bool], margins: int
) -> tuple[Floats, Floats]:
    """What each margin measures of one part, and the cells of all margins in it."""
    matrices, rows = [], []
    for place in range(margins):
        own_measured, own_cells = [], []
        for axis, deviates in zip(axes, deviating, strict=True):
            own_measured.append(axis[place].measured(deviates))
            own_cells.append(axis[place].cells(deviates))
        matrices.append(_product(own_measured))
        rows.append(_product(own_cells))
    return np.array(matrices), np.concatenate(rows)


def _product(matrices: Sequence[Floats]) -> Floats:
    """The Kronecker product, as a matrix."""
    product = np.ones((1, 1))
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix), dtype=np.float64)
    return product


def _axes(groupings: Sequence[Grouping]) -> list[_Axis]:
    """The groupings of one attribute, in terms of their common classes."""
    # Categories that no grouping tells apart count as one.
    combinations = sorted(set(zip(*groupings, strict=True)))
    cells = np.array(combinations).T
    is_whole = [len(set(own)) == len(combinations) for own in cells.tolist()]
    # A class is a combination of cells of the coarse groupings. Where there are none, all
    # categories are one class.
    coarse = cells[~np.array(is_whole)]
    # The inverse has another shape in NumPy 2.0 than before and after.
    members = np.unique(coarse, axis=1, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(members).astype(np.float64)
    axes = []
    for own, whole in zip(cells, is_whole, strict=True):
        if whole:
            axes.append(_Axis(sizes, np.diag(sizes**-0.5), 1 - 1 / sizes, True))
            continue
        sums = np.zeros((own.max() + 1, sizes.size))
        # A cell has all members of a class or none: the basis vector of a class is even.
        sums[own, members] = np.sqrt(sizes[members])
        kinds = np.ones(sums.shape[0])
        axes.append(_Axis(kinds, sums, np.zeros(sums.shape[0]), False))
    return axes
