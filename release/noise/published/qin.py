"""Noise that moves the distribution of the answers least: the programs of Qin et al. 2022.

The true answers x have a known pmf, and what counts is the Wasserstein distance W(x, x+θ) of input
and output, Σ_k |P_x(k) - P_{x+θ}(k)|. The paper calls that objective (P1) unsolvable for its
absolute values and bounds it by (P2). It is convex in p_θ, so one more variable for each k makes it
a linear program (:func:`wasserstein_window`).

P2 says less than it seems: Σ_k |P_x(k) - P_x(k-i)| = |i| whatever p_x is, as a pmf moved by i has
moved all of its mass by i. So P2 minimises E|θ|, its pmf does not depend on the input, and it is
the staircase of the absolute loss (:func:`relaxed`).

The noise has no end: a pmf that stops is ε-differentially private for no ε (their Theorem 1). The
program has masses on a window and beyond it tails that fall by e^{-ε} every m integers, which is as
fast as any pmf may fall, and counts them to the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from release.errors import DesignError
from release.exact.integers.noise import MOST_BITS, RATIO_ONE, IntegerNoise, Run, Tail, merged
from release.exact.integers.staircase import staircase
from release.exact.mechanism import Mechanism
from release.noise.published.fitted import Requirement
from release.noise.solvers.program import Builder, Floats, Numbers, solve
from release.noise.solvers.repair import close

_GIVE = Fraction(1, 10**7)
"""By this share the solver's e^ε is smaller, so that the exact pmf satisfies the true one."""

_ONE = 2**200
"""Exact masses are made of units of 2^-200."""

_LEAST_WEIGHT = 2**28
"""Lighter masses of the window become part of a tail: rounded, they would break a ratio."""


@dataclass(frozen=True)
class Input:
    """The pmf of the true answers: ``masses[i]`` is that of ``low + i``; they add up to 1."""

    low: int
    masses: Floats

    @property
    def high(self) -> int:
        """The last value that occurs."""
        return self.low + self.masses.size - 1

    def at_most(self, values: Numbers) -> Floats:
        """The distribution function P_x at ``values``, same shape."""
        sums = np.concatenate([[0.0], np.cumsum(self.masses)])
        index = np.clip(values - self.low + 1, 0, self.masses.size)
        return np.asarray(sums[index] / sums[-1], dtype=np.float64)


@dataclass(frozen=True)
class Shape:
    """The noise values of the window, and what a mass in it stands for with its tail."""

    answers: Input
    noises: Numbers
    most: int
    # ρ = e^{-ε}: by how much a tail falls every ``most`` integers.
    decay: float

    def with_tails(self, function: Callable[[Numbers], Floats]) -> Floats:
        """Σ over a mass and its copies in the tail of ρ^j·function(k ± j·m), for |k| + c growth.

        ``function`` has to be affine in |k| beyond the window; then two values say it all.
        """
        values = function(self.noises)
        m, rho = self.most, self.decay
        left, right = self.noises < self.noises[0] + m, self.noises > self.noises[-1] - m
        for end, step in ((left, -m), (right, m)):
            first = function(self.noises[end] + step)
            second = function(self.noises[end] + 2 * step)
            slope = second - first
            # Σ_{j≥1} ρ^j·(first + (j-1)·slope)
            values[end] += rho / (1 - rho) * first + (rho / (1 - rho)) ** 2 * slope
        return values


ProgramObjective: TypeAlias = Callable[[Shape, Builder], Numbers]
"""Adds the columns of the masses, and whatever their objective needs; the columns of the masses."""


@dataclass(frozen=True)
class SolvedWindow:
    """The masses of the noise -``reach`` … ``reach`` in floats, with the solver's objective."""

    masses: Floats
    reach: int
    objective: float


def reach_of(answers: Input, epsilon: Fraction, most: int) -> int:
    """The half width of a window: a few stairs, and the width of the input."""
    stairs = most * max(3, math.ceil(Fraction(8) / epsilon)) + most // 2
    return max(stairs, answers.high - answers.low)


def solve_window(
    answers: Input, ratio: Fraction, most: int, reach: int, objective: ProgramObjective
) -> SolvedWindow:
    """The noise of least ``objective`` that is private with ``ratio`` for answers ``most`` apart.

    Raises:
        DesignError: the solver found nothing.
        ValueError: the window is narrower than the input or two stairs.
    """
    safe = max(ratio * (1 - _GIVE), (1 + ratio) / 2)
    if reach < max(answers.high - answers.low, 2 * most):
        raise ValueError("the window must be as wide as the input and two stairs")
    noises = np.arange(-reach, reach + 1)
    shape = Shape(answers, noises, most, float(1 / safe))
    builder = Builder()
    masses = objective(shape, builder)
    builder.add_row(masses, shape.with_tails(lambda k: np.ones(k.size)), 1.0, equal=True)
    # Every distance up to ``most``: where masses do not fall outwards, a nearer neighbor may be
    # the one that a ratio fails at.
    for step in range(1, most + 1):
        _at_most(builder, masses[:-step], masses[step:], float(safe))
        _at_most(builder, masses[step:], masses[:-step], float(safe))
    # The tail's first stair against the window: its masses may not rise outwards.
    last = masses.size - 1
    _at_most(builder, masses[last - most + 2 :], masses[last - most + 1 : last], 1.0)
    _at_most(builder, masses[: most - 1], masses[1:most], 1.0)
    solution = solve(builder.build(), arrays=True)
    if solution is None:
        raise DesignError("the solver found no noise for these ε and m")
    return SolvedWindow(solution.values[masses], reach, solution.objective)


