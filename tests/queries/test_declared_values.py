"""Sums of declared values: sensitivity with gaps, where the values make it true."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from release.errors import SpecError
from release.queries.read import parse_spec
from release.queries.registry import global_sensitivity
from release.street import run_release
from release.verification.verifier import verify
from tests.small import UNSIGNED, Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": 0, "wh": wh}
    for i, wh in enumerate([-5, 0, 2, 3, 5, 6, 7, 100])
]


def summed(**fields: Any) -> dict[str, Any]:
    own = {
        "name": "taken",
        "statistic": "sum",
        "sensitivity": "global",
        "noise": "on_answer",
        "bins": {"low": 0, "high": 19, "count": 19},
        "values": [0, 3, 6],
        "loss": "absolute",
    }
    plain = query("binned", **(own | fields))
    del plain["clamp"]
    return {name: value for name, value in plain.items() if value is not None}


def spec_of(plain: dict[str, Any], neighbors: str = "replace_one", rows: int = 1) -> Any:
    small = Small(ROWS, [plain], neighbors=neighbors, max_rows_per_unit=rows)
    return parse_spec(json.dumps(small.plain()).encode())


def code(total: int, bins: dict[str, int]) -> int:
    size = bins["count"]
    return max(0, min(size - 1, (total - bins["low"]) * size // (bins["high"] - bins["low"])))


def differences(values: list[int], bins: dict[str, int], rows: int, both: bool) -> set[int]:
    """How far neighbors' answers are apart, over all tables of up to four more units of a row."""
    one_unit = [sum(of) for n in range(rows + 1) for of in combinations_with_replacement(values, n)]
    rests = [sum(of) for n in range(5) for of in combinations_with_replacement(values, n)]
    others = one_unit if both else [0]
    return {
        abs(code(rest + mine, bins) - code(rest + other, bins))
        for rest, mine, other in product(rests, one_unit, others)
    } - {0}


BINS = {"low": 0, "high": 19, "count": 19}


@pytest.mark.parametrize(
    ("values", "bins", "rows", "neighbors", "distances"),
    [
        ([0, 3, 6], BINS, 1, "replace_one", {3, 6}),
        ([0, 3, 6], BINS, 1, "add_remove", {3, 6}),
        ([0, 3, 6], BINS, 2, "replace_one", {3, 6, 9, 12}),
        ([0, 6], BINS, 1, "add_remove", {6}),
        ([0, 3, 9], BINS, 1, "replace_one", {3, 6, 9}),
        ([-3, 6], BINS, 1, "replace_one", {3, 6, 9}),
        ([0, 6], {"low": -12, "high": 26, "count": 19}, 1, "add_remove", {3}),
        ([0, 3], {"low": 0, "high": 18, "count": 18}, 1, "add_remove", {1, 2, 3}),
        ([0, 3], {"low": 1, "high": 20, "count": 19}, 1, "add_remove", {1, 2, 3}),
        ([0, 2, 5], BINS, 1, "add_remove", {1, 2, 3, 4, 5}),
        ([0, 3, 6], {"low": 0, "high": 38, "count": 19}, 1, "add_remove", {1, 2, 3}),
    ],
)
def test_the_distances_are_those_of_all_small_tables(
    values: list[int], bins: dict[str, int], rows: int, neighbors: str, distances: set[int]
) -> None:
    spec = spec_of(summed(values=values, bins=bins), neighbors, rows)
    stated = set(global_sensitivity(spec, spec.queries[0], rows).distances or ())
    assert stated == distances
    true = differences(values, bins, rows, neighbors != "add_remove")
    assert true <= stated
    # Where all is on a lattice, small tables reach every distance.
    assert min(distances) == 1 or min(true) == min(distances)


def test_a_declared_set_with_gaps_is_released_and_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Noise on multiples of 3: no other answer is published."""
    plain = summed(sensitivity={"declared": [3, 6]}, mechanism="integer")
    small = Small(ROWS, [plain], max_rows_per_unit=1)
    public = run_release(small.write(tmp_path), tmp_path / "out").public
    codes = pq.read_table(public / "data" / "taken.parquet").column("answer_code").to_pylist()
    assert all(each % 3 == 0 for each in codes)
    assert verify(public, None, UNSIGNED).status == 0


def test_a_row_counts_as_the_largest_value_that_is_not_above_it(tmp_path: Path) -> None:
    """At ε = 50 the answers are true: of place a -5, 2, 5, 7 count as 0, 0, 3, 6."""
    plain = summed(guarantee={"definition": "pure", "epsilon": "50"}, mechanism="integer")
    small = Small(ROWS, [plain], max_rows_per_unit=1)
    public = run_release(small.write(tmp_path), tmp_path / "out").public
    codes = pq.read_table(public / "data" / "taken.parquet").column("answer_code").to_pylist()
    assert codes == [0 + 0 + 3 + 6, 0 + 3 + 6 + 6]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"sensitivity": {"declared": [3]}}, "one row of a unit can move the answer in 4 ways"),
        ({"sensitivity": {"declared": [3, 6], "directed": True}}, "sensitivity"),
        ({"noise": None}, "values is for a sum with noise: on_answer"),
        ({"values": [0, 3, 3]}, "values must be ascending, each once"),
        ({"values": [0]}, "values"),
        ({"statistic": "max"}, "values is for a sum"),
    ],
)
def test_sets_that_the_values_do_not_make_true_are_refused(
    fields: dict[str, Any], told: str
) -> None:
    """A directed set protects one direction only, and no spec can ask for it."""
    with pytest.raises(SpecError) as refused:
        spec_of(summed(**fields))
    assert told in str(refused.value)
