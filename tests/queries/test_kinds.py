"""Answers and differences against a brute force that re-runs the query for every neighbor.

The oracle is written from the words of the format: it works on lists of rows in Python, builds
every neighboring table, and answers it anew. Nothing of the package's own queries is used in it.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import tempfile
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter

from release.queries.read import read_spec
from release.queries.registry import kind_of, sensitivity_without_data
from release.spec.kinds import AnyQuery
from release.tables import duckdb
from release.tables.duckdb import Tables
from tests.answers import answer, load
from tests.cli.test_main import run
from tests.every import some
from tests.small import Row, Small, joint, part, query, sensitivities

COLUMNS = ["day", "kind", "place", "unit", "wh"]


def kept_rows(spec: Small, plain: dict[str, Any], rows: list[Row]) -> list[Row]:
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
        parts = {hash_of(text(spec, plain, row, free)) for row in own}
        least = sorted(parts)[: spec.max_cells_per_unit]
        own = [row for row in own if hash_of(text(spec, plain, row, free)) in least]
        seen: Counter[str] = Counter()
        ranked = []
        for row in own:
            own_text = text(spec, plain, row, COLUMNS)
            seen[own_text] += 1
            ranked.append((hash_of(f"{own_text}#{seen[own_text]}"), row))
        ranked.sort(key=lambda pair: pair[0])
        kept += [row for _, row in ranked[: rows_read(spec, plain)]]
    return kept


def text(spec: Small, plain: dict[str, Any], row: Row, columns: list[str]) -> str:
    """What a hash is of, by docs/design/spec.md."""
    names = ["unit", *sorted(columns)]
    if plain["sensitivity"] == "empirical":
        names = [name for name in names if name not in ("unit", *spec.fixed)]
    told = "small|"
    for name in names:
        value = row.get(name)
        told += "-" if value is None else f"{len(str(value))}:{value}"
    return told


def hash_of(told: str) -> str:
    return hashlib.sha256(told.encode()).hexdigest()


def rows_read(spec: Small, plain: dict[str, Any]) -> int:
    """Declared differences ±1..±d of a count are kept by reading d rows."""
    declared = plain.get("sensitivity")
    most = declared["declared"][-1] if isinstance(declared, dict) else spec.max_rows_per_unit
    return min(most, spec.max_rows_per_unit)


def reads(plain: dict[str, Any], row: Row) -> bool:
    """Whether a row falls into a cell, meets the condition and has a value."""
    if "place" in plain["by"] and row["place"] not in ("a", "b"):
        return False
    if "day" in plain["by"] and row["day"] not in (1, 2):
        return False
    if plain["kind"] == "tuple":
        return any(reads(part, row) for part in parts_of(plain))
    if plain.get("where") and not (row["wh"] is not None and row["wh"] > 4):
        return False
    if plain["kind"] == "mode":
        weighted = "weight" not in plain or row["wh"] is not None
        return row["kind"] is not None and 0 <= row["kind"] < 4 and weighted
    return plain["kind"] == "count" or row["wh"] is not None


def quantised(plain: dict[str, Any], value: Fraction) -> int:
    levels = plain["bins"]
    code = int((value - levels["low"]) * levels["count"] // (levels["high"] - levels["low"]))
    return min(max(code, 0), int(levels["count"]) - 1)


def parts_of(plain: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in PARTS if one["name"] in plain["of"]]


def size_of(plain: dict[str, Any]) -> int:
    if plain["kind"] == "tuple":
        return math.prod(size_of(part) for part in parts_of(plain))
    return {"count": 6, "mode": 4}.get(plain["kind"], 6)


def difference(plain: dict[str, Any], a: int, b: int) -> tuple[int, ...]:
    """The difference of a and b by coordinates; joint answers are numbered row-major."""
    sizes = [size_of(part) for part in (parts_of(plain) if plain["kind"] == "tuple" else [plain])]
    found = []
    for size in reversed(sizes):
        found.append((a % size - b % size) % size)
        a, b = a // size, b // size
    return tuple(reversed(found))


def answer_of(plain: dict[str, Any], rows: list[Row]) -> int:
    if plain["kind"] == "tuple":
        code = 0
        for part in parts_of(plain):
            own = answer_of(part, [row for row in rows if reads(part, row)])
            code = code * size_of(part) + own
        return code
    if plain["kind"] == "count":
        return min(len({row["unit"] for row in rows} if "of" in plain else rows), 5)
    if plain["kind"] == "mode":
        weights = [0] * 4
        for row in rows:
            weights[row["kind"]] += row["wh"] if "weight" in plain else 1
        return weights.index(max(weights))
    if not rows and plain["kind"] != "sum":
        return 0
    low, high = plain["clamp"]
    values = sorted(min(max(row["wh"], low), high) for row in rows)
    measure = plain["kind"]
    if measure in ("sum", "mean"):
        parts = 1 if measure == "sum" else len(values)
        return quantised(plain, Fraction(sum(values), parts))
    place = {"min": 0, "max": -1, "median": (len(values) - 1) // 2}[measure]
    return quantised(plain, Fraction(values[place]))


def cells(plain: dict[str, Any]) -> list[tuple[str, ...]]:
    sets = {"place": ["a", "b"], "day": ["1", "2"]}
    return list(itertools.product(*(sets[column] for column in plain["by"])))


def answers_of(spec: Small, plain: dict[str, Any], rows: list[Row]) -> list[int]:
    kept = kept_rows(spec, plain, rows)
    return [
        answer_of(plain, [r for r in kept if tuple(str(r[c]) for c in plain["by"]) == cell])
        for cell in cells(plain)
    ]


def as_unit(spec: Small, unit: str, home: Row, rows: list[Row]) -> list[Row]:
    """A copy of a unit's rows under another name; it takes over the fixed columns of ``home``."""
    taken = {column: home[column] for column in spec.fixed}
    return [{**row, **taken, "unit": unit} for row in rows]


