"""The records of a release: typed, default-deny, and the schema of every JSON file.

What a field may hold is fixed here, so that nothing of the confidential tables can slip into a
public file by way of a free-form dictionary. Files are canonical JSON (RFC 8785); exact numbers are
strings (docs/design/format.md). The rules of change: a field never changes its meaning, new fields
are optional, old records stay valid.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import rfc8785
from pydantic import BaseModel, Field

from release.exact.privacy import Definition, Deltas
from release.records.base import (
    ChargeRecord,
    Commitment,
    Date,
    DefinitionName,
    Delta,
    Digits,
    Epsilon,
    Exact,
    ExactOrInfinite,
    FromSpec,
    GuaranteeKind,
    MechanismFile,
    OutputFile,
    Pair,
    Record,
    RelationName,
    ReleaseId,
    ScopeName,
    Sha256,
    SourceName,
    Word,
)
from release.records.tabulations import MeasuredRecord, TabulationRecord
from release.records.trees import ExpressionRecord
from release.records.versions import unread

VERSION = "the version of this format"
GROUP = "the number of possible answers; of a joint query one number for each part"


R = TypeVar("R", bound=BaseModel)


class GuaranteeRecord(Record):
    """The guarantee that a query claims for one cell."""

    definition: DefinitionName
    epsilon: Epsilon
    delta: Delta


class Recomputed(Record):
    """The guarantee that the weights satisfy, in exact arithmetic; ε and δ are rounded up."""

    delta_probabilistic: Exact = Field(description="δ under the probabilistic definition")
    delta_approximate: Exact = Field(description="δ under the approximate definition")
    epsilon_everywhere: ExactOrInfinite = Field(description="the pure ε between any two answers")

    @property
    def deltas(self) -> Deltas:
        """Both δ, as exact rationals."""
        return Deltas(Fraction(self.delta_probabilistic), Fraction(self.delta_approximate))


class Prices(Record):
    """The dual multipliers for one distance of neighbors, as integers in units of 2^-80."""

    distance: int = Field(ge=1, description="how far apart the neighboring answers are")
    prices: list[Digits] = Field(
        min_length=1, description="one for each noise value of the window, from the lowest on"
    )


class DesignRecord(Record):
    """How the mechanism was found, and how far from the optimum it is at most."""

    method: str = Field(description="the method of the solver, or `baseline` and its name")
    loss: str = Field(description="the loss function of the spec")
    objective: Exact = Field(
        description="the expected loss under the prior, or at the worst true answer"
    )
    bound_of: Literal["every mechanism", "modular noise", "noise on the integers"] = Field(
        description="the mechanisms with this guarantee of which the lower bound speaks"
    )
    bounded_loss: Exact = Field(
        description="the loss that is bounded: the objective, or of noise on the integers its "
        "expected loss far from both ends"
    )
    lower_bound: Exact = Field(description="none of these mechanisms has a smaller one")
    # A solver's word is not recomputed by a verifier, and the file says so.
    bound: Literal["proved", "solver"] = Field(
        description="whether the bound is proved, or claimed by a solver"
    )
    # Of the rounded texts, so that a reader can subtract them and finds the same.
    gap: Exact = Field(description="the bounded loss less the lower bound, of these two texts")
    multipliers: list[Prices] = Field(
        description="what the bound is computed from, where no formula gives it"
    )
    solver: str = Field(description="the solver and its version, or `none`")
    notes: list[str] = Field(description="remarks, such as the expected loss of other mechanisms")


class Accuracy(Record):
    """The errors of one answer under the uniform prior, rounded to 12 decimals."""

    p_exact: Exact = Field(description="the probability that the answer is the true one")
    mean_absolute: Exact = Field(description="the mean distance from the true answer, in codes")
    p_within_1: Exact = Field(description="the probability of an error of at most one code")


class SensitivityRecord(Record):
    """``sensitivity/<query>.json`` of the auditor bundle."""

    schema_: Literal["dp-release/sensitivity/v1"] = Field(alias="schema", description=VERSION)
    query: str = Field(description="the name of the query")
    source: SourceName
    neighbors: RelationName
    group: list[int] = Field(description=GROUP)
    sensitivity: list[list[int]] = Field(description="the differences, closed under negation")
    # In the group of the answers one step up and the whole way down are the same difference.
    distances: list[int] | None = Field(
        default=None, description="of a channel: the distances between neighboring answers in order"
    )


class Opening(Record):
    """The salt and the value of one commitment."""

    key: Sha256 = Field(description="the 32 bytes of salt that key the HMAC")
    commitment: Commitment = Field(description="the value in `release.json`")


class OpeningsRecord(Record):
    """``openings.json`` of the auditor bundle: what opens each commitment."""

    schema_: Literal["dp-release/openings/v1"] = Field(alias="schema", description=VERSION)
    release_id: ReleaseId
    openings: dict[str, Opening] = Field(description="the openings, by path in this bundle")


class PrivacyRecord(Record):
    """Whom the guarantee protects, and the bounds that are enforced."""

    unit: str = Field(description="the column that names the privacy unit")
    neighbors: RelationName
    adjacency_text: str = Field(description="the neighboring relation in words")
    max_rows_per_unit: int = Field(description="the most rows of a unit that a query reads")
    fixed: list[str] = Field(description="the columns that are public facts of a unit")
    enforced_by: str = Field(description="how the bounds are enforced, in words")


class ReleaseGuarantee(GuaranteeRecord):
    """The guarantee of the whole release."""

    kind: GuaranteeKind


class MechanismCommitment(Record):
    """The commitment to the mechanism of an instance-specific query."""

    commitment: Commitment = Field(description="HMAC-SHA-256 of the mechanism file")


class QueryRecord(Record):
    """One query of the release."""

    name: FromSpec
    kind: Word = Field(description="as in the spec")
    by: list[str] = Field(description="as in the spec")
    cells: int = Field(description="the number of published answers")
    domain: dict[str, Any] = Field(description="as in the spec")
    definition: DefinitionName
    epsilon: Exact = Field(description="ε of one cell")
    delta: Exact = Field(description="δ of one cell")
    parallel: bool = Field(description="whether a unit counts in one cell only")
    charge: ChargeRecord = Field(description="the guarantee times the cells that a unit can touch")
    guarantee_kind: GuaranteeKind
    sensitivity_source: SourceName
    mechanism: Word = Field(description="the family of the mechanism, such as modular")
    # The file of an instance-specific mechanism would show the sensitivity of this very table.
    mechanism_file: MechanismFile | MechanismCommitment = Field(
        description="the mechanism file, or the commitment to it"
    )
    output: OutputFile = Field(description="the released table")


class Composition(Record):
    """The charge of the whole release."""

    rule: Literal["basic-v1", "pld-v1"] = Field(
        description="the rule: charges add up, or the profiles of public mechanisms compose exactly"
    )
    epsilon: Epsilon
    delta: Delta
    # Fixed in the file, because a verifier on another grid would find another total.
    step: Exact | None = Field(
        description="of pld-v1: the distance of two privacy losses of every profile; else null"
    )


class Sampling(Record):
    """Where the noise came from."""

    source: Literal["os"] = Field(description="the random generator of the operating system")
    method: Literal["inverse-cdf-integer"] = Field(description="the inverse of cumulative weights")
    seeded: bool = Field(description="whether the randomness was chosen, as in a test run only")


class LedgerRecord(Record):
    """The account that paid; ``sequence`` is null without a ledger."""

    scope: ScopeName
    sequence: int | None = Field(description="the number of the entry that reserved the charge")


RuntimeExtra: TypeAlias = Literal["fast", "flows", "postgresql", "spark"]
"""An extra that takes part in a release; the others serve development."""


class Environment(Record):
    """The libraries that the run could import."""

    extras: list[RuntimeExtra] = Field(
        description="the extras whose libraries were installed, sorted"
    )
    sha256: Sha256 = Field(description="the SHA-256 of the sorted lines `name==version`")


class Software(Record):
    """The software that made the release."""

    dp_release: str = Field(description="the version of dp-release")
    python: str = Field(description="the version of Python")
    duckdb: str = Field(description="the version of DuckDB")
    highs: str = Field(description="the version of HiGHS")
    source: Sha256 = Field(description="the SHA-256 of the list of the source files")
    environment: Environment | None = Field(
        description="the libraries; null where dp-release ran without being installed"
    )


class ReleaseRecord(Record):
    """``release.json``: what was published, under which guarantee, and who paid."""

    schema_: Literal["dp-release/release/v1"] = Field(alias="schema", description=VERSION)
    release_id: ReleaseId
    kind: Literal["RELEASE", "TEST", "REHEARSAL"] = Field(
        description="`TEST`: chosen randomness; `REHEARSAL`: no answers; both to be refused"
    )
    published: Date = Field(description="the day of publication")
    title: FromSpec
    curator: FromSpec
    contact: FromSpec
    purpose: FromSpec
    period: FromSpec
    license: FromSpec
    privacy: PrivacyRecord = Field(description="whom the guarantee protects")
    guarantee: ReleaseGuarantee = Field(description="the guarantee of the whole release")
    # Absent or not empty, here and below: a release without any has one form and one hash.
    expressions: Annotated[list[ExpressionRecord], Field(min_length=1)] | None = Field(
        default=None,
        description="the derived columns and conditions of the spec, as they are evaluated; absent "
        "where it has none",
    )
    queries: list[QueryRecord] = Field(description="one object for each query")
    tabulations: Annotated[list[TabulationRecord], Field(min_length=1)] | None = Field(
        default=None,
        description="the tables that add up, one object for each tabulation; absent without any",
    )
    composition: Composition = Field(description="how the charges add up")
    sampling: Sampling = Field(description="where the noise came from")
    invariants: list[str] = Field(description="what is published without noise; empty")
    post_processing: list[str] = Field(description="what was done to noisy answers; empty")
    ledger: LedgerRecord = Field(description="the account that paid")
    software: Software = Field(description="the programs, by version and by hash")
    withheld: list[str] = Field(description="what is left out, in words")
    limits: list[str] = Field(description="what is asserted and cannot be checked from the files")

    @property
    def measured(self) -> tuple[MeasuredRecord, ...]:
        """The measured tables of all tabulations, in order."""
        tables: list[MeasuredRecord] = []
        for tabulation in self.tabulations or ():
            tables += tabulation.measured
        return tuple(tables)

    @property
    def outputs(self) -> tuple[OutputFile, ...]:
        """All tables: of the queries, then of the tabulations."""
        outputs = [query.output for query in self.queries]
        for tabulation in self.tabulations or ():
            outputs += tabulation.outputs
        return tuple(outputs)


FILES: dict[str, type[BaseModel]] = {
    "sensitivity": SensitivityRecord,
    "openings": OpeningsRecord,
    "release": ReleaseRecord,
}
"""The model of each kind of JSON file, by the name of its schema."""


def canonical(record: Record) -> bytes:
    """The record as canonical JSON; optional fields that are empty are left out."""
    plain = record.model_dump(mode="json", by_alias=True)
    # A required field may be null, as the sequence without a ledger is; only optional ones go.
    for name, field in type(record).model_fields.items():
        if not field.is_required() and plain.get(name) is None:
            plain.pop(name, None)
    return rfc8785.dumps(plain)


def parse(model: type[R], data: bytes) -> R:
    """Read a record from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, not the one canonical form, not the model, or of a
            later format.
    """
    plain = parse_plain(data)
    # First of all, or a file of a later format would be refused for a field that is new in it.
    if isinstance(plain, dict) and (later := unread(plain.get("schema"))) is not None:
        raise ValueError(later)
    return model.model_validate(plain)


def parse_plain(data: bytes) -> Any:
    """Read plain data from canonical JSON, strictly.

    Raises:
        ValueError: not JSON, a repeated key, or not the one canonical form.
    """
    # Python's reader takes NaN and Infinity, which are no JSON.
    plain = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    # One form alone: two files with one meaning would have two hashes.
    if rfc8785.dumps(plain) != data:
        raise ValueError("not in canonical form")
    return plain


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Python's reader takes the last of two equal keys, another reader the first.
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice")
    return members


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def definition_name(definition: Definition) -> DefinitionName:
    """The definition as it stands in files."""
    return definition.value


__all__ = [
    "ChargeRecord",
    "Commitment",
    "Date",
    "DefinitionName",
    "Delta",
    "Digits",
    "Epsilon",
    "Exact",
    "ExactOrInfinite",
    "FromSpec",
    "GuaranteeKind",
    "MechanismFile",
    "OutputFile",
    "Pair",
    "Record",
    "RelationName",
    "ReleaseId",
    "ScopeName",
    "Sha256",
    "SourceName",
    "Word",
]
