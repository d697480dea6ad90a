"""The verifier in one file: the rules of tabulations, and what a record says of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from release.verification import standalone
from tests.verification.standalone.alone import Plain, asked, plain_spec, refused

TABULATED: Plain = {
    "name": "people",
    "table": "rows",
    "hierarchy": {"file": "areas.csv", "levels": ["land", "place"]},
    "attributes": {"sort": ["x", "y"], "kind": {"range": [1, 5]}},
    "groupings": {"age": {"of": "kind", "classes": {"low": [1, 2], "high": {"range": [3, 5]}}}},
    "publish": {"land": [[], ["sort", "kind"]], "place": [["sort", "age"]]},
}


def tabulated(change: Plain, *queries: Plain, **privacy: Any) -> standalone.Spec:
    plain = plain_spec(*queries, **{"max_rows_per_unit": 1} | privacy)
    plain["tabulations"] = [copy.deepcopy(TABULATED) | change]
    return standalone.Spec(plain)


def test_a_tabulation_composes_exactly_and_has_its_categories() -> None:
    spec = tabulated({}, fixed=["born", "day"])
    assert spec.composes_exactly
    assert spec.categories == {"people": {"sort": 2, "kind": 5, "age": 2}}


def grouped(**classes: Any) -> Plain:
    return {"groupings": {"age": {"of": "kind", "classes": classes}}}


ATTRIBUTE: Plain = {"neighbors": "attribute", "attribute": "wh"}
RULES: list[tuple[Plain, Plain, str]] = [
    ({}, {"max_rows_per_unit": 2}, "people: rows of a unit: found 2"),
    ({}, ATTRIBUTE, "people: rows of a unit: found 1"),
    ({}, {"fixed": ["place"]}, "people: columns"),
    ({}, {"fixed": ["kind"]}, "people: columns"),
    ({"table": "none"}, {}, "people: columns"),
    ({"hierarchy": {"file": "a", "levels": ["place", "land"]}}, {}, "people: columns"),
    ({"hierarchy": {"file": "a", "levels": ["unit", "place"]}}, {}, "people: columns"),
    ({"hierarchy": {"file": "a", "levels": ["land", "unit"]}}, {}, "people: columns"),
    ({"hierarchy": {"file": "a", "levels": ["land", "born"]}}, {}, ""),
    ({"hierarchy": {"file": "a", "levels": ["land", "kwh"]}}, {}, "people: columns"),
    ({"attributes": {"ok": ["x", "y"]}}, {}, "people: columns"),
    ({"attributes": {"unit": ["x", "y"]}}, {}, "people: columns"),
    ({"attributes": {"none": ["x", "y"]}}, {}, "people: columns"),
    ({"hierarchy": {"file": "a", "levels": ["SORT", "place"]}}, {}, "people: names"),
    ({"hierarchy": {"file": "a", "levels": ["Age", "place"]}}, {}, "people: names"),
    (grouped(low=[1, 2], high=[5, 4, 3]), {}, ""),
    (grouped(low=[1, 2], high=[3, 4]), {}, "people.groupings.age"),
    (grouped(low=[1, 2], high=[2, 3, 4, 5]), {}, "people.groupings.age"),
    (grouped(low=[1, 2], high=[3, 4, 5, 6]), {}, "people.groupings.age"),
    ({"groupings": {"age": {"of": "none", "classes": {"a": [1]}}}}, {}, "people.groupings.age"),
    ({"publish": {"land": [[]], "place": [["kind", "none"]]}}, {}, "people.publish"),
    ({"publish": {"land": [[]], "place": [["land"]]}}, {}, "people.publish"),
    ({"publish": {"land": [["sort", "sort"]], "place": [[]]}}, {}, "people.publish"),
    ({"publish": {"land": [["kind", "age"]], "place": [[]]}}, {}, "people.publish"),
    ({"name": "own"}, {}, "names"),
]


@pytest.mark.parametrize(("change", "privacy", "says"), RULES)
def test_a_tabulation_keeps_its_rules(change: Plain, privacy: Plain, says: str) -> None:
    others = [asked("count")]
    if not says:
        tabulated(change, *others, **privacy)
        return
    with refused("spec.json: ", says):
        tabulated(change, *others, **privacy)


def test_no_share_stands_beside_a_tabulation() -> None:
    share = asked("count", share="1")
    del share["guarantee"]
    with refused("spec.json: tabulations: found beside a share or a target"):
        tabulated({}, share)
    plain = plain_spec(max_rows_per_unit=1)
    plain |= {"tabulations": [TABULATED]}
    plain["budget"]["composition"] = "basic"
    with refused("spec.json: budget: found basic"):
        standalone.Spec(plain)


def level(name: str, areas: int, rows: int, *margins: list[str]) -> Plain:
    return {"level": name, "areas": areas, "margins": list(margins), "output": {"rows": rows}}


def entry() -> Plain:
    """What a record says of two lands with three places."""
    return {
        "name": "people",
        "table": "rows",
        "levels": [
            {
                "level": "land",
                "areas": 2,
                "margins": [[], ["kind", "sort"]],
                "output": {"rows": 22},
            },
            {"level": "place", "areas": 3, "margins": [["age", "sort"]], "output": {"rows": 12}},
        ],
        "measured": [
            {"name": "a", "level": "place", "margin": ["age", "sort"], "cells": 12},
            {"name": "b", "level": "land", "margin": ["sort", "kind"], "cells": 20},
            {"name": "c", "level": "place", "margin": [], "cells": 3},
        ],
    }


def check(plain: Plain) -> None:
    release = object.__new__(standalone.Release)
    release.spec = tabulated({})
    release.check_tabulation(release.spec.tabulations[0], plain)


def test_the_record_of_a_tabulation_is_read() -> None:
    check(entry())
    alone = entry()
    alone["measured"] = alone["measured"][:1]
    check(alone)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("name", "others", "tabulations.name"),
        ("table", "others", "tabulations.table"),
        ("levels.0.level", "place", "people.levels"),
        ("levels.0.margins", [["kind", "sort"], []], "people.land.margins"),
        ("levels.1.margins", [["kind", "sort"]], "people.place.margins"),
        ("levels.0.areas", 3, "people.land.rows: found 22, expected 33"),
        ("levels.1.output.rows", 13, "people.place.rows: found 13, expected 12"),
        ("measured.0.cells", 11, "a.cells: found 11, expected 12"),
        ("measured.1.level", "place", "b.cells: found 20, expected 30"),
        ("measured.0.margin", ["age"], "a.margin"),
        ("measured", [], "people.measured"),
        ("measured.2", entry()["measured"][0], "people.measured"),
    ],
)
def test_what_a_record_says_of_a_tabulation_follows_from_the_spec(
    place: str, value: Any, says: str
) -> None:
    plain = entry()
    node: Any = plain
    *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    for part in path:
        node = node[part]
    node[last] = value
    with refused("release.json: ", says):
        check(plain)
