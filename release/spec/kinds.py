"""The kinds of query that a spec can name: the registry.

A kind is added by one file and one entry of :data:`KINDS` (docs/design/extending.md). An entry
names the places of the kind's models instead of importing them, because they lie in
:mod:`release.queries`, above this room.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, TypeAlias, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from release.spec.query import Query

_STATISTIC = {
    "grid": "release.queries.kinds.grid:GridQuery",
    "": "release.queries.kinds.binned:BinnedQuery",
}

KINDS: dict[str, dict[str, str]] = {
    "count": {"": "release.queries.kinds.count:CountQuery"},
    "mode": {"": "release.queries.kinds.mode:ModeQuery"},
    "top": {"": "release.queries.kinds.top:TopQuery"},
    "quantiles": {"": "release.queries.kinds.quantiles:QuantilesQuery"},
    "sum": _STATISTIC,
    "mean": _STATISTIC,
    "min": _STATISTIC,
    "max": _STATISTIC,
    "median": _STATISTIC,
    "per_unit": {"": "release.queries.kinds.per_unit:PerUnitQuery"},
    "tuple": {"": "release.queries.kinds.joint:TupleQuery"},
    "sql": {"": "release.queries.kinds.sql:SqlQuery"},
}
"""For each kind the places ``module:name`` of its models, by the field that only this model has.

The empty field stands for the model of all other queries of the kind, and comes last.
"""


def query_models() -> dict[str, type[Query]]:
    """Every model by its place, in the order of the registry."""
    # Kinds share models, so places repeat. A dictionary and not a set: the order of the models is
    # the order of the published schema.
    places = chain.from_iterable(map(dict.values, KINDS.values()))
    return {place: _loaded(place) for place in places}


def _loaded(place: str) -> type[Query]:
    module, _, name = place.partition(":")
    return cast("type[Query]", getattr(importlib.import_module(module), name))


def place_of(value: object) -> str | None:
    """The place of the model for ``value``, a mapping or a query.

    An unknown kind is its own place, for the message; None where no kind is named.
    """
    # Pydantic also asks of finished queries, when it writes or copies them.
    if isinstance(value, Query):
        return f"{type(value).__module__}:{type(value).__name__}"
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        return None
    models = KINDS.get(kind, {"": kind})
    for field, place in models.items():
        if field in value:
            return place
    # The model of all other queries of the kind.
    return models[""]


@dataclass(frozen=True)
class _ByKind:
    """The union of all registered models, built when a spec is first read."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        # Built late, because the models are in a room above and import this module.
        models = query_models()
        choices = dict(zip(models, map(handler.generate_schema, models.values()), strict=True))
        return core_schema.tagged_union_schema(choices, discriminator=place_of)


AnyQuery: TypeAlias = Annotated[Query, _ByKind()]
"""A query of any registered kind."""