def _at_most(builder: Builder, here: Numbers, there: Numbers, times: float) -> None:
    """Each mass ``here`` is at most ``times`` the one ``there``."""
    rows = np.broadcast_to(np.array([1.0, -times]), (here.size, 2))
    builder.add_rows(np.stack([here, there], axis=1), rows, np.zeros(here.size))


def raised_masses(solved: SolvedWindow, most: int, ratio: Fraction) -> list[int]:
    """Integers near the masses, raised where a ratio was missed by the solver's tolerance."""
    size = solved.masses.size
    # Outside of the window there is nothing to raise: such a neighbor is the element itself.
    places = np.arange(size)
    moved = []
    for shift in (*range(-most, 0), *range(1, most + 1)):
        inside = (places + shift >= 0) & (places + shift < size)
        moved.append(np.where(inside, places + shift, places).tolist())
    values = [max(1, int(Fraction(value) * _ONE)) for value in solved.masses.tolist()]
    raised = close(values, moved, ratio)
    # The first stair of a tail repeats the last one of the window: no mass of it may rise outwards,
    # or the one that follows in the tail would be too small beside it.
    for i in range(size - most + 1, size):
        raised[i] = min(raised[i], raised[i - 1])
    for i in range(most - 2, -1, -1):
        raised[i] = min(raised[i], raised[i + 1])
    return raised


def wasserstein_rows(shape: Shape, builder: Builder) -> Numbers:
    """|P_x(k) - P_{x+θ}(k)| ≤ t_k for k where the sign is open; beyond it is known."""
    answers, noises, m = shape.answers, shape.noises, shape.most
    values = np.arange(answers.low, answers.high)
    beyond = shape.with_tails(lambda k: _outside(answers, k))
    masses = builder.add_columns(beyond)
    bounds = builder.add_columns(np.ones(values.size))
    # P(x+θ ≤ v) for a mass at k and its copies in the tail, at k ± jm.
    inside = answers.at_most(values[:, None] - noises[None, :])
    # All copies lie beyond the input: those on the left count whole, those on the right not at all.
    inside[:, noises < noises[0] + m] += shape.decay / (1 - shape.decay)
    target = answers.at_most(values)
    for sign in (1.0, -1.0):
        columns = np.concatenate([np.broadcast_to(masses, inside.shape), bounds[:, None]], axis=1)
        rows = np.concatenate([sign * inside, np.full((values.size, 1), -1.0)], axis=1)
        builder.add_rows(columns, rows, sign * target)
    return masses


def _outside(answers: Input, noises: Numbers) -> Floats:
    """Σ over k below the input of P(x+i ≤ k), and above it of P(x+i > k), for each noise i.

    Affine in |i| once |i| is beyond the width of the input.
    """
    spread = answers.low + np.arange(answers.masses.size)
    ends = spread[None, :] + noises[:, None]
    over = np.maximum(ends - answers.high, 0) + np.maximum(answers.low - ends, 0)
    return np.asarray(over @ (answers.masses / answers.masses.sum()), dtype=np.float64)


def integer_noise(masses: list[int], most: int, ratio: Fraction) -> IntegerNoise:
    """The noise in 62 bits; masses too light for that follow the tails.

    ``masses`` are those of -n … n, with tails of the period ``most`` beyond.
    """
    tail = min(RATIO_ONE - 1, -(-RATIO_ONE * ratio.denominator // ratio.numerator))
    rest = Fraction(RATIO_ONE - tail, RATIO_ONE)
    total, middle = 1 << MOST_BITS, len(masses) // 2
    farthest = 0
    for place, mass in enumerate(masses):
        if mass * total >= _LEAST_WEIGHT * _ONE:
            farthest = max(farthest, abs(place - middle))
    # Two periods at least: one at each end stands for a tail.
    radius = max(2 * most, min(middle, farthest))
    window = masses[middle - radius : middle + radius + 1]
    # A weight of the last period stands for its integer and all repetitions in the tail.
    shares = [Fraction(mass) for mass in window]
    for place in (*range(most), *range(len(window) - most, len(window))):
        shares[place] /= rest
    whole = sum(shares)
    weights = [int(share * total / whole) for share in shares]
    # What rounding down leaves goes to the heaviest, whose ratios change least by it.
    weights[weights.index(max(weights))] += total - sum(weights)
    runs: list[Run] = [(1, weight) for weight in weights]
    return IntegerNoise(-radius, merged(runs), Tail(most, tail), Tail(most, tail))


def wasserstein(requirement: Requirement) -> Mechanism:
    """P1: the noise that moves the pmf of the true answers least, clamped to the answers.

    Raises:
        DesignError, ValueError: as :func:`solve_window`; or ε is not from 1/100 to 10.
    """
    epsilon, most = requirement.guarantee.epsilon, requirement.farthest_on_line
    if requirement.prior is None:
        raise ValueError("it needs prior: the public pmf of the true answers")
    if not Fraction(1, 100) <= epsilon <= 10:
        raise ValueError("epsilon must be from 1/100 to 10")
    answers = Input(0, np.array(list(map(float, requirement.prior))))
    reach, ratio = reach_of(answers, epsilon, most), requirement.ratio
    solved = solve_window(answers, ratio, most, reach, wasserstein_rows)
    # Half of what the solver was denied is for its tolerance, half for rounding to 62 bits.
    masses = raised_masses(solved, most, ratio * (1 - _GIVE / 2))
    return requirement.clamped(integer_noise(masses, most, ratio))


def relaxed(requirement: Requirement) -> Mechanism:
    """P2: the noise of least E|θ|, whatever the input; clamped to the answers.

    Raises:
        ValueError: ε is not in [10⁻⁹, 100].
    """
    steps = range(1, requirement.farthest_on_line + 1)
    return requirement.clamped(staircase(steps, requirement.guarantee.epsilon, 1).noise)
