"""A snapshot: the state of a ledger after some entries, signed by the key that writes the ledger.

It is a cache beside the entries. Only the holder of the key believes it, because the holder signed
it; readers, auditors and verifiers replay every entry. A snapshot that is missing, damaged, signed
by another key or of another history is passed over, and the whole ledger is replayed.

The signed text begins with a line that is no origin of a ledger, so that it never passes for a
checkpoint, nor a checkpoint for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dp_release_verify.digests import decoded, encoded, sha256
from dp_release_verify.merkle import grown_peaks
from dp_release_verify.signatures import SignatureError
from release.budget.caps import ScopeCap
from release.budget.checkpoint import CHECKPOINT, check_checkpoint, read_checkpoint
from release.budget.entries import Entry, Reserve
from release.budget.snapshots.names import CHARGED, PUBLIC, REVISED, SKIPPED, WITHDRAWN, PastNames
from release.budget.state import Before, Replayed, State, entry_file, open_account, read_entry
from release.errors import ReleaseError
from release.records.models import canonical
from release.records.signing import PublicKey, Signer, open_note, sign_note

SNAPSHOT = "snapshot"
EVERY = 64
"""A snapshot is written when this many entries have followed the last one."""

_TITLE = "dp-release ledger state v1"


def snapshot_of(ledger: Replayed, signer: Signer) -> bytes:
    """The bytes of a snapshot of a ledger, which ends with the last entry of ``ledger``."""
    body = state_body(ledger)
    text = _text(ledger.state.origin, ledger.state.size, ledger.state.head, body)
    note = sign_note(text, signer, ledger.state.origin).encode()
    return b"%d\n" % len(note) + note + body


def state_body(ledger: Replayed) -> bytes:
    """What a snapshot says of the state: a line of JSON, then the records of past names."""
    state = ledger.state
    accounts = []
    for scope, account in state.accounts.items():
        # Of the account's own scope: what a reserve holds is given back to it alone.
        running = [entry for entry in state.running.values() if entry.scope == scope]
        cap = canonical(account.cap).decode()
        accounts.append({"cap": cap, "saved": account.saved(state.last_date, running)})
    peaks = grown_peaks(ledger.before.peaks, ledger.leaves)
    fields = {
        "accounts": accounts,
        "keys": list(map(str, state.keys)),
        "last_date": state.last_date,
        "peaks": [[height, encoded(digest)] for height, digest in peaks],
        "running": [canonical(entry).decode() for entry in state.running.values()],
        "store": state.store,
        "store_since": state.store_since,
    }
    marks = dict.fromkeys(state.in_vain, CHARGED) | dict.fromkeys(state.committed, PUBLIC)
    marks |= dict.fromkeys(state.revised, REVISED) | dict.fromkeys(state.skipped, SKIPPED)
    # Last: a release that was revised and then withdrawn is withdrawn.
    marks |= dict.fromkeys(state.withdrawn, WITHDRAWN)
    past = state.past.with_marks(marks)
    return json.dumps(fields, sort_keys=True).encode() + b"\n" + past.records


def read_recent(folder: Path, signer: Signer) -> Replayed | None:
    """A ledger from its snapshot and the entries after it; None where that is not to be had.

    The last entry before the snapshot has to be in the folder, unchanged, and the checkpoint has
    to sign for the snapshot's entries and those after it, all but the ones written since.
    """
    try:
        data = (folder / SNAPSHOT).read_bytes()
        ledger = _opened(data, folder, signer)
        if ledger is None:
            return None
        while (further := _next_file(folder, ledger.state.size)) is not None:
            entry = read_entry(ledger.state.size, further)
            ledger.state.follow(entry, further)
            ledger = ledger.extended(entry, further)
        # Raises where the checkpoint is older than the snapshot, whose entries are not held.
        check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
    # A full replay follows, and says what is wrong if it is the ledger. Another version of the
    # program may have signed other fields.
    except (OSError, ReleaseError, SignatureError, ValueError, KeyError, TypeError):
        return None
    return ledger


def _opened(data: bytes, folder: Path, signer: Signer) -> Replayed | None:
    length, _, rest = data.partition(b"\n")
    # No integer of unbounded length is read: int() refuses very long texts with a ValueError.
    note, body = rest[: int(length)], rest[int(length) :]
    text = note.decode().split("\n\n")[0] + "\n"
    _, origin, size, head, _ = text.splitlines()
    if open_note(note.decode(), (signer.public(origin),)) != _text(origin, int(size), head, body):
        return None
    last = (folder / entry_file(int(size) - 1)).read_bytes()
    if f"sha256:{sha256(last)}" != head:
        return None
    line, _, records = body.partition(b"\n")
    fields = json.loads(line)
    state = _state(fields, origin, int(size), head, PastNames(records))
    peaks = tuple((height, decoded(digest)) for height, digest in fields["peaks"])
    return Replayed(state, (), (), Before(int(size), last, peaks, tuple(state.keys)))


def _state(fields: dict[str, Any], origin: str, size: int, head: str, past: PastNames) -> State:
    state = State(size=size, head=head, origin=origin, past=past)
    state.last_date, state.store = fields["last_date"], fields["store"]
    state.store_since = fields["store_since"]
    state.keys = list(map(PublicKey.of, fields["keys"]))
    for text in fields["running"]:
        entry: Entry = read_entry(0, text.encode())
        if isinstance(entry, Reserve):
            state.running[entry.release_id] = entry
    for saved in fields["accounts"]:
        cap = ScopeCap.model_validate_json(saved["cap"])
        state.accounts[cap.scope] = open_account(cap)
        state.accounts[cap.scope].resume(saved["saved"])
    return state


def _text(origin: str, size: int, head: str, body: bytes) -> str:
    return f"{_TITLE}\n{origin}\n{size}\n{head}\n{sha256(body)}\n"


def _next_file(folder: Path, number: int) -> bytes | None:
    # By name, without listing the folder: its listing takes longer than everything else here.
    try:
        return (folder / entry_file(number)).read_bytes()
    except FileNotFoundError:
        return None
