"""Who published a release and who paid for it: attestation, proof and ledger, from files alone."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from pathlib import Path

from dp_release_verify.digests import sha256
from dp_release_verify.signatures import SignatureError
from release.budget.claims import read_claim
from release.budget.composed import Together, release_charge
from release.budget.ledger import (
    CHECKPOINT,
    Proved,
    ReleaseCharge,
    Replayed,
    Reserve,
    Revise,
    check_checkpoint,
    keys_at,
    keys_ever,
    named_store,
    newest,
    open_proof,
    read_checkpoint,
    read_ledger,
)
from release.bundle.read import read_any_mechanism
from release.bundle.statements import ATTESTATION, PROOF
from release.errors import BudgetError, LedgerError, SpecError, StorageError, VerificationError
from release.records.keys.cosignatures import WitnessKey, cosignatures
from release.records.models import MechanismFile, ReleaseRecord
from release.records.signing import Predicate, PublicKey, Statement, open_note, read_attestation
from release.verification.checks import CHECKS, Level
from release.verification.findings import Finding, checking, made
from release.verification.mechanisms import expect
from release.verification.required import Evidence, Required


@dataclass(frozen=True)
class Trust:
    """The auditor's evidence: a ledger, keys of curator and witnesses, an older checkpoint.

    ``beside`` is a ledger that lies with the releases. A ledger is replayed, but whoever forged a
    release may have written it too: only ``keys`` are a root of trust. ``require`` is the evidence
    that the auditor demands. An unsigned release and one whose signature could not be checked count
    alike: both lack the required evidence, or neither does.
    """

    ledger: Path | None = None
    keys: tuple[PublicKey, ...] = ()
    older: Path | None = None
    require: Required = Required.SIGNED
    beside: Path | None = None
    witnesses: tuple[WitnessKey, ...] = ()

    @property
    def replayed(self) -> Path | None:
        """The ledger to replay: the one that was named, else the one beside the releases."""
        return self.ledger or self.beside

    @property
    def is_given(self) -> bool:
        """Whether a signature can be checked against anything."""
        return bool(self.keys) or self.replayed is not None or self.older is not None

    @property
    def lacks_root(self) -> bool:
        """Whether a signature is required, and no key is trusted that could have made it."""
        return self.require is not Required.NONE and self.replayed is not None and not self.keys


def own_trust(folder: Path) -> Trust:
    """What a curator trusts of a release that was just published: the keys of its own ledger.

    Raises:
        LedgerError: the ledger is not intact.
    """
    if not folder.is_dir():
        return Trust()
    ledger = read_ledger(folder)
    return Trust(folder, keys_at(ledger, ledger.state.size))


@dataclass(frozen=True)
class Provenance:
    """How far a release is vouched for, and what shows it."""

    evidence: Evidence
    findings: tuple[Finding, ...]


def check_provenance(
    public: Path, release: ReleaseRecord, sums: dict[str, str], trust: Trust
) -> Provenance:
    """Check who signed for a release and that its ledger was charged for it.

    Raises:
        VerificationError: a check failed.
    """
    if release.ledger.sequence is None:
        with checking("provenance.signature"):
            if trust.is_given:
                raise VerificationError(ATTESTATION, "file", "nothing is signed", "an attestation")
        unsigned = made("provenance.root", "that the curator published this: nothing is signed")
        lacking = "who published this: nothing is signed; " + _REMEDY
        return _judged([unsigned], Evidence.UNSIGNED, trust, lacking)
    attested = (public / ATTESTATION).read_bytes()
    ledger = None if trust.replayed is None else _replayed(trust.replayed)
    keys = trust.keys
    if ledger is not None:
        with checking("provenance.paid"):
            closed = _committed(ledger, release.release_id)
        # A key that was rotated out later still signed this release validly.
        keys = keys_at(ledger, closed + 1)
    with checking("provenance.attestation"):
        with _as_failures(ATTESTATION):
            attestation = read_attestation(attested)
        _check_statement(attestation.statement, release, sums)
    findings = [made("provenance.attestation", CHECKS["provenance.attestation"].meaning)]
    if not keys:
        text = "that the curator signed the attestation and the ledger's proof"
        return _judged([*findings, made("provenance.root", text)], Evidence.UNSIGNED, trust)
    with checking("provenance.signature"):
        with _as_failures(ATTESTATION):
            key = attestation.verify(keys)
        proof = _check_proof(public, release, attested, ledger, trust)
    signed = (
        f"{key} signed for every file of the release, and for a ledger that holds its commit "
        f"as entry {proof.entry.seq}"
    )
    findings.append(made("provenance.signature", signed, str(key)))
    evidence, notes = Evidence.SIGNED, [proof.checkpoint]
    if ledger is not None and trust.replayed is not None:
        findings += _found_in_ledger(ledger, release, public, trust)
        notes.append(read_checkpoint(trust.replayed / CHECKPOINT))
        evidence = Evidence.PAID
        if (agreed := _found_in_store(ledger, release, trust)) is not None:
            findings.append(agreed)
            evidence = Evidence.PAID if agreed.level is Level.TESTED else Evidence.SIGNED
    if sightings := tuple(_found_by_witnesses(notes, trust)):
        findings += sightings
        evidence = Evidence.WITNESSED if evidence is Evidence.PAID else evidence
    if not trust.keys:
        # Whoever forged the release may have written a ledger with a key of their own.
        findings.append(made("provenance.root", "that the ledger's first key is the curator's"))
        evidence = Evidence.UNSIGNED
    return _judged(findings, evidence, trust, LACKS_ROOT)


def _judged(
    findings: list[Finding], evidence: Evidence, trust: Trust, unsigned: str = ""
) -> Provenance:
    """The findings, and one more for the evidence that is required and missing."""
    # A line of this level has named already what is missing.
    is_told = any(finding.level is Level.UNSEEN for finding in findings)
    if not trust.require.is_met(evidence) and not is_told:
        identifier, text = _MISSING[evidence]
        lacking = unsigned if evidence is Evidence.UNSIGNED and unsigned else text
        findings = [*findings, Finding(identifier, Level.UNSEEN, lacking)]
    return Provenance(evidence, tuple(findings))


def _found_in_ledger(
    ledger: Replayed, release: ReleaseRecord, public: Path, trust: Trust
) -> Iterator[Finding]:
    """What a ledger shows of the release, and of itself."""
    with checking("provenance.paid"):
        sentence = _check_ledger(ledger, release, public)
    charge = f"ε = {release.composition.epsilon}, δ = {release.composition.delta}"
    yield made("provenance.paid", sentence, charge, charge)
    text = "the ledger's checkpoint, and the older one of the release, are its own"
    yield made("provenance.checkpoint", text)
    name = release.release_id
    newer = ledger.state.revised.get(name)
    if newer is None:
        yield made("provenance.newest", CHECKS["provenance.newest"].meaning)
    else:
        reason = _reason(ledger, name)
        text = f"the curator has revised {name}: {newer} takes its place ({reason})"
        yield Finding("provenance.newest", Level.ASSERTED, text)
    if trust.older is not None:
        with checking("provenance.older"), _as_failures(str(trust.older)):
            size = check_checkpoint(read_checkpoint(trust.older), ledger)
        text = f"the older checkpoint of {size} entries is of the same ledger"
        yield made("provenance.older", text, str(size), f"at most {ledger.state.size}")


def _reason(ledger: Replayed, name: str) -> str:
    entries = [own for own in ledger.entries if isinstance(own, Revise)]
    return next(own.reason for own in entries if own.release_id == name)


def _found_in_store(ledger: Replayed, release: ReleaseRecord, trust: Trust) -> Finding | None:
    """Whether the store that a ledger names has the same entries; None where it names none."""
    if ledger.state.store is None:
        return None
    with checking("provenance.store"):
        unseen = _unseen_store(ledger, release, trust)
    if unseen is None:
        agreement = f"{ledger.state.store} holds the entries of the ledger, or more that follow"
        return made("provenance.store", agreement)
    # Without a trusted key the signature is what is missing.
    is_needed = bool(trust.keys) and not trust.require.is_met(Evidence.SIGNED)
    level = Level.UNSEEN if is_needed else Level.LEFT_OUT
    text = f"whether the ledger's store has the same entries: {unseen}"
    return Finding("provenance.store", level, text)


def _unseen_store(ledger: Replayed, release: ReleaseRecord, trust: Trust) -> str | None:
    """Compare a ledger with the store that it names; why that was not possible, or None.

    Raises:
        VerificationError: the store has other entries, or one beyond withdraws the release.
    """
    if not trust.keys:
        # Whoever forged a ledger chose the address, and would learn who verifies.
        return "its address is of a ledger that no trusted key vouches for"
    try:
        store = named_store(ledger)
        if store is None or read_claim(store, ledger.state.size - 1) is None:
            return "it lacks the last entry, or is not the same place on this machine"
        with _as_failures(ledger.state.store or ""):
            # The ledger of a folder may be behind: entries beyond it are in the store alone.
            grown = newest(ledger).ledger
    except (SpecError, StorageError) as error:
        return f"it cannot be read ({error})"
    if release.release_id in grown.state.withdrawn:
        raise VerificationError(PROOF, "store", "the release was withdrawn", "a public release")
    return None


def _found_by_witnesses(notes: Sequence[str], trust: Trust) -> Iterator[Finding]:
    """Which trusted witnesses saw a checkpoint of the ledger, and when."""
    for note in notes if trust.witnesses else ():
        with checking("provenance.witness"), _as_failures(CHECKPOINT):
            signers = cosignatures(note, trust.witnesses)
        # The second line of a checkpoint is its size.
        size = note.splitlines()[1]
        for witness in signers:
            time = datetime.datetime.fromtimestamp(witness.time, datetime.UTC)
            text = f"{witness.name} saw the ledger of {size} entries on {time:%Y-%m-%d %H:%M} UTC"
            yield made("provenance.witness", text, size)


def _check_proof(
    public: Path, release: ReleaseRecord, attested: bytes, ledger: Replayed | None, trust: Trust
) -> Proved:
    """Check the ledger's proof of the release's commit."""
    with _as_failures(PROOF):
        # A proof may be younger than the commit: its checkpoint has the key of a later time.
        keys = trust.keys if ledger is None else keys_ever(ledger)
        proof = open_proof((public / PROOF).read_bytes(), keys)
        if ledger is not None:
            check_checkpoint(proof.checkpoint, ledger)
            _check_root(ledger, trust, proof.checkpoint)
    # Step 19 of docs/design/format.md, 8.5.
    expect(PROOF, "release_id", proof.entry.release_id, release.release_id)
    # The commit names these very bytes, so another attestation by the same key does not pass.
    expect(PROOF, "attestation", proof.entry.attestation, f"sha256:{sha256(attested)}")
    return proof


LACKS_ROOT = "whose ledger it is: give the curator's key with --trust"
_REMEDY = "ask the curator for a signed release, or ask for no signature with --require none"
_MISSING = {
    Evidence.UNSIGNED: (
        "provenance.signature",
        "who signed: give the curator's key with --trust",
    ),
    Evidence.SIGNED: (
        "provenance.paid",
        "whether the ledger was charged: give the ledger with --ledger",
    ),
    Evidence.PAID: (
        "provenance.witness",
        "whether a witness saw the ledger: give a witness's key with --witness",
    ),
}


@contextmanager
def _as_failures(file: str) -> Iterator[None]:
    """Turn an invalid signature or entry into a failed check of this file."""
    try:
        yield
    except (SignatureError, LedgerError, BudgetError) as error:
        raise VerificationError(file, "signature", str(error), "what the curator signed") from error


def _replayed(folder: Path) -> Replayed:
    with checking("provenance.paid"), _as_failures(str(folder)):
        return read_ledger(folder)


def _check_root(ledger: Replayed, trust: Trust, proved: str) -> None:
    """Check that a trusted key began the ledger or signed for it, now or in the release's proof."""
    # A key listed in the ledger is not enough: anybody can add a key that is not theirs.
    if not trust.keys or trust.replayed is None or set(trust.keys) & set(keys_at(ledger, 1)):
        return
    for note in (proved, read_checkpoint(trust.replayed / CHECKPOINT)):
        with suppress(SignatureError):
            open_note(note, trust.keys)
            return
    first = ", ".join(map(str, keys_at(ledger, 1)))
    raise VerificationError("00000000.json", "keys", first, "a key that is trusted")


