"""The tables that tabulations measure: pinned ones, their guarantees, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from release.budget.cost import charge_of
from release.errors import SpecError
from release.queries.read import read_spec
from release.spec.declarations import Relation
from release.spec.load import SpecFile
from release.tabulations.measure.table_count import TableCount
from release.tabulations.strategy.chosen import choose_tables
from release.tabulations.strategy.opened import publication_of
from release.tabulations.strategy.strategies import strategies_of
from tests.tabulations.spec.test_check import PURE, T, changed, numbers

LABEL = {"label": {"of": "race", "classes": {"A": ["a"], "B": ["b"]}}}
TWO_NAMES = (
    (T + "attributes", {"race": ["a", "b"]}),
    (T + "groupings", LABEL),
    (T + "publish", {"county": [["label"]], "tract": [["race"], ["label"]]}),
)


def spec_file_of(folder: Path, *changes: tuple[str, Any]) -> SpecFile:
    (folder / "tracts.csv").write_text("county,tract\nn,t1\nn,t2\ns,t3\n")
    (folder / "numbers.csv").write_text("county,count\nn,5\ns,6\n")
    (folder / "spec.yaml").write_text(json.dumps(changed(*changes)))
    return read_spec(folder / "spec.yaml")


def pinned(*tables: tuple[str, list[str], str], noise: str = "geometric") -> tuple[str, Any]:
    rows = [{"level": level, "margin": margin, "share": share} for level, margin, share in tables]
    return T + "strategy", {"noise": noise, "tables": rows}


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ([pinned()], "strategy.tables", "total of county does not follow"),
        (
            [pinned(("tract", ["adult"], "1"))],
            "strategy.tables",
            "race × age of county does not follow",
        ),
        ([pinned(("tract", ["race"], "1"))], "strategy.tables[0].margin", "published nowhere"),
        (
            [*TWO_NAMES, pinned(("tract", ["race"], "1"), ("tract", ["label"], "1"))],
            "strategy.tables[1]",
            "has the cells of an earlier table",
        ),
        (
            [
                (T + "constraints", [numbers([])]),
                pinned(("tract", ["race", "age"], "1"), ("county", [], "1")),
            ],
            "strategy.tables[1]",
            "its numbers are declared",
        ),
        ([(T + "strategy", {"noise": "gaussian"})], "strategy.noise", "write geometric"),
        (
            [
                (T + "guarantee", PURE | {"epsilon": "0.000000000001"}),
                pinned(("tract", ["race", "age"], "1")),
            ],
            "guarantee.epsilon",
            "too small",
        ),
    ],
)
def test_refuses_what_cannot_be_measured(
    tmp_path: Path, changes: list[tuple[str, Any]], field: str, says: str
) -> None:
    spec_file = spec_file_of(tmp_path, *changes)
    with pytest.raises(SpecError) as error:
        strategies_of(spec_file, 0)
    assert error.value.field == f"tabulations[0].{field}"
    assert says in error.value.problem


def test_nothing_to_protect_is_refused(tmp_path: Path) -> None:
    spec_file = spec_file_of(
        tmp_path,
        (T + "hierarchy.levels", ["county"]),
        (T + "publish", {"county": [[]]}),
        (T + "constraints", [numbers([])]),
        (T + "hierarchy.file", "numbers.csv"),
    )
    with pytest.raises(SpecError, match="nothing to protect") as error:
        strategies_of(spec_file, 0)
    assert error.value.field == "tabulations[0].publish"


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_pinned_tables_share_the_whole_budget(tmp_path: Path, neighbors: str) -> None:
    chosen = choose_tables(
        spec_file_of(
            tmp_path,
            ("privacy.neighbors", neighbors),
            pinned(("tract", ["age", "race"], "2"), ("county", [], "1")),
        )
    )
    spec = chosen.spec_file.spec
    assert [query.name for query in spec.measured] == [
        "census_county_total",
        "census_tract_race_age",
    ]
    assert set(chosen.designs) == {query.name for query in spec.measured}
    charges = [charge_of(chosen.spec_file, query, query.claimed) for query in spec.measured]
    # Whatever the numbers are, a replaced unit moves two cells of each of these tables.
    assert {charge.cells for charge in charges} == {1 if neighbors == "add_remove" else 2}
    county, tract = (charge.epsilon for charge in charges)
    assert county + tract <= 3
    # The ratio in place of e^ε is rounded to be no larger than what ε allows.
    assert abs(county - 1) < Fraction(1, 10**5)
    assert abs(tract - 2) < Fraction(1, 10**5)


@pytest.mark.parametrize(
    ("delta", "own", "expected"),
    [
        ("0", None, "pure (ε = 3, δ = 0)"),
        ("0.001", None, "approximate (ε = 3, δ = 0.001)"),
        ("0.001", PURE, "pure (ε = 1, δ = 0)"),
    ],
)
def test_the_guarantee_is_its_own_or_the_whole_budget(
    tmp_path: Path, delta: str, own: dict[str, str] | None, expected: str
) -> None:
    spec_file = spec_file_of(tmp_path, ("budget.delta", delta), (T + "guarantee", own))
    asked = spec_file.tabulations[0].declared.guarantee_of_all(spec_file.spec.budget)
    assert str(asked.to_guarantee()) == expected


def test_a_publication_counts_each_published_table(tmp_path: Path) -> None:
    importance = (T + "importance", {"county": "1/4"})
    (opened,) = spec_file_of(tmp_path, *TWO_NAMES, importance).tabulations
    publication = publication_of(opened, Relation.ADD_REMOVE)
    # Two names of one margin: the tracts publish it twice.
    assert len(publication.margins) == 1
    assert publication.importance == {(0, 0): 0.25, (1, 0): 2.0}
    assert publication.moves == {(0, 0): 1, (1, 0): 1}


def test_a_declared_table_does_not_move(tmp_path: Path) -> None:
    declared = (T + "constraints", [numbers([])])
    (opened,) = spec_file_of(tmp_path, declared).tabulations
    publication = publication_of(opened, Relation.REPLACE_ONE)
    total = [margin.cells for margin in publication.margins].index(1)
    assert [table for table, most in publication.moves.items() if not most] == [(0, total)]
    assert set(publication.moves.values()) == {0, 2}


def test_a_measured_table_has_one_name_wherever_it_stands(tmp_path: Path) -> None:
    chosen = choose_tables(spec_file_of(tmp_path, *TWO_NAMES, pinned(("tract", ["race"], "1"))))
    (query,) = chosen.spec_file.spec.measured
    assert isinstance(query, TableCount)
    (opened,) = chosen.spec_file.tabulations
    # The highest level publishes the margin first, and by this name.
    assert query.margin == ["label"]
    assert opened.table(query.level, query.margin).table == (1, opened.margin(["race"]))
    assert query.name == "census_tract_label"
