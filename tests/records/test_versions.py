"""Every version of the file formats that was ever published stays readable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dp_release_verify.digests import sha256
from release.budget.ledger import read_ledger
from release.errors import SpecError, VerificationError
from release.queries.read import parse_spec
from release.records.signing import read_public_key
from release.records.versions import READ, unread
from release.verification.provenance import Trust
from release.verification.verifier import verify
from tests.conftest import PROJECT

FORMATS = PROJECT / "tests" / "formats"
VERSIONS = sorted(path.name for path in FORMATS.iterdir())


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_published_in_each_version_still_verifies(version: str, tmp_path: Path) -> None:
    shutil.copytree(FORMATS / version, tmp_path / "out")
    out = tmp_path / "out"
    (out / "auditor").chmod(0o700)
    key = read_public_key(str(out / "key.pub"))
    for public in (out / "public").iterdir():
        verdict = verify(public, out / "auditor" / public.name, Trust(out / "ledger", (key,)))
        assert verdict.complete
    assert read_ledger(out / "ledger").state.committed


def test_there_is_a_folder_for_each_version() -> None:
    assert [f"v{number}" for number in READ["release"]] == VERSIONS


def test_a_later_format_is_told_apart_from_a_broken_file(tmp_path: Path) -> None:
    public = tmp_path / "small"
    shutil.copytree(FORMATS / "v1" / "public" / "small", public)
    record = public / "release.json"
    old = record.read_bytes()
    record.write_bytes(old.replace(b"release/v1", b"release/v2"))
    sums = public / "SHA256SUMS"
    new = sums.read_text().replace(sha256(old), sha256(record.read_bytes()))
    sums.write_text(new)
    with pytest.raises(
        VerificationError, match=r"release/v2 is of a later format.*install a later"
    ):
        verify(public, None)
    text = (public / "spec.yaml").read_bytes()
    with pytest.raises(SpecError, match=r"^spec: dp-release/spec/v7 is of a later format"):
        parse_spec(text.replace(b"spec/v1", b"spec/v7"))
    with pytest.raises(SpecError, match=r"found 'dp-release/spec/7'; write"):
        parse_spec(text.replace(b"spec/v1", b"spec/7"))


def test_a_later_format_of_a_mechanism_is_told_as_such() -> None:
    assert str(unread("dp-release/mechanism/v2")).startswith(
        "dp-release/mechanism/v2 is of a later format"
    )


@pytest.mark.parametrize("told", ["dp-release/mechanism/v1", "dp-release/poem/v9", "", None, 7])
def test_of_other_names_nothing_is_said(told: object) -> None:
    assert unread(told) is None
