"""Who published a release and who paid for it: attestation, proof and ledger, from files alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from release.budget.ledger import (
    CHECKPOINT,
    Replayed,
    Reserve,
    check_checkpoint,
    keys_at,
    keys_ever,
    open_proof,
    read_checkpoint,
    read_ledger,
)
from release.bundle.statements import ATTESTATION, PROOF
from release.errors import BudgetError, LedgerError, VerificationError
from release.exact.numbers import format_exact
from release.records.hashes import sha256
from release.records.models import ReleaseRecord
from release.records.signing import (
    Predicate,
    PublicKey,
    SignatureError,
    Statement,
    open_note,
    read_attestation,
)
from release.verification.mechanisms import expect
from release.verification.required import Required


@dataclass(frozen=True)
class Trust:
    """The auditor's evidence: a ledger, the curator's signing keys, an older checkpoint.

    ``beside`` is a ledger that lies with the releases. It is replayed, but the author of the
    releases may have written it too, so it is no root of trust. ``require`` is the evidence that
    the auditor demands. An unsigned release and one whose signature could not be checked count
    alike: both lack the required evidence, or neither does.
    """

    ledger: Path | None = None
    keys: tuple[PublicKey, ...] = ()
    older: Path | None = None
    require: Required = Required.SIGNATURE
    beside: Path | None = None

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
        """Whether a signature is required, and only a ledger beside the releases speaks for it."""
        named = bool(self.keys) or self.ledger is not None
        return self.require is Required.SIGNATURE and self.beside is not None and not named


@dataclass(frozen=True)
class Provenance:
    """Findings as sentences for the lists of a verdict; ``unopened`` could not be checked."""

    proved: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    asserted: tuple[str, ...] = ()
    unopened: tuple[str, ...] = ()


def check_provenance(
    public: Path, release: ReleaseRecord, sums: dict[str, str], trust: Trust
) -> Provenance:
    """Check who signed for a release and that its ledger was charged for it.

    Raises:
        VerificationError: a check failed.
    """
    if release.ledger.sequence is None:
        if trust.is_given:
            raise VerificationError(ATTESTATION, "file", "nothing is signed", "an attestation")
        return Provenance(
            asserted=("that the curator published this: nothing is signed",),
            unopened=_missing(trust, "who published this: nothing is signed; " + _REMEDY),
        )
    attested = (public / ATTESTATION).read_bytes()
    ledger = None if trust.replayed is None else _replayed(trust.replayed)
    keys = trust.keys
    if ledger is not None:
        # A key that was rotated out later still signed this release validly.
        keys = keys_at(ledger, _committed(ledger, release.release_id) + 1)
    with _as_failures(ATTESTATION):
        attestation = read_attestation(attested)
        key = attestation.verify(keys) if keys else None
    _check_statement(attestation.statement, release, sums)
    if key is None:
        return Provenance(
            tested=("the attestation names every file with its SHA-256",),
            asserted=("that the curator signed the attestation and the ledger's proof",),
            unopened=_missing(trust, _GIVE_KEY),
        )
    number = _check_proof(public, release, attested, ledger, trust)
    proved = [
        f"{key} signed for every file of the release, and for a ledger that holds its commit "
        f"as entry {number}"
    ]
    tested = []
    if ledger is not None:
        proved.append(_check_ledger(ledger, release))
        tested.append("the ledger's checkpoint, and the older one of the release, are its own")
    if trust.older is not None and ledger is not None:
        with _as_failures(str(trust.older)):
            size = check_checkpoint(read_checkpoint(trust.older), ledger)
        tested.append(f"the older checkpoint of {size} entries is of the same ledger")
    root = () if trust.keys else ("that the ledger's first key is the curator's",)
    unopened = (LACKS_ROOT,) if trust.lacks_root else ()
    return Provenance(tuple(proved), tuple(tested), root, unopened)


def _check_proof(
    public: Path, release: ReleaseRecord, attested: bytes, ledger: Replayed | None, trust: Trust
) -> int:
    """Check the ledger's proof of the release's commit; the number of that entry."""
    with _as_failures(PROOF):
        # A proof may be younger than the commit: its checkpoint has the key of a later time.
        keys = trust.keys if ledger is None else keys_ever(ledger)
        proof = open_proof((public / PROOF).read_bytes(), keys)
        if ledger is not None:
            check_checkpoint(proof.checkpoint, ledger)
            _check_root(ledger, trust, proof.checkpoint)
    expect(PROOF, "release_id", proof.entry.release_id, release.release_id)
    # The commit names these very bytes, so another attestation by the same key does not pass.
    expect(PROOF, "attestation", proof.entry.attestation, f"sha256:{sha256(attested)}")
    return proof.entry.seq


LACKS_ROOT = (
    "whose ledger it is: it lies in the folder that is verified; give the curator's key with "
    "--trust, or name a ledger with --ledger"
)
_GIVE_KEY = "who signed: give the curator's key with --trust, or the ledger"
_REMEDY = "ask the curator for a signed release, or ask for no signature with --require none"


def _missing(trust: Trust, finding: str) -> tuple[str, ...]:
    """The finding that a signature was not checked, where a signature is required."""
    return (finding,) if trust.require is Required.SIGNATURE else ()


@contextmanager
def _as_failures(file: str) -> Iterator[None]:
    """Turn an invalid signature or entry into a failed check of this file."""
    try:
        yield
    except (SignatureError, LedgerError, BudgetError) as error:
        raise VerificationError(file, "signature", str(error), "what the curator signed") from error


def _replayed(folder: Path) -> Replayed:
    with _as_failures(str(folder)):
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
    published = sorted(sums.keys() - {ATTESTATION, PROOF})
    expected = list(zip(published, map(sums.__getitem__, published), strict=True))
    subjects = [(subject.name, subject.digest.sha256) for subject in statement.subject]
    expect(ATTESTATION, "subjects", subjects, expected)
    for name, value in Predicate.of(release):
        expect(ATTESTATION, name, getattr(statement.predicate, name), value)


def _check_ledger(ledger: Replayed, release: ReleaseRecord) -> str:
    """Check that the ledger reserved the charge of this release; the finding as a sentence."""
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
    spent, cap = ledger.state.spent(entry.scope), ledger.state.caps[entry.scope]
    return (
        f"the ledger of {ledger.state.size} entries keeps every cap; scope {entry.scope} has spent "
        f"ε = {format_exact(spent.epsilon)} of {cap.epsilon}, δ = {format_exact(spent.delta)} of "
        f"{cap.delta}"
    )
