"""Keys, signed notes and attestations: Ed25519, and nothing that could be chosen wrongly.

- A private key is a PKCS#8 file of mode 0600. Its public bundle is written as a C2SP verifier key,
  ``name+hash+key``: the name is the origin of a ledger, so that a key signs for one ledger only.
- A signed note (C2SP signed-note) is text with a signature line; the checkpoint of a ledger is one.
- An attestation is a DSSE envelope over an in-toto Statement v1, whose subjects are files with
  their SHA-256.

Verifying returns nothing and raises: a forgotten condition cannot make a bad signature good.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import rfc8785
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import Field

from release.errors import SpecError, StorageError
from release.records.hashes import decoded, encoded
from release.records.models import Record, ReleaseId, ReleaseRecord, ScopeName, Sha256, parse

_ED25519 = b"\x01"
_NAME = re.compile(r"[!-*,-~]{1,200}", re.ASCII)  # no spaces, no plus
PAYLOAD_TYPE: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"


class SignatureError(Exception):
    """A signature, a key or a signed text is not what it should be; the reason in a few words."""


@dataclass(frozen=True)
class PublicKey:
    """A verifier key: whose it is (the origin of a ledger), and 32 bytes.

    Raises:
        SignatureError: the name or the length is wrong.
    """

    name: str
    raw: bytes

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.raw) != 32:
            raise SignatureError("not a name and 32 bytes")

    @property
    def hint(self) -> bytes:
        """The four bytes by which a note says which key signed it."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.raw).digest()[:4]

    @property
    def key_id(self) -> str:
        """The SHA-256 of the raw key, by which an attestation names it."""
        return hashlib.sha256(self.raw).hexdigest()

    def __str__(self) -> str:
        return f"{self.name}+{self.hint.hex()}+{encoded(_ED25519 + self.raw)}"

    @classmethod
    def of(cls, text: str) -> PublicKey:
        """Read ``name+hash+key``.

        Raises:
            SignatureError: another shape, or a hash that is not that of the key.
        """
        try:
            name, hint, key = text.strip().split("+", 2)
            raw = decoded(key)
        except ValueError as error:
            raise SignatureError("not name+hash+key") from error
        if raw[:1] != _ED25519:
            raise SignatureError("not an Ed25519 key")
        found = cls(name, raw[1:])
        if found.hint.hex() != hint:
            raise SignatureError("the hash is not that of the key")
        return found

    def verify(self, signature: bytes, message: bytes) -> None:
        """Check a signature.

        Raises:
            SignatureError: it is not this key's over this message.
        """
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature as error:
            raise SignatureError(f"not signed by {self}") from error


