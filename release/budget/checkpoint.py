"""The signed checkpoint of a ledger, and the proof that an entry is in the ledger."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify.digests import decoded, encoded
from dp_release_verify.merkle import inclusion_proof, leaf_hash, root_from_inclusion
from dp_release_verify.signatures import SignatureError
from release.budget.entries import Commit
from release.budget.state import Replayed, keys_at, read_entry, replay
from release.errors import LedgerError
from release.records.files import read_plain
from release.records.signing import PublicKey, open_note
from release.spec.named import names_of

CHECKPOINT = "checkpoint"
_PROOF = "c2sp.org/tlog-proof@v1"


def checkpoint_of(ledger: Replayed, size: int | None = None) -> str:
    """The three lines of the checkpoint over the first ``size`` entries, by default over all."""
    size = ledger.state.size if size is None else size
    return _text_over(ledger.state.origin, size, ledger.root_at(size))


def _text_over(origin: str, size: int, digest: bytes) -> str:
    return f"{origin}\n{size}\n{encoded(digest)}\n"


def check_checkpoint(note: str, ledger: Replayed) -> int:
    """Check a signed checkpoint against a ledger; returns the number of entries it signs for.

    The checkpoint may be older than the ledger.

    Raises:
        LedgerError: no key that was valid then has signed it, or it signs for another ledger or
            for entries that this ledger does not have.
    """
    # The three conditions of docs/design/format.md, 6.3.
    size = _size_of(note)
    if size > ledger.state.size:
        raise LedgerError(
            f"checkpoint: it signs for {size} entries, the ledger has {ledger.state.size}: "
            "entries were removed"
        )
    try:
        # The keys of that size: a key that was retired since has signed older checkpoints.
        text = open_note(note, keys_at(ledger, size))
    except SignatureError as error:
        raise LedgerError(f"checkpoint: {error}") from error
    if text != checkpoint_of(ledger, size):
        raise LedgerError("checkpoint: the ledger's entries are not those that were signed")
    return size


def read_checkpoint(path: Path) -> str:
    """The signed checkpoint in a file, unchanged and not yet verified.

    Raises:
        LedgerError: the file is missing or not UTF-8.
    """
    try:
        # Not read_text: it translates line ends, and the signature covers them.
        return read_plain(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: no checkpoint can be read") from error


def _size_of(note: str) -> int:
    # Read before the signature is checked: which keys were valid depends on the size.
    lines = note.split("\n")
    if len(lines) < 4 or lines[3] or not re.fullmatch(r"[1-9][0-9]{0,8}", lines[1], re.ASCII):
        raise LedgerError("checkpoint: not the three lines of a checkpoint")
    return int(lines[1])


def ledger_proof(ledger: Replayed, release_id: str, folder: Path) -> bytes:
    """The bytes of ``ledger.proof``: the commit of a release is in the ledger (C2SP tlog-proof).

    The entry itself is the extra data. ``folder`` holds the checkpoint that signs for ``ledger``.

    Raises:
        LedgerError: the release is not committed, or the checkpoint does not cover all entries.
    """
    if ledger.before.size and release_id not in ledger.state.committed:
        ledger = replay(folder)
    # From here on the form of docs/design/format.md, 6.4.
    entry = ledger.state.committed.get(release_id)
    note = read_checkpoint(folder / CHECKPOINT)
    if entry is None:
        raise LedgerError(f"{release_id!r} is not committed")
    if check_checkpoint(note, ledger) != ledger.state.size:
        raise LedgerError("checkpoint: it does not cover all entries")
    extra = encoded(ledger.file(entry.seq))
    lines = [_PROOF, f"extra {extra}", f"index {entry.seq}"]
    lines += map(encoded, inclusion_proof(ledger.leaves, entry.seq, ledger.before.peaks))
    # An empty line separates the proof from the note.
    return "\n".join([*lines, "", note]).encode()


@dataclass(frozen=True)
class Proved:
    """The content of a checked ``ledger.proof``: the entry, and the signed checkpoint."""

    entry: Commit
    checkpoint: str


def open_proof(data: bytes, keys: tuple[PublicKey, ...]) -> Proved:
    """Check a ``ledger.proof``: the entry is in the tree whose checkpoint one of the keys signed.

    Raises:
        LedgerError: it is not, or the file is malformed.
    """
    # At most 63 hashes: no deeper tree fits the sizes that a checkpoint can state.
    pattern = (
        rf"{re.escape(_PROOF)}\nextra (?P<extra>[A-Za-z0-9+/=]+)\nindex (?P<index>0|[1-9][0-9]*)\n"
        r"(?P<path>(?:[A-Za-z0-9+/=]{44}\n){0,63})\n(?P<note>.*)"
    )
    try:
        match = re.fullmatch(pattern, data.decode("utf-8"), re.ASCII | re.DOTALL)
        if match is None:
            raise LedgerError("ledger.proof: not a tlog-proof")
        entry = read_entry(int(match["index"]), extra := decoded(match["extra"]))
        path = [decoded(line) for line in match["path"].split()]
        text = open_note(match["note"], keys)
        origin, size, digest = text.splitlines()
        computed = root_from_inclusion(leaf_hash(extra), entry.seq, int(size), path)
    except (ValueError, SignatureError) as error:
        raise LedgerError(f"ledger.proof: {error}") from error
    if not isinstance(entry, Commit) or entry.seq != int(match["index"]):
        raise LedgerError("ledger.proof: the entry is not a commit at its index")
    if encoded(computed) != digest or origin not in names_of(keys):
        raise LedgerError("ledger.proof: the entry is not in the signed tree")
    return Proved(entry, match["note"])
