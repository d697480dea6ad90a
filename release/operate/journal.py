"""Structured log lines: one JSON object a line, with codes and identifiers only.

This module, not its callers, decides what a line may hold: a field is one of :data:`FIELDS`, and
its text one word of a fixed alphabet, so that no message, number of rows or duration can get into a
log by mistake. The time of a line is that of the clock, to the second.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from release.errors import ReleaseError

T = TypeVar("T")

VARIABLE = "DP_RELEASE_LOG"
FIELDS = ("release_id", "period", "stage", "scope", "entry", "error", "ended")
"""The fields of a line, beside its time and its code."""

# Short, and without spaces: a message or a value of a table does not pass.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class Code(StrEnum):
    """The event that a line records."""

    STARTED = "started"
    STAGE = "stage"
    PUBLISHED = "published"
    DELIVERED = "delivered"
    REFUSED = "refused"
    RECOVERED = "recovered"
    CAUGHT_UP = "caught-up"


@dataclass(frozen=True)
class Journal:
    """The target of log lines: a file to append to, ``-`` for standard error, or None."""

    target: str | None = None

    def tell(self, code: Code, **identifiers: str | int | None) -> None:
        """Write a line; a log that cannot be written stops nothing.

        Raises:
            ValueError: a field is not one of :data:`FIELDS`.
        """
        if self.target is None:
            return
        now = datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = {"time": now, "code": code.value}
        for name, value in identifiers.items():
            if name not in FIELDS:
                raise ValueError(f"{name} is not a field of a log line")
            if value is not None:
                line[name] = str(value) if _WORD.fullmatch(str(value)) else "?"
        text = json.dumps(line) + "\n"
        with suppress(OSError):
            if self.target == "-":
                sys.stderr.write(text)
                return
            # One write of one line, so that several runs can share a file.
            descriptor = os.open(self.target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)

    def watching(self, step: Callable[..., Any]) -> Any:
        """Wrap the ``step`` of a pipeline, so that each stage is logged before it begins."""

        def logged(name: str, function: Callable[..., T], *arguments: Any) -> T:
            self.tell(Code.STAGE, stage=name)
            return step(name, function, *arguments)  # type: ignore[no-any-return]  # as T

        return logged

    def refused(self, error: BaseException, **identifiers: str | int | None) -> None:
        """Log an error by its type alone: its text may quote the spec."""
        kind = type(error).__name__ if isinstance(error, ReleaseError) else "internal"
        self.tell(Code.REFUSED, error=kind, **identifiers)


def default_journal() -> Journal:
    """The journal that ``$DP_RELEASE_LOG`` names: a file, ``-``, or none."""
    return Journal(os.environ.get(VARIABLE) or None)
