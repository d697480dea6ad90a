"""Drills of ``dp-release doctor --drill``: what an office does once in years, tried on copies.

A key is replaced in a copy of the ledger, and a lost output folder is restored from the store. Both
happen in a private scratch folder that is removed at the end; ``OUT``, its ledger and the store are
only read. What the true key signs there never leaves that folder: entries of a copy that nobody
follows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.ledger import CHECKPOINT, Ledger, change_key, read_ledger, today
from release.budget.state import is_entry
from release.bundle.publish import LEDGER
from release.errors import LedgerError, ReleaseError
from release.operate.delivery import restore
from release.operate.findings import Finding, fault, look, one_line, well
from release.operate.operations import Place, public_names
from release.records.keys.files import FileSigner
from release.records.keys.outside import read_key
from release.records.signing import Signer
from release.records.stores import Store
from release.verification.evidence import Trust
from release.verification.verifier import verify


def drills(place: Place) -> Iterator[Finding]:
    """Try the rotation of the key and, where there is a store, the restore of everything.

    Cost: a copy of the ledger, and of all that the store has; every release there is verified.
    """
    if place.key is None or not (place.out / LEDGER).is_dir():
        yield look("drill", "a drill needs a ledger and its key; give --key")
        return
    signer = read_key(place.key)
    yield _tried("rotation", partial(rotate, place, signer))
    if place.store is None:
        yield look("drill", "restore: no store to restore from; give --to")
    else:
        yield _tried("restore", partial(restore_all, place.out, place.store, signer))


def _tried(name: str, drill: Callable[[Path], str]) -> Finding:
    # mkdtemp makes the folder for its owner alone.
    scratch = Path(tempfile.mkdtemp(prefix="dp-release-drill-"))
    try:
        return well("drill", f"{name}: {drill(scratch)}")
    except ReleaseError as error:
        return fault("drill", f"{name}: {one_line(error)}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def rotate(place: Place, signer: Signer, scratch: Path) -> str:
    """Replace the key of a copy of the ledger; returns what was seen.

    Raises:
        LedgerError: the new key does not sign, or the old one still does.
        VerificationError: a public release does not verify against the copy.
    """
    folder, day = scratch / LEDGER, today().isoformat()
    _copy_entries(place.out / LEDGER, folder)
    # A copy never takes entries of the store over, and never sends any there.
    own = Ledger(folder, signer, is_copy=True)
    new = Ledger(folder, FileSigner(Ed25519PrivateKey.generate()), is_copy=True)
    origin = read_ledger(folder).state.origin
    own.append(change_key("add", new.signer.public(origin), signer, day))
    new.append(change_key("retire", signer.public(origin), new.signer, day))
    _check_refused(own)
    # A ledger names its keys in entries: what the old key signed before it retired still holds.
    names = public_names(place.out)
    for name in names:
        verify(place.out / "public" / name, None, Trust(folder))
    return f"a new key signs, the old one is refused, and {len(names)} releases still verify"


def _check_refused(retired: Ledger) -> None:
    try:
        retired.recover()
    except LedgerError:
        return
    raise LedgerError("the retired key can still write the ledger")


def restore_all(out: Path, store: Store, signer: Signer, scratch: Path) -> str:
    """Restore an empty output folder from the store; returns what came back.

    Raises:
        LedgerError: the store has no ledger, another one, or an older one.
        StorageError, VerificationError: a release there is incomplete or does not verify.
    """
    own = read_ledger(out / LEDGER)
    came = restore(store, scratch / "out", signer.public(own.state.origin))
    behind = own.state.size - came.entries
    if behind > 0:
        raise LedgerError(f"{behind} entries are not in the store yet; dp-release deliver")
    lost = set(public_names(out)) - own.state.withdrawn - set(came.releases)
    if lost:
        raise LedgerError(f"{min(lost)!r} is not in the store; dp-release deliver")
    return f"{came.entries} entries and {len(came.releases)} releases came back, and verify"


def _copy_entries(source: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    # The snapshot stays behind, so that every entry is replayed.
    for path in source.iterdir():
        if is_entry(path.name) or path.name == CHECKPOINT:
            shutil.copyfile(path, folder / path.name)
