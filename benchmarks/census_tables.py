"""The tables that ``bench_tables.py`` publishes: real ones of Hawaii, and made ones.

Three levels, and six margins of eight categories of race and ethnicity by two ages: total; age;
Hispanic or not; race; Hispanic by age; race by age. A person has one row, so that one who is added
or removed moves one cell of each table by 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.exact.sampling import RandomBytes
from release.tabulations.estimate.cone import coarsened
from release.tabulations.estimate.structure import Areas, Margin, kept_whole, summed_out
from release.tabulations.strategy.publication import Publication, Table, moves_of_a_row

Floats: TypeAlias = NDArray[np.float64]
Tables: TypeAlias = Mapping[Table, Floats]
"""The cells of each level and margin; shape (areas, cells)."""

SIZES = (8, 2)
"""The categories of race and ethnicity, the first of them Hispanic, and of age."""

_HISPANIC = (0, 1, 1, 1, 1, 1, 1, 1)
_RACE, _AGE, _ALL_RACES, _ALL_AGES = kept_whole(8), kept_whole(2), summed_out(8), summed_out(2)
NAMES = ("total", "age", "hisp", "race", "hisp x age", "race x age")
MARGINS = (
    Margin((_ALL_RACES, _ALL_AGES)),
    Margin((_ALL_RACES, _AGE)),
    Margin((_HISPANIC, _ALL_AGES)),
    Margin((_RACE, _ALL_AGES)),
    Margin((_HISPANIC, _AGE)),
    Margin((_RACE, _AGE)),
)
CELLS = MARGINS[-1]
"""The margin that refines all others."""

LEVELS = ("state", "county", "tract")
ALL_TABLES = tuple((level, margin) for level in range(3) for margin in range(len(MARGINS)))
PUBLISHED = tuple((level, MARGINS[margin]) for level, margin in ALL_TABLES)
"""The same, each with its margin itself."""

_SUMS = tuple(coarsened(np.eye(CELLS.cells, dtype=np.int64), CELLS, margin) for margin in MARGINS)


@dataclass(frozen=True, eq=False)
class State:
    """Areas, and what is true of them.

    Attributes:
        areas: three levels.
        counts: of each level, all 16 cells of each area; shape (areas, 16).
    """

    areas: Areas
    counts: tuple[Codes, ...]

    @classmethod
    def of_lowest(cls, areas: Areas, lowest: Codes) -> State:
        """The state with these counts of the areas of the lowest level."""
        counts = [lowest]
        for level in range(len(areas.levels) - 1, 0, -1):
            counts.insert(0, areas.summed_up(level, counts[0]))
        return cls(areas, tuple(counts))

    @property
    def persons(self) -> int:
        """How many live there."""
        return int(self.counts[0].sum())

    @cached_property
    def publication(self) -> Publication:
        """Every margin of every level, equally important."""
        moves = moves_of_a_row(self.areas, MARGINS, is_replaced=False)
        return Publication(self.areas, MARGINS, dict.fromkeys(moves, 1.0), moves)

    @property
    def cells(self) -> int:
        """How many numbers are published."""
        areas = sum(self.areas.size(level) for level in range(len(self.areas.levels)))
        return areas * sum(margin.cells for margin in MARGINS)

    @cached_property
    def truth(self) -> Tables:
        """The true tables."""
        return by_margin(self.counts)

    def measured(
        self, noises: Mapping[Table, IntegerNoise], source: RandomBytes
    ) -> dict[Table, Codes]:
        """One draw of noise on the cells of some tables; shapes (areas, cells)."""
        values = {}
        for (level, margin), noise in noises.items():
            true = coarsened(self.counts[level], CELLS, MARGINS[margin])
            values[level, margin] = true + noise.draw(true.size, source).reshape(true.shape)
        return values

    def errors(self, tables: Tables) -> Floats:
        """The mean absolute error over the cells of each table; shape (levels, margins)."""
        means = np.zeros((len(self.areas.levels), len(MARGINS)))
        for table, true in self.truth.items():
            means[table] = np.abs(tables[table] - true).mean()
        return means


def by_margin(levels: Sequence[Codes | Floats]) -> dict[Table, Floats]:
    """All tables, from the 16 cells of the areas of each level."""
    tables = {}
    for level, cells in enumerate(levels):
        for margin, sums in enumerate(_SUMS):
            tables[level, margin] = np.asarray(cells @ sums, dtype=np.float64)
    return tables


def hawaii(folder: Path) -> State:
    """State, counties and census tracts of Hawaii in 2020.

    Args:
        folder: the counts by tract, race and age, with a row for every cell.

    Raises:
        ValueError: a tract without one of its 16 rows.
    """
    rows = duckdb.execute(
        f"SELECT tract, n FROM '{folder}/truth_hi_2020.parquet' "
        "ORDER BY tract, race_eth <> 'hisp', race_eth, age_group"
    ).fetchall()
    tracts = [tract for tract, _ in rows[:: CELLS.cells]]
    if len(rows) != len({tract for tract, _ in rows}) * CELLS.cells:
        raise ValueError("every tract has a row for each of its 16 cells, empty ones included")
    counties = sorted({tract[:5] for tract in tracts})
    parents = np.array([counties.index(tract[:5]) for tract in tracts])
    areas = Areas(LEVELS, (np.zeros(1, int), np.zeros(len(counties), int), parents))
    return State.of_lowest(areas, np.array([n for _, n in rows]).reshape(-1, CELLS.cells))


def made_state(persons: int, districts: int, counties: int, seed: int) -> State:
    """A state of so many persons, in districts and counties of very different sizes."""
    random = np.random.default_rng(seed)
    parents = np.sort(random.choice(counties, districts, p=_zipf(counties)))
    parents[:counties] = np.arange(counties)
    areas = Areas(
        ("state", "county", "district"),
        (np.zeros(1, int), np.zeros(counties, int), np.sort(parents)),
    )
    weights = random.lognormal(0, 0.6, (districts, 1)) * random.lognormal(-2, 1.5, (districts, 8))
    ages = random.beta(20, 70, (districts, 1, 1)) * np.array([1, -1]) + np.array([0, 1])
    chances = (weights[:, :, None] * ages).reshape(districts, -1)
    counts = random.multinomial(persons, (chances / chances.sum()).reshape(-1))
    return State.of_lowest(areas, counts.reshape(districts, -1))


def _zipf(count: int) -> Floats:
    weights = 1 / np.sqrt(np.arange(1, count + 1))
    return np.asarray(weights / weights.sum())
