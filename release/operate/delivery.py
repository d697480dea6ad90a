"""Delivery: releases and their ledger copied to a store, and brought back from there.

The ledger and the releases of ``OUT`` are the original. What is in a store is a copy and a witness:
a machine that was put back in time finds entries there that its own ledger does not have.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from release.budget.ledger import (
    CHECKPOINT,
    check_checkpoint,
    keys_at,
    read_checkpoint,
    read_ledger,
    replay,
)
from release.budget.state import entry_file, is_entry
from release.bundle.statements import SUMS
from release.errors import LedgerError, StorageError
from release.records.files import make_folder, storage_errors, sync, sync_tree, write
from release.records.hashes import sha256
from release.records.signing import PublicKey
from release.tables.stores import Store
from release.verification.provenance import Trust
from release.verification.verifier import verify

_LEDGER, _PUBLIC = "ledger", "public"


def deliver(public: Path, store: Store) -> bool:
    """Copy a published release to a store; False where it was there already.

    Cost: each file is written once and read back once.

    Raises:
        StorageError: another release has its name there, or the store fails; run it again.
    """
    name = f"{_PUBLIC}/{public.name}"
    sums = _local(public / SUMS)
    there = store.read(f"{name}/{SUMS}")
    if there == sums:
        return False
    if there is not None:
        raise StorageError(f"{store.told}: another {public.name!r} is there already")
    files = [line[66:] for line in sums.decode().splitlines()]
    if store.renames:
        if Path(store.path(name)).exists():
            raise StorageError(f"{store.told}: {name} is there without {SUMS}; take it away")
        _deliver_by_rename(public, store, [*files, SUMS])
        return True
    for file in files:
        store.put(f"{name}/{file}", _local(public / file))
    store.put(f"{name}/{SUMS}", sums)
    return True


def _deliver_by_rename(public: Path, store: Store, files: list[str]) -> None:
    """Copy the files beside what readers look at, and rename the folder into its place."""
    target = Path(store.path(f"{_PUBLIC}/{public.name}"))
    with storage_errors(target, "the release"):
        make_folder(target.parent, 0o755)
        # A name of its own: two deliveries at once must not write into one folder.
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=store.root))
        try:
            for file in files:
                write(part / file, _local(public / file))
            sync_tree(part)
            part.chmod(0o755)
            part.rename(target)
            sync(target.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def deliver_ledger(folder: Path, store: Store) -> None:
    """Copy the entries of a ledger to a store, and then the checkpoint that signs for them.

    Raises:
        LedgerError: the store knows of entries that this ledger does not have, or has others.
        StorageError: the store fails; run it again.
    """
    check_witness(folder, store)
    ledger = read_ledger(folder)
    note = _local(folder / CHECKPOINT)
    there = store.sizes(_LEDGER)
    for number, data in enumerate(ledger.files):
        name = entry_file(number)
        if name not in there:
            store.put(f"{_LEDGER}/{name}", data)
    store.replace(f"{_LEDGER}/{CHECKPOINT}", note)


def check_witness(folder: Path, store: Store) -> None:
    """See by what is in a store that this machine was not put back in time.

    The signed checkpoint there has to be of this ledger, and so has every entry beyond it: a
    delivery may have been cut off before its checkpoint.

    Raises:
        LedgerError: the store has entries that this ledger has not, or has otherwise.
        StorageError: the store does not answer.
    """
    there = {name: size for name, size in store.sizes(_LEDGER).items() if is_entry(name)}
    note = store.read(f"{_LEDGER}/{CHECKPOINT}")
    if note is None and not there:
        return
    try:
        ledger = replay(folder)
        signed = 0 if note is None else check_checkpoint(_text(note), ledger)
        for name, size in sorted(there.items()):
            number = int(name.removesuffix(".json"))
            own = ledger.files[number] if number < len(ledger.files) else None
            if own is None or len(own) != size:
                raise LedgerError(f"{name} is not an entry of this ledger")
            if number >= signed and store.read(f"{_LEDGER}/{name}") != own:
                raise LedgerError(f"{name} is another entry than this ledger's")
    except LedgerError as error:
        raise LedgerError(
            f"{store.told} holds what this ledger does not agree with ({error}); if this machine "
            "was put back in time: dp-release restore"
        ) from error


def _text(note: bytes) -> str:
    try:
        return note.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LedgerError("checkpoint: not text") from error


@dataclass(frozen=True)
class Restored:
    """What came back from a store: entries of the ledger, and releases by name."""

    entries: int
    releases: tuple[str, ...]


def restore(store: Store, out: Path, trusted: PublicKey | None = None) -> Restored:
    """Bring back from a store what ``out`` has lost: entries of its ledger, and public folders.

    What ``out`` has stays as it is, and has to be the beginning of what the store has. Where it has
    no ledger at all, ``trusted`` has to have signed the one in the store. The auditor bundles are
    confidential and in no store; restore them from a backup.

    Raises:
        LedgerError: there is nothing in ``out`` to go on from, or the two do not agree.
        StorageError: a copy is not whole.
    """
    folder = out / _LEDGER
    aside = out / ".restored"
    try:
        if trusted is None and not folder.exists():
            raise LedgerError(f"no ledger in {out} to go on from; say whose to trust: --trust KEY")
        own = replay(folder).files if folder.exists() else ()
        with storage_errors(out, "what is restored"):
            shutil.rmtree(aside, ignore_errors=True)
            names = sorted(filter(is_entry, store.sizes(_LEDGER)))
            for name in [*names, CHECKPOINT]:
                data = store.read(f"{_LEDGER}/{name}")
                if data is None:
                    raise LedgerError(f"{store.told}: no ledger was delivered there")
                write(aside / _LEDGER / name, data)
        # Entries may have been delivered for which nobody has signed there yet.
        kept = _signed_for(aside / _LEDGER)
        copied = read_ledger(aside / _LEDGER)
        if trusted and trusted not in keys_at(copied, kept):
            raise LedgerError(f"{store.told}: the key that is trusted does not sign for its ledger")
        both = min(len(own), len(copied.files))
        if copied.files[:both] != own[:both]:
            raise LedgerError(f"{store.told} has not the ledger that this one is the beginning of")
        with storage_errors(out, "what is restored"):
            make_folder(folder, 0o755)
            for number in range(len(own), kept):
                (aside / _LEDGER / entry_file(number)).rename(folder / entry_file(number))
            if kept > len(own):
                (aside / _LEDGER / CHECKPOINT).replace(folder / CHECKPOINT)
                sync(folder)
            state = replay(folder).state
            wanted = tuple(name for name in state.committed if name not in state.withdrawn)
            releases = tuple(_fetched(store, out, aside, wanted))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Restored(max(0, kept - len(own)), releases)


def _signed_for(folder: Path) -> int:
    """Take away the entries at the end that the checkpoint does not speak of; how many are left."""
    size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), replay(folder))
    for path in folder.glob("*.json"):
        if int(path.stem) >= size:
            path.unlink()
    return size


def _fetched(store: Store, out: Path, aside: Path, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        final = out / _PUBLIC / name
        if final.exists() or store.read(f"{_PUBLIC}/{name}/{SUMS}") is None:
            continue
        fetch(store, name, aside / name)
        # Its sums are the store's; that it is the release of the ledger its signatures say.
        verify(aside / name, None, Trust(out / _LEDGER))
        make_folder(final.parent, 0o755)
        (aside / name).rename(final)
        sync(final.parent)
        yield name


def fetch(store: Store, name: str, folder: Path) -> None:
    """Copy a delivered release into a new folder, and check its sums.

    Raises:
        StorageError: it is not there, or not whole.
    """
    sums = store.read(f"{_PUBLIC}/{name}/{SUMS}")
    if sums is None:
        raise StorageError(f"{store.told}: {name!r} is not there, or its delivery has not ended")
    try:
        _fetch(store, name, sums, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _fetch(store: Store, name: str, sums: bytes, folder: Path) -> None:
    with storage_errors(folder, "the release"):
        for line in sums.decode("utf-8", "replace").splitlines():
            digest, file = line[:64], line[66:]
            inside = file and not PurePosixPath(file).is_absolute() and "\0" not in file
            if not inside or ".." in PurePosixPath(file).parts:
                raise StorageError(f"{store.told}: {name}/{SUMS} is not a list of its files")
            data = store.read(f"{_PUBLIC}/{name}/{file}")
            if data is None or sha256(data) != digest:
                raise StorageError(f"{store.told}: {name}/{file} is not what its sum says")
            write(folder / file, data)
        write(folder / SUMS, sums)


def _local(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read") from error
