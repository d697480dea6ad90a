"""Signing keys, signed notes and signed sums: Ed25519 only, with no option to choose wrongly.

- Where a private key lies is said in :mod:`release.records.keys`. Its public key is written as a
  C2SP verifier key, ``name+hash+key``: the name is the origin of a ledger, so that a key signs for
  one ledger only.
- A signed note (C2SP signed-note) is text with a signature line; the checkpoint of a ledger is one.
- The sums of a release are signed by a line of the same form (docs/design/format.md, 6.1).

Verifying returns nothing and raises: a forgotten condition cannot make a bad signature good.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dp_release_verify.digests import decoded, encoded
from dp_release_verify.signatures import SUMS_WORD, SignatureError, key_text, split_note
from release.errors import SpecError

# The parts of a verifier key are joined by "+", so a name has none.
_NAME = re.compile(r"[!-*,-~]{1,200}", re.ASCII)
_UNKNOWN_KEY = "signed by a key that is not known here"


@dataclass(frozen=True)
class PublicKey:
    """A verifier key: its name (the origin of a ledger) and its 32 bytes.

    Raises:
        SignatureError: the name or the length is wrong.
    """

    name: str
    raw: bytes

    ALGORITHM: ClassVar[bytes] = b"\x01"
    """The byte of the algorithm in C2SP signed-note; keys of others are refused."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.raw) != 32:
            raise SignatureError("not a valid name and 32 bytes")

    @property
    def hint(self) -> bytes:
        """The four bytes by which a signed note names its key."""
        named = self.name.encode() + b"\n" + self.ALGORITHM + self.raw
        return hashlib.sha256(named).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.hint.hex()}+{encoded(self.ALGORITHM + self.raw)}"

    @classmethod
    def of(cls, text: str) -> Self:
        """Read ``name+hash+key``.

        Raises:
            SignatureError: the text has another form, or its hash is not the key's.
        """
        try:
            # Base64 may hold "+" too, so only the first two separate.
            name, hint, key = text.strip().split("+", 2)
            raw = decoded(key)
        except ValueError as error:
            raise SignatureError("not name+hash+key") from error
        if raw[:1] != cls.ALGORITHM:
            raise SignatureError("a key of another kind")
        key_read = cls(name, raw[1:])
        # The hash covers the name, so a key cannot be passed off as another ledger's.
        if key_read.hint.hex() != hint:
            raise SignatureError("the hash is not the key's")
        return key_read

    def verify(self, signature: bytes, message: bytes) -> None:
        """Check a signature.

        Raises:
            SignatureError: this key did not sign this message.
        """
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature as error:
            raise SignatureError(f"not signed by {self}") from error


class Signer(Protocol):
    """What holds a private key and signs with it, wherever it keeps it."""

    def public(self, name: str) -> PublicKey:
        """The public key under the name of a ledger."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The Ed25519 signature of ``message``: 64 bytes, equal for equal messages."""
        ...


def read_public_key(text: str) -> PublicKey:
    """A verifier key, from its text or from the path of a file that holds the text.

    Raises:
        SpecError: the text is neither.
    """
    try:
        return PublicKey.of(key_text(text))
    except (SignatureError, OSError, ValueError) as error:
        raise SpecError("--trust", "write name+hash+key, or the file that holds it") from error


def sign_note(text: str, signer: Signer, name: str) -> str:
    """A C2SP signed note: the text, an empty line, and one signature line."""
    key = signer.public(name)
    signature = encoded(key.hint + signer.sign(text.encode()))
    return f"{text}\n— {name} {signature}\n"


def open_note(note: str, keys: tuple[PublicKey, ...]) -> str:
    """The text of a note that one of the keys has signed.

    Lines of keys that are not given are ignored, as of witnesses; one of a given key has to verify.

    Raises:
        SignatureError: it is not a signed note, none of the keys has signed it, or a signature of
            one of them is wrong.
    """
    text, lines = split_note(note)
    is_signed = False
    for line in lines:
        for key in keys:
            if (key.name, key.hint) == (line.name, line.hint):
                # No way on from a wrong one: whoever names a known key and fails has forged it.
                key.verify(line.signature, text.encode())
                is_signed = True
    if not is_signed:
        raise SignatureError(_UNKNOWN_KEY)
    return text


def sign_sums(sums: bytes, signer: Signer, name: str) -> bytes:
    """The file SHA256SUMS.sig: a line that signs the bytes of SHA256SUMS."""
    key = signer.public(name)
    signature = encoded(key.hint + signer.sign(SUMS_WORD + sums))
    return f"— {name} {signature}\n".encode()
