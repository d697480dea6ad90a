"""One law for each true answer: the channel of least loss, on the line without wrapping.

Modular noise has one law for all answers, so on ordered answers it pays for wrapping round. A
channel chooses P(o|q) for every true answer q: minimise Σ_q π(q)·Σ_o ℓ(q, o)·P(o|q), or the largest
loss over q, with P(o|a) ≤ E·P(o|b) for every pair of neighbouring answers, or the (ε, δ) form of it
(DESIGN.md §3.5). It contains every other mechanism, so none is better.

- For pure guarantees, neighbours 1 apart and a prior, the clamped geometric channel followed by the
  best answer to each of its outcomes is optimal for every loss that grows with the error (Ghosh,
  Roughgarden and Sundararajan 2009, Theorem 3.2): no program is needed, whatever the size.
- Else a linear program, solved to hundreds of bits, made integers by a touch of the uniform law,
  proved on them, and bounded from below by exact weak duality. Its size is answers² · neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release.answers import Codes
from release.channel import Channel, Pair, channel_deltas, line_pairs
from release.errors import DesignError
from release.exact import exp_below_any_verifier, exp_bounds
from release.guarantee import Definition, Guarantee
from release.law import DEFAULT_BITS
from release.losses import check_prior
from release.mechanisms.baselines import geometric_clamped
from release.mechanisms.program import Builder, Floats, Numbers
from release.mechanisms.refine import ONE, PLACES, Precise, refine, times_power

_ROUNDING = Fraction(1, 2**50)
"""How much of δ is left for rounding to integers."""

_LEAST_SCALE = -33
"""log2 of the smallest scale of a mass: below it the solver sees nothing anyway."""


@dataclass(frozen=True)
class ChannelProblem:
    """What is asked of a channel.

    Attributes:
        steps: how far apart neighbouring answers can be, each at least 1.
        guarantee: pure or approximate.
        costs: ℓ(q, o) as integers of at least 0, shape (true answers, published answers).
        prior: π, one probability for each true answer, adding up to 1; None for the largest loss.

    Raises:
        ValueError: another definition, a prior that is none, or costs of another shape.
    """

    steps: tuple[int, ...]
    guarantee: Guarantee
    costs: Codes
    prior: tuple[Fraction, ...] | None

    def __post_init__(self) -> None:
        if self.guarantee.definition is Definition.PROBABILISTIC:
            raise ValueError("a channel keeps pure or approximate guarantees")
        if self.costs.ndim != 2 or not (self.costs >= 0).all():
            raise ValueError("costs need a row of numbers of at least 0 for each true answer")
        if not self.steps or min(self.steps) < 1:
            raise ValueError("neighbouring answers are 1 or more apart")
        if self.prior is not None:
            if len(self.prior) != len(self.costs):
                raise ValueError("a prior needs one probability for each true answer")
            check_prior(self.prior)

    @property
    def answers(self) -> int:
        """The number of true answers."""
        return int(self.costs.shape[0])

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of neighbouring answers, both orders."""
        return line_pairs(self.answers, self.steps)

    @property
    def ratio(self) -> Fraction:
        """The rational that laws are built with in place of e^ε."""
        return exp_below_any_verifier(self.guarantee.epsilon)

    def loss_of(self, channel: Channel) -> Fraction:
        """The expected loss under the prior, or the largest over the true answers."""
        losses = channel.loss(self.costs)
        if self.prior is None:
            return max(losses)
        return sum((p * loss for p, loss in zip(self.prior, losses, strict=True)), Fraction(0))

    def keeps(self, channel: Channel) -> bool:
        """Whether the channel keeps the guarantee with every verifier's e^ε."""
        found = channel_deltas(channel, self.pairs, self.ratio)
        return found.under(self.guarantee.definition) <= self.guarantee.delta


@dataclass(frozen=True)
class ChannelDesign:
    """A proved channel, and an exact lower bound of the loss of every one that keeps the promise.

    ``by_theorem`` tells that the bound is the theorem's: the loss itself, up to rounding.
    """

    channel: Channel
    objective: Fraction
    lower_bound: Fraction
    method: str
    by_theorem: bool = False


def design_channel(problem: ChannelProblem) -> ChannelDesign:
    """The channel of least loss that keeps the guarantee.

    Raises:
        DesignError: no channel could be proved.
    """
    return _remapped_geometric(problem) or _by_program(problem)


def _remapped_geometric(problem: ChannelProblem) -> ChannelDesign | None:
    grows = all(_grows_outwards(row, q) for q, row in enumerate(problem.costs.tolist()))
    square = problem.costs.shape == (problem.answers, problem.answers)
    pure = problem.guarantee.definition is Definition.PURE
    if problem.prior is None or not (pure and problem.steps == (1,) and grows and square):
        return None
    plain = geometric_clamped(problem.answers, problem.guarantee.epsilon)
    best = best_answers(plain, problem.costs, problem.prior)
    rows = np.zeros_like(plain.rows)
    for outcome, answer in enumerate(best):
        rows[:, answer] += plain.rows[:, outcome]
    made = Channel(rows, plain.total)
    if not problem.keeps(made):
        raise DesignError(f"the channel found does not keep the {problem.guarantee}")
    loss = problem.loss_of(made)
    return ChannelDesign(made, loss, loss, "remapped geometric", by_theorem=True)


