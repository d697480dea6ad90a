"""Judges the entries of ``acceptance`` from mechanisms that follow from the spec alone.

No entry looks at a table: a refusal that depended on a row would tell of it. Plan, run and verifier
judge alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from release.bundle.answer_units import CODES, answer_unit
from release.bundle.statements import accuracy_of
from release.exact.accuracy import radius_of
from release.exact.domain import AnswerDomain
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.losses import LossName
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_exact
from release.exact.statistics.mechanism import StatisticMechanism
from release.queries.on_statistic import OnStatisticQuery
from release.spec.load import SpecFile
from release.spec.losses import MEAN_ERROR, P95, Acceptance, acceptance_of, loss_on
from release.spec.named import by_name
from release.spec.query import Query
from release.tabulations.measure.table_count import TableCount

AnyMechanism: TypeAlias = Mechanism | StatisticMechanism

_ROUNDING = Fraction(1, 10**9)
"""The share by which a figure in floats may be above its cap."""


@dataclass(frozen=True)
class Judged:
    """An entry, the figure that was found for it, and the unit of that."""

    entry: Acceptance
    found: Fraction
    unit: str

    @property
    def is_met(self) -> bool:
        """Whether the figure keeps its cap."""
        # Some figures are floats: a rounding must not refuse what meets its cap exactly.
        return self.found <= self.entry.cap * (1 + _ROUNDING)

    @property
    def sentence(self) -> str:
        """What was found, and whether that is enough."""
        figure = f"{float(self.found):.6g} {self.unit}".strip()
        return f"{self.entry.text}: {'met' if self.is_met else 'missed'}, {figure}"

    @property
    def refusal(self) -> str:
        """Why a run is refused, in one line."""
        return (
            f"{self.entry.place}: {self.sentence}; raise epsilon, ask for fewer cells, or raise "
            f"the cap of {format_exact(self.entry.cap)}"
        )


def judged(spec_file: SpecFile, mechanisms: Mapping[str, AnyMechanism]) -> tuple[Judged, ...]:
    """Each entry of the spec with its figure.

    ``mechanisms`` are those of the queries and measured tables that the entries name, by name.
    """
    queries = by_name(spec_file.spec.charged)
    results = []
    for entry in acceptance_of(spec_file.spec):
        if entry.level is None:
            results.append(_of_query(entry, queries[entry.name], mechanisms[entry.name]))
        else:
            results.append(_of_table(spec_file, entry, mechanisms))
    return tuple(results)


def _of_query(entry: Acceptance, query: Query, mechanism: AnyMechanism) -> Judged:
    if isinstance(mechanism, StatisticMechanism):
        if not isinstance(query, OnStatisticQuery):
            raise TypeError(f"{query.name} has no statistic")
        near = mechanism.nearness(query.wording)
        return Judged(entry, Fraction(near.near), f"({near.near_of})")
    domain = query.answers
    if entry.figure == P95 and isinstance(domain, AnswerDomain):
        unit = answer_unit(query)
        return Judged(entry, Fraction((radius_of(mechanism, domain) or 0) * unit.scale), unit.word)
    if entry.figure == MEAN_ERROR:
        unit, mean = answer_unit(query), Fraction(accuracy_of(mechanism, domain).mean_absolute)
        return Judged(entry, mean * unit.scale, unit.word)
    expected = mechanism.expected_loss(loss_on(LossName(entry.figure), domain), domain)
    # An error rate is a share of answers, and has no unit.
    return Judged(entry, expected, "" if entry.figure == LossName.ERROR_RATE.value else CODES.word)


def _of_table(
    spec_file: SpecFile, entry: Acceptance, mechanisms: Mapping[str, AnyMechanism]
) -> Judged:
    opened = spec_file.tabulation(entry.name)
    noises = {}
    for query in spec_file.spec.measured:
        if isinstance(query, TableCount) and query.tabulation == opened.name:
            mechanism = mechanisms[query.name]
            if not isinstance(mechanism, IntegerMechanism):
                raise TypeError(f"{query.name} has no noise on the integers")
            noises[opened.table(query.level, query.margin).table] = mechanism.noise
    table = opened.table(entry.level or "", entry.margin).table
    margin = opened.half_widths(noises)[table].mean()
    return Judged(entry, Fraction(margin), opened.declared.units or "units")
