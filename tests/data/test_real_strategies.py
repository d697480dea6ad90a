"""Strategies for the tables of a real state: as good as is known, from its areas alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.strategy.publication import Publication
from release.tabulations.strategy.strategy import choose_strategy
from tests.tabulations.strategy import dense


def hawaii(census: Path) -> Publication:
    """State, counties and tracts; total, age, Hispanic, race, Hispanic by age, race by age."""
    tracts = pq.read_table(census / "truth_hi_2020.parquet").column("tract").unique().to_pylist()
    counties = sorted({tract[:5] for tract in tracts})
    parents = np.array([counties.index(tract[:5]) for tract in sorted(tracts)])
    areas = Areas(
        ("state", "county", "tract"), (np.zeros(1, int), np.zeros(len(counties), int), parents)
    )
    hispanic = (0, *[1] * 7)
    margins = []
    for race in (summed_out(8), hispanic, kept_whole(8)):
        margins += [Margin((race, summed_out(2))), Margin((race, kept_whole(2)))]
    return dense.publication_of(areas, tuple(margins))


@pytest.mark.parametrize(
    ("epsilon", "geometric", "gaussian"),
    [("1/2", 16.00, 19.5), ("1", 7.974, 10.22), ("4", 1.766, 2.89)],
)
def test_strategies_of_a_state(
    census: Path, epsilon: str, geometric: float, gaussian: float
) -> None:
    choice = choose_strategy(hawaii(census), Fraction(epsilon), Fraction(1, 10**6))
    assert choice.geometric is not None
    assert choice.geometric.objective <= geometric
    assert choice.gaussian is not None
    assert choice.gaussian.objective <= gaussian
    assert choice.gaussian.gap is not None
    assert choice.gaussian.gap < 1e-3
