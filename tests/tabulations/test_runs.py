"""Random tabulations from spec to verdict: what is published adds up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import SpecError
from release.street import run_release
from tests.tabulated import Plain, Tabulated, check_published, plain_spec, run_and_check

NO_WHOLE_NUMBER_NEAR, KNOWN_EXACTLY, TWO_NAMES = 43, 104, 1159
"""Seeds with an interval shorter than 1, with a total that rounding left below 0 variance, and with
declared numbers of a margin that is published under another name too."""


@pytest.mark.parametrize("seed", [*range(16), NO_WHOLE_NUMBER_NEAR, KNOWN_EXACTLY, TWO_NAMES])
def test_random_tabulations_are_published_and_add_up(seed: int, tmp_path: Path) -> None:
    run_and_check(seed, tmp_path)


def test_sums_are_compared(tmp_path: Path) -> None:
    assert run_and_check(2, tmp_path) > 20


def small(margin: list[str], count: str) -> Tabulated:
    """A tabulation with a grouping of one class, and with the declared totals of two areas."""
    files = {
        "tab.csv": [["state", "tract"], ["s1", "t1"], ["s1", "t2"], ["s2", "t3"]],
        "declared.csv": [["state", "count"], ["s1", count], ["s2", "3"]],
    }
    tables = [
        {"level": "tract", "margin": ["race"], "share": "1"},
        {"level": "tract", "margin": margin, "share": "1"},
    ]
    tabulation: Plain = {
        "name": "tab",
        "table": "persons",
        "hierarchy": {"file": "tab.csv", "levels": ["state", "tract"]},
        "attributes": {"race": ["a", "b"]},
        "groupings": {"any": {"of": "race", "classes": {"all": ["a", "b"]}}},
        "publish": {"state": [[]], "tract": [["race"], [], ["any"]]},
        "constraints": [{"level": "state", "margin": [], "file": "declared.csv"}],
        "strategy": {"tables": [*tables, {"level": "tract", "margin": [], "share": "1"}]},
    }
    if margin == []:
        tabulation["strategy"]["tables"] = tables
    return Tabulated(plain_spec([tabulation]), [], files)


def test_areas_of_one_place_each_are_measured_above_and_published_below(tmp_path: Path) -> None:
    """What is measured of a state is as fine as what is published of its only tract."""
    case = small([], "5")
    areas = {"tab.csv": [["state", "tract"], ["s1", "t1"], ["s2", "t3"]]}
    case = replace(case, files=areas)
    tabulation = case.plain["tabulations"][0]
    tabulation["publish"] = {"state": [[], ["race"]], "tract": [[], ["any"]]}
    tabulation["strategy"] = {"tables": [{"level": "state", "margin": ["race"], "share": "1"}]}
    tabulation["constraints"] = []
    public = run_release(case.write(tmp_path), tmp_path / "out").public
    assert check_published(case, public) > 0


def test_a_strategy_names_each_table_once(tmp_path: Path) -> None:
    """A grouping of one class has the cells of the total."""
    case = small(["any"], "5")
    with pytest.raises(SpecError, match="cells of an earlier table") as error:
        run_release(case.write(tmp_path), tmp_path / "out")
    assert error.value.field == "tabulations[0].strategy.tables[2]"
    assert not (tmp_path / "out" / "public").exists()


def test_declared_numbers_are_as_large_as_can_be_added_up(tmp_path: Path) -> None:
    case = small([], str(4 * 10**9 - 3))
    assert check_published(case, run_release(case.write(tmp_path), tmp_path / "out").public) > 0
    larger = tmp_path / "larger"
    larger.mkdir()
    with pytest.raises(SpecError, match="more than 4000000000"):
        run_release(small([], str(4 * 10**9 - 2)).write(larger), larger / "out")
