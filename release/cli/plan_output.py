"""What ``dp-release plan`` and ``compare`` print and write: plans as text and as plain data.

The text has errors in the unit of the answer (:mod:`release.bundle.answer_units`), JSON in codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from release.bundle.answer_units import answer_unit
from release.bundle.report.questions import unit_word
from release.cli.console import echo, is_verbose, print_cautions, print_table
from release.errors import ReleaseError, StorageError
from release.exact.losses import WorstCaseLoss
from release.exact.numbers import format_exact, format_up
from release.planning.together_text import (
    epsilon_table,
    growth_sentence,
    noise_table,
    plain_together,
)
from release.tabulations.planning.text import plain_tabulation, sentences, table_of

if TYPE_CHECKING:
    from release.noise.families import Solvers
    from release.planning.on_statistic import StatisticPlan
    from release.planning.plan import Candidate, Plan, QueryPlan
    from release.planning.targets import Least
    from release.planning.totals import TogetherPlan
    from release.spec.load import SpecFile
    from release.tabulations.planning.plan import TabulationPlan

Remaining: TypeAlias = tuple[Fraction, Fraction]
"""What is left of a scope, in ε and δ."""

_MOST_SHOWN = 10**12
"""More answers than these are all integers to a reader."""

_COLUMNS = [
    *("query", "answers", "sensitivity", "mechanism", "exact", "mean error", "at lowest"),
    *("at highest", "95 in 100", "loss", "charge ε", "charge δ"),
]


def cached_solvers() -> Solvers:
    """The solvers of plans, with the cache of mechanisms."""
    from release.noise.cache import default_cache
    from release.noise.design import GAP
    from release.noise.stage import solvers_of

    # Nothing in a plan depends on a table, so every mechanism may go into the cache.
    return solvers_of(default_cache(), GAP)


def write_page(path: Path, text: str) -> None:
    """Write the page of ``--html``; a StorageError says why it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--html: cannot be written: {error.strerror}") from error


def print_plan(
    spec_file: SpecFile, plan: Plan, remaining: Remaining | None, refusal: ReleaseError | None
) -> None:
    """Print a plan as a table, the sum of its charges, and why a run would be refused.

    The ``refusal`` that a run ends with is left out: it is the last line, as the error.
    """
    if is_verbose():
        _print_mechanisms(plan)
    else:
        _print_charges(plan)
    _print_tabulations(plan.tabulations)
    for recommended in plan.recommendations:
        echo(f"better: {recommended}")
    _print_notes(plan.queries)
    _print_why(plan)
    together = plan.together
    if together is not None and (is_verbose() or together.season is not None):
        _print_together(together)
    epsilon, delta = format_exact(plan.epsilon), format_exact(plan.delta)
    caps = format_exact(plan.cap_epsilon), format_exact(plan.cap_delta)
    rule = ", composed exactly" if plan.spec_file.spec.composes_exactly else ""
    echo(f"charged together: ε = {epsilon} of {caps[0]}, δ = {delta} of {caps[1]}{rule}")
    if plan.use_of_budget is not None:
        echo(plan.use_of_budget)
    print_cautions(plan.cautions)
    for demand in plan.acceptance:
        echo(f"acceptance: {demand.sentence}")
    for reason in plan.refusals:
        if reason != str(refusal):
            echo(f"a run would be refused: {reason}")
    if remaining is not None:
        scope, (epsilon_left, delta_left) = spec_file.spec.budget.scope, remaining
        echo(
            f"left in {scope}: ε = {_signed(epsilon_left)}, δ = {_signed(delta_left)}; after "
            f"this ε = {_signed(epsilon_left - plan.epsilon)}, "
            f"δ = {_signed(delta_left - plan.delta)}"
        )
    if any(planned.assumed for planned in plan.queries):
        echo(
            "empirical sensitivity is not known before the table is read: one step and the most "
            "that is allowed are shown"
        )


def _print_charges(plan: Plan) -> None:
    """Print for each query its cells, its noise, how near its answers are, and its charge."""
    from release.planning.plan import SHORT

    rows = [list(row) for row in plan.short_rows()]
    if rows:
        print_table(list(SHORT), rows)
    for on_statistic in plan.on_statistic:
        echo(f"{on_statistic.query.name}: {on_statistic.nearness.sentence}")


