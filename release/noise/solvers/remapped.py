"""The clamped geometric channel followed by the best answer to each of its outcomes.

For pure guarantees and neighbors 1 apart no channel is better, whatever the number of answers:

- under any prior and any loss that grows with the error, each outcome has one best answer (Ghosh,
  Roughgarden and Sundararajan 2009, Theorem 3.2);
- for the largest loss over the true answers, each outcome has a law of answers (Gupte and
  Sundararajan 2010, Theorem 3), which a linear program finds that knows nothing of privacy.

For neighbors up to m apart the channel is made for ε/m, which keeps ε by group privacy and, being
pure, every (ε, δ); then it need not be optimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from release.errors import DesignError
from release.exact.channel import Channel
from release.exact.domain import Codes
from release.exact.privacy import Definition
from release.noise.published.baselines import geometric_clamped
from release.noise.solvers.answer_problem import ChannelDesign, ChannelProblem
from release.noise.solvers.program import Builder, Floats, solve

_NEGLIGIBLE = 1e-10
"""Shares of a loss that the program leaves out; the loss itself is computed exactly."""

_PLACES = 60

REMAPPED = "remapped geometric"
"""The method of these channels, by its name."""


def remapped_geometric(problem: ChannelProblem) -> ChannelDesign:
    """The best remapping of the clamped geometric channel, proved to keep the guarantee.

    Raises:
        DesignError: it does not keep it, or ε over the farthest step is below 10⁻⁹.
    """
    epsilon = problem.guarantee.epsilon / max(problem.steps)
    try:
        plain = geometric_clamped(problem.answers, epsilon)
    except ValueError as error:
        raise DesignError(f"no channel for the {problem.guarantee}: {error}") from error
    made, bound = (
        _for_prior(problem, plain) if problem.prior is not None else _for_worst(problem, plain)
    )
    if not problem.keeps(made):
        raise DesignError(f"the channel found does not keep the {problem.guarantee}")
    loss = problem.loss_of(made)
    pure = problem.guarantee.definition is Definition.PURE
    sharp = pure and problem.steps == (1,) and problem.is_plain
    # The theorem is about exact masses; each of ours was rounded by a few units.
    rounding = Fraction(4 * problem.answers * int(problem.costs.max()), made.total)
    return ChannelDesign(
        problem,
        made,
        loss,
        max(Fraction(0), min(loss - rounding, bound or loss)) if sharp else Fraction(0),
        REMAPPED,
        solver="none" if bound is None else "HiGHS",
    )


def _for_prior(problem: ChannelProblem, plain: Channel) -> tuple[Channel, None]:
    best = best_answers(plain, problem.costs, problem.prior or ())
    rows = np.zeros_like(plain.rows)
    for outcome, answer in enumerate(best):
        rows[:, answer] += plain.rows[:, outcome]
    return Channel(rows, plain.total), None


def best_answers(channel: Channel, costs: Codes, prior: Sequence[Fraction]) -> list[int]:
    """For each outcome the answer to publish in its place that loses least; the least of several.

    In floats: which answer is chosen promises nothing, and what it costs is computed exactly.
    """
    posterior = np.array([float(share) for share in prior])[:, None] * channel.to_floats()
    losses = posterior.T @ costs.astype(np.float64)
    # Equal losses come out apart by rounding; the middle of several would be as good.
    least = losses.min(axis=1, keepdims=True) * (1 + 1e-12)
    return [int(answer) for answer in (losses <= least).argmax(axis=1)]


def _for_worst(problem: ChannelProblem, plain: Channel) -> tuple[Channel, Fraction]:
    """The law of answers to each outcome that makes the largest loss least, and a bound of it.

    The bound: with any weights w of the true answers, no channel's largest loss is below the best
    w-weighted one, which by the first theorem is Σ_r min_o Σ_q w_q·P(r|q)·ℓ(q, o).
    """
    remap, weights = _solved(problem, plain)
    # Each row of integers adds up to the same, or rounding would break ratios between rows.
    units = Channel.near([[Fraction(share) for share in row] for row in remap.tolist()]).rows
    mixed = plain.rows.astype(object) @ units.astype(object)
    rows = [[Fraction(mass) for mass in row] for row in mixed.tolist()]
    made = Channel.near(rows, keep=problem.ratio)
    shares = [Fraction(max(weight, 0.0)) for weight in weights.tolist()]
    whole = sum(shares, Fraction(0)) or Fraction(1)
    scaled = np.array([int(share / whole * 2**_PLACES) for share in shares], dtype=object)
    losses = (scaled[:, None] * plain.rows.astype(object)).T @ problem.costs.astype(object)
    least = sum(min(row) for row in losses.tolist())
    return made, Fraction(int(least), 2**_PLACES * plain.total)


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
        there = terms > _NEGLIGIBLE
        row, values = np.append(columns[there], top), np.append(terms[there], -1.0)
        answers.append(builder.add_row(row, values, 0.0))
    found = solve(builder.build())
    if found is None:
        raise DesignError(f"the solver found no channel for the {problem.guarantee}")
    remap = np.maximum(found.values[columns], 0)
    return remap / remap.sum(axis=1, keepdims=True), -found.duals[np.array(answers)]
