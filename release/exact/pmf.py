"""A probability mass function as integers over a power of two.

The pmf in a mechanism file *is* the one that is drawn from: integer weights w with Σ w = 2^bits, so
that drawing needs no floating point and a verifier recomputes every probability exactly. Floats
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
"""The integers of a pmf: ``int64`` for totals up to 2^62, Python integers (``object``) above."""

DEFAULT_BITS = 62
"""Totals of 2^62 and their sums fit into 64-bit integers."""

MOST_BITS = 256
"""A verifier reads totals of at most 10^78, which is a little more than 2^259."""


@dataclass(frozen=True, eq=False)
class Pmf:
    """An exact probability mass function on a group.

    ``weights[η]`` is non-negative, elements in row-major order; ``total`` is their sum and a power
    of two. Equal pmfs have the same group, weights and total.

    Raises:
        ValueError: wrong shape, a negative weight, or a total that is not a power of two.
    """

    group: Group
    weights: Weights
    total: int

    def __post_init__(self) -> None:
        if self.weights.shape != (self.group.size,):
            raise ValueError("a pmf needs one weight for each element of its group")
        if not (self.weights >= 0).all():
            raise ValueError("a weight is negative")
        if self.total < 2 or self.total & (self.total - 1):
            raise ValueError("the total is not a power of two")
        # Python integers, because a forged file may hold weights whose 64-bit sum wraps round.
        if sum(self.weights.tolist()) != self.total:
            raise ValueError("the weights do not add up to the total")
        self.weights.setflags(write=False)

    @classmethod
    def of(cls, group: Group, weights: Iterable[int]) -> Pmf:
        """The pmf with these weights; their sum becomes the total."""
        values = list(weights)
        total = sum(values)
        dtype: Any = np.int64 if total <= 2**62 else object
        return cls(group, np.array(values, dtype=dtype), total)

    # Written out: the equality of a dataclass would ask an array for one truth value.
    def __eq__(self, another: object) -> bool:
        return (
            isinstance(another, Pmf)
            and self.group == another.group
            and self.total == another.total
            and bool(np.array_equal(self.weights, another.weights))
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
        # Python divides integers of any size and rounds once.
        return np.asarray(self.weights.astype(object) / self.total, dtype=np.float64)
