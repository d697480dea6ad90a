"""The versions of a release, by its id: first ``NAME``, then ``NAME-r2``, ``NAME-r3`` and so on."""

from __future__ import annotations

import re

_VERSIONED = re.compile(r"(.*)-r([1-9][0-9]{0,8})", re.ASCII | re.DOTALL)


def split_version(release_id: str) -> tuple[str, int]:
    """The id of the first version, and the number of this one; 1 where the id has none."""
    match = _VERSIONED.fullmatch(release_id)
    return (match[1], int(match[2])) if match else (release_id, 1)


def next_version(release_id: str) -> str:
    """The id of the version after a release: ``NAME-r2`` after ``NAME``, ``NAME-r3`` after that."""
    stem, number = split_version(release_id)
    return f"{stem}-r{number + 1}"
