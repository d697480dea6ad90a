"""A revision: a newer version with its own charge, and an older one that is marked and stays."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from release.budget.ledger import Reserve, ScopeCap, create_ledger, read_ledger
from release.cli.main import main
from release.errors import SpecError
from release.job import Options
from release.operate.notices.notice import Notice
from release.operate.operations import Place, Run, revise_release
from release.operate.schedule import Became, Schedule, periods_of
from release.operate.versions import next_version
from release.records.keys.files import create_key
from release.records.stores import open_store
from release.spec.load import renamed
from release.spec.periods import parse_period
from release.verification.evidence import Required, Trust
from release.verification.keys import read_trusted
from release.verification.verifier import verify
from tests.conftest import PROJECT
from tests.spec.test_periods import template

DAY, OLD, NEW = "2024-01-02", "daily-2024-01-02", "daily-2024-01-02-r2"


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, words)))
    return int(ended.value.code or 0)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder with a template, a ledger and the release of one day."""
    template(tmp_path)
    signer = create_key(tmp_path / "key")
    cap = ScopeCap(scope="tests", epsilon="9", delta="0")
    create_ledger(tmp_path / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    assert call("run", tmp_path / "spec.yaml", "--period", DAY, *options(tmp_path)) == 0
    return tmp_path


def options(folder: Path) -> list[str]:
    return ["--out", str(folder / "out"), "--key", str(folder / "key")]


def revise_words(folder: Path, old: str = OLD) -> list[str]:
    words = ["revise", str(folder / "spec.yaml"), old, "--reason", "a meter was wrong"]
    return [*words, "--period", DAY, *options(folder)]


def files(folder: Path) -> dict[str, bytes]:
    found = filter(Path.is_file, folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def charges(folder: Path) -> list[str]:
    entries = read_ledger(folder / "out" / "ledger").entries
    return [entry.release_id for entry in entries if isinstance(entry, Reserve)]


def test_a_newer_version_is_charged_and_the_older_one_is_kept_and_marked(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public, store = published / "out" / "public", published / "store"
    assert call("deliver", "--out", published / "out", "--to", store) == 0
    before = files(public / OLD)
    assert call(*revise_words(published), "--to", store) == 0
    assert f"{OLD}: revised by {NEW}" in capsys.readouterr().out
    assert files(public / OLD) == before == files(store / "public" / OLD)
    assert files(public / NEW) == files(store / "public" / NEW)
    assert charges(published) == [OLD, NEW]
    # The newer one is the same spec but for its id.
    older, newer = ((public / name / "spec.yaml").read_text("utf-8") for name in (OLD, NEW))
    assert newer == older.replace(OLD, NEW)
    ledger = read_ledger(published / "out" / "ledger")
    trust = Trust(
        keys=read_trusted(map(str, ledger.state.keys)),
        ledger=store / "ledger",
        require=Required.PAID,
    )
    for name, says in ((OLD, f"revised: {NEW} takes its place"), (NEW, "not withdrawn")):
        verdict = verify(public / name, None, trust)
        (found,) = [own for own in verdict.findings if own.check == "ledger.newest"]
        assert found.sentence == says
    assert call("verify", published / "out") == 3
    shown = capsys.readouterr().out
    assert f"{OLD}  VERIFIED, unsigned; revised by {NEW}" in shown
    assert call("ledger", "show", "--out", published / "out") == 0
    assert f"revised by {NEW}: a meter was wrong" in capsys.readouterr().out


def test_what_cannot_be_revised_costs_nothing(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*revise_words(published, "daily-2024-01-03")) == 1
    assert "'daily-2024-01-03' is not public" in capsys.readouterr().err
    assert charges(published) == [OLD]
    assert call(*revise_words(published)) == 0
    assert call(*revise_words(published)) == 1
    assert f"revised already; revise '{NEW}'" in capsys.readouterr().err
    assert call(*revise_words(published, NEW)) == 0
    third = "daily-2024-01-02-r3"
    assert charges(published) == [OLD, NEW, third]
    assert call("ledger", "withdraw", third, *options(published)) == 0
    assert call(*revise_words(published, third)) == 1
    words = revise_words(published)
    words[words.index("--reason") + 1] = "two\nlines"
    assert call(*words) == 1
    assert charges(published) == [OLD, NEW, third]


def test_a_schedule_counts_a_revised_period_as_public(published: Path) -> None:
    assert call(*revise_words(published)) == 0
    schedule = Schedule(published / "spec.yaml", parse_period(DAY))
    (period,) = periods_of(schedule, published / "out", datetime.date(2024, 1, 3))
    assert period.became is Became.PUBLIC


KILLED = """
import os, signal, sys
import release.budget.store as store
kept = store.Ledger.append
def dies(self, make):
    if make.__qualname__.startswith("revise"):
        os.kill(os.getpid(), signal.SIGKILL)
    return kept(self, make)
store.Ledger.append = dies
from release.cli.main import main
main(sys.argv[1:])
"""


def test_a_kill_before_the_mark_costs_nothing_more(published: Path) -> None:
    command = [sys.executable, "-c", KILLED, *revise_words(published)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    died = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert died.returncode == -9, died.stderr
    assert read_ledger(published / "out" / "ledger").state.revised == {}
    assert call(*revise_words(published)) == 0
    assert charges(published) == [OLD, NEW]
    assert read_ledger(published / "out" / "ledger").state.revised == {OLD: NEW}


def test_people_are_told_once(published: Path) -> None:
    told: list[Notice] = []

    class Kept(Run):
        def tell(self, *notices: Notice) -> None:
            """Remember them."""
            told.extend(notices)

    place = Place(published / "out", published / "key", open_store(str(published / "s"), "--to"))
    run = Kept(place, Options(period=parse_period(DAY)))
    revise_release(published / "spec.yaml", OLD, "a meter was wrong", run)
    assert [notice.title for notice in told] == [f"{OLD}: revised"]
    assert told[0].line == f"{NEW} takes the place of {OLD}: a meter was wrong"


def test_without_a_ledger_nothing_can_be_revised(published: Path) -> None:
    with pytest.raises(SpecError, match="no ledger"):
        revise_release(published / "spec.yaml", OLD, "x", Run(Place(published / "elsewhere")))


@pytest.mark.parametrize(
    ("name", "after"),
    [("a", "a-r2"), ("a-r2", "a-r3"), ("a-r9", "a-r10"), ("a-r02", "a-r02-r2"), ("a-r", "a-r-r2")],
)
def test_versions_are_counted(name: str, after: str) -> None:
    assert next_version(name) == after


@pytest.mark.parametrize(
    "text",
    [
        "release:\n  id: a-1  # as before\n  title: a-1\n",
        "release: {title: x, id: 'a-1'}\n",
        'x: é\nrelease:\n  "id": "a-1"\n',
    ],
)
def test_only_the_id_of_a_spec_is_changed(text: str) -> None:
    changed = renamed(text.encode(), "a-1-r2").decode()
    plain, expected = yaml.safe_load(changed), yaml.safe_load(text)
    assert plain["release"].pop("id") == "a-1-r2"
    assert expected["release"].pop("id") == "a-1"
    assert plain == expected
    assert changed.count("#") == text.count("#")


@pytest.mark.parametrize(
    "text", [b"", b"release: 1\n", b"release: {}\n", b"\xff", b"[", b"- id: a"]
)
def test_a_text_without_an_id_is_refused(text: bytes) -> None:
    with pytest.raises(SpecError, match=r"release\.id"):
        renamed(text, "a")
