"""Locks: one file for each version of Python, in the form of ``pip install --require-hashes``.

A lock holds every library of every extra, with the SHA-256 of each of its files, and neither
addresses nor the name of an index. Above each library a comment names the extras that need it and
its license. What the core needs is marked ``core`` alone, because every extra needs it too.

Only the standard library is imported: `make` reads locks before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13")
HEAD = """\
# Python {python} on Linux x86-64: every library of every extra, with the hashes of its files.
# Above each library: the extras that need it, and its license. Made by `python -m supply lock`.
"""

_ENTRY = re.compile(
    r"# (?P<extras>[a-z ]+); (?P<license>.+)\n"
    r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9A-Za-z.+!]+)"
    r"(?P<hashes>( \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)
CORE = "core"


class LockError(ValueError):
    """A lock cannot be read, or there is none."""


@dataclass(frozen=True)
class Pin:
    """A library: its normalized name, version, hashes of files, license, and who needs it.

    ``extras`` are sorted; it is ``("core",)`` where the core needs the library.
    """

    name: str
    version: str
    hashes: tuple[str, ...]
    extras: tuple[str, ...]
    license: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    def is_needed_by(self, extras: Collection[str]) -> bool:
        """Whether the core or one of ``extras`` needs the library."""
        return CORE in self.extras or not set(self.extras).isdisjoint(extras)


def running() -> str:
    """The version of the running Python, as locks are named."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def read(python: str, folder: Path = FOLDER) -> tuple[Pin, ...]:
    """The pins of one version of Python, sorted by name.

    Raises:
        LockError: there is no lock for this Python, or it was edited by hand into another form.
    """
    path = folder / f"python{python}.txt"
    if not path.is_file():
        raise LockError(f"no lock for Python {python}; use one of {', '.join(PYTHONS)}")
    text = path.read_text("utf-8")
    pins = tuple(map(_pin, _ENTRY.finditer(text)))
    # The text is exactly what its own pins render to, so no line can be overlooked.
    if render(python, pins) != text:
        raise LockError(f"{path.name} is not in its form; make it anew: python -m supply lock")
    return pins


def _pin(entry: re.Match[str]) -> Pin:
    hashes = tuple(re.findall(r"[0-9a-f]{64}", entry["hashes"]))
    extras = tuple(entry["extras"].split(" "))
    return Pin(entry["name"], entry["version"], hashes, extras, entry["license"])


def entries(pins: Iterable[Pin]) -> str:
    """The pins as pip reads them, in the order of their names."""
    text = []
    for pin in sorted(pins, key=lambda pin: pin.name):
        hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in pin.hashes)
        text.append(f"# {' '.join(pin.extras)}; {pin.license}\n{pin}{hashes}\n")
    return "".join(text)


def render(python: str, pins: Iterable[Pin]) -> str:
    """The text of a lock."""
    return HEAD.format(python=python) + entries(pins)


def select(pins: Iterable[Pin], extras: Collection[str]) -> list[Pin]:
    """What the core and ``extras`` need.

    Raises:
        LockError: no library is there for one of the extras.
    """
    pins = list(pins)
    known = {extra for pin in pins for extra in pin.extras}
    for extra in extras:
        if extra not in known:
            raise LockError(f"no extra {extra!r}; there are {', '.join(sorted(known))}")
    return [pin for pin in pins if pin.is_needed_by(extras)]


def environment(pins: Iterable[Pin]) -> str:
    """The text whose SHA-256 a release names: sorted lines ``name==version``."""
    return "".join(sorted(f"{pin}\n" for pin in pins))
