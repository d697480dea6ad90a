"""What a release would cost and how good it would be, before anything confidential is read.

A plan is made of the spec alone. Where the sensitivity is global or declared, it is exact: the
same differences, choice of mechanism and law as the release will have. Where they are still to
be seen in the table they are not known: the plan shows what it is where answers move by one step
(or to any category), which is common but not the least there can be, and what it is at the most
that the declaration allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from release.budget.cost import Charge, charge_of, touched_cells
from release.bundle.statements import accuracy_of
from release.errors import DesignError, SpecError
from release.exact.accuracy import error_at_ends, radius_of
from release.exact.domain import AnswerDomain, JointDomain
from release.exact.losses import LossName
from release.exact.numbers import parse_exact
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.noise.design import Asked
from release.noise.families import AnyDesign, Solvers
from release.noise.search import least
from release.noise.select import best_of, candidates, choose, compare, family_of
from release.noise.stage import asked_of, refusal
from release.queries.registry import global_sensitivity, sensitivity_without_data
from release.queries.sensitivity import seen_sensitivity
from release.records.models import Accuracy
from release.spec.mechanisms import BEST, MECHANISMS
from release.spec.query import Query
from release.spec.unfinished import TODO, unfinished

if TYPE_CHECKING:
    import pandas as pd

    from release.spec.load import SpecFile

ONE_STEP, MOST_ALLOWED = "one step", "most allowed"

_UNIT = Fraction(1, 10**6)
"""Splits of a budget are in multiples of it."""

_GRID = 24
"""Points of ε at which a split of the budget looks at a query."""


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a query: what a reader can expect of an answer, under a uniform prior.

    ``within`` is the least w for which an answer is at most w codes off in 95 of 100; None where
    the answers have no distances. ``ends`` is the mean absolute error, in codes, where the true
    answer is the lowest and where it is the highest, which no mean over all answers shows; None
    where the answers have no order. ``objective`` is the loss that the spec asks for.
    """

    mechanism: str
    design: AnyDesign
    accuracy: Accuracy
    within: int | None
    ends: tuple[Fraction, Fraction] | None

    @property
    def objective(self) -> Fraction:
        """The expected loss."""
        objective: Fraction = self.design.objective
        return objective


@dataclass(frozen=True)
class QueryPlan:
    """A query under one set of differences; ``assumed`` says which, where they are not known."""

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
    """All queries of a spec, what they charge together, and the cap of the spec."""

    queries: tuple[QueryPlan, ...]
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction
    cap_delta: Fraction
    unfinished: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether a run would be refused for its budget."""
        return self.epsilon > self.cap_epsilon or self.delta > self.cap_delta

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why a run would be refused, but for its budget: what is unfinished, what is not best.

        Of differences that are still to be seen in a table nothing is known, so nothing is said.
        """
        known = (one for one in self.queries if one.assumed is None)
        told = (refusal(one.query, one.chosen.design) for one in known)
        return (
            *(f"{field}: says {TODO}; write what is meant" for field in self.unfinished),
            *(one for one in told if one is not None),
        )

    def to_pandas(self) -> pd.DataFrame:
        """A row for each candidate mechanism of each query; the one that is taken comes first.

        Errors are in codes of the answers, ε and δ as floats for reading, never for proofs.
        """
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "query": one.query.name,
                    "assumed": one.assumed,
                    "mechanism": candidate.mechanism,
                    "taken": candidate is one.chosen,
                    "cells": one.cells,
                    "answers": one.asked.domain.size,
                    "p_exact": float(candidate.accuracy.p_exact),
                    "mean_error": float(candidate.accuracy.mean_absolute),
                    "at_lowest": None if candidate.ends is None else float(candidate.ends[0]),
                    "at_highest": None if candidate.ends is None else float(candidate.ends[1]),
                    "within_95": candidate.within,
                    "loss": float(candidate.objective),
                    "charge_epsilon": float(one.charge.epsilon),
                    "charge_delta": float(one.charge.delta),
                }
                for one in self.queries
                for candidate in (one.chosen, *one.others)
            ]
        )


