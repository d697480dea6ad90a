"""Cosignatures of witnesses on a checkpoint (C2SP tlog-cosignature, version 1, Ed25519).

A witness is somebody else's key. Its line on a checkpoint says: at this time this was the longest
history of the ledger that I had seen, and it extends every one that I signed before. The line
stands in the note beside the curator's, and readers who do not know the witness ignore it.

A witness key has an algorithm byte of its own, so that no curator's key passes for a witness's.
"""

from __future__ import annotations

from dataclasses import dataclass

from dp_release_verify.digests import encoded
from dp_release_verify.signatures import SignatureError, split_note
from release.records.signing import PublicKey, Signer


class WitnessKey(PublicKey):
    """The public key of a witness, under its name."""

    ALGORITHM = b"\x04"


def witness_key(signer: Signer, name: str) -> WitnessKey:
    """The public key of a witness who signs with ``signer``.

    Raises:
        SignatureError: the name is none.
    """
    return WitnessKey(name, signer.public(name).raw)


@dataclass(frozen=True)
class Cosignature:
    """A verified cosignature: the name of the witness, and its time in seconds since 1970."""

    name: str
    time: int


def cosigned(note: str, signer: Signer, name: str, time: int) -> str:
    """The note with the line of a witness added, at ``time`` in seconds since 1970.

    Raises:
        SignatureError: it is not a signed note, or the name is none.
    """
    witness = witness_key(signer, name)
    text, _ = split_note(note)
    # The text alone: a witness says nothing of the other lines, and these may come and go.
    stamp = time.to_bytes(8, "big")
    signature = signer.sign(_message(text, time))
    return f"{note}— {name} {encoded(witness.hint + stamp + signature)}\n"


def cosignatures(note: str, keys: tuple[WitnessKey, ...]) -> tuple[Cosignature, ...]:
    """The cosignatures of the given witnesses on a note, in the order of its lines.

    The lines of others are ignored, the curator's too: check that by ``open_note``.

    Raises:
        SignatureError: it is not a signed note, or the line of a given witness does not verify.
    """
    text, lines = split_note(note)
    verified = []
    for line in lines:
        for witness in keys:
            if (witness.name, witness.hint) == (line.name, line.hint):
                # Eight bytes are the time; a short line leaves a signature that does not verify.
                stamp, signature = line.signature[:8], line.signature[8:]
                time = int.from_bytes(stamp, "big")
                # Python has no date of a later year: reports would end with an error of its own.
                if time > _LAST:
                    raise SignatureError("a cosignature of a year after 9999")
                witness.verify(signature, _message(text, time))
                verified.append(Cosignature(line.name, time))
    return tuple(verified)


_LAST = 253_402_300_799
"""The last second of the year 9999, since 1970."""


def _message(text: str, time: int) -> bytes:
    """What a witness signs: the time, and the text of the note."""
    # The first line differs from those of our notes: no cosignature passes for a note's signature.
    return f"cosignature/v1\ntime {time}\n{text}".encode()
