"""Writing a ledger: one entry at a time, durable, never over another, signed for."""

from __future__ import annotations

import datetime
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

from pydantic import ValidationError

from release.budget.checkpoint import (
    CHECKPOINT,
    check_checkpoint,
    checkpoint_text,
    read_checkpoint,
)
from release.budget.entries import (
    NOTHING,
    Abort,
    Commit,
    Entry,
    Genesis,
    Key,
    Policy,
    Reserve,
    ScopeCap,
    Spent,
    Withdraw,
)
from release.budget.state import Replayed, State, entry_file, is_entry, replay, to_sign
from release.errors import LedgerError
from release.exact.numbers import format_exact
from release.records.files import make_folder, storage_errors, sync, write
from release.records.hashes import encoded, sha256
from release.records.models import canonical
from release.records.signing import PublicKey, Signer, sign_note

_NEXT = f"{CHECKPOINT}.next"

Make: TypeAlias = Callable[[State], Entry]
"""Makes the next entry from the state it has to follow."""


@dataclass(frozen=True)
class Ledger:
    """A ledger that can be written: its folder, and the key that signs its checkpoints."""

    folder: Path
    signer: Signer

    def append(self, make: Make) -> tuple[Entry, Replayed]:
        """Add the entry that ``make`` makes; when this returns it is durable and signed for.

        Writers take turns by a lock on the folder; were that ignored, the entry's file could still
        be linked once only. Cost: one replay.

        Raises:
            BudgetError, LedgerError: the entry may not come next; nothing was written.
            StorageError: the entry could not be written.
        """
        with _alone(self.folder):
            ledger = self._read()
            try:
                entry = make(ledger.state)
            except ValidationError as error:
                field = error.errors()[0]["loc"][-1]
                raise LedgerError(f"{field}: not what an entry can hold") from error
            data = canonical(entry)
            ledger.state.check(entry)
            own = str(self.signer.public(ledger.state.origin))
            if isinstance(entry, Key) and (entry.action, entry.key) == ("retire", own):
                raise LedgerError("--key: a key cannot retire itself; give the one that stays")
            ledger.state.follow(entry, data)
            grown = Replayed(ledger.state, (*ledger.entries, entry), (*ledger.files, data))
            # Signed before it is linked: an entry that nobody has signed for is somebody else's.
            _replace(self.folder / _NEXT, self._note(grown))
            _store(self.folder, data, entry_file(entry.seq))
            _put_in_place(self.folder)
        return entry, grown

    def recover(self) -> Replayed:
        """The ledger, with its last entry signed for: after a crash it may have been about to be.

        Raises:
            LedgerError: the ledger is not intact, or the key is not its own.
            StorageError: the checkpoint could not be written.
        """
        with _alone(self.folder):
            return self._read()

    def _read(self) -> Replayed:
        """The ledger, if this key may write it and nobody has changed what was signed."""
        ledger = replay(self.folder)
        if self.signer.public(ledger.state.origin) not in ledger.state.keys:
            raise LedgerError(
                "--key: the ledger does not know this key; use the one it was made by"
            )
        tomorrow = today() + datetime.timedelta(days=1)
        if ledger.state.last_date > tomorrow.isoformat():
            raise LedgerError(
                f"the last entry is of {ledger.state.last_date}, which is yet to come; "
                "set the clock right"
            )
        if ledger.state.size == 1 and not (self.folder / CHECKPOINT).exists():
            _replace(self.folder / CHECKPOINT, self._note(ledger))
        signed = check_checkpoint(read_checkpoint(self.folder / CHECKPOINT), ledger)
        coming = self.folder / _NEXT
        if signed + 1 == ledger.state.size and coming.is_file():
            signed = check_checkpoint(read_checkpoint(coming), ledger)
            _put_in_place(self.folder)
        if signed < ledger.state.size:
            raise LedgerError(
                f"{ledger.state.size - signed} entries at the end are not signed for; somebody "
                "without the key has written them: take them away"
            )
        return ledger

    def _note(self, ledger: Replayed) -> bytes:
        text = checkpoint_text(ledger.state.origin, ledger.leaves)
        return sign_note(text, self.signer, ledger.state.origin).encode()


