"""What a verdict can say: a finding for each check, in the order of the list.

Every verdict has at least one line of every check. What was not looked at is a line too, with the
reason; so nothing is passed over in silence, and a program can ask for a check by its identifier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from release.errors import VerificationError
from release.verification.checks import CHECKS, Level


@dataclass(frozen=True)
class Finding:
    """One line of a verdict: what was found, and what it was held against, where both are short."""

    identifier: str
    level: Level
    text: str
    found: str = ""
    expected: str = ""

    def __post_init__(self) -> None:
        """A finding outside the list would be one that no page explains."""
        if self.identifier not in CHECKS:
            raise ValueError(f"{self.identifier} is not in the list of checks")


def made(identifier: str, text: str, actual: str = "", expected: str = "") -> Finding:
    """A finding at the level of its check."""
    return Finding(identifier, CHECKS[identifier].level, text, actual, expected)


def completed(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in the order of the list, with a line for each check that was left out."""
    # From the list, not from the findings: a check that was forgotten shows as left out.
    by_check: dict[str, list[Finding]] = {identifier: [] for identifier in CHECKS}
    for finding in findings:
        by_check[finding.identifier].append(finding)
    lines = []
    for identifier, own in by_check.items():
        check = CHECKS[identifier]
        text = f"{check.meaning}: {check.absent or 'not looked at'}"
        lines += own or [Finding(identifier, Level.LEFT_OUT, text)]
    return tuple(lines)


@contextmanager
def checking(identifier: str) -> Iterator[None]:
    """Give a failed check the identifier of the line that it would have been."""
    try:
        yield
    except VerificationError as error:
        # The innermost one: a check may be part of another.
        error.identifier = error.identifier or identifier
        raise
