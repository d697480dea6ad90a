"""The errors of dp-release, and the exit status of each.

::

    ReleaseError                 the root: one line for a person, and an exit status
    ├── SpecError           (2)  the spec or the call is wrong: the field, its value, the remedy
    ├── DataError           (1)  a table does not fit its declaration; never shows a value
    ├── BudgetError         (1)  the charges would exceed the cap
    ├── LedgerError         (1)  the ledger is not intact, or an entry cannot come next
    ├── DesignError         (1)  no mechanism is proved to satisfy the guarantee
    ├── StorageError        (1)  the release could not be written; only what was drawn is left
    └── VerificationError   (1)  a published file fails a check

Foreign exceptions (DuckDB, PuLP, Arrow, the file system) are translated where the reason is known,
because their messages may hold confidential values; ours never do.
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
        # The field comes first, so that an editor or a script can point to it.
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class DataError(ReleaseError):
    """A confidential table does not fit its declaration; the message names places, never values."""


class BudgetError(ReleaseError):
    """The charges of the release exceed its cap.

    ``scope_ended`` is whether it is the lifetime cap of the scope in the ledger. No later run can
    pay then, until the cap is raised.
    """

    def __init__(self, message: str, *, scope_ended: bool = False) -> None:
        super().__init__(message)
        self.scope_ended = scope_ended


class LedgerError(ReleaseError):
    """The ledger is missing or not intact, or an entry does not follow from those before."""


class DesignError(ReleaseError):
    """No mechanism could be proved to satisfy the claimed guarantee."""


class StorageError(ReleaseError):
    """The release could not be written; what was drawn or staged stays for the next run."""


class VerificationError(ReleaseError):
    """A published file fails a check: the file, the check, the actual and the expected value.

    ``identifier`` is that of the line that a verdict would have had, such as ``charges.total``.
    """

    identifier = ""

    def __init__(self, file: str, check: str, actual: str, expected: str) -> None:
        # Both come from bundles that the caller has, so they may be shown.
        super().__init__(f"{file}: {check}: found {actual}, expected {expected}")
        self.file = file
        self.check = check
        self.actual = actual
        self.expected = expected


def listed(names: Iterable[str]) -> str:
    """Up to twelve of the names, sorted, for a message."""
    ordered = sorted(names)
    # A table may have thousands of columns, and a message is one line.
    return ", ".join(ordered[:12]) + (", …" if len(ordered) > 12 else "")


def unknown_name(name: object, names: Collection[str]) -> str:
    """The message for a name that does not exist: a similar one, and those that do exist."""
    # ``name`` is any value of a spec: a number in YAML is a wrong name too.
    near = difflib.get_close_matches(str(name), list(names), 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{name!r} is not there; {hint}known are {listed(names)}"
