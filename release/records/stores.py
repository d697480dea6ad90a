"""Stores: folders and object stores that tables are read from and releases are delivered to.

A store is named by a path or a URI: ``/srv/public``, ``file:///srv/public``, ``s3://bucket/folder``,
``gs://bucket/folder``, ``abfss://container/folder``, or ``memory://name`` in tests. Credentials and
addresses come from the environment. The ledger and the releases of ``OUT`` are the original; a
store holds a copy.

A reader of a store may rely on this. In a folder a release appears all at once, by a rename.
Elsewhere its files are written one by one and ``SHA256SUMS`` last: a release that has it is
complete. Every file is read back before that. No file is ever overwritten by another, so an
interrupted delivery can be continued, and of two that race for a name one is told that it lost.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from release.errors import ReleaseError, SpecError, StorageError
from release.records.files import (
    ASIDE,
    PART,
    make_folder,
    storage_errors,
    sync,
    write_anew,
    written_aside,
)

if TYPE_CHECKING:
    import obstore.store
    from pyarrow.fs import FileSystem

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)(?:/(.*))?", re.ASCII | re.DOTALL)
_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_LEFT_BEHIND = timedelta(days=1)
"""What a delivery has left aside for longer, it will not come back for."""
_CLOUDS = {"s3", "gs", "az", "abfs", "abfss"}


def is_uri(text: str) -> bool:
    """Whether a path names a store other than this machine's files."""
    return _URI.match(text) is not None


@dataclass(frozen=True)
class Store(ABC):
    """A folder in a store; names are relative to it, with ``/`` between their parts.

    ``label`` is its name in messages, a URI or a path. ``root`` is its path in Arrow's file system.
    """

    label: str
    root: str

    @property
    @abstractmethod
    def renames(self) -> bool:
        """Whether a folder can be renamed atomically."""

    @property
    @abstractmethod
    def filesystem(self) -> FileSystem:
        """Arrow's file system of this store, for reading tables; its paths begin with ``root``."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """The bytes under a name, or None where there is no file.

        Raises:
            StorageError: the store does not answer.
        """

    @abstractmethod
    def is_file(self, name: str) -> bool:
        """Whether a name is that of a file.

        Raises:
            StorageError: the store does not answer.
        """

    @abstractmethod
    def stamps(self, paths: Iterable[str]) -> list[tuple[int, int, int]]:
        """Identity, size and time of each file, by its path; they differ once it is replaced."""

    @abstractmethod
    def copy_out(self, path: str, target: Path) -> None:
        """Copy a file, by its path in the file system, to a new one that only its owner can read.

        Raises:
            StorageError: the store does not answer, or the disk is full.
        """

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Write bytes under a name that has none; whether the name holds these bytes now.

        Of several writers that race for a name with different bytes, exactly one is told True.

        Raises:
            StorageError: the store refuses them, or does not answer; it may have written them.
        """

    @abstractmethod
    def replace(self, name: str, data: bytes) -> None:
        """Write bytes under a name, in place of older ones; a reader never sees a part of them.

        Raises:
            StorageError: the store refuses them.
        """

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The files directly in a folder, with their sizes in bytes; empty for a missing folder.

        Raises:
            StorageError: the store does not answer.
        """

    def holding(self, folder: str, file: str) -> set[str]:
        """The folders directly in ``folder`` that have a file of this name, from a listing.

        Raises:
            StorageError: the store does not answer.
        """
        folders = set()
        for name in self.names(folder):
            inner, _, rest = name.partition("/")
            if rest == file:
                folders.add(inner)
        return folders

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The sorted names of all files below a folder; empty for a missing folder.

        Raises:
            StorageError: the store does not answer.
        """

    def sweep(self) -> None:
        """Remove what deliveries that were cut off long ago have left aside; never fails."""
        return

    def path(self, name: str) -> str:
        """The path of a name in the file system."""
        return f"{self.root}/{name}" if name else self.root

    def put(self, name: str, data: bytes) -> None:
        """Write bytes under a name that has none, and read them back.

        Raises:
            StorageError: the name has other bytes already, or the store refuses them.
        """
        if not self.create(name, data):
            raise StorageError(f"{self.label}: {name} holds other bytes; nothing is put over it")


