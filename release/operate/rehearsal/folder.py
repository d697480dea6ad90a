"""What the output folder of a run says beforehand: its ledger, and what is public there.

No lock is held but to read: a run may begin in the folder meanwhile, so what is found holds for the
moment. All that is written is when a spec was checked, for the run of it. That says nothing of a
table, and nothing of what the check found.
"""

from __future__ import annotations

import datetime
import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify.digests import sha256
from release.budget.ledger import read_ledger
from release.bundle.publish import (
    LEDGER,
    Forecast,
    check_device,
    check_free,
    is_at_work,
    open_ledger,
)
from release.errors import LedgerError, ReleaseError, StorageError
from release.job import Account, Unpaid
from release.records.keys.outside import read_key

CHECKED = ".checked"
"""The folder of notes: a file for each spec that was checked, by its digest."""

_NOTED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC", re.ASCII)


def last_check(out: Path, spec: Path) -> str | None:
    """When the spec in this file was last checked for this folder; None where it was not.

    A template is one spec, for whatever period it was checked.
    """
    try:
        noted = (out / CHECKED / sha256(spec.read_bytes())).read_text("ascii")
    except (OSError, ValueError):
        return None
    return noted if _NOTED.fullmatch(noted) else None


@dataclass(frozen=True)
class Destination:
    """The output folder of a run, and the file of the key that signs there, if it has one."""

    out: Path
    key: Path | None = None

    def refusals(self, release_id: str) -> Iterator[ReleaseError]:
        """Why a run of this release could not begin here, whatever its tables hold."""
        try:
            self._check_writable()
            # What was cut off is not free either, but a run goes on with it.
            if not self._work(release_id).exists():
                check_free(self.out, release_id)
            if is_at_work(self.out, release_id):
                raise LedgerError(
                    f"--out: another run is publishing {release_id!r} there right now"
                )
            check_device(self.out)
        except ReleaseError as error:
            yield error
        try:
            ledger = open_ledger(self.out, None if self.key is None else read_key(self.key))
            if ledger is not None:
                ledger.check_key(read_ledger(ledger.folder))
        except ReleaseError as error:
            yield error

    def account(self, release_id: str) -> Account:
        """What would pay for this release, as it is now; nothing is written."""
        folder = self.out / LEDGER
        # The ledger has the charge of a release that was cut off already.
        if self.key is None or not folder.is_dir() or self._work(release_id).exists():
            return Unpaid()
        return Forecast(folder, release_id)

    def note_check(self, spec: Path) -> None:
        """Note that the spec in this file is checked now."""
        folder = self.out / CHECKED
        # Where nothing can be written a run is refused, and the check has said so.
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            note = folder / sha256(spec.read_bytes())
            note.write_text(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC", "ascii")

    def _work(self, release_id: str) -> Path:
        return self.out / f".work-{release_id}"

    def _check_writable(self) -> None:
        # The first of them that is there is where a run makes the others.
        above = (self.out, *self.out.absolute().parents)
        there = next(folder for folder in above if folder.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            reason = os.strerror(errno.EACCES if there.is_dir() else errno.ENOTDIR)
            raise StorageError(f"{self.out}: the release cannot be written ({reason})")
