"""A strategy: noise on each measured table, in integers, and the guarantee proved for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import Group
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Floats, Publication, Table

Family: TypeAlias = Literal["geometric", "gaussian"]
"""The noise of a strategy: the same on all cells but for its width."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """Noise for some tables, the same for every cell of every area of a level.

    Attributes:
        family: the noise.
        noises: the noise on a cell of each table that is measured with noise.
        exact: the tables that neighbors cannot differ in; they are measured without noise.
        costs: the pure ε that noise of a table costs, all cells that a unit moves included; empty
            where only all tables together have an ε.
        epsilon: what all tables together cost at ``delta``, proved.
        delta: 0 for pure noise.
        objective: the mean over published tables of the mean root variance of their cells.
        errors: the mean root variance of each table, published or not; shape (levels, margins).
        gap: the least objective of the family at this cost is lower by at most this part, as a
            convex program shows in floats; None where the search shows nothing: the best found.
    """

    family: Family
    noises: Mapping[Table, IntegerNoise]
    exact: tuple[Table, ...]
    costs: Mapping[Table, Fraction]
    epsilon: Fraction
    delta: Fraction
    objective: float
    errors: Floats
    gap: float | None

    @cached_property
    def variances(self) -> dict[Table, Fraction]:
        """The variance of the noise on a cell of each measured table, exactly."""
        return variances_of(self.noises, self.exact)


def variances_of(
    noises: Mapping[Table, IntegerNoise], exact: tuple[Table, ...]
) -> dict[Table, Fraction]:
    """Return the variance of noise on a cell of each table, 0 for the tables without noise."""
    variances = dict.fromkeys(exact, Fraction(0))
    for table, noise in noises.items():
        variances[table] = noise.moment(2)
    return dict(sorted(variances.items()))


def precisions_of(publication: Publication, noises: Mapping[Table, IntegerNoise]) -> Floats:
    """Return one over the variance of each table's noise; shape (levels, margins)."""
    precisions = np.zeros(publication.shares.shape)
    for table, noise in noises.items():
        precisions[table] = float(1 / noise.moment(2))
    return precisions


def groups_of(publication: Publication, noises: Mapping[Table, IntegerNoise]) -> list[Group]:
    """Return the noises for an account: a unit moves one cell or two of each table by 1."""
    counts = Counter((noise, publication.moves[table]) for table, noise in noises.items())
    return [(noise, ((1,) * moves,), times) for (noise, moves), times in counts.items()]


def errors_of(objective: Objective, noises: Mapping[Table, IntegerNoise]) -> tuple[float, Floats]:
    """Return the objective of noises, and the mean root variance of every table."""
    errors = objective.errors(precisions_of(objective.publication, noises))
    return float((errors * objective.publication.shares).sum()), errors
