"""Errors of two areas of a level are not positively correlated, so errors of sums are bounded.

*Statement.* Let (a) every measured table name an attribute whole or not at all, or (b) all measured
tables below the highest level be of one margin. Then the least-squares errors of one cell, or of
one sum of cells, in two areas of a level have a covariance of at most 0. So the variance of a sum
over areas is at most the sum of the variances.

*Proof.* Let Σ_u be the covariance of what the subtree of the child u says, Σ' the sum over the
children of a parent, and V the covariance of the parent's estimate in the end. Two children have
the covariance −Σ_u·Σ'⁻¹·(Σ' − V)·Σ'⁻¹·Σ_w (docs/design/mathematics.md, T11), where Σ' − V has no
negative eigenvalue. In (a) least squares splits into trees of scalars. In (b) every Σ_u is a
positive multiple of the identity. So a part of an error has a covariance of at most 0 in two
children. Areas of different parents have that of the parents times two positive factors. ∎
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from release.tabulations.estimate.problem import Table
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.estimate.variances import variances
from tests.tabulations.estimate.dense import areas_of, rows_of

SIZES = (3, 2)
MARGINS = tuple(
    Margin((first, second))
    for first in (summed_out(3), kept_whole(3))
    for second in (summed_out(2), kept_whole(2))
)
DETAIL = MARGINS[-1]
GROUPED = Margin(((0, 1, 1), kept_whole(2)))


@st.composite
def measured_trees(draw: st.DrawFn) -> tuple[Areas, dict[Table, Fraction]]:
    """Areas of three levels, some of them without a sibling, and tables of case (a) or (b)."""
    counties = draw(st.integers(1, 3))
    tracts = [draw(st.integers(1, 3)) for _ in range(counties)]
    areas = areas_of([0], [0] * counties, np.repeat(np.arange(counties), tracts))
    whole = [(level, margin) for level in range(3) for margin in MARGINS]
    one_margin = [(0, margin) for margin in (*MARGINS, GROUPED)] + [(1, DETAIL)]
    allowed = draw(st.sampled_from([whole, one_margin]))
    chosen = draw(st.lists(st.sampled_from(allowed), max_size=5, unique=True))
    spread = st.integers(1, 30).map(Fraction)
    return areas, {table: draw(spread) for table in dict.fromkeys([*chosen, (2, DETAIL)])}


def covariance(areas: Areas, measured: dict[Table, Fraction]) -> NDArray[np.float64]:
    """Of the errors of all cells of the lowest areas, by dense least squares in floats."""
    unknowns = areas.size(2) * DETAIL.cells
    information = np.zeros((unknowns, unknowns))
    for table, variance in measured.items():
        rows = rows_of(areas, table).astype(float)
        information += rows.T @ rows / float(variance)
    return np.asarray(np.linalg.inv(information))


@settings(max_examples=60)
@given(tree=measured_trees())
def test_errors_of_two_areas_are_not_positively_correlated(
    tree: tuple[Areas, dict[Table, Fraction]],
) -> None:
    areas, measured = tree
    errors = covariance(areas, measured)
    for level in (1, 2):
        for margin in (*MARGINS, GROUPED):
            rows = rows_of(areas, (level, margin)).astype(float)
            shape = areas.size(level), margin.cells
            between = (rows @ errors @ rows.T).reshape(*shape, *shape)
            of_one_cell = np.einsum("icjc->ijc", between)
            assert (of_one_cell[~np.eye(shape[0], dtype=bool)] <= 1e-9).all()


@settings(max_examples=30)
@given(tree=measured_trees(), data=st.data())
def test_the_error_of_a_sum_is_bounded_by_the_published_standard_errors(
    tree: tuple[Areas, dict[Table, Fraction]], data: st.DataObject
) -> None:
    areas, measured = tree
    errors = covariance(areas, measured)
    chosen = data.draw(st.sets(st.integers(0, areas.size(2) - 1), min_size=1))
    published = variances(areas, SIZES, measured, [(2, DETAIL)])[2, DETAIL].standard_errors()
    for cell in range(DETAIL.cells):
        places = [area * DETAIL.cells + cell for area in chosen]
        exact = errors[np.ix_(places, places)].sum()
        assert exact <= (published[list(chosen), cell] ** 2).sum() * (1 + 1e-9)
