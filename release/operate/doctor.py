"""``dp-release doctor``: whether an output folder, its ledger and its machine are in order.

Nothing is written or repaired. The ledger and the folders are authoritative; the states that a
scheduler reports are compared with them (:mod:`release.operate.prefect_drift`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator

from release.budget.ledger import Account, Genesis, Key, Replayed, Reserve, read_ledger, today
from release.bundle.publish import LEDGER
from release.errors import ReleaseError
from release.exact.numbers import format_exact
from release.operate.findings import Finding, Level, fault, findings_of, look, one_line, well
from release.operate.folders import copies, folders, leftovers
from release.operate.machine import clock, permissions, versions
from release.operate.operations import Place, public_names
from release.operate.schedule import Became, Schedule, periods_of
from release.records.keys.outside import read_key, scheme_of

KEY_DAYS = 365


def examine(
    place: Place, schedules: tuple[Schedule, ...] = (), key_days: int = KEY_DAYS
) -> tuple[Finding, ...]:
    """Run every check; one that cannot be run is a fault, and the others go on."""
    # Before the ledger is read: a release that comes meanwhile is in the ledger first.
    names = set(public_names(place.out)) if place.out.is_dir() else set()
    ledger, state = _ledger(place)
    checks: list[Callable[[], Iterator[Finding]]] = [
        versions,
        lambda: clock(ledger),
        lambda: permissions(place),
        lambda: iter([state]),
    ]
    # The other checks follow from the ledger, and would only repeat its fault.
    if state.level is not Level.FAULT:
        checks += [
            lambda: folders(place, ledger, names),
            lambda: leftovers(place),
            lambda: key_age(place, ledger, key_days),
            lambda: budgets(ledger),
            lambda: periods(place, schedules),
            lambda: copies(place, ledger),
        ]
    findings: list[Finding] = []
    for check in checks:
        findings += findings_of(check)
    return tuple(findings)


def _ledger(place: Place) -> tuple[Replayed | None, Finding]:
    folder = place.out / LEDGER
    if not folder.is_dir():
        return None, look("ledger", "none in the output folder: no budget holds across releases")
    try:
        ledger = read_ledger(folder)
    except (ReleaseError, OSError) as error:
        remedy = "restore it: dp-release restore, or a backup"
        return None, fault("ledger", f"{one_line(error)}; {remedy}")
    return ledger, well("ledger", f"{ledger.state.size} entries follow and are signed")


def key_age(place: Place, ledger: Replayed | None, key_days: int) -> Iterator[Finding]:
    """The age of each signing key in days; a key never expires by itself."""
    if ledger is None:
        return
    since: dict[str, str] = {}
    for entry in ledger.entries:
        if isinstance(entry, Genesis):
            since[entry.keys[0]] = entry.date
        elif isinstance(entry, Key) and entry.action == "add":
            since[entry.key] = entry.date
    for key in ledger.state.keys:
        # Entries may hold the text of a key with spaces around it; it is then as old as the ledger.
        day = since.get(str(key), ledger.entries[0].date)
        days = (today() - datetime.date.fromisoformat(day)).days
        age = f"a key signs since {day}, {days} days"
        if days > key_days:
            yield look("keys", f"{age}; rotate it: dp-release ledger key add, then retire")
        else:
            yield well("keys", age)
    if place.key is not None:
        if scheme_of(place.key) is None and not place.key.is_file():
            yield fault("keys", f"{place.key}: no such file; releases cannot be signed")
        elif read_key(place.key).public(ledger.state.origin) not in ledger.state.keys:
            yield fault("keys", f"{place.key}: the ledger does not know this key")


def budgets(ledger: Replayed | None) -> Iterator[Finding]:
    """How many more releases like its last each scope can pay for."""
    if ledger is None:
        return
    # Entries are in order, so the last one of a scope stays.
    last: dict[str, Reserve] = {}
    for entry in ledger.entries:
        if isinstance(entry, Reserve):
            last[entry.scope] = entry
    for scope, account in sorted(ledger.state.accounts.items()):
        summary = f"{scope}: {_summary(account)}"
        more = account.affordable(last[scope]) if scope in last else None
        # A release that charges nothing can be repeated without end.
        if more is None:
            yield well("budget", summary)
        elif more < 10:
            yield look("budget", f"{summary}; {more} more like the last, then the scope is spent")
        else:
            yield well("budget", f"{summary}; {more} more like the last")


def _summary(account: Account) -> str:
    if account.cap.rule == "basic":
        return f"ε {format_exact(account.spent().epsilon)} of {account.cap.epsilon} spent"
    return account.summary()


_REMEDIES = {
    Became.DUE: "dp-release catch-up",
    Became.CUT_OFF: "dp-release catch-up, or recover",
    Became.ELSEWHERE: "wait for that machine; if it is gone: dp-release recover --abandon",
    Became.LEFT_OUT: "see why its runs die, then run it by hand: dp-release run --period",
    Became.LOST: "dp-release restore",
}
_REPORTED_PERIODS = 10


def periods(place: Place, schedules: tuple[Schedule, ...]) -> Iterator[Finding]:
    """The periods of each schedule that were due and are not public."""
    for schedule in schedules:
        due = periods_of(schedule, place.out, today())
        # A public, withdrawn or skipped release needs nothing more.
        missing = [period for period in due if period.became in _REMEDIES]
        for period in missing[:_REPORTED_PERIODS]:
            remedy = _REMEDIES[period.became]
            yield look("periods", f"{period.release_id}: {period.became}; {remedy}")
        if len(missing) > _REPORTED_PERIODS:
            yield look("periods", f"and {len(missing) - _REPORTED_PERIODS} more")
        if not missing:
            skipped = [period.became for period in due].count(Became.SKIPPED)
            summary = f"all {len(due)} are public"
            if skipped:
                summary += f", or skipped ({skipped})"
            yield well("periods", f"{schedule.spec.name}: {summary}")
