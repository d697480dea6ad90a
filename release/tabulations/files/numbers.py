"""The published numbers of a tabulation: all of them follow from the noisy counts, in integers.

The publisher and the verifier both call ``tabulated``. Nothing on the way is a float, so both have
the same numbers on every machine. Least squares is unbiased and may go below 0; only whole numbers
and intervals know that counts do not, and only whole numbers know which cells are impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import isqrt, lcm

import numpy as np

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.tabulations.estimate.components import Integers
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.intervals import HalfWidths
from release.tabulations.estimate.least_squares import Estimates, Measurement, estimates
from release.tabulations.estimate.problem import MOST_VARIANCE, NotEstimableError
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.estimate.structure import Margin
from release.tabulations.estimate.variances import CellVariances
from release.tabulations.estimate.whole import Facts, Level, targets_of, whole_tables
from release.tabulations.spec.opened import OpenTabulation, Table

_FINE = 2**64

_INTEGERS = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class MarginNumbers:
    """What is published of one margin of one level; all shapes are (areas, cells).

    Attributes:
        answer: least squares to the nearest millionth, a half upward, in millionths.
        rounded: whole numbers that add up over areas and margins.
        low: the lower ends of the intervals, at least 0.
        high: the upper ends, at least 0.
        standard_error: the root of the variance in millionths, rounded up.
    """

    answer: Codes
    rounded: Codes
    low: Codes
    high: Codes
    standard_error: Codes


@dataclass(frozen=True, eq=False)
class LevelNumbers:
    """What is published of one level.

    Attributes:
        level: the level.
        margins: the numbers of each published margin, in the order of publication.
    """

    level: int
    margins: tuple[MarginNumbers, ...]


@dataclass(frozen=True, eq=False)
class Tabulated:
    """What follows from the noisy counts of a tabulation.

    Attributes:
        levels: what is published of every level.
        estimates: of the tables that were asked for besides, least squares to the nearest
            millionth, in millionths; shape (areas, cells).
    """

    levels: tuple[LevelNumbers, ...]
    estimates: Mapping[Table, Codes]


def tabulated(
    opened: OpenTabulation,
    measured: Mapping[Table, Codes],
    noises: Mapping[Table, IntegerNoise],
    widths: Mapping[Table, HalfWidths],
    besides: Sequence[Table] = (),
) -> Tabulated:
    """The published numbers of every level, from the noisy counts.

    Args:
        opened: the tabulation, with its declared numbers.
        measured: the noisy counts of each measured table; shape (areas, cells).
        noises: the noise on every cell of each measured table.
        widths: of the intervals of each published table.
        besides: other tables to estimate.

    Raises:
        ValueError: tables that do not fit, or a published table that they do not determine.
    """
    sources = {}
    for table, values in measured.items():
        sources[table] = Measurement(values, noises[table].moment(2))
    # A declared number is a measurement without noise.
    for table, values in opened.facts.items():
        sources[table] = Measurement(values, Fraction(0))
    published = opened.tables
    wanted = [*published, *(table for table in besides if table not in published)]
    cells = list(enumerate(opened.finest))
    try:
        fit = for_cells = _estimates(opened, sources, [*wanted, *cells])
    except NotEstimableError:
        # Two margins of one level need not determine their cells. Zeros of the greatest variance
        # choose among the cells with these margins, and hardly move the margins themselves.
        fit = _estimates(opened, sources, wanted)
        vague = {table: _zeros(opened, table) for table in cells if table not in sources}
        for_cells = _estimates(opened, sources | vague, [*wanted, *cells])
    levels = _whole_tables(opened, for_cells)
    numbers = []
    for level, whole in enumerate(levels):
        margins = []
        for margin in opened.published_at(level):
            counts = coarsened(whole.counts, opened.finest[level], margin.margin)
            margins.append(_margin_numbers(fit, level, margin.margin, counts, widths[margin.table]))
        numbers.append(LevelNumbers(level, tuple(margins)))
    estimated = {}
    for table in besides:
        numerators = fit.table(*table).astype(object)
        millionths = (numerators * (2 * MILLION) + fit.denominator) // (2 * fit.denominator)
        estimated[table] = _bounded(millionths)
    return Tabulated(tuple(numbers), estimated)


def _estimates(
    opened: OpenTabulation, sources: Mapping[Table, Measurement], tables: Sequence[Table]
) -> Estimates:
    return estimates(opened.named.areas, opened.sizes, sources, tables)


def _zeros(opened: OpenTabulation, table: Table) -> Measurement:
    level, margin = table
    shape = opened.named.areas.size(level), margin.cells
    return Measurement(np.zeros(shape, dtype=np.int64), MOST_VARIANCE)


def _whole_tables(opened: OpenTabulation, fit: Estimates) -> tuple[Level, ...]:
    """The whole numbers of the cells of every level: they keep to facts and impossible cells."""
    published: list[list[Margin]] = [[] for _ in opened.levels]
    for level, margin in opened.tables:
        published[level].append(margin)
    # At most one table of facts, at the highest level: the spec refuses more.
    facts = None
    for (_, margin), counts in opened.facts.items():
        facts = Facts(margin, counts)
    possible = []
    for cells in opened.finest:
        reached = opened.possible(cells)
        possible.append(None if reached is None else reached[None, :])
    return whole_tables(opened.named.areas, targets_of(fit, published), facts, possible)


def _margin_numbers(
    fit: Estimates, level: int, margin: Margin, counts: Codes, widths: HalfWidths
) -> MarginNumbers:
    numerators = fit.table(level, margin)
    answer, low, high = answers_of(numerators, fit.denominator, widths)
    return MarginNumbers(
        answer, counts, low, high, standard_errors_of(fit.variances(level, margin))
    )


def answers_of(
    numerators: Integers, denominator: int, widths: HalfWidths
) -> tuple[Codes, Codes, Codes]:
    """The answers in millionths, and both ends of their intervals; shapes (areas, cells).

    An estimate x with the half width w has the interval of whole numbers from x − w to x + w, cut
    at 0. Where there is none it has the two next to x: an empty interval would not be read as one.
    All is of x to the nearest 2^-64. Numbers beyond 64 bits saturate.

    Args:
        numerators: of the estimates, integers of any size; shape (areas, cells).
        denominator: of all estimates, above 0.
        widths: of the intervals.
    """
    # Least squares rounds its coefficients. Where the noise is on a lattice, x ± w can be whole,
    # and x must not miss it by a trifle: the ends of an interval may have much probability.
    near = (numerators.astype(object) * (2 * _FINE) + denominator) // (2 * denominator)
    # ⌊x·s⌋ is all that the integers below need of x, where s is a multiple of the denominators of
    # all w and of 2 millionths: ⌊x + w⌋ = ⌊(⌊x·s⌋ + w·s)/s⌋. And so for ⌈x − w⌉ with ⌈x·s⌉.
    scale = 2 * MILLION
    for width in chain.from_iterable(widths.values):
        scale = lcm(scale, width.value.denominator)
    wide = []
    for row in widths.values:
        wide.append([int(width.value * scale) for width in row])
    scaled = near * scale
    floors = scaled // _FINE
    is_between = floors * _FINE != scaled
    most = int(np.abs(floors).max(initial=0)) + max(map(max, wide)) + 1
    # Beyond 62 bits Python's own integers go on; no table of real size gets there.
    kind = np.int64 if most < 2**62 else object
    floors = floors.astype(kind)
    ceilings = floors + is_between
    reach = np.array(wide, dtype=kind)[widths.kinds][:, widths.sorts]
    answer = (floors // (scale // (2 * MILLION)) + 1) // 2
    first = np.maximum(-((reach - ceilings) // scale), 0)
    last = np.maximum((floors + reach) // scale, 0)
    return (
        _bounded(answer),
        _bounded(np.minimum(first, last)),
        _bounded(np.maximum(first, last)),
    )


def _bounded(values: Integers) -> Codes:
    return np.asarray(np.clip(values, _INTEGERS.min, _INTEGERS.max).astype(np.int64))


def standard_errors_of(variances: CellVariances) -> Codes:
    """The standard errors in millionths, rounded up; shape (areas, cells)."""
    rows = [list(map(_root, row)) for row in variances.values]
    return np.asarray(np.array(rows, dtype=np.int64)[variances.kinds][:, variances.sorts])


def _root(variance: Fraction) -> int:
    """The least whole number of millionths that is not below the root."""
    scaled = variance * MILLION**2
    square = -(-scaled.numerator // scaled.denominator)
    # In integers: a root of floats may be below, and a standard error must not be understated.
    return isqrt(square - 1) + 1 if square > 0 else 0
