"""Cosignatures: the specification's example, an independent computation, every way to be wrong."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify.signatures import SignatureError, split_note
from release.errors import SpecError
from release.records.keys.cosignatures import (
    Cosignature,
    WitnessKey,
    cosignatures,
    cosigned,
    witness_key,
)
from release.records.keys.files import FileSigner
from release.records.signing import PublicKey, open_note, sign_note
from release.verification.keys import read_witnesses

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
WITNESS, CURATOR = FileSigner(PRIVATE), FileSigner(Ed25519PrivateKey.from_private_bytes(bytes(32)))
NAME, ORIGIN, TIME = "witness.example/office", "example.org/dp", 1_679_315_147
TEXT = f"{ORIGIN}\n3\n{base64.b64encode(bytes(32)).decode()}\n"
NOTE = sign_note(TEXT, CURATOR, ORIGIN)
KEY = witness_key(WITNESS, NAME)

# The example of C2SP tlog-cosignature.
EXAMPLE = (
    "example.com/behind-the-sofa\n"
    "20852163\n"
    "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    "\n"
    "— example.com/behind-the-sofa "
    "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 "
    "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+"
    "mbIUBkBIfZ+qnA==\n"
)


def test_the_example_of_the_specification_has_a_time_of_its_witness() -> None:
    _, lines = split_note(EXAMPLE)
    assert [line.name for line in lines] == [
        "example.com/behind-the-sofa",
        "witness.example.com/w1",
    ]
    assert int.from_bytes(lines[1].signature[:8], "big") == TIME
    assert [len(line.signature) for line in lines] == [64, 72]


def by_hand(time: int, text: str = TEXT, signed_time: int | None = None) -> str:
    """The line of a witness, written from the words of the specification."""
    raw = PRIVATE.public_key().public_bytes_raw()
    key_id = hashlib.sha256(NAME.encode() + b"\x0a\x04" + raw).digest()[:4]
    message = f"cosignature/v1\ntime {time if signed_time is None else signed_time}\n" + text
    payload = key_id + struct.pack(">Q", time) + PRIVATE.sign(message.encode())
    return f"— {NAME} {base64.b64encode(payload).decode()}\n"


def test_a_cosignature_is_what_an_independent_computation_gives() -> None:
    note = cosigned(NOTE, WITNESS, NAME, TIME)
    assert note == NOTE + by_hand(TIME)
    assert cosignatures(note, (KEY,)) == (Cosignature(NAME, TIME),)
    # The curator's signature still opens it, and the other line is none of its business.
    assert open_note(note, (CURATOR.public(ORIGIN),)) == TEXT
    assert cosignatures(NOTE, (KEY,)) == ()


def test_a_witness_key_has_a_text_of_its_own() -> None:
    name, hint, key = str(KEY).split("+", 2)
    raw = PRIVATE.public_key().public_bytes_raw()
    assert (name, base64.b64decode(key)) == (NAME, b"\x04" + raw)
    assert hint == hashlib.sha256(NAME.encode() + b"\n\x04" + raw).hexdigest()[:8]
    assert WitnessKey.of(f"{KEY}\n") == KEY
    (key_read,) = read_witnesses([str(KEY)])
    assert (key_read.name, key_read.raw, key_read.algorithm) == (KEY.name, KEY.raw, 4)
    with pytest.raises(SignatureError):
        PublicKey.of(str(KEY))


@pytest.mark.parametrize(
    "text",
    ["", "name", str(WITNESS.public(NAME)), str(KEY).replace("office", "other"), str(KEY)[:-4]],
)
def test_what_is_no_witness_key_is_refused(text: str) -> None:
    with pytest.raises(SignatureError):
        WitnessKey.of(text)
    with pytest.raises(SpecError, match=r"--witness: write name\+hash\+key"):
        read_witnesses([text])


@pytest.mark.parametrize(
    "line",
    [
        by_hand(TIME, signed_time=TIME + 1),
        by_hand(TIME, text=TEXT.replace("\n3\n", "\n4\n")),
        by_hand(TIME, text=TEXT[:-1]),
        f"— {NAME} {base64.b64encode(KEY.hint).decode()}\n",
        f"— {NAME} {base64.b64encode(KEY.hint + bytes(72)).decode()}\n",
    ],
)
def test_a_wrong_line_of_a_known_witness_is_refused(line: str) -> None:
    with pytest.raises(SignatureError):
        cosignatures(NOTE + line, (KEY,))


def test_lines_of_others_are_ignored() -> None:
    other = witness_key(CURATOR, NAME)
    renamed = witness_key(WITNESS, "witness.example/other")
    note = cosigned(NOTE, WITNESS, NAME, TIME)
    # Another key of this name, this key under another name, and nobody.
    assert cosignatures(note, (other, renamed)) == cosignatures(note, ()) == ()
    two = cosigned(note, CURATOR, "w", 7)
    both = (witness_key(CURATOR, "w"), KEY)
    assert cosignatures(two, both) == (Cosignature(NAME, TIME), Cosignature("w", 7))


def test_a_witness_line_is_no_signature_of_a_curator() -> None:
    """The same key as a curator's: its algorithm byte gives it another hint."""
    note = cosigned(NOTE, WITNESS, ORIGIN, TIME)
    with pytest.raises(SignatureError):
        open_note(note, (WITNESS.public(ORIGIN),))
    assert open_note(note, (WITNESS.public(ORIGIN), CURATOR.public(ORIGIN))) == TEXT


def test_a_note_has_a_bound_and_no_other_lines() -> None:
    line = by_hand(TIME)
    assert len(cosignatures(NOTE + line * 99, (KEY,))) == 99
    for block in (line * 100, "\n", "x\n", f"— {NAME} !\n", line[:-1], f"— a b c\n{line}"):
        with pytest.raises(SignatureError):
            open_note(NOTE + block, (CURATOR.public(ORIGIN),))
    for note in ("", TEXT, TEXT + "\n", "\n\n"):
        with pytest.raises(SignatureError):
            split_note(note)
