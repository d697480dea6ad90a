"""Structured log lines: one JSON object a line, of codes and identifiers, and nothing else.

What may stand in a line is decided here and not where it is written: a field is one of
:data:`FIELDS`, and its text one word of a fixed alphabet, so that no message, number of rows or
duration can get into a log by mistake. The time of a line is that of the clock, to the second.
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
from pathlib import Path
from typing import Any, TypeVar

from release.errors import ReleaseError

T = TypeVar("T")

VARIABLE = "DP_RELEASE_LOG"
FIELDS = ("release_id", "period", "stage", "scope", "entry", "error", "ended")
"""Of a line, beside its time and its code."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class Code(StrEnum):
    """What a line tells of."""

    STARTED = "started"
    STAGE = "stage"
    PUBLISHED = "published"
    DELIVERED = "delivered"
    REFUSED = "refused"
    RECOVERED = "recovered"
    CAUGHT_UP = "caught-up"


@dataclass(frozen=True)
class Journal:
    """Where lines go: a file that is added to, ``-`` for standard error, or nowhere."""

    target: str | None = None

    def tell(self, code: Code, **identifiers: str | int | None) -> None:
        """Write a line; a log that cannot be written holds nothing up.

        Raises:
            ValueError: a field is not one of :data:`FIELDS`.
        """
        if self.target is None:
            return
        line = {"time": _now(), "code": code.value}
        for name, value in identifiers.items():
            if name not in FIELDS:
                raise ValueError(f"{name} may not stand in a log")
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
        """The ``step`` of a pipeline, telling of each stage before it begins."""

        def told(name: str, function: Callable[..., T], *arguments: Any) -> T:
            self.tell(Code.STAGE, stage=name)
            return step(name, function, *arguments)  # type: ignore[no-any-return]  # as T

        return told

    def refused(self, error: BaseException, **identifiers: str | int | None) -> None:
        """Tell of an error by its kind; its text is for people and may quote the spec."""
        kind = type(error).__name__ if isinstance(error, ReleaseError) else "internal"
        self.tell(Code.REFUSED, error=kind, **identifiers)


def default_journal() -> Journal:
    """``$DP_RELEASE_LOG``: a file, ``-``, or nothing."""
    return Journal(os.environ.get(VARIABLE) or None)


def read_journal(path: Path) -> list[dict[str, str]]:
    """The lines of a log, the last perhaps cut off by a crash and left out."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def _now() -> str:
    return datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
