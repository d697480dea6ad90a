"""Margins and areas, against their definitions cell by cell and area by area."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.tabulations.estimate.structure import Areas, Grouping, Margin, numbered
from tests.tabulations.estimate.dense import areas_of, margins, trees

SIZES = st.sampled_from([(), (1,), (4,), (2, 3), (2, 1, 3)])


def classes_of(margin: Margin) -> list[tuple[int, ...]]:
    """The classes of each combination of categories, the last attribute fastest."""
    categories = product(*[range(len(grouping)) for grouping in margin.groupings])
    return [
        tuple(grouping[place] for grouping, place in zip(margin.groupings, own, strict=True))
        for own in categories
    ]


@given(sizes=SIZES, data=st.data())
def test_the_cell_of_a_combination_is_the_place_of_its_classes(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    margin = data.draw(margins(sizes))
    cells = sorted(set(classes_of(margin)))
    assert margin.cells == len(cells) == np.prod(margin.shape, dtype=int)
    assert margin.cell_of.tolist() == [cells.index(own) for own in classes_of(margin)]


@given(sizes=SIZES, data=st.data())
def test_a_margin_refines_another_if_each_cell_lies_in_one_of_its_cells(
    sizes: tuple[int, ...], data: st.DataObject
) -> None:
    fine, other = data.draw(margins(sizes)), data.draw(margins(sizes))
    pairs = set(zip(classes_of(fine), classes_of(other), strict=True))
    assert fine.refines(other) == (len(pairs) == fine.cells)
    assert fine.refines(fine)


@pytest.mark.parametrize("grouping", [(1,), (1, 0), (0, 2), (0, 1, 3), (-1,), (0, -1, 1)])
def test_classes_that_are_not_numbered_as_they_occur_are_refused(grouping: Grouping) -> None:
    with pytest.raises(ValueError, match="numbered from 0 as they first occur"):
        Margin(((0, 1), grouping))
    Margin(((0, 1), numbered(grouping)))


@given(areas=trees())
def test_sums_over_areas_add_up_the_children_of_each(areas: Areas) -> None:
    for level in range(1, len(areas.levels)):
        parents = areas.parents[level].tolist()
        above = range(areas.size(level - 1))
        assert areas.children(level - 1).tolist() == [parents.count(area) for area in above]
        values = np.random.default_rng(level).integers(-9, 99, (len(parents), 3))
        # Beyond 64 bits.
        for own in (values, values.astype(object) << 70):
            sums = areas.summed_up(level, own)
            assert sums.dtype == own.dtype
            for area in above:
                children = [place for place, parent in enumerate(parents) if parent == area]
                assert sums[area].tolist() == [sum(own[children, cell]) for cell in range(3)]


def test_children_are_those_of_the_level_below_alone() -> None:
    areas = areas_of([0, 0], [0, 0, 1], [0, 1, 1, 1, 2, 2])
    assert areas.children(0).tolist() == [2, 1]
    assert areas.children(1).tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([[0], [0, 0], [1, 0]], "sorted by the area"),
        ([[0], [0, 0, 0], [0, 2, 1]], "sorted by the area"),
        ([[]], "sorted by the area"),
        ([[0], []], "sorted by the area"),
        ([[0], [0, 0], [0, 0]], "has areas below it"),
        ([[0], [0, 0], [1, 1]], "has areas below it"),
        ([[0], [0, 1]], "has areas below it"),
        ([], "need a level"),
    ],
)
def test_areas_out_of_order_and_areas_without_others_below_are_refused(
    parents: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        areas_of(*parents)


def test_areas_need_the_parents_of_each_level() -> None:
    with pytest.raises(ValueError, match="the parents of each level"):
        Areas(("state", "county"), (np.zeros(1, dtype=np.int64),))
