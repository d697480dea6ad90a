"""Writing a ledger: one entry at a time, durable, never over another, and signed.

A ledger that names a store has a copy on each machine that writes it. Each entry is put in the
store before it is written here (:mod:`release.budget.claims`), so the store has every entry that
any copy has. A writer first takes over what the store has beyond its own copy.

In the folder, the order of writes is the argument. The checkpoint that covers the next entry is
written aside before the entry appears under its name, and replaces the old checkpoint after. A
crash in between leaves an entry beside its checkpoint in waiting, which :meth:`Ledger.recover` puts
in place; an entry beyond both, that is not in the store either, was written without the key.
"""

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

from dp_release_verify.digests import encoded, sha256
from release.budget.caps import ScopeCap
from release.budget.checkpoint import CHECKPOINT, check_checkpoint, checkpoint_of, read_checkpoint
from release.budget.claims import (
    Claim,
    Newest,
    beyond,
    check_creates_once,
    fill,
    named_store,
    newest,
    put_claim,
)
from release.budget.entries import (
    NOTHING,
    Abort,
    AbortReason,
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
from release.budget.snapshots.snapshot import EVERY, SNAPSHOT, read_recent, snapshot_of
from release.budget.state import (
    Replayed,
    State,
    entry_file,
    is_entry,
    replay,
    replay_files,
    to_sign,
)
from release.errors import LedgerError, StorageError
from release.exact.numbers import format_exact
from release.records.files import make_folder, storage_errors, sync, write
from release.records.models import canonical
from release.records.signing import PublicKey, Signer, sign_note
from release.records.stores import open_store

_NEXT = f"{CHECKPOINT}.next"
_ATTEMPTS = 50
# The listing of a folder of more entries takes longer than writing one.
_MANY = 10_000

Make: TypeAlias = Callable[[State], Entry]
"""Builds the next entry from the state that it has to follow."""


@dataclass(frozen=True)
class Ledger:
    """A ledger open for writing: its folder, and the key that signs its checkpoints.

    ``is_copy`` is of a copy for a drill: nothing is put in the store that the ledger names.
    """

    folder: Path
    signer: Signer
    is_copy: bool = False

    def append(self, make: Make) -> tuple[Entry, Replayed]:
        """Append the entry that ``make`` builds; on return it is durable and signed.

        Writers of one machine take turns by a lock on the folder. Where a file system ignores the
        lock, the entry's file can still be linked only once. Writers of several machines meet in
        the store that the ledger names: who comes second makes its entry anew from the state that
        the first one left. Cost: one replay of the entries since the last snapshot, and with a
        store two reads and a put of it.

        Raises:
            BudgetError, LedgerError: the entry may not come next; nothing was written.
            StorageError: the entry could not be written. The store may have it; then the next run
                on any machine takes it over.
        """
        with _alone(self.folder):
            # The steps of a writer: docs/design/ledger-store.md. Who loses the race for a number
            # begins anew.
            for _ in range(_ATTEMPTS):
                ledger = self._read()
                # Named before this entry: the state below moves on with the entry.
                store = None if self.is_copy else named_store(ledger)
                entry, grown = self._extended(ledger, make)
                note = self._note(grown)
                if not put_claim(store, entry, Claim(grown.files[-1], note)):
                    continue
                # Signed before it is linked: an unsigned entry counts as written without the key.
                _replace(self.folder / _NEXT, note.encode())
                _store(self.folder, grown.files[-1], entry_file(entry.seq))
                _put_in_place(self.folder)
                self._save(grown)
                return entry, grown
        raise LedgerError(
            f"other machines took the next number {_ATTEMPTS} times in a row; run it again"
        )

    def _extended(self, ledger: Replayed, make: Make) -> tuple[Entry, Replayed]:
        """The entry that ``make`` builds, and the ledger that ends with it; the state moves on."""
        try:
            entry = make(ledger.state)
        except ValidationError as error:
            field = error.errors()[0]["loc"][-1]
            raise LedgerError(f"{field}: not a value that an entry can hold") from error
        ledger.state.check(entry)
        # The checkpoint over an entry is signed by a key that is valid after it.
        own = str(self.signer.public(ledger.state.origin))
        if isinstance(entry, Key) and (entry.action, entry.key) == ("retire", own):
            raise LedgerError("--key: a key cannot retire itself; pass a key that stays valid")
        data = canonical(entry)
        ledger.state.follow(entry, data)
        return entry, ledger.extended(entry, data)

    def name_store(self, uri: str, date: str) -> Replayed:
        """Name the store in which every later entry is put first; the ledger after that.

        A ledger that names another store moves: all its machines go on in the new one. Where it
        names this one already, what this store has lost of the ledger is put there again.

        Raises:
            LedgerError: the store has entries of another ledger.
            StorageError: the store does not answer, or lets objects be written over.
        """
        store = open_store(uri, "--store")
        check_creates_once(store)
        with _alone(self.folder):
            ledger = _signed(self.folder, replay(self.folder))
            # A run that named it may have died before it wrote the entry here, or there.
            further = beyond(ledger, named_store(ledger) or store)
            ledger = _take_over(self.folder, ledger, further)
            if ledger.state.store == uri:
                fill(ledger, read_checkpoint(self.folder / CHECKPOINT), store)
            ledger = self._read()
        if ledger.state.store == uri:
            return ledger
        _, ledger = self.append(
            lambda state: StoreEntry(**_next(state, date), kind="store", uri=uri)
        )
        return ledger

    def commitment(self, release_id: str) -> Commit | None:
        """The commit of a release in the newest ledger; raises as :meth:`recover`."""
        state = self.recover().state
        # Rare: a run that was cut off after its commit, and many entries ago.
        if state.past.mark(release_id):
            state = read_ledger(self.folder).state
        return state.committed.get(release_id)

    def cap(self, scope: str) -> ScopeCap | None:
        """The caps of a scope as this folder has them; raises ``LedgerError`` where it is broken.

        Asks no store and writes nothing.
        """
        ledger = recent_or_whole(self.folder, self.signer)
        return ledger.state.caps.get(scope)

    def recover(self) -> Replayed:
        """The ledger, after completing what a crash interrupted, and as its store has it.

        It holds the entries since the last snapshot alone.

        Raises:
            LedgerError: the ledger is not intact, disagrees with its store, or the key is not one
                of its keys.
            StorageError: the store does not answer, or the checkpoint could not be written.
        """
        with _alone(self.folder):
            return self._read()

    def _read(self) -> Replayed:
        """The newest ledger, checked: this key may write it, what was signed is unchanged."""
        # A crash while the ledger was created can leave the genesis without a checkpoint.
        if not (self.folder / CHECKPOINT).exists() and replay(self.folder).state.size == 1:
            self.check_key(ledger := replay(self.folder))
            _replace(self.folder / CHECKPOINT, self._note(ledger).encode())
        ledger = _signed(self.folder, recent_or_whole(self.folder, self.signer))
        if not self.is_copy:
            ledger = _take_over(self.folder, ledger, newest(ledger))
        self.check_key(ledger)
        # One day of grace, because the clocks of two machines may differ.
        tomorrow = today() + datetime.timedelta(days=1)
        if ledger.state.last_date > tomorrow.isoformat():
            raise LedgerError(
                f"the last entry has the date {ledger.state.last_date}, which is in the future; "
                "correct the clock"
            )
        return ledger

    def check_key(self, ledger: Replayed) -> None:
        """Check that a ledger knows the key that would sign its next entry.

        Raises:
            LedgerError: it does not.
        """
        if self.signer.public(ledger.state.origin) not in ledger.state.keys:
            raise LedgerError(
                "--key: the ledger does not know this key; use one of its signing keys"
            )

    def _note(self, ledger: Replayed) -> str:
        return sign_note(checkpoint_of(ledger), self.signer, ledger.state.origin)

    def _save(self, ledger: Replayed) -> None:
        """Write a snapshot, where enough entries have followed the last one."""
        if len(ledger.files) < EVERY:
            return
        # The entry is written and signed: whatever fails here, the next writer replays more.
        with suppress(StorageError):
            _replace(self.folder / SNAPSHOT, snapshot_of(ledger, self.signer))
        if ledger.state.size < _MANY or not ledger.before.size:
            _remove_strays(self.folder)


def create_ledger(
    folder: Path, signer: Signer, origin: str, scopes: tuple[ScopeCap, ...], date: str
) -> Ledger:
    """Create a ledger in a new folder.

    Raises:
        LedgerError: the folder has a ledger already, or a scope is listed twice.
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
            raise LedgerError(f"{folder}: the folder has a ledger already")
        _store(folder, canonical(entry), entry_file(0))
        ledger._read()
    return ledger


def follow_store(folder: Path) -> Replayed:
    """Write into a ledger what the store that it names has beyond it; needs no key.

    Raises:
        LedgerError: the ledger is not intact, or disagrees with its store.
        StorageError: the store does not answer, or the folder cannot be written.
    """
    with _alone(folder):
        ledger = _signed(folder, replay(folder))
        return _take_over(folder, ledger, newest(ledger))


def _signed(folder: Path, ledger: Replayed) -> Replayed:
    """The entries that are signed; where more are there, its store has signed those."""
    signed = check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
    waiting = folder / _NEXT
    if signed + 1 == ledger.state.size and waiting.is_file():
        signed = check_checkpoint(read_checkpoint(waiting), ledger)
        _put_in_place(folder)
    if signed == ledger.state.size:
        return ledger
    # Taking over entries of the store was interrupted, or somebody without the key wrote them.
    ledger = replay(folder)
    before = replay_files(ledger.files[:signed])
    if newest(before).ledger.files[: ledger.state.size] != ledger.files:
        raise LedgerError(
            f"{ledger.state.size - signed} entries at the end are not signed; somebody "
            "without the key has written them: remove them"
        )
    return before


def _take_over(folder: Path, ledger: Replayed, further: Newest) -> Replayed:
    """Write the entries that the store has beyond a ledger, and then their checkpoint."""
    if further.note is None:
        return ledger
    for number in range(ledger.state.size, further.ledger.state.size):
        name = entry_file(number)
        # An earlier run may have been cut off on the way; what it wrote is the same.
        if not (folder / name).exists():
            _store(folder, further.ledger.file(number), name)
    _replace(folder / CHECKPOINT, further.note.encode())
    return further.ledger


def read_ledger(folder: Path) -> Replayed:
    """Read a ledger and check that its checkpoint signs for every entry.

    Raises:
        LedgerError, BudgetError: it is not intact.
    """
    # Shared lock: a writer puts the entry in place before its checkpoint.
    with _alone(folder, fcntl.LOCK_SH):
        ledger = replay(folder)
        size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
    if size != ledger.state.size:
        raise LedgerError(
            f"checkpoint: {ledger.state.size - size} entries at the end are not signed"
        )
    return ledger


def recent_or_whole(folder: Path, signer: Signer | None) -> Replayed:
    """A ledger from this key's snapshot where there is one, else replayed whole."""
    ledger = None if signer is None else read_recent(folder, signer)
    return ledger or replay(folder)


def read_as_writer(folder: Path, signer: Signer | None) -> Replayed:
    """As :func:`read_ledger`, but from this key's snapshot where there is one.

    Then it holds the entries since the snapshot alone.
    """
    if signer is not None:
        with _alone(folder, fcntl.LOCK_SH):
            ledger = read_recent(folder, signer)
            if ledger is not None:
                size = check_checkpoint(read_checkpoint(folder / CHECKPOINT), ledger)
                if size == ledger.state.size:
                    return ledger
    return read_ledger(folder)


def replace_checkpoint(folder: Path, note: str, size: int) -> None:
    """Put a checkpoint with more lines in the place of the one over the same ``size`` entries.

    Raises:
        LedgerError: the ledger has grown meanwhile; do it again.
        StorageError: it cannot be written.
    """
    with _alone(folder):
        if check_checkpoint(read_checkpoint(folder / CHECKPOINT), replay(folder)) != size:
            raise LedgerError(f"{folder}: the ledger has grown meanwhile; run it again")
        _replace(folder / CHECKPOINT, note.encode())


def reserve(
    scope: str,
    release_id: str,
    charge: Spent | ReleaseCharge,
    date: str,
    run: str | None = None,
    slot: str | None = None,
) -> Make:
    """An entry that reserves a charge, for a run that is named by 32 random digits.

    Args:
        scope: the account that pays.
        release_id: the name of the release.
        charge: what it amounts to; of an ε and a δ alone nothing is known of its profile.
        date: the day.
        run: the name of the run; by default a new one.
        slot: of a scope with a plan the slot to take; by default the first free one that fits.
    """
    # Equal charges of two machines must be two entries, or both would take the one for theirs.
    named = run or new_run()
    if isinstance(charge, Spent):
        charge = ReleaseCharge(charge.epsilon, charge.delta, None)

    def make(state: State) -> Entry:
        return Reserve(
            **_next(state, date),
            # Asked of the state that the entry follows: another machine may take a slot meanwhile.
            **state.rule_fields(scope, release_id, charge, slot),
            kind="reserve",
            scope=scope,
            release_id=release_id,
            epsilon=format_exact(charge.epsilon),
            delta=format_exact(charge.delta),
            run=named,
        )

    return make


def new_run() -> str:
    """The name of a run: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)


def commit(release_id: str, sums: bytes, date: str, of: Reserve | None = None) -> Make:
    """An entry that commits a release by its SHA256SUMS, for the reserve ``of`` alone if given."""

    def make(state: State) -> Entry:
        _check_open(state, of)
        return Commit(
            **_next(state, date),
            kind="commit",
            release_id=release_id,
            sums=f"sha256:{sha256(sums)}",
        )

    return make


def abort(
    release_id: str,
    date: str,
    *,
    drawn: bool,
    of: Reserve | None = None,
    reason: AbortReason | None = None,
) -> Make:
    """An entry that gives a release up, for the reserve ``of`` alone if given."""

    def make(state: State) -> Entry:
        _check_open(state, of)
        return Abort(
            **_next(state, date), kind="abort", release_id=release_id, drawn=drawn, reason=reason
        )

    return make


def _check_open(state: State, of: Reserve | None) -> None:
    # Another machine may have ended a reserve and taken the name anew while this one was at work:
    # its reserve must be neither refunded nor committed from here.
    if of is not None and state.running.get(of.release_id) != of:
        raise LedgerError(f"the reserve of {of.release_id!r} is not open any more")


def withdraw(release_id: str, date: str) -> Make:
    """An entry that withdraws a public release."""
    return lambda state: Withdraw(**_next(state, date), kind="withdraw", release_id=release_id)


def skip(release_id: str, reason: str, date: str) -> Make:
    """An entry that says that a release will not be made, and why."""

    def make(state: State) -> Entry:
        following = _next(state, date)
        return Skip(**following, kind="skip", release_id=release_id, reason=reason)

    return make


def revise(release_id: str, by: str, reason: str, date: str) -> Make:
    """An entry that says that the release ``by`` takes the place of another, and why."""

    def make(state: State) -> Entry:
        fields = {"release_id": release_id, "by": by, "reason": reason}
        return Revise(**_next(state, date), kind="revise", **fields)

    return make


def policy(cap: ScopeCap, date: str) -> Make:
    """An entry that sets the cap of a scope."""
    return lambda state: Policy(**_next(state, date), kind="policy", cap=cap)


def change_key(action: Literal["add", "retire"], key: PublicKey, signer: Signer, date: str) -> Make:
    """An entry that adds or retires a key, signed by a valid one."""

    def make(state: State) -> Entry:
        # The signature covers the entry with its signature empty.
        entry = Key(**_next(state, date), kind="key", action=action, key=str(key), signature="")
        return entry.model_copy(update={"signature": encoded(signer.sign(to_sign(entry)))})

    return make


class _Next(TypedDict):
    """Number, link and date of the next entry."""

    seq: int
    prev: str
    date: str


def _next(state: State, date: str) -> _Next:
    # A clock that went back must not stop a ledger, and dates may not decrease.
    return {"seq": state.size, "prev": state.head, "date": max(date, state.last_date)}


@contextmanager
def _alone(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the ledger's lock; it ends with the process and leaves no file."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise LedgerError(
            f"{folder}: no ledger there; create it: dp-release ledger init"
        ) from error
    try:
        fcntl.flock(descriptor, how)
        # Left by a crash. Under a shared lock a reader may not touch them. With a snapshot they go
        # when the next one is written.
        if how == fcntl.LOCK_EX and not (folder / SNAPSHOT).exists():
            _remove_strays(folder)
        yield
    finally:
        os.close(descriptor)


def _remove_strays(folder: Path) -> None:
    """Remove the temporary files that a crash has left."""
    for stray in folder.glob(".new-*"):
        with suppress(OSError):
            stray.unlink()


def _store(folder: Path, data: bytes, name: str) -> None:
    """Write a new file, whole and durable, and refuse an existing one."""
    with _aside(folder, data, "the ledger") as aside:
        try:
            # A link fails where the name exists; a rename would replace the file silently.
            os.link(aside, folder / name)
        except FileExistsError as error:
            raise LedgerError(f"{name}: another process wrote it at the same time") from error
        aside.unlink()
        sync(folder)


def _put_in_place(folder: Path) -> None:
    """Replace the checkpoint by the waiting one, whose entry is now in place."""
    with storage_errors(folder, "the checkpoint"):
        (folder / _NEXT).replace(folder / CHECKPOINT)
        sync(folder)


def _replace(path: Path, data: bytes) -> None:
    """Write a file, whole and durable, in place of an older one."""
    with _aside(path.parent, data, "the checkpoint") as aside:
        aside.replace(path)
        sync(path.parent)


@contextmanager
def _aside(folder: Path, data: bytes, what: str) -> Iterator[Path]:
    """Write a temporary file; unless the caller moves it, it is removed on exit."""
    aside = folder / f".new-{secrets.token_hex(8)}"
    try:
        with storage_errors(folder, what):
            write(aside, data)
            yield aside
    finally:
        # One that stays is removed by the next writer; it must not hide what happened before.
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def today() -> datetime.date:
    """The current date in UTC, by which charges are dated."""
    return datetime.datetime.now(tz=datetime.UTC).date()
