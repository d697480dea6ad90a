"""What a tabulation cannot mean is refused in one line that names the field and the remedy."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from release.errors import SpecError
from release.queries.read import parse_spec
from release.spec.model import Spec
from tests.tabulated import plain_spec

PLAIN = plain_spec(
    [
        {
            "name": "census",
            "table": "persons",
            "hierarchy": {"file": "tracts.csv", "levels": ["county", "tract"]},
            "attributes": {"race": ["a", "b"], "age": {"range": [0, 3]}},
            "groupings": {
                "adult": {"of": "age", "classes": {"no": {"range": [0, 1]}, "yes": [2, 3]}}
            },
            "publish": {"county": [[], ["race", "age"]], "tract": [["adult"]]},
        }
    ],
    columns={
        "person": "string",
        "county": "string",
        "tract": "string",
        "race": "string",
        "age": "integer",
        "born": "date",
        "weight": "boolean",
    },
    budget=("3", "0"),
)

T = "tabulations.0."
COUNT: dict[str, Any] = {
    "name": "all",
    "kind": "count",
    "table": "persons",
    "by": [],
    "domain": {"ordered": {"min": 0, "max": 9}},
    "sensitivity": "global",
    "loss": "absolute",
}
PURE = {"definition": "pure", "epsilon": "1"}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The spec with some fields set; a path has dots."""
    spec = copy.deepcopy(PLAIN)
    for path, value in changes:
        at: Any = spec
        *steps, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for step in steps:
            at = at[step]
        at[last] = value
    return spec


def parsed(*changes: tuple[str, Any]) -> Spec:
    return parse_spec(json.dumps(changed(*changes)).encode())


def numbers(margin: list[str], level: str = "county") -> dict[str, Any]:
    return {"level": level, "margin": margin, "file": "numbers.csv"}


