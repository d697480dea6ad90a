"""Discrete Gaussian noise, accounted for exactly: every table is measured, and the split is convex.

Tables with precisions w, each of which a unit moves in m cells, are together about as private as
one Gaussian of precision μ² = Σ m·w where a unit moves one number by 1. The root of a variance
cᵀ(Σ w·AᵀA)⁻¹c is convex in w: the variance is one over a concave function, and x^(-1/2) is convex
and falls. So a derivative bounds how far from the least a split is (Frank and Wolfe 1956).

What is spent is not read from that formula: integer weights are proved by the exact account.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from release.budget.composed import step_of_budget
from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import certified_epsilon
from release.noise.composed.laws import exponential_power
from release.noise.tables.measured import Strategy, errors_of, groups_of, precisions_of
from release.noise.tables.objective import Objective
from release.noise.tables.publication import Floats, Table

CLOSE = 1e-4
"""The split is improved until the objective is above its least by at most this part."""

_MOST_ROUNDS = 2000

_ROUGH_CLASSES = 8
"""The split begins with so many shapes of areas of a level."""

_LEAST_SHARE = 0.05
"""Tables with less than this part of an even share are not measured, if nothing is lost."""

_WORTHLESS = 5e-4
"""The gap up to which tables are left out."""

_SCALE_UNITS = 10**4
"""Scales are multiples of one ten-thousandth."""

_MOST_TRIES = 6

_USED = Fraction(999, 1000)
"""The search for the width ends where so much of ε is used."""


@dataclass(frozen=True)
class _Budget:
    epsilon: Fraction
    delta: Fraction
    step: Fraction | None


def gaussian_strategy(
    objective: Objective,
    epsilon: Fraction,
    delta: Fraction,
    shares: Mapping[Table, float] | None = None,
    step: Fraction | None = None,
) -> Strategy | None:
    """Return the best strategy up to its gap, or the one with given shares of the precision.

    None where the noise of some table is too wide for a pmf in integers that a file can hold.

    Args:
        objective: the publication's.
        epsilon: of all tables together, above 0.
        delta: above 0.
        shares: of each table, m·w in proportion, above 0; None for the best split.
        step: the grid of the account; None for the one of a budget that is shared by all tables.
    """
    publication = objective.publication
    if shares is None:
        shares = convex_shares(objective)
    total = sum(shares.values())
    squared = gaussian_mu(float(epsilon), float(delta)) ** 2
    scales = {}
    for table in sorted(shares):
        precision = shares[table] / total * squared / publication.moves[table]
        # exp(-(η/t)²) has the variance t²/2.
        scales[table] = math.sqrt(2 / precision)
    proved = _proved(objective, scales, _Budget(epsilon, delta, step))
    if proved is None:
        return None
    noises, spent = proved
    value, errors = errors_of(objective, noises)
    return Strategy(
        family="gaussian",
        noises=noises,
        exact=publication.exact,
        costs={},
        epsilon=spent,
        delta=delta,
        objective=value,
        errors=errors,
        gap=relative_gap(objective, precisions_of(publication, noises)),
    )


def convex_shares(objective: Objective) -> dict[Table, float]:
    """Return the share of each measured table in the precision, at the least up to a gap."""
    publication = objective.publication
    tables = [table for table in publication.tables if publication.moves[table]]
    # Similar areas taken together are much faster, and nearly as good a start as the least itself.
    rough = replace(objective, most_classes=_ROUGH_CLASSES)
    shares = _least_split(rough, dict.fromkeys(tables, 1 / len(tables)))
    shares = _least_split(objective, shares)
    large = {table: share for table, share in shares.items() if share * len(tables) >= _LEAST_SHARE}
    if len(large) == len(tables):
        return shares
    fewer = _least_split(objective, large)
    if relative_gap(objective, _precisions(objective, fewer)) <= _WORTHLESS:
        return fewer
    # Some table with little noise elsewhere needs its small share.
    return shares


def _least_split(objective: Objective, start: Mapping[Table, float]) -> dict[Table, float]:
    """The best split over the tables of ``start``, by multiplicative steps.

    Each share is multiplied by a power of what its table is worth. At the least, all tables that
    are measured are worth the same.
    """
    tables = sorted(start)
    places = tuple(np.array(tables).T)
    moves = objective.publication.moves_of_tables[places]
    shares = np.array([start[table] for table in tables])
    for _ in range(_MOST_ROUNDS):
        shares /= shares.sum()
        split = dict(zip(tables, shares.tolist(), strict=True))
        value, gradient = objective.with_gradient(_precisions(objective, split))
        worth = -gradient[places] / moves
        if worth.max() - shares @ worth <= CLOSE * value:
            break
        # The objective falls with the root of a precision: 2/3 is what one table alone asks for.
        shares = shares * np.maximum(worth, 0) ** (2 / 3)
    return split


def _precisions(objective: Objective, shares: Mapping[Table, float]) -> Floats:
    """The precision of each table where all together have 1; shape (levels, margins)."""
    precisions = np.zeros(objective.publication.shares.shape)
    for table, share in shares.items():
        precisions[table] = share / objective.publication.moves[table]
    return precisions


def relative_gap(objective: Objective, precisions: Floats) -> float:
    """Return by which part the least objective can be lower at most, at the same total precision.

    Args:
        objective: the publication's.
        precisions: of each table, not all 0; shape (levels, margins).
    """
    moves = objective.publication.moves_of_tables
    value, gradient = objective.with_gradient(precisions)
    paid = moves > 0
    total = float((precisions * moves)[paid].sum())
    most = float((-gradient[paid] / moves[paid]).max())
    # A convex function lies above its tangent: the least on the simplex is at the corner that falls
    # most steeply, and the tangent there bounds the objective from below.
    return max(0.0, (most * total + float((gradient * precisions)[paid].sum())) / value)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return μ: noise N(0, 1) satisfies (ε, δ) where neighbors differ by μ, and no further.

    Source: Balle and Wang 2018, Theorem 8.
    """
    low, high = 0.0, 1.0
    # δ rises with μ, so that doubling and halving bracket the one μ where it is as asked.
    while _gaussian_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if _gaussian_delta(middle, epsilon) < delta:
            low = middle
        else:
            high = middle
    return low if low else high


