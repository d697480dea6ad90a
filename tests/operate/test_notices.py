"""Every end is told once: one test a row of the table in docs/operations.md."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.budget.ledger import ScopeCap, create_ledger, read_ledger
from release.cli.main import main
from release.errors import SpecError
from release.operate.notices.channels import read_channels
from release.operate.notices.notice import REMEDIES, End, Notice
from release.operate.notices.outbox import FILE, TRIES, Outbox
from release.records.keys.files import create_key
from tests.conftest import PROJECT
from tests.operate.receivers import Webhook, mailbox, webhook
from tests.spec.test_periods import template

TODAY = datetime.date(2024, 1, 4)


@dataclass
class Schedule:
    """A template of three days in a folder, with a ledger, and a webhook that is told."""

    folder: Path
    told: Webhook

    @property
    def out(self) -> Path:
        """The folder of the releases."""
        return self.folder / "out"

    @property
    def channels(self) -> Path:
        """The file that says who is told."""
        return self.folder / "channels"

    def address(self, *addresses: str) -> None:
        """Say where notices go."""
        self.channels.touch(0o600)
        self.channels.write_text("# who is told\n" + "\n".join(addresses) + "\n", "utf-8")

    def words(self, command: str, *more: str) -> list[str]:
        """A command with the options of this schedule."""
        words = [command, *more, "--out", str(self.out), "--key", str(self.folder / "key")]
        return [*words, "--notify", str(self.channels)]

    def call(self, command: str, *more: str) -> int:
        """Run a command to its end; its status."""
        with pytest.raises(SystemExit) as ended:
            main(self.words(command, *more))
        return int(ended.value.code or 0)

    def catch_up(self, *more: str) -> int:
        """Release what is due."""
        spec = str(self.folder / "spec.yaml")
        return self.call("catch-up", spec, "--since", "2024-01-01", *more)


@pytest.fixture
def schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Schedule]:
    template(tmp_path)
    monkeypatch.setattr("release.budget.ledger.today", lambda: TODAY)
    with webhook() as told:
        found = Schedule(tmp_path, told)
        found.address(told.address)
        yield found


def open_ledger(schedule: Schedule, epsilon: str = "9") -> None:
    signer = create_key(schedule.folder / "key")
    cap = ScopeCap(scope="tests", epsilon=epsilon, delta="0")
    create_ledger(schedule.out / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")


def day(number: int) -> str:
    return f"daily-2024-01-0{number}"


def test_released(schedule: Schedule) -> None:
    open_ledger(schedule)
    assert schedule.catch_up() == schedule.catch_up() == 0
    assert schedule.told.titles == [f"{day(n)}: released" for n in (1, 2, 3)]
    assert all("What to do: " in one["message"] for one in schedule.told.came)


def test_refused_and_what_is_mended_is_released(schedule: Schedule) -> None:
    open_ledger(schedule)
    table = schedule.folder / "rows-2024-01-02.parquet"
    whole = table.read_bytes()
    table.write_bytes(b"quagzil")
    assert schedule.catch_up() == schedule.catch_up() == 1
    refused = f"{day(2)}: refused"
    assert schedule.told.titles == [f"{day(1)}: released", refused, f"{day(3)}: released"]
    assert "rows-2024-01-02.parquet is not a readable" in schedule.told.came[1]["message"]
    # Another reason is another notice.
    table.unlink()
    schedule.catch_up()
    assert schedule.told.titles[3:] == [refused]
    # And so is the first reason, when it comes back.
    table.write_bytes(b"quagzil")
    assert schedule.catch_up() == schedule.catch_up() == 1
    assert schedule.told.titles[4:] == [refused]
    table.write_bytes(whole)
    assert schedule.catch_up() == 0
    assert schedule.told.titles[5:] == [f"{day(2)}: released"]
    assert "quagzil" not in json.dumps(schedule.told.came)


def test_the_end_of_the_budget_and_again_after_it_was_raised(schedule: Schedule) -> None:
    open_ledger(schedule, "1")
    assert schedule.catch_up() == schedule.catch_up() == 1
    spent = "spec.yaml: budget spent"
    assert schedule.told.titles == [f"{day(1)}: released", spent]
    main_words = ["ledger", "policy", "--out", str(schedule.out), "--scope", "tests:2:0"]
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*main_words, "--key", str(schedule.folder / "key")])
    schedule.catch_up()
    schedule.catch_up()
    assert schedule.told.titles[2:] == [f"{day(2)}: released", spent]


def test_late_is_told_once_after_the_declared_days(
    schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ledger(schedule)
    (schedule.folder / "rows-2024-01-03.parquet").unlink()
    late = f"{day(3)}: late"
    for later, expected in ((0, 0), (1, 0), (2, 1), (3, 1)):
        date = TODAY + datetime.timedelta(days=later)
        monkeypatch.setattr("release.budget.ledger.today", lambda date=date: date)
        assert schedule.catch_up("--late-days", "2") == 2
        assert schedule.told.titles.count(late) == expected
    (told,) = [one for one in schedule.told.came if one["title"].endswith(late)]
    assert told["message"].startswith(f"{day(3)} has been due since 2024-01-04\nWhat to do: bring")


def test_skipped(schedule: Schedule) -> None:
    open_ledger(schedule)
    words = [str(schedule.folder / "spec.yaml"), "2024-01-02", "--reason", "no data"]
    assert schedule.call("skip", *words) == 0
    assert schedule.call("skip", *words) == 1
    schedule.catch_up()
    titles = [f"{day(2)}: skipped", f"{day(1)}: released", f"{day(3)}: released"]
    assert schedule.told.titles == titles
    assert schedule.told.came[0]["message"].startswith(f"{day(2)} will not be released: no data")


CATCHES_UP = """
import datetime, os, signal, sys
import release.budget.ledger as ledger
import release.bundle.publish as publish
ledger.today = lambda: datetime.date(2024, 1, 4)
kept = getattr(publish.Publication, sys.argv[1])
def dies(self, *given, **named):
    result = kept(self, *given, **named) if sys.argv[2] == "after" else None
    os.kill(os.getpid(), signal.SIGKILL)