@pytest.mark.parametrize(
    ("path", "value", "field", "says"),
    [
        ("tabulations", 3, "tabulations", "write a list"),
        ("tabulations.0", None, "tabulations[0]", "empty; write fields"),
        (T + "table", "person", T + "table", "known are persons"),
        (T + "hierarchy", None, T + "hierarchy", "empty; write hierarchy: {file"),
        (T + "hierarchy.levels", [], T + "hierarchy.levels", "at least 1"),
        (T + "hierarchy.levels", ["county", "trct"], T + "hierarchy.levels[1]", "mean 'tract'"),
        (T + "hierarchy.levels", ["tract", "tract"], T + "hierarchy.levels[1]", "rename one"),
        (T + "hierarchy.levels", ["Tract", "tract"], T + "hierarchy.levels[1]", "letter case"),
        (T + "hierarchy.levels", ["count", "tract"], T + "hierarchy.levels[0]", "published tables"),
        (T + "hierarchy.levels", ["High", "tract"], T + "hierarchy.levels[0]", "published tables"),
        (T + "hierarchy.levels", ["weight", "tract"], T + "hierarchy.levels[0]", "or dates"),
        (T + "hierarchy.levels", ["county", "person"], T + "hierarchy.levels[1]", "confidential"),
        (T + "hierarchy.levels", ["person", "tract"], T + "hierarchy.levels[0]", "confidential"),
        (T + "attributes.race", None, T + "attributes.race", "write one of [c1, c2]"),
        (T + "attributes.race", [], T + "attributes.race", "at least 1"),
        (T + "attributes.race", ["a", None], T + "attributes.race[1]", "empty; write"),
        (T + "attributes.race", ["a", True], T + "attributes.race[1]", "found True"),
        (T + "attributes.race", ["a", ["b"]], T + "attributes.race[1]", "found a list; write text"),
        (T + "attributes.race", ["a", 1], T + "attributes.race[1]", "put it in quotes"),
        (T + "attributes.race", ["a", ""], T + "attributes.race[1]", "empty"),
        (T + "attributes.race", ["a", "a"], T + "attributes.race", "a category stands twice"),
        (T + "attributes.race", {"range": [0, 1]}, T + "attributes.race.range", "for integers"),
        (T + "attributes.race", {"range": [0]}, T + "attributes.race.range", "at least 2"),
        (T + "attributes.age", {"range": [3, 0]}, T + "attributes.age.range", "first at most last"),
        (
            T + "attributes.age",
            {"range": [0, 10**6]},
            T + "attributes.age.range",
            "at most 1000000",
        ),
        (T + "attributes.age", ["007"], T + "attributes.age[0]", "as columns hold it"),
        (T + "attributes.born", ["20240131"], T + "attributes.born[0]", "write 2024-01-31"),
        (T + "attributes.kin", ["a"], T + "attributes.kin", "'kin' is not there"),
        (T + "attributes.weight", ["a"], T + "attributes.weight", "or dates"),
        (T + "attributes.person", ["a"], T + "attributes.person", "confidential"),
        (T + "attributes.tract", ["a"], T + "attributes.tract", "hierarchy.levels[1]"),
        (T + "groupings.adult.of", "adult", T + "groupings.adult.of", "is a grouping itself"),
        (T + "groupings.adult.of", "ages", T + "groupings.adult.of", "did you mean 'age'"),
        (T + "groupings.Race", {"of": "age", "classes": {"x": [0]}}, T + "groupings.Race", "case"),
        (T + "groupings.adult.classes.no", None, T + "groupings.adult.classes.no", "write one of"),
        (
            T + "groupings.adult.classes.no",
            [0],
            T + "groupings.adult.classes",
            "'1' is in no class",
        ),
        (T + "groupings.adult.classes.no", [0, 1, 4], T + "groupings.adult.classes.no", "'4' is n"),
        (T + "groupings.adult.classes.no", [0, 0], T + "groupings.adult.classes.no", "twice"),
        (T + "groupings.adult.classes.yes", [1, 2, 3], T + "groupings.adult.classes.yes", "twice"),
        (
            T + "groupings.adult.classes.no",
            [None],
            T + "groupings.adult.classes.no[0]",
            "empty; write",
        ),
        (T + "publish", {"tract": [[]]}, T + "publish.county", "publishes nothing"),
        (T + "publish.tract", [], T + "publish.tract", "publishes nothing"),
        (T + "publish.tract", None, T + "publish.tract", "empty; write a list"),
        (T + "publish.tract", [None], T + "publish.tract[0]", "write a list"),
        (T + "publish.trct", [[]], T + "publish.trct", "did you mean 'tract'"),
        (T + "publish.tract", [[], ["sex"]], T + "publish.tract[1][0]", "'sex' is not there"),
        (T + "publish.tract", [["age", "adult"]], T + "publish.tract[0]", "both of 'age'"),
        (T + "publish.tract", [["age", "age"]], T + "publish.tract[0]", "both of 'age'"),
        (T + "publish.tract", [["age", "race"], ["race", "age"]], T + "publish.tract[1]", "twice"),
        (T + "importance", {"state": "1"}, T + "importance.state", "known are county, tract"),
        (T + "importance", {"tract": "0"}, T + "importance.tract", "above 0"),
        (T + "importance", {"tract": 0.5}, T + "importance.tract", "as a string"),
        (T + "constraints", [None], T + "constraints[0]", "empty; write"),
        (T + "constraints", [numbers([], "tract")], T + "constraints[0].level", "write county"),
        (T + "constraints", [numbers([]), numbers([])], T + "constraints[1]", "keep the finest"),
        (T + "constraints", [numbers(["sex"])], T + "constraints[0].margin[0]", "is not there"),
        (
            T + "constraints",
            [{"impossible": {"adult": ["no"]}}],
            T + "constraints[0].impossible.adult",
            "name categories of 'age'",
        ),
        (
            T + "constraints",
            [numbers([]), {"impossible": {"sex": ["m"]}}],
            T + "constraints[1].impossible.sex",
            "known are age, race",
        ),
        (
            T + "constraints",
            [{"impossible": {"race": ["c"]}}],
            T + "constraints[0].impossible.race",
            "'c' is not there",
        ),
        (
            T + "constraints",
            [{"impossible": {"age": [0, 0]}}],
            T + "constraints[0].impossible.age",
            "a category stands twice",
        ),
        (
            T + "constraints",
            [{"impossible": {"age": [None]}}],
            T + "constraints[0].impossible.age[0]",
            "empty; write",
        ),
        (
            T + "constraints",
            [{"impossible": {"race": ["a"]}}, {"impossible": {"race": ["b"]}}],
            T + "constraints",
            "every combination is impossible",
        ),
        (T + "guarantee", {**PURE, "definition": "probabilistic"}, T + "guarantee.definition", ""),
        (
            T + "guarantee",
            {"definition": "approximate", "epsilon": "1", "delta": "0.001"},
            T + "guarantee.delta",
            "raise budget.delta",
        ),
        ("budget.epsilon", "101", "budget", "at most 100"),
        ("budget.epsilon", "0.0000000000001", "budget", "at least 10^-12"),
        ("budget.composition", "basic", "budget.composition", "leave it out"),
        (T + "strategy", {}, T + "strategy", "says nothing"),
        (T + "strategy", {"noise": "laplace"}, T + "strategy.noise", "'geometric' or 'gaussian'"),
        (
            T + "strategy",
            {"tables": [{"level": "state", "margin": [], "share": "1"}]},
            T + "strategy.tables[0].level",
            "known are county, tract",
        ),
        (
            T + "strategy",
            {"tables": [{"level": "tract", "margin": ["x"], "share": "1"}]},
            T + "strategy.tables[0].margin[0]",
            "'x' is not there",
        ),
        (
            T + "strategy",
            {"tables": [{"level": "tract", "margin": [], "share": "0"}]},
            T + "strategy.tables[0].share",
            "above 0",
        ),
        (
            T + "strategy",
            {
                "tables": [
                    {"level": "tract", "margin": ["race", "age"], "share": "1"},
                    {"level": "tract", "margin": ["age", "race"], "share": "1"},
                ]
            },
            T + "strategy.tables[1]",
            "stands twice",
        ),
        ("privacy.max_rows_per_unit", 2, "privacy.max_rows_per_unit", "write 1"),
        ("privacy.fixed", ["county", "race"], "privacy.fixed[1]", "leave it out"),
        (
            "privacy",
            {
                "unit": "person",
                "neighbors": "attribute",
                "attribute": "race",
                "max_rows_per_unit": 1,
            },
            "privacy.neighbors",
            "write add_remove or replace_one",
        ),
        ("queries", [COUNT | {"guarantee": PURE}], T + "guarantee", "needs its own"),
        ("queries", [COUNT | {"share": "1"}], "queries[0]", "a guarantee of its own"),
        (T + "name", "c" * 64, T + "name", "at most 63"),
    ],
)
def test_refuses_in_one_line(path: str, value: Any, field: str, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parsed((path, value))
    assert error.value.field == field.replace("tabulations.0", "tabulations[0]")
    assert says in error.value.problem
    assert "\n" not in str(error.value)


def test_a_hierarchy_may_have_one_level_and_no_attribute() -> None:
    spec = parsed(
        (T + "hierarchy.levels", ["tract"]),
        (T + "attributes", {}),
        (T + "groupings", {}),
        (T + "publish", {"tract": [[]]}),
    )
    assert spec.tabulations[0].hierarchy.levels == ["tract"]


def test_more_than_a_million_combinations_are_refused() -> None:
    with pytest.raises(SpecError, match=r"attributes.age: more than 1048576 combinations"):
        parsed(
            (T + "attributes.race", ["a", "b"]),
            (T + "attributes.age", {"range": [0, 2**19]}),
        )


@pytest.mark.parametrize("more", [0, 1])
def test_a_million_categories_are_named_at_most(more: int) -> None:
    """Of attributes, of classes and of what is impossible: a range of a few letters names many."""
    half = 2**18
    classes = {"low": {"range": [0, half // 2 - 1]}, "high": {"range": [half // 2, half - 1]}}
    changes: list[tuple[str, Any]] = [
        (T + "attributes.race", ["a", "b"]),
        (T + "attributes.age", {"range": [0, half - 1]}),
        (T + "groupings", {"adult": {"of": "age", "classes": classes}}),
        (T + "publish", {"county": [["race"]], "tract": [[]]}),
    ]
    impossible: list[dict[str, Any]] = [{"age": {"range": [1, half - 1]}}] * 2
    zeros = [*impossible, *[{"race": ["a"], "age": [0]}] * more]
    changes.append((T + "constraints", [{"impossible": zero} for zero in zeros]))
    if not more:
        assert parsed(*changes).tabulations[0].groupings
        return
    with pytest.raises(SpecError, match="more than 1,048,576 categories are named") as error:
        parsed(*changes)
    assert error.value.field == "tabulations[0]"


@pytest.mark.parametrize(
    "changes",
    [
        # A query and the file of a level.
        [("queries", [COUNT | {"name": "census_tract", "guarantee": PURE}])],
        # A query and a table that may be measured, in the order of the attributes.
        [("queries", [COUNT | {"name": "census_tract_race_age", "guarantee": PURE}])],
        # Levels whose names differ in what file names leave out.
        [
            (T + "hierarchy.levels", ["the tract", "the-tract", "tract"]),
            (T + "publish", {"the tract": [[]], "the-tract": [[]], "tract": [[]]}),
        ],
        # A level called declared, and the file of the declared numbers.
        [
            (T + "hierarchy.levels", ["declared", "tract"]),
            (T + "publish", {"declared": [[]], "tract": [[]]}),
            (T + "constraints", [numbers([], "declared")]),
        ],
        # A grouping with the name of a margin of two attributes.
        [
            (T + "groupings.race_age", {"of": "age", "classes": {"all": {"range": [0, 3]}}}),
            (T + "publish.tract", [["age", "race"], ["race_age"]]),
        ],
    ],
)
def test_two_files_of_one_name_are_refused(changes: list[tuple[str, Any]]) -> None:
    with pytest.raises(SpecError, match="two files would be called") as error:
        parsed((T + "guarantee", PURE), *changes)
    assert error.value.field == "tabulations[0].name"


def test_two_tabulations_need_two_names() -> None:
    first = PLAIN["tabulations"][0] | {"guarantee": PURE}
    # No file of the second is called as one of the first.
    second = first | {
        "hierarchy": {"file": "tracts.csv", "levels": ["tract two"]},
        "attributes": {},
        "groupings": {},
        "publish": {"tract two": [[]]},
    }
    columns = PLAIN["tables"]["persons"]["columns"] | {"tract two": "string"}
    declared = ("tables.persons.columns", columns)
    assert len(parsed(declared, ("tabulations", [first, second | {"name": "b"}])).tabulations) == 2
    with pytest.raises(SpecError, match="is also the name of another") as error:
        parsed(declared, ("tabulations", [first, second]))
    assert error.value.field == "tabulations[1].name"


def test_a_tabulation_is_not_called_as_a_query() -> None:
    with pytest.raises(SpecError, match="is also the name of another"):
        parsed(
            (T + "guarantee", PURE), ("queries", [COUNT | {"name": "census", "guarantee": PURE}])
        )


def test_a_file_name_of_many_letters_is_refused() -> None:
    level = "county" * 40
    with pytest.raises(SpecError, match=r"name: a file would be called .* at most 200"):
        parsed(
            (T + "hierarchy.levels", [level, "tract"]),
            (T + "publish", {level: [[]], "tract": [[]]}),
        )
