"""Shares of one budget: how much noise each query gets, proved to stay within it.

Queries with a target get as much noise as it allows. What they and all other mechanisms leave is
shared, such that the sum of weighted expected losses is least. A search proposes; the exact account
decides, and all shares are scaled until it certifies nearly all of ε and no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from release.budget.composed import step_of_budget
from release.errors import BudgetError
from release.exact.composition.distribution import UNIT, LossDistribution
from release.exact.composition.together import together
from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import Pattern
from release.noise.composed.estimate import Losses
from release.noise.composed.families import OfEpsilon, OnIntegers, family_of
from release.noise.composed.groups import (
    EXPONENTIAL,
    Kind,
    RequestGroup,
    Selected,
    ShareRequest,
    ShareResult,
    grouped,
)
from release.noise.composed.pure import share_pure
from release.noise.composed.search import (
    MOST_POLISHED,
    Cap,
    Part,
    any_shared,
    objective,
    scaled,
    scaled_to,
    searched,
    started,
)
from release.spec.named import names_of

UNUSED = Fraction(5, 10_000)
"""The most of ε that stays unused, in proportion."""

_TRIES = 12

_MOST_LESS = 0.9
"""One try has no less noise than so many times that of the try before."""

_FEW = 10
"""Up to so many changed answers plain addition of pure charges may be as good as an account."""


@dataclass(frozen=True)
class SharedBudget:
    """A budget for several queries: ε, δ above 0, the grid's step, and what is charged already."""

    epsilon: Fraction
    delta: Fraction
    step: Fraction
    fixed: LossDistribution | None

    def cap(self) -> Cap:
        """The budget in floats.

        Raises:
            BudgetError: the other mechanisms need all of δ.
        """
        delta, fixed = self.delta, None
        if self.fixed is not None:
            losses = self.fixed.regridded(self.step)
            # An infinite loss fails with its mass at every ε, whatever noise is added elsewhere.
            delta -= Fraction(losses.infinite, UNIT)
            # Divided as Python's integers: those of NumPy would overflow.
            masses = np.array([mass / UNIT for mass in losses.masses[::-1]])
            first = int(losses.highest / self.step) - len(losses.masses) + 1
            fixed = Losses(first, masses)
        if delta <= 0:
            raise BudgetError("the other queries need all of delta: raise it, or lower theirs")
        return Cap(float(self.epsilon), math.log(delta), float(self.step), fixed)


def grid_step(requests: Sequence[ShareRequest], epsilon: Fraction, others: int = 0) -> Fraction:
    """Return the grid's step for a budget ``epsilon`` of ``requests`` and ``others`` mechanisms."""
    return step_of_budget(epsilon, others + sum(request.touched for request in requests))


def share_out(
    requests: Sequence[ShareRequest],
    epsilon: Fraction,
    delta: Fraction,
    fixed: LossDistribution | None = None,
    step: Fraction | None = None,
) -> tuple[ShareResult, ...]:
    """Return the mechanism of each request, in their order, which together satisfy (ε, δ).

    Args:
        requests: queries with a share or a target.
        epsilon: the budget's, above 0.
        delta: the budget's; with 0 all mechanisms are pure, and their ε add up.
        fixed: losses of all that the budget pays beside them.
        step: the grid on which the release composes; by default :func:`grid_step`.

    Raises:
        BudgetError: the budget cannot meet a target, or leaves nothing for the shares.
    """
    if not requests:
        return ()
    for request in requests:
        _check_target(request)
    groups = grouped(requests)
    if delta == 0:
        results = share_pure(groups, epsilon, fixed)
    else:
        budget = SharedBudget(epsilon, delta, step or grid_step(requests, epsilon), fixed)
        results = _share_composed(groups, budget)
    shares = {}
    for group, result in zip(groups, results, strict=True):
        for name in group.names:
            shares[name] = replace(result, name=name)
    return tuple(shares[name] for name in names_of(requests))


