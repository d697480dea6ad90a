"""The sensitivity of a query: the differences by which one unit can move its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from release.exact.domain import AnswerDomain, Group, Shift


def check_shifts(parts: Sequence[AnswerDomain], shifts: Iterable[Shift]) -> None:
    """Refuse a difference that no two answers have; reduced, it would be another one, or none.

    Each shift has a coordinate, with its sign, for each of the ``parts`` of an answer.

    Raises:
        ValueError: a coordinate is not below the number of its answers, or all are 0.
    """
    moves = False
    for shift in shifts:
        for step, part in zip(shift, parts, strict=True):
            moves = moves or step != 0
            if not abs(step) < part.size:
                raise ValueError(
                    f"found {step}; the largest difference of {part.size} {part.topology.value} "
                    f"answers is {part.size - 1}"
                )
    if not moves:
        raise ValueError("name at least one difference other than 0")


Pair: TypeAlias = tuple[int, int]
"""The codes of two true answers that neighbors can have."""


@dataclass(frozen=True)
class Sensitivity:
    """The set M of differences of a query's answers over all neighbors, without zero.

    The neighboring relation is symmetric, so M is closed under negation; ``directed`` leaves a
    one-sided set as it is, for reproducing the papers only (docs/design/mathematics.md).

    ``distances`` holds those of neighboring answers on the line, each at least 1, where the
    answers have an order: in M alone one step up and the whole way down are the same.
    """

    group: Group
    shifts: tuple[Shift, ...]
    directed: bool = False
    distances: tuple[int, ...] | None = None

    @classmethod
    def of(cls, group: Group, shifts: Iterable[Shift], *, directed: bool = False) -> Sensitivity:
        """Reduce, drop zero, close under negation (unless ``directed``) and sort ``shifts``."""
        normal = set(map(group.normal, shifts))
        # Neighbors can be exchanged, so noise that hides μ alone would protect one of two tables.
        if not directed:
            normal.update(list(map(group.negative, normal)))
        normal.discard((0,) * len(group.moduli))
        return cls(group, tuple(sorted(normal)), directed)

    @classmethod
    def on_line(cls, size: int, steps: Iterable[int]) -> Sensitivity:
        """The differences of ``size`` answers in order, from ``steps`` with their sign."""
        # A step of d and one of -d keep the same pairs apart, because pairs count in both orders.
        distances = tuple(sorted(set(map(abs, steps)) - {0}))
        codes = {step % size for step in distances} | {-step % size for step in distances}
        shifts = tuple(zip(sorted(codes - {0}), strict=True))
        return cls(Group((size,)), shifts, distances=distances)

    @classmethod
    def everything(cls, group: Group) -> Sensitivity:
        """All differences but zero: any answer may turn into any other."""
        return cls.of(group, map(group.shift, range(1, group.size)))

    @property
    def least_step(self) -> int:
        """The least distance of two neighboring answers, in codes; 1 where there is none."""
        if self.distances is not None:
            return min(self.distances, default=1)
        return min(map(self.group.element, self.shifts), default=1)

    def pairs(self, answers: int) -> tuple[Pair, ...]:
        """The pairs of neighboring answers among ``answers``, both orders, ascending."""
        if self.distances is not None:
            return line_pairs(answers, self.distances)
        pairs: list[Pair] = []
        for shift in self.shifts:
            # q publishes r with the noise η = r - q, and q - μ publishes r with η + μ.
            neighbors = self.group.moved(self.group.negative(shift))
            pairs.extend(enumerate(neighbors.tolist()))
        return tuple(sorted(pairs))


def line_pairs(answers: int, steps: Iterable[int]) -> tuple[Pair, ...]:
    """The pairs of answers that are ``steps`` apart, both orders, on the line without wrapping."""
    pairs = []
    for step in set(map(abs, steps)) - {0}:
        for low in range(answers - step):
            pairs += [(low, low + step), (low + step, low)]
    return tuple(sorted(pairs))
