"""Ledgers and attestations that are signed properly and still do not fit a release.

The curator's own key signs here: what is tested is that a signature alone is not enough.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import rfc8785

from dp_release_verify.digests import sha256
from release.budget.ledger import (
    CHECKPOINT,
    Ledger,
    Make,
    ScopeCap,
    Spent,
    abort,
    change_key,
    commit,
    create_ledger,
    ledger_proof,
    policy,
    read_ledger,
    reserve,
    withdraw,
)
from release.bundle.statements import ATTESTATION, PROOF, SUMS, withheld
from release.errors import VerificationError
from release.pipeline import Options, run_release
from release.records.keys.files import create_key
from release.records.models import ReleaseRecord, parse
from release.records.signing import Predicate, PublicKey, Signer, attest
from release.verification.provenance import LACKS_ROOT, Trust
from release.verification.required import Required
from release.verification.verifier import Verdict, verify
from tests.small import Row, Small, query
from tests.verification.test_provenance import sum_up

NAME, DAY = "example.org/dp", "2024-01-01"
CAPS = (
    ScopeCap(scope="tests", epsilon="9", delta="0.9"),
    ScopeCap(scope="others", epsilon="9", delta="0.9"),
)
ROWS: list[Row] = [{"unit": "u1", "place": "a", "day": 1, "kind": 0, "wh": 1}]

Entry: TypeAlias = Callable[["Signed"], tuple[Signer, Make]]
"""An entry to append, and who signs for it."""


@dataclass
class Signed:
    """A release that is signed anew, and a ledger that is written anew, entry by entry."""

    public: Path
    ledger: Path
    signer: Signer
    new: Signer
    sequence: int = 1
    predicate: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> PublicKey:
        """The public key of the ledger's first signer."""
        return self.signer.public(NAME)

    @property
    def attested(self) -> bytes:
        """The bytes of the attestation."""
        return (self.public / ATTESTATION).read_bytes()

    def sign(self, signer: Signer | None = None) -> None:
        """Write the number of the reserve into the record, and attest to all files."""
        path = self.public / "release.json"
        plain = json.loads(path.read_bytes())
        plain["ledger"]["sequence"] = self.sequence
        path.write_bytes(rfc8785.dumps(plain))
        sums = {
            str(each.relative_to(self.public)): sha256(each.read_bytes())
            for each in self.public.rglob("*")
            if each.is_file() and each.name not in (SUMS, ATTESTATION, PROOF)
        }
        said = Predicate.of(parse(ReleaseRecord, path.read_bytes()))
        said = said.model_copy(update=self.predicate)
        data = attest(sums | self.digests, said, signer or self.signer)
        (self.public / ATTESTATION).write_bytes(data)

    def enter(self, *entries: Entry) -> None:
        """Write a ledger of these entries, and prove the release's commit by it."""
        create_ledger(self.ledger, self.signer, NAME, CAPS, DAY)
        for entry in entries:
            signer, make = entry(self)
            Ledger(self.ledger, signer).append(make)
        self.prove("one")

    def enter_nothing(self) -> None:
        """Take the signature away, and say so in the record."""
        for name in (ATTESTATION, PROOF):
            (self.public / name).unlink()
        path = self.public / "release.json"
        plain = json.loads(path.read_bytes())
        plain["ledger"]["sequence"] = None
        plain["withheld"] = withheld(instance=False, ledger=False)
        path.write_bytes(rfc8785.dumps(plain))
        sum_up(self.public)

    def prove(self, name: str) -> None:
        """Write the ledger's proof of the commit of a release."""
        proof = ledger_proof(read_ledger(self.ledger), name, self.ledger)
        (self.public / PROOF).write_bytes(proof)
        sum_up(self.public)

    def accepted(self, trust: Trust | None = None) -> Verdict:
        """The verdict; by the ledger and the first key unless another trust is given."""
        return verify(self.public, None, trust or Trust(self.ledger, (self.key,)))

    def refused(self, trust: Trust | None = None) -> str:
        """The message of the first check that fails."""
        with pytest.raises(VerificationError) as caught:
            self.accepted(trust)
        return str(caught.value)


