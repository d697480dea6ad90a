"""What the records of a release have in common: the types of their fields, and small records."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# Bounded: the time to read a number grows with the square of its digits, and files may be forged.
Digits: TypeAlias = Annotated[str, StringConstraints(pattern=r"^(0|[1-9][0-9]*)$", max_length=400)]
Exact: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+|/[1-9][0-9]*)?$", max_length=400)
]
ExactOrInfinite: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^([0-9]+(\.[0-9]+)?|inf)$", max_length=400)
]
Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commitment: TypeAlias = Annotated[str, StringConstraints(pattern=r"^hmac-sha256:[0-9a-f]{64}$")]
Word: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=63)]
Date: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Pair: TypeAlias = Annotated[list[int], Field(min_length=2, max_length=2)]

# Types of fields that stand in several records with one meaning.
Epsilon: TypeAlias = Annotated[Exact, Field(description="ε")]
Delta: TypeAlias = Annotated[Exact, Field(description="δ")]
DefinitionName: TypeAlias = Annotated[
    Literal["pure", "probabilistic", "approximate"],
    Field(description="the definition of differential privacy that δ refers to"),
]
RelationName: TypeAlias = Annotated[
    Literal["replace_one", "add_remove", "attribute"],
    Field(description="how two neighboring tables differ"),
]
SourceName: TypeAlias = Annotated[
    Literal["empirical", "global", "declared"],
    Field(description="where the sensitivity comes from"),
]
GuaranteeKind: TypeAlias = Annotated[
    Literal["worst-case", "instance-specific"],
    Field(description="whether the guarantee covers every table of the spec, or this table only"),
]
ReleaseId: TypeAlias = Annotated[str, Field(description="the name of the release")]
ScopeName: TypeAlias = Annotated[str, Field(description="the account of the ledger that pays")]
FromSpec: TypeAlias = Annotated[str, Field(description="as in the spec")]


# Strict: text is no number, and what a person mistyped is refused and not converted.
class Record(BaseModel):
    """Frozen, strict, and without room for unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ChargeRecord(Record):
    """What a query or a release takes from the budget."""

    epsilon: Epsilon
    delta: Delta


class MechanismFile(Record):
    """The public mechanism of a worst-case query."""

    path: str = Field(
        pattern=r"^mechanisms/[^/]+\.json$",
        description="the file in the public bundle: of this query, or of an earlier one with an "
        "equal mechanism",
    )
    sha256: Sha256 = Field(description="the SHA-256 of the file")


class OutputFile(Record):
    """A released table."""

    path: str = Field(description="the file in the public bundle")
    sha256: Sha256 = Field(description="the SHA-256 of the file")
    rows: int = Field(description="the number of rows, one for each cell")
