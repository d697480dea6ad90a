"""A year of nightly releases in minutes: real runs in forked processes, on a clock of our own.

``python -m tests.year`` runs it with progress, ``python -m tests.year pld`` under a plan of 365
nights that composes to a certified ε, by two machines that take turns over one store.
``test_year.py`` runs a season of both. Each night a process looks for due periods, releases them,
and delivers them to a store. Some nights it is killed at a random moment, and once the machine is
put back to an older state of its disk. At the end the folders, the ledger, the store and the log
are read anew, and every release is verified.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import yaml

from dp_release_verify.verdict import NOT_PROVED, VERIFIED
from release import job
from release.budget import store
from release.budget.ledger import (
    Abort,
    Ledger,
    PlannedSlot,
    Reserve,
    ScopeCap,
    create_ledger,
    read_ledger,
)
from release.bundle import publish
from release.errors import ReleaseError
from release.exact.numbers import format_exact
from release.job import Options
from release.noise.processes import processes
from release.operate import operations
from release.operate import schedule as schedules
from release.operate.delivery import fetch, restore
from release.operate.journal import Journal
from release.operate.log.file import check_log
from release.operate.notices.channels import read_channels
from release.operate.notices.notice import End, Notice
from release.operate.notices.outbox import Outbox
from release.operate.operations import (
    Place,
    Run,
    left_behind,
    release_due,
    revise_release,
    verify_each,
)
from release.operate.schedule import Schedule, skip_period
from release.records.keys.files import create_key
from release.records.keys.outside import read_key
from release.records.stores import Store, open_store
from release.spec.periods import parse_period
from release.verification.verifier import own_trust
from tests.conftest import flush_and_warm, log_lines
from tests.small import Row, Small, query

DAY = datetime.timedelta(days=1)
START = datetime.date(2025, 1, 1)
CERTIFIED = Fraction("4.6135")
"""What 365 nights of ε 0.05 amount to at δ = 10⁻⁶, rounded up; they add up to 18.25."""


@dataclass
class Year:
    """How a year is simulated, and what was seen meanwhile."""

    folder: Path
    nights: int = 365
    kills: int = 20
    affordable: int = 350
    seed: int = 1
    rule: Literal["basic", "pld"] = "basic"
    late: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()
    revised: frozenset[int] = frozenset()
    machines: int = 1
    turn: int = 0
    killed: int = 0
    refused: list[str] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)
    disk: list[int] = field(default_factory=list)

    def date(self, number: int) -> datetime.date:
        """The day of a night."""
        return START + number * DAY

    def name(self, number: int) -> str:
        """The release of a night."""
        return f"night-{self.date(number)}"

    @property
    def charge(self) -> Fraction:
        """The ε of a night."""
        return Fraction(1, 2) if self.rule == "basic" else Fraction(1, 20)

    @property
    def cap(self) -> ScopeCap:
        """The cap of the scope: so many nights, whatever its rule."""
        if self.rule == "basic":
            return ScopeCap(scope="tests", epsilon=str(self.affordable * self.charge), delta="0")
        slot = PlannedSlot(name="night", times=self.affordable, epsilon="0.05", delta="0")
        return ScopeCap(
            scope="tests",
            epsilon=format_exact(CERTIFIED),
            delta="0.000001",
            rule="pld",
            planned=[slot],
        )

    @property
    def place(self) -> Place:
        """Where the machine whose turn it is puts releases."""
        store: Store = open_store(str(self.folder / "store"), "--to")
        return Place(self.out(self.turn), self.folder / "key", store)

    def out(self, machine: int) -> Path:
        """The output folder of a machine."""
        return self.folder / ("out" if machine == 0 else f"out-{machine}")

    @property
    def schedule(self) -> Schedule:
        """One period a night."""
        first = parse_period(START.isoformat())
        return Schedule(self.folder / "spec.yaml", first, attempts=5, late_days=1)


def set_up(year: Year) -> None:
    """A table, a spec template, a key and a ledger."""
    rows: list[Row] = [
        {"unit": f"u{i}", "place": "ab"[i % 2], "day": 1, "kind": i % 4, "wh": i} for i in range(40)
    ]
    asked = query("count", by=[], max_rows_per_unit=1)
    asked["guarantee"] = {"definition": "pure", "epsilon": str(year.charge)}
    if year.rule == "pld":
        # A mechanism that depends on the table has no profile to compose.
        asked["sensitivity"] = "global"
    small = Small(rows, [asked])
    small.write(year.folder)
    plain = small.plain("rows-{period}.parquet")
    plain["release"] |= {"id": "night-{period}", "period": "{period}"}
    plain["queries"][0]["where"] = "DATE '{period}' > DATE '2000-01-01'"
    channels = year.folder / "channels"
    channels.touch(0o600)
    channels.write_text(f"file://{year.folder / 'notices.jsonl'}", "utf-8")
    (year.folder / "spec.yaml").write_text(yaml.safe_dump(plain, sort_keys=False), "utf-8")
    signer = create_key(year.folder / "key")
    own = create_ledger(
        year.out(0) / "ledger", signer, "example.org/dp", (year.cap,), START.isoformat()
    )
    if year.machines > 1:
        own.name_store((year.folder / "store").as_uri(), START.isoformat())
    for machine in range(1, year.machines):
        shutil.copytree(year.out(0) / "ledger", year.out(machine) / "ledger")


def night(year: Year, today: datetime.date, kill_after: float | None) -> dict[str, Any] | None:
    """One night in a process of its own; None if it was killed."""
    reading, writing = os.pipe()
    flush_and_warm()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            told = json.dumps(_run(year, today)).encode()
            os.write(writing, told)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if told and os.waitstatus_to_exitcode(status) == 0 else None


def _run(year: Year, today: datetime.date) -> dict[str, Any]:
    signal.alarm(300)
    # The clock of this process: everything that asks for the day asks by these names.
    for module in (publish, store, job, schedules, operations):
        module.today = lambda: today  # type: ignore[attr-defined]  # a clock of our own
    channels = read_channels(year.folder / "channels")
    told = Outbox(year.folder / "told", channels)
    run = Run(year.place, Options(), journal=Journal(str(year.folder / "log.jsonl")), outbox=told)
    try:
        done = release_due(year.schedule, run, today)
        _intervene(year, run, today)
    except ReleaseError as error:
        return {"told": [str(error)]}
    kinds = [type(error).__name__ for _, error in done.refused]
    return {
        "ended": done.ended.value,
        "released": len(done.released),
        "refused": kinds,
        "told": [str(error) for _, error in done.refused],
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def _intervene(year: Year, run: Run, today: datetime.date) -> None:
    """What operators do: skip nights that never come, and revise a release that was wrong.

    A night that is killed leaves it to the next.
    """
    signer = read_key(year.folder / "key")
    ledger = Ledger(year.place.out / "ledger", signer)
    for number in sorted(year.never):
        state = ledger.recover().state
        if today >= year.date(number) + 4 * DAY and not state.is_skipped(year.name(number)):
            period = parse_period(year.date(number).isoformat())
            skip_period(year.schedule, period, "the meters were down", ledger)
            run.tell(Notice(End.SKIPPED, year.name(number)))
    for number in sorted(year.revised):
        state = ledger.recover().state
        name, is_time = year.name(number), today >= year.date(number) + 3 * DAY
        if is_time and state.is_public(name) and not state.is_revised(name):
            options = replace(run.options, period=parse_period(year.date(number).isoformat()))
            revise_release(
                year.schedule.spec, name, "a meter was wrong", replace(run, options=options)
            )


def bring(year: Year, today: datetime.date) -> None:
    """The tables that have come by a night: of each night before, some later, some never."""
    for number in range((today - START).days):
        path = year.folder / f"rows-{year.date(number)}.parquet"
        is_here = number not in year.never
        is_here &= number not in year.late or today >= year.date(number) + 8 * DAY
        if is_here and not path.exists():
            path.hardlink_to(year.folder / "rows.parquet")


def simulate(year: Year, show: bool = False) -> None:
    """All nights; kills and the machine that is put back fall where the seed has them.

    Raises:
        AssertionError: the machine that was put back went on as if nothing were.
    """
    chance = random.Random(year.seed)  # noqa: S311 - when to kill, not noise
    set_up(year)
    # Kills fall into the nights that still can pay, so that each has something to interrupt.
    kills = set(chance.sample(range(2, 9 * year.affordable // 10), year.kills))
    snapshot_at, back_at = year.nights // 2 - 5, year.nights // 2 + 5
    began = time.monotonic()
    bring(year, START + DAY)
    night(year, START + DAY, None)
    whole = time.monotonic() - began
    for number in range(1, year.nights):
        today = START + (number + 1) * DAY
        bring(year, today)
        year.turn = number % year.machines
        if number == snapshot_at:
            shutil.copytree(year.out(0), year.folder / "snapshot")
        if number == back_at:
            put_back(year, today)
        # A killed night's period is caught up with in the next, which takes longer.
        moment = chance.uniform(0, whole) if number in kills else None
        told = night(year, today, moment)
        if told is None:
            year.killed += 1
        else:
            assert "ended" in told, f"night {number}: {told}"
            year.ended[told["ended"]] += 1
            year.refused += told["refused"]
            year.memory.append(told["memory"])
        year.disk.append(_size(year.out(0)))
        if show and number % 10 == 0:
            print(f"  night {number}: {dict(year.ended)}, {year.killed} killed", flush=True)  # noqa: T201
    for machine in reversed(range(year.machines)):
        year.turn = machine
        # Each machine sees the other's last night; a killed one ends what it has begun.
        night(year, START + (year.nights + 1) * DAY, None)


def put_back(year: Year, today: datetime.date) -> None:
    """The machine comes back with its disk of some nights ago; the store knows better."""
    year.turn = 0
    shutil.rmtree(year.place.out)
    (year.folder / "snapshot").rename(year.place.out)
    before = len(list((year.place.out / "ledger").iterdir()))
    told = night(year, today, None)
    if year.machines > 1:
        # Every entry was put in the store of both first: it takes over what it has forgotten.
        if told is None or "ended" not in told:
            raise AssertionError(f"the machine did not go on: {told}")
        return
    if told is None or "put back to an older state" not in "".join(told["told"]):
        raise AssertionError(f"the machine went on: {told}")
    if len(list((year.place.out / "ledger").iterdir())) != before:
        raise AssertionError("something was charged to an old ledger")
    if year.place.store is not None:
        restore(year.place.store, year.place.out)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _growth(year: Year, start: int, stop: int) -> float:
    """KiB on disk a night, from one night to another."""
    return (year.disk[stop] - year.disk[start]) / (stop - start) / 1024


def check_interventions(year: Year, public: list[str]) -> None:
    """Nights that never came are skipped, late ones public, revised ones public twice; all told.

    Raises:
        AssertionError: something is not so.
    """
    state = read_ledger(year.place.out / "ledger").state
    assert state.skipped == {year.name(number) for number in year.never}
    assert state.revised == {year.name(n): f"{year.name(n)}-r2" for n in year.revised}
    assert {year.name(number) for number in year.late} <= set(public)
    lines = log_lines(year.folder / "notices.jsonl")
    told = Counter((line["end"], line["subject"]) for line in lines)
    for name in public:
        if not name.endswith("-r2"):
            # At least one: a kill between sending and remembering sends it again.
            assert 1 <= told["released", name] + told[End.FINISHED.value, name] <= 2
    # Nights that the budget does not pay for are late in the end, each told once too.
    assert {count for (end, _), count in told.items() if end in ("late", "skipped")} == {1}
    assert {("late", year.name(number)) for number in year.late | year.never} <= told.keys()
    assert {name for end, name in told if end == "skipped"} == state.skipped
    assert {name for end, name in told if end == "revised"} == {*state.revised}
    assert told["budget spent", "spec.yaml"] == 1


def check(year: Year) -> str:
    """Hold the ledger, the folders, the store and the log against each other; what was found.

    Raises:
        AssertionError: something is not as it should be after such a year.
    """
    out = year.place.out
    ledger = read_ledger(out / "ledger")
    lost = sum(isinstance(e, Abort) and e.drawn for e in ledger.entries)
    refunded = sum(isinstance(e, Abort) and not e.drawn for e in ledger.entries)
    reserved = sum(isinstance(e, Reserve) for e in ledger.entries)
    public = sorted(path.name for path in (out / "public").iterdir())
    spent = ledger.state.spent("tests").epsilon
    # Every charge is a release or a loss, and together they are the cap, to the last.
    assert len(public) + lost == year.affordable
    assert spent == year.affordable * year.charge
    if year.rule == "pld":
        certified, delta = ledger.state.accounts["tests"].certified()
        assert certified is not None
        assert certified <= CERTIFIED
        assert delta == Fraction("0.000001")
    assert reserved == year.affordable + refunded
    assert year.ended["budget spent"] >= 3
    assert set(year.refused) <= {"BudgetError", *(["SpecError"] if year.late | year.never else [])}
    assert set(ledger.state.committed) == set(public)
    check_interventions(year, public)
    # Nothing is left of any run, and all of it verifies, here and in the store.
    assert left_behind(out) == ()
    for machine in range(1, year.machines):
        other = year.out(machine)
        assert left_behind(other) == ()
        assert sorted(path.name for path in (other / "public").iterdir()) == public
        assert read_ledger(other / "ledger").files == ledger.files
    has_halves = year.rule == "basic"
    folders = ["auditor"] * has_halves + ["ledger", "public"]
    assert sorted(path.name for path in out.iterdir()) == folders
    with processes(os.cpu_count() or 1) as elsewhere:
        verdicts = verify_each(out, elsewhere, own_trust(out / "ledger"))
    # The store gave back the public bundles of the nights between; the auditor's were never there.
    halves = set(public)
    if has_halves:
        halves = {path.name for path in (out / "auditor").iterdir()}
        assert 0 < len(set(public) - halves) < 20
    statuses = {each.release_id: each.status for each in verdicts}
    assert statuses == {n: VERIFIED if n in halves else NOT_PROVED for n in public}
    store = open_store(str(year.folder / "store"), "--to")
    assert sorted({name.split("/")[0] for name in store.names("public")}) == public
    fetch(store, public[-1], year.folder / "back" / public[-1])
    # The log holds codes and identifiers, whatever happened, and no line of it is lost.
    lines = log_lines(year.folder / "log.jsonl")
    assert len(lines) > 10 * len(public)
    assert len(check_log([year.folder / "log.jsonl"], ()).lines) == len(lines)
    # Neither memory nor disk grows with the years before, but for what is published.
    assert max(year.memory[-10:]) < 1.2 * max(year.memory[:10])
    quarter = len(public) // 4
    early, late = _growth(year, quarter, 2 * quarter), _growth(year, 3 * quarter, 4 * quarter)
    assert late < 1.2 * early
    return (
        f"{year.nights} nights, {year.killed} killed: {len(public)} public and verified, "
        f"{len(year.revised)} revised, {len(year.never)} skipped, {len(year.late)} late, "
        f"{reserved} reserved, "
        f"{lost} lost after drawing, {refunded} refunded; ε {spent} of "
        f"{year.affordable * year.charge}; memory {max(year.memory[:20]) // 1024} MiB at first, "
        f"{max(year.memory[-20:]) // 1024} MiB at last; "
        f"disk {early:.1f} KiB a release in the second quarter, {late:.1f} in the last"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        whole_year = Year(
            Path(place),
            late=frozenset(range(20, 300, 40)),
            never=frozenset(range(30, 300, 60)),
            revised=frozenset(range(10, 300, 30)),
        )
        if "pld" in sys.argv:
            # Every slot is taken, by a night or by a kill after its draw; then nights are refused.
            whole_year = replace(whole_year, nights=390, affordable=365, rule="pld", machines=2)
        start = time.monotonic()
        simulate(whole_year, show=True)
        print(check(whole_year), f"{time.monotonic() - start:.0f} s")  # noqa: T201 - for people
