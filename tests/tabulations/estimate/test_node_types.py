"""The types of areas."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from release.tabulations.estimate.node_types import Tree
from release.tabulations.estimate.structure import Areas
from tests.tabulations.estimate.dense import areas_of, trees


def shape_below(tree: Tree, level: int, area: int) -> tuple[object, ...]:
    """The shape of the tree below an area."""
    if level + 1 == tree.depth:
        return ()
    children = (tree.areas.parents[level + 1] == area).nonzero()[0].tolist()
    return tuple(sorted((shape_below(tree, level + 1, child) for child in children), key=repr))


@given(areas=trees())
def test_areas_are_of_one_class_if_the_trees_below_them_have_one_shape(areas: Areas) -> None:
    tree = Tree.of(areas)
    for level in range(tree.depth):
        shapes = [shape_below(tree, level, area) for area in range(tree.areas.parents[level].size)]
        pairs = set(zip(shapes, tree.classes[level].tolist(), strict=True))
        assert len(pairs) == len(set(shapes)) == len(tree.members[level])


@given(areas=trees())
def test_areas_are_of_one_kind_if_their_class_and_their_parents_kind_are_one(areas: Areas) -> None:
    tree = Tree.of(areas)
    for level in range(tree.depth):
        for area, kind in enumerate(tree.kinds[level].tolist()):
            parent = tree.kinds[level - 1][tree.areas.parents[level][area]] if level else -1
            assert tree.origins[level][kind] == (tree.classes[level][area], parent)


@given(areas=trees())
def test_every_area_lies_under_its_root_and_sums_are_those_of_the_children(areas: Areas) -> None:
    tree = Tree.of(areas)
    assert tree.roots[0].tolist() == list(range(tree.areas.parents[0].size))
    for level in range(1, tree.depth):
        parents = tree.areas.parents[level].tolist()
        assert tree.roots[level].tolist() == [tree.roots[level - 1][parent] for parent in parents]
        values = np.random.default_rng(level).integers(-9, 99, (len(parents), 2, 3))
        sums = np.zeros((tree.areas.parents[level - 1].size, 2, 3), dtype=np.int64)
        for parent, own in zip(parents, values, strict=True):
            sums[parent] += own
        assert np.array_equal(tree.areas.summed_up(level, values), sums)


def test_a_level_of_as_many_areas_as_the_one_above_is_merged_with_it() -> None:
    tree = Tree.of(areas_of([0], [0], [0, 0], [0, 1], [0, 1, 1]))
    assert tree.places == (0, 0, 1, 1, 2)
    assert tree.members == ((((0, 1), (1, 1)),), (((0, 1),), ((0, 2),)), ((),))
    assert tree.roots[2].tolist() == [0, 0, 0]


def test_many_tracts_are_of_few_types() -> None:
    tree = Tree.of(areas_of([0], [0] * 4, [0] * 3 + [1] * 3 + [2] * 3 + [3] * 5))
    assert [len(members) for members in tree.members] == [1, 2, 1]
    assert [len(origins) for origins in tree.origins] == [1, 2, 2]
