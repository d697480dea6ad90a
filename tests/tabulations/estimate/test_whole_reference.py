"""Whole numbers as docs/design/whole-numbers.md makes them, in Python's own integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil, floor, isqrt
from operator import add, mul, sub

import numpy as np
import pytest

from release.tabulations.estimate.cone import Distance, NonNegative
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.estimate.whole import Target, whole_tables

MILLION = 10**6
CELLS = Margin((kept_whole(2), kept_whole(2)))
TOTAL = Margin((summed_out(2), summed_out(2)))
FIRST = Margin((kept_whole(2), summed_out(2)))
WHICH = {TOTAL: (0, 0, 0, 0), FIRST: (0, 0, 1, 1), CELLS: (0, 1, 2, 3)}

Table = list[list[int]]


def each(function: Callable[..., int], *tables: Table) -> Table:
    """The function of the values that stand in one place."""
    result = []
    for rows in zip(*tables, strict=True):
        result.append([function(*values) for values in zip(*rows, strict=True)])
    return result


def threshold(values: list[int], total: int) -> Fraction:
    """The τ with Σ max(0, v − τ) = total, found among the numbers of values above it."""
    ordered = sorted(values, reverse=True)
    for count in range(len(values), 0, -1):
        tau = Fraction(sum(ordered[:count]) - total, count)
        if tau < ordered[count - 1]:
            return tau
    return Fraction(ordered[0])


def project(table: Table, families: list[range], sums: Table | None, zeros: set[int]) -> Table:
    result = [[0 if cell in zeros else max(0, v) for cell, v in enumerate(row)] for row in table]
    for family, total in zip(families, sums or [], strict=False):
        for cell in range(4):
            cut = ceil(threshold([table[area][cell] for area in family], total[cell] * MILLION))
            for area in family:
                result[area][cell] = max(0, table[area][cell] - cut) if total[cell] else 0
    return result


def slopes(table: Table, estimates: Table, form: Table) -> Table:
    result = []
    for change in each(sub, table, estimates):
        result.append([sum(map(mul, change, line)) for line in form])
    return result


def search(
    estimates: Table,
    form: Table,
    least: int,
    families: list[range],
    sums: Table | None,
    zeros: set[int],
) -> Table:
    most = max(map(sum, form))
    root = isqrt(2**20 * most // least) if least else 0
    table = ahead = project(estimates, families, sums, zeros)
    for step in range(1000):
        slope = slopes(ahead, estimates, form)
        newer = project(each(lambda a, s: a - s // most, ahead, slope), families, sums, zeros)
        moved = max(map(max, each(lambda n, a: abs(n - a), newer, ahead)))
        share, whole = (root - 1024, root + 1024) if root else (step, step + 3)
        pushes = each(lambda n, t, s=share, w=whole: (n - t) * s // w, newer, table)
        ahead = each(add, newer, pushes)
        table = newer
        if moved <= 5:
            break
    return table


def rounded(
    near: Table,
    estimates: Table,
    form: Table,
    families: list[range],
    sums: Table | None,
    zeros: set[int],
) -> Table:
    table = [row[:] for row in near]
    for _ in range(16):
        before = [row[:] for row in table]
        for cell in range(4):
            slope = slopes(table, estimates, form)
            wanted = []
            for row, own in zip(table, slope, strict=True):
                wanted.append(row[cell] - own[cell] // form[cell][cell])
            if cell in zeros:
                column = [0] * len(wanted)
            elif sums is None:
                column = [max(0, floor(Fraction(v, MILLION) + Fraction(1, 2))) for v in wanted]
            else:
                column = by_remainder(wanted, families, [total[cell] for total in sums])
            for row, value in zip(table, column, strict=True):
                row[cell] = value * MILLION
        if table == before:
            break
    return [[value // MILLION for value in row] for row in table]


def by_remainder(wanted: list[int], families: list[range], totals: list[int]) -> list[int]:
    column = [0] * len(wanted)
    for family, total in zip(families, totals, strict=True):
        if not total:
            continue
        cut = ceil(threshold([wanted[area] for area in family], total * MILLION))
        near = {area: max(0, wanted[area] - cut) for area in family}
        for area in family:
            column[area] = near[area] // MILLION
        by_size = sorted(family, key=lambda area: -(near[area] % MILLION))
        for area in by_size[: total - sum(column[a] for a in family)]:
            column[area] += 1
    return column


@pytest.mark.parametrize(
    ("margins", "weights"),
    [((TOTAL, CELLS), (16, 3)), ((TOTAL, FIRST), (2, 5)), ((TOTAL, FIRST, CELLS), (64, 1, 2))],
)
@pytest.mark.parametrize("zeros", [set(), {2}, {0, 3}], ids=["no zeros", "one", "two"])
def test_whole_numbers_are_those_of_the_page(
    margins: tuple[Margin, ...], weights: tuple[int, ...], zeros: set[int]
) -> None:
    children = [[3], [4, 1, 7]]
    parents = [np.zeros(1, dtype=np.int64), np.repeat([0], 3), np.repeat([0, 1, 2], [4, 1, 7])]
    areas = Areas(("state", "county", "tract"), tuple(parents))
    form = [[0] * 4 for _ in range(4)]
    for margin, weight in zip(margins, weights, strict=True):
        for i, j in product(range(4), repeat=2):
            form[i][j] += weight * (WHICH[margin][i] == WHICH[margin][j])
    least = sum(w for m, w in zip(margins, weights, strict=True) if m is CELLS)
    rng = np.random.default_rng(12)
    for scale in (3, 2000):
        sizes = [12, 4, 1]
        estimates = [
            rng.integers(-scale * MILLION, 3 * size * scale * MILLION, (areas.size(level), 4))
            for level, size in enumerate(sizes)
        ]
        targets = [Target(CELLS, estimate, margins, weights) for estimate in estimates]
        possible = np.array([[cell not in zeros for cell in range(4)]])
        sums: Table | None = None
        for level, made in enumerate(whole_tables(areas, targets, None, [possible] * 3)):
            ends = np.cumsum(children[level - 1]).tolist() if level else []
            families = [range(a, b) for a, b in zip([0, *ends], ends, strict=False)]
            own = estimates[level].tolist()
            near = search(own, form, least, families, sums, zeros)
            assert made.near.tolist() == near
            sums = rounded(near, own, form, families, sums, zeros)
            assert made.counts.tolist() == sums


def form_of(total: int, cell: int) -> Table:
    """The quadratic form of the weights of an area's total and of its cells."""
    return [[total + cell * (i == j) for j in range(4)] for i in range(4)]