def make_plan(spec_file: SpecFile, solvers: Solvers | None = None) -> Plan:
    """The plan of a spec. Nothing but the spec and its key sets is read.

    Raises:
        DesignError: a query for which no mechanism keeps the promise.
    """
    using = solvers or Solvers()
    plans, charged = [], []
    for query in spec_file.spec.released:
        charge = charge_of(spec_file, query, query.promised)
        charged.append(charge)
        for assumed, asked in possible(spec_file, query):
            plans.append(_planned(spec_file, query, charge, assumed, asked, using))
    return Plan(
        tuple(plans),
        sum((one.epsilon for one in charged), Fraction(0)),
        sum((one.delta for one in charged), Fraction(0)),
        spec_file.spec.budget.epsilon,
        spec_file.spec.budget.delta,
        unfinished(spec_file.spec),
    )


def possible(spec_file: SpecFile, query: Query) -> Iterator[tuple[str | None, Asked]]:
    """What the mechanism can be asked for: once where differences are known, else both ends."""
    if not query.is_empirical:
        yield None, asked_of(query, sensitivity_without_data(spec_file.spec, query))
        return
    domain = query.answers
    few = seen_sensitivity(np.zeros(1, dtype=np.int64), domain)
    many = _most(spec_file, query, domain)
    yield ONE_STEP, asked_of(query, few)
    if many.shifts != few.shifts or many.apart != few.apart:
        yield MOST_ALLOWED, asked_of(query, many)


def _most(spec_file: SpecFile, query: Query, domain: AnswerDomain | JointDomain) -> Sensitivity:
    rows = spec_file.spec.rows_per_unit(query)
    return global_sensitivity(spec_file.spec, query, rows)


def _planned(
    spec_file: SpecFile,
    query: Query,
    charge: Charge,
    assumed: str | None,
    asked: Asked,
    solvers: Solvers,
) -> QueryPlan:
    designs, failed = compare(asked, solvers)
    chosen = mechanism_of(query, asked, solvers, designs)
    others = [design for name, design in designs.items() if name != chosen.name]
    return QueryPlan(
        query=query,
        asked=asked,
        assumed=assumed,
        cells=prod(len(spec_file.keys[column]) for column in query.by),
        charge=charge,
        chosen=candidate(chosen, asked.domain),
        others=tuple(
            candidate(other, asked.domain)
            for other in sorted(others, key=lambda design: design.objective)
        ),
        failed=tuple(failed),
    )


def mechanism_of(
    query: Query, asked: Asked, solvers: Solvers, designs: dict[str, AnyDesign] | None = None
) -> AnyDesign:
    """The mechanism that the release will take; ``designs`` are those that are known already."""
    known = designs or {}
    name = family_of(asked, query.mechanism, is_empirical=query.is_empirical)
    if known and name == BEST:
        return best_of(asked, known)
    return known.get(name) or choose(asked, name, solvers)


def candidate(design: AnyDesign, domain: AnswerDomain | JointDomain) -> Candidate:
    """A mechanism with what a reader can expect of it."""
    mechanism = design.mechanism
    return Candidate(
        design.name,
        design,
        accuracy_of(mechanism, domain),
        radius_of(mechanism, domain),
        error_at_ends(mechanism, domain),
    )


@dataclass(frozen=True)
class Target:
    """A cap on a loss, as ``error_rate <= 0.2`` says it."""

    loss: LossName
    cap: Fraction


def parse_target(field: str, text: str) -> Target:
    """The target that a text names.

    Raises:
        SpecError: it names none; ``field`` is where it was written.
    """
    words = text.replace("<=", " <= ").split()
    names = [name.value for name in LossName]
    if len(words) != 3 or words[0] not in names or words[1] != "<=":
        raise SpecError(field, f'write a loss and its cap, such as "error_rate <= 0.2"; {names}')
    try:
        return Target(LossName(words[0]), parse_exact(words[2]))
    except ValueError as error:
        raise SpecError(field, str(error)) from None


