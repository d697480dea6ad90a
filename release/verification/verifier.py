"""Verifies releases: all that :mod:`dp_release_verify` checks, and what this package reproduces.

That package reads the files alone and trusts no line of this one. Here it is called, and what
follows from the files by the publisher's own programs is computed again and compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from dp_release_verify import provenance
from dp_release_verify.checks import CHECKS, Check
from dp_release_verify.checks import verify as verify_files
from dp_release_verify.signatures import CURATOR, VerifierKey
from dp_release_verify.verdict import NOT_PROVED, OWN_FAULT, REFUSED, Finding, Verdict
from release.budget.ledger import keys_at, read_ledger
from release.errors import ReleaseError, SpecError, VerificationError
from release.verification.evidence import Trust
from release.verification.reproduced import reproduce

Kind: TypeAlias = Literal["RELEASE", "TEST", "REHEARSAL"]


REPRODUCED = "reproduced"
"""The name of the check that this package adds to those of the page."""


def _of_content(check: Check) -> bool:
    """Whether a check needs no signature, ledger or key."""
    return not check.name.startswith("ledger.")


CONTENT = tuple(filter(_of_content, CHECKS))
"""The checks of what is in the files, whoever publishes them."""


def judge(public: Path, auditor: Path | None = None, trust: Trust | None = None) -> Verdict:
    """Check a release, and reproduce what follows from its files.

    Args:
        public: its folder.
        auditor: the auditor's folder of this release.
        trust: keys, a ledger, and what is asked for.

    Returns:
        The verdict, also of a refusal; its status says whether something is missing.

    Raises:
        SpecError: the older checkpoint cannot be read.
    """
    given = trust or Trust()
    older = None
    if given.older is not None:
        try:
            older = given.older.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SpecError("--since", "the older checkpoint cannot be read") from error
    known = provenance.Trust(given.keys, given.witnesses, given.ledger)
    verdict = verify_files(public, auditor, known, given.require.value, older)
    if verdict.refusal is not None:
        return verdict
    try:
        verdict.findings += reproduce(public)
    except VerificationError as error:
        found = error.actual, error.expected
        verdict.refusal = Finding(REPRODUCED, "missing", error.file, str(error), *found)
        verdict.status = REFUSED
    return verdict


def verify(public: Path, auditor: Path | None = None, trust: Trust | None = None) -> Verdict:
    """As :func:`judge`, of a release that has to be right.

    Raises:
        VerificationError: it is refused.
        ReleaseError: the verifier itself failed, which says nothing about the release.
    """
    verdict = judge(public, auditor, trust)
    _raise_refusal(verdict)
    return verdict


def check_content(public: Path, auditor: Path | None, kind: Kind = "RELEASE") -> None:
    """Check the files of a release of any kind, before anybody has signed them.

    Raises:
        VerificationError: they would be refused, or would not be proved.
        ReleaseError: the verifier itself failed.
    """
    verdict = verify_files(public, auditor, kind=kind, checks=CONTENT)
    _raise_refusal(verdict)
    if verdict.status == NOT_PROVED:
        missing = "; ".join(finding.sentence for finding in verdict.missing)
        raise VerificationError(", ".join(verdict.not_proved), "guarantee", missing, "a proof")
    # Stand-ins have no noise, which the residuals would show.
    reproduce(public, has_noise=kind != "REHEARSAL")


def _raise_refusal(verdict: Verdict) -> None:
    refusal = verdict.refusal
    if refusal is None:
        return
    if verdict.status == OWN_FAULT:
        raise ReleaseError(f"the verifier itself failed: {refusal.sentence}")
    if verdict.status == REFUSED:
        error = VerificationError(refusal.about, refusal.check, refusal.found, refusal.needed)
        raise error.said(refusal.sentence)


def own_trust(folder: Path) -> Trust:
    """What a curator trusts of a release that was just published: the keys of its own ledger.

    Raises:
        LedgerError: the ledger is not intact.
    """
    if not folder.is_dir():
        return Trust()
    ledger = read_ledger(folder)
    keys = keys_at(ledger, ledger.state.size)
    return Trust(folder, tuple(VerifierKey(key.name, key.raw, CURATOR) for key in keys))
