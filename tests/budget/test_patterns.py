"""The patterns of one unit: every change that its rows can make lies within one of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.budget.cost import touched_cells
from release.budget.patterns import MOST_PATTERNS, Pattern, partitions, patterns_of
from release.queries.read import parse_spec
from release.spec.load import SpecFile
from tests.small import Small, query

Cells = tuple[int, ...]


def spec_file(asked: dict[str, Any], days: int = 3, **fields: Any) -> SpecFile:
    """A spec whose cells are so many days."""
    privacy = fields.pop("privacy", {})
    plain = Small([], [asked], **fields).plain()
    plain["keys"]["day"] = {"range": [1, days]}
    plain["privacy"] |= privacy
    text = yaml.safe_dump(plain).encode()
    keys = {"place": ("a", "b"), "day": tuple(map(str, range(1, days + 1)))}
    return SpecFile(parse_spec(text), text, Path(), keys)


def patterns(asked: dict[str, Any], days: int = 3, **fields: Any) -> tuple[Pattern, ...]:
    read = spec_file(asked, days, **fields)
    return patterns_of(read, read.spec.released[0])


WIDE: dict[str, Any] = {"domain": {"ordered": {"min": 0, "max": 50}}}
COUNT = query("count", by=["day"], sensitivity="global", **WIDE)


def contributions(rows: int, cells: int, at_once: int) -> list[Cells]:
    """Every way in which up to ``rows`` rows of a unit lie in at most ``at_once`` cells."""
    ways = []
    for way in product(range(rows + 1), repeat=cells):
        if sum(way) <= rows and sum(number > 0 for number in way) <= at_once:
            ways.append(way)
    return ways


def lies_within(change: Cells, pattern: Pattern) -> bool:
    """Whether some order of the cells has no change above its number of the pattern."""
    sizes = sorted(map(abs, change), reverse=True)
    padded = [*sorted(pattern, reverse=True), *([0] * len(sizes))]
    return all(size <= bound for size, bound in zip(sizes, padded, strict=False))


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("cells", [1, 2, 3, 4])
@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_every_change_of_a_unit_lies_within_a_pattern(
    neighbors: str, rows: int, cells: int, at_once: int | None
) -> None:
    """By listing all that a unit can have, and all that another can have in its place."""
    fields: dict[str, Any] = {"neighbors": neighbors, "max_rows_per_unit": rows}
    read = spec_file(COUNT, cells, max_cells_per_unit=at_once, **fields)
    asked = read.spec.released[0]
    made = patterns_of(read, asked)
    ways = contributions(rows, cells, min(at_once or cells, cells))
    incoming = [(0,) * cells] if neighbors == "add_remove" else ways
    for leaving, entering in product(ways, incoming):
        change = tuple(b - a for a, b in zip(leaving, entering, strict=True))
        assert any(lies_within(change, pattern) for pattern in made), (change, made)
    # And each pattern is what some unit does: none is too large.
    for pattern in made:
        assert len(pattern) <= touched_cells(read, asked)
        assert sum(pattern) <= (rows if neighbors == "add_remove" else 2 * rows)


def test_rows_of_a_unit_are_shared_out() -> None:
    """A new unit of three rows, and one that is replaced, on enough cells."""
    assert patterns(COUNT, 9, neighbors="add_remove") == ((1, 1, 1), (2, 1), (3,))
    both = patterns(COUNT, 9, neighbors="replace_one", max_rows_per_unit=2)
    assert both == ((1, 1, 1, 1), (2, 1, 1), (2, 2))


def test_a_fixed_key_leaves_one_cell() -> None:
    assert patterns(COUNT, 9, fixed=["day"]) == ((3,),)


def test_a_changed_attribute_is_a_replacement() -> None:
    privacy = {"neighbors": "attribute", "attribute": "kind"}
    asked = COUNT | {"where": "kind = 1"}
    assert patterns(asked, 9, max_rows_per_unit=1, privacy=privacy) == ((1, 1),)


def test_units_count_once_in_each_cell() -> None:
    asked = COUNT | {"of": "unit"}
    assert patterns(asked, 9, max_rows_per_unit=4, neighbors="add_remove") == ((1, 1, 1, 1),)


def test_a_clamped_count_moves_no_farther_than_its_domain() -> None:
    asked = COUNT | {"domain": {"ordered": {"min": 0, "max": 2}}}
    assert patterns(asked, 9, neighbors="add_remove") == ((1, 1, 1), (2,), (2, 1))


def test_too_many_patterns_are_all_rows_in_every_cell() -> None:
    many = patterns(COUNT, 40, neighbors="replace_one", max_rows_per_unit=12)
    assert many == ((12,) * 24,)
    assert len(patterns(COUNT, 40, neighbors="add_remove", max_rows_per_unit=10)) == 42
    assert MOST_PATTERNS == 60


def test_other_answers_move_as_far_as_one_cell_can() -> None:
    """In order their distance; without an order 0 stands for any difference."""
    total = query("binned", by=["day"], sensitivity="global", noise="on_answer")
    assert patterns(total, 9, neighbors="add_remove", max_rows_per_unit=2) == ((5, 5),)
    mode = query("mode", by=["day"], sensitivity="global")
    assert patterns(mode, 9, neighbors="replace_one", max_rows_per_unit=1) == ((0, 0),)


def test_a_statistic_moves_by_its_spread() -> None:
    mode = query("mode", by=["day"], sensitivity="global", noise="on_statistic")
    assert patterns(mode, 9, neighbors="replace_one", max_rows_per_unit=1) == ((2, 2),)


def test_partitions_have_their_sum_and_no_more_cells() -> None:
    assert list(partitions(4, 2)) == [(4,), (3, 1), (2, 2)]
    assert len(list(partitions(30, 30))) == 5604
    assert list(partitions(3, 0)) == []
