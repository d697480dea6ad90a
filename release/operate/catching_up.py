"""Catching up: the due periods of a schedule are released, oldest first."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from release.errors import BudgetError, LedgerError, ReleaseError, StorageError
from release.operate.schedule import Became, OnePeriod, Schedule, periods_of


class Ended(StrEnum):
    """The reason why catching up ended."""

    CAUGHT_UP = "caught up"
    FAILED = "failed"  # some period could not be released; a later run tries it again
    CAP_REACHED = "cap reached"  # the cap of a day, month or year; a later run goes on
    NEEDS_SOMEBODY = "needs somebody"  # periods that no later run will release
    BUDGET_SPENT = "budget spent"  # for good, until the cap of the scope is raised


@dataclass(frozen=True)
class CaughtUp:
    """The result of a run over all due periods; each refused one has its error."""

    ended: Ended
    released: tuple[OnePeriod, ...]
    refused: tuple[tuple[OnePeriod, ReleaseError], ...]
    passed_over: tuple[OnePeriod, ...] = ()

    @property
    def error(self) -> ReleaseError | None:
        """The error to report: the last refusal, else the periods passed over, else None."""
        if self.refused:
            return self.refused[-1][1]
        if self.passed_over:
            names = ", ".join(f"{due.release_id} ({due.became})" for due in self.passed_over[:5])
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

    A refused period does not stop later ones, because its table may only be late. The end of the
    budget, a ledger that is not intact, or a full disk ends the run.

    Raises:
        ReleaseError: the schedule itself cannot be read.
    """
    released: list[OnePeriod] = []
    refused: list[tuple[OnePeriod, ReleaseError]] = []
    periods = periods_of(schedule, out, today)
    waiting = [due for due in periods if due.became in (Became.DUE, Became.CUT_OFF)]
    passed_over = tuple(due for due in periods if due.became in (Became.LEFT_OUT, Became.LOST))
    ended = Ended.NEEDS_SOMEBODY if passed_over else Ended.CAUGHT_UP
    for due in waiting[:most]:
        try:
            release_one(due)
        except ReleaseError as error:
            refused.append((due, error))
            ended = Ended.FAILED
            if isinstance(error, BudgetError):
                ended = Ended.BUDGET_SPENT if error.scope_ended else Ended.CAP_REACHED
            # These would refuse every later period too.
            if isinstance(error, BudgetError | LedgerError | StorageError):
                break
        else:
            released.append(due)
    return CaughtUp(ended, tuple(released), tuple(refused), passed_over)
