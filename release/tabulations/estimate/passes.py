"""The two passes of least squares over the data of one component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from release.exact.numbers import over_one_denominator
from release.tabulations.estimate.components import Integers
from release.tabulations.estimate.covariances import FINE, PLACES, Solution, shifted
from release.tabulations.estimate.node_types import Tree
from release.tabulations.estimate.spans import solved


@dataclass(frozen=True, eq=False)
class ComponentEstimates:
    """The estimates of the functionals of one component, exact sums from level to level.

    Attributes:
        levels: for each level of the tree the numerators; (areas, functionals, columns).
        denominator: of all of them.
    """

    levels: tuple[Integers, ...]
    denominator: int


def component_estimates(
    solution: Solution, rows: Sequence[Sequence[Integers]], columns: int
) -> ComponentEstimates:
    """Estimate one component.

    Args:
        solution: its coefficients.
        rows: for each level the measured rows of each source; (areas, rows, columns).
        columns: the number of columns, for levels without a row.

    Raises:
        ValueError: facts that contradict each other.
    """
    tree = solution.tree
    measured = []
    for level, own in enumerate(rows):
        none = np.zeros((tree.areas.parents[level].size, 0, columns), dtype=np.int64)
        measured.append(np.concatenate([none, *own], axis=1) if own else none)
    levels, sums = _upward(solution, measured)
    _downward(solution, levels, sums)
    del sums
    _add_up(tree, levels)
    denominator = 1 << PLACES
    if _declared_rows(solution):
        denominator = _keep_facts(solution, levels, measured[0])
    return ComponentEstimates(tuple(levels), denominator)


def applied(matrix: Integers, values: Integers) -> Integers:
    """A matrix of integers times values; (rows, n) and (areas, n, columns): (areas, rows, columns).

    Most matrices here are near the identity: zeros and ones are not multiplied by.
    """
    result = np.zeros((values.shape[0], matrix.shape[0], values.shape[2]), dtype=object)
    for row, factors in enumerate(matrix.tolist()):
        is_first = True
        for place, factor in enumerate(factors):
            if not factor:
                continue
            own = values[:, place].astype(object)
            own = own if factor == 1 else own * factor
            result[:, row] = own if is_first else result[:, row] + own
            is_first = False
    return result


def _upward(
    solution: Solution, measured: Sequence[Integers]
) -> tuple[list[Integers], list[Integers]]:
    """What the rows of an area and of those below say of it, and the sums of the children's."""
    tree = solution.tree
    levels: list[Integers] = []
    sums: list[Integers] = []
    for level in reversed(range(tree.depth)):
        own = measured[level]
        below_sums = (
            tree.areas.summed_up(level + 1, levels[0]) if levels else own[:, :0].astype(object)
        )
        values = np.empty((own.shape[0], solution.system.ranks[level], own.shape[2]), dtype=object)
        for number, below in enumerate(solution.from_below[level]):
            chosen = _chosen(tree, level, number)
            weights = shifted(below.weights, FINE - PLACES)
            rank = below_sums.shape[1]
            part = applied(weights[:, rank:], own[chosen])
            if rank:
                part = part + shifted(applied(weights[:, :rank], below_sums[chosen]), PLACES)
            values[chosen] = part
        levels.insert(0, values)
        sums.insert(0, below_sums)
    return levels, sums


def _chosen(tree: Tree, level: int, number: int) -> Integers | slice:
    """The places of the areas of a class."""
    if len(tree.members[level]) == 1:
        return slice(None)
    return np.flatnonzero(tree.classes[level] == number)


def _downward(solution: Solution, levels: list[Integers], sums: list[Integers]) -> None:
    """Divide what each parent knows better than the sum of its children; in place."""
    tree = solution.tree
    for level in range(1, tree.depth):
        rank = solution.system.ranks[level]
        surplus = levels[level - 1][:, :rank] - sums[level - 1]
        above = tree.classes[level - 1]
        for number in range(len(tree.members[level])):
            chosen = _chosen(tree, level, number)
            # Siblings of one class take the same share, so it is computed once for each parent.
            parents, own = np.unique(tree.areas.parents[level][chosen], return_inverse=True)
            shares = np.empty((parents.size, *surplus.shape[1:]), dtype=object)
            for parent in np.unique(above[parents]).tolist():
                gain = shifted(solution.gains[level][number, parent], FINE - PLACES)
                alike = above[parents] == parent
                shares[alike] = shifted(applied(gain, surplus[parents[alike]]), PLACES)
            levels[level][chosen] += shares[own]


