"""A summary of a release from its public folder, for terminals and dashboards."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from release.bundle.answer_units import CODES, AnswerUnit, answer_unit
from release.bundle.read import read_any_mechanism, read_file, read_record
from release.errors import SpecError, VerificationError
from release.exact.numbers import format_exact
from release.queries.read import parse_spec
from release.records.mechanisms import MechanismRecord
from release.records.models import Accuracy, MechanismFile, QueryRecord, ReleaseRecord
from release.records.tabulations import TabulationRecord
from release.spec.model import Spec

IN_AUDITOR_BUNDLE = "in the auditor bundle"
"""Stands for the error where the mechanism depends on the table."""

IN_REPORT = "by its statistic, see the report"
"""Stands for the error where it depends on the cell, for which the report has a sentence."""

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

    @property
    def promise(self) -> str:
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
        return IN_REPORT if is_public else IN_AUDITOR_BUNDLE

    @property
    def error(self) -> str:
        """The mean absolute error of an answer, in its own unit."""
        if self.accuracy is None:
            return self._unstated
        domain = self.record.domain
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
        return sum(len(entry.margins) for entry in self.record.levels)

    @property
    def cells(self) -> int:
        """The number of published numbers."""
        return sum(entry.output.rows for entry in self.record.levels)

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
        costs = [entry.charge for entry in self.record.measured]
        epsilon = sum((Fraction(cost.epsilon) for cost in costs), Fraction(0))
        delta = sum((Fraction(cost.delta) for cost in costs), Fraction(0))
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
        return {"tabulations": [one.record.model_dump(mode="json") for one in self.tabulations]}


def summarise(public: Path) -> Summary:
    """Read the summary of the release in ``public``.

    Raises:
        VerificationError: a file is missing, or is not of its declared shape.
    """
    record = read_record(ReleaseRecord, "release.json", public / "release.json")
    spec, queries = _spec(public), []
    units = {query.name: answer_unit(query) for query in spec.released}
    for query in record.queries:
        queries.append(QuerySummary(query, _accuracy(public, query), units.get(query.name, CODES)))
    counted = {one.name: one.units or "rows" for one in spec.tabulations}
    tabulations = []
    for tabulation in record.tabulations or ():
        named = counted.get(tabulation.name, "rows")
        tabulations.append(TabulationSummary(tabulation, named))
    return Summary(record, tuple(queries), public / "report.html", tuple(tabulations))


def _spec(public: Path) -> Spec:
    try:
        return parse_spec(read_file("spec.yaml", public / "spec.yaml"))
    except SpecError as error:
        raise VerificationError("spec.yaml", "schema", str(error), "a valid spec") from error


def _accuracy(public: Path, query: QueryRecord) -> Accuracy | None:
    # A name with a path in it is none that a spec allows.
    if not isinstance(query.mechanism_file, MechanismFile) or Path(query.name).name != query.name:
        return None
    file = query.mechanism_file.path
    mechanism = read_any_mechanism(file, public / file)
    return mechanism.accuracy if isinstance(mechanism, MechanismRecord) else None
