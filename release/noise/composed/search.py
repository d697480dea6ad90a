"""How much noise each of several groups of queries gets, sought in floats.

The start is the rule of a Gaussian budget: variances in proportion to the root of a weight. Then
the spreads of the groups against each other and the powers of their masses are moved one by one, as
long as the sum of weighted losses falls; after each move all spreads are scaled until δ is the
budget's. release/noise/composed/share.py proves the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from release.noise.composed.estimate import Losses, Parts, log_delta
from release.noise.composed.families import Family

MOST_POLISHED = 6
"""With more groups the rule decides, and what all groups have in common is moved alone."""

_LOGS, _POWERS = (
    np.log([0.6, 0.7, 0.87, 1, 1.12, 1.32, 1.75, 2.24, 3.4, 5.6, 11, 41, 200]),
    np.array([1, 1.07, 1.25, 1.38, 1.48, 1.56, 1.65, 1.71, 1.79, 1.86, 1.92, 1.98, 2]),
)
"""Which power is best, by the ratio of the variances of geometric and Gaussian noise."""

_SWEEPS = (0.12, 0.05, 0.02)
"""How far powers and logarithms of spreads are moved in each sweep, at first."""

_FARTHEST = 7.0
"""The logarithm of how much more noise than the start has still counts as of use."""

_CLOSE = 1e-6

_ENDLESS = 50.0
"""Where δ is 0 its logarithm counts as so much below the budget's."""


@dataclass(frozen=True)
class Part:
    """A group in a search.

    Attributes:
        family: its mechanisms.
        count: how many queries it has.
        weight: of the expected loss of one; None with a target.
        target: the most expected loss; None with a weight.
        power: p of its masses, where they have one.
        spread: how much noise.
    """

    family: Family
    count: int
    weight: float | None
    target: float | None
    power: float = 1.0
    spread: float = 1.0

    @property
    def is_shared(self) -> bool:
        """Whether it gets a share of the budget, and not what a target needs."""
        return self.weight is not None

    @property
    def loss(self) -> float:
        """The expected loss of one query."""
        return self.family.loss(self.power, self.spread)

    def with_power(self, power: float) -> Part:
        """The part with another shape of its noise, and as much of it as its target allows."""
        if self.target is None:
            return replace(self, power=power)
        spread = self.family.spread_for(power, self.target)
        return replace(self, power=power, spread=spread)

    def scaled(self, factor: float) -> Part:
        """The part with a multiple of its noise, unless a target decides it."""
        return replace(self, spread=self.spread * factor) if self.is_shared else self


@dataclass(frozen=True)
class Cap:
    """A budget in floats: ε, ln δ, the grid's step, and what other mechanisms lose."""

    epsilon: float
    log_delta: float
    step: float
    fixed: Losses | None = None

    def excess(self, parts: Sequence[Part], epsilon: float | None = None) -> float:
        """The logarithm of how often the δ of all parts exceeds that of the budget; bounded."""
        composed: list[tuple[Sequence[Parts], int]] = []
        for part in parts:
            alternatives = part.family.alternatives(part.power, part.spread, self.step)
            composed.append((alternatives, part.count))
        if self.fixed is not None:
            composed.append(([[(self.fixed, 1)]], 1))
        if not composed:
            return -_ENDLESS
        log_composed = log_delta(composed, self.epsilon if epsilon is None else epsilon, self.step)
        return max(-_ENDLESS, log_composed - self.log_delta)


def any_shared(parts: Iterable[Part]) -> bool:
    """Whether any of the parts gets a share of the budget."""
    return any(part.is_shared for part in parts)


def scaled(parts: Iterable[Part], factor: float) -> list[Part]:
    """The parts, those with a share with a multiple of their noise."""
    return [part.scaled(factor) for part in parts]


