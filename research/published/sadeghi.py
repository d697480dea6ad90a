"""The count mechanism of Sadeghi, Asoodeh and Calmon 2020, and the program it solves.

Noise on a count that is never negative in sum, has mean zero, ends after D steps, and leaves the
count as it is with probability η whatever the count (their P1 to P3). The explicit law is for
counts of at least D; :func:`solve_counts` is the program of Proposition 2 for all counts from 1.

Their δ̃ is about single outcomes, p(y|n) ≤ e^ε·p(y|n±1) + δ̃, and becomes a guarantee for events
by the factor 2D+1 (Remark 2). The hockey-stick δ is that guarantee exactly, and far smaller.

Theorem 3 compares each mass with the next one outwards only. Where η is so small that ±1 is far
likelier than 0, the comparison the other way is the larger: then neither δ̃ nor its multiple is
a guarantee of the pmf. ``outcome_delta`` and ``delta`` look both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from release.exact.channel import Channel
from release.exact.numbers import exp_bounds
from release.noise.published.sadeghi import error_shares, lower_bounds
from release.noise.solvers.program import Builder, Floats, Numbers, solve
from research.published.integer_pmf import IntegerPmf

__all__ = ["CountLaw", "Counts", "count_law", "crossovers", "lower_bounds", "solve_counts"]

MOST = 10.0
"""The largest ε for which the program is solved."""


@dataclass(frozen=True)
class CountLaw:
    """The explicit pmf with its figures; all exact for the rational e^ε below the true one.

    ``alphas[i-1]`` is α*_i: the share of the errors that are ±i. ``index`` is the k of the δ_k that
    is largest (D+1: the bound of type II). ``claimed`` is δ̃ = δ* of Theorem 3.
    """

    noise: IntegerPmf
    index: int
    alphas: tuple[Fraction, ...]
    claimed: Fraction
    epsilon: Fraction

    @property
    def bound_delta(self) -> Fraction:
        """min(1, (2D+1)·δ̃), the δ of Remark 2."""
        return min(Fraction(1), (2 * len(self.alphas) + 1) * self.claimed)

    @property
    def outcome_delta(self) -> Fraction:
        """The δ of single outcomes, over both neighbors; δ̃ unless η is small."""
        ratio, end = exp_bounds(self.epsilon)[0], len(self.alphas) + 1
        masses = [self.noise.mass(k) for k in range(-end, end + 1)]
        return max(max(a - ratio * b, b - ratio * a) for a, b in pairwise(masses))

    @property
    def delta(self) -> Fraction:
        """The exact approximate δ of the pmf for counts 1 apart."""
        return self.noise.deltas(1, exp_bounds(self.epsilon)[0]).approximate


def crossovers(reach: int, ratio: Fraction) -> tuple[Fraction, ...]:
    """C_1 > … > C_D: δ_k ≥ δ_{k+1} exactly where 2η/(1-η) ≥ C_k ((34), Lemma 3)."""
    powers = [ratio**j for j in range(reach + 1)]
    return tuple(
        sum(powers[: k + 1]) / sum((p * (k - j) for j, p in enumerate(powers[:k])), Fraction(0))
        for k in range(1, reach + 1)
    )


def count_law(reach: int, keep: Fraction, epsilon: Fraction) -> CountLaw:
    """The optimal pmf of Definition 2 and Theorem 3, for counts of at least ``reach`` (D).

    Raises:
        ValueError: ``reach`` below 1, or ``keep`` (η) not in (0, 1).
    """
    if not (reach >= 1 and 0 < keep < 1):
        raise ValueError("reach must be at least 1, and keep above 0 and below 1")
    ratio = exp_bounds(epsilon)[0]
    bounds = lower_bounds(reach, keep, ratio)
    delta = max(bounds)
    index = bounds.index(delta) + 1
    alphas = error_shares(reach, keep, ratio, bounds)
    half = [alpha * (1 - keep) / 2 for alpha in alphas]
    noise = IntegerPmf(-reach, (*half[::-1], keep, *half))
    return CountLaw(noise, index, alphas, delta, epsilon)


@dataclass(frozen=True)
class Counts:
    """A solution of Proposition 2; floats, proved by nobody.

    ``rows`` has shape (N - first + 1, N + D + 1): the pmf of the published count 0..N+D for each
    true count ``first``..N.
    """

    rows: Floats
    first: int
    single_outcome_delta: float

    def to_channel(self) -> Channel:
        """The same in exact integers; :meth:`Channel.deltas` proves them."""
        clean = np.maximum(self.rows, 0)
        return Channel.near([list(map(Fraction, row)) for row in clean.tolist()])


def solve_counts(
    most: int, reach: int, keep: float, epsilon: float, first: int = 1, *, shared: bool = False
) -> Counts | None:
    """The linear program of Proposition 2: the least δ̃ over answer-dependent pmfs.

    Variables are the masses p(z|n) themselves: every pmf with mean zero and p(0|n) = η is a mixture
    of the two-point pmfs (2) that the paper weighs, as those are its extreme points.

    Args:
        most: the largest true count, N.
        reach: how far a published count may be off, D.
        keep: the probability of the true count, η.
        epsilon: ε, at most 10: beyond, δ̃ is less than the solver can tell from 0.
        first: the least true count, at least 1 (at 0 no error has mean zero).
        shared: one pmf for all counts, as in Proposition 3; then ``first`` is at least D.

    Returns:
        A solution up to the solver's tolerance, 10⁻⁹ of δ̃; None where it found none.

    Raises:
        ValueError: an argument out of its range.
    """
    if not (0 < keep < 1 and 0 <= epsilon <= MOST):
        raise ValueError(f"keep must be above 0 and below 1, and epsilon from 0 to {MOST:g}")
    if not 1 <= first <= most or (shared and first < reach):
        raise ValueError("true counts go from 1, or for a shared pmf from D, to the largest")
    builder, ratio = Builder(), float(np.exp(epsilon))
    delta = int(builder.add_columns(np.ones(1))[0])
    noise = np.arange(-reach, reach + 1)
    columns: dict[int, Numbers] = {}
    for count in range(first, most + 1):
        own = noise >= -count
        # p(0|n) is η, no variable.
        own[reach] = False
        if shared and columns:
            columns[count] = columns[first]
            continue
        numbers = np.full(noise.size, -1, dtype=np.int64)
        numbers[own] = builder.add_columns(np.zeros(int(own.sum())))
        columns[count] = numbers
        builder.add_row(numbers, np.ones(noise.size), 1 - keep, equal=True)
        builder.add_row(numbers, noise.astype(np.float64), 0.0, equal=True)
    for count in range(first, most):
        for here, there, step in ((count, count + 1, -1), (count + 1, count, 1)):
            _single_outcomes(builder, columns[here], columns[there], step, delta, (keep, ratio))
    solution = solve(builder.build())
    if solution is None:
        return None
    rows = np.zeros((most - first + 1, most + reach + 1))
    for count, numbers in columns.items():
        for z, number in zip(noise.tolist(), numbers.tolist(), strict=True):
            if z == 0:
                rows[count - first, count] = keep
            elif number >= 0:
                rows[count - first, count + z] = solution.values[number]
    return Counts(rows, first, solution.objective)


def _single_outcomes(
    builder: Builder,
    here: Numbers,
    there: Numbers,
    step: int,
    delta: int,
    constants: tuple[float, float],
) -> None:
    """p(z|n) ≤ e^ε·p(z + step|n - step) + δ for all z: rows of (10) and (11)."""
    keep, ratio = constants
    reach = len(here) // 2
    for z in range(-reach, reach + 1):
        head = z + step
        inside = -reach <= head <= reach
        limit = ratio * keep if head == 0 else 0.0
        limit -= keep if z == 0 else 0.0
        terms = np.array([here[z + reach], there[head + reach] if inside else -1, delta])
        if terms[0] >= 0 or z == 0:
            builder.add_row(terms, np.array([1.0, -ratio, -1.0]), limit)
