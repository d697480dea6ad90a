"""The pages of ``dp-release plan`` and ``compare``: public inputs, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from release.budget.cost import Charge
from release.bundle.about import about_sentences, release_title
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
from release.planning.compare import Curve, Losses, Side, charge_texts
from release.planning.on_statistic import StatisticPlan
from release.planning.plan import Candidate, Plan, QueryPlan
from release.planning.together_text import epsilon_table, growth_sentence, noise_table
from release.planning.totals import TogetherPlan
from release.spec.load import SpecFile
from release.spec.query import Query
from release.tabulations.planning.plan import TabulationPlan
from release.tabulations.planning.text import sentences, table_of


def plan_html(spec_file: SpecFile, plan: Plan, remaining: tuple[Fraction, Fraction] | None) -> str:
    """The plan as a page."""
    info = spec_file.spec.release
    # What a ledger has left, before this release and after it: None where no ledger was read.
    remaining_text, after = None, None
    if remaining is not None:
        remaining_text = list(map(_signed, remaining))
        after = [_signed(remaining[0] - plan.epsilon), _signed(remaining[1] - plan.delta)]
    return render(
        "plan.html",
        title=release_title(info),
        said=" ".join(about_sentences(info, "")),
        plan={
            "epsilon": format_exact(plan.epsilon),
            "delta": format_exact(plan.delta),
            "cap_epsilon": format_exact(plan.cap_epsilon),
            "cap_delta": format_exact(plan.cap_delta),
            "over": plan.is_over,
            "odds": odds(plan.epsilon),
            "refusals": plan.refusals,
            "cautions": plan.cautions,
            "recommendations": plan.recommendations,
            "use": plan.use_of_budget,
            "exactly": plan.spec_file.spec.composes_exactly,
        },
        together=None if plan.together is None else _together(plan.together),
        left=remaining_text,
        after=after,
        scope=spec_file.spec.budget.scope,
        queries=[_planned(place, query) for place, query in enumerate(plan.queries)],
        tabulations=list(map(_tabulation, plan.tabulations)),
        on_statistic=[_on_statistic(place, query) for place, query in enumerate(plan.on_statistic)],
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


_Course: TypeAlias = tuple[str, list[float], list[float]]
"""A rule, numbers of releases, and ε."""


def _courses(together: TogetherPlan) -> list[_Course]:
    """ε by the number of releases, under each rule that has one at this δ."""
    added: _Course = ("added up", [], [])
    zcdp: _Course = ("zCDP", [], [])
    exact: _Course = ("composed exactly", [], [])
    for totals in together.course:
        # An ε of the sum says nothing once its δ is above the one that the others are read at.
        if totals.added.delta <= together.delta:
            _go_on(added, totals.releases, totals.added.epsilon)
        _go_on(zcdp, totals.releases, totals.zcdp)
        _go_on(exact, totals.releases, totals.exact)
    # One point is no curve.
    return [course for course in (added, zcdp, exact) if len(course[1]) > 1]


def _go_on(course: _Course, releases: int, epsilon: Fraction | float | None) -> None:
    """Add a point to a course, if its rule has an ε for so many releases."""
    if epsilon is not None:
        course[1].append(float(releases))
        course[2].append(float(epsilon))


def _signed(value: Fraction) -> str:
    return f"-{format_exact(-value)}" if value < 0 else format_exact(value)


def _planned(place: int, planned: QueryPlan) -> dict[str, Any]:
    mechanism, request = planned.chosen.design.mechanism, planned.asked
    # The ids of pictures hold for the whole page, so that each picture needs a name of its own.
    # A query under two assumed sensitivities has two.
    name = f"{place}-{planned.query.name}"
    candidates = (planned.chosen, *planned.others)
    losses, loss_texts = [], []
    for candidate in candidates:
        losses.append((candidate.mechanism, candidate.objective))
        loss_texts.append(f"{candidate.mechanism} {float(candidate.objective):.4g}")
    unit = answer_unit(planned.query)
    # A joint answer has no line on which its noise could be drawn.
    mechanism_picture = losses_picture = None
    if len(request.domain.parts) == 1:
        mechanism_picture = mechanism_svg(
            name, mechanism, request.sensitivity, request.guarantee, unit
        )
    if len(losses) > 1:
        in_order = sorted(losses, key=lambda loss: loss[1])
        losses_picture = losses_svg(name, request.loss.plain_name, in_order)
    return {
        "name": planned.query.name,
        "kind": planned.query.kind,
        "assumed": planned.assumed,
        "source": planned.query.source,
        "cells": planned.cells,
        "answers": request.domain.size,
        "sensitivity": len(request.sensitivity.shifts),
        "guarantee": str(request.guarantee),
        "charge_epsilon": format_exact(planned.charge.epsilon),
        "charge_delta": format_exact(planned.charge.delta),
        "loss": request.loss.plain_name.replace("_", " "),
        "candidates": [_row(candidate, unit) for candidate in candidates],
        "failed": planned.failed,
        "instead": None if planned.instead is None else planned.instead.sentence,
        "mechanism": mechanism_picture,
        "delta": delta_svg(name, mechanism, request.sensitivity, request.guarantee),
        "losses": losses_picture,
        "loss_list": ", ".join(loss_texts),
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
    request: Asked,
    losses: Sequence[Losses],
    charges: Mapping[str, Charge],
    curves: Sequence[Curve],
    sides: Sequence[Side],
) -> str:
    """The comparison as a page; ``charges`` are those at the claimed ε, by mechanism."""
    # A curve without points was given up because its mechanism is too large.
    drawn, too_large = [], []
    for curve in curves:
        if curve.deltas:
            drawn.append((curve.mechanism, curve.epsilons, curve.deltas))
        else:
            too_large.append(curve.mechanism)
    with_curve = {curve.mechanism for curve in curves}
    left_out = [family.mechanism for family in losses if family.mechanism not in with_curve]
    loss, unit = request.loss.plain_name.replace("_", " "), answer_unit(query)
    mass_curves = [_mass_curve(side, unit) for side in sides]
    return render(
        "compare.html",
        query=query,
        guarantee=str(request.guarantee),
        loss=loss,
        epsilons=list(map(format_exact, losses[0].epsilons)),
        rows=[_loss_row(family, charges.get(family.mechanism)) for family in losses],
        errors=curves_svg(
            "errors", ("ε", f"{loss} loss"), list(map(_drawn, losses)), logarithmic=True
        ),
        curves=curves_svg("curves", ("ε", "δ (approximate)"), drawn) if drawn else None,
        too_large=too_large,
        left_out=left_out,
        distributions=curves_svg("mechanisms", (unit.axis, "probability"), mass_curves),
        sides=[_side_row(side, unit) for side in sides],
    )


def _loss_row(family: Losses, charge: Charge | None) -> tuple[str, list[str]]:
    return family.mechanism, [*family.texts, *charge_texts(charge)]


def _mass_curve(side: Side, unit: AnswerUnit) -> tuple[str, list[float], Sequence[float]]:
    return side.mechanism, [unit.scale * offset for offset in side.offsets], side.masses


def _side_row(side: Side, unit: AnswerUnit) -> tuple[str, str, str]:
    within = "-" if side.radius is None else f"±{unit.amount(side.radius)}"
    return side.mechanism, f"{max(side.masses):.4g}", within


def _drawn(family: Losses) -> tuple[str, list[float], list[float]]:
    """The losses of a family that a logarithmic scale can show."""
    epsilons, losses = [], []
    for epsilon, loss in zip(family.epsilons, family.losses, strict=True):
        # Neither None, where there is no such mechanism, nor 0, which has no logarithm.
        if loss:
            epsilons.append(float(epsilon))
            losses.append(float(loss))
    return family.mechanism, epsilons, losses
