"""How far one unit moves ranks and scores, and how these follow from the rows of a cell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from release.exact.domain import Codes
from release.spec.declarations import Relation


def doubled_unless_added(range_of_a_unit: int, relation: Relation) -> int:
    """The range in which neighbors move what one unit moves within a range: one may leave too."""
    return range_of_a_unit if relation is Relation.ADD_REMOVE else 2 * range_of_a_unit


def rank_scores(below: Codes, at: Codes, share: Fraction) -> Codes:
    """How far each candidate lies from the quantile ``share`` = a/b, as scores of at most 0.

    ``below`` and ``at`` have shape (cells, candidates): the rows below each candidate, and at it.
    A candidate with L rows below it and E at it, of N, lies max(0, b·L - a·N, a·N - b·(L + E)) off.
    """
    a, b = share.numerator, share.denominator
    rows = below[:, -1:] + at[:, -1:]
    over, under = b * below - a * rows, a * rows - b * (below + at)
    return np.asarray(-np.maximum(0, np.maximum(over, under)), dtype=np.int64)


def rank_spread(share: Fraction, rows: int, relation: Relation) -> int:
    """The range in which a unit of at most ``rows`` rows changes :func:`rank_scores`."""
    # A row that comes in moves a score by at most max(a, b - a) either way; one that is replaced
    # moves L + E or L by one at the same N, and so the score by b.
    a, b = share.numerator, share.denominator
    return 2 * rows * (max(a, b - a) if relation is Relation.ADD_REMOVE else b)


def place_scores(below: Codes, at: Codes, place: int) -> Codes:
    """How far each candidate lies from the ``place``-th row from below, as scores of at most 0."""
    return np.asarray(
        -np.maximum(0, np.maximum(below - (place - 1), place - (below + at))), dtype=np.int64
    )


def place_spread(rows: int) -> int:
    """The range in which a unit of at most ``rows`` rows changes :func:`place_scores`."""
    return 2 * rows
