"""The parts of tuples: finds the queries that a tuple names, and refuses those that do not fit."""

from __future__ import annotations

from release.errors import SpecError, unknown_name
from release.spec.model import Spec
from release.spec.named import by_name
from release.spec.query import PlainQuery, Query


def with_parts(spec: Spec) -> Spec:
    """The spec, each of its tuples with the queries that it names.

    Raises:
        SpecError: a tuple names what cannot be its part, or a query that is no part of any tuple
            has no guarantee or no sensitivity.
    """
    # Names stand once: the checks of a spec refuse two queries of one name before this.
    declared: dict[str, Query] = by_name(spec.queries)
    queries: list[Query] = []
    named: set[str] = set()
    for index, query in enumerate(spec.queries):
        parts = []
        for position in range(len(query.part_names)):
            at = f"queries[{index}].of[{position}]"
            parts.append(_part(at, query, declared, position))
        queries.append(query.with_parts(tuple(parts)))
        named.update(query.part_names)
    # A second pass, because a part may stand before or after its tuple.
    for index, query in enumerate(queries):
        _check_guarantee(f"queries[{index}]", query, is_part=query.name in named)
    return spec.model_copy(update={"queries": queries})


def _part(at: str, query: Query, by_name: dict[str, Query], position: int) -> PlainQuery:
    name = query.part_names[position]
    if name not in by_name:
        raise SpecError(at, unknown_name(name, by_name))
    part = by_name[name]
    if not isinstance(part, PlainQuery) or not part.can_be_part:
        raise SpecError(at, f"{name!r} is a {part.kind}; name other kinds of query")
    if name == "code":
        raise SpecError(at, "answer_code is the column of the joint code; rename the query")
    if name in query.part_names[:position]:
        raise SpecError(at, f"{name!r} stands twice; keep one")
    # A tuple reads the rows of all its parts in one pass, with one bound on the rows of a unit.
    for field in ("table", "by", "max_rows_per_unit"):
        if getattr(part, field) != getattr(query, field):
            raise SpecError(at, f"{name!r} has another {field}; write the same")
    if part.for_units is not by_name[query.part_names[0]].for_units:
        raise SpecError(at, "a per_unit answer goes together with such answers only")
    return part


def _check_guarantee(at: str, query: Query, *, is_part: bool) -> None:
    """A query claims a guarantee, or is a part of a tuple that does."""
    if is_part and not query.is_released:
        # Only a mechanism of its own would use them; left in, they would seem to have an effect.
        for field in sorted(query.model_fields_set & {"sensitivity", "loss", "mechanism"}):
            raise SpecError(f"{at}.{field}", "a part of a tuple has none of its own; remove it")
        return
    for field in ("guarantee", "sensitivity"):
        if field == "guarantee" and query.is_shared:
            continue
        if getattr(query, field) is None:
            meaning = type(query).model_fields[field].description
            raise SpecError(f"{at}.{field}", f"missing; add it ({meaning})")