def _grows_outwards(row: Sequence[int], true: int) -> bool:
    """Whether a cost is 0 at the true answer and grows with the error on both sides."""
    right, left = row[true:], row[true::-1] if true else row[:1]
    return row[true] == 0 and all(list(side) == sorted(side) for side in (right, left))


def best_answers(channel: Channel, costs: Codes, prior: Sequence[Fraction]) -> list[int]:
    """For each outcome the answer to publish in its place that loses least; the least of several.

    In floats: which answer is chosen promises nothing, and what it costs is computed exactly.
    """
    posterior = np.array([float(share) for share in prior])[:, None] * channel.to_floats()
    losses = posterior.T @ costs.astype(np.float64)
    # Equal losses come out apart by rounding; the middle of several would be as good.
    least = losses.min(axis=1, keepdims=True) * (1 + 1e-12)
    return [int(answer) for answer in (losses <= least).argmax(axis=1)]


def _by_program(problem: ChannelProblem) -> ChannelDesign:
    program = _Program(problem)
    found = program.solve()
    for give in (Fraction(0), *(Fraction(1, 10**k) for k in range(12, 2, -1))):
        made = _rounded(found.masses, problem.ratio, give)
        if problem.keeps(made):
            loss = problem.loss_of(made)
            bound = min(loss, _proved_bound(problem, found))
            return ChannelDesign(made, loss, bound, "linear program")
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
    """Masses and multipliers in units of 2^-PLACES.

    ``masses`` has shape (true, published); ``multipliers`` (pairs, published): what giving up a
    little of a privacy constraint would save; ``answers`` weighs the true answers.
    """

    masses: Precise
    multipliers: Precise
    answers: Precise


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
        self.rows = [self._privacy_rows(a, b) for a, b in problem.pairs]
        self.answer_rows = [] if prior is not None else self._worst_case(scale)

    def _scale(self, true: int, published: int) -> Floats:
        apart = np.abs(np.arange(true)[:, None] - np.arange(published)[None, :])
        far = np.ceil(apart / max(self.problem.steps)) * float(self.problem.guarantee.epsilon)
        return np.asarray(np.maximum(np.round(-far / math.log(2)), _LEAST_SCALE))

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

    def _worst_case(self, scale: Floats) -> list[int]:
        """Every expected loss is at most one more variable, which is all that is minimised."""
        top = self.builder.add_columns(np.ones(1))
        return [
            self.builder.add_row(np.append(row, top), np.append(costs * shares, -1.0), 0.0)
            for row, costs, shares in zip(self.masses, self.problem.costs, scale, strict=True)
        ]

    def solve(self) -> _Found:
        """Solve to hundreds of bits."""
        refined = refine(self.builder.build())
        if refined is None:
            raise DesignError(f"the solver found no channel for the {self.problem.guarantee}")
        masses = times_power(refined.values[self.masses], self.exponents)
        up = math.log2(self.unit)
        # A row was divided by the scale of its first mass; its price rises by as much.
        multipliers = [
            times_power(-refined.duals[numbers], up - self.exponents[a])
            for numbers, (a, _) in zip(self.rows, self.problem.pairs, strict=True)
        ]
        answers = -refined.duals[np.array(self.answer_rows, dtype=np.int64)]
        return _Found(masses, np.stack(multipliers), answers)


def _proved_bound(problem: ChannelProblem, found: _Found) -> Fraction:
    """An exact lower bound of the loss of any channel, from multipliers y ≥ 0.

    Σ_ab Σ_o y_ab(o)·(P(o|a) - E·P(o|b)) ≤ δ·Σ_ab max y_ab for every channel that keeps (ε, δ), so
    its loss is at least Σ_q min_o [w_q·ℓ(q, o) + Σ_b y_qb(o) - E·Σ_a y_aq(o)] - δ·Σ_ab max y_ab,
    with w the prior, or for the largest loss any weights that add up to 1.
    """
    high = exp_bounds(problem.guarantee.epsilon)[1]
    ratio = -(-high.numerator * ONE // high.denominator)
    if problem.prior is None:
        weights = np.maximum(found.answers, 0)
        whole = int(sum(weights.tolist())) or 1
    else:
        whole = math.lcm(*(share.denominator for share in problem.prior))
        weights = np.array([int(share * whole) for share in problem.prior], dtype=object)
    reduced = weights[:, None] * problem.costs.astype(object) * ONE // whole
    largest = 0
    for (a, b), row in zip(problem.pairs, np.maximum(found.multipliers, 0), strict=True):
        reduced[a] += row
        reduced[b] -= (ratio * row >> PLACES) + 1
        largest += max(row.tolist())
    total = sum(min(row) for row in reduced.tolist())
    bound: Fraction = (total - problem.guarantee.delta * largest) / ONE
    return max(Fraction(0), bound)