def _committed(ledger: Replayed, release_id: str) -> int:
    entry = ledger.state.committed.get(release_id)
    if entry is None:
        raise VerificationError(PROOF, "ledger", "no commit of this release", "its commit")
    if release_id in ledger.state.withdrawn:
        raise VerificationError(PROOF, "ledger", "the release was withdrawn", "a public release")
    return entry.seq


def _check_statement(statement: Statement, release: ReleaseRecord, sums: dict[str, str]) -> None:
    # An attestation cannot hold its own digest, and the proof comes after it.
    # Step 17 of docs/design/format.md, 8.5.
    published = sorted(sums.keys() - {ATTESTATION, PROOF})
    expected = list(zip(published, map(sums.__getitem__, published), strict=True))
    subjects = [(subject.name, subject.digest.sha256) for subject in statement.subject]
    expect(ATTESTATION, "subjects", subjects, expected)
    for name, value in Predicate.of(release):
        expect(ATTESTATION, name, getattr(statement.predicate, name), value)


def _check_ledger(ledger: Replayed, release: ReleaseRecord, public: Path) -> str:
    """Check that the ledger reserved the charge of this release; the finding as a sentence."""
    # Step 22 of docs/design/format.md, 8.5.
    number = release.ledger.sequence or 0
    entry = ledger.entries[number] if number < ledger.state.size else None
    if not isinstance(entry, Reserve):
        raise VerificationError(f"{number:08}.json", "kind", "no reserve", "the release's reserve")
    closed = _committed(ledger, release.release_id)
    for entry_between in ledger.entries[number + 1 : closed]:
        # Such an entry closed this reserve, so the commit would be paid for by another one.
        if getattr(entry_between, "release_id", None) == release.release_id:
            raise VerificationError(f"{number:08}.json", "reserve", "another's", "the commit's own")
    for name, reserved, expected in (
        ("release_id", entry.release_id, release.release_id),
        ("scope", entry.scope, release.ledger.scope),
        ("epsilon", entry.epsilon, release.composition.epsilon),
        ("delta", entry.delta, release.composition.delta),
    ):
        expect(f"{number:08}.json", name, reserved, expected)
    account = ledger.state.accounts[entry.scope]
    try:
        account.check_release(entry, published_charge(release, public, account.cap.rule))
    except BudgetError as error:
        name = f"{number:08}.json"
        raise VerificationError(
            name, account.cap.rule, str(error), "what the release is"
        ) from error
    return (
        f"the ledger of {ledger.state.size} entries keeps every cap; scope {entry.scope} "
        f"{account.summary()}"
    )


def published_charge(release: ReleaseRecord, public: Path, rule: str) -> ReleaseCharge:
    """What a release amounts to by its mechanism files, whose profiles are checked elsewhere.

    Under a rule that reads ε and δ alone no file is opened.

    Raises:
        VerificationError: a mechanism file has no profile.
    """
    epsilon, delta = Fraction(release.composition.epsilon), Fraction(release.composition.delta)
    if rule == "basic":
        return release_charge(epsilon, delta, None, has_profile=True)
    profiles = []
    for file in map(attrgetter("mechanism_file"), (*release.queries, *release.measured)):
        if not isinstance(file, MechanismFile):
            return release_charge(epsilon, delta, None, has_profile=False)
        path = file.path
        record = read_any_mechanism(path, public / path)
        if record.profile is None:
            raise VerificationError(path, "profile", "none", "the profile of a public mechanism")
        try:
            profiles.append(record.profile.to_profile())
        except ValueError as error:
            raise VerificationError(path, "profile", str(error), "a profile") from error
    return release_charge(epsilon, delta, Together.of(profiles), has_profile=True)
