"""A census of real persons, published whole, beside the counts that are known to be true."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

import release
from tests.conftest import SHARED
from tests.data.test_real_persons import numbered
from tests.tabulated import plain_spec

if TYPE_CHECKING:
    import pandas as pd

    from release.analysis.opened import Opened

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEVELS = ("state", "county", "tract")
RACES = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
MARGINS: tuple[tuple[str, ...], ...] = (
    (),
    ("age_group",),
    ("hispanic",),
    ("race_eth",),
    ("hispanic", "age_group"),
    ("race_eth", "age_group"),
)
TRUE_CELLS = """
SELECT 'hawaii' AS state, left(tract, 5) AS county, tract, race_eth, age_group, n,
       CASE race_eth WHEN 'hisp' THEN 'yes' ELSE 'no' END AS hispanic
FROM '{file}'
"""
SPEC = plain_spec(
    [
        {
            "name": "pl",
            "units": "persons",
            "table": "persons",
            "hierarchy": {"file": "areas.csv", "levels": list(LEVELS)},
            "attributes": {"race_eth": list(RACES), "age_group": ["minor", "adult"]},
            "groupings": {
                "hispanic": {
                    "of": "race_eth",
                    "classes": {"yes": ["hisp"], "no": list(RACES[1:])},
                }
            },
            "publish": {level: [list(margin) for margin in MARGINS] for level in LEVELS},
        }
    ],
    columns=dict.fromkeys(["person", "tract", "race_eth", "age_group"], "string"),
    release="hawaii-2020",
)


@dataclass(frozen=True, eq=False)
class Published:
    """A table beside the truth; arrays have an entry for each row.

    Attributes:
        level: of its areas.
        margin: its attributes and groupings.
        frame: the table as published.
        true: the true counts.
    """

    level: str
    margin: tuple[str, ...]
    frame: pd.DataFrame
    true: Floats

    def error_ratio(self, column: str) -> float:
        """The mean absolute error of a column, in standard errors."""
        errors = np.abs(self.frame[column].to_numpy() - self.true)
        return float((errors / self.frame["standard_error"].to_numpy()).mean())

    def covered(self) -> Flags:
        """Which intervals hold the true count."""
        low, high = self.frame["low"].to_numpy(), self.frame["high"].to_numpy()
        return np.asarray((low <= self.true) & (self.true <= high))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Published]:
    """All tables of one release of all persons of Hawaii, verified."""
    source = SHARED / "census_pl94"
    if not source.is_dir():
        pytest.skip("the real table census_pl94 is not beside the project")
    folder = tmp_path_factory.mktemp("hawaii")
    numbered(source / "persons_hi_2020.parquet", folder / "persons.parquet")
    cells = f"({TRUE_CELLS.format(file=source / 'truth_hi_2020.parquet')})"
    areas = f"SELECT DISTINCT {', '.join(LEVELS)} FROM {cells}"
    duckdb.execute(f"COPY ({areas}) TO '{folder}/areas.csv' (HEADER)")
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC), "utf-8")
    public = release.run(folder / "spec.yaml", folder / "out").public
    assert release.verify(public, require="none").status == 0
    opened = release.open(public)
    return [beside_truth(opened, cells, level, margin) for level in LEVELS for margin in MARGINS]


def beside_truth(opened: Opened, cells: str, level: str, margin: tuple[str, ...]) -> Published:
    """A published table with the true count of each row, which is added up from ``cells``."""
    frame = opened.table(level, margin)
    keys = [*LEVELS[: LEVELS.index(level) + 1], *margin]
    counts = duckdb.execute(
        f"SELECT {', '.join(keys)}, sum(n)::BIGINT AS n FROM {cells} GROUP BY ALL"
    ).df()
    joined = frame.merge(counts, on=keys, how="left", validate="one_to_one")
    assert len(joined) == len(frame) == len(counts)
    return Published(level, margin, frame, joined["n"].to_numpy(np.float64))


def test_all_numbers_of_the_census_are_published(tables: list[Published]) -> None:
    assert sum(len(table.frame) for table in tables) == 15_411
    assert {table.true.sum() for table in tables} == {1_455_271}


@pytest.mark.parametrize(("column", "least"), [("answer", 0.6), ("rounded", 0.5)])
def test_errors_are_those_that_the_standard_errors_promise(
    column: str, least: float, tables: list[Published]
) -> None:
    """An error has a mean absolute value of 0.7 (two-sided exponential) to 0.8 (normal) of them.

    The means of these tables have standard deviations of at most 0.03. Whole numbers are nearer,
    0.59 of a standard error in the finest table, because many counts are near 0.
    """
    large = [table for table in tables if len(table.frame) >= 400]
    assert len(large) == 6
    for table in large:
        assert least < table.error_ratio(column) < 1, (table.level, table.margin)


def test_intervals_cover_the_true_counts(tables: list[Published]) -> None:
    """95.4 % of them on average, with a standard deviation of 0.3 %: half widths are on a grid."""
    covered = np.concatenate([table.covered() for table in tables])
    assert 0.93 < covered.mean() < 0.97


def test_whole_numbers_add_up_over_areas_and_categories(tables: list[Published]) -> None:
    by_name = {(table.level, table.margin): table.frame for table in tables}
    for level, above in pairwise(reversed(LEVELS)):
        for margin in MARGINS:
            keys = [*LEVELS[: LEVELS.index(above) + 1], *margin]
            added = by_name[level, margin].groupby(keys, sort=False)["rounded"].sum()
            assert added.to_dict() == by_name[above, margin].set_index(keys)["rounded"].to_dict()
    for level in LEVELS:
        finest = by_name[level, MARGINS[-1]]
        finest = finest.assign(hispanic=np.where(finest["race_eth"] == "hisp", "yes", "no"))
        assert (finest["rounded"] >= 0).all()
        for margin in MARGINS:
            keys = [*LEVELS[: LEVELS.index(level) + 1], *margin]
            added = finest.groupby(keys, sort=False)["rounded"].sum()
            assert added.to_dict() == by_name[level, margin].set_index(keys)["rounded"].to_dict()
