"""The commands on a ledger that names a store, and what is refused before anything is charged."""

from __future__ import annotations

import datetime
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from release.budget.ledger import CHECKPOINT, Ledger, Spent, read_ledger, replay, reserve
from release.cli.main import main
from release.errors import LedgerError, ReleaseError, SpecError, StorageError
from release.job import Options
from release.operate.catching_up import Ended
from release.operate.doctor import examine
from release.operate.findings import Level
from release.operate.operations import Place, Run, abandon, left_behind, release_due
from release.operate.schedule import Became, Schedule, periods_of
from release.records.keys.cosignatures import WitnessKey, cosignatures
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.signing import read_public_key
from release.records.stores import open_store
from release.spec.periods import parse_period
from release.street import run_release
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
START = datetime.date(2025, 1, 1)


@dataclass(frozen=True)
class Office:
    """Two machines of an office: folders, a key, a spec, and the command line."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def spec(self) -> Path:
        """The spec of the release ``small``."""
        return self.folder / "spec.yaml"

    def place(self, machine: str = "one") -> Place:
        """A machine without ``--to``."""
        return Place(self.folder / machine, self.folder / "key")

    def run(self, *arguments: str | Path, status: int = 0) -> str:
        """Run a command with the key in the environment; what it printed, errors too."""
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        shown = self.capsys.readouterr()
        assert stopped.value.code == status, shown
        return shown.out + shown.err


@pytest.fixture
def office(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Office:
    Small(ROWS, [query("count", by=[])]).write(tmp_path)
    create_key(tmp_path / "key")
    monkeypatch.setenv("DP_RELEASE_KEY", str(tmp_path / "key"))
    monkeypatch.chdir(tmp_path)
    office = Office(tmp_path, capsys)
    scope = ("--origin", "example.org/dp", "--scope", "tests:4:0.1")
    office.run("ledger", "init", "--out", "one", *scope, "--store", "store")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    return office


def second_run(office: Office) -> None:
    """The other machine has reserved a release, and is at work on it."""
    signer = read_key(office.folder / "key")
    charge = reserve("tests", "small", Spent(Fraction(1)), "2025-01-01")
    Ledger(office.folder / "two" / "ledger", signer).append(charge)


def test_a_store_that_is_named_need_not_be_given_again(office: Office) -> None:
    uri = (office.folder / "store").as_uri()
    assert f"store: {uri}" in office.run("ledger", "show", "--out", "one")
    office.run("run", office.spec, "--out", "one")
    # The run delivered to the ledger's own store, and so it is there for everybody.
    assert (office.folder / "store" / "public" / "small" / "SHA256SUMS").is_file()
    assert office.run("deliver", "--out", "two").endswith("0 delivered\n")
    restored = office.run("restore", "--out", "two")
    assert restored == "restored  small\n2 entries of the ledger, 1 releases restored\n"
    assert "well  store       all releases are there" in office.run("doctor", "--out", "two")
    key = read_key(office.folder / "key").public("example.org/dp")
    office.run("restore", "--out", "three", "--from", "store", "--trust", str(key))
    ledgers = [read_ledger(office.folder / name / "ledger").files for name in ("one", "three")]
    assert ledgers[0] == ledgers[1]
    elsewhere = office.run("deliver", "--out", "one", "--to", "elsewhere")
    assert elsewhere == "delivered  small\n1 delivered\n"


def test_a_restored_ledger_is_as_long_as_its_store(office: Office) -> None:
    """The copy for readers ends with the last delivery; a lost machine has to know of all."""
    second_run(office)
    shutil.rmtree(office.folder / "one")
    key = read_key(office.folder / "key").public("example.org/dp")
    office.run("restore", "--out", "one", "--from", "store", "--trust", str(key))
    assert "small" in read_ledger(office.folder / "one" / "ledger").state.running


def test_without_a_store_the_commands_say_which_option_is_missing(office: Office) -> None:
    scope = ("--origin", "example.org/dp", "--scope", "tests:4:0.1")
    office.run("ledger", "init", "--out", "alone", *scope)
    assert "error: --to: the ledger names no store" in office.run(
        "deliver", "--out", "alone", status=2
    )
    assert "error: --from: no ledger in OUT" in office.run("restore", "--out", "no", status=2)
    named = office.run("ledger", "store", "another", "--out", "alone")
    assert named.startswith("store    file://")
    refused = office.run("ledger", "store", "nowhere://x", "--out", "alone", status=2)
    assert "error: --store: nowhere://x cannot be opened as a store" in refused


def test_a_run_of_another_machine_is_left_alone_until_it_is_given_up(office: Office) -> None:
    second_run(office)
    refused = office.run("run", office.spec, "--out", "one", status=LedgerError.exit_status)
    assert "error: a run of 'small' is at work on another machine; if that machine is gone: " in (
        refused
    )
    assert office.run("recover", "--out", "one") == "nothing was left behind\n"
    assert left_behind(office.folder / "one") == ()
    told = [finding for finding in examine(office.place()) if finding.what == "runs"]
    assert [finding.level for finding in told] == [Level.LOOK, Level.WELL]
    with pytest.raises(SpecError, match="no run of 'other' was cut off"):
        abandon(office.place(), "other")
    office.run("recover", "--out", "one", "--abandon", "small")
    office.run("run", office.spec, "--out", "one")
    # Its noise may have been seen, so both charges stand.
    assert read_ledger(office.folder / "one" / "ledger").state.spent("tests").epsilon == 2


def test_a_store_that_is_gone_stops_a_run_before_its_charge(office: Office) -> None:
    store = office.folder / "store" / "ledger"
    before = replay(office.folder / "one" / "ledger").files
    store.rename(office.folder / "aside")
    with pytest.raises(LedgerError, match="lacks entry 1 of this ledger"):
        run_release(office.spec, office.folder / "one", options=Options(key=office.place().key))
    store.write_bytes(b"not a folder")
    told = [finding for finding in examine(office.place()) if finding.level is Level.FAULT]
    assert len(told) == 1
    assert "lacks entry 1 of this ledger" in told[0].message
    with pytest.raises(ReleaseError):
        run_release(office.spec, office.folder / "one", options=Options(key=office.place().key))
    assert replay(office.folder / "one" / "ledger").files == before
    assert not (office.folder / "one" / "public").exists()
    assert not list((office.folder / "one").glob(".work-*"))


def test_doctor_tells_how_much_further_the_store_is(office: Office) -> None:
    second_run(office)
    told = office.run("doctor", "--out", "one")
    assert "has every entry of the ledger, and 1 more that the next run takes over" in told
    assert replay(office.folder / "one" / "ledger").state.size == 2


def test_two_machines_share_the_nights_of_a_schedule(office: Office) -> None:
    """Each releases what the other has not; what the other released is here too."""
    plain = yaml.safe_load(office.spec.read_text("utf-8"))
    plain["release"] |= {"id": "night-{period}", "period": "{period}"}
    plain["queries"][0]["where"] = "DATE '{period}' > DATE '2000-01-01'"
    office.spec.write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    schedule = Schedule(office.spec, parse_period(START.isoformat()))
    runs = []
    for machine in ("one", "two"):
        place = office.place(machine)
        store = open_store(replay(place.out / "ledger").state.store or "", "test")
        runs.append(Run(Place(place.out, place.key, store)))
    day = datetime.timedelta(days=1)
    for night, run in enumerate([runs[0], runs[1], runs[1], runs[0]], start=1):
        result = release_due(schedule, run, START + night * day)
        assert (result.ended, len(result.released)) == (Ended.CAUGHT_UP, 1)
    names = sorted(path.name for path in (office.folder / "one" / "public").iterdir())
    assert names == [f"night-2025-01-0{number}" for number in range(1, 5)]
    became = {due.became for due in periods_of(schedule, office.folder / "one", START + 4 * day)}
    assert became == {Became.PUBLIC}
    # A night that the other one is at work on is left to it.
    signer = read_key(office.folder / "key")
    charge = reserve("tests", "night-2025-01-05", Spent(), "2025-01-06")
    Ledger(office.folder / "two" / "ledger", signer).append(charge)
    result = release_due(schedule, runs[0], START + 5 * day)
    assert (result.ended, result.released) == (Ended.CAUGHT_UP, ())
    last = periods_of(schedule, office.folder / "one", START + 5 * day)[-1]
    assert last.became is Became.ELSEWHERE


def test_a_witness_of_another_office_signs_the_ledger(office: Office) -> None:
    create_key(office.folder / "witness.key")
    arguments = ("--key", "witness.key", "--name", "witness.example/w")
    printed = office.run("ledger", "cosign", "one/ledger", *arguments)
    signed, witness = printed.splitlines()
    assert signed == "signed   2 entries"
    key = WitnessKey.of(witness.removeprefix("witness  "))
    note = (office.folder / "one" / "ledger" / CHECKPOINT).read_text("utf-8")
    assert [line.name for line in cosignatures(note, (key,))] == ["witness.example/w"]
    office.run("ledger", "check", "--out", "one")
    # Delivered with the ledger, and the ledger goes on.
    office.run("deliver", "--out", "one")
    copied = (office.folder / "store" / "ledger" / CHECKPOINT).read_text("utf-8")
    assert copied == note
    office.run("run", office.spec, "--out", "one")
    assert "signed   4 entries" in office.run("ledger", "cosign", "one/ledger", *arguments)
    # The copy of the other machine is behind what this witness has signed.
    told = office.run("ledger", "cosign", "two/ledger", *arguments, status=LedgerError.exit_status)
    assert "does not extend what this witness signed last" in told


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the tests'."""
    shared = Path("/dev/shm")  # noqa: S108 - a file system of its own on Linux
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    folder = Path(tempfile.mkdtemp(dir=shared))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("bundle", ["public", "auditor"])
def test_bundles_on_another_file_system_are_refused_before_the_charge(
    bundle: str, office: Office, elsewhere: Path
) -> None:
    (office.folder / "one" / bundle).symlink_to(elsewhere)
    before = replay(office.folder / "one" / "ledger").files
    with pytest.raises(StorageError, match=f"{bundle}: lies on another file system than"):
        run_release(office.spec, office.folder / "one", options=Options(key=office.place().key))
    assert replay(office.folder / "one" / "ledger").files == before
    assert list(elsewhere.iterdir()) == []
    assert not list((office.folder / "one").glob(".work-*"))


def test_key_files_are_read_to_a_bound(tmp_path: Path) -> None:
    long, endless = tmp_path / "long", tmp_path / "endless"
    with long.open("wb") as file:
        file.truncate(2**30)
    long.chmod(0o600)
    endless.symlink_to("/dev/zero")
    for path in (long, endless):
        with pytest.raises(SpecError, match=r"--key: .*(too long for a key|others may read)"):
            read_key(path)
        with pytest.raises(SpecError, match=r"--trust: write name\+hash\+key"):
            read_public_key(str(path))
