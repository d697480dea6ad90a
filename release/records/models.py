"""What records have in common: frozen and strict models, and canonical JSON.

The files of a release are forms of :mod:`dp_release_verify.forms`. The records here are those of
ledgers, logs and of what a run keeps for itself. An unknown field is refused, exact numbers are
texts.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from dp_release_verify.canonical import dumps

# Bounded: the time to read a number grows with the square of its digits, and files may be forged.
Digits: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]*)$", max_length=400)]
Exact: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$", max_length=400)
]
ExactOrInfinite: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^([0-9]+(\.[0-9]+)?|inf)$", max_length=400)
]
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Date: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Epsilon: TypeAlias = Annotated[Exact, Field(description="ε")]
Delta: TypeAlias = Annotated[Exact, Field(description="δ")]
DefinitionName: TypeAlias = Literal["pure", "probabilistic", "approximate"]

R = TypeVar("R", bound=BaseModel)


# Strict: text is no number, and what a person mistyped is refused and not converted.
class Record(BaseModel):
    """Frozen, strict, and without room for unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def canonical(record: Record) -> bytes:
    """The record as canonical JSON; optional fields that are empty are left out."""
    plain = record.model_dump(mode="json", by_alias=True)
    for name, field in type(record).model_fields.items():
        if not field.is_required() and plain.get(name) is None:
            plain.pop(name, None)
    return dumps(plain)


def parse(model: type[R], data: bytes) -> R:
    """Read a record from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, not the one canonical form, or not the model.
    """
    return model.model_validate(parse_plain(data))


def parse_plain(data: bytes) -> Any:
    """Read plain data from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, or not the one canonical form.
    """
    try:
        # Python's reader takes NaN, Infinity and repeated keys; none of them is written so again.
        plain = json.loads(data)
        again = dumps(plain)
    except TypeError as error:
        raise ValueError("not in canonical form") from error
    # One form alone: two files with one meaning would have two hashes.
    if again != data:
        raise ValueError("not in canonical form")
    return plain