def _print_mechanisms(plan: Plan) -> None:
    """Print every mechanism that was compared, with all its figures."""
    rows = []
    for planned in plan.queries:
        answers = planned.asked.domain.size
        size = f"{planned.cells} × {answers if answers <= _MOST_SHOWN else 'integers'}"
        charge = format_exact(planned.charge.epsilon), format_exact(planned.charge.delta)
        mechanism = _figures(planned, planned.chosen)
        rows.append([planned.query.name, size, _sensitivity(planned), *mechanism, *charge])
        # Below it what the other mechanisms would lose; none of them would cost less.
        for candidate in planned.others:
            rows.append(["", "", "", *_figures(planned, candidate), "", ""])
    if rows:
        print_table(_COLUMNS, rows)
        echo("means are over all answers of the domain, each as likely (uniform prior)")
    _print_on_statistic(plan.on_statistic)


def _print_notes(plans: tuple[QueryPlan, ...]) -> None:
    for planned in plans:
        case = f", {planned.assumed}" if planned.assumed else ""
        for line in _warnings(planned):
            echo(f"{planned.query.name}{case}: {line}")
        if planned.instead is not None:
            echo(f"{planned.query.name}: {planned.instead.sentence}")


def _print_why(plan: Plan) -> None:
    """Say of each charge that is not the ε of one cell why it is not."""
    unit = unit_word(plan.spec_file.spec.privacy.unit)
    planned: list[QueryPlan | StatisticPlan] = [*plan.queries, *plan.on_statistic]
    for each in planned:
        sentence = each.charge.why(each.query.claimed.epsilon, unit)
        if sentence is not None:
            echo(f"{each.query.name}: {sentence}")


def _print_together(together: TogetherPlan) -> None:
    for columns, rows in (epsilon_table(together), noise_table(together)):
        if rows:
            print_table(columns, rows)
    growth = growth_sentence(together)
    if growth is not None:
        echo(growth)


def _print_tabulations(plans: tuple[TabulationPlan, ...]) -> None:
    for planned in plans:
        heads, rows = table_of(planned)
        # By its name: the tables of a spec with several tabulations stand below each other.
        print_table([planned.name, *heads[1:]], rows)
        for line in sentences(planned):
            echo(f"{planned.name}: {line}")


def _print_on_statistic(plans: tuple[StatisticPlan, ...]) -> None:
    rows = []
    for planned in plans:
        charge = format_exact(planned.charge.epsilon), format_exact(planned.charge.delta)
        size = f"{planned.cells} × {planned.query.answers.size}"
        rows.append([planned.query.name, size, str(planned.statistic.spread)])
        rows[-1] += [planned.design.name, *charge]
    if not rows:
        return
    print_table(["query", "answers", "a unit moves", "mechanism", "charge ε", "charge δ"], rows)
    for planned in plans:
        echo(f"{planned.query.name}: {planned.nearness.sentence}")
        if planned.beside is not None:
            echo(f"{planned.query.name}: {planned.beside}")


def _figures(planned: QueryPlan, candidate: Candidate) -> list[str]:
    return [
        f"{candidate.mechanism} *" if candidate is planned.chosen else candidate.mechanism,
        f"{float(candidate.accuracy.p_exact):.3f}",
        *candidate.errors_in(answer_unit(planned.query)),
        figure(candidate.objective),
    ]


def _warnings(planned: QueryPlan) -> Iterator[str]:
    """What the mean of the chosen mechanism hides."""
    chosen, unit = planned.chosen, answer_unit(planned.query)
    loss = chosen.design.loss
    if isinstance(loss, WorstCaseLoss):
        yield "the loss is that at the worst true answer"
    elif loss.prior is not None:
        yield "the loss is a mean under the prior of the spec, the other means are not"
    if chosen.losses is not None and is_verbose():
        lowest, highest, worst = map(figure, chosen.losses)
        yield f"loss {lowest} at the lowest true answer, {highest} at the highest, {worst} at worst"
    in_order = [part.name for part in planned.query.parts if part.answers.is_line]
    if in_order and chosen.design.mechanism.modular_noise is not None:
        yield f"noise wraps round: {' and '.join(in_order)} can be published as the other end"
    if chosen.far is not None and is_verbose():
        large, chance = chosen.far
        yield f"an error beyond {unit.amount(large)} has chance {float(chance):.2g}"
    if chosen.is_hardly_more_than_noise:
        yield (
            f"hardly more than noise: a guess without the table loses {chosen.guess:.4g}, this "
            f"{figure(chosen.objective)}; raise epsilon or choose a smaller domain"
        )


