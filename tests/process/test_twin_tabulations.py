"""Twin runs of tabulations: with equal noisy counts nothing tells one table from another.

The pairs are those of :mod:`tests.process.test_twin_pairs`, under a spec with tabulations.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import numpy as np
import pytest
import yaml

from dp_release_verify.digests import sha256
from release.job import Job, Stage
from release.tabulations.measure.table_count import CENTER
from tests.attempts import Tried
from tests.every import every
from tests.process.test_twin_pairs import DATES, Pair, pairs
from tests.process.test_twin_run import all_of_a_run, true_answers
from tests.tabulated import random_release, rows_of

T = TypeVar("T")

AREAS = [["region", "place"], ["north", "b"], ["north", "a"], ["south", "ä"]]

TABULATION: dict[str, Any] = {
    "name": "homes",
    "table": "rows",
    "where": "amount > 0.5 OR NOT flag OR half IS NULL",
    "hierarchy": {"file": "areas.csv", "levels": ["region", "place"]},
    "attributes": {
        "number": {"range": [1, 12]},
        "born": list(map(str, DATES)),
        "letter": ["A", "B"],
    },
    "groupings": {
        "few": {"of": "number", "classes": {"<= 3": [1, 2, 3], "more": {"range": [4, 12]}}}
    },
    "publish": {"region": [[], ["born"]], "place": [["few", "born"], ["letter"]]},
    "constraints": [{"impossible": {"born": [str(DATES[0])], "letter": ["B"]}}],
    "guarantee": {"definition": "pure", "epsilon": "3"},
    "strategy": {
        "tables": [
            {"level": "region", "margin": ["born"], "share": "1"},
            {"level": "place", "margin": ["few", "born"], "share": "2"},
            {"level": "place", "margin": ["letter"], "share": "1"},
        ]
    },
}


def frozen_counts(stage: Stage, job: Job) -> None:
    """Performs a stage; the noisy counts are the same whatever the true ones are."""
    if stage.name != "draw":
        stage.does(job)
        return
    sizes = [run.codes.size for run in job.runs]
    job.noisy = tuple(np.arange(size, dtype=np.int64) % 5 - 1 - CENTER for size in sizes)


def tabulated(write: Callable[[Path], Path], folder: Path) -> Path:
    """The inputs of a pair with a tabulation in place of its queries."""
    path = write(folder)
    plain = yaml.safe_load(path.read_text("utf-8"))
    del plain["queries"], plain["keys"]
    # A column of the published tables is called count.
    plain["tables"]["rows"]["derive"]["number"] = {"type": "integer", "sql": "count + 1"}
    plain["privacy"]["max_rows_per_unit"] = 1
    plain["tabulations"] = [TABULATION]
    path.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    with (folder / "areas.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(AREAS)
    return path


NUMBER_OF_PAIRS, PARTS = 40, 4


def chosen() -> list[Pair]:
    """So many of all pairs: any choice will do, if it is always the same one."""
    drawn = sorted(pairs(), key=lambda pair: sha256(f"tabulated {pair.title}".encode()))
    return drawn[:NUMBER_OF_PAIRS]


@pytest.mark.parametrize("part", range(0, PARTS, every(4)))
def test_nothing_tells_of_a_fault_in_one_units_rows(
    part: int, tmp_path: Path, record_property: Tried
) -> None:
    told: dict[str, list[str]] = {}
    bases: dict[str, dict[str, bytes]] = {}
    for number, pair in enumerate(chosen()[part::PARTS]):
        base = repr(pair.one)
        if base not in bases:
            inputs = partial(tabulated, pair.one)
            bases[base] = all_of_a_run(inputs, tmp_path / f"one-{number}", frozen_counts)
            assert b"error" not in bases[base]["stderr"], (pair.title, bases[base]["stderr"])
        inputs = partial(tabulated, pair.two)
        one, two = bases[base], all_of_a_run(inputs, tmp_path / f"two-{number}", frozen_counts)
        names = one.keys() | two.keys()
        different = sorted(name for name in names if one.get(name) != two.get(name))
        if different:
            told[pair.title] = [two["stderr"].decode()[:200], *different[:3]]
    assert told == {}
    record_property("tried", len(chosen()[part::PARTS]))


@pytest.mark.parametrize("seed", range(0, 3, every(3)))
def test_any_two_tables_with_equal_noisy_counts_are_published_alike(
    seed: int, tmp_path: Path
) -> None:
    """Tables that have nothing in common, of other sizes: more than neighbors."""
    case = random_release(seed)
    (first, *_) = case.plain["tabulations"]
    lines = case.files[first["hierarchy"]["file"]][1:]
    others = [[], rows_of(Random(seed + 1), lines, 1), rows_of(Random(seed + 2), lines, 300)]  # noqa: S311
    one = all_of_a_run(case.write, tmp_path / "one", frozen_counts)
    assert b"error" not in one["stderr"]
    assert any(name.startswith("out/public/small/data/") for name in one)
    for number, rows in enumerate(others):
        inputs = case.with_rows(rows).write
        assert one == all_of_a_run(inputs, tmp_path / f"two-{number}", frozen_counts)


def test_counts_without_noise_are_told_apart(tmp_path: Path) -> None:
    """The test of the test."""
    case = random_release(0)
    (first, *_) = case.plain["tabulations"]
    lines = case.files[first["hierarchy"]["file"]][1:]
    inputs = case.with_rows(rows_of(Random(1), lines, 300)).write  # noqa: S311
    one = all_of_a_run(inputs, tmp_path / "one", true_answers)
    two = all_of_a_run(case.with_rows([]).write, tmp_path / "two", true_answers)
    different = {name for name in one if one[name] != two[name]}
    assert any("data/" in name for name in different)
