"""The software that makes a release: its version, and a hash of its files that anybody can compute.

The hash of the sources is that of the installed files, and equal for a wheel and a checkout. It
holds no path and no name of a machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dp_release_verify import forms
from dp_release_verify.digests import sha256
from release.version import VERSION

PACKAGES = ("dp_release_verify", "flows", "release")
"""The packages of the wheel, side by side in one folder."""
_SAMPLES = ("release", "samples")
"""A folder of the wheel alone: the build copies data there, and a checkout has it elsewhere."""


# Once for a process: what it imported does not change while it runs.
@cache
def software() -> forms.Software:
    """The version of what runs here, and the hash of its files."""
    return forms.Software(VERSION, sha256(source_text(Path(__file__).parents[2]).encode()))


def source_text(folder: Path) -> str:
    """One line ``<sha256>  <path>`` for each file of the packages below ``folder``, as sha256sum.

    Paths are relative, with ``/``, and sorted by their bytes. Byte code, hidden files and the
    wheel's samples are not part of it. The SHA-256 of the text names the software.
    """
    lines = []
    for path in _files(folder):
        lines.append((path.relative_to(folder).as_posix(), sha256(path.read_bytes())))
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(lines))


def _files(folder: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in (folder / package).rglob("*"):
            parts = path.relative_to(folder).parts
            if parts[:2] != _SAMPLES and not any(map(_is_hidden, parts)) and path.is_file():
                yield path


def _is_hidden(part: str) -> bool:
    """Whether a file below this name is an editor's or the interpreter's, and no source."""
    return part == "__pycache__" or part.startswith(".")


@dataclass(frozen=True)
class Library:
    """An installed library: its version, and what it asks for."""

    version: str
    requirements: tuple[Requirement, ...]


def closure(extras: Iterable[str]) -> dict[str, Library]:
    """The installed libraries that the core and ``extras`` lead to, by their normalized names.

    Raises:
        PackageNotFoundError: dp-release is not installed, so it declares nothing.
    """
    # Pairs of a library and one of its extras: libraries ask for each other in circles.
    visited = set(itertools.product([_OURS], ("", *extras)))
    ahead = sorted(visited)
    libraries = {_OURS: _library(_OURS)}
    while ahead:
        parent, extra = ahead.pop()
        for requirement in _needed(libraries[parent], extra):
            name = canonicalize_name(requirement.name)
            pairs = set(itertools.product([name], ("", *requirement.extras))) - visited
            visited |= pairs
            try:
                libraries.setdefault(name, _library(name))
            except PackageNotFoundError:
                continue
            ahead.extend(pairs)
    del libraries[_OURS]
    return libraries


_OURS = "dp-release"


# Reading and parsing is what takes time: once for each library, and not once for each that asks.
@cache
def _library(name: str) -> Library:
    metadata = distribution(name).metadata
    lines = metadata.get_all("Requires-Dist") or ()
    return Library(metadata["Version"], tuple(map(Requirement, lines)))


def _needed(library: Library, extra: str) -> Iterator[Requirement]:
    for requirement in library.requirements:
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
