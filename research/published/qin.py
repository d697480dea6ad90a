"""Noise that moves the distribution of the answers least: the programs of Qin et al. 2022.

The input x has a known pmf p_x, and what counts is the Wasserstein distance W(x, x+θ) of input and
output, Σ_k |P_x(k) - P_{x+θ}(k)|. The paper calls that objective (P1) unsolvable for its absolute
values and bounds it by (P2). It is convex in p_θ, so one more variable for each k makes it a linear
program, and :func:`solve_exact` solves it.

P2 says less than it seems: Σ_k |P_x(k) - P_x(k-i)| = |i| whatever p_x is, as a pmf moved by i has
moved all of its mass by i. So P2 minimises E|θ|, its pmf does not depend on the input, and it is
the optimal pure pmf of the absolute loss (Geng and Viswanath's staircase).

The noise has no end: a pmf that stops is ε-differentially private for no ε (their Theorem 1). Here
both programs have masses on a window and beyond it tails that fall by e^{-ε} every m integers,
which is as fast as any pmf may fall, and the programs count them to the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.numbers import exp_below_any_verifier
from release.noise.solvers.program import Builder, Floats, Numbers, solve
from release.noise.solvers.repair import close
from research.published.integer_pmf import IntegerPmf, Tail, theorem_1

# By this share the solver's e^ε is smaller, so that the exact pmf satisfies the true one.
_GIVE = Fraction(1, 10**7)

# Exact masses are made of units of 2^-200.
_ONE = 2**200


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


def gaussian_input(mean: float = 0.0, deviation: float = 10.0) -> Input:
    """The normal distribution integrated from k to k+1, to six deviations (their Section V-B)."""
    reach = math.ceil(6 * deviation)
    edges = np.arange(-reach, reach + 1) + math.floor(mean)
    below = np.array([math.erfc((mean - e) / deviation / math.sqrt(2)) / 2 for e in edges.tolist()])
    masses = np.diff(below)
    return Input(int(edges[0]), masses / masses.sum())


def poisson_input(rate: float = 5.0) -> Input:
    """The Poisson pmf with mean γ, to twelve deviations above it."""
    counts = range(math.ceil(rate + 12 * math.sqrt(rate) + 12))
    masses = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in counts])
    return Input(0, masses / masses.sum())


def distance(answers: Input, noise: IntegerPmf) -> float:
    """W(x, x+θ) in floats; tails are followed until they hold less than 10⁻¹⁸."""
    low, high = noise.low, noise.high
    masses = np.array([float(mass) for mass in noise.masses])
    before = after = masses[:0]
    if noise.left:
        before = _copies(masses[: noise.left.period][::-1], noise.left)[::-1]
    if noise.right:
        after = _copies(masses[-noise.right.period :], noise.right)
    low, high = low - before.size, high + after.size
    # Where only one of the two has mass they differ too.
    padding = (max(0, low), max(0, -high))
    noises = np.pad(np.concatenate([before, masses, after]), padding)
    output = np.convolve(answers.masses, noises)
    values = np.arange(answers.low + min(0, low), answers.high + max(0, high) + 1)
    return float(np.abs(answers.at_most(values) - np.cumsum(output)).sum())


def _copies(period: Floats, tail: Tail) -> Floats:
    """The tail that follows the masses ``period``, outwards, as far as it can be seen."""
    ratio = float(tail.ratio)
    times = math.ceil(math.log(1e-18) / math.log(ratio))
    return np.asarray((period[None, :] * ratio ** np.arange(1, times + 1)[:, None]).reshape(-1))


@dataclass(frozen=True)
class Transport:
    """The noise of P1 or P2: exact in its privacy, its distance a float.

    ``noise`` is ε-private exactly (:func:`theorem_1` beside this module); ``objective`` is
    the objective of the solver.
    """

    noise: IntegerPmf
    distance: float
    objective: float


def solve_exact(
    answers: Input, epsilon: Fraction, most: int, reach: int | None = None
) -> Transport:
    """P1: the least W(x, x+θ) over ε-private noise for answers up to ``most`` (m) apart.

    Args:
        answers: the pmf of the input.
        epsilon: ε, from 1/100 to 20.
        most: m, at least 1.
        reach: the half width of the window; by default a few stairs, and the width of the input.

    Raises:
        DesignError: the solver found nothing.
        ValueError: an argument out of its range, or a window narrower than the input or two stairs.
    """
    exact = _solve(answers, epsilon, most, reach, _transport_rows)
    # Where the least distance is as small as the solver's tolerance, P2 may come out nearer to it.
    relaxed = solve_relaxed(answers, epsilon, most, reach)
    nearest = relaxed if relaxed.distance < exact.distance else exact
    return replace(nearest, objective=exact.objective)


def solve_relaxed(
    answers: Input, epsilon: Fraction, most: int, reach: int | None = None
) -> Transport:
    """P2 as printed: the least Σ_k |p_xᵀM_k|·p_θ, which is E|θ| (see the module's docstring).

    Arguments and errors as of :func:`solve_exact`.
    """
    return _solve(answers, epsilon, most, reach, _printed_costs)


def relaxed_costs(answers: Input, noises: Numbers) -> Floats:
    """Σ_k |P_x(k) - P_x(k-i)| for each noise value i, summed as (33) has it."""
    widest = int(np.abs(noises).max())
    values = np.arange(answers.low - widest - 1, answers.high + widest + 2)
    moved = answers.at_most(values[None, :] - noises[:, None])
    return np.asarray(np.abs(answers.at_most(values)[None, :] - moved).sum(axis=1))


@dataclass(frozen=True)
class _Shape:
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
        for end, step in (
            (self.noises < self.noises[0] + m, -m),
            (self.noises > self.noises[-1] - m, m),
        ):
            first, second = (function(self.noises[end] + j * step) for j in (1, 2))
            slope = second - first
            # Σ_{j≥1} ρ^j·(first + (j-1)·slope)
            values[end] += rho / (1 - rho) * first + (rho / (1 - rho)) ** 2 * slope
        return values


_Objective = Callable[[_Shape, Builder], Numbers]
"""Adds the columns of the masses, and whatever their objective needs; the columns of the masses."""


def _solve(
    answers: Input, epsilon: Fraction, most: int, reach: int | None, objective: _Objective
) -> Transport:
    if not (Fraction(1, 100) <= epsilon <= 20 and most >= 1):
        raise ValueError("epsilon must be from 1/100 to 20, and answers at least 1 apart")
    ratio = exp_below_any_verifier(epsilon)
    safe = max(ratio * (1 - _GIVE), (1 + ratio) / 2)
    span = answers.high - answers.low
    if reach is None:
        stairs = most * max(3, math.ceil(Fraction(8) / epsilon)) + most // 2
        reach = max(stairs, span)
    if reach < max(span, 2 * most):
        raise ValueError("the window must be as wide as the input and two stairs")
    noises = np.arange(-reach, reach + 1)
    shape = _Shape(answers, noises, most, float(1 / safe))
    builder = Builder()
    masses = objective(shape, builder)
    builder.add_row(masses, shape.with_tails(lambda k: np.ones(k.size)), 1.0, equal=True)
    for step in range(1, most + 1):
        for here, there in ((masses[:-step], masses[step:]), (masses[step:], masses[:-step])):
            builder.add_rows(
                np.stack([here, there], axis=1),
                np.broadcast_to(np.array([1.0, -float(safe)]), (here.size, 2)),
                np.zeros(here.size),
            )
    # The tail's first stair against the window: its masses may not rise outwards.
    last = masses.size - 1
    for inner, outer in (
        (masses[last - most + 1 : last], masses[last - most + 2 :]),
        (masses[1:most], masses[: most - 1]),
    ):
        builder.add_rows(
            np.stack([outer, inner], axis=1),
            np.broadcast_to(np.array([1.0, -1.0]), (inner.size, 2)),
            np.zeros(inner.size),
        )
    solution = solve(builder.build(), arrays=True)
    if solution is None:
        raise DesignError("the solver found no noise for these ε and m")
    noise = _exact(solution.values[masses], -reach, most, ratio)
    return Transport(noise, distance(answers, noise), solution.objective)


def _exact(values: Floats, low: int, most: int, ratio: Fraction) -> IntegerPmf:
    """The exact pmf near ``values``, raised where a ratio was missed by the solver's tolerance."""
    size = values.size
    # Outside of the window there is nothing to raise: such a neighbor is the element itself.
    shifts = [s for s in range(-most, most + 1) if s]
    moved = [[i + s if 0 <= i + s < size else i for i in range(size)] for s in shifts]
    raised = close([max(1, int(Fraction(value) * _ONE)) for value in values.tolist()], moved, ratio)
    for i in range(size - most + 1, size):
        raised[i] = min(raised[i], raised[i - 1])
    for i in range(most - 2, -1, -1):
        raised[i] = min(raised[i], raised[i + 1])
    tail = Tail(most, 1 / ratio)
    noise = IntegerPmf.of(low, list(map(Fraction, raised)), tail, tail)
    bound = theorem_1(noise, most)
    if bound is None or bound > ratio:
        raise DesignError("the noise found could not be made exact; widen the window")
    return noise


def _printed_costs(shape: _Shape, builder: Builder) -> Numbers:
    return builder.add_columns(shape.with_tails(lambda k: relaxed_costs(shape.answers, k)))


def _transport_rows(shape: _Shape, builder: Builder) -> Numbers:
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
