"""``dp-release doctor``: each planted fault is found and told apart; a sound place has none."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dp_release_verify.verdict import REFUSED, VERIFIED
from release.budget.entries import Spent
from release.budget.ledger import Ledger, ScopeCap, create_ledger, policy, reserve
from release.operate.doctor import examine
from release.operate.findings import Level
from release.operate.journal import Code, Journal
from release.operate.operations import Judged, Place, Run, release_period, verify_each
from release.operate.schedule import Schedule
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.stores import open_store
from release.spec.periods import parse_period
from release.verification.verifier import own_trust
from tests.conftest import PROJECT, log_lines
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"quagzil-{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i}
    for i in range(9)
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a ledger, a store and a release, and a log of its run."""
    folder = tmp_path_factory.mktemp("sound") / "place"
    folder.mkdir()
    Small(ROWS, [query("count", by=[]), query("mode", by=[])]).write(folder)
    signer = create_key(folder / "key")
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), today)
    journal = Journal(str(folder / "log.jsonl"))
    release_period(folder / "spec.yaml", None, Run(place_in(folder), journal=journal))
    return folder


def place_in(folder: Path) -> Place:
    return Place(folder / "out", folder / "key", open_store(str(folder / "store"), "--to"))


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "place")
    return tmp_path / "place"


def test_a_sound_place_has_no_fault(folder: Path) -> None:
    found = examine(place_in(folder))
    assert {one.level for one in found} <= {Level.WELL, Level.LOOK}
    what = {one.what for one in found}
    assert what == {"versions", "clock", "permissions", "ledger", "releases", "runs", "keys",
                    "budget", "store"}  # fmt: skip
    assert any("49 more like the last" in one.message for one in found)


def ledger_of(folder: Path) -> Ledger:
    return Ledger(folder / "out" / "ledger", read_key(folder / "key"))


def lose_an_entry(folder: Path) -> None:
    (folder / "out" / "ledger" / "00000001.json").unlink()


def change_a_report(folder: Path) -> None:
    with (folder / "out" / "public" / "small" / "report.html").open("ab") as report:
        report.write(b"!")


def add_a_file(folder: Path) -> None:
    (folder / "out" / "public" / "small" / "rows.csv").write_bytes(b"x")


def lose_a_release(folder: Path) -> None:
    shutil.rmtree(folder / "out" / "public" / "small")


def publish_unpaid(folder: Path) -> None:
    public = folder / "out" / "public"
    shutil.copytree(public / "small", public / "unpaid")


def cut_off_a_run(folder: Path) -> None:
    ledger_of(folder).append(reserve("tests", "other", Spent(), "2024-01-01"))


def open_the_auditors_half(folder: Path) -> None:
    (folder / "out" / "auditor").chmod(0o755)


def show_the_key(folder: Path) -> None:
    (folder / "key").chmod(0o644)


def use_another_key(folder: Path) -> None:
    (folder / "key").unlink()
    create_key(folder / "key")


def lower_the_cap(folder: Path) -> None:
    cap = ScopeCap(scope="tests", epsilon="7", delta="0.9")
    ledger_of(folder).append(policy(cap, "2024-01-01"))


def forget_a_delivery(folder: Path) -> None:
    shutil.rmtree(folder / "store" / "public" / "small")


def put_back(folder: Path) -> None:
    """The store has seen more than this machine."""
    shutil.copytree(folder / "out", folder / "old")
    lower_the_cap(folder)
    from release.operate.delivery import deliver_ledger

    deliver_ledger(folder / "out" / "ledger", open_store(str(folder / "store"), "--to"))
    shutil.rmtree(folder / "out")
    (folder / "old").rename(folder / "out")


@pytest.mark.parametrize(
    ("plant", "level", "what", "told"),
    [
        (lose_an_entry, Level.FAULT, "ledger", "entry 1 is missing"),
        (change_a_report, Level.FAULT, "releases", "report.html is missing or changed"),
        (add_a_file, Level.FAULT, "releases", "rows.csv was added"),
        (lose_a_release, Level.FAULT, "releases", "small is committed and not public"),
        (publish_unpaid, Level.FAULT, "releases", "no entry of the ledger pays for it"),
        (cut_off_a_run, Level.FAULT, "runs", "a run of other was interrupted"),
        (open_the_auditors_half, Level.FAULT, "permissions", "others may look in; chmod 700"),
        (show_the_key, Level.FAULT, "permissions", "others may read the key; chmod 600"),
        (use_another_key, Level.FAULT, "keys", "the ledger does not know this key"),
        (lower_the_cap, Level.LOOK, "budget", "2 more like the last, then the scope is spent"),
        (forget_a_delivery, Level.FAULT, "store", "small is not delivered, or differs"),
        (put_back, Level.FAULT, "doctor", "if this machine was put back to an older"),
    ],
)
def test_each_planted_fault_is_found(
    plant: Callable[[Path], None], level: Level, what: str, told: str, folder: Path
) -> None:
    plant(folder)
    found = [one for one in examine(place_in(folder)) if told in one.message]
    assert [(one.level, one.what) for one in found] == [(level, what)]


