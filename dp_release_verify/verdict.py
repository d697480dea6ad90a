"""What a verification came to: findings, a status, six lines for people, and JSON for machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["proved", "tested", "trust", "missing"]

VERIFIED, REFUSED, WRONG_CALL, UNSIGNED, OWN_FAULT, NOT_PROVED = 0, 1, 2, 3, 4, 5

_HEADS = {
    VERIFIED: "VERIFIED",
    REFUSED: "REFUSED",
    UNSIGNED: "VERIFIED, unsigned",
    OWN_FAULT: "NO VERDICT: the verifier itself failed",
    NOT_PROVED: "NOT PROVED",
}


def worst(statuses: list[int]) -> int:
    """The status of several verdicts: a refusal before a fault, before what is not proved."""
    for status in (REFUSED, OWN_FAULT, NOT_PROVED, UNSIGNED):
        if status in statuses:
            return status
    return VERIFIED


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        check: its name in the list of checks.
        level: how sure it is.
        about: the question, file or key that it is about; empty for the release.
        sentence: what was found, for people.
        found, needed: of a refusal, what stands there and what would be right.
        is_guarantee: of what is missing, whether a guarantee is not proved for lack of it.
    """

    check: str
    level: Level
    about: str
    sentence: str
    found: str = ""
    needed: str = ""
    is_guarantee: bool = False


@dataclass
class Verdict:
    """What a verification came to.

    Attributes:
        release_id: the name of the release, as far as it could be read.
        status: the exit status.
        questions: one line for each question that was answered.
        protects: whom, and by how much.
        not_said: the texts about the release that are left out, such as its license.
        findings: one for each check, and for what rests on trust or is missing.
        refusal: the check that failed.
    """

    release_id: str = ""
    status: int = OWN_FAULT
    questions: list[str] = field(default_factory=list)
    protects: str = ""
    not_said: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    refusal: Finding | None = None

    def __bool__(self) -> bool:
        """Whether it is verified: everything that was required was there, and held."""
        return self.status == VERIFIED

    def at(self, level: Level) -> list[Finding]:
        """The findings of a level."""
        return [finding for finding in self.findings if finding.level == level]

    @property
    def proved(self) -> list[Finding]:
        """What was computed again in exact arithmetic."""
        return self.at("proved")

    @property
    def tested(self) -> list[Finding]:
        """What was compared."""
        return self.at("tested")

    @property
    def on_trust(self) -> list[Finding]:
        """What no file can show."""
        return self.at("trust")

    @property
    def missing(self) -> list[Finding]:
        """What could not be looked at."""
        return self.at("missing")

    @property
    def not_proved(self) -> list[str]:
        """The questions whose guarantee is not proved."""
        return [finding.about for finding in self.missing if finding.is_guarantee]

    @property
    def head(self) -> str:
        """The verdict in a word or two; with the questions whose guarantee is not proved."""
        if self.status == NOT_PROVED:
            return f"{_HEADS[self.status]}: {', '.join(self.not_proved)}"
        return _HEADS[self.status]

    def lines(self, *, verbose: bool = False) -> list[str]:
        """The verdict for people."""
        found = [f"{self.release_id or '(no name)'}   {self.head}   exit {self.status}"]
        if self.refusal is not None:
            found.append(f"  {self.refusal.check}: {self.refusal.sentence}")
        for place, question in enumerate(self.questions):
            found.append(f"  {'' if place else 'question':<11} {question}")
        if self.protects:
            found.append(f"  {'protects':<11} {self.protects}")
        if self.not_said:
            found.append(f"  {'not said':<11} {', '.join(self.not_said)}")
        if verbose:
            for level in ("proved", "tested", "trust", "missing"):
                word = "on trust" if level == "trust" else level
                for finding in self.at(level):
                    about = f"{finding.about}: " if finding.about else ""
                    found.append(f"  {word:<11} {about}{finding.sentence}  [{finding.check}]")
            return [escaped(line) for line in found]
        if self.refusal is None:
            about = _counted([finding.check for finding in self.proved])
            proved, tested = len(self.proved), len(self.tested)
            found.append(f"  proved {proved:<4} {about}; tested {tested}, none failed")
            trusted = [finding.sentence for finding in self.on_trust]
            found.append(f"  on trust {len(trusted):<2} {trusted[0]}, … (-v)" if trusted else "")
        for finding in self.missing:
            about = f"{finding.about}: " if finding.about else ""
            found.append(f"  missing     {about}{finding.sentence}")
        return [escaped(line) for line in found if line]

    def _repr_html_(self) -> str:
        """What a notebook shows: the lines for people."""
        return f"<pre>{escape(chr(10).join(self.lines()))}</pre>"

    def plain(self) -> dict[str, Any]:
        """The verdict as JSON has it."""
        return {
            "release_id": self.release_id,
            "status": self.status,
            "verdict": _HEADS[self.status],
            "questions": self.questions,
            "protects": self.protects,
            "not_said": self.not_said,
            "not_proved": self.not_proved,
            "refusal": None if self.refusal is None else asdict(self.refusal),
            "findings": [asdict(finding) for finding in self.findings],
        }


_NOUNS = {
    "mechanism.guarantee": ("law", "laws"),
    "mechanism.opened": ("opened law", "opened laws"),
    "charges.query": ("charge", "charges"),
    "charges.total": ("total", "totals"),
    "tabulation.least": ("tabulation", "tabulations"),
}


def _counted(names: list[str]) -> str:
    """The proved checks that a reader asks for first, with how many there are of each."""
    # One finding stands for all conditions, so it is no number of them.
    parts = ["conditions"] if "asked.one_row" in names else []
    for name, (one, many) in _NOUNS.items():
        count = names.count(name)
        if count:
            parts.append(f"{count} {one if count == 1 else many}")
    return ", ".join(parts) or "nothing"


def escaped(text: str) -> str:
    """A text without control characters, which could look like another one on a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
