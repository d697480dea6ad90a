"""Delivery: copying releases and their ledger to a store, and restoring them from there.

The ledger and the releases of ``OUT`` are the original. A store holds a copy, and is a witness: a
machine that was put back to an older state finds entries there that its own ledger does not have.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dp_release_verify.digests import SIGNED, SUMS, sha256
from release.budget.claims import Newest
from release.budget.ledger import (
    CHECKPOINT,
    Replayed,
    check_checkpoint,
    follow_store,
    keys_at,
    newest,
    read_as_writer,
    read_checkpoint,
    read_ledger,
    replay,
)
from release.budget.state import entry_file, is_entry
from release.budget.store import recent_or_whole
from release.errors import LedgerError, StorageError
from release.records.files import (
    PART,
    locked_folder,
    make_folder,
    storage_errors,
    sync,
    sync_tree,
    write,
)
from release.records.signing import PublicKey, Signer
from release.records.stores import Store
from release.verification.evidence import Trust
from release.verification.verifier import verify

_LEDGER, _PUBLIC = "ledger", "public"


def deliver(public: Path, store: Store) -> bool:
    """Copy a published release to a store; False where the store had it already.

    Cost: each file is written once and read back once.

    Raises:
        StorageError: the store has another release of this name, or fails; run it again.
    """
    name = f"{_PUBLIC}/{public.name}"
    sums = _local(public / SUMS)
    if _has(store, name, sums):
        return False
    signatures = [file for file in SIGNED if (public / file).exists()]
    # The sums come last: a release counts as delivered once they are there.
    files = [*digests_of(sums), *signatures, SUMS]
    if store.renames:
        return _deliver_by_rename(public, store, files)
    for file in files:
        store.put(f"{name}/{file}", _local(public / file))
    return True


def _has(store: Store, name: str, sums: bytes) -> bool:
    """Whether a store has a release with these sums, complete.

    Raises:
        StorageError: it has another one of this name, or a folder that is no release.
    """
    # Before the sums are read: a folder that another machine renames into place has them at once.
    is_there = store.renames and Path(store.path(name)).exists()
    stored = store.read(f"{name}/{SUMS}")
    if stored is None and is_there:
        raise StorageError(f"{store.label}: {name} is there without {SUMS}; remove it")
    if stored is not None and stored != sums:
        raise StorageError(f"{store.label}: another {Path(name).name!r} is there already")
    return stored is not None


def digests_of(sums: bytes) -> dict[str, str]:
    """The SHA-256 of each file that ``SHA256SUMS`` lists; nothing is checked."""
    digests = {}
    for line in sums.decode("utf-8", "replace").splitlines():
        # 64 hexadecimal digits, two spaces, the name.
        digests[line[66:]] = line[:64]
    return digests


def _deliver_by_rename(public: Path, store: Store, files: list[str]) -> bool:
    """Copy a release aside and rename it into place; False where another machine was first."""
    name = f"{_PUBLIC}/{public.name}"
    target = Path(store.path(name))
    with storage_errors(target, "the release"):
        make_folder(target.parent, 0o755)
        # A fresh name, because two deliveries at once must not write into one folder.
        part = Path(tempfile.mkdtemp(prefix=PART, dir=store.root))
        try:
            for file in files:
                write(part / file, _local(public / file))
            sync_tree(part)
            part.chmod(0o755)
            try:
                part.rename(target)
            except OSError:
                # A release that is there by now is whole, and the same: nothing is lost.
                if not _has(store, name, (part / SUMS).read_bytes()):
                    raise
                return False
            sync(target.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return True


def deliver_ledger(folder: Path, store: Store, signer: Signer | None = None) -> None:
    """Copy the entries of a ledger to a store, and then the checkpoint that signs for them.

    With the ledger's key, its snapshot is gone on from instead of replaying every entry.

    Raises:
        LedgerError: the store has entries that this ledger does not have, or different ones.
        StorageError: the store fails; run it again.
    """
    while True:
        further = _compared(folder, read_as_writer(folder, signer), store)
        note = _local(folder / CHECKPOINT) if further.note is None else further.note.encode()
        stored = store.sizes(_LEDGER)
        for number in range(further.ledger.state.size):
            name = entry_file(number)
            # The comparison has already read the entries that are there.
            if name not in stored:
                store.put(f"{_LEDGER}/{name}", _entry(folder, further.ledger, number))
        store.replace(f"{_LEDGER}/{CHECKPOINT}", note)
        # Another machine may have delivered a longer ledger before this checkpoint replaced its.
        if sum(map(is_entry, store.sizes(_LEDGER))) <= further.ledger.state.size:
            return


def _entry(folder: Path, ledger: Replayed, number: int) -> bytes:
    # What another machine has written is not in this folder yet.
    if number >= ledger.before.size:
        return ledger.file(number)
    return _local(folder / entry_file(number))


def check_witness(folder: Path, store: Store, signer: Signer | None = None) -> None:
    """Check against a store that this ledger was not put back to an older state.

    The signed checkpoint in the store has to be one of this ledger, and so has every entry beyond
    the checkpoint: a delivery may have been interrupted before it wrote its checkpoint. Entries
    that the ledger's own store has beyond this folder count as of this ledger.

    Raises:
        LedgerError: the store has entries that this ledger does not have, or different ones.
        StorageError: the store does not answer.
    """
    _compared(folder, recent_or_whole(folder, signer), store)


def _compared(folder: Path, own: Replayed, store: Store) -> Newest:
    """The ledger as its own store has it, after comparing it with the copy in ``store``."""
    sizes = store.sizes(_LEDGER)
    entries = sorted(filter(is_entry, sizes))
    note = store.read(f"{_LEDGER}/{CHECKPOINT}")
    if own.before.size and (note is None or _stated_size(note) < own.before.size):
        # The store has less than the snapshot stands for.
        own = replay(folder)
    # After the listing: what other machines had delivered by then is in the ledger's own store.
    further = newest(own)
    ledger = further.ledger
    try:
        signed = 0 if note is None else check_checkpoint(_text(note), ledger)
        for name in entries:
            number = int(name.removesuffix(".json"))
            if number < ledger.before.size:
                is_ours = _size(folder / name) == sizes[name]
            else:
                is_ours = number < ledger.state.size and len(ledger.file(number)) == sizes[name]
            if not is_ours:
                raise LedgerError(f"{name} is not an entry of this ledger")
            # Below that the checkpoint vouches; comparing bytes would cost a call for each entry.
            if number >= signed and store.read(f"{_LEDGER}/{name}") != ledger.file(number):
                raise LedgerError(f"{name} differs from this ledger's entry")
    except LedgerError as error:
        raise LedgerError(
            f"{store.label} does not agree with this ledger ({error}); if this machine was put "
            "back to an older state: dp-release restore"
        ) from error
    return further


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _stated_size(note: bytes) -> int:
    """The size in a checkpoint that is not verified yet; 0 where it states none."""
    lines = note.split(b"\n")
    return int(lines[1]) if len(lines) > 1 and re.fullmatch(rb"[0-9]{1,9}", lines[1]) else 0


def _text(note: bytes) -> str:
    try:
        return note.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LedgerError("checkpoint: not UTF-8 text") from error


@dataclass(frozen=True)
class Restored:
    """The result of a restore: how many entries of the ledger came back, and which releases."""

    entries: int
    releases: tuple[str, ...]


def restore(store: Store, out: Path, trusted: PublicKey | None = None) -> Restored:
    """Restore from a store what ``out`` has lost: entries of its ledger, and public folders.

    The files in ``out`` stay as they are. Its ledger has to be the beginning of the ledger in the
    store; where it has none, ``trusted`` has to have signed the ledger in the store. The auditor
    bundles are confidential and in no store; restore them from a backup.

    Raises:
        LedgerError: ``out`` has neither a ledger nor a trusted key, or the two ledgers disagree.
        StorageError: a copy is incomplete.
    """
    folder = out / _LEDGER
    if trusted is None and not folder.exists():
        raise LedgerError(f"no ledger in {out} to go on from; say whose to trust: --trust KEY")
    own = replay(folder).files if folder.exists() else ()
    with _aside(out) as aside:
        with storage_errors(out, "what is restored"):
            _copy_ledger(store, aside / _LEDGER)
        size = _remove_unsigned(aside / _LEDGER)
        if trusted and trusted not in keys_at(read_ledger(aside / _LEDGER), size):
            raise LedgerError(f"{store.label}: the trusted key does not sign for its ledger")
        _check_begins(store, own, read_ledger(aside / _LEDGER))
        # The copy ends with the last delivery; the store that the ledger names has every entry.
        copied = follow_store(aside / _LEDGER)
        _check_begins(store, own, copied)
        size = copied.state.size
        with storage_errors(out, "what is restored"):
            _add_entries(aside / _LEDGER, folder, len(own), size)
    return Restored(max(0, size - len(own)), restore_releases(store, out))


def restore_releases(store: Store, out: Path) -> tuple[str, ...]:
    """Copy from a store the releases that the ledger in ``out`` commits and ``out`` lacks.

    Raises:
        ReleaseError: one of them does not verify against the ledger.
        StorageError: the store does not answer, or a copy is incomplete.
    """
    with _aside(out) as aside, storage_errors(out, "what is restored"):
        return tuple(_restored_releases(store, out, aside))


@contextmanager
def _aside(out: Path) -> Iterator[Path]:
    """A private folder for what is on its way back, for one process at a time, and empty."""
    aside = out / ".restored"
    with storage_errors(out, "what is restored"):
        descriptor = locked_folder(aside, lambda descriptor: fcntl.flock(descriptor, fcntl.LOCK_EX))
    try:
        # A process that was killed leaves its copies.
        for stray in aside.iterdir():
            shutil.rmtree(stray, ignore_errors=True)
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        os.close(descriptor)


def _check_begins(store: Store, own: tuple[bytes, ...], copied: Replayed) -> None:
    common = min(len(own), len(copied.files))
    if copied.files[:common] != own[:common]:
        raise LedgerError(f"{store.label}: this ledger is not the beginning of the one there")


def _copy_ledger(store: Store, folder: Path) -> None:
    for name in [*filter(is_entry, store.sizes(_LEDGER)), CHECKPOINT]:
        data = store.read(f"{_LEDGER}/{name}")
        if data is None:
            raise LedgerError(f"{store.label}: no ledger was delivered there")
        write(folder / name, data)


def _remove_unsigned(folder: Path) -> int:
    """Remove the entries beyond the checkpoint; returns how many it signs for."""
    # An interrupted delivery can leave entries in the store before their checkpoint.
    size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), replay(folder))
    for path in folder.glob("*.json"):
        if int(path.stem) >= size:
            path.unlink()
    return size


def _add_entries(source: Path, folder: Path, start: int, size: int) -> None:
    """Move the entries from ``start`` on, and then their checkpoint, into a ledger."""
    make_folder(folder, 0o755)
    for number in range(start, size):
        (source / entry_file(number)).rename(folder / entry_file(number))
    # The store may be older than this ledger; then its checkpoint must not replace ours.
    if size > start:
        (source / CHECKPOINT).replace(folder / CHECKPOINT)
        sync(folder)


def _restored_releases(store: Store, out: Path, aside: Path) -> Iterator[str]:
    state = replay(out / _LEDGER).state
    for name in state.committed:
        final = out / _PUBLIC / name
        if name in state.withdrawn or final.exists():
            continue
        if store.read(f"{_PUBLIC}/{name}/{SUMS}") is None:
            continue
        fetch(store, name, aside / name)
        # The sums come from the store; only the signatures prove that the ledger paid for this one.
        verify(aside / name, None, Trust(out / _LEDGER))
        make_folder(final.parent, 0o755)
        (aside / name).rename(final)
        sync(final.parent)
        yield name


def fetch(store: Store, name: str, folder: Path) -> None:
    """Copy a delivered release into a new folder, and check its sums.

    Raises:
        StorageError: the release is missing or incomplete.
    """
    sums = store.read(f"{_PUBLIC}/{name}/{SUMS}")
    if sums is None:
        raise StorageError(f"{store.label}: {name!r} is not there, or its delivery has not ended")
    try:
        _fetch(store, name, sums, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _fetch(store: Store, name: str, sums: bytes, folder: Path) -> None:
    with storage_errors(folder, "the release"):
        for line in sums.decode("utf-8", "replace").splitlines():
            digest, file = line[:64], line[66:]
            # The store is not trusted: a name must not lead out of the folder.
            inside = file and not PurePosixPath(file).is_absolute() and "\0" not in file
            if not inside or ".." in PurePosixPath(file).parts:
                raise StorageError(f"{store.label}: {name}/{SUMS} is not a list of its files")
            data = store.read(f"{_PUBLIC}/{name}/{file}")
            if data is None or sha256(data) != digest:
                raise StorageError(f"{store.label}: {name}/{file} does not match its sum")
            write(folder / file, data)
        # No sum stands for these: the verifier checks what they sign.
        for file in SIGNED:
            signature = store.read(f"{_PUBLIC}/{name}/{file}")
            if signature is not None:
                write(folder / file, signature)
        write(folder / SUMS, sums)


def _local(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read") from error
