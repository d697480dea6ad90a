"""The counts of a tabulation against a second computation in plain Python."""

from __future__ import annotations

import datetime
import hashlib
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import DataError, SpecError
from release.queries.engines.base import HereTables
from release.queries.read import read_spec
from release.spec.load import SpecFile
from release.tables.duckdb import Engine
from release.tabulations.estimate.structure import Margin
from release.tabulations.spec.opened import OpenTabulation

DAYS = [datetime.date(2020, 1, 31), datetime.date(2020, 2, 29), datetime.date(2021, 3, 1)]
AREAS: dict[str, list[Any]] = {"string": ["t1", "t2", "t3"], "integer": [7, 8, -9], "date": DAYS}
"""The areas of the lowest level, by the type of their column."""

STATES = ["b", "b", "a"]
"""The area of the highest level in which each of them lies."""

STRANGE: dict[str, list[Any]] = {
    "string": ["t4", "T1", "ü"],
    "integer": [0, 71, -8],
    "date": [datetime.date(1999, 1, 1)],
}
"""Areas that the hierarchy does not have."""

CATEGORIES: dict[str, list[Any]] = {
    "sex": ["m", "f"],
    "age": [1, 17, 18, 40],
    "day": DAYS[:2],
    "kind": ["x", "y"],
    "minor": ["adult", "minor"],
}
"""Of each attribute; ``kind`` is joined and ``minor`` is derived."""

BAND = {"old": [18, 40], "young": [1, 17]}
MARGINS = [[], ["sex"], ["band"], ["age"], ["sex", "age"], ["day", "band"], ["kind"], ["minor"]]
MINOR = "case when age < 18 then 'minor' when age >= 18 then 'adult' end"
ARROW = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32()}
FORMATS = ["parquet", "csv"]

Row = dict[str, Any]


