"""Forged tabulations: every field of a record, every number of a file, and all that follows."""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from release.bundle.tables.parquet import parquet_bytes
from release.errors import VerificationError
from release.pipeline import run_release
from release.verification.verifier import verify
from tests.attempts import Tried
from tests.small import UNSIGNED
from tests.tabulated import Plain, Tabulated, plain_spec, rows_of
from tests.verification.test_forgeries import PATH, Forger, forged, places, read, written

FILES = {
    "tab.csv": [["state", "tract"], ["s1", "t1"], ["s1", "t2"], ["s2", "t3"]],
    "declared.csv": [
        ["state", "two", "count"],
        *[["s1", "x", "3"], ["s1", "y", "6"], ["s2", "x", "0"], ["s2", "y", "4"]],
    ],
}

TABLES = [
    {"level": "state", "margin": ["race"], "share": "1"},
    {"level": "tract", "margin": ["two", "size"], "share": "2"},
    {"level": "tract", "margin": ["race"], "share": "2"},
]

PINNED: Plain = {
    "name": "tab",
    "title": "Persons",
    "units": "persons",
    "table": "persons",
    "where": "wh < 7",
    "hierarchy": {"file": "tab.csv", "levels": ["state", "tract"]},
    "attributes": {"race": ["b", "a", "c"], "size": [1, 2]},
    "groupings": {"two": {"of": "race", "classes": {"x": ["b"], "y": ["a", "c"]}}},
    "publish": {"state": [[], ["race"]], "tract": [["two", "size"], ["race"]]},
    "importance": {"state": "4"},
    "constraints": [
        {"impossible": {"race": ["b"], "size": [2]}},
        {"level": "state", "margin": ["two"], "file": "declared.csv"},
    ],
    "strategy": {"noise": "geometric", "tables": TABLES},
}

CHOSEN: Plain = {
    "name": "tab",
    "table": "persons",
    "hierarchy": {"file": "tab.csv", "levels": ["state", "tract"]},
    "attributes": {"race": ["b", "a", "c"], "size": [1, 2]},
    "publish": {"state": [[], ["race"]], "tract": [[]]},
    "guarantee": {"definition": "approximate", "epsilon": "2", "delta": "0.0000001"},
}

GAUSSIAN = copy.deepcopy(PINNED) | {"strategy": {"noise": "gaussian", "tables": TABLES}}

CASES = {
    "pinned": (PINNED, "add_remove", ("3", "0")),
    "chosen": (CHOSEN, "replace_one", ("3", "0.000001")),
    "gaussian": (GAUSSIAN, "replace_one", ("3", "0.000001")),
}

ASSERTED = (
    r"tables\.persons\.(path|columns\.(tenure|size))"
    r"|tabulations\.0\.(title|strategy(\.noise|\.tables(\.\d\.share)?)?)$"
    # A cap above the charges, as that of the budget.
    r"|tabulations\.0\.guarantee"
    r"|tabulations\.0\.(hierarchy|constraints\.\d)\.file"
)
"""The fields of the spec that lines of the verdict call asserted; nothing else may change."""

SAME = (
    r"tabulations\.0\.attributes\.size\.\d|.*\.impossible\..*|.*\.classes\.\w+(\.\d)?$"
    r"|tabulations\.0\.(publish\.tract\.0|constraints|strategy\.tables(\.\d\.margin)?)$"
)
"""Fields of the spec with other texts for the same: 1 and "1", or the same set in another order."""


@pytest.fixture(scope="module", params=CASES)
def forger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Forger:
    """A release with a tabulation, and everything that follows from its files."""
    folder = tmp_path_factory.mktemp("tabulated")
    tabulation, neighbors, budget = CASES[request.param]
    rows = rows_of(Random(3), FILES["tab.csv"][1:], 30)  # noqa: S311
    spec = plain_spec([tabulation], neighbors=neighbors, budget=budget)
    files = FILES if tabulation.get("constraints") else {"tab.csv": FILES["tab.csv"]}
    run_release(Tabulated(spec, rows, files).write(folder), folder / "made")
    forger = Forger(folder / "made", folder / "out")
    forger.fit(Path())
    assert forger.is_accepted(UNSIGNED)
    return forger


def lies(plain: Any, pattern: str) -> Iterator[tuple[PATH, Any]]:
    """Every forgery of the fields that match."""
    for at in list(places(plain)):
        if re.match(pattern, ".".join(map(str, at))):
            for lie in forged(plain, at):
                yield at, lie


def accepted(forger: Forger, name: str, pattern: str, apart: int) -> tuple[set[str], int]:
    """The fields of a file that were changed and accepted, of one forgery in ``apart``.

    Beside them the number of forgeries.
    """
    path = forger.public / name
    plain = read(path)
    canonical, found, tried = written(path, plain), set[str](), 0
    for number, (at, lie) in enumerate(lies(plain, pattern)):
        data = written(path, lie)
        if number % apart or data == canonical:
            continue
        tried += 1
        path.write_bytes(data)
        forger.fit(path)
        if forger.is_accepted(UNSIGNED):
            found.add(".".join(map(str, at)))
        forger.restore()
    return found, tried


def test_nothing_of_a_record_may_change(forger: Forger, record_property: Tried) -> None:
    found, tried = accepted(forger, "release.json", "tabulations", 9)
    assert tried > 25
    assert found == set()
    record_property("tried", tried)


def margins_of(forger: Forger) -> list[list[str]]:
    """The published margins."""
    (tabulation,) = read(forger.public / "release.json")["tabulations"]
    return [margin for level in tabulation["levels"] for margin in level["margins"]]


