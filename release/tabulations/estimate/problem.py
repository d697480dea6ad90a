"""What least squares on a tree is given: areas, measured tables, and the tables to publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from release.exact.numbers import over_one_denominator
from release.tabulations.estimate.components import Component, Frame, Integers
from release.tabulations.estimate.covariances import Solution, Source, System
from release.tabulations.estimate.node_types import Tree
from release.tabulations.estimate.structure import Areas, Margin

Table: TypeAlias = tuple[int, Margin]
"""A margin of all areas of a level; levels are numbered from the highest, 0."""

Rows: TypeAlias = tuple[Integers, int]
"""Linear functions of functionals: numerators, shape (rows, functionals), and the denominator."""

LEAST_VARIANCE = Fraction(1, 2**64)
MOST_VARIANCE = Fraction(2**64)


class NotEstimableError(ValueError):
    """A published table that the measured ones do not determine."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Least squares on a tree, prepared: everything but the data.

    Attributes:
        areas: the areas.
        tree: the areas by type.
        frame: the components that all margins are written in.
        measured: the variance of every cell of the measured tables.
        published: the tables to publish.
        solutions: the coefficients of every component that is published.
    """

    areas: Areas
    tree: Tree
    frame: Frame
    measured: Mapping[Table, Fraction]
    published: tuple[Table, ...]
    solutions: Mapping[Component, Solution]

    @classmethod
    def of(
        cls,
        areas: Areas,
        sizes: Sequence[int],
        measured: Mapping[Table, Fraction],
        published: Iterable[Table],
    ) -> Problem:
        """Prepare least squares, and refuse what it cannot answer.

        Args:
            areas: the areas of all levels.
            sizes: the number of categories of each attribute.
            measured: for each measured table the variance of its noise, the same in every cell;
                0 for a declared fact, at the highest level only.
            published: the tables to estimate.

        Raises:
            ValueError: a level or a margin that does not exist, a variance out of bounds, or a
                table that the measured ones do not determine (``NotEstimableError``).
        """
        tables = tuple(dict.fromkeys(published))
        _check(areas, measured, tables)
        frame = Frame.of(sizes, [margin for _, margin in (*measured, *tables)])
        tree = Tree.of(areas)
        levels: list[list[Source]] = [[] for _ in range(tree.depth)]
        for (level, margin), variance in measured.items():
            if not variance and tree.places[level]:
                raise ValueError(
                    f"{_name(areas, (level, margin))} has variance 0: facts are declared for the "
                    f"highest level, {areas.levels[0]}, alone"
                )
            levels[tree.places[level]].append(Source(level, margin, variance))
        solutions: dict[Component, Solution] = {}
        for _, margin in tables:
            for component in frame.components_of(margin):
                if component not in solutions:
                    system = System.of(frame, component, levels)
                    solutions[component] = Solution(tree, system)
        problem = cls(areas, tree, frame, dict(measured), tables, solutions)
        # For the refusals alone: a table that is not estimable is refused before any is computed.
        for table in tables:
            for component in frame.components_of(table[1]):
                problem.rows(table, component)
        return problem

    def rows(self, table: Table, component: Component) -> Rows:
        """A component of a table, in the functionals of the table's level.

        Raises:
            NotEstimableError: the measured tables do not determine it.
        """
        level, margin = table
        system = self.solutions[component].system
        place = self.tree.places[level]
        functions = self.frame.rows(margin, component).functionals
        coordinates: list[Fraction] = []
        for function in functions:
            own = system.coordinates(place, function)
            if own is None:
                raise NotEstimableError(
                    f"{_name(self.areas, table)} is not estimable: measure it, or a finer margin, "
                    "at this level or below"
                )
            coordinates.extend(own)
        numerators, denominator = over_one_denominator(coordinates)
        shape = len(functions), system.ranks[place]
        return np.array(numerators, dtype=object).reshape(shape), denominator


def estimable(areas: Areas, sizes: Sequence[int], measured: Iterable[Table], table: Table) -> bool:
    """Whether measured tables determine a table of every area of a level.

    What is measured at a level tells of the levels above, and of the levels below only for areas
    without siblings: a level of as many areas as the level above.

    Args:
        areas: the areas of all levels.
        sizes: the number of categories of each attribute.
        measured: the measured tables.
        table: the table in question.

    Raises:
        ValueError: a level or a margin that does not exist.
    """
    # Any variance above 0 will do: what is determined depends on the rows alone.
    try:
        Problem.of(areas, sizes, dict.fromkeys(measured, Fraction(1)), [table])
    except NotEstimableError:
        return False
    return True


def _check(areas: Areas, measured: Mapping[Table, Fraction], published: Iterable[Table]) -> None:
    for level, _ in (*measured, *published):
        if not 0 <= level < len(areas.levels):
            raise ValueError(f"there is no level {level}; levels are 0..{len(areas.levels) - 1}")
    for table, variance in measured.items():
        if variance and not LEAST_VARIANCE <= variance <= MOST_VARIANCE:
            raise ValueError(
                f"{_name(areas, table)} has variance {float(variance):.3g}: it is 0 for a fact, "
                "or between 2^-64 and 2^64"
            )


def _name(areas: Areas, table: Table) -> str:
    """What a message calls a table."""
    level, margin = table
    groupings = ", ".join(map(str, map(list, margin.groupings)))
    return f"level {areas.levels[level]}, margin ({groupings})"
