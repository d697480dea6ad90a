"""Plans the cost and the accuracy of a release before anything confidential is read.

A plan uses the spec alone. Under global or declared sensitivity it is exact: the sensitivity, the
choice of mechanism and its pmf are those of the release. Empirical sensitivity is unknown before
the table is read, so the plan shows two cases: answers move by one step (or to any category), which
is common but not the least possible, and by the most that the declaration allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from release.budget.cost import Charge, charge_of, kept_delta, touched_cells
from release.bundle.answer_units import AnswerUnit
from release.bundle.statements import accuracy_of
from release.errors import DesignError, SpecError
from release.exact.accuracy import (
    error_at_ends,
    far_error,
    loss_of_guess,
    losses_where,
    radius_of,
)
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import Loss, LossName, WorstCaseLoss
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.select import best_of, candidates, choose, compare, family_of
from release.noise.stage import asked_of, refusal
from release.planning.on_statistic import StatisticPlan, plan_on_statistic
from release.queries.registry import global_sensitivity, sensitivity_without_data
from release.queries.sensitivity import seen_sensitivity
from release.queries.statistics import OnStatisticQuery
from release.records.models import Accuracy
from release.spec.mechanisms import BEST, MECHANISMS
from release.spec.query import Query
from release.spec.unfinished import TODO, unfinished

if TYPE_CHECKING:
    import pandas as pd

    from release.spec.load import SpecFile

ONE_STEP, MOST_ALLOWED = "one step", "most allowed"

_UNIT = Fraction(1, 10**6)
"""Shares of a budget are multiples of this ε."""

_GRID = 24
"""Values of ε at which a split of the budget evaluates a query."""


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a query, and the accuracy of an answer under a uniform prior.

    ``within`` is the least w for which an answer is at most w codes off in 95 of 100 cases; None
    where the answers have no distances. ``ends`` is the mean absolute error, in codes, where the
    true answer is the lowest and where it is the highest, which no mean over all answers shows;
    None where the answers have no order. ``objective`` is the expected value of the spec's loss.
    """

    mechanism: str
    design: AnyDesign
    accuracy: Accuracy
    within: int | None
    ends: tuple[Fraction, Fraction] | None
    losses: tuple[Fraction, Fraction, Fraction] | None = None
    """The expected loss at the lowest, the highest and the worst true answer."""
    far: tuple[int, Fraction] | None = None
    """A large error in codes, and the chance of a larger one (module accuracy)."""
    guess: float | None = None
    """The expected loss of a guess without the table."""

    @property
    def is_hardly_more_than_noise(self) -> bool:
        """Whether the answer saves less than a fifth of what a guess loses."""
        return self.guess is not None and float(self.objective) > 0.8 * self.guess

    @property
    def hidden_by_means(self) -> dict[str, Any]:
        """What a mean over all true answers hides, as floats in codes; None where nothing is."""
        lowest, highest, worst = (
            (None, None, None) if self.losses is None else map(float, self.losses)
        )
        large, chance = self.far or (None, None)
        return {
            "loss_at_lowest": lowest,
            "loss_at_highest": highest,
            "loss_at_worst": worst,
            "large_error": large,
            "chance_of_larger": None if chance is None else float(chance),
            "hardly_more_than_noise": self.is_hardly_more_than_noise,
        }

    @property
    def objective(self) -> Fraction:
        """The expected loss."""
        objective: Fraction = self.design.objective
        return objective

    def errors_in(self, unit: AnswerUnit) -> tuple[str, str, str, str]:
        """Mean error, error at the lowest and the highest true answer, and ``within``, as text."""
        mean = at_lowest = at_highest = within = "-"
        # Categories are right or wrong: they have no distances, and the share of exact answers
        # says it all.
        if self.within is not None:
            mean = unit.amount(Fraction(self.accuracy.mean_absolute))
            within = f"±{unit.amount(self.within)}"
        if self.ends is not None:
            at_lowest, at_highest = map(unit.amount, self.ends)
        return mean, at_lowest, at_highest, within


