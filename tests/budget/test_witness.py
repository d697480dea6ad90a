"""A witness signs a ledger that grows, and no other."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.ledger import (
    CHECKPOINT,
    Ledger,
    ScopeCap,
    Spent,
    commit,
    create_ledger,
    ledger_proof,
    open_proof,
    read_ledger,
    reserve,
)
from release.budget.witness import cosign_ledger
from release.errors import LedgerError, SpecError
from release.records.keys.cosignatures import Cosignature, WitnessKey, cosignatures, witness_key
from release.records.keys.files import FileSigner

ONE, WITNESS, OTHER = (
    FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2, 3)
)
NAME, DAY, W = "example.org/dp", "2024-03-01", "witness.example/w"
KEY = witness_key(WITNESS, W)
CAP = ScopeCap(scope="s", epsilon="3", delta="0.1")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return create_ledger(tmp_path / "ledger", ONE, NAME, (CAP,), DAY)


def append(ledger: Ledger, name: str) -> None:
    ledger.append(reserve("s", name, Spent(Fraction(1, 2)), DAY))


def names_on(ledger: Ledger, *keys: WitnessKey) -> list[str]:
    note = (ledger.folder / CHECKPOINT).read_text("utf-8")
    return [line.name for line in cosignatures(note, keys)]


def test_a_witness_signs_what_grew(ledger: Ledger, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    append(ledger, "r")
    assert cosign_ledger(ledger.folder, WITNESS, W, seen) == (KEY, 2)
    assert names_on(ledger, KEY) == [W]
    # Once is enough for a state; another witness adds a line.
    before = (ledger.folder / CHECKPOINT).read_bytes()
    cosign_ledger(ledger.folder, WITNESS, W, seen)
    assert (ledger.folder / CHECKPOINT).read_bytes() == before
    other = witness_key(OTHER, "other")
    assert cosign_ledger(ledger.folder, OTHER, "other", tmp_path / "theirs") == (other, 2)
    assert names_on(ledger, KEY, other) == [W, "other"]
    assert read_ledger(ledger.folder).state.size == 2
    # The next entry has a checkpoint of its own, until the witness comes again.
    append(ledger, "q")
    assert names_on(ledger, KEY, other) == []
    cosign_ledger(ledger.folder, WITNESS, W, seen)
    assert names_on(ledger, KEY) == [W]


def test_a_proof_carries_the_lines_of_its_checkpoint(ledger: Ledger, tmp_path: Path) -> None:
    append(ledger, "r")
    _, grown = ledger.append(commit("r", b"attestation", DAY))
    cosign_ledger(ledger.folder, WITNESS, W, tmp_path / "seen")
    proof = open_proof(ledger_proof(grown, "r", ledger.folder), (ONE.public(NAME),))
    ((signed),) = cosignatures(proof.checkpoint, (KEY,))
    assert isinstance(signed, Cosignature)
    assert signed.time > 1_700_000_000


def test_another_history_is_not_signed(ledger: Ledger, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    shutil.copytree(ledger.folder, tmp_path / "fork")
    append(ledger, "r")
    cosign_ledger(ledger.folder, WITNESS, W, seen)
    fork = Ledger(tmp_path / "fork", ONE)
    for name in ("q", "t"):
        # A shorter one, and one of another content.
        with pytest.raises(LedgerError, match="does not extend what this witness signed last"):
            cosign_ledger(fork.folder, WITNESS, W, seen)
        append(fork, name)
    with pytest.raises(LedgerError, match="does not extend"):
        cosign_ledger(fork.folder, WITNESS, W, seen)
    assert names_on(fork, KEY) == []
    # A witness that has seen neither cannot tell them apart.
    cosign_ledger(fork.folder, WITNESS, W, tmp_path / "new")


def test_a_ledger_that_is_not_intact_is_not_signed(ledger: Ledger, tmp_path: Path) -> None:
    append(ledger, "r")
    path = ledger.folder / "00000001.json"
    path.write_bytes(path.read_bytes().replace(b'"0.5"', b'"0.4"'))
    with pytest.raises(LedgerError):
        cosign_ledger(ledger.folder, WITNESS, W, tmp_path / "seen")
    assert not (tmp_path / "seen").exists()


def test_a_curator_is_no_witness_of_its_own_ledger(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="a witness has a key of its own"):
        cosign_ledger(ledger.folder, ONE, W, tmp_path / "seen")
    with pytest.raises(SpecError, match="--name"):
        cosign_ledger(ledger.folder, WITNESS, "with space", tmp_path / "seen")