def reserved(name: str = "one", scope: str = "tests", **charge: str) -> Entry:
    spent = Spent(Fraction(charge.get("epsilon", "1")), Fraction(charge.get("delta", "0")))
    return lambda signed: (signed.signer, reserve(scope, name, spent, DAY))


def committed(name: str = "one", attested: bytes | None = None, *, new: bool = False) -> Entry:
    return lambda signed: (
        signed.new if new else signed.signer,
        commit(name, attested or signed.attested, DAY),
    )


def aborted(signed: Signed) -> tuple[Signer, Make]:
    return signed.signer, abort("one", DAY, drawn=True)


def capped(signed: Signed) -> tuple[Signer, Make]:
    return signed.signer, policy(CAPS[1].model_copy(update={"epsilon": "8"}), DAY)


def added(signed: Signed) -> tuple[Signer, Make]:
    return signed.signer, change_key("add", signed.new.public(NAME), signed.signer, DAY)


def retired(signed: Signed) -> tuple[Signer, Make]:
    return signed.new, change_key("retire", signed.key, signed.new, DAY)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two keys and a signed release."""
    folder = tmp_path_factory.mktemp("curator")
    signer = create_key(folder / "key")
    create_ledger(folder / "out" / "ledger", signer, NAME, CAPS, DAY)
    spec = Small(ROWS, [query("count", sensitivity="global", by=[])]).write(folder)
    spec.write_text(spec.read_text().replace("id: small", "id: one"))
    run_release(spec, folder / "out", options=Options(key=folder / "key"))
    return folder / "out" / "public" / "one"


@pytest.fixture
def signed(once: Path, tmp_path: Path) -> Signed:
    """A copy, to be signed by keys of its own."""
    shutil.copytree(once, tmp_path / "one")
    first, second = create_key(tmp_path / "first"), create_key(tmp_path / "second")
    return Signed(tmp_path / "one", tmp_path / "ledger", first, second)


def test_a_signed_release_has_its_findings_told(signed: Signed) -> None:
    """Other entries between its reserve and its commit are none of its business."""
    signed.sign()
    signed.enter(reserved(), capped, reserved("two", epsilon="2"), committed(), capped)
    told = signed.accepted(Trust(signed.ledger, (signed.key,), signed.ledger / CHECKPOINT))
    assert told.complete
    assert [line for line in told.proved if "ledger" in line] == [
        f"{signed.key} signed for every file of the release, and for a ledger that holds its "
        "commit as entry 4",
        "the ledger of 6 entries keeps every cap; scope tests has spent ε = 3 of 9, δ = 0 of 0.9",
    ]
    by_ledger = [
        "the ledger's checkpoint, and the older one of the release, are its own",
        "the older checkpoint of 6 entries is of the same ledger",
    ]
    assert [line for line in told.tested if "checkpoint" in line] == by_ledger
    root = "that the ledger's first key is the curator's"
    assert root not in told.asserted
    assert root in signed.accepted(Trust(signed.ledger)).asserted
    by_key = signed.accepted(Trust(keys=(signed.key,)))
    assert by_key.complete
    assert not [line for line in by_key.proved + by_key.tested if "checkpoint" in line]


@pytest.mark.parametrize("sequence", [0, 2, 3, 9])
def test_the_number_of_the_reserve_is_that_of_a_reserve(sequence: int, signed: Signed) -> None:
    """Not of the genesis, of the commit, of the next entry to come, or of a later one."""
    signed.sequence = sequence
    signed.sign()
    signed.enter(reserved(), committed())
    assert signed.refused().startswith(f"{sequence:08}.json: kind: found no reserve")


def test_a_reserve_pays_for_one_commit(signed: Signed) -> None:
    """The first reserve was given up, so that the commit was paid for by the second."""
    signed.sign()
    signed.enter(reserved(), aborted, reserved(), committed())
    assert signed.refused().startswith("00000001.json: reserve: ")
    shutil.rmtree(signed.ledger)
    signed.sequence = 3
    signed.sign()
    signed.enter(reserved(), aborted, reserved(), committed())
    assert signed.accepted().complete


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (reserved(epsilon="0.5"), "epsilon: found '0.5', expected '1'"),
        (reserved(delta="0.1"), "delta: found '0.1', expected '0'"),
        (reserved(scope="others"), "scope: found 'others', expected 'tests'"),
    ],
)
def test_a_reserve_is_of_the_charge_of_the_release(other: Entry, says: str, signed: Signed) -> None:
    signed.sign()
    signed.enter(other, committed())
    assert signed.refused() == f"00000001.json: {says}"


def test_a_reserve_is_of_the_release(signed: Signed) -> None:
    signed.sequence = 2
    signed.sign()
    signed.enter(reserved(), reserved("two"), committed())
    assert signed.refused() == "00000002.json: release_id: found 'two', expected 'one'"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("release_id", "two"),
        ("scope", "others"),
        ("sequence", 2),
        ("epsilon", "0.5"),
        ("delta", "0.1"),
    ],
)
def test_an_attestation_says_what_the_record_says(name: str, value: Any, signed: Signed) -> None:
    signed.predicate = {name: value}
    signed.sign()
    signed.enter(reserved(), committed())
    for trust in (None, Trust(keys=(signed.key,)), Trust()):
        assert signed.refused(trust).startswith(f"{ATTESTATION}: {name}: found {value!r}, ")


@pytest.mark.parametrize("digests", [{"spec.yaml": "0" * 64}, {"more.txt": "0" * 64}])
def test_an_attestation_names_every_file_as_it_is(digests: dict[str, str], signed: Signed) -> None:
    signed.digests = digests
    signed.sign()
    signed.enter(reserved(), committed())
    for trust in (None, Trust(keys=(signed.key,)), Trust()):
        assert signed.refused(trust).startswith(f"{ATTESTATION}: subjects: ")


def test_a_proof_is_of_the_commit_of_this_very_attestation(signed: Signed) -> None:
    signed.sign()
    signed.enter(reserved(), reserved("two"), committed(), committed("two"))
    trusts = (None, Trust(keys=(signed.key,)))
    for trust in trusts:
        assert signed.accepted(trust).complete
    signed.prove("two")
    for trust in trusts:
        assert signed.refused(trust) == f"{PROOF}: release_id: found 'two', expected 'one'"
    shutil.rmtree(signed.ledger)
    signed.enter(reserved(), committed(attested=b"another"))
    for trust in trusts:
        assert signed.refused(trust).startswith(f"{PROOF}: attestation: ")


def test_a_proof_is_of_the_ledger_that_is_given(signed: Signed) -> None:
    """A curator with two ledgers, which agree up to the commit, shows each to somebody else."""
    signed.sign()
    signed.enter(reserved(), committed(), capped)
    shown = (signed.public / PROOF).read_bytes()
    shutil.rmtree(signed.ledger)
    signed.enter(reserved(), committed(), reserved("two"))
    assert signed.accepted().complete
    (signed.public / PROOF).write_bytes(shown)
    sum_up(signed.public)
    told = signed.refused()
    assert told.startswith(f"{PROOF}: signature: ")
    assert "not those that were signed" in told
    # From one of the ledgers alone nobody can tell.
    assert signed.accepted(Trust(keys=(signed.key,))).complete


def test_a_key_that_is_retired_right_after_the_commit_has_signed_validly(signed: Signed) -> None:
    signed.sequence = 2
    signed.sign()
    signed.enter(added, reserved(), committed(), retired)
    assert signed.accepted().complete


def test_a_key_that_joins_right_before_the_commit_has_signed_validly(signed: Signed) -> None:
    """A run that was cut off after its reserve is finished with the next key."""
    signed.sign(signed.new)
    signed.enter(reserved(), added, committed(new=True))
    assert signed.accepted().complete


def test_a_key_that_joins_right_after_the_commit_has_not(signed: Signed) -> None:
    signed.sign(signed.new)
    signed.enter(reserved(), committed(), added)
    assert signed.refused(Trust(signed.ledger)).startswith(f"{ATTESTATION}: signature: ")


def test_a_trusted_key_that_was_added_first_of_all_is_no_root_of_trust(signed: Signed) -> None:
    """Everybody has the curator's public key, and may add it to a ledger of their own."""
    signed.sequence = 2
    signed.sign()
    signed.enter(added, reserved(), committed())
    curator = signed.new.public(NAME)
    assert signed.accepted().complete
    assert signed.refused(Trust(signed.ledger, (curator,))) == (
        f"00000000.json: keys: found {signed.key}, expected a key that is trusted"
    )


