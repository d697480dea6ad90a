"""Writing files that last: with exactly their mode, whole, and synced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from release.errors import StorageError

PUBLIC_FILE = 0o644


@contextmanager
def storage_errors(path: Path, what: str) -> Iterator[None]:
    """Tell an error of the file system as one of ours: where, and what could not be written.

    Raises:
        StorageError: in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{path}: {what} cannot be written ({problem})") from error


def make_folder(folder: Path, mode: int) -> None:
    """Make the folder and those above it with exactly this mode, whatever the umask."""
    # One by one, because mkdir gives its mode to the last folder only.
    for part in reversed((folder, *folder.parents)):
        if not part.exists():
            part.mkdir(exist_ok=True)
            part.chmod(mode)


def write(path: Path, data: bytes, mode: int = PUBLIC_FILE) -> None:
    """Write a new file and sync it; its folder is made where it is missing."""
    make_folder(path.parent, 0o755 if mode == PUBLIC_FILE else 0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_anew(path: Path, data: bytes) -> None:
    """Write a public file in the place of an older one, if there is one; never half of it."""
    aside = path.with_name(f".{path.name}.new")
    aside.unlink(missing_ok=True)
    write(aside, data)
    try:
        aside.replace(path)
    except OSError:
        aside.unlink()
        raise


def sync_tree(root: Path) -> None:
    """Sync a folder and those below it, so that the names in them last."""
    for folder in (root, *(p for p in root.rglob("*") if p.is_dir())):
        sync(folder)


def sync(folder: Path) -> None:
    """Sync a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
