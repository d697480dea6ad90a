"""The noise law: a probability mass function as integers over a power of two.

The law in the log *is* the law that is sampled: integer weights w with Σ w = 2^bits, so that
drawing needs no floating point and a verifier can recompute every probability exactly. Floats
enter only in :mod:`release.noise.solvers.repair`, where a solver's suggestion is turned into
integers and proved again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from release.exact.domain import Group

Weights: TypeAlias = NDArray[Any]
"""Integers of a law: ``int64`` for totals up to 2^62, Python integers (``object``) above."""

DEFAULT_BITS = 62
"""Totals of 2^62 and their sums fit into 64-bit integers."""


@dataclass(frozen=True, eq=False)
class Pmf:
    """An exact probability mass function on a group.

    ``weights[η]`` is non-negative, elements in row-major order; ``total`` is their sum and a power
    of two. Laws compare by group and weights.

    Raises:
        ValueError: wrong shape, a negative weight, or a total that is not a power of two.
    """

    group: Group
    weights: Weights
    total: int

    def __post_init__(self) -> None:
        if self.weights.shape != (self.group.size,):
            raise ValueError("a law needs one weight for each element of its group")
        if not (self.weights >= 0).all():
            raise ValueError("a weight is negative")
        if self.total < 2 or self.total & (self.total - 1):
            raise ValueError("the total is not a power of two")
        # Python integers, because a forged law file may hold weights whose 64-bit sum wraps around.
        if sum(self.weights.tolist()) != self.total:
            raise ValueError("the weights do not add up to the total")
        self.weights.setflags(write=False)

    @classmethod
    def of(cls, group: Group, weights: Iterable[int]) -> Pmf:
        """Build a law from integers; their sum becomes the total."""
        values = list(weights)
        total = sum(values)
        dtype: Any = np.int64 if total <= 2**62 else object
        return cls(group, np.array(values, dtype=dtype), total)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Pmf)
            and self.group == other.group
            and self.total == other.total
            and bool(np.array_equal(self.weights, other.weights))
        )

    def __hash__(self) -> int:
        return hash((self.group, self.total, tuple(self.weights.tolist())))

    @property
    def bits(self) -> int:
        """log2 of the total: how many random bits a draw takes."""
        return self.total.bit_length() - 1

    def mass(self, element: int) -> Fraction:
        """The exact probability of an element."""
        return Fraction(int(self.weights[element]), self.total)

    def to_floats(self) -> NDArray[np.float64]:
        """The probabilities rounded to nearest: for pictures and solvers, never for proofs."""
        return np.array([w / self.total for w in self.weights.tolist()])

    @property
    def has_zero_mass(self) -> bool:
        """Whether some noise value never occurs, so that ε over all differences is infinite."""
        return bool((self.weights == 0).any())
