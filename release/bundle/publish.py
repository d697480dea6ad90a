"""The publish protocol: charged before it is drawn, drawn once, public all at once.

Each step leaves a durable mark, and a later run continues from the last mark:

1. ``OUT/.work-<id>/`` is created and locked: one run a release.
2. What needs no noise is written into ``prepared/`` (:mod:`release.bundle.prepared`), and ``room``
   takes up as much of the disk as the draw will.
3. ``run`` names this run, and the ledger reserves the charge for it.
4. ``drawing`` is written: from here on noise may have been drawn.
5. The noise is drawn, and ``drawn`` holds it (:mod:`release.bundle.drawn`) before anything else is
   done with it.
6. The release is written into ``part/`` and renamed to ``staged/``: from here on its bytes stand.
7. It is verified. Only then is the list of its sums signed, where there is a key, and the ledger
   commits the hash of that list.
8. The auditor's folder is renamed into its place, then the public one, and the folder is removed.

Where ``staged/`` exists, a run continues at 7: the same bytes, no second charge. Where ``drawn``
exists for the open reserve, a run continues at 6, and so does a recovery, also of a later version:
the same noise, for the spec that it was drawn for, and no confidential table is read. What it
cannot write stays drawn until a version can, or ``recover --abandon`` gives it up. Where noise may
have been drawn and is not whole, its charge stays spent. Otherwise a run
aborts the reserve in the ledger and starts again. The abort refunds the charge as not drawn only if
the reserve is of the run that ``run`` names and ``drawing`` is absent: whoever removes the folder,
or works on the same ledger from another one, gets no refund. Where the ledger names a store, a
reserve of another run may be at work on another machine, and is never aborted by this one. A TEST
run has a folder of its own.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from dp_release_verify import forms
from dp_release_verify.digests import PROOF, SIGNATURE, SIGNED, SUMS, sha256
from release.budget.entries import AbortReason
from release.budget.ledger import (
    Ledger,
    ReleaseCharge,
    Reserve,
    Spending,
    Spent,
    abort,
    commit,
    ledger_proof,
    new_run,
    read_ledger,
    replay,
    reserve,
    spending,
    today,
)
from release.bundle.opened import RECORD
from release.errors import LedgerError, Reason, ReleaseError, SpecError, StorageError, reason_of
from release.records.files import (
    lock,
    locked_folder,
    make_folder,
    storage_errors,
    sync,
    sync_file,
    sync_tree,
    write,
)
from release.records.signing import Signer, sign_sums

if TYPE_CHECKING:
    from release.bundle.drawn import Draw
    from release.spec.load import SpecFile

T = TypeVar("T")
_NO_CALL = (errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.ENOSYS)

Verifying = Callable[[Path, Path | None], object]
"""Checks a public folder and the auditor's, before they are signed."""

LEDGER = "ledger"
_RUN, _DRAWING, _DRAWN, _ROOM = "run", "drawing", "drawn", "room"
_PREPARED, _PART, _STAGED, _SCRATCH = "prepared", "part", "staged", "scratch"
_ASIDE = ".aside"
"""A mark on its way: a rename puts it in place at once."""


def check_output_folder(out: Path) -> None:
    """Refuse a folder that cannot be one of releases, or that lies in one.

    Raises:
        SpecError: it is a file, or a part of an output folder: a run there would know no ledger.
    """
    if out.exists() and not out.is_dir():
        raise SpecError("--out", f"{out} is a file; name a folder, which may be a new one")
    for inner, outer in ((out, out.parent), (out.parent, out.parent.parent)):
        if inner.name in (LEDGER, "public", "auditor") and (outer / LEDGER).is_dir():
            raise SpecError("--out", f"{out} lies in an output folder; write --out {outer}")


def ledger_folder(given: Path) -> Path:
    """The folder of the ledger that is meant: where an output folder is given, that in it."""
    return given / LEDGER if (given / LEDGER).is_dir() else given


def check_free(out: Path, release_id: str) -> None:
    """Refuse an output folder that holds the release already.

    Raises:
        SpecError: the release is published there.
    """
    if os.path.lexists(out / "public" / release_id):
        raise SpecError(
            "--out",
            f"{release_id!r} is published there already; take another folder or a new release id",
        )


