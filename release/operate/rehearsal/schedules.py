"""The rehearsal of a schedule as it begins, while somebody is watching its terminal.

What is told is no more than a run would tell: whether it would be refused, and why. Figures of the
tables are for ``dp-release check``.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from release.noise.cache import DesignCache
from release.operate.rehearsal.rehearse import check_run
from release.operate.schedule import Became, Schedule, periods_of
from release.queries.read import read_spec


def rehearsal_lines(
    schedule: Schedule, out: Path, today: datetime.date, cache: DesignCache | None
) -> Iterator[str]:
    """What a run of the oldest period that is due would end with, in lines without figures.

    Raises:
        ReleaseError: the template, or the ledger in ``out``, cannot be read.
    """
    name = schedule.spec.name
    due = [one for one in periods_of(schedule, out, today) if one.became is Became.DUE]
    if not due:
        yield f"{name}: no period is due, so nothing was rehearsed"
        return
    period = due[0].period
    rehearsal = check_run(read_spec(schedule.spec, period), cache)
    for refusal in rehearsal.refusals:
        yield f"{name}: {period} would be refused: {refusal}"
    if not rehearsal.refusals:
        yield f"{name}: {period} was rehearsed, and would not be refused before its charge"
