"""The report for people: one self-contained HTML file, from public records only.

It holds released answers and, of worst-case queries, their noise distributions. The same inputs
give the same bytes, pictures included. First comes what was asked and what was answered, then what
the guarantee means and what was not protected, and at last the auditor's part. The script of the
page searches its tables; the page may load nothing and run no other script.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from dp_release_verify import forms
from release.budget.ledger import Spending
from release.bundle.about import about_sentences, release_title
from release.bundle.answer_units import CODES, answer_unit
from release.bundle.cautions import differing_totals
from release.bundle.report.answer_pictures import pictures_of
from release.bundle.report.answers import (
    AnswerColumn,
    answer_columns,
    cases_of,
    example_of,
    table_of,
)
from release.bundle.report.conditions import Trees, listed, trees_of
from release.bundle.report.long_tables import EMBEDDED_IN_ALL, MAX_ROWS, held_whole, shown_table
from release.bundle.report.meaning import guesses, promise
from release.bundle.report.pictures import (
    budget_svg,
    delta_svg,
    losses_svg,
    mechanism_svg,
    nearness_svg,
)
from release.bundle.report.published import PublicQuery
from release.bundle.report.questions import (
    meanings_of,
    plural,
    question_of,
    source_of,
    title_of,
    unit_word,
)
from release.bundle.statements import (
    ENFORCED_BY,
    adjacency_text,
    guarantee_kind,
    invariants,
    limits,
    withheld,
)
from release.exact.domain import Topology
from release.exact.numbers import exp_bounds, format_exact
from release.queries.registry import sensitivity_without_data
from release.queries.zeros import zeros_of
from release.spec.declarations import Privacy
from release.spec.model import Spec
from release.spec.query import spoken
from release.tabulations.files.writing import PublicTabulation
from release.tabulations.report import shown_tabulation

if TYPE_CHECKING:
    import jinja2

_PICTURED = 30
"""Queries with pictures of their noise; a page with more is slow to write and to load."""


def report_html(
    record: forms.Release,
    spec: Spec,
    queries: tuple[PublicQuery, ...],
    tabulations: tuple[PublicTabulation, ...] = (),
    spent: Spending | None = None,
) -> str:
    """The report as HTML; with the charges of the scope, ``spent``, where there is a ledger."""
    budget = None
    if spent is not None:
        last = spent.levels[-1]
        budget = {
            "of": "slots" if spent.rule == "pld" else "ε",
            "spent": format_exact(last),
            "cap": format_exact(spent.cap),
            "left": format_exact(spent.cap - last),
            "charges": len(spent.days),
            "picture": budget_svg(spent),
        }
    privacy, total, trees = spec.privacy, record.made.total, trees_of(spec)
    unit, epsilon, delta = unit_word(privacy.unit), total.epsilon, total.delta
    is_worst = guarantee_kind([own.query for own in queries]) == "worst-case"
    embedded = held_whole((len(public.keys) for public in queries), EMBEDDED_IN_ALL)
    shown = []
    for place, (public, is_embedded) in enumerate(zip(queries, embedded, strict=True)):
        pictured = place < _PICTURED
        shown.append(_shown(spec, trees, public, pictured=pictured, is_embedded=is_embedded))
    rests = [query.rests_on for query in queries]
    rests += [tabulation.rests_on for tabulation in tabulations]
    return render(
        "report.html",
        release=record,
        title=release_title(record.asked.release),
        said=" ".join(about_sentences(record.asked.release, record.published)),
        privacy=privacy,
        budgeted=spec.budget.scope,
        paid=record.made.ledger,
        total={
            "definition": total.definition,
            "epsilon": format_exact(epsilon),
            "delta": format_exact(delta),
            "is_worst_case": is_worst,
            "is_composed": spec.composes_exactly,
        },
        enforced_by=ENFORCED_BY,
        invariants=invariants(spec),
        limits=limits(instance=not is_worst),
        withheld=withheld(instance=not is_worst, ledger=record.made.ledger is not None),
        unit=unit,
        units=plural(unit),
        fixed=listed(map(spoken, privacy.fixed)) if privacy.fixed else None,
        adjacency=_adjacency(privacy, unit),
        keys=_key_columns(queries),
        guesses=guesses(epsilon),
        queries=shown,
        without_pictures=max(0, len(queries) - _PICTURED),
        tabulations=list(map(shown_tabulation, tabulations)),
        declared=any(tabulation.opened.facts for tabulation in tabulations),
        rests=list(filter(None, rests)),
        budget=budget,
        promise=promise(epsilon, chance(delta), unit),
        differing=differing_totals([own.opened.declared for own in tabulations]),
        odds=odds(epsilon),
        chance=chance(delta),
        script=_script(),
        # The policy of the page lets the script with this hash run, and no other.
        script_hash=base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode(),
    )


def _adjacency(privacy: Privacy, unit: str) -> str:
    """The neighboring relation, with the word for a unit and not its column."""
    text = adjacency_text(privacy).replace(f"one {privacy.unit}", f"one {unit}")
    for column in privacy.fixed:
        text = text.replace(column, spoken(column))
    return text


def _key_columns(queries: Sequence[PublicQuery]) -> str | None:
    """The columns whose values are public lists."""
    columns: dict[str, None] = {}
    # A dictionary for a set in the order of the spec.
    for public in queries:
        columns |= dict.fromkeys(map(spoken, public.query.by))
    return listed(columns) if columns else None


def _script() -> str:
    return resources.files("release.bundle.report").joinpath("table.js").read_text("utf-8")


def render(template: str, **values: Any) -> str:
    """A page from one of the templates beside this file."""
    return templates().get_template(template).render(**values)


@cache
def templates() -> jinja2.Environment:
    """The templates, each compiled once a process: that takes longer than to fill one in."""
    import jinja2  # late: a verifier or a plan in the terminal never needs it

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: resources.files("release.bundle.report").joinpath(name).read_text("utf-8")
        ),
        # Titles, keys and categories come from the spec and its key files: none may be markup.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def odds(epsilon: Fraction) -> str:
    """e^ε, rounded up, for a sentence."""
    # Beyond this a float, or a number written out, would mean nothing to a reader.
    if epsilon > 20:
        return f"10^{math.ceil(float(epsilon) / math.log(10))}"
    value = exp_bounds(epsilon)[1]
    if value >= 1000:
        return f"{math.ceil(value):,}"
    return f"{math.ceil(value * 100) / 100:g}"


def chance(delta: Fraction) -> str | None:
    """δ as one in so many; None where it is 0."""
    # Down: the chance that is written is never smaller than δ.
    return f"{int(1 / delta):,}" if delta else None


def _zeros(public: PublicQuery) -> str | None:
    """How far intervals above 0 are to be trusted in a table of mostly zeros."""
    if public.on_answers is None:
        return None
    found = zeros_of(public.query, public.on_answers, public.outcomes[:, 0])
    return None if found is None else found.sentence


def _near(public: PublicQuery) -> str | None:
    """How often an answer is at most one step off; None where answers have no order."""
    if public.on_answers is None or Topology.NOMINAL in public.query.answers.topologies:
        return None
    unit = answer_unit(public.query)
    step = "at most one step" if unit == CODES else f"at most {unit.amount(1)}"
    # A word of the spec has one form, which may be a plural.
    if unit.scale == 1 and unit.word == public.query.units:
        step = "at most 1"
    near = public.on_answers.chance_within(public.query.answers, 1)
    return f"{step} off in {_share(near)}"


def _shown(
    spec: Spec, trees: Trees, public: PublicQuery, *, pictured: bool, is_embedded: bool
) -> dict[str, Any]:
    """The values of the template for one query."""
    unit, made, on_answers = unit_word(spec.privacy.unit), public.made, public.on_answers
    query, answers, nearness = public.query, answer_columns(public, unit), public.nearness
    rows = len(public.keys)
    taken = rows if is_embedded else min(MAX_ROWS, rows)
    has_intervals = any(answer.interval for answer in answers)
    return {
        "name": query.name,
        "title": title_of(query),
        "cells": made.cells,
        "path": f"data/{query.name}.parquet",
        "definition": made.definition,
        "epsilon": format_exact(made.epsilon),
        "delta": format_exact(made.delta),
        "charge": [format_exact(made.charge.epsilon), format_exact(made.charge.delta)],
        "sensitivity": query.source,
        "family": public.family,
        "law": None if made.mechanism is None else f"mechanisms/{made.mechanism}.json",
        "commitment": made.commitment,
        "question": question_of(spec.privacy.unit, trees, query),
        "source": source_of(query),
        "meanings": meanings_of(trees, query),
        "units": _units(answers),
        "figures": public.figures,
        "sentence": _sentence(spec, public),
        "on_statistic": public.on_statistic is not None,
        "nearness": None if nearness is None else nearness.sentence,
        "nearness_picture": nearness_svg(f"{query.name}-nearness", nearness)
        if nearness and pictured
        else None,
        "table": shown_table(table_of(public, answers, taken), rows, is_embedded=is_embedded),
        "pictures": pictures_of(query.name, query.by, public.keys, answers),
        "example": example_of(public, answers) if public.keys else None,
        "cases": cases_of(public) if has_intervals else None,
        "zeros": _zeros(public),
        "shared": f"{public.shared[:1].upper()}{public.shared[1:]}." if public.shared else None,
        "odds": odds(made.epsilon),
        "exact": None if on_answers is None else _share(on_answers.chance_within(query.answers, 0)),
        "near": _near(public),
        **_of_mechanism(spec, public, pictured=pictured),
    }


def _sentence(spec: Spec, public: PublicQuery) -> str | None:
    """The mechanism and the extent of its proof; None where it is not public."""
    if public.on_statistic is not None:
        return public.on_statistic.sentence
    if public.on_answers is None:
        return None
    return public.on_answers.sentence(sensitivity_without_data(spec, public.query))


def _units(answers: Sequence[AnswerColumn]) -> str | None:
    """The units of the answers, each once; None where none has a unit."""
    units = dict.fromkeys(answer.unit for answer in answers if answer.unit)
    return listed(units) if units else None


def _of_mechanism(spec: Spec, public: PublicQuery, *, pictured: bool) -> dict[str, Any]:
    """The pictures of a mechanism; all None where it is not public."""
    mechanism = public.on_answers
    if mechanism is None:
        return {"mechanism_picture": None, "delta_picture": None, "losses": None}
    domain = public.query.answers
    sensitivity = sensitivity_without_data(spec, public.query)
    drawing = (public.query.name, mechanism, sensitivity, public.query.claimed.to_guarantee())
    # A joint answer has no line on which its noise could be drawn.
    is_drawn = pictured and len(domain.parts) == 1
    losses = [f"{name} {float(loss):.4g}" for name, loss in public.compared]
    return {
        "mechanism_picture": mechanism_svg(*drawing, answer_unit(public.query))
        if is_drawn
        else None,
        "delta_picture": delta_svg(*drawing) if pictured else None,
        "losses": _losses(public) if pictured else None,
        "loss_list": ", ".join(losses),
    }


def _losses(public: PublicQuery) -> str | None:
    if len(public.compared) < 2 or public.figures is None:
        return None
    return losses_svg(public.query.name, public.figures.loss, public.compared)


def _share(chance: Fraction) -> str:
    """A probability as a number of cases in 100, rounded down."""
    value = 100 * float(chance)
    return f"{int(value)} of 100" if value >= 1 else "less than 1 of 100"
