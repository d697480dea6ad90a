"""Shares of a budget without δ: every mechanism is pure, and their ε add up.

For squared loss the best ε goes as the cube root of weight over cells. It is found for the exact
loss of each: at the best, one more unit of ε would lower every weighted loss by the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from release.errors import BudgetError
from release.exact.composition.distribution import LossDistribution
from release.exact.integers.noise import IntegerNoise
from release.exact.integers.staircase import staircase
from release.noise.composed.families import OfEpsilon, family_of
from release.noise.composed.groups import Kind, RequestGroup, Selected, ShareRequest, ShareResult

_PLACES = 12
"""Decimals of the ε of a query."""

_LEAST, _MOST = 1e-9, 100.0

_FLOOR = 0.05
"""No query with a share gets less than this part of an equal share."""

_TRIES = 60


def share_pure(
    groups: Sequence[RequestGroup],
    epsilon: Fraction,
    fixed: LossDistribution | None,
) -> list[ShareResult]:
    """Return the mechanism of each group; all and ``fixed`` together are ``epsilon``-private.

    Args:
        groups: queries with shares and targets.
        epsilon: of all together.
        fixed: what is charged beside them.

    Raises:
        BudgetError: the targets need more, or nothing is left for the shares.
    """
    rest = epsilon - _charged(fixed)
    results: dict[int, ShareResult] = {}
    for place, group in enumerate(groups):
        if group.request.target is not None:
            results[place] = _for_target(group, group.request.target)
            rest -= group.count * (results[place].pure_epsilon or 0)
            if rest < 0:
                raise BudgetError(
                    f"query {group.names[0]}: its target needs epsilon "
                    f"{float(results[place].pure_epsilon or 0):.4g}, and with the others all of "
                    f"them need {float(epsilon - rest):.4g} of {float(epsilon):.4g}"
                )
    shared = [place for place in range(len(groups)) if place not in results]
    if shared and float(rest) < 2 * _LEAST * sum(groups[place].count for place in shared):
        raise BudgetError(f"query {groups[shared[0]].names[0]}: the others leave no epsilon for it")
    for place, share in zip(shared, _allotted([groups[p] for p in shared], rest), strict=True):
        results[place] = _pure_mechanism(groups[place], share)
    return [results[place] for place in range(len(groups))]


def _charged(fixed: LossDistribution | None) -> Fraction:
    if fixed is None:
        return Fraction(0)
    epsilon = fixed.epsilon_at(Fraction(0))
    if epsilon is None:
        raise BudgetError("another query needs a delta, and the budget has none")
    return epsilon


def _allotted(groups: Sequence[RequestGroup], budget: Fraction) -> list[Fraction]:
    """ε of one query of each group, such that Σ weight·loss is about the least."""
    if not groups:
        return []
    losses = [_loss_of(group.request) for group in groups]
    # The error rate falls by a bounded slope: a small weight would get nothing at all.
    floor = float(budget) / sum(group.count for group in groups) * _FLOOR

    def at(price: float) -> list[float]:
        shares = []
        for group, loss in zip(groups, losses, strict=True):
            shares.append(_least_at(loss, float(group.request.weight or 1), price, floor))
        return shares

    def total(shares: Sequence[float]) -> float:
        return sum(group.count * share for group, share in zip(groups, shares, strict=True))

    # The price of ε is a Lagrange multiplier: the higher, the less ε every query takes.
    low, high = 1e-30, 1e30
    for _ in range(200):
        price = math.sqrt(low * high)
        low, high = (price, high) if total(at(price)) > budget else (low, price)
    shares = at(high)
    # The last of ε by one factor, rounded down.
    factor = float(budget) / total(shares) * (1 - 1e-9)
    rounded = []
    for share in shares:
        rounded.append(Fraction(math.floor(share * factor * 10**_PLACES), 10**_PLACES))
    return rounded


def _rounded(epsilon: Fraction, times: Fraction) -> Fraction:
    """The ε of one cell that is charged ``times``: so many decimals, and no more."""
    return Fraction(math.floor(epsilon / times * 10**_PLACES), 10**_PLACES)


def _least_at(loss: Callable[[float], float], weight: float, price: float, floor: float) -> float:
    """The ε with the least weight·loss + price·ε, by halving its logarithm at the slope.

    It is at least ``floor``.
    """
    low, high = math.log(floor), math.log(_MOST)
    for _ in range(50):
        middle = (low + high) / 2
        here, there = math.exp(middle), math.exp(middle + 1e-4)
        # Losses are convex in ε, so that the slope changes its sign once.
        slope = weight * (loss(there) - loss(here)) + price * (there - here)
        low, high = (middle, high) if slope < 0 else (low, middle)
    return math.exp(low)


def _loss_of(request: ShareRequest) -> Callable[[float], float]:
    """The expected loss by the ε of one unit's whole effect, about."""
    if request.kind is not Kind.INTEGERS:
        family = _family(request)
        return lambda epsilon: family.loss(1.0, float(request.times) / epsilon)
    # Staircases lose about as much as geometric noise of the same effect.
    reach = float(request.times * request.most)
    power = request.loss_power

    def loss(epsilon: float) -> float:
        ratio, rest = math.exp(-epsilon / reach), -math.expm1(-epsilon / reach)
        return 2 * ratio / ((1 + ratio), rest * (1 + ratio), rest**2)[power]

    return loss


