"""The Census Bureau's way to tables that add up, in small: the idea of its TopDown algorithm.

Every table of every level is measured with discrete Gaussian noise under zero-concentrated
differential privacy. Then, from the top level down, the areas of a parent are estimated together
from the measurements of *their own level*: the non-negative cells that add up to the parent's whole
numbers and are nearest to all measured margins, in squares weighted by precision. They are rounded
so that they still add up, and are the parents of the next level. So nothing that is measured below
corrects what lies above.

Two kinds of the algorithm: in one pass all margins of a level are fitted at once; with *totals
first* an earlier pass decides the total of each area, and the cells are held to it by a great
weight, which stands for the equality constraints of the Bureau's several passes. Least squares and
rounding are this project's solvers: the nearest table of weighted squares is the same problem, and
its rounding is no worse. Not modelled: facts held without noise, structural zeros, the spine of
areas that is optimised, and passes for margins between the total and the detail.

Source: Abowd et al. 2022, The 2020 Census Disclosure Avoidance System TopDown Algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from census_tables import CELLS, MARGINS, Floats, State
from zcdp import rho_within

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import RandomBytes
from release.noise.composed.laws import exponential_power
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.rounding import MILLION
from release.tabulations.estimate.whole import Target, check_adds_up, whole_tables
from release.tabulations.strategy.publication import Table

TOTAL = MARGINS[0]

_FINEST_WEIGHT = 100
"""The weight of the least precise margin; weights are integers."""

_HELD = 64
"""How many times as much as all margins together a total weighs that an earlier pass decided."""


@dataclass(frozen=True, eq=False)
class TopDown:
    """The algorithm with a given split of the budget.

    Attributes:
        state: the areas and the truth.
        noises: of every table; together they are within the budget.
        totals_first: whether totals are decided in a pass of their own.
    """

    state: State
    noises: Mapping[Table, IntegerNoise]
    totals_first: bool = False

    def draw(self, source: RandomBytes) -> tuple[Codes, ...]:
        """The whole numbers of one draw: for each level the cells, shape (areas, 16)."""
        measured = self.state.measured(self.noises, source)
        areas = self.state.areas
        levels = range(len(areas.levels))
        fits = [self._fit(level, measured) for level in levels]
        targets = [fit.target() for fit in fits]
        if self.totals_first:
            tops = [fit.total_target() for fit in fits]
            totals = whole_tables(areas, tops)
            pairs = zip(fits, totals, strict=True)
            targets = [fit.held_to(total.counts).target() for fit, total in pairs]
        counts = tuple(level.counts for level in whole_tables(areas, targets))
        check_adds_up(areas, [CELLS] * len(counts), counts)
        return counts

    def _fit(self, level: int, measured: Mapping[Table, Codes]) -> Fit:
        """Least squares of a level by itself."""
        values, precisions = [], []
        for margin in range(len(MARGINS)):
            values.append(measured[level, margin].astype(float))
            precisions.append(float(1 / self.noises[level, margin].moment(2)))
        least = min(precisions)
        weights = [round(_FINEST_WEIGHT * own / least) for own in precisions]
        return Fit(tuple(values), tuple(weights))


@dataclass(frozen=True, eq=False)
class Fit:
    """The margins of a level as they were measured, and their weights."""

    values: tuple[Floats, ...]
    weights: tuple[int, ...]

    def cells(self) -> Floats:
        """The cells that are nearest to all margins, of any sign."""
        information = np.zeros((CELLS.cells, CELLS.cells))
        right = np.zeros((self.values[0].shape[0], CELLS.cells))
        for values, weight, margin in zip(self.values, self.weights, MARGINS, strict=True):
            sums = coarsened(np.eye(CELLS.cells, dtype=np.int64), CELLS, margin)
            information += weight * sums @ sums.T
            right += weight * values @ sums.T
        return np.asarray(np.linalg.solve(information, right.T).T)

    def target(self) -> Target:
        """What the cells are to be near to."""
        return Target(CELLS, _in_millionths(self.cells()), MARGINS, self.weights)

    def total_target(self) -> Target:
        """What the totals alone are to be near to."""
        totals = self.cells().sum(axis=1, keepdims=True)
        return Target(TOTAL, _in_millionths(totals), (TOTAL,), (1,))

    def held_to(self, totals: Codes) -> Fit:
        """The same with totals that are as good as certain; shape (areas, 1)."""
        values = (totals.astype(float), *self.values[1:])
        return Fit(values, (_HELD * sum(self.weights), *self.weights[1:]))


def _in_millionths(values: Floats) -> Codes:
    return np.rint(values * MILLION).astype(np.int64)


def zcdp_noises(
    shares: Mapping[Table, float], epsilon: Fraction, delta: Fraction
) -> dict[Table, IntegerNoise]:
    """Discrete Gaussian noise on some tables, composed by zero-concentrated privacy.

    Args:
        shares: of each table in ρ.
        epsilon: of all together.
        delta: above 0.
    """
    rho, total = rho_within(float(epsilon), float(delta)), sum(shares.values())
    noises = {}
    for table, share in shares.items():
        # N(0, σ²) costs 1/(2σ²) where one cell moves by 1, and exp(-(η/t)²) has t² = 2σ².
        scale = math.sqrt(total / (rho * share))
        noises[table] = exponential_power(Fraction(scale).limit_denominator(10**6), Fraction(2))
    return noises
