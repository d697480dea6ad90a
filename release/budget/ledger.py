"""The ledger: what each scope has spent, in numbered entries whose change cannot go unnoticed.

Each entry is one canonical JSON file that holds the SHA-256 of the previous one; a signed
checkpoint holds the root of a Merkle tree over all entries (docs/design/format.md). The previous
entries decide which entries may come next: :class:`State` holds these rules, both for writing and
for replaying.

A release first *reserves* its charge, durably, before any noise is drawn. It ends in a *commit*, or
in an *abort*, which refunds the charge only if nothing was drawn. A *withdrawn* release has been
public, so its charge stays. A *policy* sets the cap of a scope. A *key* adds or retires a signing
key and is signed by a key that is valid before it. A *store* names the store where the copies of
the ledger meet (:mod:`release.budget.claims`).

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
from release.budget.claims import named_store, newest
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
    StoreEntry,
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
    follow_store,
    new_run,
    policy,
    read_ledger,
    reserve,
    today,
    withdraw,
)

__all__ = ["CHECKPOINT", "Proved", "check_checkpoint", "ledger_proof", "open_proof"]
__all__ += ["read_checkpoint"]
__all__ += ["ENTRY", "Abort", "Commit", "Entry", "Genesis", "Key", "PeriodCap", "Policy"]
__all__ += ["Reserve", "ScopeCap", "Spent", "StoreEntry", "Withdraw"]
__all__ += ["follow_store", "named_store", "new_run", "newest"]
__all__ += ["Replayed", "Spending", "State", "keys_at", "keys_ever", "replay", "spending"]
__all__ += ["Ledger", "Make", "abort", "change_key", "commit", "create_ledger", "policy"]
__all__ += ["read_ledger", "reserve", "today", "withdraw"]
