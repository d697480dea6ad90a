"""Further linear demands on a noise law (Kadam et al. 2024, footnote 4).

They shape the law and promise nothing about privacy. A law is made of integers, so a demand is kept
up to the rounding: within ``TOLERANCE``, checked exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import mul

import numpy as np

from release.exact.domain import Codes, Group, Shift
from release.exact.numbers import exp_below_any_verifier
from release.exact.pmf import Pmf
from release.exact.privacy import Guarantee, keeps
from release.exact.sensitivity import Sensitivity

TOLERANCE = Fraction(1, 2**40)
"""How far a law may be from a demand, in units of the largest coefficient."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Σ_η coefficients[η]·f(η) ≤ limit, or = limit; ``coefficients`` has shape ``(size,)``."""

    name: str
    coefficients: Codes
    limit: Fraction
    equal: bool

    def is_kept(self, law: Pmf) -> bool:
        """Whether ``law`` keeps the demand up to the tolerance, in exact arithmetic."""
        weighted = sum(map(mul, self.coefficients.tolist(), law.weights.tolist()))
        over = Fraction(weighted, law.total) - self.limit
        allowed = TOLERANCE * int(np.abs(self.coefficients).max())
        return abs(over) <= allowed if self.equal else over <= allowed


def keeps_all(
    law: Pmf, sensitivity: Sensitivity, guarantee: Guarantee, constraints: Sequence[Constraint]
) -> bool:
    """Whether ``law`` keeps the guarantee with every verifier's e^ε, and the demands."""
    ratio = exp_below_any_verifier(guarantee.epsilon)
    kept = keeps(law, sensitivity, guarantee, ratio)
    return kept and all(constraint.is_kept(law) for constraint in constraints)


def zero_mean(group: Group, factor: int = 0) -> Constraint:
    """The noise in one factor, read as the smallest signed number, has mean zero."""
    modulus = group.moduli[factor]
    coordinate = np.array(np.unravel_index(np.arange(group.size), group.moduli)[factor])
    signed = np.where(2 * coordinate > modulus, coordinate - modulus, coordinate)
    return Constraint("zero mean", np.where(2 * signed == modulus, 0, signed), Fraction(0), True)


def equal_masses(group: Group, elements: Iterable[Shift]) -> tuple[Constraint, ...]:
    """All these noise values are equally likely."""
    numbers = list(dict.fromkeys(group.element(element) for element in elements))
    return tuple(
        Constraint("equal masses", _difference(group, a, b), Fraction(0), True)
        for a, b in pairwise(numbers)
    )


def monotone(group: Group, distance: Codes) -> tuple[Constraint, ...]:
    """No noise value is likelier than one at a smaller ``distance``; equal distances are free.

    ``distance`` has shape ``(size,)``. One constraint for each pair of elements at neighboring
    distances: cheap where each distance has a few elements.
    """
    values = np.unique(distance).tolist()
    return tuple(
        Constraint("monotone", _difference(group, far, near), Fraction(0), False)
        for low, high in pairwise(values)
        for near in np.flatnonzero(distance == low).tolist()
        for far in np.flatnonzero(distance == high).tolist()
    )


def at_most(group: Group, elements: Iterable[Shift], cap: Fraction) -> Constraint:
    """These noise values together have at most the probability ``cap``."""
    coefficients = np.zeros(group.size, dtype=np.int64)
    for element in elements:
        coefficients[group.element(element)] = 1
    return Constraint("cap", coefficients, cap, False)


def _difference(group: Group, plus: int, minus: int) -> Codes:
    coefficients = np.zeros(group.size, dtype=np.int64)
    coefficients[plus], coefficients[minus] = 1, -1
    return coefficients
