"""The pages of ``dp-release plan`` and ``compare``: public inputs, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from release.bundle.answer_units import AnswerUnit, answer_unit
from release.bundle.report.page import odds, render
from release.bundle.report.pictures import (
    curves_svg,
    delta_svg,
    losses_svg,
    mechanism_svg,
    nearness_svg,
)
from release.exact.numbers import format_exact
from release.noise.design import Asked
from release.planning.compare import Curve, Losses, Side
from release.planning.on_statistic import StatisticPlan
from release.planning.plan import Candidate, Plan, QueryPlan
from release.planning.tabulations.plan import TabulationPlan
from release.planning.tabulations.text import sentences, table_of
from release.planning.together_text import epsilon_table, growth_sentence, noise_table
from release.planning.totals import TogetherPlan
from release.spec.load import SpecFile
from release.spec.query import Query


def plan_html(spec_file: SpecFile, plan: Plan, left: tuple[Fraction, Fraction] | None) -> str:
    """The plan as a page."""
    info = spec_file.spec.release
    return render(
        "plan.html",
        info=info,
        plan={
            "epsilon": format_exact(plan.epsilon),
            "delta": format_exact(plan.delta),
            "cap_epsilon": format_exact(plan.cap_epsilon),
            "cap_delta": format_exact(plan.cap_delta),
            "over": plan.is_over,
            "odds": odds(plan.epsilon),
            "refusals": plan.refusals,
            "recommendations": plan.recommendations,
            "exactly": plan.spec_file.spec.composes_exactly,
        },
        together=None if plan.together is None else _together(plan.together),
        left=None if left is None else [_signed(amount) for amount in left],
        after=None
        if left is None
        else [_signed(left[0] - plan.epsilon), _signed(left[1] - plan.delta)],
        scope=spec_file.spec.budget.scope,
        queries=[_planned(place, query) for place, query in enumerate(plan.queries)],
        tabulations=[_tabulation(one) for one in plan.tabulations],
        on_statistic=[_on_statistic(place, one) for place, one in enumerate(plan.on_statistic)],
    )


def _together(together: TogetherPlan) -> dict[str, Any]:
    courses = _courses(together)
    course = curves_svg("season", ("releases", "ε"), courses) if courses else None
    tables = [("ε under three rules", *epsilon_table(together))]
    if together.noise:
        tables.append(("The noise of the shared budget", *noise_table(together)))
    return {
        "tables": tables,
        "growth": growth_sentence(together),
        "course": course,
    }


def _courses(together: TogetherPlan) -> list[tuple[str, list[float], list[float]]]:
    """ε by the number of releases, under each rule that has one at this δ."""
    added, zcdp, exact = [], [], []
    for totals in together.course:
        releases = float(totals.releases)
        if totals.added.delta <= together.delta:
            added.append((releases, float(totals.added.epsilon)))
        if totals.zcdp is not None:
            zcdp.append((releases, totals.zcdp))
        if totals.exact is not None:
            exact.append((releases, float(totals.exact)))
    curves = []
    for name, points in (("added up", added), ("zCDP", zcdp), ("composed exactly", exact)):
        if len(points) > 1:
            curves.append((name, [x for x, _ in points], [y for _, y in points]))
    return curves


def _signed(value: Fraction) -> str:
    return f"-{format_exact(-value)}" if value < 0 else format_exact(value)


def _planned(place: int, planned: QueryPlan) -> dict[str, Any]:
    mechanism, asked = planned.chosen.design.mechanism, planned.asked
    name = f"{place}-{planned.query.name}"
    candidates = (planned.chosen, *planned.others)
    losses = [(candidate.mechanism, candidate.objective) for candidate in candidates]
    plain, unit = len(asked.domain.parts) == 1, answer_unit(planned.query)
    return {
        "name": planned.query.name,
        "kind": planned.query.kind,
        "assumed": planned.assumed,
        "source": planned.query.source,
        "cells": planned.cells,
        "answers": asked.domain.size,
        "sensitivity": len(asked.sensitivity.shifts),
        "guarantee": str(asked.guarantee),
        "charge_epsilon": format_exact(planned.charge.epsilon),
        "charge_delta": format_exact(planned.charge.delta),
        "loss": asked.loss.name.replace("_", " "),
        "candidates": [_row(candidate, unit) for candidate in candidates],
        "failed": planned.failed,
        "mechanism": mechanism_svg(name, mechanism, asked.sensitivity, asked.guarantee, unit)
        if plain
        else None,
        "delta": delta_svg(name, mechanism, asked.sensitivity, asked.guarantee),
        "losses": losses_svg(name, asked.loss.name, sorted(losses, key=lambda pair: pair[1]))
        if len(losses) > 1
        else None,
        "loss_list": ", ".join(f"{family} {float(loss):.4g}" for family, loss in losses),
    }


def _on_statistic(place: int, planned: StatisticPlan) -> dict[str, Any]:
    return {
        "name": planned.query.name,
        "kind": planned.query.kind,
        "mechanism": planned.design.name.replace("_", " "),
        "cells": planned.cells,
        "answers": planned.query.answers.size,
        "spread": planned.statistic.spread,
        "charge_epsilon": format_exact(planned.charge.epsilon),
        "charge_delta": format_exact(planned.charge.delta),
        "nearness": planned.nearness.sentence,
        "beside": planned.beside,
        "picture": nearness_svg(f"{place}-{planned.query.name}-nearness", planned.nearness),
    }


def _tabulation(planned: TabulationPlan) -> dict[str, Any]:
    heads, rows = table_of(planned)
    return {
        "name": planned.name,
        "title": planned.opened.declared.title or planned.name,
        "sentences": sentences(planned),
        "heads": heads,
        "rows": rows,
    }


def _row(candidate: Candidate, unit: AnswerUnit) -> dict[str, Any]:
    mean, at_lowest, at_highest, within = candidate.errors_in(unit)
    return {
        "mechanism": candidate.mechanism,
        "exact": f"{float(candidate.accuracy.p_exact):.3f}",
        "mean": mean,
        "ends": [at_lowest, at_highest],
        "within": within,
        "loss": f"{float(candidate.objective):.4g}",
    }


def compare_html(
    query: Query,
    asked: Asked,
    losses: Sequence[Losses],
    curves: Sequence[Curve],
    sides: Sequence[Side],
) -> str:
    """The comparison as a page."""
    drawn = [(curve.mechanism, curve.epsilons, curve.deltas) for curve in curves if curve.deltas]
    with_curve = {curve.mechanism for curve in curves}
    loss, unit = asked.loss.name.replace("_", " "), answer_unit(query)
    return render(
        "compare.html",
        query=query,
        guarantee=str(asked.guarantee),
        loss=loss,
        epsilons=[format_exact(epsilon) for epsilon in losses[0].epsilons],
        rows=[
            (family.mechanism, ["-" if v is None else f"{float(v):.4g}" for v in family.losses])
            for family in losses
        ],
        errors=curves_svg(
            "errors", ("ε", f"{loss} loss"), list(map(_drawn, losses)), logarithmic=True
        ),
        curves=curves_svg("curves", ("ε", "δ (approximate)"), drawn) if drawn else None,
        too_large=[curve.mechanism for curve in curves if not curve.deltas],
        left_out=[family.mechanism for family in losses if family.mechanism not in with_curve],
        distributions=curves_svg(
            "mechanisms",
            (unit.axis, "probability"),
            [
                (side.mechanism, [unit.scale * offset for offset in side.offsets], side.masses)
                for side in sides
            ],
        ),
        sides=[_side_row(side, unit) for side in sides],
    )


def _side_row(side: Side, unit: AnswerUnit) -> tuple[str, str, str]:
    within = "-" if side.radius is None else f"±{unit.amount(side.radius)}"
    return side.mechanism, f"{max(side.masses):.4g}", within


def _drawn(family: Losses) -> tuple[str, list[float], list[float]]:
    """The losses of a family that a logarithmic scale can show."""
    points = [(e, loss) for e, loss in zip(family.epsilons, family.losses, strict=True) if loss]
    return family.mechanism, [float(e) for e, _ in points], [float(loss) for _, loss in points]
