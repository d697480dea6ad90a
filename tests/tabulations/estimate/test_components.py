"""Margins in class sums and deviations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release.tabulations.estimate.components import Frame, Split, common_refinement, whole
from release.tabulations.estimate.structure import Margin, kept_whole, summed_out
from tests.tabulations.estimate.dense import margins, numbered

CLASSES = st.lists(st.integers(0, 3), min_size=1, max_size=7).map(numbered)


@given(classes=CLASSES, seed=st.integers(0, 99))
def test_a_split_keeps_everything_and_its_parts_are_sums_and_deviations(
    classes: tuple[int, ...], seed: int
) -> None:
    split = Split(classes)
    values = np.random.default_rng(seed).integers(-9, 99, (3, len(classes))).astype(object)
    parts = split.parted(values)
    assert (split.merged(parts) == values * split.denominator).all()
    for row, own in zip(values.tolist(), parts.tolist(), strict=True):
        sums = [0] * split.count
        for value, place in zip(row, classes, strict=True):
            sums[place] += value
        assert own[: split.count] == sums
        deviations = []
        for category, place in enumerate(classes):
            if place in classes[category + 1 :]:
                deviations.append(row[category] * split.sizes[place] - sums[place])
        assert own[split.count :] == deviations


@given(first=CLASSES, data=st.data())
def test_the_common_refinement_refines_both_and_nothing_coarser_does(
    first: tuple[int, ...], data: st.DataObject
) -> None:
    size = len(first)
    second = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size).map(numbered))
    classes = common_refinement([first, second], size)
    for a, b in product(range(size), repeat=2):
        together = first[a] == first[b] and second[a] == second[b]
        assert (classes[a] == classes[b]) == together


@given(data=st.data(), sizes=st.sampled_from([(3,), (2, 4), (3, 1, 2), ()]))
def test_a_margin_is_the_sum_of_its_components(data: st.DataObject, sizes: tuple[int, ...]) -> None:
    own = data.draw(st.lists(margins(sizes), min_size=1, max_size=3))
    frame = Frame.of(sizes, own)
    margin = own[0]
    values = np.random.default_rng(3).integers(0, 99, (2, margin.cells))
    parted = frame.parted(margin, values)
    components = frame.components_of(margin)
    parts = {part: frame.part(margin, part, parted).astype(object) for part in components}
    assert (frame.merged(margin, parts) == values * frame.denominator).all()
    assert sum(frame.width(part) * frame.columns(part) for part in frame.components()) == np.prod(
        sizes, dtype=int
    )


@given(data=st.data(), sizes=st.sampled_from([(3,), (2, 4), (3, 2, 2)]))
def test_rows_are_what_a_margin_sees_of_the_class_sums(
    data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    own = data.draw(st.lists(margins(sizes), min_size=1, max_size=3))
    every = Margin(tuple(kept_whole(size) for size in sizes))
    frame = Frame.of(sizes, own)
    margin = own[0]
    detail = np.random.default_rng(4).integers(0, 99, (2, every.cells))
    values = np.zeros((2, margin.cells), dtype=np.int64)
    np.add.at(values.T, margin.cell_of, detail.T)
    for component in frame.components_of(margin):
        rows = frame.rows(margin, component)
        seen = frame.part(margin, component, frame.parted(margin, values))
        finest = frame.part(every, component, frame.parted(every, detail))
        assert (np.einsum("rk,akc->arc", np.array(rows.functionals), finest) == seen).all()
        assert len(rows.factors) == len(rows.functionals)


@given(data=st.data(), sizes=st.sampled_from([(3,), (2, 4), (3, 2, 2)]))
def test_the_factor_of_a_row_is_the_number_of_cells_in_it(
    data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    own = data.draw(st.lists(margins(sizes), min_size=1, max_size=3))
    frame, margin, sums = Frame.of(sizes, own), own[0], (False,) * len(sizes)
    ones = frame.parted(margin, np.ones((1, margin.cells), dtype=np.int64))
    numbers = frame.part(margin, sums, ones)[0, :, 0].tolist()
    assert list(frame.rows(margin, sums).factors) == numbers


@pytest.mark.parametrize("most", [2**40, 2**62 // 14**3, 2**62 // 9**3, 2**61])
def test_deviations_of_large_numbers_do_not_wrap(most: int) -> None:
    sizes = (7, 7, 7)
    margin = Margin(tuple(map(kept_whole, sizes)))
    frame = Frame.of(sizes, [margin])
    one = np.where(np.arange(7) == 0, 1, -1)
    # The signs for which the deviation of the first cell is largest: it is 12^3 as large.
    signs = np.einsum("i,j,k->ijk", one, one, one).reshape(1, -1)
    for kept in (signs, np.maximum(signs, 0), np.minimum(signs, 0)):
        exact = frame.parted(margin, (most * kept).astype(object))
        assert np.array_equal(frame.parted(margin, most * kept), exact)
        assert max(map(abs, exact.reshape(-1).tolist())) > most


def test_hispanic_and_seven_others_make_blocks_of_two() -> None:
    total, hispanic, race = summed_out(8), (0, 1, 1, 1, 1, 1, 1, 1), kept_whole(8)
    frame = Frame.of((8, 2), [Margin((own, (0, 1))) for own in (total, hispanic, race)])
    assert {part: frame.width(part) for part in frame.components()} == {
        (False, False): 2,
        (True, False): 1,
        (False, True): 2,
        (True, True): 1,
    }
    rows = frame.rows(Margin((race, (0, 1))), (False, True))
    assert rows.functionals == ((1, 0), (0, 1))
    assert rows.factors == (1, 7)


def test_only_an_attribute_of_several_categories_is_kept_whole() -> None:
    assert [whole(own) for own in ((0,), (0, 1), (0, 0), (0, 1, 1), (0, 1, 2))] == [
        False,
        True,
        False,
        False,
        True,
    ]


def test_a_margin_of_other_attributes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"groups \[2, 2\] categories; attributes have \(2,\)"):
        Frame.of((2,), [Margin(((0, 1), (0, 0)))])
