"""The ledger: what each scope has spent, in numbered entries whose change cannot go unnoticed.

Each entry is one canonical JSON file that holds the SHA-256 of the previous one; a signed
checkpoint holds the root of a Merkle tree over all entries (docs/design/format.md). The previous
entries decide which entries may come next: :class:`State` holds these rules, both for writing and
for replaying.

A release first *reserves* its charge, durably, before any noise is drawn. It ends in a *commit*, or
in an *abort*, which refunds the charge only if nothing was drawn. A *withdrawn* release has been
public, so its charge stays. A *skipped* one will not be made. A
*revised* one stays, and a newer version takes its place. A *policy* sets the cap of a scope.
A *key* adds or retires a signing key and is signed by a key that is valid before it. A *store*
names the store where the copies of the ledger meet (:mod:`release.budget.claims`).

A scope has a cap for its lifetime, and a rule by which charges count towards it
(:mod:`release.budget.rules.accounts`). With ``basic`` they add up, in exact rationals, and there
may be a cap for each calendar day, month or year of the entries' dates. With ``pld`` releases take
the slots of a plan, and with ``renyi_filter`` one order bounds what is chosen as one goes.
"""

from release.budget.caps import PeriodCap, PlannedSlot, ScopeCap, SlotProfile
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
    Policy,
    ReleaseCharge,
    Reserve,
    Revise,
    Skip,
    Spent,
    StoreEntry,
    Withdraw,
)
from release.budget.rules.accounts import Account
from release.budget.spending import Spending, spending
from release.budget.state import Replayed, State, keys_at, keys_ever, replay
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
    read_as_writer,
    read_ledger,
    reserve,
    revise,
    skip,
    today,
    withdraw,
)

__all__ = ["CHECKPOINT", "Proved", "check_checkpoint", "ledger_proof", "open_proof"]
__all__ += ["read_checkpoint"]
__all__ += ["ENTRY", "Abort", "Commit", "Entry", "Genesis", "Key", "PeriodCap", "Policy"]
__all__ += ["Account", "PlannedSlot", "ReleaseCharge", "SlotProfile"]
__all__ += ["Reserve", "Revise", "ScopeCap", "Skip", "Spent", "StoreEntry", "Withdraw"]
__all__ += ["follow_store", "named_store", "new_run", "newest"]
__all__ += ["Replayed", "Spending", "State", "keys_at", "keys_ever", "replay", "spending"]
__all__ += ["Ledger", "Make", "abort", "change_key", "commit", "create_ledger", "policy"]
__all__ += ["read_as_writer", "read_ledger", "reserve", "revise", "skip", "today", "withdraw"]
