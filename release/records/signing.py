"""Signing keys, signed notes and attestations: Ed25519 only, with no option to choose wrongly.

- Where a private key lies is said in :mod:`release.records.keys`. Its public key is written as a
  C2SP verifier key, ``name+hash+key``: the name is the origin of a ledger, so that a key signs for
  one ledger only.
- A signed note (C2SP signed-note) is text with a signature line; the checkpoint of a ledger is one.
- An attestation is a DSSE envelope over an in-toto Statement v1, whose subjects are files with
  their SHA-256.

Verifying returns nothing and raises: a forgotten condition cannot make a bad signature good.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol, Self

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field

from dp_release_verify.digests import decoded, encoded
from dp_release_verify.signatures import SignatureError, split_note
from release.errors import SpecError
from release.records.models import Record, ReleaseId, ReleaseRecord, ScopeName, Sha256, parse

# The parts of a verifier key are joined by "+", so a name has none.
_NAME = re.compile(r"[!-*,-~]{1,200}", re.ASCII)
LONGEST_KEY = 2**14
"""Bytes of a key file at most: ours have 119, and a path may lead to anything, as /dev/zero."""
PAYLOAD_TYPE: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"
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

    @property
    def key_id(self) -> str:
        """The SHA-256 of the raw key, by which an attestation names its key."""
        return hashlib.sha256(self.raw).hexdigest()

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
        """The statement about a release that a ledger has reserved."""
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
    """DSSE's pre-authentication encoding of a payload."""
    # The lengths are signed too, so that no bytes can move between type and payload.
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def attest(sums: dict[str, str], predicate: Predicate, signer: Signer) -> bytes:
    """The envelope over a statement of files by name and SHA-256; equal bytes for equal input."""
    subjects = []
    for name, digest in sorted(sums.items()):
        subjects.append(Subject(name=name, digest=Digest(sha256=digest)))
    statement = Statement(
        _type="https://in-toto.io/Statement/v1",
        subject=subjects,
        predicateType="dp-release/release/v1",
        predicate=predicate,
    )
    # Canonical JSON, so that a run which is finished after a crash signs the same bytes.
    payload = rfc8785.dumps(statement.model_dump(mode="json", by_alias=True))
    # The identifier is a hash of the raw key, whatever its name.
    key_id = signer.public("any").key_id
    signature = encoded(signer.sign(_authenticated(payload)))
    envelope = Envelope(
        payloadType=PAYLOAD_TYPE,
        payload=encoded(payload),
        signatures=[EnvelopeSignature(keyid=key_id, sig=signature)],
    )
    return rfc8785.dumps(envelope.model_dump(mode="json"))


@dataclass(frozen=True)
class Attestation:
    """The content of an envelope, not yet verified."""

    statement: Statement
    payload: bytes
    key_id: str
    signature: str

    def verify(self, keys: tuple[PublicKey, ...]) -> PublicKey:
        """Check the signature; returns the key that signed.

        Raises:
            SignatureError: none of the keys has signed this statement.
        """
        for key in keys:
            if key.key_id == self.key_id:
                key.verify(_signature(self.signature), _authenticated(self.payload))
                return key
        raise SignatureError(_UNKNOWN_KEY)


def read_attestation(data: bytes) -> Attestation:
    """The content of an envelope, before its signature is checked.

    Raises:
        SignatureError: it is not an envelope of ours in canonical form.
    """
    try:
        envelope = parse(Envelope, data)
        payload = decoded(envelope.payload)
        statement = parse(Statement, payload)
    except (ValueError, RecursionError) as error:
        raise SignatureError("not an attestation in canonical form") from error
    # Others would go unchecked, and their bytes would be under no signature.
    if len(envelope.signatures) != 1:
        raise SignatureError("not one signature")
    (signature,) = envelope.signatures
    return Attestation(statement, payload, signature.keyid, signature.sig)
