"""One line of the log: closed fields, words of a fixed alphabet, and perhaps a signature.

This module, not its callers, decides what a line may hold, so that no message, number of rows or
duration can get into a log by mistake. A line names the one before it by its hash.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from dp_release_verify.digests import sha256
from release.budget.entries import NOTHING, Hash, RunId
from release.bundle.evidence.people import UNREADABLE, Instant, PersonName
from release.bundle.evidence.signed import SignedRecord, signed
from release.errors import Reason
from release.records.models import canonical, parse
from release.records.signing import Signer

SCHEMA: Literal["dp-release/log/v1"] = "dp-release/log/v1"

# Short, and without spaces: a message or a value of a table does not pass.
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,149}"
LogWord: TypeAlias = Annotated[str, StringConstraints(pattern=rf"^({_WORD}|\?)$")]


class Code(StrEnum):
    """The event that a line records."""

    STARTED = "started"
    STAGE = "stage"
    PUBLISHED = "published"
    CHANGED = "changed"
    DELIVERED = "delivered"
    REFUSED = "refused"
    RECOVERED = "recovered"
    CAUGHT_UP = "caught-up"


class LogLine(SignedRecord):
    """One line of the log."""

    schema_: Literal["dp-release/log/v1"] = Field(
        alias="schema", description="the version of this format"
    )
    number: int = Field(ge=0, description="the number of the line, from 0")
    prev: Hash = Field(description="the SHA-256 of the line before, without its end")
    time: Instant = Field(description="the time of day in UTC")
    actor: PersonName = Field(description="who ran it")
    approver: PersonName | None = Field(default=None, description="who approved it")
    run: RunId | None = Field(default=None, description="the digits of the run, or Prefect's")
    code: Code = Field(strict=False, description="the event")
    spec: LogWord | None = Field(default=None, description="the file name of the spec")
    period: LogWord | None = Field(default=None, description="the period of a template")
    release_id: LogWord | None = Field(default=None, description="the name of the release")
    stage: LogWord | None = Field(default=None, description="the stage that begins")
    since: LogWord | None = Field(
        default=None, description="of a change: the release of the series before"
    )
    part: LogWord | None = Field(
        default=None, description="of a change: the part of the spec that differs"
    )
    ended: LogWord | None = Field(default=None, description="how a recovery or a schedule ended")
    reason: Reason | None = Field(default=None, strict=False, description="why there is no release")


FIELDS = ("run", "spec", "period", "release_id", "stage", "since", "part", "ended", "reason")
"""The fields of a line that callers fill."""


def word(value: object) -> str:
    """A text that may stand in a line; a question mark for any other."""
    return str(value) if re.fullmatch(_WORD, str(value), re.ASCII) else UNREADABLE


def line_bytes(line: LogLine, signer: Signer | None) -> bytes:
    """The line as it is written, signed where there is a signer, without its end."""
    return canonical(signed(line, signer))


def parse_line(data: bytes) -> LogLine:
    """Read a line strictly.

    Raises:
        ValueError: it is not canonical, or not of this form.
    """
    return parse(LogLine, data)


def hash_of(data: bytes) -> str:
    """The hash by which the next line names a line."""
    return f"sha256:{sha256(data)}"


__all__ = ["NOTHING", "Code", "LogLine", "Reason"]
__all__ += ["FIELDS", "SCHEMA", "hash_of", "line_bytes", "parse_line", "word"]
