"""Signed for: the checkpoint of a ledger, and the proof that an entry is in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from release.budget.entries import Commit
from release.budget.state import Replayed, keys_at, read_entry
from release.errors import LedgerError
from release.records.hashes import decoded, encoded
from release.records.merkle import inclusion_proof, leaf_hash, root, root_from_inclusion
from release.records.signing import PublicKey, SignatureError, open_note

CHECKPOINT = "checkpoint"
_PROOF = "c2sp.org/tlog-proof@v1"


def checkpoint_text(origin: str, leaves: list[bytes]) -> str:
    """The three lines of a checkpoint (C2SP tlog-checkpoint)."""
    return f"{origin}\n{len(leaves)}\n{encoded(root(leaves))}\n"


def check_checkpoint(note: str, ledger: Replayed) -> int:
    """Hold a signed checkpoint against a ledger: the same one, or an older one of it; its size.

    Raises:
        LedgerError: it is not signed by a key that was valid then, speaks of another ledger, or of
            entries that are not, or no longer, the ledger's.
    """
    size = _size_of(note)
    if size > ledger.state.size:
        raise LedgerError(
            f"checkpoint: it speaks of {size} entries, the ledger has {ledger.state.size}: "
            "entries were taken away"
        )
    try:
        text = open_note(note, keys_at(ledger, size))
    except SignatureError as error:
        raise LedgerError(f"checkpoint: {error}") from error
    if text != checkpoint_text(ledger.state.origin, ledger.leaves[:size]):
        raise LedgerError("checkpoint: the ledger's entries are not those that were signed")
    return size


def read_checkpoint(path: Path) -> str:
    """The signed checkpoint in a file, as it stands there.

    Raises:
        LedgerError: there is none.
    """
    try:
        # Bytes first: reading as text would take one end of a line for another.
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: no checkpoint can be read there") from error


def _size_of(note: str) -> int:
    lines = note.split("\n")
    if len(lines) < 4 or lines[3] or not re.fullmatch(r"[1-9][0-9]{0,8}", lines[1], re.ASCII):
        raise LedgerError("checkpoint: not the three lines of a checkpoint")
    return int(lines[1])


def ledger_proof(ledger: Replayed, release_id: str, folder: Path) -> bytes:
    """``ledger.proof``: that the commit of a release is in the ledger (C2SP tlog-proof).

    The entry itself is the extra data. ``folder`` holds the checkpoint that signs for ``ledger``.

    Raises:
        LedgerError: the release is not committed, or the checkpoint is that of other entries.
    """
    done = ledger.state.committed.get(release_id)
    note = read_checkpoint(folder / CHECKPOINT)
    if done is None:
        raise LedgerError(f"{release_id!r} is not committed")
    if check_checkpoint(note, ledger) != ledger.state.size:
        raise LedgerError("checkpoint: not that of all entries")
    path = "".join(f"{encoded(one)}\n" for one in inclusion_proof(ledger.leaves, done.seq))
    extra = encoded(ledger.files[done.seq])
    return f"{_PROOF}\nextra {extra}\nindex {done.seq}\n{path}\n{note}".encode()


@dataclass(frozen=True)
class Proved:
    """What a ``ledger.proof`` says once it was checked: the entry, and the signed checkpoint."""

    entry: Commit
    checkpoint: str


def open_proof(data: bytes, keys: tuple[PublicKey, ...]) -> Proved:
    """Check a ``ledger.proof``: the entry is in the tree whose checkpoint one of the keys signed.

    Raises:
        LedgerError: it is not, or the file is not of that form.
    """
    pattern = (
        rf"{re.escape(_PROOF)}\nextra (?P<extra>[A-Za-z0-9+/=]+)\nindex (?P<index>0|[1-9][0-9]*)\n"
        r"(?P<path>(?:[A-Za-z0-9+/=]{44}\n){0,63})\n(?P<note>.*)"
    )
    try:
        match = re.fullmatch(pattern, data.decode("utf-8"), re.ASCII | re.DOTALL)
        if match is None:
            raise LedgerError("ledger.proof: not of the form of a tlog-proof")
        entry = read_entry(int(match["index"]), extra := decoded(match["extra"]))
        path = [decoded(line) for line in match["path"].split()]
        text = open_note(match["note"], keys)
        origin, size, digest = text.splitlines()
        found = root_from_inclusion(leaf_hash(extra), entry.seq, int(size), path)
    except (ValueError, SignatureError) as error:
        raise LedgerError(f"ledger.proof: {error}") from error
    if not isinstance(entry, Commit) or entry.seq != int(match["index"]):
        raise LedgerError("ledger.proof: the entry is no commit at its index")
    if encoded(found) != digest or origin not in {key.name for key in keys}:
        raise LedgerError("ledger.proof: the entry is not in the tree that was signed")
    return Proved(entry, match["note"])