def _gaussian_delta(mu: float, epsilon: float) -> float:
    normal = NormalDist()
    upper = normal.cdf(mu / 2 - epsilon / mu)
    # e^ε times a mass that is far smaller; beyond floats it is nothing.
    lower = normal.cdf(-mu / 2 - epsilon / mu)
    return upper - math.exp(min(epsilon, 700.0)) * lower


def _proved(
    objective: Objective, scales: Mapping[Table, float], budget: _Budget
) -> tuple[dict[Table, IntegerNoise], Fraction] | None:
    """Noises whose account stays within the budget and nearly uses it, and the ε they cost."""
    publication = objective.publication
    cells = sum(publication.moves[table] for table in scales)
    step = budget.step or step_of_budget(budget.epsilon, cells)
    factor, best = 1.0, None
    for _ in range(_MOST_TRIES):
        noises = {}
        for table, scale in scales.items():
            rounded = Fraction(math.ceil(scale * factor * _SCALE_UNITS), _SCALE_UNITS)
            try:
                noises[table] = exponential_power(rounded, Fraction(2))
            except ValueError:
                return best
        spent = certified_epsilon(groups_of(publication, noises), budget.delta, step)
        if spent is None:
            # δ at all losses is too large: far too little noise.
            factor *= 1.25
            continue
        # After a try that fits the next one has less noise, so the last that fits is kept.
        if spent <= budget.epsilon:
            best = noises, spent
            if spent >= _USED * budget.epsilon:
                break
        factor *= float(spent / budget.epsilon) + 2e-5
    return best