@dataclass(frozen=True)
class Least:
    """The least ε (or δ) at which a query keeps a target, with its charge and loss then."""

    query: Query
    assumed: str | None
    guarantee: Guarantee
    objective: Fraction
    charge: Charge


def epsilon_for(
    spec_file: SpecFile, target: Target, solvers: Solvers | None = None
) -> Iterator[Least]:
    """For each query the least ε, in steps of 0.01, that keeps the target at its δ.

    Raises:
        DesignError: not even ε = 100 keeps it.
    """
    for found in _retargeted(spec_file, target, solvers):

        def at(steps: int, promised: Guarantee = found.asked.guarantee) -> Guarantee:
            return replace(promised, epsilon=Fraction(steps, 100))

        yield found.least(at, 10_000, "epsilon")


def delta_for(
    spec_file: SpecFile, target: Target, solvers: Solvers | None = None
) -> Iterator[Least]:
    """For each query the least δ, in steps of 0.001, that keeps the target at its ε.

    Source: Kadam et al. 2024, (15). Pure promises are loosened to approximate ones.

    Raises:
        DesignError: not even δ near 1 keeps it.
    """
    for found in _retargeted(spec_file, target, solvers):
        promised = found.asked.guarantee
        pure = promised.definition is Definition.PURE
        kind = Definition.APPROXIMATE if pure else promised.definition

        def at(
            steps: int, epsilon: Fraction = promised.epsilon, kind: Definition = kind
        ) -> Guarantee:
            delta = Fraction(steps - 1, 1000)
            return Guarantee(kind if delta else Definition.PURE, epsilon, delta)

        yield found.least(at, 1000, "delta")


@dataclass(frozen=True)
class _Never:
    """A promise that nothing keeps, or that cannot be meant: no cap is high enough."""

    objective: Fraction = Fraction(10**40)


@dataclass(frozen=True)
class _Retargeted:
    """A query that is asked for another loss."""

    spec_file: SpecFile
    query: Query
    assumed: str | None
    asked: Asked
    cap: Fraction
    solvers: Solvers

    def least(self, at: Callable[[int], Guarantee], most: int, name: str) -> Least:
        """Bisection over guarantees that lose less and less."""

        def made(steps: int) -> AnyDesign | _Never:
            try:
                asked = replace(self.asked, guarantee=at(steps))
                return ours(self.query, asked, self.solvers)
            except (DesignError, ValueError):
                return _Never()

        found = least(made, most, self.cap, name)
        if isinstance(found, _Never):  # the search ends in something that keeps the cap
            raise TypeError("a search ended in nothing")
        charge = charge_of(self.spec_file, self.query, found.guarantee)
        return Least(self.query, self.assumed, found.guarantee, found.objective, charge)


def _retargeted(
    spec_file: SpecFile, target: Target, solvers: Solvers | None
) -> Iterator[_Retargeted]:
    for query in spec_file.spec.released:
        other = query.model_copy(update={"loss": target.loss})
        for assumed, asked in possible(spec_file, other):
            yield _Retargeted(spec_file, other, assumed, asked, target.cap, solvers or Solvers())


def ours(query: Query, asked: Asked, solvers: Solvers) -> AnyDesign:
    """What the release would take, without looking at the baselines, none of which is better."""
    if query.mechanism != BEST or query.is_empirical:
        return mechanism_of(query, asked, solvers)
    ours = [name for name in candidates(asked) if not MECHANISMS[name].is_baseline]
    designs, failures = compare(asked, solvers, ours)
    return best_of(asked, designs, failures)


@dataclass(frozen=True)
class Share:
    """What of the budget a query gets, its loss with it, and its loss as the spec has it."""

    query: Query
    weight: Fraction
    epsilon: Fraction
    charge: Fraction
    objective: Fraction
    now: Fraction


