"""Opening a tabulation: its areas, its declared numbers, and files that do not fit."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.errors import SpecError
from release.queries.read import read_spec
from release.tabulations.spec.opened import OpenTabulation
from tests.tabulations.spec.test_check import T, changed, numbers

TRACTS = "county,tract\nsouth,t2\nnorth,t1\nsouth,t3\n"


def opened_in(folder: Path, data: str | None, *changes: tuple[str, Any]) -> OpenTabulation:
    """The tabulation of a spec in a folder, with these declared numbers."""
    (folder / "tracts.csv").write_text(TRACTS)
    if data is not None:
        (folder / "numbers.csv").write_text(data)
    (folder / "spec.yaml").write_text(json.dumps(changed(*changes)))
    return read_spec(folder / "spec.yaml").tabulations[0]


def with_numbers(margin: list[str]) -> tuple[str, Any]:
    return T + "constraints", [numbers(margin)]


def test_declared_numbers_stand_in_the_order_of_areas_and_cells(tmp_path: Path) -> None:
    data = "count,adult,county\n7,yes,north\n0,yes,south\n5,no,south\n12,no,north\n"
    opened = opened_in(tmp_path, data, with_numbers(["adult"]))
    ((level, margin),) = opened.facts
    assert level == 0
    assert margin == opened.margin(["adult"])
    assert opened.facts[level, margin].tolist() == [[12, 7], [5, 0]]
    assert opened.named.names == (("north", "south"), ("t1", "t2", "t3"))


@given(st.permutations([*product(["south", "north"], ["a", "b"], range(4))]))
def test_declared_numbers_do_not_depend_on_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("spec")
    data = "county,age,race,count\n"
    for county, race, age in lines:
        data += f"{county},{age},{race},{100 * (county == 'south') + 10 * (race == 'b') + age}\n"
    opened = opened_in(folder, data, with_numbers(["age", "race"]))
    (counts,) = opened.facts.values()
    expected = [[0, 1, 2, 3, 10, 11, 12, 13], [100, 101, 102, 103, 110, 111, 112, 113]]
    assert np.array_equal(counts, expected)


@pytest.mark.parametrize(
    ("data", "at", "says"),
    [
        ("", "", "has no column 'county'"),
        ("county,number\nnorth,3\n", "", "has no column 'count'"),
        ("county,count\n", "", "2 of 2 cells have no number"),
        ("county,count\nnorth,3\n", "", "1 of 2 cells have no number"),
        ("county,count\nnorth,3\neast,4\n", " (line 3)", "'east' is not there"),
        ("county,count\nnorth,3\nnorth,3\n", " (line 3)", "has a number already"),
        ("county,count\nnorth,-3\nsouth,4\n", " (line 2)", "from 0 to 4000000000"),
        ("county,count\nnorth,3.0\nsouth,4\n", " (line 2)", "from 0 to 4000000000"),
        ("county,count\nnorth,\nsouth,4\n", " (line 2)", "the count is ''"),
        ("county,count\nnorth,٣\nsouth,4\n", " (line 2)", "the count is '٣'"),
        ("county,count\nnorth,40000000000\nsouth,4\n", " (line 2)", "from 0 to 4000000000"),
        ("county,count\nnorth,4000000000\nsouth,1\n", "", "add up to more than 4000000000"),
    ],
)
def test_refuses_declared_numbers(tmp_path: Path, data: str, at: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        opened_in(tmp_path, data, with_numbers([]))
    assert error.value.field == f"tabulations[0].constraints[0].file{at}"
    assert says in error.value.problem


def test_the_most_units_can_be_declared(tmp_path: Path) -> None:
    data = "county,count\nnorth,3999999999\nsouth,1\n"
    (counts,) = opened_in(tmp_path, data, with_numbers([])).facts.values()
    assert counts.tolist() == [[3999999999], [1]]


def test_refuses_numbers_that_no_published_margin_has(tmp_path: Path) -> None:
    published = (T + "publish", {"county": [["race"]], "tract": [["adult"]]})
    with pytest.raises(SpecError, match="publish this one") as error:
        opened_in(tmp_path, "", published, with_numbers(["age"]))
    assert error.value.field == "tabulations[0].constraints[0].margin"


def test_refuses_numbers_above_0_of_impossible_combinations(tmp_path: Path) -> None:
    zeros = {"impossible": {"age": {"range": [2, 3]}}}
    data = "county,adult,count\nnorth,no,3\nnorth,yes,{}\nsouth,no,0\nsouth,yes,0\n"
    constraints = (T + "constraints", [zeros, numbers(["adult"])])
    assert opened_in(tmp_path, data.format(0), constraints).facts
    with pytest.raises(SpecError, match="of an impossible combination") as error:
        opened_in(tmp_path, data.format(1), constraints)
    assert error.value.field == "tabulations[0].constraints[1].file"


def test_refuses_more_cells_than_fit(tmp_path: Path) -> None:
    (tmp_path / "tracts.csv").write_text(
        "county,tract\n" + "".join(f"c,t{number}\n" for number in range(300))
    )
    big = changed(
        (T + "attributes.age", {"range": [0, 2**18 - 1]}),
        (T + "groupings", {}),
        (T + "publish", {"county": [[]], "tract": [[], ["age"]]}),
    )
    (tmp_path / "spec.yaml").write_text(json.dumps(big))
    with pytest.raises(SpecError, match="at most 33554432") as error:
        read_spec(tmp_path / "spec.yaml")
    assert error.value.field == "tabulations[0].publish.tract"
    assert str(300 * (2**18 + 1)) in error.value.problem