@dataclass(frozen=True)
class QueryPlan:
    """A query under one sensitivity; ``assumed`` names the case where that is empirical."""

    query: Query
    asked: Asked
    assumed: str | None
    cells: int
    charge: Charge
    chosen: Candidate
    others: tuple[Candidate, ...]
    failed: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Plan:
    """All queries of a spec, what they charge together, and the cap of the spec.

    ``queries`` have their noise on the answer; the others are ``on_statistic``.
    """

    queries: tuple[QueryPlan, ...]
    on_statistic: tuple[StatisticPlan, ...]
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction
    cap_delta: Fraction
    unfinished: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    """Changes that would save more than half of a loss (:mod:`release.planning.recommend`)."""

    @property
    def is_over(self) -> bool:
        """Whether a run would be refused for its budget."""
        return self.epsilon > self.cap_epsilon or self.delta > self.cap_delta

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why a run would be refused, apart from its budget: unfinished fields, poor mechanisms."""
        reasons = [f"{field}: says {TODO}; write what is meant" for field in self.unfinished]
        for planned in self.queries:
            # An assumed sensitivity is not the table's, so a run may decide otherwise.
            if planned.assumed is None:
                reason = refusal(planned.query, planned.chosen.design)
                reasons += [] if reason is None else [reason]
        return tuple(reasons)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each candidate mechanism of each query, the chosen one first.

        Errors are in codes of the answers, ε and δ as floats for reading, never for proofs.
        """
        import pandas as pd

        rows = []
        for planned in self.queries:
            for candidate in (planned.chosen, *planned.others):
                lowest, highest = candidate.ends or (None, None)
                rows.append(
                    {
                        "query": planned.query.name,
                        "assumed": planned.assumed,
                        "mechanism": candidate.mechanism,
                        "taken": candidate is planned.chosen,
                        "cells": planned.cells,
                        "answers": planned.asked.domain.size,
                        "p_exact": float(candidate.accuracy.p_exact),
                        "mean_error": float(candidate.accuracy.mean_absolute),
                        "at_lowest": None if lowest is None else float(lowest),
                        "at_highest": None if highest is None else float(highest),
                        "within_95": candidate.within,
                        "loss": float(candidate.objective),
                        **candidate.hidden_by_means,
                        "charge_epsilon": float(planned.charge.epsilon),
                        "charge_delta": float(planned.charge.delta),
                    }
                )
        for statistic in self.on_statistic:
            rows.append(
                {
                    "query": statistic.query.name,
                    "mechanism": statistic.design.name,
                    "taken": True,
                    "cells": statistic.cells,
                    "answers": statistic.query.answers.size,
                    "nearness": statistic.nearness.sentence,
                    "charge_epsilon": float(statistic.charge.epsilon),
                    "charge_delta": float(statistic.charge.delta),
                }
            )
        return pd.DataFrame(rows)


def make_plan(spec_file: SpecFile, solvers: Solvers | None = None) -> Plan:
    """The plan of a spec. Nothing but the spec and its key sets is read.

    Raises:
        DesignError: a query for which no mechanism satisfies the claimed guarantee.
    """
    solvers = solvers or Solvers()
    plans: list[QueryPlan] = []
    on_statistic: list[StatisticPlan] = []
    epsilon = delta = Fraction(0)
    for query in spec_file.spec.released:
        if isinstance(query, OnStatisticQuery) and query.is_on_statistic:
            on_statistic.append(plan_on_statistic(spec_file, query, solvers))
            epsilon += on_statistic[-1].charge.epsilon
            continue
        for assumed, request in possible(spec_file, query):
            plans.append(_planned(spec_file, query, assumed, request, solvers))
        # Once a query: both cases of an empirical sensitivity are charged alike.
        charge = plans[-1].charge
        epsilon, delta = epsilon + charge.epsilon, delta + charge.delta
    return Plan(
        tuple(plans),
        tuple(on_statistic),
        epsilon,
        delta,
        spec_file.spec.budget.epsilon,
        spec_file.spec.budget.delta,
        unfinished(spec_file.spec),
    )


