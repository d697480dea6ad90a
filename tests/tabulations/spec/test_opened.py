"""The tables of a tabulation, their cells and labels, against counting rows one by one."""

from __future__ import annotations

import copy
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from release.exact.domain import Codes
from release.spec.model import Spec
from release.tabulations.estimate.structure import Margin
from release.tabulations.spec.areas import nested
from release.tabulations.spec.open import with_areas
from release.tabulations.spec.opened import OpenTabulation
from tests.tabulations.spec.test_check import PLAIN

Row = tuple[str, dict[str, str]]
"""The tract of a unit, and its category of each attribute."""

LINES = [("hi", "t1"), ("hi", "t4"), ("ak", "t2"), ("ak", "t3"), ("ak", "t0")]
STATE_OF = {tract: state for state, tract in LINES}


def one_attribute(draw: st.DrawFn, name: str) -> tuple[list[str], dict[str, Any]]:
    """Categories, and a grouping of them."""
    categories = draw(st.permutations([f"{name}{n}" for n in range(draw(st.integers(1, 4)))]))
    classes: dict[str, list[str]] = {}
    for category in draw(st.permutations(categories)):
        classes.setdefault(f"class {draw(st.integers(0, 2))}", []).append(category)
    return list(categories), {"of": name, "classes": classes}


@st.composite
def tabulations(draw: st.DrawFn) -> OpenTabulation:
    """Up to three attributes, each with a grouping, random margins and impossible combinations."""
    plain = copy.deepcopy(PLAIN)
    declared = plain["tabulations"][0]
    names = draw(st.permutations(["x", "y", "z"]))[: draw(st.integers(0, 3))]
    attributes, groupings = {}, {}
    for name in names:
        attributes[name], groupings[f"g{name}"] = one_attribute(draw, name)
        plain["tables"]["persons"]["columns"][name] = "string"
    declared |= {"attributes": attributes, "groupings": groupings}
    declared["hierarchy"]["levels"] = ["county", "tract"]
    publish = {}
    for level in ["county", "tract"]:
        margins = {tuple(sorted(draw(margin_names(names)))) for _ in range(draw(st.integers(1, 3)))}
        publish[level] = [draw(st.permutations(margin)) for margin in sorted(margins)]
    declared["publish"] = publish
    zeros = []
    for _ in range(draw(st.integers(0, 2)) if names else 0):
        name = draw(st.sampled_from(names))
        # One category of several, so that something stays possible.
        if len(attributes[name]) > 2:
            zeros.append({"impossible": {name: [draw(st.sampled_from(attributes[name]))]}})
    declared["constraints"] = zeros
    return with_areas(Spec.model_validate(plain), 0, nested("file", ["county", "tract"], LINES))


@st.composite
def margin_names(draw: st.DrawFn, attributes: list[str]) -> list[str]:
    """Each attribute by itself, by its grouping, or not at all."""
    used = [draw(st.sampled_from([name, f"g{name}", ""])) for name in attributes]
    return [name for name in used if name]


def label_of(opened: OpenTabulation, row: Row, name: str) -> str:
    """The label of a unit in a column, from the words of the spec."""
    grouping = opened.declared.groupings.get(name)
    if grouping is None:
        return row[1][name]
    category = row[1][grouping.of]
    return next(
        label
        for label, own in grouping.classes.items()
        if isinstance(own, list) and category in own
    )


def is_possible(opened: OpenTabulation, row: Row) -> bool:
    for zero in opened.declared.zeros:
        pairs = zero.impossible.items()
        if all(isinstance(own, list) and row[1][name] in own for name, own in pairs):
            return False
    return True


def area_of(opened: OpenTabulation, level: int, row: Row) -> str:
    return row[0] if opened.levels[level] == "tract" else STATE_OF[row[0]]


def labelled(
    opened: OpenTabulation, level: int, names: tuple[str, ...], rows: list[Row]
) -> Counter[tuple[str, ...]]:
    """The rows of each area and labels."""
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        labels = [label_of(opened, row, name) for name in names]
        counts[area_of(opened, level, row), *labels] += 1
    return counts


def table_of(opened: OpenTabulation, level: int, margin: Margin, rows: list[Row]) -> Codes:
    """The same rows by the places of areas and cells."""
    table = np.zeros((opened.named.areas.size(level), margin.cells), dtype=np.int64)
    for row in rows:
        places = [own.index(row[1][name]) for name, own in opened.categories.items()]
        combination = np.ravel_multi_index(places, opened.sizes) if places else 0
        area = opened.named.names[level].index(area_of(opened, level, row))
        table[area, margin.cell_of[combination]] += 1
    return table


