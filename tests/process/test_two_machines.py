"""Two machines with copies of one ledger race for everything, and the ledger stays one.

Each machine is a process with a folder of its own: copies of the ledger and of the key, one store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from release.budget.ledger import (
    Abort,
    Commit,
    Ledger,
    Reserve,
    ScopeCap,
    Spent,
    create_ledger,
    newest,
    read_ledger,
    reserve,
)
from release.errors import LedgerError, ReleaseError
from release.job import Job, Options, Stage
from release.operate.operations import Place, Run, deliver_all, recover_all, release_period
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.stores import open_store
from release.street import run_release
from release.verification.evidence import Trust
from release.verification.verifier import verify
from tests.budget.test_claims import killed_before
from tests.conftest import PROJECT, flush_and_warm
from tests.every import every
from tests.small import Row, Small, query
from tests.stores import s3_server

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]
QUERIES = [query("count", by=[])]
MACHINES = ("one", "two")


def set_up(folder: Path, uri: str, cap: int) -> None:
    """A spec, a key, and two output folders whose ledgers name the store."""
    Small(ROWS, QUERIES).write(folder)
    signer = create_key(folder / "key")
    scope = ScopeCap(scope="tests", epsilon=str(cap), delta="0.9")
    ledger = create_ledger(
        folder / "one" / "ledger", signer, "example.org/dp", (scope,), "2024-01-01"
    )
    ledger.name_store(uri, "2024-01-01")
    shutil.copytree(folder / "one", folder / "two")


def race(folder: Path, machine: str, races: int) -> None:
    """Charge in every race: in the even ones both machines charge the same release."""
    ledger = Ledger(folder / machine / "ledger", read_key(folder / "key"))
    for number in range(races):
        name = f"r{number}" if number % 2 == 0 else f"r{number}-{machine}"
        meet(folder, machine, number)
        try:
            entry, _ = ledger.append(reserve("tests", name, Spent(Fraction(1)), "2024-01-02"))
        except ReleaseError as error:
            told = type(error).__name__
        else:
            assert isinstance(entry, Reserve)
            told = entry.run or ""
        with (folder / f"{machine}.jsonl").open("a") as file:
            file.write(json.dumps([name, told]) + "\n")


def meet(folder: Path, machine: str, number: int) -> None:
    """Wait until both machines are at this race."""
    other = folder / f"at-{number}-{'two' if machine == 'one' else 'one'}"
    (folder / f"at-{number}-{machine}").touch()
    while not other.exists():
        time.sleep(0.001)


def check_races(folder: Path, races: int, cap: int) -> None:
    """Every charge that a machine was granted stands in the one ledger, once, and no other."""
    ledgers = [Ledger(folder / name / "ledger", read_key(folder / "key")) for name in MACHINES]
    for ledger in ledgers:
        ledger.recover()
    read = [read_ledger(ledger.folder) for ledger in ledgers]
    assert read[0].files == read[1].files
    assert read[0].state.store is not None
    assert newest(read[0]).ledger.files == read[0].files
    granted: dict[str, list[str]] = {}
    refused = 0
    for name in MACHINES:
        lines = (folder / f"{name}.jsonl").read_text().splitlines()
        assert len(lines) == races
        for release, told in map(json.loads, lines):
            if told in ("LedgerError", "BudgetError"):
                refused += 1
            else:
                granted.setdefault(release, []).append(told)
    reserves = [entry for entry in read[0].entries if isinstance(entry, Reserve)]
    assert {entry.release_id: [entry.run] for entry in reserves} == granted
    assert len(reserves) + refused == 2 * races
    # Each even race grants one charge, each odd race two, until the cap is reached.
    assert read[0].state.spent("tests").epsilon == len(reserves) == min(cap, races // 2 * 3)


def forked(*actions: Callable[[], object]) -> list[int]:
    """Run each action in a process of its own, all at once; their exit statuses."""
    flush_and_warm()
    children = []
    for action in actions:
        child = os.fork()
        if child == 0:
            signal.alarm(300)
            status = 1
            try:
                action()
                status = 0
            except ReleaseError as error:
                os.write(2, f"{error}\n".encode())
                status = error.exit_status
            finally:
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_two_hundred_races_over_a_folder(tmp_path: Path) -> None:
    set_up(tmp_path, (tmp_path / "store").as_uri(), 270)
    runs = [lambda name=name: race(tmp_path, name, 200) for name in MACHINES]
    assert forked(*runs) == [0, 0]
    check_races(tmp_path, 200, 270)


def test_races_over_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By two interpreters: the threads of the client do not survive a fork."""
    with s3_server(monkeypatch) as uri:
        set_up(tmp_path, f"{uri}/races", 60)
        command = "import sys; from tests.process.test_two_machines import *; "
        command += "race(Path(sys.argv[1]), sys.argv[2], 50)"
        runs = [
            subprocess.Popen([sys.executable, "-c", command, str(tmp_path), name], cwd=PROJECT)
            for name in MACHINES
        ]
        assert [run.wait(timeout=300) for run in runs] == [0, 0]
        check_races(tmp_path, 50, 60)


