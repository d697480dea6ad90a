"""The ledger: who has spent how much, in numbered entries that nobody can change unseen.

Each entry is one canonical JSON file that holds the SHA-256 of the one before; a signed checkpoint
holds the root of a Merkle tree over all of them (docs/design/format.md). What an entry may say
follows from those before it, and :class:`State` says what that is: writing an entry and replaying a
ledger go through the same rules, so they cannot drift apart.

A release first *reserves* its charge, durably, before any noise is drawn. It ends in a *commit*, or
in an *abort*, which gives the charge back only if nothing was drawn. A *withdrawn* release has been
public, so its charge stays. A *policy* sets the cap of a scope, a *key* adds or retires a signing
key and is signed by one that is valid then.

Charges add up (basic composition), in exact rationals. A scope has a cap for its lifetime, and may
have one for each calendar day, month or year of the entries' dates.
"""

from release.budget.checkpoint import (
    CHECKPOINT,
    Proved,
    check_checkpoint,
    ledger_proof,
    open_proof,
    read_checkpoint,
)
from release.budget.entries import (
    ENTRY,
    Abort,
    Commit,
    Entry,
    Genesis,
    Key,
    PeriodCap,
    Policy,
    Reserve,
    ScopeCap,
    Spent,
    Withdraw,
)
from release.budget.state import Replayed, Spending, State, keys_at, keys_ever, replay, spending
from release.budget.store import (
    Ledger,
    Make,
    abort,
    change_key,
    commit,
    create_ledger,
    policy,
    read_ledger,
    reserve,
    today,
    withdraw,
)

__all__ = [
    "CHECKPOINT",
    "ENTRY",
    "Abort",
    "Commit",
    "Entry",
    "Genesis",
    "Key",
    "Ledger",
    "Make",
    "PeriodCap",
    "Policy",
    "Proved",
    "Replayed",
    "Reserve",
    "ScopeCap",
    "Spending",
    "Spent",
    "State",
    "Withdraw",
    "abort",
    "change_key",
    "check_checkpoint",
    "commit",
    "create_ledger",
    "keys_at",
    "keys_ever",
    "ledger_proof",
    "open_proof",
    "policy",
    "read_checkpoint",
    "read_ledger",
    "replay",
    "reserve",
    "spending",
    "today",
    "withdraw",
]
