"""The verifier in one file: every step of a release is taken, and the ledger is the curator's."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from release.verification import standalone
from tests.verification.standalone.alone import Plain, refused
from tests.verification.standalone.test_release import AUDITOR, KEY, LEDGER, PUBLIC, sample, stored
from tests.verification.standalone.test_tabulated import entry, tabulated

__all__ = ["sample"]
TRUST = standalone.Trust((KEY,), (), LEDGER)
THIRD, WITNESS = (KEY._replace(name=name, key=bytes([n]) * 32) for n, name in enumerate("tw"))


@pytest.mark.parametrize(
    "step",
    [
        *("check_files", "check_provenance", "check_record", "check_expressions", "open_auditor"),
        *("read_queries", "check_profiles", "check_total", "check_scope", "check_attestation"),
        *("check_entry", "check_sensitivity"),
    ],
)
def test_every_step_is_taken(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> NoReturn:
        raise standalone.RefusedError(step)

    monkeypatch.setattr(standalone.Release, step, stop)
    with refused(step):
        standalone.Release(PUBLIC, AUDITOR, TRUST)


def test_the_sums_are_of_all_files_and_of_no_others(tmp_path: Path) -> None:
    public = Path(shutil.copytree(PUBLIC, tmp_path / "small"))
    sums = public / "SHA256SUMS"
    lines = sums.read_text()

    def check(text: str, says: str) -> None:
        sums.write_text(text)
        with refused(says):
            standalone.Release(public, None, standalone.Trust())

    check(lines.replace(lines[:64], "0" * 64), "attestation.dsse.json: SHA-256")
    check(lines.replace("  ", " *"), "attestation.dsse.json: SHA-256")
    check(lines + "\n", "SHA256SUMS: file set")
    check(lines[:-1], "SHA256SUMS: file set")
    (public / "-x").touch()
    check(lines, "-x: path: found -x")
    (public / "-x").unlink()
    sums.write_text(lines)
    # The name of a folder is no evidence.
    other = public.rename(tmp_path / "other")
    assert standalone.Release(other, None, standalone.Trust())


def test_a_query_that_is_not_read_leaves_no_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone.Release, "read_queries", lambda *_: [])
    found = standalone.Release(PUBLIC, AUDITOR, TRUST)
    assert "the charges follow from the spec, and their total keeps its cap" not in found.proved


def owned(sample: standalone.Release, first: standalone.Key, *signers: standalone.Key) -> None:
    """Give the ledger another first key, and its checkpoint these signers."""
    ledger = sample.ledger = copy.copy(stored().ledger)
    assert ledger is not None
    ledger.keys = [[first], *ledger.keys[1:]]
    ledger.check_checkpoint = lambda *_: ("", 3, b"", {*signers})  # type: ignore[method-assign]


def test_a_trusted_key_began_the_ledger_or_signed_a_checkpoint(
    sample: standalone.Release,
) -> None:
    def check(trusted: standalone.Key, first: standalone.Key, *signers: standalone.Key) -> None:
        owned(sample, first, *signers)
        sample.trust = standalone.Trust((trusted,), (), LEDGER)
        sample.check_provenance()

    check(THIRD, THIRD)
    check(THIRD, WITNESS, THIRD)
    check(KEY, THIRD)  # it signed the checkpoint of the proof
    with refused("ledger: trust: found no trusted key"):
        check(THIRD, WITNESS)


def test_a_witness_of_the_ledger_is_told(sample: standalone.Release) -> None:
    owned(sample, KEY, WITNESS)
    sample.trust = standalone.Trust((KEY,), (WITNESS,), LEDGER, "witnessed")
    sample.check_provenance()
    assert sample.proved[-1] == "a trusted witness signed that the ledger only grew"
    assert sample.missing == []


def test_a_proof_is_of_this_attestation_and_of_the_ledger(sample: standalone.Release) -> None:
    sample.sums = dict(sample.sums) | {standalone.ATTESTATION: "0" * 64}
    with refused("ledger.proof: entry.attestation: found"):
        sample.check_provenance()
    sample.sums = stored().sums
    owned(sample, KEY)
    ledger = sample.ledger
    assert ledger is not None

    def only_its_own(file: str, *_: object) -> standalone.Checkpoint:
        standalone.need(file == "checkpoint", file, "of the ledger")
        return "", 3, b"", set()

    ledger.check_checkpoint = only_its_own  # type: ignore[method-assign,assignment]
    with refused("ledger.proof: of the ledger"):
        sample.check_provenance()


KNOWN: Plain = {"level": "land", "margin": [], "file": "f.csv"}
IMPOSSIBLE: Plain = {"impossible": {"kind": [1]}}


@pytest.mark.parametrize(
    ("constraints", "texts"),
    [
        ([], []),
        ([KNOWN], [f"people: the counts of the land level {standalone.DECLARED}"]),
        (
            [IMPOSSIBLE, KNOWN | {"margin": ["sort", "age"]}],
            [
                f"people: the counts of the land level by sort and age {standalone.DECLARED}",
                f"people: {standalone.IMPOSSIBLE}",
            ],
        ),
    ],
)
def test_what_a_tabulation_holds_fixed_is_told(
    constraints: list[Any], texts: list[str], sample: standalone.Release
) -> None:
    sample.spec = tabulated({"constraints": constraints})
    changes: Plain = {"invariants": texts, "queries": [], "tabulations": [entry()]}
    changes |= {"withheld": [], "limits": standalone.LIMITS[1:]}
    changes["post_processing"] = [f"people: {standalone.ESTIMATED}"]
    sample.record |= changes
    sample.record["privacy"]["max_rows_per_unit"] = 1
    sample.record["guarantee"]["kind"] = "worst-case"
    sample.check_record()
    for field in ("invariants", "post_processing"):
        right = sample.record[field]
        sample.record[field] = [*right, "more"]
        with refused(f"release.json: {field}"):
            sample.check_record()
        sample.record[field] = right
    sample.record["tabulations"] = [entry(), entry()]
    with pytest.raises(ValueError, match="longer"):
        sample.check_record()
    sample.record["tabulations"] = [entry() | {"table": "others"}]
    with refused("release.json: tabulations.table"):
        sample.check_record()


def test_an_audit_record_is_read_with_and_without_commitments(
    tmp_path: Path, sample: standalone.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(shutil.copytree(AUDITOR, tmp_path / "small"))
    read: list[Any] = []
    monkeypatch.setattr(standalone.Release, "check_audit", lambda _, plain: read.append(plain))
    monkeypatch.setattr(standalone, "check_form", lambda *_: None)
    (own / "audit.json").write_bytes(b'{"a":1}')
    assert list(sample.open_auditor(own)) == ["mechanisms/the_mode.json"]
    assert read == [{"a": 1}]
    alone = tmp_path / "alone"
    alone.mkdir()
    del sample.record["queries"][1]
    assert sample.open_auditor(alone) == {}
    (alone / "audit.json").write_bytes(b'{"b":1}')
    assert sample.open_auditor(alone) == {}
    assert read == [{"a": 1}, {"b": 1}]
    with refused("auditor bundle: files"):
        sample.open_auditor(own)