def check_device(out: Path) -> None:
    """Refuse an output folder whose bundles lie on another file system than their working folders.

    Raises:
        StorageError: a rename of a bundle into its place would fail.
    """
    for folder in (out / "public", out / "auditor"):
        if folder.is_dir() and folder.stat().st_dev != out.stat().st_dev:
            raise StorageError(
                f"{folder}: lies on another file system than {out}, so that no release can appear "
                "there at once; put the whole output folder on one"
            )


def open_ledger(out: Path, signer: Signer | None) -> Ledger | None:
    """The ledger of an output folder; None where there is neither a ledger nor a signing key.

    Raises:
        SpecError: a ledger without a signing key, or a key without a ledger.
    """
    has_ledger = (out / LEDGER).is_dir()
    if has_ledger and signer is None:
        raise SpecError("--key", f"{out / LEDGER} has to sign for the release; give its key")
    if signer is None:
        return None
    if not has_ledger:
        raise SpecError("--key", f"no ledger in {out}; make one: dp-release ledger init")
    return Ledger(out / LEDGER, signer)


def abort_reason(error: BaseException) -> AbortReason:
    """What an abort says of the error that led to it: which of four kinds it is."""
    reason = reason_of(error)
    if reason is Reason.STORAGE:
        return "storage"
    if reason is Reason.INTERRUPTED:
        return "interrupted"
    return "internal" if reason is Reason.INTERNAL else "refused"


@dataclass(frozen=True)
class Forecast:
    """What a ledger would do with the charge of a release, as it is now; nothing is written."""

    ledger: Path
    release_id: str

    def needs_profile(self, scope: str) -> bool:
        """Whether the rule of a scope reads more of a release than its ε and δ."""
        cap = replay(self.ledger).state.caps.get(scope)
        return cap is not None and cap.rule != "basic"

    def reserve(self, scope: str, charge: ReleaseCharge, slot: str | None = None) -> None:
        """Check that the ledger would reserve a charge today.

        Raises:
            BudgetError, LedgerError: it would not.
        """
        state = read_ledger(self.ledger).state
        make = reserve(scope, self.release_id, charge, today().isoformat(), slot=slot)
        state.check(make(state))


