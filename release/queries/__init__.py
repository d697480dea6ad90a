"""The kinds of query: each file holds a kind's answers and its differences side by side."""

from __future__ import annotations

from release.errors import SpecError
from release.guarantee import Differences
from release.queries.count import Count
from release.queries.kind import Kind
from release.queries.level import Level
from release.queries.mode import Mode
from release.queries.value import Value
from release.spec import (
    CountQuery,
    DeclaredDifferences,
    LevelQuery,
    ModeQuery,
    Query,
    Spec,
    ValueQuery,
    answer_domain,
)


def kind_of(query: Query) -> Kind:
    """The kind that answers ``query``, unless that is a statement of the curator's own."""
    if isinstance(query, CountQuery):
        return Count(query)
    if isinstance(query, ModeQuery):
        return Mode(query)
    if isinstance(query, ValueQuery):
        return Value(query)
    if isinstance(query, LevelQuery):
        return Level(query)
    raise TypeError("a statement of the curator's own is no kind that sums of profiles decide")


def differences_without_data(spec: Spec, query: Query) -> Differences:
    """The differences of a query that follow from its declaration alone."""
    if isinstance(query.differences, DeclaredDifferences):
        return _declared(query.differences, query)
    return kind_of(query).structural(spec.rows_per_unit(query))


def rows_read(spec: Spec, query: Query) -> int:
    """How many rows of a unit a query reads at most; 0 where its declaration cannot be enforced.

    Declared differences are enforced by reading no more rows than can move the answer so far.
    """
    most = spec.rows_per_unit(query)
    if not isinstance(query.differences, DeclaredDifferences):
        return most
    allowed, kind = set(_declared(query.differences, query).shifts), kind_of(query)
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if set(kind.structural(middle).shifts) <= allowed:
            low = middle
        else:
            most = middle - 1
    return low


def check_declared(spec: Spec, at: str, query: Query) -> None:
    """See to it that declared differences can be enforced.

    Raises:
        SpecError: one row of a unit can move the answer further than declared.
    """
    if rows_read(spec, query):
        return
    needed = kind_of(query).structural(1)
    shifts = [shift for (shift,) in needed.shifts]
    listed = ", ".join(map(str, shifts[: len(shifts) // 2 + 1][:6]))
    raise SpecError(
        f"{at}.differences.declared",
        f"one row of a unit can move the answer by {len(shifts)} differences ({listed}, …), which "
        "cannot be prevented; declare them, clamp tighter or use fewer levels",
    )


def _declared(differences: DeclaredDifferences, query: Query) -> Differences:
    group = answer_domain(query.domain).group
    return Differences.of(group, ((shift,) for shift in differences.declared))
