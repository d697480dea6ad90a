"""The entries of a ledger (docs/design/format.md), and the amounts of privacy in them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter

from release.budget.caps import Scope, ScopeCap, ScopeName
from release.exact.composition.distribution import LossDistribution, of_charge
from release.records.models import Date, Delta, Epsilon, Exact, Record

NOTHING = "sha256:" + "0" * 64
"""The ``prev`` of the first entry, which has no predecessor."""

Hash: TypeAlias = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Base64: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=100)
]
KeyText: TypeAlias = Annotated[str, StringConstraints(max_length=400)]
Origin: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[!-*,-~]{1,200}$")]
Reason: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=300),
    Field(description="why, in words for the public"),
]
AbortReason: TypeAlias = Literal[
    "refused", "storage", "interrupted", "internal", "cut-off", "abandoned"
]
RunId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
StoreUri: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9]*://[!-~]+$", max_length=400)
]
Release: TypeAlias = Annotated[ScopeName, Field(description="the name of the release")]
KIND = "the kind of entry"


class EntryBase(Record):
    """The fields of every entry: its number, the hash of the previous entry, its date."""

    # Eight digits name the file, so that the order of names is the order of numbers.
    seq: int = Field(ge=0, lt=10**8, description="the number of the entry")
    prev: Hash = Field(description="the SHA-256 of the entry before")
    date: Date = Field(description="the day on which the entry was written")


class Genesis(EntryBase):
    """The first entry: the ledger's name, the caps and the first key."""

    kind: Literal["genesis"] = Field(description=KIND)
    origin: Origin = Field(description="the name of the ledger")
    scopes: list[ScopeCap] = Field(description="the caps of each scope")
    keys: list[KeyText] = Field(min_length=1, max_length=1, description="the first public key")


class Reserve(EntryBase):
    """The charge of a release, reserved before any noise is drawn."""

    kind: Literal["reserve"] = Field(description=KIND)
    scope: Scope
    release_id: Release
    epsilon: Epsilon
    delta: Delta
    run: RunId | None = Field(
        default=None, description="random digits of the run that reserves, which no other run has"
    )
    slot: ScopeName | None = Field(
        default=None, description="of a scope with a plan: the slot that the release takes"
    )
    moment: Exact | None = Field(
        default=None, description="of a scope with a filter: the release's moment at its order"
    )
    cut: Exact | None = Field(
        default=None,
        description="of a scope with a filter: the probability of what the moment leaves out",
    )


class Commit(EntryBase):
    """The release has been drawn and verified; it becomes public."""

    kind: Literal["commit"] = Field(description=KIND)
    release_id: Release
    sums: Hash = Field(description="the SHA-256 of its SHA256SUMS")


class Abort(EntryBase):
    """The release does not become public."""

    kind: Literal["abort"] = Field(description=KIND)
    release_id: Release
    # The charge is refunded only where this is false: drawn noise may have been seen.
    drawn: bool = Field(description="whether noise may have been drawn, so that the charge stays")
    # No row decides it: the tables are closed when a charge is reserved, and no message is kept.
    reason: AbortReason | None = Field(
        default=None,
        description="what ended the run: a refusal, a disk or store, a person, a fault; or it was "
        "cut off, or abandoned on another machine",
    )


class Withdraw(EntryBase):
    """A public release is withdrawn; its charge stays."""

    kind: Literal["withdraw"] = Field(description=KIND)
    release_id: Release


class Skip(EntryBase):
    """A release that will not be made; nothing is charged for it, and its name stays unused."""

    kind: Literal["skip"] = Field(description=KIND)
    release_id: Release
    reason: Reason


class Revise(EntryBase):
    """A newer version takes the place of a public release, which stays; each has its own charge."""

    kind: Literal["revise"] = Field(description=KIND)
    release_id: Release
    by: ScopeName = Field(description="the name of the newer version, which is public")
    reason: Reason


class Policy(EntryBase):
    """A new scope, or new caps of a scope."""

    kind: Literal["policy"] = Field(description=KIND)
    cap: ScopeCap = Field(description="the caps from now on")


class Key(EntryBase):
    """A signing key is added or retired, signed by a key that is valid before this entry."""

    kind: Literal["key"] = Field(description=KIND)
    action: Literal["add", "retire"] = Field(description="what happens to the key")
    key: KeyText = Field(description="the public key")
    signature: Base64 = Field(description="the signature by a key that stays valid")


class StoreEntry(EntryBase):
    """The store in which the entries after this one are put before they count."""

    kind: Literal["store"] = Field(description=KIND)
    uri: StoreUri = Field(description="the store, without its settings")


Entry: TypeAlias = (
    Genesis | Reserve | Commit | Abort | Withdraw | Skip | Revise | Policy | Key | StoreEntry
)
ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


@dataclass(frozen=True)
class Spent:
    """An amount of privacy, in exact rationals."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, charge: Spent) -> Spent:
        return Spent(self.epsilon + charge.epsilon, self.delta + charge.delta)

    def __neg__(self) -> Spent:
        return Spent(-self.epsilon, -self.delta)


@dataclass(frozen=True)
class ReleaseCharge:
    """What a release hands to the ledger: its stated ε and δ, and the losses that bound it.

    The profile of the whole release is at most that of ``losses``, in both orders of neighboring
    tables. None stands for a release with an instance-specific query, which has no profile.
    """

    epsilon: Fraction
    delta: Fraction
    losses: LossDistribution | None

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction) -> ReleaseCharge:
        """A release of which ε and δ alone are known: the worst case of these."""
        return cls(epsilon, delta, of_charge(epsilon, delta, epsilon or Fraction(1)))