@dataclass(frozen=True)
class Folder(Store):
    """A folder of this machine, which others may mount too.

    Its files are written by this package: object_store syncs no file, gives none an exact mode, and
    its threads do not survive a fork.
    """

    @property
    def renames(self) -> bool:
        """A folder of a file system can be renamed atomically."""
        return True

    @property
    def filesystem(self) -> FileSystem:
        """The files of this machine."""
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem()

    def read(self, name: str) -> bytes | None:
        """As :meth:`Store.read`."""
        with _store_errors(self.label, "read"), suppress(*_NO_FILE):
            return Path(self.path(name)).read_bytes()
        return None

    def is_file(self, name: str) -> bool:
        """As :meth:`Store.is_file`."""
        return Path(self.path(name)).is_file()

    def stamps(self, paths: Iterable[str]) -> list[tuple[int, int, int]]:
        """As :meth:`Store.stamps`."""
        stamps = []
        with _store_errors(self.label, "read"):
            for path in paths:
                status = Path(path).stat()
                # A file put in the place of another can have its size and time, not its inode.
                stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return stamps

    def copy_out(self, path: str, target: Path) -> None:
        """As :meth:`Store.copy_out`."""
        with _store_errors(self.label, "read"), Path(path).open("rb") as source:
            _copy(iter(lambda: source.read(2**20), b""), target)

    def create(self, name: str, data: bytes) -> bool:
        """As :meth:`Store.create`."""
        path = Path(self.path(name))
        with storage_errors(Path(self.label), "a delivery"):
            # A link fails where the name exists; a rename would replace the file silently.
            with written_aside(path, data) as aside, suppress(FileExistsError):
                os.link(aside, path)
            sync(path.parent)
        return self.read(name) == data

    def replace(self, name: str, data: bytes) -> None:
        """As :meth:`Store.replace`."""
        path = Path(self.path(name))
        with storage_errors(Path(self.label), "a delivery"):
            make_folder(path.parent, 0o755)
            write_anew(path, data)
            sync(path.parent)

    def sweep(self) -> None:
        """As :meth:`Store.sweep`."""
        root, oldest = Path(self.root), time.time() - _LEFT_BEHIND.total_seconds()
        strays: list[Path] = []
        with suppress(OSError):
            for pattern in (f"{ASIDE}*", f"*/{ASIDE}*", f"{PART}*"):
                strays += root.glob(pattern)
        for stray in strays:
            # Another machine may be writing a younger one, or remove this one as well.
            with suppress(OSError):
                if stray.stat().st_mtime >= oldest:
                    continue
                if stray.is_dir():
                    shutil.rmtree(stray)
                else:
                    stray.unlink()

    def sizes(self, folder: str) -> dict[str, int]:
        """As :meth:`Store.sizes`."""
        sizes: dict[str, int] = {}
        with _store_errors(self.label, "read"), suppress(*_NO_FILE):
            for path in Path(self.path(folder)).iterdir():
                # Temporary files of other machines come and go; the listing goes on without them.
                with suppress(*_NO_FILE):
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        sizes[path.name] = status.st_size
        return sizes

    def holding(self, folder: str, file: str) -> set[str]:
        """As :meth:`Store.holding`."""
        with _store_errors(self.label, "read"):
            return {path.parent.name for path in Path(self.path(folder)).glob(f"*/{file}")}

    def names(self, folder: str) -> list[str]:
        """As :meth:`Store.names`."""
        base = Path(self.path(folder))
        with _store_errors(self.label, "read"):
            files = filter(Path.is_file, base.rglob("*"))
            return sorted(str(file.relative_to(base)) for file in files)


@dataclass(frozen=True)
class Objects(Store):
    """A folder in an object store, by object_store of Rust."""

    objects: obstore.store.ObjectStore
    prefix: str

    @property
    def renames(self) -> bool:
        """An object store renames no folder."""
        return False

    @property
    def filesystem(self) -> FileSystem:
        """Arrow's own client: its Parquet reader fetches columns ahead and in parallel."""
        from pyarrow.fs import FileSystem

        with _store_errors(self.label, "read"):
            filesystem, _ = FileSystem.from_uri(self.label)
            return filesystem

    def read(self, name: str) -> bytes | None:
        """As :meth:`Store.read`."""
        import obstore

        with _store_errors(self.label, "read"), suppress(FileNotFoundError):
            return bytes(obstore.get(self.objects, self._key(name)).bytes())
        return None

    def is_file(self, name: str) -> bool:
        """As :meth:`Store.is_file`."""
        import obstore

        with _store_errors(self.label, "read"), suppress(FileNotFoundError):
            obstore.head(self.objects, self._key(name))
            return True
        return False

    def stamps(self, paths: Iterable[str]) -> list[tuple[int, int, int]]:
        """As :meth:`Store.stamps`."""
        import obstore

        stamps = []
        with _store_errors(self.label, "read"):
            for path in paths:
                meta = obstore.head(self.objects, self._key(self._name(path)))
                # A store's times may be whole seconds; its tag tells two versions apart.
                tag = hashlib.sha256((meta["e_tag"] or "").encode()).digest()
                time = int(meta["last_modified"].timestamp() * 10**6)
                stamps.append((int.from_bytes(tag[:8], "big"), meta["size"], time))
        return stamps

    def copy_out(self, path: str, target: Path) -> None:
        """As :meth:`Store.copy_out`."""
        import obstore

        with _store_errors(self.label, "read"):
            stream = obstore.get(self.objects, self._key(self._name(path))).stream()
            _copy(map(bytes, stream), target)

    def create(self, name: str, data: bytes) -> bool:
        """As :meth:`Store.create`."""
        import obstore

        failure = None
        try:
            # In one request, because an upload in parts ignores the condition.
            obstore.put(self.objects, self._key(name), data, mode="create", use_multipart=False)
        except obstore.exceptions.AlreadyExistsError:
            pass
        # The answer may have been lost after the object was written, so it is looked at.
        except Exception as error:
            failure = error
        stored = self.read(name)
        if stored is None or (failure is not None and stored != data):
            with _store_errors(self.label, "written"):
                raise failure or FileNotFoundError(name)
        return stored == data

    def replace(self, name: str, data: bytes) -> None:
        """As :meth:`Store.replace`."""
        import obstore

        with _store_errors(self.label, "written"):
            obstore.put(self.objects, self._key(name), data)

    def sizes(self, folder: str) -> dict[str, int]:
        """As :meth:`Store.sizes`."""
        import obstore

        with _store_errors(self.label, "read"):
            listing = obstore.list_with_delimiter(self.objects, self._key(folder))["objects"]
            return {PurePosixPath(meta["path"]).name: meta["size"] for meta in listing}

    def names(self, folder: str) -> list[str]:
        """As :meth:`Store.names`."""
        import obstore

        base, paths = self._key(folder), []
        with _store_errors(self.label, "read"):
            for meta in chain.from_iterable(obstore.list(self.objects, base)):
                name = str(PurePosixPath(meta["path"]).relative_to(base))
                # The object of the folder's own name is not in it.
                if name != ".":
                    paths.append(name)
        return sorted(paths)

    def _key(self, name: str) -> str:
        return "/".join(filter(None, (self.prefix, name)))

    def _name(self, path: str) -> str:
        return path.removeprefix(self.root).lstrip("/")