Shifts = set[tuple[int, ...]]


def sensitivity_of(
    spec: Small, plain: dict[str, Any], rows: list[Row], possible: list[list[Row]] | None = None
) -> Shifts:
    """Every difference to every neighbor, both ways.

    What comes in is the rows of some unit, or where they are given any of the ``possible``.
    """
    units = sorted({row["unit"] for row in rows if row["unit"] is not None})
    own = {unit: [row for row in rows if row["unit"] == unit] for unit in units}
    coming = list(own.values()) if possible is None else possible
    neighbors: list[list[Row]] = []
    for unit in units:
        others = [row for row in rows if row["unit"] != unit]
        if spec.neighbors == "replace_one":
            for new in coming:
                neighbors.append(others + as_unit(spec, unit, own[unit][0], new))
        # A unit without rows replaces, or is replaced: the same two as removing and adding.
        neighbors.append(others)
    places = ["a", "b"] if "place" in spec.fixed else [None]
    for new in coming:
        for place in places:
            neighbors.append(rows + as_unit(spec, "new", {"place": place}, new))
    here = answers_of(spec, plain, rows)
    found: Shifts = set()
    for neighbor in neighbors:
        there = answers_of(spec, plain, neighbor)
        for a, b in zip(here, there, strict=True):
            found |= {difference(plain, a, b), difference(plain, b, a)}
    sizes = [size_of(part) for part in (parts_of(plain) if plain["kind"] == "tuple" else [plain])]
    for at, size in enumerate(sizes):
        if not any(shift[at] for shift in found):
            for step in (1, size - 1):
                found.add(tuple(step if i == at else 0 for i in range(len(sizes))))
    return found - {(0,) * len(sizes)}


PARTS = [
    part("rows_here", "count"),
    part("units_here", "count", of="unit", where="wh > 4"),
    part("commonest", "mode"),
    part("total", "binned", statistic="sum"),
    part("middle", "binned", statistic="median", where="wh > 4"),
]