def loss_at(request: ShareRequest, epsilon: float) -> float:
    """The expected loss at so much ε of one unit's whole effect, about."""
    return _loss_of(request)(epsilon)


def _family(request: ShareRequest) -> OfEpsilon:
    """Its first family: with one pure charge permute-and-flip is never worse than the other."""
    family = family_of(request)
    assert isinstance(family, OfEpsilon)  # noqa: S101 - a request that is not on integers
    return family


def _pure_mechanism(group: RequestGroup, epsilon: Fraction) -> ShareResult:
    """The mechanism of least loss for so much ε of one unit's whole effect.

    Raises:
        BudgetError: there is none in 62 bits.
    """
    request, name = group.request, group.names[0]
    if request.kind is not Kind.INTEGERS:
        family = _family(request)
        share = _rounded(epsilon, request.times)
        if not share:
            raise BudgetError(f"query {name}: epsilon {float(epsilon):.3g} is too small for it")
        loss = family.loss(1.0, 1 / float(share))
        return ShareResult(name, Selected(family.family, share), share * request.times, loss)
    try:
        noise, charged = _noise(request, epsilon)
    except ValueError as error:
        raise BudgetError(f"query {name}: epsilon {float(epsilon):.3g}: {error}") from error
    return ShareResult(name, noise, charged, float(noise.moment(request.loss_power)))


def _noise(request: ShareRequest, epsilon: Fraction) -> tuple[IntegerNoise, Fraction]:
    """Geometric noise, charged for every step of a change, or a staircase for every cell.

    With what is charged.
    """
    power, cells = request.loss_power, Fraction(request.touched)
    share = _rounded(epsilon, request.times)
    geometric = staircase((1,), share / request.most, power).noise
    if request.most == 1:
        return geometric, share * request.times
    share_of_stairs = _rounded(epsilon, cells)
    stairs = staircase(range(1, request.most + 1), share_of_stairs, power).noise
    if stairs.moment(power) < geometric.moment(power):
        return stairs, share_of_stairs * cells
    return geometric, share * request.times


def _for_target(group: RequestGroup, target: Fraction) -> ShareResult:
    """The mechanism of the least ε that meets a target."""
    low, high = math.log(_LEAST), math.log(_MOST * group.request.touched)
    best = None
    for _ in range(_TRIES):
        middle = (low + high) / 2
        cells = group.request.touched
        # Rounded up, as a little less ε could miss the target by the last digit.
        share = Fraction(math.ceil(math.exp(middle) / cells * 10**_PLACES), 10**_PLACES)
        epsilon = cells * share
        candidate = _pure_mechanism(group, epsilon)
        if _exact_loss(group, candidate) <= target:
            high, best = middle, candidate
        else:
            low = middle
        if high - low < 1e-9:
            break
    if best is None:
        raise BudgetError(f"query {group.names[0]}: no epsilon up to {_MOST:.0f} meets its target")
    return best


def _exact_loss(group: RequestGroup, candidate: ShareResult) -> Fraction:
    """The expected loss, never understated."""
    if isinstance(candidate.mechanism, IntegerNoise):
        return candidate.mechanism.moment(group.request.loss_power)
    return Fraction(candidate.expected_loss * (1 + 1e-9))