def test_what_may_change_of_the_spec_is_called_asserted(forger: Forger) -> None:
    found, tried = accepted(forger, "spec.yaml", "tabulations|tables|privacy", 13)
    assert tried > 15
    possible = f"{ASSERTED}|{SAME}"
    if not any("size" in margin for margin in margins_of(forger)):
        possible += r"|tabulations\.0\.attributes\.size"
    assert [at for at in found if not re.match(possible, at)] == []


def test_mechanisms_are_proved_as_those_of_counts(forger: Forger) -> None:
    """A sample: every field of such a file is forged in test_forgeries."""
    (first, *_) = sorted((forger.public / "mechanisms").iterdir())
    # One above the size of the group is no number of canonical JSON.
    pattern = "(?!accuracy|design|group)"
    found, tried = accepted(forger, f"mechanisms/{first.name}", pattern, 11)
    assert tried > 10
    assert found == set()


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a table anew as the library writes it, with another content."""
    file = pq.ParquetFile(io.BytesIO(path.read_bytes()))
    entries = {key.decode(): own.decode() for key, own in file.metadata.metadata.items()}
    del entries["ARROW:schema"]
    path.write_bytes(parquet_bytes(change(file.read()), entries))


def with_value(table: pa.Table, column: str, row: int, value: Any) -> pa.Table:
    """The table with one other value."""
    place = table.schema.get_field_index(column)
    values = table.column(column).to_pylist()
    values[row] = value
    field = table.schema.field(column)
    return table.set_column(place, field, pa.array(values, field.type))


def others_of(value: Any) -> list[Any]:
    """Values beside the one that is there; None is no value."""
    if isinstance(value, str) or value is None:
        return ["t1", "", "z"] if value is None else [value + "x", "", "t2"]
    if isinstance(value, float):
        return [value + 0.000001, -value - 1, float("nan"), float("inf")]
    return [value + 1, value - 1, -1 - value, 2**60, -(2**62)]


def test_no_number_and_no_key_of_a_table_may_change(forger: Forger, record_property: Tried) -> None:
    files = [*(forger.public / "data").iterdir(), *(forger.public / "measurements").iterdir()]
    assert len(files) >= 3
    passed, tried = [], 0
    for path in sorted(files):
        table = pq.read_table(io.BytesIO(path.read_bytes()))
        for column in table.column_names:
            row = len(column) % table.num_rows
            before = table.column(column)[row].as_py()
            others = [value for value in others_of(before) if value != before]
            value = others[len(path.name + column) % len(others)]
            rewritten(path, partial(with_value, column=column, row=row, value=value))
            forger.fit(path)
            tried += 1
            if forger.is_accepted(UNSIGNED):
                passed.append((path.name, column, before, value))
            forger.restore()
    assert passed == []
    record_property("tried", tried)


def test_rows_are_all_there_once_in_order(forger: Forger) -> None:
    changes: list[Callable[[pa.Table], pa.Table]] = [
        lambda table: table.slice(1),
        lambda table: table.slice(0, 0),
        lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        lambda table: table.take([1, 0, *range(2, table.num_rows)]),
        lambda table: table.select(table.column_names[::-1]),
        lambda table: table.append_column("more", pa.nulls(table.num_rows, pa.int64())),
        lambda table: table.replace_schema_metadata({"more": "told"}),
    ]
    files = [*(forger.public / "data").iterdir(), *(forger.public / "measurements").iterdir()]
    for path in sorted(files):
        for number, change in enumerate(changes):
            # Each file and each change, and not every one of both.
            if (number + len(path.name)) % 3:
                continue
            rewritten(path, change)
            forger.fit(path)
            assert not forger.is_accepted(UNSIGNED), (path.name, number)
            forger.restore()


def refusal(forger: Forger, changed: Path) -> VerificationError:
    """The refusal of a forged release, whose files are put back."""
    forger.fit(changed)
    with pytest.raises(VerificationError) as error:
        verify(forger.public, None, UNSIGNED)
    for folder in ("measurements", "mechanisms"):
        (forger.public / folder).mkdir(exist_ok=True)
    forger.restore()
    return error.value


def without(forger: Forger, name: str) -> None:
    """Take a measured table away, with its files and all that names it."""
    record, spec = forger.public / "release.json", forger.public / "spec.yaml"
    plain = read(record)
    (own,) = plain["tabulations"]
    own["measured"] = [entry for entry in own["measured"] if entry["name"] != name]
    record.write_bytes(written(record, plain))
    asked = read(spec)
    asked["tabulations"][0].pop("strategy", None)
    spec.write_bytes(written(spec, asked))
    (forger.public / "measurements" / f"{name}.parquet").unlink()
    (forger.public / "mechanisms" / f"{name}.json").unlink()


def test_tables_that_do_not_determine_what_is_published_are_refused(forger: Forger) -> None:
    (own,) = read(forger.public / "release.json")["tabulations"]
    for entry in own["measured"]:
        if entry["mechanism_file"]["path"] != f"mechanisms/{entry['name']}.json":
            continue
        without(forger, entry["name"])
        # Of one table nothing is left: not even its folder may stay.
        for folder in ("measurements", "mechanisms"):
            with suppress(OSError):
                (forger.public / folder).rmdir()
        refused = refusal(forger, Path("spec.yaml"))
        assert refused.identifier in {"tabulations.tables", "release.record"}


def test_a_pinned_table_of_no_published_margin_is_refused(forger: Forger) -> None:
    spec = forger.public / "spec.yaml"
    plain = read(spec)
    strategy = plain["tabulations"][0].setdefault("strategy", {})
    lowest = {"level": "tract", "margin": ["race", "size"], "share": "1"}
    strategy["tables"] = [lowest]
    spec.write_bytes(written(spec, plain))
    assert "(pinned)" in str(refusal(forger, spec))
