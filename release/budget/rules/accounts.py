"""The account of a scope: what its rule has let through, and what it still allows.

One class a rule: :class:`BasicAccount` here, the others in :mod:`release.budget.rules.planned` and
:mod:`release.budget.rules.filtered`. Writing an entry and replaying a ledger ask the same account,
so they cannot differ. A charge that is given back, because nothing was drawn, leaves no trace.

The guarantee of a scope is its cap. What was released so far amounts to less, which is shown, but
for ``pld`` and ``renyi_filter`` it is a reading: whoever stops in view of answers has the cap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypedDict

from release.budget.caps import PeriodCap, ScopeCap, amount
from release.budget.entries import ReleaseCharge, Reserve, Spent
from release.errors import BudgetError, LedgerError
from release.exact.numbers import format_exact

PERIODS = {"year": 4, "month": 7, "day": 10}
"""The number of leading characters of a date that name its period."""

NEW_SCOPE = "add a new scope: dp-release ledger policy"


class RuleFields(TypedDict, total=False):
    """What a reserve holds beside ε and δ, by the rule of its scope."""

    slot: str
    moment: str
    cut: str


class Account(ABC):
    """The charges of a scope that stand, under one rule."""

    def __init__(self, cap: ScopeCap) -> None:
        self.cap = cap
        self._sums: defaultdict[str, Spent] = defaultdict(Spent)

    def spent(self, period: str = "") -> Spent:
        """The stated ε and δ added up: of the lifetime, or of a period named by its prefix."""
        return self._sums.get(period, Spent())

    @abstractmethod
    def opened(self) -> None:
        """Check that the scope may be created.

        Raises:
            BudgetError: what is planned exceeds the cap.
        """

    def change(self, cap: ScopeCap) -> None:
        """Take other caps. Only ``basic`` has some that may change.

        Raises:
            LedgerError: the rule does not allow the change.
        """
        self.check_change(cap)
        self.cap = cap

    def check_change(self, cap: ScopeCap) -> None:
        """Check that :meth:`change` may follow.

        Raises:
            LedgerError: it may not.
        """
        # A cap that was chosen in view of answers would be no bound fixed in advance.
        if cap != self.cap:
            raise LedgerError(
                f"policy: scope {cap.scope!r} has the rule {self.cap.rule}, which fixes its rule, "
                f"plan, order and caps for ever; {NEW_SCOPE}"
            )

    def fields(self, charge: ReleaseCharge, slot: str | None) -> RuleFields:
        """What the reserve of a release holds, beside its ε and δ.

        Args:
            charge: what the release amounts to.
            slot: the slot that the spec names, if it names one.

        Raises:
            BudgetError: the release does not fit what is left.
        """
        if slot is not None:
            raise BudgetError(
                f"budget.slot: scope {self.cap.scope!r} has the rule {self.cap.rule} and no slots; "
                "leave the slot out"
            )
        return {}

    @abstractmethod
    def check(self, entry: Reserve) -> None:
        """Check that a reserve may come next.

        Raises:
            BudgetError: it would spend more than the scope allows.
            LedgerError: it lacks what the rule needs, or has what belongs to another rule.
        """

    def charge(self, entry: Reserve) -> None:
        """Take a reserve into account."""
        self._add(entry, Spent(amount(entry.epsilon), amount(entry.delta)))

    def refund(self, entry: Reserve) -> None:
        """Give a reserve back, for which nothing was drawn."""
        self._add(entry, -Spent(amount(entry.epsilon), amount(entry.delta)))

    def _add(self, entry: Reserve, charge: Spent) -> None:
        # All periods count, because a policy may cap one later. The empty one is the lifetime.
        for length in (0, *PERIODS.values()):
            self._sums[entry.date[:length]] += charge

    def saved(self, last: str, running: Sequence[Reserve]) -> dict[str, Any]:
        """The account in plain values, for :meth:`resume`.

        Args:
            last: the date of the last entry.
            running: the open reserves of the scope, which may still be given back.
        """
        # Dates never decrease: of a past day, only an open reserve can still change the sums.
        sums = {}
        for date in (last, *(entry.date for entry in running)):
            for length in (0, *PERIODS.values()):
                spent = self.spent(date[:length])
                sums[date[:length]] = [str(spent.epsilon), str(spent.delta)]
        return {"sums": sums}

    def resume(self, saved: dict[str, Any]) -> None:
        """Go on from what :meth:`saved` gave; sums of periods that are over are not known."""
        for period, (epsilon, delta) in saved["sums"].items():
            self._sums[period] = Spent(Fraction(epsilon), Fraction(delta))

    @abstractmethod
    def certified(self) -> tuple[Fraction | None, Fraction]:
        """What was released so far amounts to: ε, rounded up, at the δ that is returned too."""

    @abstractmethod
    def summary(self) -> str:
        """What the scope has spent of what, in words: the rest of a sentence about it."""

    @abstractmethod
    def left(self) -> str:
        """What the scope still allows, in words."""

    @abstractmethod
    def affordable(self, entry: Reserve) -> int | None:
        """How many more releases fit that charge what ``entry`` does; None where no end is near."""

    def level(self) -> Fraction:
        """What a picture shows of the account over time: here the sum of the ε."""
        return self.spent().epsilon

    def level_cap(self) -> Fraction:
        """The largest level."""
        return amount(self.cap.epsilon)

    def _check_fields(self, entry: Reserve, *needed: str) -> None:
        for name in ("slot", "moment", "cut"):
            if (getattr(entry, name) is not None) != (name in needed):
                has = "lacks" if name in needed else "has"
                raise LedgerError(
                    f"entry {entry.seq}: a reserve of scope {entry.scope!r}, whose rule is "
                    f"{self.cap.rule}, {has} the field {name}"
                )


class BasicAccount(Account):
    """Charges add up, in exact rationals; whatever they are and whenever they are chosen."""

    def opened(self) -> None:
        """Any caps may be set."""

    def check_change(self, cap: ScopeCap) -> None:
        """Check that the rule stays; any cap may change. Raises ``LedgerError``."""
        if cap.rule != self.cap.rule:
            raise LedgerError(
                f"policy: scope {cap.scope!r} has the rule {self.cap.rule} for ever; {NEW_SCOPE}"
            )

    def check(self, entry: Reserve) -> None:
        """Check the caps. Raises ``BudgetError`` or ``LedgerError``."""
        self._check_fields(entry)
        # The lifetime comes first: a period's cap is free again later, the lifetime's never.
        self._check_cap(entry, self.cap, "", "")
        if (period := self.cap.period) is not None:
            prefix = entry.date[: PERIODS[period.every]]
            self._check_cap(entry, period, prefix, f" of {period.every} {prefix}")

    def _check_cap(
        self, entry: Reserve, cap: ScopeCap | PeriodCap, prefix: str, where: str
    ) -> None:
        spent = self.spent(prefix)
        for name in ("epsilon", "delta"):
            before, more = getattr(spent, name), amount(getattr(entry, name))
            bound = amount(getattr(cap, name))
            if before + more > bound:
                raise BudgetError(
                    f"budget.{name}: scope {entry.scope!r} has spent {format_exact(before)}"
                    f"{where}, the release costs {format_exact(more)}, "
                    f"the cap is {format_exact(bound)}; lower guarantees, "
                    "or have the cap raised: dp-release ledger policy",
                    scope_ended=not prefix,
                )

    def certified(self) -> tuple[Fraction, Fraction]:
        """The sums of ε and of δ."""
        return self.spent().epsilon, self.spent().delta

    def summary(self) -> str:
        """The sums and the caps, in words."""
        spent, cap = self.spent(), self.cap
        return (
            f"has spent ε = {format_exact(spent.epsilon)} of {cap.epsilon}, "
            f"δ = {format_exact(spent.delta)} of {cap.delta}"
        )

    def left(self) -> str:
        """What remains of the caps of the lifetime, in words."""
        spent = self.spent()
        # Below 0 where a policy has lowered the cap below what was spent.
        epsilon = max(Fraction(0), amount(self.cap.epsilon) - spent.epsilon)
        delta = max(Fraction(0), amount(self.cap.delta) - spent.delta)
        return f"ε {format_exact(epsilon)}, δ {format_exact(delta)}"

    def affordable(self, entry: Reserve) -> int | None:
        """How often the charge still fits under the caps of the lifetime; None if it is nothing."""
        spent, counts = self.spent(), []
        for name in ("epsilon", "delta"):
            charge = amount(getattr(entry, name))
            if charge > 0:
                rest = amount(getattr(self.cap, name)) - getattr(spent, name)
                counts.append(int(rest / charge))
        return max(0, min(counts)) if counts else None


def amounts(charge: ReleaseCharge) -> str:
    """A release in words, for a message."""
    return f"the release (ε {format_exact(charge.epsilon)}, δ {format_exact(charge.delta)})"
