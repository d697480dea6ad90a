"""A format of tables: what it is found by, how its schema is checked, and how it is read.

A new one is a file here and an entry of ``FORMATS`` (docs/design/extending.md). No row can make a
table unreadable: a file is refused for its schema alone, before any row is read, and a value that
is not of its declared type is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import pyarrow as pa

from release.records.stores import Store
from release.spec.declarations import Table

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

Incoming: TypeAlias = pa.Table | pa.RecordBatchReader
"""Rows on their way into the engine, with the declared columns: as stored, or as text."""


_PACKED = frozenset({".gz", ".zst", ".bz2"})


def ending_of(file: PurePath) -> str:
    """The ending of a file in small letters; of a packed one with that of what is in it."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return "".join(suffixes[-2:] if suffixes and suffixes[-1] in _PACKED else suffixes[-1:])


@dataclass(frozen=True)
class Source:
    """The files of one table, all of one format, in the order of their names.

    ``partitions`` are the columns in the names of folders below ``root``. With a ``store`` the
    files are in that store, else on this machine.
    """

    files: tuple[Path, ...]
    format: Format
    root: Path
    partitions: tuple[str, ...] = ()
    store: Store | None = None

    @property
    def filesystem(self) -> FileSystem | None:
        """The file system of the store."""
        return None if self.store is None else self.store.filesystem

    def stamps(self) -> list[tuple[int, int, int]]:
        """Inode, size and time of each file, which differ once a file is written or replaced."""
        if self.store is not None:
            return self.store.stamps(map(str, self.files))
        stamps = []
        try:
            for file in self.files:
                # SQLite writes to a log beside the file first.
                log = file.with_name(f"{file.name}-wal")
                for path in (file, log) if log.exists() else (file,):
                    stat = path.stat()
                    stamps.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            # Differs from every list of files, so a file that vanished counts as changed.
            return []
        return stamps

    def fetched(self, folder: Path) -> Source:
        """The source with its files copied from their store into a private folder.

        Raises:
            StorageError: the store does not answer, or the folder is full.
        """
        if self.store is None:
            return self
        files = []
        for number, file in enumerate(self.files):
            # Files of different folders may share a name.
            copy = folder / "fetched" / str(number) / file.name
            self.store.copy_out(str(file), copy)
            files.append(copy)
        return Source(tuple(files), self.format, folder, self.partitions)


@dataclass(frozen=True)
class Format(ABC):
    """A format of tables."""

    endings: ClassVar[frozenset[str]] = frozenset()
    """The endings of its files, in small letters."""

    is_csv: ClassVar[bool] = False
    """Whether its files are written as ``csv`` and ``missing`` of a table say."""

    is_database: ClassVar[bool] = False
    """Whether one file holds many tables, of which ``relation`` names one."""

    def fetched(
        self, tables: Mapping[str, Table], sources: Mapping[str, Source], folder: Path
    ) -> Mapping[str, Source]:
        """The sources of all tables of this format, copied into a folder where they have to be.

        Raises:
            SpecError, DataError, StorageError: they cannot be copied.
        """
        return sources

    def check(self, name: str, table: Table, source: Source) -> None:
        """Check the schemas of the files, where they have any; no row is read.

        Raises:
            SpecError: a declared column is missing, ambiguous or of another type.
            DataError: a file is not readable.
        """
        # A format whose schema is not apart from its rows is checked as it is read.
        return

    @abstractmethod
    def read(self, name: str, table: Table, source: Source, folder: Path) -> Iterator[Incoming]:
        """The declared columns in batches, anew at each call; at least one batch. Confidential.

        ``folder`` is private, for what has to be copied first.

        Raises:
            SpecError: a declared column is missing, or is computed when it is read.
            DataError: the table cannot be read.
        """
