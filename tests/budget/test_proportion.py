"""Charges in proportion: what one unit moves in all cells together, and the noise that it decides.

Every pair of neighboring tables of a few rows is compared over all cells at once, in exact
arithmetic. The statistics are counted from lists of rows, by nothing of the package's queries.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release.budget.cost import charge_of, moved_together, satisfied, touched_cells
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.integers.staircase import staircase
from release.exact.numbers import exp_bounds
from release.exact.statistics.gap_table import GapTable
from release.exact.statistics.permute_and_flip import PermuteAndFlip
from release.exact.statistics.sums import NoisySums
from release.noise.design import GAP
from release.noise.refusal import Made
from release.noise.stage import design_unseen
from release.spec.load import SpecFile
from release.street import run_release
from release.verification.verifier import verify
from tests.budget.test_cost import spec_file
from tests.queries.test_on_statistic import by_counting
from tests.small import UNSIGNED, Row, Small, query

CELLS = ["a", "b"]
GLOBAL = {"sensitivity": "global", "noise": "on_statistic"}
WHOLE = {"sensitivity": "global", "domain": {"integers": {}}}
ASKED: dict[str, dict[str, Any]] = {
    "count": query("count", loss="absolute", **WHOLE),
    "units": query("mode", **GLOBAL),
    "rows": query("mode", count="rows", **GLOBAL),
    "weight": query("mode", weight="wh", clamp=[-2, 3], **GLOBAL),
    "median": query("binned", statistic="median", **GLOBAL),
    "second_least": query("binned", statistic="min", rank=2, **GLOBAL),
    "sum": query("binned", **GLOBAL),
    "mean": query("binned", statistic="mean", **GLOBAL),
}
"""By names that :func:`by_counting` knows; a count by itself."""

Table = tuple[tuple[str, int], ...]
"""The rows of one unit: cell and value."""


def read(name: str, **fields: Any) -> SpecFile:
    """A spec of one query."""
    return spec_file(ASKED[name], **fields)


def designed(about: SpecFile) -> Made:
    (asked,) = about.spec.released
    return design_unseen(about, asked, None, GAP)


def charged(about: SpecFile, design: Made) -> Fraction:
    (asked,) = about.spec.released
    kept = satisfied(about, asked, design, design.guarantee)
    return charge_of(about, asked, asked.claimed, kept).epsilon


@pytest.mark.parametrize(
    ("name", "neighbors", "rows", "most_cells", "expected"),
    [
        # Ten rows move all counts by ten together, as they may move one alone.
        ("count", "add_remove", 10, None, "1"),
        ("count", "replace_one", 10, None, "2"),
        ("count", "replace_one", 1, None, "2"),
        # A unit counts once in every cell, whatever its other rows do.
        ("units", "add_remove", 3, None, "2"),
        ("units", "replace_one", 1, None, "1"),
        ("units", "replace_one", 9, None, "2"),
        ("units", "replace_one", 9, 1, "1"),
        ("rows", "add_remove", 5, None, "1"),
        ("rows", "replace_one", 5, None, "1"),
        ("weight", "replace_one", 2, None, "1"),
        ("median", "add_remove", 7, None, "1"),
        ("median", "replace_one", 7, None, "1"),
        # The rank from one end moves no more where a unit is replaced than where it only leaves.
        ("second_least", "replace_one", 7, None, "2"),
        ("mean", "add_remove", 4, None, "1"),
        ("mean", "replace_one", 4, None, "1"),
        # -5 to 15: a unit that comes in moves a sum by 15, one that is replaced by 20.
        ("sum", "add_remove", 4, None, "1"),
        ("sum", "replace_one", 4, None, "3/2"),
    ],
)
def test_the_charge_is_what_a_unit_moves_in_all_cells_together(
    name: str, neighbors: str, rows: int, most_cells: int | None, expected: str
) -> None:
    about = read(name, neighbors=neighbors, max_rows_per_unit=rows, max_cells_per_unit=most_cells)
    (asked,) = about.spec.released
    assert moved_together(about, asked) == Fraction(expected)
    assert charged(about, designed(about)) == Fraction(expected)


def test_a_fixed_key_leaves_one_cell() -> None:
    for name in ASKED:
        about = read(name, neighbors="replace_one", max_rows_per_unit=4, fixed=["place"])
        assert charged(about, designed(about)) == 1, name


def units(most: int) -> Iterator[Table]:
    """All that a unit of at most so many rows can have in two cells."""
    rows = list(itertools.product(CELLS, (0, 1, 3)))
    for count in range(most + 1):
        yield from itertools.combinations_with_replacement(rows, count)


def statistic(name: str, table: tuple[Table, ...], cell: str) -> tuple[int, ...]:
    """The integers of one cell of a table, a tuple of rows for each unit."""
    own: list[Row] = []
    for number, rows in enumerate(table):
        for place, value in rows:
            if place == cell:
                wh = 5 * value if name == "weight" else 5 * value - 1
                own.append({"unit": f"u{number}", "kind": value, "wh": wh})
    return (len(own),) if name == "count" else tuple(by_counting(name, own))


@cache
def largest_ratio(noise: IntegerNoise, apart: int) -> Fraction:
    ratios = [noise.mass(o) / noise.mass(o + apart) for o in range(-60 - apart, 61)]
    return max(*ratios, 1 / min(ratios))


def ratio_of(mechanism: object, here: tuple[int, ...], there: tuple[int, ...]) -> Fraction:
    """How much likelier an outcome of one cell is at most under one of the two statistics."""
    if isinstance(mechanism, PermuteAndFlip):
        pairs = zip(*(mechanism.chances(np.array(s)) for s in (here, there)), strict=True)
        return Fraction(max(a / b for a, b in pairs))
    assert isinstance(mechanism, IntegerMechanism | NoisySums)
    worst = Fraction(1)
    for a, b in zip(here, there, strict=True):
        worst *= largest_ratio(mechanism.noise, abs(a - b))
    return worst


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", ASKED)
def test_no_two_neighbors_lose_more_than_the_charge_in_all_cells(
    name: str, most: int, neighbors: str
) -> None:
    about = read(name, neighbors=neighbors, max_rows_per_unit=most)
    made = designed(about)
    charge = charged(about, made)
    allowed, nearly = exp_bounds(charge)[1], exp_bounds(charge * Fraction(99, 100))[0]
    worst, seen = Fraction(0), dict[object, Fraction]()
    # Another unit that stays moves the gaps to where a change shows most.
    for stays in units(1):
        for before, after in itertools.product(units(most), repeat=2):
            if neighbors == "add_remove" and before and after:
                continue
            total = Fraction(1)
            for cell in CELLS:
                pair = [statistic(name, (rows, stays), cell) for rows in (before, after)]
                key = tuple(pair)
                if key not in seen:
                    seen[key] = ratio_of(made.mechanism, *pair)
                total *= seen[key]
            worst = max(worst, total)
    assert worst <= allowed
    # Counts and means lose all of it; a sum of these values, and scores of so few rows, do not.
    if name in {"count", "mean"}:
        assert worst >= nearly


@pytest.mark.parametrize("name", ["units", "rows"])
def test_few_categories_get_their_table_only_where_units_stay(name: str) -> None:
    fields: dict[str, Any] = {"neighbors": "replace_one", "max_rows_per_unit": 1}
    assert isinstance(designed(read(name, **fields)).mechanism, PermuteAndFlip)
    stays = designed(read(name, **fields, fixed=["place"])).mechanism
    assert isinstance(stays, GapTable)


def test_other_mechanisms_are_charged_for_every_cell() -> None:
    fields: dict[str, Any] = {"neighbors": "replace_one", "max_rows_per_unit": 3}
    for changes in (
        {"mechanism": "channel", "domain": {"ordered": {"min": 0, "max": 9}}},
        {"mechanism": "modular", "domain": {"ordered": {"min": 0, "max": 9}}},
    ):
        about = spec_file(ASKED["count"] | changes, **fields)
        assert charged(about, designed(about)) == touched_cells(about, about.spec.released[0]) == 2
    top = query("count", name="tops", of="kind", domain={"cyclic": 6}, sensitivity="global")
    top |= {"kind": "top", "k": 2, "mechanism": "top_peeled"}
    about = spec_file(top, **fields)
    assert charged(about, designed(about)) == 2


def test_many_rows_a_unit_err_as_little_as_noise_for_all_cells_together() -> None:
    """A budget of 1 buys geometric noise of ε/10 a row, as for one vector of counts."""
    fields: dict[str, Any] = {"neighbors": "add_remove", "max_rows_per_unit": 10}
    best = staircase((1,), Fraction(1, 10), 1).loss
    made = designed(read("count", **fields))
    assert isinstance(made.mechanism, IntegerMechanism)
    assert made.mechanism.noise.moment(1) == best
    # A staircase of the same charge would have half of ε for each of two cells.
    assert best < staircase(range(1, 11), Fraction(1, 2), 1).loss


@pytest.mark.parametrize(("delta", "is_proportional"), [("0.000001", True), ("0.4", False)])
def test_a_delta_is_given_up_where_all_cells_would_be_charged_for_it(
    delta: str, is_proportional: bool
) -> None:
    """Noise with a δ is charged for both cells: it has half of ε to show at the same charge."""
    guarantee = {"definition": "approximate", "epsilon": "2", "delta": delta}
    asked = query("count", loss="squared", guarantee=guarantee, **WHOLE)
    about = spec_file(asked, neighbors="add_remove", max_rows_per_unit=4)
    made = designed(about)
    assert isinstance(made.mechanism, IntegerMechanism)
    geometric = staircase((1,), Fraction(1, 2), 2)
    kept = satisfied(about, about.spec.released[0], made, made.guarantee)
    assert (made.mechanism.noise == geometric.noise) == is_proportional
    assert (kept.delta == 0) == is_proportional
    assert charged(about, made) == (2 if is_proportional else 4)


def test_a_staircase_is_taken_where_it_errs_less_at_one_charge() -> None:
    """Where ε is large, steps of the most rows lose less, for all that two cells cost."""
    guarantee = {"definition": "pure", "epsilon": "20"}
    asked = query("count", loss="squared", guarantee=guarantee, **WHOLE)
    about = spec_file(asked, neighbors="add_remove", max_rows_per_unit=40)
    made = design_unseen(about, about.spec.released[0], None, Fraction(1, 100))
    assert isinstance(made.mechanism, IntegerMechanism)
    assert made.mechanism.noise == staircase(range(1, 41), Fraction(20), 2).noise
    assert charged(about, made) == 40
    assert made.mechanism.noise.moment(2) < staircase((1,), Fraction(1), 2).loss


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_both_verifiers_prove_the_charges(
    tmp_path: Path, neighbors: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[Row] = [
        {"unit": f"u{i // 3}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i}
        for i in range(30)
    ]
    tops = query("count", name="tops", of="kind", domain={"cyclic": 6}, sensitivity="global")
    tops |= {"kind": "top", "k": 2, "count": "rows", "histogram": True}
    quarters = query("count", name="quarters", of="wh", sensitivity="global")
    quarters |= {"kind": "quantiles", "at": ["1/4", "3/4"]}
    quarters |= {"domain": {"ordered": {"min": 0, "max": 8}}}
    asked = [plain | {"name": name} for name, plain in ASKED.items()]
    weak = {"definition": "approximate", "epsilon": "1", "delta": "0.000001"}
    asked.append(ASKED["count"] | {"name": "without_delta", "guarantee": weak})
    small = Small(rows, [*asked, tops, quarters], neighbors=neighbors, max_rows_per_unit=3)
    path = small.write(tmp_path)
    published = run_release(path, tmp_path)
    assert verify(published.public, trust=UNSIGNED).status == 0


def test_shares_of_a_pure_budget_use_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[Row] = [{"unit": "u", "place": "a", "day": 1, "kind": 1, "wh": 1}]
    queries = []
    for name in ("count", "rows"):
        plain = {field: value for field, value in ASKED[name].items() if field != "guarantee"}
        queries.append(plain | {"name": name, "share": "1"})
    small = Small(rows, queries, neighbors="add_remove", max_rows_per_unit=10, budget=("2", "0"))
    published = run_release(small.write(tmp_path), tmp_path)
    assert verify(published.public, trust=UNSIGNED).status == 0
    record = json.loads((published.public / "release.json").read_text("utf-8"))
    assert Fraction(199, 100) < Fraction(record["made"]["total"]["epsilon"]) <= 2
    charged_each = [Fraction(entry["charge"]["epsilon"]) for entry in record["made"]["queries"]]
    # In one of two cells each as much as in both together: the claim of a cell is the charge.
    assert charged_each == [Fraction(entry["epsilon"]) for entry in record["made"]["queries"]]
