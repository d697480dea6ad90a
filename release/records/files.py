"""Writing durable files: with an exact mode, complete, and synced to the disk."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from release.errors import StorageError

PUBLIC_FILE = 0o644

MAX_FILE_BYTES = 2**30
"""No file of a release or of a ledger is larger."""

ASIDE, PART = ".put-", ".part-"
"""How the names of files and folders begin that are on their way to their place."""


_lasts: ContextVar[bool] = ContextVar("lasts", default=True)


@contextmanager
def without_sync() -> Iterator[None]:
    """Files that are written here are removed again, so that none has to outlast a power cut."""
    token = _lasts.set(False)
    try:
        yield
    finally:
        _lasts.reset(token)


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


def read_plain(path: Path) -> bytes:
    """The bytes of a plain file, or of one that a link leads to.

    Raises:
        OSError: it is missing, something else, such as a pipe, or larger than 2^30 bytes.
    """
    # Opened without waiting: a pipe that nobody writes to would be waited for.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read()


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
        if _lasts.get():
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


def lock(descriptor: int, pauses: Iterable[float]) -> None:
    """Acquire the exclusive lock of a file, trying again after each of the ``pauses`` (seconds).

    Raises:
        BlockingIOError: another process holds it all the time.
    """
    for pause in pauses:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(pause)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def locked_folder(folder: Path, acquire: Callable[[int], None]) -> int:
    """Make a private folder and ``acquire`` its lock; the descriptor, whose end is the lock's.

    Raises:
        OSError: the folder cannot be made; whatever ``acquire`` raises.
    """
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            acquire(descriptor)
            # The holder before us may have removed the folder after we opened it.
            with suppress(FileNotFoundError):
                if os.fstat(descriptor).st_ino == folder.stat().st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
