"""Whole numbers for Hawaii by state, county and tract keep what least squares knows."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.tables.cone import AddingUp, excess_bound
from release.exact.tables.rounding import MILLION, Groups
from release.exact.tables.structure import Areas, Margin, kept_whole, summed_out
from release.exact.tables.whole import Target, check_adds_up, weights_of, whole_tables

Floats = NDArray[np.float64]
Strategy = Mapping[tuple[int, int], float]
"""The share of ε that each measured (level, margin) has."""

RACES = (summed_out(8), (0, 1, 1, 1, 1, 1, 1, 1), kept_whole(8))
AGES = (summed_out(2), kept_whole(2))
MARGINS = tuple(Margin((race, age)) for race in RACES for age in AGES)
CELLS = MARGINS[-1]
SUMS = [np.eye(margin.cells)[margin.cell_of].T for margin in MARGINS]

DETAIL: Strategy = {(2, 5): 0.383, (1, 5): 0.423, (0, 3): 0.194}
"""About the best known strategy for these margins: two tables of full detail and one more."""

TOTALS: Strategy = {(2, 5): 0.3, (2, 0): 0.25, (1, 5): 0.3, (0, 3): 0.15}
"""A strategy that measures the totals of tracts well."""


def hawaii(folder: Path) -> tuple[Areas, list[Codes]]:
    """The areas, and the true counts of each level; shape (areas, 16)."""
    rows = duckdb.execute(
        f"SELECT tract, n FROM '{folder}/truth_hi_2020.parquet' "
        "ORDER BY tract, race_eth <> 'hisp', race_eth, age_group"
    ).fetchall()
    counties = sorted({tract[:5] for tract, _ in rows})
    parents = np.array([counties.index(tract[:5]) for tract, _ in rows[::16]])
    none, states = np.zeros(1, dtype=np.int64), np.zeros(len(counties), dtype=np.int64)
    areas = Areas(("state", "county", "tract"), (none, states, parents))
    tracts = np.array([n for _, n in rows], dtype=np.int64).reshape(-1, 16)
    by_county = areas.summed_up(2, tracts)
    return areas, [areas.summed_up(1, by_county), by_county, tracts]


class LeastSquares:
    """Least squares over the tree of areas by matrices of all cells, in floats."""

    def __init__(self, areas: Areas, variances: Strategy) -> None:
        self.areas, self.variances = areas, variances
        own = np.zeros((3, 16, 16))
        for (level, margin), variance in variances.items():
            own[level] += SUMS[margin].T @ SUMS[margin] / variance
        below = np.repeat(np.linalg.inv(own[2])[None], areas.size(2), axis=0)
        # The variance of each area from its own measurements and those below it.
        self.within = [below]
        self.between: list[Floats] = []
        for level in (1, 0):
            self.between.insert(0, np.add.reduceat(below, self._starts(level + 1)))
            below = np.linalg.inv(own[level] + np.linalg.inv(self.between[0]))
            self.within.insert(0, below)

    def _starts(self, level: int) -> Codes:
        return np.flatnonzero(np.diff(self.areas.parents[level], prepend=-1))

    def estimates(self, noisy: Mapping[tuple[int, int], Floats]) -> list[Floats]:
        """The cells of each level; shape (areas, 16)."""
        known = [np.zeros((self.areas.size(level), 16)) for level in range(3)]
        for (level, margin), table in noisy.items():
            known[level] += table @ SUMS[margin] / self.variances[level, margin]
        upward = [np.einsum("aij,aj->ai", self.within[2], known[2])]
        totals: list[Floats] = []
        for level in (1, 0):
            totals.insert(0, np.add.reduceat(upward[0], self._starts(level + 1)))
            children = np.linalg.solve(self.between[level], totals[0][..., None])[..., 0]
            upward.insert(0, np.einsum("aij,aj->ai", self.within[level], known[level] + children))
        result = [upward[0]]
        for level in (1, 2):
            rest = np.linalg.solve(
                self.between[level - 1], (result[-1] - totals[level - 1])[..., None]
            )
            share = rest[self.areas.parents[level], :, 0]
            result.append(upward[level] + np.einsum("aij,aj->ai", self.within[level], share))
        return result


def released(
    areas: Areas, truth: list[Codes], strategy: Strategy, epsilon: float, rng: np.random.Generator
) -> list[Floats]:
    """Least squares of one draw of geometric noise."""
    ratios = {key: np.exp(-epsilon * share) for key, share in strategy.items()}
    variances = {key: 2 * ratio / (1 - ratio) ** 2 for key, ratio in ratios.items()}
    noisy = {}
    for (level, margin), ratio in ratios.items():
        true = truth[level] @ SUMS[margin].T
        noise = [rng.geometric(1 - ratio, true.shape) for _ in range(2)]
        noisy[level, margin] = true + noise[0] - noise[1]
    return LeastSquares(areas, variances).estimates(noisy)


def errors(tables: list[Floats], truth: list[Codes]) -> Floats:
    """The mean absolute error of each level and margin; shape (3, 6)."""
    means = np.zeros((3, 6))
    for level, (table, true) in enumerate(zip(tables, truth, strict=True)):
        for margin, sums in enumerate(SUMS):
            means[level, margin] = np.abs((table - true) @ sums.T).mean()
    return means


@pytest.mark.parametrize("strategy", [DETAIL, TOTALS], ids=["detail", "totals"])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_whole_numbers_of_hawaii_are_as_near_as_the_estimates(
    epsilon: float, strategy: Strategy, census: Path
) -> None:
    areas, truth = hawaii(census)
    rng = np.random.default_rng(22)
    draws = [released(areas, truth, strategy, epsilon, rng) for _ in range(8)]
    unrounded = np.mean([errors(draw, truth) for draw in draws], axis=0)
    # Precision, as a planner knows it: here from the draws themselves.
    squares = [[Fraction(float(error) ** 2) for error in level] for level in unrounded]
    weights = [weights_of(MARGINS, level) for level in squares]
    rounded = np.zeros((3, 6))
    for draw in draws:
        targets = [
            Target(CELLS, np.rint(table * MILLION).astype(np.int64), MARGINS, weight)
            for table, weight in zip(draw, weights, strict=True)
        ]
        levels = whole_tables(areas, targets)
        counts = [level.counts for level in levels]
        check_adds_up(areas, [CELLS] * 3, counts)
        rounded += errors([table.astype(float) for table in counts], truth) / len(draws)
        target = targets[2]
        everywhere = np.ones(counts[2].shape, dtype=bool)
        allowed = AddingUp(Groups(areas.children(1)), counts[1], everywhere)
        excess = excess_bound(levels[2].near, target.estimates, target.distance(), allowed)
        least = target.distance().squared(levels[2].near - target.estimates)
        assert abs(excess) < 1e-5 * least
    assert rounded.mean() < unrounded.mean()
    # Detail gains from its zeros, and the totals of tracts are not given up for it.
    assert rounded[2, 5] < 0.93 * unrounded[2, 5]
    assert rounded[2, 0] < 1.02 * unrounded[2, 0]
