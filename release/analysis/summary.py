"""A summary of a release from its public folder, for terminals and dashboards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dp_release_verify import forms
from release.bundle.answer_units import CODES, AnswerUnit, answer_unit
from release.bundle.cautions import cautions
from release.bundle.opened import PublicRelease, open_public
from release.bundle.statements import Accuracy, accuracy_of, adjacency_text, guarantee_kind, limits
from release.exact.domain import Topology
from release.exact.mechanism import Mechanism
from release.exact.numbers import format_exact
from release.exact.statistics.mechanism import StatisticMechanism
from release.queries.on_statistic import OnStatisticQuery
from release.spec.query import Query

if TYPE_CHECKING:
    import pandas as pd

IN_AUDITORS_FOLDER = "in the auditor's folder"
"""Stands for the error where the mechanism depends on the table."""

BY_STATISTIC = "by its statistic"
"""Stands for the error where it depends on the cell, for which there is a sentence."""


@dataclass(frozen=True)
class QuerySummary:
    """One query: what was made of it, and how near its answers are where that is public."""

    query: Query
    made: forms.MadeQuery
    family: str
    accuracy: Accuracy | None
    unit: AnswerUnit
    nearness: str | None = None
    """How near its answers are, as a sentence, where the noise is on a statistic."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.made.name

    @property
    def claim(self) -> str:
        """The guarantee of one cell."""
        made = self.made
        epsilon, delta = format_exact(made.epsilon), format_exact(made.delta)
        return f"{made.definition}, ε {epsilon}, δ {delta}"

    @property
    def charge(self) -> str:
        """What the query costs, all its cells together."""
        charge = self.made.charge
        return f"ε {format_exact(charge.epsilon)}, δ {format_exact(charge.delta)}"

    @property
    def _unstated(self) -> str:
        return IN_AUDITORS_FOLDER if self.made.mechanism is None else BY_STATISTIC

    @property
    def error(self) -> str:
        """The mean absolute error of an answer, in its own unit."""
        if self.accuracy is None:
            return self._unstated
        # One part without distances leaves a tuple without a mean distance.
        if Topology.NOMINAL in self.query.answers.topologies:
            return "answers without an order"
        return f"{self.unit.amount(Fraction(self.accuracy.mean_absolute))} on average"

    @property
    def exact(self) -> str:
        """How often the published answer is the true one."""
        if self.accuracy is None:
            return self._unstated
        return f"{float(self.accuracy.p_exact):.1%}"

    def plain(self) -> dict[str, Any]:
        """As plain data, numbers as the exact text of the files."""
        made = forms.plain(self.made)
        named = {"query": made.pop("name"), **made, "family": self.family}
        named["guarantee_kind"] = guarantee_kind((self.query,))
        named["accuracy"] = None if self.accuracy is None else asdict(self.accuracy)
        return named


@dataclass(frozen=True)
class TabulationSummary:
    """One tabulation: what was made of it, and what it counts.

    ``areas_of`` is how many areas each level has, and ``cells`` how many numbers are published.
    """

    made: forms.MadeTabulation
    asked: forms.Tabulation
    units: str
    areas_of: dict[str, int]
    cells: int
    family: str
    mean_error: float

    @property
    def name(self) -> str:
        """Its name."""
        return self.made.name

    @property
    def tables(self) -> int:
        """The number of published tables."""
        # Of each level: a margin on two levels is two tables.
        return sum(len(margins) for margins in self.asked.publish.values())

    @property
    def areas(self) -> str:
        """The number of areas of each level."""
        return ", ".join(f"{level} {number}" for level, number in self.areas_of.items())

    @property
    def noise(self) -> str:
        """The noise, and the number of tables that were measured with it."""
        count = len(self.made.measured)
        return f"{self.family} on {count} {'table' if count == 1 else 'tables'}"

    @property
    def charge(self) -> str:
        """What the measured tables cost, added up; exact composition finds no more."""
        epsilon = sum((table.charge.epsilon for table in self.made.measured), Fraction(0))
        delta = sum((table.charge.delta for table in self.made.measured), Fraction(0))
        return f"at most ε {format_exact(epsilon)}, δ {format_exact(delta)}"

    @property
    def error(self) -> str:
        """The mean standard error of a published number."""
        return f"{self.mean_error:.4g} {self.units} on average"

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        made: dict[str, Any] = forms.plain(self.made)
        return {**made, "noise": self.family, "mean_standard_error": self.mean_error}