def create_ledger(
    folder: Path, signer: Signer, origin: str, scopes: tuple[ScopeCap, ...], date: str
) -> Ledger:
    """Make a ledger in a new folder.

    Raises:
        LedgerError: there is one already, or the caps cannot be meant.
        StorageError: it could not be written.
    """
    entry = Genesis(
        seq=0,
        prev=NOTHING,
        date=date,
        kind="genesis",
        origin=origin,
        scopes=list(scopes),
        keys=[str(signer.public(origin))],
    )
    State().check(entry)
    with storage_errors(folder, "the ledger"):
        make_folder(folder, 0o755)
    ledger = Ledger(folder, signer)
    with _alone(folder):
        if any(is_entry(path.name) for path in folder.iterdir()):
            raise LedgerError(f"{folder}: there is a ledger already")
        _store(folder, canonical(entry), entry_file(0))
        ledger._read()
    return ledger


def read_ledger(folder: Path) -> Replayed:
    """Read a ledger and hold its checkpoint against it: every entry has to be signed for.

    Writers are kept out meanwhile, for an entry stands there before its checkpoint does.

    Raises:
        LedgerError, BudgetError: it is not intact.
    """
    with _alone(folder, fcntl.LOCK_SH):
        ledger = replay(folder)
        size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
    if size != ledger.state.size:
        raise LedgerError(
            f"checkpoint: {ledger.state.size - size} entries at the end are not signed for"
        )
    return ledger


def reserve(scope: str, release_id: str, charge: Spent, date: str) -> Make:
    """Reserve a charge."""
    return lambda state: Reserve(
        **_next(state, date),
        kind="reserve",
        scope=scope,
        release_id=release_id,
        epsilon=format_exact(charge.epsilon),
        delta=format_exact(charge.delta),
    )


def commit(release_id: str, attestation: bytes, date: str) -> Make:
    """Commit a release by its attestation."""
    return lambda state: Commit(
        **_next(state, date),
        kind="commit",
        release_id=release_id,
        attestation=f"sha256:{sha256(attestation)}",
    )


def abort(release_id: str, date: str, *, drawn: bool) -> Make:
    """Give a release up."""
    return lambda state: Abort(
        **_next(state, date), kind="abort", release_id=release_id, drawn=drawn
    )


def withdraw(release_id: str, date: str) -> Make:
    """Take a public release back."""
    return lambda state: Withdraw(**_next(state, date), kind="withdraw", release_id=release_id)


def policy(cap: ScopeCap, date: str) -> Make:
    """Set the cap of a scope."""
    return lambda state: Policy(**_next(state, date), kind="policy", cap=cap)


def change_key(action: Literal["add", "retire"], key: PublicKey, signer: Signer, date: str) -> Make:
    """Add or retire a key, signed by a valid one."""

    def make(state: State) -> Entry:
        entry = Key(**_next(state, date), kind="key", action=action, key=str(key), signature="")
        return entry.model_copy(update={"signature": encoded(signer.sign(to_sign(entry)))})

    return make


class _Next(TypedDict):
    """Number, link and date of the next entry."""

    seq: int
    prev: str
    date: str


def _next(state: State, date: str) -> _Next:
    # A clock that went back must not stop a ledger; dates only ever go on.
    return {"seq": state.size, "prev": state.head, "date": max(date, state.last_date)}


@contextmanager
def _alone(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the ledger's lock, which goes with the process and leaves no file."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise LedgerError(f"{folder}: no ledger there; make one: dp-release ledger init") from error
    try:
        fcntl.flock(descriptor, how)
        for stray in folder.glob(".new-*") if how == fcntl.LOCK_EX else ():
            with suppress(OSError):
                stray.unlink()
        yield
    finally:
        os.close(descriptor)


def _store(folder: Path, data: bytes, name: str) -> None:
    """Write a new file, whole and durable, where none is."""
    with _aside(folder, data, "the ledger") as aside:
        try:
            os.link(aside, folder / name)
        except FileExistsError as error:
            raise LedgerError(f"{name}: written by somebody else at the same time") from error
        aside.unlink()
        sync(folder)


def _put_in_place(folder: Path) -> None:
    """Make the checkpoint of the entry that now stands there the ledger's."""
    with storage_errors(folder, "the checkpoint"):
        (folder / _NEXT).replace(folder / CHECKPOINT)
        sync(folder)


def _replace(path: Path, data: bytes) -> None:
    """Put a file, whole and durable, in the place of another."""
    with _aside(path.parent, data, "the checkpoint") as aside:
        aside.replace(path)
        sync(path.parent)


@contextmanager
def _aside(folder: Path, data: bytes, what: str) -> Iterator[Path]:
    """A file written aside; it is gone afterwards, whatever happened."""
    aside = folder / f".new-{secrets.token_hex(8)}"
    try:
        with storage_errors(folder, what):
            write(aside, data)
            yield aside
    finally:
        aside.unlink(missing_ok=True)


def today() -> datetime.date:
    """The day by which charges count, in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()