QUERIES = [
    query("count"),
    query("count", by=[]),
    query("count", of="unit"),
    query("count", of="unit", by=["place", "day"], where="wh > 4"),
    query("count", by=["place", "day"], sensitivity={"declared": [1, 2]}),
    query("count", by=["place", "day"], where="wh > 4"),
    query("mode"),
    query("mode", weight="wh", by=["day"]),
    query("mode", by=["place", "day"], where="wh > 4"),
    *(query("binned", statistic=measure) for measure in ("sum", "mean", "min", "max", "median")),
    *(query("binned", statistic=m, by=["place", "day"]) for m in ("sum", "mean", "median")),
    joint("rows_here", "units_here"),
    joint("rows_here", "commonest", "total"),
    joint("commonest", "middle"),
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
        [{**q, "name": f"q{i}"} for i, q in enumerate(QUERIES)] + PARTS,
        neighbors=draw(st.sampled_from(["replace_one", "add_remove"])),
        max_rows_per_unit=draw(st.integers(1, 4)),
        max_cells_per_unit=draw(st.sampled_from([None, 1, 2])),
        fixed=fixed,
    )


@settings(max_examples=some(60))
@given(smalls())
def test_answers_and_differences_are_those_of_brute_force(small: Small) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(small.write(Path(folder)))
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    sensitivity = sensitivities(answered, spec_file)
    for index, plain in enumerate(QUERIES):
        expected = answers_of(small, plain, small.rows)
        assert answered[index].codes.tolist() == expected, plain
        found = set(sensitivity[index].shifts)
        seen = sensitivity_of(small, plain, small.rows)
        if plain["sensitivity"] == "empirical":
            assert found == seen, plain
        else:
            assert seen <= found == {(1,), (2,), (4,), (5,)}, plain


@settings(max_examples=some(40))
@given(smalls(), st.lists(st.sampled_from(["a", "b", "elsewhere"]), min_size=30, max_size=30))
def test_a_unit_with_several_homes_counts_at_the_first(small: Small, places: list[str]) -> None:
    """The declaration says that the column is fixed; where the table does not keep to it, we do."""
    rows = [{**row, "place": place} for row, place in zip(small.rows, places, strict=False)]
    mixed = replace(small, rows=rows, fixed=["place"])
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(mixed.write(Path(folder)))
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    for index, plain in enumerate(QUERIES):
        assert answered[index].codes.tolist() == answers_of(mixed, plain, rows), plain


LARGE = 2**31 - 1


