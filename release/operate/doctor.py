"""Is all well with an output folder: what ``dp-release doctor`` looks at, and what it finds.

Nothing is written or mended. A finding names a fault and its remedy in one line, of identifiers
only. The ledger and the folders are the truth; what a scheduler believes is compared with them
(:mod:`release.operate.prefect_drift`).
"""

from __future__ import annotations

import datetime
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from release.budget.entries import Spent, amount
from release.budget.ledger import CHECKPOINT, Genesis, Key, Replayed, Reserve, read_ledger, today
from release.bundle.publish import LEDGER, is_at_work
from release.bundle.statements import ATTESTATION, SUMS
from release.errors import ReleaseError
from release.exact.numbers import format_exact
from release.operate.operations import Place, left_behind, public_names, witnessed
from release.operate.schedule import Became, Schedule, periods_of
from release.records.hashes import sha256
from release.records.signing import others, read_key
from release.verification.provenance import Trust
from release.verification.verifier import verify
from release.version import VERSION

KEY_DAYS = 365
LEAST_FREE = 2**30


class Level(StrEnum):
    """How bad it is."""

    WELL = "well"
    LOOK = "look"  # nothing is broken, but somebody should know
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found there, and what to do about it."""

    level: Level
    what: str
    told: str


def well(what: str, told: str) -> Finding:
    """All is well."""
    return Finding(Level.WELL, what, told)


def look(what: str, told: str) -> Finding:
    """Somebody should know."""
    return Finding(Level.LOOK, what, told)


def fault(what: str, told: str) -> Finding:
    """Something is broken."""
    return Finding(Level.FAULT, what, told)


def examine(
    place: Place, schedules: tuple[Schedule, ...] = (), key_days: int = KEY_DAYS
) -> tuple[Finding, ...]:
    """Look at everything; what cannot be looked at is a fault and holds nothing up."""
    # Before the ledger is read: a release that comes meanwhile is in the ledger first.
    names = set(public_names(place.out)) if place.out.is_dir() else set()
    ledger, found = _ledger(place)
    checks: list[Callable[[], Iterator[Finding]]] = [
        versions,
        lambda: clock(ledger),
        lambda: permissions(place),
        lambda: iter(found),
    ]
    if not any(one.level is Level.FAULT for one in found):
        # The rest follows from the ledger.
        checks += [
            lambda: folders(place, ledger, names),
            lambda: leftovers(place),
            lambda: key_age(place, ledger, key_days),
            lambda: budgets(ledger),
            lambda: periods(place, schedules),
            lambda: store(place),
        ]
    findings: list[Finding] = []
    for check in checks:
        findings += asked(check)
    return tuple(findings)


def asked(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; that it could not be made is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except ReleaseError as error:
        found.append(fault("doctor", " ".join(str(error).split())))
    except OSError as error:
        found.append(fault("doctor", f"{error.filename}: {error.strerror}"))
    return found


def versions() -> Iterator[Finding]:
    """Python, and each library that is declared: is it there, and one that was tested."""
    python = ".".join(map(str, sys.version_info[:3]))
    wrong = []
    try:
        declared = [Requirement(text) for text in requires("dp-release") or ()]
    except PackageNotFoundError:
        yield look("versions", "dp-release is not installed as a package; libraries not looked at")
        return
    for one in declared:
        core = one.marker is None or "extra" not in str(one.marker)
        try:
            there = version(one.name)
        except PackageNotFoundError:
            if core:
                yield fault("versions", f"{one.name} is missing; pip install dp-release")
            continue
        if there not in one.specifier:
            wrong.append(f"{one.name} {there} (wanted {one.specifier})")
    for told in wrong:
        yield fault("versions", f"{told}; install a version that was tested: constraints.txt")
    if not wrong:
        yield well("versions", f"Python {python}, dp-release {VERSION}, libraries fit")


def clock(ledger: Replayed | None) -> Iterator[Finding]:
    """Does the clock go with the ledger, whose dates only ever go on."""
    day = today()
    if day.year < 2024:
        yield fault("clock", f"it says {day}; set it right")
    if ledger is not None and ledger.state.last_date > day.isoformat():
        last = ledger.state.last_date
        yield fault("clock", f"it says {day}, the last entry {last}; set it right")
        return
    if _unsynchronised():
        yield look("clock", "the system says that it is not synchronised; periods hang on it")
        return
    yield well("clock", f"{day} (UTC), not before the last entry")


def _unsynchronised() -> bool:
    """Whether the system says so; where it cannot be asked nothing is known."""
    tool = shutil.which("timedatectl")
    if tool is None:
        return False
    try:
        asked = subprocess.run(  # noqa: S603 - a system tool by its full path
            [tool, "show", "--property=NTPSynchronized", "--value"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.stdout.strip() == "no"


def permissions(place: Place) -> Iterator[Finding]:
    """Who may read what, and whether there is room."""
    out, wrong = place.out, 0
    if not out.is_dir():
        yield fault("permissions", f"{out}: no folder there")
        return
    if not os.access(out, os.W_OK | os.X_OK):
        yield fault("permissions", f"{out}: cannot be written by this user")
        wrong += 1
    private = [out / "auditor", *out.glob(".work-*"), *out.glob("auditor/*")]
    for folder in private:
        if folder.is_dir() and _mode(folder) & 0o077:
            yield fault("permissions", f"{folder}: others may look in; chmod 700")
            wrong += 1
    if place.key is not None and place.key.is_file():
        if _mode(place.key) & others(place.key):
            yield fault("permissions", f"{place.key}: others may read the key; chmod 600")
            wrong += 1
        if place.key.resolve().is_relative_to(out.resolve()):
            yield fault("permissions", f"{place.key}: the key lies in what is published; move it")
            wrong += 1
    if (free := shutil.disk_usage(out).free) < LEAST_FREE:
        yield look("permissions", f"{out}: {free // 2**20} MiB free; make room")
        wrong += 1
    if not wrong:
        yield well("permissions", "halves, key and room are as they should be")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _ledger(place: Place) -> tuple[Replayed | None, list[Finding]]:
    folder = place.out / LEDGER
    if not folder.is_dir():
        return None, [look("ledger", "none in the output folder: no budget holds across releases")]
    try:
        found = read_ledger(folder)
    except (ReleaseError, OSError) as error:
        told = " ".join(str(error).split())
        return None, [fault("ledger", f"{told}; restore it: dp-release restore, or a backup")]
    return found, [well("ledger", f"{found.state.size} entries follow and are signed for")]


def folders(place: Place, ledger: Replayed | None, names: set[str]) -> Iterator[Finding]:
    """Is each public folder paid for, and each committed release there, whole and unchanged."""
    withdrawn = set() if ledger is None else ledger.state.withdrawn
    wrong = 0
    for name in sorted(names):
        for told in _broken(place, name, withdrawn):
            yield fault("releases", f"{name}: {told}; restore it: dp-release restore")
            wrong += 1
    if ledger is not None:
        for told in _unpaid(place, ledger, names):
            yield fault("releases", told)
            wrong += 1
    if not wrong:
        yield well("releases", f"{len(names)} public, each whole and as it was signed for")


def _unpaid(place: Place, ledger: Replayed, names: set[str]) -> Iterator[str]:
    """Where ledger and folders do not go together."""
    committed = ledger.state.committed
    for name in sorted(names - committed.keys()):
        yield f"{name} is public, and no entry of the ledger pays for it"
    for name, entry in committed.items():
        path = place.out / "public" / name / ATTESTATION
        if name in ledger.state.withdrawn or is_at_work(place.out, name):
            continue
        if not path.parent.is_dir():
            settled = (place.out / f".work-{name}").exists()
            how = "dp-release recover" if settled else "dp-release restore"
            yield f"{name} is committed and not public; {how}"
        elif not path.is_file() or f"sha256:{sha256(path.read_bytes())}" != entry.attestation:
            yield f"{name}: not the release that the ledger committed"


def _broken(place: Place, name: str, withdrawn: set[str]) -> list[str]:
    """Why a release does not verify: its files are not those of its sums, or the sums are forged.

    Of one that is withdrawn only whether it is whole.
    """
    public, ledger = place.out / "public" / name, place.out / LEDGER
    if name in withdrawn:
        return _changed(public)
    try:
        verify(public, None, Trust(ledger if ledger.is_dir() else None))
    except ReleaseError as error:
        return _changed(public) or [f"it does not verify ({error})"]
    return []


def _changed(public: Path) -> list[str]:
    """What differs from the sums of a release."""
    sums, found = public / SUMS, []
    if not sums.is_file():
        return [f"no {SUMS}"]
    listed = {line[66:]: line[:64] for line in sums.read_text("utf-8", "replace").splitlines()}
    for name, digest in listed.items():
        path = public / name
        if not path.is_file() or sha256(path.read_bytes()) != digest:
            found.append(f"{name} is missing or changed")
    there = {str(p.relative_to(public)) for p in public.rglob("*") if p.is_file()} - {SUMS}
    return found + [f"{name} was added" for name in sorted(there - listed.keys())]


def leftovers(place: Place) -> Iterator[Finding]:
    """What interrupted runs have left."""
    names = left_behind(place.out) if place.out.is_dir() else ()
    idle = [name for name in names if not is_at_work(place.out, name)]
    for name in idle:
        yield fault("runs", f"a run of {name} was cut off; dp-release recover, or run it again")
    busy = len(names) - len(idle)
    if busy:
        yield well("runs", f"{busy} at work right now")
    elif not idle:
        yield well("runs", "none was cut off")


def key_age(place: Place, ledger: Replayed | None, key_days: int) -> Iterator[Finding]:
    """How long each key has been signing; keys do not end by themselves."""
    if ledger is None:
        return
    since: dict[str, str] = {}
    for entry in ledger.entries:
        if isinstance(entry, Genesis):
            since |= dict.fromkeys(entry.keys, entry.date)
        elif isinstance(entry, Key) and entry.action == "add":
            since[entry.key] = entry.date
    for key in ledger.state.keys:
        day = since.get(str(key), ledger.entries[0].date)
        days = (today() - datetime.date.fromisoformat(day)).days
        told = f"a key signs since {day}, {days} days"
        if days > key_days:
            yield look("keys", f"{told}; rotate it: dp-release ledger key add, then retire")
        else:
            yield well("keys", told)
    if place.key is not None:
        if not place.key.is_file():
            yield fault("keys", f"{place.key}: no such file; releases cannot be signed")
        elif read_key(place.key).public(ledger.state.origin) not in ledger.state.keys:
            yield fault("keys", f"{place.key}: the ledger does not know this key")


def budgets(ledger: Replayed | None) -> Iterator[Finding]:
    """How many more releases like the last each scope can pay for."""
    if ledger is None:
        return
    for scope, cap in sorted(ledger.state.caps.items()):
        charges = [e for e in ledger.entries if isinstance(e, Reserve) and e.scope == scope]
        spent = ledger.state.spent(scope)
        told = f"{scope}: ε {format_exact(spent.epsilon)} of {cap.epsilon} spent"
        if not charges:
            yield well("budget", told)
            continue
        last = Spent(amount(charges[-1].epsilon), amount(charges[-1].delta))
        left = [
            (amount(most) - had) // one
            for most, had, one in (
                (cap.epsilon, spent.epsilon, last.epsilon),
                (cap.delta, spent.delta, last.delta),
            )
            if one > 0
        ]
        more = max(0, min(left)) if left else None
        if more is None:
            yield well("budget", told)
        elif more < 10:
            yield look("budget", f"{told}; {more} more like the last, then the scope is spent")
        else:
            yield well("budget", f"{told}; {more} more like the last")


_REMEDIES = {
    Became.DUE: "dp-release catch-up",
    Became.CUT_OFF: "dp-release catch-up, or recover",
    Became.LEFT_OUT: "see why its runs die, then run it by hand: dp-release run --period",
    Became.LOST: "dp-release restore",
    Became.WITHDRAWN: "nothing to do",
}


def periods(place: Place, schedules: tuple[Schedule, ...]) -> Iterator[Finding]:
    """Which periods of a schedule have been due and are not public."""
    for schedule in schedules:
        found = periods_of(schedule, place.out, today())
        settled = (Became.PUBLIC, Became.WITHDRAWN)
        missing = [one for one in found if one.became not in settled]
        for one in missing[:10]:
            yield look("periods", f"{one.release_id}: {one.became}; {_REMEDIES[one.became]}")
        if len(missing) > 10:
            yield look("periods", f"and {len(missing) - 10} more")
        if not missing:
            yield well("periods", f"{schedule.spec.name}: all {len(found)} are public")


def store(place: Place) -> Iterator[Finding]:
    """Does the store know more than this machine, or less."""
    if place.store is None:
        return
    witnessed(place)
    wrong = 0
    for name in public_names(place.out) if place.out.is_dir() else ():
        sums = place.out / "public" / name / SUMS
        if not sums.is_file() or place.store.read(f"public/{name}/{SUMS}") != sums.read_bytes():
            yield fault("store", f"{name} is not delivered, or otherwise; dp-release deliver")
            wrong += 1
            continue
        there = set(place.store.names(f"public/{name}", recursive=True))
        listed = {line[66:] for line in sums.read_text("utf-8", "replace").splitlines()}
        for file in sorted(listed - there):
            yield fault("store", f"{name}/{file} is missing there; take {SUMS} away and deliver")
            wrong += 1
    own = place.out / LEDGER / CHECKPOINT
    if own.is_file() and place.store.read(f"{LEDGER}/{CHECKPOINT}") != own.read_bytes():
        yield look("store", "the ledger there is older, or missing; dp-release deliver")
        wrong += 1
    if not wrong:
        yield well("store", "all releases are there, and the ledger")
