"""A witness of a ledger: another office, which signs that the ledger only grew.

The witness checks that the ledger is intact, and that it extends what this witness signed last. It
keeps that checkpoint itself: a curator who showed it another history would be found out. Then its
line is added to the checkpoint of the ledger (:mod:`release.records.keys.cosignatures`).
"""

from __future__ import annotations

import time
from pathlib import Path

from dp_release_verify.digests import sha256
from dp_release_verify.signatures import SignatureError
from release.budget.checkpoint import CHECKPOINT, check_checkpoint, read_checkpoint
from release.budget.store import read_ledger, replace_checkpoint
from release.errors import LedgerError, SpecError
from release.records.files import make_folder, storage_errors, write_anew
from release.records.keys.cosignatures import WitnessKey, cosignatures, cosigned, witness_key
from release.records.signing import Signer


def cosign_ledger(folder: Path, signer: Signer, name: str, memory: Path) -> tuple[WitnessKey, int]:
    """Add a witness's line to the checkpoint of a ledger; its public key, and the entries it saw.

    Args:
        folder: the ledger, or a copy of it.
        signer: the witness's own key.
        name: the witness's name.
        memory: the folder in which this witness keeps what it signed last, one file a ledger.

    Raises:
        LedgerError: the ledger is not intact, or does not extend what this witness signed last.
        SpecError: the name is none, or the key is the ledger's own.
        StorageError: a file cannot be written.
    """
    try:
        witness = witness_key(signer, name)
    except SignatureError as error:
        raise SpecError("--name", "write a name without spaces and plus signs") from error
    ledger = read_ledger(folder)
    if any(key.raw == witness.raw for key in ledger.state.keys):
        raise SpecError("--key", "it signs for this ledger itself; a witness has a key of its own")
    last = memory / f"{sha256(ledger.state.origin.encode())[:16]}.checkpoint"
    if last.exists():
        try:
            check_checkpoint(read_checkpoint(last), ledger)
        except LedgerError as error:
            raise LedgerError(
                f"{folder} does not extend what this witness signed last ({error}); ask the "
                f"curator, and keep {last}"
            ) from error
    note = read_checkpoint(folder / CHECKPOINT)
    size = check_checkpoint(note, ledger)
    try:
        if not cosignatures(note, (witness,)):
            note = cosigned(note, signer, name, int(time.time()))
    except SignatureError as error:
        raise LedgerError(f"{folder}: a line of this witness is wrong ({error})") from error
    # Remembered first: a line that is out must never be forgotten.
    with storage_errors(memory, "what the witness signed"):
        make_folder(memory, 0o700)
        write_anew(last, note.encode())
    replace_checkpoint(folder, note, size)
    return witness, size
