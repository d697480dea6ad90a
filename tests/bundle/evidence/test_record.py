"""``audit.json``: what it says, who signed it, and that nothing of it is anywhere else."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from dp_release_verify.digests import encoded
from release.budget.ledger import ScopeCap, create_ledger
from release.bundle.evidence.record import AUDIT
from release.errors import VerificationError
from release.operate.journal import Journal
from release.operate.operations import Place, Run, release_period
from release.operate.rehearsal.rehearse import check_run
from release.pipeline import Options
from release.queries.read import read_spec
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.signing import PublicKey, Signer
from release.verification import standalone
from release.verification.checks import Level
from release.verification.provenance import Trust
from release.verification.verifier import Verdict, verify
from tests.small import UNSIGNED, Row, Small, query
from tests.tabulated import misspelt

Plain = dict[str, Any]
Change = Callable[[Plain], object]

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
GLOBAL = query("count", by=[], sensitivity="global")
SEEN = query("mode", by=[])


@pytest.fixture(scope="module", params=[[GLOBAL], [GLOBAL, SEEN]], ids=["public", "committed"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed and audited release, with a bundle for the auditor of it alone, or of more."""
    folder = tmp_path_factory.mktemp("audited")
    Small(ROWS, request.param).write(folder)
    release_into(folder)
    return folder


def release_into(folder: Path) -> None:
    signer = create_key(folder / "key")
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DP_RELEASE_ACTOR", "ada.lovelace")
        patch.setenv("DP_RELEASE_APPROVER", "bob@example.org")
        journal = Journal(str(folder / "log"), None, folder / "key")
        options = Options(is_audited=True)
        place = Place(folder / "out", folder / "key")
        release_period(folder / "spec.yaml", None, Run(place, options, journal=journal))


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "audited"))


def audit_of(folder: Path) -> Plain:
    plain: Plain = json.loads((folder / "out" / "auditor" / "small" / AUDIT).read_bytes())
    return plain


def key_of(folder: Path) -> PublicKey:
    return read_key(folder / "key").public("example.org/dp")


def verdict_of(folder: Path, trust: Trust) -> Verdict:
    out = folder / "out"
    return verify(out / "public" / "small", out / "auditor" / "small", trust)


def told_alone(folder: Path, capsys: pytest.CaptureFixture[str], *given: object) -> str:
    out = folder / "out"
    words = [out / "public" / "small", "--auditor", out / "auditor", *given]
    standalone.main([str(word) for word in words])
    return capsys.readouterr().out


def test_it_says_who_and_when_and_opens_the_commitments(folder: Path) -> None:
    plain = audit_of(folder)
    assert (plain["actor"], plain["approver"]) == ("ada.lovelace", "bob@example.org")
    assert plain["began"] <= plain["prepared"]
    ((table, files),) = ((one["table"], one["files"]) for one in plain["inputs"])
    assert table == "rows"
    data = (folder / "rows.parquet").read_bytes()
    (opening,) = files
    code = hmac.new(bytes.fromhex(opening["key"]), data, hashlib.sha256).hexdigest()
    assert opening["commitment"] == f"hmac-sha256:{code}"
    reserve = json.loads((folder / "out" / "ledger" / "00000001.json").read_bytes())
    assert (plain["sequence"], plain["run"]) == (1, reserve["run"])
    path = folder / "out" / "auditor" / "small" / AUDIT
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_of_it_is_in_any_other_file(folder: Path) -> None:
    plain = audit_of(folder)
    (opening,) = plain["inputs"][0]["files"]
    digest = hashlib.sha256((folder / "rows.parquet").read_bytes()).hexdigest()
    marks = [opening["key"], opening["commitment"], plain["signature"], digest]
    # Of these the log has others of its own: it says who runs as well.
    public = [plain["began"], plain["prepared"], plain["actor"], plain["approver"]]
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in (AUDIT, "rows.parquet", "key"):
            is_log = path.name.startswith("log")
            for mark in marks if is_log else [*marks, *public]:
                assert mark.encode() not in path.read_bytes(), path


