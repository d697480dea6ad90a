"""Findings of ``dp-release doctor``: what was examined, how bad it is, and the remedy.

A message is one line of identifiers, and never shows a confidential value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from release.errors import ReleaseError


class Level(StrEnum):
    """The severity of a finding."""

    WELL = "well"
    LOOK = "look"  # nothing is broken, but somebody should know
    FAULT = "fault"


@dataclass(frozen=True)
class Finding:
    """A subject, how it is, and what to do about it."""

    level: Level
    what: str
    message: str


well = partial(Finding, Level.WELL)
look = partial(Finding, Level.LOOK)
fault = partial(Finding, Level.FAULT)


def or_well(findings: Iterable[Finding], what: str, message: str) -> Iterator[Finding]:
    """The findings, or where there are none, that the subject is in order."""
    is_well = True
    # Not collected first: where a check fails midway, its earlier findings are reported too.
    for finding in findings:
        is_well = False
        yield finding
    if is_well:
        yield well(what, message)


def findings_of(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The findings of a check; a check that fails is a finding too."""
    # No other exceptions: those are faults of the program, and are not the machine's.
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except ReleaseError as error:
        findings.append(fault("doctor", one_line(error)))
    except OSError as error:
        # The text of an OSError may quote more than its path and reason.
        findings.append(fault("doctor", f"{error.filename}: {error.strerror}"))
    return findings


def one_line(error: BaseException) -> str:
    """The text of an error, without line breaks."""
    return " ".join(str(error).split())