def possible(spec_file: SpecFile, query: Query) -> Iterator[tuple[str | None, Asked]]:
    """The design requests of a query: one, or under empirical sensitivity that of each case.

    Raises:
        SpecError: its noise is on the statistic, so that no mechanism on answers is asked for.
    """
    if query.is_on_statistic:
        raise SpecError(
            f"{spec_file.spec.place_of(query)}.noise",
            "is on the statistic; plan says how near its answers are; here write noise: on_answer",
        )
    if not query.is_empirical:
        yield None, asked_of(query, sensitivity_without_data(spec_file.spec, query))
        return
    # Shifts of 0 alone, in place of those of a table: the function adds the least steps to them.
    least = seen_sensitivity(np.zeros(1, dtype=np.int64), query.answers)
    rows = spec_file.spec.rows_per_unit(query)
    most = global_sensitivity(spec_file.spec, query, rows)
    yield ONE_STEP, asked_of(query, least)
    if most.shifts != least.shifts or most.apart != least.apart:
        yield MOST_ALLOWED, asked_of(query, most)


def _planned(
    spec_file: SpecFile,
    query: Query,
    assumed: str | None,
    request: Asked,
    solvers: Solvers,
) -> QueryPlan:
    designs, failed = compare(request, solvers)
    chosen = mechanism_of(query, request, solvers, designs)
    kept = None if query.is_empirical else kept_delta(chosen.deltas, chosen.guarantee)
    alternatives = []
    for name, design in sorted(designs.items(), key=lambda item: item[1].objective):
        if name != chosen.name:
            alternatives.append(candidate(design, request.domain))
    return QueryPlan(
        query=query,
        asked=request,
        assumed=assumed,
        cells=prod(len(spec_file.keys[column]) for column in query.by),
        charge=charge_of(spec_file, query, query.promised, kept),
        chosen=candidate(chosen, request.domain),
        others=tuple(alternatives),
        failed=tuple(failed),
    )


def mechanism_of(
    query: Query, request: Asked, solvers: Solvers, designs: dict[str, AnyDesign] | None = None
) -> AnyDesign:
    """The mechanism that the release will use; ``designs`` are those solved already."""
    designs = designs or {}
    name = family_of(request, query.mechanism, is_empirical=query.is_empirical)
    if designs and name == BEST:
        return best_of(request, designs)
    return designs.get(name) or choose(request, name, solvers)


def candidate(design: AnyDesign, domain: AnswerDomain | JointDomain) -> Candidate:
    """A mechanism with its accuracy."""
    mechanism, loss = design.mechanism, design.loss
    name = LossName(loss.name) if isinstance(loss, Loss) and loss.is_named else None
    return Candidate(
        design.name,
        design,
        accuracy_of(mechanism, domain),
        radius_of(mechanism, domain),
        error_at_ends(mechanism, domain),
        None if isinstance(loss, WorstCaseLoss) else losses_where(mechanism, domain, loss),
        far_error(mechanism, domain) if isinstance(domain, AnswerDomain) else None,
        loss_of_guess(name, domain) if name and isinstance(domain, AnswerDomain) else None,
    )


def without_baselines(query: Query, request: Asked, solvers: Solvers) -> AnyDesign:
    """The mechanism that the release would use; no baseline is solved, for none is better."""
    if query.mechanism != BEST or query.is_empirical:
        return mechanism_of(query, request, solvers)
    names = [name for name in candidates(request) if not MECHANISMS[name].is_baseline]
    designs, failures = compare(request, solvers, names)
    return best_of(request, designs, failures)


@dataclass(frozen=True)
class Share:
    """A query's share of the budget, its expected loss with it, and ``now`` that of the spec."""

    query: Query
    weight: Fraction
    epsilon: Fraction
    charge: Fraction
    objective: Fraction
    now: Fraction