A_KEY = PublicKey(NAME, bytes(32))


@pytest.mark.parametrize("require", list(Required))
@pytest.mark.parametrize("beside", [None, Path("beside")])
@pytest.mark.parametrize("ledger", [None, Path("named")])
@pytest.mark.parametrize("keys", [(), (A_KEY,)])
def test_a_ledger_beside_the_releases_is_no_root_of_trust(
    keys: tuple[PublicKey, ...], ledger: Path | None, beside: Path | None, require: Required
) -> None:
    """A ledger without a trusted key, and a signature is asked for: then its root is lacking."""
    trust = Trust(ledger, keys, None, require, beside)
    is_alone = not keys and (ledger, beside) != (None, None)
    assert trust.lacks_root is (is_alone and require is not Required.NONE)
    assert trust.replayed == (ledger or beside)
    assert trust.is_given is ((keys, ledger, beside) != ((), None, None))


def test_a_verdict_says_where_only_a_ledger_beside_the_releases_was_seen(signed: Signed) -> None:
    signed.sign()
    signed.enter(reserved(), committed())
    seen = signed.accepted(Trust(beside=signed.ledger))
    assert seen.unseen == [LACKS_ROOT]
    asked = Trust(beside=signed.ledger, require=Required.NONE)
    for trust in (asked, Trust(keys=(signed.key,), beside=signed.ledger)):
        assert signed.accepted(trust).complete
    lacking = signed.accepted(Trust())
    assert [line.partition(":")[0] for line in lacking.unseen] == ["who signed"]
    assert "the attestation names every file with its SHA-256" in lacking.tested
    assert signed.accepted(Trust(require=Required.NONE)).complete


