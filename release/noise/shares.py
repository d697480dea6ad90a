"""Finds the mechanisms of queries that share a budget, before any table is opened.

Everything here follows from the spec: the sensitivity is that of the declaration, and the budget is
what the spec allows. So the guarantees that are found are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias

from release.budget.composed import Together, found_epsilon
from release.budget.cost import (
    charge_of,
    moved_together,
    proportional_part,
    release_step,
    satisfied,
    total_of,
    touched_cells,
)
from release.budget.entries import Spent
from release.budget.patterns import patterns_of
from release.budget.profiles import published_profiles, query_profile
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
from release.exact.statistics.statistic import Ranks, Scores, Sums
from release.noise.cache import DesignCache
from release.noise.composed.groups import (
    EXPONENTIAL,
    PERMUTE_AND_FLIP,
    Kind,
    ShareRequest,
    ShareResult,
)
from release.noise.composed.pure import loss_at
from release.noise.composed.share import share_out
from release.noise.design import Design
from release.noise.families import AnyDesign
from release.noise.least import with_least
from release.noise.on_statistic import StatisticDesign, design_on_statistic
from release.noise.solvers.on_integers import with_ends
from release.noise.stage import Problem, design_unseen, problem_of, solution_of
from release.queries.on_statistic import OnStatisticQuery
from release.queries.registry import sensitivity_without_data, statistic_of
from release.spec.declarations import Budget
from release.spec.demands import demands_of
from release.spec.guarantees import GuaranteeSpec
from release.spec.load import SpecFile
from release.spec.losses import loss_of
from release.spec.mechanisms import BEST
from release.spec.query import Query
from release.spec.shares import shared, target_of, with_found

_PLACES = 12
"""Decimals of the ε of a share."""

METHOD = "shared budget"
"""The method of noise that is found for a whole budget."""


Designs: TypeAlias = Mapping[str, AnyDesign | StatisticDesign]
"""Mechanisms by the name of their query."""


@dataclass(frozen=True)
class Shared:
    """A spec in which every query has a guarantee, and the mechanisms that were found for them."""

    spec_file: SpecFile
    designs: Designs
    added: Designs | None = None
    """Pure noise for shares and targets whose charges add up, where the budget has room for it."""

    @property
    def is_added(self) -> bool:
        """Whether that is what was taken."""
        return bool(self.designs) and self.designs is self.added


def share_budget(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> Shared:
    """Find a mechanism and a guarantee for each query with a share or a target.

    First, queries that ask for the least ε or δ under a target get it. Noise that is composed
    exactly is taken where it is no worse for any query than pure noise whose charges add up, each
    share that part of ε; else that is taken.

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
    added, refusal = None, None
    try:
        added = _added(spec_file, waiting, cache, gap)
    except (BudgetError, DesignError) as error:
        refusal = error
    # Losses of a mean and of a category are no like numbers, so that their plain sum says nothing.
    kinds = {(request.kind, request.loss_power) for request in _requests(spec_file)}
    for is_balanced in (False, True) if len(kinds) == 1 else (True,):
        if added is not None and not spec.budget.delta:
            break
        try:
            composed = _composed(spec_file, cache, gap, is_balanced=is_balanced)
        except (BudgetError, DesignError) as error:
            refusal = refusal or error
            continue
        if added is None or _is_no_worse(spec_file, composed, added):
            return _with_designs(spec_file, composed, added)
    if added is None:
        raise refusal or TypeError("nothing was shared out")
    return _with_designs(spec_file, added, added)


def _with_designs(spec_file: SpecFile, designs: Designs, added: Designs | None = None) -> Shared:
    guarantees = {}
    for name, design in designs.items():
        guarantee = design.guarantee
        guarantees[name] = GuaranteeSpec(
            definition=guarantee.definition, epsilon=guarantee.epsilon, delta=guarantee.delta
        )
    return Shared(replace(spec_file, spec=with_found(spec_file.spec, guarantees)), designs, added)


