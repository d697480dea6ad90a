"""Faults by count: every call that changes output, ledger or store fails in turn.

Afterwards nothing is lost, nothing is paid twice, noise was drawn once, and the next run succeeds.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from release.at_work import AtWork
from release.budget.ledger import (
    Abort,
    Commit,
    Reserve,
    ScopeCap,
    create_ledger,
    read_ledger,
)
from release.errors import ReleaseError
from release.exact.domain import Codes
from release.exact.sampling import RandomBytes
from release.job import Options, auditor_bundle
from release.operate.operations import Place, deliver_all, recover_all
from release.records.keys.files import create_key
from release.records.stores import open_store
from release.street import run_release
from release.verification.verifier import own_trust, verify
from tests.attempts import Tried
from tests.every import every
from tests.faults import Fault, Faults, failing
from tests.small import Row, Small, query

ROWS: list[Row] = [
    {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(9)
]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec, a key, a ledger, and a store that has the ledger already."""
    folder = tmp_path_factory.mktemp("start")
    Small(ROWS, [query("count", by=[])]).write(folder)
    signer = create_key(folder / "key")
    cap = ScopeCap(scope="tests", epsilon="1000", delta="0.9")
    create_ledger(folder / "out" / "ledger", signer, "example.org/dp", (cap,), "2024-01-01")
    (folder / "store").mkdir()
    deliver_all(place_of(folder))
    return folder


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The query of every draw that is made."""
    made: list[str] = []
    drawn = AtWork.draw

    def counted(run: AtWork, source: RandomBytes) -> Codes:
        made.append(run.query.name)
        return drawn(run, source)

    monkeypatch.setattr(AtWork, "draw", counted)
    return made


EVERY = every(8)
"""Every so many calls fail, one after another."""


def place_of(folder: Path) -> Place:
    return Place(folder / "out", folder / "key", open_store(str(folder / "store"), "--store"))


def night(folder: Path) -> None:
    """What a schedule does: recover, release what is not public, and deliver."""
    recover_all(place_of(folder))
    if not (folder / "out" / "public" / "small").exists():
        options = Options(key=folder / "key")
        run_release(folder / "spec.yaml", folder / "out", options=options)
    deliver_all(place_of(folder))


def nights(start: Path, folder: Path, fault: Fault) -> Iterator[str]:
    """A night with a fault and a later one without, for every call that can fail so; its name."""
    calls = calls_of(start, folder)
    for number, name in enumerate(calls):
        if number % EVERY or not Faults.can_fail(fault, name):
            continue
        fresh(start, folder)
        faults = Faults(folder, number, fault)
        with failing(faults):
            try:
                night(folder)
            # What a run reports is a line for a person, and no error of the file system.
            except ReleaseError as error:
                assert "\n" not in str(error)
        assert faults.calls[: number + 1] == calls[: number + 1]
        age(folder / "store")
        night(folder)
        yield f"{name}, the call {number}"


def fresh(start: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(start, folder)


def calls_of(start: Path, folder: Path) -> list[str]:
    """The calls of a night without a fault; the first night may load modules besides."""
    fresh(start, folder)
    night(folder)
    fresh(start, folder)
    counted = Faults(folder, -1, "EIO")
    with failing(counted):
        night(folder)
    return counted.calls


def age(folder: Path) -> None:
    """Make everything below a folder two days old."""
    before = time.time() - 2 * 86400
    for path in folder.rglob("*"):
        os.utime(path, (before, before))


def check_all_is_well(folder: Path, lost: int, call: str) -> None:
    """One release, paid once and for each lost draw, whole here and in the store; no stray file."""
    out, store = folder / "out", folder / "store"
    entries = read_ledger(out / "ledger").entries
    aborts = [entry for entry in entries if isinstance(entry, Abort)]
    assert sum(isinstance(entry, Commit) for entry in entries) == 1
    assert sum(isinstance(entry, Reserve) for entry in entries) == len(aborts) + 1
    assert sum(entry.drawn for entry in aborts) <= lost, call
    public = out / "public" / "small"
    assert verify(public, auditor_bundle(public), own_trust(out / "ledger")).status == 0
    for copied in ("ledger", "public"):
        assert contents(store / copied) == contents(out / copied), call
    assert names(out) == ["auditor", "ledger", "public"], call
    assert names(store) == ["ledger", "public"], call
    assert names(folder) == ["key", "out", "rows.parquet", "spec.yaml", "store"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    files = filter(Path.is_file, folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC", "short"])
def test_one_fault_loses_nothing(
    fault: Fault, start: Path, tmp_path: Path, draws: list[str], record_property: Tried
) -> None:
    calls_of(start, tmp_path / "place")
    struck = 0
    for call in nights(start, tmp_path / "place", fault):
        check_all_is_well(tmp_path / "place", 0, call)
        assert draws[-1:] == ["the_count"], call
        struck += 1
    # Two nights without a fault tell which calls there are.
    assert len(draws) == struck + 4
    record_property("tried", struck)
    assert struck >= {"EIO": 190, "ENOSPC": 80, "short": 30}[fault] // (EVERY + 1)


def test_a_disk_that_is_full_from_some_call_on(
    start: Path, tmp_path: Path, draws: list[str]
) -> None:
    """Only between the draw and its file can it cost a charge."""
    before, lost = 2, 0
    for call in nights(start, tmp_path / "place", "full"):
        check_all_is_well(tmp_path / "place", 1, call)
        assert len(draws) - before in (1, 2), call
        lost += len(draws) - before - 1
        before = len(draws)
    assert lost <= 3
