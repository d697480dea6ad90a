"""Answers and differences against a brute force that re-runs the query for every neighbour.

The oracle is written from the words of the format: it works on lists of rows in Python, builds
every neighbouring table, and answers it anew. Nothing of the package's own queries is used in it.
"""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.pipeline import answer, find_differences, load
from release.queries import differences_without_data
from release.reading import read_spec
from tests.small import Row, Small, query

ORDER = ["unit", "place", "day", "kind", "wh"]


def first_rows(spec: Small, plain: dict[str, Any], rows: list[Row]) -> list[Row]:
    """The rows that a query reads after the bounds on units are enforced."""
    fixed = [c for c in plain["by"] if c in spec.fixed]
    kept = []
    for unit in sorted({row["unit"] for row in rows if row["unit"] is not None}):
        own = [row for row in rows if row["unit"] == unit]
        homes = [
            tuple(str(row[c]) for c in fixed)
            for row in own
            if all(row[c] is not None for c in fixed)
        ]
        if not homes:
            continue
        own = [r for r in own if tuple(str(r[c]) for c in fixed) == min(homes) and reads(plain, r)]
        free = [c for c in plain["by"] if c not in spec.fixed]
        parts = sorted({tuple(str(r[c]) for c in free) for r in own})[: spec.max_cells_per_unit]
        own = [r for r in own if tuple(str(r[c]) for c in free) in parts]
        own.sort(key=lambda row: [(row[c] is None, row[c]) for c in ORDER])
        kept += own[: rows_read(spec, plain)]
    return kept


def rows_read(spec: Small, plain: dict[str, Any]) -> int:
    """Declared differences ±1..±d of a count are kept by reading d rows."""
    declared = plain["differences"]
    most = declared["declared"][-1] if isinstance(declared, dict) else spec.max_rows_per_unit
    return min(most, spec.max_rows_per_unit)


def reads(plain: dict[str, Any], row: Row) -> bool:
    """Whether a row falls into a cell, meets the condition and has a value."""
    if "place" in plain["by"] and row["place"] not in ("a", "b"):
        return False
    if "day" in plain["by"] and row["day"] not in (1, 2):
        return False
    if plain.get("where") and not (row["wh"] is not None and row["wh"] > 4):
        return False
    if plain["kind"] == "mode":
        weighted = "weight" not in plain or row["wh"] is not None
        return row["kind"] is not None and 0 <= row["kind"] < 4 and weighted
    return plain["kind"] == "count" or row["wh"] is not None


