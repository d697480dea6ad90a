"""Digests, commitments and base64: each in the only form that files may hold."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal, for public bytes only."""
    # A hash of confidential bytes could be guessed by trying values; those get a commitment.
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a public file in hexadecimal, without holding the file in memory."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def commit(key: bytes, data: bytes) -> str:
    """The salted commitment to ``data`` under a fresh 32-byte key (docs/design/format.md)."""
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
