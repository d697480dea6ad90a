"""One law for each true answer: the channel of least loss, on the line without wrapping.

Modular noise has one law for all answers, so on ordered answers it pays for wrapping round. A
channel chooses P(o|q) for every true answer q: minimise Σ_q π(q)·Σ_o ℓ(q, o)·P(o|q), or the largest
loss over q, with P(o|a) ≤ E·P(o|b) for every pair of neighboring answers, or the (ε, δ) form of it
(docs/design/mathematics.md). It contains every other mechanism, so none is better.

- For pure guarantees and neighbors 1 apart the clamped geometric channel, remapped, is optimal by
  theorem, whatever the size (:mod:`release.noise.solvers.remapped`).
- Else a linear program, solved to hundreds of bits, made integers by a touch of the uniform law,
  proved on them, and bounded from below by exact weak duality. Its size is answers² · neighbors;
  where any answer can turn into any other, and the guarantee is pure, only answers².
- Beyond ``MOST_ENTRIES`` the remapped geometric at ε over the farthest step, which keeps the
  promise but need not be optimal; blocks of answers give a bound that is proved.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from release.errors import DesignError
from release.exact.channel import MOST_ENTRIES, Channel
from release.exact.numbers import exp_bounds
from release.exact.pmf import DEFAULT_BITS
from release.exact.privacy import Definition
from release.noise.solvers.answer_problem import LINEAR_PROGRAM, ChannelDesign, ChannelProblem
from release.noise.solvers.program import Builder, Floats, Numbers
from release.noise.solvers.refine import ONE, PLACES, Precise, refine, times_power
from release.noise.solvers.remapped import remapped_geometric

TIME_LIMIT = 60.0
"""Seconds a program may take before the remapped geometric is used in its place."""

_EPSILONS = (Fraction(1, 10**6), Fraction(12))
"""Outside of these floats cannot tell masses from 0, or e^ε from 1, and solvers lose their way."""

_BLOCK_ENTRIES = 3_000
"""As above, for the blocks of answers that bound a larger problem: about half a second."""

_ROUNDING = Fraction(1, 2**50)
"""How much of δ is left for rounding to integers."""

_LEAST_SCALE = -33
"""log2 of the smallest scale of a mass: below it the solver sees nothing anyway."""


def design_channel(problem: ChannelProblem) -> ChannelDesign:
    """The channel of least loss that keeps the guarantee; see the notes of what is returned.

    Raises:
        DesignError: no channel could be proved.
        ValueError: costs that do not grow with the error, for more answers than a program takes.
    """
    pure = problem.guarantee.definition is Definition.PURE
    if pure and problem.steps == (1,) and problem.is_plain:
        return remapped_geometric(problem)
    if _is_small(problem):
        try:
            return by_program(problem)
        except DesignError:
            # The solver found none in time, or none that can be proved.
            if not problem.is_plain:
                raise
    if not problem.is_plain:
        raise ValueError("so many answers need costs that grow with the error")
    made = remapped_geometric(problem)
    note = "the best remapping of the clamped geometric; the bound holds for every channel"
    return replace(made, lower_bound=min(made.objective, _block_bound(problem)), notes=(note,))


def _is_small(problem: ChannelProblem) -> bool:
    """Whether a program is solved in seconds; as measured, one step apart is far easier."""
    epsilon = problem.guarantee.epsilon
    if epsilon and not _EPSILONS[0] <= epsilon <= _EPSILONS[1]:
        return not problem.is_plain
    most = 3 * MOST_ENTRIES if len(problem.steps) == 1 else MOST_ENTRIES
    wide = problem.is_everything and problem.guarantee.definition is Definition.PURE
    return _size(problem) <= (10 * MOST_ENTRIES if wide else most)


def _size(problem: ChannelProblem) -> int:
    if problem.is_everything and problem.guarantee.definition is Definition.PURE:
        return 2 * problem.costs.size
    return problem.entries


def _block_bound(problem: ChannelProblem) -> Fraction:
    """A bound from blocks of answers: no channel does better on one than one made for it alone.

    Costs grow with the error, so nothing is lost by moving what is published into the block; and a
    channel for all answers is one for each block, for neighbors are neighbors there. Of uniform
    priors and costs that depend on the distance only; 0 for others.
    """
    costs, size = problem.costs, problem.answers
    uniform = problem.prior is not None and len(set(problem.prior)) == 1
    if not (uniform and (costs[1:, 1:] == costs[:-1, :-1]).all()):
        return Fraction(0)
    for width in range(min(size, 64), 1, -1):
        steps = tuple(step for step in problem.steps if step < width)
        if not steps:
            return Fraction(0)
        block = costs[:width, :width]
        share = (Fraction(1, width),) * width
        part = ChannelProblem(steps, problem.guarantee, block, share)
        if _size(part) <= _BLOCK_ENTRIES:
            with suppress(DesignError):
                return by_program(part).lower_bound * (size // width) * width / size
            break
    return Fraction(0)


def by_program(problem: ChannelProblem) -> ChannelDesign:
    """The channel of least loss by a linear program.

    Raises:
        DesignError: the solver found none, or none that could be proved.
    """
    program = _Program(problem)
    found = program.solve()
    for give in (Fraction(0), *(Fraction(1, 10**k) for k in range(12, 2, -1))):
        made = _rounded(found.masses, problem.ratio, give)
        if problem.keeps(made):
            loss = problem.loss_of(made)
            bound = min(loss, _proved_bound(problem, found))
            return ChannelDesign(problem, made, loss, bound, LINEAR_PROGRAM, solver=found.solver)
    raise DesignError(f"no channel was found for the {problem.guarantee}")


def _rounded(masses: Precise, ratio: Fraction, give: Fraction) -> Channel:
    """Integers near the masses, with a share ``give`` of the uniform channel and a little more."""
    keep = ratio if ratio > 1 + Fraction(1, 10**6) else None
    rows = []
    for row in np.maximum(masses, 0).tolist():
        uniform = give * sum(row) / len(row)
        rows.append([(1 - give) * mass + uniform for mass in row])
    return Channel.near(rows, DEFAULT_BITS, keep)


@dataclass(frozen=True)
class _Found:
    """Masses and prices in units of 2^-PLACES.

    ``masses`` and ``prices`` have shape (true, published). Under any channel that keeps the promise
    Σ prices·P is at most δ·``delta_price``: prices are sums of privacy constraints, each weighed by
    what giving up a little of it would save. ``answers`` weighs the true answers.
    """

    masses: Precise
    prices: Precise
    delta_price: int
    answers: Precise
    solver: str


class _Privacy(Protocol):
    """The rows of a program that keep the promise."""

    def prices(self, duals: Precise) -> tuple[Precise, int]:
        """``prices`` and ``delta_price`` of :class:`_Found`, from the duals of all rows."""
        ...


class _Program:
    """The linear program of a channel, with masses relative to e^{-ε·distance}."""

    def __init__(self, problem: ChannelProblem) -> None:
        self.problem, self.builder = problem, Builder()
        true, published = problem.costs.shape
        self.exponents = self._scale(true, published)
        scale = np.exp2(self.exponents)
        prior = problem.prior
        weights = np.zeros(true) if prior is None else np.array([float(p) for p in prior])
        costs = problem.costs * scale * weights[:, None]
        self.unit = 2.0 ** round(math.log2(max(float(costs.sum()), 1e-9))) if prior else 1.0
        self.masses = self.builder.add_columns((costs / self.unit).reshape(-1))
        self.masses = self.masses.reshape(true, published)
        for row, shares in zip(self.masses, scale, strict=True):
            self.builder.add_row(row, shares, 1.0, equal=True)
        pure = problem.guarantee.definition is Definition.PURE
        make = _Within if pure and problem.is_everything else _Pairs
        self.privacy: _Privacy = make(problem, self.builder, self.masses, self.exponents)
        self.answer_rows = [] if prior is not None else self._worst_case(scale)

    def _scale(self, true: int, published: int) -> Floats:
        apart = np.abs(np.arange(true)[:, None] - np.arange(published)[None, :])
        far = np.ceil(apart / max(self.problem.steps)) * float(self.problem.guarantee.epsilon)
        return np.asarray(np.maximum(np.round(-far / math.log(2)), _LEAST_SCALE))

    def _worst_case(self, scale: Floats) -> list[int]:
        """Every expected loss is at most one more variable, which is all that is minimised."""
        top = self.builder.add_columns(np.ones(1))
        return [
            self.builder.add_row(np.append(row, top), np.append(costs * shares, -1.0), 0.0)
            for row, costs, shares in zip(self.masses, self.problem.costs, scale, strict=True)
        ]

    def solve(self) -> _Found:
        """Solve to hundreds of bits."""
        # Pure programs have many optima, between which the simplex method can wander for minutes.
        pure = self.problem.guarantee.definition is Definition.PURE
        late = time.monotonic() + TIME_LIMIT
        refined = refine(self.builder.build(), late, interior=pure)
        if refined is None:
            raise DesignError(f"the solver found no channel for the {self.problem.guarantee}")
        masses = times_power(refined.values[self.masses], self.exponents)
        duals = np.maximum(times_power(-refined.duals, math.log2(self.unit)), 0)
        answers = -refined.duals[np.array(self.answer_rows, dtype=np.int64)]
        return _Found(masses, *self.privacy.prices(duals), answers, refined.solver)


class _Pairs:
    """A row for each pair of neighboring answers and each outcome."""

    def __init__(
        self, problem: ChannelProblem, builder: Builder, masses: Numbers, exponents: Floats
    ) -> None:
        self.problem, self.builder = problem, builder
        self.masses, self.exponents = masses, exponents
        self.rows = [self._privacy_rows(a, b) for a, b in problem.pairs]

    def _privacy_rows(self, a: int, b: int) -> Numbers:
        """P(o|a) - E·P(o|b) ≤ t(o), divided by the scale of P(o|a); Σ t ≤ δ."""
        ratio = float(self.problem.ratio)
        residue = float(self.problem.ratio - Fraction(ratio))
        relative = np.exp2(self.exponents[b] - self.exponents[a])
        ones = np.ones(relative.size)
        columns = np.stack([self.masses[a], self.masses[b]], axis=1)
        values = np.stack([ones, -ratio * relative], axis=1)
        residues = np.stack([0 * ones, -residue * relative], axis=1)
        delta = float(self.problem.guarantee.delta)
        if delta > 0:
            slack = self.builder.add_columns(np.zeros(ones.size))
            columns = np.concatenate([columns, slack[:, None]], axis=1)
            # Between δ and the mass: no coefficient so small that the solver drops it.
            limit = round(math.log2(delta))
            unit = np.maximum(np.round((self.exponents[a] + limit) / 2), self.exponents[a] - 30)
            limit = max(limit, int(unit.max()) - 30)
            values = np.concatenate([values, -np.exp2(unit - self.exponents[a])[:, None]], axis=1)
            residues = np.concatenate([residues, 0 * ones[:, None]], axis=1)
            budget = (self.problem.guarantee.delta - _ROUNDING) / Fraction(2) ** limit
            self.builder.add_row(slack, np.exp2(unit - limit), float(budget))
        return self.builder.add_rows(columns, values, np.zeros(ones.size), residues)

    def prices(self, duals: Precise) -> tuple[Precise, int]:
        """Σ_ab Σ_o y_ab(o)·(P(o|a) - E·P(o|b)) ≤ δ·Σ_ab max y_ab for every y ≥ 0."""
        ratio = _ratio_above(self.problem)
        prices, largest = np.zeros(self.masses.shape, dtype=object), 0
        for (a, b), numbers in zip(self.problem.pairs, self.rows, strict=True):
            # A row was divided by the scale of its first mass; its price rises by as much.
            row = times_power(duals[numbers], -self.exponents[a])
            prices[a] += row
            prices[b] -= (ratio * row >> PLACES) + 1
            largest += max(row.tolist())
        return prices, largest


class _Within:
    """Pure, and any answer may turn into any other: m(o) ≤ P(o|q) ≤ E·m(o) for some m(o)."""

    def __init__(
        self, problem: ChannelProblem, builder: Builder, masses: Numbers, exponents: Floats
    ) -> None:
        self.problem, self.exponents = problem, exponents
        ratio = float(problem.ratio)
        residue = float(problem.ratio - Fraction(ratio))
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
        ratio = _ratio_above(self.problem)
        above = times_power(duals[np.stack(self.above)], -self.exponents)
        below = times_power(duals[np.stack(self.below)], -self.exponents)
        prices = np.zeros(above.shape, dtype=object)
        for o, (u, v) in enumerate(zip(above.T.tolist(), below.T.tolist(), strict=True)):
            wanted, there = (ratio * sum(u) >> PLACES) + 1, sum(v)
            # Less of u where its own price is not covered; E·Σu ≤ Σv is all that is needed.
            keep = ONE if wanted <= there else there * ONE // wanted
            prices[:, o] = [(keep * a >> PLACES) - b for a, b in zip(u, v, strict=True)]
        return prices, 0


def _ratio_above(problem: ChannelProblem) -> int:
    """A little more than e^ε, in units of 2^-PLACES."""
    high = exp_bounds(problem.guarantee.epsilon)[1]
    return -(-high.numerator * ONE // high.denominator)


def _proved_bound(problem: ChannelProblem, found: _Found) -> Fraction:
    """An exact lower bound of the loss of any channel that keeps (ε, δ), by weak duality.

    Σ_q Σ_o w_q·ℓ(q, o)·P(o|q) ≥ Σ_q min_o [w_q·ℓ(q, o) + prices(q, o)] - δ·delta_price, with w the
    prior, or for the largest loss any weights that add up to 1.
    """
    if problem.prior is None:
        weights = np.maximum(found.answers, 0)
        whole = int(sum(weights.tolist())) or 1
    else:
        whole = math.lcm(*(share.denominator for share in problem.prior))
        weights = np.array([int(share * whole) for share in problem.prior], dtype=object)
    reduced = weights[:, None] * problem.costs.astype(object) * ONE // whole + found.prices
    total = sum(min(row) for row in reduced.tolist())
    bound: Fraction = (total - problem.guarantee.delta * found.delta_price) / ONE
    return max(Fraction(0), bound)
