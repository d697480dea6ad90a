"""What the charges of a scope amount to: over time, and together at one δ, certified.

A scope of the rule ``basic`` adds charges up. Composed exactly, many charges amount to less. That
figure is computed in integers with every rounding upward, so it is proved. It holds for charges
fixed in advance, not for ones chosen after earlier results were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from release.budget.caps import Rule
from release.budget.entries import Abort, Reserve, Spent
from release.budget.state import Replayed, open_account
from release.exact.composition.charges import compose


@dataclass(frozen=True)
class Spending:
    """The spending of a scope over time.

    Attributes:
        scope: the account.
        rule: how its charges compose.
        days: the day of each charge that stands, in the order of the ledger.
        levels: what the scope amounts to after each: the sum of ε, the slots taken of a plan, or
            what its filter certifies.
        cap: the largest level.
    """

    scope: str
    rule: Rule
    days: tuple[str, ...]
    levels: tuple[Fraction, ...]
    cap: Fraction


def standing(ledger: Replayed, scope: str) -> tuple[Reserve, ...]:
    """The reserves of a scope that were not given back, in the order of the ledger."""
    charges: dict[int, Reserve] = {}
    # By number, not by name: an aborted release may reserve again under its name.
    running: dict[str, int] = {}
    for entry in ledger.entries:
        if isinstance(entry, Reserve):
            running[entry.release_id] = entry.seq
            if entry.scope == scope:
                charges[entry.seq] = entry
        elif isinstance(entry, Abort) and not entry.drawn:
            charges.pop(running[entry.release_id], None)
    return tuple(charges.values())


def spending(ledger: Replayed, scope: str) -> Spending:
    """The charges to a scope, in the order of the ledger."""
    cap = ledger.state.accounts[scope].cap
    account, charges, levels = open_account(cap), standing(ledger, scope), []
    for entry in charges:
        account.charge(entry)
        levels.append(account.level())
    days = tuple(entry.date for entry in charges)
    return Spending(scope, cap.rule, days, tuple(levels), account.level_cap())


def composed_epsilon(charges: Sequence[Spent], delta: Fraction) -> Fraction | None:
    """Return an ε such that all ``charges`` together are (ε, ``delta``)-differentially private.

    Args:
        charges: (ε, δ) of each release, approximate (every definition here implies it).
        delta: the δ at which to read the composition, 0 <= delta < 1.

    Returns:
        An upper bound, never above the sum of the ε where basic composition applies. None where no
        ε has so small a δ: the charges have a larger one in any case.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta is {delta}; it must be at least 0 and below 1")
    epsilon = compose((charge.epsilon, charge.delta) for charge in charges).epsilon_at(delta)
    basic = sum(charges, Spent())
    if basic.delta > delta:
        return epsilon
    # Masses that are folded or rounded count as δ, so that the sum can be the smaller one.
    return basic.epsilon if epsilon is None else min(epsilon, basic.epsilon)
