"""Least squares by a dense solver in rationals, and random tables to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from release.exact.domain import Codes
from release.tabulations.estimate.components import Integers
from release.tabulations.estimate.least_squares import Measurement
from release.tabulations.estimate.problem import Table
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out


def areas_of(*parents: Sequence[int] | Codes) -> Areas:
    names = tuple(f"level {place}" for place in range(len(parents)))
    return Areas(names, tuple(np.array(own, dtype=np.int64) for own in parents))


def rows_of(areas: Areas, table: Table) -> Integers:
    """Every cell of a table as a sum of the lowest areas' detail; (areas · cells, unknowns)."""
    level, margin = table
    detail = margin.cell_of.size
    lowest = len(areas.levels) - 1
    own = np.arange(areas.size(lowest))
    for place in range(lowest, level, -1):
        own = areas.parents[place][own]
    rows = np.zeros((areas.size(level), margin.cells, own.size, detail), dtype=object)
    for leaf, area in enumerate(own.tolist()):
        rows[area, margin.cell_of, leaf, np.arange(detail)] = 1
    return rows.reshape(areas.size(level) * margin.cells, -1)


def solutions(matrix: Integers, right: Integers) -> list[list[Fraction]] | None:
    """Some X with A·X = B, by elimination in rationals; None if there is none."""
    size = matrix.shape[1]
    rows = [[Fraction(value) for value in row] for row in np.hstack([matrix, right]).tolist()]
    pivots: list[int] = []
    for column in range(size):
        top = len(pivots)
        lead = next((row for row in range(top, len(rows)) if rows[row][column]), None)
        if lead is None:
            continue
        rows[top], rows[lead] = rows[lead], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for row in range(len(rows)):
            factor = rows[row][column]
            if row != top and factor:
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[top], strict=True)]
        pivots.append(column)
    if any(any(row[size:]) for row in rows[len(pivots) :]):
        return None
    answer = [[Fraction(0)] * right.shape[1] for _ in range(size)]
    for place, column in enumerate(pivots):
        answer[column] = rows[place][size:]
    return answer


def dense(
    areas: Areas, measurements: Mapping[Table, Measurement], table: Table
) -> tuple[list[Fraction], list[Fraction]] | None:
    """The estimates and variances of a table's cells; None if they are not estimable.

    Solves N·u + Fᵀ·λ = t, F·u = 0 for each cell t, N the information matrix and F the facts: the
    estimate is u·h + λ·f, with h the right-hand side of the normal equations, its variance u·t.
    """
    unknowns = areas.size(len(areas.levels) - 1) * table[1].cell_of.size
    information = np.zeros((unknowns, unknowns), dtype=object)
    normal = np.zeros(unknowns, dtype=object)
    facts: list[Integers] = [np.zeros((0, unknowns), dtype=object)]
    declared: list[int] = []
    for own, measurement in measurements.items():
        rows, values = rows_of(areas, own), measurement.values.reshape(-1).astype(object)
        if measurement.variance:
            information = information + rows.T @ rows / measurement.variance
            normal = normal + rows.T @ values / measurement.variance
        else:
            facts.append(rows)
            declared.extend(values.tolist())
    fact = np.vstack(facts)
    none = np.zeros((fact.shape[0], fact.shape[0]), dtype=object)
    matrix = np.vstack([np.hstack([information, fact.T]), np.hstack([fact, none])])
    targets = rows_of(areas, table)
    right = np.hstack([targets, np.zeros((targets.shape[0], fact.shape[0]), dtype=object)]).T
    found = solutions(matrix, right)
    if found is None:
        return None
    dual = np.array(found, dtype=object)
    known = np.concatenate([normal, np.array(declared, dtype=object)])
    variances = (dual[:unknowns].T * targets).sum(axis=1)
    return [Fraction(v) for v in known @ dual], [Fraction(v) for v in variances]


@st.composite
def trees(draw: st.DrawFn) -> Areas:
    """Trees of one to four levels with at most five areas at the lowest."""
    parents = [[0] * draw(st.integers(1, 2))]
    for _ in range(draw(st.integers(0, 3))):
        above = len(parents[-1])
        more = draw(st.lists(st.integers(0, above - 1), max_size=5 - above))
        parents.append(sorted([*range(above), *more]))
    return areas_of(*parents)


def numbered(labels: Sequence[int]) -> tuple[int, ...]:
    """Classes numbered as they first occur."""
    places: dict[int, int] = {}
    return tuple(places.setdefault(label, len(places)) for label in labels)


@st.composite
def margins(draw: st.DrawFn, sizes: Sequence[int]) -> Margin:
    groupings = []
    for size in sizes:
        some = st.lists(st.integers(0, 2), min_size=size, max_size=size).map(numbered)
        choices = st.just(summed_out(size)) | st.just(kept_whole(size)) | some
        groupings.append(draw(choices))
    return Margin(tuple(groupings))


VARIANCES = st.fractions(Fraction(1, 50), 50, max_denominator=60)


@st.composite
def problems(
    draw: st.DrawFn,
) -> tuple[Areas, tuple[int, ...], dict[Table, Measurement], list[Table]]:
    """Areas, attributes, measured tables, and tables to publish that may not be estimable."""
    areas = draw(trees())
    sizes = draw(st.sampled_from([(), (1,), (2,), (4,), (5,), (2, 2), (3, 2), (2, 1, 2)]))
    own = draw(st.lists(margins(sizes), min_size=1, max_size=3, unique=True))
    places = st.tuples(st.integers(0, len(areas.levels) - 1), st.sampled_from(own))
    measured = draw(st.lists(places, min_size=1, max_size=5, unique=True))
    # The finest measured table of the lowest level makes most problems estimable.
    if draw(st.integers(0, 3)):
        finest = Margin(tuple(kept_whole(size) for size in sizes))
        measured.append((len(areas.levels) - 1, finest))
    measurements = {}
    for table in measured:
        shape = areas.size(table[0]), table[1].cells
        values = draw(
            st.lists(
                st.integers(-50, 10**9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
            )
        )
        measurements[table] = Measurement(
            np.array(values, dtype=np.int64).reshape(shape), draw(VARIANCES)
        )
    published = draw(st.lists(places, min_size=1, max_size=3, unique=True))
    return areas, sizes, measurements, published