def noise_for(
    count: int,
    epsilon: Fraction,
    delta: Fraction,
    loss_power: int,
    patterns: tuple[Pattern, ...] = ((1,),),
) -> IntegerNoise:
    """Return noise of least expected loss for ``count`` equal queries within one (ε, δ).

    Args:
        count: how many queries.
        epsilon: of all together, above 0.
        delta: of all together.
        loss_power: 0 error rate, 1 absolute, 2 squared loss.
        patterns: by how much one unit changes the cells of a query.

    Raises:
        BudgetError: ε is too small for noise in 62 bits.
    """
    requests = []
    for place in range(count):
        requests.append(ShareRequest(str(place), patterns, loss_power, weight=Fraction(1)))
    noise = share_out(requests, epsilon, delta)[0].mechanism
    assert isinstance(noise, IntegerNoise)  # noqa: S101 - a request on integers
    return noise


def _share_composed(groups: Sequence[RequestGroup], budget: SharedBudget) -> list[ShareResult]:
    cap = budget.cap()
    parts = []
    for group in groups:
        weight, target = group.request.weight, group.request.target
        parts.append(
            Part(
                family_of(group.request),
                group.count,
                None if weight is None else float(weight),
                None if target is None else float(target),
            )
        )
    _check_targets(groups, parts, budget, cap)
    try:
        proposed = searched(_with_selections(parts, cap), cap)
        results = _certified(groups, proposed, budget)
    except ValueError as error:
        shared = [group.names[0] for group in groups if group.request.weight is not None]
        raise BudgetError(f"no noise within the budget for {', '.join(shared)}: {error}") from error
    return _or_added(groups, results, budget)


def _check_target(request: ShareRequest) -> None:
    """Refuse a target that no public figure decides.

    Raises:
        BudgetError: the error rate of a selection, which depends on its scores.
    """
    is_selection = request.kind is Kind.SELECTION and request.loss_power == 0
    if is_selection and request.target is not None:
        raise BudgetError(
            f"query {request.name}: how often a selection errs depends on the data; give it a "
            "share, or an absolute target"
        )


def _check_targets(
    groups: Sequence[RequestGroup], parts: Sequence[Part], budget: SharedBudget, cap: Cap
) -> None:
    """Refuse targets that need more than the budget.

    Raises:
        BudgetError: they do; it names the query that costs most, and the ε that would do.
    """
    aimed = [part for part in parts if part.target is not None]
    if not aimed:
        return
    least = searched(_with_selections(aimed, cap), cap)
    # Floats a little beyond the budget are left to the exact account, which decides.
    if cap.excess(least) <= 1e-3:
        return
    # ``groups`` and ``parts`` have one order, so the groups with a target stand as in ``least``.
    named = [group for group in groups if group.request.target is not None]
    worst, highest = "", -math.inf
    for group, part in zip(named, least, strict=True):
        cost = part.count * part.family.cost / part.spread**2
        if cost > highest:
            worst, highest = group.names[0], cost
    needed = float(budget.epsilon) * math.exp(objective(least, cap))
    raise BudgetError(
        f"query {worst}: the targets need epsilon {needed:.4g} in all at this delta, and the "
        f"budget is {float(budget.epsilon):.4g}; raise it, or allow a larger loss"
    )


def _with_selections(parts: Sequence[Part], cap: Cap) -> list[Part]:
    """The parts with the family of selections that serves better in this budget."""
    chosen = list(parts)
    places = []
    for place, part in enumerate(parts):
        request = part.family.request
        if request.kind is Kind.SELECTION and EXPONENTIAL in request.families[1:]:
            places.append(place)
    # One by one for few groups. Each try composes all of them, so many are tried together.
    moved = [places] if len(parts) > MOST_POLISHED else [[place] for place in places]
    for together_moved in filter(None, moved):
        candidate = list(chosen)
        for place in together_moved:
            family = OfEpsilon(parts[place].family.request, EXPONENTIAL)
            candidate[place] = replace(parts[place], family=family)
        if _objective_at_start(candidate, cap) < _objective_at_start(chosen, cap):
            chosen = candidate
    return chosen