def _signed(amount: Fraction) -> str:
    text = format_exact(amount)
    return f"{text} (too little)" if amount < 0 else text


def _sensitivity(planned: QueryPlan) -> str:
    """The sensitivity in short, and where it comes from or what is assumed of it."""
    sensitivity = planned.asked.sensitivity
    text, most = str(len(sensitivity.shifts)), sensitivity.distances
    if most is not None and most == tuple(range(1, len(most) + 1)):
        text = f"±1..±{len(most)}" if len(most) > 1 else "±1"
    return f"{text}, {planned.assumed or planned.query.source}"


def figure(value: Fraction) -> str:
    """A number to four digits, for tables that people read."""
    return f"{float(value):.4g}"


def plain_least(least: Least) -> dict[str, str]:
    """The least guarantee for a target, as plain data."""
    return {
        "query": least.query.name,
        "assumed": least.assumed or "",
        "definition": least.guarantee.definition.value,
        "epsilon": format_exact(least.guarantee.epsilon),
        "delta": format_exact(least.guarantee.delta),
        # Rounded up: a target that is not quite met must not look as if it were.
        "loss": format_up(least.objective, 6),
        "charge": format_exact(least.charge.epsilon),
    }


def plain_plan(spec_file: SpecFile, plan: Plan, remaining: Remaining | None) -> dict[str, Any]:
    """A plan as plain data: ε and δ as exact text, losses and errors in codes as floats."""
    return {
        "release_id": spec_file.spec.release.id,
        **plain_amounts(plan.epsilon, plan.delta),
        "cap": plain_amounts(plan.cap_epsilon, plan.cap_delta),
        "over_budget": plan.is_over,
        "refusals": list(plan.refusals),
        "cautions": list(plan.cautions),
        "acceptance": [
            {"entry": demand.entry.text, "found": float(demand.found), "met": demand.is_met}
            for demand in plan.acceptance
        ],
        "left": None if remaining is None else plain_amounts(*remaining),
        "queries": list(map(_plain_query, plan.queries)),
        "on_statistic": list(map(_plain_on_statistic, plan.on_statistic)),
        "tabulations": list(map(plain_tabulation, plan.tabulations)),
        "recommendations": list(plan.recommendations),
        "use_of_budget": plan.use_of_budget,
        "composition": "pld" if plan.spec_file.spec.composes_exactly else "basic",
        "together": None if plan.together is None else plain_together(plan.together),
    }


def plain_amounts(epsilon: Fraction, delta: Fraction) -> dict[str, str]:
    """An ε and a δ as exact texts."""
    return {"epsilon": format_exact(epsilon), "delta": format_exact(delta)}


def _plain_query(planned: QueryPlan) -> dict[str, Any]:
    return {
        "name": planned.query.name,
        "assumed": planned.assumed,
        "cells": planned.cells,
        "answers": planned.asked.domain.size,
        "sensitivity": len(planned.asked.sensitivity.shifts),
        "charge": plain_amounts(planned.charge.epsilon, planned.charge.delta),
        "mechanism": planned.chosen.mechanism,
        "on_statistic": None if planned.instead is None else planned.instead.sentence,
        "candidates": list(map(_plain_candidate, (planned.chosen, *planned.others))),
    }


def _plain_on_statistic(planned: StatisticPlan) -> dict[str, Any]:
    nearness = planned.nearness
    return {
        "name": planned.query.name,
        "cells": planned.cells,
        "answers": planned.query.answers.size,
        "spread": planned.statistic.spread,
        "charge": plain_amounts(planned.charge.epsilon, planned.charge.delta),
        "mechanism": planned.design.name,
        "nearness": nearness.sentence,
        "of": nearness.of,
        "figure": nearness.figure,
        "points": [list(point) for point in nearness.points],
        "on_answer": planned.beside,
    }


def _plain_candidate(candidate: Candidate) -> dict[str, Any]:
    # Floats are for reading only; the exact loss stands in the mechanism file of a release.
    at_lowest, at_highest = candidate.ends or (None, None)
    return {
        "mechanism": candidate.mechanism,
        "loss": float(candidate.objective),
        "p_exact": candidate.accuracy.p_exact,
        "mean_absolute": candidate.accuracy.mean_absolute,
        "at_lowest": None if at_lowest is None else float(at_lowest),
        "at_highest": None if at_highest is None else float(at_highest),
        "within_95": candidate.within,
        **candidate.hidden_by_means,
    }