def searched(parts: Sequence[Part], cap: Cap) -> list[Part]:
    """Return the parts with the powers and spreads that lose least within ``cap``.

    Parts with targets have as much noise as they allow, whether or not the budget does.

    Raises:
        ValueError: no noise is enough for the parts with a share.
    """
    best = scaled_to(started(parts, cap), cap)
    coordinates = _coordinates(best)
    for sweep in _SWEEPS:
        for move, width in coordinates:
            best = _moved(best, cap, move, sweep * width)
    return best


def objective(parts: Sequence[Part], cap: Cap) -> float:
    """The logarithm of the sum of weighted losses; without shares that of the ε at δ."""
    weighted = []
    for part in parts:
        if part.weight is not None:
            weighted.append(part.count * part.weight * part.loss)
    if weighted:
        return math.log(sum(weighted))
    # The sign of the excess falls with ε: halve the logarithm.
    low, high = 1e-3, 1e3
    while high > low * (1 + 1e-7):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cap.excess(parts, middle * cap.epsilon) > 0 else (low, middle)
    return math.log(high)


def started(parts: Sequence[Part], cap: Cap) -> list[Part]:
    """The parts by the rule, about as much noise as a Gaussian budget allows."""
    sigma = gaussian_deviation(cap.epsilon, cap.log_delta)
    power, factor = 2.0, 1.0
    for _ in range(3):
        begun: list[Part] = []
        counted, squares = [], []
        for part in parts:
            spread = 1.0 if part.weight is None else factor * _ruled(part)
            part_begun = replace(part, spread=spread).with_power(power)
            cost = part_begun.family.cost / part_begun.spread**2
            begun.append(part_begun)
            counted.append(part.count * cost)
            squares.append(part.count * cost**2)
        # (Σx)²/Σx² is how many equal queries cost as much: those with much noise hardly count.
        ratio = 2 * (sum(counted) ** 2 / sum(squares)) / (cap.epsilon * sigma) ** 2
        power = float(np.interp(math.log(ratio), _LOGS, _POWERS))
        factor *= _excess_spread(parts, counted, sigma)
    return begun


def _excess_spread(parts: Sequence[Part], costs: Sequence[float], sigma: float) -> float:
    """By how much the spreads of shares are to grow for all costs to be those of a Gaussian σ."""
    shared = sum(cost for cost, part in zip(costs, parts, strict=True) if part.is_shared)
    # What targets leave; where they leave next to nothing the scaling finds it.
    rest = max(0.1 / sigma**2, 1 / sigma**2 - (sum(costs) - shared))
    return math.sqrt(shared / rest) if shared else 1.0


def _ruled(part: Part) -> float:
    """The spread by which the least sum of weighted losses costs a given Σ cost/spread²."""
    # Where losses are rise·spread^p, Lagrange asks that weight·p·rise·spread^(p+2)/cost is the same
    # for all. An error rate is 1 - rise/spread, so there it is weight·rise·spread/cost.
    order = {0: 1, 1: 3, 2: 4}[part.family.request.loss_power]
    if not part.family.has_power and order == 1 and part.family.rise != 0.4:
        order = 3
    weight = (part.weight or 1.0) * part.family.rise * max(1, part.family.request.loss_power)
    return float((part.family.cost / weight) ** (1 / order))


@lru_cache(maxsize=64)
def gaussian_deviation(epsilon: float, log_delta_cap: float) -> float:
    """σ of the least Gaussian noise for one query with differences of 1.

    Source: Balle and Wang 2018, Theorem 8.
    """

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    # e^ε times a mass that is far smaller; beyond the range of floats it is nothing.
    ratio = math.exp(min(epsilon, 700.0))
    # In logarithms, for σ may lie anywhere in six decades.
    low, high = 1e-3 / epsilon, 1e3 / epsilon
    for _ in range(100):
        sigma = math.sqrt(low * high)
        above = below(1 / (2 * sigma) - epsilon * sigma)
        delta = above - ratio * below(-1 / (2 * sigma) - epsilon * sigma)
        # Where digits are lost the noise is far more than enough.
        if delta > 0 and math.log(delta) > log_delta_cap:
            low = sigma
        else:
            high = sigma
    return high


