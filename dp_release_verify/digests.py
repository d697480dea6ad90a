"""Digests, commitments and base64, each in the only form that files may hold; folders of files."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dp_release_verify.errors import Refused, refuse_unless

SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
PROOF = "ledger.proof"
AUDIT = "audit.json"
SIGNED = (SIGNATURE, PROOF)
"""What is added once SHA256SUMS is there, by who signs."""
BESIDE = (SUMS, *SIGNED)
"""What stands beside the files that SHA256SUMS lists."""

INFORMATIVE = ("report.html", "datapackage.json", "spec.yaml")
"""Hashed, and never read: what they say is on trust."""

_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*", re.ASCII)

MOST_BYTES = 2**30
MOST_FILES = 10_000


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal, for public bytes only."""
    # A hash of confidential bytes could be guessed by trying values; those get a commitment.
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a public file in hexadecimal, without holding the file in memory."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def commit(key: bytes, data: bytes) -> str:
    """The salted commitment to ``data`` under a key of 32 random bytes."""
    return commit_chunks(key, (data,))


def commit_chunks(key: bytes, chunks: Iterable[bytes]) -> str:
    """As :func:`commit`, of data that comes in parts."""
    code = hmac.new(key, digestmod=hashlib.sha256)
    for chunk in chunks:
        code.update(chunk)
    return f"hmac-sha256:{code.hexdigest()}"


def encoded(data: bytes) -> str:
    """Bytes as base64 (RFC 4648 §4)."""
    return base64.b64encode(data).decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of canonical base64, in which exactly one text stands for given bytes.

    Raises:
        ValueError: the text is not canonical base64.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    # The decoder ignores stray bits at the end; a signed text must have no second spelling.
    if encoded(data) != text:
        raise ValueError("not base64 in canonical form")
    return data


@dataclass(frozen=True)
class Folder:
    """The files of a release.

    Attributes:
        contents: the bytes of the files that are read, by their path.
        sums: the SHA-256 of every file but those beside SHA256SUMS, by its path.
    """

    contents: dict[str, bytes]
    sums: dict[str, str]

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            Refused: there is no such file.
        """
        if name not in self.contents:
            raise Refused(name, "", "no such file", "a file of the release")
        return self.contents[name]


def read_folder(folder: Path) -> Folder:
    """All files of a folder, and of the folders in it.

    Raises:
        Refused: a link, a device, a folder in a folder, an empty one, or too many bytes.
    """
    contents: dict[str, bytes] = {}
    sums: dict[str, str] = {}
    held = 0
    paths = sorted(folder.rglob("*"))
    refuse_unless(len(paths) <= MOST_FILES, str(folder), "", len(paths), f"{MOST_FILES} files")
    for path in paths:
        name = path.relative_to(folder).as_posix()
        refuse_unless(bool(_PATH.fullmatch(name)), "", "a name", ascii(name), "letters and digits")
        is_plain = path.is_file() and not path.is_symlink()
        if not is_plain:
            is_folder = path.is_dir() and not path.is_symlink() and path.parent == folder
            is_used = is_folder and any(path.iterdir())
            refuse_unless(is_used, name, "", "a link, or another kind", "a file")
            continue
        size = path.stat().st_size
        refuse_unless(size <= MOST_BYTES, name, "size", size, f"at most {MOST_BYTES} bytes")
        if name in INFORMATIVE:
            sums[name] = sha256_of_file(path)
            continue
        held += size
        refuse_unless(held <= MOST_BYTES, name, "size", held, f"at most {MOST_BYTES} in all")
        contents[name] = path.read_bytes()
        if name not in BESIDE:
            sums[name] = sha256(contents[name])
    return Folder(contents, sums)


def read_file(path: Path) -> bytes:
    """The bytes of a plain file; a pipe would have no end.

    Raises:
        Refused: there is none, or it is too large.
    """
    is_plain = path.is_file() and path.stat().st_size <= MOST_BYTES
    refuse_unless(is_plain, path.name, "", "none or another", "a plain file")
    return path.read_bytes()


def sums_text(sums: dict[str, str]) -> bytes:
    """The file SHA256SUMS: a line for each file, sorted by path."""
    lines = [f"{sums[name]}  {name}\n" for name in sorted(sums)]
    return "".join(lines).encode("ascii")
