"""The answers of a query as readers see them: texts, intervals, and the columns of a table.

An interval holds the answer of the rows that were read in 95 of 100 draws of the noise, whatever
that answer is (:mod:`release.queries.intervals`). Of a joint answer it is the run of likely answers
of each part, if all were equally likely beforehand. All of it follows from the published answers
and the public mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from release.bundle.report.long_tables import Column, interval_column
from release.bundle.report.published import PublicQuery
from release.bundle.report.questions import answer_word
from release.exact.accuracy import likely_answers
from release.exact.domain import Codes, Topology
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_exact
from release.exact.statistics.sums import NoisySums
from release.queries.intervals import Interval, around_answers, around_sums
from release.queries.on_statistic import OnStatisticQuery
from release.spec.query import PlainQuery, Query, spoken

_MOST_COUNTS = 60
"""Noisy counts of a cell that a table of the page shows; the Parquet file has more of them."""

TRUE_ANSWER = "answer of the rows read, 95 of 100"
"""The head of a column of intervals."""


@dataclass(frozen=True)
class AnswerColumn:
    """The answers in one column of a table, by cell.

    Attributes:
        head: what tells it from other columns; empty of the only one.
        part: the query that it answers.
        unit: the unit of measure, empty where there is none.
        codes: the published answers.
        interval: where the true answers are; None where that is not public, or has no order.
        chance: of categories, the chance that the published one is true.
    """

    head: str
    part: PlainQuery
    unit: str
    codes: Codes
    interval: Interval | None = None
    chance: tuple[float, ...] | None = None

    def taken(self, places: Sequence[int]) -> AnswerColumn:
        """The same answers with their cells in another order."""
        taken = list(places)
        interval, chance = self.interval, self.chance
        return replace(
            self,
            codes=self.codes[taken],
            interval=None if interval is None else interval.taken(taken),
            chance=None if chance is None else tuple(chance[place] for place in taken),
        )

    @cached_property
    def texts(self) -> list[str]:
        """The published answers in words."""
        return self.part.shown_answers(self.codes.tolist())

    @cached_property
    def starts(self) -> list[str]:
        """Where each interval begins; none without intervals."""
        if self.interval is None:
            return []
        if self.interval.is_number:
            return list(map(_number, self.interval.low.tolist()))
        # An interval of bins begins where its first bin does.
        shown = self.part.shown_answers(self.interval.low.tolist())
        return [text.removesuffix(" or more").split(" to ")[0] for text in shown]

    @cached_property
    def ends(self) -> list[str]:
        """Where each interval ends; none without intervals."""
        if self.interval is None:
            return []
        if self.interval.is_number:
            return list(map(_number, self.interval.high.tolist()))
        shown = self.part.shown_answers(self.interval.high.tolist())
        return [text.split(" to ")[-1] for text in shown]

    @property
    def with_unit(self) -> str:
        """The unit as the end of a phrase."""
        return f" {self.unit}" if self.unit else ""


def _number(value: float) -> str:
    """A number as frames have it: whole ones without a point."""
    return repr(value).removesuffix(".0")


def answer_columns(public: PublicQuery, unit: str) -> list[AnswerColumn]:
    """The answer columns of a query; ``unit`` is the word for a protected unit."""
    query, heads = public.query, _heads(public.query)
    codes = query.answer_codes(public.outcomes)
    intervals, chances = _near(public, codes)
    columns = []
    for place, part in enumerate(query.column_parts):
        columns.append(
            AnswerColumn(
                heads[place],
                part,
                answer_word(part, unit),
                codes[place],
                intervals[place],
                chances[place],
            )
        )
    return columns


def _heads(query: Query) -> list[str]:
    if len(query.columns) == 1:
        return [""]
    if query.part_names:
        return [part.title or spoken(part.name) for part in query.parts]
    if isinstance(query, OnStatisticQuery) and len(query.shares) == len(query.columns):
        return [f"{format_exact(share)} quantile" for share in query.shares]
    return [f"place {place}" for place in range(1, len(query.columns) + 1)]


_Near: TypeAlias = tuple[list[Interval | None], list[tuple[float, ...] | None]]


def _near(public: PublicQuery, codes: Sequence[Codes]) -> _Near:
    """The intervals and chances of each answer column."""
    nothing: _Near = [None] * len(codes), [None] * len(codes)
    if public.on_answers is not None:
        return _around_answers(public.query, public.on_answers, public.outcomes)
    if public.on_statistic is not None:
        mechanism = public.on_statistic
        if isinstance(mechanism, NoisySums):
            if not isinstance(public.query, OnStatisticQuery):
                raise TypeError(f"{public.query.name} has no sums")
            return [around_sums(public.query, mechanism, public.outcomes)], [None]
    return nothing


def _around_answers(query: Query, mechanism: Mechanism, outcomes: Codes) -> _Near:
    """The intervals of answers, and the chances of categories, part by part."""
    codes = outcomes[:, 0]
    own = around_answers(query, mechanism, codes)
    if own is not None:
        return [own], [None]
    likely = likely_answers(mechanism, query.answers, codes)
    if likely is None:
        nothing: _Near = [None] * len(query.answers.parts), [None] * len(query.answers.parts)
        return nothing
    intervals: list[Interval | None] = []
    chances: list[tuple[float, ...] | None] = []
    for domain, part in zip(query.answers.parts, likely, strict=True):
        is_nominal = domain.topology is Topology.NOMINAL
        intervals.append(None if is_nominal else Interval(part.first, part.last))
        chances.append(tuple(part.chance.tolist()) if is_nominal else None)
    return intervals, chances


def table_of(public: PublicQuery, answers: Sequence[AnswerColumn], rows: int) -> list[Column]:
    """The columns of the table of a query: its keys, its answers, and how near these are.

    They have its first ``rows`` rows.
    """
    columns = []
    for place, name in enumerate(public.query.by):
        columns.append(Column(spoken(name), [key[place] for key in public.keys[:rows]], False))
    for whole in answers:
        answer = whole.taken(range(rows))
        before = f"{answer.head}: " if answer.head else ""
        unit = f", {answer.unit}" if answer.unit else ""
        is_number = answer.part.answers.topology is not Topology.NOMINAL
        columns.append(Column(f"{answer.head or 'answer'}{unit}", answer.texts, is_number))
        if answer.interval is not None:
            head, ends = f"{before}{TRUE_ANSWER}", (f"{before}true from", f"{before}true to")
            columns.append(interval_column(head, ends, answer.starts, answer.ends))
        if answer.chance is not None:
            columns.append(Column(f"{before}chance to be true", list(map(percent, answer.chance))))
    return columns + _count_columns(public, rows)


def _count_columns(public: PublicQuery, rows: int) -> list[Column]:
    """The noisy counts of a top that are published: by place, or by category of a histogram."""
    query = public.query
    columns: list[Column] = []
    if not isinstance(query, OnStatisticQuery):
        return columns
    if not 0 < len(query.count_columns) <= _MOST_COUNTS:
        return columns
    drawn = public.outcomes[:rows].T[len(query.columns) :]
    for name, counts in zip(query.count_columns, drawn, strict=True):
        of = name.removeprefix("noisy_count_")
        head = f"noisy count of {of}" if query.histogram_of else f"place {of}: noisy count"
        columns.append(Column(head, [f"{count:,}" for count in counts.tolist()]))
    return columns


def percent(chance: float) -> str:
    """A chance in percent, rounded down, so that no text says more than is so."""
    return f"{int(100 * chance + 1e-9)} %"


def example_of(public: PublicQuery, answers: Sequence[AnswerColumn]) -> str | None:
    """How to read one number: the first answer, and where the true one is."""
    answer = answers[0].taken([0])
    if answer.interval is None or len(answers) > 1:
        return None
    first, last = answer.starts[0], answer.ends[0]
    is_all = not answer.interval.is_number and (
        int(answer.interval.low[0]),
        int(answer.interval.high[0]),
    ) == (0, answer.part.answers.size - 1)
    if is_all:
        return None
    key = ", ".join(public.keys[0])
    about = f" for {key}" if key else ""
    unit = answer.with_unit
    where = f"is {first}{unit}" if first == last else f"lies from {first} to {last}{unit}"
    published = f"{answer.texts[0]}{unit}{about}"
    return f"Published {published}: the answer of the rows that were read {where}, 95 times in 100."


def cases_of(public: PublicQuery) -> str:
    """What an interval promises, and of which rows."""
    if public.query.part_names:
        return (
            "A case is an answer like this one, if all answers were equally likely beforehand. The "
            "interval is the shortest one for them, so it may reach further on one side."
        )
    promise = (
        "Whatever the answer of the rows that were read is, 95 of 100 draws of the noise give an "
        "interval that holds it. Among cells picked because they are high, fewer do."
    )
    if not public.bounded:
        return promise
    return f"{promise} Rows beyond a bound are not in it: {public.bounded}."
