"""The report for people: one self-contained HTML file, from public records only.

It holds released answers and, of worst-case queries, their noise distributions. The same inputs
give the same bytes, pictures included. The part for readers explains what was published, how
accurate it is and what it means for a person. The part for auditors shows the noise distributions
and the guarantees that they satisfy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Any

from release.budget.ledger import Spending
from release.bundle.answer_units import answer_unit
from release.bundle.nearness import Nearness, nearness_of
from release.bundle.report.pictures import (
    answers_svg,
    budget_svg,
    delta_svg,
    heat_map_svg,
    losses_svg,
    mechanism_svg,
    nearness_svg,
)
from release.bundle.report.tabulations import MAX_ROWS, shown_tabulation
from release.bundle.tabulations.writing import PublicTabulation
from release.exact.accuracy import likely_around
from release.exact.domain import Codes, Topology
from release.exact.mechanism import Mechanism
from release.exact.numbers import exp_bounds, format_exact
from release.queries.statistics import OnStatisticQuery
from release.records.mechanisms import AnyMechanismRecord, MechanismRecord
from release.records.models import QueryRecord, ReleaseRecord
from release.records.statistics import StatisticRecord
from release.spec.query import Query

_BARS, _FIELDS = 60, 40

_PICTURED = 30
"""Noise distributions drawn; a page with more is slow to write and to load."""


@dataclass(frozen=True)
class PublicQuery:
    """The public part of one query.

    ``outcomes`` is what was drawn, shape (cells, columns). ``mechanism`` is None where it depends
    on the table. ``compared`` is the expected loss of each
    mechanism, where several were compared. ``rests_on`` is the assumption about its SQL.
    """

    query: Query
    record: QueryRecord
    keys: tuple[tuple[str, ...], ...]
    outcomes: Codes
    mechanism: AnyMechanismRecord | None
    compared: tuple[tuple[str, Fraction], ...] = ()
    rests_on: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the keys and of the answer, or of each part of it."""
        return (*self.record.by, *self.query.columns)

    @property
    def codes(self) -> list[int]:
        """The codes of the first answer column."""
        return list(self.query.answer_codes(self.outcomes)[0].tolist())

    @property
    def on_answers(self) -> MechanismRecord | None:
        """The mechanism, where it is public and its noise is on the answer."""
        return self.mechanism if isinstance(self.mechanism, MechanismRecord) else None

    @property
    def nearness(self) -> Nearness | None:
        """How near the answers are, where the noise is on the statistic."""
        if not isinstance(self.mechanism, StatisticRecord):
            return None
        if not isinstance(self.query, OnStatisticQuery):
            return None
        return nearness_of(self.query, self.mechanism.to_mechanism())

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Keys and answers in the words of the spec, row by row."""
        answers = []
        coordinates = self.query.answer_codes(self.outcomes)
        for part, codes in zip(self.query.column_parts, coordinates, strict=True):
            answers.append(part.shown_answers(codes.tolist()))
        return tuple((*key, *answer) for key, *answer in zip(self.keys, *answers, strict=True))


def report_html(
    record: ReleaseRecord,
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
    rests = [query.rests_on for query in queries] + [one.rests_on for one in tabulations]
    return render(
        "report.html",
        release=record,
        queries=[_shown(public, pictured=n < _PICTURED) for n, public in enumerate(queries)],
        without_pictures=max(0, len(queries) - _PICTURED),
        tabulations=list(map(shown_tabulation, tabulations)),
        declared=any(one.record.declared for one in tabulations),
        rests=[text for text in rests if text is not None],
        budget=budget,
        odds=odds(Fraction(record.guarantee.epsilon)),
        chance=chance(Fraction(record.guarantee.delta)),
    )


def render(template: str, **values: Any) -> str:
    """A page from one of the templates beside this file."""
    import jinja2  # late: a verifier or a plan in the terminal never needs it

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: resources.files("release.bundle.report").joinpath(name).read_text("utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)


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


def _near(public: PublicQuery) -> str | None:
    """How often an answer is at most one step off; None where answers have no order."""
    topologies = {part.topology for part in public.query.answers.parts}
    if public.on_answers is None or Topology.NOMINAL in topologies:
        return None
    return _share(public.on_answers.accuracy.p_within_1)


def _shown(public: PublicQuery, *, pictured: bool) -> dict[str, Any]:
    """The values of the template for one query."""
    rows, nearness = public.rows, public.nearness
    return {
        "name": public.record.name,
        "record": public.record,
        "mechanism": public.on_answers,
        "statistic": None if public.on_answers else public.mechanism,
        "nearness": None if nearness is None else nearness.sentence,
        "nearness_picture": nearness_svg(f"{public.record.name}-nearness", nearness)
        if nearness and pictured
        else None,
        "by": public.record.by,
        "columns": public.columns,
        "rows": rows[:MAX_ROWS],
        "left_out": max(0, len(rows) - MAX_ROWS),
        "picture": _answers_picture(public),
        "odds": odds(Fraction(public.record.epsilon)),
        "exact": None if public.on_answers is None else _share(public.on_answers.accuracy.p_exact),
        "near": _near(public),
        **_of_mechanism(public, pictured=pictured),
    }


def _of_mechanism(public: PublicQuery, *, pictured: bool) -> dict[str, Any]:
    """The worked example and the pictures of a mechanism; all None where it is not public."""
    record = public.on_answers
    if record is None:
        return {"example": None, "mechanism_picture": None, "delta_picture": None, "losses": None}
    domain = public.query.answers
    mechanism, sensitivity = record.to_mechanism(), record.to_sensitivity()
    drawing = (public.record.name, mechanism, sensitivity, public.query.promised.to_guarantee())
    plain = len(domain.parts) == 1
    return {
        "example": _example(public, mechanism) if plain else None,
        "mechanism_picture": mechanism_svg(*drawing, answer_unit(public.query))
        if plain and pictured
        else None,
        "delta_picture": delta_svg(*drawing) if pictured else None,
        "losses": _losses(public) if pictured else None,
        "loss_list": ", ".join(f"{name} {float(loss):.4g}" for name, loss in public.compared),
    }


def _losses(public: PublicQuery) -> str | None:
    if len(public.compared) < 2 or public.on_answers is None:
        return None
    return losses_svg(public.record.name, public.on_answers.design.loss, public.compared)


def _example(public: PublicQuery, mechanism: Mechanism) -> str | None:
    """How to read one number: the first published answer, and where the true one is likely."""
    *key, published = public.rows[0]
    part = public.query.parts[0]
    interval = likely_around(mechanism, part.answers, public.codes[0])
    if interval is None:
        return None
    low, high = interval
    about = f" for {', '.join(key)}" if key else ""
    first, last = part.shown_interval(low, high)
    where = f"is {first}" if low == high else f"lies from {first} to {last}"
    return (
        f"Published {published}{about}: the true answer {where} in 95 of 100 such cases, if all "
        "answers were equally likely beforehand."
    )


def _share(text: str) -> str:
    """A probability as a number of cases in 100, rounded down."""
    value = 100 * float(text)
    return f"{int(value)} of 100" if value >= 1 else "less than 1 of 100"


def _answers_picture(public: PublicQuery) -> str | None:
    """Released answers by one key or two; None where a picture would not help."""
    if len(public.query.columns) > 1:
        return None
    domain, by, name = public.query.parts[0].answers, public.record.by, public.record.name
    if len(by) == 1 and 2 <= len(public.keys) <= _BARS:
        return answers_svg(name, domain, by[0], [key[0] for key in public.keys], public.codes)
    if len(by) != 2 or not public.keys:
        return None
    rows, columns = map(len, map(set, zip(*public.keys, strict=True)))
    if not (2 <= rows <= _FIELDS and 2 <= columns <= _FIELDS):
        return None
    return heat_map_svg(name, domain, (by[0], by[1]), public.keys, public.codes)
