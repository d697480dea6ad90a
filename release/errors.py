"""The errors of dp-release, and the exit status of each.

::

    ReleaseError                 the root: one line for a person, and an exit status
    ├── SpecError           (2)  the spec or the call is wrong: the field, its value, the remedy
    ├── DataError           (1)  a table does not fit its declaration; never shows a value
    ├── BudgetError         (1)  the charges would exceed the cap
    ├── LedgerError         (1)  the ledger is not intact, or an entry cannot come next
    ├── DesignError         (1)  no mechanism is proved to satisfy the guarantee
    ├── StorageError        (1)  the release could not be written; only what was drawn is left
    ├── StrictError         (6)  check found a larger share left out than the caller allows
    └── VerificationError   (1)  a published file fails a check

Foreign exceptions (DuckDB, PuLP, Arrow, the file system) are translated where the reason is known,
because their messages may hold confidential values; ours never do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MOST_FAULTS = 20
"""The faults of a spec that are shown at once; of the others the number is told."""


class ReleaseError(Exception):
    """A refusal a person can act on; ``str(error)`` is one line without confidential values."""

    exit_status = 1


class SpecError(ReleaseError):
    """The release spec, or the command line, is wrong.

    ``field`` is the path of the field in the spec (``queries[0].guarantee.epsilon``). A spec may
    have several faults: ``others`` are those after the first.
    """

    exit_status = 2

    def __init__(self, field: str, problem: str, others: Sequence[SpecError] = ()) -> None:
        # The field comes first, so that an editor or a script can point to it.
        line = f"{field}: {problem}" if field else problem
        super().__init__(f"{line} (and {len(others)} more)" if others else line)
        self.field = field
        self.problem = problem
        self.others = tuple(others)
        # In Python, notes are shown below the error.
        for note in self.lines[1:]:
            self.add_note(note)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each fault, at most :data:`MOST_FAULTS`, then the number of the others."""
        first = f"{self.field}: {self.problem}" if self.field else self.problem
        lines = [first, *map(str, self.others)]
        unshown = len(lines) - MOST_FAULTS
        rest = (f"and {unshown} more",) if unshown > 0 else ()
        return (*lines[:MOST_FAULTS], *rest)


# A terminal acts on control characters, and shows text that runs the other way where it does not
# stand; line breaks and tabs are what they seem.
_ACTED_ON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """A text as it may go to a terminal: what that would act on is written out."""
    return _ACTED_ON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def control_character(text: str) -> str | None:
    """The first character of a text that :func:`shown` writes out, as its number; None without."""
    found = _ACTED_ON.search(text)
    return None if found is None else f"U+{ord(found[0]):04X}"


@dataclass
class Faults:
    """Collects the faults of independent checks, so that a person sees all of them at once."""

    errors: list[SpecError] = field(default_factory=list)
    _fields: set[str] = field(default_factory=set)

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep the faults that the block raises; what follows in the block is left out."""
        try:
            yield
        except SpecError as error:
            self.add(error)

    def add(self, error: SpecError) -> None:
        """Add a fault, and those that come with it; a field is told of once."""
        faults = [SpecError(error.field, error.problem), *error.others]
        for fault in faults:
            if fault.field not in self._fields:
                self.errors.append(fault)
        for fault in faults:
            self._fields.add(fault.field)

    def refuse(self) -> None:
        """Raise all that was found as one error.

        Raises:
            SpecError: something was found.
        """
        if self.errors:
            first, *rest = self.errors
            raise SpecError(first.field, first.problem, rest)


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


class StrictError(ReleaseError):
    """``check --strict`` found a larger share left out than the caller allows."""

    exit_status = 6


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

    def said(self, sentence: str) -> VerificationError:
        """The error with another sentence, of a verifier that has one."""
        self.identifier = self.check
        self.args = (sentence,)
        return self


class Reason(StrEnum):
    """Why a run ended without a release: a closed list, for logs, which hold no message."""

    SPEC = "spec"
    DATA = "data"
    BUDGET = "budget"
    BUDGET_SPENT = "budget-spent"
    LEDGER = "ledger"
    DESIGN = "design"
    STORAGE = "storage"
    VERIFICATION = "verification"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    INTERNAL = "internal"


_REASONS = {
    SpecError: Reason.SPEC,
    DataError: Reason.DATA,
    BudgetError: Reason.BUDGET,
    LedgerError: Reason.LEDGER,
    DesignError: Reason.DESIGN,
    StorageError: Reason.STORAGE,
    VerificationError: Reason.VERIFICATION,
    ReleaseError: Reason.REFUSED,
}


def reason_of(error: BaseException) -> Reason:
    """The reason that an error stands for, by its type alone: its text may quote the spec."""
    if isinstance(error, BudgetError) and error.scope_ended:
        return Reason.BUDGET_SPENT
    for kind, reason in _REASONS.items():
        # Every refusal is a ReleaseError, which therefore stands last.
        if isinstance(error, kind):
            return reason
    # Ctrl-C, a signal that was turned into an exit, the end of a worker.
    return Reason.INTERNAL if isinstance(error, Exception) else Reason.INTERRUPTED


def listed(names: Iterable[str]) -> str:
    """Up to twelve of the names, sorted, for a message."""
    ordered = sorted(names)
    # A table may have thousands of columns, and a message is one line.
    return ", ".join(ordered[:12]) + (", …" if len(ordered) > 12 else "")


_MOST_NAMES, _LONGEST_NAME = 2000, 200
"""Among so many names, and to names of so many letters, a similar one is looked for."""


def unknown_name(name: object, names: Collection[str]) -> str:
    """The message for a name that does not exist: a similar one, and those that do exist."""
    # ``name`` is any value of a spec: a number in YAML is a wrong name too.
    return f"{name!r} is not there; {did_you_mean(str(name), names)}known are {listed(names)}"


def did_you_mean(name: str, names: Collection[str]) -> str:
    """A question after a similar name, with a space behind it; empty where there is none."""
    near = nearest(name, names)
    return f"did you mean {near!r}? " if near else ""


def no_file(path: Path, remedy: str = "correct the path") -> str:
    """The message for a file that is not there: a similar name in its folder, if there is one."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return f"there is no folder {path.parent.name}; {remedy}"
    return f"there is no {path.name}; {did_you_mean(path.name, names)}{remedy}"


def nearest(name: str, names: Collection[str]) -> str | None:
    """The one of ``names`` that was probably meant; None where none is similar."""
    # Of long lists and long names nobody has mistyped one letter, and each pair takes its time.
    if len(names) > _MOST_NAMES or len(name) > _LONGEST_NAME:
        return None
    # Folded, because a name in capitals has no letter in common with the one that was meant.
    folded = {candidate.casefold(): candidate for candidate in sorted(names, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), list(folded), 1)
    return folded[near[0]] if near else None
