"""A cap on the probability of some noise values, as a constraint that no spec can ask for."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from release.exact.domain import Group, Shift
from release.noise.constraints import Constraint


def at_most(group: Group, elements: Iterable[Shift], cap: Fraction) -> Constraint:
    """These noise values together have at most the probability ``cap``."""
    coefficients = np.zeros(group.size, dtype=np.int64)
    for element in elements:
        coefficients[group.element(element)] = 1
    return Constraint("cap", coefficients, cap, equal=False)