@dataclass(frozen=True)
class World:
    """A tabulation, and the rows of its table and of the joined one."""

    persons: list[Row]
    homes: list[Row]
    tract: str = "string"
    attributes: tuple[str, ...] = ("sex", "age")
    publish: tuple[tuple[int, ...], tuple[int, ...]] = ((0, 1, 2), (0, 1))
    where: str | None = None
    impossible: tuple[tuple[str, ...], ...] = ()

    @property
    def columns(self) -> dict[str, str]:
        """The declared columns of the persons."""
        own = {"unit": "string", "extra": "integer", "tract": self.tract}
        return own | {"sex": "string", "age": "integer", "day": "date"}

    def usable(self, level: int) -> list[list[str]]:
        """The margins to publish of a level; the total where none has its attributes."""
        names = {*self.attributes, *(["band"] if "age" in self.attributes else [])}
        chosen = [MARGINS[number] for number in self.publish[level]]
        return [margin for margin in chosen if names.issuperset(margin)] or [[]]

    def plain(self, ending: str) -> dict[str, Any]:
        """The spec as plain data."""
        zeros = []
        for names in self.impossible:
            known = [name for name in names if name in self.attributes]
            if known:
                zeros.append({"impossible": {name: CATEGORIES[name][:1] for name in known}})
        tabulation: dict[str, Any] = {
            "name": "pl",
            "table": "persons",
            "where": self.where,
            "hierarchy": {"file": "areas.csv", "levels": ["state", "tract"]},
            "attributes": {name: CATEGORIES[name] for name in self.attributes},
            "publish": {"state": self.usable(0), "tract": self.usable(1)},
            "constraints": zeros,
        }
        if "age" in self.attributes:
            tabulation["groupings"] = {"band": {"of": "age", "classes": BAND}}
        release = dict.fromkeys(("title", "curator", "purpose"), "Tests")
        release |= {"id": "small", "contact": "nobody@example.org", "period": "2024"}
        persons = {
            "path": f"persons.{ending}",
            "columns": self.columns,
            "join": {"table": "homes"},
            "derive": {"minor": {"type": "string", "sql": MINOR}},
        }
        homes = {"path": f"homes.{ending}", "columns": {"unit": "string", "kind": "string"}}
        return {
            "spec": "dp-release/spec/v1",
            "release": release | {"license": "CC0-1.0"},
            "tables": {"persons": persons, "homes": homes},
            "privacy": {"unit": "unit", "neighbors": "add_remove", "max_rows_per_unit": 1},
            "budget": {"scope": "tests", "epsilon": "1", "delta": "0"},
            "tabulations": [tabulation],
        }

    def write(self, folder: Path, ending: str = "parquet") -> SpecFile:
        """Write all files, and read the spec."""
        write_rows(folder / f"persons.{ending}", self.persons, self.columns)
        write_rows(folder / f"homes.{ending}", self.homes, {"unit": "string", "kind": "string"})
        # Not in their order, which is that of their names.
        lines = [f"{tract},{state}" for tract, state in zip(AREAS[self.tract], STATES, strict=True)]
        (folder / "areas.csv").write_text("\n".join(["tract,state", *lines]), "utf-8")
        spec = folder / "spec.yaml"
        # JSON is YAML; a list that stands twice would be an alias in what YAML's own writer makes.
        spec.write_text(json.dumps(self.plain(ending), default=str), "utf-8")
        return read_spec(spec)

    def counted(self) -> list[Row]:
        """The row of each unit that counts, by the rules and not by the statements."""
        rows = defaultdict(list)
        for person in self.persons:
            for home in self.homes:
                if home["unit"] is not None and home["unit"] == person["unit"]:
                    row = {"kind": home["kind"], **person, "minor": minor(person["age"])}
                    if self.is_counted(row):
                        rows[row["unit"]].append(row)
        columns = sorted(["kind", *self.columns])
        return [min(own, key=partial(hash_of, columns=columns)) for own in rows.values()]

    def is_counted(self, row: Row) -> bool:
        """Whether a row can count: its area and categories are declared, and together possible."""
        if self.where is not None and (row["extra"] is None or row["extra"] <= 0):
            return False
        if row["tract"] not in AREAS[self.tract]:
            return False
        if any(row[name] not in CATEGORIES[name] for name in self.attributes):
            return False
        for names in self.impossible:
            known = [name for name in names if name in self.attributes]
            if known and all(row[name] == CATEGORIES[name][0] for name in known):
                return False
        return True


def minor(age: int | None) -> str | None:
    """The derived column."""
    return None if age is None else "minor" if age < 18 else "adult"


def hash_of(row: Row, columns: list[str]) -> str:
    """By which a row is compared with others of its unit (docs/design/spec.md)."""
    text = "small|"
    for value in (row["unit"], *(row[column] for column in columns)):
        text += "-" if value is None else f"{len(str(value))}:{value}"
    return hashlib.sha256(text.encode()).hexdigest()


def write_rows(path: Path, rows: list[Row], kinds: Mapping[str, str]) -> None:
    """Write rows as Parquet or CSV, by the ending of ``path``."""
    columns = {}
    for name, kind in kinds.items():
        columns[name] = pa.array([row[name] for row in rows], ARROW[kind])
    write = pyarrow.csv.write_csv if path.suffix == ".csv" else pq.write_table
    write(pa.table(columns), path)


def counted_again(
    world: World, opened: OpenTabulation, cells: Mapping[int, Margin]
) -> dict[int, list[list[int]]]:
    """The counts of each level, from the rows that count."""
    counts = {}
    for level, margin in cells.items():
        names = opened.named.names[level]
        table = [[0] * margin.cells for _ in names]
        for row in world.counted():
            area = str(row["tract"])
            if level == 0:
                area = STATES[AREAS[world.tract].index(row["tract"])]
            cell = 0
            for name, grouping in zip(world.attributes, margin.groupings, strict=True):
                place = CATEGORIES[name].index(row[name])
                cell = cell * (max(grouping) + 1) + grouping[place]
            table[names.index(area)][cell] += 1
        counts[level] = table
    return counts


