"""Least squares on a tree of areas: the best linear unbiased estimate of tables that add up.

Two passes over the tree, for each component of the tables (``components``). Upward, an area's rows
correct the sum of what is known of its children; downward, what the parent knows better than the
sum of its children is divided among them in proportion to their covariances (docs/design/
mathematics.md, T11). The coefficients depend on the type of an area alone (``covariances``).

The result is integers over one denominator, and every operation is one of integers with a stated
rounding: neither floats nor the order of the areas have a say. Areas that change places change
places in the result, bit for bit. Tables add up exactly, because each area's estimates are the sums
of its children's, and all margins of an area are linear functions of the same numbers.

Against exact least squares an estimate is off by at most 2·N·√κ·(R + k + 1)·D/2^192: N areas, at
most k functionals and R rows in an area, D the largest number that is read or summed, κ the largest
ratio of eigenvalues of the covariances on the way (T11 of docs/design/mathematics.md has the
proof). That is less than 10^-12 of a unit for 2^24 areas, sums up to 2^64 and ratios up to 2^96.
Tables add up exactly whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from release.exact.domain import Codes
from release.tabulations.estimate.components import Component, Integers
from release.tabulations.estimate.passes import ComponentEstimates, applied, component_estimates
from release.tabulations.estimate.problem import Problem, Table
from release.tabulations.estimate.structure import Areas, Margin
from release.tabulations.estimate.variances import CellVariances, variances_of


@dataclass(frozen=True, eq=False)
class Measurement:
    """A table as it was measured.

    Attributes:
        values: unbiased integers, shape (areas, cells).
        variance: of the noise of every cell; 0 for a declared fact.
    """

    values: Codes
    variance: Fraction


@dataclass(frozen=True, eq=False)
class Estimates:
    """Least squares of all published tables.

    Attributes:
        problem: what was asked.
        denominator: of every estimate.
    """

    problem: Problem
    denominator: int
    _parts: Mapping[Component, ComponentEstimates]

    def table(self, level: int, margin: Margin) -> Integers:
        """The numerators of a published table over ``denominator``; shape (areas, cells).

        Raises:
            ValueError: the table is not among the published.
        """
        table = (level, margin)
        problem = self.problem
        if table not in problem.published:
            raise ValueError("only published tables have estimates")
        parts: dict[Component, Integers] = {}
        for component in problem.frame.components_of(margin):
            own = self._parts[component]
            rows, denominator = problem.rows(table, component)
            # Without a rest: the common denominator was made of these (``_denominator``).
            factor = self.denominator // (own.denominator * denominator * problem.frame.denominator)
            parts[component] = applied(factor * rows, own.levels[problem.tree.places[level]])
        return problem.frame.merged(margin, parts)

    def variances(self, level: int, margin: Margin) -> CellVariances:
        """The variances of a published table."""
        return variances_of(self.problem, (level, margin))


def estimates(
    areas: Areas,
    sizes: Sequence[int],
    measurements: Mapping[Table, Measurement],
    published: Iterable[Table],
) -> Estimates:
    """Estimate tables that add up from measured ones.

    Args:
        areas: the areas of all levels.
        sizes: the number of categories of each attribute.
        measurements: the measured tables; facts, of variance 0, at the highest level only.
        published: the tables to estimate.

    Raises:
        ValueError: a level or a margin that does not exist, values of another shape, a variance
            out of bounds, facts that contradict each other, or a table that the measured ones do
            not determine.
    """
    measured = {table: own.variance for table, own in measurements.items()}
    problem = Problem.of(areas, sizes, measured, published)
    values: dict[Table, Integers] = {}
    # Parted once for each table: components read different slices of the same array.
    for (level, margin), own in measurements.items():
        shape = areas.size(level), margin.cells
        if own.values.shape != shape or own.values.dtype != np.int64:
            raise ValueError(
                f"level {areas.levels[level]}: a margin has integers of the shape {shape}, "
                f"not {own.values.dtype} of {own.values.shape}"
            )
        values[level, margin] = problem.frame.parted(margin, own.values)
    parts: dict[Component, ComponentEstimates] = {}
    for component, solution in problem.solutions.items():
        rows = []
        for sources in solution.system.sources:
            measured_rows = []
            for source in sources:
                parted = values[source.level, source.margin]
                measured_rows.append(problem.frame.part(source.margin, component, parted))
            rows.append(measured_rows)
        parts[component] = component_estimates(solution, rows, problem.frame.columns(component))
    return Estimates(problem, _denominator(problem, parts), parts)


def _denominator(problem: Problem, parts: Mapping[Component, ComponentEstimates]) -> int:
    """A denominator of every cell of every published table."""
    denominators = [1]
    for table in problem.published:
        for component in problem.frame.components_of(table[1]):
            rows = problem.rows(table, component)
            denominators.append(parts[component].denominator * rows[1])
    return lcm(*denominators) * problem.frame.denominator
