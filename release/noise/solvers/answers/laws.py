"""One distribution for each true answer: the channel of least expected cost on the line.

A channel chooses P(o|q) for every true answer q: minimise Σ_q π(q)·Σ_o ℓ(q, o)·P(o|q), or the
largest expected cost over q, with P(o|a) ≤ E·P(o|b) for every pair of neighboring answers, or the
(ε, δ) form of it. Every mechanism is a channel, so none is better (docs/design/mathematics.md,
2.12).

It is a linear program of size answers² · neighbors, solved to hundreds of bits, rounded to integers
with a little of the uniform channel, checked, and bounded by exact weak duality.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from release.errors import DesignError
from release.exact.channel import HIGHEST_UNSEEN, MOST_ENTRIES, Channel
from release.exact.numbers import over_one_denominator
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import Definition
from release.noise.solvers.answers.problem import (
    GEOMETRIC,
    LINEAR_PROGRAM,
    ChannelDesign,
    ChannelProblem,
)
from release.noise.solvers.program import Builder, Floats, Numbers
from release.noise.solvers.refine import ONE, PLACES, Precise, ratio_above, refine, times_power

_EPSILONS = (Fraction(1, 10**6), HIGHEST_UNSEEN)
"""Outside of these, floats cannot tell masses from 0, or e^ε from 1, and solvers fail."""

_ROUNDING = Fraction(1, 2**50)
"""How much of δ is left for rounding to integers."""

_LEAST_EXCESS = Fraction(1, 10**3)

_LEAST_SCALE = -33
"""log2 of the smallest scale of a mass: below it the solver sees nothing anyway."""


def is_small(problem: ChannelProblem) -> bool:
    """Whether a program is solved in seconds; as measured, one step apart is far easier."""
    epsilon = problem.guarantee.epsilon
    if epsilon and not _EPSILONS[0] <= epsilon <= _EPSILONS[1]:
        return False
    if problem.has_envelope:
        return problem.entries <= 10 * MOST_ENTRIES
    return problem.entries <= (3 if len(problem.steps) == 1 else 1) * MOST_ENTRIES


def design_channel(problem: ChannelProblem) -> ChannelDesign:
    """The channel of least expected cost that satisfies the guarantee, by a linear program.

    Raises:
        DesignError: the program has too many answers, no solution, or none that could be proved.
    """
    if not is_small(problem):
        raise DesignError(
            f"a channel of {problem.answers} answers at epsilon {problem.guarantee.epsilon} is no "
            "program that can be solved; write mechanism: integer, or another epsilon or domain"
        )
    if _is_geometric(problem):
        return _geometric(problem)
    solution = _Program(problem).solve()
    # The uniform channel has δ = 0, and δ is convex: mixing lowers it in proportion (1.4).
    for share in (Fraction(0), *(Fraction(1, 10**k) for k in range(12, 2, -1))):
        channel = _rounded(solution.masses, problem.ratio, share)
        if problem.is_satisfied_by(channel):
            cost, solver = problem.loss_of(channel), solution.solver
            bound = min(cost, _proved_bound(problem, solution))
            return ChannelDesign(problem, channel, cost, bound, LINEAR_PROGRAM, solver)
    raise DesignError(f"no channel could be proved for the {problem.guarantee}")


def _is_geometric(problem: ChannelProblem) -> bool:
    """Whether the optimum is known: error rate, uniform prior, pure, neighbors one apart."""
    size, prior = problem.answers, problem.prior
    # Near 1 the ratio has no room for rounding: there the program decides.
    is_pure = problem.guarantee.definition is Definition.PURE and problem.ratio > 1 + _LEAST_EXCESS
    if not is_pure or problem.steps != (1,) or prior is None or len(set(prior)) > 1:
        return False
    return np.array_equal(problem.costs, 1 - np.eye(size, dtype=np.int64))


def _geometric(problem: ChannelProblem) -> ChannelDesign:
    """Clamped geometric noise, and the proof that no channel has less error (2.13).

    Solvers fail at the program of a hundred answers: most of its masses cost the same.
    """
    size = problem.answers
    # No less than 1/E, so that no ratio of two masses is above E.
    base = -(-ONE * problem.ratio.denominator // problem.ratio.numerator)
    powers = [base**apart * ONE ** (size - apart) for apart in range(size)]
    rows = []
    for true in range(size):
        row = [powers[abs(true - code)] * (ONE - base) for code in range(size)]
        row[0], row[-1] = powers[true] * ONE, powers[size - 1 - true] * ONE
        rows.append(row)
    channel = Channel.near(rows, DEFAULT_BITS, problem.ratio)
    if not problem.is_satisfied_by(channel):
        raise DesignError(f"no channel could be proved for the {problem.guarantee}")
    # P(o|o) ≤ r^-|q - o|·P(o|q). With weights y of Σ_q y_q·r^|q - o| = 1 for every o, what is
    # published rightly is at most Σ_o Σ_q y_q·P(o|q) = Σ y.
    ratio = Fraction(ONE, ratio_above(problem.guarantee.epsilon))
    right = (2 + (size - 2) * (1 - ratio)) / ((1 + ratio) * size)
    cost = problem.loss_of(channel)
    return ChannelDesign(problem, channel, cost, min(cost, 1 - right), GEOMETRIC)


def _rounded(masses: Precise, ratio: Fraction, share: Fraction) -> Channel:
    """Integers near the masses, with a ``share`` of the uniform channel and a little more."""
    # The slack that rounding needs grows with 1/(E-1); near 1 only the exact check decides.
    keep = ratio if ratio > 1 + Fraction(1, 10**6) else None
    rows = mixed_with_uniform(np.maximum(masses, 0).tolist(), share)
    return Channel.near(rows, DEFAULT_BITS, keep)


def mixed_with_uniform(rows: Iterable[Sequence[Any]], share: Fraction) -> list[list[Fraction]]:
    """The rows of masses, each with a ``share`` of its sum spread out evenly."""
    mixed = []
    for row in rows:
        uniform = share * sum(row) / len(row)
        mixed.append([(1 - share) * mass + uniform for mass in row])
    return mixed


@dataclass(frozen=True)
class _Solution:
    """Masses and prices in units of 2^-PLACES.

    ``masses`` and ``prices`` have shape (true, published). Prices are sums of privacy constraints,
    each weighed by what giving up a little of it would save. Under any channel that satisfies the
    guarantee Σ prices·P is at most δ·``delta_price``. ``answers`` weighs the true answers.
    """

    masses: Precise
    prices: Precise
    delta_price: int
    answers: Precise
    solver: str


class _Program:
    """The linear program of a channel, with masses relative to e^{-ε·distance}.

    Its privacy rows are those of :class:`_Pairs` or of :class:`_Envelope`. The ``prices`` of both
    compute ``prices`` and ``delta_price`` of :class:`_Solution` from the duals of all rows.
    """

    def __init__(self, problem: ChannelProblem) -> None:
        self.problem, self.builder = problem, Builder()
        true, published = problem.costs.shape
        self.exponents = self._scale(true, published)
        scale = np.exp2(self.exponents)
        prior = problem.prior
        weights = np.zeros(true) if prior is None else np.array(list(map(float, prior)))
        costs = problem.costs * scale * weights[:, None]
        self.unit = 2.0 ** round(math.log2(max(float(costs.sum()), 1e-9))) if prior else 1.0
        self.masses = self.builder.add_columns((costs / self.unit).reshape(-1))
        self.masses = self.masses.reshape(true, published)
        for row, shares in zip(self.masses, scale, strict=True):
            self.builder.add_row(row, shares, 1.0, equal=True)
        form: type[_Envelope | _Pairs] = _Envelope if problem.has_envelope else _Pairs
        self.privacy = form(problem, self.builder, self.masses, self.exponents)
        self.answer_rows = [] if prior is not None else self._worst_case(scale)

    def _scale(self, true: int, published: int) -> Floats:
        apart = np.abs(np.arange(true)[:, None] - np.arange(published)[None, :])
        far = np.ceil(apart / max(self.problem.steps)) * float(self.problem.guarantee.epsilon)
        return np.asarray(np.maximum(np.round(-far / math.log(2)), _LEAST_SCALE))

    def _worst_case(self, scale: Floats) -> list[int]:
        """Every expected cost is at most one more variable, which is all that is minimised."""
        top = self.builder.add_columns(np.ones(1))
        rows = []
        for row, costs in zip(self.masses, self.problem.costs * scale, strict=True):
            rows.append(self.builder.add_row(np.append(row, top), np.append(costs, -1.0), 0.0))
        return rows

    def solve(self) -> _Solution:
        """Solve to hundreds of bits."""
        # Pure programs have many optima, between which the simplex method can wander for minutes.
        pure = self.problem.guarantee.definition is Definition.PURE
        refined = refine(self.builder.build(), interior=pure)
        if refined is None:
            raise DesignError(f"the solver has no channel for the {self.problem.guarantee}")
        masses = times_power(refined.values[self.masses], self.exponents)
        duals = np.maximum(times_power(-refined.duals, math.log2(self.unit)), 0)
        answers = -refined.duals[np.array(self.answer_rows, dtype=np.int64)]
        return _Solution(masses, *self.privacy.prices(duals), answers, refined.solver)


class _Pairs:
    """A row for each pair of neighboring answers and each outcome."""

    def __init__(
        self, problem: ChannelProblem, builder: Builder, masses: Numbers, exponents: Floats
    ) -> None:
        self.problem, self.builder = problem, builder
        self.masses, self.exponents = masses, exponents
        self.rows = [self._privacy_rows(*pair) for pair in problem.pairs]

    def _privacy_rows(self, a: int, b: int) -> Numbers:
        """P(o|a) - E·P(o|b) ≤ t(o), divided by the scale of P(o|a); Σ t ≤ δ."""
        ratio, residue = _in_floats(self.problem.ratio)
        relative = np.exp2(self.exponents[b] - self.exponents[a])
        ones = np.ones(relative.size)
        columns = np.stack([self.masses[a], self.masses[b]], axis=1)
        values = np.stack([ones, -ratio * relative], axis=1)
        residues = np.stack([0 * ones, -residue * relative], axis=1)
        delta = float(self.problem.guarantee.delta)
        if delta > 0:
            slack = self.builder.add_columns(np.zeros(ones.size))
            columns = np.concatenate([columns, slack[:, None]], axis=1)
            # t = unit·slack, with a unit between δ and the mass: HiGHS drops small coefficients,
            # and both t and Σ t ≤ δ must stay visible.
            limit = round(math.log2(delta))
            unit = np.maximum(np.round((self.exponents[a] + limit) / 2), self.exponents[a] - 30)
            limit = max(limit, int(unit.max()) - 30)
            values = np.concatenate([values, -np.exp2(unit - self.exponents[a])[:, None]], axis=1)
            residues = np.concatenate([residues, 0 * ones[:, None]], axis=1)
            budget = (self.problem.guarantee.delta - _ROUNDING) / Fraction(2) ** limit
            self.builder.add_row(slack, np.exp2(unit - limit), float(budget))
        return self.builder.add_rows(columns, values, np.zeros(ones.size), residues)

    def prices(self, duals: Precise) -> tuple[Precise, int]:
        """Σ_ab Σ_o y_ab(o)·(P(o|a) - E·P(o|b)) ≤ δ·Σ_ab max y_ab for every y ≥ 0 (2.10)."""
        ratio = ratio_above(self.problem.guarantee.epsilon)
        prices, largest = np.zeros(self.masses.shape, dtype=object), 0
        for (a, b), numbers in zip(self.problem.pairs, self.rows, strict=True):
            # A row was divided by the scale of its first mass; its price rises by as much.
            row = times_power(duals[numbers], -self.exponents[a])
            prices[a] += row
            prices[b] -= (ratio * row >> PLACES) + 1
            largest += max(row.tolist())
        return prices, largest


class _Envelope:
    """Pure, and any answer may turn into any other: m(o) ≤ P(o|q) ≤ E·m(o) for some m(o) (2.12)."""

    def __init__(
        self, problem: ChannelProblem, builder: Builder, masses: Numbers, exponents: Floats
    ) -> None:
        self.problem, self.exponents = problem, exponents
        ratio, residue = _in_floats(problem.ratio)
        least = builder.add_columns(np.zeros(masses.shape[1]))
        self.below, self.above = [], []
        for row, powers in zip(masses, exponents, strict=True):
            columns = np.stack([row, least], axis=1)
            ones, rest = np.ones(least.size), np.exp2(-powers)
            # Divided by the scale of the mass.
            over = np.stack([ones, -ratio * rest], axis=1)
            residues = np.stack([0 * ones, -residue * rest], axis=1)
            self.above.append(builder.add_rows(columns, over, 0 * ones, residues))
            self.below.append(builder.add_rows(columns, np.stack([-ones, rest], axis=1), 0 * ones))

    def prices(self, duals: Precise) -> tuple[Precise, int]:
        """Σ u(P - E·m) + v(m - P) ≤ 0 for all u, v ≥ 0; with Σ_q v = E·Σ_q u no m(o) is left."""
        ratio = ratio_above(self.problem.guarantee.epsilon)
        above = times_power(duals[np.stack(self.above)], -self.exponents)
        below = times_power(duals[np.stack(self.below)], -self.exponents)
        prices = np.zeros(above.shape, dtype=object)
        for o, (u, v) in enumerate(zip(above.T, below.T, strict=True)):
            # The theorem needs E·Σu ≤ Σv only. Where rounding breaks it, u is scaled down.
            needed, available = (ratio * sum(u.tolist()) >> PLACES) + 1, sum(v.tolist())
            share = ONE if needed <= available else available * ONE // needed
            prices[:, o] = (share * u >> PLACES) - v
        return prices, 0


def _in_floats(ratio: Fraction) -> tuple[float, float]:
    """The ratio as a sum of two floats, for its first hundred bits."""
    first = float(ratio)
    return first, float(ratio - Fraction(first))


def _proved_bound(problem: ChannelProblem, solution: _Solution) -> Fraction:
    """An exact lower bound of the expected cost of any channel with this (ε, δ) (2.10).

    Σ_q Σ_o w_q·ℓ(q, o)·P(o|q) ≥ Σ_q min_o [w_q·ℓ(q, o) + prices(q, o)] - δ·delta_price, with w the
    prior, or for the worst true answer any weights that add up to 1.
    """
    if problem.prior is None:
        weights = np.maximum(solution.answers, 0)
        whole = int(sum(weights.tolist())) or 1
    else:
        numerators, whole = over_one_denominator(problem.prior)
        weights = np.array(numerators, dtype=object)
    reduced = weights[:, None] * problem.costs.astype(object) * ONE // whole + solution.prices
    total = int(reduced.min(axis=1).sum())
    bound: Fraction = (total - problem.guarantee.delta * solution.delta_price) / ONE
    return max(Fraction(0), bound)
