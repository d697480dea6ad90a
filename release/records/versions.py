"""Versions of our file formats: which are read, and what is said of others.

A file that was published is signed and never rewritten, so an upgrade is never of files: whatever
version was published once stays readable, and for each there is a folder in ``tests/formats`` that
has to verify for ever. A reader of a later version goes beside the older one, under its own name in
:data:`READ`; writers move on. A file of a version that is not here was written by a later
dp-release, and the remedy is that one.
"""

from __future__ import annotations

import re

from release.version import VERSION

READ = {
    "spec": (1,),
    "release": (1,),
    "law": (1,),
    "sensitivity": (1,),
    "openings": (1,),
    "table": (1,),
}
"""The versions of each format that can be read, newest last."""

_NAME = re.compile(r"dp-release/([a-z]+)/v([1-9][0-9]{0,3})", re.ASCII)


def unread(told: object) -> str | None:
    """Why a file that says it is of this format cannot be read; None where nothing is said."""
    match = _NAME.fullmatch(told) if isinstance(told, str) else None
    if match is None or match[1] not in READ:
        return None
    version, known = int(match[2]), READ[match[1]]
    if version in known:
        return None
    return (
        f"{told} is of a later format; dp-release {VERSION} reads up to "
        f"dp-release/{match[1]}/v{known[-1]}: install a later one"
    )
