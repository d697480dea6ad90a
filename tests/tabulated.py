"""Random small tabulations for tests: a spec, its public files and a confidential table."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from release.errors import SpecError
from release.street import run_release

Row: TypeAlias = dict[str, Any]

Plain: TypeAlias = dict[str, Any]

COLUMNS = {
    "person": ("string", pa.string()),
    "tract": ("string", pa.string()),
    "race": ("string", pa.string()),
    "size": ("integer", pa.int64()),
    "tenure": ("string", pa.string()),
    "wh": ("integer", pa.int64()),
}

CATEGORIES: dict[str, list[Any]] = {
    "race": ["b", "a", "c"],
    "size": [1, 2, 3],
    "tenure": ["own", "rent"],
}

LEVELS = ["nation", "state", "county", "tract"]


@dataclass(frozen=True)
class Tabulated:
    """The inputs of a release.

    Attributes:
        plain: the spec.
        rows: of the confidential table.
        files: of areas and of declared numbers, by name; the first line is the header.
    """

    plain: Plain
    rows: Sequence[Row]
    files: Mapping[str, Sequence[Sequence[str]]]

    def write(self, folder: Path) -> Path:
        """Write all files; the path of the spec."""
        columns = {}
        for name, (_, kind) in COLUMNS.items():
            columns[name] = pa.array([row.get(name) for row in self.rows], kind)
        pq.write_table(pa.table(columns), folder / "persons.parquet")
        for name, lines in self.files.items():
            with (folder / name).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(lines)
        # By JSON, because YAML would write a value that stands twice as an alias.
        plain = json.loads(json.dumps(self.plain))
        path = folder / "spec.yaml"
        path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
        return path

    def with_rows(self, rows: Sequence[Row]) -> Tabulated:
        """The same release of another table."""
        return replace(self, rows=rows)


TYPES = {name: declared for name, (declared, _) in COLUMNS.items()}


def plain_spec(
    tabulations: Sequence[Mapping[str, Any]],
    *,
    columns: Mapping[str, str] = TYPES,
    neighbors: str = "add_remove",
    budget: tuple[str, str] = ("1", "0"),
    unit: str = "person",
    release: str = "small",
) -> Plain:
    """The spec of some tabulations over one table; ``budget`` holds its ε and δ."""
    about = dict.fromkeys(["title", "curator", "contact", "purpose", "period", "license"], "tests")
    return {
        "spec": "dp-release/spec/v1",
        "release": {"id": release, **about},
        "tables": {"persons": {"path": "persons.parquet", "columns": dict(columns)}},
        "privacy": {"unit": unit, "neighbors": neighbors, "max_rows_per_unit": 1},
        "budget": {"scope": "tests", "epsilon": budget[0], "delta": budget[1]},
        "tabulations": list(tabulations),
    }


def areas_of(rng: Random, levels: Sequence[str]) -> list[list[str]]:
    """Random nested areas, a line for each of the lowest level, in any order."""
    lines: list[list[str]] = [[]]
    for depth, level in enumerate(levels):
        longer = []
        for number, line in enumerate(lines):
            for child in range(rng.choice([1, 1, 2, 3]) if depth or len(levels) > 1 else 3):
                longer.append([*line, f"{level[0]}{number}{child}"])
        lines = longer
    rng.shuffle(lines)
    return lines


def rows_of(rng: Random, lines: Sequence[Sequence[str]], number: int) -> list[Row]:
    """Random rows; some of no declared area or category, some persons with several."""
    areas = [line[-1] for line in lines]
    rows = []
    for person in range(number):
        rows.append(
            {
                "person": f"p{person if rng.random() < 0.9 else 0}",
                "tract": rng.choice(areas) if rng.random() < 0.9 else rng.choice([None, "zz"]),
                "race": rng.choice(["a", "b", "c", "a", None, "d"]),
                "size": rng.choice([1, 2, 3, 3, None, 9]),
                "tenure": rng.choice(["own", "rent", "rent", ""]),
                "wh": rng.choice([None, *range(-3, 9)]),
            }
        )
    return rows


def subsets(names: Sequence[str], groupings: Mapping[str, Plain]) -> Iterator[list[str]]:
    """Every margin of some attributes and their groupings."""
    ways = []
    for name in names:
        grouped = [each for each, own in groupings.items() if own["of"] == name]
        ways.append([None, name, *grouped])
    for chosen in product(*ways):
        yield [name for name in chosen if name is not None]


def groupings_of(rng: Random, names: Sequence[str]) -> dict[str, Plain]:
    """Random groupings of attributes into two classes, or into one."""
    groupings = {}
    for name in names:
        own = CATEGORIES[name]
        if rng.random() < 0.5:
            cut = rng.randint(1, len(own))
            classes = {"some": own[:cut], "others": own[cut:]}
            kept = {label: values for label, values in classes.items() if values}
            groupings[f"{name}_group"] = {"of": name, "classes": kept}
    return groupings


def tabulation_of(rng: Random, name: str, *, is_pinned: bool, has_delta: bool) -> Tabulated:
    """One random tabulation with its areas and declared numbers, of no rows.

    Args:
        rng: decides everything.
        name: of the tabulation, and of its files.
        is_pinned: whether the strategy names its tables, so that none is searched for.
        has_delta: whether Gaussian noise may be asked for.
    """
    levels = LEVELS[-rng.randint(1, 4) :]
    lines = areas_of(rng, levels)
    names = rng.sample(list(CATEGORIES), rng.choice([0, 1, 1, 2, 2, 3]))
    groupings = groupings_of(rng, names)
    margins = list(subsets(names, groupings))
    publish = {}
    for level in levels:
        publish[level] = rng.sample(margins, min(len(margins), rng.choice([1, 2, 3])))
    plain: Plain = {
        "name": name,
        "table": "persons",
        "hierarchy": {"file": f"{name}.csv", "levels": levels},
        "attributes": {each: CATEGORIES[each] for each in names},
        "groupings": groupings,
        "publish": publish,
    }
    files: dict[str, Sequence[Sequence[str]]] = {f"{name}.csv": [levels, *lines]}
    if rng.random() < 0.3:
        plain["where"] = rng.choice(["wh > 2", "wh IS NULL OR wh < 5", "size = 3 AND wh <> 1"])
    if rng.random() < 0.4:
        plain["importance"] = {rng.choice(levels): rng.choice(["4", "0.5", "1/3"])}
    constraints: list[Plain] = []
    if names and rng.random() < 0.4:
        some = rng.sample(names, rng.randint(1, len(names)))
        constraints.append({"impossible": {each: CATEGORIES[each][:1] for each in some}})
    if rng.random() < 0.4:
        margin = rng.choice(publish[levels[0]])
        file = f"{name}_declared.csv"
        constraints.append({"level": levels[0], "margin": margin, "file": file})
        files[file] = declared_lines(rng, plain, margin, lines, constraints)
    plain["constraints"] = constraints
    facts = [(each["level"], each["margin"]) for each in constraints if "file" in each]
    seen = {(level, cells_of(plain, margin)) for level, margin in facts}
    tables = []
    for level in levels:
        for margin in publish[level]:
            table = level, cells_of(plain, margin)
            if table not in seen:
                share = rng.choice(["1", "2", "1/2"])
                tables.append({"level": level, "margin": margin, "share": share})
            seen.add(table)
    strategy: Plain = {"tables": tables} if is_pinned and tables else {}
    if rng.random() < 0.5:
        strategy["noise"] = rng.choice(["geometric", "gaussian"]) if has_delta else "geometric"
    if strategy:
        plain["strategy"] = strategy
    return Tabulated(plain, [], files)


def declared_lines(
    rng: Random,
    plain: Plain,
    margin: Sequence[str],
    lines: Sequence[Sequence[str]],
    constraints: Sequence[Plain],
) -> list[list[str]]:
    """Declared numbers, 0 in impossible cells, in any order."""
    labels = []
    for name in margin:
        grouped = plain["groupings"].get(name)
        labels.append(list(grouped["classes"] if grouped else map(str, CATEGORIES[name])))
    found = []
    for area in dict.fromkeys(line[0] for line in lines):
        for cell in product(*labels):
            possible = is_possible(plain, dict(zip(margin, cell, strict=True)), constraints)
            found.append([area, *cell, str(rng.randint(0, 30) if possible else 0)])
    rng.shuffle(found)
    return [[plain["hierarchy"]["levels"][0], *margin, "count"], *found]


def combinations(plain: Plain) -> list[dict[str, str]]:
    """Every combination of all categories."""
    every = product(*(map(str, own) for own in plain["attributes"].values()))
    return [dict(zip(plain["attributes"], chosen, strict=True)) for chosen in every]


def cells_of(plain: Plain, margin: Sequence[str]) -> tuple[int, ...]:
    """The number of the cell of each combination; equal for margins with the same cells."""
    numbers: dict[tuple[str, ...], int] = {}
    cells = []
    for detail in combinations(plain):
        labels = tuple(label_of(plain, name, detail) for name in sorted(margin))
        cells.append(numbers.setdefault(labels, len(numbers)))
    return tuple(cells)


def is_possible(plain: Plain, cell: Mapping[str, str], constraints: Sequence[Plain]) -> bool:
    """Whether somebody can be in a cell: some combination of all categories in it is possible."""
    for detail in combinations(plain):
        if not all(label_of(plain, name, detail) == own for name, own in cell.items()):
            continue
        zeros = [each["impossible"] for each in constraints if "impossible" in each]
        if not any(all(detail[n] in map(str, own) for n, own in z.items()) for z in zeros):
            return True
    return False


def label_of(plain: Plain, name: str, detail: Mapping[str, str]) -> str:
    """The label under an attribute or a grouping of a combination of categories."""
    grouping = plain["groupings"].get(name)
    if grouping is None:
        return detail[name]
    value = detail[grouping["of"]]
    for label, values in grouping["classes"].items():
        if value in map(str, values):
            return str(label)
    raise LookupError(value)


def random_release(seed: int, *, is_pinned: bool = True) -> Tabulated:
    """A random spec with one tabulation or two, some beside a query, and a random table."""
    rng = Random(seed)  # noqa: S311
    delta = rng.choice(["0", "0", "0.000001"])
    has_delta = delta != "0"
    count = rng.choice([1, 1, 1, 2])
    has_query = rng.random() < 0.25
    parts = []
    for number in range(count):
        parts.append(tabulation_of(rng, f"tab{number}", is_pinned=is_pinned, has_delta=has_delta))
    if count + has_query > 1:
        own = {"definition": "approximate" if has_delta else "pure", "epsilon": "1"}
        own |= {"delta": "0.0000001"} if has_delta else {}
        for part in parts:
            part.plain["guarantee"] = own
    plain = plain_spec(
        [part.plain for part in parts],
        neighbors=rng.choice(["add_remove", "replace_one"]),
        budget=(rng.choice(["0.5", "1", "3"]) if count + has_query == 1 else "6", delta),
    )
    if has_query:
        guarantee = {"definition": "pure", "epsilon": "1"}
        plain["queries"] = [
            {"name": "large", "kind": "count", "table": "persons", "by": [], "where": "wh > 1"}
            | {"sensitivity": "global", "domain": {"integers": {}}, "guarantee": guarantee}
        ]
    files = {name: lines for part in parts for name, lines in part.files.items()}
    lines = [line for part in parts for line in part.files[f"{part.plain['name']}.csv"][1:]]
    return Tabulated(plain, rows_of(rng, lines, rng.choice([0, 1, 20, 60])), files)


Cells: TypeAlias = dict[tuple[str, ...], Row]
"""The published row of each cell: the areas from the highest level down, then the labels."""


NOTHING = "every table is the same for all neighbors: nothing to protect"


def run_and_check(seed: int, folder: Path, *, is_pinned: bool = True) -> int:
    """Release a random case and check what is published; how many sums were compared.

    The run verifies the release by itself. A case of which every published table is declared is
    refused, in one line that names its field.
    """
    case = random_release(seed, is_pinned=is_pinned)
    try:
        public = run_release(case.write(folder), folder / "out").public
    except SpecError as error:
        assert (error.problem, error.exit_status) == (NOTHING, 2)
        assert case.files.keys() - {f"{each['name']}.csv" for each in case.plain["tabulations"]}
        return 0
    return check_published(case, public)


def published_tables(plain: Plain, public: Path) -> dict[tuple[int, tuple[str, ...]], Cells]:
    """The published rows of a tabulation, by level and margin."""
    levels, found = plain["hierarchy"]["levels"], {}
    for depth, level in enumerate(levels):
        rows = pq.read_table(public / "data" / f"{plain['name']}_{level}.parquet").to_pylist()
        for margin in plain["publish"][level]:
            keys = [*levels[: depth + 1], *margin]
            named = [each for each in [*plain["attributes"], *plain["groupings"]] if each in margin]
            others = (set(plain["attributes"]) | set(plain["groupings"])) - set(named)
            cells = {}
            for row in rows:
                is_own = all(row[name] is not None for name in named)
                if is_own and all(row.get(name) is None for name in others):
                    cells[tuple(row[key] for key in keys)] = row
            found[depth, tuple(margin)] = cells
    return found


def check_published(case: Tabulated, public: Path) -> int:
    """Check by hand what is promised of published tables; how many sums were compared."""
    compared = 0
    for plain in case.plain["tabulations"]:
        tables = published_tables(plain, public)
        lines = case.files[plain["hierarchy"]["file"]][1:]
        for (depth, margin), cells in tables.items():
            areas = {tuple(line[: depth + 1]) for line in lines}
            labels = [[label_of(plain, n, d) for n in margin] for d in combinations(plain)]
            assert set(cells) == {(*area, *own) for area in areas for own in labels}
            for key, row in cells.items():
                assert 0 <= row["low"] <= row["high"], (key, row)
                assert row["rounded"] >= 0 <= row["standard_error"]
                cell = dict(zip(margin, key[depth + 1 :], strict=True))
                if not is_possible(plain, cell, plain["constraints"]):
                    assert row["rounded"] == 0
            for (lower, detail), parts in tables.items():
                compared += _check_sums(plain, (depth, margin, cells), (lower, detail, parts))
            _check_declared(case, plain, depth, margin, cells)
    return compared


def _check_sums(
    plain: Plain,
    total: tuple[int, tuple[str, ...], Cells],
    detailed: tuple[int, tuple[str, ...], Cells],
) -> int:
    """Compare a table with the sums of a finer one; how many numbers were compared."""
    (depth, margin, cells), (lower, detail, parts) = total, detailed
    coarser: dict[tuple[str, ...], tuple[str, ...]] = {}
    for combination in combinations(plain):
        labels = tuple(label_of(plain, name, combination) for name in margin)
        own = tuple(label_of(plain, name, combination) for name in detail)
        if coarser.setdefault(own, labels) != labels:
            return 0
    if lower < depth:
        return 0
    sums = dict.fromkeys(cells, 0)
    for key, row in parts.items():
        sums[(*key[: depth + 1], *coarser[key[lower + 1 :]])] += row["rounded"]
    assert sums == {key: row["rounded"] for key, row in cells.items()}
    return len(sums)


def _check_declared(
    case: Tabulated, plain: Plain, depth: int, margin: Sequence[str], cells: Cells
) -> None:
    """Compare a table with the declared numbers of its margin."""
    for constraint in plain["constraints"]:
        if "file" in constraint and not depth and list(margin) == constraint["margin"]:
            declared = {
                tuple(line[:-1]): int(line[-1]) for line in case.files[constraint["file"]][1:]
            }
            for key, row in cells.items():
                assert row["rounded"] == row["answer"] == row["low"] == row["high"] == declared[key]
                assert row["standard_error"] == 0


def misspelt() -> Tabulated:
    """Of a category that is misspelt, an area of no row, a declared number that is wrong."""
    plain = {
        "name": "pl",
        "table": "persons",
        "hierarchy": {"file": "areas.csv", "levels": ["state", "tract"]},
        "attributes": {"race": ["a", "bee"]},
        "publish": {"state": [[], ["race"]], "tract": [[]]},
        "constraints": [{"level": "state", "margin": [], "file": "totals.csv"}],
    }
    races = ["a"] * 40 + ["be"] * 3
    rows = [
        {"person": f"p{i}", "tract": "t1", "race": race, "size": 1} for i, race in enumerate(races)
    ]
    files = {
        "areas.csv": [["state", "tract"], ["s", "t1"], ["s", "t2"]],
        "totals.csv": [["state", "count"], ["s", "43"]],
    }
    spec = plain_spec([plain], neighbors="add_remove", budget=("2", "0"))
    return Tabulated(spec, rows, files)
