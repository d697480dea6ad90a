"""The audit record: which keys may have signed it, and that the ledger names its run."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.budget.ledger import Ledger, ScopeCap, Spent, create_ledger, reserve
from release.bundle.evidence.record import AuditRecord
from release.bundle.evidence.signed import signed
from release.bundle.read import read_record
from release.errors import VerificationError
from release.records.keys.files import FileSigner
from release.records.models import LedgerRecord, ReleaseRecord
from release.verification.audit_record import check_audit_record
from release.verification.checks import Level
from release.verification.provenance import Trust
from tests.conftest import PROJECT

OWN, OTHER = (FileSigner(Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32)) for i in (1, 2))
NAME, DAY, RUN = "example.org/dp", "2024-03-01", "5" * 32
KEY = OWN.public(NAME)
STORED = PROJECT / "tests" / "formats" / "v1" / "public" / "small" / "release.json"
WORD = "what it says of people, times and rows is the curator's word"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    cap = ScopeCap(scope="tests", epsilon="10", delta="0")
    ledger = create_ledger(tmp_path / "ledger", OWN, NAME, (cap,), DAY)
    ledger.append(reserve("tests", "small", Spent(Fraction(10)), DAY, RUN))
    return ledger


@pytest.fixture(scope="module")
def release() -> ReleaseRecord:
    """A stored release, whose entry is 1."""
    return read_record(ReleaseRecord, "release.json", STORED)


def audited(run: str | None = RUN, sequence: int | None = 1) -> AuditRecord:
    plain: dict[str, object] = {
        "schema": "dp-release/audit/v1",
        "release_id": "small",
        "sequence": sequence,
        "run": run,
        "began": "2024-03-01T00:00:00Z",
        "prepared": "2024-03-01T00:00:01Z",
        "actor": "ada",
        "inputs": [],
        "set_aside": None,
        "left_out": None,
    }
    return AuditRecord.model_validate(plain)


def test_a_record_is_tested_where_keys_are_known(ledger: Ledger, release: ReleaseRecord) -> None:
    record = signed(audited(), OWN)
    for trust in (Trust(ledger.folder), Trust(None, (KEY,)), Trust(ledger.folder, (KEY,))):
        found = check_audit_record(record, release, trust)
        assert found.level is Level.TESTED
        assert found.text == (
            f"audit.json names this release and the entry that paid, and {KEY} signed it; {WORD}"
        )


def test_without_a_key_or_an_entry_a_record_is_asserted(release: ReleaseRecord) -> None:
    unpaid = LedgerRecord(scope=release.ledger.scope, sequence=None)
    of_nobody = (
        audited(None, None),
        release.model_copy(update={"ledger": unpaid}),
        Trust(None, (KEY,)),
    )
    for record, own, trust in ((signed(audited(), OTHER), release, Trust()), of_nobody):
        found = check_audit_record(record, own, trust)
        assert found.level is Level.ASSERTED
        assert (
            found.text == f"audit.json names this release; nothing shows who wrote it, and {WORD}"
        )


def test_another_signer_and_another_run_are_refused(ledger: Ledger, release: ReleaseRecord) -> None:
    for trust in (Trust(ledger.folder), Trust(None, (KEY,))):
        with pytest.raises(VerificationError, match="signature: found no known key has signed it"):
            check_audit_record(signed(audited(), OTHER), release, trust)
    with pytest.raises(VerificationError, match=r"run: found .*6666"):
        check_audit_record(signed(audited("6" * 32), OWN), release, Trust(ledger.folder))


def test_an_entry_that_the_ledger_does_not_have_names_no_run(
    ledger: Ledger, release: ReleaseRecord
) -> None:
    """The entry of a later release, as if the ledger had been cut."""
    for sequence in (2, 3):
        paid = LedgerRecord(scope=release.ledger.scope, sequence=sequence)
        own = release.model_copy(update={"ledger": paid})
        record = signed(audited(sequence=sequence), OWN)
        with pytest.raises(VerificationError, match=r"run: found .*5555.*, expected None"):
            check_audit_record(record, own, Trust(ledger.folder))


def test_a_ledger_that_is_not_intact_is_refused(ledger: Ledger, release: ReleaseRecord) -> None:
    entry = ledger.folder / "00000001.json"
    entry.write_bytes(entry.read_bytes().replace(RUN.encode(), b"6" * 32))
    with pytest.raises(VerificationError, match=r"ledger: ledger: found .*, expected intact$"):
        check_audit_record(signed(audited("6" * 32), OWN), release, Trust(ledger.folder))
