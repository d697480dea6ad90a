"""Further linear constraints on a pmf (Kadam et al. 2024, footnote 4).

They shape the pmf and add nothing to the guarantee. A pmf is made of integers, so a constraint
holds up to the rounding: within ``TOLERANCE``, checked exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from release.exact.domain import AnswerDomain, Codes, Group, JointDomain, Shift, Topology
from release.exact.numbers import exp_below_any_verifier
from release.exact.pmf import Pmf
from release.exact.privacy import Guarantee, keeps
from release.exact.sensitivity import Sensitivity
from release.spec.demands import EQUAL, MEAN_SQUARE, ZERO_MEAN, Demand

TOLERANCE = Fraction(1, 2**40)
"""How far a pmf may be from a constraint, in units of the largest coefficient."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Σ_η coefficients[η]·f(η) ≤ limit, or = limit; ``coefficients`` has shape ``(size,)``."""

    name: str
    coefficients: Codes
    limit: Fraction
    equal: bool

    def holds(self, pmf: Pmf) -> bool:
        """Whether ``pmf`` satisfies the constraint up to the tolerance, in exact arithmetic."""
        weighted = sum(
            a * b for a, b in zip(self.coefficients.tolist(), pmf.weights.tolist(), strict=True)
        )
        over = Fraction(weighted, pmf.total) - self.limit
        allowed = TOLERANCE * int(np.abs(self.coefficients).max())
        return abs(over) <= allowed if self.equal else over <= allowed


def keeps_all(
    pmf: Pmf, sensitivity: Sensitivity, guarantee: Guarantee, constraints: Sequence[Constraint]
) -> bool:
    """Whether ``pmf`` satisfies the guarantee with every verifier's e^ε, and the constraints."""
    ratio = exp_below_any_verifier(guarantee.epsilon)
    if not keeps(pmf, sensitivity, guarantee, ratio):
        return False
    return all(constraint.holds(pmf) for constraint in constraints)


def zero_mean(group: Group, factor: int = 0) -> Constraint:
    """The noise in one factor, read as the smallest signed number, has mean zero."""
    modulus = group.moduli[factor]
    coordinate = np.array(np.unravel_index(np.arange(group.size), group.moduli)[factor])
    # The half of an even modulus is its own negative: it counts as no error on either side.
    signed = np.where(2 * coordinate > modulus, coordinate - modulus, coordinate)
    return Constraint("zero mean", np.where(2 * signed == modulus, 0, signed), Fraction(0), True)


def equal_masses(group: Group, elements: Iterable[Shift]) -> tuple[Constraint, ...]:
    """All these noise values are equally likely."""
    # A dictionary drops what is named twice and leaves the order.
    numbers = dict.fromkeys(map(group.element, elements))
    return tuple(
        Constraint("equal masses", _difference(group, a, b), Fraction(0), True)
        for a, b in pairwise(numbers)
    )


def monotone(group: Group, distance: Codes) -> tuple[Constraint, ...]:
    """No noise value is likelier than one at a smaller ``distance``; equal distances are free.

    ``distance`` has shape ``(size,)``. One constraint for each pair of elements at neighboring
    distances: cheap where each distance has a few elements.
    """
    constraints = []
    for low, high in pairwise(np.unique(distance).tolist()):
        nearer, farther = np.flatnonzero(distance == low), np.flatnonzero(distance == high)
        for near, far in product(nearer.tolist(), farther.tolist()):
            difference = _difference(group, far, near)
            constraints.append(Constraint("monotone", difference, Fraction(0), False))
    return tuple(constraints)


def mean_square(group: Group, cap: Fraction) -> Constraint:
    """The mean square of the noise, read as the smallest signed number, is at most ``cap``."""
    return Constraint("mean square", _nearer(group.size) ** 2, cap, False)


def _nearer(size: int) -> Codes:
    """How far each noise value is from 0, the shorter way round."""
    noise = np.arange(size, dtype=np.int64)
    return np.minimum(noise, size - noise)


def constraints_of(
    demands: Iterable[Demand], domain: AnswerDomain | JointDomain
) -> tuple[Constraint, ...]:
    """The constraints that a spec demands of noise on a query of one part."""
    group, constraints = domain.group, []
    for demand in demands:
        if demand.kind == ZERO_MEAN:
            constraints.append(zero_mean(group))
        elif demand.kind == MEAN_SQUARE:
            constraints.append(mean_square(group, demand.cap))
        elif demand.kind == EQUAL:
            constraints += equal_masses(group, [(noise,) for noise in demand.noise])
        else:
            is_nominal = domain.parts[0].topology is Topology.NOMINAL
            far = _nearer(domain.size)
            constraints += monotone(group, np.minimum(far, 1) if is_nominal else far)
    return tuple(constraints)


def _difference(group: Group, plus: int, minus: int) -> Codes:
    coefficients = np.zeros(group.size, dtype=np.int64)
    coefficients[plus], coefficients[minus] = 1, -1
    return coefficients
