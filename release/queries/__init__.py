"""The kinds of query: each file holds a kind's answers and its differences side by side."""

from __future__ import annotations

from release.queries.count import Count
from release.queries.kind import Kind
from release.queries.level import Level
from release.queries.mode import Mode
from release.spec import CountQuery, ModeQuery, Query


def kind_of(query: Query) -> Kind:
    """The kind that answers ``query``."""
    if isinstance(query, CountQuery):
        return Count(query)
    if isinstance(query, ModeQuery):
        return Mode(query)
    return Level(query)
