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
from release.exact.domain import Codes
from release.exact.integers.noise import IntegerNoise
from release.noise.composed.account import certified_epsilon
from release.noise.composed.laws import exponential_power
from release.tabulations.strategy.estimable import Estimability
from release.tabulations.strategy.measured import Strategy, errors_of, groups_of, precisions_of
from release.tabulations.strategy.objective import Objective
from release.tabulations.strategy.publication import Floats, Table
from release.tabulations.strategy.simplex import least_on_simplex

_ROUGH_CLASSES = 8
"""The split begins with so many shapes of areas of a level."""

_DESCENTS = 4
"""A descent forgets what it learned of the curvature so often, and begins again where it ended."""

_LEAST_START = 1e-12
"""A descent works with logarithms, so that no share begins at 0."""

_SMALL = 1e-2
"""Tables with a smaller share are left out one by one, where hardly anything is lost by it."""

_HARDLY = 1e-4
"""The part by which the objective may rise for the tables that are left out, all together."""

_LEAST_SHARE = 1e-6
"""The least share of a table that is measured: less would be noise too wide for a file."""

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
    split = least_split(objective) if shares is None else split_of(objective, shares)
    shares = split.shares
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
        gap=_gap(objective, precisions_of(publication, noises), value, split),
    )


@dataclass(frozen=True)
class Split:
    """How a budget is split over tables, where all together have the precision 1.

    Attributes:
        shares: the part of each measured table, above 0; they add up to 1.
        least: no split has a lower objective.
    """

    shares: dict[Table, float]
    least: float


def split_of(objective: Objective, shares: Mapping[Table, float]) -> Split:
    """The split with given shares, in any unit, and a bound of the least."""
    total = sum(shares.values())
    parts = {table: share / total for table, share in shares.items()}
    precisions = _precisions(objective, parts)
    value = objective.value(precisions)
    return Split(parts, value * (1 - relative_gap(objective, precisions)))


def least_split(objective: Objective) -> Split:
    """Return the split of the least objective, up to a gap, without tables of hardly any use.

    The bound is that of the split before small shares are left out: beside a table without
    precision the bound by the tangent says next to nothing.
    """
    publication = objective.publication
    tables = [table for table in publication.tables if publication.moves[table]]
    # Similar areas taken together are much faster, and nearly as good a start as the least itself.
    rough = replace(objective, most_classes=_ROUGH_CLASSES)
    start = _descended(rough, dict.fromkeys(tables, 1 / len(tables)))
    whole = split_of(objective, _descended(objective, start))
    shares = _without_small(objective, whole.shares)
    floored = {table: max(share, _LEAST_SHARE) for table, share in shares.items()}
    return Split(split_of(objective, floored).shares, whole.least)


def _descended(objective: Objective, start: Mapping[Table, float]) -> dict[Table, float]:
    """The shares of the least objective over the tables of ``start``; some may be next to 0."""
    tables = sorted(start)
    levels, margins = np.array(tables).T
    moves = objective.publication.moves_of_tables[levels, margins]

    def values(_: Codes, shares: Floats) -> tuple[Floats, Floats]:
        precisions = np.zeros((len(shares), *objective.publication.shares.shape))
        precisions[:, levels, margins] = shares / moves
        totals, gradients = objective.with_gradients(precisions)
        return totals, gradients[:, levels, margins] / moves

    shares = np.array([[start[table] for table in tables]])
    for _ in range(_DESCENTS):
        shares = least_on_simplex(values, np.maximum(shares, _LEAST_START))[1]
    return dict(zip(tables, shares[0].tolist(), strict=True))


def _without_small(objective: Objective, shares: Mapping[Table, float]) -> dict[Table, float]:
    """The shares without small ones, as long as everything can be estimated nearly as well."""
    estimability = Estimability(objective.publication)
    kept = dict(shares)
    most = objective.value(_precisions(objective, kept)) * (1 + _HARDLY)
    for table, share in sorted(shares.items(), key=lambda item: item[1]):
        if share > _SMALL:
            break
        fewer = {other: own for other, own in kept.items() if other != table}
        if not estimability.allows(fewer):
            continue
        total = sum(fewer.values())
        fewer = {other: own / total for other, own in fewer.items()}
        if objective.value(_precisions(objective, fewer)) <= most:
            kept = fewer
    return kept


def _gap(objective: Objective, precisions: Floats, value: float, split: Split) -> float:
    """By which part the objective of noises can be lowered at most, at their total precision."""
    moves = objective.publication.moves_of_tables
    total = float((precisions * moves)[moves > 0].sum())
    # Standard errors fall with the root of a precision.
    return max(0.0, 1 - split.least / math.sqrt(total) / value)


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