@dataclass(frozen=True)
class Summary:
    """A release as its public folder describes it; no signature is checked."""

    opened: PublicRelease
    queries: tuple[QuerySummary, ...]
    report: Path
    tabulations: tuple[TabulationSummary, ...] = ()
    cautions: tuple[str, ...] = ()
    """What to know of the guarantee and the totals (:mod:`release.bundle.cautions`)."""

    @property
    def about(self) -> forms.About:
        """What the release is called, and who publishes it."""
        return self.opened.record.asked.release

    @property
    def scope(self) -> str:
        """The account of the ledger that pays."""
        return self.opened.spec.budget.scope

    @property
    def kind(self) -> str:
        """Whether the guarantee is for every table of the spec, or for this one."""
        return guarantee_kind(self.opened.spec.released)

    @property
    def guarantee(self) -> dict[str, str]:
        """The guarantee of the whole release, numbers as exact texts."""
        total = self.opened.made.total
        return {
            "definition": total.definition,
            "epsilon": format_exact(total.epsilon),
            "delta": format_exact(total.delta),
            "kind": self.kind,
        }

    @property
    def adjacency_text(self) -> str:
        """Whom the guarantee protects, in words."""
        return adjacency_text(self.opened.spec.privacy)

    def plain(self) -> dict[str, Any]:
        """As plain data, numbers as the exact text of the files."""
        about, record = self.about, self.opened.record
        plain: dict[str, Any] = {
            "release_id": about.id,
            "kind": record.kind,
            "title": about.title,
            "period": about.period,
            "published": record.published,
            "curator": about.curator,
            "guarantee": self.guarantee,
            "limits": limits(instance=self.kind != "worst-case"),
            "adjacency_text": self.adjacency_text,
            "queries": [query.plain() for query in self.queries],
            "report": str(self.report),
        }
        if self.tabulations:
            plain["tabulations"] = [own.plain() for own in self.tabulations]
        return plain


def summarise(public: Path) -> Summary:
    """Read the summary of the release in ``public``.

    Raises:
        VerificationError: a file is missing, or is not of its declared shape.
    """
    opened = open_public(public)
    total = opened.made.total
    return Summary(
        opened,
        tuple(_query(opened, made) for made in opened.made.queries),
        public / "report.html",
        _tabulations(opened),
        cautions(opened.spec, total.epsilon, total.delta),
    )


def _query(opened: PublicRelease, made: forms.MadeQuery) -> QuerySummary:
    query, mechanism = opened.query(made.name), opened.mechanism(made)
    accuracy, near = None, None
    if isinstance(mechanism, Mechanism):
        accuracy = accuracy_of(mechanism, query.answers)
    if isinstance(mechanism, StatisticMechanism) and isinstance(query, OnStatisticQuery):
        near = mechanism.nearness(query.wording).sentence
    family = "committed" if mechanism is None else mechanism.family
    unit = answer_unit(query) if mechanism is not None else CODES
    return QuerySummary(query, made, family, accuracy, unit, near)


def _tabulations(opened: PublicRelease) -> tuple[TabulationSummary, ...]:
    """The tabulations; the file of every level is read."""
    from release.tabulations.frames import list_tables

    if not opened.tabulations:
        return ()
    tables = list_tables(opened)
    found = []
    for place, made in enumerate(opened.tabulations):
        found.append(_tabulation(opened, place, tables[tables["tabulation"] == made.name]))
    return tuple(found)


def _tabulation(opened: PublicRelease, place: int, own: pd.DataFrame) -> TabulationSummary:
    """A tabulation, with the mean standard error of its tables, as its spec weighs them.

    ``own`` lists its tables (:func:`release.tabulations.frames.list_tables`).
    """
    from release.tabulations.files.entries import family_of

    made, declared = opened.tabulations[place], opened.spec.tabulations[place]
    asked = (opened.record.asked.tabulations or [])[place]
    weights = [float(declared.importance.get(level, Fraction(1))) for level in own["level"]]
    error = float((own["mean_standard_error"] * weights).sum() / sum(weights))
    return TabulationSummary(
        made,
        asked,
        declared.units or "rows",
        dict(zip(own["level"], own["areas"].tolist(), strict=True)),
        int(own["cells"].sum()),
        family_of(list(map(opened.noise, made.measured))),
        error,
    )
