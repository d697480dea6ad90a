"""The verifier in one file: how far one unit reaches, by a spec alone (section 4)."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from release.budget.cost import cells_at_once, moved_together, touched_cells
from release.budget.patterns import patterns_of
from release.exact.statistics.mechanism import least_ratio
from release.queries.read import parse_spec
from release.queries.registry import (
    global_sensitivity,
    rows_read,
    sensitivity_without_data,
    statistic_of,
)
from release.spec.load import SpecFile
from release.verification import standalone
from tests.verification.standalone.alone import (
    GLOBAL,
    Plain,
    asked,
    plain_spec,
    refused,
    spec_of,
    unpublished,
)

KEYS = {"place": ("a", "b", "c"), "day": tuple("12345"), "unit": ("u1", "u2")}
ONE_WAY: Plain = {"neighbors": "add_remove"}
TWO_WAY: Plain = {"neighbors": "replace_one"}
ATTRIBUTE: Plain = {"neighbors": "attribute", "attribute": "kind"}
ON_ANSWER: Plain = {"noise": "on_answer"}
GRID: Plain = {"of": "kwh", "grid": {"low": -4, "high": 6, "step": 2, "scale": "0.5"}}
WIDE: Plain = {"domain": {"ordered": {"min": 0, "max": 99}}}


def on_grid(kind: str, **fields: Any) -> Plain:
    plain = asked(kind, **GRID, **fields)
    del plain["bins"]
    return plain


def values(*counted: int, low: int, high: int, count: int) -> Plain:
    bins = {"low": low, "high": high, "count": count}
    plain = asked("sum", bins=bins, values=list(counted), **ON_ANSWER)
    del plain["clamp"]
    return plain


def theirs(plain: Plain, *others: Plain, **privacy: Any) -> SpecFile:
    """The spec as the package reads it."""
    own = plain_spec(plain, *others, **privacy)
    if "unit" in plain["by"]:
        own["keys"]["unit"] = list(KEYS["unit"])
    text = json.dumps(own).encode()
    return SpecFile(parse_spec(text), text, Path(), KEYS)


def ours(plain: Plain, *others: Plain, **privacy: Any) -> standalone.Query:
    own = plain_spec(plain, *others, **privacy)
    own["keys"]["unit"] = list(KEYS["unit"])
    return standalone.Spec(own).query("own")


ANSWERS: list[Plain] = [
    asked("count"),
    asked("count", of="unit"),
    asked("count", domain={"ordered": {"min": 0, "max": 2}}, max_rows_per_unit=3),
    asked("count", domain={"ordered": {"min": 5, "max": 6}}),
    asked("mode", **ON_ANSWER),
    asked("mode", domain={"ordered": {"min": 1, "max": 7}}, **ON_ANSWER),
    asked("sum", **ON_ANSWER),
    asked("sum", clamp=[3, 9], **ON_ANSWER),
    asked("sum", clamp=[-9, -3], **ON_ANSWER),
    asked("sum", clamp=[0, 1], bins={"low": 0, "high": 200, "count": 60}, **ON_ANSWER),
    asked("mean", **ON_ANSWER),
    asked("min", **ON_ANSWER),
    asked("median", **ON_ANSWER),
    on_grid("sum", **ON_ANSWER),
    on_grid("sum", clamp=[0, 5], **ON_ANSWER),
    on_grid("mean", **ON_ANSWER),
    values(0, 2, 4, low=0, high=22, count=22),
    values(0, 3, 6, low=0, high=22, count=22),
    values(0, 3, 6, low=3, high=25, count=22),
    values(-2, 6, low=0, high=20, count=20),
    values(0, 2, low=-4, high=17, count=21),
    values(0, 2, low=-4, high=16, count=20),
    values(0, 2, low=-3, high=18, count=21),
    values(0, 6, 9, low=0, high=30, count=10),
    values(0, 6, 12, low=-6, high=30, count=18),
    values(0, 3, low=0, high=20, count=10),
    values(0, 4, low=1, high=23, count=11),
    values(0, 4, low=0, high=22, count=11),
    values(0, 4, low=4, high=26, count=11),
    values(-4, -2, low=-21, high=0, count=21),
]


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("privacy", [ONE_WAY, TWO_WAY])
@pytest.mark.parametrize("place", range(len(ANSWERS)))
def test_one_unit_moves_an_answer_as_far_as_the_package_says(
    place: int, privacy: Plain, rows: int
) -> None:
    plain = ANSWERS[place] | {"max_rows_per_unit": rows}
    file = theirs(plain, max_rows_per_unit=9, **privacy)
    (expected,) = file.spec.released
    found = sensitivity_without_data(file.spec, expected)
    query = ours(plain, max_rows_per_unit=9, **privacy)
    vectors, distances = query.sensitivity(query.rows)
    assert vectors == set(found.shifts)
    assert distances == set(found.distances or ())


@pytest.mark.parametrize("privacy", [ONE_WAY, TWO_WAY])
def test_parts_move_together_as_the_package_says(privacy: Plain) -> None:
    parts = [unpublished("count", "a"), unpublished("mode", "b"), unpublished("count", "c")]
    plain = asked("tuple", of=["a", "b", "c"], mechanism="modular")
    file = theirs(plain, *parts, **privacy)
    found = sensitivity_without_data(file.spec, file.spec.released[0])
    assert ours(plain, *parts, **privacy).sensitivity(3) == (set(found.shifts), set())


def test_counts_of_a_unit_that_comes_in_rise_together() -> None:
    parts = [unpublished("count", name, max_rows_per_unit=1) for name in "ab"]
    plain = asked("tuple", of=["a", "b"], max_rows_per_unit=1)
    vectors, _ = ours(plain, *parts, **ONE_WAY).sensitivity(1)
    assert vectors == {(0, 1), (0, 9), (1, 0), (9, 0), (1, 1), (9, 9)}


@pytest.mark.parametrize(
    ("declared", "rows"),
    [([1], 1), ([-1], 1), ([1, 2], 2), ([1, 2, 3], 3), ([9, 8, 7, 4], 4), (list(range(1, 10)), 5)],
)
def test_no_more_rows_are_read_than_move_as_far_as_is_declared(
    declared: list[int], rows: int
) -> None:
    plain = asked("count", sensitivity={"declared": declared})
    query = ours(plain, max_rows_per_unit=5, **ONE_WAY)
    file = theirs(plain, max_rows_per_unit=5, **ONE_WAY)
    assert query.rows == rows == rows_read(file.spec, file.spec.released[0])


def test_a_declaration_that_one_row_breaks_is_refused() -> None:
    with refused("spec.json: declared sensitivity: found no row fits"):
        _ = ours(asked("count", sensitivity={"declared": [2, 3]}), **ONE_WAY).rows


def test_vectors_go_both_ways_without_zero() -> None:
    query = ours(asked("tuple", of=["a", "b"]), *[unpublished("mode", each) for each in "ab"])
    assert query.both_ways([(0, 0), (1, 0), (1, 3), (4, -4)]) == {(1, 0), (3, 0), (1, 3), (3, 1)}
    with pytest.raises(ValueError, match="longer"):
        query.both_ways([(1,)])


@pytest.mark.parametrize(
    ("plain", "clamp"),
    [
        (asked("sum"), (-5, 15)),
        (values(-2, 0, 6, low=0, high=20, count=20), (-2, 6)),
        ({name: each for name, each in asked("median").items() if name != "clamp"}, (0, 20)),
    ],
)
def test_a_row_lies_within_what_is_declared(plain: Plain, clamp: tuple[int, int]) -> None:
    assert ours(plain).clamp == clamp


@pytest.mark.parametrize("clamp", [[3, 3], [4, 3]])
def test_bounds_of_a_row_that_leave_no_room_are_refused(clamp: list[int]) -> None:
    with refused("spec.json: own.clamp: found (", "3)"):
        _ = ours(asked("sum", clamp=clamp)).clamp


def test_a_sum_rises_by_its_upper_bound_and_falls_by_its_lower() -> None:
    assert ours(asked("sum")).sum_of(3) == (45, 15)
    assert ours(asked("sum", clamp=[2, 4])).sum_of(3) == (12, 0)
    assert ours(asked("sum", clamp=[-4, -2])).sum_of(3) == (0, 12)


STATISTICS: list[Plain] = [
    asked("mode"),
    asked("mode", count="rows"),
    asked("mode", weight="wh", clamp=[-2, 3]),
    asked("mode", weight="wh", clamp=[-4, 3]),
    asked("sum"),
    asked("sum", clamp=[-9, 4]),
    asked("mean"),
    on_grid("mean"),
    asked("median"),
    asked("min", rank=2),
    asked("max", rank=1),
    asked("top"),
    asked("top", count="rows"),
    asked("top", domain={"cyclic": 3}),
    asked("quantiles"),
    asked("quantiles", at=["1/3"]),
    asked("quantiles", at=["3/4"]),
    asked("quantiles", at=["0.25", "3/4"]),
    asked("quantiles", at=["1/3", "1/2", "5/6"]),
    asked("quantiles", at=["1/10", "1/2"]),
    asked("quantiles", at=["1/2", "9/10"]),
    asked("quantiles", at=["1/2", "3/4", "7/8"]),
]


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("privacy", [ONE_WAY, TWO_WAY, TWO_WAY | {"max_cells_per_unit": 2}])
@pytest.mark.parametrize("place", range(len(STATISTICS)))
def test_a_statistic_has_the_spread_and_the_reach_of_the_package(
    place: int, privacy: Plain, rows: int
) -> None:
    plain = STATISTICS[place] | {"by": ["place"], "max_rows_per_unit": rows}
    file = theirs(plain, max_rows_per_unit=9, **privacy)
    (their,) = file.spec.released
    query = ours(plain, max_rows_per_unit=9, **privacy)
    spread = query.spread(query.rows, query.spec.ways)[3]
    assert spread == statistic_of(file.spec, their).spread
    assert sorted(query.families()) == sorted(statistic_of(file.spec, their).families)
    touched = query.cells_touched(3, 3)
    assert touched == touched_cells(file, their)
    proportional = {"mechanism": standalone.IN_PROPORTION[0], "spread": spread}
    proportional["guarantee"] = {"epsilon": "1"}
    assert query.times_charged(proportional, touched, 3) == moved_together(file, their)
    for family in ("gap_table", "two_categories", "top_peeled"):
        assert query.times_charged(proportional | {"mechanism": family}, touched, 3) == touched
    assert query.patterns(touched, 3, spread) == [[spread] * touched]


def test_the_parts_of_a_spread_are_those_of_the_page() -> None:
    top = ours(asked("top", domain={"cyclic": 5}), max_rows_per_unit=3, **ONE_WAY)
    assert top.spread(3, 1)[1:] == (1, 3, 3)
    assert top.spread(9, 2)[1:] == (1, 5, 5)
    rows = ours(asked("top", count="rows"), max_rows_per_unit=3)
    assert rows.spread(3, 2)[1:] == (3, 1, 6)
    weighed = ours(asked("mode", weight="wh", clamp=[-4, 3]))
    assert weighed.spread(2, 2) == ([Fraction(1, 2)], 8, 1, 16)
    assert ours(asked("quantiles", at=["1/4", "1/2"])).spread(1, 1)[0] == [
        Fraction(1, 4),
        Fraction(1, 2),
    ]


TWO: Plain = {"domain": {"cyclic": 2}}
SELECTIONS = standalone.SELECTIONS


@pytest.mark.parametrize(
    ("fields", "privacy", "families"),
    [
        ({}, TWO_WAY, (*SELECTIONS, "gap_table")),
        (TWO, TWO_WAY, (*SELECTIONS, "two_categories")),
        ({}, ONE_WAY, SELECTIONS),
        ({"weight": "wh", "clamp": [0, 1]}, TWO_WAY, (*SELECTIONS, "gap_table")),
        ({"weight": "wh", "clamp": [0, 2]}, TWO_WAY, SELECTIONS),
        ({"mechanism": "gap_table"}, TWO_WAY, ("gap_table",)),
        ({"mechanism": "gap_table"}, ONE_WAY, ()),
        ({"mechanism": "exponential_mechanism"}, TWO_WAY, ("exponential_mechanism",)),
        ({"kind": "sum"}, TWO_WAY, ("noisy_sums",)),
        ({"kind": "median"}, TWO_WAY, SELECTIONS),
        ({"kind": "top"}, TWO_WAY, ("top_histogram", "top_canonical", "top_peeled")),
        ({"kind": "top", "mechanism": "top_peeled"}, TWO_WAY, ("top_peeled",)),
        ({"kind": "top", "counts": True}, TWO_WAY, ("top_histogram",)),
        ({"kind": "top", "histogram": True}, TWO_WAY, ("top_histogram",)),
        ({"kind": "quantiles"}, TWO_WAY, SELECTIONS),
        ({"kind": "quantiles", "at": ["1/4", "1/2"]}, ONE_WAY, standalone.IN_PROPORTION[2:4]),
    ],
)
def test_a_statistic_is_answered_by_these_families(
    fields: Plain, privacy: Plain, families: tuple[str, ...]
) -> None:
    plain = asked(fields.get("kind", "mode")) | fields
    assert ours(plain, max_rows_per_unit=1, **privacy).families() == families
    if fields == {}:
        assert ours(plain, max_rows_per_unit=2, **privacy).families() == SELECTIONS


TOUCHED: list[tuple[Plain, Plain, int, int]] = [
    (asked("count"), ONE_WAY, 100, 3),
    (asked("count"), TWO_WAY, 100, 6),
    (asked("count"), TWO_WAY, 5, 5),
    (asked("count"), TWO_WAY | {"max_cells_per_unit": 2}, 100, 4),
    (asked("count"), ONE_WAY | {"max_cells_per_unit": 2}, 100, 2),
    (asked("count"), ONE_WAY | {"max_cells_per_unit": 7}, 100, 3),
    (asked("count"), ONE_WAY, 1, 1),
    (asked("per_unit", by=["unit"]), ATTRIBUTE, 100, 1),
    (asked("sql"), TWO_WAY, 7, 70),
]


@pytest.mark.parametrize(("plain", "privacy", "free", "touched"), TOUCHED)
def test_a_unit_touches_so_many_cells(
    plain: Plain, privacy: Plain, free: int, touched: int
) -> None:
    assert ours(plain, max_rows_per_unit=3, **privacy).cells_touched(free, 70) == touched


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("most", [None, 1, 2])
@pytest.mark.parametrize("privacy", [ONE_WAY, TWO_WAY])
@pytest.mark.parametrize("by", [[], ["place"], ["place", "day"]])
@pytest.mark.parametrize("last", [1, 2, 99])
def test_a_unit_moves_cells_in_the_patterns_of_the_package(
    by: list[str], privacy: Plain, most: int | None, rows: int, last: int
) -> None:
    plain = asked("count", by=by, domain={"ordered": {"min": 0, "max": last}})
    fields = {"max_rows_per_unit": rows, "max_cells_per_unit": most, **privacy}
    file = theirs(plain, **fields)
    query, (their,) = ours(plain, **fields), file.spec.released
    free = {0: 1, 1: 3, 2: 15}[len(by)]
    assert query.cells_at_once(free) == cells_at_once(file, their)
    touched = query.cells_touched(free, free)
    assert touched == touched_cells(file, their)
    assert query.patterns(touched, free, None) == list(map(list, patterns_of(file, their)))


@pytest.mark.parametrize(
    ("rows", "most", "privacy", "patterns"),
    [
        # 56 partitions of 11, and 77 of 12.
        (11, None, ONE_WAY, 56),
        (12, None, ONE_WAY, 1),
        (11, None, TWO_WAY, 1),
        # 60 of 13 with at most six parts, and 61 of 15 with at most five... or of 120 in two.
        (120, 2, ONE_WAY, 1),
        (119, 2, ONE_WAY, 60),
    ],
)
def test_too_many_patterns_are_one(
    rows: int, most: int | None, privacy: Plain, patterns: int
) -> None:
    fields = {"max_rows_per_unit": rows, "max_cells_per_unit": most, **privacy}
    query = ours(asked("count", **WIDE), **fields)
    touched = query.cells_touched(10**4, 10**4)
    found = query.patterns(touched, 10**4, None)
    assert len(found) == patterns
    if patterns == 1:
        assert found == [[min(rows, 99)] * touched]


def test_patterns_of_a_replaced_unit_need_two_cells_and_few_partitions() -> None:
    def of(rows: int, free: int) -> list[list[int]]:
        wide: Plain = {"domain": {"ordered": {"min": 0, "max": 10**4}}}
        query = ours(asked("count", **wide), max_rows_per_unit=rows, **TWO_WAY)
        return query.patterns(query.cells_touched(free, free), free, None)

    assert of(2, 1) == [[2]]
    assert of(2, 2) == [[2, 2]]
    # 60 and 61 partitions into two parts, 61 into three.
    assert of(119, 2) == [[119, 119]]
    assert of(120, 2) == [[120, 120]]
    assert of(24, 3) == [[24, 24, 24]]
    assert len(of(23, 3)) == 12


def test_what_is_no_count_of_rows_has_one_pattern() -> None:
    assert ours(asked("count", of="unit")).patterns(2, 9, None) == [[1, 1]]
    assert ours(asked("sum", **ON_ANSWER)).patterns(2, 9, None) == [[5, 5]]
    assert ours(asked("mode", **ON_ANSWER)).patterns(3, 9, None) == [[0, 0, 0]]
    parts = [unpublished("count", name) for name in "ab"]
    assert ours(asked("tuple", of=["a", "b"]), *parts).patterns(2, 9, None) == [[0, 0]]


THIRD = least_ratio(Fraction(1), 3) + 2**20
"""A ρ of which three steps lose ε = 1 and hardly less."""


def geometric(ratio: int, **fields: Any) -> Plain:
    """Noise on the integers whose two tails alone have mass beside 0."""
    tail = {"period": 1, "ratio": str(ratio)}
    total = 2**62
    side = -(-total * ratio // (2**64 + ratio))
    noise = {"low": -1, "lengths": [1, 1, 1], "left": tail, "right": tail}
    noise["weights"] = [str(side), str(total - 2 * side), str(side)]
    return {"total": str(total), "noise": noise, "guarantee": {"epsilon": "1"}} | fields


def test_noise_on_a_count_of_rows_is_charged_in_proportion_if_it_falls_evenly() -> None:
    count = ours(asked("count", **WIDE), max_rows_per_unit=3, **TWO_WAY)
    for ratio, times in ((THIRD, 2), (THIRD - 2**21, 6)):
        plain = geometric(ratio, mechanism="integer", distances=[[1, 3]])
        assert count.times_charged(plain, 6, 9) == times
        assert count.times_charged(plain, 1, 9) == 1
        channel = plain | {"mechanism": "channel"}
        assert count.times_charged(channel, 6, 9) == 6
    wide = geometric(2**63, mechanism="integer", distances=[[1, 12]])
    wide["guarantee"] = {"epsilon": "9"}
    # More distances than the three rows need: what moves together is 6 of 12.
    assert count.times_charged(wide, 6, 9) == Fraction(1, 2)
    assert count.times_charged(wide, 1, 1) == 1
    wide["distances"] = [[1, 3], [5, 12]]
    assert count.times_charged(wide, 6, 9) == Fraction(1, 2)
    few = asked("count", domain={"ordered": {"min": 0, "max": 2}})
    read = ours(few, max_rows_per_unit=5, max_cells_per_unit=1, **TWO_WAY)
    plain = geometric(THIRD, mechanism="integer", distances=[[1, 2]])
    assert read.times_charged(plain, 2, 9) == 2
    units = ours(asked("count", of="unit", **WIDE), max_rows_per_unit=3, **TWO_WAY)
    plain = geometric(THIRD, mechanism="integer", distances=[[1, 3]])
    assert units.times_charged(plain, 6, 9) == 6


@pytest.mark.parametrize("sides", ["left", "right"])
def test_noise_that_falls_too_fast_on_one_side_is_charged_in_each_cell(sides: str) -> None:
    count = ours(asked("count", **WIDE), max_rows_per_unit=3, **TWO_WAY)
    plain = geometric(THIRD, mechanism="integer", distances=[[1, 3]])
    plain["noise"][sides] = {"period": 1, "ratio": str(THIRD - 2**21)}
    assert count.times_charged(plain, 6, 9) == 6


def on_a_sum(ratio: int, spread: int = 4, **tails: Any) -> Plain:
    plain = geometric(ratio, mechanism="noisy_sums", spread=spread)
    del plain["total"]
    plain["noise"] |= tails
    return plain


def test_noise_on_a_sum_is_charged_in_proportion_by_its_right_tail() -> None:
    query = ours(asked("sum", clamp=[0, 2]), max_rows_per_unit=2, **TWO_WAY)
    assert query.spread(2, 2)[3] == 4
    least = least_ratio(Fraction(1), 4)
    for ratio, times in ((least, 2), (least - 1, 4)):
        assert query.times_charged(on_a_sum(ratio), 4, 9) == times
    for epsilon, times in ((4 * standalone.loss_of(least), 2), (Fraction(4, 5), 4)):
        exact = on_a_sum(least) | {"guarantee": {"epsilon": standalone.exact(epsilon)}}
        assert query.times_charged(exact, 4, 9) == times
    assert query.times_charged(on_a_sum(least, right=None), 4, 9) == 4
    steep = on_a_sum(least)
    steep["noise"]["weights"] = [str(2**58), str(2**62 - 2**59), str(2**58)]
    assert query.times_charged(steep, 4, 9) == 4
    # The other tail may fall more slowly.
    slow = on_a_sum(least + 2**40, left={"period": 1, "ratio": str(least + 2**41)})
    low, middle, high = map(int, slow["noise"]["weights"])
    slow["noise"]["weights"] = [str(low + 2**42), str(middle - 2**42), str(high)]
    assert query.times_charged(slow, 4, 9) == 2
    tiny = ours(asked("sum", clamp=[0, 1]), max_rows_per_unit=1, **TWO_WAY)
    plain = on_a_sum(1, 1) | {"guarantee": {"epsilon": "50"}}
    assert tiny.times_charged(plain, 4, 9) == 2


def test_what_decides_of_a_count_is_its_steepest_step_and_of_a_sum_its_tail() -> None:
    """Tails that fall more slowly than the noise does beside 0."""
    count = ours(asked("count", **WIDE), max_rows_per_unit=3, **TWO_WAY)
    tail = {"period": 1, "ratio": str(THIRD + 2**50 + 2**48)}
    plain = geometric(THIRD + 2**50, mechanism="integer", distances=[[1, 3]])
    plain["noise"] |= {"left": tail, "right": tail}
    assert count.times_charged(plain, 6, 9) == 2
    query = ours(asked("sum", clamp=[0, 3]), max_rows_per_unit=1, **TWO_WAY)
    sums = plain | {"mechanism": "noisy_sums", "spread": 3}
    assert query.times_charged(sums, 4, 9) == 4
    assert query.times_charged(on_a_sum(THIRD, 3), 4, 9) == 2


def test_cells_are_counted_by_their_keys() -> None:
    plain = plain_spec(asked("count", by=["place", "day"]))
    plain["keys"]["born"] = {"file": "born.csv"}
    plain["keys"]["sort"] = {"file": "sort.csv"}
    spec = standalone.Spec(plain)
    assert spec.in_files == {"born", "sort"}
    right = {"name": "one", "by": ["place", "day"], "cells": 15}
    assert spec.key_sizes([right]) == {"place": 3, "day": 5}
    open_ones = {"name": "two", "by": ["sort", "born", "place"], "cells": 42}
    assert spec.key_sizes([open_ones]) == {"place": 3, "day": 5}
    with refused("release.json: one.cells: found 14, expected 15"):
        spec.key_sizes([right | {"cells": 14}])
    both = {"name": "two", "by": ["sort", "born", "place"], "cells": 42}
    alone = {"name": "own", "by": ["born", "day"], "cells": 35}
    assert spec.key_sizes([both, alone]) == {"place": 3, "day": 5, "born": 7, "sort": 2}
    with refused("release.json: own.cells: found 36, expected 35"):
        spec.key_sizes([alone | {"cells": 36}])


def test_a_table_of_a_tabulation_counts_on_all_integers() -> None:
    spec = spec_of(asked("count"), max_rows_per_unit=1)
    count = asked("count", domain={"integers": {}}, **GLOBAL)
    assert standalone.Query(count, spec).sensitivity(1)[1] == {1}


def test_the_package_agrees_on_every_change_of_two_rings() -> None:
    parts = [unpublished("mode", name, domain={"cyclic": 3}) for name in "ab"]
    plain = asked("tuple", of=["a", "b"])
    query = ours(plain, *parts)
    assert query.sensitivity(1)[0] == set(product(range(3), repeat=2)) - {(0, 0)}
    file = theirs(plain, *parts)
    found = global_sensitivity(file.spec, file.spec.released[0], 1)
    assert query.sensitivity(1)[0] == set(found.shifts)