def _composed(
    spec_file: SpecFile, cache: DesignCache | None, gap: Fraction, *, is_balanced: bool
) -> Designs:
    """Noise that is made for the whole budget and composed exactly.

    Raises:
        BudgetError: the budget cannot meet a target, or leaves nothing for the shares.
    """
    asked = asked_of_budget(spec_file, cache, gap)
    step, delta = release_step(spec_file), asked.delta
    requests = _balanced(asked.requests, asked.epsilon) if is_balanced else asked.requests
    every = share_out(requests, asked.epsilon, delta, asked.fixed, step)
    designs: dict[str, AnyDesign | StatisticDesign] = {}
    # Queries that ask for the same get the same noise, whose guarantee is found once.
    designs_by_question: dict[object, AnyDesign | StatisticDesign] = {}
    for query, result in zip(shared(spec_file.spec), every, strict=True):
        alike = _alike(spec_file, query, result)
        if alike not in designs_by_question:
            designs_by_question[alike] = _design(spec_file, query, result, step, delta)
        designs[query.name] = designs_by_question[alike]
    return designs


def _balanced(requests: Sequence[ShareRequest], epsilon: Fraction) -> tuple[ShareRequest, ...]:
    """The requests with weights under which each loses as much at its share of ε."""
    total = sum((request.weight or Fraction(0) for request in requests), Fraction(0))
    balanced = []
    for request in requests:
        if request.weight is not None:
            loss = loss_at(request, float(epsilon * request.weight / total))
            balanced.append(replace(request, weight=1 / Fraction(max(loss, 1e-30))))
        else:
            balanced.append(request)
    return tuple(balanced)


def _is_no_worse(spec_file: SpecFile, composed: Designs, added: Designs) -> bool:
    """Whether no query with a share errs more; without shares, whether less ε is charged."""
    has_share = False
    for query in shared(spec_file.spec):
        if query.share is None:
            continue
        has_share = True
        if _error(query, composed[query.name]) > _error(query, added[query.name]) * (1 + 1e-9):
            return False
    return has_share or _total(spec_file, composed) <= _total(spec_file, added)


def _error(query: Query, design: AnyDesign | StatisticDesign) -> float:
    """How far off an answer is: what the plan says of it."""
    if isinstance(design, StatisticDesign):
        if not isinstance(query, OnStatisticQuery):
            raise TypeError(f"{query.name} has no statistic")
        return design.mechanism.nearness(query.wording).near
    return float(design.objective)


def _total(spec_file: SpecFile, designs: Designs) -> Fraction:
    """The ε that the queries of ``designs`` charge by the rule of the spec."""
    found = _with_designs(spec_file, designs).spec_file
    own = [query for query in found.spec.queries if query.name in designs]
    charges, made = [], []
    for query in own:
        design = designs[query.name]
        kept = satisfied(found, query, design, query.claimed)
        charges.append(charge_of(found, query, query.claimed, kept))
        made.append((query, design.mechanism, design.sensitivity))
    alone = replace(found, spec=found.spec.model_copy(update={"queries": own, "tabulations": []}))
    together = published_profiles(found, made) if found.spec.composes_exactly else None
    return total_of(alone.spec, charges, together).epsilon


def _added(
    spec_file: SpecFile, waiting: Sequence[Query], cache: DesignCache | None, gap: Fraction
) -> Designs:
    """Pure noise whose charges add up: the least that meets a target, and parts of what is left.

    Raises:
        BudgetError: nothing is left for the shares.
        DesignError: no mechanism can be proved for its part.
    """
    left = _left_by_declared(spec_file, cache, gap)
    step = release_step(spec_file)
    designs: dict[str, AnyDesign | StatisticDesign] = {}
    targets = [query for query in waiting if query.target is not None]
    requests = [_request(spec_file, query) for query in targets]
    for query, result in zip(targets, share_out(requests, left, Fraction(0)), strict=True):
        designs[query.name] = _design(spec_file, query, result, step, Fraction(0))
        left -= result.pure_epsilon or 0
    shares = [query for query in waiting if query.share is not None]
    total = sum((query.share for query in shares if query.share is not None), Fraction(0))
    parts: dict[object, AnyDesign | StatisticDesign] = {}
    for query in shares:
        part = left * (query.share or 0) / total
        alike = part, _question(spec_file, query)
        if alike not in parts:
            parts[alike] = _for_charge(spec_file, query, part, cache, gap)
        designs[query.name] = parts[alike]
    return {query.name: designs[query.name] for query in waiting}


