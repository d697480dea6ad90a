"""The kinds of query that a spec can name: the registry.

A kind is added by one file and one entry of :data:`KINDS` (CONTRIBUTING.md, "your first query
kind"). An entry says where the models of a kind lie instead of importing them, so that the models
of the spec stand below the rooms that answer queries.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from release.spec.query import Query

_STATISTIC = {
    "grid": "release.queries.grid:GridQuery",
    "": "release.queries.binned:BinnedQuery",
}

KINDS: dict[str, dict[str, str]] = {
    "count": {"": "release.queries.count:CountQuery"},
    "mode": {"": "release.queries.mode:ModeQuery"},
    "sum": _STATISTIC,
    "mean": _STATISTIC,
    "min": _STATISTIC,
    "max": _STATISTIC,
    "median": _STATISTIC,
    "per_unit": {"": "release.queries.per_unit:PerUnitQuery"},
    "tuple": {"": "release.queries.joint:TupleQuery"},
    "sql": {"": "release.queries.sql:SqlQuery"},
}
"""For each kind the places ``module:name`` of its models, by the field that tells them apart.

The model without such a field stands for all other queries of the kind.
"""


def query_models() -> dict[str, type[Query]]:
    """Every model by its place, in the order of the registry."""
    places = dict.fromkeys(place for models in KINDS.values() for place in models.values())
    return {place: _loaded(place) for place in places}


def _loaded(place: str) -> type[Query]:
    module, _, name = place.partition(":")
    return cast("type[Query]", getattr(importlib.import_module(module), name))


def place_of(value: object) -> str | None:
    """The place of the model that ``value``, a mapping or a query, is of; None for no kind."""
    if isinstance(value, Query):
        return f"{type(value).__module__}:{type(value).__name__}"
    kind = value.get("kind") if isinstance(value, dict) else None
    models = KINDS.get(kind) if isinstance(kind, str) else None
    if models is None or not isinstance(value, dict):
        return kind if isinstance(kind, str) else None
    return next(place for field, place in models.items() if not field or field in value)


@dataclass(frozen=True)
class _ByKind:
    """Makes the models of a query from the registry, when the spec is first read."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        choices = {place: handler.generate_schema(model) for place, model in query_models().items()}
        return core_schema.tagged_union_schema(choices, discriminator=place_of)


AnyQuery: TypeAlias = Annotated[Query, _ByKind()]
"""A query of any registered kind."""