def _allocate(descriptor: int, size: int) -> None:
    """Take up room on the disk for an empty file, by zeros where there is no call for it."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except (AttributeError, OSError) as error:
        # No such call on this system, or not for this file system; a full disk is neither.
        if isinstance(error, OSError) and error.errno not in _NO_CALL:
            raise
        os.pwrite(descriptor, bytes(size), 0)


def is_at_work(out: Path, release_id: str) -> bool:
    """Whether a process holds the lock of a release's working folder right now."""
    # A shared lock: two of these checks at once do not take each other for a run.
    try:
        descriptor = os.open(out / f".work-{release_id}", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        # Another user's folder: only its owner can tell, so it counts as at work.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class Publication:
    """One release on its way to being public; a context manager that holds its lock.

    Leaving it before the release is staged aborts the release, visibly in the ledger, and leaves
    no file; but what was drawn stays for the next run where no refusal is the reason.
    ``recovered`` is the public folder if an earlier run had staged the release, or drawn its noise,
    so that this run only had to finish it. ``spec_file`` spares it reading the spec again, where
    that run's was the same. ``verifying`` decides whether a release is published. ``lost`` is
    whether an earlier run was charged, and cut off before its draw was whole. With ``gives_up``
    what an earlier run left is aborted, drawn or not.

    Raises:
        SpecError: the release is public already, or key and ledger do not go together.
        LedgerError: another run is at work on it, or the ledger is not intact.
        StorageError: the folder cannot be written.
    """

    def __init__(  # noqa: PLR0913 - each decides how a run continues
        self,
        out: Path,
        release_id: str,
        ledger: Ledger | None,
        verifying: Verifying,
        work: str = "work",
        spec_file: SpecFile | None = None,
        *,
        gives_up: bool = False,
    ) -> None:
        self.out, self.release_id, self.ledger = out, release_id, ledger
        self._spec_file, self._verifying = spec_file, verifying
        self.recovered: Path | None = None
        self.lost = False
        self.sequence: int | None = None
        self._run = new_run()
        self._answers: object = None
        self._is_drawing = False
        self._is_verified = False
        self._published: Path | None = None
        self._work = out / f".{work}-{release_id}"
        self._final = out / "public" / release_id
        # Innermost first, so that an aborted run can remove the folders that it created.
        self._created = [folder for folder in (out, *out.parents) if not folder.exists()]
        # A working folder may be that of a run that published and was cut off: _recover tells.
        if not self._work.exists():
            check_free(out, release_id)
        for folder in (out / "public", out / "auditor"):
            if os.path.lexists(folder) and not folder.is_dir():
                raise StorageError(f"{folder}: the release cannot be written (no folder)")
        self._lock = self._take_lock()
        try:
            check_device(out)
            if gives_up:
                self._abandon()
            else:
                self._recover()
        except BaseException:
            self._leave()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._published is None and not (self._work / _STAGED).exists():
                if self._keeps_draw(error):
                    self._remove(_PART, _SCRATCH)
                    return
                # The error that led here matters more; the next run aborts what remains.
                with suppress(ReleaseError):
                    self._give_up("internal" if error is None else abort_reason(error))
        finally:
            self._leave()

    def scratch(self, name: Literal["engine", "frames", "rehearsal"]) -> Path:
        """A private folder of this name for confidential rows, empty now.

        It is removed with the working folder; a run that recovers the release wipes it first.

        Raises:
            StorageError: it cannot be created.
        """
        folder = self._work / _SCRATCH / name
        with storage_errors(self.out, "the release"):
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder, 0o700)
        return folder

    def needs_profile(self, scope: str) -> bool:
        """Whether the rule of a scope of the ledger reads more of a release than its ε and δ."""
        if self.ledger is None:
            return False
        cap = self.ledger.cap(scope)
        return cap is not None and cap.rule != "basic"

    def reserve(
        self, scope: str, charge: Spent | ReleaseCharge, slot: str | None = None
    ) -> int | None:
        """Reserve the charge, durably; the number of the entry, or None without a ledger.

        ``slot`` is the slot to take where the scope has a plan; by default the first that fits.

        Raises:
            BudgetError: the scope does not allow it.
            LedgerError, StorageError: the ledger cannot be written.
        """
        if self.ledger is not None and self.sequence is None:
            # Before the entry: a store may have it although this run ends before it knows.
            with storage_errors(self.out, "the release"):
                _put(self._work / _RUN, self._run.encode())
                sync(self._work)
            entry, _ = self.ledger.append(
                reserve(scope, self.release_id, charge, today().isoformat(), self._run, slot)
            )
            self.sequence = entry.seq
        return self.sequence

    @property
    def reserved(self) -> tuple[int, str] | None:
        """The number of the entry that reserved the charge, and its run; None without a ledger."""
        return None if self.sequence is None else (self.sequence, self._run)

    def spending(self, scope: str) -> Spending | None:
        """What a scope has spent, this release included; None without a ledger."""
        return None if self.ledger is None else spending(replay(self.ledger.folder), scope)

    def prepare(self, writing: Callable[[Path], T], room: int) -> T:
        """Have ``writing`` write into a folder what needs no noise; what ``writing`` returns.

        ``room`` bytes are taken up for the draw, so that a full disk is found before the charge. A
        retry writes all of it anew, but not after the draw.

        Raises:
            StorageError: the disk is full or read-only.
            TypeError: the noise is drawn already.
        """
        if self._is_drawing:
            raise TypeError("a release is prepared before its noise is drawn")
        folder = self._work / _PREPARED
        with storage_errors(self.out, "the release"):
            # The draw of an earlier run that could not be removed is not one of this reserve.
            for mark in (_DRAWN, _DRAWING):
                (self._work / mark).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            prepared = writing(folder)
            sync_tree(folder)
            self._take_room(room)
            sync(self._work)
        return prepared

    def complete(self, writing: Callable[[Path], T]) -> T:
        """Have ``writing`` add to what was prepared what the ledger's entry decides.

        Raises:
            StorageError: the disk is full or read-only.
        """
        folder = self._work / _PREPARED
        with storage_errors(self.out, "the release"):
            completed = writing(folder)
            sync_tree(folder)
        return completed

    def _take_room(self, size: int) -> None:
        room = self._work / _ROOM
        room.touch(mode=0o600)
        # To read too: where a file system has no such call, the C library reads and writes blocks.
        descriptor = os.open(room, os.O_RDWR)
        try:
            _allocate(descriptor, max(1, size))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def draw(self, drawing: Callable[[], T], encode: Callable[[T], bytes]) -> T:
        """The answers that ``drawing`` draws; a retry gets the same ones.

        ``encode`` gives the bytes from which a later run publishes the same answers. They are on
        the disk before anything else is done with the answers.

        Raises:
            StorageError: the mark that precedes drawing cannot be written, and nothing was drawn;
                or the draw cannot, and its charge is spent.
        """
        if self._answers is None:
            with storage_errors(self.out, "the release"):
                self._put_in_place(_DRAWING, b"")
                sync(self._work)
            # Marked before the first draw: a run cut off in between counts as drawn and pays.
            self._is_drawing = True
            # Once only: a second draw for one charge would let its noise be averaged away.
            answers = drawing()
            data = encode(answers)
            with storage_errors(self.out, "what was drawn"):
                try:
                    self._fill_room(data)
                except OSError:
                    # A fault that passes costs nothing: the same answers are written once more.
                    self._fill_room(data)
            self._answers = answers
        return self._answers  # type: ignore[return-value]  # a T, from drawing

    def _fill_room(self, data: bytes) -> None:
        """Write the draw into the room that was taken up for it, and give it its name at once."""
        room = self._work / _ROOM
        room.touch(mode=0o600)
        with room.open("r+b") as file:
            file.write(data)
            file.truncate()
        # Named before it is synced: a kill in between costs nothing then, and what a power cut
        # leaves of the file is known by its digest.
        room.rename(self._work / _DRAWN)
        sync_file(self._work / _DRAWN)
        sync(self._work)

    def _put_in_place(self, name: str, data: bytes) -> None:
        """Give a file of these bytes its name at once; the caller syncs it."""
        # Not synced before: a kill in between would cost the charge. An empty mark has no bytes to
        # lose.
        aside = self._work / _ASIDE
        aside.touch(mode=0o600)
        aside.write_bytes(data)
        aside.rename(self._work / name)

    def stage(self, writing: Callable[[Path], None]) -> None:
        """Have ``writing`` write ``public/`` and ``auditor/`` into a folder, and fix their bytes.

        Raises:
            StorageError: the disk is full or read-only; no part of the release remains.
        """
        part = self._work / _PART
        if self._published is not None or (self._work / _STAGED).exists():
            return
        with storage_errors(self.out, "the release"):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o700)
            writing(part)
            # Synced before the rename: the name ``staged`` vouches for every byte below it.
            sync_tree(part)
            part.rename(self._work / _STAGED)
            sync(self._work)

    def finish(self) -> Path:
        """Verify, commit and publish what was staged; the public folder.

        Raises:
            ReleaseError: as :meth:`verify`, :meth:`commit` and :meth:`publish`.
        """
        self.verify()
        self.commit()
        return self.publish()

    @property
    def _waiting(self) -> Path | None:
        """The staged public folder; None where an earlier run has published it already."""
        public = self._work / _STAGED / "public"
        return public if self._published is None and public.exists() else None

    def verify(self) -> None:
        """Verify the staged files; signatures that an earlier run left do not count.

        Raises:
            ReleaseError: they do not verify. The draw stays, and nothing is committed.
            StorageError: the disk fails.
        """
        public, auditor = self._waiting, self._work / _STAGED / "auditor"
        self._is_verified = True
        if public is None:
            return
        with storage_errors(self.out, "the release"):
            if self.ledger is not None and self.ledger.commitment(self.release_id) is not None:
                # Committed after it was verified: what is left to do is to show it.
                return
            for name in SIGNED:
                (public / name).unlink(missing_ok=True)
            try:
                self._verifying(public, auditor if auditor.exists() else None)
            except Exception as error:
                self._is_verified = False
                # What was staged is all there is of a draw that was kept nowhere else.
                if (self._work / _DRAWN).exists():
                    self._remove(_STAGED)
                raise ReleaseError(self._not_written(error)) from error

    def commit(self) -> None:
        """Sign what was verified, and commit its hash; nothing to do without a ledger.

        Raises:
            StorageError: the disk is full or read-only. What was staged stays for a later run.
            LedgerError: the ledger cannot commit it.
        """
        public = self._waiting
        if public is not None and self.ledger is not None:
            with storage_errors(self.out, "the release"):
                self._sign(self.ledger, public)
                self._commit(self.ledger, public)

    def publish(self) -> Path:
        """Make public what was committed; the public folder.

        Raises:
            StorageError: the disk is full or read-only. What was staged stays for a later run.
        """
        with storage_errors(self.out, "the release"):
            if self._published is None:
                self._published = self._publish()
            return self._published

    def _publish(self) -> Path:
        """Step 8; an earlier run may have taken it."""
        public, auditor = self._work / _STAGED / "public", self._work / _STAGED / "auditor"
        if public.exists():
            is_committed = self.ledger is None or (public / PROOF).exists()
            if not (self._is_verified and is_committed):
                raise TypeError("a release is verified and committed before it is published")
            sync(public)
            if auditor.exists():
                bundle = self.out / "auditor" / self.release_id
                make_folder(bundle.parent, 0o700)
                # A bundle there was never published: its run was cut off before the public one.
                shutil.rmtree(bundle, ignore_errors=True)
                auditor.rename(bundle)
                sync(bundle.parent)
            make_folder(self._final.parent, 0o755)
            public.rename(self._final)
        # Published from here on; a sync that fails now changes nothing about that.
        with suppress(OSError):
            sync(self._final.parent)
        shutil.rmtree(self._work, ignore_errors=True)
        return self._final

    def _not_written(self, error: Exception) -> str:
        reason = str(error) if isinstance(error, ReleaseError) else type(error).__name__
        return (
            f"{self.release_id!r} is drawn and cannot be published by this version ({reason}); "
            "nothing is lost: its draw stays, and a version that is mended publishes it without a "
            f"second charge; dp-release recover --abandon {self.release_id} gives it up"
        )

    def _sign(self, ledger: Ledger, public: Path) -> None:
        """Sign the list of the sums, under the name of the ledger."""
        sums, origin = (public / SUMS).read_bytes(), ledger.recover().state.origin
        _put(public / SIGNATURE, sign_sums(sums, ledger.signer, origin))

    def _commit(self, ledger: Ledger, public: Path) -> None:
        """Commit the hash of the sums in the ledger, and write its proof."""
        sums = (public / SUMS).read_bytes()
        commitment = ledger.commitment(self.release_id)
        if commitment is None:
            running = ledger.recover().state.running.get(self.release_id)
            if running is None or running.seq != _entry_of(public):
                raise LedgerError(f"the reserve of {self.release_id!r} is not open any more")
            # What the ledger will vouch for is on the disk before it does.
            sync(public)
            ledger.append(commit(self.release_id, sums, today().isoformat(), running))
        elif commitment.sums != f"sha256:{sha256(sums)}":
            raise LedgerError(f"{self.release_id!r} is committed with other files")
        _put(public / PROOF, ledger_proof(ledger.recover(), self.release_id, ledger.folder))

    def _recover(self) -> None:
        """Continue from the last mark of an earlier run."""
        staged = self._work / _STAGED
        if self.ledger is None and (self._work / _RUN).exists():
            raise LedgerError(
                f"--out: a run of {self.release_id!r} with a ledger was cut off here; "
                "run it again with its ledger and --key"
            )
        if os.path.lexists(self._final):
            # That run had only to remove its folder; or another run published in the meantime.
            shutil.rmtree(self._work, ignore_errors=True)
            check_free(self.out, self.release_id)
        if staged.exists() and self._can_finish(staged / "public"):
            self.recovered = self.finish()
            return
        if (self._work / _DRAWN).exists() and self._render():
            self.recovered = self.finish()
            return
        self._give_up("cut-off")

    def _render(self) -> bool:
        """Stage what an earlier run has drawn; False where its draw is damaged, or not paid for.

        Raises:
            StorageError: the disk is full, or cannot be read. What was drawn stays for a later run.
            SpecError: a public file that the spec names has changed. What was drawn stays.
            ReleaseError: this version cannot write it. What was drawn stays.
            LedgerError: the ledger is not intact.
        """
        # Imported here: they load the kinds of queries and the report, and few runs need them.
        from release.bundle.drawn import Draw

        self._remove(_STAGED, _SCRATCH)
        try:
            draw = Draw.read(self._work / _PREPARED, self._work / _DRAWN)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageError(f"{self._work}: what was drawn cannot be read") from error
        # A file that was changed can fail in any way, and a run must get past it.
        except Exception:
            return False
        if not self._fits(draw):
            return False
        own = self._spec_file
        if own is not None and own.text != draw.text:
            own = None
        try:
            self.stage(lambda folder: draw.write(folder, own))
        except (LedgerError, StorageError, SpecError, MemoryError):
            raise
        except Exception as error:
            raise ReleaseError(self._not_written(error)) from error
        return True

    def _fits(self, draw: Draw) -> bool:
        """Whether a draw is of the open reserve of a run in this folder."""
        if draw.record.release_id != self.release_id:
            return False
        if self.ledger is None:
            return draw.record.sequence is None
        running = self.ledger.recover().state.running.get(self.release_id)
        if running is None or not self._is_own(running):
            return False
        return running.seq == draw.record.sequence

    def _keeps_draw(self, error: BaseException | None) -> bool:
        """Whether what was drawn stays for the next run: no refusal ends this one."""
        if error is None or not (self._work / _DRAWN).exists():
            return False
        # A refusal would come again; a full disk, an interruption or a lack of memory need not.
        is_refusal = isinstance(error, ReleaseError) and type(error) is not ReleaseError
        return isinstance(error, StorageError) or not is_refusal

    def _can_finish(self, public: Path) -> bool:
        """Whether the staged release has an open reserve or a commit in its ledger, if any."""
        if not public.exists():
            return False
        entry = _entry_of(public)
        if self.ledger is None:
            return entry is None
        state = self.ledger.recover().state
        running = state.running.get(self.release_id)
        is_open = running is not None and running.seq == entry
        return is_open or state.is_committed(self.release_id)

    def _abandon(self) -> None:
        """Give up what a run has left here, unless the ledger counts it as published.

        Raises:
            LedgerError: it is committed, or another machine is at work on it.
        """
        if self.ledger is not None and self.ledger.commitment(self.release_id) is not None:
            raise LedgerError(
                f"{self.release_id!r} is committed in the ledger, and only has to be put in its "
                "place: dp-release recover"
            )
        self._give_up("abandoned")

    def _give_up(self, reason: AbortReason) -> None:
        """Abort a reserve that led to nothing public, and remove the files of its run."""
        if self.ledger is not None:
            state = self.ledger.recover().state
            running = state.running.get(self.release_id)
            if running is not None:
                if state.store is not None and not self._is_own(running):
                    raise LedgerError(
                        f"a run of {self.release_id!r} is at work on another machine; if that "
                        f"machine is gone: dp-release recover --abandon {self.release_id}"
                    )
                drawn = self._may_be_drawn(running)
                self.lost = drawn
                day = today().isoformat()
                self.ledger.append(
                    abort(self.release_id, day, drawn=drawn, of=running, reason=reason)
                )
        self._remove(_PART, _STAGED, _SCRATCH, _PREPARED)
        # Last, after the abort: until then they are the evidence of what may have been drawn.
        for mark in (_ASIDE, _ROOM, _DRAWN, _DRAWING, _RUN):
            with suppress(OSError):
                (self._work / mark).unlink(missing_ok=True)

    def _remove(self, *names: str) -> None:
        """Remove folders of the working folder, as far as possible."""
        for name in names:
            shutil.rmtree(self._work / name, ignore_errors=True)

    def _may_be_drawn(self, entry: Reserve) -> bool:
        """Whether noise may have been drawn for a reserve; in doubt it may."""
        if self._run == entry.run:
            return self._is_drawing
        # The marks of a run in another folder are not here to be looked at.
        is_marked = any((self._work / mark).exists() for mark in (_DRAWING, _DRAWN))
        return is_marked or not self._is_own(entry)

    def _is_own(self, entry: Reserve) -> bool:
        """Whether a reserve is of a run that worked in this folder."""
        mark = self._work / _RUN
        return entry.run is not None and mark.is_file() and mark.read_bytes() == entry.run.encode()

    def _take_lock(self) -> int:
        """Lock the working folder; the lock ends with the process."""

        def acquire(descriptor: int) -> None:
            try:
                # ``is_at_work`` also holds the lock for an instant.
                lock(descriptor, (0.05, 0.15, 0.3))
            except OSError as error:
                raise LedgerError(
                    f"--out: another run is publishing {self.release_id!r} there right now"
                ) from error

        with storage_errors(self.out, "the release"):
            return locked_folder(self._work, acquire)

    def _leave(self) -> None:
        """Release the lock, and remove folders that are empty."""
        for folder in (self._work, self.out / "auditor", self.out / "public", *self._created):
            with suppress(OSError):
                folder.rmdir()
        os.close(self._lock)


def _entry_of(public: Path) -> int | None:
    """The entry of the ledger that a staged release names."""
    record: forms.Release = forms.loads(forms.Release, RECORD, (public / RECORD).read_bytes())
    return None if record.made.ledger is None else record.made.ledger.entry


def _put(path: Path, data: bytes) -> None:
    """Write a file of which an earlier run may have left a part."""
    path.unlink(missing_ok=True)
    write(path, data)
