"""The verifier as one file: a zip of the package that Python runs, the same bytes wherever made."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

NAME = "dp-release-verify.pyz"

_PACKAGE = "dp_release_verify"
_START = b"#!/usr/bin/env python3\n"
_MAIN = "from dp_release_verify.__main__ import command\n\ncommand()\n"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def verifier_file(project: Path) -> bytes:
    """The bytes of the file, from the package in the folder ``project``."""
    texts = {"__main__.py": _MAIN.encode()}
    for path in (project / _PACKAGE).rglob("*.py"):
        texts[path.relative_to(project).as_posix()] = path.read_bytes()
    sink = io.BytesIO()
    # Not compressed: two versions of a compressor make two files.
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(texts):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            # As on a system with modes, wherever it is made.
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, texts[name])
    return _START + sink.getvalue()
