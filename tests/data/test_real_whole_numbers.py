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
from release.tabulations.estimate.cone import AddingUp, coarsened, excess_bound
from release.tabulations.estimate.least_squares import Estimates, Measurement, estimates
from release.tabulations.estimate.rounding import MILLION, Groups
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.estimate.whole import check_adds_up, targets_of, whole_tables

Floats = NDArray[np.float64]
Strategy = Mapping[tuple[int, int], float]
"""The share of ε that each measured (level, margin) has."""

RACES = (summed_out(8), (0, 1, 1, 1, 1, 1, 1, 1), kept_whole(8))
AGES = (summed_out(2), kept_whole(2))
MARGINS = tuple(Margin((race, age)) for race in RACES for age in AGES)
CELLS = MARGINS[-1]
SUMS = [np.eye(margin.cells)[margin.cell_of].T for margin in MARGINS]

DRAWS = 8

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


def released(
    areas: Areas, truth: list[Codes], strategy: Strategy, epsilon: float, rng: np.random.Generator
) -> Estimates:
    """Least squares of one draw of geometric noise."""
    measured = {}
    for (level, margin), share in strategy.items():
        ratio = np.exp(-epsilon * share)
        true = coarsened(truth[level], CELLS, MARGINS[margin])
        noise = [rng.geometric(1 - ratio, true.shape) for _ in range(2)]
        # Near enough to the exact variance for this.
        variance = Fraction(2 * ratio / (1 - ratio) ** 2).limit_denominator(1000)
        measured[level, MARGINS[margin]] = Measurement(true + noise[0] - noise[1], variance)
    published = [(level, margin) for level in range(3) for margin in MARGINS]
    return estimates(areas, (8, 2), measured, published)


def errors(tables: list[Floats], truth: list[Codes]) -> Floats:
    """The mean absolute error of each level and margin, from cells; shape (3, 6)."""
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
    unrounded, rounded = np.zeros((3, 6)), np.zeros((3, 6))
    for _ in range(DRAWS):
        targets = targets_of(released(areas, truth, strategy, epsilon, rng), [MARGINS] * 3)
        levels = whole_tables(areas, targets)
        counts = [level.counts for level in levels]
        check_adds_up(areas, [CELLS] * 3, counts)
        unrounded += errors([target.estimates / MILLION for target in targets], truth) / DRAWS
        rounded += errors([table.astype(float) for table in counts], truth) / DRAWS
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
