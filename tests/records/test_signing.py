"""Keys, notes and envelopes: published vectors first, then every way to be wrong."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dp_release_verify.signatures import CURATOR, SignatureError, VerifierKey, check_sums
from release.errors import SpecError, StorageError
from release.records.keys.files import OPENED_BY, FileSigner, create_key
from release.records.keys.outside import read_key
from release.records.signing import (
    PublicKey,
    open_note,
    read_public_key,
    sign_note,
    sign_sums,
)

# RFC 8032 §7.1, test 2.
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
NAME = "example.org/dp"
ONE = FileSigner(Ed25519PrivateKey.from_private_bytes(SEED))
TWO = FileSigner(Ed25519PrivateKey.from_private_bytes(SEED[::-1]))
KEY, OTHER = ONE.public(NAME), TWO.public(NAME)

# The example of the signed-note specification of the Go checksum database.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_published_vectors() -> None:
    assert KEY.raw.hex() == PUBLIC
    assert ONE.sign(b"\x72").hex() == SIGNATURE
    KEY.verify(bytes.fromhex(SIGNATURE), b"\x72")
    go = PublicKey.of(GO_KEY)
    assert str(go) == GO_KEY
    assert open_note(GO_NOTE, (go,)).startswith("If you think")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (SIGNATURE, b"\x73"),
        (SIGNATURE, b""),
        ("00" + SIGNATURE[2:], b"\x72"),
        (SIGNATURE[:-2], b"\x72"),
        (SIGNATURE + "00", b"\x72"),
        ("", b"\x72"),
    ],
)
def test_a_wrong_signature_raises(signature: str, message: bytes) -> None:
    with pytest.raises(SignatureError):
        KEY.verify(bytes.fromhex(signature), message)
    with pytest.raises(SignatureError):
        OTHER.verify(bytes.fromhex(SIGNATURE), b"\x72")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "name+00000000+AA==",
        GO_KEY.replace("c74f20a3", "c74f20a4"),
        GO_KEY.replace("ARpc", "Ahpc"),
        GO_KEY.replace("Peter", "Peter "),
        GO_KEY[:-4],
        GO_KEY + "AAAA",
        GO_KEY + "=",
    ],
)
def test_a_wrong_key_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(SignatureError):
        PublicKey.of(text)
    (tmp_path / "key.pub").write_text(text)
    with pytest.raises(SpecError, match=r"name\+hash\+key"):
        read_public_key(str(tmp_path / "key.pub"))


def test_a_public_key_is_read_from_its_text_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "key.pub").write_text(f"{KEY}\n")
    assert read_public_key(str(KEY)) == read_public_key(str(tmp_path / "key.pub")) == KEY


def test_a_private_key_is_written_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    old = os.umask(0)
    try:
        made = create_key(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_key(path).public("n") == made.public("n")
    assert repr(made) == "FileSigner(secret)"
    before = path.read_bytes()
    with pytest.raises(StorageError, match="cannot be written"):
        create_key(path)
    assert path.read_bytes() == before
    path.chmod(0o640)
    with pytest.raises(SpecError, match="chmod 600"):
        read_key(path)


def test_what_is_no_key_of_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(SpecError, match="cannot be read"):
        read_key(path)
    other = X25519PrivateKey.generate()
    for data in (
        b"",
        b"no key",
        other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    ):
        path.write_bytes(data)
        path.chmod(0o600)
        with pytest.raises(SpecError, match="create one"):
            read_key(path)


def test_every_changed_byte_of_a_note_is_refused() -> None:
    note = sign_note("origin\n3\nroot\n", ONE, NAME)
    assert open_note(note, (OTHER, KEY)) == "origin\n3\nroot\n"
    data = note.encode()
    for place in range(len(data)):
        for changed in (data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], data[:place]):
            try:
                text = changed.decode()
            except UnicodeDecodeError:
                continue
            with pytest.raises(SignatureError):
                open_note(text, (KEY,))
    for keys in ((), (OTHER,), (ONE.public("another.example/dp"),)):
        with pytest.raises(SignatureError):
            open_note(note, keys)


SUMS = b"0" * 64 + b"  data/x.parquet\n"


def test_sums_are_signed_by_a_line_that_the_verifier_reads() -> None:
    line = sign_sums(SUMS, ONE, NAME)
    key = VerifierKey(KEY.name, KEY.raw, CURATOR)
    assert check_sums(SUMS, line, [key]) == {key}
    KEY.verify(base64.b64decode(line.split()[2])[4:], b"dp-release/sums/v1\n" + SUMS)
    for place in range(len(SUMS)):
        changed = SUMS[:place] + bytes([SUMS[place] ^ 1]) + SUMS[place + 1 :]
        with pytest.raises(SignatureError):
            check_sums(changed, line, [key])


def in_terminal(words: list[str], folder: Path, answers: list[str]) -> tuple[int, str]:
    """Run a command with a terminal of its own, and type an answer at each question."""
    terminal, its_side = os.openpty()
    streams: dict[str, Any] = {"stdin": its_side, "stdout": its_side, "stderr": its_side}
    process = subprocess.Popen(
        [sys.executable, "-m", "release", *words], cwd=folder, start_new_session=True, **streams
    )
    os.close(its_side)
    shown = b""
    # Reading ends with an error once the other side is closed.
    with suppress(OSError):
        while data := os.read(terminal, 4096):
            shown += data
            if answers and data.endswith((b"key: ", b"again: ")):
                os.write(terminal, answers.pop(0).encode() + b"\n")
    os.close(terminal)
    return process.wait(), shown.decode()


INIT = ["ledger", "init", "--out", "out", "--key", "key", "--origin", NAME, "--scope", "a:1:0"]


@pytest.mark.skipif(not Path("/usr/bin/openssl").exists(), reason="no openssl to open it too")
def test_an_encrypted_key_signs_for_who_knows_its_passphrase(tmp_path: Path) -> None:
    new = ["ledger", "key", "new", "key", "--encrypt"]
    status, shown = in_terminal(new, tmp_path, ["right", "other"])
    assert (status, "the two differ" in shown) == (2, True)
    assert not (tmp_path / "key").exists()
    status, shown = in_terminal(new, tmp_path, ["right", "right"])
    assert status == 0, shown
    assert "right" not in shown
    # Another program opens it, and only with the passphrase.
    opened = [
        subprocess.run(
            ["/usr/bin/openssl", "pkey", "-in", "key", "-passin", f"pass:{word}", "-noout"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        ).returncode
        for word in ("right", "wrong")
    ]
    assert opened == [0, 1]
    status, shown = in_terminal(INIT, tmp_path, ["wrong"])
    assert (status, "it does not open key; give that key's own" in shown) == (2, True)
    assert not (tmp_path / "out").exists()
    status, shown = in_terminal(INIT, tmp_path, ["right"])
    assert status == 0, shown


def test_where_nobody_can_be_asked_a_file_has_the_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, held = tmp_path / "key", tmp_path / "passphrase"
    signer = create_key(path, b"right")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.delenv(OPENED_BY, raising=False)
    with pytest.raises(SpecError, match="DP_RELEASE_PASSPHRASE: name the file that holds the pass"):
        read_key(path)
    monkeypatch.setenv(OPENED_BY, str(held))
    with pytest.raises(SpecError, match="passphrase cannot be read"):
        read_key(path)
    for text, told in (("\nright", "empty line"), ("wrong\n", "it does not open"), ("right\n", "")):
        held.write_text(text, "utf-8")
        held.chmod(0o600)
        if told:
            with pytest.raises(SpecError, match=told):
                read_key(path)
    assert read_key(path).public(NAME) == signer.public(NAME)
    held.chmod(0o640)
    with pytest.raises(SpecError, match="others may read"):
        read_key(path)
