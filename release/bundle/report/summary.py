"""A summary of a release from its public folder, for terminals and dashboards."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from release.bundle.answer_units import CODES, AnswerUnit, answer_unit
from release.bundle.cautions import cautions
from release.bundle.read import read_any_mechanism, read_file, read_record
from release.errors import SpecError, VerificationError
from release.exact.numbers import format_exact
from release.queries.nearness import nearness_of
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import parse_spec
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import Accuracy, MechanismFile, QueryRecord, ReleaseRecord
from release.records.statistics import StatisticRecord
from release.records.tabulations import TabulationRecord
from release.spec.model import Spec

IN_AUDITOR_BUNDLE = "in the auditor bundle"
"""Stands for the error where the mechanism depends on the table."""

BY_STATISTIC = "by its statistic"
"""Stands for the error where it depends on the cell, for which there is a sentence."""

_OF_RELEASE = {
    "release_id", "kind", "title", "period", "published", "curator", "guarantee", "limits"
}  # fmt: skip
_OF_QUERY = {
    "cells", "definition", "epsilon", "delta", "guarantee_kind", "charge", "mechanism"
}  # fmt: skip


@dataclass(frozen=True)
class QuerySummary:
    """One query: its record, and how near its answers are where that is public."""

    record: QueryRecord
    accuracy: Accuracy | None
    unit: AnswerUnit
    nearness: str | None = None
    """How near its answers are, as a sentence, where the noise is on a statistic."""

    @property
    def claim(self) -> str:
        """The guarantee of one cell."""
        record = self.record
        return f"{record.definition}, ε {record.epsilon}, δ {record.delta}"

    @property
    def charge(self) -> str:
        """What the query costs, all its cells together."""
        return f"ε {self.record.charge.epsilon}, δ {self.record.charge.delta}"

    @property
    def _unstated(self) -> str:
        is_public = isinstance(self.record.mechanism_file, MechanismFile)
        return BY_STATISTIC if is_public else IN_AUDITOR_BUNDLE

    @property
    def error(self) -> str:
        """The mean absolute error of an answer, in its own unit."""
        if self.accuracy is None:
            return self._unstated
        domain = self.record.domain
        # One part without distances leaves a tuple without a mean distance.
        if any("nominal" in part for part in domain.get("tuple", [domain])):
            return "answers without an order"
        return f"{self.unit.amount(Fraction(self.accuracy.mean_absolute))} on average"

    @property
    def exact(self) -> str:
        """How often the published answer is the true one."""
        if self.accuracy is None:
            return self._unstated
        return f"{float(self.accuracy.p_exact):.1%}"


@dataclass(frozen=True)
class TabulationSummary:
    """One tabulation: its record, and what it counts."""

    record: TabulationRecord
    units: str

    @property
    def tables(self) -> int:
        """The number of published tables."""
        # Of each level: a margin on two levels is two tables.
        return sum(len(entry.margins) for entry in self.record.levels)

    @property
    def cells(self) -> int:
        """The number of published numbers."""
        return self.record.cells

    @property
    def areas(self) -> str:
        """The number of areas of each level."""
        return ", ".join(f"{entry.level} {entry.areas}" for entry in self.record.levels)

    @property
    def noise(self) -> str:
        """The noise, and the number of tables that were measured with it."""
        count = len(self.record.measured)
        return f"{self.record.noise} on {count} {'table' if count == 1 else 'tables'}"

    @property
    def charge(self) -> str:
        """What the measured tables cost, added up; exact composition finds no more."""
        epsilon = delta = Fraction(0)
        for entry in self.record.measured:
            epsilon += Fraction(entry.charge.epsilon)
            delta += Fraction(entry.charge.delta)
        return f"at most ε {format_exact(epsilon)}, δ {format_exact(delta)}"

    @property
    def error(self) -> str:
        """The mean standard error of a published number."""
        return f"{float(Fraction(self.record.objective)):.4g} {self.units} on average"


@dataclass(frozen=True)
class Summary:
    """A release as its public folder describes it; no signature or sum is checked."""

    record: ReleaseRecord
    queries: tuple[QuerySummary, ...]
    report: Path
    tabulations: tuple[TabulationSummary, ...] = ()
    scope: str = ""
    """The account of the ledger that pays."""
    cautions: tuple[str, ...] = ()
    """What to know of the guarantee and the totals (:mod:`release.bundle.cautions`)."""

    def plain(self) -> dict[str, Any]:
        """As plain data, numbers as the exact text of the files."""
        queries = []
        for query in self.queries:
            entry: dict[str, Any] = {"query": query.record.name}
            entry |= query.record.model_dump(mode="json", include=_OF_QUERY)
            entry["accuracy"] = query.accuracy and query.accuracy.model_dump(mode="json")
            queries.append(entry)
        return {
            **self.record.model_dump(mode="json", include=_OF_RELEASE),
            "adjacency_text": self.record.privacy.adjacency_text,
            "queries": queries,
            **self._plain_tabulations(),
            "report": str(self.report),
        }

    def _plain_tabulations(self) -> dict[str, Any]:
        """The tabulations; nothing where there is none, as in ``release.json``."""
        if not self.tabulations:
            return {}
        plain = [tabulation.record.model_dump(mode="json") for tabulation in self.tabulations]
        return {"tabulations": plain}


def summarise(public: Path) -> Summary:
    """Read the summary of the release in ``public``.

    Raises:
        VerificationError: a file is missing, or is not of its declared shape.
    """
    record = read_record(ReleaseRecord, "release.json", public / "release.json")
    spec, queries = _spec(public), []
    units = {query.name: answer_unit(query) for query in spec.released}
    for query in record.queries:
        record_of_it, unit = _mechanism(public, query), units.get(query.name, CODES)
        accuracy = record_of_it.accuracy if isinstance(record_of_it, MechanismRecord) else None
        near = _nearness(spec, query, record_of_it)
        queries.append(QuerySummary(query, accuracy, unit, near))
    counted = {declared.name: declared.units or "rows" for declared in spec.tabulations}
    tabulations = []
    for tabulation in record.tabulations or ():
        named = counted.get(tabulation.name, "rows")
        tabulations.append(TabulationSummary(tabulation, named))
    report = public / "report.html"
    charged = Fraction(record.guarantee.epsilon), Fraction(record.guarantee.delta)
    return Summary(
        record,
        tuple(queries),
        report,
        tuple(tabulations),
        spec.budget.scope,
        cautions(spec, *charged),
    )


def _spec(public: Path) -> Spec:
    try:
        return parse_spec(read_file("spec.yaml", public / "spec.yaml"))
    except SpecError as error:
        raise VerificationError("spec.yaml", "schema", str(error), "a valid spec") from error


def _mechanism(public: Path, query: QueryRecord) -> AnyMechanismRecord | None:
    """The mechanism, where it is public."""
    # A name with a path in it is none that a spec allows.
    if not isinstance(query.mechanism_file, MechanismFile) or Path(query.name).name != query.name:
        return None
    file = query.mechanism_file.path
    return read_any_mechanism(file, public / file)


def _nearness(spec: Spec, query: QueryRecord, record: AnyMechanismRecord | None) -> str | None:
    """How near the answers of noise on a statistic are, as a sentence."""
    if not isinstance(record, StatisticRecord):
        return None
    for declared in spec.released:
        if declared.name == query.name and isinstance(declared, OnStatisticQuery):
            return nearness_of(declared, record.to_mechanism()).sentence
    # Nothing is verified here: a record and a spec that do not fit have no sentence.
    return None
