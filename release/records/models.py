"""The records of a release: typed, default-deny, and the schema of every JSON file.

What a field may hold is fixed here, so that nothing of the confidential tables can slip into a
public file by way of a free-form dictionary. Files are canonical JSON (RFC 8785); exact numbers are
strings (docs/design/format.md). The rules of change: a field never changes its meaning, new fields
are optional, old records stay valid.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import rfc8785
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from release.exact.privacy import Definition
from release.records.versions import unread

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
DefinitionName: TypeAlias = Literal["pure", "probabilistic", "approximate"]


R = TypeVar("R", bound=BaseModel)


class Record(BaseModel):
    """Frozen, strict, and without room for unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GuaranteeRecord(Record):
    """A promise."""

    definition: DefinitionName
    epsilon: Exact
    delta: Exact


class Recomputed(Record):
    """What the published weights keep, recomputed in exact arithmetic; δ rounded up, ε up."""

    delta_probabilistic: Exact
    delta_approximate: Exact
    epsilon_all_differences: ExactOrInfinite


class DesignRecord(Record):
    """How the law was found and how far from the optimum it can be at most."""

    method: str
    loss: str
    objective: Exact
    lower_bound: Exact
    bound: Literal["proved", "solver"]
    gap: Exact
    solver: str
    notes: list[str]


class Accuracy(Record):
    """What a reader can expect of one answer under the uniform prior, rounded to 12 decimals."""

    p_exact: Exact
    mean_absolute: Exact
    p_within_1: Exact


class SensitivityRecord(Record):
    """``sensitivity/<query>.json`` of the auditor bundle.

    ``apart`` is how far answers in order lie from each other, for a channel.
    """

    schema_: Literal["dp-release/sensitivity/v1"] = Field(alias="schema")
    query: str
    source: Literal["empirical", "global", "declared"]
    neighbors: Literal["replace_one", "add_remove", "attribute"]
    group: list[int]
    sensitivity: list[list[int]]
    apart: list[int] | None = None


class Opening(Record):
    """The key and the value of one commitment."""

    key: Sha256
    commitment: Commitment


class OpeningsRecord(Record):
    """``openings.json`` of the auditor bundle: commitments by file."""

    schema_: Literal["dp-release/openings/v1"] = Field(alias="schema")
    release_id: str
    openings: dict[str, Opening]


class PrivacyRecord(Record):
    """What is protected and against which change."""

    unit: str
    neighbors: Literal["replace_one", "add_remove", "attribute"]
    adjacency_text: str
    max_rows_per_unit: int
    fixed: list[str]
    enforced_by: str


class ReleaseGuarantee(GuaranteeRecord):
    """The guarantee of the whole release."""

    kind: Literal["worst-case", "instance-specific"]


class ChargeRecord(Record):
    """What something costs."""

    epsilon: Exact
    delta: Exact


class MechanismFile(Record):
    """The public mechanism of a worst-case query."""

    path: str
    sha256: Sha256


class MechanismCommitment(Record):
    """The commitment to the mechanism of an instance-specific query."""

    commitment: Commitment


class OutputFile(Record):
    """A released table."""

    path: str
    sha256: Sha256
    rows: int


class QueryRecord(Record):
    """One query of the release."""

    name: str
    kind: Word
    by: list[str]
    cells: int
    domain: dict[str, Any]
    definition: DefinitionName
    epsilon: Exact
    delta: Exact
    parallel: bool
    charge: ChargeRecord
    guarantee_kind: Literal["worst-case", "instance-specific"]
    sensitivity_source: Literal["empirical", "global", "declared"]
    mechanism: Word
    mechanism_file: MechanismFile | MechanismCommitment
    output: OutputFile


class Composition(Record):
    """How the charges add up."""

    rule: Literal["basic-v1"]
    epsilon: Exact
    delta: Exact


class Sampling(Record):
    """Where the noise came from."""

    source: Literal["os"]
    method: Literal["inverse-cdf-integer"]
    seeded: bool


class LedgerRecord(Record):
    """Who paid; ``sequence`` is null while there is no ledger."""

    scope: str
    sequence: int | None


class Software(Record):
    """The versions that made the release."""

    dp_release: str
    python: str
    duckdb: str
    highs: str


class ReleaseRecord(Record):
    """``release.json`` (docs/design/format.md)."""

    schema_: Literal["dp-release/release/v1"] = Field(alias="schema")
    release_id: str
    kind: Literal["RELEASE", "TEST"]
    published: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    title: str
    curator: str
    contact: str
    purpose: str
    period: str
    license: str
    privacy: PrivacyRecord
    guarantee: ReleaseGuarantee
    queries: list[QueryRecord]
    composition: Composition
    sampling: Sampling
    invariants: list[str]
    post_processing: list[str]
    ledger: LedgerRecord
    software: Software
    withheld: list[str]
    limits: list[str]


FILES: dict[str, type[BaseModel]] = {
    "sensitivity": SensitivityRecord,
    "openings": OpeningsRecord,
    "release": ReleaseRecord,
}
"""The model of each kind of JSON file, by the name of its schema."""


def canonical(record: Record) -> bytes:
    """The record as canonical JSON; optional fields that say nothing are left out."""
    plain = record.model_dump(mode="json", by_alias=True)
    silent = [n for n, f in type(record).model_fields.items() if not f.is_required()]
    return rfc8785.dumps({k: v for k, v in plain.items() if not (k in silent and v is None)})


def parse(model: type[R], data: bytes) -> R:
    """Read a record from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, not the one canonical form, not the model, or of a
            later format.
    """
    plain = parse_plain(data)
    if isinstance(plain, dict) and (later := unread(plain.get("schema"))) is not None:
        raise ValueError(later)
    return model.model_validate(plain)


def parse_plain(data: bytes) -> Any:
    """Read plain data from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, or not the one canonical form.
    """
    plain = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    if rfc8785.dumps(plain) != data:
        raise ValueError("not in canonical form")
    return plain


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def definition_name(definition: Definition) -> DefinitionName:
    """The definition as it stands in files."""
    return definition.value