def _objective_at_start(parts: Sequence[Part], cap: Cap) -> float:
    """How good the parts are before the search moves them."""
    return objective(scaled_to(started(parts, cap), cap), cap)


def _certified(
    groups: Sequence[RequestGroup], proposed: Sequence[Part], budget: SharedBudget
) -> list[ShareResult]:
    """The mechanisms of the proposal, scaled until the exact ε is the budget's, or just below.

    Raises:
        ValueError: no noise was found that is enough.
    """
    factor, best, least = 1.0, None, math.inf
    is_shared = any_shared(proposed)
    for _ in range(_TRIES):
        parts = scaled(proposed, factor)
        mechanisms = list(map(_mechanism, parts))
        certified = _epsilon(parts, mechanisms, budget)
        if certified is not None and certified <= budget.epsilon and factor < least:
            least = factor
            best = list(map(_result, groups, parts, mechanisms))
            if certified >= budget.epsilon * (1 - UNUSED) or not is_shared:
                break
        if certified == 0:
            # With a large δ a little less noise is the step from no ε at all to too much.
            break
        if not is_shared:
            raise ValueError("the targets need more than epsilon")
        # A little to the safe side, so that rounding does not decide.
        used = 1.01 if certified is None else float(certified / budget.epsilon)
        factor *= max(used, _MOST_LESS) * (1 + 2e-5)
    if best is None:
        raise ValueError("all noise that was tried exceeds epsilon")
    return best


def _mechanism(part: Part) -> IntegerNoise | Selected:
    """The mechanism in exact numbers, with no larger an expected loss than its target."""
    spread = part.spread
    for _ in range(_TRIES):
        mechanism = part.family.mechanism(part.power, spread)
        if part.target is None:
            return mechanism
        target = part.family.request.target
        loss = part.family.exact_loss(mechanism, spread)
        if target is not None and loss <= target:
            return mechanism
        # The search in floats is a rounding off.
        spread *= min(1.0, float((target or loss) / loss)) * (1 - 1e-9)
    raise ValueError("no noise has so small a loss")


def _epsilon(
    parts: Sequence[Part], mechanisms: Sequence[IntegerNoise | Selected], budget: SharedBudget
) -> Fraction | None:
    """The exact account's ε of all parts and of what is charged beside them."""
    composed = [] if budget.fixed is None else [(budget.fixed.regridded(budget.step), 1)]
    for part, mechanism in zip(parts, mechanisms, strict=True):
        composed.append((part.family.losses(mechanism, budget.step), part.count))
    return together(composed).epsilon_at(budget.delta)


def _result(group: RequestGroup, part: Part, mechanism: IntegerNoise | Selected) -> ShareResult:
    pure = None
    if isinstance(mechanism, Selected):
        pure = mechanism.epsilon * group.request.times
    elif isinstance(part.family, OnIntegers):
        shape = part.family.shape(part.power, part.spread)
        if shape.power == 1:
            pure = max(map(sum, group.request.patterns)) / shape.scale
    return ShareResult(group.names[0], mechanism, pure, part.loss)


def _or_added(
    groups: Sequence[RequestGroup], results: list[ShareResult], budget: SharedBudget
) -> list[ShareResult]:
    """The mechanisms, or pure ones whose ε add up, where these lose less: of few queries."""
    touched = sum(group.count * group.request.touched for group in groups)
    if touched > _FEW or budget.fixed is not None:
        return results
    try:
        added = share_pure(groups, budget.epsilon, None)
    except BudgetError:
        return results
    is_better = _weighted(groups, added) < _weighted(groups, results) * (1 - 1e-9)
    return added if is_better else results


def _weighted(groups: Sequence[RequestGroup], results: Sequence[ShareResult]) -> float:
    """The sum of weighted losses of the shares."""
    total = 0.0
    for group, result in zip(groups, results, strict=True):
        total += group.count * float(group.request.weight or 0) * result.expected_loss
    return total