def test_the_log_says_the_same_of_neighboring_tables(tmp_path: Path) -> None:
    told = []
    for name, rows in (("one", ROWS), ("two", [*ROWS[1:], {**ROWS[0], "wh": 10**9}])):
        (tmp_path / name).mkdir()
        Small(rows, [GLOBAL]).write(tmp_path / name)
        release_into(tmp_path / name)
        lines = map(json.loads, (tmp_path / name / "log").read_text("utf-8").splitlines())
        hidden = ("time", "prev", "signature")
        told.append([{k: v for k, v in line.items() if k not in hidden} for line in lines])
    assert told[0] == told[1]


def test_both_verifiers_check_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = folder / "out" / "ledger"
    for trust in (Trust(ledger, (key_of(folder),)), Trust(None, (key_of(folder),)), Trust(ledger)):
        verdict = verdict_of(folder, trust)
        (found,) = (one for one in verdict.findings if one.identifier == "provenance.audit")
        assert found.level is Level.TESTED
        assert str(key_of(folder)) in found.text
    assert "tested: audit.json" in told_alone(folder, capsys, "--ledger", ledger)
    assert "tested: audit.json" in told_alone(folder, capsys, "--trust", key_of(folder))
    (found,) = (
        one for one in verdict_of(folder, UNSIGNED).findings if one.identifier == "provenance.audit"
    )
    assert found.level is Level.ASSERTED


def signed_again(plain: Plain, signer: Signer) -> None:
    plain["signature"] = ""
    plain["signature"] = encoded(signer.sign(rfc8785.dumps(plain)))


