"""Checkpoints and proofs: their bytes, and everything that they are not."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dp_release_verify.merkle import inclusion_proof, root
from release.budget.checkpoint import (
    CHECKPOINT,
    check_checkpoint,
    ledger_proof,
    open_proof,
    read_checkpoint,
)
from release.budget.ledger import (
    Ledger,
    ScopeCap,
    Spent,
    commit,
    create_ledger,
    replay,
    reserve,
)
from release.errors import LedgerError
from release.records.keys.files import FileSigner
from release.records.signing import sign_note
from tests.budget.notes import checkpoint_text

SIGNER, OTHER = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAY = "example.org/dp", "2024-03-01"
KEYS = (SIGNER.public(NAME),)


def grow(ledger: Ledger, releases: int) -> list[str]:
    """Commit releases r0, r1, …; the checkpoints that the ledger had, oldest first."""
    notes = [read_checkpoint(ledger.folder / CHECKPOINT)]
    for number in range(releases):
        ledger.append(reserve("s", f"r{number}", Spent(Fraction(1, 100)), DAY))
        notes.append(read_checkpoint(ledger.folder / CHECKPOINT))
        ledger.append(commit(f"r{number}", b"attestation", DAY))
        notes.append(read_checkpoint(ledger.folder / CHECKPOINT))
    return notes


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    cap = ScopeCap(scope="s", epsilon="3", delta="0.1")
    return create_ledger(tmp_path / "ledger", SIGNER, NAME, (cap,), DAY)


def test_every_older_checkpoint_is_of_the_ledger(ledger: Ledger) -> None:
    notes = grow(ledger, 3)
    read = replay(ledger.folder)
    assert [check_checkpoint(note, read) for note in notes] == list(range(1, 8))
    for size, note in enumerate(notes, 1):
        origin, count, digest, *_ = note.split("\n")
        assert (origin, count) == (NAME, str(size))
        assert base64.b64decode(digest) == root(read.leaves[:size])


def signed(text: str) -> str:
    return sign_note(text, SIGNER, NAME)


def test_a_checkpoint_of_anything_else_is_refused(ledger: Ledger) -> None:
    grow(ledger, 1)
    read = replay(ledger.folder)
    right = checkpoint_text(NAME, read.leaves)
    origin, size, digest, _ = right.split("\n")
    assert check_checkpoint(signed(right), read) == 3
    for wrong in (
        checkpoint_text("elsewhere", read.leaves),
        checkpoint_text(NAME, read.leaves[::-1]),
        f"{origin}\n2\n{digest}\n",
        f"{origin}\n4\n{digest}\n",
        f"{origin}\n03\n{digest}\n",
        f"{origin}\n0\n{digest}\n",
        f"{origin}\n{size}\n{digest}\nmore\n",
        f"{origin}\n{size}\n",
        f"{origin}\n",
    ):
        with pytest.raises(LedgerError):
            check_checkpoint(signed(wrong), read)
    for note in (
        right,
        sign_note(right, OTHER, NAME),
        sign_note(right, SIGNER, "elsewhere"),
        "a\n1\nb",
        "a\n1",
        "",
    ):
        with pytest.raises(LedgerError):
            check_checkpoint(note, read)


def test_sizes_have_at_most_nine_digits(ledger: Ledger) -> None:
    """Nine digits have the form, and are more entries than there are; ten have not."""
    read = replay(ledger.folder)
    with pytest.raises(LedgerError, match="123456789 entries"):
        check_checkpoint(f"{NAME}\n123456789\nx\n\n", read)
    with pytest.raises(LedgerError, match="three lines"):
        check_checkpoint(f"{NAME}\n1234567890\nx\n\n", read)


def test_a_checkpoint_is_read_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes("é\r\n".encode())
    assert read_checkpoint(path) == "é\r\n"
    path.write_bytes(b"\xff")
    for place in (path, tmp_path / "nothing", tmp_path):
        with pytest.raises(LedgerError):
            read_checkpoint(place)


@pytest.mark.parametrize("releases", range(1, 6))
def test_every_commit_is_proved_by_the_lines_of_the_format(ledger: Ledger, releases: int) -> None:
    note = grow(ledger, releases)[-1]
    read = replay(ledger.folder)
    for number in range(releases):
        index = 2 * number + 2
        data = ledger_proof(read, f"r{number}", ledger.folder)
        path = [base64.b64encode(step).decode() for step in inclusion_proof(read.leaves, index)]
        extra = base64.b64encode(read.files[index]).decode()
        head = ["c2sp.org/tlog-proof@v1", f"extra {extra}", f"index {index}"]
        assert data.decode() == "\n".join([*head, *path, "", note])
        proved = open_proof(data, KEYS)
        assert (proved.entry.seq, proved.entry.release_id) == (index, f"r{number}")
        assert proved.checkpoint == note


def test_only_a_commit_under_a_checkpoint_of_all_is_proved(ledger: Ledger) -> None:
    older = grow(ledger, 1)[-2]
    ledger.append(reserve("s", "open", Spent(), DAY))
    read = replay(ledger.folder)
    for name in ("open", "unknown"):
        with pytest.raises(LedgerError):
            ledger_proof(read, name, ledger.folder)
    assert ledger_proof(read, "r0", ledger.folder)
    (ledger.folder / CHECKPOINT).write_text(older)
    with pytest.raises(LedgerError):
        ledger_proof(read, "r0", ledger.folder)


def by_hand(ledger: Ledger, index: int, place: int, note: str | None = None) -> bytes:
    """A proof that the entry at ``index`` is at ``place``, whatever it is."""
    read = replay(ledger.folder)
    path = [base64.b64encode(step).decode() for step in inclusion_proof(read.leaves, place)]
    extra = base64.b64encode(read.files[index]).decode()
    head = ["c2sp.org/tlog-proof@v1", f"extra {extra}", f"index {place}"]
    note = read_checkpoint(ledger.folder / CHECKPOINT) if note is None else note
    return "\n".join([*head, *path, "", note]).encode()


def test_a_proof_of_another_entry_is_refused(ledger: Ledger) -> None:
    grow(ledger, 3)
    for index, place in itertools.product(range(7), repeat=2):
        data = by_hand(ledger, index, place)
        if index == place and index in (2, 4, 6):
            assert open_proof(data, KEYS).entry.seq == index
            continue
        with pytest.raises(LedgerError):
            open_proof(data, KEYS)


def test_a_proof_under_another_root_or_name_is_refused(ledger: Ledger) -> None:
    grow(ledger, 3)
    leaves = replay(ledger.folder).leaves
    assert open_proof(by_hand(ledger, 4, 4, signed(checkpoint_text(NAME, leaves))), KEYS)
    for text in (
        checkpoint_text("elsewhere", leaves),
        checkpoint_text(NAME, leaves[:6]),
        checkpoint_text(NAME, [*leaves, b"0" * 32]),
        f"{NAME}\n7\n{'A' * 43}=\n",
        f"{NAME}\nseven\n{'A' * 43}=\n",
        f"{NAME}\n7\n",
    ):
        with pytest.raises(LedgerError):
            open_proof(by_hand(ledger, 4, 4, signed(text)), KEYS)
    unknown = sign_note(checkpoint_text(NAME, leaves), OTHER, NAME)
    with pytest.raises(LedgerError):
        open_proof(by_hand(ledger, 4, 4, unknown), KEYS)


def line(number: int, change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        lines = data.decode().split("\n")
        lines[number] = change(lines[number])
        return "\n".join(lines).encode()

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        line(0, lambda text: text.replace("v1", "v2")),
        line(0, lambda text: text + " "),
        line(1, lambda text: text[:-4]),
        line(1, lambda text: text + "A"),
        line(1, lambda text: text.replace("extra", "Extra")),
        line(2, lambda text: text.replace(" ", " 0")),
        line(2, lambda text: text + "9"),
        line(3, lambda text: text[::-1]),
        line(3, lambda text: text[:-1]),
        line(3, lambda text: f"{text}\n{text}"),
        line(4, lambda text: f"\n{text}"),
        lambda data: re.sub(rb"\n[^\n]{44}\n", b"\n", data, count=1),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data + b"\n",
        lambda data: b"\n" + data,
        lambda data: data[:-1],
        lambda data: b"\xff" + data,
        lambda data: b"",
    ],
)
def test_a_proof_of_another_form_is_refused(ledger: Ledger, edit: Callable[[bytes], bytes]) -> None:
    grow(ledger, 3)
    data = by_hand(ledger, 4, 4)
    assert open_proof(data, KEYS)
    assert edit(data) != data
    with pytest.raises(LedgerError):
        open_proof(edit(data), KEYS)
