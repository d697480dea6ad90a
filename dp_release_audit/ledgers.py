"""Releases one table again and again, until the budget of a ledger ends: it ends in time.

The charges are those that the program states of one release, which the other parts of the audit
hold against what it draws. A cap of two and a half of them lets two releases through, and no more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from dp_release_audit.program import Program
from dp_release_audit.tables import Case
from dp_release_audit.verdict import Finding, Verdict
from release.budget.cost import Charges
from release.budget.ledger import ScopeCap
from release.errors import ReleaseError
from release.exact.numbers import format_exact

_FIT, _TRIED = 2, 4
_AMPLE = {"epsilon": Fraction(100_000), "delta": Fraction(99, 100)}


def spend_ledgers(program: Program, case: Case, charged: Charges, verdict: Verdict) -> None:
    """Release more often than a cap on ε allows, and then than one on δ does."""
    _check_budget(program, charged, verdict)
    for amount, symbol in (("epsilon", "ε"), ("delta", "δ")):
        charge: Fraction = getattr(charged, amount)
        cap = charge * (2 * _FIT + 1) / 2
        # A δ of nearly 1 has no cap that lets so many through.
        if charge == 0 or cap > _AMPLE[amount]:
            continue
        for every in (None, "month"):
            try:
                released = program.spend(case, _capped(program, amount, cap, every), _TRIED)
            except ReleaseError as error:
                verdict.add(Finding("the ledger", "", str(error)))
                continue
            verdict.tried.runs += released
            if released > _FIT:
                under = f"a cap of {format_exact(cap)}{f' each {every}' if every else ''}"
                text = f"{released} releases of {symbol} {format_exact(charge)} went through under"
                verdict.add(Finding("the ledger", "", f"{text} {under}"))


def _check_budget(program: Program, charged: Charges, verdict: Verdict) -> None:
    """What is charged is within the budget that the spec itself states."""
    budget = program.spec_file.spec.budget
    for amount in ("epsilon", "delta"):
        charge, cap = getattr(charged, amount), Fraction(getattr(budget, amount))
        if charge > cap:
            text = f"{format_exact(charge)} is charged, and {format_exact(cap)} is the budget"
            verdict.add(Finding("the budget of the spec", "", f"{amount}: {text}"))


def _capped(
    program: Program, amount: str, cap: Fraction, every: Literal["month"] | None
) -> ScopeCap:
    """Caps of a scope, ample but for one amount: of its lifetime, or of each period."""
    ample = {name: format_exact(each) for name, each in _AMPLE.items()}
    tight = ample | {amount: format_exact(cap)}
    scope = program.spec_file.spec.budget.scope
    if every is None:
        return ScopeCap.model_validate({"scope": scope, **tight})
    return ScopeCap.model_validate({"scope": scope, **ample, "period": {"every": every, **tight}})
