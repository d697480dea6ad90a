"""The fields of the spec's models, by the location that pydantic gives of an error."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import Tag
from pydantic.fields import FieldInfo

from release.spec.domains import Model
from release.spec.kinds import query_models
from release.spec.query import Query


def description_of(model: type[Model], location: Sequence[int | str]) -> str:
    """What the field at a location of ``model`` means; empty where there is no such field."""
    *parents, name = location
    field = fields_at(model, parents).get(str(name))
    return (field.description or "") if field else ""


def fields_at(model: type[Model], location: Sequence[int | str]) -> dict[str, FieldInfo]:
    """The fields of the model that stands at a location; none where no model stands there.

    A location has the names of fields, the positions of lists, the keys of mappings and, for a
    union, the tag of an alternative.
    """
    annotation: Any = model
    for part in location:
        annotation = _within(_plain(annotation), part)
    return _fields(_plain(annotation))


def _within(annotation: Any, part: int | str) -> Any:
    """The annotation of what stands at ``part``; None where nothing does."""
    if get_origin(annotation) in (list, dict):
        return get_args(annotation)[-1]
    # The union of queries is built at run time, so no annotation names its alternatives.
    if annotation is Query:
        return query_models().get(str(part))
    if field := _fields(annotation).get(str(part)):
        return field.annotation
    # A location names the alternative of a union by its tag.
    for alternative in get_args(annotation):
        if Tag(str(part)) in getattr(alternative, "__metadata__", ()):
            return alternative
    return None


def _plain(annotation: Any) -> Any:
    """The annotation without constraints, and without None as an alternative."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    alternatives = list(get_args(annotation))
    # Optional: a union of one type and None. Larger unions are told apart by tags.
    if NoneType in alternatives and len(alternatives) == 2:
        alternatives.remove(NoneType)
        return _plain(alternatives[0])
    return annotation


def _fields(annotation: Any) -> dict[str, FieldInfo]:
    is_model = isinstance(annotation, type) and issubclass(annotation, Model)
    return annotation.model_fields if is_model else {}
