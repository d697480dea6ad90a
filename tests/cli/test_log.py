"""``dp-release log``, and what ``run`` and ``verify`` say of a spec that has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release.budget.ledger import ScopeCap, create_ledger
from release.bundle.evidence.line import Code
from release.cli.main import main
from release.operate.log.file import last_copy, read_log
from release.records.keys.files import create_key
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights of one template, which has changed between them, with a signed log."""
    folder = tmp_path_factory.mktemp("nights")
    signer = create_key(folder / "key")
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    for day, epsilon in zip(DAYS, ("1", "2"), strict=True):
        asked = query("count", by=[], sensitivity="global", where="place <> '{period}'")
        asked["guarantee"] = {"definition": "pure", "epsilon": epsilon}
        Small(ROWS, [asked]).write(folder)
        text = (folder / "spec.yaml").read_text("utf-8").replace("id: small", "id: n-{period}")
        (folder / "nightly.yaml").write_text(text, "utf-8")
        words = ["run", "nightly.yaml", "--period", day, "--out", "out", "--key", "key"]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("DP_RELEASE_LOG", "log")
            patch.setenv("DP_RELEASE_CACHE", "")
            assert status(*words) == 0
    return folder


def status(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def _within(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(nights)


def test_the_log_of_the_nights_is_whole_and_signed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = read_log([Path("log")])
    assert status("log", "verify", "log", "--out", "out", "--signed") == 0
    told = f"{len(lines)} lines, each follows from the one before: {len(lines)} signed, 0 not"
    assert told in capsys.readouterr().out


def test_what_changed_is_in_the_log_and_told_by_verify(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in read_log([Path("log")]) if line.code is Code.CHANGED]
    assert [(line.release_id, line.since, line.part) for line in lines] == [
        ("n-2024-01-02", "n-2024-01-01", "queries.the_count.guarantee.epsilon")
    ]
    told = 'changed    since n-2024-01-01: queries.the_count.guarantee.epsilon: "1" → "2"'
    for day, is_told in zip(DAYS, (False, True), strict=True):
        status("verify", f"out/public/n-{day}", "--require", "none")
        assert (told in capsys.readouterr().out) is is_told


def test_a_log_that_was_cut_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = Path("log").read_bytes().splitlines(keepends=True)
    cut = tmp_path / "log"
    cut.write_bytes(b"".join(lines[:-3]))
    last_copy(cut).write_bytes(last_copy(Path("log")).read_bytes())
    assert status("log", "verify", str(cut)) == 1
    assert "end: found" in capsys.readouterr().err


def test_a_log_that_was_put_back_lacks_releases_of_the_ledger(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With the copy of its last line, so that the log alone shows nothing."""
    older = tmp_path / "log"
    first = Path("log").read_bytes().splitlines()[0]
    # As of a log that was begun before the ledger's first release.
    early = json.loads(first) | {"time": "2024-01-01T00:00:00Z"}
    early.pop("signature")
    older.write_bytes(json.dumps(early, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    last_copy(older).write_bytes(older.read_bytes().rstrip(b"\n"))
    assert status("log", "verify", str(older)) == 0
    assert status("log", "verify", str(older), "--out", "out") == 1
    out = capsys.readouterr().out
    for day in DAYS:
        assert f"n-{day}: the ledger commits it, and the log does not have it" in out
    assert status("log", "verify", str(older), "--out", "out", "--signed") == 1
    assert status("log", "verify", str(older), "--signed") == 2


def test_exports_go_to_a_file_or_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status("log", "openlineage", "log") == 0
    events = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    assert [event["outputs"][0]["name"] for event in events[1::2]] == [f"n-{d}" for d in DAYS]
    target = tmp_path / "metrics.txt"
    assert status("log", "metrics", "--out", "out", "--log", "log", "--file", str(target)) == 0
    assert 'dp_release_releases{state="public"} 2\n' in target.read_text("utf-8")
    # Over an older file, whole.
    assert status("log", "metrics", "--out", "out", "--file", str(target)) == 0
    assert target.read_text("utf-8").endswith("# EOF\n")
    assert status("log", "openlineage", "nowhere") == 2
