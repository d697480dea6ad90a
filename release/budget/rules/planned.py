"""The plan of a scope under the rule ``pld``: its slots, and what they amount to together.

Each slot stands for a profile, and a release may take it whose profile lies below. A fixed multiset
of such profiles may be spent in any order, by releases chosen from earlier outputs: the whole lies
below the composition of the profiles (docs/design/mathematics.md, sections T6 and 2.32). A
*declared* slot is for releases that have no profile: its ε and δ are added to the certified ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from release.budget.caps import PlannedSlot, ScopeCap, amount
from release.budget.entries import ReleaseCharge, Reserve
from release.budget.rules.accounts import NEW_SCOPE, Account, RuleFields, amounts
from release.errors import BudgetError
from release.exact.composition.distribution import LossDistribution, of_charge
from release.exact.composition.dominance import dominated, profile_of_losses
from release.exact.composition.grid import Spread, short_step
from release.exact.composition.profile import Profile
from release.exact.composition.together import together
from release.exact.numbers import MAX_EPSILON, format_exact, format_up
from release.spec.named import names_of


@dataclass(frozen=True)
class Slot:
    """A place in a plan, in numbers; ``charge`` is its ε and δ, where it is given by these."""

    name: str
    times: int
    charge: tuple[Fraction, Fraction] | None
    profile: Profile
    declared: bool

    def losses(self, step: Fraction) -> LossDistribution:
        """The losses that the slot stands for, on the grid of ``step``."""
        if self.charge is not None:
            return of_charge(*self.charge, step)
        return self.profile.distribution().regridded(step)

    def spread(self, times: int) -> Spread | None:
        """How these losses lie; None where all are 0 or infinite."""
        if self.charge is not None:
            distance = 2 * self.charge[0]
            return Spread(distance, distance, times) if distance else None
        width = 2 * self.profile.step * (len(self.profile.values) - 1)
        return Spread(self.profile.step, width, times) if width else None


@lru_cache(maxsize=64)
def _profile(losses: LossDistribution) -> Profile:
    return profile_of_losses(losses)


@lru_cache(maxsize=1024)
def _dominated(by: Profile, losses: LossDistribution) -> bool:
    # A grid of such steps says nothing of its own: no slot has an ε above 100.
    return losses.step <= MAX_EPSILON and dominated(by, _profile(losses))


def fits(slot: Slot, release: ReleaseCharge) -> bool:
    """Return whether a release is proved to be at most what a slot stands for.

    A slot that is given by ε and δ takes a release that states no more of either, whose statement
    is proved, and any other one whose profile lies below the worst case of these.
    """
    if slot.declared or release.losses is None:
        return (
            slot.declared
            and release.losses is None
            and _is_at_most((release.epsilon, release.delta), slot.charge)
        )
    if _is_at_most((release.epsilon, release.delta), slot.charge):
        return True
    return _dominated(slot.profile, release.losses)


def _is_at_most(charge: tuple[Fraction, Fraction], bound: tuple[Fraction, Fraction] | None) -> bool:
    return bound is not None and charge[0] <= bound[0] and charge[1] <= bound[1]


def slots_of(cap: ScopeCap) -> tuple[Slot, ...]:
    """The slots of a cap in the order of its plan."""
    return tuple(map(_slot, cap.planned or ()))


def _slot(planned: PlannedSlot) -> Slot:
    if planned.profile is not None:
        profile = planned.profile.to_profile()
        return Slot(planned.name, planned.times, None, profile, declared=False)
    # Either may be left out of a plan, which then means 0 of it.
    charge = amount(planned.epsilon or "0"), amount(planned.delta or "0")
    above = Profile.of_charge(*charge)
    # The plan composes the worst case itself, so a release may not use what rounding added to it.
    worst = Profile(above.step, tuple(max(0, value - 1) for value in above.values))
    return Slot(planned.name, planned.times, charge, worst, planned.declared)


@dataclass(frozen=True)
class Plan:
    """The slots of a scope, and the grid on which they are composed.

    The grid is that of the whole plan, so that a part of it is never read on a finer one.
    """

    slots: tuple[Slot, ...]

    def step(self) -> Fraction:
        """The step of the grid."""
        spreads = []
        for slot in self.slots:
            spread = slot.spread(slot.times)
            if spread is not None and not slot.declared:
                spreads.append(spread)
        return short_step(spreads)

    @property
    def whole(self) -> tuple[int, ...]:
        """How often each slot may be taken."""
        return tuple(slot.times for slot in self.slots)


@lru_cache(maxsize=256)
def losses_of(plan: Plan, uses: tuple[int, ...]) -> LossDistribution:
    """The losses of slots, each taken ``uses`` times, in their order; declared ones left out."""
    step = plan.step()
    parts = []
    for slot, times in zip(plan.slots, uses, strict=True):
        if times and not slot.declared:
            parts.append((slot.losses(step), times))
    return together(parts)


def declared_sums(plan: Plan, uses: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """The ε and δ of the declared slots among those taken, added up."""
    declared = []
    for slot, times in zip(plan.slots, uses, strict=True):
        if slot.declared:
            declared.append((slot, times))
    return _sums(declared)


@lru_cache(maxsize=1024)
def certified_epsilon(plan: Plan, uses: tuple[int, ...], delta: Fraction) -> Fraction | None:
    """Return an ε such that all releases together are (ε, ``delta``)-private, rounded up.

    Args:
        plan: the slots.
        uses: how often each slot is taken.
        delta: the δ at which to read the composition; declared slots take their part of it first.

    Returns:
        None where no ε has so small a δ. Never more than the sum of the ε, where all slots are
        given by ε and δ and the sum of the δ is at most ``delta``.
    """
    added = declared_sums(plan, uses)
    if added[1] > delta:
        return None
    epsilon = losses_of(plan, uses).epsilon_at(delta - added[1])
    basic = _basic_sums(plan, uses)
    if basic is None or basic[1] > delta:
        return None if epsilon is None else epsilon + added[0]
    # Masses that are folded or rounded count as δ, so that the sum can be the smaller one.
    return basic[0] if epsilon is None else min(basic[0], epsilon + added[0])


def _basic_sums(plan: Plan, uses: tuple[int, ...]) -> tuple[Fraction, Fraction] | None:
    """The ε and δ of all slots taken, added up; None where one is given by a profile."""
    all_uses = []
    for slot, times in zip(plan.slots, uses, strict=True):
        if times and slot.charge is None:
            return None
        all_uses.append((slot, times))
    return _sums(all_uses)


def _sums(uses: Iterable[tuple[Slot, int]]) -> tuple[Fraction, Fraction]:
    epsilon = delta = Fraction(0)
    for slot, times in uses:
        if slot.charge is not None:
            epsilon, delta = epsilon + times * slot.charge[0], delta + times * slot.charge[1]
    return epsilon, delta


class PlannedAccount(Account):
    """Releases take slots of a plan that was fixed in advance, and compose exactly."""

    def __init__(self, cap: ScopeCap) -> None:
        super().__init__(cap)
        self.plan = Plan(slots_of(cap))
        self._used: Counter[str] = Counter()

    @property
    def uses(self) -> tuple[int, ...]:
        """How often each slot is taken."""
        return tuple(self._used[slot.name] for slot in self.plan.slots)

    @property
    def planned(self) -> Fraction | None:
        """The certified ε of the whole plan at the δ of the scope."""
        return certified_epsilon(self.plan, self.plan.whole, amount(self.cap.delta))

    def opened(self) -> None:
        """Check that the plan is within the cap. Raises ``BudgetError``."""
        # All slots together, whether or not they will be taken: a scope may be created by
        # docs/design/format.md, 6.2.
        planned = self.planned
        if planned is None or planned > amount(self.cap.epsilon):
            total = "no ε at all" if planned is None else f"ε {format_up(planned, 6)}"
            raise BudgetError(
                f"--planned: all slots of scope {self.cap.scope!r} together amount to {total} at "
                f"δ {self.cap.delta}, the cap is ε {self.cap.epsilon}; plan less, or raise the cap"
            )

    def fields(self, charge: ReleaseCharge, slot: str | None) -> RuleFields:
        """The slot: the named one, else the first free one that fits. Raises ``BudgetError``."""
        if slot is not None:
            self._check_fit(self._slot(slot), charge)
            return {"slot": slot}
        free = [slot for slot in self.plan.slots if self._used[slot.name] < slot.times]
        if not free:
            raise BudgetError(
                f"budget.scope: every slot of scope {self.cap.scope!r} is taken "
                f"({sum(self.uses)} of {sum(self.plan.whole)}); {NEW_SCOPE}",
                scope_ended=True,
            )
        for candidate in free:
            if fits(candidate, charge):
                return {"slot": candidate.name}
        names = ", ".join(names_of(free[:12]))
        raise BudgetError(
            f"budget.scope: {amounts(charge)} fits no free slot of scope {self.cap.scope!r} "
            f"(free: {names}); {_remedy(charge)}, or {NEW_SCOPE}"
        )

    def check(self, entry: Reserve) -> None:
        """Check that the slot is there and free. Raises ``BudgetError`` or ``LedgerError``."""
        self._check_fields(entry, "slot")
        slot = self._slot(entry.slot or "")
        if self._used[slot.name] >= slot.times:
            raise BudgetError(
                f"budget.slot: slot {slot.name!r} of scope {self.cap.scope!r} is taken "
                f"{slot.times} of {slot.times} times; name another one, or {NEW_SCOPE}",
                scope_ended=self.uses == self.plan.whole,
            )

    def charge(self, entry: Reserve) -> None:
        """Take a slot."""
        super().charge(entry)
        self._used[entry.slot or ""] += 1

    def refund(self, entry: Reserve) -> None:
        """Give a slot back."""
        super().refund(entry)
        self._used[entry.slot or ""] -= 1

    def saved(self, last: str, running: Sequence[Reserve]) -> dict[str, Any]:
        """The sums, and how often each slot is taken."""
        # Without those that are free again: equal states have equal snapshots.
        used = {name: times for name, times in sorted(self._used.items()) if times}
        return {**super().saved(last, running), "used": used}

    def resume(self, saved: dict[str, Any]) -> None:
        """Go on from what :meth:`saved` gave."""
        super().resume(saved)
        self._used.update(saved["used"])

    def certified(self) -> tuple[Fraction | None, Fraction]:
        """The certified ε of the slots that are taken, at the δ of the scope."""
        delta = amount(self.cap.delta)
        return certified_epsilon(self.plan, self.uses, delta), delta

    def affordable(self, entry: Reserve) -> int:
        """How often the slot of ``entry``, or one of the same form, is free."""
        like, free = self._slot(entry.slot or ""), 0
        for slot in self.plan.slots:
            if (slot.profile, slot.declared) == (like.profile, like.declared):
                free += slot.times - self._used[slot.name]
        return free

    def summary(self) -> str:
        """The slots that are taken, and what they and the whole plan amount to, in words."""
        so_far, delta = self.certified()
        amounts_to = format_up(so_far or Fraction(0), 6)
        planned = format_up(self.planned or Fraction(0), 6)
        added = self.declared[0]
        part = f", of which ε {format_exact(added)} is added as declared" if added else ""
        return (
            f"has taken {sum(self.uses)} of {sum(self.plan.whole)} slots, which amount to "
            f"ε = {amounts_to} at δ = {format_exact(delta)}; the whole plan to {planned} of "
            f"{self.cap.epsilon}{part}"
        )

    def left(self) -> str:
        """How often each slot is free, in words."""
        parts = []
        for slot in self.plan.slots:
            parts.append(f"{slot.times - self._used[slot.name]} of {slot.times} x {slot.name}")
        return ", ".join(parts)

    def level(self) -> Fraction:
        """The number of slots that are taken."""
        return Fraction(sum(self.uses))

    def level_cap(self) -> Fraction:
        """The number of all slots."""
        return Fraction(sum(self.plan.whole))

    @property
    def declared(self) -> tuple[Fraction, Fraction]:
        """The ε and δ of the declared slots of the plan, which the total holds as they are."""
        return declared_sums(self.plan, self.plan.whole)

    def _slot(self, name: str) -> Slot:
        for slot in self.plan.slots:
            if slot.name == name:
                return slot
        names = ", ".join(names_of(self.plan.slots[:12]))
        raise BudgetError(
            f"budget.slot: scope {self.cap.scope!r} has no slot {name!r} (its slots: {names}); "
            "name one of these"
        )

    def _check_fit(self, slot: Slot, charge: ReleaseCharge) -> None:
        if not fits(slot, charge):
            raise BudgetError(
                f"budget.slot: {amounts(charge)} does not fit slot {slot.name!r} of scope "
                f"{self.cap.scope!r}; {_remedy(charge)}, or {NEW_SCOPE}"
            )


def _remedy(charge: ReleaseCharge) -> str:
    if charge.losses is None:
        return "an instance-specific query needs a declared slot: use global sensitivity"
    return "lower guarantees"