LEFT_OUT = {"of": "rows", "words": "x", "count": 1, "whole": 2, "noun": "rows", "example": ""}
CHANGES: dict[str, tuple[Change, str]] = {
    "another release": (lambda p: p.update(release_id="other"), "release"),
    "another entry": (lambda p: p.update(sequence=0), "release|sequence"),
    "another run": (lambda p: p.update(run="0" * 32), "run"),
    "no run": (lambda p: p.update(run=None), "run"),
    "no signature": (lambda p: p.pop("signature"), "signature"),
    "another actor": (lambda p: p.update(actor="mallory"), "signature"),
    "another count": (
        lambda p: p["set_aside"].append(
            {"table": "rows", "rule": "no unit", "column": "unit", "count": 7}
        ),
        "signature",
    ),
    "an end before the begin": (lambda p: p.update(prepared="2000-01-01T00:00:00Z"), "times"),
    "another share": (lambda p: p.update(left_out=[LEFT_OUT]), "signature"),
    "a share of nothing": (lambda p: p.update(left_out=[{**LEFT_OUT, "count": 0}]), "schema|set_"),
    "another form": (lambda p: p.update(more="x"), "fields|schema"),
    "no time": (lambda p: p.update(began="yesterday"), "form|schema"),
    "a count of nothing": (
        lambda p: p["set_aside"].append(
            {"table": "rows", "rule": "no unit", "column": "unit", "count": 0}
        ),
        "set_aside|schema",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_both_refuse_what_was_changed(
    change: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit, told = CHANGES[change]
    plain, path = audit_of(folder), folder / "out" / "auditor" / "small" / AUDIT
    edit(plain)
    path.write_bytes(rfc8785.dumps(plain))
    ledger = folder / "out" / "ledger"
    with pytest.raises(VerificationError, match=told) as refused:
        verdict_of(folder, Trust(ledger, (key_of(folder),)))
    assert refused.value.identifier == "provenance.audit"
    assert told_alone(folder, capsys, "--ledger", ledger).startswith("refused: audit.json")


def test_a_key_of_another_does_not_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = audit_of(folder)
    signed_again(plain, create_key(folder / "other"))
    (folder / "out" / "auditor" / "small" / AUDIT).write_bytes(rfc8785.dumps(plain))
    with pytest.raises(VerificationError, match="no known key"):
        verdict_of(folder, Trust(None, (key_of(folder),)))
    assert "audit.json: signature" in told_alone(folder, capsys, "--trust", key_of(folder))
    # The curator's own key signs for any content.
    signed_again(plain, read_key(folder / "key"))
    (folder / "out" / "auditor" / "small" / AUDIT).write_bytes(rfc8785.dumps(plain))
    verdict_of(folder, Trust(None, (key_of(folder),)))


def test_another_file_in_the_bundle_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "out" / "auditor" / "small" / "more.json").write_bytes(b"{}")
    with pytest.raises(VerificationError, match="file set"):
        verdict_of(folder, UNSIGNED)
    assert "auditor bundle: files" in told_alone(folder, capsys, "--require", "none")


def test_rows_that_were_set_aside_are_counted(tmp_path: Path) -> None:
    """Of a CSV file, under a contract that drops; counted here by hand."""
    small = Small(ROWS, [GLOBAL])
    small.write(tmp_path)
    lines = ["unit,place,day,kind,wh", *(f"u{i},{'ab'[i % 2]},1,{i % 4},{i}" for i in range(9))]
    lines += [",a,1,1,1", "u1,a,x,1,1", "u1,a,1,1", "u2,b,1,1,900", "u2,b,1,1,-900"]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n", "utf-8")
    spec = (tmp_path / "spec.yaml").read_text("utf-8")
    assert "path: rows.parquet" in spec
    spec = spec.replace("path: rows.parquet", "path: rows.csv\n    contract: contract.yaml")
    (tmp_path / "spec.yaml").write_text(spec, "utf-8")
    column = {"type": "integer", "meaning": "x", "measure": "x", "nullable": True}
    column |= {"minimum": 0, "maximum": 99, "on_violation": "drop"}
    about = {"contract": "dp-release/table/v1", "table": "x", "description": "x", "unit": "unit"}
    (tmp_path / "contract.yaml").write_text(json.dumps(about | {"columns": {"wh": column}}))
    release_into(tmp_path)
    found = {(one["rule"], one["column"]): one["count"] for one in audit_of(tmp_path)["set_aside"]}
    assert found == {
        ("unreadable line", ""): 1,
        ("no unit", "unit"): 1,
        ("not a integer", "day"): 1,
        ("contract", ""): 2,
    }


@pytest.mark.parametrize("asked", [GLOBAL, SEEN, query("binned", sensitivity="global")])
def test_what_the_answers_leave_out_stands_there_as_check_says_it(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    """Of several rows a unit, one of them in no cell, and one without a value."""
    unit = {"unit": "u0", "place": "c", "day": 1, "kind": 1}
    rows: list[Row] = [*ROWS, {**unit, "wh": 5}, {**unit, "wh": None}, {**unit, "wh": 10**6}]
    Small(rows, [asked]).write(tmp_path)
    release_into(tmp_path)
    said = check_run(read_spec(tmp_path / "spec.yaml")).left_out
    assert said
    assert audit_of(tmp_path)["left_out"] == [asdict(reason) for reason in said]


def test_what_a_tabulation_leaves_out_stands_there_as_check_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from release.pipeline import run_release

    monkeypatch.setenv("DP_RELEASE_AUDIT", "1")
    spec = misspelt().write(tmp_path)
    run_release(spec, tmp_path / "out")
    said = check_run(read_spec(spec)).left_out
    (audit,) = (tmp_path / "out").rglob(AUDIT)
    noted = json.loads(audit.read_bytes())["left_out"]
    assert [(one["of"], one["words"], one["count"]) for one in noted] == [
        (reason.of, reason.words, reason.count) for reason in said
    ]
    assert said


def test_a_release_that_nobody_signs_has_an_unsigned_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from release.pipeline import run_release

    monkeypatch.setenv("DP_RELEASE_AUDIT", "1")
    run_release(Small(ROWS, [GLOBAL]).write(tmp_path), tmp_path / "out")
    plain = audit_of(tmp_path)
    assert (plain["sequence"], plain["run"]) == (None, None)
    assert "signature" not in plain
    (found,) = (
        one
        for one in verdict_of(tmp_path, UNSIGNED).findings
        if one.identifier == "provenance.audit"
    )
    assert found.level is Level.ASSERTED


def test_a_run_that_is_cut_off_after_its_draw_keeps_it(tmp_path: Path) -> None:
    from release.pipeline import call, run_release

    Small(ROWS, [GLOBAL]).write(tmp_path)

    def step(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if name == "publish":
            raise KeyboardInterrupt
        return call(name, function, *arguments)

    options = Options(is_audited=True)
    with pytest.raises(KeyboardInterrupt):
        run_release(tmp_path / "spec.yaml", tmp_path / "out", step, options=options)
    (kept,) = (tmp_path / "out").rglob(AUDIT)
    data = kept.read_bytes()
    # The run that finishes it does not ask for a record, and reads no table.
    (tmp_path / "rows.parquet").unlink()
    run_release(tmp_path / "spec.yaml", tmp_path / "out")
    assert (tmp_path / "out" / "auditor" / "small" / AUDIT).read_bytes() == data
