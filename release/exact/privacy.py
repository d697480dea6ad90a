"""What a law promises: three definitions of differential privacy, each checked in exact integers.

With E = e^ε, f the noise law on a group and M the differences of a query, for each μ in M
(docs/design/mathematics.md; Kadam et al. 2024, equations (1), (3) and (8)):

- approximate    δ(μ) = Σ over η of max(0, f(η) - E·f(η+μ))          the usual (ε, δ)-DP
- probabilistic  δ(μ) = Σ of f(η) over the η with f(η) > E·f(η+μ)    PDP; implies the former
- pure           δ = 0 under either

and the guarantee's δ is the largest over M. E is replaced by a rational below it, which can only
make the computed δ larger: a law that passes here passes with the true e^ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from release.exact.numbers import exp_bounds, format_exact
from release.exact.pmf import Pmf, Weights
from release.exact.sensitivity import Sensitivity

MAX_WORK = 10**9
"""Elements times differences of a law; beyond it a check would take minutes."""


class Definition(Enum):
    """The definition under which δ is counted."""

    PURE = "pure"
    PROBABILISTIC = "probabilistic"
    APPROXIMATE = "approximate"


LEAST_EPSILON = Fraction(1, 10**12)
"""The least ε above 0: below it a law cannot be told from one for 0."""

KEPT_FREE = Fraction(2, 10**30)
"""What of δ a law for ε = 0 leaves unused, for verifiers with a ratio a little below 1."""

LEAST_DELTA = Fraction(1, 10**12)
"""The least δ beside ε = 0."""


@dataclass(frozen=True)
class Guarantee:
    """A promise (ε, δ) under a definition.

    Raises:
        ValueError: ε neither 0 nor in [10⁻¹², 100], not 0 ≤ δ < 1, a pure guarantee with δ > 0, or
            ε = 0 where no δ stands for what is promised (approximate, at least 10⁻¹²).
    """

    definition: Definition
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not (self.epsilon == 0 or LEAST_EPSILON <= self.epsilon <= 100):
            raise ValueError("epsilon must be above 0, at least 10^-12 and at most 100")
        if self.epsilon == 0 and not (
            self.definition is Definition.APPROXIMATE and self.delta >= LEAST_DELTA - KEPT_FREE
        ):
            raise ValueError(
                "epsilon must be above 0; it may be 0 with an approximate guarantee and delta at "
                "least 10^-12"
            )
        if not 0 <= self.delta < 1:
            raise ValueError("delta must be at least 0 and below 1")
        if self.definition is Definition.PURE and self.delta != 0:
            raise ValueError("a pure guarantee has delta 0; name probabilistic or approximate")

    def __str__(self) -> str:
        epsilon, delta = format_exact(self.epsilon), format_exact(self.delta)
        return f"{self.definition.value} (ε = {epsilon}, δ = {delta})"


@dataclass(frozen=True)
class Deltas:
    """The exact δ of a law, its largest over the differences, under both definitions."""

    probabilistic: Fraction
    approximate: Fraction

    def under(self, definition: Definition) -> Fraction:
        """The δ that ``definition`` counts; for pure, the probabilistic one, zero when it holds."""
        if definition is Definition.APPROXIMATE:
            return self.approximate
        return self.probabilistic


def deltas(law: Pmf, sensitivity: Sensitivity, epsilon: Fraction) -> Deltas:
    """The exact δ of ``law`` at ``epsilon``, under both definitions, in integer arithmetic."""
    low, _ = exp_bounds(epsilon)
    return deltas_at_ratio(law, sensitivity, low)


def deltas_at_ratio(law: Pmf, sensitivity: Sensitivity, ratio: Fraction) -> Deltas:
    """As :func:`deltas`, with ``ratio`` in place of e^ε; exact for that ratio.

    Raises:
        ValueError: the law and the differences live in different groups.
    """
    if law.group != sensitivity.group:
        raise ValueError("the law and the differences belong to different groups")
    ceilings = largest_kept(law.weights, law.total, ratio)
    probabilistic = approximate = Fraction(0)
    for shift in sensitivity.shifts:
        moved = law.group.moved(shift)
        violated = np.flatnonzero(law.weights > ceilings[moved])
        if violated.size:
            # Sums of distinct weights are at most the total, so they fit wherever the weights do.
            heavy = int(law.weights[violated].sum())
            light = int(law.weights[moved[violated]].sum())
            probabilistic = max(probabilistic, Fraction(heavy, law.total))
            approximate = max(approximate, (heavy - ratio * light) / law.total)
    return Deltas(probabilistic, approximate)


def largest_kept(weights: Weights, total: int, ratio: Fraction) -> Weights:
    """For each of ``weights`` the largest that a neighbor may have: floor(ratio · weight).

    Capped at the total, which no weight exceeds, to stay in the range of the weights.
    """
    numerator, denominator = ratio.numerator, ratio.denominator
    # The rows of a channel hold few different weights, many times.
    distinct, places = np.unique(weights, return_inverse=True)
    values = [min(total, w * numerator // denominator) for w in distinct.tolist()]
    return np.array(values, dtype=weights.dtype)[places].reshape(weights.shape)


def keeps(law: Pmf, sensitivity: Sensitivity, guarantee: Guarantee, ratio: Fraction) -> bool:
    """Whether ``law`` keeps ``guarantee`` when e^ε is replaced by ``ratio``."""
    found = deltas_at_ratio(law, sensitivity, ratio).under(guarantee.definition)
    return found <= guarantee.delta
