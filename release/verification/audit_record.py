"""The audit record of an auditor bundle: that it is of this release, and who signed it."""

from __future__ import annotations

from dp_release_verify.signatures import SignatureError
from release.budget.ledger import Reserve, keys_ever, read_ledger
from release.bundle.evidence.record import AUDIT, AuditRecord
from release.bundle.evidence.signed import check_signature
from release.errors import BudgetError, LedgerError, VerificationError
from release.records.models import ReleaseRecord
from release.records.signing import PublicKey
from release.verification.checks import Level
from release.verification.findings import Finding, made
from release.verification.mechanisms import expect
from release.verification.provenance import Trust

_WORD = "what it says of people, times and rows is the curator's word"


def check_audit_record(record: AuditRecord, release: ReleaseRecord, trust: Trust) -> Finding:
    """Check that ``audit.json`` is of this release and its charge, and who signed it.

    Raises:
        VerificationError: it is of another release or run, or is not signed as it should be.
    """
    expect(AUDIT, "release_id", record.release_id, release.release_id)
    expect(AUDIT, "sequence", record.sequence, release.ledger.sequence)
    is_paid = record.sequence is not None
    expect(AUDIT, "run is there", record.run is not None, is_paid)
    expect(AUDIT, "signature is there", record.signature is not None, is_paid)
    # As texts: instants in UTC of one form are in the order of time.
    if not record.began <= record.prepared:
        raise VerificationError(AUDIT, "times", record.began, f"at most {record.prepared}")
    keys = trust.keys if record.sequence is None else _keys_of(record, record.sequence, trust)
    if record.sequence is None or not keys:
        sentence = f"audit.json names this release; nothing shows who wrote it, and {_WORD}"
        return Finding("provenance.audit", Level.ASSERTED, sentence)
    try:
        key = check_signature(record, keys)
    except SignatureError as error:
        raise VerificationError(AUDIT, "signature", str(error), "that of a key") from error
    sentence = (
        f"audit.json names this release and the entry that paid, and {key} signed it; {_WORD}"
    )
    return made("provenance.audit", sentence)


def _keys_of(record: AuditRecord, sequence: int, trust: Trust) -> tuple[PublicKey, ...]:
    """The keys that may have signed: of the ledger, whose entry has to name the run."""
    if trust.replayed is None:
        return trust.keys
    try:
        ledger = read_ledger(trust.replayed)
    except (LedgerError, BudgetError) as error:
        raise VerificationError(str(trust.replayed), "ledger", str(error), "intact") from error
    # The number is public, so a record of another run could name it: the entry names its run.
    entry = ledger.entries[sequence] if sequence < ledger.state.size else None
    expect(AUDIT, "run", record.run, entry.run if isinstance(entry, Reserve) else None)
    return keys_ever(ledger)