def counts_of(
    spec_file: SpecFile, *cells: Mapping[int, Margin]
) -> list[dict[int, list[list[int]]]]:
    """The counts of each of ``cells`` as the engine of this machine reads them."""
    counts = []
    # One thread: starting more takes longer than to count a few rows.
    with HereTables(spec_file, Engine(threads=1)) as tables:
        for asked in cells:
            levels = tables.counts(spec_file.tabulations[0], asked)
            assert all(own.dtype == np.int64 for own in levels.values())
            counts.append({level: own.tolist() for level, own in levels.items()})
    return counts


def one_of(values: list[Any]) -> st.SearchStrategy[Any]:
    """One of some values, or none."""
    return st.sampled_from([*values, *values, *values, None])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Small tables, in which units have several rows or one, and some rows do not count."""
    tract = draw(st.sampled_from(sorted(AREAS)))
    person = {
        "extra": one_of([0, 1, 2]),
        "tract": one_of([*AREAS[tract] * 3, *STRANGE[tract]]),
        "sex": one_of(["f", "m", "f", "m", "F"]),
        "age": one_of([1, 17, 18, 40, 40, 41]),
        "day": one_of(DAYS),
    }
    people = [f"p{number}" for number in range(8)]
    persons = draw(st.lists(st.fixed_dictionaries({"unit": one_of(people), **person}), max_size=25))
    homes = [{"unit": unit, "kind": draw(one_of(["x", "y", "z"]))} for unit in people[:-1]]
    homes += draw(
        st.lists(
            st.fixed_dictionaries({"unit": one_of(people), "kind": one_of(["x", "y"])}), max_size=2
        )
    )
    if draw(st.booleans()):
        persons = single(persons)
        homes = single(homes)
    margins = st.lists(st.sampled_from(range(len(MARGINS))), min_size=1, max_size=3, unique=True)
    together = st.lists(st.sampled_from(list(CATEGORIES)), min_size=1, max_size=2, unique=True).map(
        tuple
    )
    return World(
        persons,
        homes,
        tract,
        tuple(draw(st.permutations(list(CATEGORIES)))[: draw(st.integers(0, 5))]),
        (tuple(draw(margins)), tuple(draw(margins))),
        draw(st.sampled_from([None, "extra > 0"])),
        tuple(draw(st.lists(together, max_size=2))),
    )


def single(rows: list[Row]) -> list[Row]:
    """One row of each unit."""
    return list({row["unit"]: row for row in rows}.values())


@settings(max_examples=36)
@given(worlds(), st.sampled_from(FORMATS), st.randoms(use_true_random=False), st.data())
def test_counts_are_those_of_the_kept_rows_that_count(
    world: World, ending: str, chance: random.Random, data: st.DataObject
) -> None:
    """Of the finest cells, and of any of any levels; with rows in any order."""
    chance.shuffle(world.persons)
    with tempfile.TemporaryDirectory() as folder:
        spec_file = world.write(Path(folder), ending)
        opened = spec_file.tabulations[0]
        finest = dict(enumerate(opened.finest))
        # One level or both, the one finer than the other or neither.
        margins = st.sampled_from([one.margin for one in opened.published])
        cells = {level: data.draw(margins) for level in data.draw(st.sets(st.sampled_from([0, 1])))}
        counts = counts_of(spec_file, finest, cells)
    assert counts == [counted_again(world, opened, own) for own in (finest, cells)]


def person(unit: str, **values: Any) -> Row:
    """A row that counts, but for the values given."""
    usual: Row = {"unit": unit, "extra": 1, "tract": "t1", "sex": "f", "age": 1, "day": DAYS[0]}
    return usual | values


HOMES: list[Row] = [{"unit": f"p{number}", "kind": "x"} for number in range(9)]


def test_the_row_of_a_unit_is_one_of_those_that_count(tmp_path: Path) -> None:
    """A row of a lesser hash that does not count uses nothing up."""
    rows = [
        person("p1", extra=1, age=40),
        person("p1", extra=0, age=17),
        person("p1", extra=-2, age=41),
        person("p1", extra=None, age=18),
        person("p2", extra=2, age=18, tract="t3"),
        person("p2", extra=4, age=18, tract="t2", sex="m"),
    ]
    world = World(rows, HOMES, impossible=(("sex",),))
    spec_file = world.write(tmp_path)
    opened = spec_file.tabulations[0]
    cells = dict.fromkeys((0, 1), opened.margin(["age"]))
    # Categories are in the order of the spec, and states in that of their names. The least hashes
    # are those of the rows that do not count: age 41 is no category, and a man is declared
    # impossible. Then comes age 40.
    by_age = [[0, 0, 1, 0], [0, 0, 0, 1]]
    (counts,) = counts_of(spec_file, cells)
    assert counts == {0: by_age, 1: [[0, 0, 1, 0], [0, 0, 0, 1], [0] * 4]}


@pytest.mark.parametrize("rows", [[], [person("p1", tract="t4")]])
def test_a_table_of_which_no_row_counts_has_counts_of_0(rows: list[Row], tmp_path: Path) -> None:
    spec_file = World(rows, HOMES).write(tmp_path)
    (counts,) = counts_of(spec_file, dict(enumerate(spec_file.tabulations[0].finest)))
    assert counts == {0: [[0] * 4] * 2, 1: [[0] * 2] * 3}


def test_two_tabulations_have_their_own_categories_of_a_column(tmp_path: Path) -> None:
    world = World([person("p1"), person("p2", sex="m")], HOMES)
    world.write(tmp_path)
    plain = world.plain("parquet")
    other = {**plain["tabulations"][0], "name": "other", "attributes": {"sex": ["m"]}}
    del other["groupings"]
    other |= {"publish": {"state": [["sex"]], "tract": [[]]}}
    plain["tabulations"].append(other)
    for tabulation in plain["tabulations"]:
        tabulation["guarantee"] = {"definition": "pure", "epsilon": "1/4"}
    (tmp_path / "spec.yaml").write_text(json.dumps(plain, default=str), "utf-8")
    spec_file = read_spec(tmp_path / "spec.yaml")
    totals = []
    with HereTables(spec_file) as tables:
        for opened in spec_file.tabulations:
            totals.append(tables.counts(opened, {0: opened.margin([])})[0].tolist())
    assert totals == [[[0], [2]], [[0], [1]]]


def test_a_condition_is_refused_under_its_place(tmp_path: Path) -> None:
    spec_file = World([], HOMES).write(tmp_path)
    opened = spec_file.tabulations[0]
    wrong = replace(opened, declared=opened.declared.model_copy(update={"where": "extra"}))
    with (
        HereTables(spec_file) as tables,
        pytest.raises(SpecError, match=r"^tabulations\[0\]\.where: "),
    ):
        tables.counts(wrong, {})


FAILURES = {
    # What a row says is not taken for what the engine says.
    "CASE WHEN i = 2999999 THEN error('Out of Memory Error: quagzil') END": (
        "tables.persons: the table cannot be read"
    ),
    "repeat('quagzil', CASE WHEN i = 2999999 THEN 100000000 ELSE 1 END)": (
        "tables.persons: not enough memory or scratch space to read the table"
    ),
}


@pytest.mark.parametrize("value", FAILURES)
def test_an_error_in_the_midst_of_a_result_quotes_no_value(value: str, tmp_path: Path) -> None:
    spec_file = World([], HOMES).write(tmp_path)
    fails = f"SELECT {value} FROM range(3000000) t(i)"
    with (
        HereTables(spec_file, Engine(memory_limit="200MB", threads=1)) as tables,
        pytest.raises(DataError) as refused,
    ):
        batches = tables.batches(fails, "persons")
        assert next(batches).num_rows
        list(batches)
    assert str(refused.value) == FAILURES[value]