def rows_of(opened: OpenTabulation, draw: Any) -> list[Row]:
    """Some units."""
    combinations = list(product(*opened.categories.values()))
    pairs = st.tuples(st.sampled_from(sorted(STATE_OF)), st.sampled_from(combinations))
    rows = draw(st.lists(pairs, min_size=1, max_size=12))
    return [(tract, dict(zip(opened.categories, own, strict=True))) for tract, own in rows]


@settings(max_examples=60)
@given(tabulations(), st.data())
def test_cells_are_the_labels_in_row_major_order(
    opened: OpenTabulation, data: st.DataObject
) -> None:
    rows = rows_of(opened, data.draw)
    for one in opened.published:
        table = table_of(opened, one.level, one.margin, rows)
        counts = labelled(opened, one.level, one.names, rows)
        keys = product(opened.named.names[one.level], *opened.labels(one.names))
        assert [counts[key] for key in keys] == table.reshape(-1).tolist()
        assert opened.cells(one.table) == table.size


@settings(max_examples=60)
@given(tabulations())
def test_possible_cells_are_those_of_possible_rows(opened: OpenTabulation) -> None:
    rows = []
    for combination in product(*opened.categories.values()):
        rows.append(("t1", dict(zip(opened.categories, combination, strict=True))))
    possible = [row for row in rows if is_possible(opened, row)]
    for one in opened.published:
        reached = opened.possible(one.margin)
        if not opened.declared.zeros:
            assert reached is None
            continue
        assert reached is not None
        expected = table_of(opened, one.level, one.margin, possible).sum(axis=0) > 0
        assert reached.dtype == bool
        assert reached.tolist() == expected.tolist()


@settings(max_examples=30)
@given(tabulations(), st.booleans())
def test_moves_are_the_most_cells_that_neighbors_differ_in(
    opened: OpenTabulation, is_replaced: bool
) -> None:
    units: list[Row] = []
    for tract in STATE_OF:
        for own in product(*opened.categories.values()):
            units.append((tract, dict(zip(opened.categories, own, strict=True))))
    for (level, margin), most in opened.moves(is_replaced):
        # A unit that does not count has no cell. A replaced one may have been such a unit.
        nobody = table_of(opened, level, margin, [])
        alone = [table_of(opened, level, margin, [unit]) for unit in units]
        distinct = list({table.tobytes(): table for table in alone}.values())[:6]
        steps = [table - nobody for table in distinct]
        if is_replaced:
            steps += [after - before for before, after in product(distinct, repeat=2)]
        assert max(np.abs(step).max() for step in steps) == 1
        assert max(int((step != 0).sum()) for step in steps) == most


@settings(max_examples=60)
@given(tabulations())
def test_every_level_refines_what_is_published_there_and_below(opened: OpenTabulation) -> None:
    for one in opened.published:
        assert all(cells.refines(one.margin) for cells in opened.finest[: one.level + 1])
    for level in range(2):
        at_level = [one for one in opened.published if one.level == level]
        own = opened.named.areas.size(level)
        assert opened.rows(level) == sum(opened.cells(one.table) for one in at_level)
        assert opened.rows(level) % own == 0
        named = {name for one in at_level for name in one.names}
        assert set(opened.column_names[level]) == named
        # Attributes in their order, each before its grouping.
        places = [list(opened.by_name).index(name) for name in opened.column_names[level]]
        assert places == sorted(places)


def test_one_margin_may_have_two_names() -> None:
    plain = copy.deepcopy(PLAIN)
    declared = plain["tabulations"][0]
    declared["groupings"] = {"label": {"of": "race", "classes": {"B": ["b"], "A": ["a"]}}}
    declared["publish"] = {"county": [["race"]], "tract": [["label", "age"], ["label"]]}
    opened = with_areas(Spec.model_validate(plain), 0, nested("file", ["county", "tract"], LINES))
    race, _, label = opened.published
    assert race.margin == label.margin
    # Classes stand in the order of their first categories.
    assert opened.by_name["label"].labels == ("A", "B")
    assert [one.names for one in opened.margins] == [("race",), ("label", "age")]
