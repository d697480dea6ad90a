"""Least squares on tables as one dense problem: it shares no code with what is tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import null_space

from release.tabulations.estimate.structure import Areas, Grouping, Margin, kept_whole, summed_out
from release.tabulations.strategy.publication import Publication, Table, moves_of_a_row

Floats = NDArray[np.float64]


def areas_of(*branching: tuple[int, ...]) -> Areas:
    """Areas under one root; each level has the number of children of each area above."""
    parents = [np.zeros(1, dtype=np.int64)]
    for children in branching:
        parents.append(np.repeat(np.arange(len(children)), children))
    return Areas(tuple(f"level{place}" for place in range(len(parents))), tuple(parents))


def publication_of(
    areas: Areas, margins: tuple[Margin, ...], is_replaced: bool = False
) -> Publication:
    """All margins of all levels, equally important; a total of one cell is a fact if replaced."""
    moves = moves_of_a_row(areas, margins, is_replaced)
    for level, margin in moves:
        if is_replaced and areas.size(level) == margins[margin].cells == 1:
            moves[level, margin] = 0
    return Publication(areas, margins, dict.fromkeys(moves, 1.0), moves)


def rows(publication: Publication, table: Table) -> Floats:
    """The cells of a table as sums of the cells of the lowest level; one row a cell."""
    areas, (level, margin) = publication.areas, table
    above = np.arange(areas.size(len(areas.levels) - 1))
    for place in range(len(areas.levels) - 1, level, -1):
        above = areas.parents[place][above]
    cells = publication.margins[margin].cell_of
    count = publication.margins[margin].cells
    matrix = np.zeros((areas.size(level) * count, above.size * cells.size))
    for leaf, area in enumerate(above):
        for category, cell in enumerate(cells):
            matrix[area * count + cell, leaf * cells.size + category] = 1
    return matrix


def is_estimable(publication: Publication, table: Table, measured: list[Table]) -> bool:
    """Whether the rows of a table lie in the span of those measured."""
    known = np.concatenate([rows(publication, other) for other in measured])
    both = np.concatenate([known, rows(publication, table)])
    rank = np.linalg.matrix_rank
    return bool(rank(both) == rank(known))


def errors(publication: Publication, precisions: Mapping[Table, float]) -> dict[Table, float]:
    """The mean root variance of every table by least squares; tables without noise are exact."""
    unknowns = rows(publication, publication.tables[0]).shape[1]
    information = np.zeros((unknowns, unknowns))
    for table, precision in precisions.items():
        own = rows(publication, table)
        information += precision * own.T @ own
    free = np.eye(unknowns)
    if publication.exact:
        free = null_space(np.concatenate([rows(publication, t) for t in publication.exact]))
    # Directions that nothing measures have eigenvalues of rounding size, above pinv's own limit.
    inverse = np.linalg.pinv(free.T @ information @ free, rcond=1e-10, hermitian=True)
    covariance = free @ inverse @ free.T
    found = {}
    for table in publication.tables:
        own = rows(publication, table)
        variances = np.einsum("ij,jk,ik->i", own, covariance, own)
        found[table] = float(np.sqrt(np.maximum(variances, 0)).mean())
    return found


def objective(
    publication: Publication, split: dict[Table, float], precision: Callable[[float], float]
) -> float:
    """The objective of a split of a budget, with every step written out."""
    precisions = {}
    for table, part in split.items():
        precisions[table] = precision(part / publication.moves[table])
    roots = errors(publication, precisions)
    weights = publication.importance
    return sum(weights[t] * roots[t] for t in weights) / sum(weights.values())


def groupings(size: int) -> st.SearchStrategy[Grouping]:
    """Groupings of so many categories; whole and summed out often."""

    def numbered(labels: list[int]) -> Grouping:
        order = list(dict.fromkeys(labels))
        return tuple(order.index(label) for label in labels)

    some = st.lists(st.integers(0, 2), min_size=size, max_size=size).map(numbered)
    return st.one_of(st.just(kept_whole(size)), st.just(summed_out(size)), some)


TREES = st.sampled_from(
    [
        areas_of(),
        areas_of((3,)),
        areas_of((1,), (3,)),
        areas_of((2,), (1, 2)),
        areas_of((3,), (1, 2, 2)),
        areas_of((2,), (1, 1), (2, 1)),
    ]
)


@st.composite
def publications(draw: st.DrawFn) -> Publication:
    """Small trees, two attributes, up to three margins."""
    margin = st.tuples(groupings(4), groupings(2)).map(Margin)
    margins = tuple(draw(st.lists(margin, min_size=1, max_size=3)))
    return publication_of(draw(TREES), margins, draw(st.booleans()))


DETAIL = Margin((kept_whole(4), kept_whole(2)))
FIRST = Margin((kept_whole(4), summed_out(2)))
GROUPS = Margin(((0, 1, 1, 1), summed_out(2)))
TOTAL = Margin((summed_out(4), summed_out(2)))

MANY = areas_of((6,))
UNEVEN = areas_of((2,), (1, 5))

CASES = {
    "detail, first, total": publication_of(MANY, (DETAIL, FIRST, TOTAL)),
    "groups": publication_of(MANY, (FIRST, GROUPS, TOTAL)),
    "uneven": publication_of(UNEVEN, (DETAIL, TOTAL)),
    "replaced": publication_of(MANY, (DETAIL, FIRST, TOTAL), is_replaced=True),
    "one level": publication_of(areas_of(), (DETAIL, FIRST, TOTAL)),
    "detail at the top": Publication(
        MANY,
        (DETAIL, FIRST, TOTAL),
        {(0, 0): 1.0, (0, 2): 1.0, (1, 1): 2.0, (1, 2): 1.0},
        dict.fromkeys([(level, margin) for level in (0, 1) for margin in (0, 1, 2)], 1),
    ),
}
