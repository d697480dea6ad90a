"""Versions of our file formats: which can be read, and the refusal of the others.

A published file is signed and never rewritten, so files are not upgraded: every published version
stays readable, and has a folder in ``tests/formats`` that has to verify for ever. The reader of a
later version is added beside the older ones in :data:`READ`, and only writers move on. A file of a
version that is not listed was written by a later dp-release, which is the remedy.
"""

from __future__ import annotations

import re

from release.version import VERSION

READ = {
    "spec": (1,),
    "table": (1,),
}
"""The versions of each format that can be read, newest last."""

_NAME = re.compile(r"dp-release/([a-z]+)/v([1-9][0-9]{0,3})", re.ASCII)


def unread(schema: object) -> str | None:
    """The reason why a file of this schema cannot be read; None if there is no such reason."""
    match = _NAME.fullmatch(schema) if isinstance(schema, str) else None
    # Anything but a later version of ours is left to the model of the file, which refuses it.
    if match is None or match[1] not in READ:
        return None
    version, readable = int(match[2]), READ[match[1]]
    if version in readable:
        return None
    return (
        f"{schema} is of a later format; dp-release {VERSION} reads up to "
        f"dp-release/{match[1]}/v{readable[-1]}: install a later one"
    )
