"""What a plan recommends: which line of the spec to change where another way of asking errs less.

Only public facts decide. A change is recommended where it saves more than half of what is lost now,
at the same charge or a lower one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from release.bundle.answer_units import answer_unit
from release.bundle.tables.intervals import step_of
from release.errors import DesignError, SpecError
from release.exact.accuracy import radius_of
from release.exact.losses import LossName, line_fits, named_loss
from release.exact.numbers import format_exact
from release.exact.pmf import Pmf
from release.exact.statistics.sums import NoisySums
from release.noise.cache import DesignCache
from release.noise.design import Asked
from release.noise.families import Solvers
from release.noise.processes import FanOut
from release.noise.select import choose
from release.planning.on_statistic import StatisticPlan, plan_on_statistic
from release.planning.plan import Plan, QueryPlan, make_plan, possible
from release.planning.together import check_season, plan_together, use_of_budget
from release.queries.on_statistic import OnStatisticQuery
from release.queries.read import check_mechanism
from release.spec.guarantees import Source
from release.spec.kinds import AnyQuery
from release.spec.load import SpecFile
from release.spec.mechanisms import BEST
from release.spec.query import PlainQuery, Query

_ENOUGH = 2
"""What is lost now has to be more than so many times what would be lost."""

_WRONG = 0.05
"""How often an answer on the statistic may be off by more than its plan says."""


@dataclass(frozen=True)
class Recommendation:
    """``changes`` to make in the spec: the path of a field and its value, None to take it out."""

    query: str
    changes: tuple[tuple[str, Any], ...]
    gain: str

    @property
    def sentence(self) -> str:
        """What to write, and what it gains."""
        lines = []
        for path, value in self.changes:
            lines.append(f"take out {path}" if value is None else f"write {path}: {value}")
        return f"{self.query}: {', '.join(lines)}; {self.gain}"


def make_advised_plan(
    spec_file: SpecFile,
    solvers: Solvers | None = None,
    cache: DesignCache | None = None,
    season: int | None = None,
    drop_one: FanOut | None = None,
    *,
    is_compared: bool = True,
) -> Plan:
    """The plan of a spec, with what it recommends, and what all queries amount to together.

    Nothing but the spec and its public files is read. ``season`` is a number of releases like this
    one; ``drop_one`` and ``is_compared`` are as in :func:`release.planning.plan.make_plan`. What
    all queries amount to together is left out where nothing is compared and no season is asked for.

    Raises:
        BudgetError, DesignError: as :func:`release.planning.plan.make_plan`.
        SpecError: ``season`` is no such number, or a tabulation cannot be measured as declared.
    """
    check_season(season)
    solvers = solvers or Solvers()
    plan = make_plan(spec_file, solvers, cache, drop_one, is_compared=is_compared)
    advice = recommendations(plan.spec_file, plan, solvers)
    # What is recommended is compared there, with what it gains.
    recommended = [entry.changes for entry in advice]
    queries = []
    for planned in plan.queries:
        is_told = planned.instead is not None and planned.instead.changes in recommended
        queries.append(replace(planned, instead=None) if is_told else planned)
    together = None
    if is_compared or season is not None:
        together = plan_together(spec_file, plan, season, cache, solvers.gap)
    return replace(
        plan,
        queries=tuple(queries),
        recommendations=tuple(recommendation.sentence for recommendation in advice),
        use_of_budget=use_of_budget(spec_file, plan),
        together=together,
    )


def recommendations(
    spec_file: SpecFile, plan: Plan, solvers: Solvers | None = None
) -> tuple[Recommendation, ...]:
    """What would save more than half of the loss of a query, in the order of the plan."""
    advice: list[Recommendation] = []
    solvers = solvers or Solvers()
    for planned in plan.queries:
        # Noise that is made for the whole budget has no guarantee of its own to write down.
        if not planned.query.is_shared:
            advice += _another_mechanism(spec_file, planned, solvers)
            advice += _noise_on_statistic(planned)
            advice += _parts_apart(spec_file, planned, solvers)
    for statistic in plan.on_statistic:
        advice += _units_in_place_of_rows(spec_file, statistic)
        advice += _a_rank_that_tells(spec_file, statistic)
    return (*advice, *_together(spec_file, plan))


def _another_mechanism(
    spec_file: SpecFile, planned: QueryPlan, solvers: Solvers
) -> Iterator[Recommendation]:
    """A named mechanism that loses more than twice what the best does."""
    query, request = planned.query, planned.asked
    if query.mechanism == BEST or planned.assumed is not None:
        return
    # model_copy validates nothing: what is recommended has to pass the checks of a spec.
    try:
        check_mechanism("queries", query.model_copy(update={"mechanism": BEST}))
        best = choose(request, BEST, solvers)
    except (DesignError, SpecError):
        return
    now = planned.chosen.objective
    if now > _ENOUGH * best.objective:
        yield Recommendation(
            query.name,
            ((f"{spec_file.spec.place_of(query)}.mechanism", BEST),),
            _losses(request, best.objective, now),
        )


def _losses(request: Asked, then: Fraction, now: Fraction) -> str:
    loss = request.loss.plain_name.replace("_", " ")
    return f"its {loss} loss is then {float(then):.4g}, and {float(now):.4g} now"


def _noise_on_statistic(planned: QueryPlan) -> Iterator[Recommendation]:
    """Noise on the answer where noise on the statistic is seldom wrong."""
    instead = planned.instead
    # Under another sensitivity more is claimed, and neither noise is the better one.
    is_another_claim = planned.query.sensitivity is not Source.GLOBAL
    if instead is None or instead.planned is None or is_another_claim:
        return
    wrong = 1 - float(planned.chosen.accuracy.p_exact)
    if wrong <= _ENOUGH * _WRONG or _errs_little_less(planned, instead.planned):
        return
    yield Recommendation(
        planned.query.name,
        instead.changes,
        f"noise on the answer is wrong in {100 * wrong:.3g} of 100 cases, whatever the table is; "
        f"then {instead.planned.nearness.sentence}",
    )


def _errs_little_less(now: QueryPlan, then: StatisticPlan) -> bool:
    """Whether the bins of a sum hide most of its noise, so that noise on the sum gains little."""
    mechanism, query = then.design.mechanism, then.query
    if not isinstance(mechanism, NoisySums) or mechanism.sums > 1:
        return False
    reach = radius_of(now.chosen.design.mechanism, query.answers)
    return reach is not None and (reach + 1) * step_of(query) < _ENOUGH * then.nearness.near


def _no_dearer(spec_file: SpecFile, query: OnStatisticQuery, epsilon: Fraction) -> StatisticPlan:
    """The plan of a query, with a smaller ε if it would be charged more than ``epsilon``."""
    then = plan_on_statistic(spec_file, query)
    # A charge grows with ε in proportion, or more slowly where ε is rounded.
    while then.charge.epsilon > epsilon and not query.is_shared:
        smaller = query.claimed.epsilon * epsilon / then.charge.epsilon
        guarantee = query.claimed.model_copy(update={"epsilon": smaller})
        query = query.model_copy(update={"guarantee": guarantee})
        then = plan_on_statistic(spec_file, query)
    return then


def _parts_apart(
    spec_file: SpecFile, planned: QueryPlan, solvers: Solvers
) -> Iterator[Recommendation]:
    """A tuple whose noise wraps round the ends of a part that has an order."""
    query, noise = planned.query, planned.chosen.design.mechanism.modular_noise
    if noise is None or not planned.asked.wraps or planned.asked.is_probabilistic:
        return
    is_alone = any(part.is_released for part in query.parts)
    if query.sensitivity is not Source.GLOBAL or is_alone:
        return
    gains, changes = [], []
    for place, part in enumerate(query.parts):
        update = _as_query_of_its_own(query, part)
        try:
            then = _apart(spec_file, part.model_copy(update=update), solvers)
        except (DesignError, SpecError):
            return
        at = spec_file.spec.place_of(part)
        guarantee = update["guarantee"].model_dump(mode="json", exclude_none=True)
        changes += [(f"{at}.sensitivity", "global"), (f"{at}.guarantee", guarantee)]
        if "loss" in update:
            changes.append((f"{at}.loss", update["loss"].value))
        if isinstance(then, str):
            gains.append(f"then {part.name}: {then}")
            continue
        now = _error_at_an_end(noise, place)
        if now <= _ENOUGH * then:
            return
        unit = answer_unit(part)
        gains.append(
            f"{part.name} can be published as its other end: where the true answer is an end it "
            f"is {unit.amount(now)} off on average, and then at most {unit.amount(then)} anywhere"
        )
    changes.append((spec_file.spec.place_of(query), None))
    yield Recommendation(query.name, tuple(changes), "; ".join(gains))


def _as_query_of_its_own(query: Query, part: PlainQuery) -> dict[str, Any]:
    """The fields of a part of a tuple with as large a share of its guarantee as any other."""
    count = len(query.parts)
    spent = {"epsilon": query.claimed.epsilon / count, "delta": query.claimed.delta / count}
    update: dict[str, Any] = {
        "sensitivity": Source.GLOBAL,
        "guarantee": query.claimed.model_copy(update=spent),
    }
    has_loss = isinstance(query.loss, LossName) and line_fits(part.answers, query.loss)
    if has_loss and not isinstance(part, OnStatisticQuery):
        update["loss"] = query.loss
    return update


def _apart(spec_file: SpecFile, query: Query, solvers: Solvers) -> Fraction | str:
    """The mean error of a query at its worst true answer, in codes, or how near it is in words.

    Raises:
        DesignError, SpecError: it has no noise of its own.
    """
    if isinstance(query, OnStatisticQuery) and query.is_on_statistic:
        return plan_on_statistic(spec_file, query).nearness.sentence
    ((_, request),) = possible(spec_file, query)
    mechanism = choose(request, BEST, solvers).mechanism
    if not query.answers.is_line:
        right = mechanism.accuracy(query.answers).p_exact
        return f"exact in {100 * float(right):.3g} of 100 cases"
    topology = query.answers.parts[0].topology
    loss = named_loss(LossName.ABSOLUTE, topology, query.answers.size)
    return Fraction(mechanism.worst_loss(loss, query.answers)[1])


def _error_at_an_end(noise: Pmf, place: int) -> Fraction:
    """The mean error of a part in order, in codes, at the one of its ends where it is larger."""
    masses = noise.to_floats().reshape(noise.group.moduli)
    others = tuple(axis for axis in range(masses.ndim) if axis != place)
    marginal = masses.sum(axis=others)
    # From the lowest answer noise η leads η codes up, from the highest m - η down, but for η = 0.
    upwards = np.arange(marginal.size)
    downwards = upwards[::-1] + 1
    downwards[0] = 0
    return Fraction(float(max(marginal @ upwards, marginal @ downwards)))


def _units_in_place_of_rows(
    spec_file: SpecFile, planned: StatisticPlan
) -> Iterator[Recommendation]:
    """Rows that are counted where distinct units need a far smaller lead."""
    query = planned.query
    if not query.in_units:
        return
    instead = query.model_copy(update=query.in_units)
    afterwards = _no_dearer(spec_file, instead, planned.charge.epsilon)
    then = afterwards.nearness
    at = spec_file.spec.place_of(query)
    changes = []
    for name, value in query.in_units.items():
        changes.append((f"{at}.{name}", str(value)))
    if afterwards.query.claimed != query.claimed:
        epsilon = format_exact(afterwards.query.claimed.epsilon)
        changes.append((f"{at}.guarantee.epsilon", epsilon))
    if planned.nearness.near > _ENOUGH * then.near:
        yield Recommendation(
            query.name,
            tuple(changes),
            f"a category has to lead by {planned.nearness.near:.0f} rows now to be published in 95 "
            f"of 100 cases, and then by {then.near:.0f} units",
        )


def _a_rank_that_tells(spec_file: SpecFile, planned: StatisticPlan) -> Iterator[Recommendation]:
    """A rank so near the end that bins without any row are published in place of its own."""
    query = planned.query
    for name, least in query.fields_on_statistic(spec_file.spec.rows_per_unit(query)).items():
        declared = getattr(query, name)
        if declared is not None and declared < least:
            change = f"{spec_file.spec.place_of(query)}.{name}", least
            gain = (
                f"bins beyond all rows are {declared:,} away from the wanted rank now, and one of "
                "so many is published too often"
            )
            yield Recommendation(query.name, (change,), gain)


def _together(spec_file: SpecFile, plan: Plan) -> Iterator[Recommendation]:
    """Quantiles of one column that are asked, and paid for, one by one."""
    # Noise for the whole budget has no guarantees that could be added up for the joined query.
    alike: dict[object, list[StatisticPlan]] = defaultdict(list)
    for planned in plan.on_statistic:
        if planned.query.shares and not planned.query.is_shared:
            alike[_asked_alike(planned.query)].append(planned)
    for group in alike.values():
        if len(group) > 1:
            yield from _joined(spec_file, group)


def _asked_alike(query: Query) -> object:
    """What queries have to agree in, to be quantiles of one query."""
    fields = ("table", "by", "where", "of", "clamp", "max_rows_per_unit")
    return (*(repr(getattr(query, field, None)) for field in fields), repr(query.domain_record()))


def _joined(spec_file: SpecFile, group: list[StatisticPlan]) -> Iterator[Recommendation]:
    first, *rest = (planned.query for planned in group)
    # The sum, so that both are compared at the same charge.
    epsilon, charged, now = Fraction(0), Fraction(0), 0.0
    shares: set[Fraction] = set()
    for planned in group:
        epsilon += planned.query.claimed.epsilon
        charged += planned.charge.epsilon
        shares |= set(planned.query.shares)
        now = max(now, planned.nearness.near)
    guarantee = first.claimed.model_copy(update={"epsilon": epsilon})
    plain = first.model_dump(mode="json", exclude_none=True, exclude={"at", "kind", "mechanism"})
    plain |= {"kind": "quantiles", "at": list(map(format_exact, sorted(shares)))}
    plain["guarantee"] = guarantee.model_dump(mode="json", exclude_none=True)
    joined = TypeAdapter(AnyQuery).validate_python(plain)
    if not isinstance(joined, OnStatisticQuery):
        return
    afterwards = _no_dearer(spec_file, joined, charged)
    epsilon, then = afterwards.query.claimed.epsilon, afterwards.nearness.near
    if now <= _ENOUGH * then:
        return
    at = spec_file.spec.place_of(first)
    changes: list[tuple[str, Any]] = [
        (f"{at}.kind", "quantiles"),
        (f"{at}.at", plain["at"]),
        (f"{at}.guarantee.epsilon", format_exact(epsilon)),
    ]
    # The mechanism of one quantile is none of several.
    if first.mechanism != BEST:
        changes.append((f"{at}.mechanism", BEST))
    for query in rest:
        changes.append((spec_file.spec.place_of(query), None))
    yield Recommendation(
        first.name,
        tuple(changes),
        f"a quantile is up to {now:.0f} rows off in rank now, and then {then:.0f}, at the same "
        "charge",
    )
