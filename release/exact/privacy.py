"""The guarantee of a pmf: three definitions of differential privacy, checked in exact integers.

With E = e^ε, f the pmf of the noise on a group and M the sensitivity of a query, for each μ in M
(docs/design/mathematics.md; Kadam et al. 2024, equations (1), (3) and (8)):

- approximate    δ(μ) = Σ over η of max(0, f(η) - E·f(η+μ))          the usual (ε, δ)-DP
- probabilistic  δ(μ) = Σ of f(η) over the η with f(η) > E·f(η+μ)    PDP; implies the former
- pure           δ = 0 under either

and the guarantee's δ is the largest over M. E is replaced by a rational below it, which can only
make the computed δ larger: a pmf that passes here passes with the true e^ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from release.exact.numbers import exact, exp_bounds, format_exact, member
from release.exact.pmf import Pmf, Weights
from release.exact.sensitivity import Sensitivity

MAX_WORK = 10**9
"""Elements of a pmf times differences; beyond it a check would take minutes."""


class Definition(Enum):
    """The definition under which δ is counted."""

    PURE = "pure"
    PROBABILISTIC = "probabilistic"
    APPROXIMATE = "approximate"


LEAST_EPSILON = Fraction(1, 10**12)
"""The least ε above 0: below it no pmf of 62 bits differs from one for 0."""

KEPT_FREE = Fraction(2, 10**30)
"""The part of δ that a pmf for ε = 0 leaves to verifiers with a ratio a little below 1."""

LEAST_DELTA = Fraction(1, 10**12)
"""The least δ beside ε = 0."""


@dataclass(frozen=True)
class Guarantee:
    """A guarantee (ε, δ) under a definition, which may be given by its name.

    ε and δ are exact: an integer, a Fraction, or text such as ``"0.1"``.

    Raises:
        SpecError: there is no such definition, or ε or δ is a float or no number.
        ValueError: ε neither 0 nor in [10⁻¹², 100], not 0 ≤ δ < 1, a pure guarantee with δ > 0, or
            ε = 0 without an approximate δ of at least 10⁻¹².
    """

    definition: Definition
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "definition", member("definition", Definition, self.definition))
        object.__setattr__(self, "epsilon", _exact("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _exact("delta", self.delta))
        if not (self.epsilon == 0 or LEAST_EPSILON <= self.epsilon <= 100):
            raise ValueError("epsilon must be above 0, at least 10^-12 and at most 100")
        # At ε = 0 δ is the whole guarantee; only the approximate definition gives it a meaning.
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


def _exact(name: str, value: Fraction) -> Fraction:
    # A Fraction is taken as it is: what is out of range is told with the range.
    return value if type(value) is Fraction else exact(name, value)


@dataclass(frozen=True)
class Deltas:
    """The exact δ under both definitions, each the largest over the sensitivity."""

    probabilistic: Fraction
    approximate: Fraction

    def under(self, definition: Definition) -> Fraction:
        """The δ that ``definition`` counts; for pure, the probabilistic one, zero when it holds."""
        if definition is Definition.APPROXIMATE:
            return self.approximate
        return self.probabilistic


def deltas(pmf: Pmf, sensitivity: Sensitivity, epsilon: Fraction) -> Deltas:
    """The exact δ of ``pmf`` at ``epsilon``, under both definitions, in integer arithmetic."""
    low, _ = exp_bounds(epsilon)
    return deltas_at_ratio(pmf, sensitivity, low)


def deltas_at_ratio(pmf: Pmf, sensitivity: Sensitivity, ratio: Fraction) -> Deltas:
    """As :func:`deltas`, with ``ratio`` in place of e^ε; exact for that ratio.

    Raises:
        ValueError: the pmf and the sensitivity belong to different groups.
    """
    if pmf.group != sensitivity.group:
        raise ValueError("the pmf and the sensitivity belong to different groups")
    # f(η) > E·f(η+μ) for integer weights is f(η) > floor(E·f(η+μ)): the floors are found once.
    ceilings = largest_allowed(pmf.weights, pmf.total, ratio)
    probabilistic = approximate = Fraction(0)
    for shift in sensitivity.shifts:
        moved = pmf.group.moved(shift)
        violated = np.flatnonzero(pmf.weights > ceilings[moved])
        if violated.size:
            # Sums of distinct weights are at most the total, so they fit wherever the weights do.
            heavy = int(pmf.weights[violated].sum())
            light = int(pmf.weights[moved[violated]].sum())
            probabilistic = max(probabilistic, Fraction(heavy, pmf.total))
            approximate = max(approximate, (heavy - ratio * light) / pmf.total)
    return Deltas(probabilistic, approximate)


def largest_allowed(weights: Weights, total: int, ratio: Fraction) -> Weights:
    """For each of ``weights`` the largest that a neighbor may have: floor(ratio · weight).

    Capped at the total, which no weight exceeds, to stay in the range of the weights.
    """
    numerator, denominator = ratio.numerator, ratio.denominator
    # The rows of a channel hold few different weights, many times.
    distinct, places = np.unique(weights, return_inverse=True)
    # As Python integers, because weight times numerator is far beyond 64 bits.
    ceilings = np.minimum(distinct.astype(object) * numerator // denominator, total)
    return np.asarray(ceilings.astype(weights.dtype)[places].reshape(weights.shape))


def keeps(pmf: Pmf, sensitivity: Sensitivity, guarantee: Guarantee, ratio: Fraction) -> bool:
    """Whether ``pmf`` satisfies ``guarantee`` when e^ε is replaced by ``ratio``."""
    delta = deltas_at_ratio(pmf, sensitivity, ratio).under(guarantee.definition)
    return delta <= guarantee.delta
