"""What a run reaches beyond its own folders: files that it writes elsewhere, other programs, hosts.

Python tells its audit hooks of these calls (PEP 578). What a library does in code of its own, such
as DuckDB, Arrow or the JVM of Spark, Python does not see.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGED = {"os.mkdir": 0, "os.truncate": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}
"""Calls that change a file or folder, with the place of its path among the arguments."""

_REACHED = {
    **{"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0},
    **{"subprocess.Popen": 1, "os.system": 0, "os.exec": 0, "os.posix_spawn": 0},
}
"""Calls that reach another program or host, with the place of what says which."""


@dataclass
class Elsewhere:
    """Collects what is reached outside of ``folder``."""

    folder: str
    calls: list[str] = field(default_factory=list)

    def note(self, event: str, arguments: tuple[object, ...]) -> None:
        """Note a call, unless it is on the folder or changes nothing."""
        if event in _REACHED:
            self.calls.append(f"{event}: {arguments[_REACHED[event]]!r}")
            return
        place = 0 if event == "open" and _writes(arguments) else _CHANGED.get(event)
        if place is None:
            return
        path = arguments[place]
        # A number is an open file, which was noted as it was opened.
        if isinstance(path, str | bytes | os.PathLike) and not self._is_inside(path):
            self.calls.append(f"{event}: {os.fsdecode(path)}")

    def _is_inside(self, path: str | bytes | os.PathLike[str]) -> bool:
        whole = os.path.realpath(os.fsdecode(path))
        return whole == os.devnull or whole.startswith(f"{self.folder}{os.sep}")


def _writes(arguments: tuple[object, ...]) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str):
        return not set(mode).isdisjoint("wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


_noting: list[Elsewhere] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    for elsewhere in _noting:
        elsewhere.note(event, arguments)


_hooked: list[bool] = []


@contextlib.contextmanager
def noting(folder: Path) -> Iterator[Elsewhere]:
    """Note what the block reaches outside of a folder."""
    if not _hooked:
        # A hook stays until the process ends, so there is one, and only where it is needed.
        sys.addaudithook(_hook)
        _hooked.append(True)
    elsewhere = Elsewhere(os.path.realpath(folder))
    _noting.append(elsewhere)
    try:
        yield elsewhere
    finally:
        _noting.remove(elsewhere)
