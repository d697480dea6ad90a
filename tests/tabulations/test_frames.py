"""Tables of tabulations as frames: the numbers that were published, under the right names."""

from __future__ import annotations

import re
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import release
from release.errors import SpecError, VerificationError
from release.tabulations.estimate.rounding import MILLION
from tests.conftest import PROJECT
from tests.tabulations.files.cases import LINES, TABULATION, spec_text
from tests.tabulations.files.folders import Folder, census, folder_of
from tests.verifier.made import edit

NUMBERS = ["answer", "rounded", "low", "high", "standard_error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return census(tmp_path_factory.mktemp("tables") / "public")


def test_every_table_has_its_own_numbers(folder: Folder) -> None:
    opened = release.open(str(folder.public))
    (tabulation,) = folder.tabulations
    of = tabulation.opened
    for level in tabulation.levels:
        for named, numbers in zip(of.published_at(level.level), level.margins, strict=True):
            levels = list(of.levels[: level.level + 1])
            # In any order of the names, the columns are in that of the attributes.
            frame = opened.table(levels[-1], named.names[::-1])
            assert list(frame.columns) == [*levels, *named.names, *NUMBERS]
            labels = [of.by_name[name].labels for name in named.names]
            keys = [
                (area, *key) for area in of.named.names[level.level] for key in product(*labels)
            ]
            found = frame[[levels[-1], *named.names]].itertuples(index=False, name=None)
            assert list(found) == keys
            assert (frame["answer"] == numbers.answer.reshape(-1) / MILLION).all()
            for name in ("rounded", "low", "high"):
                assert frame[name].tolist() == getattr(numbers, name).reshape(-1).tolist()
            errors = numbers.standard_error.reshape(-1) / MILLION
            assert (frame["standard_error"] == errors).all()
            assert frame.attrs["margin"] == list(named.names)


def test_areas_stand_beside_those_that_they_lie_in(folder: Folder) -> None:
    frame = release.open(folder.public).table("tract", ["age"])
    lines = set(frame[["state", "county", "tract"]].itertuples(index=False, name=None))
    assert lines == set(LINES)
    assert set(map(str, frame.dtypes[["rounded", "low", "high"]])) == {"int64"}
    assert set(map(str, frame.dtypes[["answer", "standard_error"]])) == {"float64"}


def test_a_reader_can_add_up_what_is_published(folder: Folder) -> None:
    """Over areas and over categories, whole numbers exactly and answers to their millionths."""
    opened = release.open(folder.public)
    tracts = opened.table("tract", ["race", "age"])
    counties = opened.table("county", ["race", "age"])
    by = ["state", "county", "race", "age"]
    added = tracts.groupby(by, sort=False)[["rounded", "answer"]].sum()
    known = counties.set_index(by)[["rounded", "answer"]]
    assert added["rounded"].to_dict() == known["rounded"].to_dict()
    assert np.allclose(added["answer"], known["answer"].loc[added.index], rtol=0, atol=1e-5)
    total = opened.table("state")
    assert total["rounded"].tolist() == [counties["rounded"].sum()]
    grouped = opened.table("county", ["hispanic"]).set_index(["county", "hispanic"])["rounded"]
    of_a = counties[counties["race"] == "a"].groupby("county")["rounded"].sum()
    assert grouped.xs("hisp", level="hispanic").to_dict() == of_a.to_dict()


def test_the_list_names_every_table_and_its_error(folder: Folder) -> None:
    opened = release.open(folder.public)
    tables = opened.tables()
    assert tables[["level", "areas", "cells"]].values.tolist() == [
        ["state", 1, 1],
        ["state", 1, 6],
        ["county", 2, 4],
        ["county", 2, 2],
        ["county", 2, 12],
        ["tract", 5, 10],
        ["tract", 5, 30],
        ["tract", 5, 20],
    ]
    assert set(tables["tabulation"]) == {"census"}
    for row in tables.itertuples():
        frame = opened.table(row.level, row.margin, tabulation=row.tabulation)
        assert len(frame) == row.cells
        assert frame["standard_error"].mean() == pytest.approx(row.mean_standard_error)


@pytest.mark.parametrize(
    ("level", "margin", "message"),
    [
        (
            "county",
            ["rce"],
            r"'rce'\] is not published of the county; there are \['hispanic'\], \[\], ",
        ),
        ("county", "race", r"margin: \['race'\] is not published"),
        ("county", ["race", "race"], "is not published"),
        ("tract", [], "is not published"),
        ("countie", [], "level: 'countie' is not there; did you mean 'county'"),
    ],
)
def test_what_is_not_published_is_named_with_what_is(
    level: str, margin: list[str], message: str, folder: Folder
) -> None:
    with pytest.raises(SpecError, match=message) as error:
        release.open(folder.public).table(level, margin)
    assert "\n" not in str(error.value)


def test_of_several_tabulations_one_is_named(tmp_path: Path) -> None:
    guarantee = {"definition": "pure", "epsilon": "1"}
    areas = {"file": "areas.csv", "levels": ["tract"]}
    own = TABULATION | {"guarantee": guarantee}
    other = own | {"name": "ages", "hierarchy": areas, "publish": {"tract": [[], ["age"]]}}
    folder = folder_of(
        tmp_path / "public", spec_text(own, other), (LINES, tuple((line[2],) for line in LINES))
    )
    opened = release.open(folder.public)
    assert set(opened.tables()["tabulation"]) == {"census", "ages"}
    with pytest.raises(SpecError, match="there are several; name one of census, ages"):
        opened.table("tract", ["age"])
    with pytest.raises(SpecError, match="did you mean 'ages'"):
        opened.table("tract", ["age"], tabulation="age")
    ages = opened.table("tract", tabulation="ages")
    assert list(ages.columns) == ["tract", *NUMBERS]
    assert list(opened.table("tract", ["age"], tabulation="census").columns[:4]) == [
        "state",
        "county",
        "tract",
        "age",
    ]


def test_a_release_without_queries_is_no_empty_one(folder: Folder) -> None:
    opened = release.open(folder.public)
    assert list(opened) == []
    assert opened
    assert repr(opened) == "<release census-2024: tabulations census>"
    with pytest.raises(SpecError, match=re.escape("opened by .table(level, margin)")):
        opened["census"]
    with pytest.raises(SpecError, match=re.escape("open(…).table(level, margin) has every sum")):
        release.estimate(folder.public, "census")


def test_a_release_without_tabulations_has_no_tables() -> None:
    opened = release.open(PROJECT / "tests" / "formats" / "v1" / "public" / "small")
    assert opened.tables().empty
    with pytest.raises(SpecError, match="tabulation: the release has none"):
        opened.table("county")
    assert repr(opened).startswith("<release small: queries the_count")


def test_an_altered_file_is_refused(tmp_path: Path) -> None:
    folder = census(tmp_path / "public")
    path = folder.public / "data" / "census_county.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    opened = release.open(folder.public)
    for ask in (partial(opened.table, "county"), opened.tables):
        with pytest.raises(VerificationError, match=r"data/census_county\.parquet: SHA-256"):
            ask()
    assert len(opened.table("state")) == 1
    path.unlink()
    with pytest.raises(VerificationError, match=r"county\.parquet: file"):
        opened.table("county")


def test_a_file_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    """As that of a release whose record was written for another file."""
    folder = census(tmp_path / "public")

    def swap(plain: Any) -> None:
        levels = plain["made"]["tabulations"][0]["levels"]
        levels[1]["file"] = levels[0]["file"]

    edit(folder.public, "release.json", swap)
    with pytest.raises(VerificationError, match="columns: found no such column"):
        release.open(folder.public).table("county")