def test_an_old_key_and_a_clock_that_went_back_are_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_days(days: int) -> Callable[[], datetime.date]:
        now = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=days)
        return lambda: now

    def set_clock(days: int) -> None:
        for module in ("doctor", "machine"):
            monkeypatch.setattr(f"release.operate.{module}.today", in_days(days))

    set_clock(400)
    told = [one.message for one in examine(place_in(folder)) if one.level is Level.LOOK]
    assert any("400 days; rotate it: dp-release ledger key add" in line for line in told)
    set_clock(-2)
    faults = [one for one in examine(place_in(folder)) if one.level is Level.FAULT]
    assert [one.what for one in faults] == ["clock"]


def test_the_command_says_what_is_missing_of_a_schedule_and_changes_nothing(folder: Path) -> None:
    plain = (folder / "spec.yaml").read_text("utf-8").replace("id: small", "id: day-{period}")
    (folder / "nightly.yaml").write_text(plain, "utf-8")
    before = {p: p.stat().st_mtime_ns for p in (folder / "out").rglob("*")}
    yesterday = datetime.datetime.now(tz=datetime.UTC).date() - datetime.timedelta(days=1)
    words = ["doctor", "--out", str(folder / "out"), "--key", str(folder / "key"), "--json"]
    words += ["--spec", str(folder / "nightly.yaml"), "--since", yesterday.isoformat()]
    done = subprocess.run(
        [sys.executable, "-m", "release", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"},
    )
    assert done.returncode == 0, done.stderr
    (missing,) = [one for one in json.loads(done.stdout) if one["what"] == "periods"]
    assert missing["told"] == f"day-{yesterday}: due; dp-release catch-up"
    assert {p: p.stat().st_mtime_ns for p in (folder / "out").rglob("*")} == before
    gone = subprocess.run(
        [sys.executable, "-m", "release", *words, "--prefect", "http://127.0.0.1:9/api"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert gone.returncode == 1
    assert any("no Prefect server answers" in one["told"] for one in json.loads(gone.stdout))


def test_a_log_holds_codes_and_identifiers_only(folder: Path) -> None:
    lines = log_lines(folder / "log.jsonl")
    stages = [line["stage"] for line in lines if line["code"] == "stage"]
    assert stages[0] == "read"
    assert stages.index("charge") < stages.index("draw") < stages.index("publish")
    assert lines[-1]["code"] == "delivered"
    text = (folder / "log.jsonl").read_text("utf-8")
    assert "quagzil" not in text
    assert "rows" not in text
    journal = Journal(str(folder / "more.jsonl"))
    journal.tell(Code.REFUSED, release_id="a b\nc", ended="ValueError: quagzil-17 " * 9)
    (line,) = log_lines(folder / "more.jsonl")
    assert (line["release_id"], line["ended"]) == ("?", "?")
    with pytest.raises(ValueError, match="count is not a field of a log"):
        journal.tell(Code.STAGE, count="7")
    Journal("/nowhere/at/all").tell(Code.STAGE)  # holds nothing up


def test_all_releases_are_verified_at_once(folder: Path) -> None:
    trust = own_trust(folder / "out" / "ledger")
    assert verify_each(folder / "out", None, trust) == (Judged("small", VERIFIED, "VERIFIED"),)
    change_a_report(folder)
    (found,) = verify_each(folder / "out")
    assert (found.release_id, found.status) == ("small", REFUSED)
    assert found.words.startswith("REFUSED: ")


def test_a_schedule_that_cannot_be_read_is_a_finding_too(folder: Path) -> None:
    schedule = Schedule(folder / "nothing.yaml", parse_period("2024"))
    found = examine(replace(place_in(folder), store=None), (schedule,))
    assert [one.what for one in found if one.level is Level.FAULT] == ["doctor"]
