"""Schedules: which periods of a spec template are due, and releasing them.

The state of a period is read from the ledger and the folders, never from a scheduler's records. A
period is due once it has ended and ``delay_days`` more have passed, unless its release is public. A
run that was interrupted after noise may have been drawn keeps its charge, so a period is given up
for good after ``attempts`` such charges: a machine that dies every night must not spend the budget
on one day. Interrupted runs are recovered before periods are examined
(:func:`release.operate.operations.recover_all`), so that their charges are counted.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from release.budget.ledger import Abort, Ledger, Replayed, State, replay, skip, today
from release.bundle.publish import LEDGER
from release.errors import SpecError
from release.queries.read import parse_spec
from release.spec.load import read_text
from release.spec.periods import CLOSE, OPEN, Period, as_words, filled, periods_ended

ATTEMPTS = 3


class Became(StrEnum):
    """The state of the release of a period."""

    DUE = "due"
    CUT_OFF = "cut off"  # its run was interrupted; the next one goes on from there
    ELSEWHERE = "at work elsewhere"  # another machine has reserved it
    PUBLIC = "public"
    LEFT_OUT = "left out"  # too many runs of it were interrupted after drawing
    WITHDRAWN = "withdrawn"
    SKIPPED = "skipped"  # somebody has recorded that it will not be made
    LOST = "lost"  # committed, and its folder is gone: restore it


@dataclass(frozen=True)
class Schedule:
    """A spec template, its first period, and when a period is due.

    ``delay_days`` are the full days between the end of a period and the day on which it is due.
    ``attempts`` is how many charges without a publication a period may cost. A period is late, and
    people are told, where it is not public ``late_days`` full days after it was due.
    """

    spec: Path
    since: Period
    delay_days: int = 0
    attempts: int = ATTEMPTS
    late_days: int | None = None

    def release_ids(self) -> Callable[[Period], str]:
        """Return the function from a period to the id of its release.

        Raises:
            SpecError: the template is no spec, or its release id does not name the period once.
        """
        text = read_text(self.spec)
        first = parse_spec(filled(text, self.since)).release.id
        template = id_of_template(text)
        before, placeholder, after = template.partition("{period}")
        # Two periods must never share an id: the second would count as published.
        if not placeholder or "{" in before + after or first != f"{before}{self.since}{after}":
            raise SpecError("release.id", "a template's id names its period once: write {period}")
        return lambda period: f"{before}{period}{after}"

    def due_on(self, period: Period) -> datetime.date:
        """The first day on which a period is released."""
        return period.end + datetime.timedelta(days=self.delay_days + 1)

    def is_late(self, period: Period, today: datetime.date) -> bool:
        """Whether a period that is not public yet is late."""
        if self.late_days is None:
            return False
        return today >= self.due_on(period) + datetime.timedelta(days=self.late_days)


@dataclass(frozen=True)
class OnePeriod:
    """A period of a schedule, the id of its release, and the state of that release."""

    period: Period
    release_id: str
    became: Became


def id_of_template(text: bytes) -> str:
    """The release id of a spec template, with its placeholders unfilled.

    Raises:
        SpecError: the template is no YAML with a release id.
    """
    try:
        # In YAML a brace begins a mapping, so the placeholders are read as plain words.
        plain = yaml.safe_load(as_words(text))
        return str(plain["release"]["id"]).replace(OPEN, "{").replace(CLOSE, "}")
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise SpecError("release.id", "cannot be read from the template") from error


def periods_of(schedule: Schedule, out: Path, today: datetime.date) -> tuple[OnePeriod, ...]:
    """All periods that were due by ``today``, oldest first, with the state of each.

    Raises:
        SpecError: the spec is no template for these periods.
        LedgerError: the ledger in ``out`` is not intact.
    """
    release_id, folder = schedule.release_ids(), out / LEDGER
    # Without a ledger no release was reserved, committed or withdrawn.
    ledger = replay(folder) if folder.is_dir() else Replayed(State(), (), ())
    # The charges that stand although nothing was published.
    in_vain = [entry for entry in ledger.entries if isinstance(entry, Abort) and entry.drawn]
    failures = Counter(entry.release_id for entry in in_vain)
    end = today - datetime.timedelta(days=schedule.delay_days)
    periods = []
    for period in periods_ended(schedule.since, end):
        name = release_id(period)
        became = _became(out, name, ledger.state)
        if became is Became.DUE and failures[name] >= schedule.attempts:
            became = Became.LEFT_OUT
        periods.append(OnePeriod(period, name, became))
    return tuple(periods)


def _became(out: Path, name: str, state: State) -> Became:
    is_staged = (out / f".work-{name}").exists()
    # Checked first: the folder of a withdrawn release may still be there.
    if name in state.withdrawn:
        return Became.WITHDRAWN
    if state.is_skipped(name):
        return Became.SKIPPED
    if os.path.lexists(out / "public" / name):
        return Became.PUBLIC
    if is_staged:
        return Became.CUT_OFF
    if name in state.running:
        # The run of a ledger on this machine alone has lost its folder.
        return Became.CUT_OFF if state.store is None else Became.ELSEWHERE
    return Became.LOST if name in state.committed else Became.DUE


def skip_period(schedule: Schedule, period: Period, reason: str, ledger: Ledger) -> str:
    """Record in a ledger that a period of a schedule will not be released; the id that it had.

    Nothing is charged and nothing given back.

    Raises:
        SpecError: the template is none.
        LedgerError: the period is charged, or skipped already, or the ledger cannot be written.
    """
    release_id = schedule.release_ids()(period)
    ledger.append(skip(release_id, reason, today().isoformat()))
    return release_id
