"""A scope under the rule ``renyi_filter``: an exact Rényi filter at one integer order.

The order, and which part of δ is for cuts, are fixed when the scope is created. Releases may be
chosen as one goes: the product of their moments is bounded in advance (docs/design/mathematics.md,
sections T7 and 2.32).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import Any

from release.budget.caps import ScopeCap, amount
from release.budget.entries import ReleaseCharge, Reserve
from release.budget.rules.accounts import NEW_SCOPE, Account, RuleFields, amounts
from release.errors import BudgetError, LedgerError
from release.exact.composition import renyi
from release.exact.numbers import format_exact, format_up


class FilterAccount(Account):
    """Releases are chosen as one goes; the product of their moments is bounded in advance."""

    def __init__(self, cap: ScopeCap) -> None:
        super().__init__(cap)
        self.order = cap.order or 2
        self.cuts = amount(cap.cuts or "0")
        self.main = amount(cap.delta) - self.cuts
        self._bound = renyi.most_moments(self.order, amount(cap.epsilon), self.main)
        # In the order of entries: the product is rounded up after each factor.
        self._standing: dict[int, renyi.Moment] = {}
        # Of the releases before those, none of which can be given back any more.
        self._settled: renyi.Moment | None = None
        self._product = Fraction(1)

    def opened(self) -> None:
        """Check that some release would fit. Raises ``BudgetError``."""
        if self._bound < 1:
            least = renyi.certified_epsilon(Fraction(1), self.order, self.main)
            raise BudgetError(
                f"--scope: no release fits ε {self.cap.epsilon} at order {self.order} and δ "
                f"{self.cap.delta}; raise ε above {_six(least)}, or the order"
            )

    def fields(self, charge: ReleaseCharge, slot: str | None) -> RuleFields:
        """The moment and the cut of the release. Raises ``BudgetError``."""
        super().fields(charge, slot)
        moment = self._moment(charge)
        # Before the entry: the text of a hopeless moment may be too long for one.
        self._check_left(moment)
        return {"moment": format_exact(moment.value), "cut": format_exact(moment.cut)}

    def check(self, entry: Reserve) -> None:
        """Check the product of moments, and the cuts. Raises ``BudgetError`` or ``LedgerError``."""
        self._check_fields(entry, "moment", "cut")
        moment = _moment_of(entry)
        if moment.value < 1:
            raise LedgerError(f"entry {entry.seq}: a moment is at least 1")
        self._check_left(moment)

    def _check_left(self, moment: renyi.Moment) -> None:
        after = renyi.product_above(self._product, moment.value)
        if after > self._bound:
            raise BudgetError(
                f"budget.epsilon: scope {self.cap.scope!r} amounts to ε {self._shown()}, with the "
                f"release to {self._shown(after)}, at order {self.order}; the cap is "
                f"{self.cap.epsilon}; lower guarantees, or {NEW_SCOPE}",
                scope_ended=True,
            )
        cut = self._cut()
        if cut + moment.cut > self.cuts:
            raise BudgetError(
                f"budget.delta: scope {self.cap.scope!r} may cut {format_exact(self.cuts)} of its "
                f"δ, {format_up(cut, 30)} is cut, the release cuts {format_up(moment.cut, 30)}; "
                f"lower the δ of guarantees, or {NEW_SCOPE}",
                scope_ended=True,
            )

    def charge(self, entry: Reserve) -> None:
        """Multiply the moment in."""
        super().charge(entry)
        moment = _moment_of(entry)
        self._standing[entry.seq] = moment
        self._product = renyi.product_above(self._product, moment.value)

    def refund(self, entry: Reserve) -> None:
        """Leave a moment out again."""
        super().refund(entry)
        del self._standing[entry.seq]
        self._product = Fraction(1) if self._settled is None else self._settled.value
        for moment in self._standing.values():
            self._product = renyi.product_above(self._product, moment.value)

    def saved(self, last: str, running: Sequence[Reserve]) -> dict[str, Any]:
        """The sums, the product and cut of what is settled, and the moments after that, in order.

        A release is settled where no earlier one, nor itself, can be given back: the product is
        rounded up after each factor, so that giving one back computes all after it anew.
        """
        settled, standing = self._settled, []
        first = min((entry.seq for entry in running), default=None)
        for number, moment in self._standing.items():
            if first is not None and number >= first:
                standing.append([number, *_texts(moment)])
            elif settled is None:
                settled = renyi.Moment(renyi.product_above(Fraction(1), moment.value), moment.cut)
            else:
                product = renyi.product_above(settled.value, moment.value)
                settled = renyi.Moment(product, settled.cut + moment.cut)
        return {
            **super().saved(last, running),
            "settled": None if settled is None else _texts(settled),
            "standing": standing,
        }

    def resume(self, saved: dict[str, Any]) -> None:
        """Go on from what :meth:`saved` gave."""
        super().resume(saved)
        if saved["settled"] is not None:
            self._settled = renyi.Moment(*map(Fraction, saved["settled"]))
            self._product = self._settled.value
        for number, value, cut in saved["standing"]:
            self._standing[number] = renyi.Moment(Fraction(value), Fraction(cut))
            self._product = renyi.product_above(self._product, Fraction(value))

    def certified(self) -> tuple[Fraction, Fraction]:
        """The ε that is certified so far, at the δ of the scope."""
        return self._read(self._product), amount(self.cap.delta)

    def level(self) -> Fraction:
        """The ε that is certified so far."""
        return self._read(self._product)

    def affordable(self, entry: Reserve) -> int | None:
        """About how often the moment and the cut of ``entry`` still fit."""
        moment, counts = _moment_of(entry), []
        growth = log(moment.value)
        if growth > 0:
            counts.append(int(log(self._bound / self._product) / growth))
        if moment.cut > 0:
            counts.append(int((self.cuts - self._cut()) / moment.cut))
        return min(counts) if counts else None

    def summary(self) -> str:
        """What is certified so far, in words."""
        return (
            f"amounts to ε = {self._shown()} of {self.cap.epsilon} at δ = {self.cap.delta}, by the "
            f"filter of order {self.order}"
        )

    def left(self) -> str:
        """By which factor the product of moments may still grow, in words."""
        return f"a product of moments of up to {format_up(self._bound / self._product, 6)}"

    def delta_at(self, epsilon: Fraction) -> Fraction:
        """The δ of what was released so far, at another ε than that of the cap."""
        if self._is_unspent:
            return Fraction(0)
        delta = renyi.certified(self._product, self.order, epsilon)
        return min(Fraction(1), delta + self._cut())

    def most_delta_at(self, epsilon: Fraction) -> Fraction:
        """The δ of all that the filter may let through, at an ε."""
        return min(Fraction(1), renyi.certified(self._bound, self.order, epsilon) + self.cuts)

    @property
    def _is_unspent(self) -> bool:
        return not self._standing and self._settled is None

    def _cut(self) -> Fraction:
        settled = Fraction(0) if self._settled is None else self._settled.cut
        return sum((moment.cut for moment in self._standing.values()), settled)

    def _read(self, product: Fraction) -> Fraction:
        if self._is_unspent and product == 1:
            return Fraction(0)
        epsilon = renyi.certified_epsilon(product, self.order, self.main)
        spent = self.spent()
        # For few releases the sum is the smaller figure.
        is_sum = product == self._product and spent.delta <= amount(self.cap.delta)
        return min(epsilon, spent.epsilon) if is_sum else epsilon

    def _shown(self, product: Fraction | None = None) -> str:
        return _six(self._read(self._product if product is None else product))

    def _moment(self, charge: ReleaseCharge) -> renyi.Moment:
        if charge.losses is None:
            raise BudgetError(
                f"budget.scope: {amounts(charge)} has no privacy profile, because a query of it "
                f"is instance-specific; scope {self.cap.scope!r} has the rule renyi_filter: use "
                "global sensitivity, or a scope of the rule basic"
            )
        return renyi.moment(charge.losses, self.order)


def _moment_of(entry: Reserve) -> renyi.Moment:
    return renyi.Moment(amount(entry.moment or "1"), amount(entry.cut or "0"))


def _texts(moment: renyi.Moment) -> list[str]:
    return [str(moment.value), str(moment.cut)]


def _six(epsilon: Fraction) -> str:
    return format_up(epsilon, 6)
