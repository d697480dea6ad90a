"""Periods of a scheduled release, and spec templates that name them.

A template is a spec in whose text ``{period}`` stands for a period such as ``2024-01-05``, and
``{period_start}`` and ``{period_end}`` for its first and last day. The text is filled in before it
is read, so what is published is an ordinary spec. A period is made of digits, hyphens and one
letter, so that nothing else can be filled in.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from release.errors import SpecError


class Every(StrEnum):
    """How long a period is."""

    DAY = "day"
    WEEK = "week"  # from Monday, as ISO 8601 numbers them
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


_FORMS = {
    Every.DAY: re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII),
    Every.WEEK: re.compile(r"(\d{4})-w(\d\d)", re.ASCII),
    Every.MONTH: re.compile(r"(\d{4})-(\d\d)", re.ASCII),
    Every.QUARTER: re.compile(r"(\d{4})-q([1-4])", re.ASCII),
    Every.YEAR: re.compile(r"(\d{4})", re.ASCII),
}
_MONTHS = {Every.MONTH: 1, Every.QUARTER: 3, Every.YEAR: 12}
PERIOD_PATTERN = r"^\d{4}(-\d\d(-\d\d)?|-w\d\d|-q[1-4])?$"
"""The form of every period, for schemas that check parameters before the run."""

_PLACEHOLDER = re.compile(rb"\{(period(?:_start|_end)?)\}")


@dataclass(frozen=True, order=True)
class Period:
    """A day, week, month, quarter or year, by its first day."""

    start: datetime.date
    every: Every

    def __str__(self) -> str:
        start = self.start
        iso = start.isocalendar()
        return {
            Every.DAY: start.isoformat(),
            # The year of the week, which is another than that of its first day around New Year.
            Every.WEEK: f"{iso.year:04}-w{iso.week:02}",
            Every.MONTH: start.isoformat()[:7],
            Every.QUARTER: f"{start.year:04}-q{(start.month + 2) // 3}",
            Every.YEAR: start.isoformat()[:4],
        }[self.every]

    @property
    def end(self) -> datetime.date:
        """Its last day."""
        return self.next().start - datetime.timedelta(days=1)

    def next(self) -> Period:
        """The period after it.

        Raises:
            SpecError: the calendar ends.
        """
        try:
            if self.every in _MONTHS:
                months = self.start.year * 12 + self.start.month - 1 + _MONTHS[self.every]
                start = self.start.replace(year=months // 12, month=months % 12 + 1)
            else:
                days = 1 if self.every is Every.DAY else 7
                start = self.start + datetime.timedelta(days=days)
        except (ValueError, OverflowError) as error:
            raise SpecError("--period", f"after {self} the calendar ends") from error
        return Period(start, self.every)


def parse_period(text: str, field: str = "--period") -> Period:
    """The period that ``text`` names.

    Raises:
        SpecError: the text names no period; the message names ``field``.
    """
    for every, form in _FORMS.items():
        match = form.fullmatch(text)
        if match is None:
            continue
        numbers = [int(group) for group in match.groups()]
        try:
            if every is Every.WEEK:
                start = datetime.date.fromisocalendar(numbers[0], numbers[1], 1)
            elif every is Every.QUARTER:
                start = datetime.date(numbers[0], 3 * numbers[1] - 2, 1)
            else:
                # A year, a year and a month, or a whole date: what is missing is the first.
                start = datetime.date(*[*numbers, 1, 1][:3])
        except ValueError:
            break
        return Period(start, every)
    raise SpecError(
        field, f"found {text!r}; write a period: 2024-01-05, 2024-w01, 2024-01, 2024-q1 or 2024"
    )


def periods_ended(since: Period, by: datetime.date) -> Iterator[Period]:
    """The periods from ``since`` on whose last day is before ``by``."""
    # The day itself has not ended: its period is due on the next day.
    period = since
    while period.end < by:
        yield period
        period = period.next()


def is_template(text: bytes) -> bool:
    """Whether the text of a spec has placeholders."""
    return _PLACEHOLDER.search(text) is not None


def filled(text: bytes, period: Period | None) -> bytes:
    """The text of a spec for a period; unchanged where there is none.

    Raises:
        SpecError: a template without a period, or a period without a template.
    """
    if period is None:
        if is_template(text):
            raise SpecError(
                "--period", "the spec is a template; say for which: --period 2024-01-05"
            )
        return text
    if not is_template(text):
        raise SpecError("--period", "the spec names no period; write {period} in its release.id")
    named = {"period": period, "period_start": period.start, "period_end": period.end}
    return _PLACEHOLDER.sub(lambda match: str(named[match[1].decode()]).encode(), text)


# In place of braces, which begin a mapping in YAML: a template is read before its period is known.
OPEN, CLOSE = "\u2983", "\u2984"
"""White curly brackets: braces that are text to YAML."""


def as_words(text: bytes) -> bytes:
    """A template whose placeholders stay, as words that are text to YAML."""
    return _PLACEHOLDER.sub(lambda match: f"{OPEN}{match[1].decode()}{CLOSE}".encode(), text)
