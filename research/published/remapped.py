"""The clamped geometric channel followed by the best answer to each of its outcomes.

For pure guarantees and neighbors 1 apart no channel is better, whatever the number of answers:

- under any prior and any costs that grow with the error, each outcome has one best answer (Ghosh,
  Roughgarden and Sundararajan 2009, Theorem 3.2);
- for the worst true answer, each outcome has a distribution of answers (Gupte and Sundararajan
  2010, Theorem 3), the solution of a linear program without privacy constraints.

For neighbors up to m apart the channel is made for ε/m, which satisfies ε by group privacy and,
being pure, every (ε, δ); then it need not be optimal (docs/design/mathematics.md 2.13).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.channel import Channel
from release.exact.domain import Codes
from release.exact.privacy import Definition
from release.noise.solvers.answers.problem import ChannelDesign, ChannelProblem
from release.noise.solvers.program import Builder, Floats, solve
from research.published.clamping import geometric_clamped

_NEGLIGIBLE = 1e-10
"""Shares of a cost that the program leaves out; the expected cost itself is computed exactly."""

_PLACES = 60

REMAPPED = "remapped geometric"
"""The method of these channels, by its name."""


def remapped_geometric(problem: ChannelProblem) -> ChannelDesign:
    """The best remapping of the clamped geometric channel, proved to satisfy the guarantee.

    Raises:
        DesignError: it does not satisfy it, or ε over the farthest step is below 10⁻⁹.
    """
    epsilon = problem.guarantee.epsilon / max(problem.steps)
    try:
        plain = geometric_clamped(problem.answers, epsilon)
    except ValueError as error:
        raise DesignError(f"no channel for the {problem.guarantee}: {error}") from error
    solver, bound = "none", None
    if problem.prior is not None:
        channel = _for_prior(problem, plain, problem.prior)
    else:
        solver, (channel, bound) = "HiGHS", _for_worst(problem, plain)
    if not problem.is_satisfied_by(channel):
        raise DesignError(f"the remapped channel does not satisfy the {problem.guarantee}")
    cost = problem.loss_of(channel)
    lower_bound = Fraction(0)
    # Only here do the theorems apply.
    pure = problem.guarantee.definition is Definition.PURE
    if pure and problem.steps == (1,) and problem.is_plain:
        # They are about exact masses; each of ours was rounded by a few units.
        rounding = Fraction(4 * problem.answers * int(problem.costs.max()), channel.total)
        lower_bound = max(Fraction(0), min(cost - rounding, cost if bound is None else bound))
    return ChannelDesign(problem, channel, cost, lower_bound, REMAPPED, solver)


def _for_prior(problem: ChannelProblem, plain: Channel, prior: tuple[Fraction, ...]) -> Channel:
    rows = np.zeros_like(plain.rows)
    for outcome, answer in enumerate(best_answers(plain, problem.costs, prior)):
        rows[:, answer] += plain.rows[:, outcome]
    return Channel(rows, plain.total)


def best_answers(channel: Channel, costs: Codes, prior: Sequence[Fraction]) -> list[int]:
    """For each outcome the cheapest answer to publish in its place; the least of several."""
    # Floats will do: no guarantee depends on the choice (2.16), and its cost is computed exactly.
    joint = np.array(list(map(float, prior)))[:, None] * channel.to_floats()
    losses = joint.T @ costs.astype(np.float64)
    # Equal costs come out apart by rounding; any of several would be as good.
    least = losses.min(axis=1, keepdims=True) * (1 + 1e-12)
    return list((losses <= least).argmax(axis=1).tolist())


def _for_worst(problem: ChannelProblem, plain: Channel) -> tuple[Channel, Fraction]:
    """The remapping that is cheapest at the worst true answer, and a bound for every channel."""
    remap, weights = _solved(problem, plain)
    # Each row of integers adds up to the same, or rounding would break ratios between rows.
    units = Channel.near([list(map(Fraction, row)) for row in remap.tolist()]).rows
    mixed = plain.rows.astype(object) @ units.astype(object)
    channel = Channel.near(mixed.tolist(), keep=problem.ratio)
    # With any weights w of the true answers, no channel's largest cost is below the best w-weighted
    # one, which by the first theorem is Σ_r min_o Σ_q w_q·P(r|q)·ℓ(q, o). Rounded down, the weights
    # add up to at most 1, which only lowers it.
    shares = list(map(Fraction, np.maximum(weights, 0.0).tolist()))
    whole = sum(shares, Fraction(0)) or Fraction(1)
    scaled = np.array([int(share / whole * 2**_PLACES) for share in shares], dtype=object)
    losses = (scaled[:, None] * plain.rows.astype(object)).T @ problem.costs.astype(object)
    least = int(losses.min(axis=1).sum())
    return channel, Fraction(least, 2**_PLACES * plain.total)


def _solved(problem: ChannelProblem, plain: Channel) -> tuple[Floats, Floats]:
    """The remapping, shape (outcomes, published), and the weights of the true answers; floats."""
    masses, builder = plain.to_floats(), Builder()
    size = problem.costs.shape[1]
    columns = builder.add_columns(np.zeros(plain.answers * size)).reshape(plain.answers, size)
    top = builder.add_columns(np.ones(1))
    for row in columns:
        builder.add_row(row, np.ones(size), 1.0, equal=True)
    largest = float(problem.costs.max()) or 1.0
    answers = []
    for shares, costs in zip(masses, problem.costs / largest, strict=True):
        terms = shares[:, None] * costs[None, :]
        large = terms > _NEGLIGIBLE
        row, values = np.append(columns[large], top), np.append(terms[large], -1.0)
        answers.append(builder.add_row(row, values, 0.0))
    solution = solve(builder.build())
    if solution is None:
        raise DesignError(f"the solver has no channel for the {problem.guarantee}")
    remap = np.maximum(solution.values[columns], 0)
    return remap / remap.sum(axis=1, keepdims=True), -solution.duals[np.array(answers)]
