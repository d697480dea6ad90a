"""Checks signatures: Ed25519 (RFC 8032 §5.1), and the keys and signed notes of C2SP.

A key is written ``name+hint+base64``, and its name is the origin of a ledger, so that it signs for
one ledger only. A signed note is a text with signature lines; the checkpoint of a ledger is one.
Verifying returns nothing and raises: a forgotten condition cannot make a bad signature good.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dp_release_verify.digests import decoded, encoded

CURATOR = 1
WITNESS = 4
"""The byte of the algorithm in C2SP signed-note; keys of others are refused."""

_NAME = re.compile(r"[!-*,-~]{1,200}", re.ASCII)
_MOST_SIGNATURES = 100


class SignatureError(Exception):
    """A signature, a key or a signed text is wrong; the message gives the reason."""


# ---- The curve -----------------------------------------------------------------------------------

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P

_Point: TypeAlias = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z and x·y = T/Z."""


def _point(data: bytes) -> _Point:
    """The point of 32 bytes (RFC 8032 §5.1.3)."""
    y = int.from_bytes(data, "little") % 2**255
    sign = data[31] >> 7
    if y >= _P:
        raise SignatureError("no point of the curve")
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P or (x == 0 and sign):
        raise SignatureError("no point of the curve")
    if x % 2 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _sum(p: _Point, q: _Point) -> _Point:
    """The sum of two points, by formulas that hold for all pairs (RFC 8032 §5.1.4)."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    total: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar % 2:
            total = _sum(total, point)
        point = _sum(point, point)
        scalar //= 2
    return total


def _is_equal(p: _Point, q: _Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 and (p[1] * q[2] - q[1] * p[2]) % _P == 0


_BASE = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))


def check_ed25519(key: bytes, message: bytes, signature: bytes) -> None:
    """Check a signature of 64 bytes under a key of 32.

    Raises:
        SignatureError: the key did not sign this message.
    """
    if len(key) != 32 or len(signature) != 64:
        raise SignatureError("not 32 and 64 bytes")
    s = int.from_bytes(signature[32:], "little")
    # A scalar beyond the order would give a second signature of the same message.
    if s >= _ORDER:
        raise SignatureError("a scalar beyond the order of the curve")
    hashed = hashlib.sha512(signature[:32] + key + message).digest()
    h = int.from_bytes(hashed, "little") % _ORDER
    right = _sum(_point(signature[:32]), _times(h, _point(key)))
    if not _is_equal(_times(s, _BASE), right):
        raise SignatureError("the signature is another")


# ---- Keys ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VerifierKey:
    """A public key: its name, its 32 bytes, and whether it is of a curator or of a witness.

    Raises:
        SignatureError: the name or the length is wrong.
    """

    name: str
    raw: bytes
    algorithm: int = CURATOR

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.raw) != 32:
            raise SignatureError("not a valid name and 32 bytes")

    @property
    def hint(self) -> bytes:
        """The four bytes by which a signed note names its key."""
        named = self.name.encode() + b"\n" + bytes([self.algorithm]) + self.raw
        return hashlib.sha256(named).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.hint.hex()}+{encoded(bytes([self.algorithm]) + self.raw)}"

    def check(self, message: bytes, signature: bytes) -> None:
        """Check a signature; that of a witness has the time in front (C2SP tlog-cosignature).

        Raises:
            SignatureError: this key did not sign this message.
        """
        if self.algorithm == WITNESS:
            seconds = int.from_bytes(signature[:8], "big")
            message = f"cosignature/v1\ntime {seconds}\n".encode() + message
            signature = signature[8:]
        try:
            check_ed25519(self.raw, message, signature)
        except SignatureError as error:
            raise SignatureError(f"not signed by {self}: {error}") from error


LONGEST_KEY = 2**14
"""Bytes of a key file at most: ours have 119, and a path may lead to anything, as /dev/zero."""


def key_text(text: str) -> str:
    """The text of a key, or the beginning of the file of this path.

    Raises:
        OSError, ValueError: the file cannot be read, or is not ASCII.
    """
    # What is the path of a file is read: a key in text, with its hash and its "+", is hardly one.
    path = Path(text)
    if not path.is_file():
        return text
    with path.open("rb") as file:
        return file.read(LONGEST_KEY).decode("ascii")


def read_key(text: str, algorithm: int = CURATOR) -> VerifierKey:
    """A key from ``name+hint+base64``.

    Raises:
        SignatureError: the text has another form, or its hint is not the key's.
    """
    try:
        # Base64 may hold "+" too, so only the first two separate.
        name, hint, key = text.strip().split("+", 2)
        raw = decoded(key)
    except ValueError as error:
        # It may be the secret half, so it is not shown.
        raise SignatureError("not name+hint+base64") from error
    if raw[:1] != bytes([algorithm]):
        raise SignatureError("a key of another kind")
    found = VerifierKey(name, raw[1:], algorithm)
    # The hint covers the name, so a key cannot be passed off as another ledger's.
    if found.hint.hex() != hint:
        raise SignatureError("the hint is not the key's")
    return found


# ---- Signed notes --------------------------------------------------------------------------------

_LINE = re.compile(r"— ([^ \n+]+) ([A-Za-z0-9+/=]+)")


@dataclass(frozen=True)
class NoteLine:
    """A signature line: the name of the key, its hint of 4 bytes, and the signature."""

    name: str
    hint: bytes
    signature: bytes


def signature_lines(block: str) -> tuple[NoteLine, ...]:
    """The signature lines of a note, none of them verified.

    Raises:
        SignatureError: they have another form.
    """
    lines = block.split("\n")
    # The last line ends like the others. One who writes a note bounds the work of its readers.
    if lines.pop() or not 0 < len(lines) <= _MOST_SIGNATURES:
        raise SignatureError("not a signed note")
    found = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match is None:
            raise SignatureError("not a signed note")
        try:
            data = decoded(match[2])
        except ValueError as error:
            raise SignatureError("the signature is not base64") from error
        found.append(NoteLine(match[1], data[:4], data[4:]))
    return tuple(found)


def signers_of(
    message: bytes, lines: Collection[NoteLine], keys: Collection[VerifierKey]
) -> set[VerifierKey]:
    """Which of the keys signed a message; lines of other keys are passed over.

    Raises:
        SignatureError: a line names one of the keys, and is not its signature.
    """
    found = set()
    for line in lines:
        for key in keys:
            if (key.name, key.hint) == (line.name, line.hint):
                # No way on from a wrong one: whoever names a known key and fails has forged it.
                key.check(message, line.signature)
                found.add(key)
    return found


def split_note(note: str) -> tuple[str, tuple[NoteLine, ...]]:
    """The text of a signed note, which ends with a line feed, and its signature lines.

    Raises:
        SignatureError: it is not a signed note.
    """
    text, separator, block = note.partition("\n\n")
    if not separator:
        raise SignatureError("not a signed note")
    return f"{text}\n", signature_lines(block)


SUMS_WORD = b"dp-release/sums/v1\n"
"""Stands before SHA256SUMS in what is signed, so that the signature says nothing else."""


def check_sums(sums: bytes, block: bytes, keys: Collection[VerifierKey]) -> set[VerifierKey]:
    """Which of the keys signed a file SHA256SUMS; ``block`` is its file of signature lines.

    Raises:
        SignatureError: the file has another form, or a signature of one of the keys is wrong.
    """
    try:
        lines = signature_lines(block.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise SignatureError("not signature lines") from error
    return signers_of(SUMS_WORD + sums, lines, keys)