def split_budget(
    spec_file: SpecFile, weights: dict[str, Fraction], solvers: Solvers | None = None
) -> tuple[Share, ...]:
    """The ε of each query that makes the weighted sum of their losses least within the cap.

    Each δ stays as it is. The loss of a query falls ever more slowly as its ε grows, so budget goes
    to the steepest fall first, along the convex hull of losses at ``_GRID`` values of ε. Where
    differences are to be seen in the table, the most that the declaration allows is taken.

    Raises:
        SpecError: a weight of a query that is not there, or none above 0.
    """
    using, queries = solvers or Solvers(), spec_file.spec.released
    unknown = set(weights) - {query.name for query in queries}
    if unknown or any(weight <= 0 for weight in weights.values()):
        raise SpecError("--weight", "write NAME=NUMBER above 0, with the name of a query")
    cap = spec_file.spec.budget.epsilon
    curves = []
    for query in queries:
        *_, (_, asked) = possible(spec_file, query)
        cells = touched_cells(spec_file, query)
        weight = weights.get(query.name, Fraction(1))
        curves.append(_Curve.of(query, asked, cells, weight, (cap, len(queries), using)))
    spent = _steepest_first(curves, cap)
    return tuple(curve.share(spend, using) for curve, spend in zip(curves, spent, strict=True))


@dataclass(frozen=True)
class _Curve:
    """The weighted loss of a query by what is spent on it: the corners of a convex hull."""

    query: Query
    asked: Asked
    cells: int
    weight: Fraction
    corners: tuple[tuple[Fraction, float], ...]

    @classmethod
    def of(
        cls,
        query: Query,
        asked: Asked,
        cells: int,
        weight: Fraction,
        at: tuple[Fraction, int, Solvers],
    ) -> _Curve:
        cap, queries, solvers = at
        points = []
        for place in range(_GRID):
            share = float(cap) / cells * (200.0 * queries) ** (place / (_GRID - 1) - 1)
            epsilon = max(_UNIT, Fraction(int(share / _UNIT)) * _UNIT)
            promised = replace(asked.guarantee, epsilon=min(epsilon, Fraction(100)))
            made = ours(query, replace(asked, guarantee=promised), solvers)
            points.append((promised.epsilon * cells, float(weight * made.objective)))
        return cls(query, asked, cells, weight, _hull(sorted(set(points))))

    def share(self, spend: Fraction, solvers: Solvers) -> Share:
        # Few digits where they say enough.
        unit = Fraction(1, 1000) if spend / self.cells >= Fraction(1, 100) else _UNIT
        epsilon = int(spend / self.cells / unit) * unit
        promised = replace(self.asked.guarantee, epsilon=epsilon)
        made = ours(self.query, replace(self.asked, guarantee=promised), solvers)
        now = ours(self.query, self.asked, solvers)
        charge = epsilon * self.cells
        return Share(self.query, self.weight, epsilon, charge, made.objective, now.objective)


def _hull(points: Sequence[tuple[Fraction, float]]) -> tuple[tuple[Fraction, float], ...]:
    """The lower convex hull of points in order."""
    hull: list[tuple[Fraction, float]] = []
    for x, y in points:
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return tuple(hull)


def _slope(left: tuple[Fraction, float], right: tuple[Fraction, float]) -> float:
    return (right[1] - left[1]) / float(right[0] - left[0])


def _steepest_first(curves: Sequence[_Curve], cap: Fraction) -> list[Fraction]:
    """How much to spend on each: every piece of a hull costs its width and saves its fall."""
    spent = [curve.corners[0][0] for curve in curves]
    left = cap - sum(spent, Fraction(0))
    if left < 0:
        raise DesignError("the budget is too small to give every query a share; raise epsilon")
    pieces = sorted(
        (_slope(a, b), which, b[0] - a[0])
        for which, curve in enumerate(curves)
        for a, b in pairwise(curve.corners)
    )
    for slope, which, width in pieces:
        if slope >= 0 or left <= 0:
            break
        taken = min(width, left)
        spent[which] += taken
        left -= taken
    return spent
