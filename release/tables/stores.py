"""Stores: file systems and object stores that tables are read from and releases are delivered to.

A store is named by a path or a URI: ``/srv/public``, ``file:///srv/public``, ``s3://bucket/folder``
(Arrow's own file systems, with their options in the query part), or ``memory://`` and whatever else
fsspec knows. The ledger and the releases of ``OUT`` are the original; a store holds a copy.

What a reader of a store may rely on (:mod:`release.operate.delivery` writes there). Where there is
a rename that is atomic (the local file system), a release appears all at once. Elsewhere its files
are put one by one and ``SHA256SUMS`` last: a release without it is not there yet, and one with it
has all its files. Every file is read back before that. Nothing is ever put over something else, so
a delivery that was cut off goes on from where it was, and two that race write the same bytes.
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
        """Whether a folder can be renamed, at once and for all readers."""
        return bool(self.filesystem.type_name == "local")

    def path(self, name: str) -> str:
        """Where a name is, for the file system."""
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
        """What changes when a file is replaced; ``paths`` are the file system's own."""
        with _store_errors(self.label, "read"):
            found = self.filesystem.get_file_info(list(paths))
            return [(0, one.size or 0, one.mtime_ns or 0) for one in found]

    def copy_out(self, path: str, target: Path) -> None:
        """Copy a file out of the store, for its owner's eyes only; ``path`` is the store's own.

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
                target.chmod(0o600)
                shutil.copyfileobj(stream, file)

    def put(self, name: str, data: bytes) -> None:
        """Put bytes under a name where there are none, and read them back.

        Raises:
            StorageError: there are other bytes already, or the store does not take them.
        """
        there = self.read(name)
        if there is None:
            self.replace(name, data)
            there = self.read(name)
        if there != data:
            raise StorageError(f"{self.label}: {name} holds other bytes; nothing is put over it")

    def replace(self, name: str, data: bytes) -> None:
        """Put bytes under a name, in the place of what may be there; never a part of them.

        Raises:
            StorageError: the store does not take them.
        """
        if self.renames:
            path = Path(self.path(name))
            with storage_errors(Path(self.label), "a delivery"):
                make_folder(path.parent, 0o755)
                write_anew(path, data)
                sync(path.parent)
            return
        with (
            _store_errors(self.label, "written"),
            self.filesystem.open_output_stream(self.path(name)) as stream,
        ):
            stream.write(data)

    def sizes(self, folder: str) -> dict[str, int]:
        """The files right in a folder, and how long each is; maybe none.

        Raises:
            StorageError: the store does not answer.
        """
        from pyarrow.fs import FileSelector, FileType

        with _store_errors(self.label, "read"):
            selector = FileSelector(self.path(folder), allow_not_found=True)
            found = self.filesystem.get_file_info(selector)
            return {one.base_name: one.size or 0 for one in found if one.type is FileType.File}

    def names(self, folder: str, *, recursive: bool = False) -> list[str]:
        """The files in a folder, or the folders and files right in it, sorted; maybe none.

        Raises:
            StorageError: the store does not answer.
        """
        from pyarrow.fs import FileSelector, FileType

        with _store_errors(self.label, "read"):
            base = self.path(folder)
            selector = FileSelector(base, recursive=recursive, allow_not_found=True)
            found = self.filesystem.get_file_info(selector)
            kept = [one for one in found if not recursive or one.type is FileType.File]
            return sorted(
                str(PurePosixPath(one.path).relative_to(PurePosixPath(base))) for one in kept
            )


def open_store(text: str, field: str) -> Store:
    """The store that a path or URI names; ``field`` is what messages speak of.

    Raises:
        SpecError: there is no such file system, or its library is not installed.
    """
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    match = _URI.match(text)
    label = text.partition("?")[0]
    if re.search(r"://[^/]*@", label):
        raise SpecError(field, "names credentials; they belong into the environment")
    if not text.strip():
        raise SpecError(field, "names no place; write a folder, s3://… or another URI")
    try:
        if match is None:
            found, root = FileSystem.from_uri(Path(text).absolute().as_uri())
        elif match[1] in _ARROW:
            found, root = FileSystem.from_uri(text)
        else:
            import fsspec

            inner, root = fsspec.core.url_to_fs(text)
            found = PyFileSystem(FSSpecHandler(inner))
    except ImportError as error:
        raise SpecError(
            field, f"{label} needs fsspec and its library for such a store; pip install them"
        ) from error
    # Every file system raises whatever its own library does.
    except Exception as error:
        raise SpecError(field, f"{label} is no place that can be opened") from error
    return Store(found, str(root).rstrip("/"), label)


@contextmanager
def _store_errors(label: str, what: str) -> Iterator[None]:
    """Messages of a store may hold addresses and tokens."""
    try:
        yield
    except ReleaseError:
        raise
    # A store may raise whatever its own library does.
    except Exception as error:
        kind = type(error).__name__
        raise StorageError(f"{label}: the store cannot be {what} ({kind})") from error