setattr(publish.Publication, sys.argv[1], dies)
from release.cli.main import main
main(sys.argv[3:])
"""


@pytest.mark.parametrize(
    ("method", "moment", "told"),
    [
        ("reserve", "before", [f"{day(1)}: crashed before its charge"]),
        ("reserve", "after", [f"{day(1)}: crashed before its draw"]),
        ("verify", "before", [f"{day(1)}: crashed after its draw, and published"]),
    ],
)
def test_a_crash_is_told_by_the_next_run(
    schedule: Schedule, method: str, moment: str, told: list[str]
) -> None:
    open_ledger(schedule)
    spec = str(schedule.folder / "spec.yaml")
    words = schedule.words("catch-up", spec, "--since", "2024-01-01")
    command = [sys.executable, "-c", CATCHES_UP, method, moment, *words]
    died = subprocess.run(command, cwd=PROJECT, capture_output=True, check=False)
    assert died.returncode == -9, died.stderr
    assert schedule.told.titles == []
    assert schedule.catch_up() == 0
    due = range(2 if "published" in "".join(told) else 1, 4)
    assert schedule.told.titles == [*told, *(f"{day(n)}: released" for n in due)]


def test_a_crash_in_mid_draw_is_told_with_its_cost_each_time(schedule: Schedule) -> None:
    open_ledger(schedule)
    spec, mark = str(schedule.folder / "spec.yaml"), schedule.folder / "die"
    command = [sys.executable, "-c", CATCHES_UP, "verify", "never"]
    command += schedule.words("catch-up", spec, "--since", "2024-01-01")
    killing = f"{PROJECT / 'tests' / 'killing'}{os.pathsep}{PROJECT}"
    environment = {**os.environ, "DIE_IN_DRAW": str(mark), "PYTHONPATH": killing}
    for _ in range(2):
        mark.touch()
        died = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert died.returncode == -9, died.stderr
    assert schedule.call("recover") == 0
    assert schedule.call("recover") == 0
    assert schedule.told.titles == [f"{day(1)}: crashed during its draw"] * 2
    assert "its charge stays" in schedule.told.came[1]["message"]
    assert read_ledger(schedule.out / "ledger").state.spent("tests").epsilon == 2


def test_a_store_that_does_not_answer(schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    open_ledger(schedule)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tokenofmine")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for _ in range(2):
        assert schedule.catch_up("--to", "s3://office/releases") == 1
    (told,) = schedule.told.came
    assert schedule.told.titles == ["spec.yaml: store or disk fails"]
    assert "s3://office/releases: the store cannot be read (no connection)" in told["message"]
    # Once it is back, the next time is told again.
    assert schedule.catch_up("--to", str(schedule.folder / "store")) == 0
    shutil.rmtree(schedule.out / "public" / day(1))
    assert schedule.catch_up("--to", "s3://office/releases") == 1
    assert schedule.told.titles[-1] == "spec.yaml: store or disk fails"


def test_a_ledger_that_was_put_back(schedule: Schedule) -> None:
    open_ledger(schedule)
    shutil.copytree(schedule.out / "ledger", schedule.folder / "older")
    store = str(schedule.folder / "store")
    assert schedule.catch_up("--to", store) == 0
    shutil.rmtree(schedule.out / "ledger")
    shutil.copytree(schedule.folder / "older", schedule.out / "ledger")
    assert schedule.catch_up("--to", store) == schedule.catch_up("--to", store) == 1
    assert schedule.told.titles[3:] == ["spec.yaml: ledger refuses"]


def test_a_period_that_no_later_run_releases(schedule: Schedule) -> None:
    open_ledger(schedule)
    assert schedule.catch_up() == 0
    shutil.rmtree(schedule.out / "public" / day(2))
    assert schedule.catch_up() == schedule.catch_up() == 1
    assert schedule.told.titles[3:] == [f"{day(2)}: needs somebody"]


def test_a_spec_that_cannot_be_read(schedule: Schedule) -> None:
    open_ledger(schedule)
    (schedule.folder / "spec.yaml").write_text("release: {id: daily}\n", "utf-8")
    assert schedule.catch_up() == schedule.catch_up() == 2
    assert schedule.told.titles == ["spec.yaml: refused"]


def test_a_fault_that_doctor_finds_until_it_is_mended(schedule: Schedule) -> None:
    open_ledger(schedule)
    schedule.catch_up()
    exposed = schedule.out / "auditor"
    exposed.mkdir()
    for mode, status, faults in ((0o755, 1, 1), (0o755, 1, 1), (0o700, 0, 1), (0o755, 1, 2)):
        exposed.chmod(mode)
        assert schedule.call("doctor") == status
        assert schedule.told.titles.count("permissions: fault") == faults


def test_every_channel_gets_every_notice_once_however_often_one_fails(tmp_path: Path) -> None:
    notices = [Notice(End.RELEASED, f"r{n}") for n in range(3)]
    with webhook() as told, mailbox() as (address, came):
        lines = tmp_path / "lines.jsonl"
        path = tmp_path / "channels"
        path.touch(0o600)
        path.write_text(f"{told.address}\n{address}\nfile://{lines}\n", "utf-8")
        complaints: list[str] = []
        box = Outbox(tmp_path / "out", read_channels(path), complaints.append)
        told.status = 503
        box.tell(*notices)
        assert complaints == ["json://… took no notice; later runs try it again"]
        assert told.came == []
        told.status = 200
        box.tell()
        box.tell(*notices)
        assert told.titles == [f"r{n}: released" for n in range(3)]
        subjects = [re.search("^Subject: (.*)$", one, re.MULTILINE) for one in came]
        assert [one and one[1].strip() for one in subjects] == [
            f"dp-release: r{n}: released" for n in range(3)
        ]
        in_file = [json.loads(line)["subject"] for line in lines.read_text("utf-8").splitlines()]
        assert in_file == ["r0", "r1", "r2"]


def test_what_no_channel_ever_takes_is_given_up_in_the_end(tmp_path: Path) -> None:
    with webhook() as told:
        told.status = 500
        path = tmp_path / "channels"
        path.touch(0o600)
        path.write_text(told.address, "utf-8")
        box = Outbox(tmp_path, read_channels(path))
        box.tell(Notice(End.RELEASED, "r"))
        for _ in range(TRIES):
            box.tell()
        told.status = 200
        box.tell()
    assert told.came == []
    assert json.loads((tmp_path / FILE).read_bytes())["waiting"] == []


def test_a_lasting_end_is_told_anew_once_it_was_over(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    path = tmp_path / "channels"
    path.touch(0o600)
    path.write_text(f"file://{lines}", "utf-8")
    box = Outbox(tmp_path, read_channels(path))
    for line in ("first", "second"):
        box.tell(Notice(End.STORE_FAILED, "a.yaml", line))
    box.over({End.STORE_FAILED}, "b.yaml")
    box.tell(Notice(End.STORE_FAILED, "a.yaml", "third"))
    assert len(lines.read_text("utf-8").splitlines()) == 1
    box.over({End.STORE_FAILED}, "a.yaml")
    box.tell(Notice(End.STORE_FAILED, "a.yaml", "fourth"))
    assert len(lines.read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"told": [], "waiting": 3}'])
def test_a_damaged_file_of_what_was_told_stops_nothing(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / FILE).write_bytes(damage)
    lines = tmp_path / "lines"
    path = tmp_path / "channels"
    path.touch(0o600)
    path.write_text(f"file://{lines}", "utf-8")
    for _ in range(2):
        Outbox(tmp_path, read_channels(path)).tell(Notice(End.RELEASED, "r"))
    assert len(lines.read_text("utf-8").splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "mode", "refusal"),
    [
        ("json://127.0.0.1/x", 0o644, "others may read its passwords; chmod 600"),
        ("# nobody\n", 0o600, "write an address on each line"),
        ("ops@example.org", 0o600, "write an address on each line"),
        ("nothing://tokenofmine", 0o600, "nothing://… is no address that Apprise knows"),
        ("file:///no/such/folder/x", 0o600, "file:///no/such/folder/x: no such folder"),
    ],
)
def test_a_wrong_file_of_channels_is_refused_before_anything_runs(
    schedule: Schedule,
    text: str,
    mode: int,
    refusal: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    open_ledger(schedule)
    schedule.channels.write_text(text, "utf-8")
    schedule.channels.chmod(mode)
    assert schedule.catch_up() == 2
    shown = capsys.readouterr().err
    assert f"--notify: {refusal}" in shown or f": {refusal}" in shown
    # Beside Prefect, which prints all logs, a log is shown too.
    assert "tokenofmine" not in shown + caplog.text
    assert not (schedule.out / "public").exists()


def test_a_file_of_channels_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no text file of addresses there"):
        read_channels(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SpecError, match="--notify"):
        read_channels(tmp_path / "pipe")


def test_every_end_has_a_remedy_and_a_row_in_the_page() -> None:
    assert set(REMEDIES) == set(End)
    page = (PROJECT / "docs" / "operations.md").read_text("utf-8")
    rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")}
    assert {end.value for end in End} <= rows
