"""The entries of a ledger in the store that it names, where the copies of the ledger meet.

Every entry is put there under its number before it counts anywhere, by a put that fails where the
number is taken. So of two machines that write at once, one wins each number and the other begins
anew from what the winner has written.

An object is an entry and the checkpoint that a valid key signed over it and all before, in one
file: a machine that dies after its put leaves nothing that the others could not check. Nothing in
the store is trusted without that signature, and no object is ever overwritten.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from release.budget.checkpoint import check_checkpoint
from release.budget.entries import Entry, StoreEntry
from release.budget.state import Replayed, read_entry
from release.errors import LedgerError, ReleaseError, StorageError
from release.records.stores import Store, open_store

_ONCE = "ledger/once"


@dataclass(frozen=True)
class Claim:
    """The object of an entry: its bytes, and the signed checkpoint that ends with it.

    The checkpoint is empty where a later object signs for this one.
    """

    entry: bytes
    note: str

    @property
    def data(self) -> bytes:
        """The bytes of the object: the entry, a newline, and the checkpoint."""
        # Canonical JSON has no newline.
        return self.entry + b"\n" + self.note.encode()


def claim_name(number: int) -> str:
    """The name of the object of an entry."""
    return f"ledger/{number:08}.entry"


def read_claim(store: Store, number: int) -> Claim | None:
    """The object of an entry, not yet verified; None where the number is free.

    Raises:
        StorageError: the store does not answer.
        LedgerError: it is not UTF-8.
    """
    data = store.read(claim_name(number))
    if data is None:
        return None
    entry, _, note = data.partition(b"\n")
    try:
        return Claim(entry, note.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise LedgerError(f"{store.label}: entry {number} is not UTF-8 text") from error


@dataclass(frozen=True)
class Newest:
    """A ledger with the entries that its store has beyond it, and the checkpoint of the last.

    The checkpoint is None where the store has nothing beyond.
    """

    ledger: Replayed
    note: str | None


def named_store(ledger: Replayed) -> Store | None:
    """The store that a ledger names, if it names one.

    Raises:
        SpecError: this machine cannot open such a store.
    """
    return None if ledger.state.store is None else open_store(ledger.state.store, "ledger")


def newest(ledger: Replayed) -> Newest:
    """A ledger as its store has it: the same entries, or more that extend them. Writes nothing.

    Cost: two reads, and one more for each entry beyond.

    Raises:
        LedgerError: the store lacks the last entry, has another one, or has one beyond that does
            not follow or that no valid key has signed.
        StorageError: the store does not answer.
    """
    note = None
    while (store := named_store(ledger)) is not None:
        check_last(ledger, store)
        further = beyond(ledger, store)
        note = further.note or note
        if further.ledger.state.store == ledger.state.store:
            return Newest(further.ledger, note)
        # The ledger has moved, and goes on in another store.
        ledger = further.ledger
    return Newest(ledger, note)


def check_last(ledger: Replayed, store: Store) -> None:
    """Check that the store has the last entry of a ledger.

    Each entry holds the hash of the one before, so the last one vouches for all.

    Raises:
        LedgerError: it has none, or another one.
        StorageError: the store does not answer.
    """
    # Step 1 of a writer (docs/design/ledger-store.md).
    number = ledger.state.size - 1
    last = read_claim(store, number)
    if last is None:
        raise LedgerError(
            f"{store.label} lacks entry {number} of this ledger; if that store was emptied or put "
            "back: dp-release ledger store, on the machine with the longest ledger"
        )
    if last.entry != ledger.last:
        raise LedgerError(
            f"{store.label} has another entry {number} than this ledger: two ledgers of one name; "
            "keep the one that the store has: dp-release restore into a new folder"
        )


def beyond(ledger: Replayed, store: Store) -> Newest:
    """A ledger with the entries that a store has beyond it, each under a valid signature.

    Raises:
        LedgerError: an entry does not follow, or no valid key has signed it.
        StorageError: the store does not answer.
    """
    # Step 2 of a writer (docs/design/ledger-store.md).
    if read_claim(store, ledger.state.size) is None:
        return Newest(ledger, None)
    note, signed = None, ledger.state.size
    # Following changes a state, and the caller's ledger stays as it is.
    grown = replace(ledger, state=copy.deepcopy(ledger.state))
    while (claim := read_claim(store, grown.state.size)) is not None:
        number, named = grown.state.size, grown.state.store
        try:
            entry = read_entry(number, claim.entry)
            grown.state.follow(entry, claim.entry)
            grown = grown.extended(entry, claim.entry)
            if claim.note:
                note, signed = claim.note, check_checkpoint(claim.note, grown)
        except ReleaseError as error:
            raise LedgerError(f"{store.label}: entry {number} is refused ({error})") from error
        # The ledger has moved: what follows is in another store.
        if named is not None and grown.state.store != named:
            break
    if signed != grown.state.size:
        raise LedgerError(
            f"{store.label}: entry {grown.state.size - 1} is not signed; somebody without the key "
            f"has written it: remove {claim_name(grown.state.size - 1)}"
        )
    return Newest(grown, note)


def put_claim(store: Store | None, entry: Entry, claim: Claim) -> bool:
    """Take the number of an entry in the store, if any; whether it is this machine's now.

    The entry that names a store is put in that store too, where it is the first.

    Raises:
        LedgerError: the store that the entry names has another entry of this number.
        StorageError: a store does not answer; it may have the entry.
    """
    # Step 3 of a writer (docs/design/ledger-store.md).
    name = claim_name(entry.seq)
    new = open_store(entry.uri, "--store") if isinstance(entry, StoreEntry) else None
    # Before the number is taken: a ledger must not move to where it cannot go on.
    if new is not None and new.read(name) not in (None, claim.data):
        raise _another_ledger(new, entry)
    if store is not None and not store.create(name, claim.data):
        return False
    if new is not None and not new.create(name, claim.data):
        raise _another_ledger(new, entry)
    return True


def _another_ledger(store: Store, entry: Entry) -> LedgerError:
    return LedgerError(
        f"{store.label} has another entry {entry.seq}, of another ledger or copy; name a folder "
        "that has none"
    )


def fill(ledger: Replayed, note: str, store: Store) -> None:
    """Put into a store what it lost of a ledger, from the entry that names it; ``note`` signs all.

    Raises:
        LedgerError: the store has another entry of some number.
        StorageError: the store does not answer.
    """
    last = ledger.state.size - 1
    # The last one first. A writer takes a number only where it finds the one before, so that
    # nobody takes one of these for free, even if this is cut off.
    for number in range(last, ledger.state.store_since - 1, -1):
        claim = Claim(ledger.files[number], note if number == last else "")
        if store.create(claim_name(number), claim.data):
            continue
        stored = read_claim(store, number)
        if stored is None or stored.entry != claim.entry:
            raise _another_ledger(store, ledger.entries[number])


def check_creates_once(store: Store) -> None:
    """Check that a store refuses a second object under the name of the first.

    Raises:
        StorageError: it does not, so that it cannot decide between two machines.
    """
    store.create(_ONCE, b"first")
    if store.create(_ONCE, b"second"):
        raise StorageError(
            f"{store.label} writes objects over; a ledger needs a store with conditional puts"
        )