def test_a_ledger_that_is_given_holds_a_commit_that_was_not_withdrawn(signed: Signed) -> None:
    signed.sign()
    signed.enter(reserved(), committed())
    Ledger(signed.ledger, signed.signer).append(withdraw("one", DAY))
    assert signed.refused().startswith(f"{PROOF}: ledger: found the release was withdrawn")
    shutil.rmtree(signed.ledger)
    create_ledger(signed.ledger, signed.signer, NAME, CAPS, DAY)
    assert signed.refused().startswith(f"{PROOF}: ledger: found no commit of this release")


def test_an_unsigned_release_has_nothing_that_evidence_could_speak_for(
    once: Path, signed: Signed
) -> None:
    """Whatever is known of the curator, and whether or not a signature is asked for."""
    signed.enter_nothing()
    told = signed.accepted(Trust())
    assert "that the curator published this: nothing is signed" in told.asserted
    assert [line.partition(":")[0] for line in told.unseen] == ["who published this"]
    assert signed.accepted(Trust(require=Required.NONE)).complete
    ledger = once.parent.parent / "ledger"
    for trust in (
        Trust(keys=(signed.key,)),
        Trust(ledger),
        Trust(beside=ledger, require=Required.NONE),
        Trust(older=ledger / CHECKPOINT),
    ):
        assert signed.refused(trust).startswith(f"{ATTESTATION}: file: found nothing is signed")
