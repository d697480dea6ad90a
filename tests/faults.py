"""A file system that fails once: the n-th call that changes anything below a folder.

Calls are counted where Python makes them: opening for writing, write, fsync, link, rename, replace,
unlink, mkdir and rmdir. What engines write by themselves, into scratch folders, is not counted.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

Fault = Literal["EIO", "ENOSPC", "short", "full"]
"""``short`` writes half of the bytes and then fails, as a disk that fills up does; of other calls
it fails none. ``full`` fails the n-th call and each later one that needs space."""

NAMED: tuple[str, ...] = ("fsync", "link", "rename", "replace", "unlink", "mkdir", "rmdir")
NEED_SPACE = {"open", "write", "link", "mkdir"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Faults:
    """The calls below ``root`` that were made, and which of them fails, and how."""

    root: Path
    number: int
    fault: Fault
    calls: list[str] = field(default_factory=list)
    is_cut: bool = False
    """Whether half of a write was written, so that the next one fails."""

    @property
    def has_struck(self) -> bool:
        """Whether the run made as many calls."""
        return len(self.calls) > self.number

    @staticmethod
    def can_fail(fault: Fault, name: str) -> bool:
        """Whether a fault can befall a call of this name."""
        if fault == "short":
            return name == "write"
        return fault == "EIO" or name in NEED_SPACE

    def call(self, name: str, path: object) -> bool:
        """Count a call; whether it has to be cut short.

        Raises:
            OSError: the call fails.
        """
        if not self.is_below(path):
            return False
        place = len(self.calls)
        self.calls.append(name)
        if self.fault == "full":
            if place >= self.number and name in NEED_SPACE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif place == self.number:
            if self.fault == "short":
                return name == "write"
            code = getattr(errno, self.fault)
            raise OSError(code, os.strerror(code))
        return False

    def is_below(self, path: object) -> bool:
        """Whether a path, or what a descriptor is open on, lies below the root."""
        if isinstance(path, int):
            path = Path(f"/proc/self/fd/{path}").readlink()
        return Path(str(path)).absolute().is_relative_to(self.root)


class _Raw(io.FileIO):
    """A file whose writes are counted."""

    faults: Faults

    def write(self, data: Any) -> int:
        if self.faults.is_cut:
            self.faults.is_cut = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.faults.call("write", self.fileno()):
            self.faults.is_cut = True
            data = memoryview(data)[: len(data) // 2]
        return super().write(data)


@contextmanager
def failing(faults: Faults) -> Iterator[None]:
    """Have the calls counted, and the one fail."""
    opened, opened_file, opened_descriptor = os.open, io.open, os.fdopen

    def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **words: Any) -> Any:
            # A tree is removed relative to the descriptor of its folder.
            base = words.get("dir_fd")
            faults.call(name, path if base is None else base)
            return function(path, *arguments, **words)

        return counted

    def open_descriptor(path: Any, flags: int, *arguments: Any, **words: Any) -> int:
        if flags & WRITING:
            faults.call("open", path)
        return opened(path, flags, *arguments, **words)

    def writer(file: Any, mode: str) -> io.BufferedWriter:
        raw = _Raw(file, mode.replace("b", ""))
        raw.faults = faults
        return io.BufferedWriter(raw)

    def open_file(file: Any, mode: str = "r", *arguments: Any, **words: Any) -> Any:
        if set(mode) & set("wxa+") and faults.is_below(file):
            faults.call("open", file)
            if "b" in mode:
                return writer(file, mode)
        return opened_file(file, mode, *arguments, **words)

    def fdopen(descriptor: int, mode: str = "r", *arguments: Any, **words: Any) -> Any:
        if mode == "wb" and faults.is_below(descriptor):
            return writer(descriptor, mode)
        return opened_descriptor(descriptor, mode, *arguments, **words)

    with pytest.MonkeyPatch.context() as patch:
        for name in NAMED:
            patch.setattr(os, name, named(name, getattr(os, name)))
        patch.setattr(os, "open", open_descriptor)
        patch.setattr(os, "fdopen", fdopen)
        patch.setattr(io, "open", open_file)
        patch.setattr(builtins, "open", open_file)
        yield