def _copy(chunks: Iterator[bytes], target: Path) -> None:
    with storage_errors(target, "a copy of the table"):
        make_folder(target.parent, 0o700)
        with target.open("xb") as file:
            # Before the first byte: the umask may allow others to read.
            target.chmod(0o600)
            for chunk in chunks:
                file.write(chunk)


def open_store(text: str, field: str) -> Store:
    """The store that a path or URI names; messages begin with ``field``. Nothing is read yet.

    Raises:
        SpecError: there is no such kind of store.
    """
    if not text.strip():
        raise SpecError(field, "is empty; write a folder, s3://… or another URI")
    label = text.partition("?")[0]
    match = _URI.fullmatch(label)
    if match is None:
        return Folder(text, str(Path(text).absolute()))
    scheme, host, rest = match.groups(default="")
    if "@" in host:
        raise SpecError(field, "names credentials; pass them in the environment")
    if label != text:
        raise SpecError(field, f"{label} has options after '?'; pass them in the environment")
    if scheme == "file":
        root = str(Path("/", unquote(rest)))
        return Folder(root, root)
    # A path is quoted in a URI and plain in the store: %20 there is a space here.
    prefix = unquote(rest).strip("/")
    root = "/".join(filter(None, (host, prefix)))
    if scheme == "memory":
        return Objects(label, root, _memory(), root)
    if scheme not in _CLOUDS or not host:
        raise SpecError(field, f"{label} cannot be opened as a store; write a folder or s3://…")
    try:
        return Objects(label, root, _cloud(f"{scheme}://{host}"), prefix)
    # Each kind of store raises an exception of its own for settings that it cannot use.
    except Exception as error:
        kind = type(error).__name__
        # Without its cause, as below.
        raise SpecError(
            field, f"{label} cannot be opened as a store; see its settings ({kind})"
        ) from None


_TIMEOUT = "300s"
"""The longest that one request may take; the largest file of a release has to be sent in it."""


def _cloud(uri: str) -> obstore.store.ObjectStore:
    """The bucket or container of a URI, with the settings of the environment."""
    from obstore.store import from_url

    # Encryption is left out only where the environment names an address without it.
    addresses = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
    is_plain = any(os.environ.get(name, "").startswith("http://") for name in addresses)
    return from_url(
        uri,
        client_options={"allow_http": is_plain, "connect_timeout": "5s", "timeout": _TIMEOUT},
        # A store that does not answer has to be told before the night is over.
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
    )


# One for the process: a delivery and its reader open the store by name, each for itself.
@cache
def _memory() -> obstore.store.ObjectStore:
    """The objects of ``memory://``, which end with the process."""
    from obstore.store import MemoryStore

    return MemoryStore()


_STATUSES = {403: ", access is denied", 404: ", no bucket of this name", 503: ", it is overloaded"}


@contextmanager
def _store_errors(label: str, what: str) -> Iterator[None]:
    """Translate the errors of a store; its messages may hold addresses and tokens."""
    try:
        yield
    except ReleaseError:
        raise
    # Each store raises the exceptions of its own library.
    except Exception as error:
        # Without its cause: an address may hold a token, and a scheduler logs causes.
        raise StorageError(f"{label}: the store cannot be {what} ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    """Why a store failed: the status that it answered, or how the connection ended."""
    # Only a number and words of our own are taken from the message.
    text = str(error)
    if match := re.search(r"non-2xx status code: ([1-5][0-9]{2})\b", text):
        status = int(match[1])
        return f"it answered {status}{_STATUSES.get(status, '')}"
    kind = re.search(r"\bkind: (Connect|Timeout)\b", text)
    ends = {"Connect": "no connection", "Timeout": "time-out"}
    return ends[kind[1]] if kind else type(error).__name__
