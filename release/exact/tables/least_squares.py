"""Least squares on a tree of areas: the best linear unbiased estimate of tables that add up.

Two passes over the tree, for each component of the tables (``components``). Upward, an area's rows
correct the sum of what is known of its children; downward, what the parent knows better than the
sum of its children is divided among them in proportion to their covariances (docs/design/
mathematics.md). The coefficients depend on the type of an area alone (``covariances``).

The result is integers over one denominator, and every operation is one of integers with a stated
rounding: neither floats nor the order of the areas have a say. Areas that change places change
places in the result, bit for bit. Tables add up exactly, because each area's estimates are the sums
of its children's, and all margins of an area are linear functions of the same numbers.

**How far this is from exact least squares.** Write N for the number of areas of the tree, h for its
levels, k for the largest number of functionals of a component, and κ for the largest ratio of
eigenvalues of a covariance on the way.

- Every rounding of a covariance changes it by at most k/2^512 in norm: by a factor within 1 ± η in
  the order of symmetric matrices, with η = k/(2^512 λ), λ its least eigenvalue. Gains made from it
  are exact for noise whose covariance differs by factors within 1 ± η. Such estimates differ from
  exact ones by at most 2hkη standard errors times the norm of the residuals in units of their
  noise. With variances of at least 2^-64 and k ≤ 16, λ > 2^-140 and η < 2^-360.
- A coefficient is rounded by at most 2^-193, and met by data that is at most Y·N, if Y is the
  largest measured number; an estimate is rounded by at most 2^-193 too. Both passes contract errors
  in the norms of the inverse covariances, so that roundings add up to at most
  4·N·h·k·√κ·(1 + Y·N)·2^-193 in any sum of estimates.

For Y ≤ 2^40, N ≤ 2^24, √κ ≤ 2^48 and 4hk ≤ 2^10 this is below 2^-46, less than 10^-12 of a unit.
Ratios of variances up to 2^64 are within that. Outside these bounds tables still add up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from release.exact.domain import Codes
from release.exact.tables.components import Component, Integers
from release.exact.tables.passes import ComponentEstimates, applied, component_estimates
from release.exact.tables.problem import Problem, Table
from release.exact.tables.structure import Areas, Margin
from release.exact.tables.variances import CellVariances, variances_of


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
        rows = [
            [
                problem.frame.part(item.margin, component, values[item.level, item.margin])
                for item in sources
            ]
            for sources in solution.system.sources
        ]
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
