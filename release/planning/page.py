"""The pages of ``dp-release plan`` and ``compare``: public inputs, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from release.bundle.report.page import odds, render
from release.bundle.report.pictures import curves_svg, delta_svg, law_svg, losses_svg
from release.exact.numbers import format_exact
from release.noise.select import Asked, ChosenChannel, noise_of
from release.planning.compare import Kept, Losses, Side
from release.planning.plan import Candidate, Plan, QueryPlan
from release.spec.load import SpecFile
from release.spec.model import Query


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
        },
        left=None if left is None else [_signed(one) for one in left],
        after=None
        if left is None
        else [_signed(left[0] - plan.epsilon), _signed(left[1] - plan.delta)],
        scope=spec_file.spec.budget.scope,
        queries=[_planned(place, one) for place, one in enumerate(plan.queries)],
    )


def _signed(value: Fraction) -> str:
    return f"-{format_exact(-value)}" if value < 0 else format_exact(value)


def _planned(place: int, one: QueryPlan) -> dict[str, Any]:
    made, asked = one.chosen.made, one.asked
    name = f"{place}-{one.query.name}"
    losses = [(c.mechanism, c.objective) for c in (one.chosen, *one.others)]
    noise = noise_of(made)
    plain = isinstance(made, ChosenChannel) or len(asked.domain.parts) == 1
    return {
        "name": one.query.name,
        "kind": one.query.kind,
        "assumed": one.assumed,
        "source": one.query.source,
        "cells": one.cells,
        "answers": asked.domain.size,
        "sensitivity": len(asked.sensitivity.shifts),
        "guarantee": str(asked.guarantee),
        "charge_epsilon": format_exact(one.charge.epsilon),
        "charge_delta": format_exact(one.charge.delta),
        "loss": asked.loss.name.replace("_", " "),
        "candidates": [_row(c) for c in (one.chosen, *one.others)],
        "failed": one.failed,
        "law": law_svg(name, noise, asked.sensitivity, asked.guarantee) if plain else None,
        "delta": delta_svg(name, noise, asked.sensitivity, asked.guarantee),
        "losses": losses_svg(name, asked.loss.name, sorted(losses, key=lambda pair: pair[1]))
        if len(losses) > 1
        else None,
        "loss_list": ", ".join(f"{family} {float(loss):.4g}" for family, loss in losses),
    }


def _row(candidate: Candidate) -> dict[str, Any]:
    return {
        "mechanism": candidate.mechanism,
        "exact": f"{float(candidate.accuracy.p_exact):.3f}",
        "mean": f"{float(candidate.accuracy.mean_absolute):.4g}",
        "ends": ["-", "-"]
        if candidate.ends is None
        else [f"{float(end):.4g}" for end in candidate.ends],
        "within": "-" if candidate.within is None else f"±{candidate.within}",
        "loss": f"{float(candidate.objective):.4g}",
    }


def compare_html(
    query: Query,
    asked: Asked,
    losses: Sequence[Losses],
    kept: Sequence[Kept],
    sides: Sequence[Side],
) -> str:
    """The comparison as a page."""
    errors = [
        (
            one.mechanism,
            [float(e) for e, loss in zip(one.epsilons, one.losses, strict=True) if loss],
            [float(loss) for loss in one.losses if loss],
        )
        for one in losses
    ]
    return render(
        "compare.html",
        query=query,
        promise=str(asked.guarantee),
        loss=asked.loss.name.replace("_", " "),
        epsilons=[format_exact(e) for e in losses[0].epsilons],
        rows=[
            (one.mechanism, ["-" if v is None else f"{float(v):.4g}" for v in one.losses])
            for one in losses
        ],
        errors=curves_svg(
            "errors", ("ε", f"{asked.loss.name.replace('_', ' ')} loss"), errors, logarithmic=True
        ),
        kept=curves_svg(
            "kept",
            ("ε", "δ (approximate)"),
            [(curve.mechanism, curve.epsilons, curve.deltas) for curve in kept if curve.deltas],
        )
        if any(curve.deltas for curve in kept)
        else None,
        too_large=[curve.mechanism for curve in kept if not curve.deltas],
        left_out=[one.mechanism for one in losses if one.mechanism not in _names(kept)],
        laws=curves_svg(
            "mechanisms",
            ("published minus true answer, in codes", "chance"),
            [(side.mechanism, side.offsets, side.masses) for side in sides],
        ),
        sides=[
            (side.mechanism, f"{max(side.masses):.4g}", "-" if side.radius is None else side.radius)
            for side in sides
        ],
    )


def _names(kept: Sequence[Kept]) -> set[str]:
    return {one.mechanism for one in kept}