def split_budget(
    spec_file: SpecFile, weights: dict[str, Fraction], solvers: Solvers | None = None
) -> tuple[Share, ...]:
    """The ε of each query that minimises the weighted sum of expected losses within the cap.

    Each δ stays as it is, and so does a query with noise on its statistic. The loss of a query
    falls ever more slowly as its ε grows, so budget goes to the steepest fall first, along the
    convex hull of losses at ``_GRID`` values of ε. Empirical sensitivity is taken to be the most
    that the declaration allows.

    Raises:
        SpecError: a weight of a query that does not exist, or a weight not above 0.
    """
    solvers = solvers or Solvers()
    queries = [query for query in spec_file.spec.released if not query.is_on_statistic]
    unknown = set(weights) - {query.name for query in queries}
    if unknown or any(weight <= 0 for weight in weights.values()):
        raise SpecError(
            "--weight", "write NAME=NUMBER above 0, of a query with noise on its answer"
        )
    cap = spec_file.spec.budget.epsilon
    for query in spec_file.spec.released:
        if query.is_on_statistic:
            cap -= charge_of(spec_file, query, query.promised).epsilon
    curves = []
    for query in queries:
        # The last of the cases is the most that the declaration allows.
        *_, (_, request) = possible(spec_file, query)
        cells = touched_cells(spec_file, query)
        weight = weights.get(query.name, Fraction(1))
        curves.append(_Curve.of(query, request, cells, weight, (cap, len(queries), solvers)))
    spent = _steepest_first(curves, cap)
    return tuple(curve.share(spend, solvers) for curve, spend in zip(curves, spent, strict=True))


@dataclass(frozen=True)
class _Curve:
    """The weighted loss of a query by what is spent on it: the corners of a convex hull."""

    query: Query
    request: Asked
    cells: int
    weight: Fraction
    corners: tuple[tuple[Fraction, float], ...]

    @classmethod
    def of(
        cls,
        query: Query,
        request: Asked,
        cells: int,
        weight: Fraction,
        at: tuple[Fraction, int, Solvers],
    ) -> _Curve:
        cap, queries, solvers = at
        points = []
        for place in range(_GRID):
            # Equal ratios, from 1/200 of an equal share to the whole cap: losses bend at small ε.
            share = float(cap) / cells * (200.0 * queries) ** (place / (_GRID - 1) - 1)
            epsilon = max(_UNIT, Fraction(int(share / _UNIT)) * _UNIT)
            claimed = replace(request.guarantee, epsilon=min(epsilon, Fraction(100)))
            design = without_baselines(query, replace(request, guarantee=claimed), solvers)
            points.append((claimed.epsilon * cells, float(weight * design.objective)))
        return cls(query, request, cells, weight, _hull(sorted(set(points))))

    def share(self, spend: Fraction, solvers: Solvers) -> Share:
        # Rounded down, so the shares together stay within the cap; few digits where ε is large.
        unit = Fraction(1, 1000) if spend / self.cells >= Fraction(1, 100) else _UNIT
        epsilon = int(spend / self.cells / unit) * unit
        claimed = replace(self.request.guarantee, epsilon=epsilon)
        design = without_baselines(self.query, replace(self.request, guarantee=claimed), solvers)
        now = without_baselines(self.query, self.request, solvers)
        charge = epsilon * self.cells
        return Share(self.query, self.weight, epsilon, charge, design.objective, now.objective)


def _hull(points: Sequence[tuple[Fraction, float]]) -> tuple[tuple[Fraction, float], ...]:
    """The lower convex hull of points in order."""
    hull: list[tuple[Fraction, float]] = []
    for x, y in points:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return tuple(hull)


def _slope(start: tuple[Fraction, float], end: tuple[Fraction, float]) -> float:
    return (end[1] - start[1]) / float(end[0] - start[0])


def _steepest_first(curves: Sequence[_Curve], cap: Fraction) -> list[Fraction]:
    """The budget of each curve: a piece of a hull costs its width and saves its fall."""
    spent = [curve.corners[0][0] for curve in curves]
    remaining = cap - sum(spent, Fraction(0))
    if remaining < 0:
        raise DesignError("the budget is too small to give every query a share; raise epsilon")
    pieces = []
    for which, curve in enumerate(curves):
        for start, end in pairwise(curve.corners):
            pieces.append((_slope(start, end), which, end[0] - start[0]))
    # A hull is convex, so sorting by slope keeps the pieces of each curve in their order.
    for slope, which, width in sorted(pieces):
        if slope >= 0 or remaining <= 0:
            break
        spend = min(width, remaining)
        spent[which] += spend
        remaining -= spend
    return spent
