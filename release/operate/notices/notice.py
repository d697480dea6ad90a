"""What people are told: how a release or a run ended, why, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from dp_release_verify.digests import sha256
from release.errors import BudgetError, LedgerError, ReleaseError, StorageError


class End(StrEnum):
    """How a release ended, or what keeps releases from ending well."""

    RELEASED = "released"
    REFUSED = "refused"
    LATE = "late"
    SKIPPED = "skipped"
    REVISED = "revised"
    CRASHED = "crashed before its charge"
    GIVEN_BACK = "crashed before its draw"
    FINISHED = "crashed after its draw, and published"
    IN_VAIN = "crashed during its draw"
    NEEDS_SOMEBODY = "needs somebody"
    CAP_REACHED = "cap of the period reached"
    BUDGET_SPENT = "budget spent"
    STORE_FAILED = "store or disk fails"
    LEDGER_REFUSES = "ledger refuses"
    SERVER_DOWN = "server down"
    FAULT = "fault"


LASTING = frozenset(
    {
        End.CAP_REACHED,
        End.BUDGET_SPENT,
        End.STORE_FAILED,
        End.LEDGER_REFUSES,
        End.SERVER_DOWN,
        End.FAULT,
    }
)
"""Ends that last until somebody mends them: once over, the next of their kind is told anew."""

REMEDIES = MappingProxyType(
    {
        End.RELEASED: "nothing to do; dp-release verify checks it",
        End.REFUSED: "mend what the line says; the next run tries it again",
        End.LATE: "bring its table, or record that it will not come: dp-release skip",
        End.SKIPPED: "nothing to do; no run waits for it",
        End.REVISED: "tell the users of the older version",
        End.CRASHED: "nothing was charged; the next run releases it",
        End.GIVEN_BACK: "its charge was given back; the next run releases it",
        End.FINISHED: "nothing to do; it paid once",
        End.IN_VAIN: "its charge stays; the next run pays again, at most --attempts times",
        End.NEEDS_SOMEBODY: "no later run will release it; dp-release doctor says why",
        End.CAP_REACHED: "nothing to do; the next period of the cap goes on",
        End.BUDGET_SPENT: "end the schedule, or decide on a higher cap: dp-release ledger policy",
        End.STORE_FAILED: "mend the store or disk that the line names; the next run goes on",
        End.LEDGER_REFUSES: "start no run by hand; dp-release doctor says what differs",
        End.SERVER_DOWN: "start the server; what is due meanwhile is released after that",
        End.FAULT: "dp-release doctor shows it again",
    }
)


@dataclass(frozen=True)
class Notice:
    """One end of one subject, which is a release, a spec, a store or a server.

    ``line`` is our own, as the terminal shows it: it names places and charges, never a value.
    ``occasion`` tells two ends of one kind apart, such as two crashes of one release.
    """

    end: End
    subject: str
    line: str = ""
    occasion: str = ""

    @property
    def key(self) -> str:
        """The digest by which a notice that was sent is known again."""
        # Of a lasting end it is told that it lasts, whatever the line of each run says.
        details = () if self.end in LASTING else (self.line, self.occasion)
        return sha256("\n".join((self.end, self.subject, *details)).encode())

    @property
    def title(self) -> str:
        """A line for the subject of a message."""
        return f"{self.subject}: {self.end}"

    @property
    def body(self) -> str:
        """What happened, and what to do next."""
        return "\n".join(filter(None, (self.line, f"What to do: {REMEDIES[self.end]}.")))


def refusal(error: ReleaseError, spec: str, release_id: str | None = None) -> Notice:
    """The notice of an error, about a release or about the schedule of a spec."""
    line = " ".join(str(error).split())
    if isinstance(error, BudgetError):
        return Notice(End.BUDGET_SPENT if error.scope_ended else End.CAP_REACHED, spec, line)
    if isinstance(error, LedgerError):
        return Notice(End.LEDGER_REFUSES, spec, line)
    if isinstance(error, StorageError):
        return Notice(End.STORE_FAILED, spec, line)
    return Notice(End.REFUSED, release_id or spec, line)
