"""Every version of the file formats that was ever published stays readable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from release.budget.ledger import read_ledger
from release.errors import SpecError, VerificationError
from release.queries.read import parse_spec
from release.records.versions import unread
from release.verification.evidence import Trust
from release.verification.keys import read_trusted
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.verifier.made import edit

FORMATS = PROJECT / "tests" / "formats"
VERSIONS = sorted(path.name for path in FORMATS.iterdir())


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_published_in_each_version_still_verifies(version: str, tmp_path: Path) -> None:
    shutil.copytree(FORMATS / version, tmp_path / "out")
    out = tmp_path / "out"
    (out / "auditor").chmod(0o700)
    keys = read_trusted([str(out / "key.pub")])
    for public in (out / "public").iterdir():
        verdict = verify(public, out / "auditor" / public.name, Trust(out / "ledger", keys))
        assert verdict.status == 0
    assert read_ledger(out / "ledger").state.committed


def test_a_later_format_is_told_apart_from_a_broken_file(tmp_path: Path) -> None:
    public = tmp_path / "small"
    shutil.copytree(FORMATS / "v1" / "public" / "small", public)
    edit(public, "release.json", lambda plain: plain.update(schema="dp-release/release/v2"))
    with pytest.raises(VerificationError, match="found dp-release/release/v2, expected"):
        verify(public, None)
    text = (public / "spec.yaml").read_bytes()
    with pytest.raises(SpecError, match=r"^spec: dp-release/spec/v7 is of a later format"):
        parse_spec(text.replace(b"spec/v1", b"spec/v7"))
    with pytest.raises(SpecError, match=r"found 'dp-release/spec/7'; write"):
        parse_spec(text.replace(b"spec/v1", b"spec/7"))


@pytest.mark.parametrize("told", ["dp-release/mechanism/v1", "dp-release/poem/v9", "", None, 7])
def test_of_other_names_nothing_is_said(told: object) -> None:
    assert unread(told) is None