Move = Callable[[list[Part], float], list[Part]]


def _coordinates(parts: Sequence[Part]) -> list[tuple[Move, float]]:
    """What a search moves, and how far in proportion to a sweep's width."""
    shaped = [place for place, part in enumerate(parts) if part.family.has_power]
    shared = [place for place, part in enumerate(parts) if part.is_shared]
    if len(parts) > MOST_POLISHED:
        return [(_power_of(tuple(shaped)), 1.0)] if shaped else []
    moves: list[tuple[Move, float]] = []
    # All spreads are scaled to the budget after a move: that of a single share would be undone.
    if len(shared) > 1:
        moves += [(_spread_of(place), 0.7) for place in shared]
    if len(shaped) > 1:
        moves.append((_power_of(tuple(shaped)), 1.0))
    moves += [(_power_of((place,)), 1.0) for place in shaped]
    return moves


def _power_of(places: tuple[int, ...]) -> Move:
    def move(parts: list[Part], by: float) -> list[Part]:
        moved = list(parts)
        for place in places:
            power = min(2.0, max(1.0, parts[place].power + by))
            moved[place] = parts[place].with_power(power)
        return moved

    return move


def _spread_of(place: int) -> Move:
    def move(parts: list[Part], by: float) -> list[Part]:
        moved = list(parts)
        moved[place] = parts[place].scaled(math.exp(by))
        return moved

    return move


def _moved(parts: list[Part], cap: Cap, move: Move, width: float) -> list[Part]:
    """The best of the parts moved up, down, and to the lowest point of a parabola."""

    def tried(by: float) -> tuple[float, list[Part]]:
        moved = scaled_to(move(parts, by), cap)
        return objective(moved, cap), moved

    here = objective(parts, cap)
    up, down = tried(width), tried(-width)
    # By the value alone: parts have no order, and a tie would compare them.
    best = min((here, parts), up, down, key=lambda one: one[0])
    bend = up[0] + down[0] - 2 * here
    # Where the parabola opens downwards its vertex is the highest point.
    if bend > 0:
        by = width * max(-2.0, min(2.0, (down[0] - up[0]) / (2 * bend)))
        best = min(best, tried(by), key=lambda one: one[0])
    return best[1]


def scaled_to(parts: Sequence[Part], cap: Cap) -> list[Part]:
    """All parts with a share scaled by one factor, such that δ is the budget's.

    Raises:
        ValueError: no noise is enough.
    """
    if not any_shared(parts):
        return list(parts)

    def excess(log: float) -> float:
        return cap.excess(scaled(parts, math.exp(log)))

    # The start is near: the bracket grows from it, because each excess composes all parts.
    low = high = 0.0
    below = above = excess(0.0)
    width = 0.01
    while below < 0 and low > -30:
        low, high, above = low - width, low, below
        below, width = excess(low), 3 * width
    while above > 0:
        if high > _FARTHEST:
            raise ValueError("no noise is enough for what is left of the budget")
        low, high, below = high, high + width, above
        above, width = excess(high), 3 * width
    log = _root(excess, (low, below), (high, above))
    return scaled(parts, math.exp(log))


def _root(
    excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]
) -> float:
    """Where a falling function is 0, from points with values of at least and at most 0.

    False position that halves the value of an end which stays (Illinois).
    """
    (left, above), (right, below) = low, high
    side = 0
    for _ in range(60):
        if right - left < 1e-9 or above == below:
            break
        middle = right - below * (right - left) / (below - above)
        # A jump of δ to 0 would take false position many steps.
        if abs(below) >= _ENDLESS or not left < middle < right:
            middle = (left + right) / 2
        value = excess(middle)
        if abs(value) < _CLOSE:
            return middle
        if value > 0:
            left, above = middle, value
            below, side = (below / 2, 1) if side == 1 else (below, 1)
        else:
            right, below = middle, value
            above, side = (above / 2, -1) if side == -1 else (above, -1)
    # Not the middle: at the right end δ is within the budget.
    return right
