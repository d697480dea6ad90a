"""The list of checks: every verdict has a line of each, and every refusal has an identifier."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from release.cli.main import main
from release.errors import VerificationError
from release.pipeline import auditor_bundle
from release.verification.checks import CHECKS, Level
from release.verification.findings import Finding, checking, completed
from release.verification.provenance import Trust
from release.verification.required import Evidence, Required
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.small import UNSIGNED


def dp(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


@pytest.mark.parametrize("trust", [UNSIGNED, Trust()])
@pytest.mark.parametrize("opened", [True, False])
def test_a_verdict_has_a_line_of_every_check(trust: Trust, opened: bool, ami_release: Path) -> None:
    verdict = verify(ami_release, auditor_bundle(ami_release) if opened else None, trust)
    assert list(dict.fromkeys(line.identifier for line in verdict.findings)) == list(CHECKS)
    by_level = [verdict.proved, verdict.tested, verdict.asserted, verdict.withheld, verdict.unseen]
    assert sum(map(len, by_level)) + len(verdict.at(Level.LEFT_OUT)) == len(verdict.findings)
    committed = [line for line in verdict.findings if line.identifier == "mechanism.committed"]
    assert {line.level for line in committed} == {Level.PROVED if opened else Level.UNSEEN}
    assert verdict.complete is (opened and trust is UNSIGNED)


def test_a_line_outside_the_list_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="not in the list"):
        Finding("charges.totals", Level.PROVED, "x")
    lines = completed([Finding("charges.total", Level.UNSEEN, "x")])
    assert [line.identifier for line in lines] == list(CHECKS)
    assert {line.level for line in lines} == {Level.UNSEEN, Level.LEFT_OUT}


def test_the_innermost_check_names_a_failure() -> None:
    with (
        pytest.raises(VerificationError) as caught,
        checking("tables.form"),
        checking("files.sums"),
    ):
        raise VerificationError("a", "b", "c", "d")
    assert caught.value.identifier == "files.sums"


def test_the_printed_lines_have_their_identifiers(
    ami_release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told, _ = dp(capsys, "verify", ami_release, "--require", "none")
    assert status == 3
    printed = re.findall(r"^  - ([a-z_]+\.?[a-z_]*): ", told, re.MULTILINE)
    assert set(printed) == set(CHECKS)
    assert told.splitlines()[-1].endswith("verified as far as the given bundles allow (unsigned)")


def test_a_program_reads_identifiers_found_and_expected(
    ami_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, told, _ = dp(capsys, "verify", ami_release, "--json", "--require", "none")
    plain = json.loads(told)
    assert (status, plain["evidence"]) == (3, "unsigned")
    (charged,) = (line for line in plain["findings"] if line["identifier"] == "charges.total")
    assert (charged["found"], charged["expected"]) == (
        "ε = 4, δ = 0.00001",
        "at most ε = 4, δ = 0.00001",
    )
    held = {line["identifier"]: line for line in plain["findings"]}
    guarantee = held["mechanism.guarantee"]
    assert (guarantee["found"], guarantee["expected"]) == ("δ = 0", "at most δ = 0")
    assert held["tables.form"]["found"] == held["tables.form"]["expected"] == "36"
    (tmp_path / ami_release.name).mkdir()
    (tmp_path / ami_release.name / "release.json").write_text("{}")
    status, told, error = dp(capsys, "verify", tmp_path / ami_release.name, "--json")
    plain = json.loads(told)
    assert status == 1
    assert (plain["verified"], plain["identifier"]) == ("refused", "files.sums")
    assert (plain["file"], plain["check"]) == ("SHA256SUMS", "file")
    assert (
        error == f"error: SHA256SUMS: file: found {plain['found']}, expected {plain['expected']}\n"
    )


@pytest.mark.parametrize("required", list(Required))
@pytest.mark.parametrize("found", list(Evidence))
def test_each_level_has_what_the_ones_before_it_have(required: Required, found: Evidence) -> None:
    order = ["unsigned", "signed", "paid", "witnessed"]
    enough = required == "none" or order.index(found) >= order.index(required)
    assert required.is_met(found) is enough


def test_the_pages_name_the_levels() -> None:
    page = (PROJECT / "docs" / "verify.md").read_text("utf-8")
    for level in (*Evidence, *Required):
        assert f"`{level}`" in page
