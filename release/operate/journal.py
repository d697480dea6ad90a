"""The journal of a run: what it tells the log (:mod:`release.operate.log`).

A line has the time of the clock, to the second, and is signed by the key of the run if it has one.
A log that cannot be written stops nothing.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from release.bundle.evidence.line import FIELDS, NOTHING, SCHEMA, Code, LogLine, line_bytes, word
from release.bundle.evidence.people import now, people
from release.errors import Reason, ReleaseError, reason_of
from release.job import Job, Perform, Stage
from release.operate.log.changes import changes_since_last
from release.operate.log.file import append
from release.records.keys.outside import read_key
from release.records.signing import Signer

VARIABLE = "DP_RELEASE_LOG"
FLOW_RUN = "PREFECT__FLOW_RUN_ID"
"""The variable in which Prefect names its own run to the process of that run."""
_MOST_CHANGES = 100
"""The changes of one release that are logged."""


@dataclass(frozen=True)
class Journal:
    """The target of log lines: a file to append to, ``-`` for standard error, or None.

    ``run`` is in every line of one run: 32 random hexadecimal digits, or those of Prefect's run.
    ``key`` is the file of the signing key.
    """

    target: str | None = None
    run: str | None = None
    key: Path | None = None

    def tell(self, code: Code, **identifiers: str | Reason | None) -> None:
        """Write a line; a log that cannot be written stops nothing.

        Raises:
            ValueError: a field is not one of :data:`FIELDS`.
        """
        fields: dict[str, Any] = {}
        for name, value in {"run": self.run, **identifiers}.items():
            if name not in FIELDS:
                raise ValueError(f"{name} is not a field of a log line")
            if value is not None:
                fields[name] = value if name in ("run", "reason") else word(value)
        if self.target is None:
            return
        who = people()
        fields |= {"time": now(), "code": code}
        fields |= {"actor": who.actor, "approver": who.approver}

        def fill(number: int, prev: str) -> bytes:
            line = LogLine(schema=SCHEMA, number=number, prev=prev, **fields)
            return line_bytes(line, self._signer)

        with suppress(OSError):
            if self.target == "-":
                # A stream has no line before that could be read.
                sys.stderr.write(fill(0, NOTHING).decode() + "\n")
                return
            append(Path(self.target), fill)

    @cached_property
    def _signer(self) -> Signer | None:
        # A key that cannot be read is told of by the run itself.
        with suppress(ReleaseError):
            return None if self.key is None else read_key(self.key)
        return None

    def watching(self, perform: Perform) -> Perform:
        """As ``perform``, and each stage is logged before it begins."""

        def logged(stage: Stage, job: Job) -> None:
            release_id = job.spec_file.spec.release.id if job.has("spec_file") else None
            self.tell(Code.STAGE, stage=stage.name, release_id=release_id)
            perform(stage, job)

        return logged

    @contextmanager
    def told(self, **identifiers: str | None) -> Iterator[Callable[[Path], None]]:
        """Log the begin of a release, and its end: the block calls what it is given with it."""
        self.tell(Code.STARTED, **identifiers)

        def log_end(public: Path) -> None:
            self.tell(Code.PUBLISHED, release_id=public.name, **identifiers)
            if self.target is None:
                return
            since, changes = changes_since_last(public)
            for change in changes[:_MOST_CHANGES] if since is not None else ():
                self.tell(Code.CHANGED, release_id=public.name, since=since, part=change.part)

        try:
            yield log_end
        except BaseException as error:
            # An interruption is logged too: the next run has to recover this one.
            self.refused(error, **identifiers)
            raise

    def refused(self, error: BaseException, **identifiers: str | None) -> None:
        """Log an error by its type alone: its text may quote the spec."""
        self.tell(Code.REFUSED, reason=reason_of(error), **identifiers)


def default_journal(key: Path | None = None, flow_run: str | None = None) -> Journal:
    """A journal of a new run, where ``$DP_RELEASE_LOG`` says: in a file, ``-``, or nowhere.

    ``flow_run`` is the identifier of Prefect's run, by default what the environment says: there
    only Prefect's workers name it.
    """
    scheduled = (flow_run or os.environ.get(FLOW_RUN, "")).replace("-", "")
    is_named = re.fullmatch("[0-9a-f]{32}", scheduled)
    run = scheduled if is_named else secrets.token_hex(16)
    return Journal(os.environ.get(VARIABLE) or None, run, key)


__all__ = ["FLOW_RUN", "VARIABLE", "Code", "Journal", "default_journal"]