def _add_up(tree: Tree, levels: list[Integers]) -> None:
    """Make every parent the exact sum of its children, where they have the functional; in place."""
    # From below: otherwise a parent would be the sum of numbers that change afterwards.
    for level in reversed(range(1, tree.depth)):
        below = levels[level]
        levels[level - 1][:, : below.shape[1]] = tree.areas.summed_up(level, below)


def _keep_facts(solution: Solution, levels: list[Integers], measured: Integers) -> int:
    """Spread what rounding leaves of declared facts, so that they hold exactly; in place.

    What is left of a fact, less than 10^-12, goes in equal parts to all areas below the declared
    one on the lowest level that estimates the functional: that makes no difference between areas.

    Returns:
        The denominator of the estimates.

    Raises:
        ValueError: facts that contradict each other.
    """
    system = solution.system
    facts = [system.steps[0][place].row for place in system.facts]
    functions, scales = _in_functionals(solution, facts)
    # The least change of the functionals that makes up for the rests of all facts at once.
    gram = functions @ functions.T
    inverse, determinant = solved(gram.tolist(), np.eye(len(facts), dtype=object).tolist())
    spread = functions.T @ np.array(inverse, dtype=object).reshape(gram.shape)
    homes = [_home(system.ranks, place) for place in range(system.ranks[0])]
    counts = list(map(np.bincount, solution.tree.roots))
    moved = np.flatnonzero(spread.any(axis=1)).tolist()
    # A multiple of every number of areas that a rest is divided among: no division has a rest.
    below = 1
    for place in moved:
        below = lcm(below, *counts[homes[place]].tolist())
    # The Gram matrix of independent rows: its determinant is positive.
    factor = determinant * below
    declared = (measured[:, list(system.facts)].astype(object) * scales[:, None]) << PLACES
    rest = applied(spread, declared - applied(functions, levels[0])) * below
    for level, values in enumerate(levels):
        levels[level] = values * factor
    for place in moved:
        home = homes[place]
        parts = rest[:, place] // counts[home].astype(object)[:, None]
        levels[home][:, place] += parts[solution.tree.roots[home]]
    _add_up(solution.tree, levels)
    _refuse_contradictions(solution, levels[0], measured, factor << PLACES)
    return factor << PLACES


def _in_functionals(
    solution: Solution, rows: Sequence[tuple[int, ...]]
) -> tuple[Integers, Integers]:
    """Rows of the top level in its functionals, each times the scale that makes them integers."""
    matrix = np.zeros((len(rows), solution.system.ranks[0]), dtype=object)
    scales = np.ones(len(rows), dtype=object)
    for place, row in enumerate(rows):
        coordinates = solution.system.coordinates(0, row)
        if coordinates is None:
            raise ArithmeticError("a measured row lies in the span of all measured rows")
        matrix[place], scales[place] = over_one_denominator(coordinates)
    return matrix, scales


def _declared_rows(solution: Solution) -> list[int]:
    """The rows of the top level that are declared, those that follow from others among them."""
    return [place for place, step in enumerate(solution.system.steps[0]) if not step.variance]


def _home(ranks: Sequence[int], place: int) -> int:
    """The lowest level that estimates a functional."""
    return max(level for level, rank in enumerate(ranks) if rank > place)


def _refuse_contradictions(
    solution: Solution, root: Integers, measured: Integers, denominator: int
) -> None:
    # Repeated facts too: they follow from others in their rows, not in the numbers declared.
    steps, places = solution.system.steps[0], _declared_rows(solution)
    functions, scales = _in_functionals(solution, [steps[place].row for place in places])
    declared = measured[:, places].astype(object) * scales[:, None] * denominator
    if (applied(functions, root) != declared).any():
        raise ValueError("declared facts contradict each other")
