"""The errors of dp-release, and the exit status of each.

::

    ReleaseError                 the root: one line for a person, and an exit status
    ├── SpecError           (2)  the spec or the call is wrong: a field, what was found, the remedy
    ├── DataError           (1)  a table does not fit its declaration; never shows a value
    ├── BudgetError         (1)  the charges would exceed the cap
    ├── LedgerError         (1)  the ledger is not intact, or an entry cannot come next
    ├── DesignError         (1)  no law could be proved to keep the promise
    ├── StorageError        (1)  the release could not be written; nothing was left behind
    └── VerificationError   (1)  a published file fails a check

Foreign exceptions (DuckDB, PuLP, Arrow, the file system) are translated where the reason is known,
because their messages may carry confidential values; ours never do.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


class ReleaseError(Exception):
    """A refusal a person can act on; ``str(error)`` is one line without confidential values."""

    exit_status = 1


class SpecError(ReleaseError):
    """The release spec, or the command line, is wrong.

    ``field`` is the path of the field in the spec (``queries[0].guarantee.epsilon``).
    """

    exit_status = 2

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class DataError(ReleaseError):
    """A confidential table does not fit its declaration; the message shows places, never values."""


class BudgetError(ReleaseError):
    """The charges of the release exceed its cap.

    ``scope_ended`` is whether that is the lifetime cap of its scope in the ledger: no later run can
    pay for it either, until the cap is raised.
    """

    def __init__(self, message: str, *, scope_ended: bool = False) -> None:
        super().__init__(message)
        self.scope_ended = scope_ended


class LedgerError(ReleaseError):
    """The ledger is missing or not intact, or an entry does not follow from those before."""


class DesignError(ReleaseError):
    """No noise law could be proved to keep the promised guarantee."""


class StorageError(ReleaseError):
    """The release could not be written; what had been written was taken away again."""


class VerificationError(ReleaseError):
    """A published file fails a check: which file, which check, what was found and expected."""

    def __init__(self, file: str, check: str, found: str, expected: str) -> None:
        super().__init__(f"{file}: {check}: found {found}, expected {expected}")
        self.file = file
        self.check = check
        self.found = found
        self.expected = expected


def listed(names: Iterable[str]) -> str:
    """Some of the names, sorted, for a message."""
    ordered = sorted(names)
    return ", ".join(ordered[:12]) + (", …" if len(ordered) > 12 else "")


def unknown_name(name: object, known: Collection[str]) -> str:
    """What to say of a name that is not there: a likely one, and which there are."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{name!r} is not there; {hint}known are {listed(known)}"