@dataclass(frozen=True, repr=False)
class Signer:
    """A private key. Its representation shows nothing."""

    private: Ed25519PrivateKey

    def __repr__(self) -> str:
        return "Signer(secret)"

    def public(self, name: str) -> PublicKey:
        """The public bundle under the name of a ledger."""
        return PublicKey(name, self.private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The signature of ``message``: 64 bytes, always the same ones."""
        return self.private.sign(message)


def create_key(path: Path) -> Signer:
    """Make a private key in a new file of mode 0600; an existing file is never overwritten.

    Raises:
        StorageError: the file is there already or cannot be written.
    """
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    there = path.exists()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(pem)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        if not there:
            path.unlink(missing_ok=True)
        problem = error.strerror or type(error).__name__
        raise StorageError(f"{path}: the key cannot be written ({problem})") from error
    return Signer(private)


def others(path: Path) -> int:
    """The permissions that a private key's file may not give.

    A credential of systemd's lies in a folder that its service alone can enter, and its mode shows
    an access list as the group's.
    """
    given = os.environ.get("CREDENTIALS_DIRECTORY")
    return 0o037 if given and path.parent.resolve() == Path(given).resolve() else 0o077


def read_key(path: Path) -> Signer:
    """The private key in a file.

    Raises:
        SpecError: no key of ours is there, or others may read the file.
    """
    try:
        mode, pem = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise SpecError("--key", f"{path} cannot be read; give the file of the key") from error
    if mode & others(path):
        raise SpecError("--key", f"others may read {path}; chmod 600 it")
    try:
        private = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SpecError("--key", f"{path} is no private key; make one: dp-release key") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise SpecError("--key", f"{path} is no Ed25519 key; make one: dp-release key")
    return Signer(private)


def read_public_key(text: str) -> PublicKey:
    """A verifier key as it was given: the text itself, or a file that holds it.

    Raises:
        SpecError: neither.
    """
    try:
        path = Path(text)
        return PublicKey.of(path.read_text("ascii") if path.is_file() else text)
    except (SignatureError, OSError, ValueError) as error:
        raise SpecError("--trust", "write name+hash+key, or the file that holds it") from error


def sign_note(text: str, signer: Signer, name: str) -> str:
    """A C2SP signed note: the text, an empty line, and one signature line."""
    key = signer.public(name)
    signature = encoded(key.hint + signer.sign(text.encode()))
    return f"{text}\n— {name} {signature}\n"


def open_note(note: str, keys: tuple[PublicKey, ...]) -> str:
    """The text of a note that one of the keys has signed.

    Raises:
        SignatureError: it is no note, or none of the keys has signed it.
    """
    text, separator, lines = note.partition("\n\n")
    match = re.fullmatch(r"— ([^ \n+]+) ([A-Za-z0-9+/=]+)\n", lines)
    if not separator or match is None:
        raise SignatureError("not a signed note with one signature")
    text += "\n"
    signature = _signature(match[2])
    for key in keys:
        if (key.name, key.hint) == (match[1], signature[:4]):
            key.verify(signature[4:], text.encode())
            return text
    raise SignatureError("signed by a key that is not known here")


def _signature(text: str) -> bytes:
    try:
        return decoded(text)
    except ValueError as error:
        raise SignatureError("the signature is not base64") from error


class Digest(Record):
    """The SHA-256 of a file."""

    sha256: Sha256 = Field(description="the SHA-256 of the file")


class Subject(Record):
    """A file that the statement covers."""

    name: str = Field(description="the path of the file")
    digest: Digest = Field(description="the hash of the file")


class Predicate(Record):
    """The curator's statement: which release the files are, and which account paid."""

    release_id: ReleaseId
    scope: ScopeName
    sequence: int = Field(description="the number of the entry that reserved the charge")
    epsilon: str = Field(description="ε that was charged")
    delta: str = Field(description="δ that was charged")

    @classmethod
    def of(cls, release: ReleaseRecord) -> Predicate:
        """What is to be stated of a release that a ledger has reserved."""
        return cls(
            release_id=release.release_id,
            scope=release.ledger.scope,
            sequence=release.ledger.sequence or 0,
            epsilon=release.composition.epsilon,
            delta=release.composition.delta,
        )


class Statement(Record):
    """The payload of ``attestation.dsse.json``: an in-toto Statement v1."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(
        alias="_type", description="the version of in-toto's format"
    )
    subject: list[Subject] = Field(description="the public files that the statement covers")
    predicateType: Literal["dp-release/release/v1"] = Field(  # noqa: N815 - in-toto's name
        description="the version of the predicate"
    )
    predicate: Predicate = Field(description="the statement about the files")


class EnvelopeSignature(Record):
    """One signature of an envelope."""

    keyid: Sha256 = Field(description="the SHA-256 of the public key")
    sig: str = Field(description="the Ed25519 signature, in base64")


class Envelope(Record):
    """``attestation.dsse.json``: a DSSE envelope around the statement."""

    payloadType: Literal["application/vnd.in-toto+json"] = Field(  # noqa: N815 - DSSE's name
        description="the media type of the payload"
    )
    payload: str = Field(description="the statement, in base64")
    signatures: list[EnvelopeSignature] = Field(description="the curator's signature")


def _authenticated(payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed says how long its parts are."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def attest(sums: dict[str, str], predicate: Predicate, signer: Signer) -> bytes:
    """The envelope over a statement of files by name and SHA-256; always the same bytes."""
    statement = Statement(
        _type="https://in-toto.io/Statement/v1",
        subject=[Subject(name=n, digest=Digest(sha256=s)) for n, s in sorted(sums.items())],
        predicateType="dp-release/release/v1",
        predicate=predicate,
    )
    payload = rfc8785.dumps(statement.model_dump(mode="json", by_alias=True))
    envelope = Envelope(
        payloadType=PAYLOAD_TYPE,
        payload=encoded(payload),
        signatures=[
            EnvelopeSignature(
                keyid=signer.public("any").key_id, sig=encoded(signer.sign(_authenticated(payload)))
            )
        ],
    )
    return rfc8785.dumps(envelope.model_dump(mode="json"))


@dataclass(frozen=True)
class Attestation:
    """An envelope that was read, and not yet verified."""

    statement: Statement
    payload: bytes
    key_id: str
    signature: str

    def verify(self, keys: tuple[PublicKey, ...]) -> PublicKey:
        """Which of the keys has signed it.

        Raises:
            SignatureError: none of them, or not this.
        """
        for key in keys:
            if key.key_id == self.key_id:
                key.verify(_signature(self.signature), _authenticated(self.payload))
                return key
        raise SignatureError("signed by a key that is not known here")


def read_attestation(data: bytes) -> Attestation:
    """The statement of an envelope, before anybody has looked at the signature.

    Raises:
        SignatureError: not an envelope of ours in its one form.
    """
    try:
        envelope = parse(Envelope, data)
        payload = decoded(envelope.payload)
        statement = parse(Statement, payload)
    except (ValueError, RecursionError) as error:
        raise SignatureError("not an attestation in canonical form") from error
    if len(envelope.signatures) != 1:
        raise SignatureError("not one signature")
    (signature,) = envelope.signatures
    return Attestation(statement, payload, signature.keyid, signature.sig)