@pytest.mark.parametrize("weight", [1, 1024, 10**6])
def test_the_search_ends_where_it_does_on_the_page(weight: int) -> None:
    """By itself, or after its last step: of 10^6 beside 1 a thousand steps are too few."""
    areas = Areas(("state",), (np.zeros(1, dtype=np.int64),))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        estimates = rng.integers(-3000 * MILLION, 9000 * MILLION, (1, 4))
        target = Target(CELLS, estimates, (TOTAL, CELLS), (weight, 1))
        near = search(estimates.tolist(), form_of(weight, 1), 1, [], None, set())
        assert whole_tables(areas, [target])[0].near.tolist() == near


def test_rounding_ends_after_as_many_sweeps_as_on_the_page() -> None:
    """Even a table that is far from the estimates, where each sweep comes somewhat nearer."""
    distance = Distance.of_margins(CELLS, (TOTAL, CELLS), (8, 1))
    allowed = NonNegative(np.ones((2, 4), dtype=bool))
    near, estimates = np.random.default_rng(1).integers(0, 10**6 * MILLION, (2, 2, 4))
    whole = allowed.whole(near, estimates, distance).tolist()
    assert whole == rounded(near.tolist(), estimates.tolist(), form_of(8, 1), [], None, set())
    # It had not ended by itself: a further run goes on from there.
    assert allowed.whole(np.array(whole) * MILLION, estimates, distance).tolist() != whole
