"""The sensitivity that follows from a query's declaration, for every kind of query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from release.errors import SpecError
from release.exact.sensitivity import Sensitivity, check_shifts
from release.exact.statistics.statistic import Statistic
from release.queries.base import Kind, SummedQuery
from release.queries.on_statistic import OnStatisticQuery
from release.spec.declarations import Relation
from release.spec.guarantees import DeclaredSensitivity
from release.spec.model import Spec
from release.spec.query import PlainQuery, Query


def kind_of(query: Query) -> Kind:
    """How the profiles of ``query`` become sums and answers.

    Raises:
        TypeError: its answers are not decided by sums.
    """
    if not isinstance(query, SummedQuery):
        raise TypeError(f"the answers of {query.name} are not decided by sums")
    return query.sums()


def statistic_of(spec: Spec, query: Query) -> Statistic:
    """The integers that decide the answers of a query with noise on its statistic.

    Raises:
        TypeError: its noise is on the answer.
    """
    if not isinstance(query, OnStatisticQuery) or not query.is_on_statistic:
        raise TypeError(f"{query.name} has noise on its answer")
    return query.statistic(spec.rows_per_unit(query), spec.privacy.neighbors)


@dataclass(frozen=True)
class Spreads:
    """How far one unit moves the integers of a cell: its statistic, or a number of rows.

    Attributes:
        neighbors: the most between neighboring tables.
        alone: the most that a unit moves by coming in or leaving.
        row: the most that one row of it moves by that.
    """

    neighbors: int
    alone: int
    row: int


def spreads_of(spec: Spec, query: Query) -> Spreads | None:
    """How far one unit moves the integers of a cell; None where no row has a part in that."""
    if query.is_on_statistic and isinstance(query, OnStatisticQuery):
        spread = statistic_of(spec, query).spread
        alone = query.statistic(spec.rows_per_unit(query), Relation.ADD_REMOVE).spread
        return Spreads(spread, alone, query.statistic(1, Relation.ADD_REMOVE).spread)
    # What a unit does to answers of other kinds, its rows do not add up to.
    if query.is_empirical or not isinstance(query, PlainQuery) or not query.counts_rows:
        return None
    farthest = max(sensitivity_without_data(spec, query).distances or (1,))
    return Spreads(farthest, min(rows_read(spec, query), query.answers.size - 1), 1)


def sensitivity_without_data(spec: Spec, query: Query) -> Sensitivity:
    """The sensitivity of a query that follows from its declaration alone."""
    if isinstance(query.sensitivity, DeclaredSensitivity):
        declared = _declared(query.sensitivity, query)
        # Where answers have an order, distances are those that the rows read can still make: the
        # declaration names differences modulo the size, which do not say how far apart.
        enforced = global_sensitivity(spec, query, rows_read(spec, query))
        return replace(declared, distances=enforced.distances)
    return global_sensitivity(spec, query, spec.rows_per_unit(query))


def global_sensitivity(spec: Spec, query: Query, rows: int) -> Sensitivity:
    """All differences that up to ``rows`` rows of a unit can make in any table."""
    domain = query.answers
    if query.runs_again:
        # Nothing is known of what the query does.
        steps = np.arange(domain.size, dtype=np.int64)
    else:
        steps = kind_of(query).steps(rows, spec.privacy.neighbors)
    if domain.is_line:
        return Sensitivity.on_line(domain.size, steps.tolist())
    group = domain.group
    coordinates = np.stack(group.coordinates(steps), axis=1)
    return Sensitivity.of(group, map(tuple, coordinates.tolist()))


def rows_read(spec: Spec, query: Query) -> int:
    """How many rows of a unit a query reads at most; 0 where its declaration cannot be enforced.

    Declared differences are enforced by reading no more rows than can move the answer so far.
    """
    most = spec.rows_per_unit(query)
    if not isinstance(query.sensitivity, DeclaredSensitivity):
        return most
    allowed = set(_declared(query.sensitivity, query).shifts)
    # A search by halves: with more rows a unit can make every difference that fewer rows make.
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if set(global_sensitivity(spec, query, middle).shifts) <= allowed:
            low = middle
        else:
            most = middle - 1
    return low


def check_declared(spec: Spec, at: str, query: Query) -> None:
    """Refuse a declared sensitivity that cannot be enforced.

    Raises:
        SpecError: one row of a unit can move the answer further than declared, a difference has
            not one coordinate for each part of the answer, or no two answers differ by it.
    """
    declared = query.sensitivity
    if not isinstance(declared, DeclaredSensitivity):
        return
    at = f"{at}.sensitivity.declared"
    if query.runs_again:
        raise SpecError(at, "nothing is known of a statement; write sensitivity: empirical")
    parts = query.answers.parts
    count = len(parts)
    if any(len(shift) != count for shift in declared.shifts):
        form = "numbers" if count == 1 else f"lists of {count} numbers, one for each part"
        raise SpecError(at, f"write {form}")
    try:
        check_shifts(parts, declared.shifts)
    except ValueError as error:
        raise SpecError(at, str(error)) from None
    if rows_read(spec, query):
        return
    needed = global_sensitivity(spec, query, 1).shifts
    # Differences come with their negatives, so one half names all.
    least = needed[: len(needed) // 2 + 1][:6]
    listed = "; ".join(", ".join(map(str, shift)) for shift in least)
    raise SpecError(
        at,
        f"one row of a unit can move the answer in {len(needed)} ways ({listed}; …), which "
        "cannot be prevented; declare them, clamp tighter or use fewer levels",
    )


def _declared(sensitivity: DeclaredSensitivity, query: Query) -> Sensitivity:
    return Sensitivity.of(query.answers.group, sensitivity.shifts)
