"""The answers of a query as readers see them: texts, intervals, and the columns of a table.

An interval holds the true answer in 95 of 100 cases. Where the noise is on the answer, these are
the cases in which this answer was published, if all true answers were equally likely beforehand.
Where it is on sums, they are 95 of 100 draws of the noise, whatever the table holds. All of it
follows from the published answers and the public mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from release.bundle.report.long_tables import Column, interval_column
from release.bundle.report.published import PublicQuery
from release.bundle.report.questions import answer_word
from release.exact.accuracy import IN_95_OF_100, likely_answers, radius_of
from release.exact.domain import Codes, Topology
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_exact
from release.exact.statistics.sums import NoisySums
from release.queries.on_statistic import OnStatisticQuery
from release.records.statistics import StatisticRecord
from release.spec.query import PlainQuery, Query, spoken

_MOST_COUNTS = 60
"""Noisy counts of a cell that a table of the page shows; the Parquet file has more of them."""

TRUE_ANSWER = "true answer, 95 of 100"
"""The head of a column of intervals."""

Interval: TypeAlias = tuple[Codes, Codes]
"""The first and the last code for each cell; on a circle the first may be the larger."""


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
            interval=None if interval is None else (interval[0][taken], interval[1][taken]),
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
        # An interval of bins begins where its first bin does.
        shown = self.part.shown_answers(self.interval[0].tolist())
        return [text.removesuffix(" or more").split(" to ")[0] for text in shown]

    @cached_property
    def ends(self) -> list[str]:
        """Where each interval ends; none without intervals."""
        if self.interval is None:
            return []
        shown = self.part.shown_answers(self.interval[1].tolist())
        return [text.split(" to ")[-1] for text in shown]

    @property
    def with_unit(self) -> str:
        """The unit as the end of a phrase."""
        return f" {self.unit}" if self.unit else ""


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
        return _around_answers(public.query, public.on_answers.to_mechanism(), public.outcomes)
    if isinstance(public.mechanism, StatisticRecord):
        mechanism = public.mechanism.to_mechanism()
        if isinstance(mechanism, NoisySums):
            return [_around_sums(public.query, mechanism, public.outcomes)], [None]
    return nothing


def _around_sums(query: Query, mechanism: NoisySums, noisy: Codes) -> Interval:
    """The answers of all sums that the noise may have left here.

    Of two sums each is missed in half of the other cases at most. A mean rises in the first one,
    which is what lies above the lowest value, and falls in the second.
    """
    others = 1 - float(IN_95_OF_100)
    radius = mechanism.noise.radius(1 - others / mechanism.sums)
    signs = np.array([1, -1][: mechanism.sums], dtype=np.int64)
    ends = []
    for side in (-radius, radius):
        sums = noisy + side * signs
        # Neither of the two can be below 0.
        ends.append(query.answer_codes(sums if mechanism.sums == 1 else np.maximum(sums, 0))[0])
    return ends[0], ends[1]


def _around_answers(query: Query, mechanism: Mechanism, outcomes: Codes) -> _Near:
    """The shortest runs of true answers, and the chances of categories, part by part."""
    likely = likely_answers(mechanism, query.answers, outcomes[:, 0])
    if likely is None:
        return _within_a_radius(query, mechanism, outcomes)
    intervals: list[Interval | None] = []
    chances: list[tuple[float, ...] | None] = []
    for domain, own in zip(query.answers.parts, likely, strict=True):
        is_nominal = domain.topology is Topology.NOMINAL
        intervals.append(None if is_nominal else (own.first, own.last))
        chances.append(tuple(own.chance.tolist()) if is_nominal else None)
    return intervals, chances


def _within_a_radius(query: Query, mechanism: Mechanism, outcomes: Codes) -> _Near:
    """One radius for all answers of a wide domain; nothing where there are several parts."""
    domain, count = query.answers.parts[0], len(query.answers.parts)
    radius = radius_of(mechanism, query.answers) if count == 1 else None
    if radius is None:
        return [None] * count, [None] * count
    codes = outcomes[:, 0]
    if domain.topology is Topology.CYCLIC:
        if 2 * radius + 1 >= domain.size:
            return [(np.zeros_like(codes), np.full_like(codes, domain.size - 1))], [None]
        return [((codes - radius) % domain.size, (codes + radius) % domain.size)], [None]
    return [(np.maximum(codes - radius, 0), np.minimum(codes + radius, domain.size - 1))], [None]


def table_of(public: PublicQuery, answers: Sequence[AnswerColumn], rows: int) -> list[Column]:
    """The columns of the table of a query: its keys, its answers, and how near these are.

    They have its first ``rows`` rows.
    """
    columns = []
    for place, name in enumerate(public.record.by):
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
    low, high = (int(codes[0]) for codes in answer.interval)
    if (low, high) == (0, answer.part.answers.size - 1):
        return None
    key = ", ".join(public.keys[0])
    about = f" for {key}" if key else ""
    unit = answer.with_unit
    where = f"is {first}{unit}" if first == last else f"lies from {first} to {last}{unit}"
    published = f"{answer.texts[0]}{unit}{about}"
    return f"Published {published}: the true answer {where} in 95 of 100 such cases."


def cases_of(public: PublicQuery) -> str:
    """What the cases of an interval are, as a sentence."""
    if public.on_answers is not None:
        return (
            "A case is an answer like this one, if all true answers were equally likely "
            "beforehand. The interval is the shortest one for them, so it may reach further on "
            "one side."
        )
    return "A case is a draw of the noise, whatever the table holds."
