"""Writing durable files: with an exact mode, complete, and synced to the disk."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from release.errors import StorageError

PUBLIC_FILE = 0o644

ASIDE, PART = ".put-", ".part-"
"""How the names of files and folders begin that are on their way to their place."""


@contextmanager
def storage_errors(path: Path, what: str) -> Iterator[None]:
    """Translate errors of the file system: which path, and what could not be written.

    Raises:
        StorageError: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {what} cannot be written ({problem})") from error


def make_folder(folder: Path, mode: int) -> None:
    """Create the missing folders of a path with exactly this mode, whatever the umask."""
    # One by one, because mkdir applies its mode to the last folder only.
    for part in reversed((folder, *folder.parents)):
        if not part.exists():
            part.mkdir(exist_ok=True)
            part.chmod(mode)


def write(path: Path, data: bytes, mode: int = PUBLIC_FILE) -> None:
    """Write a new file and sync it, creating its folder if missing; never replaces a file."""
    make_folder(path.parent, 0o755 if mode == PUBLIC_FILE else 0o700)
    write_file(path, data, mode)


def write_file(path: Path, data: bytes, mode: int) -> None:
    """As :func:`write`, in a folder that has to be there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        # The umask may have removed bits of the mode.
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_anew(path: Path, data: bytes) -> None:
    """Write a public file, replacing an older one at once; a reader never sees a part of it."""
    with written_aside(path, data) as aside:
        aside.replace(path)


@contextmanager
def written_aside(path: Path, data: bytes) -> Iterator[Path]:
    """Write a public file beside ``path``, to be moved or linked there; else removed on exit."""
    # A fresh name, because writers on several machines may meet here. It is not the name of a
    # ledger's own temporary files, which its next writer removes.
    aside = path.with_name(f"{ASIDE}{secrets.token_hex(8)}")
    try:
        write(aside, data)
        yield aside
    finally:
        # One that stays is swept later; it must not hide what happened before.
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def sync_tree(root: Path) -> None:
    """Sync a folder and those below it, so that the names in them are durable."""
    for folder in (root, *filter(Path.is_dir, root.rglob("*"))):
        sync(folder)


def sync(folder: Path) -> None:
    """Sync a folder."""
    # Syncing a file makes its bytes durable, but not its name in the folder.
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Sync the bytes of a file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