@pytest.mark.parametrize("turn", range(3))
def test_a_race_of_whole_releases_publishes_one(turn: int, tmp_path: Path) -> None:
    set_up(tmp_path, (tmp_path / "store").as_uri(), 100)

    def run(machine: str) -> Callable[[], object]:
        def action() -> None:
            meet(tmp_path, machine, turn)
            options = Options(key=tmp_path / "key")
            run_release(tmp_path / "spec.yaml", tmp_path / machine, options=options)

        return action

    statuses = forked(*map(run, MACHINES))
    # Who comes second is refused by the ledger and has published nothing.
    assert sorted(statuses) == [0, LedgerError.exit_status]
    winner = MACHINES[statuses.index(0)]
    public = [name for name in MACHINES if (tmp_path / name / "public" / "small").exists()]
    assert public == [winner]
    for name in MACHINES:
        Ledger(tmp_path / name / "ledger", read_key(tmp_path / "key")).recover()
    read = [read_ledger(tmp_path / name / "ledger") for name in MACHINES]
    assert read[0].files == read[1].files
    assert [entry.kind for entry in read[0].entries[2:]] == ["reserve", "commit"]
    assert read[0].state.spent("tests").epsilon == 1
    trust = Trust(tmp_path / "two" / "ledger")
    assert verify(tmp_path / winner / "public" / "small", None, trust).release_id == "small"


def test_a_kill_in_mid_release_leaves_the_other_machine_at_peace(tmp_path: Path) -> None:
    """What one machine has reserved, the other neither aborts nor draws; the first one recovers."""
    set_up(tmp_path, (tmp_path / "store").as_uri(), 100)
    options = Options(key=tmp_path / "key")
    one, two = (Place(tmp_path / name, tmp_path / "key") for name in MACHINES)

    def dies() -> None:
        def perform(stage: Stage, job: Job) -> None:
            if stage.name == "draw":
                os.kill(os.getpid(), signal.SIGKILL)
            stage.does(job)

        run_release(tmp_path / "spec.yaml", one.out, perform, options=options)

    assert forked(dies) == [-signal.SIGKILL]
    with pytest.raises(LedgerError, match="at work on another machine; if that machine is gone"):
        run_release(tmp_path / "spec.yaml", two.out, options=options)
    assert recover_all(two) == ()
    assert recover_all(one) == (("small", "given up"),)
    # Nothing was drawn, so the charge is back, and whoever comes next may have it.
    run_release(tmp_path / "spec.yaml", two.out, options=options)
    read = read_ledger(two.out / "ledger")
    assert [entry.kind for entry in read.entries[2:]] == ["reserve", "abort", "reserve", "commit"]
    assert read.state.spent("tests").epsilon == 1


def test_a_kill_at_any_step_of_a_run_is_charged_once(tmp_path: Path) -> None:
    """Every so many steps: then the other machine tries, and then the first one again."""
    number, winners = 0, set()
    while True:
        folder = tmp_path / str(number)
        folder.mkdir()
        set_up(folder, (folder / "store").as_uri(), 100)

        def run(machine: str, folder: Path = folder) -> None:
            options = Options(key=folder / "key")
            run_release(folder / "spec.yaml", folder / machine, options=options)

        if killed_before(number, partial(run, "one")) == 0:
            break
        statuses = forked(partial(run, "two")) + forked(partial(run, "one"))
        public = [name for name in MACHINES if (folder / name / "public" / "small").exists()]
        assert len(public) == 1, (number, statuses)
        winners.add(public[0])
        for name in MACHINES:
            Ledger(folder / name / "ledger", read_key(folder / "key")).recover()
        read = [read_ledger(folder / name / "ledger") for name in MACHINES]
        assert read[0].files == read[1].files
        assert sum(isinstance(entry, Commit) for entry in read[0].entries) == 1
        drawn = sum(isinstance(entry, Abort) and entry.drawn for entry in read[0].entries)
        assert read[0].state.spent("tests").epsilon == 1 + drawn
        assert read[0].state.running == {}
        trust = Trust(folder / "two" / "ledger")
        assert verify(folder / public[0] / "public" / "small", None, trust).release_id == "small"
        number += every(16)
    assert number > 80
    assert winners == set(MACHINES)


def test_machines_that_deliver_at_once_leave_a_whole_copy(tmp_path: Path) -> None:
    set_up(tmp_path, (tmp_path / "store").as_uri(), 100)
    store = open_store((tmp_path / "store").as_uri(), "test")

    def nights(machine: str) -> Callable[[], object]:
        def action() -> None:
            place = Place(tmp_path / machine, tmp_path / "key", store)
            folder = tmp_path / f"spec-{machine}"
            folder.mkdir()
            for number in range(3):
                Small(ROWS, QUERIES).write(folder)
                spec = folder / "spec.yaml"
                text = spec.read_text().replace("id: small", f"id: {machine}-{number}")
                spec.write_text(text)
                meet(tmp_path, machine, number)
                release_period(spec, None, Run(place))

        return action

    assert forked(*map(nights, MACHINES)) == [0, 0]
    place = Place(tmp_path / "one", tmp_path / "key", store)
    deliver_all(place)
    names = {name.split("/")[0] for name in store.names("public")}
    assert names == {f"{machine}-{number}" for machine in MACHINES for number in range(3)}
    copied = read_ledger(tmp_path / "store" / "ledger")
    assert sum(isinstance(entry, Commit) for entry in copied.entries) == 6
    assert copied.state.running == {}
