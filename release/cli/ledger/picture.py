"""Pictures of a ledger's scopes: the δ at every ε of what was released, and of what is planned."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from release.bundle.report.charts import (
    DASHED,
    DOTTED,
    SOLID,
    Chart,
    Entry,
    number_axis,
    power_axis,
)
from release.bundle.report.page import render
from release.bundle.report.pictures import BLUE, GREY, RED

if TYPE_CHECKING:
    from release.budget.ledger import Account, Replayed
    from release.budget.rules.filtered import FilterAccount
    from release.budget.rules.planned import PlannedAccount
    from release.exact.composition.distribution import LossDistribution

Curve: TypeAlias = Callable[[Fraction], Fraction]
"""δ at an ε, rounded up."""

_LEAST = 1e-12
"""The least δ that is drawn."""

_POINTS = 90


def ledger_html(ledger: Replayed) -> str:
    """A page with a picture of each scope."""
    scopes: list[dict[str, Any]] = []
    for name, account in sorted(ledger.state.accounts.items()):
        scopes.append(
            {
                "name": name,
                "rule": account.cap.rule,
                "summary": account.summary(),
                "left": account.left(),
                "picture": scope_svg(ledger, name),
            }
        )
    return render(
        "ledger.html", origin=ledger.state.origin, entries=ledger.state.size, scopes=scopes
    )


def scope_svg(ledger: Replayed, scope: str) -> str:
    """The δ that a scope's releases satisfy together at every ε, and the same of its plan."""
    cap = ledger.state.accounts[scope].cap
    curves = scope_curves(ledger, scope)
    cap_epsilon, cap_delta = Fraction(cap.epsilon), Fraction(cap.delta)
    widest = max(cap_epsilon, Fraction(1, 100)) * Fraction(5, 4)
    axes = (
        number_axis(0, float(widest), "ε"),
        power_axis(_LEAST, 1, "δ", has_grid=True),
    )
    styles = ((BLUE, SOLID), (RED, DASHED), (GREY, DOTTED))
    legend = [Entry(name, *style) for (name, _), style in zip(curves, styles, strict=False)]
    if cap_delta >= Fraction(_LEAST):
        legend.append(Entry("cap, the dot", GREY))
    chart = Chart(f"scope-{scope}", 190, axes, legend)
    for (_, curve), (colour, dashes) in zip(curves, styles, strict=False):
        points = []
        for place in range(_POINTS + 1):
            epsilon = widest * place / _POINTS
            # Far below the picture all depths look alike, and 0 has no logarithm.
            delta = min(1.0, max(float(curve(epsilon)), _LEAST / 1000))
            points.append((float(epsilon), delta))
        chart.line(points, colour, dashes, 2)
    if cap_delta >= Fraction(_LEAST):
        chart.dots([(float(cap_epsilon), float(cap_delta))], GREY)
    return chart.svg()


def scope_curves(ledger: Replayed, scope: str) -> list[tuple[str, Curve]]:
    """The curves of a scope by their names: what was released, and what the rule allows."""
    from release.budget.rules.filtered import FilterAccount
    from release.budget.rules.planned import PlannedAccount

    account = ledger.state.accounts[scope]
    if isinstance(account, PlannedAccount):
        return _of_plan(account)
    if isinstance(account, FilterAccount):
        return _of_filter(account)
    return _of_sums(ledger, account)


def _of_plan(account: PlannedAccount) -> list[tuple[str, Curve]]:
    from release.budget.rules.planned import declared_sums, losses_of

    plan = account.plan
    curves: list[tuple[str, Curve]] = []
    for name, uses in (("spent", account.uses), ("planned", plan.whole)):
        losses, added = losses_of(plan, uses), declared_sums(plan, uses)
        curves.append((name, _shifted(losses, *added)))
    return curves


def _shifted(losses: LossDistribution, epsilon: Fraction, delta: Fraction) -> Curve:
    """A curve with a declared ε and δ added to it."""

    def curve(at: Fraction) -> Fraction:
        return Fraction(1) if at < epsilon else losses.delta_at(at - epsilon) + delta

    return curve


def _of_filter(account: FilterAccount) -> list[tuple[str, Curve]]:
    return [("spent", account.delta_at), ("let through at most", account.most_delta_at)]


def _of_sums(ledger: Replayed, account: Account) -> list[tuple[str, Curve]]:
    from release.budget.spending import standing
    from release.exact.composition.charges import compose

    scope = account.cap.scope
    charges = []
    for entry in standing(ledger, scope):
        charges.append((Fraction(entry.epsilon), Fraction(entry.delta)))
    return [("spent, for charges fixed in advance", compose(charges).delta_at)]
