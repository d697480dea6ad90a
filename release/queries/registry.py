"""The kinds of query: each file holds a kind's answers and its differences side by side."""

from __future__ import annotations

from dataclasses import replace

from release.errors import SpecError
from release.exact.privacy import Differences
from release.queries.base import RowKind
from release.queries.count import Count
from release.queries.joint import Joint
from release.queries.level import Level
from release.queries.mode import Mode
from release.queries.real import Real
from release.queries.value import Value
from release.spec.model import (
    CountQuery,
    DeclaredDifferences,
    ModeQuery,
    Part,
    Query,
    RealQuery,
    Spec,
    SqlQuery,
    TupleQuery,
    ValueQuery,
    answer_domain,
)


def kind_of(query: Query) -> RowKind | Joint:
    """The kind that answers ``query``, unless that is a statement of the curator's own."""
    if isinstance(query, TupleQuery):
        return Joint(tuple(map(_kind_of_part, query.parts)), answer_domain(query).group)
    if isinstance(query, SqlQuery):
        raise TypeError("a statement of the curator's own is no kind that sums of profiles decide")
    return _kind_of_part(query)


def _kind_of_part(query: Part) -> RowKind:
    if isinstance(query, CountQuery):
        return Count(query)
    if isinstance(query, ModeQuery):
        return Mode(query)
    if isinstance(query, ValueQuery):
        return Value(query)
    if isinstance(query, RealQuery):
        return Real.of(query)
    return Level(query)


def differences_without_data(spec: Spec, query: Query) -> Differences:
    """The differences of a query that follow from its declaration alone."""
    if isinstance(query.differences, DeclaredDifferences):
        declared = _declared(query.differences, query)
        # On the line, what can happen when no more rows are read than the declaration allows.
        enforced = structural_differences(spec, query, rows_read(spec, query))
        return replace(declared, apart=enforced.apart)
    return structural_differences(spec, query, spec.rows_per_unit(query))


def structural_differences(spec: Spec, query: Query, rows: int) -> Differences:
    """All differences that up to ``rows`` rows of a unit can make, whatever the table."""
    domain = answer_domain(query)
    steps = kind_of(query).steps(rows, spec.privacy.neighbours)
    if domain.is_line:
        return Differences.on_line(domain.size, steps.tolist())
    group = domain.group
    numbers = group.coordinates(steps)
    return Differences.of(group, zip(*(c.tolist() for c in numbers), strict=True))


def rows_read(spec: Spec, query: Query) -> int:
    """How many rows of a unit a query reads at most; 0 where its declaration cannot be enforced.

    Declared differences are enforced by reading no more rows than can move the answer so far.
    """
    most = spec.rows_per_unit(query)
    if not isinstance(query.differences, DeclaredDifferences):
        return most
    allowed = set(_declared(query.differences, query).shifts)
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if set(structural_differences(spec, query, middle).shifts) <= allowed:
            low = middle
        else:
            most = middle - 1
    return low


def check_declared(spec: Spec, at: str, query: Query) -> None:
    """See to it that declared differences can be enforced.

    Raises:
        SpecError: one row of a unit can move the answer further than declared, or a difference has
            not one coordinate for each part of the answer.
    """
    declared = query.differences
    if not isinstance(declared, DeclaredDifferences):
        return
    at = f"{at}.differences.declared"
    if isinstance(query, SqlQuery):
        raise SpecError(at, "nothing is known of a statement; write differences: empirical")
    parts = len(answer_domain(query).parts)
    if any(len(shift) != parts for shift in declared.shifts):
        wanted = "numbers" if parts == 1 else f"lists of {parts} numbers, one for each part"
        raise SpecError(at, f"write {wanted}")
    if rows_read(spec, query):
        return
    needed = [", ".join(map(str, shift)) for shift in structural_differences(spec, query, 1).shifts]
    listed = "; ".join(needed[: len(needed) // 2 + 1][:6])
    raise SpecError(
        at,
        f"one row of a unit can move the answer by {len(needed)} differences ({listed}; …), which "
        "cannot be prevented; declare them, clamp tighter or use fewer levels",
    )


def _declared(differences: DeclaredDifferences, query: Query) -> Differences:
    return Differences.of(answer_domain(query).group, differences.shifts)
