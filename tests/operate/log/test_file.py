"""The file of the log: a chain under a lock, healed after a crash; no change goes unnoticed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from release.budget.entries import Commit
from release.bundle.evidence.line import NOTHING
from release.errors import Reason, ReleaseError, VerificationError
from release.operate.journal import Code, Journal
from release.operate.log.file import append, check_log, ends_missing, last_copy, read_log
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.signing import PublicKey, Signer


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A signed log of five lines."""
    create_key(tmp_path / "key")
    tell(tmp_path, 5)
    return tmp_path / "log"


def tell(folder: Path, count: int) -> None:
    for number in range(count):
        journal(folder).tell(Code.STAGE, stage=f"s{number}")


def journal(folder: Path) -> Journal:
    return Journal(str(folder / "log"), "ab" * 16, folder / "key")


def keys(log: Path) -> tuple[PublicKey, ...]:
    return (read_key(log.parent / "key").public("example.org/dp"),)


def test_each_line_is_numbered_signed_and_names_the_one_before(log: Path) -> None:
    checked = check_log([log], keys(log))
    assert (len(checked.lines), checked.unsigned, checked.torn) == (5, 0, 0)
    assert [line.number for line in checked.lines] == list(range(5))
    assert checked.lines[0].prev == NOTHING
    assert {line.run for line in checked.lines} == {"ab" * 16}
    assert last_copy(log).read_bytes() + b"\n" == log.read_bytes().splitlines(keepends=True)[-1]
    assert log.stat().st_mode & 0o007 == 0


def lines_of(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines(keepends=True)


def changed(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"stage":"s2"', b'"stage":"s9"'))


def last_changed(log: Path) -> None:
    for path in (log, last_copy(log)):
        path.write_bytes(path.read_bytes().replace(b'"stage":"s4"', b'"stage":"s9"'))


def removed(log: Path) -> None:
    lines = lines_of(log)
    log.write_bytes(b"".join(lines[:2] + lines[3:]))


def moved(log: Path) -> None:
    lines = lines_of(log)
    log.write_bytes(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))


def repeated(log: Path) -> None:
    log.write_bytes(log.read_bytes() + lines_of(log)[-1])


def beginning_cut(log: Path) -> None:
    log.write_bytes(b"".join(lines_of(log)[1:]))


def end_cut(log: Path) -> None:
    log.write_bytes(b"".join(lines_of(log)[:3]))


def end_cut_and_continued(log: Path) -> None:
    end_cut(log)
    tell(log.parent, 2)


def emptied(log: Path) -> None:
    log.write_bytes(b"")


def without_copy(log: Path) -> None:
    last_copy(log).unlink()


def signed_by_another(log: Path) -> None:
    create_key(log.parent / "other")
    Journal(str(log), None, log.parent / "other").tell(Code.STAGE)


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (changed, "signature"),
        (last_changed, "signature"),
        (removed, "number: found 3, expected 2"),
        (moved, "number: found 2, expected 1"),
        (repeated, "number: found 4, expected 5"),
        (beginning_cut, "number: found 1, expected 0"),
        (end_cut, "end: found 3 lines, expected line 4"),
        (end_cut_and_continued, "number: found 5, expected 3"),
        (emptied, "end: found 0 lines, expected line 4"),
        (without_copy, "log.last"),
        (signed_by_another, "no known key has signed it"),
    ],
)
def test_every_change_shows(forge: Callable[[Path], None], told: str, log: Path) -> None:
    known = keys(log)
    forge(log)
    with pytest.raises(VerificationError, match=told.replace(".", r"\.")):
        check_log([log], known)


def test_a_change_of_an_unsigned_line_shows_in_the_next_one(tmp_path: Path) -> None:
    tell(tmp_path, 3)
    log = tmp_path / "log"
    assert check_log([log], ()).unsigned == 3
    log.write_bytes(log.read_bytes().replace(b'"stage":"s1"', b'"stage":"s9"'))
    with pytest.raises(VerificationError, match="prev"):
        check_log([log], ())


def test_a_torn_last_line_is_healed_and_no_earlier_one_lost(log: Path) -> None:
    whole = log.read_bytes()
    # A crash within the write: of the line, or of all of it but its end.
    for cut in (40, len(lines_of(log)[-1]) - 1):
        log.write_bytes(whole + whole.splitlines()[-1][:cut])
        # As the crash left it, the copy is of the line before.
        tell(log.parent, 1)
        assert log.read_bytes().startswith(whole)
    shutil.copy(log, log.parent / "kept")


