"""What follows from the files of a release by the publisher's own programs, computed once more.

Whoever has this software can say more than its files prove alone: that the spec for people asks
what the record says was asked, that intervals follow from answers and noise, that the whole numbers
and errors of tabulations follow from the noisy counts, and that totals differ from the sums of
their parts as noise makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, permutations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dp_release_verify import forms
from dp_release_verify.verdict import Finding
from release.bundle.files.asked import asked_of
from release.bundle.opened import KEYS, RECORD, SPEC, PublicRelease, open_public
from release.bundle.tables.intervals import INTERVAL
from release.errors import SpecError, VerificationError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.mechanism import Mechanism
from release.queries.intervals import released_interval
from release.queries.on_statistic import OnStatisticQuery
from release.spec.named import by_name
from release.spec.query import PlainQuery
from release.tables.columns import numbers_of
from release.tabulations.estimate.cone import coarsened
from release.verification.residuals import (
    CHANCE,
    Released,
    Residuals,
    is_total_of,
    no_residuals,
    residuals,
)

if TYPE_CHECKING:
    from pathlib import Path

    from release.exact.domain import Codes
    from release.exact.integers.noise import IntegerNoise
    from release.tabulations.spec.opened import OpenTabulation, Table

    Counts: TypeAlias = dict[Table, Codes]
    Noises: TypeAlias = dict[Table, IntegerNoise]


def reproduce(public: Path, *, has_noise: bool = True) -> list[Finding]:
    """Compute once more what follows from the files of a release that was verified.

    Without ``has_noise`` answers stand in for noisy ones, and residuals are not looked at.

    Raises:
        VerificationError: something else came out.
    """
    opened = open_public(public)
    if SPEC not in opened.sums:
        # A release need not have it; then there is nothing to compute from.
        return []
    findings = [_asked(opened), *_intervals(opened)]
    for place in range(len(opened.tabulations)):
        findings += _tabulation(opened, place, has_noise=has_noise)
    if has_noise:
        findings += _residuals(opened)
    return findings


def _found(check: str, sentence: str, about: str = "") -> Finding:
    return Finding(f"reproduced.{check}", "tested", about, sentence)


def _asked(opened: PublicRelease) -> Finding:
    """The spec for people asks what the record says."""
    if forms.dumps(asked_of(opened.spec)) != forms.dumps(opened.record.asked):
        raise VerificationError(SPEC, "asked", "another question", f"that of {RECORD}")
    return _found("asked", f"{SPEC} asks what {RECORD} says")


# ---- Intervals -----------------------------------------------------------------------------------

_HAIR = 2e-6
"""Two machines may differ by so much of the clamp in the end of an interval of a mean."""


def _intervals(opened: PublicRelease) -> Iterator[Finding]:
    """The intervals of answers follow from what was drawn and from public noise."""
    compared = 0
    for made in opened.made.queries:
        mechanism = opened.mechanism(made)
        if mechanism is None:
            continue
        table = opened.table(made.name)
        if INTERVAL[0] not in table.column_names:
            continue
        query, file = opened.query(made.name), f"data/{made.name}.parquet"
        drawn = [numbers_of(table.column(name)) for name in query.outcome_columns]
        expected = released_interval(query, mechanism, np.stack(drawn, axis=1).astype(np.int64))
        if expected is None:
            raise VerificationError(file, INTERVAL[0], "a column", "no intervals")
        hair = 0.0
        if isinstance(query, OnStatisticQuery) and query.kind == "mean":
            low, high = query.sum_bounds
            hair = _HAIR * (high - low)
        for name, ends in zip(INTERVAL, expected, strict=True):
            if not np.allclose(numbers_of(table.column(name)), ends, rtol=0, atol=hair):
                raise VerificationError(file, name, "other numbers", "what the noise gives")
        compared += 1
    if compared:
        of = "1 question" if compared == 1 else f"{compared} questions"
        yield _found("intervals", f"the intervals of {of} follow from answers and noise")


# ---- Residuals -----------------------------------------------------------------------------------


def _residuals(opened: PublicRelease) -> Iterator[Finding]:
    """Totals differ from the sums of their parts by as much noise as is declared."""
    counts: dict[str, PlainQuery] = {}
    made_of = by_name(opened.made.queries)
    for made in opened.made.queries:
        query = opened.query(made.name)
        # Of a committed law nothing is known to compare with.
        if isinstance(query, PlainQuery) and query.counts_rows and made.mechanism is not None:
            counts[made.name] = query
    pairs = []
    for total, parts in permutations(counts, 2):
        if is_total_of(counts[total], counts[parts]):
            pairs.append((total, parts))
    # A total of many counts is read once, and a count of no pair is not.
    released = {}
    for name in dict.fromkeys(chain.from_iterable(pairs)):
        released[name] = _released(opened, counts[name], made_of[name])
    for total, parts in pairs:
        yield from _judged(residuals(released[total], released[parts]))


def _released(opened: PublicRelease, query: PlainQuery, made: forms.MadeQuery) -> Released:
    mechanism = opened.mechanism(made)
    if not isinstance(mechanism, Mechanism):
        raise VerificationError(RECORD, made.name, "noise on a statistic", "noise on the count")
    table = opened.table(made.name)
    columns = [list(map(str, table.column(name).to_pylist())) for name in query.by]
    keys = tuple(zip(*columns, strict=True)) if columns else ((),)
    return Released(query, mechanism, keys, numbers_of(table.column("answer_code")))


def _judged(found: Residuals | None) -> Iterator[Finding]:
    if found is None:
        return
    if found.chance < CHANCE:
        raise VerificationError(
            "data", "residuals", str(found), "as much noise as the mechanisms say"
        )
    yield _found("residuals", str(found))


# ---- Tabulations ---------------------------------------------------------------------------------


def _tabulation(opened: PublicRelease, place: int, *, has_noise: bool) -> Iterator[Finding]:
    """What follows from the noisy counts of a tabulation."""
    made, tabulation = opened.tabulations[place], _open(opened, place)
    counts: Counts = {}
    noises: Noises = {}
    for entry in made.measured:
        table = tabulation.table(entry.level, entry.margin)
        noises[table.table] = opened.noise(entry)
        values = numbers_of(opened.table(entry.name).column("measured"))
        counts[table.table] = values.reshape(-1, table.margin.cells)
    yield _numbers(opened, made, tabulation, counts, noises)
    if has_noise:
        yield from _residuals_of_counts(made, tabulation, counts, noises)


def _numbers(
    opened: PublicRelease,
    made: forms.MadeTabulation,
    tabulation: OpenTabulation,
    counts: Counts,
    noises: Noises,
) -> Finding:
    """All published numbers follow from the noisy counts."""
    from release.tabulations.files.layout import level_table
    from release.tabulations.files.numbers import tabulated

    found = tabulated(tabulation, counts, noises, tabulation.half_widths(noises))
    for numbers, level in zip(found.levels, made.levels, strict=True):
        expected, stated = level_table(tabulation, numbers), opened.table(level.file)
        for column in expected.column_names:
            if not stated.column(column).equals(expected.column(column)):
                raise VerificationError(
                    f"data/{level.file}.parquet",
                    column,
                    "other numbers",
                    "what follows from the noisy counts",
                )
    return _found("tables", "all numbers follow from the noisy counts", made.name)


def _residuals_of_counts(
    made: forms.MadeTabulation, tabulation: OpenTabulation, counts: Counts, noises: Noises
) -> Iterator[Finding]:
    """Noisy totals are hardly ever the sums of noisy parts."""
    from release.tabulations.measure.table_count import CENTER

    likeliest = {}
    for table, noise in noises.items():
        likeliest[table] = IntegerMechanism(noise, 1 - 2 * CENTER, (), ()).concentration()
    for total, parts in permutations(made.measured, 2):
        upper, lower = (tabulation.table(own.level, own.margin) for own in (total, parts))
        if upper.level > lower.level or not lower.margin.refines(upper.margin):
            continue
        sums = coarsened(counts[lower.table], lower.margin, upper.margin)
        for depth in range(lower.level, upper.level, -1):
            sums = tabulation.named.areas.summed_up(depth, sums)
        likely = likeliest[upper.table] * likeliest[lower.table]
        differences = (counts[upper.table] - sums).reshape(-1)
        yield from _judged(no_residuals((total.name, parts.name), differences, likely))


def _open(opened: PublicRelease, place: int) -> OpenTabulation:
    """A tabulation with its areas and declared numbers, from the released files."""
    from release.tabulations.spec.areas import nested
    from release.tabulations.spec.open import with_areas, with_facts

    declared, made = opened.spec.tabulations[place], opened.tabulations[place]
    areas = (opened.keys().areas or {})[declared.name]
    try:
        named = nested(KEYS, areas.levels, [tuple(row) for row in areas.rows])
        tabulation = with_areas(opened.spec, place, named)
    except SpecError as error:
        raise VerificationError(KEYS, "areas", str(error), "areas that nest") from error
    facts: dict[Table, Codes] = {}
    for table in tabulation.declared_tables:
        if made.declared is None:
            raise VerificationError(RECORD, "declared", "nothing", "declared numbers")
        numbers = numbers_of(opened.table(made.declared).column("count"))
        facts[table.table] = numbers.reshape(-1, table.margin.cells)
    return with_facts(tabulation, facts)
