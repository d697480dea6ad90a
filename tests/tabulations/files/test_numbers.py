"""The published numbers against least squares in dense rationals, and what they must keep to."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from release.exact.domain import Codes
from release.tabulations.estimate.intervals import HalfWidth, HalfWidths
from release.tabulations.estimate.least_squares import Measurement
from release.tabulations.estimate.problem import estimable
from release.tabulations.estimate.structure import Margin
from release.tabulations.estimate.variances import CellVariances
from release.tabulations.files.numbers import (
    LevelNumbers,
    answers_of,
    standard_errors_of,
    tabulated,
)
from release.tabulations.spec.opened import OpenTabulation, Table
from tests.tabulations.estimate.dense import dense
from tests.tabulations.files.cases import (
    LEVELS,
    TABULATION,
    Draw,
    detail_of,
    draw_of,
    opened_of,
    permuted,
)

MARGINS: list[list[str]] = [
    [],
    ["age"],
    ["race"],
    ["hispanic"],
    ["race", "age"],
    ["hispanic", "age"],
]
IMPOSSIBLE = {"impossible": {"race": ["b"], "age": ["young"]}}


def published(draw: Draw) -> tuple[LevelNumbers, ...]:
    return tabulated(draw.opened, draw.measured, draw.noises, draw.widths).levels


@st.composite
def lines(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """One or two states with one or two counties each, and at most five tracts."""
    counties = draw(st.lists(st.sampled_from(["a1", "a2", "b1", "b2"]), min_size=1, max_size=5))
    return [(county[0], county, f"{county}.{place}") for place, county in enumerate(counties)]


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    """Random areas, margins, measured tables, declared numbers and impossible combinations."""
    some = st.lists(st.sampled_from(MARGINS), min_size=1, max_size=3, unique_by=tuple)
    publish = {level: [list(names) for names in draw(some)] for level in LEVELS}
    tabulation = TABULATION | {"publish": publish}
    if draw(st.booleans()):
        tabulation |= {"constraints": [IMPOSSIBLE]}
    opened = opened_of(tabulation, draw(lines()))
    fact = None
    if draw(st.booleans()):
        fact = draw(st.sampled_from(opened.published_at(0))).margin
    places = st.tuples(st.integers(0, 2), st.sampled_from(opened.margins))
    shares = st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(2)])
    tables = {}
    for level, one in draw(st.lists(places, max_size=3)):
        tables[level, one.margin] = draw(shares)
    if draw(st.integers(0, 3)):
        tables[2, opened.finest[0]] = draw(shares)
    known = list(tables)
    if fact is not None:
        tables.pop((0, fact), None)
        known = [*tables, (0, fact)]
    assume(tables)
    areas = opened.named.areas
    assume(all(estimable(areas, opened.sizes, known, one.table) for one in opened.published))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return draw_of(opened, tables, rng, fact)


def sources_of(draw: Draw) -> Mapping[Table, Measurement]:
    sources = {}
    for table, values in draw.measured.items():
        sources[table] = Measurement(values, draw.noises[table].moment(2))
    for table, values in draw.opened.facts.items():
        sources[table] = Measurement(values, Fraction(0))
    return sources


@settings(deadline=None, max_examples=8)
@given(draws())
def test_numbers_are_those_of_dense_least_squares_in_rationals(draw: Draw) -> None:
    numbers = published(draw)
    for level, own in enumerate(numbers):
        for one, found in zip(draw.opened.published_at(level), own.margins, strict=True):
            expected = dense(draw.opened.named.areas, sources_of(draw), one.table)
            assert expected is not None
            widths = draw.widths[one.table]
            shape = found.answer.shape
            for place, (estimate, variance) in enumerate(zip(*expected, strict=True)):
                area, cell = np.unravel_index(place, shape)
                width = widths.values[widths.kinds[area]][widths.sorts[cell]].value
                first, last = ceil(estimate - width), floor(estimate + width)
                ends = sorted([max(0, first), max(0, last)])
                answer = int(found.answer[area, cell])
                assert abs(answer - estimate * 10**6) <= Fraction(1, 2) + Fraction(1, 10**9)
                assert [found.low[area, cell], found.high[area, cell]] == ends
                # Variances are rounded to 2^-512.
                error = int(found.standard_error[area, cell])
                trifle = Fraction(1, 10**20)
                assert (error - 1) ** 2 < variance * 10**12 + trifle or error == 0
                assert variance * 10**12 - trifle <= error**2


@settings(deadline=None, max_examples=15)
@given(draws())
def test_whole_numbers_add_up_and_obey_facts_and_zeros(draw: Draw) -> None:
    opened, areas = draw.opened, draw.opened.named.areas
    numbers = published(draw)
    tables = rounded_tables(opened, numbers)
    for (level, margin), table in tables.items():
        assert (table >= 0).all()
        possible = opened.possible(margin)
        if possible is not None:
            assert not table[:, ~possible.astype(bool)].any()
        for (other_level, other), finer in tables.items():
            if other.refines(margin) and other_level == level:
                assert np.array_equal(coarsened_to(finer, other, margin), table)
            if other == margin and other_level == level + 1:
                assert np.array_equal(areas.summed_up(other_level, finer), table)
    for (level, margin), counts in opened.facts.items():
        assert np.array_equal(tables[level, margin], counts)


def rounded_tables(opened: OpenTabulation, numbers: tuple[LevelNumbers, ...]) -> dict[Table, Codes]:
    tables = {}
    for level, own in enumerate(numbers):
        for one, found in zip(opened.published_at(level), own.margins, strict=True):
            tables[level, one.margin] = found.rounded
    return tables


def coarsened_to(table: Codes, cells: Margin, margin: Margin) -> Codes:
    """By a sum over cells one by one."""
    sums = np.zeros((table.shape[0], margin.cells), dtype=np.int64)
    into = dict(zip(cells.cell_of.tolist(), margin.cell_of.tolist(), strict=True))
    for cell in range(cells.cells):
        sums[:, into[cell]] += table[:, cell]
    return sums


@settings(deadline=None, max_examples=15)
@given(draws())
def test_intervals_are_ordered_and_facts_are_exact(draw: Draw) -> None:
    for level, own in enumerate(published(draw)):
        for one, found in zip(draw.opened.published_at(level), own.margins, strict=True):
            assert (found.low >= 0).all()
            assert (found.low <= found.high).all()
            # From the coarsest published table that is declared, exactly that and no error.
            counts = draw.opened.facts.get(one.table)
            if counts is not None:
                assert np.array_equal(found.answer, counts * 10**6)
                assert not found.standard_error.any()
                assert np.array_equal(found.low, counts)
                assert np.array_equal(found.high, counts)


@settings(deadline=None, max_examples=5)
@given(st.permutations(["north", "south", "east"]), st.permutations(range(7)))
def test_areas_of_other_names_have_the_same_numbers(names: list[str], tracts: list[int]) -> None:
    """The same counties and tracts under other names, and so in another order."""
    counties = (0, 0, 1, 1, 1, 2, 2)
    plain = [("hi", f"c{county}", f"t{tract}") for tract, county in enumerate(counties)]
    renamed = [("hi", names[county], f"t{tracts[tract]}") for tract, county in enumerate(counties)]
    opened, other = opened_of(lines=plain), opened_of(lines=renamed)
    tables = {
        (0, opened.margin(["race"])): Fraction(1, 2),
        (1, detail_of(opened)): Fraction(1, 3),
        (2, detail_of(opened)): Fraction(1, 4),
    }
    draw = draw_of(opened, tables, np.random.default_rng(9))
    old_county = [names.index(name) for name in other.named.names[1]]
    old_tract = [tracts.index(int(name[1:])) for name in other.named.names[2]]
    places = [np.array(own) for own in ([0], old_county, old_tract)]
    moved = published(permuted(draw, other, places))
    for before, after, place in zip(published(draw), moved, places, strict=True):
        for one, same in zip(before.margins, after.margins, strict=True):
            assert np.array_equal(one.answer[place], same.answer)
            assert np.array_equal(one.standard_error[place], same.standard_error)
            assert np.array_equal(one.low[place], same.low)
            assert np.array_equal(one.high[place], same.high)
            # Areas with an equal claim to a unit take it in the order of their names.
            assert np.array_equal(one.rounded.sum(axis=0), same.rounded.sum(axis=0))


def test_margins_that_do_not_determine_their_cells_have_whole_numbers_too() -> None:
    """Race and age by themselves: whole numbers are near both, answers are those of each."""
    publish = {"state": [["race"], ["age"]], "county": [[]], "tract": [["race"], ["age"]]}
    opened = opened_of(TABULATION | {"publish": publish})
    race, age = opened.margin(["race"]), opened.margin(["age"])
    draw = draw_of(
        opened, {(2, race): Fraction(3), (2, age): Fraction(3)}, np.random.default_rng(4), None, 40
    )
    assert not estimable(opened.named.areas, opened.sizes, draw.measured, (2, detail_of(opened)))
    numbers = published(draw)
    for place, margin in enumerate([race, age]):
        expected = dense(opened.named.areas, sources_of(draw), (2, margin))
        assert expected is not None
        answers = [floor(value * 10**6 + Fraction(1, 2)) for value in expected[0]]
        own = numbers[2].margins[place]
        assert own.answer.reshape(-1).tolist() == answers
        assert np.abs(own.rounded * 10**6 - own.answer).max() < 2 * 10**6


def widths_with(*values: Fraction) -> HalfWidths:
    """One area, and a sort for each cell."""
    row = tuple(HalfWidth(value, 0.95, 0.94) for value in values)
    return HalfWidths(np.zeros(1, dtype=np.int64), np.arange(len(values)), (row,))


@pytest.mark.parametrize(
    ("estimate", "width", "answer", "low", "high"),
    [
        (Fraction(5), Fraction(0), 5_000_000, 5, 5),
        (Fraction(5), Fraction(2), 5_000_000, 3, 7),
        (Fraction(16, 3), Fraction(5, 4), 5_333_333, 5, 6),
        (Fraction(-7, 3), Fraction(3), -2_333_333, 0, 0),
        (Fraction(-1, 3), Fraction(3, 2), -333_333, 0, 1),
        (Fraction(11, 2), Fraction(1, 8), 5_500_000, 5, 6),
        # Half a millionth is rounded upward.
        (Fraction(1, 128), Fraction(1), 7_813, 0, 1),
        (Fraction(-1, 128), Fraction(1), -7_812, 0, 0),
        (2**61 + Fraction(1, 3), Fraction(1, 2**40), 2**63 - 1, 2**61, 2**61 + 1),
        # Short of 7 and beyond 3 by less than least squares is exact.
        (7 - Fraction(1, 2**100), Fraction(2), 7_000_000, 5, 9),
        (3 + Fraction(1, 2**100), Fraction(2), 3_000_000, 1, 5),
    ],
)
def test_answers_and_intervals_of_known_estimates(
    estimate: Fraction, width: Fraction, answer: int, low: int, high: int
) -> None:
    numerators = np.array([[estimate.numerator, 0]], dtype=object)
    found = answers_of(numerators, estimate.denominator, widths_with(width, Fraction(1, 3)))
    assert [column[0, 0] for column in found] == [answer, low, high]
    assert [column[0, 1] for column in found] == [0, 0, 0]
    assert all(column.dtype == np.int64 for column in found)


@given(
    values=st.lists(st.fractions(-9, 9, max_denominator=30), min_size=2, max_size=2),
    widths=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 7)), min_size=2, max_size=2),
)
def test_intervals_are_the_whole_numbers_within_the_half_width(
    values: list[Fraction], widths: list[tuple[int, int]]
) -> None:
    denominator = values[0].denominator * values[1].denominator
    numerators = np.array([[int(value * denominator) for value in values]], dtype=object)
    reaches = [Fraction(2 * count + 1, 2 ** (place + 1)) for count, place in widths]
    _, low, high = answers_of(numerators, denominator, widths_with(*reaches))
    for cell, (value, width) in enumerate(zip(values, reaches, strict=True)):
        ends = ceil(value - width), floor(value + width)
        if ends[0] > ends[1]:
            ends = floor(value), ceil(value)
        assert (low[0, cell], high[0, cell]) == (max(0, ends[0]), max(0, ends[1]))


def test_standard_errors_are_rounded_up() -> None:
    values = (Fraction(4), Fraction(2), Fraction(0), Fraction(1, 10**30), 4 + Fraction(1, 10**30))
    variances = CellVariances(np.zeros(2, dtype=np.int64), np.arange(5), (values,))
    found = standard_errors_of(variances)
    assert found.tolist() == [[2_000_000, ceil(sqrt(2) * 10**6), 0, 1, 2_000_001]] * 2
