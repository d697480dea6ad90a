"""How much noise a shared budget saves, beside addition and zCDP; in floats, for comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from release.errors import BudgetError
from release.exact.integers.mechanism import IntegerMechanism
from release.exact.integers.noise import IntegerNoise
from release.noise.composed.families import family_of
from release.noise.composed.groups import (
    Kind,
    RequestGroup,
    Selected,
    ShareRequest,
    grouped,
)
from release.noise.composed.share import share_out
from release.noise.families import AnyDesign
from release.noise.on_statistic import StatisticDesign
from release.noise.shares import AskedOfBudget, Designs
from release.planning.totals import Growth, SharedNoise
from release.planning.zcdp import concentrated, rho_within

MEASURES = ("error rate", "mean error", "standard deviation")
"""Of noise on integers, by the power of the loss."""

OF_STATISTIC = "ε of a cell"
"""Of noise on a statistic: the larger, the better."""

_WIDE = 20.0
"""From this standard deviation on sums over integers are integrals, to more digits than shown."""


def shared_noise(
    budget: AskedOfBudget, designs: Designs, added: Designs | None
) -> tuple[SharedNoise, ...]:
    """The noise of the release beside that of two other rules, equal queries together.

    Args:
        budget: what shares and targets ask of it.
        designs: their mechanisms in the release.
        added: those whose charges add up, where there are any.
    """
    groups = grouped(budget.requests)
    gaussian = _gaussian(groups, budget)
    rows = []
    for place, group in enumerate(groups):
        request, name = group.request, group.names[0]
        rows.append(
            SharedNoise(
                group.names,
                MEASURES[request.loss_power] if request.kind is Kind.INTEGERS else OF_STATISTIC,
                _size_of_design(request, added[name]) if added else None,
                gaussian[place] if gaussian else None,
                _size_of_design(request, designs[name]),
            )
        )
    return tuple(rows)


def growth_by_one_more(budget: AskedOfBudget, designs: Designs) -> Growth | None:
    """What one more share of weight 1, like the first one, adds to the noise of the others.

    None where no query has a share, or where the budget is too small for one more.
    """
    shares = [request for request in budget.requests if request.weight is not None]
    if not shares:
        return None
    # The empty name is that of no query, and the one more stands last: zip() leaves it out below.
    more = replace(shares[0], name="", weight=Fraction(1))
    try:
        results = share_out((*budget.requests, more), budget.epsilon, budget.delta, budget.fixed)
    except BudgetError:
        return None
    largest = 0.0
    for request, share in zip(budget.requests, results, strict=False):
        if request.weight is None:
            continue
        now, then = _size_of_design(request, designs[request.name]), _size(request, share.mechanism)
        # The size of noise on integers is an error, that of a statistic an ε: less is worse.
        ratio = then / now if request.kind is Kind.INTEGERS else now / then
        largest = max(largest, ratio - 1)
    return Growth(shares[0].name, largest)


def _gaussian(groups: Sequence[RequestGroup], budget: AskedOfBudget) -> list[float]:
    """The noise of each group by zCDP; empty where the budget is too small, or has no δ."""
    delta, spent = float(budget.delta), 0.0
    if budget.fixed is not None:
        fixed = concentrated(budget.fixed)
        delta, spent = delta - fixed.delta, fixed.rho
    if delta <= 0:
        return []
    rho = rho_within(float(budget.epsilon), delta) - spent
    sizes = [0.0] * len(groups)
    shares = []
    # Targets come first: shares divide what these leave of ρ.
    for place, group in enumerate(groups):
        if group.request.target is None:
            shares.append(place)
            continue
        sizes[place] = _deviation_for(float(group.request.target), group.request.loss_power)
        rho -= group.count * family_of(group.request).cost / (2 * sizes[place] ** 2)
    if rho <= 0:
        return []
    for place, size in zip(shares, _shared([groups[at] for at in shares], rho), strict=True):
        sizes[place] = size
    losses = []
    for group, size in zip(groups, sizes, strict=True):
        request = group.request
        if request.kind is Kind.INTEGERS:
            losses.append(_shown(gaussian_loss(size, request.loss_power), request))
        else:
            # The spread of a mechanism that is known by its ε is 1/ε.
            losses.append(1 / size)
    return losses


def _shared(groups: Sequence[RequestGroup], rho: float) -> list[float]:
    """Standard deviations with the least sum of weighted losses, and ``rho`` in all.

    The loss of a group is about weight·rise·σ^p, or weight·(1 - rise/σ) where errors are counted.
    At the best σ its slope is in proportion to that of cost/2σ².
    """
    powers, bases = [], []
    for group in groups:
        request, family = group.request, family_of(group.request)
        power = request.loss_power if request.kind is Kind.INTEGERS else max(1, request.loss_power)
        slope = float(request.weight or 1) * family.rise * (power or 1)
        powers.append(1 / ((power or -1) + 2))
        bases.append(family.cost / slope)

    def at(log_price: float) -> list[float]:
        price = math.exp(log_price)
        return [(price * base) ** power for base, power in zip(bases, powers, strict=True)]

    # What is spent falls with the price; ``high`` stays on the side that keeps within ``rho``.
    low, high = -200.0, 200.0
    for _ in range(100):
        middle = (low + high) / 2
        spent = 0.0
        for group, size in zip(groups, at(middle), strict=True):
            spent += group.count * family_of(group.request).cost / (2 * size**2)
        low, high = (middle, high) if spent > rho else (low, middle)
    return at(high)


def gaussian_loss(deviation: float, power: int) -> float:
    """E|η|^``power`` of the discrete Gaussian, P ∝ exp(-η²/2σ²); for 0 the chance of an error."""
    # A sum would take as many terms as the noise is wide.
    if deviation > _WIDE:
        density = 1 / (deviation * math.sqrt(2 * math.pi))
        return (1 - density, deviation * math.sqrt(2 / math.pi), deviation**2)[power]
    places = np.arange(1, math.ceil(12 * deviation) + 2, dtype=np.float64)
    masses = 2 * np.exp(-(places**2) / (2 * deviation**2))
    return float((masses * places**power).sum() / (1 + masses.sum()))


def _deviation_for(loss: float, power: int) -> float:
    """The largest standard deviation with at most ``loss``."""
    # Bisected by the logarithm; ``low`` stays on the side that keeps the loss.
    low, high = 1e-2, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_loss(middle, power) <= loss else (low, middle)
    return low


def _size(request: ShareRequest, mechanism: IntegerNoise | Selected) -> float:
    if isinstance(mechanism, Selected):
        return float(mechanism.epsilon)
    return _shown(float(mechanism.moment(request.loss_power)), request)


def _size_of_design(request: ShareRequest, design: AnyDesign | StatisticDesign) -> float:
    if isinstance(design.mechanism, IntegerMechanism):
        return _size(request, design.mechanism.noise)
    if request.kind is Kind.INTEGERS and not isinstance(design, StatisticDesign):
        # A channel has no noise far from the ends: what it loses is what its answers lose.
        return _shown(float(design.objective), request)
    return float(design.guarantee.epsilon)


def _shown(loss: float, request: ShareRequest) -> float:
    return math.sqrt(loss) if request.loss_power == 2 else loss
