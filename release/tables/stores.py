"""Stores: file systems and object stores that tables are read from and releases are delivered to.

A store is named by a path or a URI: ``/srv/public``, ``file:///srv/public``, ``s3://bucket/folder``
(Arrow's own file systems, with their options in the query part), or ``memory://`` and whatever else
fsspec knows. The ledger and the releases of ``OUT`` are the original; a store holds a copy.

A reader of a store may rely on this. Where renaming is atomic (the local file system), a release
appears all at once. Elsewhere its files are written one by one and ``SHA256SUMS`` last: a release
that has it is complete. Every file is read back before that. No file is ever overwritten by
another, so an interrupted delivery can be continued, and two that race write the same bytes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from release.errors import ReleaseError, SpecError, StorageError
from release.records.files import make_folder, storage_errors, sync, write_anew

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://", re.ASCII)
_ARROW = {"file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"}


def is_uri(text: str) -> bool:
    """Whether a path names a store other than this machine's files."""
    return _URI.match(text) is not None


@dataclass(frozen=True)
class Store:
    """A folder in a store; names are relative to it, with ``/`` between their parts.

    ``label`` is its name in messages: its URI without options, which may be secrets.
    """

    filesystem: FileSystem
    root: str
    label: str

    @property
    def renames(self) -> bool:
        """Whether a folder can be renamed atomically."""
        return bool(self.filesystem.type_name == "local")

    def path(self, name: str) -> str:
        """The path of a name in the file system."""
        return f"{self.root}/{name}" if name else self.root

    def read(self, name: str) -> bytes | None:
        """The bytes under a name, or None where there is no file.

        Raises:
            StorageError: the store does not answer.
        """
        with _store_errors(self.label, "read"):
            if not self.is_file(name):
                return None
            with self.filesystem.open_input_stream(self.path(name)) as stream:
                return bytes(stream.read())

    def is_file(self, name: str) -> bool:
        """Whether a name is that of a file.

        Raises:
            StorageError: the store does not answer.
        """
        from pyarrow.fs import FileType

        with _store_errors(self.label, "read"):
            return self.filesystem.get_file_info(self.path(name)).type is FileType.File

    def stamps(self, paths: Iterable[str]) -> list[tuple[int, int, int]]:
        """Size and time of each file, by its path; they differ once the file is replaced."""
        with _store_errors(self.label, "read"):
            infos = self.filesystem.get_file_info(list(paths))
            # A store has no inodes; the zero keeps the shape of a local stamp.
            return [(0, info.size or 0, info.mtime_ns or 0) for info in infos]

    def copy_out(self, path: str, target: Path) -> None:
        """Copy a file, by its path in the file system, to a new one that only its owner can read.

        Raises:
            StorageError: the store does not answer, or the disk is full.
        """
        with (
            storage_errors(target, "a copy of the table"),
            _store_errors(self.label, "read"),
            self.filesystem.open_input_stream(path) as stream,
        ):
            make_folder(target.parent, 0o700)
            with target.open("xb") as file:
                # Before the first byte: the umask may allow others to read.
                target.chmod(0o600)
                shutil.copyfileobj(stream, file)

    def put(self, name: str, data: bytes) -> None:
        """Write bytes under a name that has none, and read them back.

        Raises:
            StorageError: the name has other bytes already, or the store refuses them.
        """
        stored = self.read(name)
        if stored is None:
            self.replace(name, data)
            stored = self.read(name)
        if stored != data:
            raise StorageError(f"{self.label}: {name} holds other bytes; nothing is put over it")

    def replace(self, name: str, data: bytes) -> None:
        """Write bytes under a name, in place of older ones; a reader never sees a part of them.

        Raises:
            StorageError: the store refuses them.
        """
        if self.renames:
            path = Path(self.path(name))
            with storage_errors(Path(self.label), "a delivery"):
                make_folder(path.parent, 0o755)
                write_anew(path, data)
                sync(path.parent)
            return
        # An object of a store appears whole, when its stream is closed.
        with (
            _store_errors(self.label, "written"),
            self.filesystem.open_output_stream(self.path(name)) as stream,
        ):
            stream.write(data)

    def sizes(self, folder: str) -> dict[str, int]:
        """The files directly in a folder, with their sizes in bytes; empty for a missing folder.

        Raises:
            StorageError: the store does not answer.
        """
        from pyarrow.fs import FileSelector, FileType

        with _store_errors(self.label, "read"):
            selector = FileSelector(self.path(folder), allow_not_found=True)
            infos = self.filesystem.get_file_info(selector)
            return {info.base_name: info.size or 0 for info in infos if info.type is FileType.File}

    def names(self, folder: str) -> list[str]:
        """The sorted names of all files below a folder; empty for a missing folder.

        Raises:
            StorageError: the store does not answer.
        """
        from pyarrow.fs import FileSelector, FileType

        with _store_errors(self.label, "read"):
            base = self.path(folder)
            selector = FileSelector(base, recursive=True, allow_not_found=True)
            infos = self.filesystem.get_file_info(selector)
            paths = [PurePosixPath(info.path) for info in infos if info.type is FileType.File]
            return sorted(str(path.relative_to(base)) for path in paths)


def open_store(text: str, field: str) -> Store:
    """The store that a path or URI names; messages begin with ``field``.

    Raises:
        SpecError: there is no such file system, or its library is not installed.
    """
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    match = _URI.match(text)
    label = text.partition("?")[0]
    if re.search(r"://[^/]*@", label):
        raise SpecError(field, "names credentials; pass them in the environment")
    if not text.strip():
        raise SpecError(field, "is empty; write a folder, s3://… or another URI")
    try:
        if match is None:
            filesystem, root = FileSystem.from_uri(Path(text).absolute().as_uri())
        elif match[1] in _ARROW:
            filesystem, root = FileSystem.from_uri(text)
        else:
            import fsspec

            inner, root = fsspec.core.url_to_fs(text)
            filesystem = PyFileSystem(FSSpecHandler(inner))
    except ImportError as error:
        raise SpecError(
            field, f"{label} needs fsspec and its library for such a store; pip install them"
        ) from error
    # Each file system raises the exceptions of its own library.
    except Exception as error:
        raise SpecError(field, f"{label} cannot be opened as a store") from error
    return Store(filesystem, str(root).rstrip("/"), label)


@contextmanager
def _store_errors(label: str, what: str) -> Iterator[None]:
    """Translate the errors of a store; its messages may hold addresses and tokens."""
    try:
        yield
    except ReleaseError:
        raise
    # Each store raises the exceptions of its own library.
    except Exception as error:
        kind = type(error).__name__
        raise StorageError(f"{label}: the store cannot be {what} ({kind})") from error
