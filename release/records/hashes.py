"""Digests, commitments and base64: each in the one form in which files hold it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac


def sha256(data: bytes) -> str:
    """SHA-256 in hexadecimal. Of public bytes only: confidential ones are committed with a key."""
    return hashlib.sha256(data).hexdigest()


def commit(key: bytes, data: bytes) -> str:
    """The salted commitment to ``data`` under a fresh 32-byte key (docs/design/format.md)."""
    return "hmac-sha256:" + hmac.new(key, data, hashlib.sha256).hexdigest()


def encoded(data: bytes) -> str:
    """Bytes as base64 (RFC 4648 §4)."""
    return base64.b64encode(data).decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of base64 in its one form: no other text stands for the same bytes.

    Raises:
        ValueError: it is not.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if encoded(data) != text:
        raise ValueError("not base64 in its one form")
    return data