def test_a_line_without_its_end_is_the_one_before(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    tell(log.parent, 1)
    checked = check_log([log], keys(log))
    assert (len(checked.lines), checked.torn) == (6, 0)


def test_a_part_of_a_line_is_passed_over(log: Path) -> None:
    with log.open("ab") as file:
        file.write(lines_of(log)[-1][:60])
    tell(log.parent, 2)
    checked = check_log([log], keys(log))
    assert (len(checked.lines), checked.torn) == (7, 1)


def test_a_crash_before_the_copy_is_no_fault(log: Path) -> None:
    older = last_copy(log).read_bytes()
    tell(log.parent, 1)
    last_copy(log).write_bytes(older)
    assert len(check_log([log], keys(log)).lines) == 6
    tell(log.parent, 1)
    assert len(check_log([log], keys(log)).lines) == 7


def test_a_log_that_was_rotated_goes_on(log: Path) -> None:
    log.rename(log.parent / "log.1")
    tell(log.parent, 2)
    assert len(check_log([log.parent / "log.1", log], keys(log)).lines) == 7
    with pytest.raises(VerificationError, match="number: found 5, expected 0"):
        check_log([log], keys(log))


def test_processes_that_write_at_once_make_one_chain(log: Path) -> None:
    children = []
    for _ in range(4):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                tell(log.parent, 8)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(check_log([log], keys(log)).lines) == 5 + 4 * 8


def test_what_is_no_plain_file_gets_lines_too(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    append(Path("/dev/null"), lambda number, prev: f"{number} {prev}".encode())
    Journal("-", None).tell(Code.STARTED, spec="nightly.yaml")
    line = json.loads(capfd.readouterr().err)
    assert (line["number"], line["spec"]) == (0, "nightly.yaml")
    assert "signature" not in line


def test_who_ran_and_who_approved(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DP_RELEASE_ACTOR", "ada@example.org")
    monkeypatch.setenv("DP_RELEASE_APPROVER", "the whole board")
    tell(log.parent, 1)
    line = read_log([log])[-1]
    assert (line.actor, line.approver) == ("ada@example.org", "?")
    monkeypatch.delenv("DP_RELEASE_ACTOR")
    monkeypatch.delenv("DP_RELEASE_APPROVER")
    # Variables that everybody sets name nobody.
    monkeypatch.setenv("LOGNAME", "mallory")
    monkeypatch.setenv("USER", "mallory")
    tell(log.parent, 1)
    line = read_log([log])[-1]
    assert line.actor not in ("mallory", "ada@example.org")
    assert line.approver is None


def test_a_refusal_is_logged_by_its_kind_alone(log: Path) -> None:
    own = journal(log.parent)
    with pytest.raises(ReleaseError), own.told(spec="a b", period="2024"):
        raise ReleaseError("quagzil")
    with pytest.raises(KeyboardInterrupt), own.told(spec="x.yaml"):
        raise KeyboardInterrupt
    lines = read_log([log])[5:]
    assert [line.code for line in lines] == [Code.STARTED, Code.REFUSED] * 2
    assert [line.reason for line in lines] == [None, Reason.REFUSED, None, Reason.INTERRUPTED]
    assert (lines[1].spec, lines[1].period) == ("?", "2024")
    assert b"quagzil" not in log.read_bytes()


def test_a_release_of_the_ledger_without_a_line_shows(log: Path) -> None:
    journal(log.parent).tell(Code.PUBLISHED, release_id="a")
    journal(log.parent).tell(Code.RECOVERED, release_id="b", ended="published")
    lines = read_log([log])
    first = lines[0].time[:10]
    commits = [
        Commit(
            seq=number,
            prev=NOTHING,
            date=date,
            kind="commit",
            release_id=name,
            sums=NOTHING,
        )
        for number, (name, date) in enumerate(
            [("old", first), ("a", "9999-01-01"), ("b", "9999-01-01"), ("c", "9999-01-01")]
        )
    ]
    assert ends_missing(lines, commits) == ("c",)
    assert ends_missing((), commits) == ()


def test_a_signature_of_a_ledger_is_none_of_a_line(log: Path) -> None:
    """A line is signed with its schema in it, and only as a whole."""
    signer: Signer = read_key(log.parent / "key")
    plain = json.loads(lines_of(log)[-1])
    for message in (b"", lines_of(log)[-1].rstrip(b"\n"), json.dumps(plain).encode()):
        import base64

        forged = plain | {"signature": base64.b64encode(signer.sign(message)).decode()}
        forged |= {"number": 5, "prev": NOTHING}
        text = json.dumps(forged, sort_keys=True, separators=(",", ":"))
        log.with_name("forged").write_text(text + "\n", "utf-8")
        with pytest.raises(VerificationError):
            check_log([log.with_name("forged")], keys(log))
