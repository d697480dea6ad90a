"""Drills of doctor: a rotation and a restore on copies, with the original as it was."""

from __future__ import annotations

import datetime
import hashlib
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from release.budget.entries import Spent
from release.budget.ledger import Ledger, ScopeCap, reserve
from release.budget.store import create_ledger
from release.cli.main import app
from release.operate.drills import drills
from release.operate.findings import Level
from release.operate.operations import Place, Run, deliver_all, release_period
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.stores import open_store
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
ORIGIN = "example.org/dp"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drills") / "place"
    folder.mkdir()
    Small(ROWS, [query("count", by=[])]).write(folder)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    cap = ScopeCap(scope="tests", epsilon="100", delta="0.9")
    create_ledger(folder / "out" / "ledger", create_key(folder / "key"), ORIGIN, (cap,), today)
    release_period(folder / "spec.yaml", None, Run(place_in(folder)))
    return folder


def place_in(folder: Path) -> Place:
    return Place(folder / "out", folder / "key", open_store(str(folder / "store"), "--to"))


@pytest.fixture
def folder(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    shutil.copytree(sound, tmp_path / "place")
    return tmp_path / "place"


def files_of(folder: Path) -> dict[str, tuple[str, int]]:
    """The hash and the time of change of every file."""
    states = {}
    for path in folder.rglob("*"):
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            states[str(path.relative_to(folder))] = (digest, path.stat().st_mtime_ns)
    return states


def messages(place: Place) -> list[tuple[Level, str]]:
    return [(finding.level, finding.message) for finding in drills(place)]


def test_both_drills_pass_and_change_nothing(folder: Path) -> None:
    before = files_of(folder)
    (first, rotation), (second, restored) = messages(place_in(folder))
    assert (first, second) == (Level.WELL, Level.WELL)
    assert "a new key signs, the old one is refused, and 1 releases still verify" in rotation
    assert "3 entries and 1 releases came back" in restored
    assert files_of(folder) == before
    assert not list((folder.parent / "scratch").iterdir())


def test_a_store_that_the_ledger_names_gets_no_entry_of_a_drill(folder: Path) -> None:
    place = place_in(folder)
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    ledger = Ledger(folder / "out" / "ledger", read_key(folder / "key"))
    ledger.name_store((folder / "meeting").as_uri(), day)
    deliver_all(place)
    before = files_of(folder)
    levels = [level for level, _ in messages(place)]
    assert levels == [Level.WELL, Level.WELL]
    assert files_of(folder) == before
    # The ledger goes on where it was: no number was taken by the drill.
    ledger.append(reserve("tests", "next", Spent(), day))


def test_a_store_that_is_behind_fails_the_restore(folder: Path) -> None:
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    ledger = Ledger(folder / "out" / "ledger", read_key(folder / "key"))
    ledger.append(reserve("tests", "next", Spent(), day))
    _, (level, message) = messages(place_in(folder))
    assert level is Level.FAULT
    assert message == "restore: 1 entries are not in the store yet; dp-release deliver"


def test_a_release_that_the_store_has_lost_is_named(folder: Path) -> None:
    shutil.rmtree(folder / "store" / "public" / "small")
    _, (level, message) = messages(place_in(folder))
    assert level is Level.FAULT
    assert "'small' is not in the store; dp-release deliver" in message


def test_a_damaged_copy_fails_the_restore(folder: Path) -> None:
    report = folder / "store" / "public" / "small" / "report.html"
    report.write_bytes(report.read_bytes() + b"!")
    _, (level, message) = messages(place_in(folder))
    assert level is Level.FAULT
    assert "report.html" in message


def test_a_key_of_another_ledger_fails_the_rotation(folder: Path) -> None:
    create_key(folder / "other")
    place = Place(folder / "out", folder / "other", place_in(folder).store)
    (level, message), _ = messages(place)
    assert level is Level.FAULT
    assert "the ledger does not know this key" in message
    assert not list((folder.parent / "scratch").iterdir())


def test_the_command_drills_on_request(folder: Path) -> None:
    arguments = ["doctor", "--out", str(folder / "out"), "--key", str(folder / "key")]
    plain = CliRunner().invoke(app, arguments)
    assert "drill" not in plain.output
    drilled = CliRunner().invoke(app, [*arguments, "--to", str(folder / "store"), "--drill"])
    assert drilled.exit_code == 0
    assert drilled.output.count("well  drill") == 2
