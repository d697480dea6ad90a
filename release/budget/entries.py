"""The entries of a ledger (docs/design/format.md), and the amounts of privacy in them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints, TypeAdapter

from release.records.models import Exact, Record

NOTHING = "sha256:" + "0" * 64
"""The ``prev`` of the first entry, which has no predecessor."""

# Lengths are bounded, because a ledger may come from somebody else.

Hash: TypeAlias = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Date: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
ScopeName: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)
]
ReleaseId: TypeAlias = ScopeName
Base64: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=100)
]
KeyText: TypeAlias = Annotated[str, StringConstraints(max_length=400)]


class PeriodCap(Record):
    """The cap of a scope for each calendar day, month or year."""

    every: Literal["day", "month", "year"]
    epsilon: Exact
    delta: Exact


class ScopeCap(Record):
    """The caps of a scope: for its lifetime, and perhaps for each period."""

    scope: ScopeName
    epsilon: Exact
    delta: Exact
    period: PeriodCap | None = None


class EntryBase(Record):
    """The fields of every entry: its number, the hash of the previous entry, its date."""

    # Eight digits name the file, so that the order of names is the order of numbers.
    seq: Annotated[int, Field(ge=0, lt=10**8)]
    prev: Hash
    date: Date


class Genesis(EntryBase):
    """The first entry: the ledger's name, the caps and the first key."""

    kind: Literal["genesis"]
    # Printable ASCII without "+", which separates the parts of a verifier key.
    origin: Annotated[str, StringConstraints(pattern=r"^[!-*,-~]{1,200}$")]
    scopes: list[ScopeCap]
    keys: Annotated[list[KeyText], Field(min_length=1, max_length=1)]


class Reserve(EntryBase):
    """The charge of a release, reserved before any noise is drawn."""

    kind: Literal["reserve"]
    scope: ScopeName
    release_id: ReleaseId
    epsilon: Exact
    delta: Exact


class Commit(EntryBase):
    """The release has been drawn and signed; it becomes public."""

    kind: Literal["commit"]
    release_id: ReleaseId
    attestation: Hash


class Abort(EntryBase):
    """The release does not become public."""

    kind: Literal["abort"]
    release_id: ReleaseId
    # The charge is refunded only where this is false: drawn noise may have been seen.
    drawn: bool


class Withdraw(EntryBase):
    """A public release is withdrawn; its charge stays."""

    kind: Literal["withdraw"]
    release_id: ReleaseId


class Policy(EntryBase):
    """A new scope, or new caps of a scope."""

    kind: Literal["policy"]
    cap: ScopeCap


class Key(EntryBase):
    """A signing key is added or retired, signed by a key that is valid before this entry."""

    kind: Literal["key"]
    action: Literal["add", "retire"]
    key: KeyText
    signature: Base64


Entry: TypeAlias = Genesis | Reserve | Commit | Abort | Withdraw | Policy | Key
ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def amount(text: str) -> Fraction:
    """The exact value of an ε or δ as entries hold it."""
    # The parser of specs bounds the length of a number; a sum of charges may exceed that bound.
    return Fraction(text)


@dataclass(frozen=True)
class Spent:
    """An amount of privacy, in exact rationals."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, charge: Spent) -> Spent:
        return Spent(self.epsilon + charge.epsilon, self.delta + charge.delta)

    def __neg__(self) -> Spent:
        return Spent(-self.epsilon, -self.delta)
