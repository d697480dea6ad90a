"""Finds the mechanisms of queries that share a budget, before any table is opened.

Everything here follows from the spec: the sensitivity is that of the declaration, and the budget is
what the spec allows. So the guarantees that are found are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from release.budget.composed import Together, found_epsilon
from release.budget.cost import (
    charge_of,
    moved_together,
    proportional_part,
    release_step,
    satisfied,
)
from release.budget.entries import Spent
from release.budget.patterns import patterns_of
from release.budget.profiles import query_profile
from release.errors import BudgetError, DesignError
from release.exact.composition.distribution import LossDistribution
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.exact.losses import power_of
from release.exact.mechanism import BoundOf
from release.exact.numbers import MAX_EPSILON, format_exact, format_up
from release.exact.privacy import Definition, Guarantee
from release.exact.sensitivity import Sensitivity
from release.exact.statistics.mechanism import loss_above
from release.noise.cache import DesignCache
from release.noise.composed.groups import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    Kind,
    ShareRequest,
    ShareResult,
)
from release.noise.composed.share import share_out
from release.noise.design import Design
from release.noise.families import AnyDesign
from release.noise.least import with_least
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.noise.solvers.on_integers import with_ends
from release.noise.stage import Problem, problem_of, solution_of
from release.queries.registry import sensitivity_without_data, statistic_of
from release.queries.statistics import Ranks, Scores, Sums
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.losses import loss_of
from release.spec.mechanisms import BEST
from release.spec.query import Query
from release.spec.shares import shared, target_of, with_found

METHOD = "shared budget"
"""The method of noise that is found for a whole budget."""


@dataclass(frozen=True)
class Shared:
    """A spec in which every query has a guarantee, and the mechanisms that were found for them."""

    spec_file: SpecFile
    designs: Mapping[str, AnyDesign | StatisticDesign]


def share_budget(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> Shared:
    """Find a mechanism and a guarantee for each query with a share or a target.

    First, queries that ask for the least ε or δ under a target get it.

    Raises:
        BudgetError: a target, or the declared guarantees alone, need more than the budget.
        DesignError: a mechanism of the other queries cannot be proved, or a query that asks for the
            least ε or δ cannot meet its target.
    """
    spec_file = with_least(spec_file, cache, gap)
    spec = spec_file.spec
    waiting = shared(spec)
    if not waiting:
        return Shared(spec_file, {})
    step, budget = release_step(spec_file), asked_of_budget(spec_file, cache, gap)
    delta, designs = budget.delta, dict[str, AnyDesign | StatisticDesign]()
    every = share_out(budget.requests, budget.epsilon, delta, budget.fixed, step)
    # Queries that ask for the same get the same noise, whose guarantee is found once.
    designs_by_question: dict[object, AnyDesign | StatisticDesign] = {}
    for query, result in zip(waiting, every, strict=True):
        alike = _alike(spec_file, query, result)
        if alike not in designs_by_question:
            designs_by_question[alike] = _design(spec_file, query, result, step, delta)
        designs[query.name] = designs_by_question[alike]
    guarantees = {}
    for name, design in designs.items():
        guarantee = design.guarantee
        guarantees[name] = GuaranteeSpec(
            definition=guarantee.definition, epsilon=guarantee.epsilon, delta=guarantee.delta
        )
    return Shared(replace(spec_file, spec=with_found(spec, guarantees)), designs)


@dataclass(frozen=True)
class AskedOfBudget:
    """What the queries with shares and targets ask, and the budget that is theirs.

    Attributes:
        requests: in the order of the spec.
        epsilon: the budget's, less the charges that add up: those of instance-specific queries,
            and without δ all.
        delta: as ``epsilon``.
        fixed: the losses of the queries with declared guarantees, paid from both as well.
    """

    requests: tuple[ShareRequest, ...]
    epsilon: Fraction
    delta: Fraction
    fixed: LossDistribution | None


def asked_of_budget(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> AskedOfBudget:
    """What a spec asks of its budget beside its declared guarantees.

    Raises:
        BudgetError: the declared guarantees alone need more than the budget.
        DesignError: one of their mechanisms cannot be proved.
    """
    declared, fixed = _spent_already(spec_file, release_step(spec_file), cache, gap)
    budget = spec_file.spec.budget
    requests = tuple(_request(spec_file, query) for query in shared(spec_file.spec))
    epsilon, delta = budget.epsilon - declared.epsilon, budget.delta - declared.delta
    return AskedOfBudget(requests, epsilon, delta, fixed)


def _spent_already(
    spec_file: SpecFile, step: Fraction, cache: DesignCache | None, gap: Fraction
) -> tuple[Spent, LossDistribution | None]:
    """The declared guarantees: the sum of those that add up, and the losses of all others."""
    spec = spec_file.spec
    declared, profiles = Spent(), []
    for query in spec.charged:
        if query.guarantee is None:
            continue
        if query.is_empirical:
            charge = charge_of(spec_file, query, query.claimed)
            declared += Spent(charge.epsilon, charge.delta)
            continue
        design, sensitivity = _declared_design(spec_file, query, cache, gap)
        if not spec.budget.delta:
            # Without δ all charges add up. Whether the mechanism needs a δ is checked at the end.
            kept = satisfied(spec_file, query, design, query.claimed)
            declared += Spent(charge_of(spec_file, query, query.claimed, kept).epsilon)
            continue
        profiles.append(query_profile(spec_file, query, design.mechanism, sensitivity, step))
    for name in ("epsilon", "delta"):
        spent, cap = getattr(declared, name), getattr(spec.budget, name)
        # δ may be used up: what is shared out is pure then. Without ε there is nothing to share.
        if spent > cap or (name == "epsilon" and spent == cap):
            raise BudgetError(
                f"budget.{name}: the declared guarantees charge {format_exact(spent)}, the cap is "
                f"{format_exact(cap)}; nothing is left to share out, raise the cap"
            )
    return declared, Together(step, tuple(profiles)).losses if profiles else None


def _declared_design(
    spec_file: SpecFile, query: Query, cache: DesignCache | None, gap: Fraction
) -> tuple[AnyDesign | StatisticDesign, Sensitivity | None]:
    """The mechanism of a query with a guarantee, as the design stage will find it."""
    if query.is_on_statistic:
        statistic = statistic_of(spec_file.spec, query)
        guarantee, part = query.claimed.to_guarantee(), proportional_part(spec_file, query)
        return design_on_statistic(statistic, query.mechanism, guarantee, part), None
    problem = problem_of(spec_file, query, sensitivity_without_data(spec_file.spec, query))
    if not isinstance(problem, Problem):
        raise TypeError(f"{query.name} has noise on its answer and no statistic")
    return solution_of(problem, cache, gap), problem.asked.sensitivity


def _request(spec_file: SpecFile, query: Query) -> ShareRequest:
    """What a query asks of the budget, from its public declaration."""
    patterns, target = patterns_of(spec_file, query), None
    together = moved_together(spec_file, query)
    if query.target is not None:
        place = spec_file.spec.place_of(query)
        target = target_of(f"{place}.target", query).cap
    if not query.is_on_statistic:
        power = power_of(loss_of(query))
        return ShareRequest(query.name, patterns, power, query.share, target, together=together)
    statistic = statistic_of(spec_file.spec, query)
    about: dict[str, Any] = {"name": query.name, "weight": query.share, "cells": len(patterns[0])}
    # Of the others, one sum gets a staircase and a top several families: every cell is charged.
    is_mean = isinstance(statistic, Sums) and statistic.inputs > 1
    if is_mean or isinstance(statistic, Scores | Ranks):
        about["together"] = together
    if isinstance(statistic, Scores):
        about |= {"candidates": statistic.inputs, "spread": statistic.spread, "loss_power": 1}
        families = (PERMUTE_AND_FLIP, EXPONENTIAL)
        return ShareRequest(kind=Kind.SELECTION, families=families, **about)
    # Of two-sided geometric noise on a sum the variance is about 2·(spread/ε)²; ranks and counts
    # are off by about spread/ε.
    power = 2 if isinstance(statistic, Sums) else 1
    loss = Fraction(power * statistic.spread**power)
    return ShareRequest(kind=Kind.PURE, loss_power=power, loss_at_one=loss, **about)


def _alike(spec_file: SpecFile, query: Query, result: ShareResult) -> object:
    """Equal for queries with the same design."""
    if query.is_on_statistic:
        return result.mechanism, statistic_of(spec_file.spec, query)
    sensitivity = sensitivity_without_data(spec_file.spec, query)
    return result.mechanism, query.answers, query.loss, sensitivity


def _design(
    spec_file: SpecFile, query: Query, result: ShareResult, step: Fraction, delta: Fraction
) -> AnyDesign | StatisticDesign:
    if isinstance(result.mechanism, IntegerNoise):
        return on_integers(spec_file, query, result.mechanism, step, delta)
    statistic, epsilon = statistic_of(spec_file.spec, query), result.mechanism.epsilon
    guarantee = Guarantee(Definition.PURE, epsilon, Fraction(0))
    named = result.mechanism.family if result.mechanism.family in statistic.families else BEST
    return design_on_statistic(statistic, named, guarantee)


def on_integers(
    spec_file: SpecFile, query: Query, noise: IntegerNoise, step: Fraction, delta: Fraction
) -> AnyDesign:
    """The noise clamped to the answers, with the guarantee of one cell."""
    sensitivity, loss = sensitivity_without_data(spec_file.spec, query), loss_of(query)
    mechanism = with_ends(noise, query.answers.size, power_of(loss))
    return Design(
        mechanism=mechanism,
        sensitivity=sensitivity,
        guarantee=_guarantee_of(mechanism, sensitivity, step, delta),
        loss=loss,
        method=METHOD,
        objective=mechanism.objective(loss, query.answers),
        bound_of=BoundOf.INTEGERS,
        noise_loss=noise.moment(power_of(loss)),
        is_named=True,
        name=IntegerMechanism.family,
    )


def _guarantee_of(
    mechanism: IntegerMechanism, sensitivity: Sensitivity, step: Fraction, delta: Fraction
) -> Guarantee:
    """The guarantee of one cell: at the δ of the budget, or pure where that says as much."""
    epsilon = found_epsilon(mechanism, sensitivity, step, delta) if delta else None
    pure = _pure_epsilon(mechanism, sensitivity)
    if pure is not None and (epsilon is None or pure <= 2 * epsilon):
        return Guarantee(Definition.PURE, pure, Fraction(0))
    if epsilon is None:
        raise DesignError("noise for a shared budget has a larger delta than the budget")
    return Guarantee(Definition.APPROXIMATE, epsilon, delta)


def _pure_epsilon(mechanism: IntegerMechanism, sensitivity: Sensitivity) -> Fraction | None:
    """The pure ε of one cell, rounded up to 12 decimals; None where losses have no bound."""
    everywhere = mechanism.noise.right
    if everywhere is None:
        return None
    farthest = max(sensitivity.distances or (1,))
    periods = Fraction(farthest, everywhere.period)
    # A part of a period may cost its part of ε, but where a tail has steps it costs a whole one.
    for steps in (periods, Fraction(ceil(periods))):
        epsilon = Fraction(format_up(steps * loss_above(everywhere.ratio), 12))
        if epsilon <= MAX_EPSILON and not mechanism.deltas(sensitivity, epsilon).approximate:
            return epsilon
    return None