def _question(spec_file: SpecFile, query: Query) -> object:
    """Equal for queries that a mechanism answers alike at one charge."""
    times = touched_cells(spec_file, query), moved_together(spec_file, query)
    if query.is_on_statistic:
        return times, statistic_of(spec_file.spec, query)
    sensitivity = sensitivity_without_data(spec_file.spec, query)
    return times, query.answers, query.loss, sensitivity, query.mechanism, demands_of(query)


def _for_charge(
    spec_file: SpecFile, query: Query, charge: Fraction, cache: DesignCache | None, gap: Fraction
) -> AnyDesign | StatisticDesign:
    """The mechanism that a pure guarantee of this charge would get.

    Raises:
        BudgetError: the charge is too small.
        DesignError: no mechanism can be proved.
    """
    # Noise that loses in proportion is charged for what a unit moves in all cells together.
    for times in (moved_together(spec_file, query), Fraction(touched_cells(spec_file, query))):
        rounded = Fraction(floor(charge / times * 10**_PLACES), 10**_PLACES)
        epsilon = min(Fraction(MAX_EPSILON), rounded)
        if not epsilon:
            raise BudgetError(
                f"query {query.name}: its share is a charge of {format_up(charge, 6)}, too small "
                "for any noise; raise it"
            )
        guarantee = GuaranteeSpec(definition=Definition.PURE, epsilon=epsilon, delta=Fraction(0))
        # Where the noise is on the answer it is on the integers, as all that shares a budget.
        named = BEST if query.is_on_statistic else IntegerMechanism.family
        claiming = query.model_copy(update={"guarantee": guarantee, "mechanism": named})
        design = design_unseen(spec_file, claiming, cache, gap)
        kept = satisfied(spec_file, claiming, design, guarantee)
        if charge_of(spec_file, claiming, guarantee, kept).epsilon <= charge:
            return design
    raise BudgetError(f"query {query.name}: no noise is charged so little")


def _left_by_declared(spec_file: SpecFile, cache: DesignCache | None, gap: Fraction) -> Fraction:
    """What the declared guarantees leave of ε where all charges add up.

    Raises:
        BudgetError: nothing, or they need more than δ.
    """
    spec = spec_file.spec
    charges: dict[str, Spent] = {}
    for query in spec.charged:
        if query.guarantee is None:
            continue
        kept = None
        if not query.is_empirical:
            design, _ = _declared_design(spec_file, query, cache, gap)
            kept = satisfied(spec_file, query, design, query.claimed)
        charge = charge_of(spec_file, query, query.claimed, kept)
        charges[query.name] = Spent(charge.epsilon, charge.delta)
    declared = sum(charges.values(), Spent())
    if declared.epsilon >= spec.budget.epsilon or declared.delta > spec.budget.delta:
        raise BudgetError(_refusal(spec.budget, charges))
    return spec.budget.epsilon - declared.epsilon


def _refusal(budget: Budget, charges: Mapping[str, Spent]) -> str:
    """That the declared guarantees leave nothing, and who takes what."""
    taken = []
    for name, spent in charges.items():
        delta = f", δ {format_up(spent.delta, 6)}" if spent.delta else ""
        taken.append(f"{name} {format_up(spent.epsilon, 6)}{delta}")
    return (
        f"budget: the declared guarantees take {'; '.join(taken)} of epsilon "
        f"{format_exact(budget.epsilon)}, δ {format_exact(budget.delta)}, and nothing is left to "
        "share out; raise the cap, or lower a guarantee"
    )


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
    requests = _requests(spec_file)
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
    # δ may be used up: what is shared out is pure then. Without ε there is nothing to share.
    if declared.epsilon >= spec.budget.epsilon or declared.delta > spec.budget.delta:
        raise BudgetError(_refusal(spec.budget, {"in all": declared}))
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


def _requests(spec_file: SpecFile) -> tuple[ShareRequest, ...]:
    return tuple(_request(spec_file, query) for query in shared(spec_file.spec))


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