def quantised(plain: dict[str, Any], value: Fraction) -> int:
    levels = plain["domain"]["levels"]
    code = int((value - levels["low"]) * levels["count"] // (levels["high"] - levels["low"]))
    return min(max(code, 0), int(levels["count"]) - 1)


def answer_of(plain: dict[str, Any], rows: list[Row]) -> int:
    if plain["kind"] == "count":
        return min(len({row["unit"] for row in rows} if "of" in plain else rows), 5)
    if plain["kind"] == "mode":
        weights = [0] * 4
        for row in rows:
            weights[row["kind"]] += row["wh"] if "weight" in plain else 1
        return weights.index(max(weights))
    if not rows and plain["measure"] != "sum":
        return 0
    low, high = plain["clamp"]
    values = sorted(min(max(row["wh"], low), high) for row in rows)
    measure = plain["measure"]
    if measure in ("sum", "mean"):
        parts = 1 if measure == "sum" else len(values)
        return quantised(plain, Fraction(sum(values), parts))
    place = {"min": 0, "max": -1, "median": (len(values) - 1) // 2}[measure]
    return quantised(plain, Fraction(values[place]))


def cells(plain: dict[str, Any]) -> list[tuple[str, ...]]:
    sets = {"place": ["a", "b"], "day": ["1", "2"]}
    return list(itertools.product(*(sets[column] for column in plain["by"])))


def answers_of(spec: Small, plain: dict[str, Any], rows: list[Row]) -> list[int]:
    kept = first_rows(spec, plain, rows)
    return [
        answer_of(plain, [r for r in kept if tuple(str(r[c]) for c in plain["by"]) == cell])
        for cell in cells(plain)
    ]


def as_unit(spec: Small, unit: str, home: Row, rows: list[Row]) -> list[Row]:
    """A copy of a unit's rows under another name; it takes over the fixed columns of ``home``."""
    taken = {column: home[column] for column in spec.fixed}
    return [{**row, **taken, "unit": unit} for row in rows]


def differences_of(spec: Small, plain: dict[str, Any], rows: list[Row]) -> set[int]:
    """Every difference to every neighbour, both ways."""
    size = {"count": 6, "mode": 4, "level": 6}[plain["kind"]]
    units = sorted({row["unit"] for row in rows if row["unit"] is not None})
    own = {unit: [row for row in rows if row["unit"] == unit] for unit in units}
    neighbours: list[list[Row]] = []
    for unit in units:
        others = [row for row in rows if row["unit"] != unit]
        if spec.neighbours == "replace_one":
            for other in units:
                neighbours.append(others + as_unit(spec, unit, own[unit][0], own[other]))
        # A unit without rows replaces, or is replaced: the same two as removing and adding.
        neighbours.append(others)
        places = ["a", "b"] if "place" in spec.fixed else [None]
        for place in places:
            home = {"place": place}
            neighbours.append(rows + as_unit(spec, "new", home, own[unit]))
    here = answers_of(spec, plain, rows)
    found = set()
    for neighbour in neighbours:
        there = answers_of(spec, plain, neighbour)
        for a, b in zip(here, there, strict=True):
            found |= {(a - b) % size, (b - a) % size}
    return (found - {0}) or {1, size - 1}


QUERIES = [
    query("count"),
    query("count", by=[]),
    query("count", of="unit"),
    query("count", of="unit", by=["place", "day"], where="wh > 4"),
    query("count", by=["place", "day"], differences={"declared": [1, 2]}),
    query("count", by=["place", "day"], where="wh > 4"),
    query("mode"),
    query("mode", weight="wh", by=["day"]),
    query("mode", by=["place", "day"], where="wh > 4"),
    *(query("level", measure=measure) for measure in ("sum", "mean", "min", "max", "median")),
    *(query("level", measure=m, by=["place", "day"]) for m in ("sum", "mean", "median")),
]


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    """Tables of up to seven units with ties, empty cells, missing values and unknown groups.

    A fixed column is a fact of the unit, as the declaration says, so it is drawn once a unit.
    """
    fixed = draw(st.sampled_from([[], ["place"]]))
    rows: list[Row] = []
    places = st.sampled_from(["a", "b", "elsewhere"])
    for index in range(draw(st.integers(0, 7))):
        home = draw(places)
        for _ in range(draw(st.integers(1, 4))):
            rows.append(
                {
                    "unit": f"u{index}",
                    "place": home if fixed else draw(places),
                    "day": draw(st.sampled_from([1, 1, 2, 3])),
                    "kind": draw(st.sampled_from([0, 1, 2, 3, 3, 7, None])),
                    "wh": draw(st.one_of(st.none(), st.integers(-8, 18))),
                }
            )
    if draw(st.booleans()):
        rows.append({"unit": None, "place": "a", "day": 1, "kind": 1, "wh": 9})
    return Small(
        rows,
        [{**q, "name": f"q{i}"} for i, q in enumerate(QUERIES)],
        neighbours=draw(st.sampled_from(["replace_one", "add_remove"])),
        max_rows_per_unit=draw(st.integers(1, 4)),
        max_cells_per_unit=draw(st.sampled_from([None, 1, 2])),
        fixed=fixed,
    )


@settings(max_examples=100)
@given(smalls())
def test_answers_and_differences_are_those_of_brute_force(small: Small) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(small.write(Path(folder)))
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    differences = find_differences(answered, spec_file)
    for index, plain in enumerate(small.queries):
        expected = answers_of(small, plain, small.rows)
        assert answered[index].codes.tolist() == expected, plain
        found = {shift for (shift,) in differences[index].shifts}
        seen = differences_of(small, plain, small.rows)
        if plain["differences"] == "empirical":
            assert found == seen, plain
        else:
            assert seen <= found == {1, 2, 4, 5}, plain


@settings(max_examples=40)
@given(smalls(), st.lists(st.sampled_from(["a", "b", "elsewhere"]), min_size=30, max_size=30))
def test_a_unit_with_several_homes_counts_at_the_first(small: Small, places: list[str]) -> None:
    """The declaration says that the column is fixed; where the table does not keep to it, we do."""
    rows = [{**row, "place": place} for row, place in zip(small.rows, places, strict=False)]
    mixed = replace(small, rows=rows, fixed=["place"])
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(mixed.write(Path(folder)))
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    for index, plain in enumerate(mixed.queries):
        assert answered[index].codes.tolist() == answers_of(mixed, plain, rows), plain


@settings(max_examples=60)
@given(smalls())
def test_structural_differences_hold_those_of_every_table(small: Small) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(small.write(Path(folder)))
    for declared, plain in zip(spec_file.spec.queries, small.queries, strict=True):
        structural = differences_without_data(spec_file.spec, declared)
        found = differences_of(small, plain, small.rows)
        assert found <= {shift for (shift,) in structural.shifts}, plain


@pytest.mark.parametrize("measure", ["sum", "mean", "min", "max", "median"])
def test_a_level_at_an_edge_belongs_to_the_upper_level(measure: str, tmp_path: Path) -> None:
    """11 levels of 0 to 40000: 3636 is below the edge 3636.36, 3637 above it."""
    rows = [
        {"unit": "u", "place": "a", "day": 1, "kind": 0, "wh": 3636},
        {"unit": "v", "place": "b", "day": 1, "kind": 0, "wh": 3637},
    ]
    domain = {"levels": {"low": 0, "high": 40000, "count": 11}}
    small = Small(rows, [query("level", measure=measure, clamp=[0, 50000], domain=domain)])
    spec_file = read_spec(small.write(tmp_path))
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [0, 1]


def test_the_mean_is_exact_where_floats_are_not(tmp_path: Path) -> None:
    """A mean of exactly 1/3 of the range, from three rows: floats put it below the edge."""
    rows = [
        {"unit": f"u{i}", "place": "a", "day": 1, "kind": 0, "wh": wh}
        for i, wh in enumerate([100_000_000, 0, 0])
    ]
    domain = {"levels": {"low": 0, "high": 100_000_000, "count": 3}}
    small = Small(rows, [query("level", measure="mean", clamp=[0, 100_000_000], domain=domain)])
    spec_file = read_spec(small.write(tmp_path))
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [1, 0]