@pytest.mark.parametrize("units", [40, 25])
@pytest.mark.parametrize("home", [False, True])
def test_the_same_is_read_where_hashes_do_not_tell(
    units: int, home: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes only save a grouping: two units with one hash, or more rows than are held."""
    rows: list[Row] = [
        {"unit": f"u{i % units}", "place": "abc"[i % 3], "day": 1 + i % 2, "kind": 1, "wh": i}
        for i in range(40)
    ]
    queries = [query("count", by=["place", "day"]), query("mode", by=["place"])]
    fixed = ["place"] if home else []
    path = Small(rows, queries, max_rows_per_unit=1, fixed=fixed).write(tmp_path)
    spec_file, found = read_spec(path), []
    for most in (10, 40, 39):
        monkeypatch.setattr(duckdb, "_MOST_HASHES", most)
        with load(spec_file) as tables:
            assert isinstance(tables, Tables)
            assert tables.has_single_rows("rows") is (units == most == 40)
            runs = answer(tables, spec_file)
        found.append([run.codes.tolist() for run in runs])
        assert sensitivities(runs, spec_file)
    assert found[0] == found[1] == found[2]


def possible_units(rows: int) -> list[list[Row]]:
    """Every way to fill up to ``rows`` rows, with what makes a difference to some query."""
    grid = [
        {"unit": "", "place": place, "day": 1, "kind": kind, "wh": wh}
        for place, kind, wh in itertools.product(
            ["a", "b"], [0, 1, 2, 3, None], [None, -LARGE, -2, 0, 1, 2, 4, 8, 11, 14, LARGE]
        )
    ]
    found: list[list[Row]] = [[]]
    for number in range(1, rows + 1):
        found += [list(some) for some in itertools.combinations_with_replacement(grid, number)]
    return found


@settings(max_examples=some(25))
@given(smalls(), st.sampled_from(["replace_one", "add_remove"]))
def test_what_comes_in_may_be_anything_of_the_domain(small: Small, relation: str) -> None:
    """Against every table in which some unit holds any one row; of joint answers a superset."""
    queries = [
        {**q, "name": f"q{i}"}
        for i, q in enumerate(QUERIES)
        if q["by"] == ["place"] and "weight" not in q
    ]
    queries.append(query("mode", weight="wh", name="weighted"))
    rows = [{**row, "day": 1} for row in small.rows[:5]]
    one_row = replace(
        small, rows=rows, queries=queries + PARTS, neighbors=relation, max_rows_per_unit=1
    )
    with tempfile.TemporaryDirectory() as folder:
        path = one_row.write(Path(folder))
        path.write_text(path.read_text().replace("privacy:\n", "privacy:\n  replacement: domain\n"))
        spec_file = read_spec(path)
        with load(spec_file) as tables:
            answered = answer(tables, spec_file)
    sensitivity = sensitivities(answered, spec_file)
    possible = possible_units(1)
    for index, plain in enumerate(queries):
        found = set(sensitivity[index].shifts)
        seen = sensitivity_of(one_row, plain, rows, possible)
        if plain["kind"] == "tuple":
            assert seen <= found, plain
        else:
            assert seen == found, plain


@settings(max_examples=300)
@given(st.data())
def test_codes_reached_within_the_domain_are_those_of_brute_force(data: st.DataObject) -> None:
    """Up to three rows come in, each with any value: kinds against all their multisets."""
    measure = data.draw(st.sampled_from(["sum", "mean", "min", "max", "median", "mode", "weight"]))
    low = data.draw(st.integers(-6, 5))
    high = low + data.draw(st.integers(1, 6))
    if measure in ("mode", "weight"):
        plain = query("mode", **({"weight": "wh"} if measure == "weight" else {}))
        values = list(range(4))
    else:
        start = data.draw(st.integers(-10, 10))
        width = data.draw(st.integers(2, 20))
        levels = {"low": start, "high": start + width, "count": data.draw(st.integers(2, width))}
        # A clamp that no bin has a value of is refused.
        assume(measure == "sum" or (low < start + width and start <= high))
        plain = query("binned", statistic=measure, clamp=[low, high], bins=levels)
        values = list(range(low, high + 1))
    declared = TypeAdapter(AnyQuery).validate_python(plain)
    kind, rows = kind_of(declared), data.draw(st.integers(1, 3))

    def profile(items: list[int], weights: list[int]) -> NDArray[np.int64]:
        made = np.zeros((1, kind.width), dtype=np.int64)
        if measure in ("mode", "weight"):
            for item, weight in zip(items, weights, strict=True):
                made[0, item] += weight
        elif measure in ("sum", "mean"):
            made[0, 0] = sum(items)
            made[0, 1:] = len(items)
        else:
            r = plain["bins"]
            for item in items:
                code = quantised(plain, Fraction(item))
                assert 0 <= code < r["count"]
                made[0, : code + 1] += 1
        return made

    def some(most: int) -> NDArray[np.int64]:
        items = data.draw(st.lists(st.sampled_from(values), max_size=most))
        return profile(items, [1] * len(items))

    own = some(rows)
    sums = (some(4) + own)[0]
    weights = [1] if measure != "weight" else [-LARGE, -1, 0, 1, LARGE]
    reached = set()
    for number in range(rows + 1):
        for some_rows in itertools.combinations_with_replacement(
            list(itertools.product(values, weights)), number
        ):
            coming = profile([item for item, _ in some_rows], [w for _, w in some_rows])
            reached.add(int(kind.decide(sums - own + coming)[0]))
    assert set(kind.reached_in_domain(sums, own, rows).tolist()) == reached


@pytest.mark.parametrize("rows", [1, 3])
def test_a_weight_that_nothing_clamps_moves_a_sum_by_an_amount_a_row(rows: int) -> None:
    """Exactly: a lead that a unit can just turn is turned, and one beyond it is not."""
    declared = TypeAdapter(AnyQuery).validate_python(query("mode", weight="wh"))
    kind = kind_of(declared)
    nobody = np.zeros((1, kind.width), dtype=np.int64)
    # A tie goes to the smaller code, so the last one has to be ahead by one.
    for lead, expected in ((rows * LARGE - 1, {0, 1, 2, 3}), (rows * LARGE, {0})):
        sums = np.array([lead, 0, 0, 0], dtype=np.int64)
        assert set(kind.reached_in_domain(sums, nobody, rows).tolist()) == expected


def test_a_weight_beyond_all_amounts_counts_as_the_largest(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"unit": "u", "place": "a", "day": 1, "kind": 1, "wh": 2**61},
        {"unit": "v", "place": "a", "day": 1, "kind": 2, "wh": LARGE},
        {"unit": "w", "place": "a", "day": 1, "kind": 2, "wh": 1},
    ]
    asked = query("mode", weight="wh", by=[])
    spec_file = read_spec(Small(rows, [asked], max_rows_per_unit=1).write(tmp_path))
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [2]


@settings(max_examples=60)
@given(smalls())
def test_structural_differences_hold_those_of_every_table(small: Small) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec_file = read_spec(small.write(Path(folder)))
    for declared, plain in zip(spec_file.spec.released, QUERIES, strict=True):
        worst_case = sensitivity_without_data(spec_file.spec, declared)
        found = sensitivity_of(small, plain, small.rows)
        assert found <= set(worst_case.shifts), plain


@pytest.mark.parametrize("measure", ["sum", "mean", "min", "max", "median"])
def test_a_level_at_an_edge_belongs_to_the_upper_level(measure: str, tmp_path: Path) -> None:
    """11 levels of 0 to 40000: 3636 is below the edge 3636.36, 3637 above it."""
    rows = [
        {"unit": "u", "place": "a", "day": 1, "kind": 0, "wh": 3636},
        {"unit": "v", "place": "b", "day": 1, "kind": 0, "wh": 3637},
    ]
    bins = {"low": 0, "high": 40000, "count": 11}
    small = Small(rows, [query("binned", statistic=measure, clamp=[0, 50000], bins=bins)])
    spec_file = read_spec(small.write(tmp_path))
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [0, 1]


def test_the_mean_is_exact_where_floats_are_not(tmp_path: Path) -> None:
    """A mean of exactly 1/3 of the range, from three rows: floats put it below the edge."""
    rows = [
        {"unit": f"u{i}", "place": "a", "day": 1, "kind": 0, "wh": wh}
        for i, wh in enumerate([100_000_000, 0, 0])
    ]
    bins = {"low": 0, "high": 100_000_000, "count": 3}
    small = Small(rows, [query("binned", statistic="mean", clamp=[0, 100_000_000], bins=bins)])
    spec_file = read_spec(small.write(tmp_path))
    with load(spec_file) as tables:
        assert answer(tables, spec_file)[0].codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ([1, 6], "found 6; the largest difference of 6 ordered answers is 5"),
        ([-7], "found -7; the largest difference of 6 ordered answers is 5"),
        ([0], "name at least one difference other than 0"),
    ],
)
def test_a_declared_difference_is_one_of_answers(
    declared: list[int], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = query("count", sensitivity={"declared": declared})
    spec = Small([], [asked]).write(tmp_path)
    for command in (("plan", spec), ("run", spec, "--out", tmp_path / "out")):
        status, printed, errors = run(capsys, *command)
        assert (status, printed) == (2, "")
        assert errors.splitlines()[-1] == f"error: queries[0].sensitivity.declared: {told}"
    assert not (tmp_path / "out").exists()
