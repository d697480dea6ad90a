"""Scheduled releases: which periods of a spec template are due, and running those.

What has happened to a period is read from the ledger and the folders, never from a scheduler's own
records. A period is due once it has ended and ``delay_days`` more have passed, unless its release
is public. A run that was cut off after noise may have been drawn keeps its charge, so a period is
given up for good after ``attempts`` such charges: a machine that dies every night must not spend
the budget on one day. Interrupted runs are recovered before periods are looked at
(:func:`release.operate.operations.recover_all`), so that their charges are counted.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from release.budget.ledger import Abort, Replayed, replay
from release.bundle.publish import LEDGER
from release.errors import BudgetError, LedgerError, ReleaseError, SpecError, StorageError
from release.queries.read import parse_spec
from release.spec.load import read_text
from release.spec.periods import CLOSE, OPEN, Period, as_words, filled, periods_ended

ATTEMPTS = 3


class Became(StrEnum):
    """What became of the release of a period."""

    DUE = "due"
    CUT_OFF = "cut off"  # a run of it did not end; the next one goes on from there
    PUBLIC = "public"
    LEFT_OUT = "left out"  # too many runs of it were cut off after drawing
    WITHDRAWN = "withdrawn"
    LOST = "lost"  # committed, and its folder is gone: restore it


@dataclass(frozen=True)
class Schedule:
    """A spec template, the first of its periods, and when a period is due.

    ``delay_days`` are the full days between the end of a period and the day on which it is due.
    """

    spec: Path
    since: Period
    delay_days: int = 0
    attempts: int = ATTEMPTS

    def release_ids(self) -> Callable[[Period], str]:
        """How the releases of its periods are called.

        Raises:
            SpecError: the template is no spec, or its release id does not name the period once.
        """
        text = read_text(self.spec)
        first = parse_spec(filled(text, self.since)).release.id
        template = id_of_template(text)
        before, named, after = template.partition("{period}")
        if not named or "{" in before + after or first != f"{before}{self.since}{after}":
            raise SpecError("release.id", "a template's id names its period once: write {period}")
        return lambda period: f"{before}{period}{after}"


@dataclass(frozen=True)
class OnePeriod:
    """A period of a schedule, its release, and what became of it."""

    period: Period
    release_id: str
    became: Became


def id_of_template(text: bytes) -> str:
    """The release id of a spec template, with its placeholders as they stand there.

    Raises:
        SpecError: the template is no YAML with a release id.
    """
    try:
        # Quoted where they stand alone, for to YAML a brace begins a mapping.
        plain = yaml.safe_load(as_words(text))
        return str(plain["release"]["id"]).replace(OPEN, "{").replace(CLOSE, "}")
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise SpecError("release.id", "cannot be read from the template") from error


def periods_of(schedule: Schedule, out: Path, today: datetime.date) -> tuple[OnePeriod, ...]:
    """All periods that have been due by ``today``, in order.

    Raises:
        SpecError: the spec is no template for these periods.
        LedgerError: the ledger in ``out`` is not intact.
    """
    release_id, folder = schedule.release_ids(), out / LEDGER
    ledger = replay(folder) if folder.is_dir() else None
    lost = Counter(_drawn_for_nothing(ledger))
    by = today - datetime.timedelta(days=schedule.delay_days)
    found = []
    for period in periods_ended(schedule.since, by):
        name = release_id(period)
        state = None if ledger is None else ledger.state
        working = (out / f".work-{name}").exists()
        if state is not None and name in state.withdrawn:
            became = Became.WITHDRAWN
        elif os.path.lexists(out / "public" / name):
            became = Became.PUBLIC
        elif state is not None and name in state.committed and not working:
            became = Became.LOST
        elif working or (state is not None and name in state.running):
            became = Became.CUT_OFF
        elif lost[name] >= schedule.attempts:
            became = Became.LEFT_OUT
        else:
            became = Became.DUE
        found.append(OnePeriod(period, name, became))
    return tuple(found)


def _drawn_for_nothing(ledger: Replayed | None) -> Iterator[str]:
    """The release of each charge that stands without anything public."""
    for entry in () if ledger is None else ledger.entries:
        if isinstance(entry, Abort) and entry.drawn:
            yield entry.release_id


class Ended(StrEnum):
    """Why catching up ended."""

    CAUGHT_UP = "caught up"
    FAILED = "failed"  # some period could not be released; a later run tries it again
    CAP_REACHED = "cap reached"  # that of a day, month or year; a later run goes on
    NEEDS_SOMEBODY = "needs somebody"  # periods that no later run will release
    BUDGET_SPENT = "budget spent"  # for good, until the cap of the scope is raised


@dataclass(frozen=True)
class CaughtUp:
    """What a run over all due periods did: released, and refused with one line each."""

    ended: Ended
    released: tuple[OnePeriod, ...]
    refused: tuple[tuple[OnePeriod, ReleaseError], ...]
    passed_over: tuple[OnePeriod, ...] = ()

    @property
    def error(self) -> ReleaseError | None:
        """The refusal to tell of, where there is one: the last, or what is passed over."""
        if self.refused:
            return self.refused[-1][1]
        if self.passed_over:
            names = ", ".join(f"{one.release_id} ({one.became})" for one in self.passed_over[:5])
            return LedgerError(f"passed over for good: {names}; see dp-release doctor")
        return None


def catch_up(
    schedule: Schedule,
    out: Path,
    release_one: Callable[[OnePeriod], object],
    *,
    today: datetime.date,
    most: int | None = None,
) -> CaughtUp:
    """Release the due periods of a schedule, oldest first, at most ``most`` of them.

    A table that is not there yet must not hold up later periods, so a refusal is kept and the next
    period tried; the end of the budget, a ledger that is not intact, or a full disk ends the run.

    Raises:
        ReleaseError: the schedule itself cannot be read.
    """
    released: list[OnePeriod] = []
    refused: list[tuple[OnePeriod, ReleaseError]] = []
    found = periods_of(schedule, out, today)
    waiting = [one for one in found if one.became in (Became.DUE, Became.CUT_OFF)]
    passed_over = tuple(one for one in found if one.became in (Became.LEFT_OUT, Became.LOST))
    for one in waiting[:most]:
        try:
            release_one(one)
        except BudgetError as error:
            refused.append((one, error))
            ended = Ended.BUDGET_SPENT if error.scope_ended else Ended.CAP_REACHED
            return CaughtUp(ended, tuple(released), tuple(refused), passed_over)
        except (LedgerError, StorageError) as error:
            refused.append((one, error))
            break
        except ReleaseError as error:
            refused.append((one, error))
        else:
            released.append(one)
    calm = Ended.NEEDS_SOMEBODY if passed_over else Ended.CAUGHT_UP
    ended = Ended.FAILED if refused else calm
    return CaughtUp(ended, tuple(released), tuple(refused), passed_over)
