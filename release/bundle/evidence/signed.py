"""Records that carry their own signature: lines of the log, and ``audit.json``."""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field

from dp_release_verify.digests import decoded, encoded
from dp_release_verify.signatures import SignatureError
from release.records.models import Record, canonical
from release.records.signing import PublicKey, Signer


class SignedRecord(Record):
    """A record that a key of the ledger signs, where the run has one."""

    signature: str | None = Field(
        default=None,
        max_length=100,
        description="Ed25519 over the same record with an empty signature, by a key of the ledger; "
        "absent where the run has no key",
    )


S = TypeVar("S", bound=SignedRecord)


def signed(record: S, signer: Signer | None) -> S:
    """The record with its signature, where there is a signer."""
    if signer is None:
        return record
    signature = encoded(signer.sign(_message(record)))
    return record.model_copy(update={"signature": signature})


def check_signature(record: SignedRecord, keys: tuple[PublicKey, ...]) -> PublicKey:
    """The one of the keys that has signed a record.

    Raises:
        SignatureError: none of them has.
    """
    try:
        signature = decoded(record.signature or "")
    except ValueError as error:
        raise SignatureError("the signature is not base64") from error
    message = _message(record)
    for key in keys:
        try:
            key.verify(signature, message)
        except SignatureError:
            continue
        return key
    raise SignatureError("no known key has signed it")


def _message(record: SignedRecord) -> bytes:
    # The schema stands in these bytes, so that they can be mistaken for no other signed text.
    return canonical(record.model_copy(update={"signature": ""}))
