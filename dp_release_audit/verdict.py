"""What an audit says: what was tried, how near the losses come to the claim, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from release.exact.numbers import format_exact


@dataclass(frozen=True)
class Finding:
    """An error that was found: which check, of which query, what it is, and what shows it."""

    check: str
    query: str
    text: str
    shown: tuple[str, ...] = ()


@dataclass
class Tried:
    """How much was tried."""

    tables: int = 0
    left_out: int = 0
    pairs: int = 0
    laws: int = 0
    outcomes: int = 0
    runs: int = 0
    words: int = 0


@dataclass
class Verdict:
    """The result of an audit.

    ``attained`` is the largest privacy loss of two neighboring tables at a likely outcome, and
    ``least_delta`` the largest δ that two of them have for certain at the claimed ε. ``reasons``
    are those for which the noise of a query was not measured, or not in every cell.
    """

    release_id: str
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    attained: float = 0.0
    least_delta: float = 0.0
    of_query: dict[str, tuple[Fraction, float]] = field(default_factory=dict)
    tried: Tried = field(default_factory=Tried)
    findings: list[Finding] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_held(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def unmeasured(self) -> list[str]:
        """The queries of which no two tables that were compared show a loss, or not all do."""
        names = [name for name, (_, attained) in self.of_query.items() if not attained]
        return [*names, *(name for name in self.reasons if name not in names)]

    @property
    def is_measured(self) -> bool:
        """Whether the noise of some query was measured."""
        return any(attained for _, attained in self.of_query.values())

    @property
    def exit_status(self) -> int:
        """1 if something was found, 3 if something could not be measured, 0 if all was held.

        A query whose answers no table changes counts where every one is of that kind.
        """
        if not self.is_held:
            return 1
        return 3 if self.reasons or not self.is_measured else 0

    def add(self, finding: Finding) -> None:
        """Keep a finding, the first of each check and query."""
        if all((own.check, own.query) != (finding.check, finding.query) for own in self.findings):
            self.findings.append(finding)

    def leave_unmeasured(self, query: str, reason: str) -> None:
        """Keep why the noise of a query was not measured, the first reason."""
        self.reasons.setdefault(query, reason)

    def note(self, text: str) -> None:
        """Keep a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def lines(self) -> list[str]:
        """The verdict for people."""
        tried = self.tried
        lines = [
            f"tried: {tried.tables} tables ({tried.left_out} more were left out), {tried.pairs} "
            f"pairs of neighbors, {tried.runs} whole runs",
            f"measured: {tried.laws} distributions with {tried.outcomes} outcomes, from the code "
            f"that draws; {tried.words} words changed one by one",
            f"claimed: ε {format_exact(self.epsilon)}, δ {format_exact(self.delta)}; attained: ε "
            f"{self.attained:.4f}, and δ {self.least_delta:.3g} at the claimed ε",
        ]
        for name, (claimed, attained) in self.of_query.items():
            near = "" if attained >= 0.9 * float(claimed) else ": no pair comes near"
            if not attained:
                near = ": not measured"
            lines.append(
                f"  {name}: claimed ε {format_exact(claimed)}, attained {attained:.4f}{near}"
            )
        lines += [f"note: {note}" for note in self.notes]
        for finding in self.findings:
            place = f" of {finding.query}" if finding.query else ""
            lines.append(f"found: {finding.check}{place}: {finding.text}")
            lines += [f"    {line}" for line in finding.shown]
        for name, reason in self.reasons.items():
            lines.append(
                f"not measured: {name}: {reason}, which is more than an audit tries: it says "
                f"nothing of this noise, and of the release what the rest of it loses; audit the "
                f"query with a larger epsilon, a narrower clamp or domain, or fewer rows of a unit"
            )
        unchanged = [name for name in self.unmeasured if name not in self.reasons]
        if unchanged:
            lines.append(
                f"not measured: {', '.join(unchanged)}: no two of the tables that were "
                f"compared differ in its answers, so that the audit says nothing of its noise; try "
                f"more with --tables, or audit a spec without its where"
            )
        word = "held" if self.is_held else "not held"
        nothing = ""
        if self.is_held and not self.is_measured:
            nothing = "; nothing was measured"
        elif self.is_held and self.reasons:
            nothing = f"; not measured: {', '.join(self.reasons)}"
        lines.append(f"{self.release_id}: {word} on all that was tried{nothing}")
        return lines

    def plain(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "release_id": self.release_id,
            "held": self.is_held,
            "unmeasured": self.unmeasured,
            "reasons": self.reasons,
            "claimed": {"epsilon": format_exact(self.epsilon), "delta": format_exact(self.delta)},
            "attained": {"epsilon": self.attained, "delta": self.least_delta},
            "queries": {
                name: {"claimed": format_exact(claimed), "attained": attained}
                for name, (claimed, attained) in self.of_query.items()
            },
            "tried": vars(self.tried),
            "findings": [
                vars(finding) | {"shown": list(finding.shown)} for finding in self.findings
            ],
            "notes": self.notes,
        }
